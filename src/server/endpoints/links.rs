//! `/account/link`, `/account/address` and `/join`: where links lead that were given to somebody or
//! came by letter. Here is which kinds there are; `flow.rs` says what becomes of each.

mod address;
mod flow;
mod join;
mod letter;
mod not_me;
mod passkey;
mod password;
mod sign_up;

use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::cookies::Browser;
use crate::endpoints::transaction;
use crate::endpoints::transaction::tied_page::TiedPage;
use crate::http::{Request, Response};
use gatepost_protocol::login::mail_link::{self, ADDRESS_PREFIX};
use gatepost_protocol::login::password_link::{
    self, Enrolling, FORM_LIFETIME, LinkOrigin, PASSKEY_PREFIX, PasswordLink,
};
use gatepost_protocol::login::sign_up::{self as sign_up_link, JOIN_PREFIX};
use gatepost_protocol::sealed_request::{SealedPurpose, SealedRequest};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::parameters;
use gatepost_store::users::CurrentUser;

use flow::LinkRequest;
use letter::LetterLink;
use not_me::NotMe;
use sign_up::SignUp;

pub use flow::ACCOUNT;

/// Which kind of link it is, its first characters say.
const PREFIX: usize = 4;

/// Takes a link out of the address, shows its form, or takes that. But for `/account/link`, there
/// is no such page without e-mail.
pub fn handle(path: &'static str, app: &App, request: &Request) -> Result<Response> {
    let presentation = Presentation::of(app, request);
    if path != ACCOUNT && app.letters.from().is_none() {
        return Ok(answers::no_such_page(&presentation));
    }
    let browser = Browser::of(&app.config, request);
    let query = request.query_parameters()?;
    let text = query.bounded("l", parameters::HANDLE).unwrap_or_default();
    let opened = match text {
        Some(text) => open(app, text, &browser).map(|purpose| transaction::seal(app, purpose)),
        None => transaction::open(app, request).ok(),
    };
    let Some(opened) = opened else {
        return Ok(flow::over(presentation));
    };
    let SealedRequest {
        received_at,
        purpose,
    } = opened.request;
    let page = TiedPage {
        app,
        presentation,
        path,
        sealed: opened.sealed,
        browser,
    };
    let asked = LinkRequest {
        page,
        is_first: text.is_some(),
        is_late: app.now() >= received_at.plus(FORM_LIFETIME),
    };
    go_on(&asked, purpose)
}

/// Opens a link that we made. What it is for goes under seal with the browser that opened it.
fn open(app: &App, text: &str, browser: &Browser) -> Option<SealedPurpose> {
    let vault = &app.vault;
    let browser = flow::name_of(&browser.value);
    let prefix = text.get(..PREFIX)?;
    Some(match prefix {
        password_link::PREFIX => SealedPurpose::SetPassword {
            link: vault.password_links.open_text(prefix, text)?,
            browser,
        },
        PASSKEY_PREFIX => SealedPurpose::SetPasskey {
            link: vault.passkey_links.open_text(prefix, text)?,
            browser,
        },
        mail_link::PREFIX => SealedPurpose::MailLink {
            link: vault.mail_links.open_text(prefix, text)?,
            browser,
            factor_shown: false,
        },
        ADDRESS_PREFIX => SealedPurpose::NewAddress(vault.mail_links.open_text(prefix, text)?),
        sign_up_link::PREFIX => {
            let (id, tag) = sign_up_link::parse(text)?;
            let is_ours = vault.sign_up_links.verify(&[&id], &tag);
            SealedPurpose::SignUp(is_ours.then_some(id)?)
        }
        JOIN_PREFIX => SealedPurpose::Join {
            link: vault.mail_links.open_text(prefix, text)?,
            browser,
        },
        _ => return None,
    })
}

fn go_on(asked: &LinkRequest<'_>, purpose: SealedPurpose) -> Result<Response> {
    match purpose {
        SealedPurpose::SetPassword { link, browser } => match password::saved_codes(&asked.page)? {
            Some(file) => Ok(file),
            None => asked.meet(Some(&browser), &link),
        },
        SealedPurpose::SetPasskey { link, browser } => asked.meet(Some(&browser), &link),
        SealedPurpose::MailLink {
            link,
            browser,
            factor_shown,
        } => match link.origin {
            LinkOrigin::NewBrowser => asked.meet(Some(&browser), &NotMe(link)),
            _ => asked.meet(Some(&browser), &LetterLink { link, factor_shown }),
        },
        SealedPurpose::Join { link, browser } => asked.meet(Some(&browser), &link),
        SealedPurpose::NewAddress(link) => asked.meet(None, &link),
        SealedPurpose::SignUp(id) => asked.meet(None, &SignUp(id)),
        _ => Ok(flow::over(asked.page.presentation)),
    }
}

/// A link by which a user sets a password, for whoever made it to pass on.
pub fn to_pass_on(
    app: &App,
    found: &CurrentUser,
    origin: LinkOrigin<Enrolling>,
    expires_at: Instant,
) -> String {
    let user = &found.user;
    let link = PasswordLink {
        user: user.of_link(found.installation_epoch),
        factors: origin.mark(user.factors, &user.claims),
        origin,
        expires_at,
    };
    let sealer = &app.vault.password_links;
    let sealed = sealer.seal_text(password_link::PREFIX, &link);
    format!("{}{ACCOUNT}?l={sealed}", app.issuer())
}
