//! The table "What ends what" of `docs/security.md`: one test a row, one claim a cell, and beside
//! each what must not end. The rows about a grant that comes back when a change is undone are one
//! table here. Each is asked for by every rule that decides it: by the statement of the refresh
//! alone, by the grant that is read first, by introspection, and by the statement of a redemption.
//!
//! A few cells need more than this scene has: `linked_accounts.rs` and `upstream_logout.rs` hold
//! the row about accounts elsewhere, `own_sessions.rs` the person who signs in again and now stays
//! signed in, `second_factors.rs` the factor that is removed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost::protocol::words::identifiers::{ClientId, Subject};
use gatepost::store::audit_events::AuditEvent;
use gatepost::store::{consents, user_ends};
use serde_json::{Value, json};

use crate::support::bound;
use crate::support::claims::Says;
use crate::support::flow::{
    access_token, authorize_path, code, decode_jwt, is_signed_in, lets_in, redeem, sign_in,
    signed_in, userinfo,
};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1};
use crate::support::http::{Answer, Browser};
use crate::support::offline::{self, CONF1, CONF2, Party, REUSE, access, client, member, refresh};
use crate::support::phone::add_app;
use crate::support::shared::Shared;
use crate::support::tables::rows_of;

const ONLINE: &str = "openid profile";
const OFFLINE: &str = "openid profile offline_access";

/// Alice's session and all that `conf1` has of her; what another client has of her; what `conf1`
/// has of bob.
struct Scene {
    gatepost: Shared,
    browser: Browser,
    code: String,
    online: Value,
    offline: Value,
    /// An access token that came through the browser, and names no grant.
    through_browser: String,
    of_other_client: Value,
    of_other_user: Value,
}

/// Everything that hangs on alice's session at `conf1`. Of the grant without `offline_access` there
/// are an access token and, in the session, a refresh token.
const SIGNED_OUT: &str = "session code grant in_session through_browser";

/// Everything of alice.
const ALICE_GONE: &str = "session code grant in_session offline through_browser of_other_client";

const ALL_BUT_THE_SESSION_GONE: &str =
    "code grant in_session offline through_browser of_other_client";

/// Everything of `conf1`.
const CLIENT_GONE: &str = "code grant in_session offline through_browser of_other_user";

/// Everything that `conf1` has of alice.
const PAIR_GONE: &str = "code grant in_session offline through_browser";

/// `conf1` also gets tokens through the browser, and a refresh token by each sign-in.
fn document() -> Value {
    let mut document = offline::document();
    let conf1 = client(&mut document, "conf1");
    conf1["response_types"] = json!(["code", "id_token token"]);
    let grant_types = conf1["grant_types"].as_array_mut().unwrap();
    grant_types.push(json!("implicit"));
    conf1["allow_access_tokens_via_browser"] = json!(true);
    conf1["refresh_token_without_offline_access"] = json!(true);
    document
}

fn scene() -> Scene {
    scene_at(Gatepost::lent_with(&document(), &[]))
}

/// At a server whose people, clients and process a test may change.
fn own_scene() -> Scene {
    scene_of(&document())
}

fn scene_of(document: &Value) -> Scene {
    scene_at(Gatepost::start_with(document, &[]).into())
}

fn scene_at(gatepost: Shared) -> Scene {
    let mut browser = signed_in(&gatepost);
    let of_other_user = tokens_of_bob(&gatepost);
    let online = CONF1.tokens(&gatepost, &mut browser, ONLINE);
    let offline = CONF1.tokens(&gatepost, &mut browser, OFFLINE);
    let implicit = [("response_type", "id_token token"), ("prompt", "none")];
    let answer = browser.get(&authorize_path("conf1", RP1, &implicit));
    let through_browser = answer.fragment()["access_token"].clone();
    let of_other_client = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
    let code = CONF1.code(&mut browser, &[]);
    Scene {
        gatepost,
        browser,
        code,
        online,
        offline,
        through_browser,
        of_other_client,
        of_other_user,
    }
}

/// What `conf1` gets when bob signs in in a browser of his.
fn tokens_of_bob(gatepost: &Gatepost) -> Value {
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut browser, &page, "bob", BOB_PASSWORD).assert_status(303);
    CONF1.tokens(gatepost, &mut browser, OFFLINE)
}

impl Scene {
    /// What is over. Each look uses what it looks at, so this is the last thing a test does.
    fn over(&mut self) -> String {
        // By a client that no row is about.
        let path = authorize_path(REUSE.client_id, REUSE.redirect_uri, &[("prompt", "none")]);
        let answer = self.browser.get(&path).query();
        let session = answer.contains_key("code");
        assert!(session || answer["error"] == "login_required", "{answer:?}");
        let gatepost = &self.gatepost;
        let mut over = Vec::new();
        let mut look = |what, lives: bool| {
            if !lives {
                over.push(what);
            }
        };
        let is_good = |answer: Answer| answer.status == 200;
        look("session", session);
        look("code", is_good(CONF1.redeem(gatepost, &self.code)));
        look("grant", is_good(userinfo(gatepost, access(&self.online))));
        let refreshed = CONF1.refresh(gatepost, refresh(&self.online));
        look("in_session", is_good(refreshed));
        look("offline", self.lives(CONF1, &self.offline));
        let told = userinfo(gatepost, &self.through_browser);
        look("through_browser", is_good(told));
        look("of_other_client", self.lives(CONF2, &self.of_other_client));
        look("of_other_user", self.lives(CONF1, &self.of_other_user));
        over.join(" ")
    }

