//! Test material: every page, filled with hostile names, and a strict reader of what comes out.

use std::sync::LazyLock;
use std::time::Duration;

use super::account::{
    self, AccountProblem, AccountView, ApplicationItem, IdentityItem, Outcome, ProviderItem, SessionItem,
};
use super::brand::Brand;
use super::consent::{self, ConsentScope, ConsentView};
use super::device::{self, DecidedView, DeviceView, UserCodeProblem, UserCodeView};
use super::error::{self, ErrorView, Problem};
use super::form_post::{self, FormPostView};
use super::frame::{Account, Chrome, Client};
use super::home;
use super::language::Language;
use super::link::{self, LinkView};
use super::login::{self, LoginProblem, LoginView, Provider};
use super::logout::{self, BackLink, ClientFrame, LogoutView, SignedOutView};
use crate::protocol::samples::NOW;

pub(super) const ACTION: &str = "/auth/login?request=AAAA&x='\"<>";
pub(super) const PAYLOADS: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onfocus='alert(1)' autofocus x='",
    "a&b&amp;c&lt;",
    "\u{202e}\u{2066}gnp.exe\u{200b}\u{feff}",
    "</title></textarea></style><!--",
    "{}{{0}}${x}\r\n\t\0",
];

const PROBLEMS: [LoginProblem; 9] = [
    LoginProblem::WrongCredentials,
    LoginProblem::TooManyAttempts { minutes: 7 },
    LoginProblem::PageExpired,
    LoginProblem::UsernameMissing,
    LoginProblem::PasswordMissing,
    LoginProblem::BothMissing,
    LoginProblem::UpstreamCancelled,
    LoginProblem::UpstreamUnavailable,
    LoginProblem::UpstreamLoginRequired,
];

pub(super) const FAILURES: [Problem; 13] = [
    Problem::BadRequest,
    Problem::Forbidden,
    Problem::NotFound,
    Problem::MethodNotAllowed,
    Problem::TooLarge,
    Problem::TooManyRequests { minutes: 1 },
    Problem::Internal,
    Problem::Unavailable,
    Problem::RoundTripOver,
    Problem::NotBelieved,
    Problem::NotProvisioned,
    Problem::AccountDisabled,
    Problem::AccountElsewhere,
];

pub(super) struct Page {
    pub(super) name: String,
    pub(super) html: String,
}

/// Every page in one language, with `name` wherever a name from outside can stand.
pub(super) fn pages(language: Language, name: &str) -> Vec<Page> {
    let brand = Brand {
        name,
        logo: None,
        color: Some("#884400"),
        privacy_url: Some("https://brand.example/privacy"),
        terms_url: Some("https://brand.example/terms"),
    };
    let logo_brand = Brand { logo: Some(name), color: None, privacy_url: Some(name), terms_url: None, ..brand };
    let chrome =
        Chrome { brand: &brand, texts: language.texts(), base_path: "/auth", assets_version: name, request_id: name };
    let chromes = [("", chrome), (" with logo", Chrome { brand: &logo_brand, ..chrome })];
    chromes.into_iter().flat_map(|(suffix, chrome)| pages_of(chrome, name, suffix)).collect()
}

