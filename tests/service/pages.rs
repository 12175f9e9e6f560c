//! What every page owes: cookies with their attributes, headers, and nothing unescaped.

use serde_json::json;

use crate::authorize_bad_input::PARAMETERS;
use crate::support::claims::Says;
use crate::support::flow::{authorize_path, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, RP2, document};
use crate::support::http::{Answer, Browser};
use crate::support::waiting::{SOON, await_that};

/// Attributes of the cookie whose name begins so, in order.
fn attributes(answer: &Answer, name: &str) -> (String, Vec<String>) {
    let set = answer.headers_named("set-cookie");
    let cookie = set.iter().find(|cookie| cookie.starts_with(name));
    let cookie = cookie.unwrap_or_else(|| panic!("{name}: {set:?}"));
    let mut parts = cookie.split("; ");
    let (name, _) = parts.next().unwrap().split_once('=').unwrap();
    (name.to_owned(), parts.map(str::to_owned).collect())
}

fn is_marked(name: &str, prefix: &str) -> bool {
    let mark = name.strip_prefix(prefix).unwrap_or_default();
    let is_digit = |byte: u8| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase();
    mark.len() == 8 && mark.bytes().all(is_digit)
}

#[test]
fn cookies_on_loopback_are_plain_and_scoped_to_the_installation() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[]));
    let (name, kept) = attributes(&page, "gatepost-browser-");
    assert!(is_marked(&name, "gatepost-browser-"), "{name}");
    assert_eq!(kept, ["Path=/", "HttpOnly", "SameSite=Lax"]);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let (name, kept) = attributes(&answer, "gatepost-session-");
    assert!(is_marked(&name, "gatepost-session-"), "{name}");
    assert_eq!(kept, ["Path=/", "HttpOnly", "SameSite=Lax"]);
    let (_, kept) = attributes(&answer, "gatepost-browser-");
    let expected = ["Max-Age=2592000", "Path=/", "HttpOnly", "SameSite=Lax"];
    assert_eq!(kept, expected);
    // Two installations on one host, and here one that frames of other sites may use: without
    // Secure the cookie is dropped.
    let other = Gatepost::start_with(&document(), &[("GATEPOST_COOKIE_SAMESITE", "none")]);
    let page = other.browser().visit(&authorize_path("conf1", RP1, &[]));
    let (elsewhere, kept) = attributes(&page, "gatepost-browser-");
    assert_eq!(kept, ["Path=/", "HttpOnly", "Secure", "SameSite=None"]);
    assert_ne!(elsewhere, name);
    // Nobody's browser gets a cookie for merely asking.
    let addresses = "/ /logout /connect/authorize /.well-known/openid-configuration /nowhere";
    for address in addresses.split(' ') {
        assert_eq!(
            gatepost.get(address).headers_named("set-cookie").len(),
            0,
            "{address}"
        );
    }
}

#[test]
fn cookies_of_an_https_installation_belong_to_its_host_alone() {
    let mut registered = document();
    registered["identity_providers"] = json!([{
        "name": "hub", "client_id": "gatepost", "authorization_endpoint": "https://hub.example/authorize",
        "token_endpoint": "https://hub.example/token", "userinfo_endpoint": "https://hub.example/user", "subject_claim": "id"
    }]);
    for (same_site, expected) in [("lax", "SameSite=Lax"), ("none", "SameSite=None")] {
        let settings = [
            ("GATEPOST_BASE_URL", "https://id.example"),
            ("GATEPOST_COOKIE_SAMESITE", same_site),
        ];
        let gatepost = Gatepost::start_with(&registered, &settings);
        let mut browser = Browser::new(gatepost.port, "https://id.example");
        let departure = browser.get(&authorize_path("conf1", RP1, &[("acr_values", "idp:hub")]));
        let (_, kept) = attributes(&departure, "__Host-gatepost-flow-");
        let (age, lax) = ("Max-Age=600", "SameSite=Lax");
        assert_eq!(kept, [age, "Path=/", "HttpOnly", "Secure", lax]);
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        let (name, kept) = attributes(&page, "__Host-gatepost-browser-");
        assert!(is_marked(&name, "__Host-gatepost-browser-"), "{name}");
        assert_eq!(kept, ["Path=/", "HttpOnly", "Secure", expected]);
        let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
        assert_eq!(answer.query()["iss"], "https://id.example");
        let (name, kept) = attributes(&answer, "__Host-gatepost-session-");
        assert!(is_marked(&name, "__Host-gatepost-session-"), "{name}");
        assert_eq!(kept, ["Path=/", "HttpOnly", "Secure", expected]);
        let logout = browser.get("/logout");
        let token = logout.form_token();
        let form = [("form_token", token.as_str()), ("decision", "sign_out")];
        // The origin is the configured one, whatever the connection says.
        let own_port = format!("http://localhost:{}", gatepost.port);
        let own_port = [("Origin", &*own_port)];
        let refused = browser.post_from("/logout", &own_port, &form);
        refused.assert_error_page(403, "GP1009", "port");
        let done = browser.post("/logout", &form);
        let removed = attributes(&done, "__Host-gatepost-session-").1;
        let age = "Max-Age=0";
        assert_eq!(removed, [age, "Path=/", "HttpOnly", "Secure", expected]);
    }
}

