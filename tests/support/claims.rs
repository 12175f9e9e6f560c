//! What tests claim of answers and texts, in one step each. Each shows what came instead.
//!
//! Where the same is claimed of many cases, the claims that end in `_for` take the case's name
//! first.

use std::fmt::Display;

use serde_json::Value;

use super::http::Answer;
use super::postgres::TestDatabase;

impl Answer {
    #[track_caller]
    pub fn assert_status(&self, status: u16) {
        self.assert_status_for("the answer", status);
    }

    #[track_caller]
    pub fn assert_status_for(&self, case: impl Display, status: u16) {
        assert_eq!(self.status, status, "{case}: {}", self.shown());
    }

    /// It has this status, and leads nowhere.
    #[track_caller]
    pub fn assert_stays(&self, status: u16) {
        self.assert_stays_for("the answer", status);
    }

    #[track_caller]
    pub fn assert_stays_for(&self, case: impl Display, status: u16) {
        let found = (self.status, self.header("location"));
        assert_eq!(found, (status, None), "{case}: {}", self.shown());
    }

    /// It redirects to an address that begins like this.
    #[track_caller]
    pub fn assert_leads_to(&self, start: &str) {
        self.assert_leads_to_for("the answer", start);
    }

    #[track_caller]
    pub fn assert_leads_to_for(&self, case: impl Display, start: &str) {
        let leads = self.location().starts_with(start);
        assert!(leads, "{case} does not lead to {start}: {}", self.shown());
    }

    /// The query of the address to which it redirects has a parameter of that name.
    #[track_caller]
    pub fn assert_carries(&self, name: &str) {
        self.assert_carries_for("the answer", name);
    }

    #[track_caller]
    pub fn assert_carries_for(&self, case: impl Display, name: &str) {
        let carries = self.query().contains_key(name);
        assert!(carries, "{case} carries no {name}: {}", self.shown());
    }

    /// The query of the address to which it redirects has this value for that name.
    #[track_caller]
    pub fn assert_query(&self, name: &str, value: &str) {
        self.assert_query_for("the answer", name, value);
    }

    #[track_caller]
    pub fn assert_query_for(&self, case: impl Display, name: &str, value: &str) {
        let found = self.query().remove(name);
        assert_eq!(found.as_deref(), Some(value), "{case}: {}", self.shown());
    }

    /// It has that header once, with this value.
    #[track_caller]
    pub fn assert_header(&self, name: &str, value: &str) {
        self.assert_header_for("the answer", name, value);
    }

    #[track_caller]
    pub fn assert_header_for(&self, case: impl Display, name: &str, value: &str) {
        let found = self.header(name);
        assert_eq!(found, Some(value), "{case}, {name}: {}", self.shown());
    }

    /// The JSON object that it is has a member of that name with this value.
    #[track_caller]
    pub fn assert_member(&self, name: &str, value: impl Into<Value>) {
        self.assert_member_for("the answer", name, value);
    }

    #[track_caller]
    pub fn assert_member_for(&self, case: impl Display, name: &str, value: impl Into<Value>) {
        let found = self.json()[name].clone();
        assert_eq!(found, value.into(), "{case}, {name}: {}", self.shown());
    }

    #[track_caller]
    pub fn assert_says(&self, words: &str) {
        self.assert_says_for("the answer", words);
    }

    #[track_caller]
    pub fn assert_says_for(&self, case: impl Display, words: &str) {
        let says = self.text().contains(words);
        assert!(says, "{case} has no {words}: {}", self.shown());
    }

    #[track_caller]
    pub fn assert_says_not(&self, words: &str) {
        self.assert_says_not_for("the answer", words);
    }

    #[track_caller]
    pub fn assert_says_not_for(&self, case: impl Display, words: &str) {
        let says = self.text().contains(words);
        assert!(!says, "{case} has {words}: {}", self.shown());
    }

