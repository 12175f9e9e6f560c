//! `/login`: the page that asks who is there, for one sealed request: user name and password, or
//! another service to sign in with; and the account chooser of `prompt=select_account`. The tenant
//! of a sign-in comes from that request, never from the form; so does which services there are to
//! choose from.

pub mod known_browser;
pub mod new_factor;
pub mod passkey;
pub mod password;
pub mod second_factor;
pub mod webauthn;
pub mod wrong_passwords;

use std::time::Duration;

use super::answers;
use super::bound_session;
use super::cookies::{self, Browser};
use crate::app::App;
use crate::app::audit_keeping::Concerned;
use crate::app::failure::{Failure, Result};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::password::{
    Attempt, PasswordOutcome, attempt, password_in, record_failure,
};
use crate::endpoints::transaction::expired::{EXPIRED, SOMEONE_ELSE};
use crate::endpoints::transaction::{
    InSession, Proof, RequestContext, Taken, page_address, unknown_action,
};
use crate::http::{Request, Response};
use crate::pages;
use crate::pages::error::Problem;
use crate::pages::form_problem::FormProblem;
use crate::pages::frame::PageForm;
use crate::pages::login::{AskPasskey, SignInForm};
use gatepost_protocol::authorize::authorize_request::{AuthorizeRefusal, Ending};
use gatepost_protocol::authorize::interaction::Step;
use gatepost_protocol::login::mail_link::{NOTE_PREFIX, PasswordSetNote};
use gatepost_protocol::login::second_factor::tie;
use gatepost_protocol::upstream::UpstreamProblem;
use gatepost_protocol::upstream::choices::{WayOut, way_out};
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::StoreError;
use gatepost_store::users;

const PAGE: &str = "/login";
/// The page for people who forgot their password.
pub const FORGOTTEN: &str = "/login/forgotten";
/// The audit event of a sign-in that failed at an identity provider.
pub const EXTERNAL_SIGN_IN_FAILED: &str = "external_sign_in_failed";
/// The parameter of the address: they come from the link by which they set their password.
const PASSWORD_SET: &str = "password_set";
/// The same for a passkey.
const PASSKEY_SET: &str = "passkey_set";
/// How long somebody shall wait whose password nobody had the time to look at.
const BUSY_FOR: Duration = Duration::from_secs(2);

/// Whether the address asks who the person is, even if this browser is signed in.
pub fn says_someone_else(request: &Request) -> bool {
    says(request, SOMEONE_ELSE)
}

fn says(request: &Request, parameter: &str) -> bool {
    let query = request.query_parameters();
    query
        .and_then(|query| query.single(parameter))
        .is_ok_and(|said| said.is_some())
}

/// The address of this page that asks who the person is, even if this browser is signed in, here or
/// upstream.
pub fn as_someone_else(address: String) -> String {
    format!("{address}&{SOMEONE_ELSE}=true")
}

/// What somebody did by a link, before they sign in.
pub enum DoneByLink<'a> {
    PasswordSet,
    /// By a letter: this user name is filled in.
    PasswordSetBy(&'a str),
    PasskeySet,
}

/// The address of this page, for that sealed request, that says first what was done.
pub fn after_link(app: &App, sealed: &str, done: DoneByLink<'_>) -> String {
    let address = page_address(app, PAGE, sealed);
    match done {
        DoneByLink::PasswordSet => format!("{address}&{PASSWORD_SET}=true"),
        DoneByLink::PasswordSetBy(username) => {
            let note = PasswordSetNote::new(username, sealed);
            let note = app.vault.mail_links.seal_text(NOTE_PREFIX, &note);
            format!("{address}&{PASSWORD_SET}={note}")
        }
        DoneByLink::PasskeySet => format!("{address}&{PASSKEY_SET}=true"),
    }
}

/// Who has just set their password, for this request.
fn password_set(context: RequestContext<'_>) -> Option<PasswordSetNote> {
    let query = context.request.query_parameters().ok()?;
    let text = query.bounded(PASSWORD_SET, parameters::HANDLE).ok()??;
    let note: PasswordSetNote = context.app.vault.mail_links.open_text(NOTE_PREFIX, text)?;
    note.is_for(&context.transaction.sealed).then_some(note)
}