const PAYLOADS: [&str; 6] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onfocus='alert(1)' autofocus='",
    "</title><script>alert(1)</script>",
    "{{7*7}}${7*7}<%=7%>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
];

/// No payload made a tag or an attribute.
fn is_clean(answer: &Answer, what: &str) {
    let text = answer.text();
    text.assert_says_not_for(what, "<script>");
    text.assert_says_not_for(what, "<img src=x");
    text.assert_says_not_for(what, "<%=");
    for tag in text.split('<').map(|rest| rest.split('>').next().unwrap()) {
        let outside: String = tag.split('"').step_by(2).collect();
        assert!(!outside.contains("onerror"), "{what}: {tag}");
        assert!(!outside.contains("onfocus"), "{what}: {tag}");
    }
}

#[test]
fn names_from_the_registry_and_from_people_are_shown_as_text() {
    for payload in PAYLOADS {
        let mut registered = document();
        registered["identity_scopes"].as_array_mut().unwrap().push(json!(
            {"name": "<b>x</b>", "display_name": payload, "description": payload, "claims": ["<i>claim</i>"]}
        ));
        registered["clients"][1]["client_name"] = json!(payload);
        registered["clients"][1]["scope"] = json!("openid profile <b>x</b>");
        let users = registered["users"].as_array_mut().unwrap();
        users.push(
            json!({"username": payload, "password": BOB_PASSWORD, "claims": {"name": payload}}),
        );
        let gatepost = Gatepost::start_with(&registered, &[("GATEPOST_BRAND_NAME", payload)]);
        let claims = r#"{"userinfo":{"<i>claim</i>":null}}"#;
        let mut browser = gatepost.browser();
        let scope = ("scope", "openid profile <b>x</b>");
        let changes = [scope, ("claims", claims), ("login_hint", payload)];
        let path = authorize_path("conf2", RP2, &changes);
        let page = browser.visit(&path);
        is_clean(&page, payload);
        let wrong = sign_in(&mut browser, &page, payload, "wrong");
        is_clean(&wrong, payload);
        let typed = wrong.attribute("id=\"username\"", "value");
        assert_eq!(typed.as_deref(), Some(payload));
        let answer = sign_in(&mut browser, &page, payload, BOB_PASSWORD);
        let consent = browser.follow(answer);
        is_clean(&consent, payload);
        consent.assert_says("asks for access");
        consent.assert_says_not("<b>x");
        consent.assert_says_not("<i>claim");
        is_clean(&browser.get("/logout"), payload);
        let choosing = authorize_path("conf2", RP2, &[("prompt", "select_account")]);
        is_clean(&browser.visit(&choosing), payload);
        let answer = browser.decide(&consent, "allow", &["profile", "<b>x</b>"], false);
        answer.assert_carries_for(payload, "code");
    }
}

