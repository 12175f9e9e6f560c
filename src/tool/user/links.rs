//! `gatepost user invite|reset`: links by which people set a password or make a passkey, for one
//! or for many.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use serde_json::json;

use super::{named, typed};
use crate::arguments::Invocation;
use crate::mail;
use crate::operator::Operator;
use crate::output::{self, CommandResult, misuse, refuse, say};
use crate::registry;
use gatepost_protocol::login::mail_link::{self, MailLink, address_hash};
use gatepost_protocol::login::passkey;
use gatepost_protocol::login::password_link::{
    Enrolling, LinkOrigin, PASSKEY_PREFIX, PREFIX, PasskeyLink, PasswordLink,
};
use gatepost_protocol::words::instant::Instant;
use gatepost_registrar::events::user_event;
use gatepost_server::config::cause;
use gatepost_server::keys::master::Purpose;
use gatepost_server::keys::sealing::Sealer;
use gatepost_store::audit_events;
use gatepost_store::installation;
use gatepost_store::users::UserRow;

const MOST_OF_NAMES: u64 = 64 * 1_048_576;

/// What all links of one command have in common.
pub struct LinkMaker<'o> {
    pub operator: &'o Operator,
    sealer: Sealer,
    installation_epoch: i64,
    /// They make a passkey, and set no password.
    pub is_passkey: bool,
    /// They go to addresses that count here, and count themselves as long as those do.
    is_mailed: bool,
    pub expires_at: Instant,
}

impl LinkMaker<'_> {
    fn new<'o>(operator: &'o Operator) -> CommandResult<LinkMaker<'o>> {
        let lifetime = lifetime(operator)?;
        let is_passkey = operator.has("--passkey");
        let is_mailed = operator.has("--mail");
        // Another master secret than the server's would make links that nobody can open.
        operator.sealers()?;
        let derived = operator.derived()?;
        let sealer = if is_passkey {
            Sealer::new(&derived, Purpose::PasskeyLink)
        } else if is_mailed {
            Sealer::of_kinds(&derived, Purpose::MailLink)
        } else {
            Sealer::new(&derived, Purpose::PasswordLink)
        };
        Ok(LinkMaker {
            operator,
            sealer,
            installation_epoch: installation::epoch(&operator.store)?,
            is_passkey,
            is_mailed,
            expires_at: operator.now()?.plus(lifetime),
        })
    }

    pub fn link(&self, user: &UserRow) -> CommandResult<String> {
        let link = PasswordLink {
            user: user.of_link(self.installation_epoch),
            factors: user.factors,
            origin: if self.operator.has("--enrol") {
                LinkOrigin::With(Enrolling)
            } else {
                LinkOrigin::Plain
            },
            expires_at: self.expires_at,
        };
        let address_hash = self.is_mailed.then(|| address_hash(&user.claims));
        let sealed = match address_hash {
            _ if self.is_passkey => {
                let link = PasskeyLink { link, address_hash };
                self.sealer.seal_text(PASSKEY_PREFIX, &link)
            }
            None => self.sealer.seal_text(PREFIX, &link),
            Some(address_hash) => {
                let link = MailLink {
                    user: link.user,
                    factors: link.factors,
                    address_hash,
                    expires_at: link.expires_at,
                    origin: LinkOrigin::Plain,
                };
                self.sealer.seal_text(mail_link::PREFIX, &link)
            }
        };
        let end = output::time(self.expires_at);
        let detail = if self.is_mailed {
            json!({"by": "operator", "expires_at": end, "mail": true})
        } else {
            json!({"by": "operator", "expires_at": end})
        };
        let event = user_event("link_made", &user.sub, detail);
        audit_events::insert(&self.operator.store, &event)?;
        let base_url = self.operator.config.base_url.as_str();
        Ok(format!("{base_url}/account/link?l={sealed}"))
    }
}

/// For those who have no way of their own to sign in.
pub fn invite(invocation: &Invocation) -> CommandResult {
    for_each(invocation, false)
}

/// For those who have one.
pub fn reset(invocation: &Invocation) -> CommandResult {
    for_each(invocation, true)
}

/// For one of them, or for all whom a file names.
fn for_each(invocation: &Invocation, is_reset: bool) -> CommandResult {
    let names = invocation.option("--from");
    let file = invocation.option("--links");
    match (names, file, invocation.value(0)) {
        (Some(names), Some(file), "") => for_many(invocation, names, file, is_reset),
        (None, None, username) if !username.is_empty() => for_one(invocation, is_reset),
        _ => misuse("it needs USERNAME, or --from NAMES and --links FILE; try --help"),
    }
}

