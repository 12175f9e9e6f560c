//! The table of all paths: their methods, who reads the answer, which other origins may read it,
//! and which function answers.

use crate::app::App;
use crate::app::failure::Failure;
use crate::config::Config;
use crate::endpoints::admin::admission;
use crate::endpoints::conversation::{self, Page};
use crate::endpoints::forgotten;
use crate::endpoints::logout::{self, end_session};
use crate::endpoints::token::{self, introspection, userinfo};
use crate::endpoints::{
    account, answers, device, discovery, join, metrics, pushed_request, registration, scim,
    static_files, upstream,
};
use crate::http::{Method, Request, Response};
use crate::protocol::discovery as metadata;

/// Who reads the answer when something goes wrong.
#[derive(Clone, Copy)]
pub(super) enum Audience {
    Person,
    Program,
    /// A program that reads errors as SCIM has them (RFC 7644 §3.12).
    ScimClient,
}

/// Which other origins may read the answer in a browser (Fetch §3.2).
#[derive(Clone, Copy)]
pub(super) enum Sharing {
    Nobody,
    Everybody,
    ClientOrigins,
    /// The same, for scripts that send the cookies they have with each request, too. The endpoint
    /// reads none.
    ClientOriginsWithCredentials,
}

pub(super) enum Endpoint<'a> {
    Plain(fn(&App, &Request) -> Result<Response, Failure>),
    /// Takes a name from the path.
    Named(
        fn(&App, &Request, &str) -> Result<Response, Failure>,
        &'a str,
    ),
    /// Answers without the database.
    Standing(
        fn(&Config, &Request, &str) -> Result<Response, Failure>,
        &'a str,
    ),
}

pub(super) struct Route<'a> {
    /// What metrics call it.
    pub label: &'static str,
    /// HEAD is taken wherever GET is, except where GET has effects.
    pub allow: &'static str,
    pub audience: Audience,
    pub sharing: Sharing,
    pub endpoint: Endpoint<'a>,
}

const READ: &str = "GET, HEAD";
const SHARED: &str = "GET, HEAD, OPTIONS";
const CALLED: &str = "POST, OPTIONS";
const FORM: &str = "GET, HEAD, POST";
const HEALTH_PATH: &str = "/healthz";

