//! `/login/second-factor`: asks for a second factor after a right password, or to make a session
//! stronger. Until it is answered there is no session; the factors that were proved travel sealed
//! in the form.

use std::time::Duration;

use super::LoginPage;
use crate::app::App;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::endpoints::account::factors::{self, Added};
use crate::endpoints::account::passkeys;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::authorize::visit::{self, Visit};
use crate::endpoints::cookies;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::passkey;
use crate::endpoints::login::password::counted_wrong;
use crate::endpoints::login::sign_in::{self, Proof};
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::frame::PageForm;
use crate::pages::login::{LoginProblem, SignInFor};
use crate::pages::second_factor::FactorProblem;
use crate::protocol::authorize::authorize_request::{Ending, Refusal};
use crate::protocol::authorize::interaction::Stronger;
use crate::protocol::login::second_factor::{
    FactorKind, MOST_CODES, TICKET_LIFETIME, Ticket, Typed, step_of, tie, typed, with_factor,
};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::parameters::{self, Parameters};
use crate::protocol::words::reason::{AuthorizeErrorCode, Reason};
use crate::protocol::words::secret::SecretBytes;
use crate::protocol::words::strength::Strength;
use crate::store::audit_events::{self, AuditEvent};
use crate::store::authenticators;
use crate::store::sign_in_failures::{self, FailureBucket, FailureCount};
use crate::store::users::{self, CurrentUser, UserRow};

pub(super) const PAGE: &str = "/login/second-factor";
/// The event of a wrong second factor. Whoever brings one has shown a password before.
pub(super) const SECOND_FACTOR_FAILED: &str = "second_factor_failed";
/// Tickets begin with it, and are sealed with it: nothing else that is sealed for second factors
/// opens as one.
const TICKET: &str = "gpf_";

/// Asks for another factor after a right password.
pub(super) fn after_password(
    app: &App,
    request: &Request,
    visit: &Visit,
    user: &UserRow,
    proof: Proof,
) -> Result<Response, Failure> {
    let browser =
        cookies::pre_session(&app.config, request).unwrap_or_else(|| SecretBytes::new([]));
    let event = AuditEvent {
        event: "first_factor",
        client_id: visit.client_id(),
        sub: Some(&user.sub),
        ..AuditEvent::default()
    };
    audit_events::insert(&app.store, &event.by(request.source, &request.id))?;
    let proved = (
        proof.amr,
        app.now().max(visit.request.received_at),
        proof.remember == Some(true),
    );
    let ticket = ticket(app, user, proved, false, tie(&visit.sealed, &browser));
    ask(app, request, visit, &ticket, None)
}

/// Asks for what makes that session stronger.
pub fn in_session(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    stronger: Stronger,
) -> Result<Response, Failure> {
    let may_skip = match stronger {
        Stronger::Prove { may_skip } => may_skip,
        Stronger::Enrol(wanted) => {
            return enrol(app, request, visit, present, wanted, (None, None));
        }
    };
    let (user, row) = (&present.user, &present.row);
    let proved = (row.amr.clone(), row.auth_time, present.is_remembered(app));
    let ticket = ticket(
        app,
        user,
        proved,
        may_skip,
        tie(&visit.sealed, &present.handle.random),
    );
    ask(app, request, visit, &ticket, None)
}

fn has_code(ticket: &Ticket) -> bool {
    ticket.amr.iter().any(|method| method == "otp")
}

fn ticket(
    app: &App,
    user: &UserRow,
    (amr, auth_time, remember): (Vec<String>, Instant, bool),
    may_skip: bool,
    tie: [u8; 32],
) -> Ticket {
    let UserRow {
        sub: subject,
        epoch,
        factors,
        ..
    } = user.clone();
    let expires_at = app.now().plus(TICKET_LIFETIME);
    Ticket {
        subject,
        epoch,
        factors,
        amr,
        auth_time,
        remember,
        may_skip,
        expires_at,
        tie,
    }
}

