//! The token endpoint before any grant: types, parameters, grant types, origins.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{VERIFIER, changed, signed_in, with_clients};
use crate::support::gatepost::{ALICE_PASSWORD, CONF1_SECRET, Gatepost, RP1, document};
use crate::support::http::{Answer, encode};
use crate::support::tables::rows_of;

const TOKEN: &str = "/connect/token";
const ORIGIN: &str = "https://rp1.example";

/// A right request: `conf1` asks for a token of its own.
fn right() -> Vec<(&'static str, &'static str)> {
    vec![
        ("grant_type", "client_credentials"),
        ("client_id", "conf1"),
        ("client_secret", CONF1_SECRET),
    ]
}

/// Another three clients: `coder` takes codes alone, `spa` is of another origin, `shell` takes
/// passwords.
fn registered() -> Value {
    let shell = json!({"grant_types": ["password"], "response_types": [], "redirect_uris": []});
    let clients = [
        ("coder", json!({"grant_types": ["authorization_code"]})),
        (
            "spa",
            json!({"allowed_cors_origins": ["https://spa.example"]}),
        ),
        ("shell", shell),
    ];
    with_clients(document(), &clients)
}

#[test]
fn only_a_form_is_a_token_request() {
    let gatepost = Gatepost::shared();
    let form = encode(&right());
    let json =
        json!({"grant_type": "client_credentials", "client_id": "conf1", "client_secret": CONF1_SECRET}).to_string();
    for (content_type, body) in [
        (None, &form),
        (Some(""), &form),
        (Some("application/json"), &json),
        (Some("application/json"), &form),
        (Some("multipart/form-data; boundary=x"), &form),
        (Some("text/plain"), &form),
        (Some("application/x-www-form-urlencodedx"), &form),
        (Some("x; application/x-www-form-urlencoded"), &form),
    ] {
        let header = content_type.map(|value| ("Content-Type", value));
        let headers = header.as_slice();
        let answer = gatepost.send("POST", TOKEN, headers, body.as_bytes());
        answer.assert_refused(400, "invalid_request", &format!("{content_type:?}"));
    }
    for content_type in [
        "application/x-www-form-urlencoded",
        "application/x-www-form-urlencoded; charset=UTF-8",
        "application/x-www-form-urlencoded;charset=iso-8859-1",
        "APPLICATION/X-WWW-FORM-URLENCODED",
    ] {
        let headers = [("Content-Type", content_type)];
        let answer = gatepost.send("POST", TOKEN, &headers, form.as_bytes());
        answer.assert_status_for(content_type, 200);
    }
}

#[test]
fn parameters_stand_in_the_body_once() {
    let gatepost = Gatepost::shared();
    let is_refused = |path: &str, form: &[(&str, &str)], case: &str| {
        let answer = gatepost.post(path, &[], form);
        answer.assert_refused(400, "invalid_request", case);
    };
    let names = "grant_type client_id client_secret code redirect_uri code_verifier scope resource";
    for name in names.split(' ') {
        let path = format!("{TOKEN}?{name}=x");
        is_refused(&path, &right(), &path);
        is_refused(&format!("{TOKEN}?{name}"), &right(), name);
    }
    let moved = format!("{TOKEN}?{}", encode(&right()));
    is_refused(&moved, &[], "all in the query");
    for path in "/connect/token? /connect/token?x=1&x=2 /connect/token?Scope=x".split(' ') {
        assert_eq!(gatepost.post(path, &[], &right()).status, 200, "{path}");
    }
    // Whether this grant reads them or not, and whoever sends them.
    let names = "grant_type client_id client_secret scope code redirect_uri code_verifier assertion \
                 subject_token subject_token_type actor_token actor_token_type requested_token_type";
    for twice in names.split(' ') {
        let mut form = right();
        let value = form.iter().find(|(name, _)| *name == twice);
        let value = value.map_or("orders.read", |(_, value)| *value);
        form.retain(|(name, _)| *name != twice);
        form.extend([(twice, value), (twice, value)]);
        is_refused(TOKEN, &form, twice);
        form.pop();
        form.push((twice, ""));
        is_refused(TOKEN, &form, &format!("{twice} and empty"));
    }
    let twice = [("audience", "x"), ("audience", "y"), ("x", "1"), ("x", "2")];
    let harmless = [&twice[..], &[("GRANT_TYPE", "password")]].concat();
    let form = [right(), harmless].concat();
    gatepost.post(TOKEN, &[], &form).assert_status(200);
}

