//! The sign-in as one conversation. A browser opens a page, or posts its form; the page makes a
//! step of it; the core decides what the request needs next; and this file says how the person gets
//! there: a page is drawn as the answer, its address is sent, or the request is granted or refused.
//!
//! Each request of a sign-in comes in by `handle`, but for the way back from an identity provider,
//! which comes in by `come_back`. A first visit with a password and a second factor has four, where
//! neither consent nor a stronger factor is due:
//!
//! 1. `GET /connect/authorize`. `open` has `transaction.rs` seal the request and validate it.
//!    Nobody is signed in, so `next` has `sign_in_first` send the browser to `/login`, with the
//!    sealed request in its address.
//! 2. `GET /login`. `transaction.rs` opens the seal. Still nobody is signed in, so `sign_in_first`
//!    has `ask_who` draw the page. A cookie ties its form, and the next one, to this browser.
//! 3. `POST /login`. `login.rs` tries the password and answers `Taken::Proved`. The user has a
//!    second factor, so `go_on` draws its page as the answer, and does not ask the core: the proof
//!    lies sealed in the form of that page, and there is no session.
//! 4. `POST /login/second-factor`. `login/second_factor.rs` tries the code and answers
//!    `Taken::Proved` once more, now with both. `sign_in` has `answer.rs` begin the session, and
//!    `next` asks the core once more, and `answer.rs` grants: the browser goes back to the client
//!    with a code. That is sealed, too, and stands in no table. (Were consent due, the browser
//!    would go to `/consent`.)

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::endpoints::account::linked;
use crate::endpoints::bound_session;
use crate::endpoints::consent;
use crate::endpoints::current_session::Presence;
use crate::endpoints::letters::new_browser;
use crate::endpoints::login::{self, Drawn, second_factor};
use crate::endpoints::transaction::{
    self, AuthorizationTransaction, InSession, Judged, Opening, Proof, RequestContext, Taken,
};
use crate::endpoints::upstream::callback::{self, Back};
use crate::endpoints::upstream::departure::{UpstreamPurpose, depart};
use crate::endpoints::{answer, answers, device};
use crate::http::{Method, Request, Response};
use gatepost_protocol::authorize::authorize_request::{AuthorizeRefusal, Ending};
use gatepost_protocol::authorize::interaction::{Interaction, Step};
use gatepost_protocol::device::device_code::DeviceDecision;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::upstream::choices::Choices;
use gatepost_protocol::words::reason::{AuthorizeErrorCode, Reason};
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_store::users::CurrentUser;

/// Where a browser is.
#[derive(Clone, Copy, PartialEq)]
pub enum Page {
    Authorize,
    Login,
    SecondFactor,
    /// `/consent`; and the question whether a device may have what it asks for, which is posted to
    /// `/device`.
    Consent,
    /// `/device`, which asks for a device's code.
    UserCode,
    /// Back from an identity provider.
    Callback,
}

/// Opens a page, or takes its form.
pub fn handle(page: Page, app: &App, request: &Request) -> Result<Response> {
    let is_post = request.method == Method::Post;
    let is_question = page == Page::UserCode && is_post && device::has_request(request)?;
    let transaction = match open(page, app, request, is_question)? {
        Opening::AuthorizationTransaction(transaction) => transaction,
        Opening::Answer(response) => return Ok(response),
    };
    let page = if is_question { Page::Consent } else { page };
    meet(app, request, &transaction, page, |context| match page {
        Page::Login if is_post => login::take(context),
        Page::Consent if is_post => consent::take(context),
        Page::SecondFactor => second_factor::take(context),
        Page::Authorize | Page::Login | Page::Consent | Page::UserCode | Page::Callback => {
            Ok(Taken::Step(Step::Arrival))
        }
    })
}

/// `is_question`: the form answers the question whether a device may have what it asks for.
fn open(page: Page, app: &App, request: &Request, is_question: bool) -> Result<Opening> {
    if page == Page::Authorize {
        let transaction = AuthorizationTransaction::begin(app, request)?;
        // A post from another site carries no Lax cookie: the session is looked at one GET later,
        // on a page of ours.
        if request.method == Method::Post {
            return Ok(Opening::at_sign_in(app, &transaction));
        }
        return Ok(Opening::AuthorizationTransaction(Box::new(transaction)));
    }
    if page == Page::UserCode && !is_question {
        return device::open(app, request);
    }
    reopen(page, app, request, is_question)
}