/// Takes the form: a decision on the chooser, a cancellation, another service, or user name and
/// password.
pub fn take(context: RequestContext<'_>) -> Result<Taken> {
    let form = forms::read_post(context.app, context.request)?;
    let decision = form.single("decision")?;
    let context = RequestContext {
        someone_else: form.single(SOMEONE_ELSE)?.is_some(),
        ..context
    };
    let browser = cookies::pre_session(&context.app.config, context.request);
    let sealed = &context.transaction.sealed;
    let of_chooser = context
        .in_session()
        .is_some_and(|context| context.matches(Form::SelectAccount, &form));
    let of_login = forms::matches(context.app, Form::Login, sealed, browser.as_ref(), &form);
    match decision {
        Some("cancel") if of_chooser || of_login => context.cancel(),
        Some("continue") if of_chooser => Ok(Taken::Step(Step::AfterAccountChosen)),
        Some("another") if of_chooser => Ok(Taken::OtherWay {
            someone_else: true,
            provider: None,
        }),
        None if of_login => sign_in(context, &form),
        _ if of_login => Err(unknown_action()),
        _ => take_stale(context, &form, decision),
    }
}

/// Takes a form that was not drawn for this browser as it is now: most often, it has signed in in
/// another tab since. Then the request goes on as if the page were opened again, unless the form
/// says that somebody else is there.
fn take_stale(
    context: RequestContext<'_>,
    form: &Parameters,
    decision: Option<&str>,
) -> Result<Taken> {
    let username = form.bounded("username", parameters::USERNAME)?;
    if let Some(signed_in) = context.in_session()
        && signed_in.goes_on()?
    {
        match decision {
            None if names_no_other(signed_in, form, username)? => {
                return Ok(Taken::Step(Step::Arrival));
            }
            // The account that they chose may be another one than is signed in now.
            Some("continue") => return Ok(Taken::Answer(offer(signed_in, 200, true))),
            _ => {}
        }
    }
    let drawn = Drawn {
        username: username.unwrap_or_default(),
        ..Drawn::default()
    };
    let page = draw(context, drawn.with(FormProblem::PageExpired));
    Ok(Taken::Answer(answers::noted(page, Reason::PageExpired)))
}

/// Whether the form asks for nobody but whoever is signed in: it names them or nobody, no identity
/// provider, and is not that of another account.
fn names_no_other(
    context: InSession<'_>,
    form: &Parameters,
    username: Option<&str>,
) -> Result<bool> {
    if context.someone_else || form.single("identity_provider")?.is_some() {
        return Ok(false);
    }
    let Some(username) = username else {
        return Ok(true);
    };
    let transaction = context.transaction;
    let tenant = transaction.request.acr_values.tenant.as_ref();
    let by = context.app.config.sign_in_with;
    let store = &context.app.store;
    let found = users::find_for_sign_in(store, tenant, username, by, transaction.client_id())?;
    let named = found.user.map(|found| found.user.sub);
    Ok(named.as_ref() == Some(&context.current_session.user.sub))
}

fn sign_in(context: RequestContext<'_>, form: &Parameters) -> Result<Taken> {
    match form.single("identity_provider")? {
        Some(provider) if context.transaction.choices().offers(provider) => Ok(Taken::OtherWay {
            someone_else: context.someone_else,
            provider: Some(provider.to_owned()),
        }),
        None if context.transaction.ways_in()?.password => by_password(context, form),
        _ => Err(unknown_action()),
    }
}

fn by_password(context: RequestContext<'_>, form: &Parameters) -> Result<Taken> {
    let ticked = form.single("remember")?.is_some();
    let username = form.bounded("username", parameters::USERNAME)?;
    let password = password_in(form, "password")?;
    let drawn = Drawn {
        username: username.unwrap_or_default(),
        ticked: Some(ticked),
        ..Drawn::default()
    };
    let missing = match (username, password) {
        (Some(username), Some(password)) => {
            return try_password(context, drawn, username, &SecretText::new(password));
        }
        (None, Some(_)) => FormProblem::UsernameMissing,
        (Some(_), None) => FormProblem::PasswordMissing,
        (None, None) => FormProblem::BothMissing,
    };
    Ok(Taken::Answer(draw(context, drawn.with(missing))))
}

