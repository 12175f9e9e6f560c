//! Clients that may stay while the person is away, and what they do with their tokens.

use serde_json::{Value, json};

use super::flow::{VERIFIER, authorize_path, basic, issued, signed_in};
use super::gatepost::{self, CONF1_SECRET, CONF2_SECRET, Gatepost, RP1, RP2, RPS};
use super::http::{Answer, Browser, Connection};
use super::shared::Shared;

/// Resources of the document, with their secrets.
pub const ORDERS: (&str, &str) = ("https://orders.example", "orders-secret-with-some-length");
pub const STOCK: (&str, &str) = ("https://stock.example", "stock-secret-with-some-length");

/// A client as it speaks at the endpoints it calls itself.
#[derive(Clone, Copy, Debug)]
pub struct Party {
    pub client_id: &'static str,
    pub secret: Option<&'static str>,
    pub redirect_uri: &'static str,
}

/// Confidential, JWT access tokens.
pub const CONF1: Party = Party {
    client_id: "conf1",
    secret: Some(CONF1_SECRET),
    redirect_uri: RP1,
};
/// Confidential, reference access tokens, asks for consent.
pub const CONF2: Party = Party {
    client_id: "conf2",
    secret: Some(CONF2_SECRET),
    redirect_uri: RP2,
};
/// Public, JWT access tokens.
pub const PUB1: Party = Party {
    client_id: "pub1",
    secret: None,
    redirect_uri: RPS,
};
/// Confidential, reference access tokens, refresh tokens that stay.
pub const REUSE: Party = Party {
    client_id: "reuse",
    secret: Some(CONF1_SECRET),
    redirect_uri: RP1,
};
/// Confidential, without refresh tokens.
pub const PLAIN: Party = Party {
    client_id: "plain",
    secret: Some(CONF1_SECRET),
    redirect_uri: RP1,
};

/// A server of [`document`] that is lent, and alice's browser.
pub fn start() -> (Shared, Browser) {
    let gatepost = Gatepost::lent_with(&document(), &[]);
    let browser = signed_in(&gatepost);
    (gatepost, browser)
}

/// A server that a test may change.
pub fn start_own() -> (Gatepost, Browser) {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let browser = signed_in(&gatepost);
    (gatepost, browser)
}

/// The usual document, with refresh tokens and with secrets of the resources.
pub fn document() -> Value {
    let mut document = gatepost::document();
    document["resources"] = json!([
        {"name": ORDERS.0, "secrets": [{"value": ORDERS.1}]},
        {"name": STOCK.0, "secrets": [{"value": STOCK.1}], "claims": ["email"]}
    ]);
    let clients = document["clients"].as_array_mut().unwrap();
    for client in clients
        .iter_mut()
        .filter(|client| ["conf1", "conf2", "pub1"].contains(&text(client, "client_id")))
    {
        client["grant_types"]
            .as_array_mut()
            .unwrap()
            .push(json!("refresh_token"));
        client["scope"] = json!(format!(
            "{} offline_access orders.read stock.read",
            text(client, "scope")
        ));
    }
    clients[0]["scope"] =
        json!("openid profile email roles orders.read orders.write stock.read offline_access");
    let further = |client_id: &str, grant_types: Value| {
        json!({
            "client_id": client_id, "redirect_uris": [RP1], "grant_types": grant_types, "response_types": ["code"],
            "scope": "openid profile offline_access orders.read", "secrets": [{"value": CONF1_SECRET}],
            "access_token_type": "reference"
        })
    };
    let mut reuse = further("reuse", json!(["authorization_code", "refresh_token"]));
    reuse["refresh_token_usage"] = json!("reuse");
    clients.push(reuse);
    let mut plain = further("plain", json!(["authorization_code"]));
    plain["scope"] = json!("openid profile orders.read");
    clients.push(plain);
    document
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// The client of that name in a document, to be changed.
pub fn client<'a>(document: &'a mut Value, client_id: &str) -> &'a mut Value {
    let clients = document["clients"].as_array_mut().unwrap();
    let mut clients = clients.iter_mut();
    clients
        .find(|client| client["client_id"] == client_id)
        .unwrap()
}

impl Party {
    /// Posts a form as this client.
    pub fn post(&self, connection: &mut Connection, path: &str, form: &[(&str, &str)]) -> Answer {
        match self.secret {
            Some(secret) => {
                let header = basic(self.client_id, secret);
                connection.post(path, &[("Authorization", &header)], form)
            }
            None => {
                let name = ("client_id", self.client_id);
                connection.post(path, &[], &[form, &[name]].concat())
            }
        }
    }

