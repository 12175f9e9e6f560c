//! `/login/second-factor`: asks for a second factor after a right password, or to make a session
//! stronger. After a password no session begins until the factor is proved: what was proved before
//! travels sealed in the form. A passkey that was used on the sign-in page is posted here, too,
//! without a password before it; and so is the form that adds a factor.

use std::time::Duration;

use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Result, Stopped};
use crate::app::guesses::Source;
use crate::endpoints::answers;
use crate::endpoints::cookies;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::new_factor::{self, Added, RecoveryCodes};
use crate::endpoints::login::wrong_passwords::counted_wrong;
use crate::endpoints::login::{passkey, webauthn};
use crate::endpoints::transaction::{InSession, Proof, RequestContext, Taken, unknown_action};
use crate::http::Response;
use crate::pages;
use crate::pages::form_problem::FormProblem;
use crate::pages::frame::PageForm;
use crate::pages::second_factor::WantedFactor;
use gatepost_protocol::authorize::interaction::{Step, Stronger};
use gatepost_protocol::login::second_factor::{
    CodeLimit, FactorKind, MOST_CODES_OF_A_SOURCE, MOST_CODES_OF_AN_APP, TICKET_LIFETIME, Ticket,
    Typed, step_of, tie, typed, with_factor,
};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::{AuthorizeErrorCode, Reason};
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::audit_events::{self, AuditEvent};
use gatepost_store::authenticators::{self, Authenticator};
use gatepost_store::sign_in_failures::{self, FailureBucket};
use gatepost_store::users::{self, CurrentUser, UserRow};

pub(super) const PAGE: &str = "/login/second-factor";
/// The audit event of a wrong second factor. Whoever brings one has shown a password before, or
/// opened a link from a letter.
pub(super) const SECOND_FACTOR_FAILED: &str = "second_factor_failed";
/// The prefix of a sealed ticket. It is sealed with the ticket, so nothing else that is sealed for
/// second factors opens as one.
const TICKET: &str = "gpf_";

/// Asks for another factor after a right password.
pub fn after_password(
    context: RequestContext<'_>,
    user: &UserRow,
    proof: Proof,
) -> Result<Response> {
    let RequestContext {
        app,
        request,
        transaction,
        ..
    } = context;
    let event = AuditEvent {
        event: "first_factor",
        sub: Some(&user.sub),
        ..context.event()
    };
    audit_events::insert(&app.store, &event)?;
    // Without the cookie the ticket is tied to an empty value, and no posted form matches it.
    let browser =
        cookies::pre_session(&app.config, request).unwrap_or_else(|| SecretBytes::new([]));
    let ticket = Ticket {
        amr: proof.amr,
        // Not before the request, as for every sign-in: see `new_session` in `answer.rs`.
        auth_time: app.now().max(transaction.request.received_at),
        remember: proof.remember == Some(true),
        ..ticket(app, user, tie(&transaction.sealed, &browser))
    };
    ask(context, &ticket, None)
}

/// Asks for what makes this session stronger.
pub fn in_session(context: InSession<'_>, stronger: Stronger) -> Result<Response> {
    let may_skip = match stronger {
        Stronger::Prove { may_skip } => may_skip,
        Stronger::Enrol(wanted) => return enrol(context, wanted, None, None),
    };
    let current_session = context.current_session;
    let ticket = Ticket {
        amr: current_session.row.amr.clone(),
        auth_time: current_session.row.auth_time,
        remember: current_session.is_remembered(context.app),
        may_skip,
        ..ticket(context.app, &current_session.user, context.tie())
    };
    ask(context.within(Some(current_session)), &ticket, None)
}

fn has_code(ticket: &Ticket) -> bool {
    ticket.amr.iter().any(|method| method == "otp")
}

