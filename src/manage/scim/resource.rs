//! A user as a SCIM resource: how one is read, shown, and becomes a user again.

use serde_json::{Value, json};

use super::attribute::{self, Shape, USER_SCHEMA, UserAttribute, UserAttributes, elements, member};
use super::error::{Result, ScimError, ScimType};
use super::projection::Projection;
use crate::statements::scim_users::ScimUser;
use gatepost_protocol::registration::user::{check_claim, check_username, valid_until};
use gatepost_protocol::registration::{timestamp, verified_address};
use gatepost_protocol::token::claims::PREFERRED_USERNAME;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::{JsonObject, Members, SetMember};
use gatepost_protocol::words::strength::Strength;
use gatepost_store::users::UserRow;

const PHONE_VERIFIED: &str = "phone_number_verified";

/// Reads a resource that POST or PUT sent. What is not kept is ignored.
pub fn read(body: &Value) -> Result<UserAttributes> {
    if !body.is_object() {
        return Err(ScimType::InvalidSyntax.because("the body must be an object"));
    }
    let schemas = member(body, "schemas").map(elements).unwrap_or_default();
    let names_user = |schema: &Value| {
        let schema = schema.as_str().unwrap_or_default();
        schema.eq_ignore_ascii_case(USER_SCHEMA)
    };
    if !schemas.iter().any(names_user) {
        let rule = format!("schemas must name {USER_SCHEMA}");
        return Err(ScimError::invalid_value(rule));
    }
    let mut found = UserAttributes::new();
    for attribute in UserAttribute::ALL {
        if let Some(sent) = sent_value(attribute, body)?
            && let Some(value) = attribute.read(sent)?
        {
            found.insert(attribute, value);
        }
    }
    Ok(found)
}

/// What a resource has for an attribute.
fn sent_value(attribute: UserAttribute, body: &Value) -> Result<Option<&Value>> {
    let mut found = Some(body);
    for name in attribute.members() {
        found = match found {
            Some(within) if within.is_object() => member(within, name),
            None | Some(Value::Null) => None,
            Some(_) => return Err(attribute.invalid("must stand in an object")),
        };
    }
    Ok(found)
}

/// A weak one: it says nothing of the bytes (RFC 9110 §8.8.1).
pub fn entity_tag(user: &ScimUser) -> String {
    format!("W/\"{}\"", user.version)
}

/// What the user has of what is kept.
pub fn attributes(user: &ScimUser) -> UserAttributes {
    let row = &user.row;
    let mut attributes = UserAttributes::new();
    for (attribute, claim) in attribute::claims() {
        if let Some(value) = claim_shown(attribute, row.claims.get(claim)) {
            attributes.insert(attribute, value);
        }
    }
    let until = row.valid_until.map(timestamp::format);
    let texts = [
        // The subject stands for a user name where there is none: whoever has none signs in with an
        // identity provider.
        (UserAttribute::UserName, Some(row.designation())),
        (UserAttribute::ExternalId, user.external_id.as_deref()),
        (
            UserAttribute::Tenant,
            row.tenant.as_ref().map(TenantName::as_str),
        ),
        (UserAttribute::ValidUntil, until.as_deref()),
    ];
    for (attribute, text) in texts {
        attributes.extend(text.map(|text| (attribute, Value::from(text))));
    }
    attributes.insert(UserAttribute::Active, Value::from(row.enabled));
    attributes
}

/// The resource (RFC 7643 §3), which lies at `location`, as far as it is asked for.
pub fn show(user: &ScimUser, location: &str, projection: &Projection) -> JsonObject {
    let mut resource = JsonObject::new();
    let mut schemas = vec![USER_SCHEMA];
    for (attribute, value) in attributes(user) {
        if !projection.shows(attribute) {
            continue;
        }
        let schema = attribute.schema();
        if !schemas.contains(&schema) {
            schemas.push(schema);
        }
        put(&mut resource, attribute, value);
    }
    resource.set("schemas", schemas);
    resource.set("id", user.row.sub.as_str());
    if projection.shows_meta() {
        // RFC 7643 §3.1
        let meta = json!({
            "resourceType": "User",
            "created": timestamp::format(user.created_at),
            "lastModified": timestamp::format(user.updated_at),
            "location": location,
            "version": entity_tag(user),
        });
        resource.set("meta", meta);
    }
    resource
}

