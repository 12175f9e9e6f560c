//! `gatepost user invite|reset`: links by which people set a password or make a passkey, for one
//! or for many.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use serde_json::json;

use super::named;
use crate::arguments::Invocation;
use crate::mail;
use crate::operator::Operator;
use crate::output::{self, Failure};
use crate::registry;
use gatepost_protocol::login::passkey;
use gatepost_protocol::login::password_link::{
    Enrolling, LinkOrigin, PASSKEY_PREFIX, PREFIX, PasskeyLink, PasswordLink,
};
use gatepost_protocol::registration::timestamp;
use gatepost_protocol::words::instant::Instant;
use gatepost_registrar::events::user_event;
use gatepost_server::config::cause;
use gatepost_server::keys::master::Purpose;
use gatepost_server::keys::sealing::Sealer;
use gatepost_store::audit_events;
use gatepost_store::installation::{self, Installation};
use gatepost_store::users::UserRow;

const MOST_OF_NAMES: u64 = 64 * 1_048_576;

/// What all links of one command have in common.
struct LinkMaker<'o> {
    operator: &'o Operator,
    sealer: Sealer,
    installation_epoch: i64,
    /// They make a passkey, and set no password.
    is_passkey: bool,
    enrols: bool,
    expires_at: Instant,
}

impl LinkMaker<'_> {
    fn new<'o>(
        operator: &'o Operator,
        installation: &Installation,
        invocation: &Invocation,
    ) -> Result<LinkMaker<'o>, Failure> {
        let lifetime = lifetime(invocation)?;
        let is_passkey = invocation.has("--passkey");
        let purpose = if is_passkey {
            Purpose::PasskeyLink
        } else {
            Purpose::PasswordLink
        };
        // Another master secret than the server's would make links that nobody can open.
        operator.sealers(installation)?;
        let derived = operator
            .master_secret()?
            .derive(&installation.id, &installation.issuer);
        Ok(LinkMaker {
            operator,
            sealer: Sealer::new(&derived, purpose),
            installation_epoch: installation::epoch(&operator.store)?,
            is_passkey,
            enrols: invocation.has("--enrol"),
            expires_at: operator.now()?.plus(lifetime),
        })
    }

    fn link(&self, user: &UserRow) -> Result<String, Failure> {
        let link = PasswordLink {
            user: user.of_link(self.installation_epoch),
            factors: user.factors,
            origin: match self.enrols {
                true => LinkOrigin::With(Enrolling),
                false => LinkOrigin::Plain,
            },
            expires_at: self.expires_at,
        };
        let sealed = if self.is_passkey {
            let link = PasskeyLink {
                link,
                address_hash: None,
            };
            self.sealer.seal_text(PASSKEY_PREFIX, &link)
        } else {
            self.sealer.seal_text(PREFIX, &link)
        };
        let end = output::time(self.expires_at);
        let detail = json!({"by": "operator", "expires_at": end});
        let event = user_event("link_made", &user.sub, detail);
        audit_events::insert(&self.operator.store, &event)?;
        let base_url = self.operator.config.base_url.as_str();
        Ok(format!("{base_url}/account/link?l={sealed}"))
    }
}

/// For somebody who has no way of their own to sign in.
pub(crate) fn invite(invocation: &Invocation) -> Result<(), Failure> {
    for_one(invocation, false)
}

/// For those who have one: one of them, or all whom a file names.
pub(crate) fn reset(invocation: &Invocation) -> Result<(), Failure> {
    let names = invocation.option("--from");
    let file = invocation.option("--links");
    match (names, file, invocation.value(0)) {
        (Some(names), Some(file), "") => for_many(invocation, names, file),
        (None, None, username) if !username.is_empty() => for_one(invocation, true),
        _ => Err(Failure::usage(
            "`gatepost user reset` needs USERNAME, or --from NAMES and --links FILE; try --help",
        )),
    }
}

fn for_one(invocation: &Invocation, is_reset: bool) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    check(invocation, &user, is_reset)?;
    print_link(&operator, &installation, invocation, &user)
}

/// Whether such a link is for somebody like this.
fn check(invocation: &Invocation, user: &UserRow, is_reset: bool) -> Result<(), Failure> {
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
    Err(Failure::refused(rule))
}

