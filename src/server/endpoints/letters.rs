//! What the lane of letters does (`app/letters.rs`): it looks up whom an errand concerns, counts,
//! writes the letter and sends it. No request waits for it, so no request tells by its time who
//! exists.

pub mod new_browser;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::app::guesses::Source;
use crate::app::letters::{AskedBy, Errand, Letter, LetterOutcome, LetterTry, WaitingLetter};
use crate::config::Config;
use crate::endpoints::notices::withhold;
use crate::endpoints::transaction::{self, AuthorizationTransaction};
use crate::keys::random;
use crate::outbound::Undelivered;
use crate::outbound::message::{LetterText, Message};
use crate::pages::language::Language;
use crate::pages::letters::{InvitationLetter, LetterFrame, ResetAccount, printed};
use gatepost_protocol::authorize::authorize_request::Ending;
use gatepost_protocol::login::letters::{
    LetterCounts, MOST_NEW_BROWSERS, MOST_OF_ACCOUNT, MOST_USERS, SignUpCounts, Withheld,
    verified_address,
};
use gatepost_protocol::login::mail_link::{
    ADDRESS_LIFETIME, INVITATION_LIFETIME, LONGEST_REQUEST, MailLink, OnTheWay, PREFIX,
    RESET_LIFETIME,
};
use gatepost_protocol::login::password_link::LinkOrigin;
use gatepost_protocol::login::sign_up::{self, JOIN_LIFETIME, JOIN_PREFIX, JoinLink, SignUpId};
use gatepost_protocol::words::forwarded;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::secret::{SecretBytes, SecretText};
use gatepost_store::StoreError;
use gatepost_store::audit_events::{self, AuditEvent};
use gatepost_store::sign_in_failures::{self, FailureBucket, FailureCount};
use gatepost_store::sign_up_links::{self, SignUpLink};
use gatepost_store::users::{self, CurrentUser, UserRow};

pub const HOUR: Duration = Duration::from_secs(3_600);
/// Attends to errands and letters, for as long as the process lives.
pub fn keep_sending(app: &App) -> ! {
    loop {
        let waiting = app.letters.next();
        match waiting.errand.clone() {
            Errand::Written(letter) => send(app, waiting, &letter),
            errand => {
                if let Err(failure) = write(app, &errand, &waiting.asked) {
                    put_off(app, waiting, &failure);
                }
                app.letters.done();
            }
        }
    }
}

/// An errand that the database did not answer waits, as a letter does.
fn put_off(app: &App, waiting: WaitingLetter, failure: &Failure) {
    let id = waiting.asked.request_id.clone();
    let is_outage = matches!(failure, Failure::Unavailable(error) if error.is_passing());
    if !is_outage {
        log::debug!("request {id}: no letter, as its request is over");
    } else if !app.letters.enter_again(waiting) {
        log::warn!("request {id}: a letter was not written: the database does not answer");
    }
}

fn send(app: &App, waiting: WaitingLetter, letter: &Letter) {
    let (outcome, thread) = app.letters.send(letter);
    match outcome {
        LetterOutcome::Sent(_) => {
            app.letters.counts.tries.raise(LetterTry::Sent);
            if let Err(error) = tell_sent(app, letter, &waiting.asked) {
                let id = &waiting.asked.request_id;
                log::warn!("request {id}: that a letter was sent is not in the audit log: {error}");
            }
        }
        LetterOutcome::Failed(undelivered) => keep_or_give_up(app, waiting, letter, &undelivered),
    }
    app.letters.done();
    // A server that sends an answer letter by letter holds its thread of the lane.
    thread.map(std::thread::JoinHandle::join);
}

fn tell_sent(app: &App, letter: &Letter, asked: &AskedBy) -> Result<(), StoreError> {
    let mut events = Vec::new();
    for sub in &letter.subs {
        events.push(AuditEvent {
            event: "letter_sent",
            sub: Some(sub),
            detail: json!({"letter": letter.kind}),
            ..AuditEvent::default().by(asked.source, &asked.request_id)
        });
    }
    audit_events::insert_all(&app.store, &events)
}