    /// Access token and refresh token of a grant go together.
    fn lives(&self, party: Party, tokens: &Value) -> bool {
        let told = userinfo(&self.gatepost, access(tokens)).status;
        let refreshed = party.refresh(&self.gatepost, refresh(tokens)).status;
        let both = (told, refreshed);
        assert!([(200, 200), (401, 400)].contains(&both), "{both:?}");
        told == 200
    }

    fn command(&self, arguments: &[&str]) -> String {
        self.gatepost.run_well(arguments, "")
    }

    fn run(&self, sql: &str) {
        self.gatepost.database.run(sql);
    }

    fn events(&self, name: &str) -> i64 {
        self.gatepost.database.events(name)
    }

    fn alice(&self) -> Subject {
        let found = "SELECT sub FROM users WHERE username = 'alice'";
        Subject::new(self.gatepost.database.value::<String>(found, &[]))
    }

    fn list(&self, arguments: &[&str]) -> Vec<Value> {
        serde_json::from_str(&self.command(&[arguments, &["--json"]].concat())).unwrap()
    }
}

#[test]
fn nothing_ends_by_itself() {
    assert_eq!(scene().over(), "");
}

#[test]
fn signing_out_ends_the_session_and_all_but_offline_grants() {
    let mut scene = scene();
    let page = scene.browser.get("/logout");
    scene.browser.submit(&page, &[("decision", "sign_out")]);
    assert_eq!(scene.over(), SIGNED_OUT);
}

#[test]
fn ending_a_session_by_command_does_the_same() {
    let mut scene = scene();
    let sessions = scene.list(&["session", "list", "--user", "alice"]);
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["sub"], json!(scene.alice().as_str()));
    scene.command(&["session", "end", sessions[0]["sid"].as_str().unwrap()]);
    assert_eq!(scene.list(&["session", "list", "--user", "alice"]).len(), 0);
    assert_eq!(scene.list(&["session", "list"]).len(), 1);
    assert_eq!(scene.events("session_ended"), 1);
    assert_eq!(scene.over(), SIGNED_OUT);
}

#[test]
fn a_browser_that_cannot_prove_its_key_is_signed_out_until_it_can_and_nothing_else_ends() {
    let scene = || scene_at(Gatepost::lent_with(&document(), &bound::SETTINGS));
    let since =
        "UPDATE sessions SET bound_to = sha256('key'), bound_at = now() - interval '31 seconds'";
    let mut refused = scene();
    refused.run(since);
    assert_eq!(refused.over(), "session");
    drop(refused);
    let mut back = scene();
    back.run(since);
    back.run("UPDATE sessions SET bound_at = now()");
    assert_eq!(back.over(), "");
}

#[test]
fn a_session_that_runs_out_leaves_what_it_gave() {
    let mut scene = scene();
    // A server tells the time to a few milliseconds.
    scene.run("UPDATE sessions SET expires_at = clock_timestamp() - interval '1 second'");
    assert_eq!(scene.over(), "session in_session");
}

#[test]
fn another_password_ends_everything_of_the_user() {
    let mut scene = own_scene();
    let new = "quite another long password";
    scene.gatepost.run_well(&["user", "password", "alice"], new);
    assert_eq!(scene.over(), ALICE_GONE);
}

#[test]
fn revoking_a_user_ends_everything_of_theirs_at_once() {
    let mut scene = scene();
    let told = scene.command(&["user", "revoke", "ALICE"]);
    told.assert_says("alice");
    assert_eq!(scene.list(&["grant", "list", "--user", "alice"]).len(), 0);
    assert_eq!(scene.events("user_revoked"), 1);
    assert_eq!(scene.over(), ALICE_GONE);
}

#[test]
fn a_disabled_user_gets_nothing_back_by_being_enabled_again() {
    let mut scene = own_scene();
    for enabled in [false, true] {
        let mut document = document();
        document["users"][0]["enabled"] = json!(enabled);
        scene.gatepost.apply(&document);
    }
    assert_eq!(scene.over(), ALICE_GONE);
}

const RUN_OUT: &str = "UPDATE users SET valid_until = clock_timestamp() WHERE username = 'alice'";

/// What makes alice's time run out.
type Ending = fn(&mut Scene);