#[test]
fn a_grant_that_is_unknown_or_not_the_clients_is_refused() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let ask = |client_id: &str, grant_type: &str| {
        let grant_type = ("grant_type", grant_type);
        let form = [grant_type, ("code", "gpc_x"), ("redirect_uri", RP1)];
        gatepost.post_as(client_id, TOKEN, &form)
    };
    // The client comes before the grant.
    for [client_id, grant_type, error] in rows_of(
        "
        conf1   |                                              | invalid_request
        conf1   | nope                                         | unsupported_grant_type
        conf1   | client_credentials%20                        | unsupported_grant_type
        conf1   | Client_Credentials                           | unsupported_grant_type
        conf1   | implicit                                     | unsupported_grant_type
        conf1   | refresh_token                                | unauthorized_client
        conf1   | password                                     | unauthorized_client
        conf1   | urn:ietf:params:oauth:grant-type:device_code | unauthorized_client
        conf1   | <script>alert(1)</script>                    | unsupported_grant_type
        service | authorization_code                           | unauthorized_client
        coder   | client_credentials                           | unauthorized_client
        nobody  | nope                                         | invalid_client
        nobody  |                                              | invalid_client
        ",
    ) {
        let grant_type = &grant_type.replace("%20", " ");
        let status = if error == "invalid_client" { 401 } else { 400 };
        let answer = ask(client_id, grant_type);
        answer.assert_refused(status, error, &format!("{client_id} {grant_type}"));
    }
}

#[test]
fn malformed_bodies_are_refused_and_never_repaired() {
    let gatepost = Gatepost::shared();
    let form = encode(&right());
    let names = "grant_type client_id client_secret code redirect_uri code_verifier scope
                 resource x";
    for name in names.split_whitespace() {
        for value in "%FF % %4 %zz %u0041 %00 %C3 %C3%28 %ED%A0%80".split(' ') {
            let body = format!("{form}&{name}={value}");
            let answer = gatepost.connect().post_raw(TOKEN, &[], body.as_bytes());
            answer.assert_refused(400, "invalid_request", &body);
        }
    }
    let bodies = [
        b"\xff\xfe",
        &b"a=\xff"[..],
        b"\0",
        b"%",
        b"&&&===&",
        b"=",
        b"",
    ];
    for body in bodies.into_iter().chain([&b"{\"grant_type\":\"x\"}"[..]]) {
        let answer = gatepost.connect().post_raw(TOKEN, &[], body);
        let error = answer.json()["error"].clone();
        let is_known = error == "invalid_request" || error == "invalid_client";
        assert!(is_known, "{body:?}: {error}");
        assert_eq!(answer.status, 400, "{body:?}");
    }
    let answer = gatepost.post("/connect/token?x=%ff", &[], &right());
    answer.assert_refused(400, "invalid_request", "in the query");
}

