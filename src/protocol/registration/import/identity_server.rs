//! IdentityServer4, Duende IdentityServer and ASP.NET Core Identity: rows of their tables as Entity
//! Framework names them, or the section of an `appsettings.json`.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD};
use serde_json::{Value, json};

use super::{Import, ImportedObject, Row, table};
use crate::protocol::login::pbkdf2::Pbkdf2Hash;
use crate::protocol::registration::client::LONGEST_LIFETIME;
use crate::protocol::registration::names::BUILT_IN_SCOPES;
use crate::protocol::registration::timestamp;
use crate::protocol::registration::user::is_possible_claim;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::scope::OFFLINE_ACCESS;
use crate::protocol::words::session::LOCAL;

/// Tables whose rows belong to a row of another: that one, the column that says to which, and they.
/// Some had other names before 4.0, when a scope was one resource's.
#[rustfmt::skip]
const CHILDREN: [(&str, &str, &str); 5] = [
    ("Clients", "ClientId", "ClientGrantTypes ClientRedirectUris ClientPostLogoutRedirectUris ClientScopes ClientSecrets ClientClaims \
                             ClientCorsOrigins ClientIdPRestrictions"),
    ("ApiScopes", "ScopeId ApiScopeId", "ApiScopeClaims"),
    ("ApiResources", "ApiResourceId", "ApiResourceScopes ApiResourceClaims ApiClaims ApiResourceSecrets ApiSecrets ApiScopes"),
    ("IdentityResources", "IdentityResourceId", "IdentityResourceClaims IdentityClaims"),
    ("AspNetUsers", "UserId", "AspNetUserRoles AspNetUserClaims AspNetUserLogins"),
];

/// Reads a dump. `issuers` are those that login schemes stand for; `now` decides which lockouts
/// have ended.
pub fn read(
    mut dump: Value,
    issuers: BTreeMap<String, String>,
    now: Instant,
) -> Result<Import, String> {
    if let Some(section) = dump.get_mut("IdentityServer").map(Value::take) {
        dump = section;
    }
    join(&mut dump)?;
    let dump = Row::of(String::from("dump"), &dump)?;
    if CHILDREN
        .iter()
        .all(|(table, ..)| dump.value(table).is_none())
    {
        return Err(format!(
            "it has none of {}",
            CHILDREN.map(|(table, ..)| table).join(", ")
        ));
    }
    let mut to = Import {
        issuers,
        scopes: BUILT_IN_SCOPES.map(str::to_owned).into(),
        ..Import::default()
    };
    for row in dump.rows("IdentityProviders")? {
        let properties =
            serde_json::from_str(&row.text("Properties")?.unwrap_or_default()).unwrap_or(json!({}));
        let mut ours = ImportedObject::default();
        row.copy("identity provider of Duende", &mut ours)?;
        Row::of(format!("{}.Properties", row.place), &properties)?
            .copy("identity provider of Duende", &mut ours)?;
        to.provider(ours);
    }
    catalogue(&dump, &mut to)?;
    let is_old = dump
        .rows("ApiScopes")?
        .iter()
        .any(|scope| scope.value("ApiResourceId").is_some());
    dump.rows("Clients")?
        .iter()
        .try_for_each(|row| client(row, is_old, &mut to))?;
    let roles = dump
        .rows("AspNetRoles")?
        .into_iter()
        .map(|role| Ok((role.named("Id")?, role.named("Name")?)));
    let roles: BTreeMap<String, String> = roles.collect::<Result<_, String>>()?;
    dump.rows("AspNetUsers")?
        .iter()
        .try_for_each(|row| user(row, &roles, now, &mut to))?;
    Ok(to)
}

/// Puts rows into those that they belong to, under the name of their table. An `Id` that stands
/// twice would mix two.
fn join(dump: &mut Value) -> Result<(), String> {
    for (parents, owners, tables) in CHILDREN {
        let (mut ids, mut children) = (BTreeMap::new(), Vec::new());
        let root = Row::of(String::from("dump"), dump)?;
        for (index, row) in root.rows(parents)?.iter().enumerate() {
            if row
                .text("Id")?
                .is_some_and(|id| ids.insert(id, index).is_some())
            {
                return Err(format!("{}: has the Id of another row", row.place));
            }
        }
        for table in tables.split(' ') {
            for row in root.rows(table)? {
                match owners
                    .split(' ')
                    .find_map(|owner| row.text(owner).transpose())
                    .transpose()?
                {
                    Some(id) => children.extend(
                        ids.get(&id)
                            .map(|index| (*index, table, json!(row.members))),
                    ),
                    None if table == "ApiScopes" => {}
                    None => return Err(format!("{}: has no {owners}", row.place)),
                }
            }
        }
        for (index, table, row) in children {
            let parent = dump
                .get_mut(parents)
                .and_then(|all| all.get_mut(index))
                .and_then(Value::as_object_mut);
            let list = parent.map(|parent| parent.entry(table).or_insert_with(|| json!([])));
            list.and_then(Value::as_array_mut)
                .into_iter()
                .for_each(|list| list.push(row.clone()));
        }
    }
    Ok(())
}

