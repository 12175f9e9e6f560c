//! What letters say: as plain text, and as a document with the same sentences whose links are
//! buttons. Neither loads anything. Readers of letters know no stylesheets but those that stand at
//! each element, and no content security policy of ours holds there.

use std::net::IpAddr;

use maud::{DOCTYPE, Markup, html};

use crate::app::letters::{AccountChange, AskedBy};
use crate::config::Brand;
use crate::outbound::message::LetterText;
use crate::pages::moment;
use crate::pages::texts::{Template, Texts};
use gatepost_protocol::words::forwarded;
use gatepost_protocol::words::instant::Instant;

/// Characters of a name.
const LONGEST_NAME: usize = 60;
const PAPER: &str =
    "max-width:35em;margin:0 auto;padding:1em;font:16px/1.5 sans-serif;overflow-wrap:anywhere";
const BUTTON: &str = "display:inline-block;padding:.6em 1.2em;border-radius:.4em;\
                      background:#1f5f8b;color:#fff;font-weight:bold;text-decoration:none";

/// What every letter has.
pub struct LetterFrame<'a> {
    pub texts: &'a Texts,
    pub brand: &'a Brand,
    /// What the person is called; `None` where the address may be somebody else's.
    pub greeted: Option<&'a str>,
    /// The request that wanted it; `None` where somebody looks after the person, or a command does.
    pub asked: Option<&'a AskedBy>,
}

/// An account whose password can be set anew.
pub struct ResetAccount<'a> {
    pub name: &'a str,
    /// `None`: it has no password.
    pub link: Option<String>,
}

/// To what somebody is invited by a letter.
pub struct InvitationLetter<'a> {
    pub username: &'a str,
    /// The administrator who invites them.
    pub by: Option<&'a str>,
    /// What the organisation is called; `None` where there is only the brand.
    pub company: Option<&'a str>,
    pub link: &'a str,
    pub until: Instant,
}

/// A letter that is being written.
struct Draft<'a> {
    frame: LetterFrame<'a>,
    /// Paragraphs: as plain text, and for the document.
    plain: Vec<String>,
    html: Vec<Markup>,
}

