//! Signing in by e-mail address: whose address counts, what is counted, and what a visitor learns.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, basic, changed_members, sign_in, with_clients, with_members,
};
use crate::support::gatepost::{
    ALICE_PASSWORD, BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document,
};
use crate::support::house::House;
use crate::support::timing::{assert_not_told_apart, welch};
use crate::support::traveller::Traveller;

const BY_ADDRESS: (&str, &str) = ("GATEPOST_SIGN_IN_WITH", "username,email");
const ADDRESS: &str = "alice@example.com";
const PASSWORD: &str = "a password for many of them";

fn person(username: &str, email: &str, changes: Value) -> Value {
    let user = json!({
        "username": username, "password": PASSWORD,
        "claims": {"email": email, "email_verified": true},
    });
    changed_members(user, &changes)
}

/// The same whom nobody has verified: what is said of the address is this.
fn unverified(username: &str, email: &str, said: Value) -> Value {
    let claims = with_members(json!({"email": email}), &said);
    person(username, email, json!({"claims": claims}))
}

fn disabled(username: &str, email: &str) -> Value {
    person(username, email, json!({"enabled": false}))
}

/// The provider says that this address is theirs, and verified.
fn says_address(house: &House, email: &str) {
    let said = json!({"email": email, "email_verified": true});
    house.up.plan(|plan| plan.userinfo = said);
}

fn register_providers(house: &House, providers: &[Value]) {
    let providers = json!({"identity_providers": providers});
    house.gatepost.apply(&providers);
}

fn registered(people: &[Value]) -> Value {
    let direct = json!({
        "grant_types": ["password"], "response_types": [], "redirect_uris": [], "scope": "openid",
    });
    let mut document = with_clients(document(), &[("direct", direct)]);
    let users = document["users"].as_array_mut().unwrap();
    users.retain(|user| user["username"] != "alice");
    let password = json!({"password": ALICE_PASSWORD});
    users.push(person("alice", ADDRESS, password));
    users.extend_from_slice(people);
    document
}

/// Whether that signs in on the page; and the same by the grant that takes a password.
fn lets_in(gatepost: &Gatepost, typed: &str, password: &str) -> bool {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let is_in = sign_in(&mut browser, &page, typed, password).status == 303;
    let form = [
        ("grant_type", "password"),
        ("username", typed),
        ("password", password),
    ];
    let granted = gatepost.token("direct", &form);
    assert_eq!(granted.status == 200, is_in, "{typed}: {}", granted.text());
    is_in
}

#[test]
fn a_verified_address_that_one_user_has_signs_them_in() {
    let not_verified = json!({"email_verified": false});
    let no_password = json!({"email": "once@example.com", "email_verified": true});
    let people = [
        unverified("unverified", "unverified@example.com", not_verified.clone()),
        unverified("silent", "silent@example.com", json!({})),
        disabled("disabled", "disabled@example.com"),
        person("one", "shared@example.com", json!({})),
        person("two", "Shared@Example.com", json!({})),
        person("first", "once@example.com", json!({})),
        unverified("not-verified", "once@example.com", not_verified),
        disabled("gone", "once@example.com"),
        json!({"username": "no-password", "claims": no_password}),
    ];
    let gatepost = Gatepost::start_with(&registered(&people), &[BY_ADDRESS]);
    for (typed, password, expected) in [
        (ADDRESS, ALICE_PASSWORD, true),
        ("Alice@EXAMPLE.com", ALICE_PASSWORD, true),
        ("\u{ff41}lice@example.com", ALICE_PASSWORD, true),
        ("alice", ALICE_PASSWORD, true),
        (ADDRESS, "wrong", false),
        ("alice@example.co", ALICE_PASSWORD, false),
        ("unverified@example.com", PASSWORD, false),
        ("silent@example.com", PASSWORD, false),
        ("disabled@example.com", PASSWORD, false),
        ("shared@example.com", PASSWORD, false),
        ("one", PASSWORD, true),
        ("once@example.com", PASSWORD, true),
    ] {
        assert_eq!(lets_in(&gatepost, typed, password), expected, "{typed}");
    }
}

