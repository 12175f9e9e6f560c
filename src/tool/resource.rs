//! `gatepost resource`: what the server of a resource tells its clients (RFC 9728).

use serde_json::json;

use super::client;
use super::operator::Operator;
use super::output::{self, CommandResult, say};
use gatepost_protocol::registration::names::hint;
use gatepost_protocol::words::scope::OFFLINE_ACCESS;
use gatepost_protocol::words::web_url::WebUrl;

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Prints the document that says where tokens for a resource are given out.
pub fn metadata(operator: &Operator) -> CommandResult {
    let name = operator.value(0);
    let catalogue = client::catalogue(operator)?;
    if !catalogue.resources.contains_key(name) {
        let nearest = hint(name, catalogue.resources.keys().map(String::as_str));
        let name = name.escape_debug();
        return refuse!("there is no resource \"{name}\"{nearest}");
    }
    let url = WebUrl::parse(name)
        .or_else(|rule| refuse!("{name} is not an address that clients call: it {rule}"))?;
    let mut scopes = Vec::new();
    for scope in catalogue.scopes.values() {
        let is_of_it = scope.resources.iter().any(|resource| resource == name);
        if is_of_it && scope.name != OFFLINE_ACCESS {
            scopes.push(scope.name.as_str());
        }
    }
    if scopes.is_empty() {
        return refuse!("nobody can get a token for {name}: no scope has it among its resources");
    }
    let document = json!({
        "resource": name,
        "authorization_servers": [operator.config.base_url.as_str()],
        "scopes_supported": scopes,
    });
    if operator.has("--json") {
        return say(output::pretty(&document)?);
    }
    let path = path(&url);
    let query = url.query.map(|query| format!("?{query}"));
    let address = format!("{}{path}{}", url.origin, query.unwrap_or_default());
    let scope = scopes.join(" ");
    // In nginx these two would end the text, or name a variable.
    let text = document.to_string();
    let text = text.replace('\'', "\\u0027").replace('$', "\\u0024");
    say!(
        "{}\n\nIts address: {address}\n\n\
         To a request without a token, or with one that is not valid, answer 401 with:\n\
         WWW-Authenticate: Bearer resource_metadata=\"{address}\", scope=\"{scope}\"\n\n\
         nginx serves the document with:\n\
         location = {path} {{\n    \
             default_type application/json;\n    \
             add_header Access-Control-Allow-Origin *;\n    \
             return 200 '{text}';\n\
         }}",
        output::pretty(&document)?
    )
}

/// It comes between host and path; a slash that is the whole path is left out (section 3.1).
fn path(url: &WebUrl<'_>) -> String {
    match url.path {
        "/" => String::from(WELL_KNOWN),
        path => format!("{WELL_KNOWN}{path}"),
    }
}
