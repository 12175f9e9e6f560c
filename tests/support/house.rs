//! A Gatepost and two scriptable providers: what tests of accounts elsewhere walk through.

use postgres::Client;
use serde_json::{Value, json};

use super::flow::{authorize_path, issued, redeem, sign_in, text};
use super::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use super::http::{Answer, Browser};
use super::jwt::verified;
use super::postgres::TestDatabase;
use super::signer::Signer;
use super::traveller::Traveller;
use super::upstream::Upstream;

/// A Gatepost with the providers `up` and `other`, each a server of its own.
pub struct House {
    pub up: Upstream,
    pub other: Upstream,
    pub gatepost: Gatepost,
}

impl House {
    pub fn start() -> House {
        House::start_with(document(), &json!({}), &[])
    }

    /// With a document and further settings of one's own, and the entry of `up` changed.
    pub fn start_with(document: Value, changes: &Value, settings: &[(&str, &str)]) -> House {
        House::prepared_by(Gatepost::prepare, document, changes, settings)
    }

    /// The same by a clock that can be set forward.
    pub fn start_with_a_clock_of_its_own() -> House {
        House::start_over(
            TestDatabase::with_a_clock_of_its_own(),
            document(),
            &json!({}),
            &[],
        )
    }

    /// Over a given empty database.
    pub fn start_over(
        database: TestDatabase,
        document: Value,
        changes: &Value,
        settings: &[(&str, &str)],
    ) -> House {
        let prepare = |settings: &[(&str, &str)]| Gatepost::prepare_over(database, settings);
        House::prepared_by(prepare, document, changes, settings)
    }

