//! Which scopes a request may ask for: registered, allowed to the client, and of the kind the response type takes.

use super::super::errors::AuthorizeErrorCode;
use super::super::reason::Reason;
use super::super::response_type::ResponseType;
use super::super::scope::{Catalogue, OFFLINE_ACCESS, OPENID, ScopeKind, ScopeSet};
use super::{Refusal, Registered};

/// Reads `scope`. `offline_access` is of neither kind, and dropped where no code is asked for.
pub(super) fn read(
    text: Option<&str>,
    response_type: ResponseType,
    registered: &Registered<'_>,
) -> Result<ScopeSet, Refusal> {
    let sent = ScopeSet::parse(text.unwrap_or_default()).ok_or_else(|| invalid_scope(Reason::UnknownScope))?;
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
