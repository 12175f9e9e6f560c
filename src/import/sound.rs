//! The registration's own checks over what was imported. What `apply` would refuse is left out,
//! with a line that says the rule.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Import, ImportedObject, is_among};
use gatepost_protocol::registration::client_rules::ClientDefaults;
use gatepost_protocol::registration::kind::ObjectKind;
use gatepost_protocol::words::json::Members;
use gatepost_registration::document::Document;
use gatepost_registration::references::note_taken;

/// Members that an object must have. Without some of them a client would let in more. Where a rule
/// refuses one, or the last item of one, the whole object is left out.
const NEEDED: &str = "\
    client_id grant_types identity_providers issuer jwks name response_types secrets \
    token_endpoint_auth_method username";

impl Import {
    /// Adds an object to its list, without what the rules refuse in it. False where they refuse the
    /// whole object.
    pub fn push(&mut self, kind: ObjectKind, of: &str, mut ours: ImportedObject) -> bool {
        // What was left out may be missed by another rule.
        loop {
            let document = json!({ (kind.list()): [json!(ours.0).to_string()] });
            let judged = Document::judge(&document, &ClientDefaults::default());
            let mut refused = BTreeMap::new();
            for problem in judged.problems {
                // As `clients[0].redirect_uris[1]`.
                let mut place = problem.path.split(['[', ']', '.']).skip(3);
                let member = place.next().unwrap_or_default().to_owned();
                let index = place.next().and_then(|index| index.parse().ok());
                refused.insert((member, index), problem.rule);
            }
            if refused.is_empty() {
                break;
            }
            // The last items first: those before them keep their numbers.
            for ((member, index), rule) in refused.into_iter().rev() {
                let Some(called) = ours.leave_out(&member, index) else {
                    self.note(of, format!("left out: {member} {rule}"));
                    return false;
                };
                self.note(of, format!("{called} is left out: it {rule}"));
            }
        }
        self.drop_taken_identities(of, &mut ours);
        let object = json!(ours.0);
        let position = self.imported(kind.list()).count();
        if let Some(taken) = note_taken(kind, position, &object, &mut self.first).first() {
            let member = taken.path.rsplit('.').next().unwrap_or_default();
            self.note(of, format!("left out: {member} {}", taken.rule));
            return false;
        }
        let list = self.lists.entry(kind.list()).or_insert(json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(object);
        }
        true
    }

    /// An account elsewhere is one user's.
    fn drop_taken_identities(&mut self, of: &str, user: &mut ImportedObject) {
        let identities = user.0.items("identities").to_vec();
        for (index, identity) in identities.iter().enumerate().rev() {
            if !self.identities.insert(identity.to_string()) {
                user.leave_out("identities", Some(index));
                self.note(
                    of,
                    "an account elsewhere is left out: a user before has it, too",
                );
            }
        }
    }
}

impl ImportedObject {
    /// Takes away a member, or one item of it, and returns what that is called. Nothing where the
    /// object cannot be without it.
    fn leave_out(&mut self, member: &str, index: Option<usize>) -> Option<String> {
        let mut called = member.to_owned();
        let mut kept = Vec::new();
        if let (Value::Array(items), Some(index)) = (self.0.remove(member)?, index) {
            called = format!("number {} of {member}", index + 1);
            let others = items.into_iter().enumerate().filter(|(at, _)| *at != index);
            kept.extend(others.map(|(_, item)| item));
        }
        self.set(member, kept);
        let may_lack = !is_among(NEEDED, member) || self.0.contains_key(member);
        may_lack.then_some(called)
    }
}