/// Else whoever may choose a user name takes the mail of others; and one that nobody can sign in
/// with is no way to the account of the address.
#[test]
fn a_user_name_wins_over_an_address() {
    let password = json!({"password": BOB_PASSWORD});
    let people = [
        person("bob@example.com", "other@example.com", json!({})),
        person("carol", "bob@example.com", password),
        disabled("dave@example.com", "dave@example.org"),
        person("erin", "dave@example.com", json!({})),
    ];
    let gatepost = Gatepost::start_with(&registered(&people), &[BY_ADDRESS]);
    for (typed, password, expected) in [
        ("bob@example.com", PASSWORD, true),
        ("bob@example.com", BOB_PASSWORD, false),
        ("dave@example.com", PASSWORD, false),
        ("erin", PASSWORD, true),
    ] {
        let is_in = lets_in(&gatepost, typed, password);
        assert_eq!(is_in, expected, "{typed} {password}");
    }
}

#[test]
fn an_address_signs_in_where_the_setting_says_so_and_in_its_own_tenant() {
    let tina = person("tina", "tina@example.com", json!({"tenant": "acme"}));
    let mut document = registered(&[tina]);
    document["tenants"] = json!([{"name": "acme"}]);
    let mut gatepost = Gatepost::start_with(&document, &[]);
    assert!(!lets_in(&gatepost, ADDRESS, ALICE_PASSWORD));
    let page = |gatepost: &Gatepost| gatepost.browser().visit(&authorize_path("conf1", RP1, &[]));
    page(&gatepost).assert_says(">User name</label>");
    gatepost.stop();
    gatepost.set(BY_ADDRESS.0, BY_ADDRESS.1);
    gatepost.serve();
    assert!(lets_in(&gatepost, ADDRESS, ALICE_PASSWORD));
    page(&gatepost).assert_says(">User name or e-mail address</label>");
    assert!(!lets_in(&gatepost, "tina@example.com", PASSWORD));
    let mut browser = gatepost.browser();
    let of_tenant = authorize_path("conf1", RP1, &[("acr_values", "tenant:acme")]);
    let page = browser.visit(&of_tenant);
    let answer = sign_in(&mut browser, &page, "tina@example.com", PASSWORD);
    answer.assert_status(303);
}