/// A name as it stands in a letter: nothing in it begins a line, or turns what follows around.
pub fn printed(name: &str) -> String {
    let turns = |letter| {
        matches!(
            letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
    };
    name.chars()
        .filter(|letter| !letter.is_control() && !turns(*letter))
        .take(LONGEST_NAME)
        .collect()
}

impl<'a> LetterFrame<'a> {
    /// To somebody who forgot their password. `client` is where they go on to.
    pub fn reset(
        self,
        accounts: &[ResetAccount<'_>],
        client: Option<&str>,
        until: Instant,
    ) -> LetterText {
        let texts = self.texts;
        let has_link = accounts.iter().any(|account| account.link.is_some());
        let mut draft = self.begin();
        if has_link {
            draft = draft.say(texts.letter_reset);
        }
        for account in accounts {
            let about = texts.letter_account.fill(account.name);
            draft = match &account.link {
                Some(link) => draft.link(&about, texts.set_password_title, link),
                None => draft.say(&format!("{about}\n{}", texts.letter_no_password)),
            };
        }
        if has_link {
            draft = draft.until(until);
            if let Some(client) = client {
                draft = draft.say(&texts.letter_goes_on.fill(&printed(client)));
            }
        }
        draft
            .source()
            .say(texts.letter_not_you)
            .end(texts.letter_reset_subject)
    }

    /// To somebody for whom there is an account.
    pub fn invitation(self, to: InvitationLetter<'_>) -> LetterText {
        let LetterFrame { texts, brand, .. } = self;
        let mut draft = self.begin();
        if let Some(by) = to.by {
            draft = draft.say(&texts.letter_invited_by.fill(&printed(by)));
        }
        let company = printed(to.company.unwrap_or(&brand.name));
        draft
            .say(&texts.letter_invitation.fill(&company))
            .say(texts.letter_choose_password)
            .link(
                &texts.letter_account.fill(to.username),
                texts.set_password_title,
                to.link,
            )
            .until(to.until)
            .say(texts.letter_unexpected)
            .end(texts.letter_invitation_subject)
    }

    /// To somebody who shall have a passkey and no password.
    pub fn passkey(self, username: &str, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        let about = texts.letter_account.fill(username);
        self.begin()
            .say(texts.letter_passkey)
            .link(&about, texts.set_passkey_title, link)
            .until(until)
            .say(texts.letter_unexpected)
            .end(texts.letter_invitation_subject)
    }

    /// To somebody who wants to make an account.
    pub fn join(self, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        self.begin()
            .link(texts.letter_join, texts.join_title, link)
            .until(until)
            .source()
            .say(texts.letter_join_not_you)
            .end(texts.letter_join_subject)
    }

    /// To an address that has an account already.
    pub fn held_address(self) -> LetterText {
        let texts = self.texts;
        self.begin()
            .say(texts.letter_join_held)
            .source()
            .say(texts.letter_join_not_you)
            .end(texts.letter_join_subject)
    }

    /// To an address that somebody wants for their account.
    pub fn new_address(self, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        self.begin()
            .link(texts.letter_address, texts.confirm_address_title, link)
            .until(until)
            .source()
            .say(texts.letter_not_you)
            .end(texts.letter_address_subject)
    }

    /// About a change of somebody's account. `by` is the administrator who made it, from whose
    /// browser the request came: nothing of that is told. `page` is where the person looks after
    /// their account.
    pub fn notice(
        self,
        username: &str,
        change: AccountChange,
        by: Option<&str>,
        page: &str,
    ) -> LetterText {
        let texts = self.texts;
        let about = texts.letter_account.fill(username);
        let told = match change {
            AccountChange::Ends(end) => {
                let end = moment::end_in_words(texts, end);
                return self
                    .begin()
                    .say(&texts.letter_ends.fill(&end))
                    .link(&about, texts.account_title, page)
                    .say(texts.letter_ends_advice)
                    .end(texts.letter_ends_subject);
            }
            AccountChange::Password => texts.notice_password,
            AccountChange::PasswordRemoved => texts.notice_password_removed,
            AccountChange::Address => texts.notice_address,
            AccountChange::FactorAdded => texts.notice_factor_added,
            // An administrator removes all at once.
            AccountChange::FactorRemoved if by.is_some() => texts.notice_factors_removed,
            AccountChange::FactorRemoved => texts.notice_factor_removed,
            AccountChange::RecoveryCodes => texts.notice_recovery_codes,
            AccountChange::Linked => texts.notice_linked,
            AccountChange::Unlinked => texts.notice_unlinked,
        };
        let draft = self.begin().say(told);
        let draft = match by {
            Some(name) => draft
                .moment()
                .say(&texts.letter_notice_by.fill(&printed(name))),
            None => draft
                .source()
                .say(&texts.letter_notice_press.fill(texts.end_other_sessions)),
        };
        draft
            .link(&about, texts.account_title, page)
            .say(texts.letter_notice_not_you)
            .end(texts.letter_notice_subject)
    }

    /// About a sign-in in a browser that is new to them.
    pub fn new_browser(self, username: &str, link: &str, until: Instant) -> LetterText {
        let texts = self.texts;
        self.begin()
            .say(texts.letter_new_browser)
            .asked_from(texts.letter_network, forwarded::shown_network)
            .say(texts.letter_new_browser_yours)
            .say(texts.letter_not_me)
            .link(&texts.letter_account.fill(username), texts.not_me, link)
            .until(until)
            .end(texts.letter_new_browser_subject)
    }

    /// To an administrator, about somebody whose account the link in such a letter disabled. `page`
    /// is where administrators look after people.
    pub fn disabled(self, username: &str, page: &str) -> LetterText {
        let texts = self.texts;
        let about = texts.letter_account.fill(username);
        self.begin()
            .say(texts.letter_disabled)
            .moment()
            .link(&about, texts.admin_title, page)
            .end(texts.letter_disabled_subject)
    }

    /// To try the mail server. For operators, in English.
    pub fn trial(self) -> LetterText {
        self.begin()
            .say("gatepost mail test sent this letter.")
            .end(Template("Letters from {} arrive"))
    }

    fn begin(self) -> Draft<'a> {
        let LetterFrame { texts, greeted, .. } = self;
        let draft = Draft {
            frame: self,
            plain: Vec::new(),
            html: Vec::new(),
        };
        match greeted {
            Some(name) => draft.say(&texts.letter_greeting.fill(&printed(name))),
            None => draft,
        }
    }
}

impl Draft<'_> {
    fn say(mut self, lines: &str) -> Self {
        self.plain.push(lines.to_owned());
        self.html.push(html! {
            p { @for line in lines.lines() { (line) br; "\n" } }
        });
        self
    }

    fn link(mut self, about: &str, button: &str, address: &str) -> Self {
        self.plain.push(format!("{about}\n{address}"));
        self.html.push(html! {
            p { (about) }
            "\n"
            p { a href=(address) style=(BUTTON) { (button) } }
        });
        self
    }

    fn until(self, until: Instant) -> Self {
        let texts = self.frame.texts;
        self.say(&texts.letter_until.fill(&moment::in_utc(texts, until)))
    }

    /// From where it was asked for, when and by which browser.
    fn source(self) -> Self {
        let sentence = self.frame.texts.letter_source;
        self.asked_from(sentence, |address| address.to_canonical().to_string())
    }

    /// The same, with as much of the address as is shown.
    fn asked_from(self, sentence: Template, shown: fn(IpAddr) -> String) -> Self {
        let LetterFrame { texts, asked, .. } = self.frame;
        let Some(asked) = asked else { return self };
        let moment = moment::in_utc(texts, asked.at);
        let mut lines = vec![
            sentence.fill(&shown(asked.source)),
            texts.letter_moment.fill(&moment),
        ];
        if let Some(browser) = &asked.browser {
            lines.push(texts.letter_browser.fill(browser));
        }
        self.say(&lines.join("\n"))
    }

    /// When it was asked for.
    fn moment(self) -> Self {
        let LetterFrame { texts, asked, .. } = self.frame;
        let Some(asked) = asked else { return self };
        self.say(&texts.letter_moment.fill(&moment::in_utc(texts, asked.at)))
    }

    /// `subject` has a place for the brand.
    fn end(mut self, subject: Template) -> LetterText {
        let LetterFrame { texts, brand, .. } = self.frame;
        if let Some(url) = &brand.help_url {
            let shown = url.strip_prefix("mailto:").unwrap_or(url);
            self = self.say(&texts.letter_help.fill(shown));
        }
        let language = texts.language.tag();
        let subject = subject.fill(&printed(&brand.name));
        // Lines go as they are, where they are short enough.
        let document = html! {
            (DOCTYPE)
            html lang=(language) {
                head {
                    meta name="viewport" content="width=device-width";
                    title { (subject) }
                }
                "\n"
                body style=(PAPER) { @for part in &self.html { (part) "\n" } }
            }
        };
        LetterText {
            language,
            subject,
            text: self.plain.join("\n\n") + "\n",
            html: document.into_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::pages::language::Language;

    /// Somebody else reads it: nothing of the administrator but their name, and that within bounds.
    #[test]
    fn a_notice_of_what_an_administrator_did_says_who_and_not_from_where() {
        let asked = AskedBy {
            source: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
            request_id: String::new(),
            language: "en",
            browser: Some(String::from("Firefox · Linux")),
            at: Instant::from_seconds(0),
        };
        let by = String::from("Bo\r\nss\u{202e}") + &"y".repeat(60);
        let shown = String::from("Boss") + &"y".repeat(56);
        let brand = Brand {
            name: String::from("Wonderland"),
            logo: None,
            color: None,
            privacy_url: None,
            terms_url: None,
            help_url: None,
        };
        for language in Language::ALL {
            let texts = language.texts();
            for (change, told) in [
                (AccountChange::FactorRemoved, texts.notice_factors_removed),
                (AccountChange::Address, texts.notice_address),
            ] {
                let frame = LetterFrame {
                    texts,
                    brand: &brand,
                    greeted: Some("Tess"),
                    asked: Some(&asked),
                };
                let letter = frame.notice("tess", change, Some(&by), "https://id.example/account");
                for part in [&letter.text, &letter.html] {
                    assert!(part.contains(told), "{part}");
                    assert!(
                        part.contains(&texts.letter_notice_by.fill(&shown)),
                        "{part}"
                    );
                    assert!(part.contains("1970"), "{part}");
                    assert!(
                        !part.contains("192.0.2.7") && !part.contains("Firefox"),
                        "{part}"
                    );
                    assert!(!part.contains(texts.end_other_sessions), "{part}");
                }
            }
        }
        let texts = Language::English.texts();
        assert!(texts.letter_notice_by.0.starts_with("{} did this."));
    }
}