/// The attributes after PUT sent these, in this body. Where it sends the same address and says
/// nothing of its verification, that stays. So do the roles and the end where it says nothing of
/// them: somebody else may have given them.
pub fn replaced_by(user: &ScimUser, sent: &UserAttributes, body: &Value) -> UserAttributes {
    let mut before = attributes(user);
    let mut wanted = sent.clone();
    for attribute in [UserAttribute::Roles, UserAttribute::ValidUntil] {
        if let Ok(None) = sent_value(attribute, body) {
            wanted.extend(before.remove_entry(&attribute));
        }
    }
    let verified = before.get(&UserAttribute::EmailVerified);
    if let Some(verified) = verified
        && before.get(&UserAttribute::Email) == sent.get(&UserAttribute::Email)
    {
        wanted
            .entry(UserAttribute::EmailVerified)
            .or_insert_with(|| verified.clone());
    }
    wanted
}

/// The user with these attributes instead. What is not kept as an attribute stays.
pub fn changed_to(user: &ScimUser, wanted: &UserAttributes) -> Result<ScimUser> {
    let before = &user.row;
    let had = attributes(user);
    let tenant = text(wanted, UserAttribute::Tenant);
    if tenant.is_some() && tenant != text(&had, UserAttribute::Tenant) {
        return Err(ScimType::Mutability.because("tenant cannot change"));
    }
    // Whoever has none is named by the subject, and gets none.
    let username = if wanted.get(&UserAttribute::UserName) == had.get(&UserAttribute::UserName) {
        before.username.clone()
    } else {
        Some(checked_username(wanted)?)
    };
    let mut claims = claims(&had, &before.claims, wanted)?;
    let preferred = claims.text(PREFERRED_USERNAME);
    // Imports once wrote the user name there.
    if username != before.username && preferred == before.username.as_deref() {
        claims.remove(PREFERRED_USERNAME);
    }
    let mut changed = user.clone();
    changed.external_id = text(wanted, UserAttribute::ExternalId).map(str::to_owned);
    changed.row.username = username;
    changed.row.enabled = flag(wanted, UserAttribute::Active).unwrap_or(before.enabled);
    // To the second alone it is told what it was.
    if text(wanted, UserAttribute::ValidUntil) != text(&had, UserAttribute::ValidUntil) {
        changed.row.valid_until = end(wanted)?;
    }
    changed.row.claims = claims;
    Ok(changed)
}

/// Writes into the object of that name within another one. It is made where there is none.
pub fn put_below(object: &mut JsonObject, name: &str, write: impl FnOnce(&mut JsonObject)) {
    let within = object
        .entry(name)
        .or_insert_with(|| Value::Object(JsonObject::new()));
    if let Some(within) = within.as_object_mut() {
        write(within);
    }
}

/// Writes an attribute into a resource.
fn put(resource: &mut JsonObject, attribute: UserAttribute, value: Value) {
    let shown = match attribute.shape() {
        Shape::Text | Shape::Flag => value,
        Shape::OneElement => json!([{"value": value, "type": "work", "primary": true}]),
        Shape::Elements => {
            let shown = elements(&value).iter().map(|one| json!({"value": one}));
            shown.collect()
        }
    };
    match attribute.members()[..] {
        [outer, inner] => put_below(resource, outer, |within| within.set(inner, shown)),
        _ => resource.set(attribute.whole(), shown),
    }
}

/// Whether it has an address that is verified, which another one did not have.
pub fn verifies_more_than(after: &UserRow, before: &UserRow) -> bool {
    is_verified(after)
        && !(is_verified(before) && after.claims.get("email") == before.claims.get("email"))
}