/// Draws the page that asks; its form token is the ticket.
pub(super) fn ask(
    app: &App,
    request: &Request,
    visit: &Visit,
    ticket: &Ticket,
    problem: Option<FactorProblem>,
) -> Result<Response, Failure> {
    let factors = authenticators::list(&app.store, &ticket.subject, true)?;
    // A code that was given already makes the sign-in no stronger.
    let takes_codes =
        !has_code(ticket) && factors.iter().any(|one| one.kind != FactorKind::Passkey);
    let passkeys: Vec<&[u8]> = factors
        .iter()
        .filter(|one| one.kind == FactorKind::Passkey)
        .map(|one| &one.id[..])
        .collect();
    let options = (!passkeys.is_empty())
        .then(|| passkeys::request_options(app, ticket.tie, &passkeys))
        .flatten();
    let token = app.vault.second_factors.seal_text(TICKET, ticket);
    let presentation = Presentation {
        config: &app.config,
        request,
    };
    let action = presentation.in_language_of(
        visit::page_address(app, PAGE, &visit.sealed),
        visit.ui_locales(),
    );
    let (chrome, form) = (
        presentation.chrome(visit.ui_locales()),
        PageForm {
            action: &action,
            token: &token,
        },
    );
    let purpose = SignInFor {
        request: &visit.request,
        client: visit.registration(),
        catalogue: &visit.snapshot.catalogue,
    };
    let page = pages::second_factor::page(
        chrome,
        form,
        purpose,
        takes_codes,
        options.as_deref(),
        ticket.may_skip,
        problem,
    );
    Ok(visit.noted(answers::scripted_page(200, page)))
}

/// Draws a page about a new factor, whose form is good for this request in this session.
fn about_new<T>(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    draw: impl FnOnce(PageForm<'_>) -> T,
) -> T {
    let presentation = Presentation {
        config: &app.config,
        request,
    };
    let action = presentation.in_language_of(
        visit::page_address(app, PAGE, &visit.sealed),
        visit.ui_locales(),
    );
    let token = forms::issue(app, Form::NewFactor, &visit.sealed, &present.handle.random);
    draw(PageForm {
        action: &action,
        token: &token,
    })
}

/// The page that adds the factor that this sign-in needs.
fn enrol(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    wanted: Strength,
    (before, problem): (Option<&str>, Option<FactorProblem>),
) -> Result<Response, Failure> {
    let tie = tie(&visit.sealed, &present.handle.random);
    let page = about_new(app, request, visit, present, |form| match wanted {
        Strength::PhishingResistant => {
            passkeys::passkey_page(app, request, present, form, (tie, true), problem)
        }
        Strength::SignedIn | Strength::TwoFactors => Ok(factors::app_page(
            app,
            request,
            present,
            form,
            (before, true),
            problem,
        )),
    });
    page.map(|page| visit.noted(page))
}

/// Takes the forms of both pages. A GET leads to the sign-in page.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let visit = &Visit::resume(app, visit::open(app, request)?)?;
    if request.method != Method::Post {
        return Ok(answers::see_other(visit.page(app, "/login")));
    }
    let form = forms::read_post(app, request)?;
    let present = PresentSession::find(app, request)?;
    if let Some(present) = &present
        && forms::matches(
            app,
            Form::NewFactor,
            &visit.sealed,
            Some(&present.handle.random),
            &form,
        )
    {
        return take_new_factor(app, request, visit, present, &form);
    }
    let ticket = form.bounded("form_token", parameters::HANDLE)?;
    let ticket: Option<Ticket> =
        ticket.and_then(|text| app.vault.second_factors.open_text(TICKET, text));
    let of_session = present
        .as_ref()
        .map(|present| tie(&visit.sealed, &present.handle.random));
    let of_browser =
        cookies::pre_session(&app.config, request).map(|browser| tie(&visit.sealed, &browser));
    let page = LoginPage::of(app, request, visit).with_session(present.as_ref());
    let is_tied = |ticket: &Ticket| {
        [of_session, of_browser].contains(&Some(ticket.tie)) && app.now() < ticket.expires_at
    };
    let ticket = ticket.filter(is_tied);
    if form.single("decision")? == Some("passkey") {
        let ties: Vec<[u8; 32]> = [of_session, of_browser].into_iter().flatten().collect();
        return passkey::prove(page, ticket.as_ref(), &ties, &form);
    }
    let Some(ticket) = ticket else {
        return Ok(page.again("", LoginProblem::PageExpired, Reason::PageExpired));
    };
    match (form.single("decision")?, &present) {
        (Some("not_now"), Some(present)) if ticket.may_skip => page.go_on(present),
        (Some("cancel"), Some(_)) if of_session == Some(ticket.tie) => declined(page),
        (Some("cancel"), _) => page.cancelled(),
        (Some(_), _) => Err(Failure::bad_request(Reason::UnknownPageAction)),
        (None, _) => prove(page, &ticket, &form),
    }
}

