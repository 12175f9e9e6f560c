//! Whatever the names from outside are, pages keep their structure, send forms only where they
//! should, and load nothing foreign. `tests/service/pages.rs` asks the same of answers; here it is
//! every page, in every language.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, json};

use super::account::{self, Holdings, OfferedLink, Outcome};
use super::consent;
use super::error::{self, Besides, Problem};
use super::forgotten;
use super::frame::{Account, Chrome, PageForm, form_post_page};
use super::language::Language;
use super::login::{self, AskPasskey, SignInFor, SignInForm};
use super::logout::{self, SignedOut};
use super::names_from_outside::{
    Page, assert_forms_post_with_one_token, assert_names_are_isolated,
    assert_names_keep_the_structure, escaped,
};
use super::password_link;
use super::second_factor::{self, NewApp, NewPasskeyPage, WantedFactor};
use super::start;
use crate::config::{Brand, Color};
use crate::pages::form_problem::FormProblem;
use crate::registry::RegisteredClient;
use gatepost_protocol::authorize::authorize_request::fixtures::{asking, identity_provider};
use gatepost_protocol::authorize::authorize_request::{AuthorizeRequest, Ending};
use gatepost_protocol::authorize::consent::Allowance;
use gatepost_protocol::device::device_code::UserCode;
use gatepost_protocol::login::password::{PasswordFlaw, SignInWith};
use gatepost_protocol::login::second_factor::FactorKind;
use gatepost_protocol::token::claims::built_in_scopes;
use gatepost_protocol::upstream::choices::Choices;
use gatepost_protocol::words::acr_values::AcrValues;
use gatepost_protocol::words::catalogue::{Catalogue, RegisteredScope, RegisteredTenant};
use gatepost_protocol::words::client::{Client, ClientLinks};
use gatepost_protocol::words::epochs::SessionEpochs;
use gatepost_protocol::words::identifiers::{ClientId, Sid, Subject, TenantName};
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::instant::Day;
use gatepost_protocol::words::samples::{self, NOW};
use gatepost_protocol::words::session::{LOCAL, Session};
use gatepost_store::authenticators::Authenticator;
use gatepost_store::linked_identities::LinkedIdentity;

