//! Links by which somebody sets their password: from an operator, an administrator or a program,
//! who pass them on. And the form, which those have in common with links from letters.

use serde_json::json;

use super::flow::{Link, is_over};
use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::AccountChange;
use crate::endpoints::account::TypedPassword;
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::new_factor::{self, RecoveryCodes};
use crate::endpoints::login::wrong_passwords::forget_of_source;
use crate::endpoints::login::{DoneByLink, after_link};
use crate::endpoints::notices;
use crate::endpoints::transaction;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::Response;
use crate::keys::password::PasswordVerdict;
use crate::pages;
use crate::pages::form_problem::FormProblem;
use crate::pages::second_factor::NewApp;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::login::mail_link::OnTheWay;
use gatepost_protocol::login::password_link::{Enrolling, LinkOrigin, LinkUser, PasswordLink};
use gatepost_protocol::sealed_request::{SealedPurpose, Visit};
use gatepost_protocol::words::identifiers::TenantName;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::session::User;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::authenticators::{self, Authenticator, NewFactors};
use gatepost_store::users::{self, CurrentUser};

impl Link for PasswordLink {
    type Target = CurrentUser;

    fn judge(&self, app: &App) -> Result<Option<CurrentUser>> {
        user_of(app, &self.user, &self.origin, |user, factors, epoch| {
            self.stands(user, factors, epoch, app.now())
        })
    }

    fn answer(&self, page: &TiedPage<'_>, found: CurrentUser) -> Result<Response> {
        let form = PasswordForm {
            page,
            found,
            enrols: self.origin == LinkOrigin::With(Enrolling),
            letter: None,
        };
        form.answer()
    }
}

/// The user of a link, if whoever made it could make it now, and it stands for what they are now:
/// with these factors, under this epoch of the installation.
pub fn user_of<Wish>(
    app: &App,
    user: &LinkUser,
    origin: &LinkOrigin<Wish>,
    stands: impl FnOnce(&User, i64, i64) -> bool,
) -> Result<Option<CurrentUser>> {
    let Some(found) = users::find_for_client(&app.store, &user.subject, None)? else {
        return Ok(None);
    };
    let is_over = match origin {
        LinkOrigin::Plain | LinkOrigin::With(_) | LinkOrigin::NewBrowser => false,
        LinkOrigin::ByAdministrator(maker) => !app.may_look_after(maker, &found.user)?,
        LinkOrigin::ByProgram => app.is_administrator(&found.user.claims),
    };
    let user = found.user.clone().into_core();
    let is_good = !is_over && stands(&user, found.user.factors, found.installation_epoch);
    Ok(is_good.then_some(found))
}

/// The recovery codes that a link has just shown, as a file, if the form asks for that. The link is
/// over by then.
pub fn saved_codes(page: &TiedPage<'_>) -> Result<Option<Response>> {
    if !page.is_post() {
        return Ok(None);
    }
    let form = forms::read_post(page.app, page.presentation.request)?;
    if !page.matches(Form::RecoveryCodes, &form) {
        return Ok(None);
    }
    RecoveryCodes::save(page.app, &form).map(Some)
}

/// The form that sets a password.
pub struct PasswordForm<'a> {
    pub page: &'a TiedPage<'a>,
    pub found: CurrentUser,
    /// Whether the user also sets up an app that shows codes.
    pub enrols: bool,
    /// Whose link a letter brought, as the address is theirs: what it was sent for.
    pub letter: Option<&'a LinkOrigin<OnTheWay>>,
}

