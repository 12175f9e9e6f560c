//! The way back from an upstream provider: what it takes to come in, whose account that is, and
//! what is kept of it.

use postgres::types::FromSqlOwned;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{authorize_path, changed, issued, redeem, sign_in, text};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, document};
use crate::support::house::{as_far_as_upstream, start_with_one_server_under};
use crate::support::http::{Answer, Browser};
use crate::support::jwt::verified;
use crate::support::signer::now;
use crate::support::traveller::Traveller;
use crate::support::upstream::{Place, Upstream};
use crate::support::waiting::{SOON, all_at_once, await_that};

/// A Gatepost and its providers, all of them one server: `up` brings new people, `closed` does not,
/// `of-acme` is a tenant's, `leaving` signs out there, `posting` posts its answer, as Apple does.
struct House {
    upstream: Upstream,
    gatepost: Gatepost,
}

impl House {
    fn start() -> House {
        House::start_under(&[])
    }

    fn start_under(settings: &[(&str, &str)]) -> House {
        let mut document = document();
        document["tenants"] = json!([{"name": "acme"}]);
        let mapped = json!({"claims": {"groups": "role"}, "acr_map": {"gold": "2"}});
        let providers = [
            ("up", mapped),
            ("closed", json!({"provision": false})),
            ("of-acme", json!({"tenant": "acme"})),
            ("leaving", json!({"sign_out": true})),
            ("posting", json!({"response_mode": "form_post"})),
        ];
        let (upstream, gatepost) = start_with_one_server_under(document, &providers, settings);
        House { upstream, gatepost }
    }

    /// As far as upstream, which has said yes: the callback's address.
    fn at_the_gate(
        &self,
        person: &mut Traveller,
        acr_values: &str,
        changes: &[(&str, &str)],
    ) -> String {
        let all = changed(&[("acr_values", acr_values)], changes);
        as_far_as_upstream(&self.gatepost, person, &all)
    }

    fn come_in(
        &self,
        person: &mut Traveller,
        acr_values: &str,
        changes: &[(&str, &str)],
    ) -> Answer {
        let callback = self.at_the_gate(person, acr_values, changes);
        person.get(&callback)
    }

    /// Comes in through `up` as that subject, with claims of the ID token: what the ID token here
    /// says.
    fn known_as(&self, subject: &str, claims: Value) -> Value {
        let subject = subject.to_owned();
        self.upstream
            .plan(|plan| (plan.subject, plan.id_token) = (subject, claims));
        self.told(&self.come_in_anew("idp:up", &[]))
    }

    /// Comes in as somebody whom this browser has never seen.
    fn come_in_anew(&self, acr_values: &str, changes: &[(&str, &str)]) -> Answer {
        self.come_in(&mut Traveller::new(), acr_values, changes)
    }

    fn told(&self, answer: &Answer) -> Value {
        answer.assert_carries("code");
        let tokens = issued(&redeem(&self.gatepost, &answer.query()["code"]));
        verified(&self.gatepost, text(&tokens, "id_token")).1
    }

    fn browser<'a>(&self, person: &'a mut Traveller) -> &'a mut Browser {
        person.at(&self.gatepost.base_url)
    }

    fn one<T: FromSqlOwned>(&self, sql: &str, sub: &str) -> T {
        self.gatepost.database.value(sql, &[&sub])
    }

    fn claims_of(&self, sub: &str) -> Value {
        self.one("SELECT claims FROM users WHERE sub = $1", sub)
    }

    /// Events of that name with that reason, once they are written.
    fn await_audited(&self, reason: &str) {
        let sql = "SELECT count(*) FROM audit_events WHERE event = 'external_sign_in_failed' AND detail->>'reason' = $1";
        await_that(reason, SOON, || self.one::<i64>(sql, reason) > 0);
    }

    fn assert_refused(&self, answer: &Answer, status: u16, code: &str) {
        answer.assert_error_page(status, code, code);
        self.await_audited(code);
    }
}

fn flow_cookies(browser: &Browser) -> usize {
    let names = browser.cookies.keys();
    names.filter(|name| name.contains("-flow-")).count()
}

