//! The sign-in as one conversation: for each page and each step, which page or answer comes next.
//! The table says what the pages do on purpose, as a browser sees it.

use serde_json::{Value, json};

use crate::support::device;
use crate::support::flow::authorize_path;
use crate::support::gatepost::{ALICE_PASSWORD, RP1, RP2};
use crate::support::house::House;
use crate::support::http::{Answer, Browser};
use crate::support::phone::Phone;

/// Who sits at the browser when the conversation begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    Nobody,
    /// Signed in with a password; has no second factor.
    Alice,
    /// Has an app that shows codes, and signed in with it.
    Fay,
    /// The same person in a session that only a password began.
    FayByPassword,
    /// Signed in through the provider `up`.
    Guest,
}

use Who::{Alice, Fay, FayByPassword, Guest, Nobody};

impl Who {
    fn named(name: &str) -> Who {
        let all = [Nobody, Alice, Fay, FayByPassword, Guest];
        let named = all.into_iter().find(|who| format!("{who:?}") == name);
        named.unwrap_or_else(|| panic!("nobody is called {name}"))
    }
}

/// One conversation: a row of [`TABLE`]. The moves are words, described at [`Scene::make`].
struct Row<'a> {
    /// The client, and parameters that differ from the usual request.
    request: &'a str,
    who: Who,
    moves: &'a str,
    /// What the browser has in the end, as [`seen`] calls it.
    ends: &'a str,
}

impl<'a> Row<'a> {
    fn read(line: &'a str) -> Row<'a> {
        let mut cells = line.split('|').map(str::trim);
        let mut cell = || {
            cells
                .next()
                .unwrap_or_else(|| panic!("too few cells: {line}"))
        };
        Row {
            request: cell(),
            who: Who::named(cell()),
            moves: cell(),
            ends: cell(),
        }
    }

    fn all() -> Vec<Row<'a>> {
        let rows = TABLE.trim().lines().filter(|line| !line.starts_with('#'));
        rows.map(Row::read).collect()
    }
}

