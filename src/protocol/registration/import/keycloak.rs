//! Keycloak: the export of a realm, with its users (`kc.sh export --users realm_file`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{DEVICE, Import, ImportedObject, Row, is_clear, table};
use crate::protocol::login::pbkdf2::Pbkdf2Hash;
use crate::protocol::login::second_factor::{STEP, from_base32, to_base32};
use crate::protocol::registration::client_secret::check_own;
use crate::protocol::registration::names::STANDARD_SCOPES;
use crate::protocol::words::scope::OFFLINE_ACCESS;
use crate::protocol::words::secret::SecretBytes;

/// In every realm.
const ITS_CLIENTS: &str =
    "account account-console admin-cli broker realm-management security-admin-console";
const ITS_SCOPES: &str = "acr basic microprofile-jwt organization role_list roles saml_organization service_account web-origins";
const ITS_ROLES: &str = "offline_access uma_authorization";
const ROLE: &str = "role";
const GROUPS: &str = "groups";

fn is_among(names: &str, name: &str) -> bool {
    names.split(' ').any(|one| one == name)
}

fn is_openid(row: &Row<'_>) -> Result<bool, String> {
    Ok(row
        .text("protocol")?
        .is_none_or(|protocol| protocol == "openid-connect"))
}

/// Reads a realm's export.
pub fn read(realm: &Value) -> Result<Import, String> {
    let realm = Row::of(String::from("realm"), realm)?;
    realm.required("realm")?;
    let mut to = Import {
        scopes: STANDARD_SCOPES.map(str::to_owned).into(),
        ..Import::default()
    };
    for row in realm.rows("identityProviders")? {
        let mut ours = ImportedObject::default();
        let is_google = row.required("providerId")? == "google";
        ours.set("issuer", is_google.then_some("https://accounts.google.com"));
        for row in [Some(&row), row.nested("config")?.as_ref()]
            .into_iter()
            .flatten()
        {
            row.copy("identity provider of Keycloak", &mut ours)?;
        }
        if row.flag("linkOnly", false)? {
            ours.set("enabled", false);
            to.note(
                &format!("identity provider {}", row.required("alias")?),
                "set: enabled false, as nobody may sign in by it there",
            );
        }
        to.provider(ours);
    }
    client_scopes(&realm, &mut to)?;
    for row in realm.rows("clients")? {
        let client_id = row.required("clientId")?;
        match (row.flag("bearerOnly", false)?, is_openid(&row)?) {
            _ if is_among(ITS_CLIENTS, &client_id) => {}
            (false, true) => client(&realm, &row, &mut to)?,
            (true, _) => to.note(
                &format!("client {client_id}"),
                "left out: it is an API, so register a resource",
            ),
            (_, false) => to.note(&format!("client {client_id}"), "left out: it speaks SAML"),
        }
    }
    // A service account is left out: here a client gets its own tokens without a user.
    for row in realm
        .rows("users")?
        .iter()
        .filter(|row| row.value("serviceAccountClientId").is_none())
    {
        user(row, &mut to)?;
    }
    Ok(to)
}

/// Client scopes: those about users become identity scopes; those that name an API as an audience,
/// or say nothing, become resource scopes. The APIs become resources.
fn client_scopes(realm: &Row<'_>, to: &mut Import) -> Result<(), String> {
    let mut resources = BTreeSet::new();
    for row in realm.rows("clientScopes")? {
        let name = row.required("name")?;
        if !is_openid(&row)? || is_among(ITS_SCOPES, &name) || !to.scopes.insert(name.clone()) {
            continue;
        }
        let mut claims = ImportedObject::default();
        let mut audiences = BTreeSet::new();
        for mapper in row.rows("protocolMappers")? {
            let Some(config) = mapper.nested("config")? else {
                continue;
            };
            audiences.extend(config.text("included.custom.audience")?);
            if let Some(attribute) = config.text("user.attribute")? {
                claims.set(&attribute, config.text("claim.name")?);
            }
            // Clients and resources share one name space.
            if let Some(client) = config.text("included.client.audience")? {
                to.note(
                    &format!("scope {name}"),
                    format!("its audience {client} is a client: call the API otherwise"),
                );
            }
        }
        let list = if audiences.is_empty() && !claims.0.is_empty() {
            "identity_scopes"
        } else {
            "resource_scopes"
        };
        to.push(
            list,
            [
                ("name", json!(name)),
                ("claims", json!(claims.0)),
                ("resources", json!(audiences)),
            ]
            .into(),
        );
        resources.extend(audiences);
    }
    resources
        .into_iter()
        .for_each(|name| to.push("resources", [("name", json!(name))].into()));
    Ok(())
}