fn is_verified(user: &UserRow) -> bool {
    user.claims.get("email_verified") == Some(&Value::Bool(true))
}

/// A new user with these attributes.
pub fn new_user(sub: Subject, wanted: &UserAttributes) -> Result<UserRow> {
    Ok(UserRow {
        sub,
        username: Some(checked_username(wanted)?),
        tenant: text(wanted, UserAttribute::Tenant).map(TenantName::new),
        password_hash: None,
        enabled: flag(wanted, UserAttribute::Active).unwrap_or(true),
        valid_until: end(wanted)?,
        has_ended: false,
        claims: claims(&UserAttributes::new(), &JsonObject::new(), wanted)?,
        epoch: 0,
        factors: 0,
        strongest_acr: Strength::SignedIn,
    })
}

fn end(wanted: &UserAttributes) -> Result<Option<Instant>> {
    let end = text(wanted, UserAttribute::ValidUntil).map(valid_until);
    end.transpose()
        .map_err(|rule| UserAttribute::ValidUntil.invalid(rule))
}

/// The claims of a user who had `before`, after what is new in `wanted`.
fn claims(
    attributes: &UserAttributes,
    before: &JsonObject,
    wanted: &UserAttributes,
) -> Result<JsonObject> {
    let mut claims = before.clone();
    if !wanted.contains_key(&UserAttribute::EmailVerified) {
        claims.remove("email_verified");
    }
    for (attribute, claim) in attribute::claims() {
        let value = wanted.get(&attribute);
        if value == attributes.get(&attribute) {
            continue;
        }
        let Some(value) = value else {
            claims.remove(claim);
            continue;
        };
        check_claim(claim, value).map_err(|rule| attribute.invalid(rule))?;
        claims.set(claim, value.clone());
    }
    let has_another_number = claims.get("phone_number") != before.get("phone_number");
    if has_another_number && claims.contains_key(PHONE_VERIFIED) {
        claims.set(PHONE_VERIFIED, false);
    }
    if claims.get("email") == before.get("email") {
        return Ok(claims);
    }
    Ok(verified_address::settled(before, claims))
}

/// A claim as an attribute; a claim of another type is not shown.
fn claim_shown(attribute: UserAttribute, claim: Option<&Value>) -> Option<Value> {
    let claim = claim?;
    match attribute.shape() {
        // All of them, even those that are more than may be sent: a change works on what is there.
        Shape::Elements => {
            let is_text = |one: &&Value| one.as_str().is_some_and(|text| !text.is_empty());
            // One that was stored as Entra sent it is read as what is sent now, so that it can go.
            let read = |one: &Value| {
                let read = attribute.read_element(one).ok().flatten();
                read.unwrap_or_else(|| one.clone())
            };
            let all: Vec<Value> = elements(claim).iter().filter(is_text).map(read).collect();
            (!all.is_empty()).then_some(Value::Array(all))
        }
        Shape::Text | Shape::OneElement if claim.is_string() => {
            attribute.read(claim).ok().flatten()
        }
        Shape::Flag if claim.is_boolean() => Some(claim.clone()),
        Shape::Text | Shape::OneElement | Shape::Flag => None,
    }
}

fn checked_username(wanted: &UserAttributes) -> Result<String> {
    let Some(name) = text(wanted, UserAttribute::UserName) else {
        return Err(UserAttribute::UserName.invalid("is required"));
    };
    check_username(name).map_err(|rule| UserAttribute::UserName.invalid(rule))?;
    Ok(name.to_owned())
}

/// The text of an attribute.
pub fn text(attributes: &UserAttributes, attribute: UserAttribute) -> Option<&str> {
    attributes.get(&attribute).and_then(Value::as_str)
}

fn flag(attributes: &UserAttributes, attribute: UserAttribute) -> Option<bool> {
    attributes.get(&attribute).and_then(Value::as_bool)
}
