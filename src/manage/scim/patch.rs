//! PATCH of a user (RFC 7644 §3.5.2): all of its operations, or none.

use serde_json::Value;

use super::attribute::{Shape, UserAttribute, UserAttributes, elements, member, value_of};
use super::attribute_path::{Target, target};
use super::error::{Result, ScimError, ScimType};
use gatepost_protocol::words::named::named;

const MOST_OPERATIONS: usize = 100;

named! {
    pub enum Operation {
        Add = "add",
        Replace = "replace",
        Remove = "remove",
    }
}

/// The attributes after all operations of the body.
pub fn patched(before: &UserAttributes, body: &Value) -> Result<UserAttributes> {
    let operations = member(body, "Operations").and_then(Value::as_array);
    let Some(operations) = operations.filter(|operations| !operations.is_empty()) else {
        return Err(invalid_syntax(
            "Operations must be an array with operations",
        ));
    };
    if operations.len() > MOST_OPERATIONS {
        return Err(invalid_syntax("there may be 100 operations at most"));
    }
    let mut attributes = before.clone();
    // Null while nothing is said: before or after the address, what is said is of the address that
    // is there in the end.
    attributes.insert(UserAttribute::EmailVerified, Value::Null);
    for operation in operations {
        apply(&mut attributes, operation)?;
    }
    if attributes.get(&UserAttribute::EmailVerified) == Some(&Value::Null) {
        let is_same = attributes.get(&UserAttribute::Email) == before.get(&UserAttribute::Email);
        let verified = before.get(&UserAttribute::EmailVerified);
        put(
            &mut attributes,
            UserAttribute::EmailVerified,
            verified.filter(|_| is_same).cloned(),
        )?;
    }
    Ok(attributes)
}

/// One operation on the attributes that a user has.
struct Change<'a> {
    attributes: &'a mut UserAttributes,
    operation: Operation,
}

fn apply(attributes: &mut UserAttributes, described: &Value) -> Result {
    let name = member(described, "op").and_then(Value::as_str);
    let operation = Operation::from_name(&name.unwrap_or_default().to_ascii_lowercase());
    let operation = operation.ok_or_else(|| invalid_syntax("op must be add, replace or remove"))?;
    let value = member(described, "value").unwrap_or(&Value::Null);
    let mut change = Change {
        attributes,
        operation,
    };
    match member(described, "path") {
        None | Some(Value::Null) => change.members("", value),
        Some(Value::String(path)) => change.at(target(path)?, value),
        Some(_) => Err(invalid_syntax("path must be a string")),
    }
}

impl Change<'_> {
    /// Without a path the value is an object. Its keys are names of attributes, or paths: Entra
    /// sends these. What is not kept is ignored.
    fn members(&mut self, below: &str, value: &Value) -> Result {
        if self.operation == Operation::Remove {
            return Err(ScimType::NoTarget.because("remove needs a path"));
        }
        let Some(members) = value.as_object() else {
            return Err(ScimError::invalid_value("value must be an object there"));
        };
        for (name, value) in members {
            if let Ok(found) = target(&format!("{below}{name}")) {
                self.at(found, value)?;
            }
        }
        Ok(())
    }

    fn at(&mut self, found: Target, value: &Value) -> Result {
        match found {
            Target::NotKept => Ok(()),
            Target::Attribute(attribute) => self.attribute(attribute, value),
            Target::Element(attribute, element) => self.element(attribute, &element, value),
            Target::Attributes(below) if self.operation == Operation::Remove => {
                self.attributes.retain(|attribute, _| {
                    let rest = attribute.as_str().strip_prefix(below);
                    !rest.is_some_and(|rest| rest.starts_with(['.', ':']))
                });
                Ok(())
            }
            Target::Attributes(below) => {
                let joint = if below.starts_with("urn:") { ':' } else { '.' };
                self.members(&format!("{below}{joint}"), value)
            }
        }
    }

    fn attribute(&mut self, attribute: UserAttribute, value: &Value) -> Result {
        let sent = attribute.read(value)?;
        let before = self.attributes.get(&attribute);
        let after = match (self.operation, attribute.shape()) {
            (Operation::Add, Shape::Elements) => joined(before, sent),
            // Entra names the values that go.
            (Operation::Remove, Shape::Elements) if sent.is_some() => {
                without(before, sent.as_ref())
            }
            // One that is not there stays away.
            (Operation::Remove, Shape::OneElement) if sent.is_some() && !names(value, before) => {
                before.cloned()
            }
            (Operation::Add | Operation::Replace, _) => sent,
            (Operation::Remove, _) => None,
        };
        if after.is_none() && [UserAttribute::Active, UserAttribute::Tenant].contains(&attribute) {
            let rule = format!("{} cannot be removed", attribute.as_str());
            return Err(ScimType::Mutability.because(rule));
        }
        put(self.attributes, attribute, after)
    }

    /// The element with that value becomes another, or goes.
    fn element(&mut self, attribute: UserAttribute, element: &str, value: &Value) -> Result {
        let wanted = attribute.read_element(&Value::from(element))?;
        let wanted = wanted.unwrap_or_default();
        let before = self.attributes.get(&attribute);
        let is_there = before.is_some_and(|before| elements(before).contains(&wanted));
        if !is_there {
            if self.operation == Operation::Remove {
                return Ok(());
            }
            return Err(
                ScimType::NoTarget.because("no value of the attribute is what the filter asks for")
            );
        }
        let sent = match self.operation {
            Operation::Remove => None,
            Operation::Add | Operation::Replace => attribute.read(value)?,
        };
        let after = match attribute.shape() {
            Shape::Elements => joined(without(before, Some(&wanted)).as_ref(), sent),
            Shape::Text | Shape::Flag | Shape::OneElement => sent,
        };
        put(self.attributes, attribute, after)
    }
}

