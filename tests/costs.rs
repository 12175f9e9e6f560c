//! What requests cost the database: statements by `pg_stat_statements`, writing transactions by the
//! ids they use up.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a panic here is a failed test"
)]

#[allow(dead_code, reason = "no test binary uses all of it")]
mod support;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use postgres::{Client, NoTls};
use serde_json::{Value, json};
use support::bound::{self, BoundBrowser};
use support::cluster::Cluster;
use support::flow::{
    self, authorize_path, basic, code, redeem_as, sign_in, signed_in, userinfo, with_clients,
};
use support::gatepost::{ALICE_PASSWORD, CONF1_SECRET, CONF2_SECRET, Gatepost, RP1, RP2, document};
use support::http::{Browser, ask_alone, free_address};
use support::mailbox::Mailbox;
use support::offline::{self, CONF1, CONF2, access, refresh};
use support::phone::Phone;
use support::postgres::{TestDatabase, cluster};
use support::proofs;
use support::scim::{self, Program};
use support::signer::Signer;
use support::traveller::Traveller;
use support::upstream::{Plan, Upstream};
use support::waiting::{SOON, await_that};

/// Statements, which are round trips, of each request once its connection has prepared them and its
/// client is cached. A connection that was idle for over a second costs one more, empty one.
const AUTHORIZE_ANONYMOUSLY: i64 = 0;
/// Session with user and consent.
const AUTHORIZE: i64 = 1;
/// For a client with a logout URI: whether it is noted as one of the session's.
const NOTE_CLIENT: i64 = 1;
/// The redemption.
const REDEEM: i64 = 1;
/// The grant moves on, and is read by the way; where the request asks for less than all of it, it
/// is read before.
const REFRESH: i64 = 1;
const REFRESH_NARROWED: i64 = 2;
/// What the token stands on.
const USERINFO: i64 = 1;
const CLIENT_CREDENTIALS: i64 = 0;
/// A DPoP proof that is taken, and one that is told a nonce, whatever comes with it.
const PROOF: i64 = 0;
const NONCE_ROUND: i64 = 0;
/// The registration of a browser's key, and each proof of it.
const BIND: i64 = 1;
const BOUND_REFRESH: i64 = 0;
const PUBLISHED_DOCUMENT: i64 = 0;
/// User; failures so far, before and in the hashing turn; session; consent.
const SIGN_IN: i64 = 5;
/// Who is linked to that identity; session; consent. The way upstream costs nothing, however many
/// begin it.
const SIGN_IN_UPSTREAM: i64 = 3;
/// A user with their link; or, of one who is here, claims that changed.
const TAKE_OVER: i64 = 1;
/// Session with user and consent; the decision, and the consent as it stands then.
const CONSENT: i64 = 3;

/// The token, and the user.
const SCIM_READ: i64 = 2;
/// The token, and the insertion with its event, which answers the user.
const SCIM_ADD: i64 = 2;
/// The token, the user as they are, and the change with its event.
const SCIM_WRITE: i64 = 3;

/// What the ID token stands on. Its event, the one write, is not among the statements counted here.
const ID_JAG_ISSUED: i64 = 1;
/// That it is good once; the user, by the name in it, and as every extension grant reads them.
const ID_JAG_TAKEN: i64 = 3;

/// Session; who is found; their rows; who of them is locked out.
const FIND_PEOPLE: i64 = 4;
/// Session; person; factors; sign-ins; wrong passwords; what their roles open.
const SHOW_PERSON: i64 = 6;
/// Session and person; the change; the page.
const CHANGE_PERSON: i64 = 3 + SHOW_PERSON - 1;

/// The partitions of all tables.
const READINESS: i64 = 1;

/// How often each is done before it is counted.
const ROUNDS: i64 = 20;

/// Transaction ids are the cluster's: who counts them is alone in this file.
static COUNTING: Mutex<()> = Mutex::new(());

/// A role of its own: `pg_stat_statements` tells who ran what.
struct Role(String);

impl Role {
    fn of(database: &TestDatabase) -> Role {
        let name = format!("role_{}", database.schema);
        let schema = &database.schema;
        database.run(&format!(
            "CREATE ROLE {name} LOGIN; GRANT ALL ON SCHEMA {schema} TO {name}"
        ));
        let extension = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public";
        database.client().batch_execute(extension).ok();
        Role(name)
    }

    fn url(&self, database: &TestDatabase) -> String {
        let (scheme, rest) = database.url.split_once("://").unwrap();
        let host = rest.split_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{}@{host}", self.0)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        if let Ok(mut client) = Client::connect(&cluster(), NoTls) {
            let drops = format!("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", self.0);
            drop(client.batch_execute(&drops));
        }
    }
}

/// What one kind of request cost in all its rounds.
#[derive(Debug)]
struct Cost {
    /// Calls by statement.
    calls: BTreeMap<String, i64>,
    /// Transactions that used up an id.
    writes: i64,
}