impl PasswordForm<'_> {
    pub fn answer(&self) -> Result<Response> {
        if self.page.is_post() {
            self.take()
        } else {
            Ok(self.draw(None, None))
        }
    }

    /// Draws it; with the app that it was drawn with before, where one is set up.
    fn draw(&self, problem: Option<FormProblem>, app_before: Option<&str>) -> Response {
        let page = self.page;
        let user = &self.found.user;
        let username = user.username.as_deref().unwrap_or_default();
        let form = page.form(Form::Password);
        let draw =
            |new: Option<NewApp<'_>>| pages::password_link::page(&form, username, problem, new);
        let markup = if self.enrols {
            new_factor::with_offer(page.app, user, app_before, |new| draw(Some(new)))
        } else {
            draw(None)
        };
        answers::form_page(200, markup)
    }

    fn take(&self) -> Result<Response> {
        let page = self.page;
        let app = page.app;
        let user = &self.found.user;
        let form = forms::read_post(app, page.presentation.request)?;
        let app_before = form.single("app")?;
        let again = |problem| Ok(self.draw(Some(problem), app_before));
        let typed = TypedPassword::of(&form)?;
        if !page.matches(Form::Password, &form) {
            return again(FormProblem::SessionChanged);
        }
        if let Some(problem) = typed.problem(app) {
            return again(problem);
        }
        let mut added = None;
        if self.enrols {
            match new_factor::shown_right(app, user, &form) {
                Ok(authenticator) => added = Some(authenticator),
                Err(stopped) => return again(stopped.refusal()?),
            }
        }
        let Some(hash) = self.hash(&SecretText::new(typed.new))? else {
            return again(FormProblem::NewPasswordIsPresent);
        };
        match added {
            Some(authenticator) => self.enrol(authenticator, &hash),
            None => self.set_password(&hash),
        }
    }

    /// `None` where the new password is the current one. Whoever enrols may keep theirs.
    fn hash(&self, new: &SecretText) -> Result<Option<SecretText>> {
        let request = self.page.presentation.request;
        let hashing = self.page.app.take_hashing_turn(request, None, None)?;
        let current = self.found.user.password_hash.as_ref();
        let current = current.filter(|_| !self.enrols);
        if current.is_some() && hashing.verify(current, new) != PasswordVerdict::Wrong {
            return Ok(None);
        }
        Ok(Some(hashing.hash(new)?))
    }

    fn event(&self) -> AuditEvent<'_> {
        let detail = match self.letter {
            None => json!({"by": "user"}),
            Some(_) => json!({"by": "user", "link": "mail"}),
        };
        let sub = &self.found.user.sub;
        self.page.event("password_set_by_link", sub, detail)
    }

    fn set_password(&self, hash: &SecretText) -> Result<Response> {
        let user = &self.found.user;
        let epochs = Some(self.found.session_epochs());
        let verified = self.letter.and_then(|_| stored_address(&user.claims));
        let store = &self.page.app.store;
        if !users::set_password(store, &user.sub, epochs, hash, verified, &self.event())? {
            return is_over(self.page);
        }
        // Whoever reads their e-mails is no stranger who guesses.
        if self.letter.is_some() {
            let source = self.page.presentation.request.source;
            forget_of_source(self.page.app, &self.found, source)?;
        }
        Ok(answers::see_other(self.on_to_sign_in()))
    }

    /// Sets the password together with an app and recovery codes, which it shows.
    fn enrol(&self, added: Authenticator, hash: &SecretText) -> Result<Response> {
        let page = self.page;
        let app = page.app;
        let user = &self.found.user;
        let codes = RecoveryCodes::new(app, &user.sub);
        let mut all = vec![added];
        all.extend(codes.rows);
        let new = NewFactors {
            factors: &all,
            strongest: Strength::TwoFactors,
            user_handle: None,
            replaces_all: false,
            password_hash: Some(hash),
        };
        if !authenticators::add(&app.store, user, &new, None, &self.event())? {
            return is_over(page);
        }
        notices::send_of_replacement(app, &page.presentation, user);
        let sign_in = self.on_to_sign_in();
        let form = page.form(Form::RecoveryCodes);
        Ok(RecoveryCodes::page(
            app,
            &form,
            &codes.texts,
            Some(&sign_in),
        ))
    }

    /// Tells them that the password is set. Answers where they sign in: for the request that they
    /// forgot it on the way to, if that is still good; else as the user of the link.
    fn on_to_sign_in(&self) -> String {
        let TiedPage {
            app, presentation, ..
        } = self.page;
        let user = &self.found.user;
        notices::send(app, presentation, user, AccountChange::Password);
        let username = user.username.as_deref().unwrap_or_default();
        let waiting = match self.letter {
            Some(LinkOrigin::With(OnTheWay(sealed))) => transaction::open_text(app, sealed).ok(),
            _ => None,
        };
        let done = match self.letter {
            Some(_) => DoneByLink::PasswordSetBy(username),
            None => DoneByLink::PasswordSet,
        };
        match waiting {
            Some(opened) => presentation.in_its_language(after_link(app, &opened.sealed, done)),
            None => sign_in(self.page, user.tenant.as_ref(), done),
        }
    }
}

/// Where they sign in within that tenant, whoever is signed in in this browser.
pub fn sign_in(page: &TiedPage<'_>, tenant: Option<&TenantName>, done: DoneByLink<'_>) -> String {
    let visit = Visit {
        tenant: tenant.map(ToString::to_string),
        ui_locales: None,
        anew: true,
        by_password: true,
    };
    let sealed = transaction::seal(page.app, SealedPurpose::Start(visit)).sealed;
    let address = after_link(page.app, &sealed, done);
    page.presentation.in_its_language(address)
}