fn keep_or_give_up(app: &App, waiting: WaitingLetter, letter: &Letter, undelivered: &Undelivered) {
    let id = waiting.asked.request_id.clone();
    let subs = joined(", ", &letter.subs);
    let goes_on = !undelivered.is_final && app.letters.enter_again(waiting);
    let (tried, what) = if goes_on {
        (LetterTry::Failed, "was not sent, and is tried again")
    } else {
        (LetterTry::GivenUp, "was not sent")
    };
    app.letters.counts.tries.raise(tried);
    log::warn!("request {id}: a letter to {subs} {what}: {undelivered}");
}

fn write(app: &App, errand: &Errand, asked: &AskedBy) -> Result {
    match errand {
        Errand::Forgotten {
            typed,
            sealed,
            is_withheld,
        } => write_resets(app, asked, typed, sealed, *is_withheld),
        Errand::Join { id, to } => write_join(app, asked, id, to),
        Errand::NewAddress { sub, to, link } => {
            let until = app.now().plus(ADDRESS_LIFETIME);
            let text = frame(app, asked, None).new_address(link.expose(), until);
            write_to(app, asked, sub, to, &text, "new_address")
        }
        Errand::Notice {
            sub,
            username,
            greeted,
            to,
            change,
            by,
        } => {
            // A provider that is not trusted with addresses chooses nobody's.
            if !users::address_counts(&app.store, sub, Some(to.as_str()))? {
                return Ok(());
            }
            let page = format!("{}/account", app.issuer());
            let frame = frame(app, asked, Some(greeted));
            let text = frame.notice(username, *change, by.as_deref(), &page);
            write_to(app, asked, sub, to, &text, "notice")
        }
        Errand::NewBrowser {
            user,
            installation_epoch,
            browser,
        } => new_browser::write(app, asked, user, *installation_epoch, browser),
        Errand::Disabled(person) => new_browser::write_of_disabled(app, asked, person),
        Errand::Written(letter) => {
            enter(app, asked, letter.clone());
            Ok(())
        }
    }
}

/// A letter to one person, of a kind of which there may be so many.
fn write_to(
    app: &App,
    asked: &AskedBy,
    sub: &Subject,
    to: &MailAddress,
    text: &LetterText,
    kind: &'static str,
) -> Result<()> {
    let letter = letter(app, to, text, vec![sub.clone()], kind);
    write_about(app, asked, kind.as_bytes(), sub, letter).map(drop)
}

/// `greeted` is what the person is called.
fn frame<'a>(app: &'a App, asked: &'a AskedBy, greeted: Option<&'a str>) -> LetterFrame<'a> {
    let language = Language::asked_for(asked.language);
    let language = language.unwrap_or_else(|| Language::of_house(&app.config));
    LetterFrame {
        texts: language.texts(),
        brand: &app.config.brand,
        greeted,
        asked: Some(asked),
    }
}

/// A letter about one account, of which there may be so many an hour; of those about new browsers,
/// a day. `false` where it is withheld.
pub fn write_about(
    app: &App,
    asked: &AskedBy,
    kind: &[u8],
    sub: &Subject,
    letter: Letter,
) -> Result<bool> {
    let mut counted = hourly_bucket(app, &[kind, sub.as_str().as_bytes()]);
    let mut most = MOST_OF_ACCOUNT;
    if letter.kind == new_browser::KIND {
        counted.window = 24 * HOUR;
        most = MOST_NEW_BROWSERS;
    }
    let counts = sign_in_failures::record(&app.store, &[counted])?;
    if counts.iter().any(|count| count.failures > limit(most)) {
        withhold(app, asked, Some(sub), Withheld::Account);
        return Ok(false);
    }
    Ok(enter(app, asked, letter))
}

