//! User claims (OpenID Connect Core §5): which scope releases which claim, and in what type. A
//! claim without a usable value is left out. The names that the protocol itself uses are never
//! taken from a user's attributes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::words::catalogue::{Catalogue, RegisteredScope};
use crate::words::claim_set::{ClaimSet, ClaimValue};
use crate::words::claim_shape::{self, PROFILE};
use crate::words::client::Client;
use crate::words::json::JsonObject;
use crate::words::scope::{LocalizedText, OFFLINE_ACCESS, OPENID, ScopeKind, ScopeSet};
use crate::words::session::User;

/// Claims that the `claims` parameter asked for (OpenID Connect Core §5.5) and that the
/// registration allows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimNames {
    pub userinfo: Vec<String>,
    pub id_token: Vec<String>,
}

/// Names that tokens and answers use themselves.
const RESERVED: [&str; 38] = [
    "iss",
    "sub",
    "aud",
    "exp",
    "iat",
    "nbf",
    "jti",
    "auth_time",
    "nonce",
    "acr",
    "amr",
    "azp",
    "at_hash",
    "c_hash",
    "s_hash",
    "sid",
    "client_id",
    "scope",
    "tenant",
    "idp",
    "typ",
    "cnf",
    "act",
    "may_act",
    "events",
    "active",
    "token_type",
    "token_use",
    "userinfo_claims",
    "grant_claims",
    "exchanged_from",
    "sub_jwk",
    "_claim_names",
    "_claim_sources",
    "resource",
    "expires_in",
    "access_token",
    "id_token",
];

/// Name, display name, description, claims.
type BuiltIn = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

/// OpenID Connect Core §5.4 and §11.
const STANDARD: [BuiltIn; 6] = [
    (
        OPENID,
        "Your identity",
        "Recognise you when you sign in.",
        &[],
    ),
    (
        "profile",
        "Your profile",
        "Name, picture, language and other profile data.",
        &PROFILE,
    ),
    (
        "email",
        "Your email address",
        "Your email address, and whether it was verified.",
        &["email", "email_verified"],
    ),
    (
        "address",
        "Your postal address",
        "Your postal address.",
        &["address"],
    ),
    (
        "phone",
        "Your phone number",
        "Your phone number, and whether it was verified.",
        &["phone_number", "phone_number_verified"],
    ),
    (
        OFFLINE_ACCESS,
        "Access while you are away",
        "Keep this access when you are not signed in.",
        &[],
    ),
];

/// What many applications look for although no standard has it. A scope of either kind may be
/// registered under these names.
const MEMBERSHIPS: [BuiltIn; 2] = [
    (
        "roles",
        "Your roles and groups",
        "What you may do, and the groups that you belong to.",
        &["role", "groups"],
    ),
    (
        "groups",
        "Your groups",
        "The groups that you belong to.",
        &["groups"],
    ),
];

/// The scopes that exist without being registered. A registered scope of the same name replaces
/// one.
pub fn built_in_scopes() -> Vec<RegisteredScope> {
    STANDARD
        .iter()
        .chain(&MEMBERSHIPS)
        .map(built_in_scope)
        .collect()
}

/// A catalogue of the scopes that exist without being registered, and of nothing else.
pub fn built_in_catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    for scope in built_in_scopes() {
        catalogue.scopes.insert(scope.name.clone(), scope);
    }
    catalogue
}

fn built_in_scope((name, display_name, description, claims): &BuiltIn) -> RegisteredScope {
    RegisteredScope {
        name: (*name).to_owned(),
        kind: ScopeKind::Identity,
        display_name: LocalizedText::from(*display_name),
        description: LocalizedText::from(*description),
        claims: claims.iter().map(|claim| (*claim).to_owned()).collect(),
        renamed: BTreeMap::new(),
        required: *name == OPENID,
        emphasize: *name == OFFLINE_ACCESS,
        show_in_discovery: true,
        resources: Vec::new(),
        is_built_in: true,
    }
}

/// Whether a claim belongs to `profile`, `email`, `address` or `phone` (OpenID Connect Core §5.4).
pub fn is_personal(name: &str) -> bool {
    STANDARD
        .iter()
        .any(|(_, _, _, claims)| claims.contains(&name))
}

/// Whether the protocol itself uses the name. A user's attribute is never sent under it.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Where a user has no such claim, the user name fills it.
pub const PREFERRED_USERNAME: &str = "preferred_username";

