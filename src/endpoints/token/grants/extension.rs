//! Extension grants (RFC 6749 §4.5): one type of handler for the built-in ones, those compiled in,
//! and SQL functions. A handler proposes; what may be issued of it,
//! `protocol/token/extension_grant.rs` judges.

use std::time::Duration;

use serde_json::json;

use crate::app::extension_grant::{ExtensionGrant, ExtensionHandler};
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::endpoints::token::grants::issue::{self, Additions, Issue, IssueUser};
use crate::endpoints::token::grants::{GrantContext, invalid_grant, jwt_bearer, token_exchange};
use crate::keys::random;
use crate::protocol::token::access_token::StandsOn;
use crate::protocol::token::audience::{Narrowed, narrow, requested_scope};
use crate::protocol::token::extension_grant::{
    GrantAnswer, GrantRefusal, GrantedProposal, ProposalCircumstances, ProposalVerdict, judge,
};
use crate::protocol::token::function_answer::{client_metadata, read};
use crate::protocol::token::grant::Grant;
use crate::protocol::token::id_token::TokenResponse;
use crate::protocol::token::refresh_token;
use crate::protocol::token::token_request::ExtensionRequest;
use crate::protocol::words::acr_values::settle_tenant;
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use crate::protocol::words::session::{SignIn, User};
use crate::registry::Snapshot;
use crate::store::audit_events::AuditEvent;
use crate::store::{Objection, catalogue, grants, users};

const BUILT_IN: [ExtensionGrant; 2] = [
    ExtensionGrant {
        name: "urn:ietf:params:oauth:grant-type:token-exchange",
        handle: token_exchange::handle,
    },
    ExtensionGrant {
        name: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        handle: jwt_bearer::handle,
    },
];

/// Asks the grant, judges what it proposes, and issues that.
pub fn handle(
    context: GrantContext<'_>,
    request: &ExtensionRequest,
) -> Result<TokenResponse, Failure> {
    let GrantContext { app, client, .. } = context;
    wait_or_go_on(context)?;
    let snapshot = app.registry.snapshot();
    // Before anything is asked of the grant: it may use up what it is shown.
    let asked = requested_scope(request.scope.as_ref(), &client.client, &snapshot.catalogue)?;
    let words = request
        .parameter("acr_values")
        .unwrap_or_default()
        .split(' ');
    let tenants = words.filter_map(|word| word.strip_prefix("tenant:"));
    let tenant = settle_tenant(tenants, &client.client, &snapshot.catalogue)
        .map_err(Failure::bad_request)?;
    let proposal = match handler(context, request)(context, request)? {
        GrantAnswer::Refuse(refusal) => return Err(refused(context, refusal)),
        GrantAnswer::Exchange(exchanged) => {
            return token_exchange::issue(context, &snapshot, *exchanged);
        }
        GrantAnswer::Propose(proposal) => *proposal,
    };
    let find =
        |subject| users::find_for_client(&app.store, subject, Some(&client.client.client_id));
    let found = proposal.subject.as_ref().map(find).transpose()?.flatten();
    let user = found.as_ref().map(|found| found.user.clone().into_core());
    let circumstances = ProposalCircumstances {
        client: &client.client,
        catalogue: &snapshot.catalogue,
        requested: request.scope.as_ref(),
        asked: &asked,
        tenant: tenant.as_ref(),
        user: user.as_ref(),
    };
    let granted = match judge(&proposal, &circumstances) {
        ProposalVerdict::Issue(granted) => granted,
        ProposalVerdict::Refuse(error) => return Err(refused(context, GrantRefusal::of(error))),
        ProposalVerdict::Faulty(fault) => {
            return Err(Failure::Internal(format!(
                "extension grant {}: {fault}",
                request.grant_type
            )));
        }
    };
    if !granted.left_out.is_empty() {
        let names = granted.left_out.join(", ");
        log::warn!(
            "extension grant {}: not its to give: {}",
            request.grant_type,
            names.escape_debug()
        );
    }
    let narrowed = narrow(
        &granted.scope,
        &request.resources,
        &[],
        &snapshot.catalogue,
        app.issuer(),
    )?;
    let epochs = proposal
        .epochs
        .or_else(|| found.map(|found| found.epochs(client.epoch)));
    let user = user.as_ref().zip(epochs);
    issue_granted(
        context,
        &snapshot,
        granted,
        narrowed,
        request,
        user,
        proposal.amr,
    )
}

/// Names in the tables go before registered ones, which `apply` refuses to give them.
fn handler(context: GrantContext<'_>, request: &ExtensionRequest) -> ExtensionHandler {
    let compiled_in = context.app.extensions.table.iter();
    let found = BUILT_IN
        .iter()
        .chain(compiled_in)
        .find(|grant| grant.name == request.grant_type);
    found.map_or(call_function, |grant| grant.handle)
}

fn wait_or_go_on(context: GrantContext<'_>) -> Result<(), Failure> {
    let wait = context
        .app
        .extension_failures
        .wait(&guesser(context), 1, context.now);
    wait.map(throttled).map_or(Ok(()), Err)
}

