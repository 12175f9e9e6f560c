//! Extension grants that a SQL function answers: what it is told, what becomes of its answer, and
//! the documentation's example run as it stands there.

use std::time::{Duration, Instant};

use gatepost::keys::random;
use postgres::{Client, NoTls};
use serde_json::{Value, json};

use crate::support::claims::{Members, Says};
use crate::support::flow::{basic, decode_jwt, issued, text, userinfo, with_clients, with_members};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, document};
use crate::support::http::Answer;
use crate::support::jwt::verified;
use crate::support::postgres::{TestDatabase, cluster};

const GRANT: &str = "urn:example:answer";

/// Does as the parameter `do` says: mostly it answers what the test wants it to answer.
const FUNCTION: &str = "
CREATE FUNCTION answer(parameters jsonb, client jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF parameters ->> 'do' = 'raise' THEN RAISE EXCEPTION '%', parameters ->> 'answer'; END IF;
    IF parameters ->> 'do' = 'sleep' THEN PERFORM pg_sleep(20); END IF;
    IF parameters ->> 'do' = 'fail' THEN RETURN to_jsonb(1 / (length('x') - 1)); END IF;
    IF parameters ->> 'do' = 'forbid' THEN
        RAISE EXCEPTION '%', parameters ->> 'answer' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF parameters ->> 'do' = 'warn' THEN RAISE WARNING 'an old key is still in use'; END IF;
    IF parameters ->> 'do' = 'nothing' THEN RETURN NULL; END IF;
    IF parameters ->> 'do' = 'escaped' THEN RETURN ('\"' || (parameters ->> 'answer') || '\"')::jsonb; END IF;
    IF parameters ->> 'do' = 'long' THEN
        RETURN jsonb_build_object('claims', jsonb_build_object('x', repeat('y', (parameters ->> 'answer')::int)));
    END IF;
    IF parameters ->> 'do' = 'tell' THEN
        RETURN jsonb_build_object('parameters', jsonb_build_object('told', parameters, 'client', client));
    END IF;
    RETURN (parameters ->> 'answer')::jsonb;
END $$";

/// Serves the function to a confidential client, a public one, and one with reference tokens.
fn start(settings: &[(&str, &str)]) -> Gatepost {
    let mut gatepost = Gatepost::prepare(settings);
    gatepost.database.run(FUNCTION);
    gatepost.apply(&registration(&gatepost));
    gatepost.serve();
    gatepost
}

fn registration(gatepost: &Gatepost) -> Value {
    let scope = "openid profile offline_access orders.read stock.read";
    let legacy = json!({"grant_types": [GRANT, "refresh_token"], "response_types": [], "redirect_uris": [], "scope": scope});
    let with = |changes: Value| with_members(legacy.clone(), &changes);
    let clients = [
        ("legacy", legacy.clone()),
        (
            "by-reference",
            with(json!({"access_token_type": "reference"})),
        ),
        ("of-corp", with(json!({"identity_providers": ["corp"]}))),
        ("of-admins", with(json!({"allowed_roles": ["admin"]}))),
        (
            "of-acme",
            with(json!({"grant_types": [GRANT], "scope": "orders.read", "tenants": ["acme"]})),
        ),
    ];
    let mut document = with_clients(document(), &clients);
    document["tenants"] = json!([{"name": "acme"}]);
    document["identity_providers"] =
        json!([{"name": "corp", "issuer": "https://corp.example", "client_id": "x"}]);
    document["extension_grants"] =
        json!([{"name": GRANT, "function": format!("{}.answer", gatepost.database.schema)}]);
    document["resources"] = json!([{"name": "https://orders.example", "secrets": [{"value": CONF1_SECRET}]}, {"name": "https://stock.example"}]);
    let public = json!({"client_id": "app", "grant_types": [GRANT], "scope": "openid orders.read", "token_endpoint_auth_method": "none"});
    document["clients"].as_array_mut().unwrap().push(public);
    document["users"].as_array_mut().unwrap().extend([
        json!({"sub": "carol-1", "username": "carol", "claims": {"name": "Carol", "role": ["user"]}}),
        json!({"sub": "dora-1", "username": "dora", "enabled": false}),
        json!({"sub": "erin-1", "username": "erin", "tenant": "acme"}),
    ]);
    document
}

fn ask_as(gatepost: &Gatepost, client_id: &str, form: &[(&str, &str)]) -> Answer {
    let form = [&[("grant_type", GRANT)], form].concat();
    gatepost.token(client_id, &form)
}

fn ask(gatepost: &Gatepost, form: &[(&str, &str)]) -> Answer {
    ask_as(gatepost, "legacy", form)
}

fn answer(gatepost: &Gatepost, answer: &Value, form: &[(&str, &str)]) -> Answer {
    let answer = answer.to_string();
    ask(gatepost, &[&[("answer", &*answer)], form].concat())
}

fn introspected(gatepost: &Gatepost, token: &str) -> Value {
    let form = [("token", token)];
    issued(&gatepost.post_as("https://orders.example", "/connect/introspect", &form))
}

#[test]
fn a_client_of_some_roles_gets_tokens_for_nobody_else() {
    let gatepost = start(&[]);
    let carol = json!({"subject": "carol-1"}).to_string();
    for scope in ["openid", "openid offline_access"] {
        let form = [("answer", carol.as_str()), ("scope", scope)];
        ask_as(&gatepost, "of-admins", &form).assert_refused(400, "invalid_grant", scope);
    }
    gatepost.run_well(&["user", "role", "carol", "--add", "admin"], "");
    for scope in ["openid", "openid offline_access"] {
        let form = [("answer", carol.as_str()), ("scope", scope)];
        issued(&ask_as(&gatepost, "of-admins", &form));
    }
}

#[test]
fn a_proposal_becomes_tokens_within_what_is_allowed() {
    let gatepost = start(&[]);
    // For the client itself: no user, no refresh token, resource scopes alone.
    let proposal = json!({"claims": {"tier": "gold"}, "parameters": {"account": 7}});
    let nobody = issued(&answer(&gatepost, &proposal, &[]));
    nobody.assert_members("access_token account expires_in scope token_type");
    assert_eq!(nobody["account"], 7);
    assert_eq!(nobody["scope"], "orders.read stock.read");
    let (_, claims) = verified(&gatepost, text(&nobody, "access_token"));
    assert_eq!(claims["tier"], "gold");
    assert_eq!(claims["sub"], claims["client_id"]);
    assert_eq!(claims.get("auth_time"), None);
    // For a user: everything that the client may have.
    let carol = json!({"subject": "carol-1", "claims": {"tier": "gold", "role": "partner", "sub": "root", "aud": "x", "may_act": {"sub": "y"}},
                       "parameters": {"token_type": "mac", "error": "x", "refresh_token": "x", "hint": [1]}});
    let tokens = issued(&answer(&gatepost, &carol, &[]));
    tokens.assert_members("access_token expires_in hint id_token refresh_token scope token_type");
    let all = "openid profile offline_access orders.read stock.read";
    assert_eq!(tokens["scope"], all);
    let begun = "SELECT sub, client_id FROM audit_events WHERE event = 'grant_begun'";
    let begun = gatepost.database.client().query(begun, &[]).unwrap();
    let begun: Vec<(String, String)> = begun.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(begun, [(String::from("carol-1"), String::from("legacy"))]);
    assert_eq!(tokens["token_type"], "Bearer");
    assert_eq!(tokens["hint"], json!([1]));
    let (_, claims) = verified(&gatepost, text(&tokens, "access_token"));
    assert_eq!(claims["sub"], "carol-1");
    assert_eq!(claims["tier"], "gold");
    assert_eq!(claims["may_act"], json!({"sub": "y"}));
    assert_eq!(claims["role"], json!(["partner"]));
    let resources = json!(["https://orders.example", "https://stock.example"]);
    assert_eq!(claims["aud"], resources);
    let (_, id) = verified(&gatepost, text(&tokens, "id_token"));
    assert_eq!(id["sub"], "carol-1");
    assert_eq!(id["aud"], "legacy");
    assert_eq!(id["acr"], "1");
    assert_eq!(id.get("sid"), None);
    assert_eq!(id.get("tier"), None);
    userinfo(&gatepost, text(&tokens, "access_token")).assert_member("name", "Carol");
    // The claims stay with the grant.
    let refresh = [
        ("grant_type", "refresh_token"),
        ("refresh_token", text(&tokens, "refresh_token")),
    ];
    let refreshed = issued(&gatepost.token("legacy", &refresh));
    let (_, claims) = verified(&gatepost, text(&refreshed, "access_token"));
    assert_eq!(claims["tier"], "gold");
    assert_eq!(claims["role"], json!(["partner"]));
    assert_eq!(refreshed.get("hint"), None);
    // A reference token tells them at introspection, and ends with its user.
    let form = [("answer", &*carol.to_string()), ("scope", "orders.read")];
    let reference = issued(&ask_as(&gatepost, "by-reference", &form));
    let told = introspected(&gatepost, text(&reference, "access_token"));
    assert_eq!(told["active"], true);
    assert_eq!(told["tier"], "gold");
    assert_eq!(told["sub"], "carol-1");
    gatepost.run_well(&["user", "revoke", "carol"], "");
    for tokens in [&reference, &refreshed] {
        let told = introspected(&gatepost, text(tokens, "access_token"));
        assert_eq!(told, json!({"active": false}));
    }
    let again = [
        ("grant_type", "refresh_token"),
        ("refresh_token", text(&refreshed, "refresh_token")),
    ];
    let answer = gatepost.token("legacy", &again);
    answer.assert_refused(400, "invalid_grant", "a refresh after the revocation");
}

#[test]
fn scopes_and_resources_are_never_more_than_was_asked_and_is_allowed() {
    let gatepost = start(&[]);
    let carol = json!({"subject": "carol-1"});
    let narrow = json!({"subject": "carol-1", "scope": "stock.read roles nope openid"});
    for (proposal, asked, granted) in [
        (&carol, "orders.read", "orders.read"),
        (&carol, "profile openid", "profile openid"),
        (&narrow, "", "openid stock.read"),
        (&narrow, "stock.read orders.read", "stock.read"),
    ] {
        let tokens = issued(&answer(&gatepost, proposal, &[("scope", asked)]));
        assert_eq!(tokens["scope"], granted, "{proposal} {asked}");
    }
    for (proposal, asked) in [
        (&carol, "orders.write"),
        (&carol, "orders.read nope"),
        (&carol, "roles"),
        (&narrow, "orders.read"),
        (&json!({"scope": ""}), ""),
        (&json!({}), "openid"),
        (&json!({}), "orders.read offline_access"),
    ] {
        let refused = answer(&gatepost, proposal, &[("scope", asked)]);
        refused.assert_refused(400, "invalid_scope", asked);
    }
    let stock = [("resource", "https://stock.example")];
    let stock = issued(&answer(&gatepost, &carol, &stock));
    let (_, claims) = decode_jwt(text(&stock, "access_token"));
    assert_eq!(claims["aud"], "https://stock.example");
    let elsewhere = [("resource", "https://elsewhere.example")];
    let elsewhere = answer(&gatepost, &carol, &elsewhere);
    elsewhere.assert_refused(400, "invalid_target", "elsewhere");
}

#[test]
fn only_a_user_whom_the_client_may_have_is_a_subject() {
    let gatepost = start(&[]);
    for subject in ["nobody", "dora-1", "erin-1", "carol", "CAROL-1", ""] {
        let refused = answer(&gatepost, &json!({"subject": subject}), &[]);
        refused.assert_refused(400, "invalid_grant", subject);
        refused.assert_member_for(subject, "error_description", "The grant is not valid.");
    }
    let form = [("answer", "{\"subject\": \"carol-1\"}")];
    ask_as(&gatepost, "of-corp", &form).assert_refused(400, "invalid_grant", "not a local client");
    ask_as(&gatepost, "of-acme", &form).assert_refused(400, "invalid_grant", "not of its tenant");
    let erin = [("answer", "{\"subject\": \"erin-1\"}")];
    let own = issued(&ask_as(&gatepost, "of-acme", &erin));
    let named = [erin[0], ("acr_values", "tenant:acme")];
    let named = issued(&ask(&gatepost, &named));
    for tokens in [own, named] {
        let (_, claims) = decode_jwt(text(&tokens, "access_token"));
        assert_eq!(claims["tenant"], "acme");
    }
    for values in ["tenant:nope", "tenant:acme tenant:acme"] {
        let refused = answer(&gatepost, &json!({}), &[("acr_values", values)]);
        refused.assert_refused(400, "invalid_request", values);
    }
}

#[test]
fn refusals_speak_for_themselves_in_characters_that_may_leave() {
    let gatepost = start(&[("GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE", "1000")]);
    let errors = "invalid_grant invalid_request invalid_scope invalid_target unauthorized_client";
    for error in errors.split(' ') {
        let told = json!({"error": error, "error_description": "Not \"today\", caf\u{e9}\\."});
        let refused = answer(&gatepost, &told, &[]);
        refused.assert_refused(400, error, error);
        refused.assert_member("error_description", "Not today, caf.");
    }
    let said = format!("Key \"7\" {}", "x".repeat(280));
    let raised = ask(&gatepost, &[("do", "raise"), ("answer", &said)]);
    raised.assert_refused(400, "invalid_grant", "raised");
    let kept = format!("Key 7 {}", "x".repeat(194));
    raised.assert_member("error_description", kept);
    for silent in [
        &[("do", "nothing")][..],
        &[("do", "raise"), ("answer", "\u{e9}")],
    ] {
        let refused = ask(&gatepost, silent);
        refused.assert_refused(400, "invalid_grant", "nothing to say");
        refused.assert_member("error_description", "The grant is not valid.");
    }
    // Text that is none to jsonb, or to a cast of the function's.
    for (task, sent) in [
        ("escaped", "\\u0000"),
        ("escaped", "\\ud800"),
        ("answer", "{"),
        ("long", "x"),
        ("answer", ""),
    ] {
        let refused = ask(&gatepost, &[("do", task), ("answer", sent)]);
        let error = match sent {
            "" => "invalid_grant",
            _ => "invalid_request",
        };
        refused.assert_refused(400, error, sent);
    }
    for raw in ["answer=%00", "answer=%ff", "answer=%"] {
        let body = format!("grant_type={}&{raw}", GRANT.replace(':', "%3A"));
        let authorization = basic("legacy", CONF1_SECRET);
        let headers = [("Authorization", &*authorization)];
        let mut connection = gatepost.connect();
        let refused = connection.post_raw("/connect/token", &headers, body.as_bytes());
        refused.assert_refused(400, "invalid_request", raw);
    }
}

#[test]
fn what_breaks_the_contract_or_fails_is_not_the_clients_fault() {
    let gatepost = start(&[]);
    let broken = json!([
        [], "carol-1", {"sub": "carol-1"}, {"subject": 7}, {"claims": "gold"}, {"error": "invalid_client"},
        {"error": "invalid_grant", "subject": "carol-1"},
    ]);
    for broken in broken.as_array().unwrap() {
        let answer = answer(&gatepost, broken, &[]);
        answer.assert_status_for(broken, 500);
        answer.assert_member_for(broken, "error", "server_error");
    }
    ask(&gatepost, &[("do", "long"), ("answer", "2040")]).assert_status(200);
    ask(&gatepost, &[("do", "long"), ("answer", "2041")]).assert_status(500);
    let began = Instant::now();
    for task in ["sleep", "fail"] {
        let answer = ask(&gatepost, &[("do", task)]);
        answer.assert_status_for(task, 503);
        answer.assert_member_for(task, "error", "temporarily_unavailable");
        assert!(answer.header("retry-after").is_some(), "{task}");
    }
    // The function is not waited for.
    assert!(began.elapsed() < Duration::from_secs(15));
    ask(&gatepost, &[("do", "forbid"), ("answer", "the-key-itself")]).assert_status(503);
    // What a function says of its arguments is not for our log.
    assert!(!gatepost.log().contains("the-key-itself"));
    // A warning to the server's log is none to us.
    ask(&gatepost, &[("do", "warn"), ("answer", "{}")]).assert_status(200);
    gatepost.database.run("DROP FUNCTION answer(jsonb, jsonb)");
    assert_eq!(answer(&gatepost, &json!({}), &[]).status, 503);
    // Replaced under its name it is in force at once.
    gatepost.database.run(
        "CREATE FUNCTION answer(parameters jsonb, client jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT ''{\"parameters\": {\"second\": true}}''::jsonb'",
    );
    assert_eq!(issued(&answer(&gatepost, &json!({}), &[]))["second"], true);
    // The operator is told.
    let log = gatepost.log();
    log.assert_says("answered an unknown member \"sub\"");
}

#[test]
fn the_function_is_told_the_request_without_what_proves_the_client() {
    let gatepost = start(&[]);
    let form = [
        ("grant_type", GRANT),
        ("client_id", "legacy"),
        ("client_secret", CONF1_SECRET),
        ("do", "tell"),
        ("api_key", "'; DROP TABLE users; --"),
        ("scope", "orders.read"),
        ("resource", "https://orders.example"),
        ("empty", ""),
    ];
    let told = issued(&gatepost.post("/connect/token", &[], &form));
    let expected = json!({"grant_type": GRANT, "client_id": "legacy", "do": "tell", "api_key": "'; DROP TABLE users; --",
                          "scope": "orders.read", "resource": ["https://orders.example"]});
    assert_eq!(told["told"], expected);
    let client = &told["client"];
    client.assert_members("claims client_id client_name grant_types redirect_uris scope");
    assert_eq!(told["client"]["client_id"], "legacy");
    assert!(gatepost.database.count("users") > 0);
    // Which of two values counts would be anybody's guess.
    for repeated in [
        &[("api_key", "a"), ("api_key", "b")][..],
        &[("x", ""), ("x", "")],
        &[("audience", "a"), ("audience", "b")],
    ] {
        ask(&gatepost, repeated).assert_refused(400, "invalid_request", "repeated");
    }
    let (long, longer) = ("x".repeat(301), "y".repeat(16 * 1024 + 1));
    for overlong in [
        ("api_key", long.as_str()),
        (long.as_str(), "x"),
        ("assertion", longer.as_str()),
    ] {
        ask(&gatepost, &[overlong]).assert_refused(400, "invalid_request", "overlong");
    }
}

#[test]
fn clients_use_it_only_if_they_registered_it() {
    let gatepost = start(&[]);
    let form = [("answer", "{\"subject\": \"carol-1\"}")];
    ask_as(&gatepost, "conf1", &form).assert_refused(400, "unauthorized_client", "not registered");
    let public = |client_id: &str| {
        let form = [
            ("grant_type", GRANT),
            ("client_id", client_id),
            ("answer", "{\"subject\": \"carol-1\"}"),
        ];
        gatepost.post("/connect/token", &[], &form)
    };
    assert_eq!(issued(&public("app"))["scope"], "openid orders.read");
    public("pub1").assert_refused(400, "unauthorized_client", "a public client without it");
    let unknown = gatepost.token("legacy", &[("grant_type", "urn:example:other")]);
    unknown.assert_refused(400, "unsupported_grant_type", "unknown");
    let wrong = [("Authorization", &*basic("legacy", "wrong"))];
    let wrong = gatepost.post("/connect/token", &wrong, &[("grant_type", GRANT)]);
    wrong.assert_refused(401, "invalid_client", "a wrong secret comes first");
    let listed = gatepost.get("/.well-known/openid-configuration").json();
    let listed = listed["grant_types_supported"].as_array().unwrap();
    assert!(listed.contains(&json!(GRANT)), "{listed:?}");
}

#[test]
fn refused_guesses_are_limited_per_client_and_source() {
    let gatepost = start(&[("GATEPOST_LIMIT_EXTENSION_FAILURES_PER_MINUTE", "3")]);
    let no_guess = answer(&gatepost, &json!({"error": "invalid_request"}), &[]);
    no_guess.assert_refused(400, "invalid_request", "no guess");
    for _ in 0..3 {
        ask(&gatepost, &[("do", "nothing")]).assert_refused(400, "invalid_grant", "a guess");
    }
    let waiting = answer(&gatepost, &json!({"subject": "carol-1"}), &[]);
    waiting.assert_refused(429, "temporarily_unavailable", "too many");
    assert!(waiting.header("retry-after").is_some());
    let other = ask_as(&gatepost, "by-reference", &[("answer", "{}")]);
    other.assert_status_for("another client is not limited", 200);
}

#[test]
fn functions_are_looked_up_before_they_are_registered() {
    let gatepost = Gatepost::prepare(&[]);
    let schema = &gatepost.database.schema;
    gatepost.database.run(
        "CREATE FUNCTION of_text(text, jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT ''{}''::jsonb';
         CREATE FUNCTION to_text(jsonb, jsonb) RETURNS text LANGUAGE sql AS 'SELECT ''x''';
         CREATE FUNCTION many(jsonb, jsonb) RETURNS SETOF jsonb LANGUAGE sql AS 'SELECT ''{}''::jsonb';
         CREATE FUNCTION one(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
         CREATE PROCEDURE done(jsonb, jsonb) LANGUAGE sql AS 'SELECT 1'",
    );
    let refusal = |name: &str, function: &str| {
        let grant = json!({"name": name, "function": format!("{schema}.{function}")});
        let document = json!({"extension_grants": [grant]});
        gatepost.apply_refused(&document)
    };
    for name in "of_text to_text many one done nope Of_Text".split(' ') {
        let said = refusal("urn:example:x", name);
        said.assert_says_for(name, "extension_grants[0] (urn:example:x).function");
    }
    let names = "password authorization_code urn:ietf:params:oauth:grant-type:token-exchange";
    for name in names.split(' ') {
        refusal(name, "many").assert_says_for(name, "built-in");
    }
    assert_eq!(gatepost.database.count("catalogue_entries"), 0);
}

/// A database of its own, since the example names its schema and its role.
struct Example {
    name: String,
    sql: String,
    json: String,
    curl: String,
    url: String,
}

impl Example {
    fn open() -> Example {
        let section = std::fs::read_to_string("docs/operate/own-grants-sql.md").unwrap();
        let block = |kind: &str| {
            let begins = section.split(&format!("```{kind}\n")).nth(1);
            let begins = begins.unwrap_or_else(|| panic!("no {kind} block"));
            begins.split("```").next().unwrap().to_owned()
        };
        let (_, url) = section.split_once("`postgres://").unwrap();
        let (url, _) = url.split_once('`').unwrap();
        let name = random::bytes::<8>().map(|byte| format!("{byte:02x}"));
        let example = Example {
            name: format!("example_{}", name.concat()),
            sql: block("sql"),
            json: block("json"),
            curl: block("sh"),
            url: format!("postgres://{url}"),
        };
        example.forget();
        Example::superuser(&cluster(), &format!("CREATE DATABASE {}", example.name));
        example
    }

    fn superuser(url: &str, sql: &str) {
        let mut client = Client::connect(url, NoTls).unwrap();
        client.batch_execute(sql).unwrap();
    }

    /// The cluster's URL, leading to the database of this test.
    fn database(&self) -> String {
        let cluster = cluster();
        let (address, query) = cluster.split_once('?').unwrap_or((&cluster, ""));
        let (server, _) = address.rsplit_once('/').unwrap();
        format!("{server}/{}?{query}", self.name)
            .trim_end_matches('?')
            .to_owned()
    }

    /// The URL of the example, where this cluster is.
    fn grants_url(&self) -> String {
        let database = self.database();
        let (_, place) = database.rsplit_once('@').unwrap();
        self.url.replace("localhost/gatepost", place)
    }

    fn forget(&self) {
        let database = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        Example::superuser(&cluster(), &database);
        Example::superuser(&cluster(), "DROP ROLE IF EXISTS gatepost_grants");
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        self.forget();
    }
}

#[test]
fn the_example_of_the_documentation_works_as_it_stands_there() {
    let example = Example::open();
    let url = example.grants_url();
    let database = TestDatabase::empty_in(example.database());
    let settings = [("GATEPOST_GRANTS_DATABASE_URL", url.as_str())];
    let mut gatepost = Gatepost::prepare_over(database, &settings);
    let before = gatepost.run(&["apply", "-"], &example.json);
    // Before its function is there the grant cannot be registered.
    assert!(!before.status.success());
    Example::superuser(&example.database(), &example.sql);
    gatepost.run_well(&["apply", "-"], &example.json);
    gatepost.serve();
    let words: Vec<&str> = example.curl.split_whitespace().collect();
    let after = |flag: &str| -> Vec<&str> {
        let pairs = words.windows(2).filter(|pair| pair[0] == flag);
        pairs.map(|pair| pair[1]).collect()
    };
    let (client_id, secret) = after("-u")[0].split_once(':').unwrap();
    let pairs = after("-d").into_iter();
    let form: Vec<(&str, &str)> = pairs.map(|pair| pair.split_once('=').unwrap()).collect();
    let authorization = basic(client_id, secret);
    let headers = [("Authorization", &*authorization)];
    let ask = |form: &[(&str, &str)]| gatepost.post("/connect/token", &headers, form);
    let response = issued(&ask(&form));
    response.assert_members("access_token expires_in key_expires_at scope token_type");
    let (_, claims) = verified(&gatepost, text(&response, "access_token"));
    assert_eq!(claims["sub"], "legacy-4711");
    assert_eq!(claims["tier"], "gold");
    assert_eq!(claims["scope"], "reports.read");
    let grant_type = form[0];
    let expired = ask(&[grant_type, ("api_key", "a-key-of-last-year")]);
    expired.assert_refused(400, "invalid_grant", "expired");
    expired.assert_member("error_description", "This key has expired.");
    for key in ["an-old-api-key ", "", "' OR true --", "legacy-4711"] {
        ask(&[grant_type, ("api_key", key)]).assert_refused(400, "invalid_grant", key);
    }
    // What the role may not do, whatever the function is talked into.
    let mut role = Client::connect(&url, NoTls).unwrap();
    let schema = &gatepost.database.schema;
    for sql in [
        String::from("TABLE legacy.api_keys"),
        format!("TABLE {schema}.users"),
        format!("DELETE FROM {schema}.clients"),
    ] {
        assert!(role.batch_execute(&sql).is_err(), "{sql}");
    }
    // Without the right to execute it is not registered, and not served.
    let revoke = "REVOKE EXECUTE ON FUNCTION legacy.redeem_key(jsonb, jsonb) FROM gatepost_grants";
    Example::superuser(&example.database(), revoke);
    assert_eq!(ask(&form).status, 503);
    let refused = gatepost.refusal(&["apply", "-"], &example.json);
    refused.assert_says("may not execute");
}
