//! `gatepost doctor`: looks at the whole installation, from its settings to what visitors see of it. It tells each fault once:
//! checks that a fault makes impossible are left out.

use std::fs;
use std::net::{IpAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::arguments::Invocation;
use super::operator::Operator;
use super::output::{self, Failure, time};
use super::{client, healthcheck, idp, registry, sealed};
use crate::app::{MOST_SKEW_MICROS, key_keeping};
use crate::config::{Config, ListenAddress};
use crate::endpoints::metrics::DOCTOR;
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::outbound::{Outbound, OutboundAnswer, OutboundRequest, days_left};
use crate::protocol::keys::key_schedule::{announced, current};
use crate::protocol::registration::problem::{Finding, Verdict};
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::registration::walker::parse_own;
use crate::protocol::registration::{self, client_checkup};
use crate::protocol::words::client::SigningAlgorithm;
use crate::protocol::words::forwarded::{Cidr, is_trusted, source};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::web_url::WebUrl;
use crate::registry::Sealers;
use crate::store::{clients, examination, partitions, signing_keys};

/// The faults of a part: those whose condition holds. Without any, one line says that the part is sound.
macro_rules! judge {
    ($findings:expr, $part:literal, { $($is_so:expr => $verdict:ident $fault:literal,)+ } else $sound:literal) => {
        let before = $findings.len();
        $(if $is_so { $findings.push(Finding::$verdict(format!("{}: {}", $part, format_args!($fault)))); })+
        if $findings.len() == before { $findings.push(Finding::fine(format!("{}: {}", $part, format_args!($sound)))); }
    };
}

pub(super) fn run(invocation: &Invocation) -> Result<(), Failure> {
    let mut findings = Vec::new();
    if let Err(failure) = examine(invocation, &mut findings) {
        findings.extend(failure.to_string().lines().map(Finding::broken));
    }
    let version = json!(env!("CARGO_PKG_VERSION"));
    output::findings(invocation.has("--json"), "this installation", &findings, "", ("version", version))
}

fn examine(invocation: &Invocation, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let (source, config) = (invocation.source()?, invocation.config()?);
    // Reading the master secret checks the mode of its file.
    let holds_it = |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains("DATABASE_URL="));
    let env_file = source.file.clone().filter(holds_it);
    let mut files = source.given("GATEPOST_DATABASE_URL_FILE").map(PathBuf::from).into_iter().chain(env_file);
    let open = files.find(|file| fs::metadata(file).is_ok_and(|found| found.permissions().mode() & 0o007 != 0));
    judge!(findings, "settings", {
        open.is_some() => weak "other users can read the database password in {open:?}: chmod 0640 it",
    } else "every name is known, every value fits");
    let nonce = installed(invocation, findings).unwrap_or_else(|failure| {
        findings.push(Finding::broken(failure.to_string()));
        None
    });
    outside(&config, nonce.as_deref(), findings)
}

/// The database and what is in it. Returns a nonce that the server will believe; `None` after a fault that was told.
fn installed(invocation: &Invocation, findings: &mut Vec<Finding>) -> Result<Option<String>, Failure> {
    let operator = Operator::open(invocation)?;
    findings.extend(examination::examine(&operator.store, operator.config.database_connections)?);
    if findings.iter().any(|finding| finding.verdict == Verdict::Broken) {
        return Ok(None);
    }
    let (operator, installation) = Operator::open_installed(invocation)?;
    let (store, now) = (&operator.store, operator.now()?);
    let horizons = operator.horizons(clients::longest_lifetimes(store)?);
    judge!(findings, "database", {
        !partitions::are_ahead(store, &horizons, now.day())? => broken "partitions run out: the log of `gatepost serve` says why",
    } else "schema and issuer fit, partitions are ahead");
    let skew = store.clock().skew_micros().abs();
    let (far, off) = (MOST_SKEW_MICROS, skew / 1_000);
    judge!(findings, "clock", {
        skew > far => broken "{off} ms off the database's, and above 30 s Gatepost is not ready: have both follow NTP",
        (2_000_000..=far).contains(&skew) => weak "{off} ms off the database's: have both follow NTP",
    } else "{off} ms off the database's");
    let derived = operator.master_secret()?.derive(&installation.id, &installation.issuer);
    let sealers = Sealers::new(&derived);
    let lost = some(&sealed::lost(&operator, &sealers)?);
    judge!(findings, "secret", {
        !lost.is_empty() => broken "GATEPOST_SECRET_FILE lacks the line that opens {lost}",
    } else "it opens every key and secret");
    let keys = key_keeping::scheduled(&signing_keys::load(store)?.value);
    for algorithm in SigningAlgorithm::ALL {
        let (name, key) = (algorithm.as_str(), current(&keys, algorithm, now));
        let since = key.map(|key| time(key.times.activates_at)).unwrap_or_default();
        judge!(findings, "keys", {
            key.is_none() => broken "none signs with {name}: `gatepost key rotate` makes one",
            key.is_some_and(|key| key.times.retires_at <= now) && announced(&keys, algorithm, now).is_none()
                => weak "{name} signs since {since}, which is too long: does `gatepost serve` run?",
        } else "{name} signs since {since}");
    }
    let [broken, weak] = registered(&operator, &sealers.client_secrets, now)?;
    judge!(findings, "registry", {
        !broken.is_empty() => broken "these say what fails: {broken}",
        !weak.is_empty() => weak "these say what could be stronger: {weak}",
    } else "every client and identity provider is in order");
    Ok(Some(Sealer::new(&derived, Purpose::Doctor).seal_text(DOCTOR, &now.micros())))
}

