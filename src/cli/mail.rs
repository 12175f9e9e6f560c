//! `gatepost mail test`, and the links of `gatepost user invite|reset --mail`: letters that a
//! command sends itself, without the server.

use std::time::Duration;

use serde_json::json;

use super::arguments::Invocation;
use super::operator::{Operator, user_event};
use super::output::{self, Failure};
use crate::app::letters::postman;
use crate::config::Config;
use crate::endpoints::letters::message;
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::outbound::Postman;
use crate::pages::language::Language;
use crate::pages::letters::{LetterFrame, LetterText, ResetAccount};
use crate::protocol::login::letters::stored_address;
use crate::protocol::login::mail_link::{MailLink, PREFIX, address_hash};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::mail_address::MailAddress;
use crate::store::installation::{self, Installation};
use crate::store::users::UserRow;
use crate::store::{audit_events, tokens};

/// Sends a letter to somebody, and says what the server answered.
pub(super) fn test(invocation: &Invocation) -> Result<(), Failure> {
    let config = invocation.config()?;
    let to = MailAddress::parse(invocation.value(0))
        .map_err(|rule| Failure::Usage(format!("ADDRESS {rule}")))?;
    let text = frame(&config, Language::English).trial();
    let answer = send(&config, Language::English, &to, &text, crate::clock::now())?;
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