/// For the client; where none waits, back to where they came from.
fn declined(page: LoginPage<'_>) -> Result<Response, Failure> {
    let unmet = Refusal::new(
        AuthorizeErrorCode::UnmetAuthenticationRequirements,
        Reason::FactorDeclined,
    );
    match page.visit.request.ending {
        Ending::Client(_) => Err(page.visit.refuse(unmet)),
        Ending::Device(_) | Ending::Account { .. } => page.cancelled(),
    }
}

/// Goes on once a factor was added that this sign-in needed, or declines.
fn take_new_factor(
    app: &App,
    request: &Request,
    visit: &Visit,
    present: &PresentSession,
    form: &Parameters,
) -> Result<Response, Failure> {
    let again = |wanted, problem| {
        enrol(
            app,
            request,
            visit,
            present,
            wanted,
            (form.single("app")?, problem),
        )
    };
    let (wanted, added) = match form.single("decision")? {
        Some("cancel") => return declined(LoginPage::of(app, request, visit)),
        Some("continue") => return sign_in::go_on(app, request, visit, present, false),
        Some("add_app") => (
            Strength::TwoFactors,
            factors::add_app(app, request, present, form)?,
        ),
        Some("add_passkey") if form.single("attestation_object")?.is_none() => {
            return again(Strength::PhishingResistant, None);
        }
        Some("add_passkey") => {
            let tie = tie(&visit.sealed, &present.handle.random);
            (
                Strength::PhishingResistant,
                passkeys::add_passkey(app, request, present, tie, form)?,
            )
        }
        Some(_) | None => return Err(Failure::bad_request(Reason::UnknownPageAction)),
    };
    match added {
        Added::Problem(problem) => again(wanted, Some(problem)),
        Added::Another => match present.read_again(app)? {
            Some(present) => sign_in::go_on(app, request, visit, &present, false),
            None => Ok(answers::see_other(visit.page(app, "/login"))),
        },
        Added::First {
            handle,
            recovery_codes,
        } => {
            let kept = PresentSession {
                handle,
                ..present.clone()
            };
            let chrome = Presentation {
                config: &app.config,
                request,
            }
            .chrome(visit.ui_locales());
            let page = about_new(app, request, visit, &kept, |form| {
                pages::second_factor::recovery_page(chrome, Ok(form), &recovery_codes)
            });
            Ok(kept.carried_by(app, answers::form_page(200, page)))
        }
    }
}

/// Tries the code that was typed, and signs in with all that was proved.
fn prove(page: LoginPage<'_>, ticket: &Ticket, form: &Parameters) -> Result<Response, Failure> {
    let LoginPage {
        app,
        request,
        visit,
        ..
    } = page;
    let found = users::find_for_client(&app.store, &ticket.subject, visit.client_id())?;
    let Some(found) = found.filter(|found| stands(ticket, &found.user)) else {
        return Ok(page.again("", LoginProblem::PageExpired, Reason::PageExpired));
    };
    let Some(code) = form.bounded("code", parameters::OTHER)? else {
        return ask(
            app,
            request,
            visit,
            ticket,
            Some(FactorProblem::CodeMissing),
        );
    };
    if has_code(ticket) {
        return ask(app, request, visit, ticket, None);
    }
    match try_code(page, &found, code)? {
        Ok(true) => {
            let (amr, acr) = (
                with_factor(&ticket.amr, &["otp"]),
                Strength::TwoFactors.as_str().to_owned(),
            );
            let proof = Proof {
                amr,
                acr,
                auth_time: Some(ticket.auth_time),
                ..Proof::password(Some(ticket.remember))
            };
            sign_in::complete(app, request, visit, page.present, found, &proof)
        }
        Ok(false) => {
            let whose = Some(&ticket.subject);
            app.note_failure_of(
                SECOND_FACTOR_FAILED,
                request,
                visit.client_id(),
                whose,
                Reason::SecondFactorWrong,
            );
            let response = ask(app, request, visit, ticket, Some(FactorProblem::CodeWrong))?;
            Ok(answers::noted(response, Reason::SecondFactorWrong))
        }
        Err(wait) => {
            app.note_turned_away(request);
            let problem = FactorProblem::TooManyAttempts {
                minutes: answers::minutes(wait),
            };
            let mut response = ask(app, request, visit, ticket, Some(problem))?;
            response.status = 429;
            Ok(answers::retry_after(
                answers::noted(response, Reason::TooManyCodes),
                wait,
            ))
        }
    }
}

