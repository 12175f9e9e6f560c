//! Signing in by e-mail address where people did so before: whose address counts here.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Import;

/// The address of a user, as two are compared; `None` where there is none.
fn address(user: &Value) -> Option<String> {
    let address = user.pointer("/claims/email")?.as_str()?;
    Some(address.to_lowercase())
}

fn is_verified(user: &Value) -> bool {
    user.pointer("/claims/email_verified") == Some(&json!(true))
}

impl Import {
    /// How many users have each address.
    fn holders(&self) -> BTreeMap<String, usize> {
        let mut holders = BTreeMap::new();
        for address in self.imported("users").filter_map(address) {
            *holders.entry(address).or_default() += 1;
        }
        holders
    }

    /// Takes addresses that one user alone has as verified: for a provider that is trusted to have
    /// let in their owners alone.
    pub fn trust_addresses(&mut self) {
        let holders = self.holders();
        let users = self.lists.get_mut("users").and_then(Value::as_array_mut);
        for user in users.into_iter().flatten() {
            let is_theirs = address(user).is_some_and(|address| holders.get(&address) == Some(&1));
            if let Some(claims) = user.get_mut("claims").filter(|_| is_theirs) {
                claims["email_verified"] = json!(true);
            }
        }
    }

    /// What to do so that people can go on signing in by address, and whom that leaves out.
    pub fn by_address(&self) -> String {
        let holders = self.holders();
        let shared = holders.values().filter(|count| **count > 1).count();
        let unverified = self
            .imported("users")
            .filter(|user| address(user).is_some() && !is_verified(user))
            .count();
        format!(
            "people sign in by e-mail address there, too: set \
             GATEPOST_SIGN_IN_WITH=username,email. Addresses that do not sign in here: \
             {unverified} that are not verified, which --trust-email takes as verified where one \
             user has them; {shared} that several users have"
        )
    }
}
