//! `/admin/export`, `/admin/plan` and `/admin/apply`: what is registered, for programs, as the
//! commands of these names have it. Off unless `GATEPOST_ADMIN_API=on`. Who asks has an access
//! token of its own, without a user, for the resource `urn:gatepost:admin`. Cookies count for
//! nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::registration::{DocumentOrigin, Registrar, RegistrationFailure, comparison, told};
use crate::endpoints::answers;
use crate::endpoints::client_token::{self, NotAdmitted};
use crate::http::{Request, Response};
use crate::protocol::registration::{self, DocumentProblem, ObjectKind, document as exported};
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::{Reason, TokenErrorCode};
use crate::store::StoreError;
use crate::store::audit_events::EventAuthor;

pub const EXPORT: &str = "/admin/export";
pub const PLAN: &str = "/admin/plan";
pub const APPLY: &str = "/admin/apply";
/// Where a document is sent.
pub const LONG_BODIES: [&str; 2] = [PLAN, APPLY];

/// The resource that an access token must be for.
const RESOURCE: &str = "urn:gatepost:admin";
const READ: &str = "registration.read";
const WRITE: &str = "registration.write";
/// How long a request waits for the one before.
const PATIENCE: Duration = Duration::from_millis(250);
/// Mistakes that are told one by one.
const MOST_TOLD: usize = 1_000;

/// Why nothing was done.
enum RegistrationRefusal {
    /// Every mistake of the document.
    Mistaken(Vec<DocumentProblem>),
    Failed(Failure),
}

impl RegistrationRefusal {
    fn new(status: u16, reason: Reason) -> RegistrationRefusal {
        let error = TokenErrorCode::InvalidRequest;
        RegistrationRefusal::Failed(Failure::refused(status, error, reason))
    }

    fn at(place: &str, rule: impl Into<String>) -> RegistrationRefusal {
        RegistrationRefusal::Mistaken(vec![DocumentProblem::new(place, rule)])
    }
}

impl From<RegistrationFailure> for RegistrationRefusal {
    fn from(failure: RegistrationFailure) -> RegistrationRefusal {
        match failure {
            RegistrationFailure::Document(problems) => RegistrationRefusal::Mistaken(problems),
            RegistrationFailure::Store(error) => RegistrationRefusal::from(error),
            RegistrationFailure::Hashing(cause) => {
                RegistrationRefusal::Failed(Failure::Internal(cause))
            }
        }
    }
}

impl From<StoreError> for RegistrationRefusal {
    fn from(error: StoreError) -> RegistrationRefusal {
        RegistrationRefusal::Failed(Failure::from(error))
    }
}

/// The document, without what is not taken over HTTP: users have SCIM.
pub fn export(app: &App, request: &Request) -> Result<Response, Failure> {
    answer(app, request, &[READ, WRITE], |_| {
        // Within a change that writes nothing, so that all of it is of one moment.
        let registered = app
            .store
            .change_registry(|writer| comparison::registered(writer, None))?;
        let mut document = exported::document(&registered, &BTreeMap::new());
        if let Some(lists) = document.as_object_mut() {
            lists.remove(ObjectKind::User.list());
            lists.remove(ObjectKind::ExtensionGrant.list());
        }
        Ok(document)
    })
}

/// What [`apply`] would do.
pub fn plan(app: &App, request: &Request) -> Result<Response, Failure> {
    answer(app, request, &[READ, WRITE], |client_id| {
        let sent = SentDocument::read(request)?;
        registrar(app, request, client_id).planned(sent.document, sent.prunes, |writer, plan| {
            Ok(with_version(told(plan), writer.version()))
        })
    })
}

/// Does what was planned at `version`. Where there is nothing to do, it may have been done by the
/// same request before, so that is confirmed at any version.
pub fn apply(app: &App, request: &Request) -> Result<Response, Failure> {
    answer(app, request, &[WRITE], |client_id| {
        let version = planned_version(request)?;
        let sent = SentDocument::read(request)?;
        let registrar = registrar(app, request, client_id);
        let mut unlinked = Vec::new();
        let done = registrar.planned(sent.document, sent.prunes, |writer, plan| {
            if plan.changes.is_empty() {
                writer.confirm()?;
            } else if writer.version() != version {
                return Err(RegistrationRefusal::new(409, Reason::RegistrationMoved));
            } else {
                let hashing = app.password_hashing();
                unlinked = registrar.enact(writer, plan, hashing, app.now().day(), |_| ())?;
            }
            Ok(with_version(told(plan), writer.version_afterwards()))
        })?;
        registrar.end_unlinked(&unlinked)?;
        Ok(done)
    })
}

