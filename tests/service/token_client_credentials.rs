//! `grant_type=client_credentials`: a confidential client speaks for itself, and nothing is written
//! for it.

use serde_json::{Value, json};

use crate::support::claims::Members;
use crate::support::flow::{
    authorize_path, basic, code, redeem, signed_in, userinfo, with_clients,
};
use crate::support::gatepost::{CONF1_SECRET, CONF2_SECRET, Gatepost, RP1, document};
use crate::support::http::{Answer, ask_alone, free_address};
use crate::support::jwt::verified;

fn ask_as(gatepost: &Gatepost, client_id: &str, secret: &str, form: &[(&str, &str)]) -> Answer {
    let authorization = basic(client_id, secret);
    let form = [&[("grant_type", "client_credentials")], form].concat();
    gatepost.post(
        "/connect/token",
        &[("Authorization", &authorization)],
        &form,
    )
}

fn ask(gatepost: &Gatepost, client_id: &str, form: &[(&str, &str)]) -> Answer {
    ask_as(gatepost, client_id, CONF1_SECRET, form)
}

fn token(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["access_token"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_gets_an_access_token_and_nothing_else() {
    let gatepost = Gatepost::shared();
    let answer = ask(&gatepost, "conf1", &[]);
    let token = token(&answer);
    let response = answer.json();
    response.assert_members("access_token expires_in scope token_type");
    answer.assert_header("cache-control", "no-store");
    answer.assert_header("pragma", "no-cache");
    assert_eq!(response["token_type"], "Bearer");
    assert_eq!(response["expires_in"], 3600);
    // All resource scopes, no identity scope.
    assert_eq!(response["scope"], "orders.read orders.write stock.read");
    let (header, claims) = verified(&gatepost, &token);
    assert_eq!(header["typ"], "at+jwt");
    assert_eq!(header["alg"], "RS256");
    claims.assert_members("aud client_id exp iat iss jti nbf scope sub");
    assert_eq!(claims["sub"], "conf1", "RFC 9068 §2.2");
    assert_eq!(
        claims["aud"],
        json!(["https://orders.example", "https://stock.example"])
    );
    assert_eq!(claims["client_id"], "conf1");
    assert_eq!(claims["scope"], response["scope"]);
    // There is nobody to tell anything about.
    userinfo(&gatepost, &token).assert_refused(403, "insufficient_scope", "userinfo");
}

#[test]
fn a_scope_narrows_and_a_wrong_one_is_refused() {
    let with = [
        (
            "speechless",
            json!({"scope": "openid profile", "grant_types": ["authorization_code", "client_credentials"]}),
        ),
        (
            "reader",
            json!({"scope": "orders.read offline_access openid",
                   "grant_types": ["authorization_code", "client_credentials", "refresh_token"]}),
        ),
    ];
    let gatepost = Gatepost::start_with(&with_clients(document(), &with), &[]);
    for (asked, granted) in [
        ("orders.read", "orders.read"),
        ("stock.read orders.read", "stock.read orders.read"),
        ("orders.read orders.read", "orders.read"),
        ("", "orders.read orders.write stock.read"),
    ] {
        let answer = ask(&gatepost, "conf1", &[("scope", asked)]);
        token(&answer);
        assert_eq!(answer.json()["scope"], granted, "{asked}");
    }
    let many = "orders.read ".repeat(160);
    let unknown = (0..300)
        .map(|number| format!("s{number}"))
        .collect::<Vec<_>>()
        .join(" ");
    for scope in [
        "nope",
        "orders.read nope",
        "openid",
        "openid orders.read",
        "orders.read profile",
        "roles",
        "offline_access",
        "orders.read offline_access",
        "ORDERS.READ",
        "orders.read,stock.read",
        "orders.read\tstock.read",
        "orders.read\n",
        "\"orders.read\"",
        "orders\\read",
        "ord\u{e9}rs",
        " ",
        &unknown,
    ] {
        ask(&gatepost, "conf1", &[("scope", scope)]).assert_refused(400, "invalid_scope", scope);
    }
    ask(&gatepost, "conf1", &[("scope", many.trim_end())]).assert_member("scope", "orders.read");
    let overlong = "a".repeat(2_001);
    let answer = ask(&gatepost, "conf1", &[("scope", &overlong)]);
    answer.assert_refused(400, "invalid_request", "overlong");
    let twice = [("scope", "orders.read"), ("scope", "orders.read")];
    ask(&gatepost, "conf1", &twice).assert_refused(400, "invalid_request", "repeated");
    // Registered, but not to this client; and a client that has nothing this grant may carry.
    let answer = ask(&gatepost, "reader", &[("scope", "stock.read")]);
    answer.assert_refused(400, "invalid_scope", "not its own");
    for scope in ["offline_access", "openid", "orders.read openid"] {
        ask(&gatepost, "reader", &[("scope", scope)]).assert_refused(400, "invalid_scope", scope);
    }
    assert_eq!(ask(&gatepost, "reader", &[]).json()["scope"], "orders.read");
    ask(&gatepost, "speechless", &[]).assert_refused(400, "invalid_scope", "nothing left");
}

#[test]
fn only_confidential_clients_that_registered_the_grant_may_use_it() {
    let gatepost = Gatepost::start();
    let answer = ask_as(&gatepost, "conf2", CONF2_SECRET, &[]);
    answer.assert_refused(400, "unauthorized_client", "not registered");
    for client_id in ["pub1", "native"] {
        let form = [
            ("grant_type", "client_credentials"),
            ("client_id", client_id),
        ];
        let answer = gatepost.post("/connect/token", &[], &form);
        answer.assert_refused(400, "unauthorized_client", client_id);
    }
    let output = gatepost.run(
        &["apply", "-"],
        &json!({"clients": [{"client_id": "open", "token_endpoint_auth_method": "none", "response_types": [],
                             "grant_types": ["client_credentials"], "scope": "orders.read"}]})
        .to_string(),
    );
    // A public client cannot be registered for it.
    assert!(!output.status.success());
}

#[test]
fn a_reference_token_is_a_handle_of_its_own() {
    let gatepost = Gatepost::start();
    let (first, second) = (
        token(&ask(&gatepost, "service", &[])),
        token(&ask(&gatepost, "service", &[])),
    );
    assert!(first.starts_with("gpa_") && first.len() > 60, "{first}");
    assert_ne!(first, second);
    userinfo(&gatepost, &first).assert_refused(403, "insufficient_scope", "userinfo");
    // Its client going away ends it.
    gatepost.run_sql("UPDATE clients SET enabled = false WHERE client_id = 'service'");
    userinfo(&gatepost, &first).assert_refused(401, "invalid_token", "disabled client");
}

#[test]
fn a_clients_token_is_never_the_token_of_a_user_of_that_name() {
    let document = with_clients(
        document(),
        &[
            (
                "alter-ego",
                json!({"claims": {"department": "it", "role": "batch"}}),
            ),
            ("brief", json!({"access_token_lifetime": 30})),
        ],
    );
    let gatepost = Gatepost::start_with(&document, &[]);
    // Nothing of ours lets a user have that name.
    gatepost.run_sql("UPDATE users SET sub = 'alter-ego' WHERE username = 'bob'");
    let own = token(&ask(&gatepost, "alter-ego", &[]));
    let (_, claims) = verified(&gatepost, &own);
    claims.assert_members("aud client_id department exp iat iss jti nbf role scope sub");
    assert_eq!(claims["sub"], "alter-ego");
    assert_eq!(claims["role"], json!(["batch"]));
    let answer = userinfo(&gatepost, &own);
    answer.assert_refused(
        403,
        "insufficient_scope",
        "the user of that name is somebody else",
    );
    let answer = ask(&gatepost, "brief", &[]);
    let (_, claims) = verified(&gatepost, &token(&answer));
    assert_eq!(
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(),
        30
    );
    assert_eq!(answer.json()["expires_in"], 30);
    assert_eq!(claims.get("sub"), Some(&json!("brief")));
}

#[test]
fn a_resource_narrows_the_token() {
    const STOCK: &str = "https://stock.example";
    let gatepost = Gatepost::shared();
    let answer = ask(&gatepost, "conf1", &[("resource", STOCK)]);
    let (_, claims) = verified(&gatepost, &token(&answer));
    assert_eq!(claims["aud"], json!(STOCK));
    assert_eq!(claims["scope"], "stock.read");
    assert_eq!(answer.json()["scope"], "stock.read");
    for (scope, resource) in [
        ("orders.read", STOCK),
        ("stock.read", "https://elsewhere.example"),
        ("stock.read", "stock.example"),
        ("stock.read", "https://stock.example/x"),
        ("stock.read", "HTTPS://stock.example"),
    ] {
        let answer = ask(
            &gatepost,
            "conf1",
            &[("scope", scope), ("resource", resource)],
        );
        answer.assert_refused(400, "invalid_target", resource);
    }
    let overlong = format!("https://{}.example", "a".repeat(2_000));
    let answer = ask(&gatepost, "conf1", &[("resource", &overlong)]);
    answer.assert_refused(400, "invalid_request", "overlong");
    let answer = ask(&gatepost, "conf1", &[("resource", STOCK); 11]);
    answer.assert_refused(400, "invalid_request", "eleven");
}

#[test]
fn nothing_is_written_to_the_database() {
    let gatepost = Gatepost::start();
    let mut browser = signed_in(&gatepost);
    let code = code(&mut browser, &authorize_path("conf1", RP1, &[]));
    // Counts every row that is written, rolled back or not. Expired sign-in failures are swept by
    // the clock, and the day on which a client was used last is written by it: once a day and
    // client.
    gatepost.database.run(
        "CREATE SEQUENCE writes;
         CREATE FUNCTION count_write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''writes''); RETURN NULL; END';
         DO $$ DECLARE name text; BEGIN
             FOR name IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace
                         AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                         AND c.relname NOT IN ('sign_in_failures', 'client_uses') LOOP
                 EXECUTE format('CREATE TRIGGER count_write AFTER INSERT OR UPDATE OR DELETE ON %I
                                 FOR EACH ROW EXECUTE FUNCTION count_write()', name);
             END LOOP; END $$",
    );
    let writes = || -> i64 {
        let sql = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM writes";
        gatepost.database.value(sql, &[])
    };
    for _ in 0..20 {
        token(&ask(&gatepost, "conf1", &[]));
        token(&ask(&gatepost, "service", &[]));
        let answer = ask(&gatepost, "conf1", &[("scope", "nope")]);
        answer.assert_refused(400, "invalid_scope", "refused");
    }
    assert_eq!(writes(), 0);
    assert_eq!(redeem(&gatepost, &code).status, 200);
    // A redemption is counted, so the count is to be believed.
    assert_ne!(writes(), 0);
    // Wrong secrets are for the audit log: ten of a minute, behind a row that opens the chain.
    let before = writes();
    for _ in 0..20 {
        let answer = ask_as(&gatepost, "service", "wrong", &[]);
        answer.assert_refused(401, "invalid_client", "wrong secret");
    }
    assert!(writes() - before <= 22, "at most two minutes' worth");
}

#[test]
fn the_client_is_the_subject_of_its_tokens_and_nobody_else_is_called_so() {
    let unnamed = json!({"client_credentials_sub": false});
    let registered = with_clients(document(), &[("unnamed", unnamed)]);
    let gatepost = Gatepost::start_with(&registered, &[]);
    let introspected = |client_id: &str| {
        let token = token(&ask(&gatepost, client_id, &[]));
        (
            token.clone(),
            gatepost
                .post_as(client_id, "/connect/introspect", &[("token", &token)])
                .json(),
        )
    };
    // A JWT, a reference token, and one of a client that wants none.
    for (client_id, subject) in [
        ("conf1", Some("conf1")),
        ("service", Some("service")),
        ("unnamed", None),
    ] {
        let (token, told) = introspected(client_id);
        assert_eq!(told["active"].as_bool(), Some(true), "{told}");
        assert_eq!(told.get("sub").and_then(Value::as_str), subject, "{told}");
        if client_id != "service" {
            assert_eq!(
                verified(&gatepost, &token)
                    .1
                    .get("sub")
                    .and_then(Value::as_str),
                subject
            );
        }
        userinfo(&gatepost, &token).assert_refused(403, "insufficient_scope", client_id);
    }
    // Neither by a document, nor by hand, nor the other way round.
    let refused = |arguments: &[&str], input: &str| {
        let output = gatepost.run(arguments, input);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let user = |sub: &str| json!({"users": [{"username": "dora", "sub": sub}]}).to_string();
    assert!(
        refused(&["apply", "-"], &user("service"))
            .contains("users[0] (dora).sub: is the client_id of a client")
    );
    let added = ["user", "add", "dora", "--no-password", "--sub"];
    assert!(
        refused(&[&added[..], &["service"]].concat(), "").contains("is the client_id of a client")
    );
    gatepost.run_well(&[&added[..], &["dora-subject"]].concat(), "");
    let client = with_clients(document(), &[("dora-subject", json!({}))]).to_string();
    let taken = "clients[5] (dora-subject).client_id: is the sub of a user, or once was";
    assert!(refused(&["apply", "-"], &client).contains(taken));
    gatepost.run_well(&["user", "remove", "dora"], "");
    assert!(refused(&["apply", "-"], &client).contains(taken));
}

#[test]
fn clients_beyond_the_size_of_the_cache_are_served_and_all_follow_an_apply() {
    let names: Vec<String> = (0..700).map(|number| format!("many-{number}")).collect();
    let registered = |changes: Value| {
        let clients: Vec<(&str, Value)> = names
            .iter()
            .map(|name| (name.as_str(), changes.clone()))
            .collect();
        with_clients(document(), &clients)
    };
    let address = free_address();
    let settings = [
        ("GATEPOST_CLIENT_CACHE_MIB", "1"),
        ("GATEPOST_ADMIN_LISTEN", &address),
    ];
    let gatepost = Gatepost::start_with(&registered(json!({})), &settings);
    let scopes = |name: &String| ask(&gatepost, name, &[]).json()["scope"].clone();
    // The first ones are asked for all the time, and so are old and held; most of the others came
    // and went.
    for (number, name) in names.iter().enumerate() {
        for name in [&names[number % 10], name] {
            assert_eq!(
                scopes(name),
                "orders.read orders.write stock.read",
                "{name}"
            );
        }
    }
    let (_, metrics) = ask_alone(&address, "GET /metrics");
    let cached = metrics
        .lines()
        .find_map(|line| line.strip_prefix("gatepost_registry_clients_cached "));
    assert!(
        (100..600).contains(&cached.unwrap().parse().unwrap()),
        "{cached:?} clients in 1 MiB"
    );
    gatepost.apply(&registered(json!({"scope": "openid orders.read"})));
    for name in &names {
        assert_eq!(scopes(name), "orders.read", "{name}");
    }
    gatepost.run_well(&["client", "remove", "many-0"], "");
    gatepost.settle();
    ask(&gatepost, "many-0", &[]).assert_refused(401, "invalid_client", "removed");
}