#[test]
fn each_way_has_a_cookie_of_its_own_and_ends_with_it() {
    let house = House::start();
    let mut person = Traveller::new();
    let first = house.at_the_gate(&mut person, "idp:up", &[]);
    let path = authorize_path("conf1", RP1, &[("acr_values", "idp:up")]);
    let answer = person.get(&format!("{}{path}", house.gatepost.base_url));
    answer.assert_status(303);
    answer.assert_header("referrer-policy", "no-referrer");
    answer.assert_header("cache-control", "no-store");
    let mut set = answer.headers_named("set-cookie").into_iter();
    let set = set.find(|cookie| cookie.contains("-flow-")).unwrap();
    let (_, attributes) = set.split_once("; ").unwrap();
    assert_eq!(attributes, "Max-Age=600; Path=/; HttpOnly; SameSite=Lax");
    assert_eq!(flow_cookies(house.browser(&mut person)), 2);

    // Four more: the first, which is the oldest, makes room.
    let later = [(); 4].map(|()| house.at_the_gate(&mut person, "idp:up", &[]));
    assert_eq!(flow_cookies(house.browser(&mut person)), 5);
    house.assert_refused(&person.get(&first), 400, "GP1711");
    let refused = person.get(&first);
    refused.assert_says_not_for("names no provider", "up/");

    // Looking is not going: neither spends what upstream gave.
    let asked = || house.upstream.received(Place::Token).len();
    let cookie = house.browser(&mut person).cookie_header();
    let path = later[3].strip_prefix(house.gatepost.origin()).unwrap();
    let looks = [
        ("HEAD", ("Accept", "*/*")),
        ("GET", ("Sec-Purpose", "prefetch;anonymous-client-ip")),
    ];
    for (method, header) in looks {
        let headers = [("Cookie", &*cookie), header];
        let answer = house.gatepost.send(method, path, &headers, b"");
        answer.assert_status_for(method, 204);
        assert_eq!(answer.headers_named("set-cookie").len(), 0, "{method}");
        assert_eq!(asked(), 0, "{method}");
    }
    let post = house.gatepost.post(path, &[("Cookie", &cookie)], &[]);
    post.assert_status(405);
    post.assert_header("allow", "GET, HEAD");

    let answer = person.get(&later[3]);
    house.told(&answer);
    assert_eq!(asked(), 1);
    assert_eq!(flow_cookies(house.browser(&mut person)), 4);
    house.assert_refused(&person.get(&later[3]), 400, "GP1711");
    assert_eq!(asked(), 1, "a replay asks nobody");
    house.told(&person.get(&later[0]));
}

#[test]
fn people_whom_only_a_provider_knows_have_neither_user_name_nor_password() {
    let house = House::start();
    let before = house.gatepost.database.count("users");
    // The same person at once, as from several tabs: as many as may wait for one provider.
    let said = json!({"name": "Nora New", "email": "alice@example.com"});
    house.upstream.plan(|plan| plan.id_token = said);
    let arrived = all_at_once(3, |_| house.come_in_anew("idp:up", &[]));
    let subs = arrived
        .iter()
        .map(|answer| house.told(answer)["sub"].clone());
    let subs: Vec<Value> = subs.collect();
    assert!(subs.iter().all(|sub| *sub == subs[0]), "{subs:?}");
    // And not alice, whose address it is.
    let database = &house.gatepost.database;
    assert_eq!(database.count("users") - before, 1);
    database.assert_count("audit_events WHERE event = 'user_provisioned'", 1);
    let sub = subs[0].as_str().unwrap();
    let bare = "SELECT username IS NULL AND password_hash IS NULL AND tenant = '' FROM users WHERE sub = $1";
    assert!(house.one::<bool>(bare, sub));

    let gatepost = &house.gatepost;
    let shown = gatepost.shown(&format!("user show {sub} --json"));
    assert_eq!(&shown["username"], &Value::Null);
    assert_eq!(shown["claims"]["name"], "Nora New");
    gatepost.run_line("user list").assert_says(sub);
    let refused = gatepost.run(&["user", "password", sub], "a new password for nobody\n");
    assert_eq!(refused.status.code(), Some(1));
    String::from_utf8_lossy(&refused.stderr).assert_says("no user name");
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    assert_eq!(sign_in(&mut browser, &page, sub, "").status, 200);

    // What is exported applies again, and changes nothing.
    let exported = gatepost.run_well(&["export"], "");
    gatepost.run_well(&["plan", "-"], &exported);

    gatepost.run_line(&format!("user role {sub} --add editor"));
    assert_eq!(house.claims_of(sub)["role"], json!(["editor"]));
    gatepost.run_line(&format!("user disable {sub}"));
    let answer = house.come_in_anew("idp:up", &[]);
    house.assert_refused(&answer, 403, "GP1713");
    assert!(answer.text().contains("/login?r="), "a way back");
    gatepost.run_line(&format!("user enable {sub}"));
    let again = house.told(&house.come_in_anew("idp:up", &[]));
    assert_eq!(again["sub"], sub);
}

