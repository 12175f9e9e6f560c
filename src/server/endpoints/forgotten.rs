//! `/login/forgotten`: for people who forgot their password. What they type goes to the lane of
//! letters, and the answer is the same for everybody: it asks the database for nothing, and says
//! nothing about who exists.

use percent_encoding::percent_decode;

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::app::letters::Errand;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies::{self, Browser};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::notices::{asked_by, hand_over};
use crate::endpoints::visit;
use crate::http::{Method, Request, Response};
use crate::pages;
use crate::pages::forgotten::ForgottenProblem;
use crate::pages::frame::PageForm;
use gatepost_protocol::login::letters::Withheld;
use gatepost_protocol::words::mail_address;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;

pub use crate::endpoints::login::FORGOTTEN as PAGE;

/// Shows the page, or takes its form. Without e-mail there is no such page.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let presentation = Presentation::of(app, request);
    if app.letters.from().is_none() {
        return Ok(answers::no_such_page(&presentation));
    }
    let page = ForgottenPage {
        app,
        presentation,
        sealed: visit::open(app, request)?.sealed,
    };
    match request.method {
        Method::Post => page.take(),
        _ => Ok(page.draw("", None)),
    }
}

struct ForgottenPage<'a> {
    app: &'a App,
    presentation: Presentation<'a>,
    sealed: String,
}

impl ForgottenPage<'_> {
    fn address(&self, page: &str) -> String {
        let address = visit::page_address(self.app, page, &self.sealed);
        self.presentation.in_its_language(address)
    }

    fn draw(&self, name: &str, problem: Option<ForgottenProblem>) -> Response {
        let app = self.app;
        let browser = Browser::of(&app.config, self.presentation.request);
        let form = PageForm {
            action: &self.address(PAGE),
            token: &forms::issue(app, Form::Forgotten, &self.sealed, &browser.value),
        };
        let back = self.address("/login");
        let chrome = self.presentation.chrome("");
        let page = pages::forgotten::page(chrome, form, &back, name, problem);
        browser.carried_by(&app.config, answers::form_page(200, page))
    }

    fn take(&self) -> Result<Response, Failure> {
        let app = self.app;
        let request = self.presentation.request;
        if percent_decode(&request.body).any(|byte| byte == 0) {
            // Nobody is called so, and no form can be read of it.
            return Ok(self.sent());
        }
        let form = forms::read_post(app, request)?;
        let typed = form.single("name")?.unwrap_or_default().trim();
        let shown = if is_a_name(typed) { typed } else { "" };
        if !self.matches(&form) {
            let page = self.draw(shown, Some(ForgottenProblem::PageExpired));
            return Ok(answers::noted(page, Reason::PageExpired));
        }
        if typed.is_empty() {
            return Ok(self.draw("", Some(ForgottenProblem::NameMissing)));
        }
        if is_a_name(typed) {
            self.hand_over(typed);
        }
        Ok(self.sent())
    }

    fn matches(&self, form: &Parameters) -> bool {
        let browser = cookies::pre_session(&self.app.config, self.presentation.request);
        forms::matches(
            self.app,
            Form::Forgotten,
            &self.sealed,
            browser.as_ref(),
            form,
        )
    }

    fn sent(&self) -> Response {
        let chrome = self.presentation.chrome("");
        let page = pages::forgotten::sent_page(
            chrome,
            chrome.texts.letter_sent,
            Some(&self.address("/login")),
        );
        answers::plain_page(200, page)
    }

    fn hand_over(&self, typed: &str) {
        let app = self.app;
        let asked = asked_by(&self.presentation);
        let source = Source::of(asked.source);
        let is_withheld = app.letters.sources.count(source, app.now()).is_err();
        if is_withheld {
            app.letters.note_withheld(Withheld::Source);
            app.note_withheld_letter(&asked, None, Withheld::Source);
            if !app.letters.has_room() {
                return;
            }
        }
        let errand = Errand::Forgotten {
            typed: SecretText::new(typed),
            sealed: self.sealed.clone(),
            is_withheld,
        };
        hand_over(app, &asked, None, errand);
    }
}

/// Whether somebody may be called so, or have such an address.
fn is_a_name(typed: &str) -> bool {
    let length = typed.chars().count();
    (1..=mail_address::LONGEST).contains(&length) && !typed.contains(char::is_control)
}
