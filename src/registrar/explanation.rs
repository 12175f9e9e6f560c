//! Explains a request for authorization: what it is judged by, and which rule it breaks. It asks
//! the same judges as the endpoint does, reads only, and shows neither secrets nor values of
//! claims.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Value, json};

use gatepost_protocol::authorize::authorize_request::{
    AuthorizeError, AuthorizeRefusal, AuthorizeRequest, Ending, client_id, validate,
};
use gatepost_protocol::authorize::pushed_request::{self, PREFIX};
use gatepost_protocol::discovery::AUTHORIZE_PATH;
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::token::audience::resources_behind;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::{Client, CodeBinding};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::place::SignInPlace;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::web_url::check_document_url;
use gatepost_registration::client_checkup::{as_seen, by_bound_session, ways_to_sign_in};
use gatepost_registration::finding::{Finding, Verdict};
use gatepost_registration::{broken, weak};
use gatepost_server::app::metadata_documents::reason_for;
use gatepost_server::app::{App, id_tokens};
use gatepost_server::config::Config;
use gatepost_server::outbound::OutboundError;
use gatepost_server::registry::RegisteredClient;
use gatepost_store::{Result, clients};

/// What was found, and what it is about.
#[derive(Default)]
pub struct Explained {
    pub findings: Vec<Finding>,
    pub about: JsonObject,
}

impl Explained {
    pub fn tell(&mut self, name: &str, value: impl Into<Value>) {
        self.about.insert(name.to_owned(), value.into());
    }

    pub fn extend(&mut self, further: Explained) {
        self.findings.extend(further.findings);
        self.about.extend(further.about);
    }
}

impl From<Finding> for Explained {
    fn from(finding: Finding) -> Explained {
        Explained {
            findings: vec![finding],
            about: JsonObject::new(),
        }
    }
}

/// What stands before a token, a code or the like.
const SECRET_BEGINNINGS: [&str; 4] = ["gpa_", "gpr_", "gpc_", "eyJ"];

/// Whether others could use it.
pub fn is_secret(what: &str) -> bool {
    SECRET_BEGINNINGS
        .iter()
        .any(|beginning| what.starts_with(beginning))
}

/// Explains a code, or the address of an authorization request, to somebody who reaches the clients
/// of some tenants. It takes no tokens; one that is in an address is not looked at.
pub fn explain(app: &App, what: &str, reach: &[&str]) -> Result<Explained> {
    let what = what.trim();
    let is_named = |reason: &&Reason| reason.code().eq_ignore_ascii_case(what);
    if let Some(reason) = Reason::ALL.iter().find(is_named) {
        return Ok(refused(*reason, None));
    }
    let rule = "write the address of an authorization request, or a code as GP1105";
    let query = if is_secret(what) || !what.contains('=') {
        Err(String::from(rule))
    } else {
        query_of(&app.config, what)
    };
    match query.map(|query| Parameters::parse(query.as_bytes())) {
        Ok(Ok(sent)) => {
            let but_tokens = sent.iter().filter(|(name, _)| *name != "id_token_hint");
            authorization_request(app, Parameters::from_pairs(but_tokens), false, reach)
        }
        Ok(Err(reason)) => Ok(refused(reason, None)),
        Err(rule) => Ok(Finding::broken(rule).into()),
    }
}

/// Which registered name may have been meant.
pub fn near(app: &App, client_id: &ClientId) -> Result<String> {
    let owned = |texts: &[&str]| -> Vec<String> { texts.iter().map(ToString::to_string).collect() };
    let [client_ids, _] = clients::names_and_origins(&app.store, owned)?.value;
    Ok(hint(
        client_id.as_str(),
        client_ids.iter().map(String::as_str),
    ))
}

pub fn refused(reason: Reason, detail: Option<&str>) -> Explained {
    broken(reason, detail).into()
}

/// A rule that is broken, and what breaks it.
pub fn broken(reason: Reason, detail: Option<&str>) -> Finding {
    Finding::broken(told(reason, detail))
}

fn told(reason: Reason, detail: Option<&str>) -> String {
    let detail = detail
        .map(|detail| format!(" ({detail})"))
        .unwrap_or_default();
    format!(
        "{}: {}{detail} {}",
        reason.code(),
        reason.description(),
        reason.remedy()
    )
}