fn client(realm: &Row<'_>, row: &Row<'_>, to: &mut Import) -> Result<(), String> {
    let of = format!("client {}", row.required("clientId")?);
    let mut members = row.members.clone();
    if let Some(attributes) = row.nested("attributes")? {
        members.extend(attributes.members.clone());
    }
    let row = Row {
        place: row.place.clone(),
        members: &members,
    };
    let mut ours = ImportedObject::default();
    ours.set(
        "access_token_lifetime",
        realm.seconds("accessTokenLifespan")?,
    );
    row.copy("client of Keycloak", &mut ours)?;
    addresses(&row, &mut ours)?;
    ours.set("grant_types", grant_types(&row)?);
    let implicit = row.flag("implicitFlowEnabled", false)?;
    ours.set("allow_access_tokens_via_browser", implicit.then_some(true));
    let scope = ours.take("scope").into_iter();
    let mut scope: BTreeSet<String> = scope.filter(|name| to.scopes.contains(name)).collect();
    scope.insert(String::from("openid"));
    let is_typed = row.flag("access.token.header.type.rfc9068", false)?;
    let notes = [
        (!is_typed, "set, as there: access_token_typ JWT"),
        (
            scope.contains(OFFLINE_ACCESS),
            "refresh tokens are for requests whose scope has offline_access",
        ),
    ];
    to.note_each(&of, &notes);
    ours.set("scope", json!(scope));
    ours.set("access_token_typ", (!is_typed).then_some("JWT"));
    let public = row.flag("publicClient", false)?;
    ours.set("token_endpoint_auth_method", public.then_some("none"));
    let has_pkce = row.value("pkce.code.challenge.method").is_some();
    ours.set("require_pkce", has_pkce);
    // Clients with another authenticator have a secret there, too. It proves nothing.
    let by_secret = row
        .text("clientAuthenticatorType")?
        .is_none_or(|kind| kind == "client-secret");
    let secret = row
        .text("secret")?
        .filter(|secret| by_secret && is_clear(secret) && check_own(secret).is_ok());
    ours.set("secrets", secret.map(|secret| json!([{ "value": secret }])));
    to.client(&of, ours);
    Ok(())
}

/// Redirect URIs and origins. Relative ones lie below the root.
fn addresses(row: &Row<'_>, ours: &mut ImportedObject) -> Result<(), String> {
    let root = row.text("rootUrl")?.unwrap_or_default();
    let whole = |uri: &str| match uri.starts_with('/') {
        true => format!("{}{uri}", root.trim_end_matches('/')),
        false => uri.to_owned(),
    };
    let uris: Vec<String> = ours
        .take("redirect_uris")
        .iter()
        .map(|uri| whole(uri))
        .collect();
    let after = row.text("post.logout.redirect.uris")?.unwrap_or_default();
    let named = after.split("##").filter(|uri| !matches!(*uri, "" | "-"));
    let after: Vec<String> = if after == "+" {
        uris.clone()
    } else {
        named.map(whole).collect()
    };
    ours.set("redirect_uris", uris);
    ours.set("post_logout_redirect_uris", after);
    let mut origins = ours.take("allowed_cors_origins");
    origins.retain(|origin| origin != "+");
    ours.set("allowed_cors_origins", origins);
    Ok(())
}