#[test]
fn nothing_that_a_request_says_is_reflected_unescaped() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    for payload in PAYLOADS {
        for name in PARAMETERS.into_iter().chain(["unknown"]) {
            for mode in ["query", "form_post"] {
                let mut changes = vec![(name, payload)];
                if name != "response_mode" {
                    changes.push(("response_mode", mode));
                }
                let answer = browser.get(&authorize_path("conf1", RP1, &changes));
                is_clean(&answer, name);
                assert!(answer.status < 500, "{name}");
                if let Some(location) = answer.header("location") {
                    assert!(!location.contains(['<', '>', '"', '\'', ' ']), "{location}");
                }
            }
        }
        let encoded: String = form_urlencoded::byte_serialize(payload.as_bytes()).collect();
        for address in [
            format!("/{encoded}"),
            format!("/login?r={encoded}"),
            format!("/static/{encoded}"),
            format!("/logout?x={encoded}"),
        ] {
            is_clean(&browser.get(&address), &address);
        }
    }
}

#[test]
fn pages_cannot_be_framed_and_load_nothing_from_elsewhere() {
    let gatepost = Gatepost::shared();
    let mut browser = signed_in(&gatepost);
    let prompting = |prompt: &str| authorize_path("conf1", RP1, &[("prompt", prompt)]);
    let consent = authorize_path("conf2", RP2, &[]);
    let pages = [
        ("login", &*prompting("login")),
        ("chooser", &prompting("select_account")),
        ("consent", &consent),
        ("logout", "/logout"),
        ("error", "/connect/authorize"),
        ("start", "/start"),
        ("not found", "/nowhere"),
    ];
    for (name, address) in pages {
        let page = browser.visit(address);
        let policy = page.header("content-security-policy").unwrap();
        policy.assert_says_for(name, "frame-ancestors 'none'");
        assert!(policy.starts_with("default-src 'none'"), "{name}: {policy}");
        let runs_scripts = policy.contains("script-src 'self'");
        let expected = name == "login" || name == "chooser";
        assert_eq!(runs_scripts, expected, "{name}: {policy}");
        assert_eq!(page.header("x-frame-options"), Some("DENY"), "{name}");
        let text = page.text();
        for attribute in ["src=\"", "href=\""] {
            for rest in text.split(attribute).skip(1) {
                let target = rest.split('"').next().unwrap();
                let is_ours = target.starts_with('/') && !target.starts_with("//");
                let stays = is_ours || target.starts_with('#');
                assert!(stays, "{name}: {target}");
            }
        }
        // The one for passkeys, on the sign-in page.
        let scripts = text.matches("<script").count();
        let passkeys = text.matches("<script src=\"/static/passkey.js?").count();
        assert_eq!(scripts, passkeys, "{name}");
        assert!(scripts == usize::from(name == "login"), "{name}");
        text.assert_says_not_for(name, "style=\"");
        let has_form = text.contains("<form");
        assert_eq!(
            page.header("referrer-policy"),
            Some(if has_form {
                "same-origin"
            } else {
                "no-referrer"
            }),
            "{name}"
        );
    }
}

/// A page that says in the given language what happened and what one can do, names a reference that
/// the log has beside the status, and shows nothing of `x-secret`, which every request brought.
fn assert_told(
    gatepost: &Gatepost,
    answer: &Answer,
    case: &str,
    (status, language, heading): (u16, &str, &str),
) {
    let text = answer.text();
    assert_eq!(answer.status, status, "{case}: {text}");
    let beginning = format!("<!DOCTYPE html><html lang=\"{language}\">");
    assert!(text.starts_with(&beginning), "{case}: {text}");
    text.assert_says_for(case, &format!("<h1>{heading}</h1><p>"));
    text.assert_says_not_for(case, "x-secret");
    text.assert_says_not_for(case, "<script");
    let (_, rest) = text.split_once("<code><span>").unwrap();
    let (groups, _) = rest.split_once("</span></code>").unwrap();
    let groups = Vec::from_iter(groups.split("</span><span>"));
    let are_short = groups.iter().all(|group| group.len() == 4);
    assert!(are_short, "{case}: {text}");
    let reference = groups.concat();
    let is_hex = reference.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(reference.len() == 16 && is_hex, "{case}: {text}");
    let words = [format!("id={reference} "), format!(" status={status} ")];
    let tells = |line: &str| words.iter().all(|word| line.contains(word));
    await_that(case, SOON, || gatepost.log().lines().any(tells));
}

