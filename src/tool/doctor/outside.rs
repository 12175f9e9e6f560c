//! What a visitor sees, through the proxy.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};

use serde_json::Value;

use super::{Inside, Nonces};
use crate::healthcheck;
use crate::output::{CommandResult, Failure};
use gatepost_protocol::discovery::{CONFIGURATION_PATH, TOKEN_PATH, USERINFO_PATH};
use gatepost_protocol::words::forwarded::{Cidr, is_trusted, source};
use gatepost_protocol::words::json::Members;
use gatepost_protocol::words::web_url::WebUrl;
use gatepost_registration::finding::Finding;
use gatepost_server::config::{Config, ListenAddress};
use gatepost_server::outbound::{Outbound, OutboundAnswer, OutboundError, OutboundRequest};

mod bound_session;
mod certificate;
mod proofs;
mod rsa_key_exchange;

use certificate::days_left;
use gatepost_registration::{broken, fine};
use rsa_key_exchange::takes_rsa_key_exchange;

/// No machine has this address (RFC 5737).
const CLAIMED: &str = "203.0.113.9";
/// The address of a page carries a sealed request of up to so many characters.
const LONG_ADDRESS: usize = 7_000;
/// Some proxies have room for 4 KiB.
const LONG_FIELD: usize = 5_000;
/// A version that somebody names who changes it.
const VERSION: &str = "W/\"1\"";
const HEALTH: &str = "/healthz";
const SCIM_USERS: &str = "/scim/v2/Users";

type Fields<'a> = &'a [(&'static str, &'a str)];

struct Visitor<'a> {
    config: &'a Config,
    base: &'a str,
    url: WebUrl<'a>,
    outbound: Outbound,
}

pub fn examine(
    config: &Config,
    inside: Option<Inside>,
    findings: &mut Vec<Finding>,
) -> CommandResult {
    let visitor = Visitor::new(config)?;
    let document = visitor.discover()?;
    findings.push(fine!("{}: it answers, and is the issuer", visitor.base));
    if !visitor.url.https {
        findings.push(fine!(
            "proxy: not looked at, as this base URL is for this machine alone"
        ));
        return Ok(());
    }
    visitor.judge_tls(&document, findings)?;
    let takes_posts = visitor.judge_bodies(findings)?;
    if let Some(inside) = inside {
        visitor.judge_fields(inside, takes_posts, findings);
    }
    Ok(())
}