fn put(attributes: &mut UserAttributes, attribute: UserAttribute, after: Option<Value>) -> Result {
    match after {
        Some(value) => {
            // Whoever has too many, by a document or by a provider, may lose some.
            let before = attributes.get(&attribute).map(elements).unwrap_or_default();
            let after = elements(&value);
            if after.len() > before.len() {
                attribute.check_number(after)?;
            }
            attributes.insert(attribute, value);
        }
        None => {
            attributes.remove(&attribute);
        }
    }
    Ok(())
}

/// Whether one of the elements has the value that is there, in whatever case (RFC 7643 §8.7.1).
fn names(elements_sent: &Value, before: Option<&Value>) -> bool {
    let before = before.and_then(Value::as_str).unwrap_or_default();
    let values = elements(elements_sent).iter().map(value_of);
    values
        .filter_map(Value::as_str)
        .any(|value| value.eq_ignore_ascii_case(before))
}

/// Both, each value once.
fn joined(before: Option<&Value>, sent: Option<Value>) -> Option<Value> {
    let mut values: Vec<Value> = before.map(elements).unwrap_or_default().to_vec();
    for value in sent.iter().flat_map(elements) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    (!values.is_empty()).then_some(Value::Array(values))
}

fn without(before: Option<&Value>, sent: Option<&Value>) -> Option<Value> {
    let going = sent.map(elements).unwrap_or_default();
    let before = before.map(elements).unwrap_or_default();
    let stays = |value: &&Value| !going.contains(value);
    let values: Vec<Value> = before.iter().filter(stays).cloned().collect();
    (!values.is_empty()).then_some(Value::Array(values))
}

