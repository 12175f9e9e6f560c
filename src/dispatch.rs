//! From (method, path) to a handler, and from what a handler returns to an answer and one log line.

mod request_log;

use std::time::Instant;

use crate::app::App;
use crate::app::failure::{Failure, Refusal};
use crate::config::Config;
use crate::endpoints;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::{
    account, authorize, check_session, client_view, consent, device, device_authorization, discovery, end_session,
    health, home, introspection, jwks, login, logout, revocation, static_files, token, userinfo,
};
use crate::http::{Method, Note, Refused, Request, Response};
use crate::metrics::{Answered, Metrics, ServerFigures};
use crate::pages::error::Problem;
use crate::protocol::discovery as metadata;
use crate::protocol::reason::Reason;

/// Everything that can be asked for, relative to the base URL's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route<'a> {
    Home,
    Health,
    Discovery,
    Jwks,
    Authorize,
    EndSession,
    CheckSession,
    Token,
    Revocation,
    Introspection,
    DeviceAuthorization,
    UserInfo,
    Login,
    Consent,
    Logout,
    Account,
    Device,
    ClientLogo(&'a str),
    StaticFile(&'a str),
}

/// Who reads the answer when something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Audience {
    Person,
    Program,
}

/// Which other origins may read the answer in a browser (Fetch §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    Nobody,
    Everybody,
    ClientOrigins,
}

impl<'a> Route<'a> {
    /// The route of a path; paths are case-sensitive and end where they end.
    fn find(base_path: &str, path: &'a str) -> Option<Route<'a>> {
        // RFC 8414 §3.1 puts the well-known part before the issuer's path, not after it.
        if path.strip_prefix(metadata::AUTHORIZATION_SERVER_PATH) == Some(base_path) {
            return Some(Route::Discovery);
        }
        match path.strip_prefix(base_path)? {
            "" | "/" => Some(Route::Home),
            "/healthz" => Some(Route::Health),
            metadata::CONFIGURATION_PATH => Some(Route::Discovery),
            metadata::JWKS_PATH => Some(Route::Jwks),
            metadata::AUTHORIZE_PATH => Some(Route::Authorize),
            metadata::END_SESSION_PATH => Some(Route::EndSession),
            metadata::CHECK_SESSION_PATH => Some(Route::CheckSession),
            metadata::TOKEN_PATH => Some(Route::Token),
            metadata::REVOCATION_PATH => Some(Route::Revocation),
            metadata::INTROSPECTION_PATH => Some(Route::Introspection),
            metadata::DEVICE_AUTHORIZATION_PATH => Some(Route::DeviceAuthorization),
            metadata::USERINFO_PATH => Some(Route::UserInfo),
            "/login" => Some(Route::Login),
            "/consent" => Some(Route::Consent),
            "/logout" => Some(Route::Logout),
            "/account" => Some(Route::Account),
            "/device" => Some(Route::Device),
            other => match other.strip_prefix("/clients/").and_then(|rest| rest.strip_suffix("/logo")) {
                Some(client_id) => Some(Route::ClientLogo(client_id)),
                None => other.strip_prefix("/static/").map(Route::StaticFile),
            },
        }
    }

    /// What metrics call it.
    fn label(self) -> &'static str {
        match self {
            Route::Home => "home",
            Route::Health => "healthz",
            Route::Discovery => "discovery",
            Route::Jwks => "jwks",
            Route::Authorize => "authorize",
            Route::EndSession => "endsession",
            Route::CheckSession => "checksession",
            Route::Token => "token",
            Route::Revocation => "revocation",
            Route::Introspection => "introspect",
            Route::UserInfo => "userinfo",
            Route::Login => "login",
            Route::Consent => "consent",
            Route::Logout => "logout",
            Route::Account => "account",
            Route::ClientLogo(_) => "logo",
            Route::Device => "device",
            Route::DeviceAuthorization => "deviceauthorization",
            Route::StaticFile(_) => "static",
        }
    }