#[test]
fn a_provider_neither_makes_nor_unmakes_an_administrator() {
    let house = House::start_under(&[("GATEPOST_ADMIN_ROLE", "office")]);
    let both = json!({"groups": ["staff", "office", "office:acme"]});
    let sub = text(&house.known_as("mole", both.clone()), "sub").to_owned();
    assert_eq!(house.claims_of(&sub)["role"], json!(["staff"]), "new here");
    house.known_as("mole", both.clone());
    // Known here.
    assert_eq!(house.claims_of(&sub)["role"], json!(["staff"]));
    let dropped = "gives the role of administrators: dropped";
    assert_eq!(house.gatepost.log().matches(dropped).count(), 2);
    let office = |change: &str| format!("user role {sub} {change} office");
    house.gatepost.run_line(&office("--add"));
    for (said, roles) in [
        (both.clone(), json!(["staff", "office"])),
        (json!({"groups": ["staff"]}), json!(["staff", "office"])),
        (json!({"groups": ["sales"]}), json!(["sales", "office"])),
        (json!({"name": "Mole"}), json!(["office"])),
        (json!({"name": "Mole M."}), json!(["office"])),
    ] {
        house.known_as("mole", said.clone());
        assert_eq!(house.claims_of(&sub)["role"], roles, "{said}");
    }
    house.gatepost.run_line(&office("--remove"));
    house.known_as("mole", both);
    // Taken by an operator.
    assert_eq!(house.claims_of(&sub)["role"], json!(["staff"]));
}

