//! What a validated request needs next: a page, an answer or a refusal. [`decide`] is asked again
//! at every step that a page does not answer by itself, with what is stored then. Nothing notes
//! that a prompt is satisfied. It follows from the age of the session and from the page that was
//! just posted.

#[cfg(test)]
mod case;
#[cfg(test)]
mod strength_tests;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::Value;

use super::authorize_request::{AuthorizeRefusal, AuthorizeRequest, Ending};
use super::consent::Consent;
use crate::words::catalogue::Catalogue;
use crate::words::client::Client;
use crate::words::identifiers::Subject;
use crate::words::instant::Instant;
use crate::words::place::SignInPlace;
use crate::words::reason::{AuthorizeErrorCode, Reason};
use crate::words::redirect_uri::RedirectTarget;
use crate::words::scope::{OPENID, ScopeSet};
use crate::words::session::{LOCAL, Session};
use crate::words::strength::{Strength, reaches};

/// How long after its sign-in a session without a key counts at a client with
/// `require_bound_session`.
const UNBOUND_GRACE: Duration = Duration::from_secs(90);

pub struct Situation<'a> {
    pub request: &'a AuthorizeRequest,
    /// `None` for a page of ours.
    pub client: Option<&'a Client>,
    pub catalogue: &'a Catalogue,
    pub session: Option<&'a Session>,
    /// Whether that session is bound to a key of its browser.
    pub is_bound: bool,
    /// The claim `role` of the session's user.
    pub role: Option<&'a Value>,
    /// The weakest sign-in that the client (`minimum_acr`) or the page of ours accepts, whatever
    /// the request asks for.
    pub minimum_acr: Strength,
    /// The strongest sign-in that the user's factors allow.
    pub strongest_acr: Strength,
    /// The strongest sign-in that factors allow which the user may add now, without the operator.
    pub may_enrol: Strength,
    pub consent: Option<&'a Consent>,
    pub hinted_subject: Option<&'a Subject>,
    pub step: Step,
    pub now: Instant,
}

/// How far the person has come. All but the first come from a form whose token was checked for this
/// request and this session, so the page was shown, or from a sign-in.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing that counts was posted: they come from the client, they only opened a page, or their
    /// form was not taken.
    Arrival,
    AfterSignIn,
    /// A factor made the session stronger. Nobody signed in: its `auth_time` is that of before.
    AfterFactor,
    AfterAccountChosen,
    /// The user goes on without a further factor, which was only a wish.
    AfterWishDeclined,
    /// Where the client requires bound sessions, the session counted when the page was drawn, a
    /// while ago at most.
    AfterConsent {
        /// The scopes that the user allowed: what [`narrow`] made of the ticks.
        granted: ScopeSet,
    },
}

#[derive(Debug, PartialEq)]
#[must_use]
pub enum Interaction {
    Login {
        /// Why the session, if there is one, is not enough.
        cause: LoginCause,
    },
    SelectAccount,
    /// A page says that the client is not open to this user.
    NotOpen,
    Stronger(Stronger),
    /// The consent page asks for everything in the request.
    Consent {
        /// Whether agreeing may be remembered.
        may_remember: bool,
    },
    Proceed {
        scope: ScopeSet,
    },
    Refuse(AuthorizeRefusal),
}

