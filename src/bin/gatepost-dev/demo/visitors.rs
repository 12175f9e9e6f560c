//! Who visits the demo: per browser, the sign-ins it began and the one it completed. In memory,
//! bounded, gone with the process.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;

use super::authorization::Attempt;
use super::back_channel::TokenResponse;
use super::json_web_token::UnverifiedToken;

const MOST_VISITORS: usize = 256;
/// Tabs in which one browser may be signing in at once.
const MOST_ATTEMPTS: usize = 8;

#[derive(Debug, PartialEq)]
pub(super) struct SignedIn {
    /// The application that they signed in to.
    pub(super) client_name: String,
    /// From UserInfo.
    pub(super) claims: Value,
    /// The ID token as it came: it asks for the sign-out.
    pub(super) id_token_hint: String,
    pub(super) id_token: Option<UnverifiedToken>,
    /// None for a reference token.
    pub(super) access_token: Option<UnverifiedToken>,
    pub(super) scope: String,
    /// Seconds.
    pub(super) expires_in: Option<u64>,
}

impl SignedIn {
    pub(super) fn new(client_name: &str, claims: Value, tokens: &TokenResponse) -> SignedIn {
        SignedIn {
            client_name: client_name.to_owned(),
            claims,
            id_token_hint: tokens.id_token.clone(),
            id_token: UnverifiedToken::parse(&tokens.id_token),
            access_token: UnverifiedToken::parse(&tokens.access_token),
            scope: tokens.scope.clone().unwrap_or_default(),
            expires_in: tokens.expires_in,
        }
    }
}

impl SignedIn {
    fn sid(&self) -> Option<&str> {
        self.id_token.as_ref()?.payload.get("sid")?.as_str()
    }
}

#[derive(Debug, Default)]
struct Visitor {
    attempts: VecDeque<Attempt>,
    signed_in: Option<Arc<SignedIn>>,
}

/// The visitors by the handle in their cookie; the longest known leaves when it gets crowded.
#[derive(Debug, Default)]
pub(super) struct Visitors {
    by_handle: HashMap<String, Visitor>,
    arrivals: VecDeque<String>,
}

impl Visitors {
    /// Notes that the visitor began a sign-in; answers the handle to set: theirs where it is known,
    /// else `fresh`.
    pub(super) fn remember(
        &mut self,
        handle: Option<&str>,
        attempt: Attempt,
        fresh: String,
    ) -> String {
        let handle = match handle {
            Some(known) if self.by_handle.contains_key(known) => known.to_owned(),
            Some(_) | None => self.admit(fresh, Visitor::default()),
        };
        if let Some(visitor) = self.by_handle.get_mut(&handle) {
            if visitor.attempts.len() == MOST_ATTEMPTS {
                visitor.attempts.pop_front();
            }
            visitor.attempts.push_back(attempt);
        }
        handle
    }

    pub(super) fn take_attempt(&mut self, handle: &str, state: &str) -> Option<Attempt> {
        let attempts = &mut self.by_handle.get_mut(handle)?.attempts;
        let position = attempts.iter().position(|attempt| attempt.state == state)?;
        attempts.remove(position)
    }

    /// Signs the visitor in under a new handle, so that one known before is worth nothing; answers
    /// it.
    pub(super) fn sign_in(
        &mut self,
        handle: &str,
        signed_in: SignedIn,
        fresh: String,
    ) -> Option<String> {
        let mut visitor = self.remove(handle)?;
        visitor.signed_in = Some(Arc::new(signed_in));
        Some(self.admit(fresh, visitor))
    }

    pub(super) fn signed_in(&self, handle: &str) -> Option<Arc<SignedIn>> {
        self.by_handle.get(handle)?.signed_in.clone()
    }

    pub(super) fn forget_session(&mut self, sid: &str) {
        for visitor in self.by_handle.values_mut() {
            let is_over = visitor
                .signed_in
                .as_ref()
                .is_some_and(|signed_in| signed_in.sid() == Some(sid));
            visitor.signed_in = visitor.signed_in.take().filter(|_| !is_over);
        }
    }

    pub(super) fn forget(&mut self, handle: &str) {
        self.remove(handle);
    }

    fn remove(&mut self, handle: &str) -> Option<Visitor> {
        self.arrivals.retain(|known| known != handle);
        self.by_handle.remove(handle)
    }

