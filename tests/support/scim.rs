//! Programs that look after users over SCIM (RFC 7644).

use serde_json::{Value, json};

use super::flow::{issued, text, with_clients, with_members};
use super::gatepost::{Gatepost, document};
use super::http::{Answer, encode};
use super::shared::Shared;

pub const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
pub const PATCH: &str = "urn:ietf:params:scim:api:messages:2.0:PatchOp";
pub const ON: [(&str, &str); 1] = [("GATEPOST_SCIM", "on")];
pub const ALL_SCOPES: &str = "scim.read scim.write scim.password";

/// What an operator registers for it, and a client for each kind of program.
pub fn registered() -> Value {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "Acme"}, {"name": "globex", "display_name": "Globex"}]);
    registered["resources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "urn:gatepost:scim"}));
    for scope in ["scim.read", "scim.write", "scim.password"] {
        let scope = json!({"name": scope, "resources": ["urn:gatepost:scim"]});
        registered["resource_scopes"]
            .as_array_mut()
            .unwrap()
            .push(scope);
    }
    let program = |changes: Value| {
        let program = json!({
            "client_name": "HR", "grant_types": ["client_credentials"], "response_types": [], "redirect_uris": [],
            "scope": ALL_SCOPES,
        });
        with_members(program, &changes)
    };
    let clients = [
        ("hr", program(json!({}))),
        ("byref", program(json!({"access_token_type": "reference"}))),
        ("acmes", program(json!({"tenants": ["acme"]}))),
        ("both", program(json!({"tenants": ["acme", "globex"]}))),
        (
            "app",
            json!({"scope": "openid profile email scim.read scim.write"}),
        ),
    ];
    with_clients(registered, &clients)
}

pub fn start() -> Gatepost {
    Gatepost::start_with(&registered(), &ON)
}

/// The same, which other tests use too: everybody names their own people.
pub fn shared() -> Shared {
    Gatepost::shared_with(&registered(), &ON)
}

pub fn token_of(gatepost: &Gatepost, client_id: &str, scope: &str) -> String {
    let form = [("grant_type", "client_credentials"), ("scope", scope)];
    let answer = gatepost.token(client_id, &form);
    text(&issued(&answer), "access_token").to_owned()
}

/// A program with its token.
pub struct Program<'a> {
    pub gatepost: &'a Gatepost,
    pub authorization: String,
}

impl<'a> Program<'a> {
    pub fn new(gatepost: &'a Gatepost, client_id: &str, scope: &str) -> Program<'a> {
        Program::with(gatepost, &token_of(gatepost, client_id, scope))
    }

    pub fn with(gatepost: &'a Gatepost, token: &str) -> Program<'a> {
        let authorization = format!("Bearer {token}");
        Program {
            gatepost,
            authorization,
        }
    }

    pub fn hr(gatepost: &'a Gatepost) -> Program<'a> {
        Program::new(gatepost, "hr", "scim.read scim.write")
    }

    pub fn ask(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.ask_with(method, path, body, &[])
    }

    pub fn ask_with(
        &self,
        method: &str,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Answer {
        let own = [
            ("Authorization", self.authorization.as_str()),
            ("Content-Type", "application/scim+json"),
        ];
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let path = format!("/scim/v2/{path}");
        let headers = [&own, headers].concat();
        let mut connection = self.gatepost.connect();
        connection.send(method, &path, &headers, body.as_bytes())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &Value::Null)
    }

    /// Adds somebody; the resource.
    pub fn add(&self, resource: Value) -> Value {
        let mut resource = resource;
        resource["schemas"] = json!([USER]);
        let answer = self.ask("POST", "Users", &resource);
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()
    }

    pub fn patch(&self, id: &str, operations: Value) -> Answer {
        let body = json!({"schemas": [PATCH], "Operations": operations});
        self.ask("PATCH", &format!("Users/{id}"), &body)
    }

    /// Sets one attribute.
    pub fn replace(&self, id: &str, path: &str, value: impl Into<Value>) -> Answer {
        let value = value.into();
        self.patch(id, json!([{"op": "replace", "path": path, "value": value}]))
    }

    /// Who is called so.
    pub fn named(&self, user_name: &str) -> Value {
        let filter = format!("userName eq \"{user_name}\"");
        let answer = self.get(&format!("Users?{}", encode(&[("filter", &filter)])));
        answer.json()["Resources"][0].clone()
    }

    pub fn found(&self, filter: &str) -> Vec<String> {
        let answer = self.get(&format!("Users?{}", encode(&[("filter", filter)])));
        assert_eq!(answer.status, 200, "{filter}: {}", answer.text());
        user_names(&answer.json())
    }
}

pub fn user_names(list: &Value) -> Vec<String> {
    let users = list["Resources"].as_array().unwrap().iter();
    users
        .map(|user| text(user, "userName").to_owned())
        .collect()
}