    /// The same over a connection of its own.
    pub fn ask(&self, gatepost: &Gatepost, path: &str, form: &[(&str, &str)]) -> Answer {
        self.post(&mut gatepost.connect(), path, form)
    }

    /// An access token of the client's own.
    #[track_caller]
    pub fn of_itself(&self, gatepost: &Gatepost) -> String {
        let form = [("grant_type", "client_credentials")];
        access(&issued(&self.ask(gatepost, "/connect/token", &form))).to_owned()
    }

    /// Gets tokens by the code flow for a browser that is signed in; consent is given where it is
    /// asked for.
    pub fn tokens(&self, gatepost: &Gatepost, browser: &mut Browser, scope: &str) -> Value {
        self.tokens_with(gatepost, browser, &[("scope", scope)])
    }

    /// The same with further changes to the request.
    pub fn tokens_with(
        &self,
        gatepost: &Gatepost,
        browser: &mut Browser,
        changes: &[(&str, &str)],
    ) -> Value {
        let code = self.code(browser, changes);
        issued(&self.redeem(gatepost, &code))
    }

    /// A code for this client.
    pub fn code(&self, browser: &mut Browser, changes: &[(&str, &str)]) -> String {
        let scope = changes
            .iter()
            .find(|(name, _)| *name == "scope")
            .map_or("openid profile", |(_, scope)| scope);
        let mut answer = browser.visit(&authorize_path(self.client_id, self.redirect_uri, changes));
        if answer.status == 200 {
            let optional: Vec<&str> = scope.split(' ').filter(|name| *name != "openid").collect();
            answer = browser.decide(&answer, "allow", &optional, true);
        }
        answer.code()
    }

    /// Redeems a code.
    pub fn redeem(&self, gatepost: &Gatepost, code: &str) -> Answer {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.redirect_uri),
            ("code_verifier", VERIFIER),
        ];
        self.ask(gatepost, "/connect/token", &form)
    }

    /// Refreshes.
    pub fn refresh(&self, gatepost: &Gatepost, refresh_token: &str) -> Answer {
        self.refresh_with(gatepost, refresh_token, &[])
    }

    /// A refresh token by which nothing is to be had any more.
    #[track_caller]
    pub fn assert_refresh_over(&self, gatepost: &Gatepost, refresh_token: &str) {
        let answer = self.refresh(gatepost, refresh_token);
        answer.assert_error(400, "invalid_grant");
    }

    /// Refreshes with further parameters.
    pub fn refresh_with(
        &self,
        gatepost: &Gatepost,
        refresh_token: &str,
        further: &[(&str, &str)],
    ) -> Answer {
        let token = ("refresh_token", refresh_token);
        let form = [&[("grant_type", "refresh_token"), token], further].concat();
        self.ask(gatepost, "/connect/token", &form)
    }

    /// Revokes a token, which must be acknowledged.
    pub fn revoke(&self, gatepost: &Gatepost, token: &str) {
        let answer = self.ask(gatepost, "/connect/revocation", &[("token", token)]);
        // The build before, from which an upgrade begins, answers with nothing.
        let body = answer.text();
        assert_eq!(answer.status, 200, "{body}");
        assert!(["{}", ""].contains(&body.as_str()), "{body}");
    }

    /// Introspects a token.
    pub fn introspect(&self, gatepost: &Gatepost, token: &str) -> Value {
        issued(&self.ask(gatepost, "/connect/introspect", &[("token", token)]))
    }

    #[track_caller]
    pub fn assert_active(&self, gatepost: &Gatepost, token: &str, case: &str) {
        let told = self.introspect(gatepost, token);
        assert_eq!(told["active"], true, "{case}: {told}");
    }
}

/// What a resource is told about a token.
pub fn introspect_as(gatepost: &Gatepost, (name, secret): (&str, &str), token: &str) -> Value {
    let headers = [("Authorization", &*basic(name, secret))];
    issued(&gatepost.post("/connect/introspect", &headers, &[("token", token)]))
}

/// A member that is a text.
pub fn member<'a>(tokens: &'a Value, name: &str) -> &'a str {
    let text = tokens[name].as_str();
    text.unwrap_or_else(|| panic!("no {name} in {tokens}"))
}

/// The access token of a token response.
pub fn access(tokens: &Value) -> &str {
    member(tokens, "access_token")
}

/// The refresh token of a token response.
pub fn refresh(tokens: &Value) -> &str {
    member(tokens, "refresh_token")
}
