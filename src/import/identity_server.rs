//! IdentityServer4, Duende IdentityServer and ASP.NET Core Identity: rows of their tables as Entity
//! Framework names them, or the section of an `appsettings.json`.

pub mod people;

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::known::note_unread;
use super::{Import, ImportedObject, Moving, Read, Row, table};
use gatepost_protocol::keys::key_set::{self, PRIVATE_MEMBERS};
use gatepost_protocol::registration::client::LONGEST_LIFETIME;
use gatepost_protocol::registration::client_rules::jwks;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::registration::names::{STANDARD_SCOPES, own_claim, token_name};
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::token::claims::built_in_scopes;
use gatepost_protocol::words::identifiers::in_text;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::scope::OFFLINE_ACCESS;
use gatepost_protocol::words::session::LOCAL;

/// A table, the columns that name its rows from other tables, and those tables. Some had other
/// names before 4.0, when a scope belonged to one resource.
#[rustfmt::skip]
const CHILDREN: [(&str, &str, &str); 6] = [
    ("Clients", "ClientId",
        "ClientGrantTypes ClientRedirectUris ClientPostLogoutRedirectUris ClientScopes \
         ClientSecrets ClientClaims ClientCorsOrigins ClientIdPRestrictions ClientProperties"),
    ("ApiScopes", "ScopeId ApiScopeId", "ApiScopeClaims ApiScopeProperties"),
    ("ApiResources", "ApiResourceId",
        "ApiResourceScopes ApiResourceClaims ApiClaims ApiResourceSecrets ApiSecrets ApiScopes \
         ApiResourceProperties ApiProperties"),
    ("IdentityResources", "IdentityResourceId",
        "IdentityResourceClaims IdentityClaims IdentityResourceProperties IdentityProperties"),
    ("AspNetUsers", "UserId",
        "AspNetUserRoles AspNetUserClaims AspNetUserLogins AspNetUserTokens AspNetUserPasskeys"),
    ("AspNetRoles", "RoleId", "AspNetRoleClaims"),
];

/// The types of secrets that IdentityServer knows.
const TYPES: &str = "JWK SharedSecret X509CertificateBase64 X509Name X509Thumbprint";
const SUB: &str = "sub";
const NO_CLAIM: &str = "reserved for the token, or no name of a claim";

/// Reads a dump. `issuers` are the issuers of login schemes. `now` decides which lockouts have
/// ended.
pub fn read(mut dump: Value, issuers: BTreeMap<String, String>, now: Instant) -> Read<Import> {
    if let Some(section) = dump.get_mut("IdentityServer").map(Value::take) {
        dump = section;
    }
    let orphans = join(&mut dump)?;
    let dump = Row::of(String::from("dump"), &dump)?;
    let tables = CHILDREN.map(|(table, ..)| table);
    if tables.iter().all(|table| dump.value(table).is_none()) {
        return Err(format!("it has none of {}", tables.join(", ")));
    }
    let mut to = Import {
        issuers,
        ..Import::default()
    };
    for (table, rows) in orphans {
        to.note(
            "dump",
            format!("{table}: rows that belong to no row of the dump are left out: {rows}"),
        );
    }
    // Without their table nobody knows which of the standard scopes there were.
    to.scopes = match dump.value("IdentityResources") {
        Some(_) => [OFFLINE_ACCESS.to_owned()].into(),
        None => STANDARD_SCOPES.map(str::to_owned).into(),
    };
    for row in dump.rows("IdentityProviders")? {
        provider(&row, &mut to)?;
    }
    let clients = dump.rows("Clients")?;
    for row in clients.iter().filter(|row| speaks_openid(row)) {
        to.clients.insert(row.required("ClientId")?);
    }
    catalogue(&dump, &mut to)?;
    let is_old = dump
        .rows("ApiScopes")?
        .iter()
        .any(|scope| scope.value("ApiResourceId").is_some());
    for row in &clients {
        client(row, is_old, &mut to)?;
    }
    let mut roles = BTreeMap::new();
    for row in dump.rows("AspNetRoles")? {
        roles.insert(row.required("Id")?, people::Role::of(&row)?);
    }
    let google = to.issuers.entry(String::from("Google"));
    google.or_insert_with(|| String::from("https://accounts.google.com"));
    for row in dump.rows("AspNetUsers")? {
        people::user(&row, &roles, now, &mut to)?;
    }
    note_unread(
        &dump,
        "dump of IdentityServer keys",
        "",
        &|title, row| title == "client of IdentityServer keys" && !speaks_openid(row),
        &mut to,
    )?;
    Ok(to)
}