fn some(names: &[String]) -> String {
    let others = if names.len() > 5 { format!(" and {} more", names.len() - 5) } else { String::new() };
    names.get(..5).unwrap_or(names).join(", ") + &others
}

/// Sums up what `client test` and `idp test` say: which of them find something broken, and which something weak.
fn registered(operator: &Operator, sealer: &Sealer, now: Instant) -> Result<[String; 2], Failure> {
    let (config, signing, providers) = (&operator.config, client::signing(operator, now)?, idp::known(operator)?);
    let outbound =
        Outbound::new(&config.outbound_allow, config.ca_file.as_deref(), 1).map_err(Failure::Configuration)?;
    let (mut all, unread) = (Vec::new(), || vec![Finding::broken("it is not served")]);
    for row in clients::list(&operator.store)?.iter().filter(|row| row.enabled) {
        let secrets: Vec<_> = row.secrets.iter().map(|one| registry::opened(one, sealer)).collect();
        let client = registration::client::from_json(&parse_own(&row.metadata), "", &config.client_defaults);
        let judge = |client| client_checkup::examine(&client, &secrets, &signing, &providers, now);
        all.push((format!("`gatepost client test {}`", row.client_id), client.map_or_else(|_| unread(), judge)));
    }
    for row in &idp::registered(operator)? {
        let tried = |provider: &IdentityProvider| idp::tried(&outbound, sealer, row, provider);
        let judge =
            |provider: IdentityProvider| Some(&provider).filter(|one| one.enabled).map(tried).unwrap_or_default();
        all.push((format!("`gatepost idp test {}`", row.name), idp::read(row).map_or_else(|_| unread(), judge)));
    }
    Ok([Verdict::Broken, Verdict::Weak].map(|verdict| {
        let has = |found: &[Finding]| found.iter().any(|finding| finding.verdict == verdict);
        some(&all.iter().filter(|(_, found)| has(found)).map(|(name, _)| name.clone()).collect::<Vec<_>>())
    }))
}

