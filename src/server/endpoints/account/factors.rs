//! Second factors on the account page: adding and removing them, and making recovery codes anew.

use serde_json::json;

use super::{Change, draw_again, page_form};
use crate::app::failure::Result;
use crate::app::letters::AccountChange;
use crate::endpoints::answers;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::forms::Form;
use crate::endpoints::login::new_factor::{
    self, Added, RecoveryCodes, event, has_any, has_shown_one, needs_passkey,
};
use crate::endpoints::transaction::InSession;
use crate::http::Response;
use crate::pages::account::Outcome;
use crate::pages::form_problem::FormProblem;
use crate::pages::second_factor::factor_name;
use gatepost_protocol::login::second_factor::{FactorKind, tie};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::authenticators::{self, KeptSession, NewFactors, RemovedFactors};

/// Whether they may change their factors: soon after a sign-in with a factor, if they have one.
pub(super) fn may_change(context: InSession<'_>) -> bool {
    has_shown_one(context.current_session)
        && context
            .current_session
            .row
            .may_change_ways_in(true, context.app.now())
}

/// Says that their passkey must be shown first.
pub(super) fn refuse_without_passkey(change: Change<'_>) -> Result<Response> {
    change.refuse(FormProblem::PasskeyNeeded, Reason::PasskeyNeeded)
}

fn recovery_page(context: InSession<'_>, codes: &[String]) -> Response {
    RecoveryCodes::page(context.app, &page_form(context), codes, None)
}

/// Goes on with the page that they asked for before they signed in anew, if it may be shown now.
pub(super) fn go_on(
    context: InSession<'_>,
    asked_for: Option<&str>,
    outcome: Outcome<'_>,
) -> Result<Response> {
    let change = Change {
        context,
        form: &Parameters::default(),
    };
    match asked_for.filter(|_| may_change(context)) {
        Some("add_app") => add_app_here(change),
        Some("add_passkey") => add_passkey_here(change),
        _ => change.answer(outcome),
    }
}

/// Shows what an app needs, or takes its code.
pub(super) fn add_app_here(change: Change<'_>) -> Result<Response> {
    let Change { context, form } = change;
    let before = form.single("app")?;
    // Codes open nothing beside a passkey, for who has no password.
    let has_password = context.current_session.user.password_hash.is_some();
    if !context.current_session.may_add_factors(context.app) || !has_password {
        return refuse_factor(change);
    }
    if before.is_none() && !may_change(context) {
        return change.sign_in_anew();
    }
    let added = match before {
        Some(_) => Some(new_factor::add_app(context, form)?),
        None => None,
    };
    match added {
        Some(Added::Problem(FormProblem::FactorImpossible)) => refuse_factor(change),
        added => after(change, added, |problem| {
            let form = page_form(context);
            Ok(new_factor::app_page(context, &form, before, false, problem))
        }),
    }
}

/// Shows what makes a passkey, or takes it.
pub(super) fn add_passkey_here(change: Change<'_>) -> Result<Response> {
    let Change { context, form } = change;
    if !context.current_session.may_add_factors(context.app) {
        return refuse_factor(change);
    }
    if !may_change(context) {
        return change.sign_in_anew();
    }
    let tie = tie("", &context.current_session.handle.random);
    let added = match form.single("attestation_object")? {
        Some(_) => Some(new_factor::add_passkey(context, tie, form)?),
        None => None,
    };
    after(change, added, |problem| {
        new_factor::passkey_page(context, &page_form(context), tie, false, problem)
    })
}

fn refuse_factor(change: Change<'_>) -> Result<Response> {
    change.refuse(FormProblem::FactorImpossible, Reason::FactorImpossible)
}

/// What the person sees once a factor was added; or the page that adds one, if none was.
fn after(
    change: Change<'_>,
    added: Option<Added>,
    page: impl FnOnce(Option<FormProblem>) -> Result<Response>,
) -> Result<Response> {
    match added {
        None => page(None),
        Some(Added::Problem(problem)) => page(Some(problem)),
        Some(Added::Another) => draw_again(change.context, Outcome::FactorAdded),
        Some(Added::First {
            handle,
            recovery_codes,
        }) => {
            let kept = CurrentSession {
                handle,
                ..change.context.current_session.clone()
            };
            let page = recovery_page(change.context.within(&kept), &recovery_codes);
            Ok(kept.carried_by(change.context.app, page))
        }
    }
}