impl<'a> Route<'a> {
    /// Paths are case-sensitive and end where they end.
    pub(super) fn find(base_path: &str, path: &'a str) -> Option<Route<'a>> {
        use Audience::{Person, Program, ScimClient};
        use Endpoint::{Named, Plain, Standing};
        use Sharing::{ClientOrigins, ClientOriginsWithCredentials, Everybody, Nobody};
        // RFC 8414 §3.1 puts the well-known part before the issuer's path, not after it.
        let is_well_known =
            path.strip_prefix(metadata::AUTHORIZATION_SERVER_PATH) == Some(base_path);
        let below = if is_well_known {
            metadata::CONFIGURATION_PATH
        } else if path == HEALTH_PATH {
            // Balancers and `gatepost healthcheck` ask for it here, whatever path the base URL
            // has.
            HEALTH_PATH
        } else {
            path.strip_prefix(base_path)?
        };
        let (label, allow, audience, sharing, endpoint) = match below {
            "" | "/" => (
                "home",
                READ,
                Person,
                Nobody,
                Plain(|app, request| Ok(discovery::home(app, request))),
            ),
            HEALTH_PATH => (
                "healthz",
                READ,
                Program,
                Nobody,
                Standing(|_, _, _| Ok(metrics::live()), ""),
            ),
            metadata::CONFIGURATION_PATH => (
                "discovery",
                SHARED,
                Program,
                Everybody,
                Plain(|app, _| discovery::metadata(app)),
            ),
            metadata::JWKS_PATH | metadata::JWKS_JSON_PATH => (
                "jwks",
                SHARED,
                Program,
                Everybody,
                Plain(|app, _| discovery::jwks(app)),
            ),
            metadata::AUTHORIZE_PATH => (
                "authorize",
                "GET, POST",
                Person,
                Nobody,
                Plain(|app, request| conversation::handle(Page::Authorize, app, request)),
            ),
            metadata::END_SESSION_PATH => (
                "endsession",
                "GET, POST",
                Person,
                Nobody,
                Plain(end_session::handle),
            ),
            metadata::CHECK_SESSION_PATH => (
                "checksession",
                READ,
                Person,
                Nobody,
                Standing(|config, _, _| Ok(logout::check_session(config)), ""),
            ),
            metadata::TOKEN_PATH => (
                "token",
                CALLED,
                Program,
                ClientOriginsWithCredentials,
                Plain(token::handle),
            ),
            metadata::PUSHED_REQUEST_PATH => (
                "pushedrequest",
                CALLED,
                Program,
                ClientOrigins,
                Plain(pushed_request::handle),
            ),
            metadata::REVOCATION_PATH => (
                "revocation",
                CALLED,
                Program,
                ClientOrigins,
                Plain(introspection::revoke_presented),
            ),
            metadata::INTROSPECTION_PATH => (
                "introspect",
                "POST",
                Program,
                Nobody,
                Plain(introspection::handle),
            ),
            metadata::DEVICE_AUTHORIZATION_PATH => (
                "deviceauthorization",
                CALLED,
                Program,
                ClientOrigins,
                Plain(device::authorize),
            ),
            metadata::USERINFO_PATH => (
                "userinfo",
                "GET, HEAD, POST, OPTIONS",
                Program,
                ClientOrigins,
                Plain(userinfo::handle),
            ),
            // Password managers ask for this address.
            "/.well-known/change-password" => {
                let account = |app: &App, _: &Request| {
                    Ok(answers::see_other(format!(
                        "{}/account#password",
                        app.config.base_url.path()
                    )))
                };
                ("change_password", READ, Person, Nobody, Plain(account))
            }
            "/login" => (
                "login",
                FORM,
                Person,
                Nobody,
                Plain(|app, request| conversation::handle(Page::Login, app, request)),
            ),
            "/login/second-factor" => (
                "second_factor",
                FORM,
                Person,
                Nobody,
                Plain(|app, request| conversation::handle(Page::SecondFactor, app, request)),
            ),
            join::PAGE => ("join", FORM, Person, Nobody, Plain(join::handle)),
            forgotten::PAGE => ("forgotten", FORM, Person, Nobody, Plain(forgotten::handle)),
            "/consent" => (
                "consent",
                FORM,
                Person,
                Nobody,
                Plain(|app, request| conversation::handle(Page::Consent, app, request)),
            ),
            "/logout" => ("logout", FORM, Person, Nobody, Plain(logout::handle)),
            "/account" => ("account", FORM, Person, Nobody, Plain(account::handle)),
            "/account/link" => (
                "password_link",
                FORM,
                Person,
                Nobody,
                Plain(account::password_link::handle),
            ),
            "/account/address" => (
                "new_address",
                FORM,
                Person,
                Nobody,
                Plain(account::address::handle),
            ),
            "/admin" => ("admin", FORM, Person, Nobody, Named(admission::handle, "")),
            "/device" => (
                "device",
                FORM,
                Person,
                Nobody,
                Plain(|app, request| conversation::handle(Page::UserCode, app, request)),
            ),
            registration::EXPORT => (
                "registration",
                READ,
                Program,
                Nobody,
                Plain(registration::export),
            ),
            registration::PLAN => (
                "registration",
                "POST",
                Program,
                Nobody,
                Plain(registration::plan),
            ),
            registration::APPLY => (
                "registration",
                "POST",
                Program,
                Nobody,
                Plain(registration::apply),
            ),
            other => {
                let (first, rest) = other.strip_prefix('/')?.split_once('/')?;
                match (first, rest.rsplit_once('/')) {
                    ("scim", _) => (
                        "scim",
                        "GET, HEAD, POST, PUT, PATCH, DELETE",
                        ScimClient,
                        Nobody,
                        Named(scim::handle, rest.strip_prefix("v2/")?),
                    ),
                    ("admin", _) => (
                        "admin",
                        FORM,
                        Person,
                        Nobody,
                        Named(admission::handle, rest),
                    ),
                    ("static", _) => (
                        "static",
                        READ,
                        Person,
                        Nobody,
                        Standing(static_files::handle, rest),
                    ),
                    ("clients", Some((client, "logo"))) => (
                        "logo",
                        READ,
                        Person,
                        Nobody,
                        Named(
                            |app, _, client| static_files::client_logo(app, client),
                            client,
                        ),
                    ),
                    ("external", Some((provider, _))) if provider.contains('/') => return None,
                    ("external", Some((provider, "callback"))) => (
                        "external_callback",
                        READ,
                        Person,
                        Nobody,
                        Named(conversation::come_back, provider),
                    ),
                    ("external", Some((provider, "logout"))) => (
                        "external_logout",
                        "POST",
                        Program,
                        Nobody,
                        Named(upstream::logout::handle, provider),
                    ),
                    ("external", Some((provider, "signed-out"))) => (
                        "external_signed_out",
                        READ,
                        Person,
                        Nobody,
                        Named(end_session::signed_out, provider),
                    ),
                    _ => return None,
                }
            }
        };
        Some(Route {
            label,
            allow,
            audience,
            sharing,
            endpoint,
        })
    }

    pub(super) fn allows(&self, method: Method) -> bool {
        self.allow
            .split(", ")
            .any(|allowed| allowed == method.as_str())
    }
}