/// What is asked for, who asks, the moves, and how it ends.
const TABLE: &str = "
# The authorize endpoint answers at once, or sends the browser to the page that asks.
conf1                       | Nobody        | ask         | to /login
conf1                       | Alice         | ask         | code
conf1                       | Alice         | ask-by-post | to /login
conf1 prompt=login          | Alice         | ask         | to /login
conf1 prompt=select_account | Alice         | ask         | to /login
conf2                       | Alice         | ask         | to /consent
strong                      | Alice         | ask         | to /login
strong                      | FayByPassword | ask         | to /login
strong                      | Fay           | ask         | code
closed                      | Alice         | ask         | page: not open
conf1 acr_values=idp:up     | Nobody        | ask         | to the provider
only-up                     | Nobody        | ask         | to the provider
only-up                     | Alice         | ask         | to the provider
# Nobody is shown anything with prompt=none: the client is told.
conf1 prompt=none  | Nobody        | ask                | error: login_required
conf1 prompt=none  | Alice         | ask                | code
conf2 prompt=none  | Alice         | ask                | error: consent_required
strong prompt=none | Alice         | ask                | error: unmet_authentication_requirements
strong prompt=none | FayByPassword | ask                | error: interaction_required
conf1 prompt=none  | Alice         | ask-by-post follow | code
# The sign-in page: what it shows.
conf1                       | Nobody        | ask follow | page: sign in
conf1                       | Alice         | ask-by-post follow | code
conf1 prompt=login          | Alice         | ask follow | page: sign in
conf1 prompt=select_account | Alice         | ask follow | page: choose account
conf2                       | Alice         | ask-by-post follow | to /consent
closed                      | Alice         | ask-by-post follow | page: not open
strong                      | Alice         | ask follow | page: add an app
strong                      | FayByPassword | ask follow | page: second factor
only-up                     | Nobody        | ask-by-post follow | to the provider
conf1                       | Alice         | ask-by-post follow-as-someone-else | page: sign in
# HEAD shows nothing.
conf1 | Alice | ask-by-post head | nothing
conf2 | Alice | ask-by-post head | to /consent
# The sign-in page: what its form leads to.
conf1                       | Nobody | ask follow sign-in                | code
conf2                       | Nobody | ask follow sign-in                | to /consent
conf1 prompt=login          | Alice  | ask follow sign-in                | code
conf1 prompt=select_account | Nobody | ask follow sign-in                | code
closed                      | Nobody | ask follow sign-in                | page: not open
strong                      | Nobody | ask follow sign-in                | page: add an app
conf1                       | Nobody | ask follow press:cancel           | error: access_denied
conf1                       | Nobody | ask follow forget-cookies sign-in | page: sign in
conf1                       | Nobody | ask follow press:continue         | error page: GP1505
conf1 claims=bob            | Nobody | ask follow sign-in                | error: login_required
# The account chooser.
conf1 prompt=select_account       | Alice | ask follow press:continue | code
conf1 prompt=select_account       | Alice | ask follow press:another  | page: sign in
conf1 prompt=select_account       | Alice | ask follow press:cancel   | error: access_denied
conf2 prompt=select_account       | Alice | ask follow press:continue | page: consent
strong prompt=select_account      | Alice | ask follow press:continue | page: add an app
conf1 prompt=login,select_account | Alice | ask follow                | page: sign in
closed                            | Alice | ask press:another         | page: sign in
# The second factor, after a password and in a session.
conf1 | Nobody | ask follow sign-in-as-fay | page: second factor
conf1 | Nobody | ask follow sign-in-as-fay type-code | code
conf2 | Nobody | ask follow sign-in-as-fay type-code | to /consent
conf1 | Nobody | ask follow sign-in-as-fay type-wrong-code | page: second factor
conf1 | Nobody | ask follow sign-in-as-fay press:cancel | error: access_denied
strong | FayByPassword | ask follow type-code | code
strong | FayByPassword | ask follow press:cancel | error: unmet_authentication_requirements
conf1 acr_values=2 | FayByPassword | ask follow | page: second factor
conf1 acr_values=2 | FayByPassword | ask follow press:not_now | code
# Whoever chose the account is asked for what the client wishes for, and chooses no more.
conf1 prompt=select_account acr_values=2 | FayByPassword | ask follow press:continue | page: second factor
conf1 prompt=select_account acr_values=2 | FayByPassword | ask follow press:continue type-code | code
conf1 prompt=select_account acr_values=2 | FayByPassword | ask follow press:continue press:not_now | code
conf2 prompt=select_account acr_values=2 | FayByPassword | ask follow press:continue type-code | page: consent
conf2 prompt=select_account acr_values=2 | FayByPassword | ask follow press:continue press:not_now | page: consent
conf1 prompt=select_account acr_values=2 | Fay | ask follow press:continue | code
strong | Alice | ask follow add-app | page: recovery codes
strong | Alice | ask follow add-app press:continue | code
strong | Alice | ask follow press:cancel | error: unmet_authentication_requirements
# The consent page.
conf2              | Nobody | ask follow sign-in follow             | page: consent
conf2              | Alice  | ask follow press:allow                | code
conf2              | Alice  | ask follow press:deny                 | error: access_denied
conf2              | Alice  | ask follow press:another              | page: sign in
conf2              | Alice  | ask follow forget-cookies press:allow | to /login
conf1              | Alice  | ask-by-post open:/consent             | code
conf1 prompt=login | Alice  | ask-by-post open:/consent             | to /login
conf1              | Nobody | ask-by-post open:/consent             | to /login
conf1              | Alice  | ask-by-post open:/device              | error page: GP1504
# Providers: no round and round.
only-up                 | Guest  | ask                    | code
conf1                   | Nobody | ask follow provider:up | to the provider
only-up prompt=login    | Guest  | ask                    | to the provider
only-up claims=bob      | Nobody | ask travel             | error: login_required
conf2 acr_values=idp:up | Nobody | ask travel             | page: consent
# A device: no address leads past the page that asks for its code.
device | Nobody | device                                           | page: user code
device | Nobody | device type-user-code                            | page: sign in
device | Nobody | device type-user-code sign-in                    | page: device question
device | Nobody | device type-user-code sign-in open:/login        | to /device
device | Alice  | device type-user-code                            | page: device question
device | Alice  | device type-user-code open:/device               | page: user code
device | Alice  | device type-user-code open:/consent              | error page: GP1504
device | Alice  | device type-user-code press:allow                | page: device connected
device | Alice  | device type-user-code press:deny                 | page: device refused
device | Nobody | device type-user-code press:cancel               | to /device
device | Alice  | device type-user-code forget-cookies press:allow | page: user code
device | Nobody | device type-user-code sign-in-as-fay type-code   | page: device question
# The account page.
account | Nobody | account                                 | to /login
account | Nobody | account follow sign-in                  | to /account
account | Nobody | account follow press:cancel             | to /logout
account | Nobody | account follow sign-in-as-fay type-code | to /account
account | Alice  | account                                 | page: account
";