/// The token of the form that makes recovery codes anew, for the factors that this session's user
/// has.
pub(super) fn recovery_codes_token(context: InSession<'_>) -> String {
    let factors = context.current_session.user.factors.to_string();
    context.form_token(Form::RecoveryCodes, &factors)
}

/// Makes recovery codes anew, while the factors are those that the form was drawn with. Of two
/// posts at once one makes codes, and the other shows none: a second set would make the first
/// worthless, and the person may have kept either.
pub(super) fn make_recovery_codes(change: Change<'_>) -> Result<Response> {
    let Change { context, form } = change;
    let InSession {
        app,
        current_session,
        ..
    } = context;
    // The page has no such form for them.
    if current_session.user.password_hash.is_none() {
        return refuse_factor(change);
    }
    if needs_passkey(current_session) {
        return refuse_without_passkey(change);
    }
    let drawn_with = current_session.user.factors.to_string();
    if !context.has_form_token(Form::RecoveryCodes, &drawn_with, form) {
        return factors_changed(context);
    }
    if !may_change(context) {
        return change.sign_in_anew();
    }
    let codes = RecoveryCodes::new(app, &current_session.user.sub);
    if !add(context, &codes)? {
        return factors_changed(context);
    }
    context.notify(AccountChange::RecoveryCodes);
    Ok(recovery_page(context, &codes.texts))
}

fn factors_changed(context: InSession<'_>) -> Result<Response> {
    let response = draw_again(context, Outcome::Problem(FormProblem::FactorsChanged))?;
    Ok(answers::noted(response, Reason::FactorImpossible))
}

/// `false` where the factors are not as they were.
fn add(context: InSession<'_>, codes: &RecoveryCodes) -> Result<bool> {
    let InSession {
        app,
        current_session,
        ..
    } = context;
    let event = AuditEvent {
        detail: json!({"by": "user", "factor": FactorKind::RecoveryCode.as_str()}),
        ..event("factor_added", context)
    };
    let kept = KeptSession {
        session: &current_session.row,
        handle_hash: None,
    };
    let new = NewFactors {
        factors: &codes.rows,
        strongest: current_session.user.strongest_acr,
        user_handle: None,
        replaces_all: false,
        password_hash: None,
    };
    let user = &current_session.user;
    Ok(
        has_any(current_session)
            && authenticators::add(&app.store, user, &new, Some(kept), &event)?,
    )
}

/// Removes a factor, and ends everything else of this person.
pub(super) fn remove(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    let name = change.parameter("factor", parameters::HANDLE)?;
    if !may_change(change.context) {
        return change.sign_in_anew();
    }
    let mut others = authenticators::list(&app.store, &current_session.user.sub, false)?;
    let named = others.iter().position(|one| factor_name(one) == name);
    let Some(factor) = named.map(|at| others.remove(at)) else {
        app.store.confirm()?;
        return change.refuse(FormProblem::NothingThere, Reason::FactorImpossible);
    };
    let left = authenticators::strongest(&others);
    if current_session.user.password_hash.is_none() && left < Strength::PhishingResistant {
        return change.refuse(FormProblem::LastPasskey, Reason::LastFactor);
    }
    if left < app.config.client_defaults.minimum_acr {
        return change.refuse(FormProblem::LastFactor, Reason::LastFactor);
    }
    let event = AuditEvent {
        detail: json!({"by": "user", "factor": factor.kind.as_str()}),
        ..event("factor_removed", change.context)
    };
    let user = &current_session.user;
    let session = Some(&current_session.row);
    let removed = RemovedFactors {
        factor: Some(&factor),
        strongest: left,
    };
    if !authenticators::remove(&app.store, user, removed, session, &event)? {
        app.store.confirm()?;
        return change.refuse(FormProblem::SessionChanged, Reason::FactorImpossible);
    }
    change.context.notify(AccountChange::FactorRemoved);
    draw_again(change.context, Outcome::FactorRemoved)
}