    /// It sets no cookie that has these words.
    #[track_caller]
    pub fn assert_sets_none(&self, words: &str) {
        let cookies = self.headers_named("set-cookie");
        let sets = cookies.iter().any(|cookie| cookie.contains(words));
        assert!(!sets, "{cookies:?} have {words}: {}", self.shown());
    }

    /// The code that it brings to a client.
    #[track_caller]
    pub fn code(&self) -> String {
        let code = self.query().remove("code");
        code.unwrap_or_else(|| panic!("no code: {}", self.shown()))
    }

    /// It has all of these words, between which bars stand.
    #[track_caller]
    pub fn assert_says_each(&self, words: &str) {
        self.text().assert_says_each(words);
    }

    /// It has none of these words, between which bars stand.
    #[track_caller]
    pub fn assert_says_none(&self, words: &str) {
        self.text().assert_says_none(words);
    }

    /// It is a JSON refusal by that name. For those whose members another claim looks at.
    #[track_caller]
    pub fn assert_error(&self, status: u16, error: &str) {
        self.assert_status(status);
        self.assert_member("error", error);
    }

    /// It is a JSON refusal, which nobody may keep and which says nothing of what was sent.
    #[track_caller]
    pub fn assert_refused(&self, status: u16, error: &str, case: &str) {
        self.assert_status_for(case, status);
        self.assert_member_for(case, "error", error);
        self.assert_header_for(case, "cache-control", "no-store");
        self.assert_header_for(case, "pragma", "no-cache");
        let told = self.json();
        let members: Vec<&String> = told.as_object().unwrap().keys().collect();
        assert_eq!(members, ["error", "error_description"], "{case}");
        let description = told["error_description"].as_str().unwrap();
        let may_stand = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
        assert!(description.bytes().all(may_stand), "{case}: {description}");
    }

    /// What a failed claim shows of it.
    fn shown(&self) -> String {
        let location = self.headers_named("location").join(" and ");
        format!("{} {location} {}", self.status, self.text())
    }
}

/// A text that is claimed to have, or not to have, some words.
pub trait Says {
    fn assert_says(&self, words: &str);
    fn assert_says_for(&self, case: impl Display, words: &str);
    fn assert_says_not(&self, words: &str);
    fn assert_says_not_for(&self, case: impl Display, words: &str);
    fn assert_says_each(&self, words: &str);
    fn assert_says_none(&self, words: &str);
}

impl Says for str {
    #[track_caller]
    fn assert_says(&self, words: &str) {
        self.assert_says_for("the text", words);
    }

    #[track_caller]
    fn assert_says_for(&self, case: impl Display, words: &str) {
        assert!(self.contains(words), "{case} has no {words}: {self}");
    }

    #[track_caller]
    fn assert_says_not(&self, words: &str) {
        self.assert_says_not_for("the text", words);
    }

    #[track_caller]
    fn assert_says_not_for(&self, case: impl Display, words: &str) {
        assert!(!self.contains(words), "{case} has {words}: {self}");
    }

    #[track_caller]
    fn assert_says_each(&self, words: &str) {
        words
            .split(" | ")
            .for_each(|words| self.assert_says(words.trim()));
    }

    #[track_caller]
    fn assert_says_none(&self, words: &str) {
        words
            .split(" | ")
            .for_each(|words| self.assert_says_not(words.trim()));
    }
}

/// A JSON object whose members are claimed.
pub trait Members {
    /// It has these members and no others: their names in the order of the alphabet.
    fn assert_members(&self, names: &str);
}

impl Members for Value {
    #[track_caller]
    fn assert_members(&self, names: &str) {
        assert_eq!(super::flow::names(self).join(" "), names, "{self}");
    }
}

impl TestDatabase {
    /// So many rows stand in that table, or in what follows `FROM`.
    #[track_caller]
    pub fn assert_count(&self, table: &str, rows: i64) {
        assert_eq!(self.count(table), rows, "{table}");
    }
}