/// What makes a session stronger.
#[derive(Debug, PartialEq)]
pub enum Stronger {
    /// The user proves another factor that they have.
    Prove {
        /// Whether the request can go on without it.
        may_skip: bool,
    },
    /// The user adds a factor that reaches this.
    Enrol(Strength),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoginCause {
    /// Nobody is signed in, or the session ran out.
    NoSession,
    Prompt,
    TooOld,
    /// The session is of another tenant, or of none.
    OtherTenant,
    /// The session came from another provider than the requested one, or from one that the client
    /// does not allow.
    OtherIdentityProvider,
    /// The session is of another user than `id_token_hint` or `claims` name.
    OtherSubject,
    /// The session does not reach an essential `acr`.
    OtherAcr,
    /// The session is not bound to its browser, as the client requires.
    Unbound,
}

/// Decides what comes next.
pub fn decide(situation: &Situation<'_>) -> Interaction {
    let session = match usable_session(situation) {
        Ok(session) => session,
        Err(cause) => return sign_in(situation, cause),
    };
    // Who signed in for this request has chosen an account already, and so has who answered the
    // consent page.
    let request = situation.request;
    if situation.step == Step::Arrival
        && request.prompt.select_account
        && !is_own_sign_in(request, session)
    {
        return Interaction::SelectAccount;
    }
    if situation
        .client
        .is_some_and(|client| !client.is_open_to(situation.role))
    {
        return if request.prompt.none {
            refuse(AuthorizeErrorCode::AccessDenied, Reason::NotOpenToUser)
        } else {
            Interaction::NotOpen
        };
    }
    if let Some(stronger) = strengthen(situation, session) {
        return stronger;
    }
    match &situation.step {
        Step::AfterConsent { granted } => {
            proceed(granted.retain(|name| request.scope.contains(name)))
        }
        Step::Arrival
        | Step::AfterSignIn
        | Step::AfterFactor
        | Step::AfterAccountChosen
        | Step::AfterWishDeclined => {
            if must_consent(situation) {
                ask_consent(situation)
            } else {
                proceed(request.scope.clone())
            }
        }
    }
}

/// The scopes that the ticks on the consent page grant: the requested ones that are ticked or
/// cannot be unticked. A tick outside the request is `invalid_request`. No scope left is
/// `access_denied`.
pub fn narrow(
    requested: &ScopeSet,
    ticked: &[&str],
    catalogue: &Catalogue,
) -> Result<ScopeSet, AuthorizeRefusal> {
    if !ticked.iter().all(|name| requested.contains(name)) {
        return Err(AuthorizeRefusal::new(
            AuthorizeErrorCode::InvalidRequest,
            Reason::ScopeOutsideRequest,
        ));
    }
    let granted = requested.retain(|name| ticked.contains(&name) || is_required(name, catalogue));
    if granted.is_empty() {
        Err(AuthorizeRefusal::new(
            AuthorizeErrorCode::AccessDenied,
            Reason::AccessDenied,
        ))
    } else {
        Ok(granted)
    }
}

/// Whether the consent page shows this scope as required: it cannot be unticked.
pub fn is_required(scope: &str, catalogue: &Catalogue) -> bool {
    scope == OPENID
        || catalogue
            .scopes
            .get(scope)
            .is_some_and(|registered| registered.required)
}

fn proceed(scope: ScopeSet) -> Interaction {
    Interaction::Proceed { scope }
}

/// The session, if it meets everything that the request says about who signs in and when.
fn usable_session<'a>(situation: &Situation<'a>) -> Result<&'a Session, LoginCause> {
    let session = situation
        .session
        .filter(|session| session.is_alive(situation.now))
        .ok_or(LoginCause::NoSession)?;
    let request = situation.request;
    if !is_of_wanted_tenant(request, session) {
        return Err(LoginCause::OtherTenant);
    }
    if !is_of_wanted_provider(situation, session) {
        return Err(LoginCause::OtherIdentityProvider);
    }
    if !is_wanted_subject(situation, &session.subject) {
        return Err(LoginCause::OtherSubject);
    }
    let own_sign_in = is_own_sign_in(request, session);
    if request.prompt.login && !own_sign_in {
        return Err(LoginCause::Prompt);
    }
    if is_too_old(session, request.max_age, situation.now) && !own_sign_in {
        return Err(LoginCause::TooOld);
    }
    if must_be_bound(situation, session) {
        return Err(LoginCause::Unbound);
    }
    Ok(session)
}

/// Whether only a session with a key of its browser would do. Without one, a session counts for a
/// while after its sign-in; for the request of that sign-in, which an identity provider may date
/// back; and for an answer to the consent page, whose form says when it was drawn.
///
/// When the request came in is not asked: a thief could make one, wait for a sign-in, and use its
/// cookie for as long as requests live.
fn must_be_bound(situation: &Situation<'_>, session: &Session) -> bool {
    let is_required = situation
        .client
        .is_some_and(|client| client.require_bound_session);
    let counts = match situation.step {
        Step::AfterSignIn | Step::AfterConsent { .. } => true,
        Step::Arrival | Step::AfterFactor | Step::AfterAccountChosen | Step::AfterWishDeclined => {
            situation.now < session.auth_time.plus(UNBOUND_GRACE)
        }
    };
    is_required && !situation.is_bound && !counts
}

/// What must come first where the session is weaker than required, or weaker than the client
/// wishes. A session from an identity provider is not made stronger here.
fn strengthen(situation: &Situation<'_>, session: &Session) -> Option<Interaction> {
    if will_do(situation, &session.acr) {
        let is_due = is_wish_due(situation, session);
        return is_due.then_some(Interaction::Stronger(Stronger::Prove { may_skip: true }));
    }
    if session.identity_provider() != LOCAL {
        return Some(sign_in(situation, LoginCause::OtherAcr));
    }
    let mut strengths = Strength::ALL.into_iter();
    let wanted = strengths.find(|one| will_do(situation, one.as_str()));
    Some(match wanted {
        Some(wanted) => reach(situation, session, wanted),
        None => unmet(Reason::UnmetAuthenticationRequirements),
    })
}