/// Scopes and resources.
fn catalogue(dump: &Row<'_>, to: &mut Import) -> Result<(), String> {
    let mut behind = BTreeMap::<String, BTreeSet<String>>::new();
    for (list, table, claims) in [
        (
            "identity_scopes",
            "IdentityResources",
            "UserClaims,IdentityResourceClaims,IdentityClaims",
        ),
        (
            "resources",
            "ApiResources",
            "UserClaims,ApiResourceClaims,ApiClaims",
        ),
        ("resource_scopes", "ApiScopes", "UserClaims,ApiScopeClaims"),
    ] {
        for row in dump.rows(table)? {
            let (name, mut entry) = (row.named("Name")?, ImportedObject::default());
            let claims: BTreeSet<String> = row
                .texts(claims, "Type")?
                .iter()
                .map(|claim| claim_name(claim))
                .collect();
            // Ours are told in ten languages.
            let is_built_in = list == "identity_scopes" && BUILT_IN_SCOPES.contains(&name.as_str());
            let is_gone = !row.flag("Enabled", true)?;
            let built_in =
                format!("is built in, with the claims of the standard; there: {claims:?}");
            to.note_each(
                &name,
                &[
                    (is_gone, "left out: disabled there"),
                    (is_built_in && !is_gone, &built_in),
                ],
            );
            if is_gone || is_built_in {
                continue;
            }
            let members = if list == "resources" {
                "resource of IdentityServer"
            } else {
                "scope of IdentityServer"
            };
            row.copy(members, &mut entry)?;
            entry.set("claims", json!(claims));
            if list == "resources" {
                secrets(&row, "ApiSecrets,ApiResourceSecrets", &name, &mut entry, to)?;
                entry.0.remove("jwks");
                let scopes = row.texts("Scopes,ApiResourceScopes", "Scope")?.into_iter();
                for scope in scopes.chain(row.texts("ApiScopes", "Name")?) {
                    behind.entry(scope).or_default().insert(name.clone());
                }
            } else {
                entry.set("resources", json!(behind.remove(&name).unwrap_or_default()));
                to.scopes.insert(name);
            }
            to.push(list, entry);
        }
    }
    Ok(())
}

/// Secrets, whose digests are ours, too; and keys.
fn secrets(
    row: &Row<'_>,
    member: &str,
    of: &str,
    ours: &mut ImportedObject,
    to: &mut Import,
) -> Result<(), String> {
    let (mut secrets, mut keys) = (Vec::new(), Vec::<Value>::new());
    for secret in row.rows(member)? {
        let (kind, value) = (
            secret.text("Type")?,
            secret.text("Value")?.unwrap_or_default(),
        );
        let kind = kind.as_deref().unwrap_or("SharedSecret");
        let end = secret
            .text("Expiration")?
            .map(|end| instant(&end).map_or(end, timestamp::format));
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
                    ImportedObject::from([(digest, json!(value)), ("expires_at", json!(end))]).0,
                );
            }
            ("JWK", _, Ok(key)) => keys.push(key),
            _ => to.note(
                of,
                format!("a secret is left out: {kind} that is no SHA-256 or SHA-512 in base64"),
            ),
        }
    }
    ours.set("secrets", secrets);
    ours.set("jwks", (!keys.is_empty()).then(|| json!({ "keys": keys })));
    Ok(())
}

