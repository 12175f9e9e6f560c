//! Signing in with a passkey: by itself, on the sign-in page, or as the second factor that a ticket
//! asks for.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::second_factor::{SECOND_FACTOR_FAILED, ask, stands};
use super::webauthn::{self, CLIENT_DATA, PASSKEY_REFUSED};
use super::wrong_passwords::counted_wrong;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Result, Stopped};
use crate::endpoints::answers;
use crate::endpoints::transaction::{AuthorizationTransaction, Proof, RequestContext, Taken};
use crate::pages::form_problem::FormProblem;
use gatepost_protocol::keys::jwt::PublicKey;
use gatepost_protocol::login::passkey::{self, Passkey};
use gatepost_protocol::login::second_factor::{FactorKind, Ticket, with_factor};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::audit_events::{self, AuditEvent};
use gatepost_store::authenticators::{self, Authenticator};
use gatepost_store::tokens;
use gatepost_store::users::{self, CurrentUser, UserRow};

/// How long a spent challenge is remembered after its end.
const SPENT_FOR: Duration = Duration::from_secs(3_600);

/// Signs in with a passkey: by itself, or as what a ticket asks for. The challenge must have been
/// drawn for one of these `ties`.
pub(super) fn prove(
    context: RequestContext<'_>,
    ticket: Option<&Ticket>,
    ties: &[[u8; 32]],
    form: &Parameters,
) -> Result<Taken> {
    match show(context, ticket, ties, form) {
        Err(stopped) => refuse(context, ticket, stopped.refusal()?),
        Ok(shown) => {
            let before = ticket.map_or(&[][..], |ticket| &ticket.amr);
            let proof = Proof {
                amr: with_factor(before, &passkey::methods(shown.backup_eligible)),
                acr: Strength::PhishingResistant.as_str().to_owned(),
                auth_time: ticket.map(|ticket| ticket.auth_time),
                ..Proof::password(ticket.map(|ticket| ticket.remember))
            };
            Ok(Taken::Proved(Box::new(shown.found), proof))
        }
    }
}

/// Takes a passkey's answer. Why it is refused, the audit log is told.
pub fn show(
    context: RequestContext<'_>,
    ticket: Option<&Ticket>,
    ties: &[[u8; 32]],
    form: &Parameters,
) -> Result<Shown, Stopped<Reason>> {
    let judged = judge(context, ticket, ties, Answer::read(form)?);
    match &judged {
        Ok(_) => context.app.factors_used.raise(FactorKind::Passkey),
        Err(Stopped::Failed(_)) => {}
        Err(Stopped::Refused(reason)) => {
            let (event, concerned) = match ticket {
                Some(ticket) => (SECOND_FACTOR_FAILED, Concerned::User(&ticket.subject)),
                None => (PASSKEY_REFUSED, Concerned::Nobody),
            };
            let client_id = context.transaction.client_id();
            context
                .app
                .note_failure(event, context.request, client_id, concerned, *reason);
        }
    }
    judged
}

fn refuse(context: RequestContext<'_>, ticket: Option<&Ticket>, reason: Reason) -> Result<Taken> {
    let Some(ticket) = ticket else {
        let problem = if reason == Reason::PasskeyUnknown {
            FormProblem::PasskeyUnknown
        } else {
            FormProblem::PasskeyRefused
        };
        return Ok(Taken::NotSignedIn(problem, reason));
    };
    let page = ask(context, ticket, Some(FormProblem::PasskeyRefused))?;
    Ok(Taken::Answer(answers::noted(page, reason)))
}

/// What the browser posts (WebAuthn §5.1.4, `AuthenticationResponseJSON`).
struct Answer {
    id: Vec<u8>,
    client_data: Vec<u8>,
    authenticator_data: Vec<u8>,
    signature: Vec<u8>,
    /// Empty where the passkey does not say whose it is.
    user_handle: Vec<u8>,
}

impl Answer {
    fn read(form: &Parameters) -> Result<Answer> {
        Ok(Answer {
            id: webauthn::decoded(form, "id", parameters::HANDLE)?,
            client_data: webauthn::decoded(form, "client_data", CLIENT_DATA)?,
            authenticator_data: webauthn::decoded(form, "authenticator_data", CLIENT_DATA)?,
            signature: webauthn::decoded(form, "signature", CLIENT_DATA)?,
            user_handle: webauthn::decoded(form, "user_handle", parameters::OTHER)?,
        })
    }
}