/// A ticket of this user, in which nothing is proved: the caller adds what was.
pub fn ticket(app: &App, user: &UserRow, tie: [u8; 32]) -> Ticket {
    Ticket {
        subject: user.sub.clone(),
        epoch: user.epoch,
        factors: user.factors,
        amr: Vec::new(),
        auth_time: app.now(),
        remember: false,
        may_skip: false,
        expires_at: app.now().plus(TICKET_LIFETIME),
        tie,
    }
}

/// Draws the page that asks. Its form token is the ticket.
pub(super) fn ask(
    context: RequestContext<'_>,
    ticket: &Ticket,
    problem: Option<FormProblem>,
) -> Result<Response> {
    ask_at(context, &context.action(PAGE), ticket, problem)
}

/// The same with a form that goes to another page.
pub fn ask_at(
    context: RequestContext<'_>,
    action: &str,
    ticket: &Ticket,
    problem: Option<FormProblem>,
) -> Result<Response> {
    let app = context.app;
    let factors = authenticators::list(&app.store, &ticket.subject, true)?;
    let passkeys = passkey_ids(&factors);
    // A code that was given already makes the sign-in no stronger.
    let takes_codes = !has_code(ticket) && passkeys.len() < factors.len();
    let options = if passkeys.is_empty() {
        None
    } else {
        webauthn::request_options(app, ticket.tie, &passkeys)
    };
    let form = PageForm {
        chrome: context.chrome(),
        action: action.to_owned(),
        token: app.vault.second_factors.seal_text(TICKET, ticket),
    };
    let wanted = WantedFactor {
        takes_codes,
        passkey: options.as_deref(),
        may_skip: ticket.may_skip,
    };
    let page = pages::second_factor::page(&form, context.purpose(), wanted, problem);
    Ok(answers::scripted_page(200, page))
}

fn passkey_ids(factors: &[Authenticator]) -> Vec<&[u8]> {
    let passkeys = factors.iter().filter(|one| one.kind == FactorKind::Passkey);
    passkeys.map(|one| &one.id[..]).collect()
}

/// The page that adds the factor that this sign-in needs. `app_before` is the app that it offered
/// when it was drawn before.
fn enrol(
    context: InSession<'_>,
    wanted: Strength,
    app_before: Option<&str>,
    problem: Option<FormProblem>,
) -> Result<Response> {
    let form = context.form(PAGE, Form::NewFactor);
    match wanted {
        Strength::PhishingResistant => {
            new_factor::passkey_page(context, &form, context.tie(), true, problem)
        }
        Strength::SignedIn | Strength::TwoFactors => Ok(new_factor::app_page(
            context, &form, app_before, true, problem,
        )),
    }
}

/// Takes the form of the page that asks for a factor, and of the page that adds one.
pub fn take(context: RequestContext<'_>) -> Result<Taken> {
    let RequestContext {
        app,
        request,
        transaction,
        ..
    } = context;
    let form = forms::read_post(app, request)?;
    let in_session = context.in_session();
    if let Some(context) = in_session.filter(|context| context.matches(Form::NewFactor, &form)) {
        return take_new_factor(context, &form);
    }
    let of_session = in_session.map(|context| context.tie());
    let of_browser = cookies::pre_session(&app.config, request)
        .map(|browser| tie(&transaction.sealed, &browser));
    let ties: Vec<[u8; 32]> = [of_session, of_browser].into_iter().flatten().collect();
    let ticket = posted_ticket(app, &form, &ties)?;
    let decision = form.single("decision")?;
    if let (None, Some(signed_in)) = (&ticket, in_session)
        && is_stale_form_of(signed_in, &form, decision)?
        && signed_in.goes_on()?
    {
        return Ok(Taken::Step(Step::Arrival));
    }
    if decision == Some("passkey") {
        return passkey::prove(context, ticket.as_ref(), &ties, &form);
    }
    let Some(ticket) = ticket else {
        return Ok(expired());
    };
    match decision {
        Some("not_now") if ticket.may_skip && in_session.is_some() => {
            Ok(Taken::Step(Step::AfterWishDeclined))
        }
        Some("cancel") if of_session == Some(ticket.tie) => decline(context),
        Some("cancel") => context.cancel(),
        Some(_) => Err(unknown_action()),
        None => prove(context, &ticket, &form),
    }
}