/// Whether that is strong enough for both the request's essential `acr` and the client's
/// `minimum_acr`.
fn will_do(situation: &Situation<'_>, acr: &str) -> bool {
    let claims = &situation.request.claims;
    claims.is_met_by(acr) && Strength::of(claims.acr_claim(acr)) >= situation.minimum_acr
}

/// What brings a session of our own to the strength that is wanted. A first factor can be added
/// only right after a sign-in.
fn reach(situation: &Situation<'_>, session: &Session, wanted: Strength) -> Interaction {
    let strongest_acr = situation.strongest_acr;
    if situation.request.prompt.none {
        return if strongest_acr >= wanted {
            refuse(
                AuthorizeErrorCode::InteractionRequired,
                Reason::InteractionRequired,
            )
        } else {
            unmet(Reason::FactorDeclined)
        };
    }
    if strongest_acr > Strength::of(&session.acr) {
        return Interaction::Stronger(Stronger::Prove { may_skip: false });
    }
    if situation.may_enrol < wanted {
        return unmet(Reason::FactorDeclined);
    }
    if session.may_change_ways_in(true, situation.now) {
        Interaction::Stronger(Stronger::Enrol(wanted))
    } else {
        Interaction::Login {
            cause: LoginCause::OtherAcr,
        }
    }
}

fn unmet(reason: Reason) -> Interaction {
    refuse(AuthorizeErrorCode::UnmetAuthenticationRequirements, reason)
}

/// Whether the user is to be asked for a stronger session that is only a wish: once, where they can
/// be asked and have not signed in for this request.
fn is_wish_due(situation: &Situation<'_>, session: &Session) -> bool {
    let request = situation.request;
    matches!(situation.step, Step::Arrival | Step::AfterAccountChosen)
        && session.identity_provider() == LOCAL
        && !request.prompt.none
        && !is_own_sign_in(request, session)
        && wishes_more(request, session, situation.strongest_acr)
}

/// Whether the client wishes for a stronger session. `acr_values` lists its wishes, the dearest
/// first. The first one that the session or the user's factors reach decides.
fn wishes_more(request: &AuthorizeRequest, session: &Session, strongest_acr: Strength) -> bool {
    let mut wishes = request.acr_values.others.iter().map(String::as_str);
    let decisive =
        wishes.find(|wish| reaches(&session.acr, wish) || reaches(strongest_acr.as_str(), wish));
    decisive.is_some_and(|wish| !reaches(&session.acr, wish))
}

/// Whether the user signed in after the request arrived. Without this rule, `max_age=0`,
/// `prompt=login` and `prompt=select_account` would ask forever.
fn is_own_sign_in(request: &AuthorizeRequest, session: &Session) -> bool {
    session.auth_time >= request.received_at
}

/// Whether the sign-in is older than `max_age` seconds. With 0, every session from before the
/// request is too old (OpenID Connect Core §3.1.2.1).
fn is_too_old(session: &Session, max_age: Option<u64>, now: Instant) -> bool {
    let age = u64::try_from(now.millis().saturating_sub(session.auth_time.millis())).unwrap_or(0);
    max_age.is_some_and(|max_age| max_age == 0 || age > max_age.saturating_mul(1000))
}

/// The account page is for users of any tenant, unless its address names one.
fn is_of_wanted_tenant(request: &AuthorizeRequest, session: &Session) -> bool {
    let wanted = &request.acr_values.tenant;
    let any_tenant = matches!(request.ending, Ending::Account { .. }) && wanted.is_none();
    any_tenant || session.tenant == *wanted
}

fn is_of_wanted_provider(situation: &Situation<'_>, session: &Session) -> bool {
    let provider = session.identity_provider();
    let wanted = situation.request.acr_values.identity_provider.as_deref();
    let place = SignInPlace {
        client: situation.client,
        tenant: session.tenant.as_ref(),
        catalogue: situation.catalogue,
    };
    wanted.is_none_or(|wanted| wanted == provider) && place.accepts(session)
}

fn is_wanted_subject(situation: &Situation<'_>, subject: &Subject) -> bool {
    situation
        .hinted_subject
        .is_none_or(|hinted| hinted == subject)
        && situation.request.claims.allows_subject(subject)
}

