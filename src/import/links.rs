//! Commands for people who need a link: whoever lost their second factor, and whoever has no way to
//! sign in.

use serde_json::{Value, json};

use super::Import;
use gatepost_protocol::words::json::Members;

impl Import {
    /// Whoever is disabled could not open a link.
    pub fn commands(&self) -> Vec<String> {
        let mut without_factor = Vec::new();
        let mut without_way = Vec::new();
        for user in self.imported("users").filter(|user| !is_disabled(user)) {
            let Some(name) = user.text("username") else {
                continue;
            };
            let quoted = format!("'{}'", name.replace('\'', r"'\''"));
            if user.get("password_hash").or(user.get("password")).is_none() {
                without_way.extend(user.get("identities").is_none().then_some(quoted));
            } else if user.get("totp").is_none() && self.without_factor.contains(name) {
                without_factor.push(quoted);
            }
        }
        let mut lines = Vec::new();
        if !without_factor.is_empty() {
            let people = "people whose second factor did not move";
            let meanwhile = "Until they set up another, the password alone is enough";
            lines.push(line(people, meanwhile, "reset --enrol", &without_factor));
        }
        if !without_way.is_empty() {
            let people = "people who cannot sign in";
            let meanwhile = "They have no password and no link to a provider";
            lines.push(line(people, meanwhile, "invite", &without_way));
        }
        lines
    }
}

fn line(people: &str, meanwhile: &str, command: &str, quoted: &[String]) -> String {
    format!(
        "{people}: {}. {meanwhile}. After `apply` this makes a link for each, in a new FILE: \
         printf '%s\\n' {} | gatepost user {command} --from - --links FILE",
        quoted.len(),
        quoted.join(" ")
    )
}

pub fn is_disabled(object: &Value) -> bool {
    object.get("enabled") == Some(&json!(false))
}
