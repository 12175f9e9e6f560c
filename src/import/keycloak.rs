//! Keycloak: the export of a realm, with its users (`kc.sh export --users same_file`).

pub mod attributes;
mod flows;
mod mappers;
pub mod people;
mod providers;
mod roles;
mod scopes;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use self::roles::{ClientRoles, Roles};
use super::known::{is_known, note_unread};
use super::{
    DEVICE, IN_SESSION, Import, ImportedObject, Moving, Read, Row, is_among, is_clear, table,
};
use gatepost_protocol::registration::client::LONGEST_LIFETIME;
use gatepost_protocol::registration::names::{self, STANDARD_SCOPES};
use gatepost_protocol::words::identifiers::in_text;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::scope::OFFLINE_ACCESS;
use gatepost_registration::client_secret::check_own;
use gatepost_registration::hash_form;

/// In every realm.
const ITS_CLIENTS: &str =
    "account account-console admin-cli broker realm-management security-admin-console";
const ITS_SCOPES: &str = "\
    AuthnContextClassRef acr basic microprofile-jwt organization role_list saml_organization \
    service_account web-origins";
const ROLES: &str = "roles";
const ROLE: &str = "role";
const GROUPS: &str = "groups";
/// Seconds that a realm has where it says nothing, or 0: five minutes, 60 days and 30 days.
const KEYCLOAK_ACCESS_TOKEN: u64 = 300;
const KEYCLOAK_OFFLINE_LIFESPAN: u64 = 5_184_000;
const KEYCLOAK_OFFLINE_IDLE: u64 = 2_592_000;
/// Ten hours, and half an hour.
const KEYCLOAK_SESSION_LIFESPAN: u64 = 36_000;
const KEYCLOAK_SESSION_IDLE: u64 = 1_800;

fn is_openid(row: &Row<'_>) -> Read<bool> {
    let protocol = row.text("protocol")?;
    Ok(matches!(protocol.as_deref(), None | Some("openid-connect")))
}

/// Reads a realm's export.
pub fn read(realm: &Value) -> Read<Import> {
    if realm.is_array() {
        return Err(String::from(
            "it is an array, as of several realms: give one of them, as by \
             jq '.[0]' FILE | gatepost import keycloak -",
        ));
    }
    let realm = Row::of(String::from("realm"), realm)?;
    realm.required("realm")?;
    let mut to = Import {
        scopes: STANDARD_SCOPES
            .into_iter()
            .chain([ROLES])
            .map(str::to_owned)
            .collect(),
        ..Import::default()
    };
    providers::read(&realm, &mut to)?;
    flows::note_factors(&realm, &mut to)?;
    to.clients.extend(realm.texts("clients", "clientId")?);
    scopes::read(&realm, &mut to)?;
    let mut roles = Roles::read(&realm)?;
    let users = realm.rows("users")?;
    let (accounts, people): (Vec<_>, Vec<_>) = users
        .iter()
        .partition(|row| row.value("serviceAccountClientId").is_some());
    roles.find_for_some(&people)?;
    let mut account_of = BTreeMap::new();
    for account in accounts {
        account_of.insert(account.required("serviceAccountClientId")?, account);
    }
    for row in realm.rows("clients")? {
        let client_id = row.required("clientId")?;
        let of = format!("client {}", in_text(&client_id));
        match (row.flag("bearerOnly")?, is_openid(&row)?) {
            _ if is_among(ITS_CLIENTS, &client_id) => {
                to.note(&of, "left out: every realm of Keycloak has it")
            }
            (false, true) => {
                if let Err(rule) = names::client_id(&client_id) {
                    to.note(&of, format!("left out: client_id {rule}"));
                    continue;
                }
                let account = account_of.remove(&client_id);
                note_account(&client_id, account, &mut to)?;
                let held = roles.of_client(&row, account, &to.role_scopes)?;
                client(&realm, &row, held, &mut to)?;
            }
            (true, _) => to.note(&of, "left out: it is an API, so register a resource"),
            (_, false) => to.note(&of, "left out: it speaks SAML"),
        }
    }
    let mut of_people = people::Realm {
        roles: &mut roles,
        confirms_addresses: realm.flag("verifyEmail")?,
    };
    for row in people {
        people::user(row, &mut of_people, &mut to)?;
    }
    to.signs_in_by_address = realm.flag_or("loginWithEmailAllowed", true)?;
    providers::note_unlinked(&mut to);
    roles.note_given(&mut to);
    note_unread(&realm, "realm of Keycloak keys", "", &is_left_out, &mut to)?;
    Ok(to)
}

