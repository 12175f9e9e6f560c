//! Tables over every setting.

use std::collections::BTreeSet;

use super::settings::{self, SETTINGS};
use super::*;
use crate::config::settings::Kind;

const REQUIRED: [(&str, &str); 2] = [
    (
        "GATEPOST_DATABASE_URL",
        "postgres://gatepost:hunter2@db/gatepost",
    ),
    ("GATEPOST_BASE_URL", "https://id.example"),
];

fn source(pairs: &[(&str, &str)]) -> Source {
    let mut source = Source::empty();
    for (name, value) in REQUIRED.iter().chain(pairs) {
        source.set(name, value.to_string()).unwrap();
    }
    source
}

fn load(pairs: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(&source(pairs))
}

fn refused(pairs: &[(&str, &str)]) -> Vec<Problem> {
    load(pairs).expect_err("must be refused").problems
}

#[test]
fn nothing_but_the_required_gives_the_defaults() {
    let config = load(&[]).unwrap();
    assert_eq!(config.base_url.as_str(), "https://id.example");
    assert_eq!(
        config.listeners.main,
        ListenAddress::Tcp("127.0.0.1:8080".parse().unwrap())
    );
    assert_eq!(
        config.listeners.admin,
        Some("127.0.0.1:9464".parse().unwrap())
    );
    assert_eq!((config.workers, config.database_connections), (16, 16));
    assert_eq!(config.trusted_proxies.len(), 2);
    assert_eq!(
        (
            config.outbound_allow.len(),
            config.ca_file,
            config.secret_file
        ),
        (0, None, None)
    );
    assert_eq!(
        (config.log_level, config.log_format),
        (log::LevelFilter::Info, LogFormat::Text)
    );
    assert_eq!(config.cookie_same_site, SameSite::Lax);
    assert_eq!(config.invalid_client_status, InvalidClientStatus::Standard);
    assert_eq!(
        (config.scope_claim, config.audit_days),
        (ScopeClaim::Text, 400)
    );
    assert_eq!(
        (config.brand.name.as_str(), config.brand.color),
        ("Gatepost", None)
    );
    assert_eq!(
        config.key_days,
        KeyDays {
            announce: 14,
            sign: 90,
            publish: 14,
            hint: 90
        }
    );
    assert_eq!(
        config.argon2,
        Argon2Parameters {
            memory_kib: 19_456,
            passes: 2,
            lanes: 1
        }
    );
    assert_eq!(config.session_lifetime, Duration::from_secs(36_000));
    let defaults = ClientDefaults {
        issuer: String::from("https://id.example"),
        ..ClientDefaults::default()
    };
    assert_eq!(config.client_defaults, defaults);
}

#[test]
fn workers_follow_the_cores_and_connections_the_workers() {
    for (cores, workers, connections) in [(1, 16, 16), (8, 32, 24), (1_000, 1_024, 24)] {
        let mut source = source(&[]);
        source.cores = cores;
        let config = Config::load(&source).unwrap();
        assert_eq!(
            (config.workers, config.database_connections),
            (workers, connections),
            "{cores} cores"
        );
    }
}

#[test]
fn a_remembered_sign_in_lasts_longer_than_another() {
    let name = "GATEPOST_REMEMBER_SESSION_LIFETIME";
    for short in ["1", "36000"] {
        assert!(
            refused(&[(name, short)])[0]
                .rule
                .contains("longer than GATEPOST_SESSION_LIFETIME"),
            "{short}"
        );
    }
    let days = load(&[(name, "36001")]).unwrap().remember_session_lifetime;
    assert_eq!(
        (days, load(&[]).unwrap().remember_session_lifetime),
        (Some(Duration::from_secs(36_001)), None)
    );
}

