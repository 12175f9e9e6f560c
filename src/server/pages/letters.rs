//! What letters say. They are plain text, and load nothing.

use std::net::IpAddr;

use crate::app::letters::AccountChange;
use crate::config::Brand;
use crate::pages::moment;
use crate::pages::texts::Texts;
use gatepost_protocol::words::instant::Instant;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LetterText {
    pub subject: String,
    pub text: String,
}

/// What every letter has.
#[derive(Clone, Copy, Debug)]
pub struct LetterFrame<'a> {
    pub texts: &'a Texts,
    pub brand: &'a Brand,
    /// Where it was asked for; `None` where you asked for it.
    pub source: Option<IpAddr>,
}

/// An account whose password can be set anew.
#[derive(Clone, Debug)]
pub struct ResetAccount<'a> {
    pub name: &'a str,
    /// `None`: it has no password.
    pub link: Option<String>,
}

impl LetterFrame<'_> {
    /// To somebody who forgot their password. `client` is where they go on to.
    pub fn reset(
        &self,
        accounts: &[ResetAccount<'_>],
        client: Option<&str>,
        until: Instant,
    ) -> LetterText {
        let texts = self.texts;
        let mut paragraphs = Vec::new();
        let has_link = accounts.iter().any(|account| account.link.is_some());
        if has_link {
            paragraphs.push(texts.letter_reset.to_owned());
        }
        for account in accounts {
            let told = account.link.as_deref().unwrap_or(texts.letter_no_password);
            let name = texts.letter_account.fill(account.name);
            paragraphs.push(format!("{name}\n{told}"));
        }
        if has_link {
            paragraphs.push(self.until(until));
            paragraphs.extend(client.map(|name| texts.letter_goes_on.fill(name)));
        }
        paragraphs.extend(self.source());
        paragraphs.push(texts.letter_not_you.to_owned());
        self.letter(
            texts.letter_reset_subject.fill(&self.brand.name),
            paragraphs,
        )
    }

    /// To somebody for whom there is an account.
    pub fn invitation(&self, username: &str, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        self.letter(
            texts.letter_invitation_subject.fill(&self.brand.name),
            vec![
                texts.letter_invitation.to_owned(),
                format!("{}\n{link}", texts.letter_account.fill(username)),
                self.until(until),
            ],
        )
    }

    /// To somebody who shall have a passkey and no password.
    pub fn passkey(&self, username: &str, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        self.letter(
            texts.letter_invitation_subject.fill(&self.brand.name),
            vec![
                texts.letter_passkey.to_owned(),
                format!("{}\n{link}", texts.letter_account.fill(username)),
                self.until(until),
            ],
        )
    }

    /// To somebody who wants to make an account.
    pub fn join(&self, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        let mut paragraphs = vec![format!("{}\n{link}", texts.letter_join), self.until(until)];
        paragraphs.extend(self.source());
        paragraphs.push(texts.letter_join_not_you.to_owned());
        self.letter(texts.letter_join_subject.fill(&self.brand.name), paragraphs)
    }

    /// To an address that has an account already.
    pub fn held_address(&self) -> LetterText {
        let texts = self.texts;
        let mut paragraphs = vec![texts.letter_join_held.to_owned()];
        paragraphs.extend(self.source());
        paragraphs.push(texts.letter_join_not_you.to_owned());
        self.letter(texts.letter_join_subject.fill(&self.brand.name), paragraphs)
    }

    /// To an address that somebody wants for their account.
    pub fn new_address(&self, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        let mut paragraphs = vec![
            format!("{}\n{link}", texts.letter_address),
            self.until(until),
        ];
        paragraphs.extend(self.source());
        paragraphs.push(texts.letter_not_you.to_owned());
        self.letter(
            texts.letter_address_subject.fill(&self.brand.name),
            paragraphs,
        )
    }

    /// About a change of somebody's account.
    pub fn notice(&self, username: &str, change: AccountChange) -> LetterText {
        let texts = self.texts;
        let told = match change {
            AccountChange::Password => texts.notice_password,
            AccountChange::PasswordRemoved => texts.notice_password_removed,
            AccountChange::Address => texts.notice_address,
            AccountChange::FactorAdded => texts.notice_factor_added,
            AccountChange::FactorRemoved => texts.notice_factor_removed,
            AccountChange::Linked => texts.notice_linked,
            AccountChange::Unlinked => texts.notice_unlinked,
        };
        let mut paragraphs = vec![told.to_owned(), texts.letter_account.fill(username)];
        paragraphs.extend(self.source());
        paragraphs.push(texts.letter_notice_not_you.to_owned());
        self.letter(
            texts.letter_notice_subject.fill(&self.brand.name),
            paragraphs,
        )
    }

    /// To try the mail server. For operators, in English.
    pub fn trial(&self) -> LetterText {
        let name = &self.brand.name;
        self.letter(
            format!("Letters from {name} arrive"),
            vec![String::from("gatepost mail test sent this letter.")],
        )
    }

    fn until(&self, until: Instant) -> String {
        let moment = moment::in_utc(self.texts, until);
        self.texts.letter_until.fill(&moment)
    }

    fn source(&self) -> Option<String> {
        let source = self.source?.to_canonical().to_string();
        Some(self.texts.letter_source.fill(&source))
    }

    fn letter(&self, subject: String, mut paragraphs: Vec<String>) -> LetterText {
        let help = self.brand.help_url.as_deref();
        let shown = |url: &str| url.strip_prefix("mailto:").unwrap_or(url).to_owned();
        paragraphs.extend(help.map(|url| self.texts.letter_help.fill(&shown(url))));
        LetterText {
            subject,
            text: paragraphs.join("\n\n") + "\n",
        }
    }
}
