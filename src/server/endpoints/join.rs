//! `/join`: where a sign-up link leads, and the link in the letter that it sends. Both leave the
//! address at once. The first asks for an e-mail address and answers everybody alike; it asks the
//! database for nothing. The second makes the account.

use serde_json::{Map, Value, json};

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::app::letters::Errand;
use crate::endpoints::account::password_link::{name_of, over, problem_of, used};
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies::{self, Browser};
use crate::endpoints::forms::{self, Form};
use crate::endpoints::letters::standing_link;
use crate::endpoints::login::after_mail_link;
use crate::endpoints::notices::{asked_by, hand_over};
use crate::endpoints::visit;
use crate::http::{Method, Request, Response};
use crate::keys::random;
use crate::pages;
use crate::pages::account::AccountProblem;
use crate::pages::frame::PageForm;
use crate::pages::join::{AddressProblem, JoinProblem, Typed};
use gatepost_protocol::login::letters::Withheld;
use gatepost_protocol::login::password_link::FORM_LIFETIME;
use gatepost_protocol::login::sign_up::{self, JOIN_PREFIX, JoinLink, SignUpId};
use gatepost_protocol::registration::administration::set_roles;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::identifiers::{Subject, encode};
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_store::StoreError;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::sign_up_links::{self, NewMember, SignUpLink};

pub const PAGE: &str = "/join";
const NAME: usize = 200;

/// Takes a link out of the address, shows a page, or takes its form. Without e-mail there is no
/// such page.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    let presentation = Presentation::of(app, request);
    if app.letters.from().is_none() {
        return Ok(answers::no_such_page(&presentation));
    }
    let query = Parameters::parse(request.query.as_bytes())?;
    match query.bounded("l", parameters::HANDLE) {
        Ok(Some(text)) => take_link(app, presentation, text),
        Ok(None) | Err(_) => show_or_take(app, presentation),
    }
}

/// Takes the link out of the address: the next one has what it is for, sealed.
fn take_link(app: &App, presentation: Presentation<'_>, text: &str) -> Result<Response, Failure> {
    let browser = Browser::of(&app.config, presentation.request);
    let Some(purpose) = purpose_of_link(app, &browser.value, text)? else {
        return Ok(over(presentation));
    };
    let sealed = visit::seal(app, purpose).sealed;
    let page = presentation.in_its_language(visit::page_address(app, PAGE, &sealed));
    Ok(browser.carried_by(&app.config, answers::see_other(page)))
}

/// Shows the page that the link is for, or takes its form.
fn show_or_take(app: &App, presentation: Presentation<'_>) -> Result<Response, Failure> {
    let request = presentation.request;
    let Ok(opened) = visit::open(app, request) else {
        return Ok(over(presentation));
    };
    let is_late = app.now() >= opened.request.received_at.plus(FORM_LIFETIME);
    let joining = Joining {
        app,
        presentation,
        sealed: opened.sealed,
    };
    let is_post = request.method == Method::Post;
    match opened.request.purpose {
        SealedPurpose::SignUp(id) if is_post => joining.take_address(id),
        SealedPurpose::SignUp(_) => Ok(joining.ask("", None)),
        SealedPurpose::Join { link, browser } => {
            joining.handle_account(&link, &browser, is_late, is_post)
        }
        _ => Ok(over(presentation)),
    }
}

/// What the page behind a link is for; `None` where the link is over. A sign-up link is looked up
/// by the lane of letters alone.
fn purpose_of_link(
    app: &App,
    browser: &SecretBytes,
    text: &str,
) -> Result<Option<SealedPurpose>, Failure> {
    if let Some((id, tag)) = sign_up::parse(text) {
        let is_ours = app.vault.sign_up_links.verify(&[&id], &tag);
        return Ok(is_ours.then_some(SealedPurpose::SignUp(id)));
    }
    let Some(link) = app
        .vault
        .mail_links
        .open_text::<JoinLink>(JOIN_PREFIX, text)
    else {
        return Ok(None);
    };
    let browser = name_of(browser);
    Ok(found(app, &link)?.map(|_| SealedPurpose::Join { link, browser }))
}