impl Cost {
    fn statements(&self) -> i64 {
        self.calls.values().sum()
    }

    /// In each round so many writing transactions, and so many statements.
    #[track_caller]
    fn assert_is(&self, writes: i64, statements: i64) {
        let of_all_rounds = (ROUNDS * writes, ROUNDS * statements);
        assert_eq!((self.writes, self.statements()), of_all_rounds, "{self:#?}");
    }
}

/// A server with a role of its own, alone with the transaction ids while it is there.
struct Scene {
    meter: Meter,
    gatepost: Gatepost,
    role: Role,
    _alone: MutexGuard<'static, ()>,
}

impl Scene {
    fn serving(document: &Value, settings: &[(&str, &str)]) -> Scene {
        let alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
        let database = TestDatabase::empty();
        let role = Role::of(&database);
        let url = role.url(&database);
        let own = [("GATEPOST_DATABASE_URL", url.as_str())];
        let mut gatepost = Gatepost::prepare_over(database, &[&own, settings].concat());
        gatepost.apply(document);
        gatepost.serve();
        Scene {
            meter: Meter {
                client: gatepost.database.client(),
                role: role.0.clone(),
            },
            gatepost,
            role,
            _alone: alone,
        }
    }
}

struct Meter {
    client: Client,
    role: String,
}

impl Meter {
    /// The two questions of every second (what is registered, whom to call), what failed, which is
    /// written together by another thread, and the upkeep of every minute belong to no request.
    fn is_background(query: &str) -> bool {
        query.starts_with("SELECT registry_version, clock_timestamp()")
            || query.starts_with("WITH waiting AS")
            || query.starts_with("INSERT INTO audit_events")
            || query.starts_with("SELECT DISTINCT ON (day, chain)")
            // What a connection asks once about a type that a statement of its own names.
            || query.contains("FROM pg_catalog.pg_")
    }

    fn calls(&mut self) -> BTreeMap<String, i64> {
        let sql = "SELECT query, calls FROM public.pg_stat_statements s JOIN pg_roles r ON r.oid = s.userid
                   WHERE r.rolname = $1";
        let rows = self.client.query(sql, &[&self.role]).unwrap();
        let mut calls = BTreeMap::new();
        for row in rows {
            let query = row.get::<_, String>(0).trim().to_owned();
            *calls.entry(query).or_default() += row.get::<_, i64>(1);
        }
        calls.retain(|query, _| !Meter::is_background(query));
        calls
    }

    /// The next transaction id; asking uses one up itself.
    fn transaction_id(&mut self) -> i64 {
        let next = "SELECT pg_current_xact_id()::text::int8";
        self.client.query_one(next, &[]).unwrap().get(0)
    }

    /// Runs all rounds. Transaction ids are the cluster's, and others may have used some meanwhile;
    /// a connection may have had to prove that it lives; upkeep comes every minute. So all is done
    /// again, and what is told is the least of a few tries.
    fn of(&mut self, mut request: impl FnMut()) -> Cost {
        let tries: Vec<Cost> = (0..4).map(|_| self.once(&mut request)).collect();
        let writes = tries.iter().map(|cost| cost.writes).min().unwrap();
        let least = tries.into_iter().min_by_key(Cost::statements).unwrap();
        Cost { writes, ..least }
    }

    fn once(&mut self, request: &mut impl FnMut()) -> Cost {
        let (before, first) = (self.calls(), self.transaction_id());
        (0..ROUNDS).for_each(|_| request());
        let writes = self.transaction_id() - first - 1;
        let mut calls = self.calls();
        for (query, count) in &mut calls {
            *count -= before.get(query).copied().unwrap_or_default();
        }
        calls.retain(|_, count| *count > 0);
        Cost { calls, writes }
    }

    /// Waits until the upkeep at the start is over; the next is a minute away.
    fn await_quiet(&mut self) {
        // Its last statement; sign-ins have others over the same table.
        let last = "DELETE FROM sign_in_failures WHERE bucket IN";
        let is_last = |query: &String| query.starts_with(last);
        await_that("upkeep", SOON, || self.calls().keys().any(is_last));
        sleep(Duration::from_millis(300));
    }
}

const PUBLISHED: [&str; 3] = [
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/jwks",
    "/.well-known/oauth-authorization-server",
];

/// Of a client for itself.
const SERVICE: [(&str, &str); 2] = [
    ("grant_type", "client_credentials"),
    ("scope", "orders.read"),
];

#[track_caller]
fn assert_userinfo(gatepost: &Gatepost, token: &str) {
    userinfo(gatepost, token).assert_status(200);
}

/// Somebody new signs in under that name.
fn sign_in_as(gatepost: &Gatepost, name: &str) {
    let mut fresh = gatepost.browser();
    let page = fresh.visit(&authorize_path("conf1", RP1, &[]));
    sign_in(&mut fresh, &page, name, ALICE_PASSWORD).assert_status(303);
}