    /// The methods for `Allow`. HEAD goes wherever GET does, but for requests that have effects.
    fn allow(self) -> &'static str {
        match self {
            Route::Home | Route::Health | Route::CheckSession | Route::ClientLogo(_) | Route::StaticFile(_) => {
                "GET, HEAD"
            }
            Route::Discovery | Route::Jwks => "GET, HEAD, OPTIONS",
            Route::Authorize | Route::EndSession => "GET, POST",
            Route::Login | Route::Consent | Route::Logout | Route::Account | Route::Device => "GET, HEAD, POST",
            Route::Token | Route::Revocation | Route::DeviceAuthorization => "POST, OPTIONS",
            Route::Introspection => "POST",
            Route::UserInfo => "GET, HEAD, POST, OPTIONS",
        }
    }

    fn allows(self, method: Method) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method.as_str())
    }

    fn audience(self) -> Audience {
        match self {
            Route::Home
            | Route::Authorize
            | Route::EndSession
            | Route::CheckSession
            | Route::Login
            | Route::Consent
            | Route::Logout
            | Route::Account
            | Route::Device
            | Route::ClientLogo(_)
            | Route::StaticFile(_) => Audience::Person,
            Route::Health
            | Route::Discovery
            | Route::Jwks
            | Route::Token
            | Route::Revocation
            | Route::Introspection
            | Route::DeviceAuthorization
            | Route::UserInfo => Audience::Program,
        }
    }

    fn sharing(self) -> Sharing {
        match self {
            Route::Discovery | Route::Jwks => Sharing::Everybody,
            Route::Token | Route::Revocation | Route::DeviceAuthorization | Route::UserInfo => Sharing::ClientOrigins,
            Route::Home
            | Route::Health
            | Route::Introspection
            | Route::Authorize
            | Route::EndSession
            | Route::CheckSession
            | Route::Login
            | Route::Consent
            | Route::Logout
            | Route::Account
            | Route::Device
            | Route::ClientLogo(_)
            | Route::StaticFile(_) => Sharing::Nobody,
        }
    }
}

/// Answers one request of the main listener. `app` is absent until the first load from the database has succeeded.
pub fn handle(config: &Config, metrics: &Metrics, app: Option<&App>, request: &Request) -> Response {
    let started = Instant::now();
    let route = Route::find(config.base_url.path(), &request.path);
    let mut response = answer(config, app, route, request);
    response.headers.push(("X-Content-Type-Options", "nosniff".into()));
    count(metrics, route, &response, started);
    request_log::write(request, &response, started);
    response
}

fn count(metrics: &Metrics, route: Option<Route<'_>>, response: &Response, started: Instant) {
    let Note { grant, reason, .. } = &response.note;
    metrics.count(&Answered {
        endpoint: route.map_or("none", Route::label),
        status: response.status,
        took: started.elapsed(),
        // What was refused may name any grant at all.
        grant: grant.as_deref().filter(|_| reason.is_none()),
        reason: *reason,
    });
}

/// The answer to a request that the server refused before it got here.
pub fn refusal(config: &Config, metrics: &Metrics, Refused { status, request }: &Refused) -> Response {
    let (status, started) = (*status, Instant::now());
    let (error, description) = refused_early(status);
    let route = Route::find(config.base_url.path(), &request.path);
    let response = match route.map_or(Audience::Person, Route::audience) {
        Audience::Person => answers::refusal_page(&Presentation { config, request }, status, description),
        Audience::Program => {
            answers::json(status, &serde_json::json!({"error": error, "error_description": description}))
        }
    };
    let response = response.header("X-Content-Type-Options", "nosniff");
    count(metrics, route, &response, started);
    if status == 503 { response.header("Retry-After", "2") } else { response }
}

fn refused_early(status: u16) -> (&'static str, &'static str) {
    match status {
        408 => ("invalid_request", "The request did not arrive in time."),
        413 | 414 | 431 => ("invalid_request", "The request is too large."),
        500 => ("server_error", Reason::Internal.description()),
        503 => ("temporarily_unavailable", Reason::Unavailable.description()),
        _ => ("invalid_request", "The request is not well-formed."),
    }
}

/// Answers one request of the admin listener, which only the operator reaches.
pub fn handle_admin(metrics: &Metrics, server: &ServerFigures, app: Option<&App>, request: &Request) -> Response {
    match (request.method, request.path.as_str()) {
        (Method::Get | Method::Head, "/healthz") => health::live(),
        (Method::Get | Method::Head, "/readyz") => health::ready(app),
        (Method::Get | Method::Head, "/metrics") => endpoints::metrics::handle(metrics, server, app),
        (Method::Get | Method::Head | Method::Post | Method::Options | Method::Other, _) => Response::empty(404),
    }
}

fn answer(config: &Config, app: Option<&App>, route: Option<Route<'_>>, request: &Request) -> Response {
    let presentation = Presentation { config, request };
    let Some(route) = route else {
        return answers::error_page(&presentation, Problem::NotFound, Reason::NotFound);
    };
    if !route.allows(request.method) {
        return share(method_not_allowed(&presentation, route), route, app, request);
    }
    if request.method == Method::Options {
        return share(preflight(), route, app, request);
    }
    let response = match run(route, config, app, request) {
        Ok(response) => response,
        Err(failure) => failed(&presentation, route.audience(), failure),
    };
    share(response, route, app, request)
}