fn client(row: &Row<'_>, is_old: bool, to: &mut Import) -> Result<(), String> {
    let (of, mut ours) = (
        format!("client {}", row.named("ClientId")?),
        ImportedObject::default(),
    );
    row.copy("client of IdentityServer", &mut ours)?;
    secrets(row, "ClientSecrets", &of, &mut ours, to)?;
    let (public, offline) = (
        !row.flag("RequireClientSecret", true)?,
        row.flag("AllowOfflineAccess", false)?,
    );
    ours.set("token_endpoint_auth_method", public.then_some("none"));
    let mut scope = ours.take("scope");
    scope.retain(|name| name != OFFLINE_ACCESS);
    scope.extend(offline.then(|| OFFLINE_ACCESS.to_owned()));
    ours.set("scope", scope);
    // Never left out: a provider that nobody registers makes `plan` refuse.
    let (mut allowed, is_external) = (
        ours.take("identity_providers"),
        !row.flag("EnableLocalLogin", true)?,
    );
    match allowed.is_empty() {
        true if is_external && to.issuers.is_empty() => allowed.push(String::from("external")),
        true if is_external => allowed.extend(to.issuers.keys().cloned()),
        false if !is_external => allowed.push(LOCAL.to_owned()),
        true | false => {}
    }
    ours.set("identity_providers", allowed);
    let unsaid = if row.members.contains_key("ClientClaimsPrefix") {
        ""
    } else {
        "client_"
    };
    let (prefix, mut claims) = (row.text("ClientClaimsPrefix")?, ImportedObject::default());
    let prefix = prefix.unwrap_or_else(|| unsaid.to_owned());
    for claim in row.rows("Claims,ClientClaims")? {
        claims.add_claim(
            &format!("{prefix}{}", claim.named("Type")?),
            claim.text("Value")?.unwrap_or_default(),
        );
    }
    let grants = row.texts("AllowedGrantTypes,ClientGrantTypes", "GrantType")?;
    let has_own = !public && grants.iter().any(|name| name == "client_credentials");
    let rotates = row.second("RefreshTokenUsage", ["ReUse", "OneTimeOnly"], true)?;
    let begins = format!(
        "set, as there: its claims begin with {prefix:?}. All its access tokens have them here"
    );
    let all = [
        (
            true,
            "set GATEPOST_SCOPE_CLAIM=array: there, scope in a JWT access token is an array",
        ),
        (
            is_external,
            "EnableLocalLogin is false: list its providers in identity_providers",
        ),
        (!claims.0.is_empty(), &begins),
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
        (
            row.flag("RequireRequestObject", false)?,
            "RequireRequestObject is not taken over",
        ),
        (
            row.flag("RequireDPoP", false)?,
            "RequireDPoP is not taken over",
        ),
        (
            row.flag("RequirePushedAuthorization", false)?,
            "RequirePushedAuthorization is not taken over",
        ),
    ];
    to.note_each(&of, &all);
    ours.set("claims", claims.0);
    ours.set("client_credentials_sub", has_own.then_some(false));
    ours.set("access_token_typ", is_old.then_some("JWT"));
    ours.set(
        "access_token_type",
        row.second("AccessTokenType", ["Jwt", "Reference"], false)?
            .then_some("reference"),
    );
    // Their default is five minutes, ours one.
    let code = row
        .seconds("AuthorizationCodeLifetime")?
        .filter(|seconds| *seconds != 300);
    ours.set(
        "authorization_code_lifetime",
        code.map(|seconds| seconds.min(600)),
    );
    // 0 is without end.
    let unsaid = if row.value("AbsoluteRefreshTokenLifetime").is_some() {
        LONGEST_LIFETIME
    } else {
        2_592_000
    };
    let whole = row
        .seconds("AbsoluteRefreshTokenLifetime")?
        .unwrap_or(unsaid);
    let idle = row
        .seconds("SlidingRefreshTokenLifetime")?
        .unwrap_or(1_296_000)
        .min(whole);
    let is_absolute = row.second("RefreshTokenExpiration", ["Sliding", "Absolute"], true)?;
    ours.set("refresh_token_lifetime", offline.then_some(whole));
    ours.set(
        "refresh_token_idle_lifetime",
        offline.then_some(if is_absolute { whole } else { idle }),
    );
    ours.set(
        "refresh_token_usage",
        (offline && !rotates && !public).then_some("reuse"),
    );
    to.client(&of, ours);
    Ok(())
}