fn for_one(invocation: &Invocation, is_reset: bool) -> CommandResult {
    let operator = Operator::open(invocation)?;
    let user = typed(&operator)?;
    check(invocation, &user, is_reset)?;
    print_link(&operator, &user)
}

/// Whether such a link is for somebody like this.
fn check(invocation: &Invocation, user: &UserRow, is_reset: bool) -> CommandResult {
    let has_a_way = if invocation.has("--passkey") {
        user.has_own_way_in()
    } else {
        user.password_hash.is_some()
    };
    let rule = match (is_reset, has_a_way) {
        (true, false) => "that user has nothing to reset: use `gatepost user invite`",
        (false, true) => "that user has a way to sign in: use `gatepost user reset`",
        (true, true) | (false, false) => return check_can_sign_in(user),
    };
    refuse(rule)
}

fn check_can_sign_in(user: &UserRow) -> CommandResult {
    if user.may_act() && user.username.is_some() {
        return Ok(());
    }
    refuse("that user cannot sign in with a password: no user name, disabled, or out of time")
}

pub fn print_link(operator: &Operator, user: &UserRow) -> CommandResult {
    check_can_sign_in(user)?;
    check_options(operator)?;
    let maker = LinkMaker::new(operator)?;
    if operator.has("--mail") {
        return mail::send_link(&maker, user);
    }
    let address = maker.link(user)?;
    let end = output::time(maker.expires_at);
    if operator.has("--json") {
        say(json!({"link": address, "expires_at": end}).to_string())
    } else {
        say(address)
    }
}

/// Everybody is looked up first, and all who cannot have a link are told at once. The links stand
/// in the file alone.
fn for_many(invocation: &Invocation, names: &str, file: &str, is_reset: bool) -> CommandResult {
    if invocation.has("--mail") {
        return misuse("--mail does not go with --from: the links stand in a file");
    }
    if file == "-" {
        return misuse("--links needs the name of a new file: links for many are not printed");
    }
    let names = registry::text_of(names, MOST_OF_NAMES)?;
    let names: BTreeSet<&str> = names.lines().map(str::trim).collect();
    let operator = Operator::open(invocation)?;
    check_options(&operator)?;
    let maker = LinkMaker::new(&operator)?;
    let people = all_named(&operator, names, is_reset)?;
    let mut out = new_file(file)?;
    for user in &people {
        writeln!(out, "{}\t{}", user.designation(), maker.link(user)?)?;
    }
    out.sync_all()?;
    let count = people.len();
    let shown = file.escape_debug();
    let end = output::time(maker.expires_at);
    say!("{count} links are in {shown}, good until {end}")
}

fn all_named(
    operator: &Operator,
    names: BTreeSet<&str>,
    is_reset: bool,
) -> CommandResult<Vec<UserRow>> {
    let mut people = Vec::new();
    let mut seen = BTreeSet::new();
    let mut refusals = String::new();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let found = named(operator, name);
        match found.and_then(|user| check(operator, &user, is_reset).map(|()| user)) {
            // Upper case and lower case name the same user.
            Ok(user) if !seen.insert(user.sub.clone()) => {}
            Ok(user) => people.push(user),
            Err(refusal) => refusals.push_str(&format!("{}: {refusal}\n", name.escape_debug())),
        }
    }
    if people.is_empty() || !refusals.is_empty() {
        return refuse!("{refusals}no link was made");
    }
    Ok(people)
}

/// Made for its owner alone, and never written over another.
fn new_file(name: &str) -> CommandResult<File> {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(name);
    made.or_else(|error| {
        let name = name.escape_debug();
        let reason = cause(&error);
        refuse!("{name} cannot be made: {reason}; no link was made")
    })
}

fn check_options(operator: &Operator) -> CommandResult {
    let is_passkey = operator.has("--passkey");
    if is_passkey && operator.has("--enrol") {
        return misuse("--passkey does not go with --enrol");
    }
    if is_passkey && passkey::host(operator.config.base_url.as_str()).is_none() {
        return refuse("browsers have no passkeys for the host of GATEPOST_BASE_URL");
    }
    Ok(())
}

pub fn lifetime(invocation: &Invocation) -> CommandResult<Duration> {
    let seconds = invocation.seconds("--for", 30 * 86_400, "72h; at most 30d")?;
    Ok(Duration::from_secs(seconds.unwrap_or(72 * 3_600)))
}
