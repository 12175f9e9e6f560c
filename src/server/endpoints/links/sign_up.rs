//! Sign-up links, which are passed on to many. The page asks for an e-mail address and answers
//! everybody alike: it asks the database for nothing. The letter has a link of its own (`join.rs`).

use super::flow::Link;
use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::Errand;
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::notices;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::Response;
use crate::pages;
use crate::pages::form_problem::FormProblem;
use gatepost_protocol::login::sign_up::SignUpId;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::reason::Reason;

pub const PAGE: &str = "/join";

pub struct SignUp(pub SignUpId);

impl Link for SignUp {
    type Target = ();
    const PAGE: &'static str = PAGE;

    /// The lane of letters alone looks it up.
    fn judge(&self, _: &App) -> Result<Option<()>> {
        Ok(Some(()))
    }

    fn answer(&self, page: &TiedPage<'_>, (): ()) -> Result<Response> {
        if page.is_post() {
            take(page, self.0)
        } else {
            Ok(ask(page, "", None))
        }
    }
}

fn ask(page: &TiedPage<'_>, address: &str, problem: Option<FormProblem>) -> Response {
    let markup = pages::join::address_page(&page.form(Form::SignUp), address, problem);
    let response = answers::form_page(200, markup);
    page.browser.carried_by(&page.app.config, response)
}

fn take(page: &TiedPage<'_>, id: SignUpId) -> Result<Response> {
    let app = page.app;
    let form = forms::read_post(app, page.presentation.request)?;
    let typed = form.single("address")?.unwrap_or_default().trim();
    let parsed = MailAddress::parse(typed);
    let shown = if parsed.is_ok() { typed } else { "" };
    if !page.matches(Form::SignUp, &form) {
        let again = ask(page, shown, Some(FormProblem::SessionChanged));
        return Ok(answers::noted(again, Reason::PageExpired));
    }
    let Ok(to) = parsed else {
        return Ok(ask(page, "", Some(FormProblem::JoinAddressUnfit)));
    };
    let asked = notices::asked_by(app, &page.presentation);
    if !notices::is_withheld(app, &asked) {
        notices::hand_over(app, &asked, None, Errand::Join { id, to });
    }
    let chrome = page.chrome();
    let markup = pages::forgotten::sent_page(chrome, chrome.texts.join_letter_sent, None);
    Ok(answers::plain_page(200, markup))
}