fn user(
    row: &Row<'_>,
    roles: &BTreeMap<String, String>,
    now: Instant,
    to: &mut Import,
) -> Result<(), String> {
    let (sub, username) = (row.named("Id")?, row.text("UserName")?);
    let of = format!("user {}", username.as_ref().unwrap_or(&sub));
    let (mut claims, mut user, mut identities) = (
        ImportedObject::default(),
        ImportedObject::default(),
        Vec::new(),
    );
    for claim in row.rows("AspNetUserClaims")? {
        let (name, text) = (
            claim_name(&claim.named("ClaimType")?),
            claim.text("ClaimValue")?.unwrap_or_default(),
        );
        // What must not be a text is one there; .NET writes `True`.
        let typed = || {
            [&text, &text.to_lowercase()]
                .into_iter()
                .find_map(|text| serde_json::from_str(text).ok())
        };
        let value = Some(json!(text))
            .filter(|value| is_possible_claim(&name, value))
            .or_else(typed);
        claims.add_claim(&name, value.unwrap_or(json!(text)));
    }
    // Their profile service tells the user name as these where no claim does.
    for name in ["name", "preferred_username"] {
        claims.0.entry(name).or_insert(json!(username));
    }
    row.copy("claims of AspNetUsers", &mut claims)?;
    for id in row.texts("AspNetUserRoles", "RoleId")? {
        let role = roles
            .get(&id)
            .ok_or_else(|| format!("{}: has a role that is not among AspNetRoles", row.place))?;
        claims.add_claim("role", role.as_str());
    }
    for login in row.rows("AspNetUserLogins")? {
        let scheme = login.named("LoginProvider")?;
        let google = (scheme == "Google").then_some("https://accounts.google.com");
        match to.issuers.get(&scheme).map(String::as_str).or(google) {
            Some(issuer) => {
                identities.push(json!({"issuer": issuer, "subject": login.named("ProviderKey")?}))
            }
            None => to.note(
                &of,
                format!("sign-ins by {scheme} are left out: say --issuer {scheme}=ISSUER"),
            ),
        }
    }
    let stored = row.text("PasswordHash")?;
    let password_hash = stored
        .as_deref()
        .and_then(phc)
        .filter(|_| username.is_some());
    let end = row
        .text("LockoutEnd")?
        .filter(|end| instant(end).is_none_or(|end| end > now));
    let is_locked = end.is_some() && row.flag("LockoutEnabled", true)?;
    let is_lost = stored.is_some() && password_hash.is_none();
    let all = [
        (
            is_lost,
            "the password is left out: it is no hash of ASP.NET Core Identity",
        ),
        (
            row.flag("TwoFactorEnabled", false)?,
            "the second factor is left out: the password alone is enough",
        ),
        (
            is_locked,
            "disabled, as locked out there: `gatepost user enable`",
        ),
    ];
    to.note_each(&of, &all);
    user.0.insert(String::from("username"), json!(username));
    user.set("sub", sub);
    user.set("enabled", !is_locked);
    user.set("claims", claims.into_claims(&of, to));
    user.set("password_hash", password_hash);
    user.set("identities", identities);
    to.push("users", user);
    Ok(())
}

/// A hash of version 2 (a zero, salt, key) or 3 (a one; pseudorandom function, rounds and length of
/// the salt, each four bytes; salt, key) in PHC form.
pub(super) fn phc(hash: &str) -> Option<String> {
    let bytes = BASE64_STANDARD.decode(hash).ok()?;
    let (prf, rounds, (salt, key)) = match bytes.split_first()? {
        (0, rest) => (
            0,
            1_000,
            rest.split_at_checked(16)
                .filter(|(_, key)| key.len() == 32)?,
        ),
        (1, rest) => {
            let (head, rest) = rest.split_first_chunk::<12>()?;
            let number = |at: usize| {
                head.iter()
                    .skip(at)
                    .take(4)
                    .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
            };
            (number(0), number(4), rest.split_at_checked(number(8))?)
        }
        _ => return None,
    };
    let name = ["pbkdf2", "pbkdf2-sha256", "pbkdf2-sha512"].get(prf)?;
    let [salt, encoded] = [salt, key].map(|part| BASE64_STANDARD_NO_PAD.encode(part));
    let text = format!("${name}$i={rounds},l={}${salt}${encoded}", key.len());
    Pbkdf2Hash::parse(&text).is_some().then_some(text)
}

/// What OpenID Connect calls a claim that WS-Federation calls by a URI.
fn claim_name(name: &str) -> String {
    let is_uri = name.starts_with("http://schemas.xmlsoap.org/")
        || name.starts_with("http://schemas.microsoft.com/");
    let mut known = table("last segments of claims of WS-Federation").filter(|_| is_uri);
    known
        .find(|[_, last, _]| name.rsplit('/').next() == Some(last))
        .map_or(name, |[claim, ..]| claim)
        .to_owned()
}

/// As their databases write it: without a zone it is UTC.
fn instant(text: &str) -> Option<Instant> {
    timestamp::parse(text).or_else(|| timestamp::parse(&format!("{text}Z")))
}