/// Whether a form without a ticket that counts was drawn before this browser signed in elsewhere,
/// and names nobody but who is signed in now. Whoever cancels shall not go on.
fn is_stale_form_of(
    context: InSession<'_>,
    form: &Parameters,
    decision: Option<&str>,
) -> Result<bool> {
    let app = context.app;
    let browser = cookies::pre_session(&app.config, context.request);
    let sealed = &context.transaction.sealed;
    let is_fresh = forms::matches(app, Form::Login, sealed, browser.as_ref(), form);
    if is_fresh || decision == Some("cancel") {
        return Ok(false);
    }
    let named = match decision {
        Some("passkey") => {
            let id = webauthn::decoded(form, "id", parameters::HANDLE)?;
            let found = authenticators::find_passkey(&app.store, &id)?;
            found.map(|(sub, _)| sub)
        }
        _ => sealed_ticket(app, form)?.map(|ticket| ticket.subject),
    };
    // A form that names nobody may be of whoever was signed in before.
    Ok(named.is_some_and(|sub| sub == context.current_session.user.sub))
}

/// The ticket in the form that was posted, if it is tied to one of these and in time.
pub fn posted_ticket(app: &App, form: &Parameters, ties: &[[u8; 32]]) -> Result<Option<Ticket>> {
    let opened = sealed_ticket(app, form)?;
    Ok(opened.filter(|ticket| ties.contains(&ticket.tie) && app.now() < ticket.expires_at))
}

fn sealed_ticket(app: &App, form: &Parameters) -> Result<Option<Ticket>> {
    let text = form.bounded("form_token", parameters::HANDLE)?;
    Ok(text.and_then(|text| app.vault.second_factors.open_text(TICKET, text)))
}

fn expired() -> Taken {
    Taken::NotSignedIn(FormProblem::PageExpired, Reason::PageExpired)
}

fn decline(context: RequestContext<'_>) -> Result<Taken> {
    context.give_up(
        AuthorizeErrorCode::UnmetAuthenticationRequirements,
        Reason::FactorDeclined,
    )
}

/// Takes the factor that this sign-in needs, or a refusal to add one.
fn take_new_factor(context: InSession<'_>, form: &Parameters) -> Result<Taken> {
    let again = |wanted, problem| {
        let page = enrol(context, wanted, form.single("app")?, problem)?;
        Ok(Taken::Answer(page))
    };
    let wanted = match form.single("decision")? {
        Some("cancel") => return decline(context.within(Some(context.current_session))),
        Some("continue") => return Ok(Taken::Step(Step::AfterFactor)),
        Some("save_codes") => return RecoveryCodes::save(context.app, form).map(Taken::Answer),
        Some("add_app") => Strength::TwoFactors,
        Some("add_passkey") if form.single("attestation_object")?.is_none() => {
            return again(Strength::PhishingResistant, None);
        }
        Some("add_passkey") => Strength::PhishingResistant,
        _ => return Err(unknown_action()),
    };
    let added = match wanted {
        Strength::PhishingResistant => new_factor::add_passkey(context, context.tie(), form)?,
        Strength::SignedIn | Strength::TwoFactors => new_factor::add_app(context, form)?,
    };
    match added {
        Added::Problem(problem) => again(wanted, Some(problem)),
        Added::Another => Ok(match context.current_session.read_again(context.app)? {
            Some(current_session) => Taken::Strengthened(Box::new(current_session)),
            None => Taken::Answer(context.redirect("/login")),
        }),
        Added::First {
            handle,
            recovery_codes,
        } => {
            let kept = CurrentSession {
                handle,
                ..context.current_session.clone()
            };
            let form = context.within(&kept).form(PAGE, Form::NewFactor);
            let page = RecoveryCodes::page(context.app, &form, &recovery_codes, None);
            Ok(Taken::Answer(kept.carried_by(context.app, page)))
        }
    }
}