/// Name and address are counted apart, so a visitor does not learn that both are one person's; and
/// whoever tries both has no more tries than before.
#[test]
fn failures_count_by_what_was_typed_each_with_half_of_the_limit() {
    let limit = ("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_ACCOUNT", "6");
    let gatepost = Gatepost::start_with(&registered(&[]), &[BY_ADDRESS, limit]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let mut status = |typed: &str| sign_in(&mut browser, &page, typed, "wrong").status;
    for typed in ["alice", ADDRESS, "nobody@example.com"] {
        let tries = [(); 4].map(|()| status(typed));
        assert_eq!(tries, [200, 200, 200, 429], "{typed}");
    }
}

#[test]
fn every_way_to_fail_by_an_address_looks_the_same() {
    let people = [
        disabled("disabled", "disabled@example.com"),
        person("one", "shared@example.com", json!({})),
        person("two", "shared@example.com", json!({})),
    ];
    let gatepost = Gatepost::start_with(&registered(&people), &[BY_ADDRESS]);
    let typed =
        "alice alice@example.com nobody@example.com disabled@example.com shared@example.com";
    let mut seen = Vec::new();
    for typed in typed.split(' ') {
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        let answer = sign_in(&mut browser, &page, typed, "wrong");
        answer.assert_status(200);
        answer.assert_says("The user name, the e-mail address or the password is not correct");
        let sealed = answer.action().split_once("?r=").unwrap().1.to_owned();
        let own = [answer.form_token(), sealed, typed.to_owned()];
        let text = answer.without_challenge();
        seen.push(own.iter().fold(text, |text, own| text.replace(own, "*")));
    }
    assert!(seen.iter().all(|text| *text == seen[0]), "{seen:#?}");
}

fn claims_of_alice(gatepost: &Gatepost) -> Value {
    let document = gatepost.shown("export");
    let users = document["users"].as_array().unwrap();
    let alice = users.iter().find(|user| user["username"] == "alice");
    alice.unwrap()["claims"].clone()
}

/// Whoever changes the address in a spreadsheet has not verified it.
#[test]
fn another_address_is_no_longer_verified_unless_the_same_change_says_so() {
    let gatepost = Gatepost::start_with(&registered(&[]), &[BY_ADDRESS]);
    let described = |email: &str| {
        json!({"users": [{"username": "alice", "claims": {"email": email}}]}).to_string()
    };
    let plan = gatepost.run(&["plan", "-"], &described("new@example.com"));
    let told = String::from_utf8(plan.stdout).unwrap();
    told.assert_says("claims.email_verified");
    told.assert_says("false");
    // The same address keeps what is known of it.
    let said_again = gatepost.run_well(&["apply", "-"], &described(ADDRESS));
    let is_nothing = said_again.contains("nothing") || said_again.contains("0");
    assert!(is_nothing, "{said_again}");
    assert_eq!(claims_of_alice(&gatepost)["email_verified"], true);
    assert!(lets_in(&gatepost, ADDRESS, ALICE_PASSWORD));

    gatepost.run_well(&["apply", "-"], &described("new@example.com"));
    assert_eq!(claims_of_alice(&gatepost)["email_verified"], false);
    assert!(!lets_in(&gatepost, "new@example.com", ALICE_PASSWORD));
    gatepost.run_line("user set alice email_verified=true");
    assert!(lets_in(&gatepost, "new@example.com", ALICE_PASSWORD));
    gatepost.run_line("user set alice email=new@example.com");
    assert!(lets_in(&gatepost, "new@example.com", ALICE_PASSWORD));
    gatepost.run_line("user set alice email=third@example.com");
    assert!(!lets_in(&gatepost, "third@example.com", ALICE_PASSWORD));
    gatepost.run_line("user set alice email=4@example.com email_verified=true");
    assert!(lets_in(&gatepost, "4@example.com", ALICE_PASSWORD));
}

/// A provider that may say anything must not choose whose letters go where, or lock somebody out of
/// the own address.
#[test]
fn a_providers_word_counts_where_its_registration_says_so() {
    for (changes, expected) in [(json!({}), false), (json!({"trust_email": true}), true)] {
        let house = House::start_with(registered(&[]), &changes, &[BY_ADDRESS]);
        says_address(&house, "up@example.com");
        let mut alice = house.alice();
        house.link(&mut alice, "up");
        house.through(&mut Traveller::new(), "up").unwrap();
        assert_eq!(claims_of_alice(&house.gatepost)["email"], "up@example.com");
        let is_in = lets_in(&house.gatepost, "up@example.com", ALICE_PASSWORD);
        assert_eq!(is_in, expected, "{changes}");
        // What the operator verified before stays so when the provider says the same.
        says_address(&house, "own@example.com");
        let set = "user set alice email=own@example.com email_verified=true";
        house.gatepost.run_line(set);
        for _ in 0..2 {
            house.through(&mut Traveller::new(), "up").unwrap();
        }
        let is_in = lets_in(&house.gatepost, "own@example.com", ALICE_PASSWORD);
        assert!(is_in, "{changes}");
    }
}

/// Else whoever links two accounts and unlinks one of them takes any address.
#[test]
fn an_address_that_two_providers_verify_counts_by_the_one_that_stays_linked() {
    let house = House::start_with(registered(&[]), &json!({}), &[BY_ADDRESS]);
    let victim = "victim@example.com";
    let said = json!({"email": victim, "email_verified": true});
    let mut alice = house.alice();
    for (provider, upstream) in [("up", &house.up), ("other", &house.other)] {
        upstream.plan(|plan| plan.userinfo = said.clone());
        house.link(&mut alice, provider);
        house.through(&mut Traveller::new(), provider).unwrap();
    }
    assert!(!lets_in(&house.gatepost, victim, ALICE_PASSWORD));
    house.unlink(&mut alice, "Sign-in up");
    assert_eq!(house.links(), 1);
    let claims = claims_of_alice(&house.gatepost);
    assert_eq!(claims["email"], victim, "the other one says it, too");
    assert_eq!(claims["email_verified"], true);
    assert!(!lets_in(&house.gatepost, victim, ALICE_PASSWORD));
    let trusted = json!({"provision": false, "trust_email": true});
    register_providers(&house, &[house.other.registration("other", trusted)]);
    assert!(lets_in(&house.gatepost, victim, ALICE_PASSWORD));
}

/// Names of providers are the operator's to change and to give again.
#[test]
fn trust_in_a_providers_word_follows_its_issuer_and_not_its_name() {
    let (trusted, untrusted) = (json!({"trust_email": true}), json!({}));
    for (changes, expected) in [(&trusted, true), (&untrusted, false)] {
        let house = House::start_with(registered(&[]), changes, &[BY_ADDRESS]);
        says_address(&house, "up@example.com");
        house.link(&mut house.alice(), "up");
        house.through(&mut Traveller::new(), "up").unwrap();
        let counts = || lets_in(&house.gatepost, "up@example.com", ALICE_PASSWORD);
        assert_eq!(counts(), expected, "{changes}");
        // Another name for the same issuer, and the old name for another one.
        let otherwise = json!({"trust_email": !expected});
        let other = house.other.registration("up", otherwise);
        let renamed = house.up.registration("renamed", changes.clone());
        register_providers(&house, &[renamed, other]);
        assert_eq!(counts(), expected, "{changes} of the old name");
    }
}

/// One without an issuer is known by where it tells who somebody is.
#[test]
fn the_word_of_a_provider_without_an_issuer_counts_as_its_registration_says() {
    let house = House::start_with(registered(&[]), &json!({}), &[BY_ADDRESS]);
    let registration = |trusted: bool| {
        let claims = json!({"email": "email", "email_verified": "email_verified"});
        let changes = json!({"claims": claims, "trust_email": trusted});
        register_providers(&house, &[house.up.oauth_registration("plain", changes)]);
    };
    registration(true);
    house.up.plan(|plan| {
        plan.oauth_only = true;
        plan.userinfo = json!({"id": 7, "email": "up@example.com", "email_verified": true});
    });
    house.link(&mut house.alice(), "plain");
    house.through(&mut Traveller::new(), "plain").unwrap();
    let counts = || lets_in(&house.gatepost, "up@example.com", ALICE_PASSWORD);
    assert!(counts());
    registration(false);
    assert!(!counts());
}

#[test]
fn a_second_user_of_a_verified_address_is_told() {
    let people = [person("bea", "bea@example.com", json!({}))];
    let trusted = json!({"trust_email": true});
    let house = House::start_with(registered(&people), &trusted, &[BY_ADDRESS]);
    let gatepost = &house.gatepost;
    assert_eq!(house.events("address_shared").len(), 0);
    let doctor = || String::from_utf8(gatepost.run(&["doctor"], "").stdout).unwrap();
    doctor().assert_says("no two users of a tenant have the same verified");

    says_address(&house, "Bea@example.com");
    house.through(&mut Traveller::new(), "up").unwrap();
    let shared = house.events("address_shared");
    assert_eq!((shared.len(), &shared[0]["by"]), (1, &json!("up")));
    assert_eq!(shared[0]["with"], house.sub("bea"));

    let set = format!("user set bea email={ADDRESS} email_verified=true");
    gatepost.run_line(&set);
    let described = json!({"users": [person("new", ADDRESS, json!({}))]}).to_string();
    gatepost.run_well(&["apply", "-"], &described);
    let claims = json!({"email": ADDRESS, "email_verified": true});
    gatepost.run_line(&format!("user add added --no-password --claims {claims}"));
    assert_eq!(house.events("address_shared").len(), 4);
    doctor().assert_says("1 verified e-mail addresses are of more than one user");
}

/// Nor does time, for a visitor who tries a wrong password.
#[test]
fn time_does_not_tell_which_addresses_are_there() {
    let people = [
        disabled("disabled", "disabled@example.com"),
        json!({"username": "keyed"}),
    ];
    let many = "1000000";
    let limits = ["PER_ACCOUNT", "PER_SOURCE", "PER_HOUR"]
        .map(|which| format!("GATEPOST_LIMIT_PASSWORD_FAILURES_{which}"));
    let mut settings = vec![BY_ADDRESS];
    settings.extend(limits.each_ref().map(|name| (name.as_str(), many)));
    let gatepost = Gatepost::start_with(&registered(&people), &settings);
    // As if she had a passkey alone.
    let passkey = "UPDATE users SET strongest_acr = 'phr', factors = 1 WHERE username = 'keyed'";
    gatepost.database.run(passkey);
    let authorization = basic("direct", CONF1_SECRET);
    let mut connection = gatepost.connect();
    let mut try_name = |typed: &str| {
        let form = [
            ("grant_type", "password"),
            ("username", typed),
            ("password", "wrong password"),
        ];
        let headers = [("Authorization", authorization.as_str())];
        let answer = connection.post("/connect/token", &headers, &form);
        assert_eq!(answer.status, 400, "{}", answer.text());
    };
    for (name, rounds) in [
        (ADDRESS, 1_000),
        ("disabled@example.com", 300),
        ("keyed", 300),
    ] {
        let names = ["unknown@example.com", name];
        welch(50, |which| try_name(names[which]));
        let what = format!("unknown against {name}");
        assert_not_told_apart(&what, rounds, |which| try_name(names[which]));
    }
}
