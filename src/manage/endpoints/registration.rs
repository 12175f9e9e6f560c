//! `/admin/export`, `/admin/plan` and `/admin/apply`: what is registered, for programs, as the
//! commands of these names have it. Off unless `GATEPOST_ADMIN_API=on`. Who asks has an access
//! token of its own, without a user, for the resource `urn:gatepost:admin`. Cookies count for
//! nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::endpoints::client_token::{self, ClientToken};
use crate::endpoints::not_found;
use gatepost_protocol::registration::names;
use gatepost_protocol::registration::{DocumentProblem, ObjectKind};
use gatepost_protocol::words::json::{Members, SetMember};
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};
use gatepost_registrar::{DocumentOrigin, Registrar, comparison, told};
use gatepost_registration::document;
use gatepost_registration::plan::Plan;
use gatepost_registration::strict_json;
use gatepost_server::app::App;
use gatepost_server::app::failure::{Failure, Refusal, Result};
use gatepost_server::endpoints::answers;
use gatepost_server::http::{Request, Response};
use gatepost_store::audit_events::EventAuthor;

pub const PLAN: &str = "/admin/plan";
pub const APPLY: &str = "/admin/apply";

/// The resource that an access token must be for.
const RESOURCE: &str = "urn:gatepost:admin";
const READ: &str = "registration.read";
const WRITE: &str = names::REGISTRATION_WRITE;
/// RFC 6750 §3.
const OF_TENANTS: &str = "Bearer realm=\"gatepost\", error=\"access_denied\", \
     error_description=\"The client is restricted to tenants.\"";
/// Entries of all lists of a document. Nobody else changes what is registered while it is compared.
const MOST_ENTRIES: usize = 5_000;
/// Of users, each of whom is written by a statement of its own.
const MOST_USERS: usize = 2_000;
/// How long a request waits for the one before.
const PATIENCE: Duration = Duration::from_millis(250);

/// The document, without what is not taken over HTTP: users have SCIM.
pub fn export(app: &App, request: &Request) -> Result<Response> {
    answer(app, request, &[READ, WRITE], |_| {
        let registered = app
            .store
            .read_registry(|reader| comparison::registered(reader, None))?;
        let mut exported = document::document(&registered, &BTreeMap::new());
        if let Some(lists) = exported.as_object_mut() {
            lists.remove(ObjectKind::User.list());
            lists.remove(ObjectKind::ExtensionGrant.list());
        }
        Ok(exported)
    })
}

/// What [`apply`] would do.
pub fn plan(app: &App, request: &Request) -> Result<Response> {
    answer(app, request, &[READ, WRITE], |token| {
        let sent = SentDocument::read(request)?;
        if !token.scope.contains(WRITE) {
            let problems = document::beyond_reading(&sent.document);
            if !problems.is_empty() {
                return Err(Failure::MistakenDocument(problems));
            }
        }
        registrar(app, request, token).planned(sent.document, sent.prunes, |plan, version| {
            Ok(answered(plan, version))
        })
    })
}

/// Does what was planned at `version`, if that is what would be done now. People change without a
/// new version, so a document with users comes with the digest of the changes that were seen. Where
/// there is nothing to do, it may have been done by the same request before, so that is confirmed
/// at any version.
pub fn apply(app: &App, request: &Request) -> Result<Response> {
    answer(app, request, &[WRITE], |token| {
        let query = request.query_parameters()?;
        let version: Option<i64> = query.single("version")?.and_then(|text| text.parse().ok());
        let version = version.ok_or(Reason::RegistrationVersion)?;
        let seen = query.single("changes")?;
        let sent = SentDocument::read(request)?;
        if seen.is_none() && sent.document.get(ObjectKind::User.list()).is_some() {
            return Err(Failure::bad_request(Reason::RegistrationUnseen));
        }
        let registrar = registrar(app, request, token);
        registrar.applied(sent.document, sent.prunes, |writer, plan| {
            let is_seen = seen.is_none_or(|seen| seen == digest(plan));
            if plan.changes.is_empty() {
                writer.confirm()?;
            } else if writer.reader.version() != version || !is_seen {
                return Err(refused(409, Reason::RegistrationMoved));
            } else {
                let hashing = app.password_hashing();
                registrar.enact(writer, plan, hashing, app.now().day(), |_| ())?;
            }
            Ok(answered(plan, writer.version_afterwards()))
        })
    })
}