/// Tries the code that was typed. The sign-in then has all that was proved.
fn prove(context: RequestContext<'_>, ticket: &Ticket, form: &Parameters) -> Result<Taken> {
    let client_id = context.transaction.client_id();
    let found = users::find_for_client(&context.app.store, &ticket.subject, client_id)?;
    let Some(found) = found.filter(|found| stands(ticket, &found.user)) else {
        return Ok(expired());
    };
    // A second code makes the sign-in no stronger.
    if has_code(ticket) && form.bounded("code", parameters::OTHER)?.is_some() {
        return Ok(Taken::Answer(ask(context, ticket, None)?));
    }
    match show_code(context, &found, form) {
        Ok(()) => Ok(Taken::Proved(Box::new(found), with_code(ticket))),
        Err(stopped) => {
            let refusal = stopped.refusal()?;
            let page = ask(context, ticket, Some(refusal.problem))?;
            Ok(Taken::Answer(refusal.answer(page)))
        }
    }
}

/// What the ticket has, and a code.
fn with_code(ticket: &Ticket) -> Proof {
    Proof {
        amr: with_factor(&ticket.amr, &["otp"]),
        acr: Strength::TwoFactors.as_str().to_owned(),
        auth_time: Some(ticket.auth_time),
        ..Proof::password(Some(ticket.remember))
    }
}

/// A code that was not accepted.
pub struct CodeRefusal {
    pub problem: FormProblem,
    /// How long nothing more is looked at.
    wait: Option<Duration>,
}

impl CodeRefusal {
    /// The page that says so, with its status and its line in the log.
    pub fn answer(&self, page: Response) -> Response {
        match self.wait {
            Some(wait) => answers::turned_away(page, Reason::TooManyCodes, wait),
            None if self.problem == FormProblem::CodeMissing => page,
            None => answers::noted(page, Reason::SecondFactorWrong),
        }
    }
}

/// Tries the code of the form. A right one is spent.
pub fn show_code(
    context: RequestContext<'_>,
    found: &CurrentUser,
    form: &Parameters,
) -> Result<(), Stopped<CodeRefusal>> {
    let refusal = |problem, wait| Err(Stopped::Refused(CodeRefusal { problem, wait }));
    let Some(code) = form.bounded("code", parameters::OTHER)? else {
        return refusal(FormProblem::CodeMissing, None);
    };
    match try_code(context, found, code)? {
        CodeVerdict::Right => Ok(()),
        CodeVerdict::Wrong => {
            let concerned = Concerned::User(&found.user.sub);
            let reason = Reason::SecondFactorWrong;
            let client_id = context.transaction.client_id();
            context.app.note_failure(
                SECOND_FACTOR_FAILED,
                context.request,
                client_id,
                concerned,
                reason,
            );
            refusal(FormProblem::CodeWrong, None)
        }
        CodeVerdict::TurnedAway(wait) => {
            context.app.note_turned_away(context.request);
            let minutes = answers::minutes(wait);
            refusal(FormProblem::TooManyAttempts { minutes }, Some(wait))
        }
    }
}

/// Whether the user is still as they were when the ticket was made.
pub fn stands(ticket: &Ticket, user: &UserRow) -> bool {
    user.may_act()
        && user.sub == ticket.subject
        && user.epoch == ticket.epoch
        && user.factors == ticket.factors
}

enum CodeVerdict {
    Right,
    Wrong,
    /// Not looked at: too many came before.
    TurnedAway(Duration),
}

/// Codes that were looked at, and how many may be.
struct Counter {
    bucket: FailureBucket,
    most: i32,
}

