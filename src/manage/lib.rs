//! What administrators and their programs use: pages that look after people, SCIM, and the
//! registration over HTTP. Whoever starts the server hands it these routes beside its own.

pub mod endpoints;
pub mod pages;
pub mod scim;
pub mod statements;

use crate::endpoints::admin::{admission, invitations};
use crate::endpoints::registration;
use crate::endpoints::scim as scim_endpoint;
use crate::scim::error::ScimError;
use gatepost_protocol::discovery::REGISTRATION_EXPORT_PATH;
use gatepost_server::dispatch::route::Audience::{Person, Program, ProgramWith};
use gatepost_server::dispatch::route::Endpoint::{Named, Plain};
use gatepost_server::dispatch::route::Route;
use gatepost_server::dispatch::route::RoutePath::{Below, Exact};
use gatepost_server::dispatch::route::Sharing::Nobody;

const FORM: &str = "GET, HEAD, POST";

pub const ROUTES: &[Route] = &[
    Route::new(
        Person,
        Exact("/admin"),
        "admin",
        FORM,
        Plain(|app, request| admission::handle(app, request, "")),
    ),
    Route {
        takes_long_body: Some(invitations::takes_long_body),
        ..Route::new(
            Person,
            Below("/admin/"),
            "admin",
            FORM,
            Named(admission::handle),
        )
    },
    Route::new(
        Program(Nobody),
        Exact(REGISTRATION_EXPORT_PATH),
        "registration",
        "GET, HEAD",
        Plain(registration::export),
    ),
    Route {
        takes_long_body: Some(registration::takes_long_body),
        ..Route::new(
            Program(Nobody),
            Exact(registration::PLAN),
            "registration",
            "POST",
            Plain(registration::plan),
        )
    },
    Route {
        takes_long_body: Some(registration::takes_long_body),
        ..Route::new(
            Program(Nobody),
            Exact(registration::APPLY),
            "registration",
            "POST",
            Plain(registration::apply),
        )
    },
    Route::new(
        // RFC 7644 §3.12.
        ProgramWith(|status, description| {
            scim_endpoint::error_answer(&ScimError::plain(status, description))
        }),
        Below("/scim/v2/"),
        "scim",
        "GET, HEAD, POST, PUT, PATCH, DELETE",
        Named(scim_endpoint::handle),
    ),
];