fn check_can_sign_in(user: &UserRow) -> Result<(), Failure> {
    if user.enabled && user.username.is_some() {
        return Ok(());
    }
    Err(Failure::refused(
        "that user cannot sign in with a password: no user name, or disabled",
    ))
}

pub(super) fn print_link(
    operator: &Operator,
    installation: &Installation,
    invocation: &Invocation,
    user: &UserRow,
) -> Result<(), Failure> {
    check_can_sign_in(user)?;
    check_options(operator, invocation)?;
    if invocation.has("--mail") {
        // Another master secret than the server's would make a link that nobody can open.
        operator.sealers(installation)?;
        let lifetime = lifetime(invocation)?;
        return mail::send_link(operator, installation, invocation, user, lifetime);
    }
    let maker = LinkMaker::new(operator, installation, invocation)?;
    let address = maker.link(user)?;
    let end = output::time(maker.expires_at);
    match invocation.has("--json") {
        true => output::line(&json!({"link": address, "expires_at": end}).to_string()),
        false => output::line(&address),
    }
}

/// Everybody is looked up first, and all who cannot have a link are told at once. The links stand
/// in the file alone.
fn for_many(invocation: &Invocation, names: &str, file: &str) -> Result<(), Failure> {
    if invocation.has("--mail") {
        let rule = "--mail does not go with --from: the links stand in a file";
        return Err(Failure::usage(rule));
    }
    if file == "-" {
        let rule = "--links needs the name of a new file: links for many are not printed";
        return Err(Failure::usage(rule));
    }
    let names = registry::text_of(names, MOST_OF_NAMES)?;
    let names: BTreeSet<&str> = names.lines().map(str::trim).collect();
    let (operator, installation) = Operator::open_installed(invocation)?;
    check_options(&operator, invocation)?;
    let maker = LinkMaker::new(&operator, &installation, invocation)?;
    let people = all_named(&operator, invocation, names)?;
    let mut out = new_file(file)?;
    for user in &people {
        writeln!(out, "{}\t{}", user.designation(), maker.link(user)?)?;
    }
    out.sync_all()?;
    let count = people.len();
    let shown = file.escape_debug();
    let end = output::time(maker.expires_at);
    output::line(&format!("{count} links are in {shown}, good until {end}"))
}

fn all_named(
    operator: &Operator,
    invocation: &Invocation,
    names: BTreeSet<&str>,
) -> Result<Vec<UserRow>, Failure> {
    let mut people = Vec::new();
    let mut seen = BTreeSet::new();
    let mut refusals = String::new();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let found = named(operator, invocation, name);
        match found.and_then(|user| check(invocation, &user, true).map(|()| user)) {
            // Upper case and lower case name the same user.
            Ok(user) if !seen.insert(user.sub.clone()) => {}
            Ok(user) => people.push(user),
            Err(refusal) => refusals.push_str(&format!("{}: {refusal}\n", name.escape_debug())),
        }
    }
    if people.is_empty() || !refusals.is_empty() {
        return Err(Failure::Refused(format!("{refusals}no link was made")));
    }
    Ok(people)
}

/// Made for its owner alone, and never written over another.
fn new_file(name: &str) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(name);
    made.map_err(|error| {
        let name = name.escape_debug();
        let reason = cause(&error);
        Failure::Refused(format!("{name} cannot be made: {reason}; no link was made"))
    })
}

fn check_options(operator: &Operator, invocation: &Invocation) -> Result<(), Failure> {
    let is_passkey = invocation.has("--passkey");
    if is_passkey && invocation.has("--enrol") {
        let rule = "--passkey does not go with --enrol";
        return Err(Failure::usage(rule));
    }
    if is_passkey && passkey::host(operator.config.base_url.as_str()).is_none() {
        let rule = "browsers have no passkeys for the host of GATEPOST_BASE_URL";
        return Err(Failure::refused(rule));
    }
    Ok(())
}

pub(super) fn lifetime(invocation: &Invocation) -> Result<Duration, Failure> {
    let text = invocation.option("--for").unwrap_or("72h");
    let rule = "--for must be a number with s, m, h or d, as 72h; at most 30d";
    let fits = timestamp::seconds(text).filter(|seconds| (1..=30 * 86_400).contains(seconds));
    fits.map(Duration::from_secs)
        .ok_or_else(|| Failure::usage(rule))
}