/// Whether the user is still as they were when the ticket was made.
pub(super) fn stands(ticket: &Ticket, user: &UserRow) -> bool {
    user.enabled
        && user.sub == ticket.subject
        && user.epoch == ticket.epoch
        && user.factors == ticket.factors
}

/// Whether the code is right, or how long no code is looked at. Each attempt is counted before it
/// is looked at, so that many at once are no way around the limit.
fn try_code(
    page: LoginPage<'_>,
    found: &CurrentUser,
    text: &str,
) -> Result<Result<bool, Duration>, Failure> {
    let LoginPage {
        app,
        request,
        visit,
        ..
    } = page;
    let user = &found.user;
    let code = typed(text);
    let (kind, limits) = match code {
        Typed::Totp(_) => (FactorKind::Totp, &MOST_CODES[..]),
        Typed::RecoveryCode(_) => (FactorKind::RecoveryCode, &MOST_CODES[..1]),
        Typed::Neither => return Ok(Ok(false)),
    };
    let source = Source::of(request.source).bytes();
    let bucket = |(at, (_, seconds)): (usize, &(i32, u64))| {
        let from: &[u8] = if at == 0 { &source } else { &[] };
        let parts = [
            b"code",
            kind.as_str().as_bytes(),
            user.sub.as_str().as_bytes(),
            &seconds.to_be_bytes(),
            from,
        ];
        FailureBucket {
            bucket: app.vault.throttle_buckets.tag(&parts),
            window: Duration::from_secs(*seconds),
        }
    };
    let buckets: Vec<FailureBucket> = limits.iter().enumerate().map(bucket).collect();
    // One source that is turned away uses up nothing of what everybody has together.
    let (own, everywhere) = buckets.split_at_checked(1).unwrap_or_default();
    for part in [own, everywhere] {
        let counts = sign_in_failures::record(&app.store, part)?;
        let is_above = |count: &&FailureCount| {
            buckets
                .iter()
                .zip(limits)
                .any(|(own, (most, _))| own.bucket == count.bucket && count.failures > *most)
        };
        if let Some(wait) = counts
            .iter()
            .filter(is_above)
            .map(|count| count.expires_at.since(app.now()))
            .max()
        {
            return Ok(Err(wait));
        }
    }
    let event = AuditEvent {
        client_id: visit.client_id(),
        sub: Some(&user.sub),
        ..AuditEvent::default()
    };
    let event = event.by(request.source, &request.id);
    let secrets = authenticators::list(&app.store, &user.sub, true)?;
    let mut secrets = secrets.iter().filter(|one| one.kind == kind);
    let opened = |sealed: &Option<SecretBytes>| factors::opened(app, &user.sub, sealed.as_ref()?);
    let is_right = match code {
        Typed::Totp(code) => match secrets
            .next()
            .and_then(|one| Some((opened(&one.secret)?, one.last_step)))
        {
            Some((secret, last)) => match step_of(code, &secret, last, app.now()) {
                Some(step) => authenticators::use_step(&app.store, &user.sub, step, &event)?,
                None => false,
            },
            None => false,
        },
        Typed::RecoveryCode(digest) => {
            let digest = SecretBytes::new(digest);
            match secrets.find(|one| opened(&one.secret).is_some_and(|stored| stored == digest)) {
                Some(code) => {
                    authenticators::use_recovery_code(&app.store, &user.sub, &code.id, &event)?
                }
                None => false,
            }
        }
        Typed::Neither => false,
    };
    if is_right {
        app.note_factor(kind);
        sign_in_failures::take_back(
            &app.store,
            &buckets,
            counted_wrong(app, found, request.source),
        )?;
    }
    Ok(Ok(is_right))
}
