//! Extension grants of a document.

use crate::protocol::words::client::GrantType;

use super::names::token_name;
use super::walker::Walker;

/// A grant type answered by a SQL function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionGrant {
    pub name: String,
    pub schema: String,
    pub function: String,
}

pub fn read(walker: &mut Walker<'_, '_>) -> ExtensionGrant {
    let name = walker.required("name", grant_name);
    let function = walker.required("function", qualified_function);
    let (schema, function) = function.split_once('.').unwrap_or_default();
    ExtensionGrant { name, schema: schema.to_owned(), function: function.to_owned() }
}

fn grant_name(name: &str) -> Result<(), &'static str> {
    match GrantType::from_name(name) {
        GrantType::Extension(_) => token_name(name),
        GrantType::AuthorizationCode
        | GrantType::Implicit
        | GrantType::RefreshToken
        | GrantType::ClientCredentials
        | GrantType::Password
        | GrantType::DeviceCode
        | GrantType::TokenExchange
        | GrantType::JwtBearer => Err("is the name of a built-in grant"),
    }
}

fn qualified_function(text: &str) -> Result<(), &'static str> {
    let identifier = |part: &str| {
        let begins_well = part.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        begins_well && part.len() <= 63 && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let parts: Vec<&str> = text.split('.').collect();
    let fits = parts.len() == 2 && parts.into_iter().all(identifier);
    if fits { Ok(()) } else { Err("must be a schema and a function, as legacy.redeem_key") }
}