const FAYS_KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const FAYS_PASSWORD: &str = "quite another password";
const BOBS_SUBJECT: &str = r#"{"id_token":{"sub":{"value":"bob-of-the-table"}}}"#;

fn house() -> House {
    let mut document = device::document();
    let mut add = |client_id: &str, changes: Value| {
        let mut client = document["clients"][0].clone();
        client["client_id"] = Value::from(client_id);
        for (name, value) in changes.as_object().unwrap() {
            client[name] = value.clone();
        }
        document["clients"].as_array_mut().unwrap().push(client);
    };
    add("strong", json!({"minimum_acr": "2"}));
    add("closed", json!({"allowed_roles": ["nobody has this role"]}));
    add("only-up", json!({"identity_providers": ["up"]}));
    add(
        "told",
        json!({"frontchannel_logout_uri": format!("{RP1}-out")}),
    );
    let fay = json!({"username": "fay", "password": FAYS_PASSWORD, "totp": FAYS_KEY});
    document["users"].as_array_mut().unwrap().push(fay);
    House::start_with(document, &json!({}), &[])
}

/// One conversation under way.
struct Scene<'a> {
    house: &'a House,
    request: &'a str,
    browser: Browser,
    answer: Option<Answer>,
    /// The sealed request of the last address that had one.
    sealed: String,
}

