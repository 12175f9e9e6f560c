//! `gatepost doctor`: looks at the whole installation, from its settings to what visitors see of
//! it. It tells each fault once: checks that a fault makes impossible are left out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::arguments::Invocation;
use super::operator::{OpenDatabase, Operator};
use super::output::{self, CommandResult, Failure, FindingsReport, time};
use super::{client, idp, sealed, serve};
use crate::statements::{examination, user_list};
use gatepost_protocol::keys::key_schedule::{announced, current};
use gatepost_protocol::login::password::SignInWith;
use gatepost_protocol::words::client::{Client, SigningAlgorithm};
use gatepost_protocol::words::instant::Instant;
use gatepost_registration::client_checkup;
use gatepost_registration::finding::{Finding, Verdict};
use gatepost_registration::{broken, fine, weak};
use gatepost_server::app::key_keeping;
use gatepost_server::app::letters::postman;
use gatepost_server::app::password_rules::PasswordRules;
use gatepost_server::config::mail::SmtpSecurity;
use gatepost_server::config::{Config, Source};
use gatepost_server::endpoints::metrics::DOCTOR;
use gatepost_server::endpoints::static_files;
use gatepost_server::keys::master::Purpose;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::registry::{Sealers, open_secret_digest};
use gatepost_store::clock::MOST_SKEW_MICROS;
use gatepost_store::{clients, installation, partitions, signing_keys};

/// So many metadata documents are fetched: each may take seconds.
const MOST_DOCUMENTS: usize = 5;

/// The faults of a part: those whose condition holds. Without any, one line says that the part is
/// sound.
macro_rules! judge {
    ($findings:expr, $part:literal, {
        $($is_so:expr => $verdict:ident $fault:literal,)+
    } else $sound:literal) => {
        let before = $findings.len();
        $(if $is_so {
            $findings.push(Finding::$verdict(format!("{}: {}", $part, format_args!($fault))));
        })+
        if $findings.len() == before {
            $findings.push(Finding::fine(format!("{}: {}", $part, format_args!($sound))));
        }
    };
}

mod distance;
mod outside;

pub fn run(invocation: &Invocation) -> CommandResult {
    let mut findings = Vec::new();
    if let Err(failure) = examine(invocation, &mut findings) {
        findings.extend(failure.to_string().lines().map(Finding::broken));
        // What the last two parts fail by is told once.
        findings.dedup();
    }
    let examined = FindingsReport {
        name: "this installation",
        findings: &findings,
        text: "",
        member: "version",
        value: json!(env!("CARGO_PKG_VERSION")),
    };
    examined.print(invocation)
}

fn examine(invocation: &Invocation, findings: &mut Vec<Finding>) -> CommandResult {
    let source = invocation.source()?;
    let config = invocation.config()?;
    judge_settings(&source, &config, findings);
    findings.extend(other_version());
    letters(&config, findings)?;
    let inside = match installed(invocation, findings) {
        Ok(inside) => inside,
        Err(failure) => {
            findings.push(Finding::broken(failure.to_string()));
            None
        }
    };
    outside::examine(&config, inside, findings)
}

fn judge_settings(source: &Source, config: &Config, findings: &mut Vec<Finding>) {
    let logo = static_files::logo_fault(&config.brand);
    let faults = [
        open_file(source).map(|file| {
            let place = file.display();
            weak!("settings: other users can read the database password in {place}: chmod 0640 it")
        }),
        logo.map(|fault| weak!("settings: {fault}")),
        PasswordRules::new(config)
            .fault()
            .map(|unread| weak!("settings: new passwords are taken without a look at {unread}")),
        config
            .bound_sessions_fault()
            .map(|fault| broken!("settings: {fault}")),
        config
            .administration_fault()
            .map(|fault| weak!("settings: {fault}")),
    ];
    let before = findings.len();
    findings.extend(faults.into_iter().flatten());
    if findings.len() == before {
        findings.push(fine!("settings: every name is known, every value fits"));
    }
}

/// Of the server, where it is not that of the tools. Nothing where they are the same.
fn other_version() -> Option<Finding> {
    let beside = serve::version_beside().unwrap_or_else(|| String::from("no gatepostd"));
    let own = env!("CARGO_PKG_VERSION");
    let differs = beside != format!("gatepostd {own}");
    differs.then(|| {
        weak!(
            "programs: this is gatepost {own}, and beside it is {beside}: install both, and reload"
        )
    })
}