#[test]
fn overlong_input_is_refused_cheaply() {
    let gatepost = Gatepost::shared();
    let names = "grant_type client_id client_secret code redirect_uri code_verifier scope
                 resource";
    for name in names.split_whitespace() {
        for length in [9_000, 60_000] {
            let value = "a".repeat(length);
            let usual = changed(&right(), &[("grant_type", "authorization_code")]);
            let more = [
                ("code", "gpc_x"),
                ("redirect_uri", RP1),
                ("code_verifier", VERIFIER),
            ];
            let usual = [&usual[..], &more].concat();
            let answer = gatepost.post(TOKEN, &[], &changed(&usual, &[(name, &value)]));
            answer.assert_status_for(format!("{name} {length}"), 400);
            answer.assert_says_not_for(name, "aaaa");
        }
    }
    let many = Vec::from_iter((0..5_000).map(|number| format!("p{number}=1"))).join("&");
    let answer = gatepost.connect().post_raw(TOKEN, &[], many.as_bytes());
    answer.assert_refused(400, "invalid_client", "many parameters");
    let form = encode(&right());
    let exactly = format!("{form}&x={}", "a".repeat(65_536 - form.len() - 3));
    let answer = gatepost.connect().post_raw(TOKEN, &[], exactly.as_bytes());
    answer.assert_status(200);
    for length in [65_537, 1_048_577] {
        let body = vec![b'a'; length];
        let head = [("Content-Type", "application/x-www-form-urlencoded")];
        let answer = gatepost.connect().try_send("POST", TOKEN, &head, &body);
        if let Ok(answer) = answer {
            assert_eq!(answer.status, 413, "{length}");
        }
    }
    let long_query = format!("{TOKEN}?x={}", "a".repeat(32_768));
    let answer = gatepost.connect().try_send("POST", &long_query, &[], b"");
    answer.unwrap().assert_status(414);
    assert_eq!(gatepost.post(TOKEN, &[], &right()).status, 200);
}

#[test]
fn scripts_of_registered_origins_may_read_the_answer_and_no_others() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let answered =
        |answer: &Answer, origin: Option<&str>, credentials: Option<&str>, case: &str| {
            let header = |name: &str| answer.header(&format!("access-control-{name}"));
            assert_eq!(header("allow-origin"), origin, "{case}");
            assert_eq!(header("allow-credentials"), credentials, "{case}");
            assert_eq!(answer.header("vary"), Some("Origin"), "{case}");
            let exposed = origin.map(|_| "WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id");
            assert_eq!(header("expose-headers"), exposed, "{case}");
        };
    let without_credentials =
        |answer: &Answer, origin: Option<&str>, case: &str| answered(answer, origin, None, case);
    // keycloak-js always sends its token request with credentials.
    let shared = |answer: &Answer, origin: Option<&str>, case: &str| {
        answered(answer, origin, origin.map(|_| "true"), case);
    };
    let post =
        |origin: &str, form: &[(&str, &str)]| gatepost.post(TOKEN, &[("Origin", origin)], form);
    shared(&post(ORIGIN, &right()), Some(ORIGIN), "a token");
    shared(&gatepost.post(TOKEN, &[], &right()), None, "no origin");
    let foreign = "https://evil.example null http://rp1.example https://rp1.example:8443 \
                   https://rp1.example.evil.example https://rp2.example https://spa.example * ";
    for foreign in foreign.split(' ') {
        shared(&post(foreign, &right()), None, foreign);
    }
    // Errors as well, so that a script can say what went wrong.
    let wrong = changed(&right(), &[("client_secret", "wrong")]);
    let unauthorized = changed(&right(), &[("grant_type", "nope")]);
    for (form, case) in [
        (&wrong, "wrong secret"),
        (&unauthorized, "unknown grant"),
        (&Vec::new(), "nobody"),
    ] {
        shared(&post(ORIGIN, form), Some(ORIGIN), case);
        shared(&post("https://evil.example", form), None, case);
    }
    let case = "a known client's error is for its own origins";
    shared(&post("https://rp2.example", &unauthorized), None, case);
    let headers = [("Origin", ORIGIN), ("Content-Type", "text/plain")];
    let by_type = gatepost.send("POST", TOKEN, &headers, b"x");
    shared(&by_type, Some(ORIGIN), "content type");
    let by_method = gatepost.send("PUT", TOKEN, &headers[..1], b"");
    shared(&by_method, Some(ORIGIN), "method");
    for path in [TOKEN, "/connect/userinfo"] {
        for (origin, allowed) in [
            (ORIGIN, true),
            ("https://spa.example", true),
            ("https://evil.example", false),
            ("null", false),
        ] {
            let fields = "authorization,content-type";
            let headers = [
                ("Origin", origin),
                ("Access-Control-Request-Method", "POST"),
                ("Access-Control-Request-Headers", fields),
            ];
            let answer = gatepost.send("OPTIONS", path, &headers, b"");
            assert_eq!((answer.status, answer.body.len()), (204, 0), "{path}");
            let origin = allowed.then_some(origin);
            if path == TOKEN {
                shared(&answer, origin, path);
            } else {
                without_credentials(&answer, origin, path);
            }
            answer.assert_header("access-control-max-age", "600");
            answer.assert_header("access-control-allow-headers", fields);
            let methods = answer.header("access-control-allow-methods");
            methods.unwrap().assert_says("POST");
        }
    }
    let headers = [("Origin", ORIGIN), ("Authorization", "Bearer x")];
    let bad_token = gatepost.send("GET", "/connect/userinfo", &headers, b"");
    without_credentials(&bad_token, Some(ORIGIN), "userinfo's errors");
    for path in "/connect/par /connect/revocation /connect/deviceauthorization".split(' ') {
        let headers = [("Origin", ORIGIN)];
        let answer = gatepost.send("OPTIONS", path, &headers, b"");
        without_credentials(&answer, Some(ORIGIN), path);
    }
    let paths = "/.well-known/openid-configuration /.well-known/openid-configuration/jwks";
    for path in paths.split(' ') {
        let answer = gatepost.send("GET", path, &[("Origin", "https://evil.example")], b"");
        answer.assert_header_for(path, "access-control-allow-origin", "*");
        let credentials = answer.header("access-control-allow-credentials");
        assert_eq!(credentials, None, "{path}");
    }
    for path in "/ /login /logout /connect/authorize /healthz /nowhere".split(' ') {
        let answer = gatepost.send("GET", path, &[("Origin", ORIGIN)], b"");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}