fn grant_types(row: &Row<'_>) -> Result<Vec<&'static str>, String> {
    let code = row.flag("standardFlowEnabled", true)?;
    let implicit = row.flag("implicitFlowEnabled", false)?;
    let device = row.flag("oauth2.device.authorization.grant.enabled", false)?;
    let grants = [
        ("authorization_code", code),
        ("implicit", implicit),
        ("hybrid", code && implicit),
        ("password", row.flag("directAccessGrantsEnabled", false)?),
        (
            "client_credentials",
            row.flag("serviceAccountsEnabled", false)?,
        ),
        (DEVICE, device),
    ];
    let enabled = grants.iter().filter(|(_, enabled)| *enabled);
    Ok(enabled.map(|(name, _)| *name).collect())
}

fn user(row: &Row<'_>, to: &mut Import) -> Result<(), String> {
    row.required("id")?;
    let of = format!("user {}", row.required("username")?);
    let mut claims = attributes(row, &of, to)?;
    let names = [row.text("firstName")?, row.text("lastName")?];
    let names: Vec<String> = names.into_iter().flatten().collect();
    claims.set("name", (!names.is_empty()).then(|| names.join(" ")));
    row.copy("claims of Keycloak", &mut claims)?;
    add_roles(row, &mut claims)?;
    let mut user = ImportedObject::default();
    row.copy("user of Keycloak", &mut user)?;
    user.set("claims", claims.into_claims(&of, to));
    for credential in row.rows("credentials")? {
        add_credential(&credential, &of, &mut user, to)?;
    }
    user.set("identities", identities(row, &of, to)?);
    for action in row.texts("requiredActions", "")? {
        to.note(
            &of,
            format!("was to do this at the next sign-in, and is not asked to here: {action}"),
        );
    }
    to.push("users", user);
    Ok(())
}

/// Attributes become claims. Some realms let people write them themselves: they must not say what
/// Keycloak would.
fn attributes(row: &Row<'_>, of: &str, to: &mut Import) -> Result<ImportedObject, String> {
    let mut claims = ImportedObject::default();
    let Some(attributes) = row.nested("attributes")? else {
        return Ok(claims);
    };
    let vouched: Vec<&str> = table("claims of Keycloak")
        .map(|[ours, ..]| ours)
        .chain(["name", ROLE, GROUPS])
        .collect();
    for name in attributes.members.keys() {
        if vouched.contains(&name.as_str()) {
            to.note(
                of,
                format!("attribute {name} is left out: the claim of that name has another source"),
            );
            continue;
        }
        for value in attributes.texts(name, "")? {
            claims.add_claim(name, value);
        }
    }
    Ok(claims)
}

/// Roles and groups. A role of one client is not that of another.
fn add_roles(row: &Row<'_>, claims: &mut ImportedObject) -> Result<(), String> {
    for role in row.texts("realmRoles", "")? {
        if !is_among(ITS_ROLES, &role) && !role.starts_with("default-roles-") {
            claims.add_claim(ROLE, role);
        }
    }
    if let Some(roles) = row.nested("clientRoles")? {
        let clients = roles.members.keys();
        for client in clients.filter(|client| !is_among(ITS_CLIENTS, client)) {
            for role in roles.texts(client, "")? {
                claims.add_claim(ROLE, format!("{client}/{role}"));
            }
        }
    }
    for group in row.texts("groups", "")? {
        claims.add_claim(GROUPS, group);
    }
    Ok(())
}

/// A password or a second factor.
fn add_credential(
    credential: &Row<'_>,
    of: &str,
    user: &mut ImportedObject,
    to: &mut Import,
) -> Result<(), String> {
    let kind = credential.required("type")?;
    if kind != "password" {
        let is_first = kind == "otp" && !user.0.contains_key("totp");
        match totp(credential).filter(|_| is_first) {
            Some(secret) => user.set("totp", secret),
            None => to.note(
                of,
                format!("a second factor is left out, set up a new one: {kind}"),
            ),
        }
        return Ok(());
    }
    if credential.flag("temporary", false)? {
        to.note(
            of,
            "the password is left out: it was to be changed first. Run `gatepost user invite`",
        );
        return Ok(());
    }
    match phc(credential) {
        Some(hash) => user.set("password_hash", hash),
        None => to.note(
            of,
            "the password is left out: its hash has a form that is not known here",
        ),
    }
    Ok(())
}

/// Accounts elsewhere.
fn identities(row: &Row<'_>, of: &str, to: &mut Import) -> Result<Vec<Value>, String> {
    let mut identities = Vec::new();
    for link in row.rows("federatedIdentities")? {
        let name = link.required("identityProvider")?;
        match to.issuers.get(&name) {
            Some(issuer) => {
                identities.push(json!({"issuer": issuer, "subject": link.required("userId")?}))
            }
            None => to.note(
                of,
                format!("sign-ins by {name} are left out: it has no issuer"),
            ),
        }
    }
    Ok(identities)
}

/// A part of a credential: JSON in a text.
fn part(credential: &Row<'_>, key: &str) -> Option<Value> {
    serde_json::from_str(&credential.text(key).ok()??).ok()
}

/// The secret of an app, in base32, if its codes are like ours (six digits, SHA-1, 30 seconds). It
/// is there as the bytes of a text, or in base32.
pub(super) fn totp(credential: &Row<'_>) -> Option<String> {
    let secret = part(credential, "secretData")?;
    let how = part(credential, "credentialData")?;
    let is = |key: &str, wanted: Value| how.get(key) == Some(&wanted);
    let ours = is("subType", json!("totp")) && is("digits", json!(6)) && is("period", json!(STEP));
    let value = secret
        .get("value")?
        .as_str()
        .filter(|_| ours && is("algorithm", json!("HmacSHA1")))?;
    let is_base32 = is("secretEncoding", json!("BASE32"));
    let text = if is_base32 {
        value.to_owned()
    } else {
        to_base32(&SecretBytes::new(value))
    };
    from_base32(&text).map(|_| text)
}

/// A password in PHC form.
pub(super) fn phc(credential: &Row<'_>) -> Option<String> {
    let secret = part(credential, "secretData")?;
    let how = part(credential, "credentialData")?;
    let encoded = |name: &str| Some(secret.get(name)?.as_str()?.trim_end_matches('=').to_owned());
    let salt = encoded("salt")?;
    let key = encoded("value")?;
    let rounds = how.get("hashIterations")?.as_u64()?;
    let algorithm = how.get("algorithm")?.as_str()?;
    if algorithm == "argon2" {
        let parameter = |name: &str| how.get("additionalParameters")?.get(name)?.get(0)?.as_str();
        let version = if parameter("version")? == "1.0" {
            16
        } else {
            19
        };
        let kind = parameter("type")?;
        let memory = parameter("memory")?;
        let lanes = parameter("parallelism")?;
        return Some(format!(
            "$argon2{kind}$v={version}$m={memory},t={rounds},p={lanes}${salt}${key}"
        ));
    }
    // Four characters are three bytes.
    let text = format!(
        "${algorithm}$i={rounds},l={}${salt}${key}",
        key.len() * 3 / 4
    );
    Pbkdf2Hash::parse(&text).is_some().then_some(text)
}
