//! Against real servers on this machine. How servers that misbehave are borne, and how many of us
//! wait for them: `tests/service/federation_hostile.rs`.

mod servers;

use std::net::{IpAddr, TcpListener};

use super::*;
use servers::{Authority, Server};

fn allowing(blocks: &[&str], ca_file: Option<&Path>) -> Outbound {
    let blocks: Vec<Cidr> = blocks
        .iter()
        .map(|block| Cidr::parse(block).unwrap())
        .collect();
    Outbound::new(&blocks, ca_file, 4).unwrap()
}

fn client(ca_file: Option<&Path>) -> Outbound {
    allowing(&["127.0.0.0/8", "::1"], ca_file)
}

#[test]
fn an_answer_is_read_to_its_limit_and_no_redirect_is_followed() {
    let elsewhere = Server::plain("200 OK", "", "loot");
    let target = format!("Location: {}\r\n", elsewhere.url("http", "127.0.0.1"));
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let server = Server::plain(status, &target, "0123456789");
        let url = server.url("http", "127.0.0.1");
        let answer = client(None)
            .send(&OutboundRequest::get(&url).at_most(10))
            .unwrap();
        let posted = client(None)
            .send(&OutboundRequest::post_form(&url, &[("secret", "s")]))
            .unwrap();
        assert!(
            (300..400).contains(&answer.status) && posted == answer,
            "{status}"
        );
        assert_eq!(
            client(None).send(&OutboundRequest::get(&url).at_most(9)),
            Err(OutboundError::TooLong)
        );
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[test]
fn addresses_that_are_not_allowed_are_never_dialled() {
    let server = Server::plain("200 OK", "", "loot");
    for host in ["127.0.0.1", "localhost"] {
        for closed in [allowing(&[], None), allowing(&["10.0.0.0/8"], None)] {
            let refused = closed.send(&OutboundRequest::get(&server.url("http", host)));
            assert_eq!(refused, Err(OutboundError::AddressRefused), "{host}");
        }
    }
    // What a resolver makes of a name counts, also of names that look like none.
    for host in [
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "[::]",
    ] {
        let refused = allowing(&[], None)
            .send(&OutboundRequest::get(&server.url("https", host)))
            .unwrap_err();
        let never_found = matches!(refused, OutboundError::NameNotFound | OutboundError::Url(_));
        assert!(
            refused == OutboundError::AddressRefused || never_found,
            "{host}: {refused}"
        );
    }
    assert_eq!(server.connections(), 0);
    let everything = allowing(&["0.0.0.0/0", "::/0"], None);
    let odd = "http://10.0.0.1/|http://example.com/|ftp://127.0.0.1/|https://user@127.0.0.1/|https://127.0.0.1/#x|\
        https://127.0.0.1/\r\nX: y|https://|/keys|";
    for url in odd.split('|') {
        assert!(
            matches!(
                everything.send(&OutboundRequest::get(url)),
                Err(OutboundError::Url(_))
            ),
            "{url}"
        );
    }
}

#[test]
fn an_authority_that_the_operator_names_is_trusted_and_no_other() {
    let ours = Authority::new();
    let foreign = Authority::new();
    let server = Server::tls(&ours.certificate("DNS:localhost,IP:127.0.0.1"));
    for host in ["localhost", "127.0.0.1"] {
        let url = server.url("https", host);
        assert_eq!(
            client(Some(ours.file()))
                .send(&OutboundRequest::get(&url))
                .unwrap()
                .body,
            b"sealed"
        );
        for distrusting in [client(None), client(Some(foreign.file()))] {
            assert_eq!(
                distrusting.send(&OutboundRequest::get(&url)),
                Err(OutboundError::NotTrusted)
            );
        }
    }
    let other_name = Server::tls(&ours.certificate("DNS:elsewhere.example"));
    let refused = client(Some(ours.file()))
        .send(&OutboundRequest::get(&other_name.url("https", "localhost")));
    assert!(
        matches!(&refused, Err(OutboundError::Unusable(cause)) if cause.contains("certificate")),
        "{refused:?}"
    );
    for path in ["/nonexistent/ca.pem", "/dev/null", "Cargo.toml"] {
        let problem = Outbound::new(&[], Some(Path::new(path)), 1).unwrap_err();
        assert!(
            problem.starts_with("GATEPOST_CA_FILE: ") && problem.ends_with(path),
            "{problem}"
        );
    }
}

#[test]
fn a_server_is_slow_to_whoever_gave_it_time_and_not_to_whoever_came_late() {
    // Nobody accepts, so nobody answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let places_after = |within| {
        let outbound = client(None);
        let answer = outbound.send(&OutboundRequest::get(&url).within(within));
        assert_eq!(answer, Err(OutboundError::TooSlow));
        let places: Vec<_> = (0..2)
            .map_while(|_| outbound.take_place(&url).ok())
            .collect();
        places.len()
    };
    assert_eq!(places_after(KEPT), 1);
    // This thread may come to a halt for a while: not each time.
    assert!((0..5).any(|_| places_after(Duration::from_millis(20)) == 2));
}

#[test]
fn nothing_secret_is_printed() {
    let request = OutboundRequest::post_form("https://a.example/", &[("client_secret", "hunter2")]);
    let printed = format!("{:?}", request.header("Authorization", "Bearer hunter2"));
    assert!(
        printed.contains("a.example") && !printed.contains("hunter2"),
        "{printed}"
    );
    let bad = client(None).send(
        &OutboundRequest::get("http://127.0.0.1/").header("Authorization", "hunter2\r\nX: y"),
    );
    assert!(
        matches!(&bad, Err(OutboundError::Failed(cause)) if !cause.contains("hunter2")),
        "{bad:?}"
    );
}

#[test]
fn the_checked_address_is_the_dialled_one() {
    let resolver = CheckedResolver(vec![Cidr::parse("127.0.0.0/8").unwrap()]);
    let config = ureq::config::Config::builder().build();
    let timeout = ureq::unversioned::transport::NextTimeout::default();
    let uri = "https://localhost/".parse().unwrap();
    let found =
        ureq::unversioned::resolver::Resolver::resolve(&resolver, &uri, &config, timeout).unwrap();
    // `localhost` is ::1 as well on most machines; what is not allowed is left out.
    assert!(
        found
            .iter()
            .all(|address| address.ip() == IpAddr::from([127, 0, 0, 1]) && address.port() == 443)
    );
}