/// Opens the request in the address of the page.
fn reopen(page: Page, app: &App, request: &Request, is_question: bool) -> Result<Opening> {
    let is_post = request.method == Method::Post;
    let opened = transaction::open(app, request)?;
    let is_of_device = matches!(opened.request.purpose, SealedPurpose::Device(_));
    // An address alone does not lead past the page that asks for the code.
    if page == Page::Login && is_of_device && !is_post {
        let device = transaction::page_address(app, "/device", &opened.sealed);
        return Ok(Opening::Answer(answers::see_other(device)));
    }
    let transaction = AuthorizationTransaction::resume(app, opened)?;
    let is_of_client = matches!(transaction.request.ending, Ending::Client(_));
    if is_question && !is_of_device || page == Page::Consent && !is_of_client {
        return Err(transaction::invalid());
    }
    // That page is drawn only as the answer to another one: its form has a sealed proof, or a token
    // of the session.
    if page == Page::SecondFactor && !is_post {
        return Ok(Opening::at_sign_in(app, &transaction));
    }
    Ok(Opening::AuthorizationTransaction(Box::new(transaction)))
}

/// Lets the page take the form, in the session of this browser, and goes on from there. All that is
/// granted to a browser passes through here, so the registry must be fresh.
fn meet(
    app: &App,
    request: &Request,
    transaction: &AuthorizationTransaction,
    page: Page,
    take: impl FnOnce(RequestContext<'_>) -> Result<Taken>,
) -> Result<Response> {
    let presence = app
        .require_fresh_registry()
        .and_then(|()| Presence::find(app, request, transaction.client_id()))
        .map_err(|failure| transaction.noted_failure(transaction.report_outage(failure)))?;
    let context = RequestContext {
        app,
        request,
        transaction,
        current_session: presence.signed_in(),
        refused: presence.refused(),
        someone_else: page == Page::Login && login::says_someone_else(request),
    };
    take(context)
        .and_then(|taken| go_on(context, page, taken))
        .map_err(|failure| transaction.noted_failure(failure))
}

/// Goes on with somebody who is back from an identity provider.
pub fn come_back(app: &App, request: &Request, provider: &str) -> Result<Response> {
    if request.method == Method::Post {
        return callback::take_post(app, request, provider);
    }
    let back = match Back::of(app, request, provider) {
        Ok(back) => back,
        Err(answer) => return Ok(*answer),
    };
    let answer = match &back.trip.linking {
        Some(sid) => linked::come_back(&back, sid),
        None => sign_in_from(&back),
    };
    back.end(answer)
}

fn sign_in_from(back: &Back<'_>) -> Result<Response> {
    let opened = transaction::open_text(back.app, &back.sealed)
        .map_err(|unopened| unopened.answered(back.app, back.request))?;
    let transaction = &AuthorizationTransaction::resume(back.app, opened)?;
    // Asked before the session is read: one that was revoked meanwhile is not to go on.
    let identified = back.identify(|provider| transaction.choices().offers(&provider.name));
    meet(
        back.app,
        back.request,
        transaction,
        Page::Callback,
        |context| match identified {
            Ok(identified) => back.take(context, &identified),
            Err(problem) => {
                login::after_failure(context, &back.trip.provider, &problem).map(Taken::Answer)
            }
        },
    )
}

/// Does what the page's form asks for. With `prompt=none` a client hears of an outage at once.
fn go_on(context: RequestContext<'_>, page: Page, taken: Taken) -> Result<Response> {
    let answer = match taken {
        Taken::Answer(response) => Ok(response),
        Taken::Step(step) => next(context, page, step),
        Taken::Strengthened(session) => {
            next(context.within(Some(&*session)), page, Step::AfterFactor)
        }
        Taken::Proved(found, proof) if proof.lacks_second_factor_of(&found.user) => {
            second_factor::after_password(context, &found.user, proof)
        }
        Taken::Proved(found, proof) => sign_in(context, page, *found, &proof),
        Taken::NotSignedIn(problem, reason) => {
            let page = login::draw(context, Drawn::default().with(problem));
            Ok(answers::noted(page, reason))
        }
        Taken::OtherWay {
            someone_else,
            provider,
        } => {
            let context = RequestContext {
                someone_else,
                ..context
            };
            match provider {
                Some(provider) => to_provider(context, &provider),
                None => ask_who(context),
            }
        }
        Taken::DeviceDenied => {
            let granted = ScopeSet::default();
            let judged = context.judge(Step::AfterConsent { granted })?;
            match (judged.interaction, context.in_session()) {
                (Interaction::Refuse(refusal), _) => Err(context.transaction.refuse(refusal)),
                (Interaction::Proceed { scope }, Some(context)) => {
                    answer::decide_device(context, DeviceDecision::Denied, &scope)
                }
                (_, _) => Ok(start_again(context)),
            }
        }
    };
    match answer {
        Ok(response) => Ok(context.transaction.noted(response)),
        Err(failure) => Err(context.transaction.report_outage(failure)),
    }
}

fn sign_in(
    context: RequestContext<'_>,
    page: Page,
    found: CurrentUser,
    proof: &Proof,
) -> Result<Response> {
    let strengthens = answer::strengthens(context, proof);
    let step = if strengthens {
        Step::AfterFactor
    } else {
        Step::AfterSignIn
    };
    let Some(session) = answer::begin_session(context, found, proof)? else {
        return Ok(if page == Page::Callback {
            callback::over(context.app, context.request, Reason::RoundTripOver)
        } else {
            // They were revoked, or their way in or the session of their first factor has ended:
            // who they are is asked anew.
            context.redirect("/login")
        });
    };
    new_browser::leave(context, &session, proof);
    let response = match next(context.within(Some(&session)), page, step) {
        // The user is signed in although the client is told no: the browser must learn its session
        // in that answer.
        Err(Failure::Authorize(error)) => answers::authorize_error(&context.presentation(), error),
        answer => answer?,
    };
    let app = context.app;
    let response = answer::carried_by(app, response, &session);
    // No other answer offers a binding: whoever has a stolen cookie is to get none.
    Ok(if strengthens {
        response
    } else {
        bound_session::offer(app, response, &session.row, &session.handle)
    })
}

/// Asks the core what comes next, and does it: a page is drawn as the answer, or its address is
/// sent; or the request is granted or refused.
fn next(context: RequestContext<'_>, page: Page, step: Step) -> Result<Response> {
    let Judged {
        interaction,
        consent,
    } = context.judge(step.clone())?;
    let transaction = context.transaction;
    let arrives = step == Step::Arrival;
    let wants_fresh = arrives && transaction.wants_fresh_sign_in();
    let is_consent = page == Page::Consent;
    match (interaction, context.in_session()) {
        (Interaction::Refuse(refusal), _) => Err(transaction.refuse(told(context, refusal))),
        // A request for a fresh sign-in gets one each time: to go back to the sign-in page is not
        // to sign in. So does whoever asked there to sign in as somebody else.
        (_, _) if page == Page::Login && (wants_fresh || context.someone_else && arrives) => {
            ask_who(context)
        }
        (Interaction::Login { .. }, _) | (_, None) => sign_in_first(context, page, &step),
        (Interaction::SelectAccount, Some(signed_in)) if page == Page::Login => {
            Ok(login::choose_account(signed_in))
        }
        (Interaction::SelectAccount, _) => Ok(start_again(context)),
        (Interaction::Stronger(_), _) if is_consent || page == Page::Authorize => {
            Ok(start_again(context))
        }
        (Interaction::Stronger(stronger), Some(signed_in)) => {
            second_factor::in_session(signed_in, stronger)
        }
        (Interaction::Consent { may_remember }, Some(signed_in)) => {
            ask_consent(signed_in, page, &step, may_remember)
        }
        // Somebody opened the address of `/consent`, or posted a form that was not taken. The
        // session is younger than this request, but it may have begun in another tab, for another
        // request. Were consent due, that page would show what goes on; none is, so the sign-in
        // page must.
        (Interaction::NotOpen | Interaction::Proceed { .. }, _) if is_consent && wants_fresh => {
            Ok(start_again(context))
        }
        (Interaction::NotOpen | Interaction::Proceed { .. }, _)
            if context.request.method == Method::Head =>
        {
            Ok(answers::nothing_to_show())
        }
        (Interaction::NotOpen, Some(signed_in)) => Ok(login::not_open(signed_in)),
        (Interaction::Proceed { scope }, Some(signed_in)) => {
            let agreed = matches!(step, Step::AfterConsent { .. });
            answer::grant(signed_in, &scope, consent, agreed)
        }
    }
}

/// The refusal, with the reason where they must sign in because their session was refused.
fn told(context: RequestContext<'_>, refusal: AuthorizeRefusal) -> AuthorizeRefusal {
    let is_of_session = refusal.code == AuthorizeErrorCode::LoginRequired;
    let Some(refused) = context.refused.filter(|_| is_of_session) else {
        return refusal;
    };
    AuthorizeRefusal {
        reason: Reason::UnboundRequest,
        detail: Some(bound_session::refusal_detail(context.request, &refused.row)),
        ..refusal
    }
}

/// Sends the browser to `/consent`. The page is drawn as this answer in three cases: they are on it
/// already; a device asks, whose page has no address; or they have just answered something that a
/// GET would ask again, since a GET is an arrival. Those answers are: the account is chosen; the
/// wish for a stronger sign-in is declined; under `prompt=select_account`, a factor is proved in
/// the session that was chosen, whose `auth_time` stays older than the request; and, where the
/// client requires a bound session, a sign-in, which an identity provider may date back.
fn ask_consent(
    context: InSession<'_>,
    page: Page,
    step: &Step,
    may_remember: bool,
) -> Result<Response> {
    let transaction = context.transaction;
    let has_answered = match step {
        Step::AfterAccountChosen | Step::AfterWishDeclined => true,
        Step::AfterSignIn => consent::requires_bound_session(transaction),
        Step::AfterFactor => transaction.request.prompt.select_account,
        Step::Arrival | Step::AfterConsent { .. } => false,
    };
    let is_consent = page == Page::Consent;
    if is_consent || transaction.is_of_device() || has_answered {
        let drawn_again = is_consent && context.request.method == Method::Post;
        return consent::draw(context, may_remember, drawn_again);
    }
    Ok(context.redirect("/consent"))
}

/// Nobody is signed in, or not as the request wants it.
fn sign_in_first(context: RequestContext<'_>, page: Page, step: &Step) -> Result<Response> {
    match page {
        Page::Authorize => match only_provider(context, &context.transaction.ways_in()?) {
            Some(provider) => to_provider(context, provider),
            None => Ok(context.redirect("/login")),
        },
        // Asking upstream again would get the same answer, round and round.
        Page::Callback => Err(context
            .transaction
            .refuse_with(AuthorizeErrorCode::LoginRequired, Reason::LoginRequired)),
        Page::Consent => Ok(start_again(context)),
        Page::Login | Page::SecondFactor | Page::UserCode => match step {
            Step::AfterSignIn | Step::AfterFactor => Ok(context.redirect("/login")),
            Step::Arrival
            | Step::AfterAccountChosen
            | Step::AfterWishDeclined
            | Step::AfterConsent { .. } => ask_who(context),
        },
    }
}

/// The provider that they go straight to. There is none where the page has a choice, or must say
/// that their session was refused.
fn only_provider<'a>(context: RequestContext<'_>, ways: &'a Choices) -> Option<&'a str> {
    ways.only().filter(|_| context.refused.is_none())
}

/// The sign-in page, or straight to the only provider.
fn ask_who(context: RequestContext<'_>) -> Result<Response> {
    let ways = context.transaction.ways_in()?;
    if let Some(provider) = only_provider(context, &ways) {
        return to_provider(context, provider);
    }
    let hint = context.transaction.request.login_hint.as_deref();
    let hint = hint.filter(|_| context.request.method != Method::Post);
    let drawn = Drawn {
        username: hint.unwrap_or_default(),
        ..Drawn::default()
    };
    Ok(login::draw(context, drawn))
}

fn to_provider(context: RequestContext<'_>, provider: &str) -> Result<Response> {
    let purpose = UpstreamPurpose::SignIn {
        transaction: context.transaction,
        someone_else: context.someone_else,
    };
    match depart(context.app, context.request, purpose, provider) {
        Ok(response) => Ok(login::without_leftovers(context, response)),
        Err(stopped) => login::after_failure(context, provider, &stopped.refusal()?),
    }
}

/// Back to the page that a sign-in begins with. For a device that is the page that asks for its
/// code, which no address leads past.
fn start_again(context: RequestContext<'_>) -> Response {
    match &context.transaction.request.ending {
        Ending::Device(user_code) => device::ask(context.app, context.request, Some(user_code)),
        Ending::Client(_) | Ending::Account { .. } => context.redirect("/login"),
    }
}
