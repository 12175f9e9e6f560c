//! Extension grants that a binary of your own brings along, as `docs/operate/own-grants-rust.md`
//! has it. No binary of this house has one, so these are served by this process.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost::app::extension_grant::{ExtensionGrant, GrantContext};
use gatepost::app::failure::Failure;
use gatepost::app::{App, Extensions};
use gatepost::config::{Config, Source};
use gatepost::dispatch::{self, Serving, routes};
use gatepost::http::{Headers, Method, Request};
use gatepost::keys::master::MasterSecret;
use gatepost::metrics::Metrics;
use gatepost::protocol::token::extension_grant::{GrantAnswer, Proposal};
use gatepost::protocol::token::token_request::ExtensionRequest;
use gatepost::protocol::words::identifiers::Subject;
use gatepost::registrar::{DocumentOrigin, Registrar, RegistrationFailure};
use gatepost::registration::strict_json::parse;
use gatepost::serve::database_settings;
use gatepost::store::Store;
use gatepost::tool;
use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{basic, decode_jwt, text, with_clients};
use crate::support::gatepost::{CONF1_SECRET, Gatepost, MASTER_SECRET, document};
use crate::support::http::encode;

const GRANT: &str = "urn:example:badge";
const ORDERS: &str = "https://orders.example";
const STOCK: &str = "https://stock.example";

static GRANTS: [ExtensionGrant; 1] = [ExtensionGrant {
    name: GRANT,
    handle: badge,
}];

/// All badges are carol's. One of `orders` opens nothing else.
fn badge(_: GrantContext<'_>, request: &ExtensionRequest) -> Result<GrantAnswer, Failure> {
    let resources = match request.parameter("badge") {
        Some("orders") => vec![ORDERS.to_owned()],
        Some(_) | None => Vec::new(),
    };
    Ok(GrantAnswer::Propose(Box::new(Proposal {
        subject: Some(Subject::new("carol-1")),
        resources,
        ..Proposal::default()
    })))
}

fn registration() -> Value {
    let badges = json!({
        "grant_types": [GRANT, "refresh_token"], "response_types": [], "redirect_uris": [],
        "scope": "openid offline_access orders.read stock.read",
    });
    let mut document = with_clients(document(), &[("badges", badges)]);
    let carol = json!({"sub": "carol-1", "username": "carol"});
    document["users"].as_array_mut().unwrap().push(carol);
    document
}

/// The house with these grants, over the database of one that does not serve.
fn app(gatepost: &Gatepost) -> App {
    let secret_file = gatepost.private_file("master", &STANDARD.encode(MASTER_SECRET));
    let mut source = Source::empty();
    for (name, value) in [
        ("GATEPOST_DATABASE_URL", gatepost.database.url.clone()),
        ("GATEPOST_BASE_URL", gatepost.base_url.clone()),
        ("GATEPOST_SECRET_FILE", secret_file.display().to_string()),
    ] {
        source.set(name, value).unwrap();
    }
    let config = Arc::new(Config::load(&source).unwrap());
    let store = Store::open(&database_settings(&config)).unwrap();
    let master = MasterSecret::read(&secret_file).unwrap();
    let extensions = Extensions {
        table: &GRANTS,
        functions: store.clone(),
    };
    App::load(config, store, &master, extensions).unwrap()
}

/// As `apply` of the binary that has these grants does it: without them a registration may not name
/// them.
fn register(gatepost: &Gatepost, document: &Value) {
    let document = parse(&document.to_string()).unwrap();
    let app = app(gatepost);
    let registrar = Registrar {
        config: &app.config,
        store: &app.store,
        sealers: app.registry.sealers(),
        compiled_in_grants: &GRANTS,
        origin: DocumentOrigin::Command {
            functions: &app.store,
        },
    };
    let today = app.now().day();
    let applied = registrar.applied(document, false, |writer, plan| {
        registrar.enact(writer, plan, app.password_hashing(), today, |_| ())
    });
    match applied {
        Ok(()) => {}
        Err(RegistrationFailure::Document(problems)) => {
            let problems: Vec<String> = problems.iter().map(|one| one.to_string()).collect();
            panic!("{problems:?}");
        }
        Err(RegistrationFailure::Store(error)) => panic!("{error}"),
        Err(RegistrationFailure::Hashing(cause)) => panic!("{cause}"),
    }
}