const ACTION: &str = "/auth/login?request=AAAA&x='\"<>";
const TO_SECOND_FACTOR: &str = "/auth/second?request=AAAA";
fn form(chrome: Chrome<'_>) -> PageForm<'_> {
    PageForm {
        chrome,
        action: String::from(ACTION),
        token: String::from("TOKEN"),
    }
}

/// Every page in one language, with `name` wherever a name from outside can stand.
fn pages(language: Language, name: &str) -> Vec<Page> {
    let some = |text: &str| Some(text.to_owned());
    let color = Some(Color([0x88, 0x44, 0]));
    let privacy_url = some("https://brand.example/privacy");
    let terms_url = some("https://brand.example/terms");
    let brand = Brand {
        name: name.to_owned(),
        logo: None,
        color,
        privacy_url,
        terms_url,
        help_url: some("mailto:help@brand.example"),
    };
    let logo = Some("/logo.svg".into());
    let with_logo = Brand {
        logo,
        color: None,
        privacy_url: some(name),
        terms_url: None,
        help_url: some(name),
        ..brand.clone()
    };
    let chrome = Chrome {
        brand: &brand,
        texts: language.texts(),
        base_path: "/auth",
        assets_version: name,
        request_id: name,
        least_password: 8,
    };
    let client = client(name);
    let catalogue = catalogue(name);
    let account = Account {
        name,
        username: name,
    };
    let mut pages = Vec::new();
    for (suffix, chrome) in [
        ("", chrome),
        (
            " with logo",
            Chrome {
                brand: &with_logo,
                ..chrome
            },
        ),
    ] {
        let mut add = |page: &str, markup: maud::Markup| {
            pages.push(Page {
                name: format!("{page}{suffix} ({language:?})"),
                html: markup.into_string(),
            });
        };
        let acr_values = AcrValues {
            tenant: Some(TenantName::new("acme")),
            ..AcrValues::default()
        };
        let request = asking().judged().unwrap();
        let scope = samples::scope("openid offline_access odd orders.read");
        let request = AuthorizeRequest {
            acr_values: acr_values.clone(),
            scope,
            ..request
        };
        let purpose = SignInFor {
            request: &request,
            client: Some(&client),
            catalogue: &catalogue,
        };
        let form = form(chrome);
        login_pages(&form, purpose, &mut add);
        add(
            "chooser",
            login::chooser_page(&form, purpose, account, true, true),
        );
        add(
            "closed",
            login::chooser_page(&form, purpose, account, false, false),
        );

        let named = Account {
            name,
            username: "alice",
        };
        let consent = |request: &AuthorizeRequest, may_remember, drawn_again| {
            let asked = consent::Asked {
                request,
                client: &client,
                catalogue: &catalogue,
                account: named,
                may_remember,
            };
            consent::page(&form, asked, drawn_again)
        };
        let code = UserCode::parse("BCDF-GHJK").unwrap();
        let device = AuthorizeRequest {
            ending: Ending::Device(code),
            ..request.clone()
        };
        let mut asked = request.clone();
        asked.claims.userinfo = [name.to_owned()].into();
        add("consent", consent(&asked, true, false));
        add("consent again", consent(&request, false, true));
        let of_itself = Client {
            metadata_document: true,
            ..client.clone()
        };
        let described = consent::Asked {
            request: &request,
            client: &of_itself,
            catalogue: &catalogue,
            account: named,
            may_remember: false,
        };
        add(
            "consent for one that describes itself",
            consent::page(&form, described, false),
        );
        add("device", consent(&device, false, false));
        add("device again", consent(&device, false, true));
        add(
            "device code from the link",
            consent::user_code_page(&form, name, None),
        );
        let wrong = Some(FormProblem::UserCodeWrong);
        add(
            "device code after a problem",
            consent::user_code_page(&form, name, wrong),
        );
        for allowed in [true, false] {
            add(
                &format!("decided {allowed}"),
                consent::decided_page(chrome, &client, allowed),
            );
        }

        let linked = Outcome::IdentityLinked(name);
        let problem = Outcome::Problem(FormProblem::PresentPasswordWrong);
        for (page, outcome) in [
            ("account", None),
            ("account 0", Some(linked)),
            ("account 4", Some(problem)),
        ] {
            add(page, account_page(&form, &catalogue, &client, outcome));
        }
        let corp = &catalogue.identity_providers["corp"];
        let unfit = FormProblem::NewPasswordUnfit(PasswordFlaw::TooCommon);
        let unfit = Some(unfit);
        add(
            "password link",
            password_link::page(&form, name, unfit, None),
        );
        for problem in [
            None,
            Some(FormProblem::NameOrAddressMissing),
            Some(FormProblem::PageExpired),
        ] {
            add(
                "forgotten",
                forgotten::page(&form, "/login?r=R", name, problem),
            );
        }
        add(
            "letter sent",
            forgotten::sent_page(chrome, chrome.texts.letter_sent, Some("/login?r=R")),
        );
        add(
            "new address",
            forgotten::address_page(&form, name, "/account"),
        );
        add(
            "new address, not signed in",
            forgotten::sign_in_to_confirm_page(chrome, "/account"),
        );
        factor_pages(&form, purpose, &mut add);
        let offered = OfferedLink {
            provider: corp,
            subject: "subject",
            label: Some(name),
            sealed: "OFFER",
        };
        add("link", account::link_page(&form, account, offered));

        add(
            "logout",
            logout::page(&form, Some(account), Some(&client), false),
        );
        add("logout again", logout::page(&form, None, None, true));
        let back = Some((&client, "https://client.example/"));
        add(
            "signed out",
            logout::signed_out_page(chrome, &SignedOut::default(), back, false),
        );
        let registered = as_registered(&client);
        let frames = vec![(
            Arc::new(registered),
            String::from("https://client.example/out?iss=i&sid=s"),
        )];
        let framed = SignedOut {
            frames,
            at_once: true,
            ..SignedOut::default()
        };
        add(
            "signed out with frames",
            logout::signed_out_page(chrome, &framed, back, false),
        );
        let upstream = Some((
            name.to_owned(),
            String::from("https://client.example/upstream"),
        ));
        let upstream = SignedOut { upstream, ..framed };
        add(
            "signed out with frames, upstream",
            logout::signed_out_page(chrome, &upstream, back, false),
        );

        let besides = Besides {
            code: Some("GP1207"),
            description: name,
            way_on: Some("/auth/login?r=x"),
            client: Some(&client),
        };
        add("error", error::page(chrome, Problem::BadRequest, besides));
        let fields = [("state", name), (name, "x"), ("code", "C")]
            .map(|(name, value)| (name, value.to_owned()));
        add(
            "form_post",
            form_post_page(chrome, "https://client.example/cb?a=1&b='", &fields),
        );
        let address = String::from("https://client.example/?a=1&b='");
        let applications = [(Arc::new(as_registered(&client)), Some(address))];
        let own = |page: &str| format!("/auth{page}?ui_locales=de");
        add(
            "start",
            start::page(chrome, account, &applications, true, own),
        );
    }
    pages
}

fn client(name: &str) -> Client {
    let some = |text: &str| Some(text.to_owned());
    let client_uri = some("https://client.example/");
    let policy_uri = some("https://client.example/policy?a&b");
    let links = ClientLinks {
        client_uri,
        logo_uri: some(name),
        policy_uri,
        tos_uri: some(name),
        initiate_login_uri: None,
    };
    Client {
        client_id: ClientId::new(name),
        client_name: name.into(),
        links,
        ..samples::client()
    }
}

fn as_registered(client: &Client) -> RegisteredClient {
    RegisteredClient {
        client: client.clone(),
        secrets: Vec::new(),
        epoch: 0,
        installation_epoch: 0,
    }
}

fn catalogue(name: &str) -> Catalogue {
    let openid = built_in_scopes()
        .into_iter()
        .find(|scope| scope.name == "openid")
        .unwrap();
    let scope = |wire: &str, text: &str, emphasize| RegisteredScope {
        name: wire.to_owned(),
        display_name: text.into(),
        description: text.into(),
        emphasize,
        required: wire == "odd",
        ..openid.clone()
    };
    let scopes = [
        scope("offline_access", "", true),
        scope("odd", name, true),
        scope("orders.read", "", false),
    ];
    let provider = |wire: &str| IdentityProvider {
        name: wire.to_owned(),
        display_name: name.to_owned(),
        ..identity_provider("corp", true)
    };
    Catalogue {
        scopes: scopes
            .into_iter()
            .chain([openid.clone()])
            .map(|scope| (scope.name.clone(), scope))
            .collect(),
        tenants: BTreeMap::from([(
            String::from("acme"),
            RegisteredTenant {
                name: String::from("acme"),
                display_name: name.to_owned(),
            },
        )]),
        identity_providers: [provider("corp"), provider(name)]
            .map(|one| (one.name.clone(), one))
            .into(),
        ..Catalogue::default()
    }
}

fn account_page(
    form: &PageForm<'_>,
    catalogue: &Catalogue,
    client: &Client,
    outcome: Option<Outcome<'_>>,
) -> maud::Markup {
    let name = form.chrome.request_id;
    let session = |sid: &str, provider: &str| Session {
        day: Day(0),
        sid: Sid::new(sid),
        subject: Subject::new("u"),
        auth_time: NOW,
        amr: Vec::new(),
        acr: String::new(),
        tenant: Some(TenantName::new("acme")),
        identity_provider: Some(provider.to_owned()),
        upstream_issuer: None,
        epochs: SessionEpochs {
            user: 0,
            installation: 0,
        },
        source: Some(IpAddr::from([192, 0, 2, 1])),
        user_agent: Some(name.to_owned()),
        created_at: NOW,
        used_at: NOW,
        expires_at: NOW.plus(Duration::from_secs(36_000)),
        ended_at: None,
        bound_to: None,
        bound_at: None,
        refused_at: None,
    };
    let sessions = [session("SID", LOCAL), session(name, name)];
    let allowance = Allowance {
        client_id: client.client_id.clone(),
        scope: samples::scope("openid offline_access odd orders.read"),
        since: NOW,
    };
    let registered = as_registered(client);
    let identity = |claims: Map<String, serde_json::Value>| LinkedIdentity {
        issuer: name.to_owned(),
        upstream_subject: String::from("subject"),
        sub: Subject::new("u"),
        provider: None,
        claims,
        linked_at: NOW,
    };
    let known = json!({"name": "known"}).as_object().unwrap().clone();
    let identities =
        [identity(known), identity(Map::new())].map(|one| (one, String::from("IDENTITY")));
    let factor = |kind, name: Option<&str>| Authenticator {
        name: name.map(str::to_owned),
        used_at: Some(NOW),
        ..Authenticator::new(kind, b"id".to_vec(), None, NOW)
    };
    let factors = [
        factor(FactorKind::Totp, None),
        factor(FactorKind::Passkey, Some(name)),
    ];
    let address = json!({"email": name}).as_object().unwrap().clone();
    let holdings = Holdings {
        recovery_codes_token: "TOKEN",
        catalogue,
        account: Account {
            name,
            username: name,
        },
        claims: Some(&address),
        may_change_name: true,
        has_password: true,
        has_own_way_in: true,
        factors: &factors,
        has_passkeys: true,
        signals: Some("{}"),
        needs_passkey: false,
        current_session: &sessions[0],
        sessions: &sessions,
        bound_sessions: true,
        applications: &[(Arc::new(registered), allowance)],
        identities: &identities,
        linkable: &[&catalogue.identity_providers["corp"]],
    };
    let own = |page: &str| format!("/auth{page}");
    account::page(form, own, &holdings, outcome)
}

fn factor_pages(
    form: &PageForm<'_>,
    purpose: SignInFor<'_>,
    add: &mut impl FnMut(&str, maud::Markup),
) {
    let name = form.chrome.request_id;
    let new = NewApp {
        otpauth: "otpauth://totp/a",
        key: "ABCDEFGH",
        sealed: "APP",
        is_required: true,
        is_first: true,
        offers_passkey: true,
    };
    add(
        "password link with an app",
        password_link::page(form, name, None, Some(new)),
    );
    let passkey = NewPasskeyPage {
        options: "{}",
        is_required: true,
        is_first: true,
    };
    let wrong = Some(FormProblem::CodeWrong);
    let wanted = WantedFactor {
        takes_codes: true,
        passkey: Some("{}"),
        may_skip: true,
    };
    add(
        "second factor",
        second_factor::page(form, purpose, wanted, wrong),
    );
    add("new app", second_factor::add_app_page(form, new, wrong));
    add(
        "new passkey",
        second_factor::add_passkey_page(form, passkey, wrong),
    );
    add(
        "recovery codes",
        second_factor::recovery_page(form, &[String::from("abcde-fghjk")], "SEALED", None),
    );
}

/// The sign-in page, for one way in and for several.
fn login_pages(
    form: &PageForm<'_>,
    purpose: SignInFor<'_>,
    add: &mut impl FnMut(&str, maud::Markup),
) {
    let name = form.chrome.request_id;
    let password = Choices {
        password: true,
        providers: Vec::new(),
    };
    let several = Choices {
        password: true,
        providers: vec![String::from("corp"), name.to_owned()],
    };
    let alone = Choices {
        password: false,
        ..several.clone()
    };
    let login = |purpose, choices: &Choices, remember, problem: Option<FormProblem>| {
        let someone_else = !choices.password;
        let passkey = choices.password.then_some(AskPasskey {
            action: TO_SECOND_FACTOR,
            options: "{}",
            signals: Some("{}"),
        });
        let shown = SignInForm {
            with: SignInWith::Username,
            passkey_is_set: false,
            password_is_set: problem.is_none(),
            forgotten: Some("/login/forgotten?r=R"),
            someone_else,
            username: name,
            remember,
            passkey,
        };
        login::page(form, purpose, choices, shown, problem)
    };
    let wrong = Some(FormProblem::WrongCredentials);
    add("login", login(purpose, &password, None, None));
    add(
        "login for the account",
        login(
            SignInFor {
                client: None,
                ..purpose
            },
            &password,
            None,
            None,
        ),
    );
    add(
        "login with a problem",
        login(purpose, &password, Some(true), wrong),
    );
    add(
        "login with providers",
        login(purpose, &several, Some(false), None),
    );
    add("providers alone", login(purpose, &alone, Some(false), None));
}

#[test]
fn names_from_outside_are_shown_whole_and_never_change_the_structure() {
    assert_names_keep_the_structure(pages);
}

#[test]
fn names_in_sentences_are_isolated_from_their_direction() {
    let name = "\u{202e}evil";
    assert_names_are_isolated(pages(Language::English, name), name);
}

#[test]
fn japanese_has_one_word_for_signing_in_and_one_for_a_second_factor() {
    let pages = include_str!("../../../static/texts/ja.txt");
    for texts in [pages, Language::Japanese.events()] {
        for other in ["サインイン", "サインアウト", "第 2 要素", "二要素"] {
            assert!(!texts.contains(other), "{other}");
        }
    }
}

#[test]
fn every_form_posts_and_carries_one_form_token() {
    for page in pages(Language::English, "x") {
        if page.name.starts_with("form_post") {
            continue;
        }
        assert_forms_post_with_one_token(&page, |form| {
            // What passkeys answer goes to an address of its own.
            let is_passkey = form.contains("value=\"passkey\"") && page.name.starts_with("login");
            if is_passkey { TO_SECOND_FACTOR } else { ACTION }
        });
    }
}

#[test]
fn the_form_post_page_has_one_form_to_exactly_the_redirect_uri() {
    let brand = Brand {
        name: String::from("B"),
        logo: None,
        color: None,
        privacy_url: None,
        terms_url: None,
        help_url: None,
    };
    let texts = Language::German.texts();
    let chrome = Chrome {
        brand: &brand,
        texts,
        base_path: "",
        assets_version: "1",
        request_id: "0",
        least_password: 8,
    };
    let state = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\r\n\u{202e}";
    let fields = [("code", "C"), ("state", state)].map(|(name, value)| (name, value.to_owned()));
    for action in [
        "https://client.example/cb?a=1&b=\"2\"&amp;c='<x>",
        "http://127.0.0.1:9/",
        "https://x.example/?",
    ] {
        let html = form_post_page(chrome, action, &fields).into_string();
        let [action, _] = escaped(action);
        let [state, _] = escaped(state);
        let form = format!(
            r#"<form method="post" action="{action}"><input type="hidden" name="code" value="C">"#
        );
        let state = format!(r#"<input type="hidden" name="state" value="{state}">"#);
        assert!(html.contains(&format!("{form}{state}")), "{html}");
        assert_eq!(
            ["<form", "<input", "<a ", "form-post.js?v=1\"></script>"]
                .map(|tag| html.matches(tag).count()),
            [1, 2, 0, 1]
        );
        // A name would travel with the response.
        assert!(
            html.contains(r#"<button class="primary" type="submit">"#),
            "{html}"
        );
    }
}

#[test]
fn registered_addresses_that_are_not_on_the_web_are_no_links() {
    for uri in ["javascript:alert(1)", "data:text/html,x", "intent://x", ""] {
        for page in pages(Language::English, uri) {
            for href in page
                .html
                .split("<a ")
                .skip(1)
                .filter_map(|link| link.split("href=\"").nth(1))
            {
                let on_the_web = ["https://", "#", "/", "mailto:help@brand.example\""]
                    .iter()
                    .any(|start| href.starts_with(start));
                assert!(on_the_web, "{}: {href}", page.name);
            }
        }
    }
}
