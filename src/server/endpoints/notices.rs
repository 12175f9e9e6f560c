//! Leaves letters to the lane of letters for what a signed-in person did, among them notices: they
//! tell people what changed about their account, whoever changed it.

use std::net::{IpAddr, Ipv4Addr};

use crate::app::App;
use crate::app::guesses::Source;
use crate::app::letters::{AccountChange, AskedBy, Errand};
use crate::endpoints::answers::Presentation;
use crate::keys::random;
use crate::pages::language::Language;
use crate::pages::user_agent::browser;
use gatepost_protocol::login::letters::{Withheld, verified_address};
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::strength::Strength;
use gatepost_store::users::{UserRow, called};
use gatepost_store::{StoreError, user_ends};

/// Whoever wants a letter by this request.
pub fn asked_by(app: &App, presentation: &Presentation<'_>) -> AskedBy {
    let language = presentation.language("");
    let user_agent = presentation.request.headers.first("user-agent");
    AskedBy {
        source: presentation.request.source,
        request_id: presentation.request.id.clone(),
        language: language.tag(),
        browser: Some(browser(language.texts(), user_agent)),
        at: app.now(),
    }
}

/// Leaves an errand to the lane; says so to the audit log if it is full.
pub fn hand_over(app: &App, asked: &AskedBy, sub: Option<&Subject>, errand: Errand) {
    if !app.letters.enter(errand, asked.clone()) {
        withhold(app, asked, sub, Withheld::Queue);
    }
}

/// Counts a letter that is not sent, and says so to the audit log.
pub fn withhold(app: &App, asked: &AskedBy, sub: Option<&Subject>, why: Withheld) {
    app.letters.counts.withheld.raise(why);
    app.note_withheld_letter(asked, sub, why);
}

/// Counts an errand that somebody wants who is not signed in. Whether their source had as many
/// letters as it may.
pub fn is_withheld(app: &App, asked: &AskedBy) -> bool {
    let source = Source::of(asked.source);
    let is_withheld = app.letters.sources.count(source, app.now()).is_err();
    if is_withheld {
        withhold(app, asked, None, Withheld::Source);
    }
    is_withheld
}

/// Tells a user what changed, at the address that they had; not where that is not verified. The
/// lane leaves out an address that only an identity provider without `trust_email` verified.
pub fn send(app: &App, presentation: &Presentation<'_>, user: &UserRow, change: AccountChange) {
    notify(app, &asked_by(app, presentation), &before(user), change);
}

/// The same of what an administrator did, who is called `by`: it says who did it, and not from
/// where.
pub fn send_by_administrator(
    app: &App,
    presentation: &Presentation<'_>,
    user: &UserRow,
    change: AccountChange,
    by: &str,
) {
    let asked = asked_by(app, presentation);
    leave(app, &asked, &before(user), change, Some(by.to_owned()));
}

/// Tells those whose end is near, each in their language and once, whichever process does. Whoever
/// has no address that counts is not told.
pub fn tell_ends(app: &App) -> Result<(), StoreError> {
    if !app.letters.has_room() || app.letters.from().is_none() {
        return Ok(());
    }
    for user in user_ends::note_told(&app.store)? {
        let language = Language::of_claims(&user.claims);
        let asked = AskedBy {
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            request_id: format!("{:016x}", u64::from_be_bytes(random::bytes())),
            language: language.map_or(app.config.language, Language::tag),
            browser: None,
            at: app.now(),
        };
        if let Some(end) = user.valid_until {
            leave(app, &asked, &before(&user), AccountChange::Ends(end), None);
        }
    }
    Ok(())
}

/// Tells a user of a factor that took the place of all that they had.
pub fn send_of_replacement(app: &App, presentation: &Presentation<'_>, user: &UserRow) {
    send(app, presentation, user, AccountChange::FactorAdded);
    if user.strongest_acr > Strength::SignedIn {
        send(app, presentation, user, AccountChange::FactorRemoved);
    }
}

/// A user as they were before the change.
pub struct Noticed<'a> {
    pub sub: &'a Subject,
    /// What they are called in the letter.
    pub name: &'a str,
    pub claims: &'a JsonObject,
}

fn before(user: &UserRow) -> Noticed<'_> {
    Noticed {
        sub: &user.sub,
        name: user.designation(),
        claims: &user.claims,
    }
}

/// Where letters reach whoever has these claims.
pub fn reached(claims: &JsonObject) -> Option<MailAddress> {
    MailAddress::parse(verified_address(claims)?).ok()
}

/// The same for a change by a program.
pub fn notify(app: &App, asked: &AskedBy, before: &Noticed<'_>, change: AccountChange) {
    leave(app, asked, before, change, None);
}

/// `by` is what the administrator is called who made the change.
fn leave(
    app: &App,
    asked: &AskedBy,
    before: &Noticed<'_>,
    change: AccountChange,
    by: Option<String>,
) {
    let (Some(to), Some(_)) = (reached(before.claims), app.letters.from()) else {
        return;
    };
    let errand = Errand::Notice {
        sub: before.sub.clone(),
        username: before.name.to_owned(),
        greeted: called(before.claims, before.name).to_owned(),
        to,
        change,
        by,
    };
    hand_over(app, asked, Some(before.sub), errand);
}
