//! `/account/link`: where a link leads by which somebody sets their password: one from the
//! operator, or one that Gatepost sent (`mail_link.rs`). Opening it changes nothing, since mail
//! scanners open links, too. It leaves the address at once, for one that is good in this browser
//! alone and for ten minutes; the form there sets the password.

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::letters::AccountChange;
use crate::endpoints::account::{mail_link, passkey_link};
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies::{self, Browser};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::after_password_link;
use crate::endpoints::login::new_factor::{self, RecoveryCodes};
use crate::endpoints::notices;
use crate::endpoints::visit;
use crate::http::{Method, Request, Response};
use crate::keys::password::PasswordVerdict;
use crate::pages;
use crate::pages::account::AccountProblem;
use crate::pages::error::Problem;
use crate::pages::frame::PageForm;
use crate::pages::second_factor::{FactorProblem, NewApp};
use gatepost_protocol::login::password_link::{
    FORM_LIFETIME, PASSKEY_PREFIX, PREFIX, PasskeyLink, PasswordLink, PasswordLinkOrigin,
    factors_and_roles,
};
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::identifiers;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_protocol::words::strength::Strength;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::authenticators::{self, Authenticator, NewFactors};
use gatepost_store::users::{self, CurrentUser, UserRow};

pub(super) const PAGE: &str = "/account/link";

/// Takes the link out of the address, shows the form, or takes it.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let presentation = Presentation::of(app, request);
    let known = cookies::pre_session(&app.config, request);
    let query = Parameters::parse(request.query.as_bytes())?;
    if let Ok(Some(text)) = query.bounded("l", parameters::HANDLE) {
        let enter = if text.starts_with(mail_link::PREFIX) {
            mail_link::enter
        } else if text.starts_with(PASSKEY_PREFIX) {
            passkey_link::enter
        } else {
            enter
        };
        let entered = enter(app, presentation, text)?;
        return Ok(entered.unwrap_or_else(|| over(presentation)));
    }
    let (Some(browser), Ok(opened)) = (known, visit::open(app, request)) else {
        return Ok(over(presentation));
    };
    let is_late = app.now() >= opened.request.received_at.plus(FORM_LIFETIME);
    if let SealedPurpose::MailLink { .. } = opened.request.purpose {
        return mail_link::handle(app, request, opened, browser);
    }
    let for_passkey = match &opened.request.purpose {
        SealedPurpose::SetPasskey { link, .. } => Some(link.address_hash),
        _ => None,
    };
    let (SealedPurpose::SetPassword {
        link,
        browser: tied,
    }
    | SealedPurpose::SetPasskey {
        link: PasskeyLink { link, .. },
        browser: tied,
    }) = opened.request.purpose
    else {
        return Ok(over(presentation));
    };
    if tied != name_of(&browser) {
        return Ok(over(presentation));
    }
    let is_in_time = |found: &CurrentUser| {
        let wanted = for_passkey.flatten();
        !is_late && passkey_link::has_that_address(&found.user, wanted)
    };
    let found = user(app, &link)?.filter(is_in_time);
    match (found, request.method) {
        (Some(found), method) => {
            let open = OpenLink {
                app,
                request,
                browser,
                sealed: opened.sealed,
                link,
                found,
            };
            match (method == Method::Post, for_passkey.is_some()) {
                (true, false) => open.take(),
                (true, true) => passkey_link::take(&open),
                (false, false) => Ok(open.draw(None, None, None)),
                (false, true) => passkey_link::draw(&open, None),
            }
        }
        (None, Method::Post) => used(app, presentation),
        (None, _) => Ok(over(presentation)),
    }
}

pub(crate) fn over(presentation: Presentation<'_>) -> Response {
    answers::error_page(&presentation, Problem::LinkOver, Reason::LinkOver)
}

/// For whoever sends its form: they may have used the link by it a moment ago.
pub(crate) fn used(app: &App, presentation: Presentation<'_>) -> Result<Response, Failure> {
    app.store.confirm()?;
    Ok(over(presentation))
}

