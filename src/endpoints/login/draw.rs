//! Drawing the login page and the account chooser, each with the token that its post needs.

use super::LoginPage;
use crate::crypto::random;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies;
use crate::endpoints::form_tokens::{self, Form};
use crate::endpoints::present_session::PresentSession;
use crate::endpoints::sealed_address;
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
        let token = form_tokens::issue(self.app, Form::Login, &self.visit.sealed, &browser);
        let response = self.page(showing, &token, None);
        if known.is_some() { response } else { cookies::set_pre_session(&self.app.config, response, &browser) }
    }

    pub(super) fn draw_chooser(self, present: &PresentSession) -> Response {
        let token = form_tokens::issue(self.app, Form::SelectAccount, &self.visit.sealed, &present.handle.random);
        self.page(Showing::fresh(""), &token, Some(present.account()))
    }

    fn page(self, showing: Showing<'_>, form_token: &str, present_account: Option<Account<'_>>) -> Response {
        let presentation = Presentation { config: &self.app.config, request: self.request };
        let visit = self.visit;
        let address = sealed_address::page(self.app, "/login", &visit.sealed);
        let action = presentation.in_language_of(address, visit.ui_locales());
        let (choices, catalogue) = (visit.choices(), &visit.snapshot.catalogue);
        let tenant = visit.request.acr_values.tenant.as_ref().and_then(|tenant| catalogue.tenants.get(tenant.as_str()));
        let offered = choices.providers.iter().filter_map(|name| catalogue.identity_providers.get(name));
        let providers: Vec<Provider<'_>> =
            offered.map(|known| Provider { name: &known.name, display_name: &known.display_name }).collect();
        let markup = presentation.draw(visit.ui_locales(), |chrome| {
            pages::login::page(&LoginView {
                chrome,
                action: &action,
                form_token,
                client: visit.client_view(chrome.texts.language),
                tenant: tenant.map(|tenant| tenant.display_name.as_str()),
                username: showing.username,
                problem: showing.problem,
                password: choices.password,
                providers: &providers,
                someone_else: self.someone_else,
                present_account,
            })
        });
        visit.noted(answers::form_page(showing.status, markup))
    }
}