/// One with the database password that others can read. The master secret's file is
/// not among them: reading it checks its mode.
fn open_file(source: &Source) -> Option<PathBuf> {
    let file = source.given("GATEPOST_DATABASE_URL_FILE");
    let mut files: Vec<PathBuf> = file.map(PathBuf::from).into_iter().collect();
    if let Some(file) = &source.file
        && fs::read_to_string(file).is_ok_and(|text| text.contains("DATABASE_URL="))
    {
        files.push(file.clone());
    }
    files
        .into_iter()
        .find(|file| fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o007 != 0))
}

/// Whether letters can go out. Nothing where there is no e-mail.
fn letters(config: &Config, findings: &mut Vec<Finding>) -> CommandResult {
    let (Some(mail), Some(postman)) = (
        &config.mail,
        postman(config).map_err(Failure::Configuration)?,
    ) else {
        return Ok(());
    };
    let tried = postman.try_server();
    let problem = tried.as_ref().err().map(ToString::to_string);
    let problem = problem.unwrap_or_default();
    judge!(findings, "mail", {
        tried.is_err() => broken "no letter would go out: {problem}",
        mail.server.security == SmtpSecurity::StartTls
            => weak "smtp:// begins in the clear: use smtps://, if the mail server has it",
    } else "the mail server lets us in");
    Ok(())
}

/// What shows the server that `gatepost doctor` asks; each is good once.
struct Nonces {
    sealer: Sealer,
    latest: Instant,
}

impl Nonces {
    fn next(&mut self) -> String {
        self.latest = self.latest.plus(Duration::from_micros(1));
        self.sealer.seal_text(DOCTOR, &self.latest.micros())
    }
}

/// Enabled clients that cannot do without proofs of possession (RFC 9449).
#[derive(Default)]
struct Proving {
    all: Vec<String>,
    with_nonce: Vec<String>,
}

/// What the look from outside needs from the database.
struct Inside {
    /// The server will believe them.
    nonces: Nonces,
    proving: Proving,
    /// Seals what browsers bring whose session is bound.
    bound_sessions: Sealer,
}

/// The database and what is in it; `None` after a fault that was told.
fn installed(
    invocation: &Invocation,
    findings: &mut Vec<Finding>,
) -> CommandResult<Option<Inside>> {
    let opened = OpenDatabase::open(invocation)?;
    let examined = examination::examine(&opened.store, opened.config.database_connections)?;
    findings.extend(examined.findings);
    findings.push(distance::judged(examined.round_trip));
    if output::has(findings, Verdict::Broken) {
        return Ok(None);
    }
    examination::keeps_statements(&opened.store)?;
    let operator = Operator::open(invocation)?;
    installation::check_lowering(&operator.installation)?;
    let store = &operator.store;
    let now = operator.now()?;
    let horizons = operator.horizons(clients::longest_lifetimes(store)?.value);
    judge!(findings, "database", {
        !partitions::are_ahead(store, &horizons, now.day())?
            => broken "partitions run out: the log of `gatepost serve` says why",
    } else "schema and issuer fit, partitions are ahead");
    let skew = store.clock().skew_micros().abs();
    let far = MOST_SKEW_MICROS;
    let off = skew / 1_000;
    judge!(findings, "clock", {
        skew > far
            => broken "{off} ms off the database's, and above 30 s Gatepost is not ready: have \
                       both follow NTP",
        (2_000_000..=far).contains(&skew)
            => weak "{off} ms off the database's: have both follow NTP",
    } else "{off} ms off the database's");
    let derived = operator.derived()?;
    let sealers = Sealers::new(&derived);
    let lost = some(&sealed::lost(&operator, &sealers)?);
    judge!(findings, "secret", {
        !lost.is_empty() => broken "GATEPOST_SECRET_FILE lacks the line that opens {lost}",
    } else "it opens every key and secret");
    let keys = key_keeping::scheduled(&signing_keys::load(store)?.value);
    for algorithm in SigningAlgorithm::ALL {
        let name = algorithm.as_str();
        let key = current(&keys, algorithm, now);
        let since = key
            .map(|key| time(key.times.activates_at))
            .unwrap_or_default();
        judge!(findings, "keys", {
            key.is_none() => broken "none signs with {name}: `gatepost key rotate` makes one",
            key.is_some_and(|key| key.times.retires_at <= now)
                && announced(&keys, algorithm, now).is_none()
                => weak "{name} signs since {since}, which is too long: does `gatepost serve` run?",
        } else "{name} signs since {since}");
    }
    let [broken, weak] = registered(&operator, &sealers.client_secrets, now)?;
    judge!(findings, "registry", {
        !broken.is_empty() => broken "these say what fails: {broken}",
        !weak.is_empty() => weak "these say what could be stronger: {weak}",
    } else "every client and identity provider is in order");
    if operator.config.sign_in_with == SignInWith::UsernameOrAddress {
        let shared = user_list::count_shared(store)?;
        judge!(findings, "addresses", {
            shared > 0
                => weak "{shared} verified e-mail addresses are of more than one user of a tenant, \
                         and sign in none of them: `address_shared` in the audit log names them",
        } else "no two users of a tenant have the same verified e-mail address");
    }
    let nonces = Nonces {
        sealer: Sealer::new(&derived, Purpose::Doctor),
        latest: now,
    };
    let proving = proving(&operator)?;
    Ok(Some(Inside {
        nonces,
        proving,
        bound_sessions: Sealer::of_kinds(&derived, Purpose::BoundSession),
    }))
}