fn sign_in(situation: &Situation<'_>, cause: LoginCause) -> Interaction {
    if situation.request.prompt.none {
        let reason = if cause == LoginCause::Unbound {
            Reason::UnboundSession
        } else {
            Reason::LoginRequired
        };
        return refuse(AuthorizeErrorCode::LoginRequired, reason);
    }
    let dead_end = match cause {
        LoginCause::OtherSubject => Some((AuthorizeErrorCode::LoginRequired, Reason::OtherSubject)),
        LoginCause::OtherAcr => Some((
            AuthorizeErrorCode::UnmetAuthenticationRequirements,
            Reason::UnmetAuthenticationRequirements,
        )),
        LoginCause::OtherTenant | LoginCause::OtherIdentityProvider => {
            Some((AuthorizeErrorCode::AccessDenied, Reason::NoWayToSignIn))
        }
        // A sign-in by password is always fresh. An identity provider may be content with an older
        // sign-in.
        LoginCause::Prompt | LoginCause::TooOld => {
            Some((AuthorizeErrorCode::LoginRequired, Reason::SignInTooOld))
        }
        LoginCause::NoSession | LoginCause::Unbound => None,
    };
    let has_answered = matches!(situation.step, Step::AfterSignIn | Step::AfterFactor);
    match dead_end.filter(|_| has_answered) {
        // They have just signed in, and it was not enough. Asking again would have the same result.
        Some((code, reason)) => refuse(code, reason),
        None => Interaction::Login { cause },
    }
}

fn refuse(code: AuthorizeErrorCode, reason: Reason) -> Interaction {
    Interaction::Refuse(AuthorizeRefusal::new(code, reason))
}

fn must_consent(situation: &Situation<'_>) -> bool {
    let Situation {
        request, client, ..
    } = situation;
    match (&request.ending, client) {
        (Ending::Account { .. }, _) => false,
        // Somebody else may have sent them the code, and sit at the device. Only this question
        // warns them (RFC 8628 §5.4).
        (Ending::Device(_), _) | (Ending::Client(_), None) => true,
        (Ending::Client(path), Some(client)) => {
            let is_required =
                client.require_consent == Some(true) || is_impersonable(client, &path.to);
            request.prompt.consent || is_required && !is_remembered(situation)
        }
    }
}

/// Whether any program on the user's machine can pose as this client, and the registration does not
/// set `require_consent` to false. Then the person has to agree each time (RFC 8252 §8.6), unless
/// an agreement may be remembered ([`may_remember`]).
fn is_impersonable(client: &Client, redirect: &RedirectTarget) -> bool {
    let anyone_can_listen = redirect.is_loopback() || redirect.is_custom_scheme();
    !client.is_confidential() && anyone_can_listen && client.require_consent != Some(false)
}

/// Whether an agreement may be remembered for the next time. For a device it never is: it counts
/// for this device alone.
pub fn may_remember(request: &AuthorizeRequest, client: Option<&Client>) -> bool {
    match (&request.ending, client) {
        (Ending::Client(path), Some(client)) => may_remember_at(client, &path.to),
        (Ending::Client(_) | Ending::Device(_) | Ending::Account { .. }, _) => false,
    }
}

/// Where other programs can pose as the client, an agreement is remembered only on loopback, and
/// only if the registration sets `allow_remember_consent`. Never on the loopback of a client that
/// describes itself: whoever writes its document can name a program on every machine.
fn may_remember_at(client: &Client, redirect: &RedirectTarget) -> bool {
    if client.metadata_document && redirect.is_loopback() {
        return false;
    }
    let by_itself = !is_impersonable(client, redirect);
    client.allow_remember_consent.map_or(by_itself, |said| {
        said && (by_itself || redirect.is_loopback())
    })
}

/// Whether people are asked each time, whatever they allowed before and although the registration
/// does not require consent.
pub fn always_asks(client: &Client, redirect: &RedirectTarget) -> bool {
    is_impersonable(client, redirect) && !may_remember_at(client, redirect)
}

fn is_remembered(situation: &Situation<'_>) -> bool {
    let Situation {
        request,
        consent,
        now,
        ..
    } = situation;
    let lifetime = situation.client.and_then(|client| client.consent_lifetime);
    let covers =
        |consent: &Consent| consent.covers(&request.scope, &request.claims.names(), lifetime, *now);
    may_remember(situation.request, situation.client) && consent.is_some_and(covers)
}

fn ask_consent(situation: &Situation<'_>) -> Interaction {
    if situation.request.prompt.none {
        return refuse(AuthorizeErrorCode::ConsentRequired, Reason::ConsentRequired);
    }
    Interaction::Consent {
        may_remember: may_remember(situation.request, situation.client),
    }
}
