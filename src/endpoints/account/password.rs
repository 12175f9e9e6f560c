//! A person's own change of password: the present one is asked for, and counts as any other attempt to sign in.

use super::Change;
use super::draw::draw;
use crate::app::failure::Failure;
use crate::endpoints::answers;
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::cookies::{self, SessionHandle};
use crate::endpoints::login::password::{Attempt, Outcome as Tried, attempt};
use crate::http::Response;
use crate::keys::random;
use crate::pages::account::{AccountProblem, Outcome};
use crate::protocol::login::password::check_new;
use crate::protocol::words::epochs::SessionEpochs;
use crate::protocol::words::lengths;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::session::Session;
use crate::store::audit_events;
use crate::store::users::{self, UserRow};

/// Changes it, ends everything else of this person, and keeps this session under a new handle.
pub(super) fn change(change: Change<'_>) -> Result<Response, Failure> {
    let Change { app, request, present, form, .. } = change;
    let (given, new) = (form.single("present_password")?, form.single("new_password")?.unwrap_or_default());
    let again = form.single("new_password_again")?.unwrap_or_default();
    let Some(given) = given else { return change.answer(Outcome::Problem(AccountProblem::PresentPasswordMissing)) };
    if given.len() > lengths::PASSWORD_BYTES {
        return Err(Failure::bad_request(Reason::OverlongParameter));
    }
    if check_new(new).is_err() {
        return change.answer(Outcome::Problem(AccountProblem::NewPasswordUnfit));
    }
    if new != again {
        return change.answer(Outcome::Problem(AccountProblem::NewPasswordsDiffer));
    }
    let Some(username) = present.user.username.as_deref() else {
        return change.answer(Outcome::Problem(AccountProblem::NothingThere));
    };
    let (tenant, source, password) = (present.user.tenant.as_ref(), request.source, &SecretText::new(given));
    match attempt(app, &Attempt { tenant, username, password, source, client_id: None })? {
        Tried::Accepted(found) if found.user.sub == present.user.sub => {
            store(change, &found.user, &SecretText::new(new))
        }
        Tried::Accepted(_) | Tried::Wrong => {
            audit_events::insert(&app.store, &change.event("password_change_refused", &present.row.sid))?;
            change.refuse(AccountProblem::PresentPasswordWrong, Reason::WrongPassword)
        }
        Tried::Throttled(wait) => {
            app.note_turned_away(request);
            let problem = AccountProblem::TooManyAttempts { minutes: answers::minutes(wait) };
            let response = draw(app, request, present, 429, Some(Outcome::Problem(problem)))?;
            Ok(answers::retry_after(answers::noted(response, Reason::TooManySignInFailures), wait))
        }
    }
}

/// `user` is the row that the present password was checked by.
fn store(change: Change<'_>, user: &UserRow, new: &SecretText) -> Result<Response, Failure> {
    let Change { app, request, present, .. } = change;
    let password_hash = app.take_hashing_turn()?.hash(new)?;
    let handle = SessionHandle::new(present.row.day, random::bytes());
    let event = change.event("password_changed", &present.row.sid);
    let epoch = users::change_password(&app.store, user, &password_hash, &present.row, &handle.hash(), &event)?;
    // Revoked or signed out while the hash was made: the next look will find no session.
    let Some(epoch) = epoch else { return change.answer(Outcome::Problem(AccountProblem::SessionChanged)) };
    let epochs = SessionEpochs { user: epoch, ..present.row.epochs };
    let row = Session { epochs, ..present.row.clone() };
    let kept = PresentSession { handle, row, user: user.clone(), browser_state: present.browser_state.clone() };
    let response = draw(app, request, &kept, 200, Some(Outcome::PasswordChanged))?;
    Ok(cookies::set_session(&app.config, response, &kept.handle))
}