/// A provider of Duende. Its properties are JSON in a text.
fn provider(row: &Row<'_>, to: &mut Import) -> Read {
    let of = format!("identity provider {}", row.required("Scheme")?);
    let properties = row.text("Properties")?.unwrap_or_default();
    let mut provider = Moving::new(row, of.clone(), to);
    let Ok(properties @ Value::Object(_)) = serde_json::from_str(&properties) else {
        provider.note("left out: its Properties are no JSON object, so register it by hand");
        return Ok(());
    };
    let properties = Row::of(format!("{}.Properties", row.place), &properties)?;
    provider.copy("identity provider of Duende")?;
    properties.copy("identity provider of Duende", &mut provider.ours)?;
    // What it asks for there where nothing is said. Ours would be more.
    provider.ours.0.entry("scope").or_insert(json!("openid"));
    provider.into_provider();
    let title = "provider properties of Duende keys";
    note_unread(&properties, title, &of, &|_, _| false, to)
}

/// Puts rows into the rows that they belong to, under the name of their table. An `Id` that two
/// rows have is an error, as their children would be mixed. Returns how many rows of each table
/// belong to none.
fn join(dump: &mut Value) -> Read<BTreeMap<&'static str, usize>> {
    let mut orphans = BTreeMap::new();
    for (parents, owners, tables) in CHILDREN {
        let mut ids = BTreeMap::new();
        let mut children = Vec::new();
        let root = Row::of(String::from("dump"), dump)?;
        for (index, row) in root.rows(parents)?.iter().enumerate() {
            if let Some(id) = row.text("Id")?
                && ids.insert(id, index).is_some()
            {
                return Err(format!("{}: has the Id of another row", row.place));
            }
        }
        for table in tables.split(' ') {
            for row in root.rows(table)? {
                match owner(&row, owners)? {
                    Some(id) => match ids.get(&id) {
                        Some(index) => children.push((*index, table, json!(row.members))),
                        None => *orphans.entry(table).or_default() += 1,
                    },
                    None if table == "ApiScopes" => {}
                    None => return Err(format!("{}: has no {owners}", row.place)),
                }
            }
        }
        for (index, table, row) in children {
            let parent = dump.get_mut(parents).and_then(|all| all.get_mut(index));
            if let Some(Value::Object(parent)) = parent
                && let Value::Array(list) = parent.entry(table).or_insert(json!([]))
            {
                list.push(row);
            }
        }
    }
    Ok(orphans)
}

