//! `gatepost user invite|reset`: links by which people set a password, for one or for many.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use serde_json::json;

use super::named;
use crate::cli::arguments::Invocation;
use crate::cli::input::{unread, utf8};
use crate::cli::operator::{Operator, user_event};
use crate::cli::output::{self, Failure};
use crate::config::cause;
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::login::password_link::{PREFIX, PasswordLink};
use crate::protocol::registration::timestamp;
use crate::protocol::words::instant::Instant;
use crate::store::audit_events;
use crate::store::installation::{self, Installation};
use crate::store::users::UserRow;

/// What all links of one command have in common.
struct LinkMaker<'o> {
    operator: &'o Operator,
    sealer: Sealer,
    installation_epoch: i64,
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
        // Another master secret than the server's would make links that nobody can open.
        operator.sealers(installation)?;
        let derived = operator
            .master_secret()?
            .derive(&installation.id, &installation.issuer);
        Ok(LinkMaker {
            operator,
            sealer: Sealer::new(&derived, Purpose::PasswordLink),
            installation_epoch: installation::epoch(&operator.store)?,
            enrols: invocation.has("--enrol"),
            expires_at: operator.now()?.plus(lifetime),
        })
    }

    fn link(&self, user: &UserRow) -> Result<String, Failure> {
        let link = PasswordLink {
            subject: user.sub.clone(),
            epoch: user.epoch,
            installation_epoch: self.installation_epoch,
            factors: user.factors,
            enrols: self.enrols,
            expires_at: self.expires_at,
        };
        let sealed = self.sealer.seal_text(PREFIX, &link);
        let end = output::time(self.expires_at);
        let detail = json!({"by": "operator", "expires_at": end});
        let event = user_event("link_made", &user.sub, detail);
        audit_events::insert(&self.operator.store, &event)?;
        let base_url = self.operator.config.base_url.as_str();
        Ok(format!("{base_url}/account/link?l={sealed}"))
    }
}

/// For somebody without a password.
pub(in crate::cli) fn invite(invocation: &Invocation) -> Result<(), Failure> {
    for_one(invocation, false)
}

/// For those who have a password: one, or all whom a file names.
pub(in crate::cli) fn reset(invocation: &Invocation) -> Result<(), Failure> {
    let names = invocation.option("--from");
    let file = invocation.option("--links");
    match (names, file, invocation.value(0)) {
        (Some(names), Some(file), "") => for_many(invocation, names, file),
        (None, None, username) if !username.is_empty() => for_one(invocation, true),
        _ => Err(Failure::Usage(String::from(
            "`gatepost user reset` needs USERNAME, or --from NAMES and --links FILE; try --help",
        ))),
    }
}

fn for_one(invocation: &Invocation, has_password: bool) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    check_password(&user, has_password)?;
    print_link(&operator, &installation, invocation, &user)
}

fn check_password(user: &UserRow, has_password: bool) -> Result<(), Failure> {
    let rule = match (has_password, user.password_hash.is_some()) {
        (true, false) => "that user has no password: use `gatepost user invite`",
        (false, true) => "that user has a password: use `gatepost user reset`",
        (true, true) | (false, false) => return Ok(()),
    };
    Err(Failure::Refused(String::from(rule)))
}

fn check_sign_in(user: &UserRow) -> Result<(), Failure> {
    if user.enabled && user.username.is_some() {
        return Ok(());
    }
    Err(Failure::Refused(String::from(
        "that user cannot sign in with a password: no user name, or disabled",
    )))
}

pub(super) fn print_link(
    operator: &Operator,
    installation: &Installation,
    invocation: &Invocation,
    user: &UserRow,
) -> Result<(), Failure> {
    check_sign_in(user)?;
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
    let names = names_in(names)?;
    let (operator, installation) = Operator::open_installed(invocation)?;
    let maker = LinkMaker::new(&operator, &installation, invocation)?;
    let mut people = Vec::new();
    let mut refusals = Vec::new();
    for name in names {
        let found = named(&operator, invocation, &name);
        let fits = found.and_then(|user| {
            check_password(&user, true)?;
            check_sign_in(&user)?;
            Ok(user)
        });
        match fits {
            Ok(user) => people.push(user),
            Err(refusal) => refusals.push(format!("{}: {refusal}", name.escape_debug())),
        }
    }
    if !refusals.is_empty() {
        refusals.push(String::from("no link was made"));
        return Err(Failure::Refused(refusals.join("\n")));
    }
    let mut out = new_file(file)?;
    for user in &people {
        let line = format!("{}\t{}\n", user.designation(), maker.link(user)?);
        out.write_all(line.as_bytes())
            .map_err(|error| unwritten(file, &error))?;
    }
    out.sync_all().map_err(|error| unwritten(file, &error))?;
    output::line(&format!(
        "{} links are in {}, good until {}",
        people.len(),
        file.escape_debug(),
        output::time(maker.expires_at)
    ))
}

/// The user names in a file, each once.
fn names_in(file: &str) -> Result<BTreeSet<String>, Failure> {
    let mut bytes = Vec::new();
    let shown = match file {
        "-" => String::from("standard input"),
        file => file.escape_debug().to_string(),
    };
    let read = match file {
        "-" => io::stdin().lock().read_to_end(&mut bytes),
        file => File::open(file).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.map_err(|error| unread(&shown, &error))?;
    let text = utf8(&shown, bytes)?;
    let lines = text.trim_start_matches('\u{feff}').lines();
    let names: BTreeSet<String> = lines
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    match names.is_empty() {
        true => Err(Failure::Refused(format!("{shown} has no user name"))),
        false => Ok(names),
    }
}

/// Made for its owner alone, and never written over another.
fn new_file(file: &str) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options.open(file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::Refused(format!(
            "{} is there already: name a new file; no link was made",
            file.escape_debug()
        )),
        _ => unwritten(file, &error),
    })
}

fn unwritten(file: &str, error: &io::Error) -> Failure {
    Failure::Refused(format!(
        "{} cannot be written: {}",
        file.escape_debug(),
        cause(error)
    ))
}

pub(super) fn lifetime(invocation: &Invocation) -> Result<Duration, Failure> {
    let text = invocation.option("--for").unwrap_or("72h");
    let rule = "--for must be a number with s, m, h or d, as 72h; at most 30d";
    let fits = timestamp::seconds(text).filter(|seconds| (1..=30 * 86_400).contains(seconds));
    fits.map(Duration::from_secs)
        .ok_or_else(|| Failure::Usage(String::from(rule)))
}
