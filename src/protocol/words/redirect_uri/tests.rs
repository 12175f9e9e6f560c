//! Attacks on redirect URIs, as tables.

use proptest::prelude::*;

use super::*;
use crate::authorize::authorize_request::fixtures::{client, public_client};

fn matches(registered: &str, sent: &str) -> bool {
    let target = RedirectTarget::match_registered(sent, &public_client(&[registered]));
    assert!(target.as_ref().is_none_or(|target| target.uri() == sent));
    target.is_some()
}

#[test]
fn what_a_client_may_register() {
    #[rustfmt::skip]
    let rows = [
        "https://rp1.example/cb", "https://rp1.example", "https://rp1.example?x=1",
        "https://rp1.example:8443/cb?a=b&c=%20d", "https://RP1.example/CB", "https://[2001:DB8::1]:8443/cb",
        "https://192.0.2.1/cb", "https://rp1.0xg/cb", "https://my_host.example/cb~(1);v=2,3", "https://rp1.example/%C3%A9",
        "http://localhost/cb", "http://localhost:3000/cb", "http://127.0.0.1/cb", "http://127.0.0.1:1/cb",
        "http://[::1]/cb", "http://[::1]:65535/cb",
    ];
    for uri in rows {
        assert_eq!(check_registered(uri, false), Ok(()), "{uri}");
        assert_eq!(check_registered(uri, true), Ok(()), "{uri}");
    }
    for uri in [
        "com.example.app:/cb",
        "com.example.app:///cb",
        "com.example.app://cb",
        "myapp+x-1://host/cb?a=b",
    ] {
        assert_eq!(check_registered(uri, true), Ok(()), "{uri}");
        assert!(check_registered(uri, false).is_err(), "confidential: {uri}");
    }
}

#[test]
fn the_refusal_names_the_rule() {
    #[rustfmt::skip]
    let rows = [
        ("https://rp1.example/#x", "fragment"), ("https://rp1.example\\x", "backslash"),
        ("https://rp1.example/*", "wildcard"), ("https://rp1.example/ ", "spaces"),
        ("https://rp1.example/%x", "hexadecimal"), ("https://user@rp1.example/", "user info"),
        ("http://rp1.example/", "use https"), ("javascript:x", "never"), ("com.example.app:x", ":/"),
        ("HTTPS://rp1.example/", "lower case"),
    ];
    for (uri, rule) in rows {
        let broken = check_registered(uri, true).unwrap_err();
        assert!(broken.contains(rule), "{uri}: {broken}");
    }
}

#[test]
fn a_uri_has_two_thousand_characters_at_most() {
    let of_length = |length: usize| format!("https://rp1.example/{}", "x".repeat(length - 20));
    assert_eq!(check_registered(&of_length(2_000), true), Ok(()));
    assert!(check_registered(&of_length(2_001), true).is_err());
}

#[test]
fn after_a_sign_out_only_what_is_registered_for_it_is_gone_to() {
    let registered = ["https://rp1.example/out", "com.example.app:/out"].map(str::to_owned);
    let mut app = public_client(&["https://rp1.example/cb"]);
    app.post_logout_redirect_uris = registered.to_vec();
    let mut web = client();
    web.post_logout_redirect_uris = registered.to_vec();
    let matched = |sent: &str, client: &Client| {
        RedirectTarget::match_post_logout(sent, client).map(|target| target.uri().to_owned())
    };
    for sent in &registered {
        assert_eq!(matched(sent, &app).as_ref(), Some(sent));
    }
    for sent in [
        "https://rp1.example/cb",
        "https://rp1.example/out/",
        "com.example.app:/",
    ] {
        assert_eq!(matched(sent, &app), None, "{sent}");
    }
    // A client with a secret is on a server, which no custom scheme leads to.
    assert_eq!(matched(&registered[0], &web).as_ref(), Some(&registered[0]));
    assert_eq!(matched(&registered[1], &web), None);
}

#[test]
fn a_target_has_the_origin_that_browsers_write() {
    for (registered, origin) in [
        ("https://RP1.example:443/cb", Some("https://rp1.example")),
        ("http://localhost:3000/cb", Some("http://localhost:3000")),
        ("com.example.app:/cb", None),
    ] {
        let app = public_client(&[registered]);
        let target = RedirectTarget::match_registered(registered, &app).unwrap();
        assert_eq!(target.origin().as_deref(), origin, "{registered}");
    }
}