/// Notes what tokens of the client said of its service account, beside its roles.
fn note_account(client_id: &str, account: Option<&Row<'_>>, to: &mut Import) -> Read {
    let Some(account) = account else {
        return Ok(());
    };
    let has_attributes = match account.nested("attributes")? {
        Some(attributes) => !attributes.members.is_empty(),
        None => false,
    };
    if has_attributes || !account.texts("groups", "")?.is_empty() {
        to.note(
            &format!("client {}", in_text(client_id)),
            "its service account has groups or attributes, which its own tokens do not name here. \
             Are there mappers for them, give the client the same as its claims: those are in all \
             its access tokens",
        );
    }
    Ok(())
}

/// Whether there is a line for the whole object, or nothing to say of it.
fn is_left_out(title: &str, row: &Row<'_>) -> bool {
    let text = |key: &str| row.text(key).ok().flatten().unwrap_or_default();
    let is_saml = text("protocol") == "saml";
    match title {
        "client of Keycloak keys" => {
            is_saml
                || is_among(ITS_CLIENTS, &text("clientId"))
                || row.flag("bearerOnly") == Ok(true)
        }
        "scope of Keycloak keys" => is_saml || is_among(ITS_SCOPES, &text("name")),
        "user of Keycloak keys" => row.value("serviceAccountClientId").is_some(),
        "provider of Keycloak keys" => providers::signs_in(row) == Ok(false),
        // Those that every realm has are described by a placeholder.
        "role of Keycloak keys" => text("description").starts_with("${"),
        _ => false,
    }
}

/// Reads a client of the realm, with the roles that it has to do with.
fn client(realm: &Row<'_>, row: &Row<'_>, held: ClientRoles, to: &mut Import) -> Read {
    let client_id = row.required("clientId")?;
    let mut members = row.members.clone();
    // An attribute that is called like a member of the client is not that member.
    if let Some(attributes) = row.nested("attributes")? {
        let mut attributes = attributes.members.clone();
        attributes.retain(|key, _| !is_known("client of Keycloak keys", key));
        members.extend(attributes);
    }
    let row = Row {
        place: format!("{} ({client_id})", row.place),
        members: &members,
    };
    let of = format!("client {}", in_text(&client_id));
    let mut client = Moving::new(&row, of, to);
    let of_realm = realm.seconds("accessTokenLifespan")?;
    client.set(
        "access_token_lifetime",
        of_realm.unwrap_or(KEYCLOAK_ACCESS_TOKEN),
    );
    let grants = grant_types(&row)?;
    if grants.contains(&DEVICE) {
        realm.copy("devices of a realm of Keycloak", &mut client.ours)?;
    }
    realm.copy("signatures of a realm of Keycloak", &mut client.ours)?;
    client.copy("client of Keycloak")?;
    client.addresses()?;
    let is_for_people = grants.iter().any(|name| *name != "client_credentials");
    client.set("grant_types", grants.as_slice());
    let implicit = row.flag("implicitFlowEnabled")?;
    client.set("allow_access_tokens_via_browser", implicit.then_some(true));
    if implicit {
        client.note(
            "access_token_lifetime holds for all its flows: by the implicit flow tokens lived for \
             accessTokenLifespanForImplicitFlow there, which is 15 minutes where nobody set it",
        );
    }
    let mut mapped = client.mapped()?;
    client.own_claims(&held.own, is_for_people, &mut mapped.fixed);
    client.set("claims", std::mem::take(&mut mapped.fixed.0));
    let mut scopes = client.scopes(&client_id, mapped)?;
    for (name, roles) in &held.for_some {
        let is_its = !is_for_people && held.own.iter().any(|role| roles.contains(role));
        if !is_its && scopes.remove(name) {
            client.note_for_some(name, roles);
        }
    }
    let has_default = !scopes.without_asking.is_empty();
    client.note_unasked(&grants, has_default)?;
    if is_for_people {
        if has_default {
            client.set("default_scope", joined(" ", &scopes.without_asking));
        }
        client.set("always_include_user_claims_in_id_token", true);
        client.note_roles(&scopes.all);
        client.lifetimes(realm, &scopes.all)?;
        client.refreshes_in_session(realm, &grants, &scopes.all)?;
    }
    client.tokens(&scopes.all)?;
    client.set("scope", scopes.in_order(realm)?);
    let public = row.flag("publicClient")?;
    client.set("token_endpoint_auth_method", public.then_some("none"));
    client.pkce()?;
    client.set("secrets", secrets(&row)?);
    if row.text("clientAuthenticatorType")?.as_deref() == Some("client-jwt") {
        client.keys()?;
    }
    client.into_client();
    Ok(())
}