#[test]
fn whose_time_ran_out_has_nothing_left_and_gets_nothing_back_by_a_later_date() {
    let ways: [(&str, Ending); 7] = [
        ("nobody has seen it", |scene| scene.run(RUN_OUT)),
        ("by a command, in the past", |scene| {
            scene.command(&["user", "until", "alice", "2001-01-01"]);
        }),
        ("by a document, in the past", |scene| {
            let mut document = document();
            document["users"][0]["valid_until"] = json!("2001-01-01T00:00:00+01:00");
            scene.gatepost.apply(&document);
        }),
        ("while no server ran", |scene| {
            scene.gatepost.own().stop();
            scene.run(RUN_OUT);
            scene.gatepost.own().serve();
        }),
        ("seen by two leaders, told once", |scene| {
            scene.run(RUN_OUT);
            let store = scene.gatepost.database.store();
            for _ in 0..2 {
                user_ends::expire(&store).unwrap();
            }
            assert_eq!(scene.events("user_expired"), 1);
            let due = "SELECT count(*) FROM session_clients WHERE due_at IS NULL AND tries = 0 AND sub = $1";
            let sub = scene.alice();
            let waiting: i64 = scene.gatepost.database.value(due, &[&sub.as_str()]);
            assert_eq!(waiting, 0, "all of their clients are called");
        }),
        ("a later date", |scene| {
            scene.run(RUN_OUT);
            scene.command(&["user", "until", "alice", "2999-12-31"]);
        }),
        ("no date any more", |scene| {
            scene.run(RUN_OUT);
            scene.command(&["user", "until", "alice", "never"]);
            assert!(lets_in(&scene.gatepost, "alice", ALICE_PASSWORD));
        }),
    ];
    for (way, end) in ways {
        let mut scene = own_scene();
        let link = scene.command(&["user", "reset", "alice"]);
        end(&mut scene);
        scene.browser.visit(link.trim()).assert_status_for(way, 400);
        assert_eq!(scene.over(), ALICE_GONE, "{way}");
    }
}

#[test]
fn the_databases_clock_alone_says_whose_time_ran_out_at_every_server() {
    let gatepost = Gatepost::start_with_a_clock_of_its_own();
    let mut other = gatepost.beside();
    other.serve();
    let mut browser = signed_in(&gatepost);
    let token = access_token(&gatepost, &mut browser, "openid");
    gatepost.database.run(
        "UPDATE users SET valid_until = clock_timestamp() + interval '29 seconds' WHERE username = 'alice'",
    );
    let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let told = || [&gatepost, &other].map(|server| userinfo(server, &token).status);
    assert_eq!(told(), [200, 200]);
    // No server has seen it yet: the clock of each is 30 s behind.
    gatepost.database.travel(30);
    assert_eq!(told(), [401, 401]);
    assert_eq!(redeem(&other, &code).status, 400);
    for server in [&gatepost, &other] {
        assert!(!lets_in(server, "alice", ALICE_PASSWORD));
    }
    assert!(!is_signed_in(&mut browser));
    let told = String::from_utf8_lossy(&gatepost.explain(&token).stdout).into_owned();
    assert!(told.contains(", until "), "{told}");
}

#[test]
fn what_is_given_while_the_end_is_known_ends_no_later() {
    let mut scene = own_scene();
    scene.run("UPDATE users SET valid_until = date_trunc('second', clock_timestamp()) + interval '100 seconds'");
    let end = "SELECT floor(extract(epoch FROM min(valid_until)))::int8 FROM users";
    let end: i64 = scene.gatepost.database.value(end, &[]);
    let redeemed = CONF1.redeem(&scene.gatepost, &scene.code).json();
    let refreshed = CONF1.refresh(&scene.gatepost, refresh(&scene.offline));
    let refreshed = refreshed.json();
    let implicit = [("response_type", "id_token token"), ("prompt", "none")];
    let path = authorize_path("conf1", RP1, &implicit);
    let through_browser = json!(scene.browser.get(&path).fragment());
    for given in [&redeemed, &refreshed, &through_browser] {
        let ends = decode_jwt(member(given, "id_token")).1["exp"].as_i64();
        assert_eq!(ends, Some(end), "{given}");
        let told = CONF1.introspect(&scene.gatepost, access(given));
        assert_eq!(told["exp"], end, "{given}");
    }
}

#[test]
fn whoever_moves_to_another_tenant_takes_nothing_along() {
    let mut document = document();
    document["tenants"] = json!([{"name": "acme"}]);
    document["users"][0]["sub"] = json!("alice-1");
    let mut scene = scene_of(&document);
    document["users"][0]["tenant"] = json!("acme");
    scene.gatepost.apply(&document);
    assert_eq!(scene.over(), ALICE_GONE);
}

#[test]
fn who_is_enabled_again_signs_in_at_once_and_what_they_get_can_be_revoked() {
    let scene = scene();
    let disable_and_enable =
        || ["disable", "enable"].map(|verb| scene.command(&["user", verb, "bob"]));
    disable_and_enable();
    let tokens = tokens_of_bob(&scene.gatepost);
    assert!(scene.lives(CONF1, &tokens));
    disable_and_enable();
    assert!(!scene.lives(CONF1, &tokens));
}

#[test]
fn what_names_a_user_who_is_not_there_is_dead() {
    let mut scene = own_scene();
    scene.run("DELETE FROM users WHERE username = 'alice'");
    assert_eq!(scene.over(), ALICE_GONE);
}