#[test]
fn every_failure_is_told_in_the_persons_language_under_a_reference_that_the_log_has() {
    let gatepost = Gatepost::start();
    let mut browser = gatepost.browser();
    let long = "x".repeat(33 * 1_024);
    let asked = |changes: &[(&str, &str)]| {
        let french = [changes, &[("ui_locales", "fr-CA")]].concat();
        authorize_path("conf1", RP1, &french)
    };
    let refused = (400, "fr", "Cette demande ne peut pas aboutir");
    let not_there = (404, "fr", "Il n’y a pas de page ici");
    let too_much = (414, "ja", "一度に送信されたデータが多すぎます");
    let elsewhere = [("redirect_uri", "https://x-secret.example/<script>")];
    let not_encoded = asked(&[]) + "&x-secret=%FF";
    for (case, path, expected) in [
        (
            "client",
            &*asked(&[("client_id", "x-secret<script>")]),
            refused,
        ),
        (
            "no client",
            "/connect/authorize?ui_locales=fr&x-secret",
            refused,
        ),
        ("redirect_uri", &asked(&elsewhere), refused),
        ("encoding", &not_encoded, refused),
        (
            "broken request",
            "/consent?r=x-secret&ui_locales=fr",
            refused,
        ),
        ("address", "/x-secret<script>?ui_locales=fr", not_there),
        ("file", "/static/x-secret?ui_locales=fr", not_there),
        ("too long", &asked(&[("x-secret", &long)]), too_much),
    ] {
        let path = path.replace('<', "%3C").replace('>', "%3E");
        let answer = gatepost.send("GET", &path, &[("Accept-Language", "ja")], b"");
        assert_told(&gatepost, &answer, case, expected);
    }
    let page = browser.visit(&asked(&[]));
    let action = page.action();
    assert!(action.ends_with("&ui_locales=fr"), "{action}");
    let fields = page.fields();
    let token = fields["form_token"].as_str();
    let forbidden = (403, "fr", "Cette action n’était pas autorisée");
    let too_much = (413, "pl", "Wysłano zbyt dużo danych naraz");
    let token = ("form_token", token);
    let elsewhere = ("Origin", "https://x-secret.example");
    let polish = ("Accept-Language", "pl");
    let long = [("form_token", &*long), ("password", &long)];
    for (case, headers, form, expected) in [
        ("foreign", &[elsewhere][..], &[token][..], forbidden),
        ("decision", &[], &[token, ("decision", "x-secret")], refused),
        ("twice", &[], &[token, ("form_token", "x-secret")], refused),
        ("too much", &[polish], &long, too_much),
    ] {
        let answer = browser.post_from(&action, headers, form);
        assert_told(&gatepost, &answer, case, expected);
    }
    let put = gatepost.send("PUT", "/login?x-secret&ui_locales=it", &[], b"");
    let heading = "Questa pagina non può essere usata in questo modo";
    assert_told(&gatepost, &put, "method", (405, "it", heading));
    let two_hosts = [("Host", "b"), ("Accept-Language", "es-MX")];
    let answer = gatepost.send("GET", "/login?x-secret", &two_hosts, b"");
    let refused = (400, "es", "No se puede completar esta solicitud");
    assert_told(&gatepost, &answer, "two hosts", refused);
}

#[test]
fn the_way_back_by_a_form_speaks_the_language_of_the_request() {
    let gatepost = Gatepost::shared();
    let mut browser = gatepost.browser();
    let asked = [("ui_locales", "zh-CN"), ("response_mode", "form_post")];
    let page = browser.visit(&authorize_path("conf1", RP1, &asked));
    let back = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let silent = browser.get(&authorize_path("conf1", RP1, &asked));
    let silently = [&asked[..], &[("prompt", "none")]].concat();
    let denied = gatepost.get(&authorize_path("conf1", RP1, &silently));
    for (answer, carried) in [
        (back, "name=\"code\""),
        (silent, "name=\"code\""),
        (denied, "login_required"),
    ] {
        let text = answer.text();
        text.assert_says("<html lang=\"zh-Hans\">");
        text.assert_says("<h1>请稍候</h1>");
        text.assert_says(carried);
    }
}