fn refused_for_everyone(uri: &str) {
    assert!(check_registered(uri, true).is_err(), "public: {uri:?}");
    assert!(
        check_registered(uri, false).is_err(),
        "confidential: {uri:?}"
    );
}

#[test]
fn what_is_not_well_formed_no_client_may_register() {
    #[rustfmt::skip]
    let rows = [
        "", "/cb", "//rp1.example/cb", "rp1.example/cb", "https:", "https:/rp1.example/cb", "https://", "https:///cb",
        "https://?x", "https://:443/cb", "https://rp1.example:/cb", "https://rp1.example:0/cb",
        "https://rp1.example:080/cb", "https://rp1.example:+80/cb", "https://rp1.example:65536/cb",
        "https://rp1.example:80:80/cb", "https://rp1..example/cb", "https://.example/cb", "https://[::1/cb",
        "https://[::1]x/cb", "https://[]/cb", "https://[rp1]/cb", "https://rp1.example/[cb]",
        "https://rp1.example/cb#", "https://rp1.example/cb#x", "https://user@rp1.example/cb",
        "https://user:pass@rp1.example/cb", "https://@rp1.example/cb", "https://rp1.example\\cb",
        "https:\\\\rp1.example/cb", "https://rp1.example/ cb", " https://rp1.example/cb", "https://rp1.example/cb ",
        "https://rp1.example/cb\n", "https://rp1.example/\tcb", "https://rp1.example/\0",
        "https://rp1.example/\u{7f}", "https://rp1.example/\u{e9}", "https://rp1\u{3002}example/cb",
        "https://rp1.example/*", "https://*.rp1.example/cb", "https://rp1.example/.*", "https://rp1.example/{id}",
        "https://rp1.example/<b>", "https://rp1.example/\"", "https://rp1.example/%", "https://rp1.example/%4",
        "https://rp1.example/%zz", "https://rp1%2eexample/cb", "https://rp1.examp%E2%93%81e/cb",
        "https://rp1%E3%80%82example/cb", "https://rp1.example%EF%BC%8Fevil/cb", "https://127.1/cb",
        "https://0X7F.0.0.1/cb", "https://2130706433/cb", "https://127.0.0.01/cb", "https://rp1.1/cb",
        "https://[2001:db8:0::1]/cb", "https://[::ffff:192.0.2.1]/cb", "https://[::ffff:c000:201]/cb",
    ];
    for uri in rows {
        refused_for_everyone(uri);
    }
    refused_for_everyone(&format!("https://rp1.example/{}", "a".repeat(2000)));
}

#[test]
fn which_schemes_and_hosts_no_client_may_register() {
    #[rustfmt::skip]
    let rows = [
        "http://rp1.example/cb", "http://localhost.rp1.example/cb", "http://127.0.0.1.rp1.example/cb",
        "http://127.0.0.2/cb", "http://127.1/cb", "http://0.0.0.0/cb", "http://[::2]/cb",
        "http://[0:0:0:0:0:0:0:1]/cb", "http://user@127.0.0.1/cb", "HTTPS://rp1.example/cb", "JavaScript:alert(1)",
        "javascript:alert(1)", "javascript://rp1.example/%0aalert(1)", "data:text/html,x", "vbscript:x",
        "file:///etc/passwd", "blob:https://rp1.example/x", "about:/blank", "filesystem:https://rp1.example/x",
        "view-source:https://rp1.example/", "ws://rp1.example/", "wss://rp1.example/", "ftp://rp1.example/",
        "mailto:a@rp1.example", "tel:/1", "sms:/1", "intent://x/", "chrome://settings/", "localhost:8080/cb",
        "urn:ietf:wg:oauth:2.0:oob", "com.example.app:", "com.example.app:cb", "com.example.app://user@host/cb",
        "1app:/cb", ":/cb",
    ];
    for uri in rows {
        refused_for_everyone(uri);
    }
}

#[test]
fn every_forbidden_scheme_is_forbidden_however_it_goes_on() {
    for scheme in FORBIDDEN_SCHEMES {
        for rest in ["x", "/x", "//rp1.example/x", "///x", ""] {
            assert!(
                check_registered(&format!("{scheme}:{rest}"), true).is_err(),
                "{scheme}:{rest}"
            );
        }
    }
}

