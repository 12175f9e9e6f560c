//! From (method, path) to a handler, and from what a handler returns to an answer and one log line.

pub mod route;
pub mod routes;

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use log::kv::Value;
use log::{Level, Record};

use crate::app::App;
use crate::app::failure::{Failure, Refusal, Result};
use crate::app::fetched::TRY_AGAIN;
use crate::config::Config;
use crate::endpoints;
use crate::endpoints::answers::{self, Presentation};
use crate::http::{Method, Note, Refused, Request, Response, traceparent};
use crate::metrics::{Answered, Metrics, ServerStats};
use crate::pages::error::Problem;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_store::StoreError;
use gatepost_store::worker;

use route::{Audience, Endpoint, Found, Route, Sharing};

/// What requests are answered by.
#[derive(Clone, Copy)]
pub struct Serving<'a> {
    pub routes: &'a [&'a [Route]],
    pub config: &'a Config,
    pub metrics: &'a Metrics,
    /// Absent until the first load from the database has succeeded.
    pub app: Option<&'a App>,
}

impl<'a> Serving<'a> {
    fn find(&self, request: &'a Request) -> Option<Found<'a>> {
        route::find(self.routes, self.config.base_url.path(), &request.path)
    }
}

pub fn handle(serving: Serving<'_>, request: &Request) -> Response {
    let started = Instant::now();
    let found = serving.find(request);
    let response =
        answer(serving, found.as_ref(), request).header("X-Content-Type-Options", "nosniff");
    if worker::answer() {
        count(serving.metrics, found.as_ref(), &response, started);
        log_request(request, &response, started);
    }
    response
}

/// Whether the body of a request may be a long one. It has not been read yet.
pub fn takes_long_body(serving: Serving<'_>, request: &Request) -> bool {
    let (Some(found), Some(app)) = (serving.find(request), serving.app) else {
        return false;
    };
    found
        .route
        .takes_long_body
        .is_some_and(|takes_long_body| takes_long_body(app, request))
}

fn count(metrics: &Metrics, found: Option<&Found<'_>>, response: &Response, started: Instant) {
    let Note { grant, reason, .. } = &response.note;
    metrics.count(&Answered {
        endpoint: found.map_or("none", |found| found.route.label),
        status: response.status,
        took: started.elapsed(),
        // A request that was refused may name any text as its grant.
        grant: grant.as_deref().filter(|_| reason.is_none()),
        reason: reason.map(Reason::code),
    });
}

pub fn refusal(serving: Serving<'_>, Refused { status, request }: &Refused) -> Response {
    let status = *status;
    let started = Instant::now();
    let found = serving.find(request);
    let audience = found
        .as_ref()
        .map_or(Audience::Person, |found| found.route.audience);
    let presentation = Presentation {
        config: serving.config,
        request,
        app: None,
        client_id: None,
    };
    let response =
        refused_early(&presentation, audience, status).header("X-Content-Type-Options", "nosniff");
    count(serving.metrics, found.as_ref(), &response, started);
    if status == 503 {
        response.header("Retry-After", "2")
    } else {
        response
    }
}

fn refused_early(presentation: &Presentation<'_>, audience: Audience, status: u16) -> Response {
    let (error, description) = match status {
        408 => ("invalid_request", "The request did not arrive in time."),
        411 => (
            "invalid_request",
            "The body came in chunks: send it with a Content-Length.",
        ),
        413 | 414 | 431 => ("invalid_request", "The request is too large."),
        500 => ("server_error", Reason::Internal.description()),
        503 => ("temporarily_unavailable", Reason::Unavailable.description()),
        _ => ("invalid_request", "The request is not well-formed."),
    };
    match audience {
        Audience::Person => answers::refusal_page(presentation, status, description),
        Audience::Program(_) => answers::json(
            status,
            &serde_json::json!({"error": error, "error_description": description}),
        ),
        Audience::ProgramWith(write) => write(status, description),
    }
}

pub fn handle_admin(
    metrics: &Metrics,
    server: &ServerStats,
    app: Option<&App>,
    request: &Request,
) -> Response {
    match (request.method, request.path.as_str()) {
        (Method::Get | Method::Head, "/healthz") => endpoints::metrics::live(),
        (Method::Get | Method::Head, "/readyz") => endpoints::metrics::ready(app),
        (Method::Get | Method::Head, "/metrics") => {
            endpoints::metrics::handle(metrics, server, app)
        }
        _ => Response::empty(404),
    }
}

fn answer(serving: Serving<'_>, found: Option<&Found<'_>>, request: &Request) -> Response {
    let Serving { config, app, .. } = serving;
    let presentation = Presentation {
        config,
        request,
        app,
        client_id: None,
    };
    let Some(found) = found else {
        return answers::no_such_page(&presentation);
    };
    let route = found.route;
    let response = if let Some(arrived) = endpoints::metrics::answer_doctor(request, app) {
        arrived
    } else if !route.allows(request.method) {
        error_answer(
            &presentation,
            route.audience,
            Problem::MethodNotAllowed,
            "invalid_request",
            Reason::MethodNotAllowed,
        )
        .header("Allow", route.allow)
    } else if request.method == Method::Options {
        preflight(request)
    } else {
        call(found, serving, request)
            .unwrap_or_else(|failure| failed(&presentation, route.audience, failure))
    };
    share(response, route, app, request)
}

fn call(found: &Found<'_>, serving: Serving<'_>, request: &Request) -> Result<Response> {
    let app = serving.app.ok_or(Failure::Busy);
    match found.route.endpoint {
        Endpoint::Plain(handle) => handle(app?, request),
        Endpoint::Conversation(page) => endpoints::conversation::handle(page, app?, request),
        Endpoint::Named(handle) => handle(app?, request, found.name),
        Endpoint::Standing(handle) => handle(serving.config, request, found.name),
    }
}

/// Allows the header fields that are asked for: libraries for tracing add some of their own. The
/// origin decides whether a script reads the answer.
fn preflight(request: &Request) -> Response {
    let asked = request.headers.first("access-control-request-headers");
    let allowed = asked
        .filter(|names| is_list_of_tokens(names))
        .unwrap_or("authorization, content-type, dpop");
    Response::empty(204)
        .header("Access-Control-Allow-Methods", "GET, POST")
        .header("Access-Control-Allow-Headers", allowed.to_owned())
        .header("Access-Control-Max-Age", "600")
}

/// Whether a list names few header fields, each a token (RFC 9110 §5.6.2).
fn is_list_of_tokens(names: &str) -> bool {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_token = |name: &str| !name.is_empty() && name.bytes().all(is_of_token);
    let are_few = names.len() <= 1_024 && names.split(',').count() <= 32;
    are_few
        && names
            .split(',')
            .all(|name| is_token(name.trim_matches([' ', '\t'])))
}

/// With credentials at the token endpoint alone, which reads no cookie.
fn share(response: Response, route: &Route, app: Option<&App>, request: &Request) -> Response {
    let Audience::Program(sharing) = route.audience else {
        return response;
    };
    match sharing {
        Sharing::Nobody => response,
        Sharing::Everybody => response
            .header("Access-Control-Allow-Origin", "*")
            .header("Access-Control-Expose-Headers", "X-Request-Id"),
        Sharing::ClientOrigins | Sharing::ClientOriginsWithCredentials => {
            let mut response = response.header("Vary", "Origin");
            let Some(origin) = request.headers.first("origin") else {
                return response;
            };
            if answers::may_share(app, &response.note, origin) {
                let response = match sharing {
                    Sharing::ClientOriginsWithCredentials => {
                        response.header("Access-Control-Allow-Credentials", "true")
                    }
                    Sharing::Nobody | Sharing::Everybody | Sharing::ClientOrigins => response,
                };
                return response
                    .header("Access-Control-Allow-Origin", origin.to_owned())
                    .header(
                        "Access-Control-Expose-Headers",
                        "WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id",
                    );
            }
            response.note.refused_origin = Some(origin.to_owned());
            response
        }
    }
}

fn failed(presentation: &Presentation<'_>, audience: Audience, failure: Failure) -> Response {
    match failure {
        Failure::Refused(refusal) => refused(presentation, audience, refusal),
        Failure::Authorize(error) => answers::authorize_error(presentation, error),
        Failure::Unadmitted {
            failure,
            scheme,
            scope,
        } => {
            let response = match audience {
                Audience::ProgramWith(write) => {
                    let response = write(failure.status(), &failure.description(scope));
                    answers::noted(response, failure.reason())
                }
                Audience::Program(_) | Audience::Person => {
                    answers::bearer_refusal(presentation.config, failure, scope)
                }
            };
            answers::challenging(response, failure.challenges(scheme, scope))
        }
        Failure::MistakenDocument(problems) => answers::mistakes(&problems),
        Failure::RefusedByGrant(refusal) => {
            answers::refused_by_grant(presentation.config, &refusal)
        }
        Failure::Answered(response) => *response,
        Failure::Throttled {
            reason,
            retry_after,
        } => {
            let minutes = answers::minutes(retry_after);
            let problem = Problem::TooManyRequests { minutes };
            let response = error_answer(
                presentation,
                audience,
                problem,
                "temporarily_unavailable",
                reason,
            );
            answers::retry_after(response, retry_after)
        }
        Failure::Unavailable(error) => {
            // The store logs what the database denies and why it is away, so the requests need not.
            let is_told = matches!(
                error,
                StoreError::Denied(_) | StoreError::Unavailable(_) | StoreError::OutOfTime
            );
            let level = if is_told { Level::Debug } else { Level::Error };
            log::log!(level, "request {}: {error}", presentation.request.id);
            if error.is_passing() {
                unavailable(presentation, audience)
            } else {
                internal(presentation, audience)
            }
        }
        Failure::NotStored(error) => {
            log::error!(
                "request {}: what it asks for was not stored: {error}",
                presentation.request.id
            );
            unavailable(presentation, audience)
        }
        Failure::Busy => unavailable(presentation, audience),
        Failure::Internal(cause) => {
            log::error!("request {}: {cause}", presentation.request.id);
            internal(presentation, audience)
        }
        Failure::WithHeader {
            name,
            value,
            failure,
        } => failed(presentation, audience, *failure).header(name, value),
        Failure::About {
            client_id,
            grant,
            failure,
        } => {
            let presentation = presentation.about(Some(&client_id));
            let mut response = failed(&presentation, audience, *failure);
            response.note.client_id = Some(client_id.to_string());
            response.note.grant = grant;
            response
        }
    }
}

fn refused(presentation: &Presentation<'_>, audience: Audience, refusal: Refusal) -> Response {
    let Refusal {
        status,
        error,
        reason,
        detail,
        challenge,
    } = refusal;
    let mut response = match audience {
        Audience::Person => {
            let cause = (reason, detail.as_deref());
            let problem = answers::problem_of(status);
            let page = answers::error_page_with(presentation, problem, cause, "", None);
            Response { status, ..page }
        }
        Audience::Program(_) => answers::json_error(
            presentation.config,
            status,
            error.as_str(),
            (reason, detail.as_deref()),
        ),
        Audience::ProgramWith(write) => answers::noted(write(status, reason.description()), reason),
    };
    response.note.detail = detail;
    if reason == Reason::MetadataDocumentUnavailable {
        response = answers::retry_after(response, TRY_AGAIN);
    }
    match challenge {
        Some(challenge) => response.header("WWW-Authenticate", challenge),
        None => response,
    }
}

fn unavailable(presentation: &Presentation<'_>, audience: Audience) -> Response {
    error_answer(
        presentation,
        audience,
        Problem::Unavailable,
        "temporarily_unavailable",
        Reason::Unavailable,
    )
    .header("Retry-After", "2")
}

fn internal(presentation: &Presentation<'_>, audience: Audience) -> Response {
    error_answer(
        presentation,
        audience,
        Problem::Internal,
        "server_error",
        Reason::Internal,
    )
}

/// A page for people; its status and `error` for programs.
fn error_answer(
    presentation: &Presentation<'_>,
    audience: Audience,
    problem: Problem,
    error: &str,
    reason: Reason,
) -> Response {
    match audience {
        Audience::Person => answers::error_page(presentation, problem, reason),
        Audience::Program(_) => {
            answers::json_error(presentation.config, problem.status(), error, (reason, None))
        }
        Audience::ProgramWith(write) => {
            answers::noted(write(problem.status(), reason.description()), reason)
        }
    }
}

/// Logs one line about a request: what was asked, by whom as far as we know, and the outcome. It
/// has no value from a query or a body, and the path only in escaped form. The record has the
/// fields one by one, too, for logs in JSON.
fn log_request(request: &Request, response: &Response, started: Instant) {
    if !log::log_enabled!(target: "gatepost::request", Level::Info) {
        return;
    }
    let note = &response.note;
    let why = note
        .reason
        .map(|reason| format!("{} {}", reason.description(), reason.remedy()));
    let is_repeated = note.reason == Some(Reason::RepeatedParameter) && note.detail.is_none();
    let short = |value| escaped(value, 300);
    let named = [
        ("client_id", note.client_id.as_deref().map(short)),
        ("grant", note.grant.as_deref().map(short)),
        ("reason", note.reason.map(Reason::code).map(short)),
        ("detail", note.detail.as_deref().map(short)),
        ("refused_origin", note.refused_origin.as_deref().map(short)),
        ("why", why.as_deref().map(short)),
        ("detail", is_repeated.then(|| Cow::Owned(repeated(request)))),
        (
            "traceparent",
            traceparent(&request.headers).map(Cow::Borrowed),
        ),
    ];
    let method = request.method.as_str();
    let source = request.source;
    let path = escaped(&request.path, 200);
    let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let id = request.id.as_str();
    let status = response.status;
    let mut fields = Vec::with_capacity(6 + named.len());
    fields.extend([
        ("id", Value::from(id)),
        ("method", method.into()),
        ("path", (&*path).into()),
        ("status", status.into()),
        ("ms", milliseconds.into()),
        ("source", Value::from_display(&source)),
    ]);
    for (name, value) in &named {
        fields.extend(value.as_deref().map(|value| (*name, value.into())));
    }
    log::logger().log(
        &Record::builder()
            .level(Level::Info)
            .target("gatepost::request")
            .key_values(&fields)
            .args(format_args!(
                "id={id} method={method} path={path} status={status} ms={milliseconds} \
                 source={source}{}",
                Named(&named)
            ))
            .build(),
    );
}

/// The names of parameters that were sent more than once, in the query or in the body.
fn repeated(request: &Request) -> String {
    let mut names = Vec::new();
    for sent in [request.query.as_bytes(), &request.body] {
        if let Ok(parameters) = Parameters::parse(sent) {
            names.extend(parameters.repeated().into_iter().map(str::to_owned));
        }
    }
    names.join(" ")
}

/// What an answer notes, as the line has it.
struct Named<'a>(&'a [(&'static str, Option<Cow<'a, str>>)]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.0 {
            if let Some(value) = value {
                write!(formatter, " {name}=\"{value}\"")?;
            }
        }
        Ok(())
    }
}

fn escaped(text: &str, most: usize) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\'' | b'\\');
    if text.len() <= most && text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .take(most)
        .flat_map(char::escape_default)
        .collect()
}