/// What stands behind the address of the authorization endpoint, or alone. Other addresses are
/// judged by other rules.
pub fn query_of<'a>(config: &Config, what: &'a str) -> Result<&'a str, String> {
    let what = what.split('#').next().unwrap_or_default();
    let Some((address, query)) = what
        .split_once('?')
        .filter(|(address, _)| !address.contains('='))
    else {
        return Ok(what);
    };
    let below = below_base(config, address);
    if address.is_empty() || below == Some(AUTHORIZE_PATH) {
        return Ok(query);
    }
    let rule = if address.contains("://") && below.is_none() {
        "this is an address of another issuer, which has settings of its own"
    } else {
        "this is an address of sign-out or of a page, which is not judged here"
    };
    let base = config.base_url.as_str();
    Err(format!(
        "{rule}: WHAT must be what a client sends browsers to, {base}{AUTHORIZE_PATH}?..."
    ))
}

/// What follows the base URL in an address, or its path in one without a host.
fn below_base<'a>(config: &Config, address: &'a str) -> Option<&'a str> {
    let origin = config.base_url.origin();
    let path = address
        .split_at_checked(origin.len())
        .filter(|(start, _)| start.eq_ignore_ascii_case(origin))
        .map_or(address, |(_, path)| path);
    // A host that only begins as ours does is another.
    path.strip_prefix(config.base_url.path())
        .filter(|below| below.is_empty() || below.starts_with('/'))
}

/// What becomes of a request that is good.
fn outcome(request: &AuthorizeRequest, client: &Client) -> String {
    let to = match &request.ending {
        Ending::Client(path) => path.to.uri(),
        Ending::Device(_) | Ending::Account { .. } => "",
    };
    let (who, others) = match &client.allowed_roles {
        None => (String::from("whoever signs in"), ""),
        Some(roles) => {
            let roles = joined(" or ", roles);
            (
                format!("whoever signs in and has the role {roles}"),
                ", nobody else (GP1139)",
            )
        }
    };
    let silently = if request.prompt.none {
        "; by prompt=none only who is signed in and need not be asked, and for all others an error \
         is sent there, mostly login_required"
    } else {
        ""
    };
    format!("{who} is sent to {to}{others}{silently}")
}

/// A pushed request leads to one answer.
fn good(text: String, was_pushed: bool) -> Finding {
    if was_pushed {
        weak!(
            "{text}; each request_uri is good once (GP1154), and whether this one was used before \
             is not looked at"
        )
    } else {
        Finding::fine(text)
    }
}

/// Judges it as the endpoint does. With `all` it goes on with what is refused put right, where that
/// is plain. A client that is not within `reach` counts as unknown.
pub fn authorization_request(
    app: &App,
    sent: Parameters,
    all: bool,
    reach: &[&str],
) -> Result<Explained> {
    let named = match client_id(&sent) {
        Ok(client_id) => client_id,
        Err(
            AuthorizeError::Page { reason, .. }
            | AuthorizeError::Redirect(_, AuthorizeRefusal { reason, .. }),
        ) => {
            return Ok(refused(reason, None));
        }
    };
    let snapshot = app.registry.snapshot();
    let registered = match within_reach(app, &named, reach)? {
        Reached::Client(registered) => registered,
        Reached::Nothing(explained) => return Ok(explained),
    };
    let client = &registered.client;
    let catalogue = within(&snapshot.catalogue, reach);
    let mut findings = Vec::new();
    let was_pushed = pushed_request::sealed(&sent).is_some();
    let sent = match pushed_request::sealed(&sent) {
        Some(sealed) => {
            let opened = app.vault.pushed_requests.open_text(PREFIX, sealed);
            match pushed_request::judge(opened, &named, app.now()) {
                Ok(pushed) => pushed.parameters,
                Err(reason) => return Ok(refused(reason, None)),
            }
        }
        None => sent,
    };
    if client.requires_pushed_requests && !was_pushed {
        findings.push(broken(Reason::PushedRequestRequired, None));
    }
    let mut parameters = sent.clone();
    loop {
        let (reason, detail, answer) = match validate(&parameters, client, &catalogue, app.now()) {
            Ok(request) => {
                if let Some(refusal) = refused_later(app, &request, client, reach) {
                    findings.push(refusal);
                    break;
                }
                let otherwise = if findings.is_empty() {
                    "it is good"
                } else {
                    "the rest is good"
                };
                let text = format!("{otherwise}: {}", outcome(&request, client));
                findings.push(good(text, was_pushed));
                findings.extend(by_bound_session(client, app.config.bound_sessions));
                break;
            }
            Err(AuthorizeError::Page { reason, detail, .. }) => {
                (reason, detail, String::from("an error page"))
            }
            Err(AuthorizeError::Redirect(path, refusal)) => {
                let answer = format!("error={} at {}", refusal.code.as_str(), path.to.uri());
                (refusal.reason, refusal.detail, answer)
            }
        };
        let near = named_with_nearest(reason, detail.as_deref(), &parameters, client);
        findings.push(broken!(
            "{} The answer is {answer}",
            told(reason, near.as_deref())
        ));
        let Some(repaired) =
            repaired(reason, detail.as_deref(), &parameters, client).filter(|_| all)
        else {
            break;
        };
        if repaired == parameters {
            break;
        }
        parameters = repaired;
    }
    Ok(Explained {
        findings,
        about: compared(&sent, client, &catalogue, all),
    })
}

