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
use crate::protocol::token::userinfo::BearerFailure;
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
    Bearer(BearerFailure),
    Mistaken(Vec<DocumentProblem>),
    /// With its status and its `error`.
    Told(u16, &'static str, Reason),
    Failed(Failure),
}

impl From<NotAdmitted> for RegistrationRefusal {
    fn from(refusal: NotAdmitted) -> RegistrationRefusal {
        match refusal {
            NotAdmitted::Bearer(failure) => RegistrationRefusal::Bearer(failure),
            NotAdmitted::Failed(failure) => RegistrationRefusal::Failed(failure),
        }
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
                let reason = Reason::RegistrationMoved;
                return Err(RegistrationRefusal::Told(409, "conflict", reason));
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
    let reason = Reason::RegistrationVersion;
    version.ok_or(RegistrationRefusal::Told(400, "invalid_request", reason))
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
            let reason = Reason::RegistrationNotJson;
            return Err(RegistrationRefusal::Told(415, "invalid_request", reason));
        }
        let text = str::from_utf8(&request.body).map_err(|_| mistaken("", "is not UTF-8"))?;
        let mut document = registration::walker::parse(text)
            .map_err(|error| mistaken("", &format!("is not JSON: {error}")))?;
        let prune = document
            .as_object_mut()
            .and_then(|members| members.remove("prune"));
        match prune.unwrap_or(Value::Bool(false)) {
            Value::Bool(prunes) => Ok(SentDocument { document, prunes }),
            _ => Err(mistaken("prune", "must be true or false")),
        }
    }
}

fn mistaken(place: &str, rule: &str) -> RegistrationRefusal {
    RegistrationRefusal::Mistaken(vec![DocumentProblem::new(place, rule)])
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
        Err(refusal) => return refused(app, refusal.into(), scopes),
    };
    let client = &token.client.client;
    let mut response = if client.tenants.is_some() {
        let reason = Reason::RegistrationOfTenants;
        refused(
            app,
            RegistrationRefusal::Told(403, "access_denied", reason),
            scopes,
        )?
    } else {
        let about = |failure: Failure| failure.about(&client.client_id, None);
        let alone = app.documents.take(PATIENCE).ok_or(Failure::Busy);
        let _alone = alone.map_err(about)?;
        match act(&client.client_id) {
            Ok(value) => answers::json(200, &value),
            Err(refusal) => refused(app, refusal, scopes).map_err(about)?,
        }
    };
    response.note.client_id = Some(client.client_id.to_string());
    Ok(response)
}

fn refused(app: &App, refusal: RegistrationRefusal, scopes: &[&str]) -> Result<Response, Failure> {
    match refusal {
        RegistrationRefusal::Bearer(failure) => {
            let scope = scopes.first().copied().unwrap_or_default();
            Ok(answers::bearer_refusal(&app.config, failure, scope))
        }
        RegistrationRefusal::Mistaken(problems) => Ok(mistakes(&problems)),
        RegistrationRefusal::Told(status, error, reason) => Ok(answers::json_error(
            &app.config,
            status,
            error,
            (reason, None),
        )),
        RegistrationRefusal::Failed(failure) => Err(failure),
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