fn throttled(retry_after: Duration) -> Failure {
    Failure::Throttled {
        reason: Reason::TooManyExtensionFailures,
        retry_after,
    }
}

/// `invalid_grant` may have been a guess, and counts; not where we could not tell. Beyond the limit
/// it is not told.
fn refused(context: GrantContext<'_>, refusal: GrantRefusal) -> Failure {
    let code = refusal.error.code;
    let reason = refusal.error.reason;
    if code == TokenErrorCode::InvalidGrant
        && reason != Reason::AssertionKeysUnavailable
        && let Err(wait) = context
            .app
            .extension_failures
            .count(guesser(context), context.now)
    {
        return throttled(wait);
    }
    Failure::RefusedByGrant(refusal)
}

fn guesser(context: GrantContext<'_>) -> (ClientId, Source) {
    (
        context.client.client.client_id.clone(),
        Source::of(context.request.source),
    )
}

/// Only what can be refreshed needs a row: everything else of the answer says itself what it stands
/// on.
fn issue_granted(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    granted: GrantedProposal,
    narrowed: Narrowed,
    request: &ExtensionRequest,
    user: Option<(&User, Epochs)>,
    amr: Vec<String>,
) -> Result<TokenResponse, Failure> {
    let GrantContext {
        app,
        client: registered,
        now,
        ..
    } = context;
    let client = &registered.client;
    let client_alone = StandsOn::Client {
        installation: registered.installation_epoch,
        client: registered.epoch,
    };
    let (stands_on, given) = match user {
        None => (client_alone, None),
        Some((user, epochs)) => {
            let sign_in = SignIn::without_session(user, amr, now);
            let scope = granted.scope.clone();
            let grant = Grant::given(
                random::bytes(),
                client,
                sign_in,
                scope,
                epochs,
                now,
                Duration::ZERO,
            );
            let resources = request.resources.clone();
            (
                StandsOn::User(epochs),
                Some(Grant {
                    resources,
                    token_claims: granted.claims.clone(),
                    ..grant
                }),
            )
        }
    };
    let entered = given
        .as_ref()
        .filter(|grant| refresh_token::is_issued(&grant.scope, client));
    if let Some(grant) = entered {
        let detail = json!({"grant_type": request.grant_type});
        let event = AuditEvent {
            event: "grant_begun",
            detail,
            ..AuditEvent::of(grant)
        };
        let event = event.by(context.request.source, &context.request.id);
        grants::begin(&app.store, grant, random::bytes(), &event)?
            .ok_or_else(|| invalid_grant(Reason::GrantNoLongerStands))?;
    }
    let user = given
        .as_ref()
        .zip(user)
        .map(|(given, (user, _))| IssueUser {
            sign_in: &given.user,
            user,
            grant: entered,
            claims: &given.claims,
            nonce: None,
        });
    let stands_on = entered.map_or(stands_on, |grant| StandsOn::Grant(grant.id));
    let issue = Issue {
        client,
        scope: &granted.scope,
        user,
        stands_on,
        now,
    };
    let additions = Additions {
        claims: granted.claims,
        members: granted.parameters,
        ..Additions::default()
    };
    issue::tokens(app, snapshot, narrowed, &issue, additions)
}

/// Calls the function. What goes wrong with it is the service's trouble, not the client's: 503, and
/// a line in the log.
pub fn call_function(
    context: GrantContext<'_>,
    request: &ExtensionRequest,
) -> Result<GrantAnswer, Failure> {
    let GrantContext { app, client, .. } = context;
    let snapshot = app.registry.snapshot();
    let Some(grant) = snapshot.catalogue.extension_grants.get(&request.grant_type) else {
        return Err(TokenError::new(
            TokenErrorCode::UnsupportedGrantType,
            Reason::UnsupportedGrantType,
        )
        .into());
    };
    let parameters = request.to_json();
    let metadata = client_metadata(&client.client);
    let answer = catalogue::call_function(&app.extensions.functions, grant, &parameters, &metadata)
        .map_err(|error| {
            log::error!(
                "request {}: function {}.{}: {error}",
                context.request.id,
                grant.schema,
                grant.function
            );
            Failure::Busy
        })?;
    match answer {
        Ok(None) => Ok(GrantAnswer::Refuse(GrantRefusal::invalid_grant(""))),
        Ok(Some(answer)) => read(&answer).map_err(|fault| {
            Failure::Internal(format!(
                "function {}.{} answered {fault}",
                grant.schema, grant.function
            ))
        }),
        Err(Objection::Raised(message)) => {
            Ok(GrantAnswer::Refuse(GrantRefusal::invalid_grant(&message)))
        }
        Err(Objection::Unreadable) => Ok(GrantAnswer::Refuse(GrantRefusal::of(TokenError::new(
            TokenErrorCode::InvalidRequest,
            Reason::ExtensionInput,
        )))),
    }
}
