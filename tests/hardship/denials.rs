//! A database that answers and does not do everything: rights and tables are missing, nothing can
//! be written, its clock went back. Whoever asks is told to come again, the operator what it is.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::{scope, spawn};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::claims::Says;
use crate::support::cluster::Cluster;
use crate::support::flow::{authorize_path, code, redeem, signed_in, text, userinfo};
use crate::support::gatepost::{Gatepost, RP1, document};
use crate::support::http::{Answer, ask_alone, free_address};
use crate::support::jwt::verified;
use crate::support::mailbox::Keys;
use crate::support::postgres::TestDatabase;
use crate::support::tables::rows_of;
use crate::support::waiting::{SOON, await_that};

/// Somebody who may do what the database's owner lets them.
const ROLE: &str = "not_the_owner";

fn readyz(admin: &str) -> String {
    ask_alone(admin, "GET /readyz").1
}

#[test]
fn a_process_whose_connections_are_all_in_use_is_degraded_and_says_so() {
    let admin = free_address();
    let settings = [
        ("GATEPOST_ADMIN_LISTEN", admin.as_str()),
        ("GATEPOST_WORKERS", "8"),
    ];
    let gatepost = Gatepost::start_with(&document(), &settings);
    let token = redeemed(&gatepost);
    await_that("it is ready", SOON, || readyz(&admin) == "ready\n");
    let mut other = gatepost.database.client();
    let mut locking = other.transaction().unwrap();
    let lock = "LOCK TABLE users IN ACCESS EXCLUSIVE MODE";
    locking.batch_execute(lock).unwrap();
    let until = Instant::now() + Duration::from_secs(8);
    let told = scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                while Instant::now() < until {
                    drop(userinfo(&gatepost, &token));
                }
            });
        }
        let mut told = BTreeSet::new();
        while Instant::now() < until {
            let asked = Instant::now();
            let (head, said) = ask_alone(&admin, "GET /readyz");
            assert!(head.starts_with("HTTP/1.1 200 "), "{head}: {said}");
            assert!(asked.elapsed() < Duration::from_secs(4), "{said}");
            told.insert(said);
        }
        told
    });
    locking.rollback().unwrap();
    let busy = "degraded: every database connection is in use\n";
    assert!(told.contains(busy), "{told:?}");
    await_that("it is ready again", SOON, || readyz(&admin) == "ready\n");
}

/// An access token of Alice's.
fn redeemed(gatepost: &Gatepost) -> String {
    let path = authorize_path("conf1", RP1, &[]);
    let code = code(&mut signed_in(gatepost), &path);
    text(&redeem(gatepost, &code).json(), "access_token").to_owned()
}

fn assert_come_again(answer: &Answer, case: &str) {
    assert_eq!(answer.status, 503, "{case}: {}", answer.text());
    assert!(answer.header("retry-after").is_some(), "{case}");
}