/// What is wrong with the two passwords that they typed.
pub(crate) fn problem_of(app: &App, new: &str, again: Option<&str>) -> Option<AccountProblem> {
    match app.password_rules.check(new) {
        Err(flaw) => Some(AccountProblem::NewPasswordUnfit(flaw)),
        Ok(()) if again != Some(new) => Some(AccountProblem::NewPasswordsDiffer),
        Ok(()) => None,
    }
}

/// The hash of a new password; `None` where the new password is the present one.
pub(super) fn hash_unless_present(
    app: &App,
    request: &Request,
    present: Option<&SecretText>,
    new: &SecretText,
) -> Result<Option<SecretText>, Failure> {
    let turn = app.take_hashing_turn(request, None, None)?;
    if present.is_some() && turn.verify(present, new) != PasswordVerdict::Wrong {
        return Ok(None);
    }
    Ok(Some(turn.hash(new)?))
}

/// A link that is good, in the browser that opened it.
pub(super) struct OpenLink<'a> {
    pub(super) app: &'a App,
    pub(super) request: &'a Request,
    pub(super) browser: SecretBytes,
    pub(super) sealed: String,
    link: PasswordLink,
    pub(super) found: CurrentUser,
}

impl OpenLink<'_> {
    pub(super) fn presentation(&self) -> Presentation<'_> {
        Presentation::of(self.app, self.request)
    }

    pub(super) fn action(&self) -> String {
        let address = visit::page_address(self.app, PAGE, &self.sealed);
        self.presentation().in_its_language(address)
    }

    fn enrols(&self) -> bool {
        self.link.origin == PasswordLinkOrigin::Enrolling
    }

    /// The form; with the app that it was drawn with before, where one is set up.
    fn draw(
        &self,
        problem: Option<AccountProblem>,
        app_before: Option<&str>,
        app_problem: Option<FactorProblem>,
    ) -> Response {
        let OpenLink {
            app,
            browser,
            sealed,
            ..
        } = self;
        let presentation = self.presentation();
        let form = PageForm {
            action: &self.action(),
            token: &forms::issue(app, Form::Password, sealed, browser),
        };
        let username = self.found.user.username.as_deref().unwrap_or_default();
        let page = |new: Option<NewApp<'_>>| {
            let chrome = presentation.chrome("");
            answers::form_page(
                200,
                pages::password_link::page(chrome, form, username, problem, new, app_problem),
            )
        };
        match self.enrols() {
            true => {
                new_factor::with_offer(app, &self.found.user, app_before, |new| page(Some(new)))
            }
            false => page(None),
        }
    }

    /// Sets the password that the form brings; with an app, where the link enrols.
    fn take(&self) -> Result<Response, Failure> {
        let OpenLink {
            app,
            request,
            browser,
            sealed,
            link,
            found,
        } = self;
        let user = &found.user;
        let form = forms::read_post(app, request)?;
        let before = form.single("app")?;
        let new = form.single("new_password")?.unwrap_or_default();
        let again = form.single("new_password_again")?;
        if !forms::matches(app, Form::Password, sealed, Some(browser), &form) {
            return Ok(self.draw(Some(AccountProblem::SessionChanged), before, None));
        }
        if let Some(problem) = problem_of(app, new, again) {
            return Ok(self.draw(Some(problem), before, None));
        }
        let mut added = None;
        if self.enrols() {
            match new_factor::shown_right(app, user, &form)? {
                Ok(authenticator) => added = Some(authenticator),
                Err(problem) => return Ok(self.draw(None, before, Some(problem))),
            }
        }
        let present = match self.enrols() {
            true => None,
            false => user.password_hash.as_ref(),
        };
        let Some(hash) = hash_unless_present(app, request, present, &SecretText::new(new))? else {
            return Ok(self.draw(Some(AccountProblem::NewPasswordIsPresent), before, None));
        };
        let event = AuditEvent {
            event: "password_set_by_link",
            sub: Some(&link.subject),
            detail: json!({"by": "user"}),
            ..AuditEvent::default().by(request.source, &request.id)
        };
        match added {
            Some(authenticator) => self.enrol(authenticator, &hash, &event),
            None => self.set_password(&hash, &event),
        }
    }

    fn set_password(&self, hash: &SecretText, event: &AuditEvent<'_>) -> Result<Response, Failure> {
        let OpenLink { app, link, .. } = self;
        let epochs = Some(self.found.session_epochs());
        if users::set_password(&app.store, &link.subject, epochs, hash, None, event)? {
            Ok(answers::see_other(self.sign_in()))
        } else {
            used(app, self.presentation())
        }
    }

    /// Sets the password together with an app and recovery codes, which it shows.
    fn enrol(
        &self,
        added: Authenticator,
        hash: &SecretText,
        event: &AuditEvent<'_>,
    ) -> Result<Response, Failure> {
        let app = self.app;
        let user = &self.found.user;
        let codes = RecoveryCodes::new(app, &user.sub);
        let mut all = vec![added];
        all.extend(codes.rows);
        let new = NewFactors {
            factors: &all,
            strongest: Strength::TwoFactors,
            user_handle: None,
            replaces_all: false,
        };
        if !authenticators::add(&app.store, user, &new, None, Some(hash), event)? {
            return used(app, self.presentation());
        }
        let presentation = self.presentation();
        notices::send_of_replacement(app, &presentation, user);
        let chrome = presentation.chrome("");
        let page = pages::second_factor::recovery_page(chrome, Err(&self.sign_in()), &codes.texts);
        Ok(answers::form_page(200, page))
    }

    /// Tells them that the password is set. Answers where they sign in.
    fn sign_in(&self) -> String {
        let user = &self.found.user;
        notices::send(
            self.app,
            &self.presentation(),
            user,
            AccountChange::Password,
        );
        let address = sign_in_of(self.app, user);
        self.presentation()
            .in_its_language(after_password_link(address))
    }
}

