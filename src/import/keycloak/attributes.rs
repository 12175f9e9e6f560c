//! What tokens of Keycloak make of people's attributes. The attribute `phoneNumber` is the claim
//! `phone_number` there, `updatedAt` is a number, and `address` is made of several attributes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::{Read, Row, table};

/// The mappers of attributes, as far as they have been read.
#[derive(Default)]
pub struct MappedAttributes {
    /// The claims of attributes that have another name, by attribute.
    claims: BTreeMap<String, String>,
    forms: BTreeMap<String, ClaimForm>,
    /// The members of `address`, each with its attribute.
    address: Vec<(&'static str, String)>,
}

#[derive(Clone, Default, PartialEq)]
struct ClaimForm {
    json_type: String,
    is_array: bool,
}

impl MappedAttributes {
    /// The claim that has the attribute here.
    pub fn claim(&self, attribute: &str) -> String {
        let claim = self.claims.get(attribute);
        claim.map_or(attribute, String::as_str).to_owned()
    }

    /// Whether a claim of that name has its value from other attributes.
    pub fn is_taken(&self, name: &str) -> bool {
        let mut claims = self.claims.iter();
        name == "address" && !self.address.is_empty()
            || claims.any(|(attribute, claim)| claim == name && attribute != name)
    }

    /// Whether the attribute is that claim from now on.
    pub fn rename(&mut self, attribute: &str, claim: &str) -> bool {
        let is_free = !self.claims.values().any(|other| other == claim);
        if is_free && !self.claims.contains_key(attribute) {
            self.claims.insert(attribute.to_owned(), claim.to_owned());
        }
        self.claim(attribute) == claim
    }

    /// Whether the attribute has the form that this mapper gives it. The first mapper decides.
    pub fn settle_form(&mut self, attribute: &str, config: &Row<'_>) -> Read<bool> {
        let form = ClaimForm {
            json_type: config
                .text("jsonType.label")?
                .unwrap_or_else(|| String::from("String")),
            is_array: config.flag("multivalued")?,
        };
        let settled = self.forms.entry(attribute.to_owned());
        Ok(*settled.or_insert_with(|| form.clone()) == form)
    }

    /// Whether `address` is made as this mapper makes it. The first mapper decides.
    pub fn settle_address(&mut self, config: &Row<'_>) -> Read<bool> {
        let mut address = Vec::new();
        // OpenID Connect Core §5.1.1, and what Keycloak calls them.
        for [member, theirs, _] in table("members of the claim address") {
            let attribute = config.text(&format!("user.attribute.{theirs}"))?;
            address.push((member, attribute.unwrap_or_else(|| theirs.to_owned())));
        }
        if self.address.is_empty() {
            self.address.clone_from(&address);
        }
        Ok(self.address == address)
    }

    /// The value of a claim in tokens; of several values the first, where it is no array there.
    pub fn value(&self, attribute: &str, values: &[String]) -> Value {
        let unmapped = ClaimForm {
            is_array: values.len() > 1,
            ..ClaimForm::default()
        };
        let form = self.forms.get(attribute).unwrap_or(&unmapped);
        let mut typed = values.iter().map(|text| typed(&form.json_type, text));
        if form.is_array {
            return typed.collect();
        }
        typed.next().unwrap_or_default()
    }

    pub fn address(&self, attributes: &Row<'_>) -> Read<Value> {
        let mut address = Map::new();
        for (member, attribute) in &self.address {
            if let Some(text) = attributes.texts(attribute, "")?.into_iter().next() {
                address.insert((*member).to_owned(), json!(text));
            }
        }
        Ok(Value::Object(address))
    }
}

/// A text in the type that a mapper gives it.
pub fn typed(json_type: &str, text: &str) -> Value {
    let is_text = json_type.is_empty() || json_type == "String";
    let typed = match json_type {
        "boolean" => serde_json::from_str(&text.to_lowercase()),
        _ => serde_json::from_str(text),
    };
    typed.ok().filter(|_| !is_text).unwrap_or(json!(text))
}