#[test]
fn what_the_database_denies_is_told_to_come_again_and_to_the_operator_once() {
    let cluster = Cluster::start();
    let database = TestDatabase::empty_in(cluster.url.clone());
    let schema = &database.schema;
    database.run(&format!(
        "CREATE ROLE {ROLE} LOGIN; GRANT ALL ON SCHEMA {schema} TO {ROLE}"
    ));
    let url = database.url.replacen("postgres@", &format!("{ROLE}@"), 1);
    let admin = free_address();
    let settings = [
        ("GATEPOST_DATABASE_URL", url.as_str()),
        ("GATEPOST_ADMIN_LISTEN", &admin),
    ];
    let mut gatepost = Gatepost::prepare_over(database, &settings);
    gatepost.apply(&document());
    gatepost.serve();
    let mut browser = signed_in(&gatepost);
    let path = authorize_path("conf1", RP1, &[]);
    let trial = |browser: &mut _| {
        let code = code(browser, &path);
        redeem(&gatepost, &code)
    };
    assert_eq!(trial(&mut browser).status, 200);
    assert_eq!(readyz(&admin), "ready\n");
    let owner = |sql: &str| gatepost.database.run(sql);
    let is_told = |line: &&str, cause: &str| line.contains(" ERROR ") && line.contains(cause);
    let told = |cause: &str| {
        let log = gatepost.log();
        log.lines().filter(|line| is_told(line, cause)).count()
    };
    let full = "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
                'BEGIN RAISE EXCEPTION USING ERRCODE = ''53100''; END';
                CREATE TRIGGER full_disk BEFORE INSERT ON grants FOR EACH ROW EXECUTE FUNCTION full_disk()";
    let read_only = |on: &str| format!("ALTER SYSTEM SET default_transaction_read_only = {on}");
    let reload = "SELECT pg_reload_conf()";
    let [on, off] = ["on", "off"].map(read_only);
    let (reload_on, reload_off) = (format!("{on}|{reload}"), format!("{off}|{reload}"));
    // Statements name the partitions that a process has seen, and the table where those are gone.
    let of_each = |name: &str, deed: &str| {
        format!(
            "DO $do$ DECLARE one text; BEGIN
             FOR one IN SELECT relname FROM pg_class
                 WHERE relname ~ '^{name}(_[0-9]+_[0-9]+)?$' AND relkind IN ('r', 'p')
             LOOP EXECUTE format('{deed}', one, substr(one, length('{name}') + 1)); END LOOP;
             END $do$"
        )
    };
    let revoke = of_each("grants", "REVOKE INSERT ON %1$s FROM not_the_owner");
    let grant = of_each("grants", "GRANT INSERT ON %1$s TO not_the_owner");
    let rename = of_each("grants", "ALTER TABLE %1$s RENAME TO lent%2$s");
    let back = of_each("lent", "ALTER TABLE %1$s RENAME TO grants%2$s");
    let room = "DROP TRIGGER full_disk ON grants";
    for (broken, mended, cause) in [
        (
            revoke.as_str(),
            grant.as_str(),
            "permission denied for table grants",
        ),
        (&rename, &back, "a table is missing"),
        (full, room, "its disk is full"),
        (&reload_on, &reload_off, "the database is read-only"),
    ] {
        assert_eq!(told(cause), 0, "{cause}");
        broken.split('|').for_each(owner);
        await_that("it is denied", SOON, || trial(&mut browser).status != 200);
        for _ in 0..3 {
            assert_come_again(&trial(&mut browser), cause);
        }
        await_that("the log tells why", SOON, || told(cause) > 0);
        assert_come_again(&trial(&mut browser), cause);
        assert_eq!(told(cause), 1, "{cause}");
        // A table that is gone has no partitions, and where nothing may be written no new
        // connection is taken: it may say that.
        let said = readyz(&admin);
        let is_plain = cause.starts_with("permission") || cause.contains("disk");
        assert!(said != "ready\n", "{cause}");
        let is_short = said.starts_with("degraded: the database denied something");
        assert!(!is_plain || is_short, "{cause}: {said}");
        // A session of the owner's is as read-only as any other, unless it says otherwise.
        let mut client = Client::connect(&gatepost.database.url, NoTls).unwrap();
        let writes = "SET default_transaction_read_only = off";
        for sql in [writes].into_iter().chain(mended.split('|')) {
            client.batch_execute(sql).unwrap();
        }
        await_that("all is done again", SOON, || {
            trial(&mut browser).status == 200
        });
    }
    let reads = format!("ALTER ROLE {ROLE} SET default_transaction_read_only = on");
    owner(&reads);
    let (_, address) = url.split_once('@').unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let twice = url.replace(address, &format!("{address},{address}"));
    gatepost.set("GATEPOST_DATABASE_URL", &twice);
    let said = String::from_utf8(gatepost.run(&["user", "list"], "").stderr).unwrap();
    assert!(said.matches("it takes no writes").count() == 2, "{said}");
    said.assert_says_not("permission denied");
}

#[test]
fn a_database_that_warns_whoever_connects_is_served() {
    let cluster = Cluster::start();
    let mut gatepost = Gatepost::prepare_over(TestDatabase::empty_in(cluster.url.clone()), &[]);
    gatepost.apply(&document());
    // As after an upgrade of the system: its collations have another version than when the database
    // was made.
    gatepost.database.run(
        "UPDATE pg_database SET datcollversion = 'another' WHERE datname = current_database()",
    );
    gatepost.serve();
    signed_in(&gatepost);
}

#[test]
fn a_fresh_installation_signs_though_the_databases_clock_goes_back_an_hour() {
    let mut gatepost = Gatepost::start_with_a_clock_of_its_own();
    gatepost.run_sql("UPDATE travelled SET seconds = -3600");
    gatepost.await_log("the clock set back", |log| {
        log.contains("ahead of the database's")
    });
    for started_anew in [false, true] {
        if started_anew {
            gatepost.stop();
            gatepost.serve();
        }
        let own = [("grant_type", "client_credentials")];
        let answer = gatepost.token("conf1", &own);
        assert_eq!(answer.status, 200, "{}", answer.text());
        verified(&gatepost, text(&answer.json(), "access_token"));
    }
}