fn pages_of(chrome: Chrome<'_>, name: &str, suffix: &str) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut add = |page: &str, markup: maud::Markup| {
        pages.push(Page { name: format!("{page}{suffix} ({:?})", chrome.texts.language), html: markup.into_string() });
    };
    let login = login_view(chrome, name);
    add("login", login::page(&login));
    add("login without hint", login::page(&LoginView { username: "", tenant: None, ..login }));
    add("login for the account", login::page(&LoginView { client: None, ..login }));
    for problem in PROBLEMS {
        add(&format!("login {problem:?}"), login::page(&LoginView { problem: Some(problem), ..login }));
    }
    let providers = [Provider { name: "corp", display_name: name }, Provider { name, display_name: "Hub" }];
    let several = LoginView { providers: &providers, ..login };
    add("login with providers", login::page(&several));
    let alone = LoginView { password: false, someone_else: true, ..several };
    add("providers alone", login::page(&alone));
    let cancelled = Some(LoginProblem::UpstreamCancelled);
    add("providers after a problem", login::page(&LoginView { problem: cancelled, ..alone }));
    let account = Account { name, username: name };
    add("chooser", login::page(&LoginView { present_account: Some(account), ..login }));
    let scopes = scopes(name);
    let claims = ["birthdate", name];
    let consent = consent_view(chrome, name, &scopes, &claims);
    add("consent", consent::page(&consent));
    add(
        "consent again",
        consent::page(&ConsentView { drawn_again: true, may_remember: false, claims: &[], ..consent }),
    );
    add_account_pages(chrome, name, &scopes, &mut add);
    for (page, markup) in device_pages(chrome, name, &scopes) {
        add(&page, markup);
    }
    let client = Some(client(name));
    let logout = LogoutView { chrome, action: ACTION, form_token: "TOKEN", account, client, drawn_again: false };
    add("logout", logout::page(&logout));
    add("logout again", logout::page(&LogoutView { drawn_again: true, client: None, ..logout }));
    let back = Some(BackLink { name, uri: "https://client.example/" });
    let signed_out =
        SignedOutView { chrome, back, unknown_way_back: false, frames: &[], provider: None, goes_on: false };
    add("signed out", logout::signed_out_page(&signed_out));
    let stranded = SignedOutView { back: None, unknown_way_back: true, ..signed_out };
    add("signed out, unknown way back", logout::signed_out_page(&stranded));
    let frames = [ClientFrame { client_name: name, address: "https://client.example/out?iss=i&sid=s" }];
    add(
        "signed out with frames",
        logout::signed_out_page(&SignedOutView { frames: &frames, goes_on: true, ..signed_out }),
    );
    let provider = Some(BackLink { name, uri: "https://client.example/upstream" });
    add(
        "signed out with frames, going upstream",
        logout::signed_out_page(&SignedOutView { frames: &frames, provider, goes_on: true, ..signed_out }),
    );
    for problem in FAILURES {
        let (reason_code, reason_text) = (Some("GP1207"), Some(name));
        let (home, sign_in) = (Some("/auth/"), Some("/auth/login?r=x"));
        let view = ErrorView { chrome, problem, reason_code, reason_text, home, sign_in };
        add(&format!("error {problem:?}"), error::page(&view));
    }
    let fields = [("state", name), (name, "x"), ("code", "C")];
    add(
        "form_post",
        form_post::page(&FormPostView { chrome, action: "https://client.example/cb?a=1&b='", fields: &fields }),
    );
    add("home", home::page(chrome, "/auth/account?ui_locales=de"));
    pages
}

const ACCOUNT_PROBLEMS: [AccountProblem; 13] = [
    AccountProblem::SessionChanged,
    AccountProblem::NothingThere,
    AccountProblem::PresentPasswordMissing,
    AccountProblem::PresentPasswordWrong,
    AccountProblem::TooManyAttempts { minutes: 2 },
    AccountProblem::NewPasswordUnfit,
    AccountProblem::NewPasswordsDiffer,
    AccountProblem::LastWayIn,
    AccountProblem::LinkedElsewhere,
    AccountProblem::LinkExpired,
    AccountProblem::SignInTooOld,
    AccountProblem::LinkCancelled,
    AccountProblem::ProviderUnavailable,
];

fn add_account_pages(
    chrome: Chrome<'_>,
    name: &str,
    scopes: &[ConsentScope<'_>],
    add: &mut impl FnMut(&str, maud::Markup),
) {
    let until = NOW.plus(Duration::from_secs(36_000));
    let session = SessionItem { sid: "SID", since: NOW, until, provider: None, is_this: true };
    let sessions = [session, SessionItem { sid: name, provider: Some(name), is_this: false, ..session }];
    let applications = [ApplicationItem { client_id: name, client: client(name), scopes, since: NOW }];
    let identity =
        IdentityItem { form_name: "IDENTITY", provider: name, known_as: Some(name), subject: name, since: NOW };
    let identities = [identity, IdentityItem { known_as: None, ..identity }];
    let linkable = [ProviderItem { name: "corp", display_name: name }, ProviderItem { name, display_name: "Other" }];
    let view = AccountView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        sign_out: "/auth/logout",
        account: Account { name, username: name },
        tenant: Some(name),
        outcome: None,
        sessions: &sessions,
        applications: &applications,
        identities: &identities,
        linkable: &linkable,
        has_password: true,
    };
    add("account", account::page(&view));
    let bare = AccountView { sessions: &sessions[..1], applications: &[], tenant: None, has_password: false, ..view };
    add("linkable account", account::page(&AccountView { identities: &[], ..bare }));
    add("linked account", account::page(&AccountView { linkable: &[], ..bare }));
    add("an empty account", account::page(&AccountView { identities: &[], linkable: &[], ..bare }));
    let done = [
        Outcome::SessionEnded,
        Outcome::OtherSessionsEnded,
        Outcome::AccessWithdrawn(name),
        Outcome::PasswordChanged,
        Outcome::SignedInAnew,
        Outcome::IdentityLinked(name),
        Outcome::IdentityLinkedAlready(name),
        Outcome::IdentityUnlinked(name),
    ];
    for (index, outcome) in done.into_iter().enumerate() {
        add(&format!("account done {index}"), account::page(&AccountView { outcome: Some(outcome), ..view }));
    }
    for problem in ACCOUNT_PROBLEMS {
        let outcome = Some(Outcome::Problem(problem));
        add(&format!("account {problem:?}"), account::page(&AccountView { outcome, ..view }));
    }
    let link = LinkView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        offer: "OFFER",
        account: view.account,
        provider: name,
        label: Some(name),
        subject: name,
        back: "/auth/account",
    };
    add("link", link::page(&link));
    add("link without a label", link::page(&LinkView { label: None, ..link }));
}

