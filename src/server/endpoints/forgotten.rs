//! `/login/forgotten`: for people who forgot their password. What they type goes to the lane of
//! letters, and the answer is the same for everybody: it asks the database for nothing, and says
//! nothing about who exists.

use percent_encoding::percent_decode;

use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::Errand;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies::Browser;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::notices;
use crate::endpoints::transaction;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::{Request, Response};
use crate::pages;
use crate::pages::form_problem::FormProblem;
use gatepost_protocol::words::mail_address;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;

pub use crate::endpoints::login::FORGOTTEN as PAGE;

/// Shows the page, or takes its form. Without e-mail there is no such page.
pub fn handle(app: &App, request: &Request) -> Result<Response> {
    let presentation = Presentation::of(app, request);
    if app.letters.from().is_none() {
        return Ok(answers::no_such_page(&presentation));
    }
    let page = TiedPage {
        app,
        presentation,
        path: PAGE,
        sealed: transaction::open(app, request)?.sealed,
        browser: Browser::of(&app.config, request),
    };
    if page.is_post() {
        take(&page)
    } else {
        Ok(draw(&page, "", None))
    }
}

fn draw(page: &TiedPage<'_>, name: &str, problem: Option<FormProblem>) -> Response {
    let back = page.address("/login");
    let markup = pages::forgotten::page(&page.form(Form::Forgotten), &back, name, problem);
    let response = answers::form_page(200, markup);
    page.browser.carried_by(&page.app.config, response)
}

fn take(page: &TiedPage<'_>) -> Result<Response> {
    let request = page.presentation.request;
    if percent_decode(&request.body).any(|byte| byte == 0) {
        // Nobody is called so, and no form can be read of it.
        return Ok(sent(page));
    }
    let form = forms::read_post(page.app, request)?;
    let typed = form.single("name")?.unwrap_or_default().trim();
    let shown = if is_a_name(typed) { typed } else { "" };
    if !page.matches(Form::Forgotten, &form) {
        let again = draw(page, shown, Some(FormProblem::PageExpired));
        return Ok(answers::noted(again, Reason::PageExpired));
    }
    if typed.is_empty() {
        return Ok(draw(page, "", Some(FormProblem::NameOrAddressMissing)));
    }
    if is_a_name(typed) {
        hand_over(page, typed);
    }
    Ok(sent(page))
}

fn sent(page: &TiedPage<'_>) -> Response {
    let chrome = page.chrome();
    let back = page.address("/login");
    let markup = pages::forgotten::sent_page(chrome, chrome.texts.letter_sent, Some(&back));
    answers::plain_page(200, markup)
}

fn hand_over(page: &TiedPage<'_>, typed: &str) {
    let app = page.app;
    let asked = notices::asked_by(app, &page.presentation);
    let is_withheld = notices::is_withheld(app, &asked);
    if is_withheld && !app.letters.has_room() {
        return;
    }
    let errand = Errand::Forgotten {
        typed: SecretText::new(typed),
        sealed: page.sealed.clone(),
        is_withheld,
    };
    notices::hand_over(app, &asked, None, errand);
}

/// Whether somebody may be called so, or have such an address.
fn is_a_name(typed: &str) -> bool {
    let length = typed.chars().count();
    (1..=mail_address::LONGEST).contains(&length) && !typed.contains(char::is_control)
}