#[test]
fn a_database_is_believed_by_a_certificate_of_its_own_name() {
    let cluster = Cluster::start();
    let database = TestDatabase::empty_in(cluster.url.clone());
    let mut gatepost = Gatepost::unprepared(database, &[]);
    let keys = Keys::make();
    let (ca, other_ca) = (keys.file("ca.pem"), keys.file("other-ca.pem"));
    let plain = gatepost.database.url.replacen("127.0.0.1", "localhost", 1);
    let mut said = |parameters: &str| {
        gatepost.set("GATEPOST_DATABASE_URL", &format!("{plain}{parameters}"));
        let output = gatepost.run(&["migrate"], "");
        let said = [output.stdout, output.stderr].concat();
        String::from_utf8(said).unwrap()
    };
    let verifying = |mode: &str, ca: &Path| format!("&sslmode={mode}&sslrootcert={}", ca.display());
    let modes = ["require", "verify-ca", "verify-full"];
    for mode in modes {
        let refused = said(&verifying(mode, &ca));
        refused.assert_says_for(format!("{mode}, no TLS"), "does not support TLS");
    }
    cluster.restart_with(&keys.file("wrong.pem"), &keys.file("wrong.key"));
    for mode in modes {
        let refused = said(&verifying(mode, &ca));
        refused.assert_says_for(format!("{mode}, another name"), "certificate");
    }
    cluster.restart_with(&keys.file("right.pem"), &keys.file("right.key"));
    for mode in modes {
        let refused = said(&verifying(mode, &other_ca));
        refused.assert_says_for(format!("{mode}, another CA"), "certificate");
        let refused = said(&format!("&sslmode={mode}"));
        refused.assert_says_for(format!("{mode}, the system's CAs"), "certificate");
        said(&verifying(mode, &ca)).assert_says_for(mode, "is ready");
    }
}