fn hourly_bucket(app: &App, parts: &[&[u8]]) -> FailureBucket {
    FailureBucket {
        bucket: app.vault.throttle_buckets.tag(parts),
        window: HOUR,
    }
}

fn limit(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Leaves the letter to whichever thread of the lane is free. `false` where too many wait.
fn enter(app: &App, asked: &AskedBy, letter: Letter) -> bool {
    let sub = letter.subs.first().cloned();
    let is_entered = app.letters.enter(Errand::Written(letter), asked.clone());
    if !is_entered {
        withhold(app, asked, sub.as_ref(), Withheld::Queue);
    }
    is_entered
}

/// Letters to whoever is called so, or has this address: one for each address. Nobody, no letter.
fn write_resets(
    app: &App,
    asked: &AskedBy,
    typed: &SecretText,
    sealed: &str,
    is_withheld: bool,
) -> Result {
    let opened = transaction::open_text(app, sealed).map_err(|_| transaction::invalid())?;
    let transaction = AuthorizationTransaction::resume(app, opened)?;
    let tenant = transaction.request.acr_values.tenant.as_ref();
    let found = users::find_by_name_or_address(&app.store, tenant, typed.expose())?;
    if is_withheld {
        return Ok(());
    }
    for (address, users) in &by_address(app, asked, found) {
        let counted = count_letter(app, asked, b"letters to address", address)?;
        match counted {
            None => write_reset(app, asked, address, users, &transaction),
            Some(why) => withhold(app, asked, users.first().map(|one| &one.user.sub), why),
        }
    }
    Ok(())
}

/// The users who can get a letter, by their addresses.
fn by_address(
    app: &App,
    asked: &AskedBy,
    found: Vec<CurrentUser>,
) -> BTreeMap<MailAddress, Vec<CurrentUser>> {
    let mut of_addresses: BTreeMap<MailAddress, Vec<CurrentUser>> = BTreeMap::new();
    for user in found {
        let sub = &user.user.sub;
        match verified_address(&user.user.claims).map(MailAddress::parse) {
            Some(Ok(address)) => of_addresses.entry(address).or_default().push(user),
            Some(Err(rule)) => {
                log::warn!("no letter to the user {sub}: their address {rule}");
                withhold(app, asked, Some(sub), Withheld::Address);
            }
            None => log::info!("no letter to the user {sub}: no verified address"),
        }
    }
    of_addresses
}

/// A sign-up link that makes accounts now: its tenant is still registered.
pub fn standing_link(app: &App, id: &SignUpId) -> Result<Option<SignUpLink>, StoreError> {
    let found = sign_up_links::find(&app.store, id)?;
    let snapshot = app.registry.snapshot();
    let tenants = &snapshot.catalogue.tenants;
    Ok(found.filter(|link| {
        let tenant = link.tenant.as_ref();
        link.stands(app.now()) && tenant.is_none_or(|tenant| tenants.contains_key(tenant.as_str()))
    }))
}

/// A letter to somebody who wants an account; or one that says that there is one. Neither where the
/// sign-up link is over, or takes no such address.
fn write_join(app: &App, asked: &AskedBy, id: &SignUpId, to: &MailAddress) -> Result {
    let found = standing_link(app, id)?;
    let found = found.filter(|link| sign_up::takes(link.domain.as_deref(), to));
    let Some(found) = found else {
        log::info!("no letter: the sign-up link is over, or takes no such address");
        return Ok(());
    };
    if let Some(why) = count_join(app, asked, &found, to)? {
        withhold(app, asked, None, why);
        return Ok(());
    }
    let text = join_text(app, asked, &found, to)?;
    let letter = letter(app, to, &text, Vec::new(), "join");
    enter(app, asked, letter);
    Ok(())
}

fn join_text(
    app: &App,
    asked: &AskedBy,
    link: &SignUpLink,
    to: &MailAddress,
) -> Result<LetterText, StoreError> {
    let frame = frame(app, asked, None);
    if sign_up_links::holds(&app.store, link.tenant.as_ref(), to.as_str())? {
        return Ok(frame.held_address());
    }
    let link = JoinLink {
        id: link.id,
        address: to.as_str().to_owned(),
        random: random::bytes(),
        expires_at: app.now().plus(JOIN_LIFETIME),
    };
    let sealed = app.vault.mail_links.seal_text(JOIN_PREFIX, &link);
    let address = format!("{}/join?l={sealed}", app.issuer());
    Ok(frame.join(&address, link.expires_at))
}

/// Counts a letter to somebody who signs up, unless it is to be withheld: then it says why.
fn count_join(
    app: &App,
    asked: &AskedBy,
    link: &SignUpLink,
    to: &MailAddress,
) -> Result<Option<Withheld>, StoreError> {
    let site = Source::of(forwarded::site(asked.source)).bytes();
    let all = [
        hourly_bucket(app, &[b"sign-up letters of site", &site]),
        hourly_bucket(app, &[b"sign-up letters of link", &link.id]),
        hourly_bucket(app, &[b"sign-up letters"]),
    ];
    let most_overall = app.config.limits.letters_per_hour;
    let uses_left = u32::try_from(link.uses - link.used).unwrap_or(0);
    count_unless_withheld(app, &all, |[site, link, sign_ups]| {
        let counted = SignUpCounts {
            site,
            link,
            sign_ups,
        };
        // An address has its own count for sign-ups: a stranger who asks for an account in
        // somebody's name must not use up the letters with which that person comes in again.
        match counted.withheld(most_overall, uses_left) {
            None => count_letter(app, asked, b"sign-up letters to address", to),
            withheld => Ok(withheld),
        }
    })
}

/// Counts a letter to that address, unless it is to be withheld: then it says why.
fn count_letter(
    app: &App,
    asked: &AskedBy,
    kind: &[u8],
    address: &MailAddress,
) -> Result<Option<Withheld>, StoreError> {
    let lowercase = address.as_str().to_ascii_lowercase();
    let source = Source::of(asked.source).bytes();
    let all = [
        hourly_bucket(app, &[b"letters of source", &source]),
        hourly_bucket(app, &[kind, lowercase.as_bytes()]),
        hourly_bucket(app, &[b"letters"]),
    ];
    count_unless_withheld(app, &all, |[source, address, overall]| {
        let counted = LetterCounts {
            source,
            address,
            overall,
        };
        Ok(counted.withheld(app.config.limits.letters_per_hour))
    })
}

/// Counts one more in each, unless `judge` says of the counts that it is to be withheld.
fn count_unless_withheld(
    app: &App,
    all: &[FailureBucket; 3],
    judge: impl FnOnce([u32; 3]) -> Result<Option<Withheld>, StoreError>,
) -> Result<Option<Withheld>, StoreError> {
    let counts = sign_in_failures::record(&app.store, all)?;
    let withheld = judge(all.each_ref().map(|of| count_in(&counts, of)))?;
    if withheld.is_some() {
        sign_in_failures::take_back(&app.store, all, &[])?;
    }
    Ok(withheld)
}

fn count_in(counts: &[FailureCount], of: &FailureBucket) -> u32 {
    let found = counts.iter().find(|count| count.bucket == of.bucket);
    found.map_or(0, |count| u32::try_from(count.failures).unwrap_or(0))
}

fn write_reset(
    app: &App,
    asked: &AskedBy,
    address: &MailAddress,
    users: &[CurrentUser],
    transaction: &AuthorizationTransaction,
) {
    let until = app.now().plus(RESET_LIFETIME);
    // A device would wait behind a genuine letter for whoever has it.
    let is_of_client = matches!(transaction.request.ending, Ending::Client(_));
    let goes_on = is_of_client && transaction.sealed.len() <= LONGEST_REQUEST;
    let origin = if goes_on {
        LinkOrigin::With(OnTheWay(transaction.sealed.clone()))
    } else {
        LinkOrigin::Plain
    };
    let users = users.get(..MOST_USERS).unwrap_or(users);
    let mut accounts = Vec::new();
    for found in users {
        let user = &found.user;
        let has_password = user.password_hash.is_some() && user.username.is_some();
        accounts.push(ResetAccount {
            name: user.designation(),
            link: has_password
                .then(|| link(app, user, found.installation_epoch, until, origin.clone())),
        });
    }
    let greeted = match users {
        [found] => Some(found.user.called()),
        _ => None,
    };
    let frame = frame(app, asked, greeted);
    let client = transaction.registration().filter(|_| goes_on);
    let client = client.map(|client| frame.texts.language.of(&client.client_name));
    let text = frame.reset(&accounts, client, until);
    let subs = users.iter().map(|user| user.user.sub.clone()).collect();
    let letter = letter(app, address, &text, subs, "reset");
    enter(app, asked, letter);
}

/// A letter with a link by which a user sets a password: another one, or the first. It is in the
/// language of the user, where Gatepost speaks it. `by` is what the administrator is called who
/// wanted it.
pub fn of_link(
    app: &App,
    found: &CurrentUser,
    to: &MailAddress,
    otherwise: Language,
    origin: LinkOrigin<OnTheWay>,
    by: Option<&str>,
) -> Letter {
    let user = &found.user;
    let language = Language::of_claims(&user.claims).unwrap_or(otherwise);
    let until = app.now().plus(INVITATION_LIFETIME);
    let link = link(app, user, found.installation_epoch, until, origin);
    let frame = LetterFrame {
        texts: language.texts(),
        brand: &app.config.brand,
        greeted: Some(user.called()),
        asked: None,
    };
    let username = user.designation();
    let snapshot = app.registry.snapshot();
    let tenant = user.tenant.as_ref();
    let (kind, text) = match user.password_hash {
        Some(_) => {
            let account = ResetAccount {
                name: username,
                link: Some(link),
            };
            ("reset", frame.reset(&[account], None, until))
        }
        None => {
            let invitation = InvitationLetter {
                username,
                by,
                company: tenant.map(|tenant| snapshot.catalogue.tenant_name(tenant.as_str())),
                link: &link,
                until,
            };
            ("invitation", frame.invitation(invitation))
        }
    };
    let subs = vec![user.sub.clone()];
    letter(app, to, &text, subs, kind)
}

fn link(
    app: &App,
    user: &UserRow,
    installation_epoch: i64,
    expires_at: Instant,
    origin: LinkOrigin<OnTheWay>,
) -> String {
    let link = MailLink {
        user: user.of_link(installation_epoch),
        factors: user.factors,
        address_hash: origin.address_hash(&user.claims),
        expires_at,
        origin,
    };
    let sealed = app.vault.mail_links.seal_text(PREFIX, &link);
    format!("{}/account/link?l={sealed}", app.issuer())
}

fn letter(
    app: &App,
    to: &MailAddress,
    text: &LetterText,
    subs: Vec<Subject>,
    kind: &'static str,
) -> Letter {
    Letter {
        to: to.clone(),
        message: message(&app.config, to, text, app.now()),
        subs,
        kind,
    }
}

/// A letter as it is sent; empty where there is no e-mail.
pub fn message(
    config: &Config,
    to: &MailAddress,
    letter: &LetterText,
    sent_at: Instant,
) -> SecretBytes {
    let Some(mail) = &config.mail else {
        return SecretBytes::new([]);
    };
    let message = Message {
        sender: &printed(&config.brand.name),
        from: &mail.from,
        to,
        letter,
        sent_at,
        id: &format!("{:032x}", u128::from_be_bytes(random::bytes())),
    };
    SecretBytes::new(message.bytes())
}