fn unknown(app: &App, named: &ClientId, reach: &[&str]) -> Result<Explained> {
    if check_document_url(named.as_str()).is_ok() {
        let client = json!({"client_id": named.as_str(), "metadata_document": true});
        let detail = format!("to register it, apply {}", json!({"clients": [client]}));
        return Ok(refused(Reason::UnregisteredDocument, Some(&detail)));
    }
    let near = if reach.contains(&"") {
        near(app, named)?
    } else {
        String::new()
    };
    let detail = format!("{named}{near}");
    Ok(refused(Reason::UnknownClient, Some(&detail)))
}

/// The catalogue without the tenants that are out of reach: who they are is not told.
fn within<'a>(catalogue: &'a Catalogue, reach: &[&str]) -> Cow<'a, Catalogue> {
    if reach.contains(&"") {
        return Cow::Borrowed(catalogue);
    }
    let mut catalogue = catalogue.clone();
    let tenants = &mut catalogue.tenants;
    tenants.retain(|name, _| reach.contains(&name.as_str()));
    Cow::Owned(catalogue)
}

enum Reached {
    Client(Arc<RegisteredClient>),
    Nothing(Explained),
}

/// The client of that name, if it is within `reach`, with what its metadata document says.
fn within_reach(app: &App, named: &ClientId, reach: &[&str]) -> Result<Reached> {
    let registered = app.registry.client(named)?;
    let Some(registered) = registered.filter(|found| found.client.is_within(reach)) else {
        return unknown(app, named, reach).map(Reached::Nothing);
    };
    let problem = match app.described(&registered) {
        Ok(described) => return Ok(Reached::Client(described)),
        Err(problem) => problem,
    };
    let reason = reason_for(&problem).unwrap_or(Reason::Overloaded);
    // What is unfit is told by its reason alone.
    let detail = match problem {
        OutboundError::Unfit(_) => None,
        _ => Some(problem.to_string()),
    };
    Ok(Reached::Nothing(refused(reason, detail.as_deref())))
}

/// What the endpoint refuses after [`validate`]: a hint that is no ID token of ours, and a client
/// that nobody can sign in for within the tenant of the request.
fn refused_later(
    app: &App,
    request: &AuthorizeRequest,
    client: &Client,
    reach: &[&str],
) -> Option<Finding> {
    let snapshot = app.registry.snapshot();
    let hint = request.unverified_id_token_hint.as_ref();
    if hint.is_some_and(|hint| id_tokens::claims(app, &snapshot, hint).is_none()) {
        return Some(broken(Reason::InvalidIdTokenHint, None));
    }
    no_way_to_sign_in(request, client, &snapshot.catalogue, reach)
}

fn no_way_to_sign_in(
    request: &AuthorizeRequest,
    client: &Client,
    catalogue: &Catalogue,
    reach: &[&str],
) -> Option<Finding> {
    let tenant = request.acr_values.tenant.as_ref();
    let place = SignInPlace {
        client: Some(client),
        tenant,
        catalogue,
    };
    let named = client.identity_providers.as_ref()?;
    if named.iter().any(|name| place.allows(name)) {
        return None;
    }
    let ways = ways_to_sign_in(&as_seen(client, catalogue, reach), catalogue)?;
    let detail = match (ways.verdict == Verdict::Broken, tenant) {
        (true, _) => ways.text,
        (false, Some(tenant)) => {
            format!("none of its identity_providers is for the tenant {tenant}")
        }
        (false, None) => String::from(
            "its identity_providers are for tenants, and no tenant was asked for: send \
             acr_values=tenant:NAME",
        ),
    };
    Some(broken(Reason::NoWayToSignIn, Some(&detail)))
}

