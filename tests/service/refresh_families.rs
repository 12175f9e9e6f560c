//! Refresh when answers get lost and when everybody comes at once: never a lost family, never a
//! forked one.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::flow::{basic, signed_in, userinfo};
use crate::support::gatepost::Gatepost;
use crate::support::http::{Connection, encode};
use crate::support::offline::{CONF1, Party, REUSE, access, client, document, refresh};
use crate::support::waiting::until_served;

const OFFLINE: &str = "openid orders.read offline_access";

/// Passes requests on to the server whole, and answers cut: as many bytes as asked for, then
/// nothing.
struct CuttingProxy {
    listener: TcpListener,
    port: u16,
}

impl CuttingProxy {
    fn before(gatepost: &Gatepost) -> CuttingProxy {
        CuttingProxy {
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
            port: gatepost.port,
        }
    }

    /// Sends a refresh through; what arrived, and what the server had answered.
    fn refresh_cut_at(
        &self,
        party: Party,
        refresh_token: &str,
        bytes: usize,
    ) -> (Vec<u8>, Vec<u8>) {
        thread::scope(|scope| {
            let whole = scope.spawn(|| self.pass_one(bytes));
            let mut stream = TcpStream::connect(self.listener.local_addr().unwrap()).unwrap();
            let body = encode(&[
                ("grant_type", "refresh_token"),
                ("refresh_token", refresh_token),
            ]);
            let head = format!(
                "POST /connect/token HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: {}\r\n\
                 Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
                basic(party.client_id, party.secret.unwrap()),
                body.len()
            );
            stream.write_all(head.as_bytes()).unwrap();
            let mut arrived = Vec::new();
            stream.read_to_end(&mut arrived).unwrap();
            (arrived, whole.join().unwrap())
        })
    }

    fn pass_one(&self, bytes: usize) -> Vec<u8> {
        let (mut inside, _) = self.listener.accept().unwrap();
        let mut outside = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        outside
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let mut request = vec![0; 4_096];
        let mut length = 0;
        while !is_whole(&request[..length]) {
            length += inside.read(&mut request[length..]).unwrap();
        }
        outside.write_all(&request[..length]).unwrap();
        let mut answer = Vec::new();
        outside.read_to_end(&mut answer).unwrap();
        inside
            .write_all(&answer[..bytes.min(answer.len())])
            .unwrap();
        inside.shutdown(Shutdown::Write).unwrap();
        answer
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .unwrap();
    body.len() == length.parse::<usize>().unwrap()
}

fn json_of(answer: &[u8]) -> Value {
    let text = String::from_utf8_lossy(answer);
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

#[test]
fn an_answer_cut_at_any_byte_can_be_asked_for_again_and_the_family_lives() {
    let mut document = document();
    // Short answers, quick signatures: there are as many rounds as an answer has bytes.
    client(&mut document, "reuse")["refresh_token_usage"] = json!("rotate");
    client(&mut document, "reuse")["id_token_signed_response_alg"] = json!("EdDSA");
    let gatepost = Gatepost::start_with(&document, &[]);
    let proxy = CuttingProxy::before(&gatepost);
    let mut tokens = REUSE.tokens(&gatepost, &mut signed_in(&gatepost), OFFLINE);
    let mut connection = gatepost.connect();
    let (mut cut, mut longest) = (0, usize::MAX);
    while cut < longest {
        let presented = refresh(&tokens).to_owned();
        let (arrived, answered) = proxy.refresh_cut_at(REUSE, &presented, cut);
        assert_eq!(arrived.len(), cut.min(answered.len()));
        let lost = json_of(&answered);
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", presented.as_str()),
        ];
        let again = REUSE.post(&mut connection, "/connect/token", &form);
        assert_eq!(again.status, 200, "cut at {cut}: {}", again.text());
        let again = again.json();
        assert_eq!(refresh(&again), refresh(&lost), "cut at {cut}");
        assert_ne!(refresh(&again), presented);
        longest = answered.len();
        cut += 1;
        tokens = again;
    }
    assert!(cut > 500, "{cut}");
    assert_eq!(userinfo(&gatepost, access(&tokens)).status, 200);
    // A lost answer that nobody asks for again in time is a replay when it comes.
    let next = REUSE.refresh(&gatepost, refresh(&tokens)).json();
    gatepost.run_sql("UPDATE grants SET moved_at = moved_at - interval '31 seconds'");
    REUSE.assert_refresh_over(&gatepost, refresh(&tokens));
    REUSE.assert_refresh_over(&gatepost, refresh(&next));
    assert_eq!(userinfo(&gatepost, access(&next)).status, 401);
}

#[test]
fn sixteen_at_once_a_thousand_times_all_get_the_one_successor() {
    const ROUNDS: usize = 1_000;
    let mut document = document();
    client(&mut document, "conf1")["access_token_type"] = json!("reference");
    client(&mut document, "conf1")["id_token_signed_response_alg"] = json!("EdDSA");
    let gatepost = Gatepost::start_with(&document, &[]);
    let first = CONF1.tokens(&gatepost, &mut signed_in(&gatepost), OFFLINE);
    let mut current = refresh(&first).to_owned();
    let mut connections: Vec<Connection> = (0..16).map(|_| gatepost.connect()).collect();
    for round in 0..ROUNDS {
        let barrier = Barrier::new(16);
        let given: Vec<String> = thread::scope(|scope| {
            let (barrier, current) = (&barrier, current.as_str());
            let together =
                |connection| scope.spawn(move || refresh_together(barrier, connection, current));
            let threads: Vec<_> = connections.iter_mut().map(together).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(
            given
                .iter()
                .all(|other| *other == given[0] && *other != current),
            "round {round}: {given:?}"
        );
        current.clone_from(&given[0]);
    }
    let mut client = gatepost.database.client();
    let row = client
        .query_one("SELECT generation, revoked_at IS NULL FROM grants", &[])
        .unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, bool>(1)), (1_000, true));
    let counted = "SELECT count(*) FROM audit_events WHERE event = 'refreshed'";
    assert_eq!(
        client.query_one(counted, &[]).unwrap().get::<_, i64>(0),
        1_000
    );
    assert_eq!(CONF1.refresh(&gatepost, &current).status, 200);
}

/// The refresh token that one of those at the barrier gets.
fn refresh_together(barrier: &Barrier, connection: &mut Connection, token: &str) -> String {
    let form = [("grant_type", "refresh_token"), ("refresh_token", token)];
    barrier.wait();
    let answer = until_served(|| CONF1.post(connection, "/connect/token", &form));
    assert_eq!(answer.status, 200, "{}", answer.text());
    refresh(&answer.json()).to_owned()
}
