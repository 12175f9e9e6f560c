//! Links by which somebody makes a passkey. It takes the place of their password and of all their
//! factors.

use serde_json::json;

use super::flow::{Link, is_over, over};
use super::password::sign_in;
use crate::app::App;
use crate::app::failure::Result;
use crate::app::letters::AccountChange;
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::login::new_factor::{self, PasskeyMaker};
use crate::endpoints::login::{DoneByLink, webauthn};
use crate::endpoints::notices;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::Response;
use crate::pages;
use crate::pages::form_problem::FormProblem;
use gatepost_protocol::login::mail_link::address_hash;
use gatepost_protocol::login::password_link::PasskeyLink;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::StoreError;
use gatepost_store::authenticators::{self, NewFactors};
use gatepost_store::users::{CurrentUser, UserRow};

impl Link for PasskeyLink {
    type Target = CurrentUser;

    fn judge(&self, app: &App) -> Result<Option<CurrentUser>> {
        let found = self.link.judge(app)?;
        Ok(found.filter(|found| {
            let wanted = self.address_hash;
            wanted.is_none_or(|wanted| address_hash(&found.user.claims) == wanted)
        }))
    }

    fn answer(&self, page: &TiedPage<'_>, found: CurrentUser) -> Result<Response> {
        if page.is_post() {
            take(page, &found.user)
        } else {
            draw(page, &found.user, None)
        }
    }
}

fn draw(page: &TiedPage<'_>, user: &UserRow, problem: Option<FormProblem>) -> Result<Response> {
    let Some(party) = webauthn::party(page.app) else {
        return Ok(over(page.presentation));
    };
    let name = user.username.as_deref().unwrap_or_default();
    let maker = PasskeyMaker {
        user,
        display_name: name,
        // The passkeys that they have go: the device that has one may make the new one.
        known: &[],
    };
    let options = new_factor::creation(page.app, party, &maker, page.tie())?;
    let form = page.form(Form::NewFactor);
    let markup = pages::second_factor::passkey_link_page(&form, name, &options, problem);
    Ok(answers::scripted_page(200, markup))
}

fn take(page: &TiedPage<'_>, user: &UserRow) -> Result<Response> {
    let TiedPage {
        app, presentation, ..
    } = page;
    let form = forms::read_post(app, presentation.request)?;
    if !page.matches(Form::NewFactor, &form) {
        return draw(page, user, Some(FormProblem::FactorImpossible));
    }
    let made = match new_factor::made(app, presentation.request, user, page.tie(), &form) {
        Ok(made) => made,
        Err(stopped) => return draw(page, user, Some(stopped.refusal()?)),
    };
    let event = page.event("passkey_set_by_link", &user.sub, json!({"by": "user"}));
    let new = NewFactors {
        factors: &[made.factor],
        strongest: Strength::PhishingResistant,
        user_handle: Some(&made.user_handle),
        replaces_all: true,
        password_hash: None,
    };
    match authenticators::add(&app.store, user, &new, None, &event) {
        Ok(true) => {}
        Ok(false) => return is_over(page),
        // Somebody's passkey already.
        Err(StoreError::Taken(_)) => return draw(page, user, Some(FormProblem::PasskeyRefused)),
        Err(error) => return Err(error.into()),
    }
    notices::send_of_replacement(app, presentation, user);
    if user.password_hash.is_some() {
        notices::send(app, presentation, user, AccountChange::PasswordRemoved);
    }
    let next = sign_in(page, user.tenant.as_ref(), DoneByLink::PasskeySet);
    Ok(answers::see_other(next))
}
