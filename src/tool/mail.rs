//! `gatepost mail test`, and the links of `gatepost user invite|reset --mail`: letters that a
//! command sends itself, without the server.

use std::time::Duration;

use serde_json::{Value, json};

use super::arguments::Invocation;
use super::operator::Operator;
use super::output::{self, Failure};
use gatepost_protocol::login::letters::{stored_address, verified_address};
use gatepost_protocol::login::mail_link::{MailLink, PREFIX, address_hash};
use gatepost_protocol::login::password_link::{
    LinkOrigin, PASSKEY_PREFIX, PasskeyLink, PasswordLink,
};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_registrar::events::user_event;
use gatepost_server::app::letters::postman;
use gatepost_server::config::Config;
use gatepost_server::endpoints::letters::message;
use gatepost_server::keys::master::Purpose;
use gatepost_server::keys::sealing::Sealer;
use gatepost_server::outbound::Postman;
use gatepost_server::pages::language::Language;
use gatepost_server::pages::letters::{LetterFrame, LetterText, ResetAccount};
use gatepost_store::clock::time_of_day;
use gatepost_store::installation::{self, Installation};
use gatepost_store::users::{self, UserRow};
use gatepost_store::{audit_events, linked_identities};

/// What a letter with a link needs, before anything is done.
pub(super) fn check(
    invocation: &Invocation,
    config: &Config,
    address: Option<&str>,
    is_theirs: bool,
) -> Result<MailAddress, Failure> {
    if invocation.has("--enrol") || invocation.has("--json") {
        let rule = "--mail does not go with --enrol or --json: pass such a link on yourself";
        return Err(Failure::usage(rule));
    }
    needed(config)?;
    let refused = |rule: String| Err(Failure::Refused(rule));
    match address.map(MailAddress::parse) {
        None => refused(String::from("that user has no e-mail address")),
        Some(Err(rule)) => refused(format!("the user's e-mail address {rule}")),
        Some(Ok(_)) if !is_theirs => refused(String::from(
            "the user's e-mail address is not verified, or only by an identity provider without \
             trust_email: pass a link on yourself",
        )),
        Some(Ok(address)) => Ok(address),
    }
}

/// Sends the user a link to set their password, or to make a passkey: at their address, in the
/// language of their claims.
pub(super) fn send_link(
    operator: &Operator,
    installation: &Installation,
    invocation: &Invocation,
    user: &UserRow,
    lifetime: Duration,
) -> Result<(), Failure> {
    let config = &operator.config;
    // Somebody may have mistyped the address of an account, or an identity provider made it up:
    // its password is not given to others.
    let store = &operator.store;
    let is_new = !user.has_own_way_in() && linked_identities::of_user(store, &user.sub)?.is_empty();
    let verified = verified_address(&user.claims);
    let is_theirs = is_new || users::address_counts(store, &user.sub, verified)?;
    let address = stored_address(&user.claims);
    let to = check(invocation, config, address, is_theirs)?;
    let now = operator.now()?;
    let expires_at = now.plus(lifetime);
    let installation_epoch = installation::epoch(&operator.store)?;
    let derived = operator
        .master_secret()?
        .derive(&installation.id, &installation.issuer);
    let is_passkey = invocation.has("--passkey");
    let sealed = if is_passkey {
        let link = PasswordLink {
            user: user.of_link(installation_epoch),
            factors: user.factors,
            origin: LinkOrigin::Plain,
            expires_at,
        };
        let link = PasskeyLink {
            link,
            address_hash: Some(address_hash(&user.claims)),
        };
        Sealer::new(&derived, Purpose::PasskeyLink).seal_text(PASSKEY_PREFIX, &link)
    } else {
        let link = MailLink {
            user: user.of_link(installation_epoch),
            factors: user.factors,
            address_hash: address_hash(&user.claims),
            expires_at,
            origin: LinkOrigin::Plain,
        };
        Sealer::of_kinds(&derived, Purpose::MailLink).seal_text(PREFIX, &link)
    };
    let address = format!("{}/account/link?l={sealed}", config.base_url.as_str());
    let locale = user.claims.get("locale").and_then(Value::as_str);
    let language = locale.and_then(Language::asked_for);
    let language = language.unwrap_or_else(|| Language::of_house(config));
    let frame = frame(config, language);
    let text = match user.password_hash {
        _ if is_passkey => frame.passkey(user.designation(), &address, expires_at),
        Some(_) => {
            let account = ResetAccount {
                name: user.designation(),
                link: Some(address),
            };
            frame.reset(&[account], None, expires_at)
        }
        None => frame.invitation(user.designation(), &address, expires_at),
    };
    let detail = json!({"by": "operator", "expires_at": output::time(expires_at), "mail": true});
    audit_events::insert(&operator.store, &user_event("link_made", &user.sub, detail))?;
    let answer = send(config, language, &to, &text, now)?;
    output::line(&format!("sent to {to}; the mail server answered {answer}"))
}

/// Sends a letter to somebody, and says what the server answered.
pub(super) fn test(invocation: &Invocation) -> Result<(), Failure> {
    let config = invocation.config()?;
    let to = MailAddress::parse(invocation.value(0))
        .map_err(|rule| Failure::Usage(format!("ADDRESS {rule}")))?;
    let text = frame(&config, Language::English).trial();
    let answer = send(&config, Language::English, &to, &text, time_of_day())?;
    output::line(&format!("the mail server took the letter: {answer}"))
}

fn frame(config: &Config, language: Language) -> LetterFrame<'_> {
    LetterFrame {
        texts: language.texts(),
        brand: &config.brand,
        source: None,
    }
}

fn needed(config: &Config) -> Result<Postman, Failure> {
    let postman = postman(config).map_err(Failure::Configuration)?;
    let missing = "GATEPOST_SMTP_URL is required: it names the mail server";
    postman.ok_or_else(|| Failure::Configuration(String::from(missing)))
}

fn send(
    config: &Config,
    language: Language,
    to: &MailAddress,
    text: &LetterText,
    now: Instant,
) -> Result<String, Failure> {
    let postman = needed(config)?;
    let message = message(config, language.tag(), to, text, now);
    let sent = postman.send(to, message.expose());
    sent.map_err(|undelivered| Failure::Refused(format!("the letter was not sent: {undelivered}")))
}