fn try_code(context: RequestContext<'_>, found: &CurrentUser, text: &str) -> Result<CodeVerdict> {
    let app = context.app;
    let code = typed(text);
    let (kind, limits_of_all): (FactorKind, &[CodeLimit]) = match code {
        Typed::Totp(_) => (FactorKind::Totp, &MOST_CODES_OF_AN_APP),
        Typed::RecoveryCode(_) => (FactorKind::RecoveryCode, &[]),
        Typed::Neither => return Ok(CodeVerdict::Wrong),
    };
    let source = Source::of(context.request.source).bytes();
    let counter = |from: &[u8], limit: CodeLimit| Counter {
        most: limit.most,
        bucket: FailureBucket {
            bucket: app.vault.throttle_buckets.tag(&[
                b"code",
                kind.as_str().as_bytes(),
                found.user.sub.as_str().as_bytes(),
                &limit.window.as_secs().to_be_bytes(),
                from,
            ]),
            window: limit.window,
        },
    };
    let mut counters = vec![counter(&source, MOST_CODES_OF_A_SOURCE)];
    let of_all: Vec<_> = limits_of_all
        .iter()
        .map(|limit| counter(&[], *limit))
        .collect();
    // Counted before the code is looked at, so that many at once are no way around the limit. One
    // source that is turned away uses up nothing of what everybody has together.
    let mut wait = count(app, &counters)?;
    if wait.is_none() {
        wait = count(app, &of_all)?;
    }
    if let Some(wait) = wait {
        return Ok(CodeVerdict::TurnedAway(wait));
    }
    counters.extend(of_all);
    if !spend(context, &found.user, kind, code)? {
        return Ok(CodeVerdict::Wrong);
    }
    app.factors_used.raise(kind);
    let wrong_passwords = counted_wrong(app, found, context.request.source);
    let counted: Vec<_> = counters.into_iter().map(|one| one.bucket).collect();
    sign_in_failures::take_back(&app.store, &counted, &wrong_passwords)?;
    Ok(CodeVerdict::Right)
}

/// Counts one more code in each, and says how long to wait where that is too many.
fn count(app: &App, counters: &[Counter]) -> Result<Option<Duration>> {
    if counters.is_empty() {
        return Ok(None);
    }
    let buckets: Vec<_> = counters.iter().map(|one| one.bucket.clone()).collect();
    let counts = sign_in_failures::record(&app.store, &buckets)?;
    let mut last = None;
    for count in counts {
        let is_above =
            |one: &Counter| one.bucket.bucket == count.bucket && count.failures > one.most;
        if counters.iter().any(is_above) {
            last = last.max(Some(count.expires_at));
        }
    }
    Ok(last.map(|ends_at| ends_at.since(app.now())))
}

/// Whether the code is right. A right one is spent.
fn spend(
    context: RequestContext<'_>,
    user: &UserRow,
    kind: FactorKind,
    code: Typed,
) -> Result<bool> {
    let app = context.app;
    let store = &app.store;
    let event = AuditEvent {
        sub: Some(&user.sub),
        ..context.event()
    };
    let factors = authenticators::list(store, &user.sub, true)?;
    let mut factors = factors.iter().filter(|one| one.kind == kind);
    let opened = |one: &Authenticator| new_factor::opened(app, &user.sub, one.secret.as_ref()?);
    Ok(match code {
        Typed::Totp(code) => {
            let step = factors
                .next()
                .and_then(|factor| step_of(code, &opened(factor)?, factor.last_step, app.now()));
            match step {
                Some(step) => authenticators::use_step(store, &user.sub, step, &event)?,
                None => false,
            }
        }
        Typed::RecoveryCode(digest) => {
            let digest = SecretBytes::new(digest);
            match factors.find(|one| opened(one).is_some_and(|stored| stored == digest)) {
                Some(code) => {
                    authenticators::use_recovery_code(store, &user.sub, &code.id, &event)?
                }
                None => false,
            }
        }
        Typed::Neither => false,
    })
}
