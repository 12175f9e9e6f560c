//! Accounts elsewhere that a person signs in with. Linking begins with a post from the account
//! page, soon after a sign-in, goes upstream and comes back to a question that names the account
//! there: only the answer links. Nothing here signs in.

use serde_json::json;

use super::{Change, draw};
use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::Result;
use crate::app::letters::AccountChange;
use crate::endpoints::answers;
use crate::endpoints::cookies;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::forms::Form;
use crate::endpoints::transaction::{self, AuthorizationTransaction, InSession, RequestContext};
use crate::endpoints::upstream::callback::{Back, Identified, over};
use crate::endpoints::upstream::departure::{UpstreamPurpose, depart};
use crate::http::Response;
use crate::pages;
use crate::pages::account::{OfferedLink, Outcome, provider_name};
use crate::pages::form_problem::FormProblem;
use crate::pages::frame::PageForm;
use crate::registry::Snapshot;
use gatepost_protocol::login::letters::verified_address;
use gatepost_protocol::sealed_request::{SealedPurpose, SealedRequest};
use gatepost_protocol::upstream::account::{LinkOffer, OfferProblem};
use gatepost_protocol::upstream::choices::{Choices, provider_of};
use gatepost_protocol::upstream::{UpstreamIdentity, UpstreamProblem};
use gatepost_protocol::words::identifiers::Sid;
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::place::SignInPlace;
use gatepost_protocol::words::reason::Reason;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::linked_identities::{self, Link, Linked, LinkedIdentity, Unlinked};
use gatepost_store::users;

/// What the page says to a user who was sent to sign in anew: that they did, or that the sign-in
/// was not new. A provider may date it back.
pub(super) fn signed_in_anew(
    context: InSession<'_>,
    query: &Parameters,
) -> Option<Outcome<'static>> {
    let was_sent = query.all("signed_in").any(|value| value == "anew");
    let outcome = if may_begin(context) {
        Outcome::SignedInAnew
    } else {
        Outcome::Problem(FormProblem::SignInTooOld)
    };
    was_sent.then_some(outcome)
}

fn may_begin(context: InSession<'_>) -> bool {
    let current_session = context.current_session;
    let has_own_way_in = current_session.user.has_own_way_in();
    current_session
        .row
        .may_change_ways_in(has_own_way_in, context.app.now())
}

/// A person's identities elsewhere with which they can sign in.
pub(super) fn identities(
    app: &App,
    snapshot: &Snapshot,
    current_session: &CurrentSession,
) -> Result<Vec<LinkedIdentity>> {
    let mut own = linked_identities::of_user(&app.store, &current_session.user.sub)?;
    own.retain(|identity| {
        identity.provider.is_some() || provider_of(&snapshot.catalogue, &identity.issuer).is_some()
    });
    Ok(own)
}

fn place<'a>(snapshot: &'a Snapshot, current_session: &'a CurrentSession) -> SignInPlace<'a> {
    SignInPlace {
        client: None,
        tenant: current_session.user.tenant.as_ref(),
        catalogue: &snapshot.catalogue,
    }
}

/// Where this person may link an account, in the order shown.
fn offered<'a>(
    snapshot: &'a Snapshot,
    current_session: &CurrentSession,
) -> Vec<&'a IdentityProvider> {
    let choices = Choices::of(&place(snapshot, current_session), None);
    choices
        .providers
        .iter()
        .filter_map(|name| snapshot.catalogue.identity_providers.get(name))
        .collect()
}

/// Whether this person may link an account at that provider.
fn may_link(
    snapshot: &Snapshot,
    current_session: &CurrentSession,
    provider: &IdentityProvider,
) -> bool {
    Choices::of(&place(snapshot, current_session), None).offers(&provider.name)
}

/// Where they could link an account: one at each provider.
pub(super) fn linkable<'a>(
    snapshot: &'a Snapshot,
    current_session: &CurrentSession,
    own: &[LinkedIdentity],
) -> Vec<&'a IdentityProvider> {
    let mut providers = offered(snapshot, current_session);
    providers.retain(|provider| own.iter().all(|one| one.issuer != provider.authority()));
    providers
}

/// Goes upstream; or to a sign-in first, where the last one is too long ago.
pub(super) fn begin(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        request,
        current_session,
        ..
    } = change.context;
    let name = change.parameter("provider", parameters::OTHER)?;
    let snapshot = app.registry.snapshot();
    let own = identities(app, &snapshot, current_session)?;
    let linkable = linkable(&snapshot, current_session, &own);
    if !linkable.iter().any(|provider| provider.name == name) {
        return change.refuse(FormProblem::ProviderUnavailable, Reason::LinkImpossible);
    }
    if !may_begin(change.context) {
        return change.sign_in_anew();
    }
    match depart(app, request, UpstreamPurpose::Link(current_session), name) {
        Ok(response) => Ok(response),
        Err(stopped) => not_arrived(change.context, name, &stopped.refusal()?),
    }
}