impl Visitor<'_> {
    fn new(config: &Config) -> CommandResult<Visitor<'_>> {
        let base = config.base_url.as_str();
        let url = WebUrl::parse(base).map_err(Failure::refused)?;
        // Our own name may lead to a private address.
        let everywhere = [Cidr::v4([0; 4], 0), Cidr::v6([0; 2], 0)];
        let outbound = Outbound::new(&everywhere, config.ca_file.as_deref(), 1)
            .map_err(Failure::Configuration)?;
        Ok(Visitor {
            config,
            base,
            url,
            outbound,
        })
    }

    fn ask(&self, path: &str, fields: Fields<'_>) -> Result<OutboundAnswer, OutboundError> {
        let address = format!("{}{path}", self.base);
        let mut request = OutboundRequest::get(&address);
        for (name, value) in fields {
            request = request.header(name, value);
        }
        self.outbound.send_to_ourselves(&request)
    }

    /// What the server is asked to tell; nothing where somebody else answers.
    fn arrived(
        &self,
        path: &str,
        nonces: &mut Nonces,
        fields: Fields<'_>,
    ) -> Result<Value, String> {
        let answer = self.ask(&format!("{path}?doctor={}", nonces.next()), fields);
        told(&answer).ok_or_else(|| outcome(answer))
    }

    fn refused(&self, fault: impl fmt::Display) -> Failure {
        Failure::Refused(format!("{}: {fault}", self.base))
    }

    fn unreachable(&self, error: &str) -> Failure {
        let hint = if error.contains("certificate") {
            "."
        } else {
            "; do the proxy and `gatepost serve` run?"
        };
        self.refused(format!(
            "{error}{hint} The rest cannot be seen from outside"
        ))
    }

    fn discover(&self) -> CommandResult<OutboundAnswer> {
        let document = match self.ask(CONFIGURATION_PATH, &[]) {
            Ok(document) => document,
            Err(error) => return Err(self.unreachable(&error.to_string())),
        };
        let issuer = document
            .json()
            .and_then(|document| document.get("issuer").cloned())
            .unwrap_or_default();
        if issuer == self.base {
            return Ok(document);
        }
        Err(self.refused(if issuer.is_null() {
            let status = document.status;
            format!(
                "discovery answers {status}: is `gatepost serve` running, and does the proxy lead \
                 to it?"
            )
        } else {
            format!(
                "discovery has the issuer {issuer}, which must be GATEPOST_BASE_URL, byte for byte"
            )
        }))
    }

    fn judge_tls(&self, document: &OutboundAnswer, findings: &mut Vec<Finding>) -> CommandResult {
        let host = self.url.host.trim_matches(['[', ']']);
        let port = self.url.port.unwrap_or(443);
        let days = days_left(host, port, self.config.ca_file.as_deref(), 90);
        let days = days.map_err(|error| self.refused(error))?;
        let stays = |value: &&str| value.contains("max-age=") && !value.contains("max-age=0");
        // With another port for https, port 80 is not ours to judge.
        let redirects = self.url.port.is_some() || self.redirects_http(host);
        judge!(findings, "TLS", {
            days < 21 => weak "the certificate ends in {days} days: renew it",
            takes_rsa_key_exchange(host, port).unwrap_or(false)
                => weak "RSA key exchange is taken, so who gets the key later can read it all: \
                         have the proxy take ECDHE alone",
            !all(document, "strict-transport-security").iter().any(stays)
                => weak "browsers may come back by http: have the proxy add \
                         Strict-Transport-Security",
            !redirects => weak "http does not redirect to https",
        } else "the certificate is good for {days} days (90 are looked at), and browsers stay with \
                https");
        Ok(())
    }

    /// Whether http leads on to https, as far as anything answers there.
    fn redirects_http(&self, host: &str) -> bool {
        let Ok(mut found) = (host, 80).to_socket_addrs() else {
            return true;
        };
        let Some(address) = found.next() else {
            return true;
        };
        match healthcheck::over_tcp(address, self.url.host, "/") {
            Ok(answer) => answer.status.contains(" 30"),
            Err(_) => true,
        }
    }

    /// Whether the server gets what is posted to it.
    fn judge_bodies(&self, findings: &mut Vec<Finding>) -> CommandResult<bool> {
        let address = format!("{}{TOKEN_PATH}", self.base);
        let small = OutboundRequest::post_form(&address, &[("doctor", "")]);
        let small = self.outbound.send_to_ourselves(&small);
        let takes_posts = small.as_ref().is_ok_and(is_our_error);
        let small = outcome(small);
        // What we, and a page in place of our answer, have; who refuses a method has another.
        let is_replaced = !takes_posts && ["200", "400", "401"].contains(&small.as_str());
        // That address takes no POST: 405 says that the body came through, and nothing has changed.
        let address = format!("{}{HEALTH}", self.base);
        let form = "a".repeat(65_529);
        let whole = OutboundRequest::post_form(&address, &[("doctor", &form)]);
        let whole = outcome(self.outbound.send_to_ourselves(&whole));
        let chunked = OutboundRequest::post_form(&address, &[("doctor", "")])
            .header("Transfer-Encoding", "chunked");
        let chunked = outcome(self.outbound.send_to_ourselves(&chunked));
        let passed = if chunked == "405" {
            "made whole"
        } else {
            "answered 411"
        };
        let page = self
            .ask("/device", &[])
            .map_err(|error| self.refused(error))?;
        let cookies = all(&page, "set-cookie");
        let metrics = format!("{}/metrics", self.url.origin);
        let metrics = self
            .outbound
            .send_to_ourselves(&OutboundRequest::get(&metrics));
        let metrics = metrics.map(|answer| answer.body).unwrap_or_default();
        judge!(findings, "proxy", {
            is_replaced
                => broken "a POST to {TOKEN_PATH} gets {small}, and not from Gatepost: have the \
                           proxy pass answers on, errors too, and put none in their place",
            !takes_posts && !is_replaced
                => broken "a POST to {TOKEN_PATH} gets {small}, and not from Gatepost: have the \
                           proxy pass every method on",
            takes_posts && whole != "405" => weak "a body of 64 KiB gets {whole}: let it pass",
            takes_posts && chunked != "405" && chunked != "411"
                => weak "a body in chunks gets {chunked}: have the proxy make it whole, or answer \
                         411",
            cookies.is_empty() || !cookies.iter().all(|cookie| is_kept(cookie))
                => broken "cookies arrive changed, or not at all: they must have __Host-, \
                           Secure and Path=/, and no Domain",
            String::from_utf8_lossy(&metrics).contains("gatepost_build_info")
                => weak "everybody can read /metrics",
        } else "bodies and cookies pass, /metrics does not; a body in chunks is {passed}");
        Ok(takes_posts)
    }

    fn judge_fields(&self, inside: Inside, takes_posts: bool, findings: &mut Vec<Finding>) {
        let mut nonces = inside.nonces;
        let claims = [
            ("X-Forwarded-For", CLAIMED),
            ("X-Forwarded-For", CLAIMED),
            ("X-Forwarded-Proto", "gopher"),
        ];
        let told = self
            .arrived(HEALTH, &mut nonces, &claims)
            .unwrap_or_default();
        let seen = told.text("source").and_then(|source| source.parse().ok());
        let Some(seen) = seen.filter(|_| told.get("lengths").is_some()) else {
            let causes =
                "another GATEPOST_SECRET_FILE, another version, or an answer of the proxy itself";
            return findings.push(broken!(
                "proxy: the server behind it refuses our nonce: {causes}"
            ));
        };
        judge_source(&told, seen, self.config, findings);
        let cookie = format!("__Host-gatepost-doctor={}", "a".repeat(LONG_FIELD));
        let token = format!("Bearer {}", "a".repeat(LONG_FIELD));
        let of_page = [("Cookie", cookie.as_str())];
        let of_program = [("Authorization", token.as_str())];
        let at_page = self.arrived(HEALTH, &mut nonces, &of_page);
        let at_program = self.arrived(USERINFO_PATH, &mut nonces, &of_program);
        let long_address =
            outcome(self.ask(&format!("{HEALTH}?{}", "a".repeat(LONG_ADDRESS)), &[]));
        let mut dropped = Vec::new();
        let mut cut = Vec::new();
        if long_address != "200" {
            cut.push(format!(
                "an address of {LONG_ADDRESS} characters gets {long_address}"
            ));
        }
        for (name, value, told) in [
            ("Cookie", &cookie, &at_page),
            ("Authorization", &token, &at_program),
        ] {
            match told
                .as_ref()
                .map(|told| lengths(told, name).iter().sum::<u64>())
            {
                Ok(0) => dropped.push(name),
                Ok(length) if usize::try_from(length) == Ok(value.len()) => {}
                Ok(length) => cut.push(format!(
                    "of {name} {length} of {} characters arrive",
                    value.len()
                )),
                Err(answer) => cut.push(format!(
                    "{name} of {} characters gets {answer}",
                    value.len()
                )),
            }
        }
        // SCIM clients name the version that they change.
        if self.config.scim {
            let told = self.arrived(SCIM_USERS, &mut nonces, &[("If-Match", VERSION)]);
            let versions = told.map(|told| lengths(&told, "If-Match"));
            if versions.is_ok_and(|lines| lines != [VERSION.len() as u64]) {
                dropped.push("If-Match");
            }
        }
        let dropped = dropped.join(" and ");
        let cut = cut.join(", ");
        judge!(findings, "proxy", {
            !dropped.is_empty() => broken "it drops {dropped}: have it pass them on",
            !cut.is_empty() => weak "{cut}, so some sign-ins fail: make room for 16 KiB",
        } else "long addresses and header fields pass");
        proofs::judge(self, &mut nonces, &inside.proving, findings);
        if self.config.bound_sessions && takes_posts {
            bound_session::judge(self, &inside.bound_sessions, nonces.latest, findings);
        }
    }
}