/// What a visitor sees, through the proxy.
fn outside(config: &Config, nonce: Option<&str>, findings: &mut Vec<Finding>) -> Result<(), Failure> {
    let (base, ca_file) = (config.base_url.as_str(), config.ca_file.as_deref());
    let url = WebUrl::parse(base).map_err(|rule| Failure::Refused(rule.to_owned()))?;
    // Our own name may lead to a private address.
    let everywhere = [Cidr::v4([0; 4], 0), Cidr::v6([0; 2], 0)];
    let outbound = Outbound::new(&everywhere, ca_file, 1).map_err(Failure::Configuration)?;
    let get = |url: &str, headers: &[(&'static str, &str)]| {
        let request = headers.iter().fold(OutboundRequest::get(url), |asked, (name, value)| asked.header(name, value));
        let hint = "do the proxy and `gatepost serve` run? The rest cannot be seen from outside";
        outbound.send_from_background(&request).map_err(|error| Failure::Refused(format!("{url}: {error}; {hint}")))
    };
    let document = get(&format!("{base}/.well-known/openid-configuration"), &[])?;
    let issuer = document.json().and_then(|document| document.get("issuer").cloned()).unwrap_or_default();
    if document.status != 200 || issuer != base {
        let said = format!("discovery answers {} with the issuer {issuer}", document.status);
        return Err(Failure::Refused(format!("{base}: {said}, which must be GATEPOST_BASE_URL, byte for byte")));
    }
    findings.push(Finding::fine(format!("{base}: it answers, and is the issuer")));
    if !url.https {
        findings.push(Finding::fine("proxy: not looked at, as this base URL is for this machine alone"));
        return Ok(());
    }
    let (host, port) = (url.host.trim_matches(['[', ']']), url.port.unwrap_or(443));
    let days = days_left(host, port, ca_file, 90).map_err(|error| Failure::Refused(format!("{base}: {error}")))?;
    let stays = |value: &&str| value.contains("max-age=") && !value.contains("max-age=0");
    // With another port for https, port 80 is not ours to judge.
    let plain = (host, 80).to_socket_addrs().ok().filter(|_| url.port.is_none()).and_then(|mut found| found.next());
    let plain = plain.and_then(|address| healthcheck::over_tcp(address, url.host, "/").ok());
    judge!(findings, "TLS", {
        days < 21 => weak "the certificate ends in {days} days: renew it",
        !all(&document, "strict-transport-security").iter().any(stays)
            => weak "browsers may come back by http: have the proxy add Strict-Transport-Security",
        plain.is_some_and(|answer| !answer.status.contains(" 30")) => weak "http does not redirect to https",
    } else "the certificate is good for {days} days (90 are looked at), and browsers stay with https");
    let (health, long) = (format!("{base}/healthz"), "a".repeat(4_000));
    let status = get(&health, &[("Authorization", &long), ("Cookie", &format!("doctor={long}"))])?.status;
    // That address takes no POST: 405 says that the body came through, and nothing has changed.
    let form = [("doctor", &*"a".repeat(65_529))];
    let body = outbound.send_from_background(&OutboundRequest::post_form(&health, &form));
    let page = get(&format!("{base}/device"), &[])?;
    let (cookies, metrics) = (all(&page, "set-cookie"), get(&format!("{}/metrics", url.origin), &[])?.body);
    judge!(findings, "proxy", {
        status != 200 => weak "headers of 8 KiB get {status}, so some sign-ins fail: let them pass",
        !body.is_ok_and(|answer| answer.status == 405) => weak "bodies of 64 KiB do not pass: let them",
        cookies.is_empty() || !cookies.iter().all(|one| one.starts_with("__Host-") && one.contains("; Secure"))
            => broken "cookies arrive changed, or not at all: they must have __Host- and Secure",
        String::from_utf8_lossy(&metrics).contains("gatepost_build_info") => weak "everybody can read /metrics",
    } else "headers, bodies and cookies pass, /metrics does not");
    if let Some(nonce) = nonce {
        let claims = [("X-Forwarded-For", CLAIMED), ("X-Forwarded-For", CLAIMED), ("X-Forwarded-Proto", "gopher")];
        let told = get(&format!("{health}?doctor={nonce}"), &claims)?.json().unwrap_or_default();
        forwarded(&told, config, findings);
    }
    Ok(())
}

fn all<'a>(answer: &'a OutboundAnswer, name: &str) -> Vec<&'a str> {
    answer.headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect()
}

/// No machine has this address (RFC 5737).
const CLAIMED: &str = "203.0.113.9";

/// Judges what the server process saw of the false headers.
fn forwarded(told: &Value, config: &Config, findings: &mut Vec<Finding>) {
    let Some(seen) = told.get("source").and_then(Value::as_str).and_then(|source| source.parse::<IpAddr>().ok()) else {
        let causes = "another GATEPOST_SECRET_FILE, another version, or an answer of the proxy itself";
        return findings.push(Finding::broken(format!("proxy: the server behind it refuses our nonce: {causes}")));
    };
    let list = |name| told.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let fields: Vec<&str> = list("x_forwarded_for").collect();
    let entries: Vec<&str> = fields.iter().flat_map(|field| field.split(',')).map(str::trim).collect();
    let (is_chosen, is_added) = (entries.last() == Some(&CLAIMED), entries.contains(&CLAIMED));
    // Where Gatepost listens for this machine alone, the proxy is on it, and may have the address that it names.
    let (listens, trusted) = (&config.listeners.main, &config.trusted_proxies);
    let is_near = |own: IpAddr| own.is_loopback() && !is_trusted(Some(own), trusted);
    let is_doubted = matches!(listens, ListenAddress::Tcp(own) if is_near(own.ip()))
        || source(None, fields.into_iter(), trusted) != seen;
    judge!(findings, "proxy", {
        entries.is_empty() => broken "every visitor seems to come from {seen}: have it set X-Forwarded-For to the address that it sees",
        is_chosen => broken "visitors can choose their address, and evade limits: have it replace X-Forwarded-For",
        is_added && !is_chosen => weak "it adds to the X-Forwarded-For that a visitor sends: have it replace that",
        !entries.is_empty() && !is_added && is_doubted
            => broken "Gatepost does not believe it, so every visitor seems to come from {seen}: see GATEPOST_TRUSTED_PROXIES",
        list("x_forwarded_proto").any(|scheme| scheme.contains("gopher"))
            => weak "it passes on the X-Forwarded-Proto of a visitor (Gatepost does not read it): have it drop that",
    } else "it sends the address of the visitor, here {seen}, and drops what visitors send");
}