/// The account page, when linking failed upstream or did not get there.
fn not_arrived(
    context: InSession<'_>,
    provider: &str,
    problem: &UpstreamProblem,
) -> Result<Response> {
    let reason = problem.reason();
    let concerned = Concerned::Provider(provider);
    context.app.note_failure(
        "identity_link_failed",
        context.request,
        None,
        concerned,
        reason,
    );
    let sentence = match problem {
        UpstreamProblem::Cancelled | UpstreamProblem::LoginRequired => FormProblem::LinkCancelled,
        UpstreamProblem::Busy | UpstreamProblem::Unavailable(_) => FormProblem::ProviderUnavailable,
        UpstreamProblem::Unusable(_) | UpstreamProblem::NotBelieved(_) => {
            FormProblem::UpstreamUnusable
        }
    };
    let mut response = draw(context, 200, Some(Outcome::Problem(sentence)))?;
    response.note.reason = Some(reason);
    response.note.detail = Some(problem.detail(provider));
    Ok(response)
}

/// Somebody is back from upstream, to link: asks, in the session that left. Another user may have
/// signed in since.
pub fn come_back(back: &Back<'_>, sid: &Sid) -> Result<Response> {
    let Back { app, request, .. } = *back;
    app.require_fresh_registry()?;
    let current_session = CurrentSession::find(app, request)?
        .filter(|current_session| current_session.row.sid == *sid);
    let Some(current_session) = current_session else {
        return Ok(over(app, request, Reason::LinkSessionOver));
    };
    let identified = back.identify(|provider| may_link(&back.snapshot, &current_session, provider));
    let transaction = AuthorizationTransaction::to_account(app)?;
    let context = RequestContext {
        app,
        request,
        transaction: &transaction,
        current_session: &current_session,
        refused: None,
        someone_else: false,
    };
    match identified {
        Ok(Identified { provider, identity }) => ask(context, provider, &identity),
        Err(problem) => not_arrived(context, &back.trip.provider, &problem),
    }
}

/// Shows who they are there, and asks.
fn ask(
    context: InSession<'_>,
    provider: &IdentityProvider,
    identity: &UpstreamIdentity,
) -> Result<Response> {
    let app = context.app;
    let subject = &identity.facts.subject;
    let owner = linked_identities::find_user(&app.store, provider.authority(), subject, None)?;
    match owner.map(|owner| owner.found.user.sub) {
        Some(sub) if sub == context.current_session.user.sub => {
            let name = &provider.display_name;
            draw(context, 200, Some(Outcome::IdentityLinkedAlready(name)))
        }
        Some(_) => {
            let reason = Reason::IdentityLinkedElsewhere;
            app.note_failure(
                "identity_link_refused",
                context.request,
                None,
                Concerned::Provider(&provider.name),
                reason,
            );
            let problem = Outcome::Problem(FormProblem::LinkedElsewhere);
            Ok(answers::noted(draw(context, 200, Some(problem))?, reason))
        }
        None => Ok(draw_question(context, provider, identity)),
    }
}

fn draw_question(
    context: InSession<'_>,
    provider: &IdentityProvider,
    identity: &UpstreamIdentity,
) -> Response {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let subject = &identity.facts.subject;
    let offer = LinkOffer {
        provider: provider.name.clone(),
        issuer: provider.authority().to_owned(),
        subject: subject.clone(),
        label: identity.label.clone(),
        sid: current_session.row.sid.clone(),
    };
    let sealed = transaction::seal(app, SealedPurpose::Link(offer)).sealed;
    let form = PageForm {
        chrome: context.chrome(),
        action: app.config.base_url.path_of("/account"),
        token: context.form_token(Form::Link, &sealed),
    };
    let offered = OfferedLink {
        provider,
        subject,
        label: identity.label.as_deref(),
        sealed: &sealed,
    };
    let page = pages::account::link_page(&form, current_session.account(), offered);
    answers::form_page(200, page)
}