fn proving(operator: &Operator) -> CommandResult<Proving> {
    let mut proving = Proving::default();
    let rows = clients::list(&operator.store)?;
    for row in rows.iter().filter(|row| row.enabled) {
        // One that is not served was told.
        let Ok(client) = client::read(operator, row) else {
            continue;
        };
        if client.requires_dpop || client.requires_dpop_nonce {
            proving.all.push(row.client_id.in_text());
        }
        if client.requires_dpop_nonce {
            proving.with_nonce.push(row.client_id.in_text());
        }
    }
    Ok(proving)
}

fn some(names: &[String]) -> String {
    let others = if names.len() > 5 {
        format!(" and {} more", names.len() - 5)
    } else {
        String::new()
    };
    names.get(..5).unwrap_or(names).join(", ") + &others
}

/// Sums up what `client test` and `idp test` say: which of them find something broken, and which
/// something weak.
fn registered(operator: &Operator, sealer: &Sealer, now: Instant) -> CommandResult<[String; 2]> {
    let signing = client::signing(operator, now)?;
    let catalogue = match client::catalogue(operator) {
        Ok(catalogue) => catalogue,
        // No server reads it either, and the other findings shall still be told.
        Err(problem) => return Ok([problem.to_string(), String::new()]),
    };
    let published = key_keeping::seasons(&operator.config).publish;
    let bound_sessions = operator.config.bound_sessions;
    let outbound = operator.outbound()?;
    let mut all = Vec::new();
    let mut documents = 0;
    for row in clients::list(&operator.store)?
        .iter()
        .filter(|row| row.enabled)
    {
        let secrets: Vec<_> = row
            .secrets
            .iter()
            .map(|one| open_secret_digest(one, sealer))
            .collect();
        let judge = |client: &Client| {
            let mut found = client_checkup::examine(client, &secrets, &signing, &catalogue, now);
            found.extend(client_checkup::outlives_keys(client, published));
            found.extend(client_checkup::by_bound_session(client, bound_sessions));
            found
        };
        let found = match client::read(operator, row) {
            Ok(mut client) if client.metadata_document && documents < MOST_DOCUMENTS => {
                documents += 1;
                let of_document = client::describe(operator, &mut client)?;
                judge(&client).into_iter().chain([of_document]).collect()
            }
            Ok(client) => judge(&client),
            Err(_) => vec![not_served()],
        };
        let name = row.client_id.in_text();
        all.push((format!("`gatepost client test {name}`"), found));
    }
    for row in &idp::registered(operator)? {
        let found = match idp::read(row) {
            Ok(provider) if provider.enabled => idp::tried(&outbound, sealer, row, &provider),
            Ok(_) => Vec::new(),
            Err(_) => vec![not_served()],
        };
        all.push((format!("`gatepost idp test {}`", row.name), found));
    }
    Ok([Verdict::Broken, Verdict::Weak].map(|verdict| {
        let mut names = Vec::new();
        for (name, found) in &all {
            if output::has(found, verdict) {
                names.push(name.clone());
            }
        }
        some(&names)
    }))
}

fn not_served() -> Finding {
    broken!("it is not served")
}
