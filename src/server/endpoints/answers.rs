//! How endpoints answer: pages with their headers, JSON, redirects. Header sets of wire behaviour
//! live here, once.

use std::collections::BTreeSet;
use std::time::Duration;

use maud::Markup;
use serde::Serialize;
use serde_json::{Value, json};

use super::static_files;
use crate::app::App;
use crate::config::Config;
use crate::http::{Body, Note, Request, Response};
use crate::pages::error::{self, Besides, Problem};
use crate::pages::frame::{self, Chrome};
use crate::pages::language::Language;
use gatepost_protocol::authorize::authorize_request::{
    AuthorizeError, AuthorizeRefusal, ReturnPath,
};
use gatepost_protocol::authorize::authorize_response::{self, Delivery, error_parameters};
use gatepost_protocol::logout::end_session::FRAMES_SECONDS;
use gatepost_protocol::registration::{DocumentProblem, MOST_MISTAKES};
use gatepost_protocol::token::extension_grant::{Description, GrantRefusal};
use gatepost_protocol::token::id_token::error_members;
use gatepost_protocol::token::userinfo::BearerFailure;
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::reason::{Reason, TokenError};

/// Pages load our stylesheet and images and nothing else. No `form-action`: a form of ours may end,
/// by redirects, at a client, and browsers hold every hop against the list.
const PAGE_POLICY: &str =
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What decides how a page looks to this person: settings, language, request id.
#[derive(Clone, Copy)]
pub struct Presentation<'a> {
    pub config: &'a Config,
    pub request: &'a Request,
    /// Knows the clients, once it is there.
    pub app: Option<&'a App>,
    /// The client that an error page leads back to, where it is known.
    pub client_id: Option<&'a ClientId>,
}

impl<'a> Presentation<'a> {
    pub fn of(app: &'a App, request: &'a Request) -> Presentation<'a> {
        Presentation {
            config: &app.config,
            request,
            app: Some(app),
            client_id: None,
        }
    }

    pub fn about(self, client_id: Option<&'a ClientId>) -> Presentation<'a> {
        Presentation { client_id, ..self }
    }

    /// What is around a page in the language that `ui_locales`, else the request's own parameter of
    /// that name, else the browser asks for, else that of the house.
    pub fn chrome(&self, ui_locales: &str) -> Chrome<'a> {
        Chrome {
            brand: &self.config.brand,
            texts: self.language(ui_locales).texts(),
            base_path: self.config.base_url.path(),
            assets_version: static_files::version(self.config),
            request_id: &self.request.id,
            least_password: self.config.passwords.least,
        }
    }

    /// The language of a page that is drawn with these `ui_locales`.
    pub fn language(&self, ui_locales: &str) -> Language {
        let accept_language = self
            .request
            .headers
            .first("accept-language")
            .unwrap_or_default();
        let chosen = Language::choose(&self.asked_locales(ui_locales), accept_language);
        chosen.unwrap_or_else(|| Language::of_house(self.config))
    }

    /// An address of ours at which the language goes on that this request's own address asks for.
    pub fn in_its_language(&self, address: String) -> String {
        self.in_language_of(address, "")
    }

    /// An address of ours at which the language goes on that a page drawn with these `ui_locales`
    /// has. What the browser asks for it asks for there, too.
    pub fn in_language_of(&self, address: String, ui_locales: &str) -> String {
        speaking(address, &self.asked_locales(ui_locales))
    }

    fn asked_locales(&self, ui_locales: &str) -> String {
        if ui_locales.is_empty() {
            sent_ui_locales(self.request)
        } else {
            ui_locales.to_owned()
        }
    }
}

/// An address of ours with the first of `ui_locales` that we speak.
pub fn speaking(address: String, ui_locales: &str) -> String {
    let Some(language) = Language::asked_for(ui_locales) else {
        return address;
    };
    let joint = if address.contains('?') { '&' } else { '?' };
    format!("{address}{joint}ui_locales={}", language.tag())
}

