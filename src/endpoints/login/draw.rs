//! Drawing the login page and the account chooser, each with the token that its post needs.

use super::LoginPage;
use crate::crypto::random;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies;
use crate::endpoints::errand::Errand;
use crate::endpoints::form_tokens::{self, Form};
use crate::endpoints::present_session::PresentSession;
use crate::http::Response;
use crate::pages;
use crate::pages::frame::Account;
use crate::pages::login::{LoginProblem, LoginView, Provider};
use crate::protocol::secret::SecretBytes;

/// What one showing of the form differs in from another.
#[derive(Clone, Copy)]
pub(super) struct Showing<'a> {
    pub(super) status: u16,
    pub(super) username: &'a str,
    pub(super) problem: Option<LoginProblem>,
}

impl<'a> Showing<'a> {
    /// Nothing went wrong before.
    pub(super) fn fresh(username: &'a str) -> Showing<'a> {
        Showing { status: 200, username, problem: None }
    }

    /// Again, and why.
    pub(super) fn again(username: &'a str, problem: LoginProblem) -> Showing<'a> {
        Showing { status: 200, username, problem: Some(problem) }
    }
}

impl LoginPage<'_> {
    /// Draws the form, and gives the browser the value that ties the form to it unless it has one.
    pub(super) fn draw(self, showing: Showing<'_>) -> Response {
        let known = cookies::pre_session(&self.app.config, self.request);
        let browser = known.clone().unwrap_or_else(|| SecretBytes::new(random::bytes::<16>()));
        let token = form_tokens::issue(self.app, Form::Login, self.errand.sealed(), &browser);
        let response = self.page(showing, &token, None);
        if known.is_some() { response } else { cookies::set_pre_session(&self.app.config, response, &browser) }
    }

    pub(super) fn draw_chooser(self, present: &PresentSession) -> Response {
        let token = form_tokens::issue(self.app, Form::SelectAccount, self.errand.sealed(), &present.handle.random);
        self.page(Showing::fresh(""), &token, Some(present.account()))
    }

    fn page(self, showing: Showing<'_>, form_token: &str, present_account: Option<Account<'_>>) -> Response {
        let presentation = Presentation { config: &self.app.config, request: self.request };
        let action = self.errand.page(self.app, "/login");
        let action = match self.errand {
            Errand::Authorize(_) => action,
            Errand::Account(_) | Errand::Device(_) => presentation.in_its_language(action),
        };
        let choices = self.errand.choices();
        let registered = &self.errand.catalogue().identity_providers;
        let offered = choices.providers.iter().filter_map(|name| registered.get(name));
        let providers: Vec<Provider<'_>> =
            offered.map(|known| Provider { name: &known.name, display_name: &known.display_name }).collect();
        let markup = presentation.draw(self.errand.ui_locales(), |chrome| {
            pages::login::page(&LoginView {
                chrome,
                action: &action,
                form_token,
                client: self.errand.client_view(chrome.texts.language),
                tenant: self.errand.tenant_display_name(),
                username: showing.username,
                problem: showing.problem,
                password: choices.password,
                providers: &providers,
                someone_else: self.someone_else,
                present_account,
            })
        });
        let mut response = answers::form_page(showing.status, markup);
        response.note.client_id = self.errand.client_id().map(ToString::to_string);
        response
    }
}