/// Status and members of the answer to a token request.
fn ask(app: &App, form: &[(&str, &str)]) -> (u16, Value) {
    let authorization = basic("badges", CONF1_SECRET);
    let headers = [
        ("Authorization", authorization.as_str()),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let request = Request {
        id: String::from("0000000000000000"),
        method: Method::Post,
        path: String::from("/connect/token"),
        query: String::new(),
        parsed_query: std::sync::OnceLock::new(),
        headers: Headers::of(headers.into_iter()),
        body: encode(form).into_bytes(),
        source: IpAddr::from([127, 0, 0, 1]),
    };
    let serving = Serving {
        routes: &[routes::ROUTES],
        config: &app.config,
        metrics: &Metrics::default(),
        app: Some(app),
    };
    let response = dispatch::handle(serving, &request);
    let members = serde_json::from_slice(response.body.bytes()).unwrap();
    (response.status, members)
}

/// What the answer must give: the audience of its access token, and the refresh token.
fn given((status, tokens): &(u16, Value)) -> (Value, String) {
    assert_eq!(*status, 200, "{tokens}");
    let (_, claims) = decode_jwt(text(tokens, "access_token"));
    let refresh_token = text(tokens, "refresh_token").to_owned();
    (claims["aud"].clone(), refresh_token)
}

#[test]
fn refreshed_tokens_reach_no_further_than_the_grant_that_a_proposal_narrowed() {
    let gatepost = Gatepost::prepare(&[]);
    register(&gatepost, &registration());
    let app = app(&gatepost);
    let both = json!([ORDERS, STOCK]);
    for (badge, asked, audience) in [
        ("orders", None, json!(ORDERS)),
        ("orders", Some(ORDERS), json!(ORDERS)),
        ("all", Some(STOCK), json!(STOCK)),
        ("all", None, both),
    ] {
        let mut form = vec![("grant_type", GRANT), ("badge", badge)];
        form.extend(asked.map(|resource| ("resource", resource)));
        let (first, token) = given(&ask(&app, &form));
        assert_eq!(first, audience, "{badge} {asked:?}");
        let refresh = [("grant_type", "refresh_token"), ("refresh_token", &token)];
        let (next, token) = given(&ask(&app, &refresh));
        assert_eq!(next, audience, "refreshed: {badge} {asked:?}");
        // Nor may it ask for more.
        let refresh = [("grant_type", "refresh_token"), ("refresh_token", &token)];
        for resource in [ORDERS, STOCK] {
            let narrower = [&refresh[..], &[("resource", resource)]].concat();
            let (status, members) = ask(&app, &narrower);
            let is_within = audience == resource || audience.is_array();
            let expected = if is_within { 200 } else { 400 };
            assert_eq!(status, expected, "{badge} {asked:?} {resource}: {members}");
        }
    }
}

/// This process once more, as the operator's own binary: with this in its environment, the test
/// runs the command.
const OWN_BINARY: &str = "OWN_BINARY";

#[test]
fn explain_knows_the_grants_of_its_own_binary() {
    if env::var_os(OWN_BINARY).is_some() {
        let arguments = vec![OsString::from("explain"), OsString::from("-")];
        assert_eq!(tool::run_with(arguments, &GRANTS), ExitCode::SUCCESS);
        return;
    }
    let gatepost = Gatepost::prepare(&[]);
    register(&gatepost, &registration());
    let name = "grant_extension_rust::explain_knows_the_grants_of_its_own_binary";
    let of_gatepost = gatepost.command();
    let settings = of_gatepost.get_envs();
    let settings = settings.filter_map(|(name, value)| Some((name, value?)));
    let mut own_binary = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env_clear()
        .envs(settings)
        .env(OWN_BINARY, "yes")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let form = encode(&[("grant_type", GRANT)]);
    let authorization = basic("badges", CONF1_SECRET);
    let request = format!("Authorization: {authorization}\n\n{form}\n");
    let mut input = own_binary.stdin.take().unwrap();
    input.write_all(request.as_bytes()).unwrap();
    drop(input);
    let output = own_binary.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("the request is well-formed"), "{told}");
    let other_binary = gatepost.run(&["explain", "-"], &request);
    let told = String::from_utf8(other_binary.stdout).unwrap();
    told.assert_says_for("a binary without the grant", "GP1202");
}
