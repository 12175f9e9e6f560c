//! The audience of an access token: the `resource` parameters (RFC 8707), held against the
//! resources of the scopes, and the `aud` that follows.

use std::borrow::Cow;

use crate::words::catalogue::Catalogue;
use crate::words::client::{Client, GrantType};
use crate::words::parameters::Parameters;
use crate::words::reason::{Reason, Result, TokenError, invalid_scope, invalid_target};
use crate::words::response_type::ResponseType;
use crate::words::scope::{OFFLINE_ACCESS, OPENID, ScopeKind, ScopeSet};

#[derive(Clone, Debug, PartialEq)]
pub struct Narrowed {
    /// The scopes that are left: those of other resources are taken out.
    pub scope: ScopeSet,
    pub audience: Vec<String>,
}

/// The parameters, in which each `resource` has its registered name. `https://host` and
/// `https://host/` are one address (RFC 3986 §6.2.3), of which one may be registered.
pub fn with_registered_names<'a>(
    parameters: &'a Parameters,
    catalogue: &Catalogue,
) -> Cow<'a, Parameters> {
    if !parameters.was_sent("resource") {
        return Cow::Borrowed(parameters);
    }
    let is_name = |name: &str| catalogue.resources.contains_key(name);
    let named = parameters
        .iter()
        .map(|(name, value)| match meant(value, is_name) {
            Some(registered) if name == "resource" => (name, Cow::Owned(registered)),
            Some(_) | None => (name, Cow::Borrowed(value)),
        });
    Cow::Owned(Parameters::from_pairs(named))
}

/// Narrows a scope to the requested resources. `authorized` are the resources of the authorization
/// request; empty means all that the scope leads to. Any other resource is `invalid_target`.
pub fn narrow(
    scope: &ScopeSet,
    requested: &[String],
    authorized: &[String],
    catalogue: &Catalogue,
    issuer: &str,
) -> Result<Narrowed> {
    let chosen = if requested.is_empty() {
        authorized
    } else {
        requested
    };
    let behind = resources_behind(scope, catalogue);
    let allowed = |resource: &String| authorized.is_empty() || authorized.contains(resource);
    if !chosen.iter().all(|resource| {
        is_target(resource) && behind.contains(&resource.as_str()) && allowed(resource)
    }) {
        return Err(invalid_target());
    }
    if chosen.is_empty() {
        let audience = behind.into_iter().map(str::to_owned).collect();
        return Ok(Narrowed {
            scope: scope.clone(),
            audience: or_default(audience, issuer),
        });
    }
    Ok(aimed(scope, chosen, catalogue, issuer))
}

/// Narrows a scope to the chosen resources, which were judged before.
pub fn aimed(scope: &ScopeSet, chosen: &[String], catalogue: &Catalogue, issuer: &str) -> Narrowed {
    let scope = scope.retain(|name| concerns(name, chosen, catalogue));
    Narrowed {
        scope,
        audience: or_default(chosen.to_vec(), issuer),
    }
}

/// Like [`narrow`], for a scope that became narrower after its resources were authorized: the user
/// unticked scopes, or a refresh asked for fewer. Resources without a scope are left out, and no
/// others take their place. `invalid_target` when nothing is left.
pub fn narrow_granted(
    scope: &ScopeSet,
    requested: &[String],
    authorized: &[String],
    catalogue: &Catalogue,
    issuer: &str,
) -> Result<Narrowed> {
    let behind = resources_behind(scope, catalogue);
    let left: Vec<String> = authorized
        .iter()
        .filter(|name| behind.contains(&name.as_str()))
        .cloned()
        .collect();
    let of_no_resource = |name: &str| {
        catalogue
            .scopes
            .get(name)
            .is_none_or(|scope| scope.resources.is_empty())
    };
    // Where all that were authorized are gone, so are their scopes: to `narrow`, no resource means
    // each that the scopes lead to.
    let all_are_gone = left.is_empty() && !authorized.is_empty();
    let scope = if all_are_gone {
        Cow::Owned(scope.retain(of_no_resource))
    } else {
        Cow::Borrowed(scope)
    };
    if scope.is_empty() {
        return Err(invalid_target());
    }
    narrow(&scope, requested, &left, catalogue, issuer)
}

/// The registered resources that the scopes lead to, each once, in the order of the scopes.
pub fn resources_behind<'a>(scope: &ScopeSet, catalogue: &'a Catalogue) -> Vec<&'a str> {
    let mut resources: Vec<&str> = Vec::new();
    for registered in scope.iter().filter_map(|name| catalogue.scopes.get(name)) {
        for resource in &registered.resources {
            let is_registered = catalogue.resources.contains_key(resource);
            if is_registered && !resources.contains(&resource.as_str()) {
                resources.push(resource);
            }
        }
    }
    resources
}

