//! The server's own routes: paths, methods, who reads the answer, which other origins may read it,
//! and which function answers.

use super::route::Endpoint::{Conversation, Named, Plain, Standing};
use super::route::RoutePath::{AllBetween, Below, Between, Exact};
use super::route::Sharing::{ClientOrigins, ClientOriginsWithCredentials, Everybody, Nobody};
use super::route::{Endpoint, HEALTH_PATH, PASSKEY_ENDPOINTS_PATH, Route};
use crate::endpoints::conversation::{self, Page};
use crate::endpoints::forgotten;
use crate::endpoints::logout::{self, end_session};
use crate::endpoints::token::{self, introspection, userinfo};
use crate::endpoints::{
    account, answers, bound_session, device, discovery, links, metrics, pushed_request, start,
    static_files, upstream,
};
use gatepost_protocol::discovery as metadata;
use gatepost_protocol::login::bound_session::{BIND_PATH, REFRESH_PATH};

const READ: &str = "GET, HEAD";
const SHARED: &str = "GET, HEAD, OPTIONS";
const CALLED: &str = "POST, OPTIONS";
const FORM: &str = "GET, HEAD, POST";

const HOME: Endpoint = Plain(|app, request| Ok(discovery::home(app, request)));

pub const ROUTES: &[Route] = &[
    Route::new(Exact(""), "home", READ, HOME),
    Route::new(Exact("/"), "home", READ, HOME),
    Route::new(
        Exact(HEALTH_PATH),
        "healthz",
        READ,
        Standing(|_, _, _| Ok(metrics::live())),
    )
    .for_programs(Nobody),
    Route::new(
        Exact(metadata::CONFIGURATION_PATH),
        "discovery",
        SHARED,
        Plain(|app, _| discovery::metadata(app)),
    )
    .for_programs(Everybody),
    Route::new(
        Exact(metadata::JWKS_PATH),
        "jwks",
        SHARED,
        Plain(|app, _| discovery::jwks(app)),
    )
    .for_programs(Everybody),
    Route::new(
        Exact(metadata::JWKS_JSON_PATH),
        "jwks",
        SHARED,
        Plain(|app, _| discovery::jwks(app)),
    )
    .for_programs(Everybody),
    Route::new(
        Exact(metadata::AUTHORIZE_PATH),
        "authorize",
        "GET, POST",
        Conversation(Page::Authorize),
    ),
    Route::new(
        Exact(metadata::END_SESSION_PATH),
        "endsession",
        "GET, POST",
        Plain(end_session::handle),
    ),
    Route::new(
        Exact(metadata::CHECK_SESSION_PATH),
        "checksession",
        READ,
        Standing(|config, _, _| Ok(logout::check_session(config))),
    ),
    Route::new(
        Exact(metadata::TOKEN_PATH),
        "token",
        CALLED,
        Plain(token::handle),
    )
    .for_programs(ClientOriginsWithCredentials),
    Route::new(
        Exact(metadata::PUSHED_REQUEST_PATH),
        "pushedrequest",
        CALLED,
        Plain(pushed_request::handle),
    )
    .for_programs(ClientOrigins),
    Route::new(
        Exact(metadata::REVOCATION_PATH),
        "revocation",
        CALLED,
        Plain(introspection::revoke_presented),
    )
    .for_programs(ClientOrigins),
    Route::new(
        Exact(metadata::INTROSPECTION_PATH),
        "introspect",
        "POST",
        Plain(introspection::handle),
    )
    .for_programs(Nobody),
    Route::new(
        Exact(metadata::DEVICE_AUTHORIZATION_PATH),
        "deviceauthorization",
        CALLED,
        Plain(device::authorize),
    )
    .for_programs(ClientOrigins),
    Route::new(
        Exact(metadata::USERINFO_PATH),
        "userinfo",
        "GET, HEAD, POST, OPTIONS",
        Plain(userinfo::handle),
    )
    .for_programs(ClientOrigins),
    Route::new(
        Exact(PASSKEY_ENDPOINTS_PATH),
        "passkey_endpoints",
        READ,
        Plain(|app, _| discovery::passkey_endpoints(app)),
    )
    .for_programs(Nobody),
    Route::new(
        Exact(BIND_PATH),
        "session_bind",
        "POST",
        Plain(bound_session::bind),
    )
    .for_programs(Nobody),
    Route::new(
        Exact(REFRESH_PATH),
        "session_refresh",
        "POST",
        Plain(bound_session::refresh),
    )
    .for_programs(Nobody),
    // Password managers ask for this address.
    Route::new(
        Exact("/.well-known/change-password"),
        "change_password",
        READ,
        Plain(|app, _| {
            let page = app.config.base_url.path_of("/account#password");
            Ok(answers::see_other(page))
        }),
    ),
    Route::new(Exact("/login"), "login", FORM, Conversation(Page::Login)),
    Route::new(
        Exact("/login/second-factor"),
        "second_factor",
        FORM,
        Conversation(Page::SecondFactor),
    ),
    Route::new(
        Exact("/join"),
        "join",
        FORM,
        Plain(|app, request| links::handle("/join", app, request)),
    ),
    Route::new(
        Exact(forgotten::PAGE),
        "forgotten",
        FORM,
        Plain(forgotten::handle),
    ),
    Route::new(
        Exact("/consent"),
        "consent",
        FORM,
        Conversation(Page::Consent),
    ),
    Route::new(Exact("/logout"), "logout", FORM, Plain(logout::handle)),
    Route::new(Exact("/start"), "start", READ, Plain(start::handle)),
    Route::new(Exact("/account"), "account", FORM, Plain(account::handle)),
    Route::new(
        Exact(links::ACCOUNT),
        "password_link",
        FORM,
        Plain(|app, request| links::handle(links::ACCOUNT, app, request)),
    ),
    Route::new(
        Exact("/account/address"),
        "new_address",
        FORM,
        Plain(|app, request| links::handle("/account/address", app, request)),
    ),
    Route::new(
        Exact("/device"),
        "device",
        FORM,
        Conversation(Page::UserCode),
    ),
    Route::new(
        Below("/static/"),
        "static",
        READ,
        Standing(static_files::handle),
    ),
    Route::new(
        AllBetween("/clients/", "/logo"),
        "logo",
        READ,
        Named(|app, _, client| static_files::client_logo(app, client)),
    ),
    Route::new(
        Between("/external/", "/callback"),
        "external_callback",
        // POST only where the provider has `response_mode: form_post`.
        FORM,
        Named(conversation::come_back),
    ),
    Route::new(
        Between("/external/", "/logout"),
        "external_logout",
        "POST",
        Named(upstream::logout::handle),
    )
    .for_programs(Nobody),
    Route::new(
        Between("/external/", "/signed-out"),
        "external_signed_out",
        READ,
        Named(end_session::signed_out),
    ),
];
