//! `/scim/v2/` (RFC 7644): users, for programs that look after people. Off unless
//! `GATEPOST_SCIM=on`. Who asks has an access token of its own, without a user, for the resource
//! `urn:gatepost:scim`.

mod list;
mod users;

use serde::Serialize;
use serde_json::{Value, json};

use crate::endpoints::client_token::{self, ClientToken};
use crate::endpoints::not_found;
use crate::scim::error::{ScimError, ScimType};
use gatepost_protocol::registration::names::{SCIM_READ, SCIM_WRITE};
use gatepost_protocol::words::identifiers::ClientId;
use gatepost_protocol::words::json::{JsonObject, Members, SetMember};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_server::app::App;
use gatepost_server::app::failure::{Failure, Result};
use gatepost_server::endpoints::answers;
use gatepost_server::http::{Body, Method, Request, Response};
use gatepost_store::StoreError;

/// The resource that an access token must be for.
const RESOURCE: &str = "urn:gatepost:scim";

/// Objects and arrays within each other, in a body.
const DEEPEST: usize = 8;

const LIST_RESPONSE: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

impl From<ScimError> for Failure {
    fn from(error: ScimError) -> Failure {
        let answer = answers::noted(error_answer(&error), Reason::ScimRefused);
        Failure::Answered(Box::new(answer))
    }
}

/// A request of a client that is let in, and whom the client reaches.
struct ScimRequest<'a> {
    app: &'a App,
    request: &'a Request,
    client_id: ClientId,
    scope: ScopeSet,
    /// Tenants whose users it reaches. An empty name stands for no tenant.
    reach: Vec<String>,
    /// The only tenant that new users can be of, where there is only one.
    only_tenant: Option<String>,
}

/// Answers below `/scim/v2/`. `path` is what follows that.
pub fn handle(app: &App, request: &Request, path: &str) -> Result<Response> {
    if !app.config.scim {
        return Err(not_found());
    }
    let is_read = matches!(request.method, Method::Get | Method::Head);
    let wanted_scope = if is_read { SCIM_READ } else { SCIM_WRITE };
    let token = client_token::admitted(app, request, RESOURCE, &[wanted_scope])?;
    let asked = ScimRequest::new(app, request, token);
    let response = match path.split_once('/').unwrap_or((path, "")) {
        ("Users", "") => asked.handle_all()?,
        ("Users", ".search") | (".search" | "Bulk" | "Me", _) => {
            return Err(ScimError::plain(501, "/ServiceProviderConfig says what is there.").into());
        }
        ("Users", id) => asked.handle_one(id)?,
        (kind, name) if is_read => asked.described(kind, name)?,
        ("ServiceProviderConfig" | "ResourceTypes" | "Schemas", _) => {
            return Err(ScimError::plain(405, "This is only read.").into());
        }
        (_, _) => return Err(not_found()),
    };
    Ok(response.about(&asked.client_id))
}