fn invalid_syntax(rule: &str) -> ScimError {
    ScimType::InvalidSyntax.because(rule)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scim::resource;

    fn attributes(resource: Value) -> UserAttributes {
        let mut resource = resource;
        resource["schemas"] = json!(["urn:ietf:params:scim:schemas:core:2.0:User"]);
        resource::read(&resource).unwrap()
    }

    fn alice() -> UserAttributes {
        attributes(json!({
            "userName": "alice", "active": true, "name": {"givenName": "Alice", "familyName": "Adams"},
            "emails": [{"value": "alice@example.com"}], "phoneNumbers": [{"value": "+49 30 2"}], "roles": [{"value": "staff"}, {"value": "cook"}],
            "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User": {"emailVerified": true},
        }))
    }

    fn after(operations: Value) -> Result<UserAttributes, Option<ScimType>> {
        let body = json!({"schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"], "Operations": operations});
        patched(&alice(), &body).map_err(|error| error.scim_type)
    }

    #[test]
    fn a_hundred_operations_are_the_most() {
        let one = json!({"op": "replace", "path": "active", "value": false});
        let of = |number| Value::Array(vec![one.clone(); number]);
        assert!(after(of(MOST_OPERATIONS)).is_ok());
        assert_eq!(
            after(of(MOST_OPERATIONS + 1)),
            Err(Some(ScimType::InvalidSyntax))
        );
    }

    #[test]
    fn each_form_of_a_change_is_understood() {
        let department = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department";
        let enterprise = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User";
        let cases = [
            (
                json!([{"op": "Replace", "path": "active", "value": "False"}]),
                UserAttribute::Active,
                Some(json!(false)),
            ),
            (
                json!([{"op": "replace", "value": {"active": false}}]),
                UserAttribute::Active,
                Some(json!(false)),
            ),
            (
                json!([{"op": "Add", "value": {"name.familyName": "Baker"}}]),
                UserAttribute::FamilyName,
                Some(json!("Baker")),
            ),
            (
                json!([{"op": "replace", "path": "name", "value": {"givenName": "Ann"}}]),
                UserAttribute::GivenName,
                Some(json!("Ann")),
            ),
            (
                json!([{"op": "remove", "path": "name"}]),
                UserAttribute::FamilyName,
                None,
            ),
            (
                json!([{"op": "Replace", "path": "emails[type eq \"work\"].value", "value": "b@example.com"}]),
                UserAttribute::Email,
                Some(json!("b@example.com")),
            ),
            (
                json!([{"op": "add", "path": "emails", "value": [{"value": "c@example.com", "type": "home"}]}]),
                UserAttribute::Email,
                Some(json!("c@example.com")),
            ),
            (
                json!([{"op": "replace", "path": "emails[type eq \"work\"].primary", "value": false}]),
                UserAttribute::Email,
                Some(json!("alice@example.com")),
            ),
            (
                json!([{"op": "Add", "path": department, "value": "Sales"}]),
                UserAttribute::Department,
                Some(json!("Sales")),
            ),
            (
                json!([{"op": "Add", "path": enterprise, "value": {"department": "Sales"}}]),
                UserAttribute::Department,
                Some(json!("Sales")),
            ),
            (
                json!([{"op": "Add", "value": {enterprise: {"department": "Sales"}}}]),
                UserAttribute::Department,
                Some(json!("Sales")),
            ),
            (
                json!([{"op": "add", "path": "roles", "value": [{"value": "lead"}, {"value": "cook"}]}]),
                UserAttribute::Roles,
                Some(json!(["staff", "cook", "lead"])),
            ),
            (
                json!([{"op": "replace", "path": "roles[primary eq \"True\"].value", "value": "lead"}]),
                UserAttribute::Roles,
                Some(json!(["lead"])),
            ),
            (
                json!([{"op": "remove", "path": "roles[value eq \"cook\"]"}]),
                UserAttribute::Roles,
                Some(json!(["staff"])),
            ),
            (
                json!([{"op": "Remove", "path": "roles", "value": [{"value": "staff"}]}]),
                UserAttribute::Roles,
                Some(json!(["cook"])),
            ),
            (
                json!([{"op": "replace", "path": "roles[value eq \"cook\"]", "value": {"value": "chef"}}]),
                UserAttribute::Roles,
                Some(json!(["staff", "chef"])),
            ),
            (
                json!([{"op": "add", "path": "emails[type eq \"home\"].value", "value": "h@example.com"}]),
                UserAttribute::Email,
                Some(json!("alice@example.com")),
            ),
            (
                json!([{"op": "remove", "path": "emails[type eq \"other\"]"}]),
                UserAttribute::Email,
                Some(json!("alice@example.com")),
            ),
            (
                json!([{"op": "remove", "path": "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User"}]),
                UserAttribute::EmailVerified,
                None,
            ),
            (
                json!([{"op": "remove", "path": "roles"}]),
                UserAttribute::Roles,
                None,
            ),
            (
                json!([{"op": "remove", "path": "emails", "value": [{"value": "other@example.com"}]}]),
                UserAttribute::Email,
                Some(json!("alice@example.com")),
            ),
            (
                json!([{"op": "Remove", "path": "emails", "value": [{"value": "o@example.com", "primary": true}, {"value": "Alice@Example.com"}]}]),
                UserAttribute::Email,
                None,
            ),
            (
                json!([{"op": "remove", "path": "emails", "value": []}]),
                UserAttribute::Email,
                None,
            ),
            (
                json!([{"op": "remove", "path": "phoneNumbers", "value": {"value": "+49 30 1"}}]),
                UserAttribute::PhoneNumber,
                Some(json!("+49 30 2")),
            ),
            (
                json!([{"op": "remove", "path": "roles[value eq \"{\\\"id\\\":\\\"1\\\",\\\"value\\\":\\\"cook\\\"}\"]"}]),
                UserAttribute::Roles,
                Some(json!(["staff"])),
            ),
            (
                json!([{"op": "remove", "path": "roles", "value": [{"value": "{\"value\":\"cook\"}"}]}]),
                UserAttribute::Roles,
                Some(json!(["staff"])),
            ),
            (
                json!([{"op": "add", "value": {"roles": [{"value": "{\"value\":\"lead\"}"}]}}]),
                UserAttribute::Roles,
                Some(json!(["staff", "cook", "lead"])),
            ),
            (
                json!([{"op": "Replace", "path": "roles", "value": []}]),
                UserAttribute::Roles,
                None,
            ),
            (
                json!([{"op": "replace", "value": {"title": "Dr", "schemas": [], "id": "x"}}]),
                UserAttribute::UserName,
                Some(json!("alice")),
            ),
        ];
        for (operations, attribute, wanted) in cases {
            let after = after(operations.clone()).unwrap();
            assert_eq!(after.get(&attribute), wanted.as_ref(), "{operations}");
        }
    }

    #[test]
    fn another_address_is_not_verified_and_the_same_stays_so() {
        let to = |address: &str| {
            let after =
                after(json!([{"op": "replace", "path": "emails", "value": [{"value": address}]}]));
            after.unwrap().get(&UserAttribute::EmailVerified).cloned()
        };
        assert_eq!(to("alice@example.com"), Some(json!(true)));
        assert_eq!(to("mallory@example.com"), None);
        let ours = "urn:ietf:params:scim:schemas:extension:gatepost:2.0:User:emailVerified";
        let verified = json!({"op": "replace", "path": ours, "value": true});
        let address =
            json!({"op": "replace", "path": "emails", "value": [{"value": "a@example.com"}]});
        for operations in [json!([verified, address]), json!([address, verified])] {
            let after = after(operations.clone()).unwrap();
            let said = after.get(&UserAttribute::EmailVerified);
            assert_eq!(said, Some(&json!(true)), "{operations}");
        }
        let removed = after(json!([{"op": "remove", "path": ours}, address])).unwrap();
        assert_eq!(removed.get(&UserAttribute::EmailVerified), None);
    }

    #[test]
    fn a_path_to_what_is_not_kept_changes_nothing_and_lets_the_rest_be_done() {
        let mut disabled = alice();
        disabled.insert(UserAttribute::Active, json!(false));
        for path in [
            "title",
            "PreferredLanguage",
            "name.formatted",
            "name.honorificPrefix",
            "emails.display",
            "emails[type eq \"work\"].display",
            "addresses",
            "addresses.country",
            "addresses[type eq \"work\"].streetAddress",
            "addresses[country eq \"DE\" and primary eq true]",
            "x509Certificates[value eq \"a[0].b\"]",
            "manager.$ref",
            "urn:ietf:params:scim:schemas:core:2.0:User:userType",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value",
            "urn:ietf:params:scim:schemas:extension:acme:2.0:User",
            "urn:ietf:params:scim:schemas:extension:acme:2.0:User:shoe_size",
        ] {
            let disabling = json!({"op": "Replace", "path": "active", "value": "False"});
            for op in ["Add", "Replace", "Remove"] {
                let operation = json!({"op": op, "path": path, "value": "x"});
                let after = after(json!([operation, disabling]));
                assert_eq!(after, Ok(disabled.clone()), "{op} {path}");
            }
        }
    }

    #[test]
    fn a_path_that_is_malformed_or_that_no_client_writes_is_refused() {
        for path in [
            "",
            "a b",
            "7",
            "title.",
            ".title",
            "title.of.honour",
            ":title",
            "urn:ietf:params::title",
            "tïtle",
            "title eq \"x\"",
            "emails[type",
            "emails[type eq \"work\"]value",
            "addresses]",
            "addresses[type eq \"work\"].a.b",
            "userName[value eq \"x\"]",
            "userName.value",
            "active.value",
            "name.givenName.value",
            "name[type eq \"work\"]",
            "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department.value",
            "id",
            "schemas",
            "Meta.version",
            "groups",
            "groups[value eq \"x\"]",
            "urn:ietf:params:scim:schemas:core:2.0:User:id",
        ] {
            let refused = after(json!([{"op": "add", "path": path, "value": "x"}]));
            assert_eq!(refused, Err(Some(ScimType::InvalidPath)), "{path}");
        }
    }

    #[test]
    fn whoever_has_more_roles_than_may_be_sent_can_lose_some_and_gets_no_more() {
        let roles = |numbers: std::ops::Range<u32>| -> Vec<Value> {
            numbers.map(|one| json!(one.to_string())).collect()
        };
        let mut before = alice();
        before.insert(UserAttribute::Roles, Value::Array(roles(0..300)));
        let after = |operation: Value| {
            let after = patched(&before, &json!({"Operations": [operation]}));
            after
                .map(|after| after.get(&UserAttribute::Roles).cloned())
                .map_err(|error| error.scim_type)
        };
        let removed = Ok(Some(Value::Array(roles(1..300))));
        let by_filter = json!({"op": "remove", "path": "roles[value eq \"0\"]"});
        assert_eq!(after(by_filter), removed);
        let by_value = json!({"op": "remove", "path": "roles", "value": [{"value": "0"}]});
        assert_eq!(after(by_value), removed);
        let there = json!({"op": "add", "path": "roles", "value": [{"value": "7"}]});
        assert_eq!(after(there), Ok(Some(Value::Array(roles(0..300)))));
        let one_more = json!({"op": "add", "path": "roles", "value": [{"value": "300"}]});
        assert_eq!(after(one_more), Err(Some(ScimType::InvalidValue)));
        let fewer = json!({"op": "replace", "path": "roles", "value": roles(0..200)});
        assert_eq!(after(fewer), Ok(Some(Value::Array(roles(0..200)))));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        for (operations, scim_type) in [
            (json!([]), ScimType::InvalidSyntax),
            (json!("x"), ScimType::InvalidSyntax),
            (json!([7]), ScimType::InvalidSyntax),
            (
                json!([{"op": "move", "path": "active"}]),
                ScimType::InvalidSyntax,
            ),
            (
                json!([{"op": "add", "path": 7, "value": "x"}]),
                ScimType::InvalidSyntax,
            ),
            (json!([{"op": "remove"}]), ScimType::NoTarget),
            (
                json!([{"op": "remove", "path": "active"}]),
                ScimType::Mutability,
            ),
            (json!([{"op": "add", "value": "x"}]), ScimType::InvalidValue),
            (
                json!([{"op": "add", "path": "active", "value": "perhaps"}]),
                ScimType::InvalidValue,
            ),
            (
                json!([{"op": "add", "path": "userName", "value": {}}]),
                ScimType::InvalidValue,
            ),
            (
                json!([{"op": "add", "path": "emails[type co \"x\"]", "value": "x"}]),
                ScimType::InvalidFilter,
            ),
            (
                json!([{"op": "add", "path": "addresses[type co \"x\"]", "value": "x"}]),
                ScimType::InvalidFilter,
            ),
            (
                json!([{"op": "replace", "path": "roles[value eq \"x\"]", "value": "y"}]),
                ScimType::NoTarget,
            ),
        ] {
            assert_eq!(
                after(operations.clone()),
                Err(Some(scim_type)),
                "{operations}"
            );
        }
        let roles: Vec<Value> = (0..199)
            .map(|one| json!({"value": one.to_string()}))
            .collect();
        let roles = json!([{"op": "add", "path": "roles", "value": roles}]);
        assert_eq!(after(roles), Err(Some(ScimType::InvalidValue)));
        let many = vec![json!({"op": "add", "path": "active", "value": true}); 101];
        assert_eq!(after(json!(many)), Err(Some(ScimType::InvalidSyntax)));
    }
}