#[test]
fn a_script_may_send_whatever_header_fields_its_libraries_add() {
    let gatepost = Gatepost::shared();
    let allowed = |path: &str, asked: &[(&str, &str)]| {
        let preflight = [
            ("Origin", ORIGIN),
            ("Access-Control-Request-Method", "POST"),
        ];
        let headers = [&preflight, asked].concat();
        let answer = gatepost.send("OPTIONS", path, &headers, b"");
        assert_eq!(answer.status, 204, "{path} {asked:?}");
        let allowed = answer.headers_named("access-control-allow-headers");
        assert_eq!(allowed.len(), 1, "{path} {asked:?}");
        allowed[0].to_owned()
    };
    const FIELD: &str = "Access-Control-Request-Headers";
    let traced = "authorization,baggage,cache-control,sentry-trace,traceparent,x-requested-with";
    let (most, too_many) = (["x"; 32].join(","), ["x"; 33].join(","));
    let (longest, too_long) = ("x".repeat(1_024), "x".repeat(1_025));
    let paths = "/connect/token /connect/userinfo /connect/par /connect/revocation \
                 /.well-known/openid-configuration";
    for path in paths.split(' ') {
        for asked in [traced, "x, y ,\tz", most.as_str(), longest.as_str()] {
            assert_eq!(allowed(path, &[(FIELD, asked)]), asked, "{path}");
        }
        let fixed = "authorization, content-type, dpop";
        assert_eq!(allowed(path, &[]), fixed, "{path}");
        let wrong = ["", "x,,y", "x y", "x:y", "(x)", "x\"", &too_many, &too_long];
        for asked in wrong {
            assert_eq!(allowed(path, &[(FIELD, asked)]), fixed, "{path} {asked}");
        }
    }
}