impl<'a> ScimRequest<'a> {
    /// A client with `tenants` reaches the users of these; any other one everybody.
    fn new(app: &'a App, request: &'a Request, token: ClientToken) -> ScimRequest<'a> {
        let client = &token.client.client;
        let reach = match &client.tenants {
            Some(tenants) => tenants.iter().map(ToString::to_string).collect(),
            None => {
                let snapshot = app.registry.snapshot();
                let registered = snapshot.catalogue.tenants.keys().map(String::as_str);
                registered.chain([""]).map(str::to_owned).collect()
            }
        };
        ScimRequest {
            app,
            request,
            client_id: client.client_id.clone(),
            scope: token.scope,
            reach,
            only_tenant: client.only_tenant().map(ToString::to_string),
        }
    }

    /// What there is, for programs that ask before they begin (RFC 7644 §4).
    fn described(&self, kind: &str, name: &str) -> Result<Response> {
        let documents: &[&str] = match kind {
            "ServiceProviderConfig" if name.is_empty() => {
                let config = include_str!("../../../static/scim/service_provider_config.json");
                let config = self.located(config, kind, kind);
                return Ok(json_answer(200, &config));
            }
            "ResourceTypes" => &[include_str!("../../../static/scim/user_resource_type.json")],
            "Schemas" => &[
                include_str!("../../../static/scim/user.json"),
                include_str!("../../../static/scim/enterprise.json"),
                include_str!("../../../static/scim/gatepost.json"),
            ],
            _ => return Err(not_found()),
        };
        let resource_type = kind.trim_end_matches('s');
        let mut all = Vec::new();
        for document in documents {
            let mut document = self.located(document, resource_type, kind);
            self.name_tenants(&mut document);
            all.push(document);
        }
        if name.is_empty() {
            let list = json!({
                "schemas": [LIST_RESPONSE], "totalResults": all.len(), "startIndex": 1,
                "itemsPerPage": all.len(), "Resources": all,
            });
            return Ok(json_answer(200, &list));
        }
        let has_that_id = |document: &&JsonObject| document.text("id") == Some(name);
        let document = all.iter().find(has_that_id).ok_or_else(not_found)?;
        Ok(json_answer(200, document))
    }

    /// Of an attribute `tenant` the schema lists what the client may write there. Where that is
    /// nothing, there is no such attribute.
    fn name_tenants(&self, schema: &mut JsonObject) {
        let tenants = self.reach.iter().filter(|name| !name.is_empty());
        let tenants = Vec::from_iter(tenants.map(String::as_str));
        let Some(attributes) = schema.get_mut("attributes").and_then(Value::as_array_mut) else {
            return;
        };
        attributes.retain_mut(|attribute| match attribute.as_object_mut() {
            Some(attribute) if attribute.get("name") == Some(&json!("tenant")) => {
                attribute.set("canonicalValues", tenants.as_slice());
                !tenants.is_empty()
            }
            _ => true,
        });
    }

    /// A document that is part of the program, with where it lies in this installation.
    fn located(&self, document: &str, resource_type: &str, kind: &str) -> JsonObject {
        let mut document: JsonObject = serde_json::from_str(document).unwrap_or_default();
        let path = match document.text("id") {
            Some(id) => format!("{kind}/{id}"),
            None => kind.to_owned(),
        };
        let meta = json!({"resourceType": resource_type, "location": self.address(&path)});
        document.set("meta", meta);
        document
    }

    fn address(&self, path: &str) -> String {
        format!("{}/scim/v2/{path}", self.app.config.base_url.as_str())
    }

    fn body(&self) -> Result<Value, ScimError> {
        let media_type = self.request.media_type();
        let is_json = ["application/scim+json", "application/json"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(media_type));
        if !is_json {
            return Err(ScimError::plain(
                415,
                "The content type must be application/scim+json.",
            ));
        }
        match serde_json::from_slice(&self.request.body) {
            Ok(value) if is_shallow(&value, DEEPEST) => Ok(value),
            _ => {
                Err(ScimType::InvalidSyntax.because("the body must be JSON, at most 8 levels deep"))
            }
        }
    }

    /// Whoever sends it again after a 503 may be who has the name: that is told only where it holds
    /// for good.
    fn taken(&self, error: StoreError) -> Failure {
        if !matches!(error, StoreError::Taken(_)) {
            return error.into();
        }
        if let Err(unconfirmed) = self.app.store.confirm() {
            return unconfirmed.into();
        }
        let taken = ScimError {
            status: 409,
            scim_type: Some(ScimType::Uniqueness),
            detail: String::from("Somebody of this tenant has this user name, or this address."),
        };
        taken.into()
    }
}

fn is_shallow(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(elements) => elements.iter().all(|element| is_shallow(element, below)),
        Value::Object(members) => members.values().all(|member| is_shallow(member, below)),
        _ => true,
    }
}

/// An answer to a SCIM client (RFC 7644 §3.1).
fn json_answer(status: u16, value: &impl Serialize) -> Response {
    let body = Body::Owned(serde_json::to_vec(value).unwrap_or_default());
    answers::no_store(Response::with_body(status, "application/scim+json", body))
}

/// An error (RFC 7644 §3.12).
pub fn error_answer(error: &ScimError) -> Response {
    let mut response = json_answer(error.status, &error.body());
    response.note.detail = Some(error.detail.clone());
    response
}