fn try_password(
    context: RequestContext<'_>,
    drawn: Drawn<'_>,
    username: &str,
    password: &SecretText,
) -> Result<Taken> {
    let RequestContext {
        app,
        request,
        transaction,
        ..
    } = context;
    let outcome = attempt(
        app,
        &Attempt {
            tenant: transaction.request.acr_values.tenant.as_ref(),
            username,
            password,
            request,
            client: None,
        },
    );
    let (problem, status, reason, wait) = match outcome {
        Ok(PasswordOutcome::Accepted(found)) => {
            return Ok(Taken::Proved(found, Proof::password(drawn.ticked)));
        }
        Ok(PasswordOutcome::Wrong { user }) => {
            record_failure(app, request, transaction.client_id(), user.as_ref());
            let page = draw(context, drawn.with(FormProblem::WrongCredentials));
            return Ok(Taken::Answer(answers::noted(page, Reason::WrongPassword)));
        }
        Ok(PasswordOutcome::Throttled(wait)) => {
            app.note_turned_away(request);
            let minutes = answers::minutes(wait);
            let problem = FormProblem::TooManyAttempts { minutes };
            (problem, 429, Reason::TooManySignInFailures, wait)
        }
        // Whoever waited in line for too long has no time left for the database.
        Err(Failure::Busy | Failure::Unavailable(StoreError::Busy | StoreError::OutOfTime)) => {
            (FormProblem::SignInBusy, 503, Reason::Unavailable, BUSY_FOR)
        }
        Err(failure) => return Err(failure),
    };
    let mut page = answers::noted(draw(context, drawn.with(problem)), reason);
    page.status = status;
    Ok(Taken::Answer(answers::retry_after(page, wait)))
}

/// Answers a sign-in that failed upstream.
pub fn after_failure(
    context: RequestContext<'_>,
    provider: &str,
    problem: &UpstreamProblem,
) -> Result<Response> {
    let transaction = context.transaction;
    let reason = problem.reason();
    let detail = problem.detail(provider);
    context.app.note_failure(
        EXTERNAL_SIGN_IN_FAILED,
        context.request,
        transaction.client_id(),
        Concerned::Provider(provider),
        reason,
    );
    let has_client = matches!(transaction.request.ending, Ending::Client(_));
    let mut page = match way_out(problem, provider, &transaction.choices(), has_client) {
        WayOut::TellClient(refusal) => {
            return Err(transaction.refuse(AuthorizeRefusal {
                detail: Some(detail),
                ..refusal
            }));
        }
        WayOut::ChooseAgain => {
            // Refused where meanwhile there is nothing left to choose from.
            transaction.ways_in()?;
            let problem = match problem {
                UpstreamProblem::Cancelled => Some(FormProblem::UpstreamCancelled),
                UpstreamProblem::LoginRequired => Some(FormProblem::UpstreamLoginRequired),
                UpstreamProblem::Busy | UpstreamProblem::Unavailable(_) => {
                    Some(FormProblem::UpstreamUnavailable)
                }
                UpstreamProblem::Unusable(_) => Some(FormProblem::UpstreamUnusable),
                UpstreamProblem::NotBelieved(_) => None,
            };
            let drawn = Drawn {
                problem,
                ..Drawn::default()
            };
            answers::noted(draw(context, drawn), reason)
        }
        WayOut::Page => answers::error_page_with(
            &context.presentation(),
            Problem::NotBelieved,
            (reason, Some(&detail)),
            transaction.ui_locales(),
            Some(&transaction.page(context.app, PAGE)),
        ),
    };
    page.note.detail = Some(detail);
    Ok(page)
}

/// What differs when the form is drawn.
#[derive(Clone, Copy, Default)]
pub struct Drawn<'a> {
    pub username: &'a str,
    pub problem: Option<FormProblem>,
    /// Whether they ticked the box to stay signed in, in a form that is drawn again. `None`: it
    /// shows what their session is.
    pub ticked: Option<bool>,
}