/// Which name is meant. `https://host/` and `https://host` are one (RFC 3986 §6.2.3) where only one
/// of them is a name.
pub fn meant(asked: &str, is_name: impl Fn(&str) -> bool) -> Option<String> {
    if is_name(asked) {
        return Some(asked.to_owned());
    }
    let with_slash = format!("{asked}/");
    let (longer, other) = match asked.strip_suffix('/') {
        Some(bare) => (asked, bare),
        None => (with_slash.as_str(), with_slash.as_str()),
    };
    let is_host = longer.matches('/').count() == 3;
    (is_host && is_name(other)).then(|| other.to_owned())
}

/// Whether this is an absolute URI without a fragment (RFC 8707 §2).
pub fn is_target(resource: &str) -> bool {
    let scheme_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let Some((scheme, rest)) = resource.split_once(':') else {
        return false;
    };
    scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(scheme_byte)
        && !rest.is_empty()
        && !resource.contains('#')
}

/// Whether the scope stays in a token for the chosen resources. Scopes without a resource always
/// stay.
fn concerns(scope: &str, chosen: &[String], catalogue: &Catalogue) -> bool {
    let Some(registered) = catalogue.scopes.get(scope) else {
        return true;
    };
    let resources = &registered.resources;
    resources.is_empty() || resources.iter().any(|resource| chosen.contains(resource))
}

fn or_default(audience: Vec<String>, issuer: &str) -> Vec<String> {
    if audience.is_empty() {
        vec![[issuer.trim_end_matches('/'), "/resources"].concat()]
    } else {
        audience
    }
}