/// Scripts of other origins may send the cookies that a browser has for Gatepost.
#[test]
fn cookies_change_nothing_at_the_token_endpoint() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    browser.get("/login");
    let cookies = browser.cookie_header();
    assert!(cookies.split("; ").count() >= 2, "{cookies}");
    let password = |password: &'static str| {
        vec![
            ("grant_type", "password"),
            ("client_id", "shell"),
            ("client_secret", CONF1_SECRET),
            ("username", "alice"),
            ("password", password),
            ("scope", "openid"),
        ]
    };
    for (form, status) in [
        (right(), 200),
        (password(ALICE_PASSWORD), 200),
        (password("wrong"), 400),
        (changed(&right(), &[("grant_type", "nope")]), 400),
        (changed(&right(), &[("client_secret", "wrong")]), 400),
        (Vec::new(), 400),
    ] {
        let answers = [None, Some(("Cookie", cookies.as_str()))].map(|cookie| {
            let headers: Vec<_> = [("Origin", ORIGIN)].into_iter().chain(cookie).collect();
            let answer = gatepost.post(TOKEN, &headers, &form);
            assert_eq!(answer.status, status, "{form:?}");
            assert_eq!(answer.header("set-cookie"), None, "{form:?}");
            without_what_is_new(&answer)
        });
        assert_eq!(answers[0], answers[1], "{form:?}");
    }
}

/// An answer without its tokens and what names it: these differ each time.
fn without_what_is_new(answer: &Answer) -> String {
    let mut body = answer.json();
    for name in ["access_token", "id_token"] {
        if let Some(token) = body.get_mut(name) {
            *token = json!("a token");
        }
    }
    let lines = answer.headers.iter();
    let lines = lines.map(|(name, value)| format!("{name}: {value}"));
    let is_new = |line: &String| line.starts_with("x-request-id") || line.starts_with("date");
    let mut headers: Vec<String> = lines.filter(|line| !is_new(line)).collect();
    headers.sort();
    format!("{} {headers:?} {body}", answer.status)
}

#[test]
fn an_origin_comes_and_goes_with_the_client_that_is_registered_for_it() {
    let gatepost = Gatepost::start();
    let is_allowed = |origin: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
        ];
        let answer = gatepost.send("OPTIONS", TOKEN, &headers, b"");
        answer.header("access-control-allow-origin") == Some(origin)
    };
    let shop = |enabled: bool, origin: &str| {
        let uris = json!([
            "https://NEW.example:443/cb",
            "http://localhost:3000/cb",
            "com.example.new:/cb"
        ]);
        let client = json!({"redirect_uris": uris, "allowed_cors_origins": [origin], "enabled": enabled,
                            "token_endpoint_auth_method": "none", "grant_types": ["authorization_code"], "secrets": []});
        with_clients(document(), &[("new", client)])
    };
    let web = ["https://new.example", "http://localhost:3000"];
    let (one, two) = ("https://one.example", "https://two.example");
    let never = vec!["https://NEW.example:443", "com.example.new:", "null", ""];
    for (document, allowed, refused) in [
        (shop(true, one), [&web[..], &[one]].concat(), vec![two]),
        (shop(true, two), [&web[..], &[two]].concat(), vec![one]),
        (shop(false, two), vec![ORIGIN], [&web[..], &[two]].concat()),
        (shop(true, two), web.to_vec(), never),
    ] {
        gatepost.apply(&document);
        for origin in allowed {
            assert!(is_allowed(origin), "{origin}");
        }
        for origin in refused {
            assert!(!is_allowed(origin), "{origin}");
        }
    }
    gatepost.run_well(&["client", "remove", "new"], "");
    gatepost.settle();
    assert!(is_allowed(ORIGIN) && !web.into_iter().any(is_allowed));
}
