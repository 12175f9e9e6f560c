//! Extension grants (RFC 6749 §4.5). Those that are built in, those that are compiled in and SQL
//! functions have handlers of one type. A handler proposes what to issue;
//! `protocol/token/extension_grant.rs` judges how much of it may be issued.

use std::time::Duration;

use serde_json::json;

use crate::app::extension_grant::{ExtensionGrant, ExtensionHandler};
use crate::app::failure::{Failure, Result};
use crate::app::guesses::Source;
use crate::endpoints::token::grants::issue::{Additions, Issue, IssueUser};
use crate::endpoints::token::grants::{
    GrantContext, begun, id_jag, invalid_grant, jwt_bearer, token_exchange,
};
use crate::keys::random;
use gatepost_protocol::token::access_token::StandsOn;
use gatepost_protocol::token::audience::{Narrowed, narrow, requested_scope};
use gatepost_protocol::token::extension_grant::{
    GrantAnswer, GrantRefusal, GrantedProposal, Proposal, ProposalCircumstances, ProposalVerdict,
    judge,
};
use gatepost_protocol::token::function_answer::{client_metadata, read};
use gatepost_protocol::token::grant::{Given, Grant};
use gatepost_protocol::token::id_jag::is_asked;
use gatepost_protocol::token::id_token::TokenResponse;
use gatepost_protocol::token::refresh_token;
use gatepost_protocol::token::token_request::ExtensionRequest;
use gatepost_protocol::words::acr_values::settle_tenant;
use gatepost_protocol::words::catalogue::SqlGrant;
use gatepost_protocol::words::epochs::Epochs;
use gatepost_protocol::words::identifiers::{ClientId, TenantName};
use gatepost_protocol::words::reason::{Reason, TokenError, TokenErrorCode, invalid_request};
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::sender::Sender;
use gatepost_protocol::words::session::{SignIn, User};
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::{FunctionAnswer, catalogue, grants, users};

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
pub fn handle(context: GrantContext<'_>, request: &ExtensionRequest) -> Result<TokenResponse> {
    let GrantContext {
        app,
        client,
        snapshot,
        ..
    } = context;
    wait_or_go_on(context)?;
    if app.config.id_jag && is_asked(request) {
        return id_jag::handle(context, request);
    }
    // Judged before the handler is called, because the handler may use up an assertion or a token.
    let asked = asked(request, context.sender())?;
    let proposal = match handler(context, request)(context, request)? {
        GrantAnswer::Refuse(refusal) => return Err(refused(context, refusal)),
        GrantAnswer::Exchange(exchanged) => {
            return token_exchange::issue(context, *exchanged);
        }
        GrantAnswer::Propose(proposal) => *proposal,
    };
    let found = match &proposal.subject {
        Some(sub) => users::find_for_client(&app.store, sub, Some(&client.client.client_id))?,
        None => None,
    };
    let user = found.as_ref().map(|found| found.user.clone().into_core());
    let circumstances = ProposalCircumstances {
        sender: context.sender(),
        requested: request.scope.as_ref(),
        asked: &asked.scope,
        tenant: asked.tenant.as_ref(),
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
        let names = names.escape_debug();
        log::warn!(
            "extension grant {}: not its to give: {names}",
            request.grant_type
        );
    }
    let narrowed = narrow(
        &granted.scope,
        &request.resources,
        &proposal.resources,
        &snapshot.catalogue,
        app.issuer(),
    )?;
    let epochs = proposal
        .epochs
        .or_else(|| found.map(|found| found.epochs(client.epoch)));
    let user = user.as_ref().zip(epochs);
    issue_granted(context, granted, narrowed, request, user, &proposal)
}

/// What a request asks for, whatever the grant.
pub struct AskedScope {
    pub scope: ScopeSet,
    pub tenant: Option<TenantName>,
}

/// Whether the client may ask for that.
pub fn asked(request: &ExtensionRequest, sender: Sender<'_>) -> Result<AskedScope> {
    let Sender {
        client, catalogue, ..
    } = sender;
    let scope = requested_scope(request.scope.as_ref(), client, catalogue)?;
    let words = request
        .parameter("acr_values")
        .unwrap_or_default()
        .split(' ');
    let tenants = words.filter_map(|word| word.strip_prefix("tenant:"));
    let tenant = settle_tenant(tenants, client, catalogue)?;
    Ok(AskedScope { scope, tenant })
}

/// Grants in the tables come first. `apply` refuses to register a function under one of their
/// names.
fn handler(context: GrantContext<'_>, request: &ExtensionRequest) -> ExtensionHandler {
    let compiled_in = context.app.extensions.table.iter();
    let found = BUILT_IN
        .iter()
        .chain(compiled_in)
        .find(|grant| grant.name == request.grant_type);
    found.map_or(call_function, |grant| grant.handle)
}

fn wait_or_go_on(context: GrantContext<'_>) -> Result {
    let wait = context
        .app
        .extension_failures
        .wait(&guesser(context), 1, context.now);
    match wait {
        Some(wait) => Err(throttled(wait)),
        None => Ok(()),
    }
}