#[test]
fn what_a_certificate_of_the_database_lacks_is_said_in_words() {
    let cluster = Cluster::start();
    let database = TestDatabase::empty_in(cluster.url.clone());
    let schema = database.url.replacen("127.0.0.1", "localhost", 1);
    let mut gatepost = Gatepost::unprepared(database, &[]);
    let keys = Keys::make();
    let localhost = "-addext subjectAltName=DNS:localhost";
    let own = "req -x509 -nodes -days 2 -subj /CN=localhost";
    let elliptic = "-newkey ec -pkeyopt ec_paramgen_curve:P-256";
    let end = "-addext basicConstraints=CA:FALSE";
    for (name, how) in [
        ("authority", format!("{elliptic} {localhost}")),
        ("nameless", format!("{elliptic} {end}")),
        ("own", format!("{elliptic} {localhost} {end}")),
        ("edwards", format!("-newkey ed25519 {localhost} {end}")),
    ] {
        keys.openssl(&format!("{own} {how} -keyout {name}.key -out {name}.pem"));
    }
    let mut said = |name: &str, url: &str, more: &str| {
        let certificate = keys.file(&format!("{name}.pem"));
        let root = certificate.display();
        let url = format!("{url}&sslmode=verify-full&sslrootcert={root}{more}");
        gatepost.set("GATEPOST_DATABASE_URL", &url);
        let output = gatepost.run(&["migrate"], "");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    for (name, told) in [
        ("authority", "CA:TRUE"),
        ("nameless", "subjectAltName"),
        ("own", "is ready"),
        ("edwards", "is ready"),
    ] {
        let (pem, key) = (format!("{name}.pem"), format!("{name}.key"));
        cluster.restart_with(&keys.file(&pem), &keys.file(&key));
        let answer = said(name, &schema, "");
        assert!(answer.contains(told), "{name}: {answer}");
        answer.assert_says_not_for(name, "CaUsed");
    }
    // By a password: only then does the one end prove to the other what TLS they see.
    let rules = keys.file("rules");
    let text = "hostssl all lettered all scram-sha-256\nhost all all all trust\n";
    std::fs::write(&rules, text).unwrap();
    let mut client = Client::connect(&cluster.url, NoTls).unwrap();
    for sql in [
        String::from("CREATE ROLE lettered SUPERUSER LOGIN PASSWORD 'known'"),
        format!("ALTER SYSTEM SET hba_file = '{}'", rules.display()),
    ] {
        client.batch_execute(&sql).unwrap();
    }
    drop(client);
    let lettered = schema.replacen("postgres@", "lettered:known@", 1);
    for (name, binding, told) in [
        ("edwards", "prefer", "is ready"),
        ("edwards", "require", "Ed25519"),
        ("own", "require", "is ready"),
    ] {
        let (pem, key) = (format!("{name}.pem"), format!("{name}.key"));
        cluster.restart_with(&keys.file(&pem), &keys.file(&key));
        let answer = said(name, &lettered, &format!("&channel_binding={binding}"));
        assert!(answer.contains(told), "{name} {binding}: {answer}");
    }
}

/// What takes TLS from the first byte, from those alone who ask for `postgresql` by ALPN, as
/// Postgres 17 does, and hands on to an older one. Answers its port.
fn tls_at_once(keys: &Keys, postgres: u16) -> u16 {
    let certificates = CertificateDer::pem_file_iter(keys.file("right.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(keys.file("right.key")).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates.map(Result::unwrap).collect(), key)
        .unwrap();
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    spawn(move || {
        for stream in listener.incoming() {
            let (stream, config) = (stream.unwrap(), Arc::clone(&config));
            spawn(move || hand_on(stream, config, postgres));
        }
    });
    port
}

fn hand_on(mut stream: TcpStream, config: Arc<ServerConfig>, postgres: u16) {
    let mut connection = ServerConnection::new(config).unwrap();
    if connection.complete_io(&mut stream).is_err()
        || connection.alpn_protocol() != Some(b"postgresql")
    {
        return;
    }
    let mut plain = TcpStream::connect(("127.0.0.1", postgres)).unwrap();
    for one in [&stream, &plain] {
        one.set_read_timeout(Some(Duration::from_millis(2)))
            .unwrap();
    }
    let mut secured = StreamOwned::new(connection, stream);
    while pass_on(&mut secured, &mut plain) && pass_on(&mut plain, &mut secured) {}
}

/// Whether the one end is still there.
fn pass_on(from: &mut impl Read, to: &mut impl Write) -> bool {
    let mut buffer = [0; 16_384];
    match from.read(&mut buffer) {
        Ok(0) => false,
        Ok(length) => to
            .write_all(&buffer[..length])
            .and_then(|()| to.flush())
            .is_ok(),
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[test]
fn tls_that_begins_at_once_is_spoken_also_on_this_machine() {
    let database = TestDatabase::empty();
    let config: postgres::Config = database.url.parse().unwrap();
    let keys = Keys::make();
    let port = tls_at_once(&keys, config.get_ports()[0]);
    let mut url = database.url_through("localhost", port, "");
    url.push_str(&format!("&sslrootcert={}", keys.file("ca.pem").display()));
    let mut gatepost = Gatepost::unprepared(database, &[]);
    for [more, told] in rows_of(
        "
        &sslnegotiation=direct                | is ready
        &sslnegotiation=direct&sslmode=prefer | goes with sslmode=require
                                              | database unavailable
    ",
    ) {
        gatepost.set("GATEPOST_DATABASE_URL", &format!("{url}{more}"));
        let output = gatepost.run(&["migrate"], "");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains(told), "{more}: {said}");
    }
}

#[test]
fn of_several_hosts_each_is_named_with_its_own_cause() {
    let database = TestDatabase::empty();
    let config: postgres::Config = database.url.parse().unwrap();
    let port = config.get_ports()[0];
    let mut gatepost = Gatepost::unprepared(database, &[]);
    for hosts in ["127.0.0.1:PORT,127.0.0.1:1", "127.0.0.1:1,127.0.0.1:PORT"] {
        let hosts = hosts.replace("PORT", &port.to_string());
        gatepost.set(
            "GATEPOST_DATABASE_URL",
            &format!("postgres://nobody:hunter2@{hosts}/none"),
        );
        let output = gatepost.run(&["user", "list"], "");
        let said = String::from_utf8(output.stderr).unwrap();
        for told in [
            format!("127.0.0.1:{port}, database none, role nobody: it refuses the role"),
            String::from("127.0.0.1:1, database none, role nobody: connection refused"),
        ] {
            assert!(said.contains(&told), "{hosts}: {said}");
        }
    }
}

#[test]
fn what_a_first_set_up_runs_into_is_named() {
    let latin = "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'";
    let gatepost = Gatepost::unprepared(TestDatabase::empty_created(latin), &[]);
    for command in ["migrate", "doctor"] {
        let output = gatepost.run(&[command], "");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains("ENCODING 'UTF8'"), "{said}");
        assert!(!said.contains("22P05"), "{said}");
    }
    let database = TestDatabase::empty();
    let role = format!("{}_guest", database.schema);
    let schema = &database.schema;
    database.run(&format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}"
    ));
    let url = database.url.replacen("postgres@", &format!("{role}@"), 1);
    let mut gatepost = Gatepost::unprepared(database, &[]);
    gatepost.set("GATEPOST_DATABASE_URL", &url);
    let output = gatepost.run(&["migrate"], "");
    let said = String::from_utf8(output.stderr).unwrap();
    let schema = &gatepost.database.schema;
    gatepost.database.run(&format!(
        "REVOKE ALL ON SCHEMA {schema} FROM {role}; DROP ROLE {role}"
    ));
    assert!(said.contains("make it the owner"), "{said}");
}