impl<'a> Scene<'a> {
    fn of(house: &'a House, request: &'a str, who: Who) -> Scene<'a> {
        let mut scene = Scene {
            house,
            request,
            browser: house.gatepost.browser(),
            answer: None,
            sealed: String::new(),
        };
        // A code of an app counts once; each row has one of its own.
        house
            .gatepost
            .run_sql("UPDATE authenticators SET last_step = 0 WHERE kind = 'totp'");
        house.gatepost.database.run(
            "DELETE FROM authenticators WHERE sub = (SELECT sub FROM users WHERE username = 'alice');
             UPDATE users SET strongest_acr = '1' WHERE username = 'alice'",
        );
        match who {
            Nobody => {}
            Alice => scene.make_all("account follow sign-in"),
            Fay => scene.make_all("account follow sign-in-as-fay type-code"),
            FayByPassword => {
                scene.make_all("account follow sign-in-as-fay type-code");
                house.gatepost.database.run(
                    "UPDATE sessions SET acr = '1', amr = '{pwd}' WHERE sub = (SELECT sub FROM users WHERE username = 'fay')",
                );
                house
                    .gatepost
                    .run_sql("UPDATE authenticators SET last_step = 0 WHERE kind = 'totp'");
            }
            Guest => {
                let path = authorize_path("conf1", RP1, &[("acr_values", "idp:up")]);
                scene.answer = Some(scene.browser.get(&path));
                scene.make("travel");
            }
        }
        scene
    }

    fn last(&self) -> &Answer {
        self.answer.as_ref().expect("a move before this one")
    }

    fn path(&self) -> String {
        let mut words = self.request.split(' ');
        let client_id = words.next().unwrap();
        let redirect_uri = if client_id == "conf2" { RP2 } else { RP1 };
        let changes: Vec<(&str, String)> = words
            .map(|word| {
                let (name, value) = word.split_once('=').unwrap();
                let value = if name == "claims" {
                    String::from(BOBS_SUBJECT)
                } else {
                    value.replace(',', " ")
                };
                (name, value)
            })
            .collect();
        let changes: Vec<(&str, &str)> = changes
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        authorize_path(client_id, redirect_uri, &changes)
    }

    fn make_all(&mut self, moves: &str) {
        moves.split(' ').for_each(|one| self.make(one));
    }

    /// Makes one move: `ask`, `ask-by-post` the authorize endpoint; `account` and `device` open
    /// those pages; `follow` goes where the last answer sends, once; `open:PAGE` and `head` open a
    /// page of the same sealed request; `press:X` sends the page's form with that decision;
    /// `travel` goes to the provider and back until Gatepost shows something or tells the client.
    fn make(&mut self, one: &str) {
        let (verb, argument) = one.split_once(':').unwrap_or((one, ""));
        let answer = match verb {
            "ask" => self.browser.get(&self.path()),
            "ask-by-post" => self.ask_by_post(),
            "account" => self.browser.get("/account"),
            "device" => self.browser.get("/device"),
            "follow" => {
                let address = String::from(self.last().location());
                self.browser.get(&address)
            }
            "follow-as-someone-else" => {
                let address = format!("{}&someone_else=true", self.last().location());
                self.browser.get(&address)
            }
            "open" => self.browser.get(&format!("{argument}?r={}", self.sealed)),
            "head" => self.browser.head(&format!("/login?r={}", self.sealed)),
            "sign-in" => self.send(&[("username", "alice"), ("password", ALICE_PASSWORD)]),
            "sign-in-as-fay" => self.send(&[("username", "fay"), ("password", FAYS_PASSWORD)]),
            "type-code" => {
                let phone = Phone::with_key(String::from(FAYS_KEY), 0);
                self.send(&[("code", &phone.code(0))])
            }
            "type-wrong-code" => self.send(&[("code", "000000")]),
            "add-app" => {
                let phone = Phone::from_page(self.last(), 0);
                self.send(&[("decision", "add_app"), ("code", &phone.code(0))])
            }
            "provider" => self.send(&[("identity_provider", argument)]),
            "press" => self.send(&[("decision", argument)]),
            "type-user-code" => {
                let started = device::start(
                    &self.house.gatepost,
                    device::TV,
                    &[("scope", "openid profile")],
                );
                self.send(&[("user_code", device::user_code(&started))])
            }
            "forget-cookies" => {
                self.browser.cookies.clear();
                return;
            }
            "travel" => self.travel(),
            other => panic!("no such move: {other}"),
        };
        self.remember_seal(&answer);
        self.answer = Some(answer);
    }

    fn ask_by_post(&mut self) -> Answer {
        let path = self.path();
        let (page, query) = path.split_once('?').unwrap();
        let form: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect();
        let form: Vec<(&str, &str)> = form
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        self.browser.post(page, &form)
    }

    /// Sends the form of the page with its hidden fields and these.
    fn send(&mut self, fields: &[(&str, &str)]) -> Answer {
        let page = self.last().clone();
        let hidden = page.fields();
        // The fields of the form for passkeys stay out.
        let kept = ["form_token", "app", "someone_else"]
            .iter()
            .filter_map(|name| Some((*name, hidden.get(*name)?.as_str())));
        let form: Vec<(&str, &str)> = kept.chain(fields.iter().copied()).collect();
        self.browser.post(&page.action(), &form)
    }

    /// The provider says yes at once.
    fn travel(&mut self) -> Answer {
        let mut answer = self.last().clone();
        for _ in 0..6 {
            let Some(location) = answer.header("location").map(str::to_owned) else {
                break;
            };
            if location.starts_with('/') || location.starts_with(&self.house.gatepost.base_url) {
                answer = self.browser.get(&location);
            } else if location.starts_with(self.house.up.issuer()) {
                let (origin, _) = location.split_at(self.house.up.issuer().len());
                let port = origin
                    .rsplit(':')
                    .next()
                    .unwrap()
                    .trim_end_matches('/')
                    .parse()
                    .unwrap();
                answer = Browser::new(port, origin).get(&location);
            } else {
                break;
            }
        }
        answer
    }

    fn remember_seal(&mut self, answer: &Answer) {
        let location = answer.header("location").map(str::to_owned);
        let action = answer.attribute("form method=\"post\"", "action");
        for address in [location, action].into_iter().flatten() {
            if let Some((_, rest)) = address.split_once("?r=") {
                self.sealed = rest.split('&').next().unwrap().to_owned();
            }
        }
    }
}