fn client(name: &str) -> Client<'_> {
    Client {
        name,
        logo: Some("/auth/static/logos/x"),
        home: Some("https://client.example/"),
        policy: Some("https://client.example/policy?a&b"),
        terms: Some(name),
    }
}

const CODE_PROBLEMS: [UserCodeProblem; 4] = [
    UserCodeProblem::Missing,
    UserCodeProblem::Wrong,
    UserCodeProblem::TooMany { minutes: 1 },
    UserCodeProblem::PageExpired,
];

fn device_pages(chrome: Chrome<'_>, name: &str, scopes: &[ConsentScope<'_>]) -> Vec<(String, maud::Markup)> {
    let code = UserCodeView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        user_code: name,
        to_be_compared: true,
        problem: None,
    };
    let device = DeviceView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        client: client(name),
        account: Account { name, username: "alice" },
        user_code: "BCDF-GHJK",
        scopes,
        drawn_again: false,
    };
    let typed = UserCodeView { user_code: "", to_be_compared: false, ..code };
    let mut pages = vec![
        (String::from("device code from the link"), device::user_code_page(&code)),
        (String::from("device code"), device::user_code_page(&typed)),
        (String::from("device"), device::page(&device)),
        (String::from("device again"), device::page(&DeviceView { drawn_again: true, ..device })),
    ];
    for problem in CODE_PROBLEMS {
        let view = UserCodeView { problem: Some(problem), ..typed };
        pages.push((format!("device code {problem:?}"), device::user_code_page(&view)));
    }
    for allowed in [true, false] {
        let view = DecidedView { chrome, client: client(name), allowed };
        pages.push((format!("decided {allowed}"), device::decided_page(&view)));
    }
    pages
}

fn login_view<'a>(chrome: Chrome<'a>, name: &'a str) -> LoginView<'a> {
    LoginView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        client: Some(client(name)),
        tenant: Some(name),
        username: name,
        problem: None,
        password: true,
        providers: &[],
        someone_else: false,
        present_account: None,
    }
}

fn scopes(name: &str) -> [ConsentScope<'_>; 4] {
    let plain = ConsentScope { name: "openid", display_name: "", description: "", required: true, emphasize: false };
    [
        plain,
        ConsentScope { name: "offline_access", required: false, emphasize: true, ..plain },
        ConsentScope { name, display_name: name, description: name, required: false, emphasize: true },
        ConsentScope { name: "orders.read", required: false, ..plain },
    ]
}

fn consent_view<'a>(
    chrome: Chrome<'a>,
    name: &'a str,
    scopes: &'a [ConsentScope<'a>],
    claims: &'a [&'a str],
) -> ConsentView<'a> {
    ConsentView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        client: client(name),
        account: Account { name, username: "alice" },
        scopes,
        claims,
        may_remember: true,
        drawn_again: false,
    }
}

/// One start tag: its name, and its attributes decoded.
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
}

impl Tag {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(attribute, _)| attribute == name).map(|(_, value)| value.as_str())
    }
}

/// The start tags of a page, read as strictly as maud writes: a quote or bracket out of place is a failed test.
pub(super) fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some((_, after)) = rest.split_once('<') {
        if after.starts_with(['/', '!']) {
            rest = after;
            continue;
        }
        let length = after.find([' ', '>']).expect("a tag ends");
        let mut tag = Tag { name: after[..length].to_owned(), attributes: Vec::new() };
        assert!(tag.name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "odd tag {:?}", tag.name);
        rest = &after[length..];
        while let Some(attribute) = rest.strip_prefix(' ') {
            let length = attribute.find(['=', ' ', '>']).expect("an attribute ends");
            let name = attribute[..length].to_owned();
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "odd attribute {name:?}");
            rest = &attribute[length..];
            let value = rest.strip_prefix("=\"").map(|quoted| {
                let (value, after) = quoted.split_once('"').expect("a closing quote");
                rest = after;
                value
            });
            tag.attributes.push((name, decode(value.unwrap_or(""))));
        }
        rest = rest.strip_prefix('>').expect("a tag closes");
        tags.push(tag);
    }
    tags
}

fn decode(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// What a reader sees of a page, with the tags taken out.
pub(super) fn words(html: &str) -> String {
    let mut words = String::new();
    for piece in html.split('<').skip(1) {
        words.push_str(piece.split_once('>').expect("a tag closes").1);
    }
    decode(&words)
}

pub(super) fn every_page() -> &'static [Page] {
    static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
        let in_each = |language: Language| PAYLOADS.into_iter().flat_map(move |name| pages(language, name));
        Language::ALL.into_iter().flat_map(in_each).collect()
    });
    &PAGES
}