/// `ui_locales` of a request, whatever else is wrong with it: a page about what is wrong shall be
/// understood, too.
fn sent_ui_locales(request: &Request) -> String {
    let form: &[u8] = if request.query.is_empty() {
        &request.body
    } else {
        request.query.as_bytes()
    };
    let sent = form_urlencoded::parse(form).find(|(name, _)| name == "ui_locales");
    sent.map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// A page with a form of ours. `same-origin` because under `no-referrer` browsers post with
/// `Origin: null`.
pub fn form_page(status: u16, markup: Markup) -> Response {
    unframed(status, markup, PAGE_POLICY, "same-origin")
}

/// The same, with a script of ours: for times as the reader's own clock has them, or for passkeys.
pub fn scripted_page(status: u16, markup: Markup) -> Response {
    unframed(
        status,
        markup,
        &format!("{PAGE_POLICY}; script-src 'self'"),
        "same-origin",
    )
}

/// A page without a form of ours.
pub fn plain_page(status: u16, markup: Markup) -> Response {
    unframed(status, markup, PAGE_POLICY, "no-referrer")
}

/// A page that nobody may frame.
fn unframed(status: u16, markup: Markup, policy: &str, referrer: &str) -> Response {
    html(status, markup)
        .header("Content-Security-Policy", policy.to_owned())
        .header("X-Frame-Options", "DENY")
        .header("Referrer-Policy", referrer.to_owned())
}

/// The page after a sign-out: it may frame these origins, and goes on by itself where there is
/// somewhere to go. That is said by a header: an element would be shown to people as part of the
/// page.
pub fn framing_page(
    markup: Markup,
    origins: &BTreeSet<String>,
    goes_on_to: Option<&str>,
) -> Response {
    let frame_src = if origins.is_empty() {
        String::new()
    } else {
        format!("; frame-src {}", joined(" ", origins))
    };
    let page = unframed(
        200,
        markup,
        &format!("{PAGE_POLICY}{frame_src}"),
        "no-referrer",
    );
    match goes_on_to {
        Some(location) => page.header("Refresh", format!("{FRAMES_SECONDS};url={location}")),
        None => page,
    }
}

/// A page that any site may frame: it shows nothing and has no form.
pub fn frameable_page(markup: Markup) -> Response {
    html(200, markup)
        .header(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; base-uri 'none'; frame-ancestors *",
        )
        .header("Referrer-Policy", "no-referrer")
}

fn html(status: u16, markup: Markup) -> Response {
    let body = Body::Owned(markup.into_string().into_bytes());
    no_store(Response::with_body(
        status,
        "text/html; charset=utf-8",
        body,
    ))
}

/// The error page: what happened, what one can do, and the reason's code, which the log has too.
pub fn error_page(presentation: &Presentation<'_>, problem: Problem, reason: Reason) -> Response {
    error_page_with(presentation, problem, (reason, None), "", None)
}

/// For an address that is none here.
pub fn no_such_page(presentation: &Presentation<'_>) -> Response {
    error_page(presentation, Problem::NotFound, Reason::NotFound)
}

/// What an answer says of what was wrong: a fixed sentence; under `GATEPOST_ERROR_DETAILS` the code
/// and what the log says, too. Of bytes that RFC 6749 §5.2 lets no `error_description` have,
/// each is a question mark.
fn explained(config: &Config, sentence: &str, (reason, detail): (Reason, Option<&str>)) -> String {
    if !config.error_details {
        return sentence.to_owned();
    }
    let detail = detail
        .map(|detail| format!(": {detail}"))
        .unwrap_or_default();
    let text = format!("{sentence} [{}{detail}]", reason.code());
    text.chars()
        .take(1_000)
        .map(|one| match one {
            '"' | '\\' => '?',
            ' '..='~' => one,
            _ => '?',
        })
        .collect()
}

/// The same with what the log says beside, in the language of what they sign in for, and with a
/// way back to the sign-in page. Beside it, the page leads back to the application that it is
/// about.
pub fn error_page_with(
    presentation: &Presentation<'_>,
    problem: Problem,
    (reason, detail): (Reason, Option<&str>),
    ui_locales: &str,
    sign_in: Option<&str>,
) -> Response {
    let own = problem.begins_at().map(|page| {
        let path = presentation.config.base_url.path_of(page);
        presentation.in_language_of(path, ui_locales)
    });
    let client = presentation
        .client_id
        .and_then(|client_id| presentation.app?.known_client(client_id));
    let sentence = explained(presentation.config, reason.description(), (reason, detail));
    let besides = Besides {
        code: Some(reason.code()),
        description: &sentence,
        way_on: sign_in.or(own.as_deref()),
        client: client.as_ref().map(|known| &known.client),
    };
    let markup = error::page(presentation.chrome(ui_locales), problem, besides);
    noted(plain_page(problem.status(), markup), reason)
}

/// The error page for what the server itself refused; `description` is for developers.
pub fn refusal_page(
    presentation: &Presentation<'_>,
    status: u16,
    description: &'static str,
) -> Response {
    let besides = Besides {
        description,
        ..Besides::default()
    };
    let markup = error::page(presentation.chrome(""), problem_of(status), besides);
    plain_page(status, markup)
}

/// The kind of error page that goes with a status.
pub fn problem_of(status: u16) -> Problem {
    match status {
        403 => Problem::Forbidden,
        404 => Problem::NotFound,
        405 => Problem::MethodNotAllowed,
        413 | 414 | 431 => Problem::TooLarge,
        500 => Problem::Internal,
        408 | 503 => Problem::Unavailable,
        _ => Problem::BadRequest,
    }
}

/// `{"error": .., "error_description": ..}` (RFC 6749 §5.2).
pub fn json_error(
    config: &Config,
    status: u16,
    error: &str,
    cause: (Reason, Option<&str>),
) -> Response {
    let description = explained(config, cause.0.description(), cause);
    let mut response = noted(json(status, &error_members(error, &description)), cause.0);
    response.note.detail = cause.1.map(str::to_owned);
    response
}

/// What an extension grant refused: its own words where it has some.
pub fn refused_by_grant(config: &Config, refusal: &GrantRefusal) -> Response {
    let TokenError {
        code,
        reason,
        detail,
    } = &refusal.error;
    let description = refusal
        .description
        .as_ref()
        .map_or(reason.description(), Description::as_str);
    let description = explained(config, description, (*reason, detail.as_deref()));
    let mut response = noted(
        json(400, &error_members(code.as_str(), &description)),
        *reason,
    );
    response.note.detail.clone_from(detail);
    response
}

/// An empty answer: its status says it all, or a header says what is missing (RFC 6750 §3.1).
pub fn empty(status: u16, reason: Reason) -> Response {
    noted(no_store(Response::empty(status)), reason)
}

/// To whoever brought no access token that is enough. `scope` is what would have been.
pub fn bearer_refusal(config: &Config, failure: BearerFailure, scope: &str) -> Response {
    match failure.error() {
        Some(error) => {
            let cause = (failure.reason(), None);
            let description = explained(config, &failure.description(scope), cause);
            let members = error_members(error, &description);
            noted(json(failure.status(), &members), failure.reason())
        }
        None => empty(failure.status(), failure.reason()),
    }
}

/// The answer with these challenges, a line each.
pub fn challenging(mut response: Response, challenges: Vec<String>) -> Response {
    for challenge in challenges {
        response = response.header("WWW-Authenticate", challenge);
    }
    response
}

/// How long a page tells somebody to wait: minutes, at least one.
pub fn minutes(wait: Duration) -> u32 {
    u32::try_from(wait.as_secs().div_ceil(60).max(1)).unwrap_or(u32::MAX)
}

/// To HEAD where GET would answer the client: that one has effects.
pub fn nothing_to_show() -> Response {
    no_store(Response::empty(204))
}

/// A JSON answer that nobody may keep.
pub fn json(status: u16, value: &impl Serialize) -> Response {
    let mut body = Vec::with_capacity(2_048);
    // Our values can be written as JSON, and memory takes it.
    let _ = serde_json::to_writer(&mut body, value);
    no_store(Response::with_body(
        status,
        "application/json",
        Body::Owned(body),
    ))
}

/// All mistakes of a document in one answer, each with its place.
pub fn mistakes(problems: &[DocumentProblem]) -> Response {
    let reason = Reason::RegistrationMistaken;
    let first = problems.iter().take(MOST_MISTAKES);
    let first: Vec<Value> = first
        .map(|problem| json!({"place": problem.place(), "rule": problem.rule}))
        .collect();
    let answer = json!({
        "error": "invalid_document",
        "error_description": reason.description(),
        "mistakes": problems.len(),
        "problems": first,
    });
    noted(json(400, &answer), reason)
}

/// The answer, with the reason for the log.
pub fn noted(mut response: Response, reason: Reason) -> Response {
    response.note.reason = Some(reason);
    response
}

/// To somebody who shall come back later: seconds, at least one.
pub fn retry_after(response: Response, wait: Duration) -> Response {
    response.header("Retry-After", wait.as_secs().max(1).to_string())
}

/// The same for a page that says that there were too many tries.
pub fn turned_away(page: Response, reason: Reason, wait: Duration) -> Response {
    let mut page = retry_after(noted(page, reason), wait);
    page.status = 429;
    page
}

pub fn no_store(response: Response) -> Response {
    response
        .header("Cache-Control", "no-store")
        .header("Pragma", "no-cache")
}

/// 303, so that nothing that was posted is posted again elsewhere (RFC 9700 §4.12).
pub fn see_other(location: String) -> Response {
    no_store(Response::empty(303))
        .header("Location", location)
        .header("Referrer-Policy", "no-referrer")
}

/// A refused authorization request: a page when there is nowhere to send it, else the error where
/// the success would go.
pub fn authorize_error(presentation: &Presentation<'_>, error: AuthorizeError) -> Response {
    match error {
        AuthorizeError::Page {
            client_id,
            reason,
            detail,
        } => {
            let cause = (reason, detail.as_deref());
            let problem = match reason {
                Reason::UnregisteredDocument => Problem::NotRegistered,
                Reason::PushedRequestExpired => Problem::RequestExpired,
                Reason::PushedRequestUsed => Problem::RequestUsed,
                _ => Problem::BadRequest,
            };
            let presentation = presentation.about(client_id.as_ref());
            let mut response = error_page_with(&presentation, problem, cause, "", None);
            response.note.client_id = client_id.map(|client_id| client_id.to_string());
            response.note.detail = detail;
            response
        }
        AuthorizeError::Redirect(path, refusal) => sent_back(presentation, path, refusal),
    }
}

fn sent_back(
    presentation: &Presentation<'_>,
    path: ReturnPath,
    refusal: AuthorizeRefusal,
) -> Response {
    let AuthorizeRefusal {
        code,
        reason,
        detail,
    } = refusal;
    let config = presentation.config;
    let issuer = path.with_iss.then(|| config.base_url.as_str());
    let sentence = explained(config, reason.description(), (reason, detail.as_deref()));
    let parameters = error_parameters(code, sentence, path.state.as_deref(), issuer);
    let framed_by = path.to.origin().filter(|_| path.silent);
    let delivery = authorize_response::deliver(&path.to, path.mode, parameters);
    let response = deliver(presentation, delivery, framed_by.as_deref());
    let mut response = noted(response, reason).about(&path.client_id);
    response.note.detail = detail;
    response
}

/// An authorization response on its way through the browser. `framed_by` is the origin that may
/// frame the form: a client that renews silently does so in a frame.
pub fn deliver(
    presentation: &Presentation<'_>,
    delivery: Delivery,
    framed_by: Option<&str>,
) -> Response {
    match delivery {
        Delivery::Redirect { location } => see_other(location),
        Delivery::Form { action, fields } => form_post_page(
            frame::form_post_page(presentation.chrome(""), &action, &fields),
            framed_by,
        ),
    }
}

/// The one page whose form goes to another origin. Under `no-referrer`, and under `same-origin`,
/// browsers post there with `Origin: null`, which applications that check it refuse; under
/// `strict-origin` they do so from https to http, as on loopback.
fn form_post_page(markup: Markup, framed_by: Option<&str>) -> Response {
    let page = html(200, markup).header("Referrer-Policy", "origin");
    let ancestors = framed_by.unwrap_or("'none'");
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         base-uri 'none'; frame-ancestors {ancestors}"
    );
    let page = page.header("Content-Security-Policy", policy);
    match framed_by {
        Some(_) => page,
        None => page.header("X-Frame-Options", "DENY"),
    }
}

/// Whether a script of `origin` may read this answer: an origin of the client the answer is about,
/// or, where no client is known (a preflight, a bad token), of any client.
pub fn may_share(app: Option<&App>, note: &Note, origin: &str) -> bool {
    app.is_some_and(|app| match &note.client_id {
        Some(client_id) => app.registry.client_shares_with(client_id, origin),
        None => app.registry.some_client_shares_with(origin),
    })
}