/// Whether a long document is read: one that comes with a token of ours for this. What the database
/// says of the token is asked later.
pub fn takes_long_body(app: &App, request: &Request) -> bool {
    app.config.admin_api && client_token::seems_for(app, request, RESOURCE)
}

fn registrar<'a>(app: &'a App, request: &Request, token: &ClientToken) -> Registrar<'a> {
    let author = EventAuthor {
        by: json!({"by": "client", "by_client": token.client.client.client_id}),
        source: request.source,
        request_id: request.id.clone(),
    };
    Registrar {
        config: &app.config,
        store: &app.store,
        sealers: app.registry.sealers(),
        compiled_in_grants: app.extensions.table,
        origin: if token.scope.contains(WRITE) {
            DocumentOrigin::Client(author)
        } else {
            DocumentOrigin::Reader
        },
    }
}

fn answered(plan: &Plan<'_>, version: i64) -> Value {
    let mut answer = told(plan);
    answer.set("registry_version", version);
    answer.set("changes_digest", digest(plan));
    answer
}

/// Of the changes as they are told, with what is there before each.
fn digest(plan: &Plan<'_>) -> String {
    let told = told(plan);
    let changes = told.get("changes").map(Value::to_string);
    let digest = Sha256::digest(changes.unwrap_or_default());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a body has.
struct SentDocument {
    document: Value,
    /// `prune`, beside the lists.
    prunes: bool,
}

impl SentDocument {
    fn read(request: &Request) -> Result<SentDocument> {
        if !request
            .media_type()
            .eq_ignore_ascii_case("application/json")
        {
            return Err(refused(415, Reason::RegistrationNotJson));
        }
        let text = str::from_utf8(&request.body).map_err(|_| mistaken("", "is not UTF-8"))?;
        let mut document = strict_json::parse(text.trim_start_matches('\u{feff}'))
            .map_err(|error| mistaken("", &format!("is not JSON: {error}")))?;
        let prune = document
            .as_object_mut()
            .and_then(|members| members.remove("prune"));
        require_few_entries(&document)?;
        match prune.unwrap_or(Value::Bool(false)) {
            Value::Bool(prunes) => Ok(SentDocument { document, prunes }),
            _ => Err(mistaken("prune", "must be true or false")),
        }
    }
}

fn require_few_entries(document: &Value) -> Result {
    let lists = document.as_object().into_iter().flat_map(Map::values);
    let entries: usize = lists.filter_map(Value::as_array).map(Vec::len).sum();
    if entries > MOST_ENTRIES {
        let rule = format!("has more than {MOST_ENTRIES} entries: send it in parts");
        return Err(mistaken("", &rule));
    }
    if document.items(ObjectKind::User.list()).len() > MOST_USERS {
        let rule = format!("has more than {MOST_USERS} users: send it in parts");
        return Err(mistaken("", &rule));
    }
    Ok(())
}

fn refused(status: u16, reason: Reason) -> Failure {
    Failure::refused(status, TokenErrorCode::InvalidRequest, reason)
}

fn mistaken(place: &str, rule: &str) -> Failure {
    Failure::MistakenDocument(vec![DocumentProblem::new(place, rule)])
}

/// Answers with what `act` makes, for a client with one of these scopes.
fn answer(
    app: &App,
    request: &Request,
    scopes: &[&'static str],
    act: impl FnOnce(&ClientToken) -> Result<Value>,
) -> Result<Response> {
    if !app.config.admin_api {
        return Err(not_found());
    }
    let token = client_token::admitted(app, request, RESOURCE, scopes)?;
    let client_id = &token.client.client.client_id;
    let answer = || {
        if token.client.client.tenants.is_some() {
            return Err(restricted_to_tenants());
        }
        // One at a time: each has a connection of its own, and all that is registered in memory.
        let _alone = app.documents.take(PATIENCE).ok_or(Failure::Busy)?;
        act(&token)
    };
    let answer = answer().map_err(|failure| failure.about(client_id, None))?;
    Ok(answers::json(200, &answer).about(client_id))
}

fn restricted_to_tenants() -> Failure {
    Failure::Refused(Refusal {
        status: 403,
        error: TokenErrorCode::AccessDenied,
        reason: Reason::RegistrationOfTenants,
        detail: None,
        challenge: Some(OF_TENANTS),
    })
}
