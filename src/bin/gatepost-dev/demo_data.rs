//! What `gatepost-dev` registers: the document embedded from `demo.json`, in the form `apply`
//! takes. Names and passwords are read from it alone, so that what is printed, what is registered
//! and what the demo application uses agree.

use serde::Deserialize;

use super::Trouble;
use super::demo::RelyingParty;

const DOCUMENT: &str = include_str!("demo.json");

/// In the document; replaced by where it really is.
const DOCUMENTED_DEMO: &str = "http://localhost:8081";

/// Those for which the demo application signs people in, itself first.
const DEMO_CLIENTS: [&str; 4] = ["demo", "bookkeeping", "stock", "roster"];

/// Those that are named to people who try it out, of all who have a password.
const SHOWN_PEOPLE: usize = 3;

#[derive(Debug)]
pub(super) struct DemoData {
    pub(super) document: String,
    /// Those whom people who try it out are told about.
    pub(super) users: Vec<DemoUser>,
    pub(super) clients: Vec<DemoClient>,
}

/// The password is public, so it is plain text here.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct DemoUser {
    pub(super) username: String,
    /// `None` where somebody was invited and has not come.
    #[serde(default)]
    password: Option<String>,
    /// The key of the app on their phone, in base32.
    #[serde(default)]
    pub(super) totp: Option<String>,
}

