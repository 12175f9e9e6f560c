//! The server's own routes: paths, methods, who reads the answer, which other origins may read it,
//! and which function answers.

use super::route::Audience::{Person, Program};
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
    Route::new(Person, Exact(""), "home", READ, HOME),
    Route::new(Person, Exact("/"), "home", READ, HOME),
    Route::new(
        Program(Nobody),
        Exact(HEALTH_PATH),
        "healthz",
        READ,
        Standing(|_, _, _| Ok(metrics::live())),
    ),
    Route::new(
        Program(Everybody),
        Exact(metadata::CONFIGURATION_PATH),
        "discovery",
        SHARED,
        Plain(|app, _| discovery::metadata(app)),
    ),
    Route::new(
        Program(Everybody),
        Exact(metadata::JWKS_PATH),
        "jwks",
        SHARED,
        Plain(|app, _| discovery::jwks(app)),
    ),
    Route::new(
        Program(Everybody),
        Exact(metadata::JWKS_JSON_PATH),
        "jwks",
        SHARED,
        Plain(|app, _| discovery::jwks(app)),
    ),
    Route::new(
        Person,
        Exact(metadata::AUTHORIZE_PATH),
        "authorize",
        "GET, POST",
        Conversation(Page::Authorize),
    ),
    Route::new(
        Person,
        Exact(metadata::END_SESSION_PATH),
        "endsession",
        "GET, POST",
        Plain(end_session::handle),
    ),
    Route::new(
        Person,
        Exact(metadata::CHECK_SESSION_PATH),
        "checksession",
        READ,
        Standing(|config, _, _| Ok(logout::check_session(config))),
    ),
    Route::new(
        Program(ClientOriginsWithCredentials),
        Exact(metadata::TOKEN_PATH),
        "token",
        CALLED,
        Plain(token::handle),
    ),
    Route::new(
        Program(ClientOrigins),
        Exact(metadata::PUSHED_REQUEST_PATH),
        "pushedrequest",
        CALLED,
        Plain(pushed_request::handle),
    ),
    Route::new(
        Program(ClientOrigins),
        Exact(metadata::REVOCATION_PATH),
        "revocation",
        CALLED,
        Plain(introspection::revoke_presented),
    ),
    Route::new(
        Program(Nobody),
        Exact(metadata::INTROSPECTION_PATH),
        "introspect",
        "POST",
        Plain(introspection::handle),
    ),
    Route::new(
        Program(ClientOrigins),
        Exact(metadata::DEVICE_AUTHORIZATION_PATH),
        "deviceauthorization",
        CALLED,
        Plain(device::authorize),
    ),
    Route::new(
        Program(ClientOrigins),
        Exact(metadata::USERINFO_PATH),
        "userinfo",
        "GET, HEAD, POST, OPTIONS",
        Plain(userinfo::handle),
    ),
    Route::new(
        Program(Nobody),
        Exact(PASSKEY_ENDPOINTS_PATH),
        "passkey_endpoints",
        READ,
        Plain(|app, _| discovery::passkey_endpoints(app)),
    ),
    Route::new(
        Program(Nobody),
        Exact(BIND_PATH),
        "session_bind",
        "POST",
        Plain(bound_session::bind),
    ),
    Route::new(
        Program(Nobody),
        Exact(REFRESH_PATH),
        "session_refresh",
        "POST",
        Plain(bound_session::refresh),
    ),
    // Password managers ask for this address.
    Route::new(
        Person,
        Exact("/.well-known/change-password"),
        "change_password",
        READ,
        Plain(|app, _| {
            let page = app.config.base_url.path_of("/account#password");
            Ok(answers::see_other(page))
        }),
    ),
    Route::new(
        Person,
        Exact("/login"),
        "login",
        FORM,
        Conversation(Page::Login),
    ),
    Route::new(
        Person,
        Exact("/login/second-factor"),
        "second_factor",
        FORM,
        Conversation(Page::SecondFactor),
    ),
    Route::new(
        Person,
        Exact("/join"),
        "join",
        FORM,
        Plain(|app, request| links::handle("/join", app, request)),
    ),
    Route::new(
        Person,
        Exact(forgotten::PAGE),
        "forgotten",
        FORM,
        Plain(forgotten::handle),
    ),
    Route::new(
        Person,
        Exact("/consent"),
        "consent",
        FORM,
        Conversation(Page::Consent),
    ),
    Route::new(
        Person,
        Exact("/logout"),
        "logout",
        FORM,
        Plain(logout::handle),
    ),
    Route::new(Person, Exact("/start"), "start", READ, Plain(start::handle)),
    Route::new(
        Person,
        Exact("/account"),
        "account",
        FORM,
        Plain(account::handle),
    ),
    Route::new(
        Person,
        Exact(links::ACCOUNT),
        "password_link",
        FORM,
        Plain(|app, request| links::handle(links::ACCOUNT, app, request)),
    ),
    Route::new(
        Person,
        Exact("/account/address"),
        "new_address",
        FORM,
        Plain(|app, request| links::handle("/account/address", app, request)),
    ),
    Route::new(
        Person,
        Exact("/device"),
        "device",
        FORM,
        Conversation(Page::UserCode),
    ),
    Route::new(
        Person,
        Below("/static/"),
        "static",
        READ,
        Standing(static_files::handle),
    ),
    Route::new(
        Person,
        AllBetween("/clients/", "/logo"),
        "logo",
        READ,
        Named(|app, _, client| static_files::client_logo(app, client)),
    ),
    Route::new(
        Person,
        Between("/external/", "/callback"),
        "external_callback",
        // POST only where the provider has `response_mode: form_post`.
        FORM,
        Named(conversation::come_back),
    ),
    Route::new(
        Program(Nobody),
        Between("/external/", "/logout"),
        "external_logout",
        "POST",
        Named(upstream::logout::handle),
    ),
    Route::new(
        Person,
        Between("/external/", "/signed-out"),
        "external_signed_out",
        READ,
        Named(end_session::signed_out),
    ),
];