fn registrar<'a>(app: &'a App, request: &Request, client_id: &ClientId) -> Registrar<'a> {
    Registrar {
        config: &app.config,
        store: &app.store,
        sealers: app.registry.sealers(),
        compiled_in_grants: app.extensions.table,
        origin: DocumentOrigin::Client(EventAuthor {
            client_id: client_id.clone(),
            source: request.source,
            request_id: request.id.clone(),
        }),
    }
}

fn with_version(mut answer: Value, version: i64) -> Value {
    if let Some(members) = answer.as_object_mut() {
        members.insert(String::from("registry_version"), json!(version));
    }
    answer
}

fn planned_version(request: &Request) -> Result<i64, RegistrationRefusal> {
    let query = Parameters::parse(request.query.as_bytes()).ok();
    let version = query.and_then(|query| query.single("version").ok()??.parse().ok());
    version.ok_or(RegistrationRefusal::new(400, Reason::RegistrationVersion))
}

/// What a body has.
struct SentDocument {
    document: Value,
    /// `prune`, beside the lists.
    prunes: bool,
}

impl SentDocument {
    fn read(request: &Request) -> Result<SentDocument, RegistrationRefusal> {
        let content_type = request.headers.first("content-type").unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if !media_type.eq_ignore_ascii_case("application/json") {
            return Err(RegistrationRefusal::new(415, Reason::RegistrationNotJson));
        }
        let text = str::from_utf8(&request.body)
            .map_err(|_| RegistrationRefusal::at("", "is not UTF-8"))?;
        let mut document = registration::walker::parse(text.trim_start_matches('\u{feff}'))
            .map_err(|error| RegistrationRefusal::at("", format!("is not JSON: {error}")))?;
        let prune = document
            .as_object_mut()
            .and_then(|members| members.remove("prune"));
        match prune.unwrap_or(Value::Bool(false)) {
            Value::Bool(prunes) => Ok(SentDocument { document, prunes }),
            _ => Err(RegistrationRefusal::at("prune", "must be true or false")),
        }
    }
}

/// Answers with what `act` makes, for a client with one of these scopes.
fn answer(
    app: &App,
    request: &Request,
    scopes: &[&str],
    act: impl FnOnce(&ClientId) -> Result<Value, RegistrationRefusal>,
) -> Result<Response, Failure> {
    if !app.config.admin_api {
        let error = TokenErrorCode::InvalidRequest;
        return Err(Failure::refused(404, error, Reason::NotFound));
    }
    let token = match client_token::admitted(app, request, RESOURCE, scopes) {
        Ok(token) => token,
        Err(NotAdmitted::Failed(failure)) => return Err(failure),
        Err(NotAdmitted::Bearer(failure)) => {
            let scope = scopes.first().copied().unwrap_or_default();
            return Ok(answers::bearer_refusal(&app.config, failure, scope));
        }
    };
    let client = &token.client.client;
    let answered = if client.tenants.is_some() {
        let error = TokenErrorCode::AccessDenied;
        let reason = Reason::RegistrationOfTenants;
        Err(Failure::refused(403, error, reason))
    } else {
        alone(app, || act(&client.client_id))
    };
    let mut response = answered.map_err(|failure| failure.about(&client.client_id, None))?;
    response.note.client_id = Some(client.client_id.to_string());
    Ok(response)
}

/// One at a time: each has a connection of its own, and what it reads in memory.
fn alone(
    app: &App,
    act: impl FnOnce() -> Result<Value, RegistrationRefusal>,
) -> Result<Response, Failure> {
    let _alone = app.documents.take(PATIENCE).ok_or(Failure::Busy)?;
    match act() {
        Ok(value) => Ok(answers::json(200, &value)),
        Err(RegistrationRefusal::Mistaken(problems)) => Ok(mistakes(&problems)),
        Err(RegistrationRefusal::Failed(failure)) => Err(failure),
    }
}

/// All mistakes in one answer, each with its place.
fn mistakes(problems: &[DocumentProblem]) -> Response {
    let reason = Reason::RegistrationMistaken;
    let told: Vec<Value> = problems
        .iter()
        .take(MOST_TOLD)
        .map(|problem| json!({"place": problem.place(), "rule": problem.rule}))
        .collect();
    let answer = json!({
        "error": "invalid_document",
        "error_description": reason.description(),
        "mistakes": problems.len(),
        "problems": told,
    });
    answers::noted(answers::json(400, &answer), reason)
}
