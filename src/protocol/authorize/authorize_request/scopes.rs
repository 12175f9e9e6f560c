//! Which scopes a request may ask for: registered, allowed to the client, and of the kind the response type takes.

use super::{Refusal, Registered};
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};
use crate::protocol::words::response_type::ResponseType;
use crate::protocol::words::scope::{Catalogue, OFFLINE_ACCESS, OPENID, ScopeKind, ScopeSet};

/// Reads `scope`; where none is sent, it is what the client may have of the `resources` asked for (RFC 6749 §3.3).
/// `offline_access` is of neither kind, and dropped where no code is asked for.
pub(crate) fn read(
    text: Option<&str>,
    resources: &[&str],
    response_type: ResponseType,
    registered: &Registered<'_>,
) -> Result<ScopeSet, Refusal> {
    let sent = match text {
        None if !resources.is_empty() => behind(resources, registered)?,
        _ => ScopeSet::parse(text.unwrap_or_default()).ok_or_else(|| invalid_scope(Reason::UnknownScope))?,
    };
    let allowed = |name: &&str| registered.catalogue.kind(name).is_some() && registered.client.scope.contains(name);
    if let Some(refused) = sent.iter().find(|name| !allowed(name)) {
        return Err(Refusal::with_detail(AuthorizeErrorCode::InvalidScope, Reason::UnknownScope, refused));
    }
    let scope = sent.retain(|name| response_type.code || name != OFFLINE_ACCESS);
    if scope.is_empty() {
        return Err(invalid_scope(Reason::MissingScope));
    }
    check_kinds(&scope, response_type, registered.catalogue).map_err(invalid_scope)?;
    Ok(scope)
}

/// The resource scopes that lead to one of the resources. Where there are none, it is the resource that is wrong.
fn behind(resources: &[&str], registered: &Registered<'_>) -> Result<ScopeSet, Refusal> {
    let leads_there = |name: &str| {
        let scope = registered.catalogue.scopes.get(name).filter(|scope| scope.kind == ScopeKind::Resource);
        scope.is_some_and(|scope| scope.resources.iter().any(|resource| resources.contains(&resource.as_str())))
    };
    let scope = registered.client.scope.retain(leads_there);
    if scope.is_empty() {
        let (code, reason) = (AuthorizeErrorCode::InvalidTarget, Reason::UnknownResource);
        return Err(Refusal::with_detail(code, reason, resources.join(" ")));
    }
    Ok(scope)
}

fn check_kinds(scope: &ScopeSet, response_type: ResponseType, catalogue: &Catalogue) -> Result<(), Reason> {
    let has = |kind: ScopeKind| scope.iter().any(|name| name != OFFLINE_ACCESS && catalogue.kind(name) == Some(kind));
    let (identity, resource) = (has(ScopeKind::Identity), has(ScopeKind::Resource));
    let fits = match (response_type.code, response_type.id_token, response_type.token) {
        (false, true, false) => !resource,
        (false, false, true) => !identity,
        _ => true,
    };
    let needs_openid = identity || is_mixed(response_type);
    match (fits, needs_openid && !scope.contains(OPENID)) {
        (false, _) => Err(Reason::ScopeKind),
        (true, true) => Err(Reason::MissingOpenid),
        (true, false) => Ok(()),
    }
}

/// Whether more than one thing is asked for.
fn is_mixed(response_type: ResponseType) -> bool {
    [response_type.code, response_type.id_token, response_type.token].into_iter().filter(|asked| *asked).count() > 1
}

fn invalid_scope(reason: Reason) -> Refusal {
    Refusal::new(AuthorizeErrorCode::InvalidScope, reason)
}

#[cfg(test)]
mod tests {
    use super::super::AuthorizeError;
    use super::super::fixtures::*;
    use super::*;
    use crate::protocol::words::client::Client;

    fn read(response_type: &str, scope: &str) -> Result<String, Reason> {
        match asking().with("response_type", response_type).with("scope", scope).judged() {
            Ok(request) => Ok(request.scope.to_string()),
            Err(AuthorizeError::Redirect(_, Refusal { code: AuthorizeErrorCode::InvalidScope, reason, .. })) => {
                Err(reason)
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn scopes_that_fit_are_kept_in_order() {
        for (response_type, scope, expected) in [
            ("code", "openid", "openid"),
            ("code", "orders.read", "orders.read"),
            ("code", " profile openid  profile orders.read", "profile openid orders.read"),
            ("code", "orders.read offline_access", "orders.read offline_access"),
            ("id_token", "openid email", "openid email"),
            ("token", "orders.read stock.read", "orders.read stock.read"),
            ("id_token token", "openid orders.read", "openid orders.read"),
            ("code id_token", "openid offline_access", "openid offline_access"),
            ("code token", "orders.read openid", "orders.read openid"),
            ("code id_token token", "openid", "openid"),
            ("id_token", "openid offline_access", "openid"),
            ("token", "orders.read offline_access", "orders.read"),
        ] {
            assert_eq!(read(response_type, scope), Ok(expected.to_owned()), "{response_type}: {scope}");
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
            assert_eq!(read(response_type, scope), Err(reason), "{response_type}: {scope}");
        }
        assert_eq!(read("code", &" ".repeat(2000)), Err(Reason::MissingScope));
    }

    #[test]
    fn without_a_scope_the_resource_says_which() {
        let bare = asking().without("scope").with("response_type", "code");
        let (orders, stock) = ("https://api.example/orders", "https://api.example/stock");
        let judged = |asked: &Asking, client: &Client| match asked.judged_for(client) {
            Ok(request) => Ok((request.scope.to_string(), request.resources)),
            Err(AuthorizeError::Redirect(_, refusal)) => Err((refusal.code, refusal.reason)),
            Err(other) => panic!("{other:?}"),
        };
        let granted = |scope: &str, resources: &[&str]| {
            Ok((scope.to_owned(), resources.iter().map(|name| name.to_string()).collect::<Vec<_>>()))
        };
        let both = bare.clone().also("resource", orders).also("resource", stock);
        assert_eq!(judged(&both, &client()), granted("orders.read stock.read", &[orders, stock]));
        assert_eq!(judged(&bare.clone().also("resource", stock), &client()), granted("stock.read", &[stock]));
        let unknown = Err((AuthorizeErrorCode::InvalidTarget, Reason::UnknownResource));
        let narrow = Client { scope: ScopeSet::parse("openid stock.read").unwrap(), ..client() };
        assert_eq!(judged(&both, &narrow), unknown, "one that the client may have nothing of");
        assert_eq!(judged(&bare.clone().also("resource", "https://api.example/free"), &client()), unknown);
        // Neither sent at all, nor sent blank.
        for asked in [bare.clone(), bare.clone().also("resource", ""), bare.with("scope", " ").also("resource", stock)]
        {
            assert_eq!(judged(&asked, &client()), Err((AuthorizeErrorCode::InvalidScope, Reason::MissingScope)));
        }
    }

    #[test]
    fn offline_access_is_only_for_clients_that_may_have_it() {
        let client = Client { scope: ScopeSet::parse("openid").unwrap(), ..client() };
        for response_type in ["code", "id_token"] {
            let asked = asking().with("response_type", response_type).with("scope", "openid offline_access");
            let Err(AuthorizeError::Redirect(_, Refusal { code, detail, .. })) = asked.judged_for(&client) else {
                panic!("accepted")
            };
            assert_eq!((code, detail.as_deref()), (AuthorizeErrorCode::InvalidScope, Some("offline_access")));
        }
    }
}
