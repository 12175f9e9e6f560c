//! Links from the letters of sign-up links. Each makes one account, for the address that the letter
//! went to.

use serde_json::json;

use super::flow::{Link, is_over};
use super::password::sign_in;
use super::sign_up::PAGE;
use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::endpoints::account::TypedPassword;
use crate::endpoints::answers;
use crate::endpoints::forms::{self, Form};
use crate::endpoints::letters::standing_link;
use crate::endpoints::login::DoneByLink;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::Response;
use crate::keys::random;
use crate::pages;
use crate::pages::form_problem::FormProblem;
use crate::pages::join::Typed;
use gatepost_protocol::login::sign_up::JoinLink;
use gatepost_protocol::registration::administration::set_roles;
use gatepost_protocol::words::identifiers::{Subject, encode};
use gatepost_protocol::words::json::{JsonObject, SetMember};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::StoreError;
use gatepost_store::sign_up_links::{self, NewMember, SignUpLink};

impl Link for JoinLink {
    type Target = SignUpLink;
    const PAGE: &'static str = PAGE;

    /// The sign-up link behind the letter, while both are good. Whether the letter was used is not
    /// asked here: the account that it made has the address.
    fn judge(&self, app: &App) -> Result<Option<SignUpLink>> {
        let found = standing_link(app, &self.id)?;
        let Some(found) = found.filter(|_| app.now() < self.expires_at) else {
            return Ok(None);
        };
        let is_held = sign_up_links::holds(&app.store, found.tenant.as_ref(), &self.address)?;
        Ok((!is_held).then_some(found))
    }

    fn answer(&self, page: &TiedPage<'_>, sign_up: SignUpLink) -> Result<Response> {
        let joining = Joining {
            page,
            link: self,
            sign_up,
        };
        if page.is_post() {
            joining.take()
        } else {
            Ok(joining.draw(Typed::default(), None))
        }
    }
}

/// The form that makes the account.
struct Joining<'a> {
    page: &'a TiedPage<'a>,
    link: &'a JoinLink,
    sign_up: SignUpLink,
}

impl Joining<'_> {
    fn draw(&self, typed: Typed<'_>, problem: Option<FormProblem>) -> Response {
        let page = self.page;
        let address = &self.link.address;
        let markup = pages::join::page(&page.form(Form::Join), address, typed, problem);
        answers::form_page(200, markup)
    }

    fn take(&self) -> Result<Response> {
        let app = self.page.app;
        let request = self.page.presentation.request;
        let form = forms::read_post(app, request)?;
        let name = forms::tidy(form.single("name")?, 200);
        let username = form.single("username")?.unwrap_or_default().trim();
        let typed = Typed {
            username: &forms::tidy(Some(username), 200),
            name: &name,
        };
        let again = |problem| Ok(self.draw(typed, Some(problem)));
        if !self.page.matches(Form::Join, &form) {
            return again(FormProblem::SessionChanged);
        }
        let password = TypedPassword::of(&form)?;
        let address = &self.link.address;
        let missing = username.is_empty().then_some(FormProblem::UsernameMissing);
        let misnamed = missing.or_else(|| FormProblem::of_name(username, address));
        let unfit = || password.problem(app);
        if let Some(problem) = misnamed.or_else(unfit) {
            return again(problem);
        }
        let counted = app.letters.taken_names.count(address.clone(), app.now());
        counted.map_err(|retry_after| Failure::Throttled {
            reason: Reason::TooManySignInFailures,
            retry_after,
        })?;
        let password = SecretText::new(password.new);
        let hash = app
            .take_hashing_turn(request, None, None)?
            .hash(&password)?;
        match self.join(username, &name, &hash) {
            Ok(true) => {
                app.letters.taken_names.take_back(address);
                let done = DoneByLink::PasswordSetBy(username);
                let next = sign_in(self.page, self.sign_up.tenant.as_ref(), done);
                Ok(answers::see_other(next))
            }
            Ok(false) => is_over(self.page),
            Err(StoreError::Taken(_)) => {
                app.store.confirm()?;
                again(FormProblem::UsernameTaken)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn join(&self, username: &str, name: &str, hash: &SecretText) -> Result<bool, StoreError> {
        let link = self.link;
        let sub = Subject::of_random(random::bytes());
        let id = format!("{:032x}", u128::from_be_bytes(link.id));
        let detail = json!({"by": "user", "link": id});
        let new = NewMember {
            id: &link.id,
            letter: &encode(&link.random),
            forgotten_at: link.expires_at,
            sub: &sub,
            username,
            address: &link.address,
            password_hash: hash,
            claims: &self.claims(name),
        };
        let event = self.page.event("signed_up", &sub, detail);
        sign_up_links::join(&self.page.app.store, &new, &event)
    }

    fn claims(&self, name: &str) -> JsonObject {
        let mut claims = JsonObject::new();
        claims.set("email", self.link.address.as_str());
        claims.set("email_verified", true);
        if !name.is_empty() {
            claims.set("name", name);
        }
        let roles: Vec<&str> = self.sign_up.roles.iter().map(String::as_str).collect();
        set_roles(&mut claims, &roles);
        // A link can be older than the setting that makes one of its roles that of administrators.
        let request = self.page.presentation.request;
        let app = self.page.app;
        app.drop_admin_roles(request, "a sign-up link", &mut claims);
        claims
    }
}