/// Whether it is the token endpoint that answered, and not the proxy.
fn is_our_error(answer: &OutboundAnswer) -> bool {
    let told = answer.json().unwrap_or_default();
    told.get("error").is_some() && answer.headers.contains_key("x-request-id")
}

/// Whether browsers keep it: with `__Host-` in front they drop any other path, and any domain.
fn is_kept(cookie: &str) -> bool {
    let has = |attribute: &str| cookie.split("; ").any(|one| one == attribute);
    cookie.starts_with("__Host-") && has("Secure") && has("Path=/") && !cookie.contains("; Domain=")
}

/// What the server tells `gatepost doctor`; nothing where somebody else answered.
fn told(answer: &Result<OutboundAnswer, OutboundError>) -> Option<Value> {
    let answer = answer.as_ref().ok().filter(|answer| answer.status == 200)?;
    answer.json()
}

/// A status, or why there is none.
fn outcome(answer: Result<OutboundAnswer, OutboundError>) -> String {
    match answer {
        Ok(answer) => answer.status.to_string(),
        Err(error) => error.to_string(),
    }
}

fn all<'a>(answer: &'a OutboundAnswer, name: &str) -> Vec<&'a str> {
    answer
        .headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect()
}

/// Of the lines of that name which arrived.
fn lengths(told: &Value, name: &str) -> Vec<u64> {
    let lengths = told.member("lengths").unwrap_or(&Value::Null);
    let lines = lengths.items(name).iter();
    lines.filter_map(Value::as_u64).collect()
}