/// The person said yes: links the identity that the form holds under seal. The form must be of this
/// session, and the offer must still stand.
pub(super) fn confirm(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    let form = change.form;
    let sealed = form
        .bounded("offer", parameters::HANDLE)?
        .unwrap_or_default();
    if !change.context.has_form_token(Form::Link, sealed, form) {
        return change.refuse(FormProblem::SessionChanged, Reason::LinkOfAnotherSession);
    }
    let opened = app.vault.authorize_requests.open_text("", sealed);
    let Some(SealedRequest {
        received_at,
        purpose: SealedPurpose::Link(offer),
    }) = opened
    else {
        return Err(transaction::invalid());
    };
    match offer.judge(&current_session.row.sid, received_at, app.now()) {
        Ok(()) => {}
        Err(OfferProblem::OtherSession) => {
            return change.refuse(FormProblem::SessionChanged, Reason::LinkOfAnotherSession);
        }
        Err(OfferProblem::Expired) => {
            return change.refuse(FormProblem::LinkExpired, Reason::LinkExpired);
        }
    }
    let snapshot = app.registry.snapshot();
    let providers = offered(&snapshot, current_session);
    let provider = providers
        .iter()
        .find(|one| one.name == offer.provider && one.authority() == offer.issuer);
    let Some(provider) = provider else {
        return change.refuse(FormProblem::ProviderUnavailable, Reason::LinkImpossible);
    };
    let new = Link {
        issuer: &offer.issuer,
        upstream_subject: &offer.subject,
        sub: &current_session.user.sub,
        provider: Some(&provider.name),
    };
    let event = link_event("identity_linked", &change, &new);
    match linked_identities::link(&app.store, &new, Some(&current_session.row), &event)? {
        Linked::Added => {
            change.context.notify(AccountChange::Linked);
            change.answer(Outcome::IdentityLinked(&provider.display_name))
        }
        Linked::Taken(owner) if owner == current_session.user.sub => {
            change.answer(Outcome::IdentityLinkedAlready(&provider.display_name))
        }
        Linked::Taken(_) => change.refuse(
            FormProblem::LinkedElsewhere,
            Reason::IdentityLinkedElsewhere,
        ),
        Linked::Nothing => change.refuse(FormProblem::SessionChanged, Reason::LinkSessionOver),
    }
}

fn link_event<'a>(event: &'a str, change: &'a Change<'_>, link: &Link<'_>) -> AuditEvent<'a> {
    let detail = json!({
        "by": "user",
        "issuer": link.issuer,
        "upstream_subject": link.upstream_subject,
    });
    AuditEvent {
        detail,
        ..change.event(event, &change.context.current_session.row.sid)
    }
}

/// What a form calls an identity.
pub(super) fn form_name(app: &App, snapshot: &Snapshot, identity: &LinkedIdentity) -> String {
    let provider = provider_name(&snapshot.catalogue, identity).to_owned();
    let LinkedIdentity {
        sub,
        issuer,
        upstream_subject,
        ..
    } = identity.clone();
    transaction::seal(
        app,
        SealedPurpose::Unlink {
            sub,
            issuer,
            upstream_subject,
            provider,
        },
    )
    .sealed
}

/// Takes one of this person's identities from them, unless nothing would be left to sign in with.
pub(super) fn unlink(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    let sealed = change.parameter("identity", parameters::HANDLE)?;
    let sub = &current_session.user.sub;
    let opened: Option<SealedRequest> = app.vault.authorize_requests.open_text("", sealed);
    let purpose = opened.map(|request| request.purpose);
    let Some(SealedPurpose::Unlink {
        sub: theirs,
        issuer,
        upstream_subject,
        provider,
    }) = &purpose
    else {
        return change.problem(FormProblem::NothingThere);
    };
    if theirs != sub {
        return change.problem(FormProblem::NothingThere);
    }
    let snapshot = app.registry.snapshot();
    // Of the providers by which this person could come in, offered here or not.
    let place = place(&snapshot, current_session);
    let ways_in = snapshot
        .catalogue
        .identity_providers
        .values()
        .filter(|provider| place.is_way_in(&provider.name));
    let usable_issuers: Vec<&str> = ways_in.map(IdentityProvider::authority).collect();
    let identity = Link {
        issuer,
        upstream_subject,
        sub,
        provider: None,
    };
    let event = link_event("identity_unlinked", &change, &identity);
    // Asked before the change, which forgets who verified the address.
    let address = verified_address(&current_session.user.claims);
    let counted = users::address_counts(&app.store, sub, address)?;
    let unlinked = linked_identities::unlink(&app.store, &identity, Some(&usable_issuers), &event)?;
    if counted && unlinked == Unlinked::Done {
        change.context.notify(AccountChange::Unlinked);
    }
    match unlinked {
        Unlinked::Done if current_session.read_again(app)?.is_some() => {
            change.answer(Outcome::IdentityUnlinked(provider))
        }
        // The session of this browser was one of those that ended with it.
        Unlinked::Done => {
            let signed_out = answers::see_other(app.config.base_url.path_of("/logout"));
            Ok(cookies::remove_session(&app.config, signed_out))
        }
        Unlinked::NotTheirs => change.problem(FormProblem::NothingThere),
        Unlinked::LastWayIn => change.refuse(FormProblem::LastWayIn, Reason::LastWayIn),
    }
}