/// What it asks for, all of it or none (`invalid_scope`); where it asks for nothing, every resource
/// scope of the client's.
pub fn granted_scope(
    requested: Option<&ScopeSet>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<ScopeSet> {
    if let Some(scope) = requested {
        for name in scope.iter() {
            if let Some(reason) = objection(name, client, catalogue) {
                return Err(TokenError::about_scope(reason, name));
            }
        }
        return Ok(scope.clone());
    }
    let scope = client
        .scope
        .retain(|name| catalogue.kind(name) == Some(ScopeKind::Resource));
    if scope.is_empty() {
        Err(invalid_scope(Reason::NoScopeLeft))
    } else {
        Ok(scope)
    }
}

fn objection(name: &str, client: &Client, catalogue: &Catalogue) -> Option<Reason> {
    match catalogue.kind(name) {
        Some(ScopeKind::Identity) => Some(Reason::IdentityScopeForClient),
        Some(ScopeKind::Resource) if client.scope.contains(name) => None,
        Some(ScopeKind::Resource) | None => Some(Reason::UnknownScope),
    }
}

/// The scope that a request gets: all that it asks for, or `invalid_scope`. A request without
/// `scope` gets all registered scopes of the client. `offline_access` is only for clients with the
/// refresh grant.
pub fn requested_scope(
    requested: Option<&ScopeSet>,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<ScopeSet> {
    let may_refresh = client.allows_grant(&GrantType::RefreshToken);
    let allowed = |name: &str| {
        client.scope.contains(name)
            && catalogue.kind(name).is_some()
            && (may_refresh || name != OFFLINE_ACCESS)
    };
    match requested {
        Some(scope) => match scope.iter().find(|name| !allowed(name)) {
            Some(refused) => Err(TokenError::about_scope(Reason::UnknownScope, refused)),
            None => Ok(scope.clone()),
        },
        None => {
            let scope = client.scope.retain(allowed);
            if scope.is_empty() {
                Err(invalid_scope(Reason::NoScopeLeft))
            } else {
                Ok(scope)
            }
        }
    }
}

/// What a request names, and with it the client's `default_scope` as far as that fits: a user's
/// claims need `openid`, and some response types take one kind of scope alone.
pub fn with_default_scope(
    named: &ScopeSet,
    response_type: ResponseType,
    client: &Client,
    catalogue: &Catalogue,
) -> ScopeSet {
    let fits = |name: &&str| {
        catalogue.kind(name).is_some_and(|kind| {
            let is_useful = kind == ScopeKind::Resource || named.contains(OPENID);
            is_useful && response_type.takes(kind)
        })
    };
    let added = client.default_scope.iter().filter(fits);
    named.iter().chain(added).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::catalogue::RegisteredResource;
    use crate::words::samples::{catalogue, client, scope};

    const ISSUER: &str = "https://op.example/idp";
    const ORDERS: &str = "https://orders.example.com/";
    const INVALID: TokenError = invalid_target();

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    fn narrowed(
        text: &str,
        requested: &[&str],
        authorized: &[&str],
    ) -> Result<(String, Vec<String>)> {
        let narrowed = narrow(
            &scope(text),
            &owned(requested),
            &owned(authorized),
            &catalogue(),
            ISSUER,
        )?;
        Ok((narrowed.scope.to_string(), narrowed.audience))
    }

    fn expected(text: &str, audience: &[&str]) -> Result<(String, Vec<String>)> {
        Ok((
            text.to_owned(),
            audience.iter().map(|name| name.to_string()).collect(),
        ))
    }

    #[test]
    fn resources_outside_are_invalid_targets() {
        let other = "https://other.example.com/";
        for (text, requested, authorized) in [
            ("openid orders.read", &[other][..], &[][..]),
            ("openid orders.read", &[ORDERS, other], &[]),
            ("openid orders.read", &["https://orders.example.com"], &[]),
            ("openid orders.read", &["HTTPS://orders.example.com/"], &[]),
            ("openid orders.read", &[ORDERS], &[other]),
            ("openid", &[ORDERS], &[]),
            ("openid", &[], &[ORDERS]),
            ("stock", &["stock"], &[]), // registered, but no absolute URI
        ] {
            assert_eq!(
                narrowed(text, requested, authorized),
                Err(INVALID),
                "{text} {requested:?}"
            );
        }
    }

    #[test]
    fn a_slash_behind_the_host_counts_only_where_both_are_registered() {
        let mut catalogue = catalogue();
        let bare = "https://orders.example.com";
        let named = |catalogue: &Catalogue, sent: &str| {
            let parameters = Parameters::from_pairs([("resource", sent), ("scope", sent)]);
            let named = with_registered_names(&parameters, catalogue).into_owned();
            assert_eq!(named.single("scope"), Ok(Some(sent)));
            named.single("resource").unwrap().unwrap().to_owned()
        };
        for (sent, expected) in [
            (bare, ORDERS),
            (ORDERS, ORDERS),
            ("https://orders.example.com?", "https://orders.example.com?"),
            (
                "https://orders.example.com//",
                "https://orders.example.com//",
            ),
            ("HTTPS://orders.example.com", "HTTPS://orders.example.com"),
            ("https://elsewhere.example", "https://elsewhere.example"),
            ("stock/", "stock/"),
        ] {
            assert_eq!(named(&catalogue, sent), expected);
        }
        let exact = RegisteredResource {
            name: bare.to_owned(),
            ..catalogue.resources[ORDERS].clone()
        };
        catalogue.resources.insert(bare.to_owned(), exact);
        assert_eq!(named(&catalogue, bare), bare);
    }

    #[test]
    fn a_resource_that_is_no_longer_registered_is_no_audience() {
        let mut catalogue = catalogue();
        catalogue.resources.remove(ORDERS);
        let narrowed = narrow(&scope("orders.read"), &[], &[], &catalogue, ISSUER).unwrap();
        assert_eq!(narrowed.audience, ["https://op.example/idp/resources"]);
    }
    #[test]
    fn a_target_is_an_absolute_uri_without_fragment() {
        for (targets, expected) in [
            (
                &["https://a.example", "urn:example:orders", "x-y.z+1:/"][..],
                true,
            ),
            (
                &[
                    "",
                    "orders",
                    "/orders",
                    "//a.example",
                    ":x",
                    "1a:b",
                    "https:",
                    "https://a#b",
                    "a b:c",
                ],
                false,
            ),
        ] {
            assert!(
                targets.iter().all(|target| is_target(target) == expected),
                "{targets:?}"
            );
        }
    }

    #[test]
    fn resources_leave_with_their_last_scope_and_no_other_takes_their_place() {
        let narrowed = |text: &str, requested: &[&str], authorized: &[&str]| {
            let narrowed = narrow_granted(
                &scope(text),
                &owned(requested),
                &owned(authorized),
                &catalogue(),
                ISSUER,
            )?;
            Ok((narrowed.scope.to_string(), narrowed.audience))
        };
        let own = "https://op.example/idp/resources";
        assert_eq!(
            narrowed("openid orders.read stock", &[], &[ORDERS]),
            expected("openid orders.read", &[ORDERS])
        );
        assert_eq!(
            narrowed("openid stock ping", &[], &[ORDERS]),
            expected("openid ping", &[own])
        );
        assert_eq!(
            narrowed("openid stock", &[], &[]),
            expected("openid stock", &["stock"])
        );
        assert_eq!(narrowed("stock", &[], &[ORDERS]), Err(INVALID));
        assert_eq!(narrowed("openid", &[ORDERS], &[ORDERS]), Err(INVALID));
    }

    #[test]
    fn a_host_is_meant_with_and_without_its_slash_and_nothing_else_is() {
        let names = [
            "https://a",
            "https://b/",
            "https://both",
            "https://both/",
            "https://a/path",
            "urn:x",
        ];
        let meant = |asked| meant(asked, |name| names.contains(&name));
        for (asked, name) in [
            ("https://a", "https://a"),
            ("https://a/", "https://a"),
            ("https://b", "https://b/"),
            ("https://both", "https://both"),
            ("https://both/", "https://both/"),
            ("urn:x", "urn:x"),
        ] {
            assert_eq!(meant(asked).as_deref(), Some(name), "{asked}");
        }
        for asked in [
            "https://a/path/",
            "https://a//",
            "https://A",
            "urn:x/",
            "",
            "/",
            "https://c",
        ] {
            assert_eq!(meant(asked), None, "{asked}");
        }
    }

    #[test]
    fn a_client_gets_resource_scopes_of_its_own_and_all_of_them_unasked() {
        let mut client = client();
        let granted = |client: &Client, asked: Option<&str>| {
            let asked = asked.map(scope);
            granted_scope(asked.as_ref(), client, &catalogue())
                .map(|scope| scope.to_string())
                .map_err(|error| (error.reason, error.detail))
        };
        for (asked, expected) in [
            (None, Ok("orders.read orders.write stock")),
            (Some("orders.read"), Ok("orders.read")),
            (Some("stock orders.write"), Ok("stock orders.write")),
            (Some("stock ping"), Err((Reason::UnknownScope, "ping"))),
            (Some("unknown"), Err((Reason::UnknownScope, "unknown"))),
            (
                Some("orders.read profile"),
                Err((Reason::IdentityScopeForClient, "profile")),
            ),
        ] {
            let expected = expected
                .map(str::to_owned)
                .map_err(|(reason, name)| (reason, Some(name.to_owned())));
            assert_eq!(granted(&client, asked), expected, "{asked:?}");
        }
        client.scope = scope("openid profile");
        assert_eq!(granted(&client, None), Err((Reason::NoScopeLeft, None)));
    }

    #[test]
    fn a_user_gets_what_the_client_may_ask_and_offline_access_only_to_refresh() {
        let mut client = client();
        client.scope = scope("openid orders.read offline_access removed");
        let asked = |client: &Client, asked: Option<&str>| {
            let asked = asked.map(scope);
            requested_scope(asked.as_ref(), client, &catalogue())
                .map(|scope| scope.to_string())
                .map_err(|error| (error.reason, error.detail))
        };
        let unknown = |name: &str| Err((Reason::UnknownScope, Some(name.to_owned())));
        assert_eq!(asked(&client, None), Ok(String::from("openid orders.read")));
        assert_eq!(
            asked(&client, Some("openid orders.read")),
            Ok(String::from("openid orders.read"))
        );
        assert_eq!(
            asked(&client, Some("openid offline_access")),
            unknown("offline_access")
        );
        assert_eq!(asked(&client, Some("openid stock")), unknown("stock"));
        assert_eq!(asked(&client, Some("removed")), unknown("removed"));
        client.grant_types.insert(GrantType::RefreshToken);
        assert_eq!(
            asked(&client, None),
            Ok(String::from("openid orders.read offline_access"))
        );
        assert_eq!(
            asked(&client, Some("offline_access")),
            Ok(String::from("offline_access"))
        );
        client.scope = scope("removed");
        assert_eq!(asked(&client, None), Err((Reason::NoScopeLeft, None)));
    }

    #[test]
    fn a_default_scope_is_added_where_openid_and_the_response_type_let_it() {
        let mut client = client();
        client.default_scope = scope("email stock removed");
        for (named, response_type, expected) in [
            ("openid", "code", "openid email stock"),
            ("orders.read", "code", "orders.read stock"),
            ("openid", "id_token", "openid email"),
            ("orders.read", "token", "orders.read stock"),
            ("openid", "code id_token", "openid email stock"),
        ] {
            let response_type = ResponseType::parse(response_type).unwrap();
            let scope = with_default_scope(&scope(named), response_type, &client, &catalogue());
            assert_eq!(scope.to_string(), expected, "{named} {response_type}");
        }
    }
}