/// The sign-up link behind a letter, while both are good. Whether the letter was used is not asked
/// here: the account that it made has the address.
fn found(app: &App, link: &JoinLink) -> Result<Option<SignUpLink>, Failure> {
    let found = standing_link(app, &link.id)?;
    let Some(found) = found.filter(|_| app.now() < link.expires_at) else {
        return Ok(None);
    };
    let is_held = sign_up_links::holds(&app.store, found.tenant.as_ref(), &link.address)?;
    Ok((!is_held).then_some(found))
}

struct Joining<'a> {
    app: &'a App,
    presentation: Presentation<'a>,
    sealed: String,
}

impl Joining<'_> {
    fn action(&self) -> String {
        let address = visit::page_address(self.app, PAGE, &self.sealed);
        self.presentation.in_its_language(address)
    }

    /// The page that asks for an address.
    fn ask(&self, address: &str, problem: Option<AddressProblem>) -> Response {
        let app = self.app;
        let browser = Browser::of(&app.config, self.presentation.request);
        let form = PageForm {
            action: &self.action(),
            token: &forms::issue(app, Form::SignUp, &self.sealed, &browser.value),
        };
        let page = pages::join::address_page(self.presentation.chrome(""), form, address, problem);
        browser.carried_by(&app.config, answers::form_page(200, page))
    }

    fn take_address(&self, id: SignUpId) -> Result<Response, Failure> {
        let app = self.app;
        let request = self.presentation.request;
        let form = forms::read_post(app, request)?;
        let typed = form.single("address")?.unwrap_or_default().trim();
        let parsed = MailAddress::parse(typed);
        let shown = if parsed.is_ok() { typed } else { "" };
        let browser = cookies::pre_session(&app.config, request);
        if !forms::matches(app, Form::SignUp, &self.sealed, browser.as_ref(), &form) {
            let page = self.ask(shown, Some(AddressProblem::PageExpired));
            return Ok(answers::noted(page, Reason::PageExpired));
        }
        let Ok(to) = parsed else {
            return Ok(self.ask("", Some(AddressProblem::Unfit)));
        };
        self.send_letter(id, to);
        let chrome = self.presentation.chrome("");
        let page = pages::forgotten::sent_page(chrome, chrome.texts.join_letter_sent, None);
        Ok(answers::plain_page(200, page))
    }

    fn send_letter(&self, id: SignUpId, to: MailAddress) {
        let app = self.app;
        let asked = asked_by(&self.presentation);
        let source = Source::of(asked.source);
        if app.letters.sources.count(source, app.now()).is_err() {
            app.letters.note_withheld(Withheld::Source);
            app.note_withheld_letter(&asked, None, Withheld::Source);
            return;
        }
        hand_over(app, &asked, None, Errand::Join { id, to });
    }

    /// The page that makes the account, or its form.
    fn handle_account(
        &self,
        link: &JoinLink,
        tied: &str,
        is_late: bool,
        is_post: bool,
    ) -> Result<Response, Failure> {
        let app = self.app;
        let browser = cookies::pre_session(&app.config, self.presentation.request);
        let Some(browser) = browser.filter(|browser| name_of(browser) == tied && !is_late) else {
            return Ok(over(self.presentation));
        };
        match (found(app, link)?, is_post) {
            (Some(found), true) => self.take_account(link, &found.roles, &browser),
            (Some(_), false) => Ok(self.draw(link, &browser, Typed::default(), None)),
            (None, true) => used(app, self.presentation),
            (None, false) => Ok(over(self.presentation)),
        }
    }

    fn draw(
        &self,
        link: &JoinLink,
        browser: &SecretBytes,
        typed: Typed<'_>,
        problem: Option<JoinProblem>,
    ) -> Response {
        let form = PageForm {
            action: &self.action(),
            token: &forms::issue(self.app, Form::Join, &self.sealed, browser),
        };
        let chrome = self.presentation.chrome("");
        let page = pages::join::page(chrome, form, &link.address, typed, problem);
        answers::form_page(200, page)
    }

    fn take_account(
        &self,
        link: &JoinLink,
        roles: &[String],
        browser: &SecretBytes,
    ) -> Result<Response, Failure> {
        let app = self.app;
        let request = self.presentation.request;
        let form = forms::read_post(app, request)?;
        let name = form.single("name")?.unwrap_or_default().trim();
        let name = shown(name);
        let username = form.single("username")?.unwrap_or_default().trim();
        let username_shown = shown(username);
        let typed = Typed {
            username: &username_shown,
            name: &name,
        };
        let again = |problem| Ok(self.draw(link, browser, typed, Some(problem)));
        if !forms::matches(app, Form::Join, &self.sealed, Some(browser), &form) {
            return again(JoinProblem::Other(AccountProblem::SessionChanged));
        }
        let new = form.single("new_password")?.unwrap_or_default();
        let repeated = form.single("new_password_again")?;
        let missing = username.is_empty().then_some(JoinProblem::UsernameMissing);
        let unfit = problem_of(app, new, repeated).map(JoinProblem::Other);
        let misnamed = missing.or_else(|| JoinProblem::of_name(username, &link.address));
        if let Some(problem) = misnamed.or(unfit) {
            return again(problem);
        }
        let address = link.address.clone();
        let counted = app.letters.taken_names.count(address.clone(), app.now());
        counted.map_err(|retry_after| Failure::Throttled {
            reason: Reason::TooManySignInFailures,
            retry_after,
        })?;
        let password = SecretText::new(new);
        let hash = app
            .take_hashing_turn(request, None, None)?
            .hash(&password)?;
        match self.join(link, roles, username, &name, &hash) {
            Ok(true) => {
                app.letters.taken_names.take_back(&address);
                Ok(answers::see_other(self.sign_in(link, username)?))
            }
            Ok(false) => used(app, self.presentation),
            Err(StoreError::Taken(_)) => {
                app.store.confirm()?;
                again(JoinProblem::UsernameTaken)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn join(
        &self,
        link: &JoinLink,
        roles: &[String],
        username: &str,
        name: &str,
        hash: &SecretText,
    ) -> Result<bool, StoreError> {
        let claims = self.claims(link, roles, name);
        let sub = Subject::of_random(random::bytes());
        let id = format!("{:032x}", u128::from_be_bytes(link.id));
        let request = self.presentation.request;
        let event = AuditEvent {
            event: "signed_up",
            sub: Some(&sub),
            detail: json!({"by": "user", "link": id}),
            ..AuditEvent::default().by(request.source, &request.id)
        };
        let new = NewMember {
            id: &link.id,
            letter: &encode(&link.random),
            forgotten_at: link.expires_at,
            sub: &sub,
            username,
            address: &link.address,
            password_hash: hash,
            claims: &claims,
        };
        sign_up_links::join(&self.app.store, &new, &event)
    }

    fn claims(&self, link: &JoinLink, roles: &[String], name: &str) -> Map<String, Value> {
        let mut claims = Map::from_iter([
            (String::from("email"), Value::from(link.address.as_str())),
            (String::from("email_verified"), Value::from(true)),
        ]);
        if !name.is_empty() {
            claims.insert(String::from("name"), Value::from(name));
        }
        let roles: Vec<&str> = roles.iter().map(String::as_str).collect();
        set_roles(&mut claims, &roles);
        self.drop_admin_roles(&mut claims);
        claims
    }

    /// A link can be older than the setting that makes one of its roles that of administrators.
    fn drop_admin_roles(&self, claims: &mut Map<String, Value>) {
        let administration = self.app.config.administration.as_ref();
        if administration.is_some_and(|set| set.keep_admin_roles(&Map::new(), claims)) {
            let id = &self.presentation.request.id;
            log::warn!("request {id}: a sign-up link gives the role of administrators: dropped");
        }
    }

    /// The sign-in page, in the tenant of the new account.
    fn sign_in(&self, link: &JoinLink, username: &str) -> Result<String, Failure> {
        let app = self.app;
        let found = sign_up_links::find(&app.store, &link.id)?;
        let tenant = found.and_then(|found| found.tenant);
        let purpose = SealedPurpose::Account {
            tenant: tenant.as_ref().map(ToString::to_string),
            ui_locales: None,
            anew: true,
            by_password: true,
        };
        let sealed = visit::seal(app, purpose).sealed;
        let address = visit::page_address(app, "/login", &sealed);
        let address = after_mail_link(app, address, username, &sealed);
        Ok(self.presentation.in_its_language(address))
    }
}

fn shown(typed: &str) -> String {
    let printed = typed.chars().filter(|one| !one.is_control());
    printed.take(NAME).collect()
}