/// One statement, without the partitions of what it cannot stand on, which would be most of the
/// work.
fn proofs(gatepost: &Gatepost, meter: &mut Meter, browser: &mut Browser) {
    let key = Signer::es256("a");
    let proof = || proofs::for_form(gatepost, &key, "/connect/token");
    let send = |client: &str, form: &[(&str, &str)]| {
        let authorization = basic(client, CONF1_SECRET);
        let headers = [("Authorization", &*authorization), ("DPoP", &*proof())];
        gatepost.post("/connect/token", &headers, form).status
    };
    send("nonced", &SERVICE);
    let taken = meter.of(|| assert_eq!(send("conf1", &SERVICE), 200));
    taken.assert_is(0, CLIENT_CREDENTIALS + PROOF);
    let code = code(browser, &authorize_path("nonced", RP1, &[]));
    let of_code = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", RP1),
        ("code_verifier", flow::VERIFIER),
    ];
    let round = meter.of(|| assert_eq!(send("nonced", &of_code), 400));
    round.assert_is(0, NONCE_ROUND);
}

fn introspection_of_a_clients_own_token(gatepost: &Gatepost, meter: &mut Meter) {
    let own = gatepost.token("conf1", &SERVICE).json();
    let conf1 = ("conf1", CONF1_SECRET);
    let introspect = || offline::introspect_as(gatepost, conf1, access(&own));
    let cost = meter.of(|| assert_eq!(introspect()["active"], true));
    cost.assert_is(0, 1);
    let reads = |table: &str| cost.calls.keys().any(|sql| sql.contains(table));
    assert!(!reads("grants") && !reads("sessions"), "{cost:#?}");
}

/// That a session is in use is noted once an hour. One of the two writes is the test's own.
fn note_of_use(gatepost: &Gatepost, meter: &mut Meter, browser: &mut Browser, consented: &str) {
    let used = meter.of(|| {
        gatepost.run_sql("UPDATE sessions SET used_at = used_at - interval '2 hours'");
        code(browser, consented);
    });
    used.assert_is(2, AUTHORIZE + 1);
}