impl Moving<'_> {
    /// The method of PKCE that it must use. An empty one requires no PKCE there.
    fn pkce(&mut self) -> Read {
        let method = self.text("pkce.code.challenge.method")?;
        self.set("require_pkce", method.is_some());
        if method.as_deref() == Some("plain") {
            self.set("allow_plain_pkce", true);
            self.note(
                "set, as there: allow_plain_pkce. Whoever reads a request with plain knows its \
                 verifier: let the client use S256, then remove allow_plain_pkce",
            );
        }
        Ok(())
    }

    /// The keys that it signs its assertions with, or where they are.
    fn keys(&mut self) -> Read {
        if self.flag("use.jwks.url")? {
            let uri = self.text("jwks.url")?;
            match uri.filter(|uri| uri.starts_with("https://")) {
                Some(uri) => self.set("jwks_uri", uri),
                None => self.note("jwks.url is left out: it must be https"),
            }
        } else if self.flag("use.jwks.string")? {
            let text = self.text("jwks.string")?.unwrap_or_default();
            let theirs: Value = serde_json::from_str(&text).unwrap_or_default();
            let mut keys = Vec::new();
            for key in theirs.items("keys") {
                self.add_key(key.clone(), &mut keys);
            }
            self.set_keys(keys);
        }
        Ok(())
    }

    /// What a request gets that does not come by the authorization endpoint.
    fn note_unasked(&mut self, grants: &[&str], has_default: bool) -> Read {
        let has = |grant: &str| grants.contains(&grant);
        let has_optional = !self.texts("optionalClientScopes", "")?.is_empty();
        let by_itself = has("password") || has("client_credentials") || has(DEVICE);
        let notes = [
            (
                has("password") && has_default,
                "the grant password gives the scopes that the request names, without \
                 default_scope: let it name all that it needs",
            ),
            (
                has("password"),
                "the grant password refuses people who have a second factor",
            ),
            (
                by_itself && has_optional,
                "a request to the token or device endpoint that names no scope gets all of the \
                 client's scopes here, the optional ones, too: let it name those that it needs",
            ),
        ];
        self.note_each(&notes);
        Ok(())
    }

    /// What tokens say there of roles, and here.
    fn note_roles(&mut self, scope: &BTreeSet<String>) {
        self.note(
            "set, as there: ID tokens have the user's claims \
             (always_include_user_claims_in_id_token)",
        );
        if scope.contains(ROLES) {
            self.note(
                "roles are the claim role (in UserInfo and ID tokens, with groups), and not \
                 realm_access and resource_access of access tokens: an API that reads roles needs \
                 a resource scope with the claim role",
            );
        }
    }

    /// Roles of its service account. Every access token of a client has its fixed claims. So a
    /// client that also signs people in does not get the roles: its users would have them.
    fn own_claims(
        &mut self,
        own_roles: &[String],
        is_for_people: bool,
        fixed: &mut ImportedObject,
    ) {
        if own_roles.is_empty() {
            return;
        }
        if is_for_people {
            let roles = own_roles.join(", ");
            self.note(format!(
                "its service account had these roles, which are left out, as the tokens of its \
                 users would have them, too: {roles}. Register a client of its own for the \
                 service, with the claim role"
            ));
        } else if fixed.has(ROLE) {
            self.note(
                "the roles of its service account are left out: a mapper gives its tokens the \
                 claim role",
            );
        } else {
            fixed.set(ROLE, own_roles);
            self.note("set: the roles of its service account are the claim role of its tokens");
        }
    }

    /// How long ID tokens and refresh tokens of its users live. What the client says of itself goes
    /// before what the realm says of its clients and of all sessions.
    fn lifetimes(&mut self, realm: &Row<'_>, scope: &BTreeSet<String>) -> Read {
        // There an ID token expires with the access token beside it.
        let of_access_token = self.ours.0.get("access_token_lifetime").cloned();
        self.set("id_token_lifetime", of_access_token);
        if !scope.contains(OFFLINE_ACCESS) {
            return Ok(());
        }
        let whole = offline_lifespan(realm, self.row)?;
        if whole.is_none() {
            self.note(
                "set: refresh_token_lifetime is ten years, which is the longest here. There its \
                 offline sessions ended only when they were not used",
            );
        }
        let whole = whole.unwrap_or(LONGEST_LIFETIME);
        let own = "client.offline.session.idle.timeout";
        let of_realm = [
            "clientOfflineSessionIdleTimeout",
            "offlineSessionIdleTimeout",
        ];
        let idle = self.first_seconds(own, realm, of_realm)?;
        self.set_refresh_lifetimes(whole, idle.unwrap_or(KEYCLOAK_OFFLINE_IDLE));
        Ok(())
    }

    /// What the client says of itself, or else the realm of its clients, or of all sessions.
    fn first_seconds(&self, own: &str, realm: &Row<'_>, of_realm: [&str; 2]) -> Read<Option<u64>> {
        let mut found = self.seconds(own)?;
        for key in of_realm {
            found = found.or(realm.seconds(key)?);
        }
        Ok(found)
    }

    fn set_refresh_lifetimes(&mut self, whole: u64, idle: u64) {
        self.set("refresh_token_lifetime", whole);
        self.set("refresh_token_idle_lifetime", idle.min(whole));
    }

    /// There each sign-in brings a refresh token, which lives as the session does. A client that
    /// has `offline_access`, too, has the lifetimes of that.
    fn refreshes_in_session(
        &mut self,
        realm: &Row<'_>,
        grants: &[&str],
        scope: &BTreeSet<String>,
    ) -> Read {
        let has_scripts = self.flag("publicClient")? && !self.texts("webOrigins", "")?.is_empty();
        if !grants.contains(&"authorization_code") || !self.flag_or("use.refresh.tokens", true)? {
            return Ok(());
        }
        if has_scripts {
            self.note(
                "refresh tokens without offline_access are left out: keycloak-js reads them as \
                 JWTs, and throws at others. Does it use another library, set \
                 refresh_token_without_offline_access",
            );
            return Ok(());
        }
        self.set(IN_SESSION, true);
        if scope.contains(OFFLINE_ACCESS) {
            return Ok(());
        }
        let of_session = "ssoSessionMaxLifespan";
        let most = realm
            .seconds(of_session)?
            .unwrap_or(KEYCLOAK_SESSION_LIFESPAN);
        let own = "client.session.max.lifespan";
        let whole = self.first_seconds(own, realm, ["clientSessionMaxLifespan", of_session])?;
        let own = "client.session.idle.timeout";
        let of_realm = ["clientSessionIdleTimeout", "ssoSessionIdleTimeout"];
        let idle = self.first_seconds(own, realm, of_realm)?;
        self.set_refresh_lifetimes(
            whole.unwrap_or(most).min(most),
            idle.unwrap_or(KEYCLOAK_SESSION_IDLE),
        );
        Ok(())
    }

    /// How its tokens are made.
    fn tokens(&mut self, scope: &BTreeSet<String>) -> Read {
        let is_typed = self.flag("access.token.header.type.rfc9068")?;
        let is_endless = self
            .text("access.token.lifespan")?
            .is_some_and(|seconds| seconds.starts_with('-'));
        let notes = [
            (
                is_endless,
                "its access tokens had no lifetime of their own: they have the realm's here",
            ),
            (!is_typed, "set, as there: access_token_typ JWT"),
            (
                true,
                "tokens have no azp: access tokens have client_id, and aud of an ID token is the \
                 client",
            ),
            (
                self.flag("serviceAccountsEnabled")?,
                "its own tokens have its client_id as sub, and not the id of its service account",
            ),
            (
                scope.contains(OFFLINE_ACCESS) && !self.ours.has(IN_SESSION),
                "refresh tokens are for requests whose scope has offline_access",
            ),
        ];
        self.note_each(&notes);
        self.set("access_token_typ", (!is_typed).then_some("JWT"));
        Ok(())
    }

    /// Redirect URIs and origins. Relative ones lie below the root.
    fn addresses(&mut self) -> Read {
        let root = self.text("rootUrl")?.unwrap_or_default();
        let uris = self.ours.take("redirect_uris");
        let uris: Vec<String> = uris.iter().map(|uri| below(&root, uri)).collect();
        if !self.flag("publicClient")? {
            self.note_any_port(&uris);
        }
        let after = after_logout(self.row, &root, &uris)?;
        self.set("redirect_uris", uris);
        self.set("post_logout_redirect_uris", after);
        let is_told = self.flag("frontchannelLogout")?;
        if !is_told && self.ours.0.remove("frontchannel_logout_uri").is_some() {
            self.note(
                "frontchannel.logout.url is left out, as frontchannelLogout is false: register \
                 frontchannel_logout_uri",
            );
        }
        self.origins();
        Ok(())
    }

    fn note_any_port(&mut self, redirect_uris: &[String]) {
        for (index, uri) in redirect_uris.iter().enumerate() {
            let path = uri.strip_prefix("http://localhost");
            if path.is_some_and(|path| path.is_empty() || path.starts_with('/')) {
                self.note(format!(
                    "number {} of redirect_uris is on localhost without a port, so any port fit \
                     there. Here that is so for public clients alone: register http://127.0.0.1, \
                     too, which any port fits, or name the port",
                    index + 1
                ));
            }
        }
    }

    fn origins(&mut self) {
        let mut origins = self.ours.take("allowed_cors_origins");
        for origin in &mut origins {
            // Browsers send an origin without it.
            if origin.ends_with('/') {
                origin.pop();
            }
        }
        if origins.iter().any(|origin| origin == "*") {
            self.note(
                "webOrigins * is left out: list the origins of its pages in allowed_cors_origins. \
                 Those of its redirect URIs are allowed without that",
            );
        }
        origins.retain(|origin| !matches!(origin.as_str(), "+" | "*"));
        self.set("allowed_cors_origins", origins);
    }
}