    fn admit(&mut self, handle: String, visitor: Visitor) -> String {
        if self.arrivals.len() == MOST_VISITORS
            && let Some(longest_known) = self.arrivals.pop_front()
        {
            self.by_handle.remove(&longest_known);
        }
        self.arrivals.push_back(handle.clone());
        self.by_handle.insert(handle.clone(), visitor);
        handle
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attempt(state: &str) -> Attempt {
        Attempt {
            client_id: String::new(),
            state: state.to_owned(),
            nonce: String::new(),
            code_verifier: String::new(),
        }
    }

    fn signed_in() -> SignedIn {
        signed_in_by("s1")
    }

    fn signed_in_by(sid: &str) -> SignedIn {
        let id_token = UnverifiedToken {
            header: json!({}),
            payload: json!({ "sid": sid }),
            signature: Vec::new(),
        };
        SignedIn {
            client_name: String::new(),
            claims: json!({}),
            id_token_hint: String::new(),
            id_token: Some(id_token),
            access_token: None,
            scope: String::new(),
            expires_in: None,
        }
    }

    #[test]
    fn two_tabs_can_sign_in_at_once_and_each_answer_counts_once() {
        let mut visitors = Visitors::default();
        let handle = visitors.remember(None, attempt("one"), String::from("h"));
        assert_eq!(
            visitors.remember(Some(&handle), attempt("two"), String::from("unused")),
            handle
        );
        assert!(visitors.take_attempt(&handle, "one").is_some());
        assert!(visitors.take_attempt(&handle, "one").is_none());
        assert!(visitors.take_attempt(&handle, "two").is_some());
    }

    #[test]
    fn an_answer_counts_only_in_the_browser_that_asked() {
        let mut visitors = Visitors::default();
        visitors.remember(None, attempt("one"), String::from("alice"));
        visitors.remember(None, attempt("two"), String::from("mallory"));
        assert!(visitors.take_attempt("mallory", "one").is_none());
        assert!(visitors.take_attempt("nobody", "one").is_none());
        assert!(visitors.take_attempt("alice", "one").is_some());
    }

    #[test]
    fn a_handle_known_before_the_sign_in_is_worth_nothing_after_it() {
        let mut visitors = Visitors::default();
        visitors.remember(None, attempt("one"), String::from("planted"));
        let fresh = visitors
            .sign_in("planted", signed_in(), String::from("fresh"))
            .unwrap();
        assert!(visitors.signed_in("planted").is_none());
        assert!(visitors.signed_in(&fresh).is_some());
        visitors.forget(&fresh);
        assert!(visitors.signed_in(&fresh).is_none());
    }

    #[test]
    fn the_end_of_a_session_signs_out_who_came_by_it_and_nobody_else() {
        let mut visitors = Visitors::default();
        for (handle, sid) in [("a", "s1"), ("b", "s2"), ("c", "s1")] {
            visitors.remember(None, attempt(handle), handle.to_owned());
            visitors.sign_in(handle, signed_in_by(sid), format!("{handle}{handle}"));
        }
        visitors.forget_session("s1");
        assert_eq!(
            ["aa", "bb", "cc"].map(|handle| visitors.signed_in(handle).is_some()),
            [false, true, false]
        );
    }

    #[test]
    fn a_handle_of_somebodys_own_making_is_replaced() {
        let mut visitors = Visitors::default();
        assert_eq!(
            visitors.remember(Some("invented"), attempt("one"), String::from("ours")),
            "ours"
        );
    }

    #[test]
    fn visitors_and_attempts_are_bounded() {
        let mut visitors = Visitors::default();
        for number in 0..(2 * MOST_VISITORS) {
            let handle = visitors.remember(None, attempt("first"), number.to_string());
            for state in 0..(2 * MOST_ATTEMPTS) {
                visitors.remember(
                    Some(&handle),
                    attempt(&state.to_string()),
                    String::from("unused"),
                );
            }
        }
        assert_eq!(
            (visitors.by_handle.len(), visitors.arrivals.len()),
            (MOST_VISITORS, MOST_VISITORS)
        );
        assert!(
            visitors
                .by_handle
                .values()
                .all(|visitor| visitor.attempts.len() == MOST_ATTEMPTS)
        );
    }
}
