//! `/clients/{client_id}/logo`: logos come from us, are fetched when somebody looks, and are
//! pictures.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::flow::{authorize_path, sign_in};
use crate::support::gatepost::{ALICE_PASSWORD, Gatepost, RP1, RP2, document};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR and so on";

/// Somebody else's web server: answers by path, and remembers who asked for what.
struct Pictures {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Pictures {
    fn start() -> Pictures {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pictures = Pictures {
            port: listener.local_addr().unwrap().port(),
            asked: Arc::default(),
        };
        let asked = Arc::clone(&pictures.asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, asked) = (stream.unwrap(), Arc::clone(&asked));
                thread::spawn(move || {
                    let mut request = [0; 4_096];
                    let length = stream.read(&mut request).unwrap_or(0);
                    let request = String::from_utf8_lossy(&request[..length]).into_owned();
                    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                    asked.lock().unwrap().push(path.clone());
                    let (status, body) = match path.as_str() {
                        "/logo.png" | "/declared.html" => ("200 OK", PNG.to_vec()),
                        "/large.png" => ("200 OK", [PNG, &[0; 256 * 1_024]].concat()),
                        "/drawing.svg" => {
                            ("200 OK", b"<svg><script>alert(1)</script></svg>".to_vec())
                        }
                        "/missing.png" => ("404 Not Found", PNG.to_vec()),
                        "/moved.png" => ("302 Found\r\nLocation: /logo.png", Vec::new()),
                        "/slow.png" => {
                            thread::sleep(Duration::from_secs(20));
                            ("200 OK", PNG.to_vec())
                        }
                        _ => ("200 OK", b"<!doctype html><p>Hello".to_vec()),
                    };
                    let head = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
                });
            }
        });
        pictures
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Clients as `conf1`, each with the picture of that path.
    fn document(&self, clients: &[(&str, &str)]) -> Value {
        let mut document = document();
        let usual = document["clients"][0].clone();
        document["clients"][0]["logo_uri"] =
            json!(format!("http://127.0.0.1:{}/logo.png", self.port));
        for (client_id, path) in clients {
            let mut client = usual.clone();
            client["client_id"] = json!(client_id);
            client["logo_uri"] = json!(format!("http://127.0.0.1:{}{path}", self.port));
            document["clients"].as_array_mut().unwrap().push(client);
        }
        document
    }
}

const LOOPBACK: (&str, &str) = ("GATEPOST_OUTBOUND_ALLOW", "127.0.0.0/8");

#[test]
fn a_registered_picture_is_fetched_once_and_served_by_us() {
    let pictures = Pictures::start();
    let gatepost = Gatepost::start_with(
        &pictures.document(&[("a/b?c.%2F#d", "/declared.html")]),
        &[LOOPBACK],
    );
    let mut browser = gatepost.browser();
    let page = browser.visit(&authorize_path("conf1", RP1, &[("prompt", "consent")]));
    assert_eq!(
        page.attribute("client-logo", "src").as_deref(),
        Some("/clients/conf1/logo")
    );
    page.assert_says_not_for("nobody else learns who signs in", "127.0.0.1");
    // Drawing a page fetches nothing.
    assert_eq!(pictures.asked(), Vec::<String>::new());
    for _ in 0..2 {
        let logo = browser.get("/clients/conf1/logo");
        logo.assert_status(200);
        logo.assert_header("content-type", "image/png");
        assert_eq!(logo.body.as_slice(), PNG);
        logo.assert_header("cache-control", "public, max-age=3600");
        logo.assert_header("content-security-policy", "default-src 'none'; sandbox");
    }
    assert_eq!(pictures.asked(), ["/logo.png"]);
    let answer = sign_in(&mut browser, &page, "alice", ALICE_PASSWORD);
    let consent = browser.follow(answer);
    assert_eq!(
        consent.attribute("client-logo", "src").as_deref(),
        Some("/clients/conf1/logo")
    );
    // What a server calls its picture does not count, and a client may have any name.
    let page = browser.visit(&authorize_path("a/b?c.%2F#d", RP1, &[("prompt", "login")]));
    let address = page.attribute("client-logo", "src").unwrap();
    assert_eq!(address, "/clients/a%2Fb%3Fc%2E%252F%23d/logo");
    browser
        .get(&address)
        .assert_header("content-type", "image/png");
    // Without a registered picture there is none, and nothing is asked of anybody.
    assert_eq!(
        browser
            .visit(&authorize_path("conf2", RP2, &[("prompt", "login")]))
            .attribute("client-logo", "src"),
        None
    );
    for path in [
        "/clients/conf2/logo",
        "/clients/nobody/logo",
        "/clients//logo",
        "/clients/%FF/logo",
        "/clients/%00/logo",
        "/clients/conf1%00/logo",
        &format!("/clients/{}/logo", "x".repeat(4_000)),
        "/clients/conf1",
        "/clients/conf1/logo/",
        "/clients/conf1/logo.png",
        "/clients/logo",
        "/clients/..%2Fstatic/logo",
    ] {
        assert_eq!(gatepost.get(path).status, 404, "{path}");
    }
    assert_eq!(gatepost.post("/clients/conf1/logo", &[], &[]).status, 405);
    assert_eq!(pictures.asked(), ["/logo.png", "/declared.html"]);
}

#[test]
fn what_is_no_picture_is_not_served_and_not_asked_for_again_at_once() {
    let pictures = Pictures::start();
    let unfit = [
        ("svg", "/drawing.svg"),
        ("html", "/page.html"),
        ("large", "/large.png"),
        ("missing", "/missing.png"),
        ("moved", "/moved.png"),
        ("slow", "/slow.png"),
    ];
    let mut registered = pictures.document(&unfit);
    let gatepost = Gatepost::start_with(&registered, &[LOOPBACK]);
    for (client_id, path) in unfit {
        for _ in 0..2 {
            // One of ours in its place: a page cannot take an empty picture away.
            let answer = gatepost.get(&format!("/clients/{client_id}/logo"));
            answer.assert_status_for(path, 200);
            answer.assert_header_for(path, "content-type", "image/svg+xml");
            answer.assert_header_for(path, "cache-control", "no-store");
            answer.assert_says_not_for(path, "script");
        }
        assert_eq!(
            pictures
                .asked()
                .iter()
                .filter(|asked| *asked == path)
                .count(),
            1,
            "{path}"
        );
    }
    // A disabled client has no picture, be it one that was fetched.
    assert_eq!(gatepost.get("/clients/conf1/logo").body.as_slice(), PNG);
    registered["clients"][0]["enabled"] = json!(false);
    gatepost.apply(&registered);
    assert_eq!(gatepost.get("/clients/conf1/logo").status, 404);
}

#[test]
fn addresses_that_our_requests_must_not_reach_give_no_picture() {
    let pictures = Pictures::start();
    let gatepost = Gatepost::start_with(&pictures.document(&[]), &[]);
    let answer = gatepost.get("/clients/conf1/logo");
    answer.assert_header("content-type", "image/svg+xml");
    assert_eq!(pictures.asked(), Vec::<String>::new());
    assert!(
        gatepost.log().contains("GATEPOST_OUTBOUND_ALLOW"),
        "{}",
        gatepost.log()
    );
}