fn run(route: Route<'_>, config: &Config, app: Option<&App>, request: &Request) -> Result<Response, Failure> {
    let app = || app.ok_or(Failure::Busy);
    match route {
        Route::Home => Ok(home::handle(app()?, request)),
        Route::Discovery => discovery::handle(app()?),
        Route::Jwks => jwks::handle(app()?),
        Route::Authorize => authorize::handle(app()?, request),
        Route::EndSession => end_session::handle(app()?, request),
        Route::Token => token::handle(app()?, request),
        Route::Revocation => revocation::handle(app()?, request),
        Route::Introspection => introspection::handle(app()?, request),
        Route::UserInfo => userinfo::handle(app()?, request),
        Route::Login => login::handle(app()?, request),
        Route::Consent => consent::handle(app()?, request),
        Route::Logout => logout::handle(app()?, request),
        Route::Account => account::handle(app()?, request),
        Route::ClientLogo(client_id) => client_view::logo(app()?, client_id),
        Route::Device => device::handle(app()?, request),
        Route::DeviceAuthorization => device_authorization::handle(app()?, request),
        // These stand without the database.
        Route::Health => Ok(health::live()),
        Route::CheckSession => Ok(check_session::handle(config)),
        Route::StaticFile(name) => static_files::handle(config, name),
    }
}

fn method_not_allowed(presentation: &Presentation<'_>, route: Route<'_>) -> Response {
    let response = match route.audience() {
        Audience::Person => answers::error_page(presentation, Problem::MethodNotAllowed, Reason::MethodNotAllowed),
        Audience::Program => answers::json_error(405, "invalid_request", Reason::MethodNotAllowed),
    };
    response.header("Allow", route.allow())
}

fn preflight() -> Response {
    Response::empty(204)
        .header("Access-Control-Allow-Methods", "GET, POST")
        .header("Access-Control-Allow-Headers", "authorization, content-type")
        .header("Access-Control-Max-Age", "600")
}

/// Adds what lets a script of another origin read the answer: never with credentials, so cookies stay out of it.
fn share(response: Response, route: Route<'_>, app: Option<&App>, request: &Request) -> Response {
    match route.sharing() {
        Sharing::Nobody => response,
        Sharing::Everybody => response.header("Access-Control-Allow-Origin", "*"),
        Sharing::ClientOrigins => {
            let response = response.header("Vary", "Origin");
            let origin =
                request.headers.first("origin").filter(|origin| answers::may_share(app, &response.note, origin));
            match origin {
                Some(origin) => response
                    .header("Access-Control-Allow-Origin", origin.to_owned())
                    .header("Access-Control-Expose-Headers", "WWW-Authenticate, Retry-After"),
                None => response,
            }
        }
    }
}

fn failed(presentation: &Presentation<'_>, audience: Audience, failure: Failure) -> Response {
    match failure {
        Failure::Refused(refusal) => refused(presentation, audience, refusal),
        Failure::Authorize(error) => answers::authorize_error(presentation, error),
        Failure::RefusedByGrant(refusal) => answers::refused_by_grant(&refusal),
        Failure::Throttled { reason, retry_after } => {
            let minutes = u32::try_from(retry_after.as_secs().div_ceil(60).max(1)).unwrap_or(u32::MAX);
            let response = match audience {
                Audience::Person => answers::error_page(presentation, Problem::TooManyRequests { minutes }, reason),
                Audience::Program => answers::json_error(429, "temporarily_unavailable", reason),
            };
            response.header("Retry-After", retry_after.as_secs().max(1).to_string())
        }
        Failure::Unavailable(error) => {
            log::error!("request {}: {error}", presentation.request.id);
            if error.is_passing() { unavailable(presentation, audience) } else { internal(presentation, audience) }
        }
        Failure::NotRevoked(error) => {
            log::error!("request {}: a revocation was not stored: {error}", presentation.request.id);
            unavailable(presentation, audience)
        }
        Failure::Busy => unavailable(presentation, audience),
        Failure::Internal(cause) => {
            log::error!("request {}: {cause}", presentation.request.id);
            internal(presentation, audience)
        }
        Failure::About { client_id, grant, failure } => {
            let mut response = failed(presentation, audience, *failure);
            response.note.client_id = Some(client_id.to_string());
            response.note.grant = grant;
            response
        }
    }
}

fn refused(presentation: &Presentation<'_>, audience: Audience, refusal: Refusal) -> Response {
    let Refusal { status, error, reason, detail, challenge } = refusal;
    let mut response = match audience {
        Audience::Person => {
            Response { status, ..answers::error_page(presentation, answers::problem_of(status), reason) }
        }
        Audience::Program => answers::json_error(status, error.as_str(), reason),
    };
    response.note.detail = detail;
    match challenge {
        Some(challenge) => response.header("WWW-Authenticate", challenge),
        None => response,
    }
}

fn unavailable(presentation: &Presentation<'_>, audience: Audience) -> Response {
    let response = match audience {
        Audience::Person => answers::error_page(presentation, Problem::Unavailable, Reason::Unavailable),
        Audience::Program => answers::json_error(503, "temporarily_unavailable", Reason::Unavailable),
    };
    response.header("Retry-After", "2")
}

fn internal(presentation: &Presentation<'_>, audience: Audience) -> Response {
    match audience {
        Audience::Person => answers::error_page(presentation, Problem::Internal, Reason::Internal),
        Audience::Program => answers::json_error(500, "server_error", Reason::Internal),
    }
}