    fn prepared_by(
        prepare: impl FnOnce(&[(&str, &str)]) -> Gatepost,
        mut document: Value,
        changes: &Value,
        settings: &[(&str, &str)],
    ) -> House {
        let (up, other) = (
            Upstream::start_with(Signer::es256("first")),
            Upstream::start_with(Signer::es256("first")),
        );
        let mut providers = document["identity_providers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        providers.push(up.registration("up", changes.clone()));
        providers.push(other.registration("other", json!({"provision": false})));
        document["identity_providers"] = Value::from(providers);
        let allowed = [("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8")];
        let mut gatepost = prepare(&[&allowed, settings].concat());
        gatepost.apply(&document);
        gatepost.serve();
        House {
            up,
            other,
            gatepost,
        }
    }

    pub fn address(&self, path: &str) -> String {
        format!("{}{path}", self.gatepost.base_url)
    }

    pub fn browser<'a>(&self, person: &'a mut Traveller) -> &'a mut Browser {
        person.at(&self.gatepost.base_url)
    }

    /// Somebody with a password, at their account page.
    pub fn signed_in(&self, username: &str, password: &str) -> Traveller {
        let mut person = Traveller::new();
        let page = person.visit(&self.address("/account"));
        let answer = sign_in(self.browser(&mut person), &page, username, password);
        answer.assert_status(303);
        assert_eq!(answer.location(), "/account", "{}", answer.text());
        person
    }

    /// Their account page.
    pub fn account(&self, person: &mut Traveller) -> Answer {
        person.get(&self.address("/account"))
    }

    pub fn run_sql(&self, sql: &str) {
        self.gatepost.run_sql(sql);
    }

    pub fn alice(&self) -> Traveller {
        self.signed_in("alice", ALICE_PASSWORD)
    }

    /// One of the account page's forms.
    pub fn post(&self, person: &mut Traveller, form: &[(&str, &str)]) -> Answer {
        let page = self.account(person);
        self.browser(person).submit_to("/account", &page, form)
    }

    /// Asks to link, and goes as far as upstream, which has said yes: the callback's address.
    pub fn at_the_gate(&self, person: &mut Traveller, provider: &str) -> String {
        let answer = self.post(person, &[("decision", "link"), ("provider", provider)]);
        assert_eq!(answer.status, 303, "{}", answer.text());
        let site = self.gatepost.base_url.clone();
        person
            .follow_until(&site, answer, |next| next.contains("/external/"))
            .location()
            .to_owned()
    }

    /// All the way: the account there is one's own from then on.
    pub fn link(&self, person: &mut Traveller, provider: &str) {
        let callback = self.at_the_gate(person, provider);
        let question = person.get(&callback);
        let answer = self.confirm(person, &question);
        answer.assert_says("role=\"status\"");
    }

    /// What a form of the account page calls the account at the provider with that display name.
    pub fn identity(&self, person: &mut Traveller, display_name: &str) -> String {
        let page = self.account(person).text();
        let item = page.split("<li>").find(|item| {
            item.contains("value=\"unlink\"")
                && item.contains(&format!("<bdi>{display_name}</bdi>"))
        });
        let item = item.unwrap_or_else(|| panic!("{display_name} is not linked: {page}"));
        let (_, rest) = item.split_once("name=\"identity\" value=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    }

    /// Unlinks the account at that provider.
    pub fn unlink(&self, person: &mut Traveller, display_name: &str) -> Answer {
        let identity = self.identity(person, display_name);
        self.post(person, &[("decision", "unlink"), ("identity", &identity)])
    }

    /// Details of the audit log's events of that name, in the order in which they were written.
    pub fn events(&self, name: &str) -> Vec<Value> {
        let sql = "SELECT detail::text FROM audit_events WHERE event = $1 ORDER BY at, seq";
        let asked = |client: &mut Client| client.query(sql, &[&name]);
        let rows = self.gatepost.database.ask(asked);
        rows.iter()
            .map(|row| serde_json::from_str(row.get(0)).unwrap())
            .collect()
    }

    /// Tokens for a signed-in browser, through `conf1`.
    pub fn tokens(&self, person: &mut Traveller) -> Value {
        let answer = person.get(&self.address(&authorize_path("conf1", RP1, &[])));
        issued(&redeem(&self.gatepost, &answer.query()["code"]))
    }

    /// The question, answered with yes.
    pub fn confirm(&self, person: &mut Traveller, question: &Answer) -> Answer {
        let fields = question.fields();
        let form = [
            ("form_token", &*fields["form_token"]),
            ("offer", &*fields["offer"]),
            ("decision", "confirm_link"),
        ];
        self.browser(person).post("/account", &form)
    }

    /// Claims of an ID token after a sign-in through a provider.
    pub fn through(&self, person: &mut Traveller, provider: &str) -> Option<Value> {
        let idp = format!("idp:{provider}");
        let answer =
            person.visit(&self.address(&authorize_path("conf1", RP1, &[("acr_values", &idp)])));
        answer.header("location")?;
        let tokens = issued(&redeem(&self.gatepost, &answer.query()["code"]));
        Some(verified(&self.gatepost, text(&tokens, "id_token")).1)
    }

    pub fn sub(&self, username: &str) -> String {
        let sql = "SELECT sub FROM users WHERE username = $1";
        self.gatepost.database.value(sql, &[&username])
    }

    pub fn links(&self) -> i64 {
        self.gatepost.database.count("linked_identities")
    }

    pub fn is_signed_in(&self, person: &mut Traveller) -> bool {
        let path = authorize_path("conf1", RP1, &[("prompt", "none")]);
        let answer = person.get(&self.address(&path)).query();
        assert!(
            answer.contains_key("code") || answer["error"] == "login_required",
            "{answer:?}"
        );
        answer.contains_key("code")
    }
}

/// A Gatepost and a server that is all of its providers: each of a name, and with what differs in
/// its registration.
pub fn start_with_one_server(document: Value, providers: &[(&str, Value)]) -> (Upstream, Gatepost) {
    start_with_one_server_under(document, providers, &[])
}

/// The same under further settings.
pub fn start_with_one_server_under(
    mut document: Value,
    providers: &[(&str, Value)],
    settings: &[(&str, &str)],
) -> (Upstream, Gatepost) {
    let upstream = Upstream::start_with(Signer::es256("first"));
    let registered = providers
        .iter()
        .map(|(name, changes)| upstream.registration(name, changes.clone()));
    document["identity_providers"] = registered.collect();
    let reach = [("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8,::1/128")];
    let gatepost = Gatepost::start_with(&document, &[&reach, settings].concat());
    (upstream, gatepost)
}

/// Goes with an authorization request as far as upstream, which has said yes: the callback's
/// address, which nobody has been at yet.
pub fn as_far_as_upstream(
    gatepost: &Gatepost,
    person: &mut Traveller,
    parameters: &[(&str, &str)],
) -> String {
    let request = format!(
        "{}{}",
        gatepost.base_url,
        authorize_path("conf1", RP1, parameters)
    );
    let answer = person.get(&request);
    let answer = person.follow_until(&request, answer, |next| next.contains("/external/"));
    let callback = answer.location().to_owned();
    assert!(
        callback.starts_with(&format!("{}/external/", gatepost.base_url)),
        "{callback}"
    );
    callback
}