fn throttled(retry_after: Duration) -> Failure {
    Failure::Throttled {
        reason: Reason::TooManyExtensionFailures,
        retry_after,
    }
}

/// `invalid_grant` may answer a guess, so it counts, unless we could not verify for want of keys.
/// Beyond the limit the answer says only to wait.
fn refused(context: GrantContext<'_>, refusal: GrantRefusal) -> Failure {
    let failures = &context.app.extension_failures;
    if refusal.error.code == TokenErrorCode::InvalidGrant
        && refusal.error.reason != Reason::AssertionKeysUnavailable
        && let Err(wait) = failures.count(guesser(context), context.now)
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

/// Issues what was granted. A grant needs a row only if a refresh token comes with it. An access
/// token without one carries the epochs that it stands on.
fn issue_granted(
    context: GrantContext<'_>,
    granted: GrantedProposal,
    narrowed: Narrowed,
    request: &ExtensionRequest,
    user: Option<(&User, Epochs)>,
    proposal: &Proposal,
) -> Result<TokenResponse> {
    let additions = Additions {
        claims: granted.claims.clone(),
        members: granted.parameters,
        ..Additions::default()
    };
    let Some((user, epochs)) = user else {
        return Issue::of_client(context, &granted.scope).tokens(narrowed, additions);
    };
    let client = &context.client.client;
    let auth_time = proposal.auth_time.unwrap_or(context.now).min(context.now);
    let mut sign_in = SignIn::without_session(user, proposal.amr.clone(), auth_time);
    if let Some(acr) = &proposal.acr {
        sign_in.acr.clone_from(acr);
    }
    // Refreshed tokens must reach no further than the first.
    let resources = if request.resources.is_empty() {
        &proposal.resources
    } else {
        &request.resources
    };
    let given = Given {
        user: sign_in,
        scope: granted.scope,
        epochs,
        session_ends_at: None,
    };
    let grant = Grant {
        resources: resources.clone(),
        token_claims: granted.claims,
        ..begun(context, given)
    };
    let is_entered = refresh_token::is_issued(&grant, client);
    let stands_on = if is_entered {
        enter(context, &grant, request)?;
        StandsOn::Grant(grant.id)
    } else {
        StandsOn::User(epochs)
    };
    let user = IssueUser {
        sign_in: &grant.user,
        user,
        grant: is_entered.then_some(&grant),
        claims: &grant.claims,
        nonce: None,
    };
    let issue = Issue {
        user: Some(user),
        ..Issue::new(context, &grant.scope, stands_on)
    };
    issue.tokens(narrowed, additions)
}

fn enter(context: GrantContext<'_>, grant: &Grant, request: &ExtensionRequest) -> Result {
    let event = AuditEvent {
        event: "grant_begun",
        detail: json!({"grant_type": request.grant_type}),
        ..context.request.caused(AuditEvent::of(grant))
    };
    match grants::begin(&context.app.store, grant, random::bytes(), &event)? {
        Some(_) => Ok(()),
        None => Err(invalid_grant(Reason::GrantNoLongerStands)),
    }
}

/// Calls the operator's SQL function. When it fails, that is our failure and not the client's: 503,
/// and a line in the log.
pub fn call_function(context: GrantContext<'_>, request: &ExtensionRequest) -> Result<GrantAnswer> {
    let GrantContext {
        app,
        client,
        snapshot,
        ..
    } = context;
    let Some(grant) = snapshot.catalogue.extension_grants.get(&request.grant_type) else {
        return Err(TokenError::new(
            TokenErrorCode::UnsupportedGrantType,
            Reason::UnsupportedGrantType,
        )
        .into());
    };
    let parameters = request.to_json();
    let metadata = client_metadata(&client.client);
    match catalogue::call_function(&app.extensions.functions, grant, &parameters, &metadata) {
        Ok(answer) => read_answer(grant, answer),
        Err(error) => {
            log::error!(
                "request {}: function {}.{}: {error}",
                context.request.id,
                grant.schema,
                grant.function
            );
            Err(Failure::Busy)
        }
    }
}

fn read_answer(grant: &SqlGrant, answer: FunctionAnswer) -> Result<GrantAnswer> {
    match answer {
        FunctionAnswer::Null => Ok(GrantAnswer::Refuse(GrantRefusal::invalid_grant(""))),
        FunctionAnswer::Value(answer) => read(&answer).map_err(|fault| {
            Failure::Internal(format!(
                "function {}.{} answered {fault}",
                grant.schema, grant.function
            ))
        }),
        FunctionAnswer::Raised(message) => {
            Ok(GrantAnswer::Refuse(GrantRefusal::invalid_grant(&message)))
        }
        FunctionAnswer::Unreadable => Ok(GrantAnswer::Refuse(GrantRefusal::of(invalid_request(
            Reason::ExtensionInput,
        )))),
    }
}