#[test]
fn a_code_flow_makes_one_write_transaction_and_client_credentials_none() {
    let told = json!({"backchannel_logout_uri": "https://told.example/out"});
    let nonced = json!({"dpop_nonce": true});
    let document = with_clients(document(), &[("told", told), ("nonced", nonced)]);
    let mut scene = Scene::serving(&document, &[]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    let mut browser = signed_in(gatepost);
    let consented = authorize_path("conf2", RP2, &[]);
    let page = browser.visit(&consented);
    let allowed = browser.decide(&page, "allow", &["profile"], true);
    allowed.assert_status(303);
    let bearer = |code: &str, secret: (&str, &str), redirect_uri: &str| {
        let tokens = redeem_as(gatepost, secret, redirect_uri, code).json();
        tokens["access_token"].as_str().unwrap().to_owned()
    };
    let (conf1, conf2) = (("conf1", CONF1_SECRET), ("conf2", CONF2_SECRET));
    let reference_token = bearer(&code(&mut browser, &consented), conf2, RP2);
    let code1 = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    let jwt = bearer(&code1, conf1, RP1);
    meter.await_quiet();

    // The whole flow, with a session that lives and consent that is remembered.
    let flow = meter.of(|| {
        let code = code(&mut browser, &consented);
        let token = bearer(&code, conf2, RP2);
        assert_userinfo(gatepost, &token);
    });
    flow.assert_is(1, AUTHORIZE + REDEEM + USERINFO);

    let authorize = meter.of(|| drop(code(&mut browser, &consented)));
    authorize.assert_is(0, AUTHORIZE);

    note_of_use(gatepost, meter, &mut browser, &consented);

    // A client that wants to hear of the session's end is noted once; from then on that is a look.
    let wants_to_hear = authorize_path("told", RP1, &[]);
    code(&mut browser, &wants_to_hear);
    let authorize = meter.of(|| drop(code(&mut browser, &wants_to_hear)));
    authorize.assert_is(0, AUTHORIZE + NOTE_CLIENT);

    for token in [&jwt, &reference_token] {
        let cost = meter.of(|| assert_userinfo(gatepost, token));
        cost.assert_is(0, USERINFO);
    }

    for client in ["conf1", "service"] {
        let request = || gatepost.token(client, &SERVICE).assert_status(200);
        // A client's first request since its registration changed reads the registration.
        request();
        let cost = meter.of(request);
        cost.assert_is(0, CLIENT_CREDENTIALS);
    }
    introspection_of_a_clients_own_token(gatepost, meter);
    proofs(gatepost, meter, &mut browser);

    for path in PUBLISHED {
        let cost = meter.of(|| assert_eq!(gatepost.get(path).status, 200));
        cost.assert_is(0, PUBLISHED_DOCUMENT);
    }

    let anonymous = meter.of(|| assert_eq!(gatepost.browser().visit(&consented).status, 200));
    anonymous.assert_is(0, AUTHORIZE_ANONYMOUSLY);

    let sign_in = meter.of(|| sign_in_as(gatepost, "alice"));
    sign_in.assert_is(1, SIGN_IN);

    let asked = authorize_path("conf2", RP2, &[("prompt", "consent")]);
    let mut page = browser.visit(&asked);
    let shown = meter.of(|| page = browser.visit(&asked));
    let consent = meter.of(|| {
        let page = browser.visit(&asked);
        let allowed = browser.decide(&page, "allow", &["profile"], true);
        allowed.assert_status(303);
    });
    assert_eq!(shown.writes, 0, "{shown:#?}");
    assert_eq!(consent.writes, ROUNDS, "{consent:#?}");
    let own = consent.statements() - shown.statements();
    assert_eq!(own, ROUNDS * CONSENT, "{consent:#?}");
    assert_eq!(flow::redeem(gatepost, "gpc_nothing").status, 400);
}

/// By an address as by a name; and the page behind a sign-up link leaves everything to the lane of
/// letters.
#[test]
fn a_sign_in_by_address_costs_no_more_and_a_sign_up_page_nothing() {
    let settings = [
        ("GATEPOST_SIGN_IN_WITH", "username,email"),
        ("GATEPOST_SMTP_URL", "smtp://localhost:9"),
        ("GATEPOST_MAIL_FROM", "login@example.com"),
        // Else the lane of letters, for which no request waits, writes beside what is measured.
        ("GATEPOST_NEW_BROWSER_MAIL", "off"),
    ];
    let mut scene = Scene::serving(&document(), &settings);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    gatepost.run_line("user set alice email=a@example.com email_verified=true");
    let link = gatepost.run_line("signup make --uses 1 --for 1d");
    // Else the server reads the registry anew while it is measured.
    gatepost.settle();
    meter.await_quiet();
    let mut browser = signed_in(gatepost);
    browser.visit(&authorize_path("conf1", RP1, &[]));
    let cost = meter.of(|| sign_in_as(gatepost, "A@example.com"));
    cost.assert_is(1, SIGN_IN);
    let cost = meter.of(|| {
        let mut fresh = gatepost.browser();
        let opened = fresh.get(link.trim());
        let page = fresh.follow(opened);
        let form = [("address", "nobody")];
        assert_eq!(fresh.submit(&page, &form).status, 200);
    });
    cost.assert_is(0, 0);
}

#[test]
fn a_refresh_is_one_statement_and_one_more_where_it_asks_for_less_than_the_grant() {
    let mut document = offline::document();
    offline::client(&mut document, "conf1")["refresh_token_without_offline_access"] = json!(true);
    let mut scene = Scene::serving(&document, &[]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    let mut browser = signed_in(gatepost);
    for scope in ["openid profile offline_access", "openid profile"] {
        let mut tokens = CONF1.tokens(gatepost, &mut browser, scope);
        let mut refreshed = |further: &[(&str, &str)]| {
            let answer = CONF1.refresh_with(gatepost, refresh(&tokens), further);
            answer.assert_status(200);
            tokens = answer.json();
        };
        meter.await_quiet();
        for (further, statements) in [
            (&[][..], REFRESH),
            (&[("scope", "openid")], REFRESH_NARROWED),
        ] {
            refreshed(further);
            let cost = meter.of(|| refreshed(further));
            cost.assert_is(1, statements);
        }
        // With `offline_access` it stands on no session, and none is looked for.
        refreshed(&[]);
        let cost = meter.of(|| assert_userinfo(gatepost, access(&tokens)));
        cost.assert_is(0, USERINFO);
        let asks_sessions = cost.calls.keys().any(|sql| sql.contains("sessions"));
        assert_eq!(asks_sessions, scope == "openid profile", "{cost:#?}");
    }
}

#[test]
fn an_id_jag_is_one_write_where_it_is_given_and_one_where_it_is_taken() {
    let jwt_bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    let exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
    let [id_jag, id_token] =
        ["id-jag", "id_token"].map(|kind| format!("urn:ietf:params:oauth:token-type:{kind}"));
    let signer = Signer::es256("k");
    let resource = "https://orders.example";
    let agent = json!({
        "grant_types": ["authorization_code", jwt_bearer, exchange], "scope": "openid orders.read",
        "id_jag": [{"audience": "https://other.example", "client_id": "a", "resources": [resource], "scope": "read"}],
    });
    let mut registered = with_clients(document(), &[("agent", agent)]);
    registered["assertion_issuers"] = json!([{
        "issuer": "https://idp.example", "jwks": support::signer::key_set(&[&signer]), "algs": ["ES256"],
        "clients": ["agent"], "id_jag": true, "subject": "username",
    }]);
    let mut scene = Scene::serving(&registered, &[("GATEPOST_ID_JAG", "on")]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    let tokens = flow::tokens(gatepost, &mut signed_in(gatepost), "agent", "openid");
    let ask = |form: &[(&str, &str)]| gatepost.token("agent", form).assert_status(200);
    let issue = || {
        ask(&[
            ("grant_type", exchange),
            ("requested_token_type", &id_jag),
            ("subject_token", tokens["id_token"].as_str().unwrap()),
            ("subject_token_type", &id_token),
            ("audience", "https://other.example"),
            ("resource", resource),
        ]);
    };
    let mut number = 0;
    let mut take = || {
        number += 1;
        let now = support::signer::now();
        let claims = json!({
            "iss": "https://idp.example", "sub": "alice", "aud": gatepost.base_url, "client_id": "agent",
            "iat": now, "exp": now + 300, "jti": number.to_string(), "resource": resource,
        });
        let header = json!({"alg": "ES256", "kid": "k", "typ": "oauth-id-jag+jwt"});
        let assertion = signer.sign_under(&header, &claims);
        ask(&[("grant_type", jwt_bearer), ("assertion", &assertion)]);
    };
    issue();
    take();
    meter.await_quiet();
    let issued = meter.of(issue);
    let taken = meter.of(take);
    for (cost, statements) in [(issued, ID_JAG_ISSUED), (taken, ID_JAG_TAKEN)] {
        cost.assert_is(1, statements);
    }
}

/// Partitions, `users`, `sessions` and `clients` that were read from end to end so far, with how
/// often.
fn scans(database: &TestDatabase) -> BTreeMap<String, i64> {
    let sql = "SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE schemaname = current_schema()
               AND (relname IN ('users', 'clients') OR relid IN (SELECT inhrelid FROM pg_inherits))";
    let rows = database.client().query(sql, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Counts reach the statistics at the latest when their connection ends.
fn await_disconnection(database: &TestDatabase, role: &Role) {
    let connected = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1";
    await_that("the server's connections end", SOON, || {
        database.value::<i64>(connected, &[&role.0]) == 0
    });
}

#[test]
fn no_request_reads_a_table_from_end_to_end_however_small_it_was_when_it_was_planned() {
    let mut scene = Scene::serving(&offline::document(), &[]);
    let (gatepost, meter, role) = (&mut scene.gatepost, &mut scene.meter, &scene.role);
    let everything = |gatepost: &Gatepost| {
        let mut browser = signed_in(gatepost);
        for party in [CONF1, CONF2] {
            let tokens = party.tokens(gatepost, &mut browser, "openid profile offline_access");
            assert_userinfo(gatepost, access(&tokens));
            let next = party.refresh(gatepost, refresh(&tokens)).json();
            for path in ["/connect/introspect", "/connect/revocation"] {
                let form = [("token", refresh(&next))];
                let answer = party.post(&mut gatepost.connect(), path, &form);
                answer.assert_status(200);
            }
        }
        let page = browser.get("/account");
        page.assert_status(200);
        let page = browser.get("/logout");
        let signed_out = browser.submit(&page, &[("decision", "sign_out")]);
        signed_out.assert_status(200);
    };
    // Tables that have a row or some and were looked at by ANALYZE: reading one whole is the
    // cheapest plan now.
    everything(gatepost);
    gatepost.stop();
    gatepost.database.run("ANALYZE");
    await_disconnection(&gatepost.database, role);
    let mut read_by = |requests: &dyn Fn(&Gatepost)| {
        let before = scans(&gatepost.database);
        let reset = "SELECT public.pg_stat_statements_reset(oid) FROM pg_roles WHERE rolname = $1";
        meter.client.execute(reset, &[&role.0]).unwrap();
        gatepost.serve();
        meter.await_quiet();
        requests(gatepost);
        gatepost.stop();
        await_disconnection(&gatepost.database, role);
        let mut read = scans(&gatepost.database);
        for (table, count) in &mut read {
            *count -= before.get(table).copied().unwrap_or_default();
        }
        read.retain(|_, count| *count > 0);
        read
    };
    // The start reads the registrations whole, and looks for the ends of the audit log's chains;
    // upkeep may read what it likes: it comes with each minute, so one time in three it is not
    // there.
    let at_the_start = read_by(&|_| {});
    let is_of_the_start = |table: &String| table == "clients" || table.starts_with("audit_events_");
    let all_of_it = at_the_start.keys().all(is_of_the_start);
    assert!(all_of_it, "{at_the_start:#?}");
    let mut read = BTreeMap::new();
    let holds = (0..3).any(|_| {
        read = read_by(&everything);
        let mut read = read.iter();
        read.all(|(table, count)| at_the_start.get(table).is_some_and(|start| count <= start))
    });
    assert!(holds, "{read:#?} beside {at_the_start:#?}");
}

#[test]
fn a_sign_in_upstream_writes_the_session_and_whatever_is_new_about_the_person() {
    let upstream = Upstream::start_with(Signer::es256("first"));
    let mut registered = document();
    registered["identity_providers"] = json!([upstream.registration("up", json!({}))]);
    let mut scene = Scene::serving(&registered, &[("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8")]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    let path = authorize_path("conf1", RP1, &[("acr_values", "idp:up")]);
    let request = format!("{}{path}", gatepost.base_url);
    let come_in = || Traveller::new().visit(&request).assert_leads_to(RP1);
    come_in();
    meter.await_quiet();

    let known = meter.of(come_in);
    known.assert_is(1, SIGN_IN_UPSTREAM);
    let away = meter.of(|| {
        let mut person = Traveller::new();
        let answer = person.get(&request);
        person.follow_until(&request, answer, |next| next.contains("/external/"));
    });
    away.assert_is(0, 0);

    let mut number = 0;
    let more: [fn(&mut Plan, u32); 2] = [
        |plan, n| plan.subject = format!("new-{n}"),
        |plan, n| plan.id_token = json!({"name": n.to_string()}),
    ];
    for change in more {
        let cost = meter.of(|| {
            number += 1;
            upstream.plan(|plan| change(plan, number));
            come_in();
        });
        cost.assert_is(2, SIGN_IN_UPSTREAM + TAKE_OVER);
    }
}

#[test]
fn what_fails_before_the_database_is_asked_costs_it_nothing() {
    let mut scene = Scene::serving(&document(), &[]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    meter.await_quiet();
    let forged = |prefix: &str| format!("{prefix}{}", "A".repeat(120));
    let (code, token) = (forged("gpc_"), forged("gpa_"));
    // Caches the client.
    assert_eq!(flow::redeem(gatepost, &code).status, 400);
    let mut number = 0;
    let cost = meter.once(&mut || {
        assert_eq!(flow::redeem(gatepost, &code).status, 400);
        for token in [&*token, "a.b.c", &"x".repeat(500)] {
            userinfo(gatepost, token).assert_status(401);
        }
        let wrong = basic("conf1", &format!("{CONF1_SECRET}x"));
        let form = [("grant_type", "client_credentials")];
        let answer = gatepost.post("/connect/token", &[("Authorization", &wrong)], &form);
        assert!(matches!(answer.status, 401 | 429), "{}", answer.text());
        assert_eq!(gatepost.get("/login?r=AAAA").status, 400);
        // A name that nobody has, another each time, is known to be none, at once as a known one
        // is.
        number += 1;
        let made_up = format!("made-up-{number}");
        let unknown = gatepost.get(&authorize_path(&made_up, RP1, &[]));
        unknown.assert_status(400);
        let authorization = basic(&made_up, "x");
        let headers = [("Authorization", &*authorization)];
        for path in "/connect/token /connect/revocation /connect/introspect".split(' ') {
            let answer = gatepost.post(path, &headers, &[("token", "x")]);
            assert!(matches!(answer.status, 401 | 429), "{}", answer.text());
        }
    });
    assert_eq!(cost.statements(), 0, "{cost:#?}");
}

/// What was ended before and ends again, and what names nothing of ours.
/// Its place among what `endings` answers.
const REFUSED_REFRESH: usize = 3;

fn endings<'a>(
    gatepost: &'a Gatepost,
    browser: &Browser,
    tokens: [&'a str; 4],
) -> Vec<(i64, Box<dyn Fn() + 'a>)> {
    let revoke = |token: &'a str| Box::new(move || CONF1.revoke(gatepost, token)) as Box<dyn Fn()>;
    let sign_out = |mut browser: Browser| {
        browser.headers.clear();
        Box::new(move || {
            let page = browser.clone().get("/logout");
            page.assert_says("You are signed out");
        }) as Box<dyn Fn()>
    };
    let mut unknown = browser.clone();
    for handle in unknown.cookies.values_mut() {
        *handle = format!("{}{}", &handle[..8], "A".repeat(handle.len() - 8));
    }
    let [access, refresh, foreign, revoked] = tokens;
    let refused = move || CONF1.refresh(gatepost, revoked).assert_status(400);
    let nothing = [
        revoke(foreign),
        revoke("gpr_forged"),
        revoke("a.b.c"),
        sign_out(unknown),
        sign_out(gatepost.browser()),
    ];
    let ended = [
        revoke(access),
        revoke(refresh),
        sign_out(browser.clone()),
        Box::new(refused),
    ];
    let ended = ended.into_iter().map(|again| (1, again));
    let nothing = nothing.into_iter().map(|again| (0, again));
    ended.chain(nothing).collect()
}

#[test]
fn an_ending_that_was_there_costs_one_commit_and_that_only_where_commits_wait_for_a_standby() {
    let _alone = COUNTING.lock().unwrap_or_else(PoisonError::into_inner);
    let own = Cluster::start();
    let mut gatepost = Gatepost::prepare_over(TestDatabase::empty_in(own.url.clone()), &[]);
    gatepost.apply(&offline::document());
    gatepost.serve();
    let mut meter = Meter {
        client: gatepost.database.client(),
        role: String::from("postgres"),
    };
    // Nobody waits in this test: what is counted is what would.
    for statement in [
        "CREATE EXTENSION pg_stat_statements SCHEMA public",
        "ALTER SYSTEM SET autovacuum = off",
        "ALTER ROLE postgres SET synchronous_commit = local; SET synchronous_commit = local",
    ] {
        meter.client.batch_execute(statement).unwrap();
    }
    let mut browser = signed_in(&gatepost);
    let scope = "openid profile offline_access";
    let tokens = CONF1.tokens(&gatepost, &mut browser, scope);
    let foreign = CONF2.tokens(&gatepost, &mut browser, scope);
    let revoked = CONF1.tokens(&gatepost, &mut browser, scope);
    let page = browser.get("/logout");
    let sign_out = [("decision", "sign_out")];
    browser.clone().submit(&page, &sign_out).assert_status(200);
    let tokens = [
        access(&tokens),
        refresh(&tokens),
        refresh(&foreign),
        refresh(&revoked),
    ];
    for revoked in [tokens[0], tokens[1], tokens[3]] {
        CONF1.revoke(&gatepost, revoked);
    }
    for (names, waits) in [("", 0), ("away", 1)] {
        let named = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        meter.client.batch_execute(&named).unwrap();
        let reload = "SELECT pg_reload_conf(); SELECT public.pg_stat_statements_reset()";
        meter.client.batch_execute(reload).unwrap();
        // A process of its own: what the one before saw confirmed is gone with it.
        gatepost.stop();
        gatepost.serve();
        meter.await_quiet();
        let endings = endings(&gatepost, &browser, tokens);
        for (number, (commits, again)) in endings.into_iter().enumerate() {
            let [first, later] = [(); 2].map(|()| meter.once(&mut || again()));
            // The refresh opens the audit chain of its connection, as the first of the day there.
            let opening = i64::from(number == REFUSED_REFRESH);
            let case = format!("{number}, \"{names}\": {first:#?}");
            assert_eq!(first.writes, commits * waits + opening, "{case}");
            assert_eq!(later.writes, 0, "{case}");
        }
    }
}

/// The page asks the database for nothing. The lane of letters looks once; where somebody is found
/// it counts, and tells the audit log, which no count of statements here has.
#[test]
fn a_forgotten_password_costs_its_request_nothing_and_its_letter_two_commits() {
    const LOOK: i64 = 1;
    const COUNT: i64 = 1;
    const COMMITS: i64 = 2;
    let mailbox = Mailbox::open();
    let [server, sender, quiet] = mailbox.settings();
    let mut document = document();
    let users = document["users"].as_array_mut().unwrap();
    users.extend((0..120).map(|number| {
        let claims = json!({"email": format!("user-{number}@example.com"), "email_verified": true});
        json!({"username": format!("user-{number}"), "password": "a password of theirs", "claims": claims})
    }));
    let mut scene = Scene::serving(&document, &[server, sender, quiet]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    let mut watching = gatepost.database.client();
    let looked = "SELECT coalesce(sum(calls), 0)::int8 FROM public.pg_stat_statements WHERE query LIKE '%n.username_key%' AND query NOT LIKE '%pg_stat%'";
    let told = "SELECT count(*) FROM audit_events WHERE event = 'letter_sent'";
    let mut number = 0;
    let mut ask = |is_known: bool| {
        number += 1;
        let mut counted = |sql: &str| watching.query_one(sql, &[]).unwrap().get::<_, i64>(0);
        let watched = if is_known { told } else { looked };
        let before = counted(watched);
        let mut browser = gatepost.browser();
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        let page = browser.visit(&page.attribute("/login/forgotten", "href").unwrap());
        let name = match is_known {
            true => format!("user-{number}"),
            false => String::from("nobody"),
        };
        let token = page.form_token();
        let cookie = browser.cookie_header();
        let source = format!("198.51.100.{number}");
        let headers = [("Cookie", &*cookie), ("X-Forwarded-For", &source)];
        let form = [("form_token", &*token), ("name", &name)];
        let answer = gatepost.post(&page.action(), &headers, &form);
        answer.assert_status(200);
        await_that("the lane has looked", SOON, || counted(watched) > before);
    };
    ask(true);
    meter.await_quiet();
    let nobody = meter.once(&mut || ask(false));
    nobody.assert_is(0, LOOK);
    let found = meter.of(|| ask(true));
    found.assert_is(COMMITS, LOOK + COUNT);
}

fn registry_version(gatepost: &Gatepost) -> i64 {
    let version = "SELECT registry_version FROM installation";
    gatepost.database.value(version, &[])
}

#[test]
fn a_program_over_scim_reads_its_token_and_the_user_and_a_change_is_one_commit() {
    let mut scene = Scene::serving(&scim::registered(), &[scim::ON[0]]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    meter.await_quiet();
    let registered = registry_version(gatepost);
    let hr = Program::hr(gatepost);
    let mut number = 0;
    let mut subs = Vec::new();
    let added = meter.of(|| {
        number += 1;
        let dana = hr.add(json!({"userName": format!("dana-{number}"), "active": true}));
        subs.push(dana["id"].as_str().unwrap().to_owned());
    });
    added.assert_is(1, SCIM_ADD);
    let dana = subs[0].clone();
    let read = meter.of(|| assert_eq!(hr.get(&format!("Users/{dana}")).status, 200));
    read.assert_is(0, SCIM_READ);
    let looked_up = meter.of(|| assert_eq!(hr.found("userName eq \"dana-1\"").len(), 1));
    looked_up.assert_is(0, SCIM_READ);
    let mut is_active = true;
    let changed = meter.of(|| {
        is_active = !is_active;
        let change = json!([{"op": "replace", "path": "active", "value": is_active}]);
        assert_eq!(hr.patch(&dana, change).status, 200);
    });
    changed.assert_is(1, SCIM_WRITE);
    let mut leaving = subs.into_iter();
    let removed = meter.of(|| {
        let path = format!("Users/{}", leaving.next().unwrap());
        assert_eq!(hr.ask("DELETE", &path, &Value::Null).status, 204);
    });
    removed.assert_is(1, SCIM_WRITE);
    // No other process reads the registry anew for it.
    assert_eq!(registry_version(gatepost), registered);
}

#[test]
fn an_administrators_page_costs_a_few_reads_and_a_change_one_commit() {
    let key = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
    let mut registered = document();
    registered["users"][0]["totp"] = json!(key);
    registered["users"][0]["claims"]["role"] = json!("office");
    registered["users"][1]["sub"] = json!("bobs");
    registered["users"][1]["claims"] = json!({});
    let mut scene = Scene::serving(&registered, &[("GATEPOST_ADMIN_ROLE", "office")]);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    let mut browser = gatepost.browser();
    let page = browser.visit("/admin");
    let asked = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let code = Phone::with_key(key.to_owned(), 0).code(0);
    assert_eq!(browser.submit(&asked, &[("code", &code)]).status, 303);
    meter.await_quiet();
    let mut read = |address: &str| meter.of(|| assert_eq!(browser.get(address).status, 200));
    read("/admin/people?q=b").assert_is(0, FIND_PEOPLE);
    read("/admin/people/bobs").assert_is(0, SHOW_PERSON);
    let cost = meter.of(|| {
        let page = browser.get("/admin/people/bobs");
        let version = page.attribute("name=\"version\"", "value").unwrap();
        let form = [("version", &*version), ("decision", "end_all")];
        let done = browser.submit_to("/admin/people/bobs", &page, &form);
        done.assert_says(" is signed out everywhere.");
    });
    cost.assert_is(1, SHOW_PERSON + CHANGE_PERSON);
}

#[test]
fn whoever_asks_whether_a_process_is_ready_asks_the_database_once() {
    let admin = free_address();
    let mut scene = Scene::serving(&document(), &[("GATEPOST_ADMIN_LISTEN", &admin)]);
    let meter = &mut scene.meter;
    let ready = || assert_eq!(ask_alone(&admin, "GET /readyz").1, "ready\n");
    ready();
    meter.await_quiet();
    let cost = meter.of(ready);
    cost.assert_is(0, READINESS);
}

/// A session that is bound to a key costs a code flow nothing more, and a sign-in one statement.
#[test]
fn a_session_is_bound_by_one_statement_and_refreshed_by_none() {
    let mut scene = Scene::serving(&document(), &bound::SETTINGS);
    let (gatepost, meter) = (&scene.gatepost, &mut scene.meter);
    let mut bound = BoundBrowser::sign_in(gatepost);
    let mut copied = bound.copied();
    let good = bound.proof(gatepost);
    let asked = authorize_path("conf1", RP1, &[]);
    code(&mut bound.browser, &asked);
    meter.await_quiet();

    let authorize = meter.of(|| drop(code(&mut bound.browser, &asked)));
    authorize.assert_is(0, AUTHORIZE);
    let refresh = meter.of(|| {
        bound.refresh(gatepost, &[]).assert_status(403);
        bound.refresh(gatepost, &[&good]).assert_status(200);
    });
    refresh.assert_is(0, BOUND_REFRESH);

    let sign_in = meter.of(|| drop(bound::signed_in(gatepost)));
    sign_in.assert_is(1, SIGN_IN);
    let bind = meter.of(|| drop(BoundBrowser::sign_in(gatepost)));
    bind.assert_is(2, SIGN_IN + BIND);

    // That a bound session was refused is noted once an hour.
    bound::pass_half_a_minute(gatepost);
    copied.get(&asked).assert_leads_to("/login");
    let refused = meter.of(|| copied.get(&asked).assert_leads_to("/login"));
    refused.assert_is(0, AUTHORIZE);
}