/// For each claim in an answer, the name of the user's stored claim that fills it.
pub type ClaimSources<'a> = BTreeMap<&'a str, &'a str>;

/// The claims that the granted identity scopes release, and the `requested` ones. A requested claim
/// counts only while a scope in `reach` (the client's scopes) releases it. Where two scopes fill
/// one name from different claims, the first one counts, by `in_order`.
pub fn identity_claims<'a>(
    scope: &ScopeSet,
    requested: &'a [String],
    reach: &ScopeSet,
    catalogue: &'a Catalogue,
) -> ClaimSources<'a> {
    let mut sources = ClaimSources::new();
    for registered in in_order(scope, reach, ScopeKind::Identity, catalogue) {
        add_sources(&mut sources, &registered.claims, &registered.renamed);
    }
    if requested.is_empty() {
        return sources;
    }
    let within = in_order(reach, reach, ScopeKind::Identity, catalogue);
    for name in requested {
        let mut within = within.iter();
        if let Some(releasing) = within.find(|registered| registered.claims.contains(name)) {
            sources
                .entry(name)
                .or_insert(source_of(name, &releasing.renamed));
        }
    }
    sources
}

/// The claims of an access token: those of its resource scopes, and those of the resources in its
/// audience. `reach` are the client's scopes.
pub fn resource_claims<'a>(
    scope: &ScopeSet,
    reach: &ScopeSet,
    audience: &[String],
    catalogue: &'a Catalogue,
) -> ClaimSources<'a> {
    let mut sources = ClaimSources::new();
    for registered in in_order(scope, reach, ScopeKind::Resource, catalogue) {
        add_sources(&mut sources, &registered.claims, &registered.renamed);
    }
    for resource in catalogue
        .resources
        .values()
        .filter(|resource| audience.contains(&resource.name))
    {
        add_sources(&mut sources, &resource.claims, &resource.renamed);
    }
    sources
}

fn add_sources<'a>(
    sources: &mut ClaimSources<'a>,
    claims: &'a [String],
    renamed: &'a BTreeMap<String, String>,
) {
    for name in claims {
        sources.entry(name).or_insert(source_of(name, renamed));
    }
}

/// The stored claim that fills this one.
pub fn source_of<'a>(name: &'a String, renamed: &'a BTreeMap<String, String>) -> &'a str {
    renamed.get(name).unwrap_or(name)
}

/// The scopes of one kind, in the order in which their claims count: what is registered before what
/// is built in, and each of these in the order of the client's registered `scope`, `reach`.
/// The order of a request never decides. What was granted and is the client's no more comes last.
pub fn in_order<'a>(
    scope: &ScopeSet,
    reach: &ScopeSet,
    kind: ScopeKind,
    catalogue: &'a Catalogue,
) -> Vec<&'a RegisteredScope> {
    let granted_before = scope.iter().filter(|name| !reach.contains(name));
    let mut granted_before: Vec<&str> = granted_before.collect();
    granted_before.sort_unstable();
    let of_client = reach.iter().filter(|name| scope.contains(name));
    let names = of_client.chain(granted_before);
    let registered = names.filter_map(|name| catalogue.scopes.get(name));
    let mut found: Vec<_> = registered.filter(|one| one.kind == kind).collect();
    found.sort_by_key(|registered| registered.is_built_in);
    found
}

/// Adds the values of the claims for this client, in their standard types. A value of another type
/// is left out.
pub fn add_of_user<'a>(
    claims: &mut ClaimSet<'a>,
    user: &'a User,
    client: &Client,
    sources: &ClaimSources<'a>,
) {
    for (name, source) in sources {
        let value = match user.claims.get(*source) {
            None if *source == PREFERRED_USERNAME => unique_username(user, client).map(Cow::Owned),
            stored => stored.map(Cow::Borrowed),
        };
        if let Some(value) = value {
            add_shaped(claims, name, value);
        }
    }
}

/// Adds a claim in its standard type, unless the protocol itself uses the name or there is one
/// already.
fn add_shaped<'a>(claims: &mut ClaimSet<'a>, name: &'a str, value: Cow<'a, Value>) {
    let shaped = claim_shape::shaped(name, value);
    if let Some(value) = shaped.filter(|_| !is_reserved(name)) {
        claims.add(name, ClaimValue::Json(value));
    }
}