/// Somebody has shown their passkey.
pub struct Shown {
    found: CurrentUser,
    backup_eligible: bool,
}

/// Judges the answer, and spends its challenge.
fn judge(
    context: RequestContext<'_>,
    ticket: Option<&Ticket>,
    ties: &[[u8; 32]],
    answer: Answer,
) -> Result<Shown, Stopped<Reason>> {
    let app = context.app;
    let Some(party) = webauthn::party(app) else {
        return Err(Stopped::Refused(Reason::PasskeyElsewhere));
    };
    let challenge =
        passkey::challenge(&answer.client_data, "webauthn.get", party).map_err(Stopped::Refused)?;
    let Some(asked) = webauthn::answered(app, &challenge, ties).filter(|asked| asked.new.is_none())
    else {
        return Err(Stopped::Refused(Reason::PasskeyChallenge));
    };
    let owned = find(context, ticket, &answer)?;
    let known = Passkey {
        id: answer.id,
        key: owned.key,
        sign_count: owned.row.sign_count.unwrap_or(0),
        backup_eligible: owned.row.backup_eligible.unwrap_or(false),
        aaguid: None,
    };
    let verified = passkey::verify(
        party,
        &known,
        &answer.client_data,
        &answer.authenticator_data,
        &answer.signature,
    );
    if let Err(reason) = verified
        && reason != Reason::PasskeyCloned
    {
        return Err(Stopped::Refused(reason));
    }
    // Spent before a counter is judged: an answer that was sent twice is no copy. The day must be
    // the same whenever it comes again.
    let spent = URL_SAFE_NO_PAD.encode(&challenge);
    let until = asked.expires_at.plus(SPENT_FOR);
    if !tokens::take_assertion(&app.store, "passkey", &spent, until)? {
        return Err(Stopped::Refused(Reason::PasskeyChallenge));
    }
    let sub = &owned.found.user.sub;
    let event = AuditEvent {
        sub: Some(sub),
        ..context.event()
    };
    let Ok(sign_count) = verified else {
        let cloned = AuditEvent {
            event: "passkey_cloned",
            ..event
        };
        audit_events::insert(&app.store, &cloned)?;
        return Err(Stopped::Refused(Reason::PasskeyCloned));
    };
    let wrong_passwords = match ticket {
        Some(_) => counted_wrong(app, &owned.found, context.request.source),
        None => Vec::new(),
    };
    let row = &owned.row;
    let store = &app.store;
    if !authenticators::use_passkey(store, sub, row, sign_count, &wrong_passwords, &event)? {
        return Err(Stopped::Refused(Reason::PasskeyChallenge));
    }
    Ok(Shown {
        found: owned.found,
        backup_eligible: known.backup_eligible,
    })
}

/// A passkey, and whose it is.
struct Owned {
    row: Authenticator,
    key: PublicKey,
    found: CurrentUser,
}

/// The passkey that the answer names.
fn find(
    context: RequestContext<'_>,
    ticket: Option<&Ticket>,
    answer: &Answer,
) -> Result<Owned, Stopped<Reason>> {
    let RequestContext {
        app, transaction, ..
    } = context;
    let Some((sub, row)) = authenticators::find_passkey(&app.store, &answer.id)? else {
        return Err(Stopped::Refused(Reason::PasskeyUnknown));
    };
    let found = users::find_for_client(&app.store, &sub, transaction.client_id())?
        .filter(|found| may_sign_in(transaction, ticket, &found.user));
    let own_handle = authenticators::user_handle(&app.store, &sub)?;
    let named = &answer.user_handle;
    let is_theirs = named.is_empty() || own_handle.as_ref() == Some(named);
    let (Some(found), Some(key)) = (found.filter(|_| is_theirs), key(&row)) else {
        return Err(Stopped::Refused(Reason::PasskeySignature));
    };
    Ok(Owned { row, key, found })
}

fn may_sign_in(
    transaction: &AuthorizationTransaction,
    ticket: Option<&Ticket>,
    user: &UserRow,
) -> bool {
    match ticket {
        Some(ticket) => stands(ticket, user),
        None => {
            user.may_act()
                && user.tenant == transaction.request.acr_values.tenant
                && transaction.choices().password
        }
    }
}

fn key(row: &Authenticator) -> Option<PublicKey> {
    let jwk = serde_json::from_slice(row.public_key.as_deref()?).ok()?;
    PublicKey::from_jwk(&jwk)
}