/// The secret of a client that proves itself by it. Clients with another authenticator have one
/// there, too, which proves nothing.
fn secrets(row: &Row<'_>) -> Read<Option<Value>> {
    let authenticator = row.text("clientAuthenticatorType")?;
    if let Some(secret) = row.text("secret")?
        && matches!(authenticator.as_deref(), None | Some("client-secret"))
        && is_clear(&secret)
        && check_own(&secret).is_ok()
        && hash_form::name(&secret).is_none()
    {
        return Ok(Some(json!([{ "value": secret }])));
    }
    Ok(None)
}

/// How long an offline session lives in all. Absent where it ends only when it is not used.
fn offline_lifespan(realm: &Row<'_>, row: &Row<'_>) -> Read<Option<u64>> {
    let own = row.seconds("client.offline.session.max.lifespan")?;
    if !realm.flag("offlineSessionMaxLifespanEnabled")? {
        return Ok(own);
    }
    let of_clients = realm.seconds("clientOfflineSessionMaxLifespan")?;
    let most = realm
        .seconds("offlineSessionMaxLifespan")?
        .unwrap_or(KEYCLOAK_OFFLINE_LIFESPAN);
    // The client's session ends with the session of the user that it belongs to.
    Ok(Some(own.or(of_clients).unwrap_or(most).min(most)))
}

fn below(root: &str, uri: &str) -> String {
    if uri.starts_with('/') {
        format!("{}{uri}", root.trim_end_matches('/'))
    } else {
        uri.to_owned()
    }
}

/// A client that names none has its redirect URIs there, as by `+`. Only `-` is none.
fn after_logout(row: &Row<'_>, root: &str, redirect_uris: &[String]) -> Read<Vec<String>> {
    let Some(named) = row
        .text("post.logout.redirect.uris")?
        .filter(|named| named != "+")
    else {
        return Ok(redirect_uris.to_vec());
    };
    let uris = named.split("##").filter(|uri| !matches!(*uri, "" | "-"));
    Ok(uris.map(|uri| below(root, uri)).collect())
}

fn grant_types(row: &Row<'_>) -> Read<Vec<&'static str>> {
    let mut grants = Vec::new();
    for [grant, theirs, unsaid] in table("flows of Keycloak") {
        if row.flag_or(theirs, unsaid == "flag=true")? {
            grants.push(grant);
        }
    }
    if grants.starts_with(&["authorization_code", "implicit"]) {
        grants.push("hybrid");
    }
    Ok(grants)
}