impl<'a> Drawn<'a> {
    pub fn with(self, problem: FormProblem) -> Drawn<'a> {
        Drawn {
            problem: Some(problem),
            ..self
        }
    }
}

/// Draws the form, and gives the browser the value that ties the form to it unless it has one.
pub fn draw(context: RequestContext<'_>, drawn: Drawn<'_>) -> Response {
    let RequestContext {
        app,
        transaction,
        current_session,
        refused,
        someone_else,
        ..
    } = context;
    let browser = Browser::of(&app.config, context.request);
    let choices = transaction.choices();
    let options = if choices.password {
        webauthn::request_options(app, tie(&transaction.sealed, &browser.value), &[])
    } else {
        None
    };
    // Of a passkey that was posted here: browsers may delete it.
    let signals = match drawn.problem {
        Some(FormProblem::PasskeyUnknown) => webauthn::unknown_passkey(app, context.request),
        _ => None,
    };
    let has_letters = app.letters.from().is_some() && choices.password;
    let forgotten = has_letters.then(|| context.action(FORGOTTEN));
    let note = password_set(context);
    let to_second_factor = context.action(second_factor::PAGE);
    // As it was sent, else as the session is. Who says that they are somebody else begins without.
    let is_remembered =
        current_session.is_some_and(|current_session| current_session.is_remembered(app));
    let is_ticked = drawn.ticked.unwrap_or(is_remembered && !someone_else);
    let shown = SignInForm {
        someone_else,
        with: app.config.sign_in_with,
        forgotten: forgotten.as_deref(),
        // The operator's link leads to the account page. No application's sign-in can be made to
        // say it, but by a note that was sealed for it.
        password_is_set: note.is_some()
            || transaction.client_id().is_none() && says(context.request, PASSWORD_SET),
        passkey_is_set: transaction.client_id().is_none() && says(context.request, PASSKEY_SET),
        username: match &note {
            Some(note) if drawn.username.is_empty() => &note.username,
            _ => drawn.username,
        },
        remember: app.config.remember_session_lifetime.map(|_| is_ticked),
        passkey: options.as_deref().map(|options| AskPasskey {
            action: &to_second_factor,
            options,
            signals: signals.as_deref(),
        }),
    };
    let form = PageForm {
        chrome: context.chrome(),
        action: context.action(PAGE),
        token: forms::issue(app, Form::Login, &transaction.sealed, &browser.value),
    };
    let purpose = context.purpose();
    let is_expired = says(context.request, EXPIRED);
    let problem = drawn
        .problem
        .or(is_expired.then_some(FormProblem::PageExpired))
        .or(refused.map(|_| FormProblem::KeyNotShown));
    let page = pages::login::page(&form, purpose, &choices, shown, problem);
    let mut page = browser.carried_by(&app.config, answers::scripted_page(200, page));
    if let (Some(FormProblem::KeyNotShown), Some(refused)) = (problem, refused) {
        page = answers::noted(page, Reason::UnboundRequest);
        page.note.detail = Some(bound_session::refusal_detail(context.request, &refused.row));
    }
    without_leftovers(context, page)
}

/// The answer. Where no session stands, it has this browser forget what is left of bound ones.
pub fn without_leftovers(context: RequestContext<'_>, response: Response) -> Response {
    if context.current_session.is_some() || context.refused.is_some() {
        return response;
    }
    bound_session::forget(context.app, context.request, response, false)
}

/// The account chooser.
pub fn choose_account(context: InSession<'_>) -> Response {
    offer(context, 200, false)
}

/// Tells a person that the application is not open to them; others may use it from here.
pub fn not_open(context: InSession<'_>) -> Response {
    answers::noted(offer(context, 403, false), Reason::NotOpenToUser)
}

/// Offers the present account, unless the application is closed to it.
fn offer(context: InSession<'_>, status: u16, drawn_again: bool) -> Response {
    let form = context.form(PAGE, Form::SelectAccount);
    let account = context.current_session.account();
    let purpose = context.purpose();
    let page = pages::login::chooser_page(&form, purpose, account, status == 200, drawn_again);
    answers::scripted_page(status, page)
}