/// Where they sign in: as the user of the link and within their tenant, whoever is signed in in
/// this browser.
pub(super) fn sign_in_of(app: &App, user: &UserRow) -> String {
    visit::page_address(app, "/login", &sealed_sign_in_of(app, user))
}

pub(super) fn sealed_sign_in_of(app: &App, user: &UserRow) -> String {
    let purpose = SealedPurpose::Account {
        tenant: user.tenant.as_ref().map(ToString::to_string),
        ui_locales: None,
        anew: true,
        by_password: true,
    };
    visit::seal(app, purpose).sealed
}

/// Takes the link out of the address: on to the form, for this browser. `None` where it is over.
fn enter(
    app: &App,
    presentation: Presentation<'_>,
    text: &str,
) -> Result<Option<Response>, Failure> {
    let Some(link) = app
        .vault
        .password_links
        .open_text::<PasswordLink>(PREFIX, text)
    else {
        return Ok(None);
    };
    if user(app, &link)?.is_none() {
        return Ok(None);
    }
    let browser = Browser::of(&app.config, presentation.request);
    let purpose = SealedPurpose::SetPassword {
        link,
        browser: name_of(&browser.value),
    };
    let response = answers::see_other(form_address(app, presentation, purpose));
    Ok(Some(browser.carried_by(&app.config, response)))
}

/// The address of the form: the link is under seal in it.
pub(super) fn form_address(
    app: &App,
    presentation: Presentation<'_>,
    purpose: SealedPurpose,
) -> String {
    let sealed = visit::seal(app, purpose).sealed;
    presentation.in_its_language(visit::page_address(app, PAGE, &sealed))
}

/// The user of the link, while it is good.
pub(super) fn user(app: &App, link: &PasswordLink) -> Result<Option<CurrentUser>, Failure> {
    let Some(found) = users::find_for_client(&app.store, &link.subject, None)? else {
        return Ok(None);
    };
    let user = &found.user;
    let factors = match &link.origin {
        PasswordLinkOrigin::ByAdministrator(maker) => {
            if !app.may_look_after(maker, user)? {
                return Ok(None);
            }
            factors_and_roles(user.factors, &user.claims)
        }
        PasswordLinkOrigin::ByProgram if app.is_administrator(&user.claims) => return Ok(None),
        PasswordLinkOrigin::Plain
        | PasswordLinkOrigin::Enrolling
        | PasswordLinkOrigin::ByProgram => user.factors,
    };
    let core = user.clone().into_core();
    let stands = link.stands(&core, found.installation_epoch, app.now());
    Ok((stands && factors == link.factors).then_some(found))
}

pub(crate) fn name_of(browser: &SecretBytes) -> String {
    identifiers::encode(&Sha256::digest(browser.expose()))
}
