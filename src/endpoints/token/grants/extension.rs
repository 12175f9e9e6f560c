//! Extension grants (RFC 6749 §4.5): one type of handler for the built-in ones, those compiled in, and SQL functions. A
//! handler proposes; what may be issued of it, `protocol/token/extension_grant.rs` judges.

use std::time::Duration;

use serde_json::json;

use super::issue::{self, Additions, Issue, IssueGrant, IssueUser};
use super::{GrantContext, jwt_bearer, sql_function, token_exchange, user_grant};
use crate::app::extension_grant::{ExtensionGrant, ExtensionHandler};
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::protocol::token::access_token::StandsOn;
use crate::protocol::token::audience::{Narrowed, narrow};
use crate::protocol::token::claims::ClaimNames;
use crate::protocol::token::extension_grant::{Answer, Circumstances, Granted, Proposal, Refusal, Verdict, judge};
use crate::protocol::token::refresh_token;
use crate::protocol::token::token_request::ExtensionRequest;
use crate::protocol::token::token_response::TokenResponse;
use crate::protocol::words::acr_values::{SIGNED_IN, settle_tenant};
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::identifiers::{ClientId, TenantName};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::scope::ScopeSet;
use crate::protocol::words::session::SignIn;
use crate::protocol::words::user::User;
use crate::protocol::words::user_scope::requested_scope;
use crate::registry::Snapshot;
use crate::store::audit_events::AuditEvent;
use crate::store::grants::{self, NewGrant};
use crate::store::users;

/// Extension grants of the standards, in the one table.
const BUILT_IN: [ExtensionGrant; 2] = [
    ExtensionGrant { name: "urn:ietf:params:oauth:grant-type:token-exchange", handle: token_exchange::handle },
    ExtensionGrant { name: "urn:ietf:params:oauth:grant-type:jwt-bearer", handle: jwt_bearer::handle },
];

/// Asks the grant, judges what it proposes, and issues that.
pub fn handle(context: GrantContext<'_>, request: &ExtensionRequest) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, .. } = context;
    wait_or_go_on(context)?;
    let snapshot = app.registry.snapshot();
    // Before anything is asked of the grant: it may use up what it is shown.
    let asked = requested_scope(request.scope.as_ref(), &client.client, &snapshot.catalogue)?;
    let words = request.parameter("acr_values").unwrap_or_default().split(' ');
    let tenants = words.filter_map(|word| word.strip_prefix("tenant:"));
    let tenant = settle_tenant(tenants, &client.client, &snapshot.catalogue).map_err(Failure::bad_request)?;
    match handler(context, request)(context, request)? {
        Answer::Refuse(refusal) => Err(refused(context, refusal)),
        Answer::Exchange(exchanged) => token_exchange::issue(context, &snapshot, *exchanged),
        Answer::Propose(proposal) => {
            let (proposal, asked) = (&*proposal, &asked);
            issue_proposed(context, &snapshot, request, &Proposed { proposal, asked, tenant: tenant.as_ref() })
        }
    }
}

/// Names in the tables go before registered ones, which `apply` refuses to give them.
fn handler(context: GrantContext<'_>, request: &ExtensionRequest) -> ExtensionHandler {
    let compiled_in = context.app.extensions.table.iter();
    let found = BUILT_IN.iter().chain(compiled_in).find(|grant| grant.name == request.grant_type);
    found.map_or(sql_function::handle, |grant| grant.handle)
}

fn wait_or_go_on(context: GrantContext<'_>) -> Result<(), Failure> {
    let wait = context.app.extension_failures.wait(&guesser(context), 1, context.now);
    wait.map(throttled).map_or(Ok(()), Err)
}

fn throttled(retry_after: Duration) -> Failure {
    Failure::Throttled { reason: Reason::TooManyExtensionFailures, retry_after }
}

/// `invalid_grant` may have been a guess, and counts; not where we could not tell. Beyond the limit it is not told.
fn refused(context: GrantContext<'_>, refusal: Refusal) -> Failure {
    let (code, reason) = (refusal.error.code, refusal.error.reason);
    if code == TokenErrorCode::InvalidGrant
        && reason != Reason::AssertionKeysUnavailable
        && let Err(wait) = context.app.extension_failures.count(guesser(context), context.now)
    {
        return throttled(wait);
    }
    Failure::RefusedByGrant(refusal)
}

/// Whose refusals count together.
fn guesser(context: GrantContext<'_>) -> (ClientId, Source) {
    (context.client.client.client_id.clone(), Source::of(context.request.source))
}

