//! `gatepost mail test`, and the links of `gatepost user invite|reset --mail`: letters that a
//! command sends itself, without the server.

use super::arguments::Invocation;
use super::client::catalogue;
use super::output::{CommandResult, Failure, misuse, refuse};
use super::user::links::LinkMaker;
use gatepost_protocol::login::letters::{stored_address, verified_address};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_server::app::letters::postman;
use gatepost_server::config::Config;
use gatepost_server::endpoints::letters::message;
use gatepost_server::outbound::Postman;
use gatepost_server::outbound::message::LetterText;
use gatepost_server::pages::language::Language;
use gatepost_server::pages::letters::{InvitationLetter, LetterFrame, ResetAccount};
use gatepost_store::clock::time_of_day;
use gatepost_store::linked_identities;
use gatepost_store::users::{self, UserRow};

/// What a letter with a link needs, before anything is done.
pub fn check(
    invocation: &Invocation,
    config: &Config,
    address: Option<&str>,
    is_theirs: bool,
) -> CommandResult<MailAddress> {
    if invocation.has("--enrol") || invocation.has("--json") {
        return misuse("--mail does not go with --enrol or --json: pass such a link on yourself");
    }
    mail_server(config, "it names the mail server")?;
    match address.map(MailAddress::parse) {
        None => refuse("that user has no e-mail address"),
        Some(Err(rule)) => refuse!("the user's e-mail address {rule}"),
        Some(Ok(_)) if !is_theirs => refuse(
            "the user's e-mail address is not verified, or only by an identity provider without \
             trust_email: pass a link on yourself",
        ),
        Some(Ok(address)) => Ok(address),
    }
}

/// Sends the user a link to set their password, or to make a passkey: at their address, in the
/// language of their claims.
pub fn send_link(maker: &LinkMaker<'_>, user: &UserRow) -> CommandResult {
    let config = &maker.operator.config;
    // Somebody may have mistyped the address of an account, or an identity provider made it up:
    // its password is not given to others.
    let store = &maker.operator.store;
    let is_new = !user.has_own_way_in() && linked_identities::of_user(store, &user.sub)?.is_empty();
    let verified = verified_address(&user.claims);
    let is_theirs = is_new || users::address_counts(store, &user.sub, verified)?;
    let address = stored_address(&user.claims);
    let to = check(maker.operator, config, address, is_theirs)?;
    let link = maker.link(user)?;
    let expires_at = maker.expires_at;
    let language = Language::of_claims(&user.claims);
    let language = language.unwrap_or_else(|| Language::of_house(config));
    let frame = frame(config, language, Some(user.called()));
    let text = match user.password_hash {
        _ if maker.is_passkey => frame.passkey(user.designation(), &link, expires_at),
        Some(_) => {
            let account = ResetAccount {
                name: user.designation(),
                link: Some(link),
            };
            frame.reset(&[account], None, expires_at)
        }
        None => {
            let catalogue = catalogue(maker.operator)?;
            let tenant = user.tenant.as_ref();
            frame.invitation(InvitationLetter {
                username: user.designation(),
                by: None,
                company: tenant.map(|tenant| catalogue.tenant_name(tenant.as_str())),
                link: &link,
                until: expires_at,
            })
        }
    };
    let answer = send(config, &to, &text, maker.operator.now()?)?;
    say!("sent to {to}; the mail server answered {answer}")
}

/// Sends a letter to somebody, and says what the server answered.
pub fn test(invocation: &Invocation) -> CommandResult {
    let config = invocation.config()?;
    let to = MailAddress::parse(invocation.value(0))
        .or_else(|rule| misuse(format!("ADDRESS {rule}")))?;
    let text = frame(&config, Language::English, None).trial();
    let answer = send(&config, &to, &text, time_of_day())?;
    say!("the mail server took the letter: {answer}")
}

fn frame<'a>(config: &'a Config, language: Language, greeted: Option<&'a str>) -> LetterFrame<'a> {
    LetterFrame {
        texts: language.texts(),
        brand: &config.brand,
        greeted,
        asked: None,
    }
}

/// `why` says what it is needed for.
pub fn mail_server(config: &Config, why: &str) -> CommandResult<Postman> {
    let postman = postman(config).map_err(Failure::Configuration)?;
    postman.ok_or_else(|| Failure::Configuration(format!("GATEPOST_SMTP_URL is required: {why}")))
}

fn send(
    config: &Config,
    to: &MailAddress,
    text: &LetterText,
    now: Instant,
) -> CommandResult<String> {
    let postman = mail_server(config, "it names the mail server")?;
    let message = message(config, to, text, now);
    let sent = postman.send(to, message.expose());
    sent.or_else(|undelivered| refuse!("the letter was not sent: {undelivered}"))
}
