//! `gatepost doctor` on an installation behind TLS: nothing is said against a sound one, and of
//! each fault that is planted just that one is told.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::spawn;
use std::time::{Duration, SystemTime};

use gatepost::keys::master::{MasterSecret, Purpose};
use gatepost::keys::sealing::Sealer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::cluster::Cluster;
use crate::support::gatepost::{Gatepost, document};
use crate::support::http::free_port;
use crate::support::postgres::TestDatabase;
use crate::support::proxy::Proxy;
use crate::support::tables::rows_of;
use crate::support::waiting::{SOON, await_that};

/// One that commits honestly, and where roles of these tests can be made.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);

/// An authority, and what it signed for localhost, by how many days that is good.
struct Authority(PathBuf);

impl Authority {
    fn new(name: &str) -> Authority {
        let name = format!("gatepost-doctor-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let authority = Authority(directory);
        let own = "req -x509 -addext basicConstraints=critical,CA:TRUE -keyout ca.key -out ca.pem -days 3";
        authority.openssl(own, &["-subj", "/CN=A CA of the tests"]);
        let request = "req -addext subjectAltName=DNS:localhost -keyout key.pem -out request.pem";
        authority.openssl(request, &["-subj", "/CN=localhost"]);
        for days in ["10", "60"] {
            let sign = "x509 -req -copy_extensions copy -in request.pem -CA ca.pem -CAkey ca.key -set_serial 7 -days";
            authority.openssl(sign, &[days, "-out", &format!("{days}.pem")]);
        }
        // Looked at within the second in which they were made, they are good for a day more.
        let made = SystemTime::now();
        await_that("the second is over", SOON, || {
            made.elapsed().is_ok_and(|since| since.as_secs() > 0)
        });
        authority
    }

    /// One that ended on 1 April 2020: `x509` makes none that did not begin today.
    fn past(&self) {
        let rules = "[ca]\ndefault_ca = own\n[own]\ndatabase = index.txt\nrand_serial = yes\nnew_certs_dir = .\n\
                     default_md = sha256\npolicy = any\ncopy_extensions = copy\n[any]\ncommonName = supplied\n";
        fs::write(self.0.join("ca.cnf"), rules).unwrap();
        fs::write(self.0.join("index.txt"), "").unwrap();
        let words = "ca -config ca.cnf -batch -notext -cert ca.pem -keyfile ca.key -in request.pem -out past.pem";
        let year = "-startdate 20200101000000Z -enddate 20200401120000Z";
        self.openssl(words, &year.split(' ').collect::<Vec<_>>());
    }

    fn openssl(&self, words: &str, arguments: &[&str]) {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -config /dev/null".split(' ');
        let key = key.filter(|_| words.starts_with("req") && !words.contains("-newkey"));
        let mut openssl = Command::new("openssl");
        openssl.args(words.split(' ')).args(key).args(arguments);
        let answer = openssl.current_dir(&self.0).output().unwrap();
        let said = String::from_utf8_lossy(&answer.stderr);
        assert!(answer.status.success(), "{words}: {said}");
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How the proxy stands: its certificate, by days, and its fault.
type Manner = Arc<Mutex<(&'static str, &'static str)>>;

/// A Gatepost behind a proxy that ends TLS.
struct Scene {
    gatepost: Gatepost,
    authority: Authority,
    manner: Manner,
    role: String,
}

impl Scene {
    fn start(name: &str) -> Scene {
        let (authority, port) = (Authority::new(name), free_port());
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let database = TestDatabase::empty_in(CLUSTER.url.clone());
        let role = format!("role_{}", database.schema);
        let schema = &database.schema;
        database.run(&format!(
            "CREATE ROLE {role} LOGIN; ALTER SCHEMA {schema} OWNER TO {role}"
        ));
        let base_url = format!("https://localhost:{port}");
        let settings = [
            ("GATEPOST_BASE_URL", &*base_url),
            ("GATEPOST_CA_FILE", &authority.file("ca.pem")),
            ("GATEPOST_BOUND_SESSIONS", "on"),
            ("GATEPOST_DATABASE_URL", &as_role(&database.url, &role)),
        ];
        let mut gatepost = Gatepost::prepare_over(database, &settings);
        let mut document = document();
        // A scheme of one's own is weaker than an address.
        let clients = document["clients"].as_array_mut().unwrap();
        clients.retain(|client| client["client_id"] != "native");
        gatepost.apply(&document);
        gatepost.serve();
        let manner = Manner::new(Mutex::new(("60", "")));
        let (shared, directory, behind) = (Arc::clone(&manner), authority.0.clone(), gatepost.port);
        spawn(move || {
            for visitor in listener.incoming().map_while(Result::ok) {
                let (days, fault) = *shared.lock().unwrap();
                let directory = directory.clone();
                spawn(move || pass_on(visitor, &directory, days, fault, behind));
            }
        });
        Scene {
            gatepost,
            authority,
            manner,
            role,
        }
    }

    fn stand(&self, days: &'static str, fault: &'static str) {
        *self.manner.lock().unwrap() = (days, fault);
    }

    /// Exit code and findings.
    fn examined(&self, arguments: &[&str]) -> (i32, Vec<(String, String)>) {
        let doctor = [&["doctor", "--json"], arguments].concat();
        let output = self.gatepost.run(&doctor, "");
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |finding: &Value, member: &str| finding[member].as_str().unwrap().to_owned();
        let findings = told["findings"].as_array().unwrap().iter();
        let findings = findings
            .map(|finding| (text(finding, "verdict"), text(finding, "text")))
            .collect();
        (output.status.code().unwrap(), findings)
    }

    /// Exit code, and what is not well. A machine that is busy with other things may be found slow:
    /// then it is asked once more.
    fn faults(
        &self,
        arguments: &[&str],
        are_expected: impl Fn(&[(String, String)]) -> bool,
    ) -> (i32, Vec<(String, String)>) {
        let mut examinations = (0..3).map(|_| {
            let (code, mut findings) = self.examined(arguments);
            findings.retain(|(verdict, _)| verdict != "ok");
            (code, findings)
        });
        let first = examinations.next().unwrap();
        if are_expected(&first.1) {
            return first;
        }
        let found = examinations.find(|(_, found)| are_expected(found));
        found.unwrap_or(first)
    }

    /// That nothing is found.
    fn assert_sound(&self, case: &str, arguments: &[&str]) {
        let (code, findings) = self.examined(arguments);
        let are_good = findings.iter().all(|(verdict, _)| verdict == "ok");
        assert!(code == 0 && are_good, "{case}: {findings:#?}");
    }

    /// That this fault is found, and nothing else.
    fn assert_alone(&self, what: &str, arguments: &[&str], verdict: &str, words: &str) {
        let is_alone = |told: &[(String, String)]| {
            told.len() == 1 && told[0].0 == verdict && told[0].1.contains(words)
        };
        let (code, told) = self.faults(arguments, is_alone);
        assert!(is_alone(&told), "{what}: {told:#?}");
        assert_eq!(code, i32::from(verdict == "fails"), "{what}");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.gatepost.stop();
        let drops = format!("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", self.role);
        self.gatepost.run_sql(&drops);
    }
}

fn as_role(url: &str, role: &str) -> String {
    url.replace("postgres://postgres@", &format!("postgres://{role}@"))
}

/// A copy of the tools with a server beside it that does this. Both are written by somebody else:
/// what this process has open for writing, nobody runs.
fn beside(directory: &Path, script: &str) -> PathBuf {
    let tool = directory.join("gatepost");
    let lay =
        "cp \"$0\" \"$1\" && printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1d\" && chmod 755 \"$1d\"";
    let laid = Command::new("sh")
        .args(["-c", lay, env!("CARGO_BIN_EXE_gatepost")])
        .args([tool.as_os_str(), script.as_ref()])
        .status();
    assert!(laid.unwrap().success());
    tool
}

/// Its host and port.
fn place(url: &str) -> &str {
    let (_, place) = url.split_once('@').unwrap();
    place.split_once('/').unwrap().0
}

/// One request, passed on as a sound proxy does it but for its fault.
fn pass_on(
    visitor: TcpStream,
    directory: &std::path::Path,
    days: &str,
    fault: &str,
    behind: u16,
) -> Option<()> {
    let chain = CertificateDer::pem_file_iter(directory.join(format!("{days}.pem"))).unwrap();
    let key = PrivateKeyDer::from_pem_file(directory.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let tls = tls.unwrap().with_no_client_auth();
    let chain = chain.map(Result::unwrap).collect();
    let tls = tls.with_single_cert(chain, key).unwrap();
    if fault == "RSA" && offers_rsa_alone(&visitor) {
        return take_rsa(visitor, directory);
    }
    let mut visitor = StreamOwned::new(ServerConnection::new(Arc::new(tls)).unwrap(), visitor);
    let head = read_until(&mut visitor, b"\r\n\r\n")?;
    let mut lines: Vec<String> = head.trim_end().lines().map(str::to_owned).collect();
    let value = |name: &str| {
        let mut lines = lines.iter();
        lines.find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned))
    };
    let mut length = value("content-length:").map_or(0, |length| length.trim().parse().unwrap());
    let is_chunked = value("transfer-encoding:").is_some();
    let mut body = vec![0; length];
    visitor.read_exact(&mut body).ok()?;
    if is_chunked {
        // One chunk, and the end: made whole.
        let chunks = read_until(&mut visitor, b"\r\n0\r\n\r\n")?;
        body = chunks.split("\r\n").nth(1).unwrap().as_bytes().to_vec();
        length = body.len();
        lines.retain(|line| !line.to_lowercase().starts_with("transfer-encoding"));
        lines.push(format!("Content-Length: {length}"));
    }
    spoil(fault, &mut lines);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let refusal = |status: &str| format!("HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n");
    let mut answer = match (fault, lines[0]) {
        ("short heads", _) if head.len() > 4_096 => refusal("431"),
        ("no chunks", _) if is_chunked => refusal("502"),
        ("chunks refused", _) if is_chunked => refusal("411"),
        ("limits refreshes", line) if line.contains(" /session/refresh ") => refusal("429"),
        (_, line) if line.starts_with("POST") && fault.starts_with("no posts ") => {
            refusal(fault.trim_start_matches("no posts "))
        }
        ("short bodies", _) if length > 32_768 => refusal("413"),
        ("metrics", "GET /metrics HTTP/1.1") => {
            String::from("HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\ngatepost_build_info 1")
        }
        ("own answer", line) if line.contains("/healthz?") => {
            String::from("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        _ => {
            let is_claim = |line: &&&str| line.to_lowercase().starts_with("x-forwarded-for");
            let claims: Vec<&str> = lines.iter().filter(is_claim).copied().collect();
            let is_scheme = |line: &str| line.to_lowercase().starts_with("x-forwarded-proto");
            let keeps = |line: &&&str| {
                let is_own = line.starts_with("connection");
                let passes = fault == "spoofs proto" || !is_scheme(line);
                !is_own && !is_claim(line) && passes
            };
            let mut passed: Vec<&str> = lines.iter().filter(keeps).copied().collect();
            match fault {
                "drops" => {}
                "spoofs" => passed.extend(&claims),
                "adds" => passed.extend([&claims[..], &["X-Forwarded-For: 192.0.2.7"]].concat()),
                _ => passed.push("X-Forwarded-For: 192.0.2.7"),
            }
            let mut server = TcpStream::connect(("127.0.0.1", behind)).ok()?;
            let head = format!("{}\r\nConnection: close\r\n\r\n", passed.join("\r\n"));
            server.write_all(&[head.as_bytes(), &body].concat()).ok()?;
            let mut answer = Vec::new();
            server.read_to_end(&mut answer).ok()?;
            String::from_utf8(answer).unwrap()
        }
    };
    if fault != "no HSTS" {
        let hsts = "\r\nStrict-Transport-Security: max-age=31536000\r\n";
        answer = answer.replacen("\r\n", hsts, 1);
    }
    match fault {
        "issuer" => answer = answer.replace("issuer\":\"https://l", "issuer\":\"https://L"),
        "path" => answer = answer.replace("; Path=/", "; Path=/x"),
        "domain" => answer = answer.replace("; Secure", "; Secure; Domain=localhost"),
        "cookies" => answer = answer.replace("; Secure", "; Sekure"),
        "drops DPoP-Nonce" => answer = answer.replace("DPoP-Nonce: ", "X-Other: "),
        "drops DPoP-Nonce of 4xx" if answer.starts_with("HTTP/1.1 4") => {
            answer = answer.replace("DPoP-Nonce: ", "X-Other: ");
        }
        "drops DPoP-Nonce of 200" if answer.starts_with("HTTP/1.1 200") => {
            answer = answer.replace("DPoP-Nonce: ", "X-Other: ");
        }
        "changes DPoP-Nonce" => answer = answer.replace("DPoP-Nonce: ", "DPoP-Nonce: no-"),
        "repeats DPoP-Nonce" => {
            answer = answer.replace("DPoP-Nonce: ", "DPoP-Nonce: doctor\r\nDPoP-Nonce: ");
        }
        "own 400" if answer.starts_with("HTTP/1.1 400") => {
            answer = String::from("HTTP/1.1 400 No\r\nContent-Length: 4\r\n\r\nOops");
        }
        "drops challenges" => answer = answer.replace("Secure-Session-Challenge: ", "X-Other: "),
        "changes bound cookies" => answer = answer.replace("-bound-", "-other-"),
        "pages for refreshes" if answer.contains("-bound-") => {
            answer = answer.replace("Content-Length: 0", "Content-Length: 2") + "ok";
        }
        "joins challenges" => answer = answer.replace("\r\nWWW-Authenticate: DPoP ", ", DPoP "),
        "own 401" if answer.starts_with("HTTP/1.1 401") => {
            answer = String::from("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n");
        }
        _ => {}
    }
    visitor.write_all(answer.as_bytes()).ok()?;
    visitor.conn.send_close_notify();
    visitor.flush().ok()
}

fn read_until(visitor: &mut impl Read, end: &[u8]) -> Option<String> {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        let mut byte = [0];
        visitor.read_exact(&mut byte).ok()?;
        read.extend(byte);
    }
    Some(String::from_utf8(read).unwrap())
}

/// Does to the header fields what a bad proxy does.
fn spoil(fault: &str, lines: &mut Vec<String>) {
    let is = |line: &String, name: &str| line.to_lowercase().starts_with(&format!("{name}:"));
    match fault {
        "drops cookies" => lines.retain(|line| !is(line, "cookie")),
        "drops authorization" => lines.retain(|line| !is(line, "authorization")),
        "cuts" => lines.iter_mut().for_each(|line| line.truncate(4_096)),
        "drops proofs" => lines.retain(|line| !is(line, "secure-session-response")),
        "drops identifiers" => lines.retain(|line| !is(line, "sec-secure-session-id")),
        "drops DPoP" => lines.retain(|line| !is(line, "dpop")),
        "drops DPoP at PAR" if lines[0].contains("/connect/par") => {
            lines.retain(|line| !is(line, "dpop"));
        }
        "drops DPoP below /scim/" if lines[0].contains(" /scim/") => {
            lines.retain(|line| !is(line, "dpop"));
        }
        "drops DPoP below /admin/" if lines[0].contains(" /admin/") => {
            lines.retain(|line| !is(line, "dpop"));
        }
        "drops If-Match below /scim/" if lines[0].contains(" /scim/") => {
            lines.retain(|line| !is(line, "if-match"));
        }
        "reverses" => lines[1..].reverse(),
        "passes one" => {
            let second = lines.iter().rposition(|line| is(line, "dpop"));
            second.map(|index| lines.remove(index));
        }
        "cuts DPoP" => lines
            .iter_mut()
            .filter(|line| is(line, "dpop"))
            .for_each(|line| line.truncate(1_024)),
        "joins" if lines.iter().any(|line| is(line, "dpop")) => {
            let proofs: Vec<String> = lines.extract_if(.., |line| is(line, "dpop")).collect();
            let [first, second] = &proofs[..] else {
                panic!("{proofs:?}");
            };
            lines.push(format!("{first}, {}", &second["DPoP: ".len()..]));
        }
        _ => {}
    }
}

/// Whether its first message is the one that no TLS library of today sends.
fn offers_rsa_alone(visitor: &TcpStream) -> bool {
    let mut hello = [0; 512];
    let length = visitor.peek(&mut hello).unwrap();
    // The suites of TLS 1.3 are in any other.
    let mut suites = hello[..length].windows(2);
    !suites.any(|suite| suite == [0x13, 0x01])
}

/// Has a real OpenSSL answer its first message.
fn take_rsa(mut visitor: TcpStream, directory: &std::path::Path) -> Option<()> {
    let port = free_port();
    let mut openssl = Command::new("openssl");
    let line = "-cert rsa.pem -key rsa.key -quiet -cipher AES128-GCM-SHA256 -tls1_2";
    openssl.args(["s_server", "-accept", &port.to_string()]);
    openssl.args(line.split(' ')).stdin(Stdio::piped());
    let mut openssl = openssl.current_dir(directory).spawn().unwrap();
    let mut server = loop {
        if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
            break server;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let mut bytes = [0; 4_096];
    let length = visitor.read(&mut bytes).unwrap();
    server.write_all(&bytes[..length]).unwrap();
    let length = server.read(&mut bytes).unwrap();
    openssl.kill().unwrap();
    openssl.wait().unwrap();
    visitor.write_all(&bytes[..length]).ok()
}

#[test]
fn a_sound_installation_is_found_sound_with_and_without_what_serves_it() {
    let mut scene = Scene::start("sound");
    let (code, faults) = scene.faults(&[], |found| found.is_empty());
    assert!(code == 0 && faults.is_empty(), "{faults:#?}");
    let (_, findings) = scene.examined(&[]);
    for words in [
        "settings: every name is known",
        "database: Postgres ",
        "database: a commit takes ",
        "database: a round trip takes ",
        "whether pg_dump runs cannot be seen from here",
        "database: schema and issuer fit",
        "ms off the database's",
        "secret: it opens every key and secret",
        "keys: RS256 signs since ",
        "registry: every client and identity provider is in order",
        "it answers, and is the issuer",
        "the certificate is good for 59 days",
        "proxy: bodies and cookies pass, /metrics does not; a body in chunks is made whole",
        "proxy: long addresses and header fields pass",
        "proxy: proofs of possession arrive, two lines as two, and their nonces and challenges",
        "proxy: bound sessions are refreshed",
        "proxy: it sends the address of the visitor, here 192.0.2.7,",
    ] {
        let found = findings.iter().filter(|(_, text)| text.contains(words));
        assert_eq!(found.count(), 1, "{words}: {findings:#?}");
    }
    let told = scene.gatepost.run_line("doctor");
    let begins = "ok    settings: every name is known, every value fits\nok    database: ";
    assert!(told.starts_with(begins), "{told}");
    scene.gatepost.stop();
    let asked = "do the proxy and `gatepost serve` run?";
    scene.assert_alone("not serving", &[], "fails", asked);
}

/// What a proxy does wrong, the verdict on it, and its words.
const FAULTS: &str = "
drops | fails | seems to come from 127.0.0.1: have it set
spoofs | fails | visitors can choose their address
adds | weak | it adds to the X-Forwarded-For that a visitor sends
spoofs proto | weak | it passes on the X-Forwarded-Proto of a visitor
own answer | fails | refuses our nonce
issuer | fails | byte for byte
cookies | fails | cookies arrive changed, or not at all
path | fails | cookies arrive changed, or not at all
domain | fails | cookies arrive changed, or not at all
no posts 405 | fails | a POST to /connect/token gets 405, and not from Gatepost
no posts 403 | fails | a POST to /connect/token gets 403, and not from Gatepost
no HSTS | weak | Strict-Transport-Security
short heads | weak | an address of 7000 characters gets 431, Cookie of 5023 characters gets 431,
cuts | weak | of Cookie 4088 of 5023 characters arrive, of Authorization 4081 of 5007 characters
drops cookies | fails | it drops Cookie: have it pass them on
drops authorization | fails | it drops Authorization: have it pass them on
drops DPoP | weak | proxy: of two lines of DPoP 0 arrive at /connect/token, /connect/par, /connect/userinfo, so clients
drops DPoP at PAR | weak | proxy: of two lines of DPoP 0 arrive at /connect/par, so clients
cuts DPoP | weak | of DPoP 2036 of 2399 characters arrive
joins | weak | of two lines of DPoP 1 arrives at
own 400 | fails | a POST to /connect/token gets 400, and not from Gatepost: have the proxy pass answers on
drops DPoP-Nonce | weak | it drops DPoP-Nonce from answers
joins challenges | weak | of two lines of WWW-Authenticate 1 come back with 401
own 401 | weak | of two lines of WWW-Authenticate 0 come back with 401
short bodies | weak | a body of 64 KiB gets 413
no chunks | weak | a body in chunks gets 502
drops identifiers | fails | drops or cuts Sec-Secure-Session-Id: a POST to /session/refresh gets 401, not 403, so
drops proofs | fails | it drops or cuts Secure-Session-Response: a POST to /session/refresh gets 403, not 200
drops challenges | fails | it drops or changes Secure-Session-Challenge, so no session stays bound
changes bound cookies | fails | it changes the cookies of a refresh
pages for refreshes | fails | it puts a page in the place of a refresh
limits refreshes | fails | a POST to /session/refresh gets 429, not 403
RSA | weak | RSA key exchange is taken
metrics | weak | everybody can read /metrics
";

#[test]
fn what_is_wrong_with_the_proxy_is_found_alone() {
    let mut scene = Scene::start("proxy");
    let rsa = "req -x509 -newkey rsa:2048 -nodes -config /dev/null -days 3 -subj /CN=localhost -keyout rsa.key -out";
    scene.authority.openssl(rsa, &["rsa.pem"]);
    scene.authority.past();
    for [fault, verdict, words] in rows_of(FAULTS) {
        scene.stand("60", fault);
        scene.assert_alone(fault, &[], verdict, words);
    }
    scene.stand("10", "");
    scene.assert_alone("ends", &[], "weak", "the certificate ends in 9 days");
    scene.stand("past", "");
    let ended = "the server's certificate ended on 1 April 2020: renew it";
    scene.assert_alone("ended", &[], "fails", ended);
    scene.stand("60", "chunks refused");
    let (_, findings) = scene.examined(&[]);
    let is_told = |(_, text): &(String, String)| text.ends_with("a body in chunks is answered 411");
    assert!(findings.iter().any(is_told), "{findings:#?}");
    scene.stand("60", "");
    let trusted = ["--trusted-proxies", "10.0.0.0/8"];
    let unbelieved = "Gatepost does not believe it";
    scene.assert_alone("unbelieved", &trusted, "fails", unbelieved);
    let elsewhere = Authority::new("elsewhere");
    let file = elsewhere.file("ca.pem");
    let unknown = "of no authority that is trusted here";
    scene.assert_alone("unknown", &["--ca-file", &file], "fails", unknown);
    let another = format!("{}\n", "A".repeat(44));
    let secret = scene.gatepost.private_file("another", &another);
    let secret = secret.to_str().unwrap();
    scene.gatepost.set("GATEPOST_SECRET_FILE", secret);
    let (code, findings) = scene.examined(&[]);
    assert_eq!(code, 1, "{findings:#?}");
    let mut broken = findings.iter().filter(|(verdict, _)| verdict == "fails");
    let (_, first) = broken.next().unwrap();
    first.assert_says("lacks the line that opens signing key ");
    let (_, last) = broken.next_back().unwrap();
    last.assert_says("refuses our nonce");
}

#[test]
fn what_is_wrong_with_settings_and_role_is_found_alone() {
    let mut scene = Scene::start("settings");
    let (schema, role) = (scene.gatepost.database.schema.clone(), scene.role.clone());
    // Settings.
    scene.gatepost.set("GATEPOST_LISTENS", "x");
    let nearest = "GATEPOST_LISTENS is not a setting; the nearest is GATEPOST_LISTEN";
    scene.assert_alone("unknown", &[], "fails", nearest);
    scene.gatepost.unset("GATEPOST_LISTENS");
    let both = scene.gatepost.binary.clone();
    let own = env!("CARGO_PKG_VERSION");
    let told = |beside: &str| {
        format!("this is gatepost {own}, and beside it is {beside}: install both, and reload")
    };
    scene.gatepost.binary = beside(&scene.authority.0, "echo gatepostd 0.0.9");
    scene.assert_alone("another server", &[], "weak", &told("gatepostd 0.0.9"));
    fs::remove_file(scene.authority.0.join("gatepostd")).unwrap();
    scene.assert_alone("no server", &[], "weak", &told("no gatepostd"));
    scene.gatepost.binary = both;
    let env = scene.authority.file("env");
    fs::write(&env, "# GATEPOST_DATABASE_URL=postgres://u:p@h/d\n").unwrap();
    fs::set_permissions(&env, Permissions::from_mode(0o644)).unwrap();
    let told = format!("can read the database password in {env}: chmod 0640 it");
    scene.assert_alone("env file", &["--env-file", &env], "weak", &told);
    let text = scene.authority.file("logo.png");
    fs::write(&text, "no picture").unwrap();
    let nothing = "/nowhere/logo.png cannot be read (No such file";
    let no_picture = "logo.png cannot be read (it is no picture)";
    let connections = "a reload may need 1800 connections";
    let no_ca = "/nowhere/ca.pem";
    for (option, value, verdict, words) in [
        ("--brand-logo", "/nowhere/logo.png", "weak", nothing),
        ("--brand-logo", &text, "weak", no_picture),
        ("--ca-file", no_ca, "fails", "GATEPOST_CA_FILE: "),
        ("--database-connections", "900", "weak", connections),
    ] {
        scene.assert_alone(value, &[option, value], verdict, words);
    }
    scene.gatepost.set("GATEPOST_ADMIN_ROLE", "office");
    scene.gatepost.set("GATEPOST_ADMIN_BOUND_SESSION", "on");
    let off = ["--bound-sessions", "off"];
    scene.assert_alone("closed", &off, "weak", "nobody gets to /admin");
    scene.gatepost.unset("GATEPOST_ADMIN_ROLE");
    let command = scene.gatepost.command();
    let mut environment = command.get_envs();
    let secret = environment.find(|(name, _)| *name == "GATEPOST_SECRET_FILE");
    let secret = secret.unwrap().1.unwrap();
    fs::set_permissions(secret, Permissions::from_mode(0o644)).unwrap();
    scene.assert_alone("secret", &[], "fails", "mode 0644 lets others at it");
    fs::set_permissions(secret, Permissions::from_mode(0o600)).unwrap();
    // The role. `postgres` made the schema, and is a superuser.
    let url = as_role(&scene.gatepost.database.url, &role);
    let stranger = format!("stranger_{schema}");
    let database = Arc::clone(&scene.gatepost.database);
    database.run(&format!("CREATE ROLE {stranger} LOGIN"));
    let of_stranger = as_role(&database.url, &stranger);
    scene.gatepost.set("GATEPOST_DATABASE_URL", &of_stranger);
    let told = format!("search_path is {schema}, and there is no");
    scene.assert_alone("no rights", &[], "fails", &told);
    database.run(&format!(
        "GRANT USAGE, CREATE ON SCHEMA {schema} TO {stranger};
         GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {stranger}"
    ));
    let told = format!("must own every table of schema {schema} and");
    scene.assert_alone("rights, and another owner", &[], "fails", &told);
    database.run(&format!("DROP OWNED BY {stranger}; DROP ROLE {stranger}"));
    scene.gatepost.set("GATEPOST_DATABASE_URL", &database.url);
    scene.assert_alone("superuser", &[], "weak", "role postgres is a superuser");
    let nowhere = url.replace("/postgres?", "/nowhere?");
    scene.gatepost.set("GATEPOST_DATABASE_URL", &nowhere);
    let missing = "there is no database of that name";
    scene.assert_alone("no database", &[], "fails", missing);
}

#[test]
fn what_is_wrong_with_database_keys_and_registry_is_found_alone() {
    let mut scene = Scene::start("database");
    let (schema, role) = (scene.gatepost.database.schema.clone(), scene.role.clone());
    let url = as_role(&scene.gatepost.database.url, &role);
    // A schema named before pg_catalog has a clock of its own.
    scene.gatepost.database.run(&format!(
        "CREATE SCHEMA late_{schema} AUTHORIZATION {role};
         CREATE FUNCTION late_{schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
         'SELECT pg_catalog.clock_timestamp() + interval ''40 seconds'''"
    ));
    let path = |path: &str| {
        let found = format!("search_path%3D{schema}");
        url.replace(&found, &format!("{found}{path}"))
    };
    let late = path(&format!(",late_{schema},pg_catalog"));
    scene.gatepost.set("GATEPOST_DATABASE_URL", &late);
    scene.assert_alone("clock", &[], "fails", "above 30 s Gatepost is not ready");
    for [setting, verdict, words] in rows_of(
        "
        synchronous_commit%3Doff                     | weak  | synchronous_commit is off
        default_transaction_isolation%3Dserializable | fails | transactions must be read committed
    ",
    ) {
        let set = path(&format!("%20-c%20{setting}"));
        scene.gatepost.set("GATEPOST_DATABASE_URL", &set);
        scene.assert_alone(setting, &[], verdict, words);
    }
    scene.gatepost.set("GATEPOST_DATABASE_URL", &url);
    let database = Arc::clone(&scene.gatepost.database);
    let run = |sql: &str| database.run(sql);
    run("UPDATE signing_keys SET retires_at = clock_timestamp() WHERE algorithm = 'ES256'");
    let too_long = "which is too long: does `gatepost serve` run?";
    scene.assert_alone("key", &[], "weak", too_long);
    run("UPDATE signing_keys SET retires_at = unpublished_at");
    run("ALTER TABLE grants RENAME TO grants_away");
    run("CREATE TABLE grants (LIKE grants_away) PARTITION BY RANGE (day)");
    run(&format!("ALTER TABLE grants OWNER TO {role}"));
    scene.assert_alone("partitions", &[], "fails", "partitions run out");
    run("DROP TABLE grants; ALTER TABLE grants_away RENAME TO grants");
    run(
        "UPDATE schema_migrations SET level = -level WHERE level = (SELECT max(level) FROM schema_migrations)",
    );
    let (_, findings) = scene.examined(&[]);
    let is_told =
        |(verdict, text): &(String, String)| verdict == "fails" && text.contains("schema level");
    assert!(findings.iter().any(is_told), "{findings:#?}");
    run("UPDATE schema_migrations SET level = -level WHERE level < 0");
    // What is registered.
    let weak = json!({"client_id": "weak", "redirect_uris": ["https://weak.example/cb"], "response_types": ["id_token token"],
        "grant_types": ["implicit"], "scope": "openid", "allow_access_tokens_via_browser": true});
    let lasting = json!({"client_id": "lasting", "redirect_uris": ["https://lasting.example/cb"], "scope": "openid",
        "access_token_lifetime": "30d"});
    let refused = json!({"client_id": "refused", "redirect_uris": ["https://refused.example/cb"], "scope": "profile"});
    for (client, verdict, words) in [
        (weak, "weak", "these say what could be stronger"),
        (lasting, "weak", "these say what could be stronger"),
        (refused, "fails", "these say what fails"),
    ] {
        let client_id = client["client_id"].as_str().unwrap().to_owned();
        scene.gatepost.apply(&json!({"clients": [client]}));
        let told = format!("{words}: `gatepost client test {client_id}`");
        scene.assert_alone(&client_id, &[], verdict, &told);
        let remove = format!("client remove {client_id}");
        scene.gatepost.run_line(&remove);
    }
    let dead = format!("https://localhost:{}", free_port());
    let described = format!("{dead}/agent.json");
    let agent = |enabled: bool| {
        json!({"client_id": described, "metadata_document": true, "scope": "openid",
            "redirect_hosts": ["app.example"], "enabled": enabled})
    };
    scene.gatepost.apply(&json!({"clients": [agent(true)]}));
    let told = format!("these say what fails: `gatepost client test {described}`");
    scene.assert_alone("metadata document", &[], "fails", &told);
    scene.gatepost.apply(&json!({"clients": [agent(false)]}));
    let provider = json!({"name": "dead", "client_id": "gatepost", "client_secret": "x".repeat(32), "issuer": dead});
    let provider = json!({"identity_providers": [provider]});
    scene.gatepost.apply(&provider);
    let told = "these say what fails: `gatepost idp test dead`";
    scene.assert_alone("provider", &[], "fails", told);
}

/// How proofs and their nonces get lost, and what is said of it. `PROOFS` are taken at these
/// addresses.
const LOST: &str = "
passes one | of two lines of DPoP 1 arrives at PROOFS, so a request with two proofs
drops DPoP-Nonce | it drops DPoP-Nonce from answers at PROOFS, so clients
drops DPoP-Nonce of 4xx | it drops DPoP-Nonce from answers with 400 at PROOFS, so clients
drops DPoP-Nonce of 200 | it drops DPoP-Nonce from answers with 200 at PROOFS, so clients
changes DPoP-Nonce | it changes DPoP-Nonce in answers at PROOFS, so clients
repeats DPoP-Nonce | it repeats DPoP-Nonce in answers at PROOFS, so clients
";

/// The same where SCIM and the registration over HTTP are on.
const LOST_BELOW: &str = "
drops DPoP below /scim/ | proxy: of two lines of DPoP 0 arrive at /scim/v2/Users, so clients
drops DPoP below /admin/ | proxy: of two lines of DPoP 0 arrive at /admin/export, so clients
cuts DPoP | of DPoP 2036 of 2399 characters arrive at PROOFS, /scim/v2/Users, /admin/export, so clients
";

#[test]
fn where_proofs_and_their_nonces_get_lost_is_told() {
    let scene = Scene::start("proofs");
    let both = ["--scim", "on", "--admin-api", "on"];
    for (fault, arguments) in [
        ("", &both[..]),
        ("reverses", &both),
        // What is off is not asked.
        ("drops DPoP below /scim/", &both[2..]),
        ("drops DPoP below /admin/", &both[..2]),
        ("drops If-Match below /scim/", &both[2..]),
    ] {
        scene.stand("60", fault);
        scene.assert_sound(fault, arguments);
    }
    let dropped = "it drops If-Match: have it pass them on";
    scene.assert_alone("drops If-Match below /scim/", &both, "fails", dropped);
    for (table, arguments) in [(LOST, &[][..]), (LOST_BELOW, &both)] {
        for [fault, words] in rows_of(table) {
            scene.stand("60", fault);
            let at = "/connect/token, /connect/par, /connect/userinfo";
            scene.assert_alone(fault, arguments, "weak", &words.replace("PROOFS", at));
        }
    }
}

#[test]
fn what_proofs_suffer_fails_where_a_client_cannot_do_without() {
    let scene = Scene::start("provers");
    let client = |client_id: &str, member: &str, enabled: bool| {
        json!({"client_id": client_id, "redirect_uris": ["https://prover.example/cb"], "response_types": ["code"],
            "grant_types": ["authorization_code"], "scope": "openid", "token_endpoint_auth_method": "none",
            "enabled": enabled, member: true})
    };
    let apply = |client: Value| scene.gatepost.apply(&json!({"clients": [client]}));
    apply(client("bound", "dpop_bound_access_tokens", false));
    apply(client("renewing", "dpop_nonce", false));
    let mut bank = json!({"client_id": "bank", "profile": "fapi2", "redirect_uris": ["https://bank.example/cb"],
        "scope": "openid", "jwks_uri": "https://bank.example/jwks", "enabled": false});
    apply(bank.clone());
    let told = |fault, verdict: &str, words: &str| {
        scene.stand("60", fault);
        scene.assert_alone(fault, &[], verdict, words);
    };
    let no_nonce = "so clients that need a nonce get no good one: have";
    let unnamed = "so clients that prove their key fail: have";
    told("drops DPoP", "weak", unnamed);
    told("drops DPoP-Nonce of 4xx", "weak", no_nonce);
    apply(client("bound", "dpop_bound_access_tokens", true));
    let bound = "so clients that prove their key fail, here bound: have";
    told("drops DPoP", "fails", bound);
    told("cuts DPoP", "fails", bound);
    told("drops DPoP-Nonce", "weak", no_nonce);
    apply(client("renewing", "dpop_nonce", true));
    bank["enabled"] = json!(true);
    apply(bank);
    let provers = "so clients that prove their key fail, here bank, bound, renewing: have";
    told("drops DPoP at PAR", "fails", provers);
    let with_nonce = "so clients that need a nonce get no good one, here bank, renewing: have";
    for fault in [
        "drops DPoP-Nonce",
        "drops DPoP-Nonce of 4xx",
        "repeats DPoP-Nonce",
    ] {
        told(fault, "fails", with_nonce);
    }
    // These work nevertheless.
    let by_refusal = "get the next one by a refusal";
    told("drops DPoP-Nonce of 200", "weak", by_refusal);
    let joined = "so a request with two proofs is not seen to have two";
    told("joins", "weak", joined);
}

/// A real PgBouncer before the cluster.
struct Pooler(Child);

impl Pooler {
    /// Answers the database's URL by way of it.
    fn start(scene: &Scene, mode: &str) -> (Pooler, String) {
        let port = free_port();
        let url = as_role(&scene.gatepost.database.url, &scene.role);
        let place = place(&url);
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = users\npool_mode = {mode}\n\
             ignore_startup_parameters = options, extra_float_digits\n",
            place.split_once(':').unwrap().1
        );
        fs::write(scene.authority.0.join("pgbouncer.ini"), settings).unwrap();
        let users = format!("\"{}\" \"\"\n", scene.role);
        fs::write(scene.authority.0.join("users"), users).unwrap();
        let known = "/usr/sbin/pgbouncer";
        let is_there = Path::new(known).exists();
        let mut command = Command::new(if is_there { known } else { "pgbouncer" });
        // It does not run as root.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.args(["-u", "nobody"]);
        }
        command.args(["-q", "pgbouncer.ini"]);
        let command = command.current_dir(&scene.authority.0);
        let pooler = Pooler(command.spawn().unwrap());
        await_that("it listens", SOON, || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        (pooler, url.replace(place, &format!("127.0.0.1:{port}")))
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_pooler_that_loses_statements_is_found_and_one_that_keeps_them_is_fine() {
    let mut scene = Scene::start("pooler");
    // PgBouncer drops the options in the URL.
    let (role, schema) = (scene.role.clone(), scene.gatepost.database.schema.clone());
    let set = format!("ALTER ROLE {role} SET search_path = {schema}");
    scene.gatepost.run_sql(&set);
    let (session, url) = Pooler::start(&scene, "session");
    scene.gatepost.set("GATEPOST_DATABASE_URL", &url);
    scene.assert_sound("as it is", &[]);
    drop(session);
    for mode in ["transaction", "statement"] {
        let (_pooler, url) = Pooler::start(&scene, mode);
        scene.gatepost.set("GATEPOST_DATABASE_URL", &url);
        for _ in 0..3 {
            scene.assert_alone(mode, &[], "fails", "in PgBouncer set pool_mode = session");
        }
    }
}

#[test]
fn a_database_far_away_is_told_with_what_fits_no_more() {
    let mut scene = Scene::start("distance");
    let proxy = Proxy::before(&scene.gatepost.database.url);
    let url = as_role(&scene.gatepost.database.url, &scene.role);
    let through = url.replace(place(&url), &format!("127.0.0.1:{}", proxy.port));
    scene.gatepost.set("GATEPOST_DATABASE_URL", &through);
    scene.assert_sound("as it is", &[]);
    // What is told of the commit is without the way there.
    let cannot_fit = "which from 230 ms on cannot fit into the 4.5 s of a request";
    let is_dead = "from 500 ms an idle connection counts as dead";
    for (each_way, verdict, words) in [
        (60, "weak", "a password grant waits "),
        (150, "weak", cannot_fit),
        (260, "fails", is_dead),
    ] {
        proxy.set_distance(Duration::from_millis(each_way));
        scene.assert_alone(&format!("{each_way} ms each way"), &[], verdict, words);
    }
}

#[test]
fn a_process_tells_what_it_saw_to_a_nonce_of_its_secret_once_and_for_a_minute() {
    let gatepost = Gatepost::start();
    let id: Vec<u8> = gatepost.database.value("SELECT id FROM installation", &[]);
    let id: [u8; 16] = id.try_into().unwrap();
    let sealed = |byte: u8, purpose: Purpose, seconds: i64| {
        use base64::Engine;
        let secret = base64::engine::general_purpose::STANDARD.encode([byte; 32]);
        let secret = MasterSecret::parse(&secret).unwrap();
        let derived = secret.derive(&id, &gatepost.base_url);
        let micros = gatepost.database.now().micros() + seconds * 1_000_000;
        Sealer::new(&derived, purpose).seal_text("gpd_", &micros)
    };
    let asked = |nonce: &str| {
        let headers = [
            ("X-Forwarded-For", "192.0.2.7, 10.0.0.1"),
            ("X-Forwarded-For", "192.0.2.8"),
        ];
        let path = format!("/healthz?doctor={nonce}");
        gatepost.send("GET", &path, &headers, b"").text()
    };
    let other_secret = sealed(43, Purpose::Doctor, 0);
    let other_purpose = sealed(42, Purpose::AccessToken, 0);
    let [early, late] = [70, -61].map(|seconds| sealed(42, Purpose::Doctor, seconds));
    for refused in [&*other_secret, &other_purpose, &early, &late, "gpd_", ""] {
        assert_eq!(asked(refused), "ok\n");
    }
    let [first, second] = [-50, 0].map(|seconds| sealed(42, Purpose::Doctor, seconds));
    let told: Value = serde_json::from_str(&asked(&second)).unwrap();
    assert!(asked(&first).starts_with('{'), "another, though older");
    let fields = ["192.0.2.7, 10.0.0.1", "192.0.2.8"];
    let lengths = json!({"Authorization": [], "Cookie": [], "DPoP": [], "If-Match": []});
    let whole = json!({"source": "192.0.2.8", "x_forwarded_for": fields, "x_forwarded_proto": [], "lengths": lengths});
    assert_eq!(told, whole);
    // Of what is secret it tells the length, and at addresses that programs call, too.
    let headers = [
        ("Authorization", "Bearer canary"),
        ("DPoP", "one"),
        ("DPoP", "two"),
        ("Cookie", "a=canary"),
    ];
    let at_userinfo = |nonce: &str| {
        let path = format!("/connect/userinfo?doctor={nonce}");
        gatepost.send("GET", &path, &headers, b"")
    };
    let third = sealed(42, Purpose::Doctor, 1);
    let told = at_userinfo(&third);
    assert_eq!(told.headers_named("dpop-nonce"), ["doctor"]);
    let lengths = json!({"Authorization": [13], "Cookie": [8], "DPoP": [3, 3], "If-Match": []});
    told.assert_member("lengths", lengths);
    for refused in [&third, &other_secret] {
        at_userinfo(refused).assert_status(401);
    }
    let fourth = sealed(42, Purpose::Doctor, 2);
    let refusal = at_userinfo(&format!("{fourth}&refuse"));
    assert_eq!(refusal.status, 400);
    assert_eq!(refusal.headers_named("dpop-nonce"), ["doctor"]);
    assert_eq!(refusal.json()["lengths"]["DPoP"], json!([3, 3]));
    for refused in [
        &fourth,
        &format!("{fourth}&refuse"),
        &format!("{other_secret}&refuse"),
    ] {
        at_userinfo(refused).assert_status(401);
    }
    for used in [&second, &first] {
        assert_eq!(asked(used), "ok\n", "answered before");
    }
    assert_eq!(gatepost.get("/healthz").text(), "ok\n");
    assert!(!gatepost.log().contains("gpd_"));
}

#[test]
fn where_gatepost_itself_is_the_base_url_no_proxy_is_judged() {
    let gatepost = Gatepost::start();
    let output = gatepost.run(&["doctor"], "");
    let told = String::from_utf8(output.stdout).unwrap();
    told.assert_says("ok    proxy: not looked at, as this base URL is for this machine alone");
    assert!(!told.contains("TLS") && !told.contains("fails"), "{told}");
}
