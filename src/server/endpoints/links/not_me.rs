//! Links from letters about sign-ins in new browsers, by which somebody says that one was not
//! theirs. Everything of theirs ends, and so does their password: they go on as by a link for who
//! forgot it, with their second factor where they have one. Where epoch, factors or address are not
//! what the link was made on, a thief may have been faster, or this may be an old mailbox: the
//! account is disabled, and the link leads to no password.

use serde_json::json;

use super::flow::{Link, name_of, on_to_form};
use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::Errand;
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::notices;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::Response;
use crate::pages::forgotten::{asking_page, disabled_page};
use crate::pages::frame::submit;
use gatepost_protocol::login::mail_link::{MailLink, RESET_LIFETIME};
use gatepost_protocol::login::password_link::LinkOrigin;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_store::disowned_sign_ins;

pub(super) struct NotMe(pub(super) MailLink);

impl Link for NotMe {
    /// Whether the user is as the link was made on.
    type Target = bool;

    fn judge(&self, app: &App) -> Result<Option<bool>> {
        Ok(disowned_sign_ins::stands(&app.store, &self.0)?)
    }

    fn answer(&self, page: &TiedPage<'_>, stands: bool) -> Result<Response> {
        if page.is_post() {
            let form = forms::read_post(page.app, page.presentation.request)?;
            if page.matches(Form::NotMe, &form) {
                return self.take(page, stands);
            }
        }
        let form = page.form(Form::NotMe);
        let texts = form.chrome.texts;
        let hint = if stands {
            texts.not_me_ends
        } else {
            texts.not_me_disables
        };
        let question = form.of(&submit(texts.not_me));
        let markup = asking_page(form.chrome, texts.not_me_title, hint, None, &question);
        Ok(answers::form_page(200, markup))
    }
}

impl NotMe {
    fn take(&self, page: &TiedPage<'_>, stands: bool) -> Result<Response> {
        let app = page.app;
        let link = &self.0;
        let event = if stands {
            "password_dropped_by_link"
        } else {
            "user_disabled_by_link"
        };
        let event = page.event(event, &link.user.subject, json!({"by": "user"}));
        let Some(user) = disowned_sign_ins::disown(&app.store, link, stands, &event)? else {
            // Somebody used it a moment ago, or changed what it was made on: it is judged anew.
            return Ok(answers::see_other(page.address(page.path)));
        };
        if !stands {
            let asked = notices::asked_by(app, &page.presentation);
            notices::hand_over(app, &asked, None, Errand::Disabled(Box::new(user)));
            let markup = disabled_page(page.chrome());
            return Ok(answers::plain_page(200, markup));
        }
        let purpose = SealedPurpose::MailLink {
            link: MailLink {
                user: user.of_link(link.user.installation_epoch),
                expires_at: app.now().plus(RESET_LIFETIME),
                origin: LinkOrigin::Plain,
                ..*link
            },
            browser: name_of(&page.browser.value),
            factor_shown: false,
        };
        Ok(on_to_form(page, purpose))
    }
}