#[test]
fn only_the_registered_bytes_match() {
    assert!(matches("https://rp1.example/cb", "https://rp1.example/cb"));
    assert!(matches(
        "https://rp1.example/cb?x=1",
        "https://rp1.example/cb?x=1"
    ));
    #[rustfmt::skip]
    let rows = [
        "https://rp1.example.evil.tld/cb", "https://rp1.example/cbX", "https://rp1.example/cb.evil",
        "https://rp1.example/cb/", "https://rp1.example/cb/../x", "https://rp1.example/cb?",
        "https://rp1.example/cb?x=1", "https://rp1.example/cb#", "https://rp1.example/cb%20",
        "https://rp1.example/c%62", "https://rp1.example/", "https://rp1xexample/cb", "https://rp1.example:443/cb",
        "https://rp1.example:8443/cb", "https://rp1.example@evil.example/cb",
        "https://evil.example/https://rp1.example/cb", "https://rp1.example\\@evil.example/cb",
        "http://rp1.example/cb", "HTTPS://rp1.example/cb", "https://RP1.example/cb", "https://rp1.example/CB",
        "//rp1.example/cb", "https://rp1.examp%E2%93%81e/cb", "https://rp1%E3%80%82example/cb",
        "https://rp1.example%EF%BC%8Fevil/cb", "https://rp1.example/cb\u{0}", " https://rp1.example/cb", "",
    ];
    for sent in rows {
        assert!(!matches("https://rp1.example/cb", sent), "{sent:?}");
    }
    assert!(!matches("https://rp1.example/.*", "https://rp1.example/a"));
    assert!(!matches(
        "https://rp1.example/cb?x=1",
        "https://rp1.example/cb"
    ));
}

#[test]
fn what_must_not_be_registered_does_not_match_even_if_it_was() {
    #[rustfmt::skip]
    let rows = [
        "javascript:alert(1)", "data:text/html,x", "vbscript:x", "http://rp1.example/cb", "https://rp1.example/*",
        "https://rp1.example/#x",
    ];
    for uri in rows {
        assert!(!matches(uri, uri), "{uri}");
    }
    let confidential = Client {
        redirect_uris: vec!["com.example.app:/cb".to_owned()],
        ..client()
    };
    assert_eq!(
        RedirectTarget::match_registered("com.example.app:/cb", &confidential),
        None
    );
    assert_eq!(
        RedirectTarget::match_registered("https://rp1.example/cb", &public_client(&[])),
        None
    );
}

#[test]
fn any_port_is_for_loopback_registered_without_one() {
    for port in ["1", "80", "54321", "65535"] {
        assert!(
            matches(
                "http://127.0.0.1/cb",
                &format!("http://127.0.0.1:{port}/cb")
            ),
            "{port}"
        );
        assert!(
            matches("http://[::1]/cb", &format!("http://[::1]:{port}/cb")),
            "{port}"
        );
        let by_name = format!("http://localhost:{port}/cb");
        assert!(matches("http://localhost/cb", &by_name), "{by_name}");
    }
    #[rustfmt::skip]
    let rows = [
        "http://127.0.0.1:1/other", "http://127.0.0.1:1/cb?x=1", "http://127.0.0.1:1/cb/", "http://127.0.0.1:1",
        "http://127.0.0.1:0/cb", "http://127.0.0.1:01/cb", "http://127.0.0.1:65536/cb", "http://127.0.0.1:+1/cb",
        "http://127.0.0.1:/cb", "http://127.0.0.1:1:2/cb", "http://127.0.0.1:1@evil.example/cb",
        "http://127.0.0.1@evil.example/cb", "http://127.0.0.1.evil.example/cb", "http://127.0.0.1.evil.example:1/cb",
        "http://localhost:1/cb", "http://[::1]:1/cb", "http://127.0.0.2:1/cb", "https://127.0.0.1/cb",
        "https://127.0.0.1:1/cb",
    ];
    for sent in rows {
        assert!(!matches("http://127.0.0.1/cb", sent), "{sent}");
    }
    #[rustfmt::skip]
    let rows = [
        "http://localhost:1/other", "http://localhost:1/cb?x=1", "http://localhost:1", "http://localhost:0/cb",
        "http://localhost:/cb", "http://localhost:1@evil.example/cb", "http://localhost.evil.example:1/cb",
        "http://localhost.:1/cb", "http://LOCALHOST:1/cb", "http://127.0.0.1:1/cb", "http://[::1]:1/cb",
        "https://localhost:1/cb", "http://evil.localhost:1/cb",
    ];
    for sent in rows {
        assert!(!matches("http://localhost/cb", sent), "{sent}");
    }
    assert!(!matches(
        "http://localhost:8080/cb",
        "http://localhost:8081/cb"
    ));
    assert!(!matches(
        "http://127.0.0.1:8080/cb",
        "http://127.0.0.1:8081/cb"
    ));
    assert!(!matches("http://127.0.0.1:8080/cb", "http://127.0.0.1/cb"));
    assert!(!matches(
        "https://rp1.example/cb",
        "https://rp1.example:444/cb"
    ));
}

