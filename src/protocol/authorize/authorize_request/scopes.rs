//! The scopes that a request may ask for: registered, allowed for the client, and of a kind that
//! the response type takes.

use super::{AuthorizeRefusal, Registered};
use crate::token::audience::with_default_scope;
use crate::words::catalogue::Catalogue;
use crate::words::reason::{AuthorizeErrorCode, Reason};
use crate::words::response_type::ResponseType;
use crate::words::scope::{OFFLINE_ACCESS, OPENID, ScopeKind, ScopeSet};

/// Reads `scope`. A request that sends `resource` and no `scope`, or `offline_access` alone, gets
/// all scopes of the client that lead to these resources (RFC 6749 §3.3), and `offline_access` if
/// it asks for that and may. Any other gets the client's `default_scope` with what
/// it names. `offline_access` is dropped where no code is asked for.
pub(crate) fn read(
    text: Option<&str>,
    resources: &[&str],
    response_type: ResponseType,
    registered: &Registered<'_>,
) -> Result<ScopeSet, AuthorizeRefusal> {
    let Registered { client, catalogue } = registered;
    let named = ScopeSet::parse(text.unwrap_or_default())
        .ok_or_else(|| invalid_scope(Reason::UnknownScope))?;
    let says_nothing = named.iter().all(|name| name == OFFLINE_ACCESS);
    let sent = if says_nothing && !resources.is_empty() {
        let behind = behind(resources, registered)?;
        let kept = named.iter().filter(|name| client.scope.contains(name));
        behind.iter().chain(kept).collect()
    } else {
        with_default_scope(&named, response_type, client, catalogue)
    };
    for name in sent.iter() {
        if catalogue.kind(name).is_none() || !client.scope.contains(name) {
            return Err(AuthorizeRefusal::with_detail(
                AuthorizeErrorCode::InvalidScope,
                Reason::UnknownScope,
                name,
            ));
        }
    }
    let scope = sent.retain(|name| response_type.code || name != OFFLINE_ACCESS);
    if scope.is_empty() {
        return Err(invalid_scope(Reason::MissingScope));
    }
    check_kinds(&scope, response_type, catalogue).map_err(invalid_scope)?;
    Ok(scope)
}

/// The client's scopes that lead to one of the resources. Where there is none, the error is
/// `invalid_target`: the resource is wrong, not the scope.
fn behind(resources: &[&str], registered: &Registered<'_>) -> Result<ScopeSet, AuthorizeRefusal> {
    let leads_there = |name: &str| match registered.catalogue.scopes.get(name) {
        Some(scope) if scope.kind == ScopeKind::Resource => {
            let mut leads_to = scope.resources.iter().map(String::as_str);
            leads_to.any(|resource| resources.contains(&resource))
        }
        Some(_) | None => false,
    };
    let scope = registered.client.scope.retain(leads_there);
    if scope.is_empty() {
        let code = AuthorizeErrorCode::InvalidTarget;
        let reason = Reason::UnknownResource;
        return Err(AuthorizeRefusal::with_detail(
            code,
            reason,
            resources.join(" "),
        ));
    }
    Ok(scope)
}

/// Whether the response type takes scopes of these kinds, and `openid` is there where it must be.
pub fn check_kinds(
    scope: &ScopeSet,
    response_type: ResponseType,
    catalogue: &Catalogue,
) -> Result<(), Reason> {
    let has = |kind: ScopeKind| {
        scope
            .iter()
            .any(|name| name != OFFLINE_ACCESS && catalogue.kind(name) == Some(kind))
    };
    let identity = has(ScopeKind::Identity);
    let resource = has(ScopeKind::Resource);
    let fits = (!identity || response_type.takes(ScopeKind::Identity))
        && (!resource || response_type.takes(ScopeKind::Resource));
    let needs_openid = identity || is_mixed(response_type);
    match (fits, needs_openid && !scope.contains(OPENID)) {
        (false, _) => Err(Reason::ScopeKind),
        (true, true) => Err(Reason::MissingOpenid),
        (true, false) => Ok(()),
    }
}

/// Whether the response type asks for more than one of code, ID token and access token.
fn is_mixed(response_type: ResponseType) -> bool {
    let ResponseType {
        code,
        id_token,
        token,
    } = response_type;
    u8::from(code) + u8::from(id_token) + u8::from(token) > 1
}

fn invalid_scope(reason: Reason) -> AuthorizeRefusal {
    AuthorizeRefusal::new(AuthorizeErrorCode::InvalidScope, reason)
}

#[cfg(test)]
mod tests {
    use super::super::AuthorizeError;
    use super::super::fixtures::*;
    use super::*;

    fn read(response_type: &str, scope: &str) -> Result<String, Reason> {
        match asking()
            .with("response_type", response_type)
            .with("scope", scope)
            .judged()
        {
            Ok(request) => Ok(request.scope.to_string()),
            Err(AuthorizeError::Redirect(
                _,
                AuthorizeRefusal {
                    code: AuthorizeErrorCode::InvalidScope,
                    reason,
                    ..
                },
            )) => Err(reason),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn all_others_are_invalid_scope() {
        for (response_type, scope, reason) in [
            ("code", "", Reason::MissingScope),
            ("code", "   ", Reason::MissingScope),
            ("code", "nope", Reason::UnknownScope),
            ("code", "openid nope", Reason::UnknownScope),
            ("code", "OpenID", Reason::UnknownScope),
            ("code", "openid address", Reason::UnknownScope),
            ("code", "openid\tprofile", Reason::UnknownScope),
            ("code", "openid \u{e9}", Reason::UnknownScope),
            ("code", "openid \"", Reason::UnknownScope),
            ("code", "profile", Reason::MissingOpenid),
            ("code", "profile orders.read", Reason::MissingOpenid),
            ("id_token", "email", Reason::MissingOpenid),
            ("id_token", "openid orders.read", Reason::ScopeKind),
            ("id_token", "orders.read", Reason::ScopeKind),
            ("id_token", "offline_access", Reason::MissingScope),
            ("token", "openid", Reason::ScopeKind),
            ("token", "openid orders.read", Reason::ScopeKind),
            ("token", "offline_access", Reason::MissingScope),
            ("id_token token", "orders.read", Reason::MissingOpenid),
            ("code id_token", "orders.read", Reason::MissingOpenid),
            ("code token", "orders.read", Reason::MissingOpenid),
            ("code id_token token", "orders.read", Reason::MissingOpenid),
        ] {
            assert_eq!(
                read(response_type, scope),
                Err(reason),
                "{response_type}: {scope}"
            );
        }
        assert_eq!(read("code", &" ".repeat(2000)), Err(Reason::MissingScope));
    }
}