/// A word for what the browser has.
fn seen(house: &House, answer: &Answer) -> String {
    if let Some(location) = answer.header("location") {
        let path = location
            .strip_prefix(&house.gatepost.base_url)
            .unwrap_or(location);
        if path.starts_with('/') {
            return format!("to {}", path.split('?').next().unwrap());
        }
        if location.starts_with(house.up.issuer()) {
            return String::from("to the provider");
        }
        let mut told = answer.query();
        return match told.remove("error") {
            Some(error) => format!("error: {error}"),
            None if told.contains_key("code") => String::from("code"),
            None => format!("to {location}"),
        };
    }
    if answer.body.is_empty() {
        return String::from("nothing");
    }
    let text = answer.text();
    let marks = [
        ("name=\"password\"", "page: sign in"),
        ("value=\"another\"", "page: choose account"),
        ("Keep your recovery codes", "page: recovery codes"),
        ("class=\"qr-code\"", "page: add an app"),
        ("Confirm that it is you", "page: second factor"),
        ("name=\"user_code\"", "page: user code"),
        ("value=\"change_password\"", "page: account"),
        ("Your device is connected", "page: device connected"),
        ("Your device was not connected", "page: device refused"),
    ];
    if answer.status == 403 && text.contains("value=\"another\"") {
        return String::from("page: not open");
    }
    if text.contains("value=\"allow\"") {
        let is_of_device = answer.action().starts_with("/device");
        return String::from(if is_of_device {
            "page: device question"
        } else {
            "page: consent"
        });
    }
    if let Some((_, page)) = marks.iter().find(|(mark, _)| text.contains(mark)) {
        return String::from(*page);
    }
    let reason = text.find("GP1").and_then(|at| text.get(at..at + 6));
    reason
        .map(|reason| format!("error page: {reason}"))
        .unwrap_or_else(|| panic!("an unknown page: {text}"))
}

#[test]
fn each_page_and_step_leads_where_the_table_says() {
    let house = house();
    let mut wrong = Vec::new();
    let rows = Row::all();
    for row in &rows {
        let mut scene = Scene::of(&house, row.request, row.who);
        scene.make_all(row.moves);
        let ends = seen(&house, scene.last());
        if ends != row.ends {
            wrong.push(format!(
                "{} {:?}: {}: {ends}, not {}",
                row.request, row.who, row.moves, row.ends
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} rows:\n{}",
        wrong.len(),
        rows.len(),
        wrong.join("\n")
    );
}

#[test]
fn an_answer_that_is_not_given_writes_nothing() {
    let house = house();
    let database = &house.gatepost.database;
    let entered = || database.count("session_clients");
    for unanswered in ["ask-by-post head", "ask-by-post follow-as-someone-else"] {
        let mut scene = Scene::of(&house, "told", Alice);
        scene.make_all(unanswered);
        assert_eq!(entered(), 0, "{unanswered}");
    }
    let mut scene = Scene::of(&house, "told", Alice);
    scene.make_all("ask-by-post follow");
    assert_eq!(seen(&house, scene.last()), "code");
    assert_eq!(entered(), 1);
}