/// The `Id` of the row that it belongs to, in the first of these columns that has one.
fn owner(row: &Row<'_>, columns: &str) -> Read<Option<String>> {
    for column in columns.split(' ') {
        if let Some(id) = row.text(column)? {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Scopes and resources.
fn catalogue(dump: &Row<'_>, to: &mut Import) -> Read {
    let mut behind = BTreeMap::<String, BTreeSet<String>>::new();
    for (kind, table, claims) in [
        (
            ObjectKind::IdentityScope,
            "IdentityResources",
            "UserClaims,IdentityResourceClaims,IdentityClaims",
        ),
        (
            ObjectKind::Resource,
            "ApiResources",
            "UserClaims,ApiResourceClaims,ApiClaims",
        ),
        (
            ObjectKind::ResourceScope,
            "ApiScopes",
            "UserClaims,ApiScopeClaims",
        ),
    ] {
        let is_resource = kind == ObjectKind::Resource;
        for row in dump.rows(table)? {
            let name = row.required("Name")?;
            let mut entry = Moving::new(&row, name.clone(), to);
            let claims = entry.released(&row.texts(claims, "Type")?, is_resource);
            // Ours are told in ten languages.
            let is_built_in = !is_resource && STANDARD_SCOPES.contains(&name.as_str());
            let is_client = is_resource && entry.to.clients.contains(&name);
            let is_gone = !row.flag_or("Enabled", true)?;
            let mut gives = claims.clone();
            gives.remove(SUB);
            let is_same = built_in_scopes()
                .into_iter()
                .any(|ours| ours.name == name && BTreeSet::from_iter(ours.claims) == gives);
            let built_in =
                format!("is built in, with the claims of the standard; there: {claims:?}");
            entry.note_each(&[
                (is_gone, "left out: disabled there"),
                (
                    is_client && !is_gone,
                    "left out: a client has the name of this resource: register it by another name",
                ),
                (is_built_in && !is_gone && !is_same, &built_in),
            ]);
            if is_built_in && !is_gone && kind == ObjectKind::IdentityScope {
                entry.to.scopes.insert(name.clone());
            }
            if is_gone || is_built_in || is_client {
                continue;
            }
            if let Err(rule) = token_name(&name) {
                entry.note(format!("left out: its name {rule}"));
                continue;
            }
            entry.copy(if is_resource {
                "resource of IdentityServer"
            } else {
                "scope of IdentityServer"
            })?;
            entry.set("claims", json!(claims));
            if is_resource {
                entry.secrets("ApiSecrets,ApiResourceSecrets")?;
                if entry.ours.0.remove("jwks").is_some() {
                    entry.note("a key is left out: a resource proves itself by a secret here");
                }
                let scopes = row.texts("Scopes,ApiResourceScopes", "Scope")?.into_iter();
                for scope in scopes.chain(row.texts("ApiScopes", "Name")?) {
                    behind.entry(scope).or_default().insert(name.clone());
                }
            } else {
                let resources = behind.remove(&name).unwrap_or_default();
                entry.set("resources", json!(resources));
                entry.to.scopes.insert(name);
            }
            entry.push(kind);
        }
    }
    for (scope, resources) in behind {
        for name in resources {
            to.note(
                &name,
                format!("left out of its scopes: {scope}: no enabled scope has that name"),
            );
        }
    }
    Ok(())
}

impl Moving<'_> {
    /// The claims of a scope or resource that can be claims of a user here.
    fn released(&mut self, theirs: &[String], by_resource: bool) -> BTreeSet<String> {
        let mut claims: BTreeSet<String> = theirs.iter().map(|claim| claim_name(claim)).collect();
        claims.retain(|claim| {
            let is_possible = own_claim(claim).is_ok();
            if !is_possible && claim != SUB {
                self.note(format!("left out of claims: {claim}: {NO_CLAIM}"));
            }
            // Every token has it.
            is_possible || claim == SUB && !by_resource
        });
        claims
    }

    /// Secrets and keys. The digests of secrets are made as ours are.
    fn secrets(&mut self, member: &str) -> Read {
        let mut secrets = Vec::new();
        let mut keys = Vec::new();
        for secret in self.rows(member)? {
            let kind = secret.text("Type")?;
            let value = secret.text("Value")?.unwrap_or_default();
            let kind = kind.as_deref().unwrap_or("SharedSecret");
            let end = secret.text("Expiration")?;
            let expires_at = end.as_deref().and_then(instant).map(timestamp::format);
            if end.is_some() && expires_at.is_none() {
                self.note("a secret is left out: its Expiration is no time");
                continue;
            }
            match (
                kind,
                BASE64_STANDARD
                    .decode(&value)
                    .map_or(0, |digest| digest.len()),
                serde_json::from_str(&value),
            ) {
                ("SharedSecret", length @ (32 | 64), _) => {
                    let digest = if length == 32 { "sha256" } else { "sha512" };
                    secrets.push(
                        ImportedObject::from([
                            (digest, json!(value)),
                            ("expires_at", json!(expires_at)),
                        ])
                        .0,
                    );
                }
                ("JWK", ..) if expires_at.is_some() => {
                    self.note("a key is left out: it had an Expiration, and keys have none here")
                }
                ("JWK", _, Ok(key)) => self.add_key(key, &mut keys),
                _ => {
                    let known = TYPES.split(' ').find(|known| *known == kind);
                    let called = known.unwrap_or("of another type");
                    self.note(format!(
                        "a secret is left out: {called}, and no SHA-256 or SHA-512 in base64"
                    ));
                }
            }
        }
        self.set("secrets", secrets);
        self.set_keys(keys);
        Ok(())
    }

    pub fn set_keys(&mut self, keys: Vec<Value>) {
        self.set("jwks", (!keys.is_empty()).then(|| json!({ "keys": keys })));
    }

    /// Adds the public part of a key, if a client can have it.
    pub fn add_key(&mut self, mut key: Value, keys: &mut Vec<Value>) {
        if let Some(members) = key.as_object_mut() {
            let before = members.len();
            members.retain(|name, _| !PRIVATE_MEMBERS.contains(&name.as_str()));
            if members.len() < before {
                self.note("a key was private there: its public part alone is registered");
            }
        }
        let can_sign = matches!(key_set::read(&key), Ok(Some(_)));
        let mut all = keys.clone();
        all.push(key);
        let mut problems = Vec::new();
        jwks(&json!({ "keys": all }), "", &mut problems);
        match problems.first() {
            None if can_sign => *keys = all,
            None => self.note("a key is left out: it is for nothing that signs here"),
            Some(problem) => self.note(format!("a key is left out: it {}", problem.rule)),
        }
    }

    /// The providers that the client allows. Without any it would allow all. So a client that
    /// allows only external ones gets a provider that nobody registers, and `plan` refuses it.
    fn providers(&mut self, mut named: Vec<String>, is_external: bool) -> Vec<String> {
        match (named.is_empty(), is_external) {
            (true, true) if self.to.issuers.is_empty() => {
                self.note("EnableLocalLogin is false: list its providers in identity_providers");
                named.push(String::from("external"));
            }
            (true, true) => {
                self.note(
                    "EnableLocalLogin is false, so identity_providers has all of \
                     IdentityProviders and --issuer: leave out those that it is not meant for",
                );
                named.extend(self.to.issuers.keys().cloned());
            }
            (false, false) => named.push(LOCAL.to_owned()),
            (true, false) | (false, true) => {}
        }
        named
    }

    /// Claims of the client itself, under the names that its tokens have there.
    fn client_claims(&mut self) -> Read {
        let unsaid = if self.members.contains_key("ClientClaimsPrefix") {
            ""
        } else {
            "client_"
        };
        let prefix = self.text("ClientClaimsPrefix")?;
        let prefix = prefix.unwrap_or_else(|| unsaid.to_owned());
        let mut claims = ImportedObject::default();
        for claim in self.rows("Claims,ClientClaims")? {
            let name = format!("{prefix}{}", claim.required("Type")?);
            if own_claim(&name).is_err() {
                self.note(format!("left out of claims: {name}: {NO_CLAIM}"));
                continue;
            }
            claims.add_claim(&name, claim.text("Value")?.unwrap_or_default());
        }
        if !claims.0.is_empty() {
            self.note(
                "set, as there: its claims begin with ClientClaimsPrefix. All its access tokens \
                 have them here",
            );
        }
        self.set("claims", claims.0);
        Ok(())
    }

    /// How long refresh tokens live, of a client that has some. There, 0 is without end.
    fn refresh_lifetimes(&mut self, offline: bool) -> Read {
        let unsaid = if self.value("AbsoluteRefreshTokenLifetime").is_some() {
            LONGEST_LIFETIME
        } else {
            2_592_000
        };
        let whole = self
            .seconds("AbsoluteRefreshTokenLifetime")?
            .unwrap_or(unsaid);
        let idle = self
            .seconds("SlidingRefreshTokenLifetime")?
            .unwrap_or(1_296_000);
        let is_absolute = self.second("RefreshTokenExpiration", ["Sliding", "Absolute"], true)?;
        let idle = if is_absolute { whole } else { idle.min(whole) };
        self.set("refresh_token_lifetime", offline.then_some(whole));
        self.set("refresh_token_idle_lifetime", offline.then_some(idle));
        Ok(())
    }
}

fn client(row: &Row<'_>, is_old: bool, to: &mut Import) -> Read {
    let of = format!("client {}", in_text(&row.required("ClientId")?));
    let mut client = Moving::new(row, of, to);
    if !speaks_openid(row) {
        client.note("left out: it speaks WS-Federation or another protocol (ProtocolType)");
        return Ok(());
    }
    client.copy("client of IdentityServer")?;
    client.secrets("ClientSecrets")?;
    let public = !row.flag_or("RequireClientSecret", true)?;
    let offline = row.flag("AllowOfflineAccess")?;
    client.set("token_endpoint_auth_method", public.then_some("none"));
    let mut scope = client.ours.take("scope");
    scope.retain(|name| name != OFFLINE_ACCESS);
    scope.extend(offline.then(|| OFFLINE_ACCESS.to_owned()));
    client.set("scope", scope);
    let is_external = !row.flag_or("EnableLocalLogin", true)?;
    let named = client.ours.take("identity_providers");
    let providers = client.providers(named, is_external);
    client.set("identity_providers", providers);
    let grants = row.texts("AllowedGrantTypes,ClientGrantTypes", "GrantType")?;
    let of_itself = grants.iter().all(|name| name == "client_credentials");
    if of_itself || row.flag("AlwaysSendClientClaims")? {
        client.client_claims()?;
    } else if !row.rows("Claims,ClientClaims")?.is_empty() {
        client.note(
            "its claims are left out, as the tokens of its users would have them, too: register a \
             client of its own for the service",
        );
    }
    let has_own = !public && grants.iter().any(|name| name == "client_credentials");
    client.set("client_credentials_sub", has_own.then_some(false));
    client.set("access_token_typ", is_old.then_some("JWT"));
    let is_reference = row.second("AccessTokenType", ["Jwt", "Reference"], false)?;
    client.set("access_token_type", is_reference.then_some("reference"));
    // Their default is five minutes, ours one.
    let code = row.seconds("AuthorizationCodeLifetime")?;
    let code = code.filter(|seconds| *seconds != 300);
    client.set(
        "authorization_code_lifetime",
        code.map(|seconds| seconds.min(600)),
    );
    let rotates = row.second("RefreshTokenUsage", ["ReUse", "OneTimeOnly"], true)?;
    let reuses = offline && !rotates && !public;
    client.set("refresh_token_usage", reuses.then_some("reuse"));
    client.refresh_lifetimes(offline)?;
    let notes = [
        (
            true,
            "set GATEPOST_SCOPE_CLAIM=array: there, scope in a JWT access token is an array",
        ),
        (
            has_own,
            "set, as its own tokens have no sub there: client_credentials_sub false",
        ),
        (
            offline && public && !rotates,
            "its refresh tokens rotate here: a public client's must",
        ),
        (
            is_old,
            "set, as before 4.0: access_token_typ JWT (3.x has at+jwt: take it out there)",
        ),
    ];
    client.note_each(&notes);
    if row.flag("RequireRequestObject")? {
        client.note("RequireRequestObject is not taken over");
    }
    client.into_client();
    Ok(())
}

fn speaks_openid(row: &Row<'_>) -> bool {
    let protocol = row.text("ProtocolType").ok().flatten();
    matches!(protocol.as_deref(), None | Some("oidc"))
}

/// What OpenID Connect calls a claim that WS-Federation calls by a URI.
fn claim_name(name: &str) -> String {
    let is_uri = name.starts_with("http://schemas.xmlsoap.org/")
        || name.starts_with("http://schemas.microsoft.com/");
    for [claim, last, _] in table("last segments of claims of WS-Federation") {
        if is_uri && name.rsplit('/').next() == Some(last) {
            return claim.to_owned();
        }
    }
    name.to_owned()
}

/// A time as their databases write it. Without a zone it is UTC.
fn instant(text: &str) -> Option<Instant> {
    timestamp::parse(text).or_else(|| timestamp::parse(&format!("{text}Z")))
}
