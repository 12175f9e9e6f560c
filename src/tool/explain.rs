//! `gatepost explain`: what a request or a token is judged by, and which rule it breaks. It asks
//! the same judges as the server does, reads only, and shows neither secrets nor values of claims.

mod client_assertion;
mod extension;
mod proof;
mod standing;
mod token;

use std::io::{self, Read};
use std::sync::Arc;

use serde_json::Value;

use super::arguments::Invocation;
use super::operator::{OpenDatabase, Operator};
use super::output::{self, CommandResult, Failure, FindingsReport, misuse, note, refuse};
use super::{audit, reference};
use crate::statements::audit_list::{self, EventFilter};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use gatepost_protocol::words::secret::SecretText;
use gatepost_registrar::explanation::{
    Explained, authorization_request, is_secret, query_of, refused,
};
use gatepost_server::app::failure::Failure as EndpointFailure;
use gatepost_server::app::{App, Extensions, LoadError};
use gatepost_server::http::incoming::is_harmless;

/// Longer is no request that the server takes.
const LONGEST: u64 = 128 * 1_024;

pub fn run(invocation: &Invocation) -> CommandResult {
    let what = invocation.value(0).trim();
    let start = what.get(..2).unwrap_or_default();
    match what {
        _ if what.len() == 6 && start.eq_ignore_ascii_case("GP") => {
            reference::help(&[what.to_uppercase()])
        }
        "-" => from_input(invocation),
        _ if is_secret(what) => misuse(
            "write it to standard input, as `gatepost explain - < FILE`: others may read a \
             command line",
        ),
        _ if what.contains('=') => {
            let explained = address(&app(invocation)?, what, invocation.has("--all"))?;
            show(invocation, "the request", explained)
        }
        _ => misuse("WHAT must be a code as GP1105, the address of an authorization request, or -"),
    }
}

/// Prints the findings about the token or the request.
fn show(invocation: &Invocation, name: &str, explained: Explained) -> CommandResult {
    let is_empty = explained.about.is_empty();
    let about = Value::Object(explained.about);
    let text = if is_empty {
        String::new()
    } else {
        format!("\n\n{}", output::members_of(&about))
    };
    let examined = FindingsReport {
        name,
        findings: &explained.findings,
        text: &text,
        member: "about",
        value: about,
    };
    examined.print(invocation)
}

/// A token or a token request.
fn from_input(invocation: &Invocation) -> CommandResult {
    let text = read_input()?;
    let is_request = text.expose().contains("grant_type=");
    if !is_request && !may_be_token(text.expose()) {
        return misuse(
            "this is neither a token nor a request to /connect/token, and nothing else is \
             judged here: no request to /connect/par, UserInfo or others, and no header \
             alone. Give one token, code or DPoP proof without the name of its header; or \
             the form with grant_type, below its headers Authorization and DPoP",
        );
    }
    let app = app(invocation)?;
    if is_request {
        let judged = token::request(&app, text.expose());
        return show(invocation, "the request", judged.or_else(explain_refusal)?);
    }
    let judged = token::token(&app, &text);
    show(invocation, "the token", judged.or_else(explain_refusal)?)
}

fn read_input() -> CommandResult<SecretText> {
    let mut text = String::new();
    let input = io::stdin().lock();
    let length = input.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.trim().is_empty() || u64::try_from(length).is_ok_and(|length| length > LONGEST) {
        return refuse("standard input must hold a token or a token request, of 128 KiB at most");
    }
    Ok(SecretText::new(text.trim()))
}

/// Headers and forms have spaces, colons or equals signs; tokens have none, unless they were
/// damaged.
fn may_be_token(text: &str) -> bool {
    let is_one_word = !text.contains(|character: char| {
        character.is_whitespace() || matches!(character, ':' | '=' | '&')
    });
    is_one_word || is_secret(text)
}

/// `gatepost explain request ID`
pub fn request(invocation: &Invocation) -> CommandResult {
    let id = invocation.value(0);
    if !is_harmless(id) {
        return misuse("ID must be what X-Request-Id of the answer was");
    }
    let operator = Operator::open(invocation)?;
    let filter = EventFilter {
        request_id: Some(id.to_owned()),
        ..EventFilter::default()
    };
    let found = audit_list::list(&operator.store, &filter, 1_000)?;
    let none = "No audit event has this id: requests that change nothing write none.";
    note(if found.is_empty() { none } else { "" });
    note(format!(
        "The log has the rest: journalctl -u gatepost --grep 'id={id}'"
    ));
    audit::show(&found, invocation.has("--json"))
}

/// What the server would judge by, if it is of the same binary.
fn app(invocation: &Invocation) -> CommandResult<App> {
    let operator = Operator::open(invocation)?;
    let master = operator.master_secret()?;
    let OpenDatabase { config, store, .. } = operator.database;
    let extensions = Extensions {
        table: invocation.extension_grants,
        functions: store.clone(),
    };
    App::load(Arc::new(config), store, &master, extensions).map_err(|error| match error {
        LoadError::Unfit(problem) => Failure::Configuration(problem),
        LoadError::NotYet(error) => error.into(),
    })
}

/// The address of an authorization request, or what stands behind its `?`.
fn address(app: &App, what: &str, all: bool) -> CommandResult<Explained> {
    let query = query_of(&app.config, what).map_err(Failure::Usage)?;
    match Parameters::parse(query.as_bytes()) {
        Ok(sent) => Ok(authorization_request(app, sent, all, &[""])?),
        Err(reason) => Ok(refused(reason, None)),
    }
}

/// What was found; or the failure that the endpoint would answer with.
type Judged = Result<Explained, EndpointFailure>;

/// Ends an explanation by the rule that is broken. Which `error` the server answers is not told.
fn refusal(reason: Reason, detail: &str) -> EndpointFailure {
    let refused = TokenError::new(TokenErrorCode::InvalidRequest, reason);
    let detail = Some(detail.to_owned());
    TokenError { detail, ..refused }.into()
}

/// A refusal is a finding, too. Of the others an explanation only meets that of the store.
fn explain_refusal(failure: EndpointFailure) -> Judged {
    match failure {
        EndpointFailure::Refused(refusal) => Ok(refused(refusal.reason, refusal.detail.as_deref())),
        failure => Err(failure),
    }
}
