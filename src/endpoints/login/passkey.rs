//! Signing in with a passkey: by itself, on the sign-in page, or as the second factor that a ticket
//! asks for.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::LoginPage;
use super::password::counted_wrong;
use super::second_factor::{SECOND_FACTOR_FAILED, ask, stands};
use crate::app::failure::Failure;
use crate::endpoints::account::passkeys::{self, CLIENT_DATA, PASSKEY_REFUSED};
use crate::endpoints::answers;
use crate::endpoints::login::sign_in::{self, Proof};
use crate::http::Response;
use crate::pages::login::LoginProblem;
use crate::pages::second_factor::FactorProblem;
use crate::protocol::keys::jwt::PublicKey;
use crate::protocol::login::passkey::{self, Passkey};
use crate::protocol::login::second_factor::{FactorKind, Ticket, with_factor};
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::Reason;
use crate::protocol::words::strength::Strength;
use crate::store::audit_events::{self, AuditEvent};
use crate::store::users::{self, UserRow};
use crate::store::{authenticators, tokens};

/// A spent challenge is remembered for so long after its end.
const SPENT_FOR: Duration = Duration::from_secs(3_600);

/// Signs in with a passkey: by itself, or as what a ticket asks for.
pub(super) fn prove(
    page: LoginPage<'_>,
    ticket: Option<&Ticket>,
    ties: &[[u8; 32]],
    form: &Parameters,
) -> Result<Response, Failure> {
    let LoginPage {
        app,
        request,
        visit,
        ..
    } = page;
    let refused = |reason| {
        let event = if ticket.is_some() {
            SECOND_FACTOR_FAILED
        } else {
            PASSKEY_REFUSED
        };
        app.note_failure_of(
            event,
            request,
            visit.client_id(),
            ticket.map(|ticket| &ticket.subject),
            reason,
        );
        let response = match ticket {
            Some(ticket) => ask(
                app,
                request,
                visit,
                ticket,
                Some(FactorProblem::PasskeyRefused),
            )?,
            None => page.again("", LoginProblem::PasskeyRefused, reason),
        };
        Ok(answers::noted(response, reason))
    };
    let (id, client_data) = (
        passkeys::decoded(form, "id", parameters::HANDLE)?,
        passkeys::decoded(form, "client_data", CLIENT_DATA)?,
    );
    let (data, signature) = (
        passkeys::decoded(form, "authenticator_data", CLIENT_DATA)?,
        passkeys::decoded(form, "signature", CLIENT_DATA)?,
    );
    let handle = passkeys::decoded(form, "user_handle", parameters::OTHER)?;
    let Some(party) = passkeys::party(app) else {
        return refused(Reason::PasskeyElsewhere);
    };
    let challenge = match passkey::challenge(&client_data, "webauthn.get", party) {
        Ok(challenge) => challenge,
        Err(reason) => return refused(reason),
    };
    let Some(asked) = passkeys::answered(app, &challenge, ties).filter(|asked| asked.new.is_none())
    else {
        return refused(Reason::PasskeyChallenge);
    };
    let Some((sub, row)) = authenticators::find_passkey(&app.store, &id)? else {
        return refused(Reason::PasskeySignature);
    };
    let found = users::find_for_client(&app.store, &sub, visit.client_id())?;
    let is_meant = |user: &UserRow| match ticket {
        Some(ticket) => stands(ticket, user),
        None => {
            user.enabled
                && user.tenant == visit.request.acr_values.tenant
                && visit.choices().password
        }
    };
    let own_handle = authenticators::user_handle(&app.store, &sub)?;
    let is_theirs = handle.is_empty() || own_handle.is_some_and(|own| own == handle);
    let key = row
        .public_key
        .as_deref()
        .and_then(|key| PublicKey::from_jwk(&serde_json::from_slice(key).ok()?));
    let (Some(found), Some(key)) = (
        found.filter(|found| is_theirs && is_meant(&found.user)),
        key,
    ) else {
        return refused(Reason::PasskeySignature);
    };
    let (sign_count, backup_eligible) = (
        row.sign_count.unwrap_or(0),
        row.backup_eligible.unwrap_or(false),
    );
    let known = Passkey {
        id,
        key,
        sign_count,
        backup_eligible,
    };
    let event = AuditEvent {
        client_id: visit.client_id(),
        sub: Some(&sub),
        ..AuditEvent::default()
    };
    let event = event.by(request.source, &request.id);
    let (name, verified) = (
        URL_SAFE_NO_PAD.encode(&challenge),
        passkey::verify(party, &known, &client_data, &data, &signature),
    );
    if let Err(reason) = verified
        && reason != Reason::PasskeyCloned
    {
        return refused(reason);
    }
    // Spent before a counter is judged: an answer that was sent twice is no copy. The day must be
    // the same whenever it comes again.
    if !tokens::take_assertion(
        &app.store,
        "passkey",
        &name,
        asked.expires_at.plus(SPENT_FOR),
    )? {
        return refused(Reason::PasskeyChallenge);
    }
    let Ok(sign_count) = verified else {
        audit_events::insert(
            &app.store,
            &AuditEvent {
                event: "passkey_cloned",
                ..event
            },
        )?;
        return refused(Reason::PasskeyCloned);
    };
    let wrong_passwords = ticket.and_then(|_| counted_wrong(app, &found, request.source));
    if !authenticators::use_passkey(&app.store, &sub, &row, sign_count, wrong_passwords, &event)? {
        return refused(Reason::PasskeyChallenge);
    }
    app.note_factor(FactorKind::Passkey);
    let before = ticket
        .map(|ticket| ticket.amr.as_slice())
        .unwrap_or_default();
    let amr = with_factor(before, &passkey::methods(backup_eligible));
    let remember = ticket.map(|ticket| ticket.remember);
    let (acr, auth_time) = (
        Strength::PhishingResistant.as_str().to_owned(),
        ticket.map(|ticket| ticket.auth_time),
    );
    let proof = Proof {
        amr,
        acr,
        auth_time,
        ..Proof::password(remember)
    };
    sign_in::complete(app, request, visit, page.present, found, &proof)
}