#[test]
fn every_number_has_bounds_that_hold() {
    for setting in SETTINGS {
        let Kind::Number(min, max) = setting.kind else {
            continue;
        };
        for inside in [min, max] {
            let problems = load(&[(setting.name, &inside.to_string())])
                .err()
                .map(|error| error.problems);
            let own = problems
                .unwrap_or_default()
                .into_iter()
                .find(|problem| problem.rule.contains("whole number"));
            assert_eq!(own, None, "{} {inside}", setting.name);
        }
        let above = (u64::from(max) + 1).to_string();
        let mut outside = vec![
            above.as_str(),
            "-1",
            "+1",
            " 1",
            "1.0",
            "1e3",
            "ten",
            "0x10",
            "99999999999999999999",
        ];
        if min > 0 {
            outside.push("0");
        }
        for text in outside {
            let problems = refused(&[(setting.name, text)]);
            assert_eq!(problems.len(), 1, "{} {text}", setting.name);
            assert_eq!(problems[0].name, setting.name);
            assert!(
                problems[0].rule.contains(&format!("{min} to {max}")),
                "{}",
                problems[0].rule
            );
        }
    }
}

#[test]
fn every_other_setting_takes_these_and_refuses_those() {
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "GATEPOST_BASE_URL",
            &["https://a.example/id", "http://[::1]:1"],
            &["http://a.example", "https://a.example/", "x"],
        ),
        (
            "GATEPOST_LISTEN",
            &["[::]:80", "unix:/run/x.sock", ""],
            &[
                "8080",
                ":80",
                "unix:",
                "unix:x",
                "localhost:80",
                "127.0.0.1",
                "127.0.0.1:65536",
                "/run/x",
            ],
        ),
        (
            "GATEPOST_ADMIN_LISTEN",
            &["", "[::1]:9464"],
            &["9464", "unix:/run/x.sock", "off"],
        ),
        (
            "GATEPOST_SECRET_FILE",
            &["/etc/gatepost/secret", "secret"],
            &[],
        ),
        (
            "GATEPOST_TRUSTED_PROXIES",
            &["", "10.0.0.0/8, ::1"],
            &["all", "10.0.0.1/8", ","],
        ),
        (
            "GATEPOST_LOG",
            &["off", "error", "warn", "info", "debug", ""],
            &["INFO", "trace", "gatepost=debug"],
        ),
        (
            "GATEPOST_LOG_FORMAT",
            &["text", "json"],
            &["JSON", "logfmt"],
        ),
        (
            "GATEPOST_LANGUAGE",
            &["en", "de", "zh-Hans", ""],
            &["DE", "de-AT", "zh", "sv", "German"],
        ),
        (
            "GATEPOST_ERROR_DETAILS",
            &["on", "off", ""],
            &["yes", "ON", "1"],
        ),
        (
            "GATEPOST_OUTBOUND_ALLOW",
            &["", "127.0.0.1"],
            &["localhost"],
        ),
        ("GATEPOST_CA_FILE", &["/etc/ca.pem"], &["ca.pem"]),
        (
            "GATEPOST_COOKIE_SAMESITE",
            &["lax", "none"],
            &["Lax", "strict"],
        ),
        (
            "GATEPOST_INVALID_CLIENT_STATUS",
            &["standard", "400"],
            &["401", "200"],
        ),
        ("GATEPOST_SCOPE_CLAIM", &["string", "array"], &["both"]),
        (
            "GATEPOST_ACCESS_TOKEN_TYP",
            &["at+jwt", "JWT"],
            &["jwt", "application/at+jwt"],
        ),
        (
            "GATEPOST_MINIMUM_ACR",
            &["1", "2", "phr"],
            &["0", "3", "PHR", "mfa"],
        ),
        (
            "GATEPOST_SIGN_IN_WITH",
            &["username", "username,email"],
            &["email", "username, email", "email,username"],
        ),
        (
            "GATEPOST_PASSWORD_BLOCKLIST_FILE",
            &["/srv/pwned.txt"],
            &["pwned.txt"],
        ),
        (
            "GATEPOST_ENROLMENT",
            &["sign-in", "link"],
            &["on", "off", "links"],
        ),
        (
            "GATEPOST_PEOPLE_MAY_CHANGE",
            &["nothing", "name"],
            &["email", "name,email", "NAME"],
        ),
        ("GATEPOST_ID_JAG", &["on", "off"], &["true", "1", "ON"]),
        (
            "GATEPOST_CLIENT_ASSERTION_AUDIENCE",
            &["any", "issuer"],
            &["ISSUER", "both", "on"],
        ),
        ("GATEPOST_SCIM", &["on", "off"], &["true", "1", "ON"]),
        (
            "GATEPOST_BOUND_SESSIONS",
            &["on", "off"],
            &["true", "1", "ON"],
        ),
        (
            "GATEPOST_ADMIN_BOUND_SESSION",
            &["on", "off"],
            &["true", "1", "ON"],
        ),
        (
            "GATEPOST_NEW_BROWSER_MAIL",
            &["on", "off"],
            &["true", "1", "ON"],
        ),
        ("GATEPOST_ADMIN_API", &["on", "off"], &["true", "1", "ON"]),
        (
            "GATEPOST_PUSHED_REQUESTS",
            &["on", "off"],
            &["true", "1", "ON"],
        ),
        (
            "GATEPOST_ADMIN_ROLE",
            &["office", "Büro 1"],
            &["a,b", " ", " office", "a\nb"],
        ),
        (
            "GATEPOST_ADMIN_ROLES",
            &["staff", "staff, sales"],
            &["staff,,sales", ",", "a\nb"],
        ),
        (
            "GATEPOST_ADMIN_MINIMUM_ACR",
            &["2", "phr"],
            &["1", "3", "PHR"],
        ),
        ("GATEPOST_BRAND_NAME", &["Ärzte & Söhne"], &["a\nb", " "]),
        (
            "GATEPOST_BRAND_LOGO",
            &["/srv/logo.svg"],
            &["logo.svg", "/srv/logo.exe", "https://a.example/logo.svg"],
        ),
        (
            "GATEPOST_BRAND_COLOR",
            &["#0a0B0c"],
            &[
                "blue", "#", "#fff", "1a2b3c", "#1a2b3c4", "#1a2b3g", "#+12345",
            ],
        ),
        (
            "GATEPOST_BRAND_PRIVACY_URL",
            &["https://a.example/privacy?x"],
            &["javascript:alert(1)", "/privacy"],
        ),
        (
            "GATEPOST_BRAND_TERMS_URL",
            &["https://a.example/terms"],
            &["data:text/html,x"],
        ),
        (
            "GATEPOST_BRAND_HELP_URL",
            &["https://a.example/help", "mailto:help@a.example"],
            &[
                "javascript:alert(1)",
                "mailto:",
                "mailto:a b",
                "help@a.example",
            ],
        ),
        (
            "GATEPOST_SMTP_URL",
            &[""],
            &["mail.example.com", "smtp://u:secret@h", "https://h"],
        ),
        ("GATEPOST_SMTP_PASSWORD_FILE", &["/etc/gatepost/smtp"], &[]),
        (
            "GATEPOST_MAIL_FROM",
            &["login@a.example"],
            &[
                "login",
                "Login <login@a.example>",
                "a@b.example, c@d.example",
            ],
        ),
    ];
    for (name, taken, refused_texts) in table {
        for text in *taken {
            assert!(
                load(&[(name, text)]).is_ok(),
                "{name} {text:?}: {:?}",
                load(&[(name, text)]).err()
            );
        }
        for text in *refused_texts {
            let problems = refused(&[(name, text)]);
            assert_eq!(
                problems
                    .iter()
                    .map(|problem| problem.name.as_str())
                    .collect::<Vec<_>>(),
                [*name],
                "{text:?}"
            );
        }
    }
    let covered: BTreeSet<&str> = table.iter().map(|(name, _, _)| *name).collect();
    for setting in SETTINGS {
        let is_text = matches!(setting.kind, Kind::Text | Kind::TextOrEmpty)
            && !setting.name.ends_with("_URL_FILE");
        assert!(
            !is_text || covered.contains(setting.name),
            "{} has no line in this table",
            setting.name
        );
    }
}