#[test]
fn any_port_of_localhost_is_for_clients_without_a_secret_and_for_sign_ins_alone() {
    let registered = |host: &str| vec![format!("http://{host}/cb")];
    for (host, by_a_secret) in [("localhost", false), ("127.0.0.1", true), ("[::1]", true)] {
        let (web, app) = (client(), public_client(&[]));
        for (client, fits) in [(web, by_a_secret), (app, true)] {
            let client = Client {
                redirect_uris: registered(host),
                post_logout_redirect_uris: registered(host),
                ..client
            };
            let sent = format!("http://{host}:4711/cb");
            let target = RedirectTarget::match_registered(&sent, &client);
            assert_eq!(
                target.is_some(),
                fits,
                "{host}: {:?}",
                client.authentication
            );
            assert_eq!(
                RedirectTarget::match_post_logout(&sent, &client),
                None,
                "{host}"
            );
        }
    }
}

#[test]
fn origins_are_written_as_browsers_write_them() {
    #[rustfmt::skip]
    let rows = [
        ("https://RP1.example/cb", Some("https://rp1.example")),
        ("https://rp1.example:443/cb", Some("https://rp1.example")),
        ("https://rp1.example:8443?x", Some("https://rp1.example:8443")),
        ("https://rp1.example:80/", Some("https://rp1.example:80")),
        ("http://localhost:80/", Some("http://localhost")), ("http://[::1]:3000/cb", Some("http://[::1]:3000")),
        ("com.example.app://host/cb", None), ("https://user@rp1.example/", None), ("https:///cb", None),
        ("rp1.example", None),
    ];
    for (uri, origin) in rows {
        assert_eq!(origin_of(uri).as_deref(), origin, "{uri}");
    }
}

#[test]
fn a_target_knows_where_it_leads() {
    let target = |uri: &str| RedirectTarget::match_registered(uri, &public_client(&[uri])).unwrap();
    assert!(target("http://localhost:3000/cb").is_loopback());
    assert!(target("http://[::1]/cb").is_loopback());
    assert!(!target("https://rp1.example/localhost").is_loopback());
    assert!(!target("https://localhost.example/").is_loopback());
    assert!(!target("com.example.app://localhost/cb").is_loopback());
    assert!(target("com.example.app://localhost/cb").is_custom_scheme());
    assert!(!target("https://rp1.example/cb").is_custom_scheme());
}

#[test]
fn an_absolute_uri_has_a_scheme_and_no_fragment() {
    for uri in [
        "https://api.example",
        "urn:example:orders",
        "https://api.example/a?b",
    ] {
        assert!(is_absolute_uri(uri), "{uri}");
    }
    for uri in [
        "",
        "orders",
        "/orders",
        "https:",
        "https://api.example/#x",
        "https://api.example/ x",
        "h\u{e9}:x",
    ] {
        assert!(!is_absolute_uri(uri), "{uri:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(uri in "\\PC{0,40}") {
        let _ = (check_registered(&uri, true), origin_of(&uri), is_absolute_uri(&uri));
    }

    #[test]
    fn near_uris_never_panic_and_never_pass_with_a_dangerous_part(uri in "(https?|data|app)?:?/{0,3}[a-z@:.\\[\\]0-9#*\\\\%]{0,20}[/?#]?[a-z]{0,4}") {
        if check_registered(&uri, true).is_ok() {
            prop_assert!(!uri.contains(['#', '\\', '*', ' ']));
            let authority = uri.split("//").nth(1).unwrap_or_default().split(['/', '?']).next().unwrap_or_default();
            prop_assert!(!authority.contains('@'));
            prop_assert!(matches(&uri, &uri));
        }
    }

    #[test]
    fn another_text_never_matches_a_web_uri(sent in "https://rp1\\.example(:[0-9]{1,5})?/[a-z]{0,3}\\??") {
        prop_assert_eq!(matches("https://rp1.example/cb", &sent), sent == "https://rp1.example/cb");
    }
}