#[test]
fn revoking_a_client_ends_everything_of_it_at_once() {
    let mut scene = scene();
    scene.command(&["client", "revoke", "conf1"]);
    assert_eq!(scene.list(&["grant", "list", "--client", "conf1"]).len(), 0);
    assert_eq!(scene.list(&["grant", "list"]).len(), 1);
    assert_eq!(scene.events("client_revoked"), 1);
    assert_eq!(scene.over(), CLIENT_GONE);
}

#[test]
fn a_disabled_client_gets_nothing_back_by_being_enabled_again() {
    let mut scene = own_scene();
    for enabled in [false, true] {
        let mut document = document();
        client(&mut document, "conf1")["enabled"] = json!(enabled);
        scene.gatepost.apply(&document);
    }
    assert_eq!(scene.over(), CLIENT_GONE);
}

#[test]
fn a_client_that_was_removed_gets_nothing_back_by_being_registered_again() {
    let mut scene = own_scene();
    scene.run("DELETE FROM clients WHERE client_id = 'conf1'; UPDATE installation SET registry_version = registry_version + 1");
    scene.gatepost.settle();
    assert_eq!(userinfo(&scene.gatepost, access(&scene.online)).status, 401);
    scene.gatepost.apply(&document());
    assert_eq!(scene.over(), CLIENT_GONE);
}

#[test]
fn withdrawing_consent_ends_everything_between_the_two() {
    let mut scene = scene();
    let event = AuditEvent {
        event: "consent_withdrawn",
        ..AuditEvent::default()
    };
    let store = scene.gatepost.database.store();
    consents::withdraw(&store, &scene.alice(), &ClientId::new("conf1"), &event).unwrap();
    assert_eq!(scene.over(), PAIR_GONE);
}

#[test]
fn a_person_withdraws_consent_and_changes_the_password_themselves() {
    for (decision, left) in [
        ("withdraw", PAIR_GONE),
        ("change_password", ALL_BUT_THE_SESSION_GONE),
    ] {
        let mut scene = own_scene();
        let page = scene.browser.get("/account");
        let new = "quite another long password";
        let form = [
            ("decision", decision),
            ("client_id", "conf1"),
            ("present_password", ALICE_PASSWORD),
            ("new_password", new),
            ("new_password_again", new),
        ];
        let done = scene.browser.submit_to("/account", &page, &form);
        done.assert_says_for(decision, "role=\"status\"");
        assert_eq!(scene.over(), left, "{decision}");
    }
}

#[test]
fn the_first_factor_ends_everything_but_its_own_session() {
    let mut scene = own_scene();
    add_app(&mut scene.browser, 0);
    assert_eq!(scene.over(), ALL_BUT_THE_SESSION_GONE);
}

#[test]
fn a_consent_that_lapses_ends_what_needs_it_for_good() {
    let mut registered = document();
    client(&mut registered, "conf2")["consent_lifetime"] = json!(3_600);
    client(&mut registered, "conf1")["consent_lifetime"] = json!(3_600);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let mut browser = signed_in(&gatepost);
    let before = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
    let in_flight = CONF2.code(&mut browser, &[]);
    let asked = [("scope", OFFLINE), ("prompt", "consent")];
    let not_needed = CONF1.tokens_with(&gatepost, &mut browser, &asked);
    let before = CONF2.refresh(&gatepost, refresh(&before)).json();
    gatepost.run_sql("UPDATE consents SET granted_at = granted_at - interval '1 hour', expires_at = clock_timestamp()");
    let refused = CONF2.refresh(&gatepost, refresh(&before));
    refused.assert_member("error", "invalid_grant");
    let refused = CONF2.redeem(&gatepost, &in_flight);
    refused.assert_member("error", "invalid_grant");
    userinfo(&gatepost, access(&before)).assert_status_for("until it expires", 200);
    let refreshed = CONF1.refresh(&gatepost, refresh(&not_needed));
    refreshed.assert_status_for("nobody need be asked for this client", 200);
    // What is allowed afterwards stands, remembered or not; what stood on the old consent does not
    // come back with it.
    let path = authorize_path("conf2", CONF2.redirect_uri, &[("scope", OFFLINE)]);
    let page = browser.visit(&path);
    let answer = browser.decide(&page, "allow", &["profile", "offline_access"], false);
    let once = CONF2.redeem(&gatepost, &answer.query()["code"]).json();
    let once = CONF2.refresh(&gatepost, refresh(&once)).json();
    let anew = CONF2.tokens(&gatepost, &mut browser, OFFLINE);
    assert_eq!(CONF2.refresh(&gatepost, refresh(&once)).status, 200);
    assert_eq!(CONF2.refresh(&gatepost, refresh(&anew)).status, 200);
    let refused = CONF2.refresh(&gatepost, refresh(&before));
    refused.assert_member("error", "invalid_grant");
}

#[test]
fn a_role_taken_away_ends_all_that_a_client_has_that_asks_for_it() {
    let mut registered = document();
    client(&mut registered, "conf1")["allowed_roles"] = json!(["admin", "user"]);
    let mut scene = scene_of(&registered);
    scene.command(&["user", "set", "alice", "role=guest"]);
    assert_eq!(scene.over(), PAIR_GONE);
}