#[test]
fn what_upstream_says_of_somebody_is_taken_over_anew_and_nothing_else_is_lost() {
    let house = House::start();
    let first = json!({"name": "Nora", "email": "nora@up.example", "email_verified": true, "groups": ["staff"]});
    let sub = text(&house.known_as("nora", first.clone()), "sub").to_owned();
    let taken = json!({"name": "Nora", "email": "nora@up.example", "email_verified": true, "role": ["staff"]});
    assert_eq!(house.claims_of(&sub), taken);
    let changed = "audit_events WHERE event = 'user_changed'";
    let changes = || house.gatepost.database.count(changed);
    let touched = || house.one::<String>("SELECT xmin::text FROM users WHERE sub = $1", &sub);
    let untouched = touched();
    house.known_as("nora", first);
    // Nothing is written where nothing changed.
    assert_eq!((changes(), touched()), (0, untouched));

    // The operator adds a claim, and writes over one.
    let write = |claims: &str| {
        let write = format!("UPDATE users SET claims = claims || '{claims}' WHERE sub = '{sub}'");
        house.gatepost.run_sql(&write);
    };
    write(r#"{"department": "sales", "nickname": "No"}"#);
    let new = json!({"name": "Nora N.", "email": "new@up.example"});
    house.known_as("nora", new);
    let kept = json!({"name": "Nora N.", "email": "new@up.example", "email_verified": false, "department": "sales", "nickname": "No"});
    // Unsaid: role; never verified: the new address.
    assert_eq!((house.claims_of(&sub), changes()), (kept, 1));
    write(r#"{"name": "Ours"}"#);
    house.known_as("nora", json!({}));
    let ours = json!({"name": "Ours", "department": "sales", "nickname": "No"});
    assert_eq!(house.claims_of(&sub), ours);
    house.known_as("nora", json!({"name": "Theirs"}));
    assert_eq!(house.claims_of(&sub)["name"], "Theirs");
}

#[test]
fn accounts_of_other_tenants_and_of_nobody_here_are_turned_away() {
    let house = House::start();
    let answer = house.come_in_anew("idp:closed", &[]);
    house.assert_refused(&answer, 403, "GP1712");
    assert_eq!(house.gatepost.database.count("linked_identities"), 0);
    let sql = "SELECT detail->>'identity_provider' FROM audit_events WHERE detail->>'reason' = $1";
    assert_eq!(house.one::<String>(sql, "GP1712"), "closed");

    // The way back asks there who they are: they may be known by another name.
    let mut person = Traveller::new();
    let refused = house.come_in(&mut person, "idp:closed", &[]);
    let way_back = refused.attribute("/login?r=", "href").unwrap();
    let again = house.browser(&mut person).get(&way_back);
    again.assert_query("prompt", "select_account");

    let of_acme = house.told(&house.come_in_anew("idp:of-acme tenant:acme", &[]));
    assert_eq!(of_acme["tenant"], "acme");
    let answer = house.come_in_anew("idp:up", &[("ui_locales", "de")]);
    house.assert_refused(&answer, 403, "GP1714");
    answer.assert_says_each("<html lang=\"de\"> | /login?r=");
    let mut set = answer.headers_named("set-cookie").into_iter();
    assert!(set.all(|cookie| !cookie.contains("-session-")));
    assert_eq!(house.gatepost.database.count("sessions"), 1);
    let again = house.told(&house.come_in_anew("idp:up tenant:acme", &[]));
    // One issuer, one subject, one person.
    assert_eq!(again["sub"], of_acme["sub"]);
    let new = String::from("somebody-new");
    house.upstream.plan(|plan| plan.subject = new);
    let answer = house.come_in_anew("idp:up tenant:acme", &[]);
    house.assert_refused(&answer, 403, "GP1714");

    // Switched off while they were away: the login page says so, and the password is still taken.
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, "idp:up", &[]);
    house.gatepost.database.run("UPDATE catalogue_entries SET document = document || '{\"enabled\": false}' WHERE name = 'up'; UPDATE installation SET registry_version = registry_version + 1");
    house.gatepost.settle();
    let asked = house.upstream.received(Place::Token).len();
    let answer = person.get(&callback);
    answer.assert_status(200);
    assert_eq!(asked, house.upstream.received(Place::Token).len());
    let answer = sign_in(house.browser(&mut person), &answer, "alice", ALICE_PASSWORD);
    house.told(&answer);
}

#[test]
fn a_session_says_who_vouched_for_it_and_forgets_it_with_the_next_sign_in() {
    let house = House::start();
    let issuer = house.upstream.issuer();
    let link = format!("user link alice --issuer {issuer} --subject alice-there");
    house.gatepost.run_line(&link);
    let signed_in_at = now() - 100;
    house.upstream.plan(|plan| {
        plan.subject = String::from("alice-there");
        plan.id_token = json!({"auth_time": signed_in_at, "acr": "gold", "amr": ["otp", "face"], "sid": "theirs-1"});
    });
    let sql = "SELECT concat_ws(' ', sid, identity_provider, upstream_subject, upstream_sid, upstream_id_token IS NULL)
               FROM sessions WHERE sub = $1 ORDER BY created_at DESC LIMIT 1";
    let mut person = Traveller::new();
    let told = house.told(&house.come_in(&mut person, "idp:up", &[]));
    assert_eq!(told["auth_time"], json!(signed_in_at));
    assert_eq!(told["acr"], "2");
    assert_eq!(told["amr"], json!(["otp", "face"]));
    assert_eq!(told["idp"], "up");
    let (sub, sid) = (told["sub"].as_str().unwrap(), told["sid"].as_str().unwrap());
    let held = || house.one::<String>(sql, sub);
    assert_eq!(held(), format!("{sid} up alice-there theirs-1 t"));

    // Older than asked for, although upstream was asked: the client is told, and nobody is sent
    // there a second time.
    let visits = house.upstream.received(Place::Authorize).len();
    for too_much in [("prompt", "login"), ("max_age", "60")] {
        let answer = house.come_in(&mut person, "idp:up", &[too_much]);
        assert_eq!(answer.query()["error"], "login_required", "{too_much:?}");
    }
    assert_eq!(house.upstream.received(Place::Authorize).len(), visits + 2);

    // The same session goes on by another proof, and what the provider said before goes.
    let other = house.told(&house.come_in(&mut person, "idp:leaving", &[]));
    assert_eq!(other["sid"], sid);
    assert_eq!(held(), format!("{sid} leaving alice-there theirs-1 f"));
    let asked =
        "SELECT upstream_id_token FROM sessions WHERE sub = $1 AND upstream_id_token IS NOT NULL";
    let stored: Vec<u8> = house.one(asked, sub);
    assert!(!stored.windows(3).any(|window| window == b"eyJ"), "sealed");
    let local = [("prompt", "login"), ("acr_values", "idp:local")];
    let path = authorize_path("conf1", RP1, &local);
    let browser = house.browser(&mut person);
    let page = browser.visit(&path);
    let by_password = house.told(&sign_in(browser, &page, "alice", ALICE_PASSWORD));
    assert_eq!(by_password["sid"], json!(sid));
    assert_eq!(by_password["amr"], json!(["pwd"]));
    assert_eq!(held(), format!("{sid} local t"));

    // What the provider says of how it was done counts as far as the registration says what its
    // `acr` is worth.
    for acr in ["silver", "2", "phr"] {
        let said = json!({"acr": acr, "amr": ["pwd", "hwk", "mfa"]});
        house.upstream.plan(|plan| plan.id_token = said);
        let told = house.told(&house.come_in(&mut person, "idp:up", &[("prompt", "login")]));
        assert_eq!(told["amr"], json!([]), "{acr}");
        assert_eq!(told["acr"], "1", "{acr}");
    }

    // Without a word of upstream's about when and how, it was now, and nothing is said of how.
    house.upstream.plan(|plan| plan.id_token = json!({}));
    let told = house.told(&house.come_in(&mut person, "idp:up", &[("prompt", "login")]));
    assert!(told["auth_time"].as_i64().unwrap() + 10 > now() as i64);
    assert_eq!((&told["amr"], &told["acr"]), (&json!([]), &json!("1")));
}

#[test]
fn an_essential_acr_is_asked_for_under_the_providers_own_name() {
    let house = House::start();
    let essential = |acr: &str| {
        format!(r#"{{"id_token": {{"acr": {{"essential": true, "value": "{acr}"}}}}}}"#)
    };
    let says = |acr: &str| {
        let said = json!({"acr": acr});
        house.upstream.plan(|plan| plan.id_token = said);
    };
    let asking = |acr: &str| house.come_in_anew("idp:up", &[("claims", &essential(acr))]);
    says("gold");
    assert_eq!(house.told(&asking("2"))["acr"], "2");
    let asked = &house.upstream.received(Place::Authorize)[0];
    assert_eq!(asked.parameters["acr_values"], "gold");

    // Names that are not in the table are worth as much as any, ours among them.
    for theirs in ["silver", "2", "3"] {
        says(theirs);
        let missed = asking("2");
        missed.assert_query_for(theirs, "error", "unmet_authentication_requirements");
    }
    let changes = [("acr_values", "idp:up"), ("claims", &*essential("3"))];
    let refused = house.gatepost.get(&authorize_path("conf1", RP1, &changes));
    // Nobody can reach it.
    refused.assert_query("error", "unmet_authentication_requirements");
    let metadata = house.gatepost.get("/.well-known/openid-configuration");
    metadata.assert_member("acr_values_supported", json!(["1", "2", "phr"]));
}

/// Posts the answer of a callback's address from the provider's page, which takes no `Lax` cookie along, with more
/// parameters.
fn posted(house: &House, callback: &str, more: &[(&str, &str)]) -> Answer {
    let path = callback.strip_prefix(house.gatepost.origin()).unwrap();
    let (path, query) = path.split_once('?').unwrap();
    let mut form = form_urlencoded::Serializer::new(query.to_owned());
    let body = form.extend_pairs(more).finish();
    let from = [
        ("Origin", "https://appleid.apple.com"),
        ("Sec-Fetch-Site", "cross-site"),
    ];
    let mut connection = house.gatepost.connect();
    connection.post_raw(path, &from, body.as_bytes())
}

#[test]
fn what_a_provider_posts_comes_back_by_a_get_with_two_names_that_are_the_persons_own_word() {
    let house = House::start();
    let come_in = |user: Option<&str>| {
        let mut person = Traveller::new();
        let callback = house.at_the_gate(&mut person, "idp:posting", &[]);
        assert_eq!(house.upstream.asked()["response_mode"], "form_post");
        let user = user.map(|user| ("user", user));
        let more = [("id_token", "not.looked.at"), ("session_state", "x")];
        let more: Vec<_> = more.into_iter().chain(user).collect();
        let answer = posted(&house, &callback, &more);
        answer.assert_status(303);
        answer.assert_header("referrer-policy", "no-referrer");
        answer.assert_header("cache-control", "no-store");
        assert_eq!(answer.headers_named("set-cookie").len(), 0);
        let (address, _) = callback.split_once('?').unwrap();
        let location = answer.location().to_owned();
        assert!(location.starts_with(&format!("{address}?")), "{location}");
        // What the browser that left has not got is nobody's.
        house.assert_refused(&Traveller::new().get(&location), 400, "GP1711");
        let told = house.told(&person.get(&location));
        house.assert_refused(&person.get(&location), 400, "GP1711");
        let names: Vec<String> = answer.query().into_keys().collect();
        (names, text(&told, "sub").to_owned())
    };
    let all = ["code", "family_name", "given_name", "iss", "state"];
    let nora = r#"{"name":{"firstName":"Nora <b>","lastName":"New"},"email":"alice@example.com"}"#;
    let (names, sub) = come_in(Some(nora));
    assert_eq!(names, all);
    let own_word = json!({"given_name": "Nora <b>", "family_name": "New"});
    assert_eq!(house.claims_of(&sub), own_word);
    // It counts for a new account alone, and stays when it is not said again.
    let another = r#"{"name":{"firstName":"Eve","lastName":"Else"}}"#;
    for user in [None, Some(another), Some("{"), Some("")] {
        assert_eq!(come_in(user).1, sub);
        assert_eq!(house.claims_of(&sub), own_word, "{user:?}");
    }
    // What the provider itself says counts before.
    house.upstream.plan(|plan| {
        plan.subject = String::from("another");
        plan.id_token = json!({"given_name": "Signed"});
    });
    let (_, signed) = come_in(Some(another));
    let both = json!({"given_name": "Signed", "family_name": "Else"});
    assert_eq!(house.claims_of(&signed), both);
    // Names in the address of a provider that does not post them are nobody's word.
    house.upstream.plan(|plan| {
        plan.subject = String::from("a third");
        plan.id_token = json!({});
    });
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, "idp:up", &[]);
    let told = house.told(&person.get(&format!("{callback}&given_name=Eve")));
    assert_eq!(house.claims_of(text(&told, "sub")), json!({}));
}

#[test]
fn only_a_provider_that_posts_may_and_only_a_short_form() {
    let house = House::start();
    let mut person = Traveller::new();
    let callback = house.at_the_gate(&mut person, "idp:posting", &[]);
    for other in ["up", "nobody"] {
        let address = callback.replace("/posting/", &format!("/{other}/"));
        let answer = posted(&house, &address, &[]);
        answer.assert_error_page(405, "GP1006", other);
        answer.assert_header("allow", "GET, HEAD");
    }
    let long = posted(&house, &callback, &[("user", &"x".repeat(4_096))]);
    house.assert_refused(&long, 400, "GP1711");
    let path = callback.strip_prefix(house.gatepost.origin()).unwrap();
    let json = [("Content-Type", "application/json")];
    let answer = house.gatepost.send("POST", path, &json, b"{}");
    answer.assert_status(415);
    // The answer of a way to another provider leads nowhere here.
    let elsewhere = house.at_the_gate(&mut person, "idp:up", &[]);
    let posted = posted(&house, &elsewhere.replace("/up/", "/posting/"), &[]);
    posted.assert_status(303);
    house.assert_refused(&person.get(posted.location()), 400, "GP1711");
    assert_eq!(house.upstream.received(Place::Token).len(), 0);
    house.told(&person.get(&callback));
}