#[test]
fn a_problem_never_shows_the_database_url() {
    let file = [
        ("GATEPOST_DATABASE_URL_FILE", "/nonexistent"),
        ("GATEPOST_WORKERS", "0"),
    ];
    let error = load(&file).expect_err("both given").to_string();
    assert!(error.contains("must not stand beside"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
    assert!(!format!("{:?}", load(&[]).unwrap()).contains("hunter2"));
}

#[test]
fn a_refused_value_is_shown_escaped_and_cut() {
    let problems = refused(&[("GATEPOST_LOG", &format!("\u{1b}[31m{}", "x".repeat(500)))]);
    assert!(
        problems[0].rule.contains("\\u{1b}") && problems[0].rule.len() < 200,
        "{}",
        problems[0].rule
    );
}

#[test]
fn secrets_come_from_files_and_credentials_too() {
    let directory = std::env::temp_dir().join(format!("gatepost-config-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("url"), "postgres://from-file\n").unwrap();
    std::fs::write(directory.join("empty"), "\n").unwrap();
    std::fs::write(
        directory.join("gatepost-database-url"),
        "postgres://from-credential",
    )
    .unwrap();
    std::fs::write(directory.join("gatepost-secret"), "x").unwrap();
    let with = |name: &str, file: &str| {
        let mut source = Source::empty();
        source
            .set("GATEPOST_BASE_URL", "https://id.example".to_string())
            .unwrap();
        source
            .set(name, directory.join(file).display().to_string())
            .unwrap();
        source
    };
    let config = Config::load(&with("GATEPOST_DATABASE_URL_FILE", "url")).unwrap();
    assert_eq!(config.database_url.expose(), "postgres://from-file");
    for file in ["empty", "missing"] {
        let error = Config::load(&with("GATEPOST_DATABASE_URL_FILE", file)).unwrap_err();
        assert_eq!(
            error.problems[0].name, "GATEPOST_DATABASE_URL_FILE",
            "{file}"
        );
    }
    let mut source = with("GATEPOST_CA_FILE", "ca");
    source.credentials_directory = Some(directory.clone());
    let config = Config::load(&source).unwrap();
    assert_eq!(config.database_url.expose(), "postgres://from-credential");
    assert_eq!(config.secret_file, Some(directory.join("gatepost-secret")));
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let problems = refused(&[
        ("GATEPOST_ACCESS_TOKEN_LIFETIME", "90000"),
        ("GATEPOST_KEY_PUBLISH_DAYS", "1"),
    ]);
    assert_eq!(problems[0].name, "GATEPOST_ACCESS_TOKEN_LIFETIME");
}

#[test]
fn a_secret_has_no_flag() {
    assert_eq!(
        settings::by_flag("--listen").map(|setting| setting.name),
        Some("GATEPOST_LISTEN")
    );
    for flag in [
        "--database-url",
        "--grants-database-url",
        "--nonsense",
        "listen",
    ] {
        assert!(settings::by_flag(flag).is_none(), "{flag}");
    }
}

#[test]
fn a_mail_server_needs_a_sender_and_a_user_a_password() {
    let url = ("GATEPOST_SMTP_URL", "smtps://u@mail.example.com");
    let from = ("GATEPOST_MAIL_FROM", "login@example.com");
    let names = |settings: &[(&str, &str)]| -> Vec<String> {
        let problems = refused(settings).into_iter();
        problems.map(|problem| problem.name).collect()
    };
    assert_eq!(
        names(&[url]),
        ["GATEPOST_MAIL_FROM", "GATEPOST_SMTP_PASSWORD_FILE"]
    );
    assert_eq!(names(&[url, from]), ["GATEPOST_SMTP_PASSWORD_FILE"]);
    let missing = ("GATEPOST_SMTP_PASSWORD_FILE", "/nowhere/at/all");
    assert_eq!(
        names(&[url, from, missing]),
        ["GATEPOST_SMTP_PASSWORD_FILE"]
    );
    let here = ("GATEPOST_SMTP_URL", "smtp://localhost");
    assert!(load(&[here, from]).unwrap().mail.is_some());
    assert_eq!(
        names(&[here, from, missing]),
        ["GATEPOST_SMTP_PASSWORD_FILE"],
        "a password of nobody"
    );
    assert!(load(&[from]).unwrap().mail.is_none());
}