/// A proposal and what it was made to.
struct Proposed<'a> {
    proposal: &'a Proposal,
    asked: &'a ScopeSet,
    tenant: Option<&'a TenantName>,
}

fn issue_proposed(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    request: &ExtensionRequest,
    proposed: &Proposed<'_>,
) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, .. } = context;
    let subject = proposed.proposal.subject.as_ref();
    let find = |subject| users::find_for_client(&app.store, subject, &client.client.client_id);
    let found = subject.map(find).transpose()?.flatten();
    let user = found.as_ref().map(|found| found.user.to_core());
    let epochs = proposed.proposal.epochs.or_else(|| found.map(|found| found.epochs(client.epoch)));
    let verdict = judge(
        proposed.proposal,
        &Circumstances {
            client: &client.client,
            catalogue: &snapshot.catalogue,
            requested: request.scope.as_ref(),
            asked: proposed.asked,
            tenant: proposed.tenant,
            user: user.as_ref(),
        },
    );
    match verdict {
        Verdict::Issue(granted) => {
            note_left_out(&request.grant_type, &granted);
            let narrowed = narrow(&granted.scope, &request.resources, &[], &snapshot.catalogue, app.issuer())?;
            let user = user.as_ref().zip(epochs).map(|(user, epochs)| ForUser {
                user,
                sign_in: sign_in(context, proposed, user),
                epochs,
            });
            issue_granted(context, snapshot, (granted, narrowed), request, user.as_ref())
        }
        Verdict::Refuse(error) => Err(refused(context, Refusal::of(error))),
        Verdict::Faulty(fault) => Err(Failure::Internal(format!("extension grant {}: {fault}", request.grant_type))),
    }
}

fn note_left_out(grant_type: &str, granted: &Granted) {
    if !granted.left_out.is_empty() {
        let names = granted.left_out.join(", ");
        log::warn!("extension grant {grant_type}: not its to give: {}", names.escape_debug());
    }
}

fn sign_in(context: GrantContext<'_>, proposed: &Proposed<'_>, user: &User) -> SignIn {
    SignIn {
        subject: user.subject.clone(),
        sid: None,
        tenant: user.tenant.clone(),
        identity_provider: None,
        auth_time: context.now,
        amr: proposed.proposal.amr.clone(),
        acr: String::from(SIGNED_IN),
    }
}

struct ForUser<'a> {
    user: &'a User,
    sign_in: SignIn,
    epochs: Epochs,
}

fn issue_granted(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    (granted, narrowed): (Granted, Narrowed),
    request: &ExtensionRequest,
    user: Option<&ForUser<'_>>,
) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, now, .. } = context;
    let is_offline = refresh_token::is_issued(&granted.scope, &client.client);
    let grant = match user {
        Some(user) if is_offline => Some(begin_grant(context, &granted, request, user)?),
        Some(_) | None => None,
    };
    let claims = ClaimNames::default();
    let stands_on = match (grant, user) {
        (Some(grant), _) => StandsOn::Grant(grant.id),
        (None, Some(user)) => StandsOn::User(user.epochs),
        (None, None) => StandsOn::Client { installation: client.installation_epoch, client: client.epoch },
    };
    let user =
        user.map(|ForUser { user, sign_in, .. }| IssueUser { sign_in, user, grant, claims: &claims, nonce: None });
    let additions = Additions { claims: granted.claims, members: granted.parameters, ..Additions::default() };
    let issue = Issue { client: &client.client, scope: &granted.scope, user, stands_on, now };
    issue::tokens_with(app, snapshot, narrowed, &issue, additions)
}

/// Only what can be refreshed needs a row: everything else of the answer says itself what it stands on.
fn begin_grant(
    context: GrantContext<'_>,
    granted: &Granted,
    request: &ExtensionRequest,
    ForUser { sign_in, epochs, .. }: &ForUser<'_>,
) -> Result<IssueGrant, Failure> {
    let new = user_grant::new_grant(context, sign_in.clone(), granted.scope.clone(), &request.resources, *epochs);
    let new = NewGrant { token_claims: granted.claims.clone(), ..new };
    let event = AuditEvent {
        event: "grant_begun",
        source: Some(context.request.source),
        request_id: Some(&context.request.id),
        detail: json!({"grant_type": request.grant_type}),
        ..AuditEvent::default()
    };
    match grants::begin(&context.app.store, &new, &event)? {
        Some(_) => Ok(IssueGrant { id: new.id, expires_at: new.expires_at, refresh_generation: Some(0) }),
        None => Err(TokenError::new(TokenErrorCode::InvalidGrant, Reason::GrantNoLongerStands).into()),
    }
}