/// The user name, where it can be nobody else's at this client: user names are unique within a
/// tenant alone.
fn unique_username(user: &User, client: &Client) -> Option<Value> {
    let is_unique = user.tenant.as_ref() == client.only_tenant();
    let username = user.username.as_deref().filter(|_| is_unique)?;
    Some(Value::from(username))
}

/// Adds the claims of the user, and the client's fixed ones.
pub fn add_for_access_token<'a>(
    claims: &mut ClaimSet<'a>,
    user: Option<&'a User>,
    client: &'a Client,
    scope: &ScopeSet,
    audience: &[String],
    catalogue: &'a Catalogue,
) {
    if let Some(user) = user {
        let sources = resource_claims(scope, &client.scope, audience, catalogue);
        add_of_user(claims, user, client, &sources);
    }
    for (name, value) in &client.claims {
        add_shaped(claims, name, Cow::Borrowed(value));
    }
}

/// The members of an object without those that are null.
pub fn present(mut object: Value) -> JsonObject {
    let mut members = object.as_object_mut().map(mem::take).unwrap_or_default();
    members.retain(|_, value| !value.is_null());
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::words::identifiers::TenantName;
    use crate::words::samples::{self, catalogue, scope, user};

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn in_id_token(
        user: &User,
        client: &Client,
        scopes: &str,
        requested: &str,
        catalogue: &Catalogue,
    ) -> Value {
        let requested = names(requested);
        let sources = identity_claims(&scope(scopes), &requested, &client.scope, catalogue);
        let mut claims = ClaimSet::default();
        add_of_user(&mut claims, user, client, &sources);
        json!(claims)
    }

    fn in_access_token(
        user: Option<&User>,
        client: &Client,
        scopes: &str,
        audience: &str,
        catalogue: &Catalogue,
    ) -> Value {
        let mut claims = ClaimSet::default();
        let scope = scope(scopes);
        add_for_access_token(
            &mut claims,
            user,
            client,
            &scope,
            &names(audience),
            catalogue,
        );
        json!(claims)
    }

    #[test]
    fn a_claim_goes_out_under_the_name_that_scope_and_resource_give_it() {
        let mut catalogue = catalogue();
        let renamed = BTreeMap::from([(String::from("dept"), String::from("department"))]);
        for name in ["roles", "orders.read"] {
            let scope = catalogue.scopes.get_mut(name).unwrap();
            (scope.claims, scope.renamed) = (names("dept"), renamed.clone());
        }
        let stock = catalogue.resources.get_mut("stock").unwrap();
        (stock.claims, stock.renamed) = (
            names("role"),
            BTreeMap::from([(String::from("role"), String::from("groups"))]),
        );
        let user =
            user(json!({"department": "it", "dept": "other", "groups": "admin", "role": "user"}));
        let released = |scopes: &str, requested: &str, reach: &str| {
            let client = Client {
                scope: scope(reach),
                ..samples::client()
            };
            in_id_token(&user, &client, scopes, requested, &catalogue)
        };
        assert_eq!(
            released("openid roles", "", "openid roles"),
            json!({"dept": "it"})
        );
        assert_eq!(
            released("openid", "dept", "openid roles"),
            json!({"dept": "it"})
        );
        for (requested, reach) in [
            ("dept", "openid profile"),
            ("department", "openid roles"),
            ("dept", ""),
        ] {
            assert_eq!(
                released("openid", requested, reach),
                json!({}),
                "{requested} within {reach}"
            );
        }
        let access = |scopes: &str, audience: &str| {
            let client = samples::client();
            in_access_token(Some(&user), &client, scopes, audience, &catalogue)
        };
        assert_eq!(access("orders.read", ""), json!({"dept": "it"}));
        assert_eq!(access("stock", "stock"), json!({"role": ["admin"]}));
    }

    #[test]
    fn the_order_of_a_request_never_decides_what_a_claim_says() {
        let mut catalogue = catalogue();
        for (name, source) in [("paths", "full_path"), ("short", "short_name")] {
            let source = BTreeMap::from([(String::from("groups"), String::from(source))]);
            let mut own = samples::registered_scope(name, ScopeKind::Identity, &["groups"], &[]);
            own.renamed = source;
            catalogue.scopes.insert(own.name.clone(), own);
        }
        let user = user(json!({"groups": "g", "full_path": "/a/g", "short_name": "s"}));
        let released = |asked: &str, requested: &str, reach: &str| {
            let client = Client {
                scope: scope(reach),
                ..samples::client()
            };
            let claims = in_id_token(&user, &client, asked, requested, &catalogue);
            claims.get("groups").cloned()
        };
        let first = [
            ("groups paths short", json!(["/a/g"])),
            ("short groups paths", json!(["s"])),
            // What is registered counts before what is built in.
            ("groups short", json!(["s"])),
            ("groups", json!(["g"])),
        ];
        for (reach, expected) in first {
            let forwards: Vec<&str> = reach.split(' ').collect();
            let mut backwards = forwards.clone();
            backwards.reverse();
            for asked in [forwards.join(" "), backwards.join(" ")] {
                assert_eq!(
                    released(&asked, "", reach),
                    Some(expected.clone()),
                    "{asked}"
                );
            }
            let requested = released("", "groups", reach);
            assert_eq!(requested, Some(expected), "as a claim, {reach}");
        }
        // What was granted and is the client's no more comes last, in one order.
        for asked in ["short paths", "paths short"] {
            assert_eq!(
                released(asked, "", "openid"),
                Some(json!(["/a/g"])),
                "{asked}"
            );
            assert_eq!(released(asked, "", "short"), Some(json!(["s"])), "{asked}");
        }
    }

    #[test]
    fn the_user_name_is_told_where_it_is_unique_and_no_claim_says_another() {
        let catalogue = catalogue();
        let released = |tenant: &str, tenants: &[&str], claims: Value| {
            let user = User {
                username: Some(String::from("alice")),
                tenant: (!tenant.is_empty()).then(|| TenantName::new(tenant)),
                ..user(claims)
            };
            let named = tenants.iter().map(|name| TenantName::new(*name));
            let client = Client {
                tenants: (!tenants.is_empty()).then(|| named.collect()),
                ..samples::client()
            };
            let claims = in_id_token(&user, &client, "openid profile", "", &catalogue);
            claims.get("preferred_username").cloned()
        };
        for (tenant, tenants, is_released) in [
            ("", &[][..], true),
            ("", &["acme", "globex"], true),
            ("", &["acme"], false),
            ("acme", &[], false),
            ("acme", &["acme", "globex"], false),
            ("acme", &["acme"], true),
            ("acme", &["globex"], false),
        ] {
            let name = released(tenant, tenants, json!({}));
            assert_eq!(
                name,
                is_released.then(|| json!("alice")),
                "{tenant:?} {tenants:?}"
            );
            let said = released(tenant, tenants, json!({"preferred_username": "Al"}));
            assert_eq!(said, Some(json!("Al")), "{tenant:?} {tenants:?}");
            let hidden = released(tenant, tenants, json!({"preferred_username": ""}));
            assert_eq!(hidden, None, "{tenant:?} {tenants:?}");
        }
    }

    #[test]
    fn neither_attributes_nor_a_clients_own_claims_speak_for_the_protocol() {
        let forged: BTreeMap<String, Value> = RESERVED
            .iter()
            .map(|name| ((*name).to_owned(), json!("forged")))
            .collect();
        let with = |further: Value| {
            forged
                .clone()
                .into_iter()
                .chain(further.as_object().unwrap().clone())
                .collect::<BTreeMap<_, _>>()
        };
        let user = user(json!(with(json!({"role": "admin"}))));
        let client = Client {
            claims: with(json!({"role": "client", "region": "eu"})),
            ..samples::client()
        };
        let mut catalogue = catalogue();
        let released = RESERVED
            .iter()
            .chain(&["role"])
            .map(|name| (*name).to_owned())
            .collect();
        catalogue.scopes.get_mut("orders.read").unwrap().claims = released;
        let of = |user| in_access_token(user, &client, "orders.read", "", &catalogue);
        assert_eq!(of(Some(&user)), json!({"role": ["admin"], "region": "eu"}));
        assert_eq!(of(None), json!({"role": ["client"], "region": "eu"}));
    }

    #[test]
    fn only_openid_must_be_allowed_and_only_offline_access_stands_out() {
        for scope in built_in_scopes() {
            assert_eq!(scope.required, scope.name == "openid", "{}", scope.name);
            let stands_out = scope.name == "offline_access";
            assert_eq!(scope.emphasize, stands_out, "{}", scope.name);
        }
    }

    #[test]
    fn what_the_standard_scopes_release_is_personal() {
        for name in ["name", "birthdate", "email", "address", "phone_number"] {
            assert!(is_personal(name), "{name}");
        }
        for name in ["role", "groups", "department", "Email", ""] {
            assert!(!is_personal(name), "{name}");
        }
    }
}
