//! Links from letters by which somebody sets their password: they forgot it, or are invited.
//! Whoever has a second factor shows it before the form: the mailbox alone sets no password of
//! theirs.

use super::flow::{Link, name_of, on_to_form};
use super::password::{PasswordForm, user_of};
use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::answers;
use crate::endpoints::forms;
use crate::endpoints::login::passkey;
use crate::endpoints::login::second_factor::{self, ask_at, posted_ticket, show_code};
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::endpoints::transaction::{AuthorizationTransaction, RequestContext};
use crate::http::Response;
use crate::pages::form_problem::FormProblem;
use gatepost_protocol::login::mail_link::MailLink;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::users::CurrentUser;

pub struct LetterLink {
    pub link: MailLink,
    /// Whether a second factor was shown in this browser.
    pub factor_shown: bool,
}

impl Link for LetterLink {
    type Target = CurrentUser;

    fn judge(&self, app: &App) -> Result<Option<CurrentUser>> {
        let link = &self.link;
        user_of(app, &link.user, &link.origin, |user, factors, epoch| {
            link.stands(user, factors, epoch, app.now())
        })
    }

    fn answer(&self, page: &TiedPage<'_>, found: CurrentUser) -> Result<Response> {
        if found.user.strongest_acr > Strength::SignedIn && !self.factor_shown {
            let link = &self.link;
            return FactorForm { page, found, link }.answer();
        }
        let form = PasswordForm {
            page,
            found,
            enrols: false,
            letter: Some(&self.link.origin),
        };
        form.answer()
    }
}

/// The form that asks for the second factor.
struct FactorForm<'a> {
    page: &'a TiedPage<'a>,
    found: CurrentUser,
    link: &'a MailLink,
}

impl FactorForm<'_> {
    fn answer(&self) -> Result<Response> {
        let transaction = &AuthorizationTransaction::to_account(self.page.app)?;
        let context = RequestContext {
            app: self.page.app,
            request: self.page.presentation.request,
            transaction,
            current_session: None,
            refused: None,
            someone_else: false,
        };
        if self.page.is_post() {
            self.take(context)
        } else {
            self.draw(context, None)
        }
    }

    fn draw(&self, context: RequestContext<'_>, problem: Option<FormProblem>) -> Result<Response> {
        let ticket = second_factor::ticket(context.app, &self.found.user, self.page.tie());
        ask_at(
            context,
            &self.page.address(self.page.path),
            &ticket,
            problem,
        )
    }

    fn take(&self, context: RequestContext<'_>) -> Result<Response> {
        let app = context.app;
        let form = forms::read_post(app, context.request)?;
        let ties = [self.page.tie()];
        let ticket = posted_ticket(app, &form, &ties)?;
        let Some(ticket) = ticket.filter(|one| second_factor::stands(one, &self.found.user)) else {
            return self.draw(context, None);
        };
        match form.single("decision")? {
            Some("passkey") => match passkey::show(context, Some(&ticket), &ties, &form) {
                Ok(_) => Ok(self.go_on()),
                Err(stopped) => {
                    let reason = stopped.refusal()?;
                    let page = self.draw(context, Some(FormProblem::PasskeyRefused))?;
                    Ok(answers::noted(page, reason))
                }
            },
            Some(_) => Ok(answers::see_other(app.config.base_url.path_of("/"))),
            None => match show_code(context, &self.found, &form) {
                Ok(()) => Ok(self.go_on()),
                Err(stopped) => {
                    let refusal = stopped.refusal()?;
                    let page = self.draw(context, Some(refusal.problem))?;
                    Ok(refusal.answer(page))
                }
            },
        }
    }

    /// On to the form that sets the password.
    fn go_on(&self) -> Response {
        let purpose = SealedPurpose::MailLink {
            link: self.link.clone(),
            browser: name_of(&self.page.browser.value),
            factor_shown: true,
        };
        on_to_form(self.page, purpose)
    }
}
