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
use gatepost_server::dispatch::route::Endpoint::{Named, Plain};
use gatepost_server::dispatch::route::RoutePath::{Below, Exact};
use gatepost_server::dispatch::route::Sharing::Nobody;
use gatepost_server::dispatch::route::{Audience, Route};

const FORM: &str = "GET, HEAD, POST";

pub const ROUTES: &[Route] = &[
    Route::page(
        Exact("/admin"),
        "admin",
        FORM,
        Plain(|app, request| admission::handle(app, request, "")),
    ),
    Route {
        takes_long_body: Some(invitations::takes_long_body),
        ..Route::page(Below("/admin/"), "admin", FORM, Named(admission::handle))
    },
    Route::program(
        Nobody,
        Exact(REGISTRATION_EXPORT_PATH),
        "registration",
        "GET, HEAD",
        Plain(registration::export),
    ),
    Route {
        takes_long_body: Some(registration::takes_long_body),
        ..Route::program(
            Nobody,
            Exact(registration::PLAN),
            "registration",
            "POST",
            Plain(registration::plan),
        )
    },
    Route {
        takes_long_body: Some(registration::takes_long_body),
        ..Route::program(
            Nobody,
            Exact(registration::APPLY),
            "registration",
            "POST",
            Plain(registration::apply),
        )
    },
    Route {
        // RFC 7644 §3.12.
        audience: Audience::ProgramWith(|status, description| {
            scim_endpoint::error_answer(&ScimError::plain(status, description))
        }),
        ..Route::page(
            Below("/scim/v2/"),
            "scim",
            "GET, HEAD, POST, PUT, PATCH, DELETE",
            Named(scim_endpoint::handle),
        )
    },
];