#[test]
fn a_minimum_acr_that_is_raised_ends_all_that_a_client_has_of_weaker_sign_ins() {
    let mut scene = own_scene();
    let mut registered = document();
    client(&mut registered, "conf1")["minimum_acr"] = json!("2");
    scene.gatepost.apply(&registered);
    assert_eq!(scene.over(), CLIENT_GONE);
}

/// A change, its undoing, and which of three things end with it: a code in flight, an access token,
/// a refresh token.
pub struct Change {
    pub name: &'static str,
    pub done: &'static str,
    pub undone: &'static str,
    pub ends: [bool; 3],
}

const fn change(
    name: &'static str,
    done: &'static str,
    undone: &'static str,
    ends: [bool; 3],
) -> Change {
    Change {
        name,
        done,
        undone,
        ends,
    }
}

const ALL_END: [bool; 3] = [true, true, true];
const CODE_AND_REFRESH_TOKEN_END: [bool; 3] = [true, false, true];
const TOKENS_END: [bool; 3] = [false, true, true];
const REFRESH_TOKEN_ENDS: [bool; 3] = [false, false, true];

/// In the database, so that one scene serves all: what `apply` and commands write is these columns.
#[rustfmt::skip]
pub const CHANGES: [Change; 19] = [
    change("nothing", "", "", [false, false, false]),
    change("the user is disabled",
        "UPDATE users SET enabled = false WHERE username = 'alice'",
        "UPDATE users SET enabled = true WHERE username = 'alice'", ALL_END),
    change("the time of the user ran out",
        "UPDATE users SET valid_until = clock_timestamp() WHERE username = 'alice'",
        // With the epoch of before: otherwise nothing comes back.
        "UPDATE users SET valid_until = NULL WHERE username = 'alice';
         UPDATE users u SET epoch = g.user_epoch FROM grants g WHERE g.sub = u.sub AND u.username = 'alice'", ALL_END),
    change("the user is revoked",
        "UPDATE users SET epoch = epoch + 1 WHERE username = 'alice'",
        "UPDATE users SET epoch = epoch - 1 WHERE username = 'alice'", ALL_END),
    change("the user has none of the roles that the client asks for",
        "UPDATE clients SET metadata = metadata || '{\"allowed_roles\": [\"nobody\"]}' WHERE client_id = 'reuse'",
        "UPDATE clients SET metadata = metadata - 'allowed_roles' WHERE client_id = 'reuse'", ALL_END),
    change("minimum_acr is raised",
        "UPDATE clients SET metadata = metadata || '{\"minimum_acr\": \"2\"}' WHERE client_id = 'reuse'",
        "UPDATE clients SET metadata = metadata - 'minimum_acr' WHERE client_id = 'reuse'", ALL_END),
    change("the client is disabled",
        "UPDATE clients SET enabled = false WHERE client_id = 'reuse'",
        "UPDATE clients SET enabled = true WHERE client_id = 'reuse'", ALL_END),
    change("the client is revoked",
        "UPDATE clients SET epoch = epoch + 1 WHERE client_id = 'reuse'",
        "UPDATE clients SET epoch = epoch - 1 WHERE client_id = 'reuse'", ALL_END),
    change("the client loses the grant type, and offline_access with it",
        "UPDATE clients SET metadata = metadata || '{\"grant_types\": [\"authorization_code\"], \"scope\": \"openid profile orders.read\"}' WHERE client_id = 'reuse'",
        "UPDATE clients SET metadata = metadata || '{\"grant_types\": [\"authorization_code\", \"refresh_token\"], \"scope\": \"openid profile offline_access orders.read\"}' WHERE client_id = 'reuse'",
        CODE_AND_REFRESH_TOKEN_END),
    change("the client loses a scope",
        "UPDATE clients SET metadata = metadata || '{\"scope\": \"openid profile offline_access\"}' WHERE client_id = 'reuse'",
        "UPDATE clients SET metadata = metadata || '{\"scope\": \"openid profile offline_access orders.read\"}' WHERE client_id = 'reuse'",
        CODE_AND_REFRESH_TOKEN_END),
    change("a scope is no longer registered",
        "UPDATE catalogue_entries SET name = 'gone', document = document || '{\"name\": \"gone\"}' WHERE name = 'orders.read'",
        "UPDATE catalogue_entries SET name = 'orders.read', document = document || '{\"name\": \"orders.read\"}' WHERE name = 'gone'",
        CODE_AND_REFRESH_TOKEN_END),
    change("the client is for one tenant alone",
        "UPDATE clients SET metadata = metadata || '{\"tenants\": [\"acme\"]}' WHERE client_id = 'reuse'",
        "UPDATE clients SET metadata = metadata - 'tenants' WHERE client_id = 'reuse'", CODE_AND_REFRESH_TOKEN_END),
    change("the tenant is no longer registered",
        "UPDATE grants SET tenant = 'gone' WHERE client_id = 'reuse'",
        "UPDATE grants SET tenant = '' WHERE client_id = 'reuse'", REFRESH_TOKEN_ENDS),
    change("the grant expires",
        "UPDATE grants SET expires_at = expires_at - interval '1000 days'",
        "UPDATE grants SET expires_at = expires_at + interval '1000 days'", TOKENS_END),
    change("the refresh token is not used for long",
        "UPDATE grants SET used_at = clock_timestamp() - interval '1000 days'",
        "UPDATE grants SET used_at = clock_timestamp()", REFRESH_TOKEN_ENDS),
    change("the grant is revoked",
        "UPDATE grants SET revoked_at = clock_timestamp()",
        "UPDATE grants SET revoked_at = NULL", TOKENS_END),
    change("the consent is withdrawn",
        "UPDATE consents SET epoch = epoch + 1 WHERE client_id = 'reuse'",
        "UPDATE consents SET epoch = epoch - 1 WHERE client_id = 'reuse'", ALL_END),
    change("a consent lapses that the client needs",
        "UPDATE consents SET expires_at = clock_timestamp() WHERE client_id = 'reuse';
         UPDATE clients SET metadata = metadata || '{\"require_consent\": true}' WHERE client_id = 'reuse'",
        "UPDATE consents SET expires_at = NULL WHERE client_id = 'reuse';
         UPDATE clients SET metadata = metadata - 'require_consent' WHERE client_id = 'reuse'",
        CODE_AND_REFRESH_TOKEN_END),
    change("everything is revoked",
        "UPDATE installation SET epoch = epoch + 1",
        "UPDATE installation SET epoch = epoch - 1", ALL_END),
];

pub const WIDE: &str = "openid profile offline_access orders.read";

/// Whether a refresh token lives: what introspection, the statement of the refresh alone, and the
/// grant that is read first say.
fn rules(party: Party, gatepost: &Gatepost, token: &str) -> [bool; 3] {
    let form = [("token", token)];
    let told = party.post(&mut gatepost.connect(), "/connect/introspect", &form);
    let alone = party.refresh(gatepost, token);
    let read_first = party.refresh_with(gatepost, token, &[("scope", "openid")]);
    [
        told.status == 200 && told.json()["active"] == true,
        alone.status == 200,
        read_first.status == 200,
    ]
}

/// The same, where they must agree.
fn can_refresh(gatepost: &Gatepost, token: &str) -> bool {
    let rules = rules(REUSE, gatepost, token);
    assert!(rules.iter().all(|rule| *rule == rules[0]), "{rules:?}");
    rules[0]
}
#[test]
fn what_is_undone_comes_back_and_every_rule_says_the_same() {
    let gatepost = Gatepost::start_with(&offline::document(), &[]);
    let change = |sql: &str| {
        let bump = "UPDATE installation SET registry_version = registry_version + 1";
        gatepost.database.run(&format!("{sql}; {bump}"));
        gatepost.settle();
    };
    let mut browser = signed_in(&gatepost);
    change(
        "INSERT INTO consents (sub, client_id, scopes, claims)
         SELECT sub, 'reuse', '{openid,profile,offline_access,orders.read}', '{}' FROM users WHERE username = 'alice'",
    );
    let tokens = REUSE.tokens(&gatepost, &mut browser, WIDE);
    for change_made in CHANGES {
        let Change { name, ends, .. } = change_made;
        let code = REUSE.code(&mut browser, &[("scope", WIDE)]);
        change(change_made.done);
        let lives = [
            REUSE.redeem(&gatepost, &code).status == 200,
            userinfo(&gatepost, access(&tokens)).status == 200,
            can_refresh(&gatepost, refresh(&tokens)),
        ];
        assert_eq!(lives, ends.map(|ends| !ends), "{name}");
        change(change_made.undone);
        assert_eq!(userinfo(&gatepost, access(&tokens)).status, 200, "{name}");
        assert!(can_refresh(&gatepost, refresh(&tokens)), "{name}, undone");
    }
    change("DELETE FROM users WHERE username = 'alice'");
    assert!(!can_refresh(&gatepost, refresh(&tokens)));
    assert_eq!(userinfo(&gatepost, access(&tokens)).status, 401);
}

#[test]
fn a_refresh_token_without_offline_access_ends_with_its_session_as_every_rule_says() {
    let gatepost = Gatepost::start_with(&document(), &[]);
    let change = |sql: &str| {
        let bump = "UPDATE installation SET registry_version = registry_version + 1";
        gatepost.database.run(&format!("{sql}; {bump}"));
        gatepost.settle();
    };
    let mut browser = signed_in(&gatepost);
    let tokens = CONF1.tokens(&gatepost, &mut browser, ONLINE);
    let mut token = refresh(&tokens).to_owned();
    let session = || {
        let row = "SELECT row_to_json(s)::text FROM sessions s";
        let row: Value =
            serde_json::from_str(&gatepost.database.value::<String>(row, &[])).unwrap();
        let end = "SELECT floor(extract(epoch FROM expires_at))::int8 FROM sessions";
        (row, gatepost.database.value::<i64>(end, &[]))
    };
    let before = session();
    // By the one statement, and where the grant is read first.
    for further in [&[][..], &[("scope", "openid")]] {
        assert_eq!(CONF1.introspect(&gatepost, &token)["exp"], before.1);
        let answer = CONF1.refresh_with(&gatepost, &token, further);
        token = refresh(&answer.json()).to_owned();
    }
    assert_eq!(session(), before, "a refresh does not lengthen the session");
    let rules = |token: &str| rules(CONF1, &gatepost, token);
    #[rustfmt::skip]
    let changes = [
        ("UPDATE sessions SET ended_at = clock_timestamp()", "UPDATE sessions SET ended_at = NULL"),
        ("UPDATE sessions SET expires_at = expires_at - interval '1 day'",
         "UPDATE sessions SET expires_at = expires_at + interval '1 day'"),
        ("UPDATE sessions SET sub = 'other' || sub", "UPDATE sessions SET sub = substr(sub, 6)"),
        ("UPDATE users SET epoch = epoch + 1", "UPDATE users SET epoch = epoch - 1"),
        ("UPDATE clients SET metadata = metadata - 'refresh_token_without_offline_access' WHERE client_id = 'conf1'",
         "UPDATE clients SET metadata = metadata || '{\"refresh_token_without_offline_access\": true}' WHERE client_id = 'conf1'"),
    ];
    for (done, undone) in changes {
        change(done);
        assert_eq!(rules(&token), [false; 3], "{done}");
        change(undone);
        assert_eq!(rules(&token), [true; 3], "{undone}");
        token = refresh(&CONF1.refresh(&gatepost, &token).json()).to_owned();
    }
    // Nearer than it was.
    change("UPDATE sessions SET expires_at = expires_at - interval '1 hour'");
    assert_eq!(CONF1.introspect(&gatepost, &token)["exp"], before.1 - 3_600);
    change("UPDATE sessions SET expires_at = clock_timestamp() - interval '1 second'");
    let told = gatepost.explain(&token);
    let told = String::from_utf8_lossy(&told.stdout);
    assert!(told.contains("its session has run out"), "{told}");
}

#[test]
fn a_line_of_the_master_secret_that_is_removed_ends_what_it_sealed_and_no_session() {
    let mut gatepost = Gatepost::start_with(&offline::document(), &[]);
    let mut browser = signed_in(&gatepost);
    let tokens = REUSE.tokens(&gatepost, &mut browser, WIDE);
    let code = REUSE.code(&mut browser, &[("scope", WIDE)]);
    let line = |byte: u8| STANDARD.encode([byte; 32]) + "\n";
    let mut serve_with = |name: &str, lines: &str| {
        let file = gatepost.private_file(name, lines);
        gatepost.set("GATEPOST_SECRET_FILE", file.to_str().unwrap());
        gatepost.run_well(&["secret", "rotate"], "");
        gatepost.stop();
        gatepost.serve();
    };
    serve_with("both", &(line(7) + &line(42)));
    serve_with("alone", &line(7));
    assert!(!can_refresh(&gatepost, refresh(&tokens)));
    assert_eq!(userinfo(&gatepost, access(&tokens)).status, 401);
    assert_eq!(REUSE.redeem(&gatepost, &code).status, 400);
    REUSE.tokens(&gatepost, &mut browser, WIDE);
}

#[test]
fn an_id_token_sent_without_a_browser_ends_the_session_as_signing_out_does() {
    let mut scene = scene();
    let hint = member(&scene.online, "id_token");
    let path = format!("/connect/endsession?id_token_hint={hint}");
    scene.gatepost.get(&path).assert_status(200);
    assert_eq!(scene.over(), SIGNED_OUT);
}

#[test]
fn a_code_that_comes_twice_ends_what_it_gave_and_no_more() {
    let mut scene = scene();
    let code = CONF1.code(&mut scene.browser, &[("scope", OFFLINE)]);
    let gave = CONF1.redeem(&scene.gatepost, &code).json();
    assert_eq!(CONF1.redeem(&scene.gatepost, &code).status, 400);
    assert!(!scene.lives(CONF1, &gave));
    assert_eq!(scene.over(), "");
}

#[test]
fn a_code_that_comes_again_with_another_redirect_uri_ends_what_it_gave() {
    let mut scene = scene();
    let code = CONF1.code(&mut scene.browser, &[("scope", OFFLINE)]);
    let gave = CONF1.redeem(&scene.gatepost, &code).json();
    let elsewhere = Party {
        redirect_uri: "https://elsewhere.example/callback",
        ..CONF1
    };
    elsewhere.redeem(&scene.gatepost, &code).assert_status(400);
    assert!(!scene.lives(CONF1, &gave));
    assert_eq!(scene.over(), "");
}

#[test]
fn a_replayed_refresh_token_ends_its_grant_and_no_more() {
    let mut scene = scene();
    let second = CONF1.refresh(&scene.gatepost, refresh(&scene.offline));
    let second = second.json();
    CONF1.refresh(&scene.gatepost, refresh(&second));
    let again = CONF1.refresh(&scene.gatepost, refresh(&scene.offline));
    again.assert_status(400);
    assert!(!scene.lives(CONF1, &second));
    assert_eq!(scene.over(), "offline");
}

#[test]
fn revoking_a_refresh_token_ends_its_grant_and_no_more() {
    let mut scene = scene();
    CONF1.revoke(&scene.gatepost, refresh(&scene.offline));
    assert_eq!(scene.over(), "offline");
}

#[test]
fn revoking_a_grant_by_command_ends_it_and_no_more() {
    let mut scene = scene();
    let grants = scene.list(&["grant", "list", "--user", "alice", "--client", "conf1"]);
    assert_eq!(grants.len(), 2);
    let mut grants = grants.iter();
    let offline = grants.find(|grant| grant["offline"] == true).unwrap();
    assert_eq!(offline["scope"], OFFLINE);
    let name = offline["grant"].as_str().unwrap();
    scene.command(&["grant", "revoke", name]);
    let again = scene.gatepost.run(&["grant", "revoke", name], "");
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(scene.events("grant_revoked"), 1);
    assert_eq!(scene.over(), "offline");
}

#[test]
fn revoking_an_access_token_ends_that_token_alone() {
    let mut scene = scene();
    CONF1.revoke(&scene.gatepost, access(&scene.online));
    CONF1.revoke(&scene.gatepost, access(&scene.offline));
    userinfo(&scene.gatepost, access(&scene.offline)).assert_status(401);
    let refreshed = CONF1.refresh(&scene.gatepost, refresh(&scene.offline));
    scene.offline = refreshed.json();
    CONF1.revoke(&scene.gatepost, &scene.through_browser);
    assert_eq!(scene.over(), "grant through_browser");
}

#[test]
fn revoking_everything_ends_everything() {
    let mut scene = scene();
    let form = [("grant_type", "client_credentials")];
    let of_client = CONF1.post(&mut scene.gatepost.connect(), "/connect/token", &form);
    let of_client = of_client.json();
    let unsaid = scene.gatepost.run(&["revoke"], "");
    assert_eq!(unsaid.status.code(), Some(2));
    let is_active = || CONF1.introspect(&scene.gatepost, access(&of_client))["active"].clone();
    assert_eq!(is_active(), true);
    scene.command(&["revoke", "--everything"]);
    assert_eq!(is_active(), false);
    assert_eq!(scene.list(&["grant", "list"]).len(), 0);
    assert_eq!(scene.list(&["session", "list"]).len(), 0);
    assert_eq!(scene.events("everything_revoked"), 1);
    assert_eq!(scene.over(), format!("{ALICE_GONE} of_other_user"));
}

#[test]
fn commands_that_revoke_nothing_say_so() {
    let gatepost = Gatepost::prepare(&[]);
    let missing = "AABRKQAAAAAAAAAAAAAAAAAAAAA";
    for [line, code, said] in rows_of(&format!(
        "
        user revoke nobody       | 1 | there is no user \"nobody\"
        client revoke nobody     | 1 | there is no client \"nobody\"
        grant revoke x           | 2 | GRANT must be as
        grant revoke {missing}   | 1 | there is no such grant
        session end x            | 2 | SID must be as
        session end {missing}    | 1 | there is no such session
        grant list --user nobody | 1 | there is no user
        revoke                   | 2 | needs --everything
        "
    )) {
        let arguments: Vec<&str> = line.split(' ').collect();
        let answer = gatepost.run(&arguments, "");
        let stderr = String::from_utf8_lossy(&answer.stderr).into_owned();
        stderr.assert_says_for(line, said);
        assert_eq!(answer.status.code(), code.parse().ok(), "{line}: {stderr}");
    }
    for line in "grant revoke|session end|user revoke|client revoke|revoke".split('|') {
        let help = gatepost.run_line(&format!("{line} --help"));
        help.assert_says("Example:\n  gatepost ");
    }
    let listed = gatepost.run_line("grant list");
    assert!(listed.starts_with("GRANT  CLIENT_ID"), "{listed}");
}

#[test]
fn a_revocation_ends_what_followed_another_one_within_the_same_second() {
    let scene = scene();
    for _ in 0..4 {
        scene.command(&["user", "revoke", "bob"]);
        let tokens = tokens_of_bob(&scene.gatepost);
        assert!(scene.lives(CONF1, &tokens));
        scene.command(&["user", "revoke", "bob"]);
        assert!(!scene.lives(CONF1, &tokens));
    }
}

#[test]
fn revocations_in_a_row_keep_nobody_waiting_and_end_what_there_is() {
    let scene = scene();
    let tokens = tokens_of_bob(&scene.gatepost);
    for _ in 0..5 {
        scene.command(&["user", "revoke", "bob"]);
    }
    assert!(!scene.lives(CONF1, &tokens));
    for _ in 0..5 {
        scene.command(&["revoke", "--everything"]);
    }
    let tokens = tokens_of_bob(&scene.gatepost);
    // Who signs in right after them gets what they came for.
    assert!(scene.lives(CONF1, &tokens));
    scene.command(&["user", "revoke", "bob"]);
    assert!(!scene.lives(CONF1, &tokens));
}