/// Judges what the server process saw of the false header fields.
fn judge_source(told: &Value, seen: IpAddr, config: &Config, findings: &mut Vec<Finding>) {
    let fields = || told.texts("x_forwarded_for");
    let mut schemes = told.texts("x_forwarded_proto");
    let entries: Vec<&str> = fields()
        .flat_map(|field| field.split(','))
        .map(str::trim)
        .collect();
    let is_chosen = entries.last() == Some(&CLAIMED);
    let is_added = entries.contains(&CLAIMED);
    let is_doubted =
        distrusts_this_machine(config) || source(None, fields(), &config.trusted_proxies) != seen;
    judge!(findings, "proxy", {
        entries.is_empty()
            => broken "every visitor seems to come from {seen}: have it set X-Forwarded-For to the \
                       address that it sees",
        is_chosen
            => broken "visitors can choose their address, and evade limits: have it replace \
                       X-Forwarded-For",
        is_added && !is_chosen
            => weak "it adds to the X-Forwarded-For that a visitor sends: have it replace that",
        !entries.is_empty() && !is_added && is_doubted
            => broken "Gatepost does not believe it, so every visitor seems to come from {seen}: \
                       see GATEPOST_TRUSTED_PROXIES",
        schemes.any(|scheme| scheme.contains("gopher"))
            => weak "it passes on the X-Forwarded-Proto of a visitor (Gatepost does not read it): \
                     have it drop that",
    } else "it sends the address of the visitor, here {seen}, and drops what visitors send");
}

/// Where Gatepost listens for this machine alone, the proxy is on it, and may have the address that
/// it names.
fn distrusts_this_machine(config: &Config) -> bool {
    let ListenAddress::Tcp(own) = &config.listeners.main else {
        return false;
    };
    let own = own.ip();
    own.is_loopback() && !is_trusted(Some(own), &config.trusted_proxies)
}