/// What was sent beside what is registered; with `all` also where nothing was sent.
fn compared(sent: &Parameters, client: &Client, catalogue: &Catalogue, all: bool) -> JsonObject {
    let mut compared = JsonObject::new();
    for (name, registered) in told_registration(client, catalogue) {
        let received: Vec<&str> = sent.all(name).collect();
        if all || !received.is_empty() {
            let both = json!({"received": received.join(" "), "registered": registered});
            compared.insert(name.to_owned(), both);
        }
    }
    compared
}

/// What is registered, by the parameter that it stands beside.
fn told_registration(client: &Client, catalogue: &Catalogue) -> [(&'static str, String); 5] {
    let binding = match client.code_binding() {
        CodeBinding::Pkce => "PKCE is required",
        CodeBinding::PkceOrNonce => "PKCE or a nonce is required",
        CodeBinding::Neither => "PKCE is not required",
    };
    let resources = resources_behind(&client.scope, catalogue);
    [
        ("redirect_uri", client.redirect_uris.join(" ")),
        ("response_type", joined(", ", &client.response_types)),
        ("scope", client.scope.to_string()),
        ("code_challenge", String::from(binding)),
        ("resource", resources.join(" ")),
    ]
}

/// What it is about, with what is near it.
fn named_with_nearest(
    reason: Reason,
    detail: Option<&str>,
    parameters: &Parameters,
    client: &Client,
) -> Option<String> {
    if reason == Reason::RepeatedParameter {
        return Some(joined(" ", parameters.repeated()));
    }
    let detail = detail?;
    let nearest = nearest(reason, detail, parameters, client);
    Some(format!("{detail}{nearest}"))
}

/// What is registered most like what was sent, and where they part.
fn nearest(reason: Reason, detail: &str, parameters: &Parameters, client: &Client) -> String {
    if reason == Reason::UnknownScope {
        return hint(detail, client.scope.iter());
    }
    let sent = parameters
        .all("redirect_uri")
        .next()
        .filter(|_| reason == Reason::UnregisteredRedirectUri);
    let Some((uri, sent)) = most_alike(parameters, client).zip(sent) else {
        return String::new();
    };
    format!(
        "; the nearest is {uri}, and they differ from byte {} on",
        alike(sent, uri) + 1
    )
}

fn alike(sent: &str, registered: &str) -> usize {
    sent.bytes()
        .zip(registered.bytes())
        .take_while(|(left, right)| left == right)
        .count()
}

fn most_alike<'a>(parameters: &Parameters, client: &'a Client) -> Option<&'a str> {
    let sent = parameters.all("redirect_uri").next().unwrap_or_default();
    client
        .redirect_uris
        .iter()
        .map(String::as_str)
        .max_by_key(|uri| alike(sent, uri))
}

/// The request without what was refused; `None` where there are several ways to mend it.
fn repaired(
    reason: Reason,
    detail: Option<&str>,
    parameters: &Parameters,
    client: &Client,
) -> Option<Parameters> {
    if [Reason::UnregisteredRedirectUri, Reason::MissingRedirectUri].contains(&reason) {
        let uri = most_alike(parameters, client)?;
        return Some(replaced(parameters, "redirect_uri", Some(uri)));
    }
    if [Reason::UnknownResponseMode, Reason::IllegalResponseMode].contains(&reason) {
        return Some(replaced(parameters, "response_mode", None));
    }
    let scope = parameters
        .all("scope")
        .next()
        .filter(|_| reason == Reason::UnknownScope)?;
    let left = scope.split(' ').filter(|name| Some(*name) != detail);
    Some(replaced(parameters, "scope", Some(&joined(" ", left))))
}

/// The parameters with another value of one of them, or without it.
fn replaced(parameters: &Parameters, name: &str, value: Option<&str>) -> Parameters {
    let others = parameters.iter().filter(|(other, _)| *other != name);
    Parameters::from_pairs(others.chain(value.map(|value| (name, value))))
}