impl DemoUser {
    pub(super) fn password(&self) -> &str {
        self.password.as_deref().unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct DemoClient {
    client_id: String,
    client_name: String,
    scope: String,
    grant_types: Vec<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    allowed_roles: Vec<String>,
    #[serde(default)]
    secrets: Vec<DemoSecret>,
}

#[derive(Debug, Deserialize)]
struct DemoSecret {
    value: String,
}

#[derive(Debug, Deserialize)]
struct Registered {
    users: Vec<DemoUser>,
    clients: Vec<DemoClient>,
}

impl DemoData {
    pub(super) fn following(demo_base_url: &str) -> Result<DemoData, Trouble> {
        let document = DOCUMENT.replace(DOCUMENTED_DEMO, demo_base_url);
        let registered: Registered = serde_json::from_str(&document)
            .map_err(|error| Trouble::new(format!("demo.json: {error}")))?;
        let with_password = registered
            .users
            .into_iter()
            .filter(|user| user.password.is_some());
        Ok(DemoData {
            document,
            users: with_password.take(SHOWN_PEOPLE).collect(),
            clients: registered.clients,
        })
    }

    /// The registrations of the demo application and of the applications that it plays.
    pub(super) fn relying_parties(
        &self,
        issuer: &str,
        demo_base_url: &str,
    ) -> Result<Vec<RelyingParty>, Trouble> {
        let mut relying_parties = Vec::new();
        for client_id in DEMO_CLIENTS {
            let client = self
                .clients
                .iter()
                .find(|client| client.client_id == client_id);
            let secret = client.and_then(|client| client.secrets.first());
            let (Some(client), Some(secret)) = (client, secret) else {
                let missing = format!("demo.json has no client `{client_id}` with a secret");
                return Err(Trouble::new(missing));
            };
            relying_parties.push(RelyingParty {
                issuer: issuer.to_owned(),
                base_url: demo_base_url.to_owned(),
                client_id: client.client_id.clone(),
                client_name: client.client_name.clone(),
                client_secret: secret.value.clone(),
                scope: client.scope.clone(),
                allowed_roles: client.allowed_roles.clone(),
            });
        }
        Ok(relying_parties)
    }
}

impl DemoClient {
    pub(super) fn summary(&self) -> String {
        let secret = self
            .secrets
            .first()
            .map_or("no secret", |secret| secret.value.as_str());
        let redirects = self.redirect_uris.join(" ");
        let uses = if redirects.is_empty() {
            self.grant_types.join(" ")
        } else {
            format!("returns to {redirects}")
        };
        format!(
            "{} / {secret} ({}, {uses})",
            self.client_id, self.client_name
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gatepost::protocol::registration::client_rules::ClientDefaults;
    use gatepost::registration::document::Document;
    use gatepost::registration::references::Stored;

    use super::*;

    /// Every standard claim of OpenID Connect Core §5.1, but `sub`.
    const STANDARD_CLAIMS: [&str; 19] = [
        "name",
        "given_name",
        "family_name",
        "middle_name",
        "nickname",
        "preferred_username",
        "profile",
        "picture",
        "website",
        "email",
        "email_verified",
        "gender",
        "birthdate",
        "zoneinfo",
        "locale",
        "phone_number",
        "phone_number_verified",
        "address",
        "updated_at",
    ];

    #[test]
    fn the_redirect_uri_follows_the_demo_applications_port() {
        let data = DemoData::following("http://localhost:41999").unwrap();
        assert!(
            data.document
                .contains("\"http://localhost:41999/callback\"")
        );
        assert!(!data.document.contains(":8081"));
    }

    #[test]
    fn apply_takes_the_document_as_it_is() {
        let document = gatepost::protocol::registration::walker::parse(DOCUMENT).unwrap();
        let stored = Stored::default();
        let read = Document::from_json(&document, &ClientDefaults::default(), &stored);
        assert!(read.is_ok(), "{:#?}", read.err());
    }

    #[test]
    fn alice_has_every_standard_claim_and_her_role() {
        let document: serde_json::Value = serde_json::from_str(DOCUMENT).unwrap();
        let claims = document["users"][0]["claims"].as_object().unwrap();
        let names: BTreeSet<&str> = claims.keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = STANDARD_CLAIMS.into_iter().chain(["role"]).collect();
        assert_eq!(names, expected);
        assert_eq!(claims["role"], serde_json::json!(["admin"]));
    }

    #[test]
    fn the_demo_application_knows_its_registration() {
        let data = DemoData::following("http://localhost:8081").unwrap();
        let relying_parties = data
            .relying_parties("http://localhost:8080", "http://localhost:8081")
            .unwrap();
        let client_ids: Vec<&str> = relying_parties
            .iter()
            .map(|party| party.client_id.as_str())
            .collect();
        assert_eq!(client_ids, DEMO_CLIENTS);
        for party in relying_parties {
            assert!(party.scope.split(' ').any(|scope| scope == "roles"));
        }
    }

    #[test]
    fn the_roles_that_its_applications_ask_for_have_names_and_are_given_by_administrators() {
        let data = DemoData::following("http://localhost:8081").unwrap();
        let document: serde_json::Value = serde_json::from_str(DOCUMENT).unwrap();
        let played = data.clients.iter();
        let played = played.filter(|client| DEMO_CLIENTS.contains(&client.client_id.as_str()));
        let asked: BTreeSet<&str> = played
            .flat_map(|client| client.allowed_roles.iter().map(String::as_str))
            .collect();
        let registered: BTreeSet<&str> = document["roles"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|role| role["given_by_administrators"] == true)
            .filter(|role| role["display_name"].is_string() && role["description"].is_string())
            .filter_map(|role| role["name"].as_str())
            .collect();
        assert_eq!(registered, asked);
        assert_eq!(registered.len(), 3);
    }

    #[test]
    fn a_company_of_twelve_has_three_who_are_shown_and_one_with_an_app() {
        let data = DemoData::following("http://localhost:8081").unwrap();
        let document: serde_json::Value = serde_json::from_str(DOCUMENT).unwrap();
        assert_eq!(document["users"].as_array().unwrap().len(), 12);
        let shown = data.users.iter().map(|user| {
            (
                user.username.as_str(),
                user.password().is_empty(),
                user.totp.is_some(),
            )
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [
                ("alice", false, false),
                ("bob", false, false),
                ("olivia", false, true)
            ]
        );
    }
}
