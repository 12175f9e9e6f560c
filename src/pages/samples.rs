//! Test material: every page, filled with hostile names, and a strict reader of what comes out.

use std::sync::LazyLock;
use std::time::Duration;

use super::account::{
    self, AccountProblem, AccountView, ApplicationItem, IdentityItem, Outcome, ProviderItem, SessionItem,
};
use super::brand::Brand;
use super::consent::{self, ConsentScope, ConsentView};
use super::device::{self, UserCodeProblem, UserCodeView};
use super::error::{self, ErrorView, Problem};
use super::form_post;
use super::frame::{Account, Chrome, Client};
use super::home;
use super::language::Language;
use super::link::{self, LinkView};
use super::login::{self, LoginProblem, LoginView, Provider};
use super::logout::{self, BackLink, ClientFrame, LogoutView, SignedOutView};
use crate::protocol::words::samples::NOW;

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

pub(super) struct Page {
    pub(super) name: String,
    pub(super) html: String,
}

/// Every page in one language, with `name` wherever a name from outside can stand.
pub(super) fn pages(language: Language, name: &str) -> Vec<Page> {
    let (privacy, terms) = (Some("https://brand.example/privacy"), Some("https://brand.example/terms"));
    let brand = Brand { name, logo: None, color: Some("#884400"), privacy_url: privacy, terms_url: terms };
    let logo_brand = Brand { logo: Some(name), color: None, privacy_url: Some(name), terms_url: None, ..brand };
    let texts = language.texts();
    let chrome = Chrome { brand: &brand, texts, base_path: "/auth", assets_version: name, request_id: name };
    let mut pages = Vec::new();
    for (suffix, chrome) in [("", chrome), (" with logo", Chrome { brand: &logo_brand, ..chrome })] {
        let mut add = |page: &str, markup: maud::Markup| {
            pages.push(Page { name: format!("{page}{suffix} ({language:?})"), html: markup.into_string() });
        };
        let scopes = scopes(name);
        add_login_pages(chrome, name, &mut add);
        add_account_pages(chrome, name, &scopes, &mut add);
        add_device_pages(chrome, name, &mut add);
        add_logout_pages(chrome, name, &mut add);
        let (client, account, claims) = (client(name), Account { name, username: "alice" }, ["birthdate", name]);
        let (action, form_token, scopes) = (ACTION, "TOKEN", &scopes);
        let (may_remember, drawn_again, claims) = (true, false, &claims);
        let consent = ConsentView {
            chrome,
            action,
            form_token,
            client,
            account,
            user_code: None,
            scopes,
            claims,
            may_remember,
            drawn_again,
        };
        add("consent", consent::page(&consent));
        let again = ConsentView { drawn_again: true, may_remember: false, claims: &[], ..consent };
        add("consent again", consent::page(&again));
        let device = ConsentView { user_code: Some("BCDF-GHJK"), drawn_again: false, ..again };
        add("device", consent::page(&device));
        add("device again", consent::page(&ConsentView { drawn_again: true, ..device }));
        let (problem, reason_code, reason_text) = (Problem::BadRequest, Some("GP1207"), Some(name));
        let (home, sign_in) = (Some("/auth/"), Some("/auth/login?r=x"));
        add("error", error::page(&ErrorView { chrome, problem, reason_code, reason_text, home, sign_in }));
        let fields = [("state", name), (name, "x"), ("code", "C")].map(|(name, value)| (name, value.to_owned()));
        add("form_post", form_post::page(chrome, "https://client.example/cb?a=1&b='", &fields));
        add("home", home::page(chrome, "/auth/account?ui_locales=de"));
    }
    pages
}

fn add_login_pages(chrome: Chrome<'_>, name: &str, add: &mut impl FnMut(&str, maud::Markup)) {
    let login = LoginView {
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
    };
    add("login", login::page(&login));
    add("login for the account", login::page(&LoginView { client: None, ..login }));
    let problem = Some(LoginProblem::WrongCredentials);
    add("login with a problem", login::page(&LoginView { problem, ..login }));
    let providers = [Provider { name: "corp", display_name: name }, Provider { name, display_name: "Hub" }];
    let several = LoginView { providers: &providers, ..login };
    add("login with providers", login::page(&several));
    let alone = LoginView { password: false, someone_else: true, ..several };
    add("providers alone", login::page(&alone));
    let account = Account { name, username: name };
    add("chooser", login::page(&LoginView { present_account: Some(account), ..login }));
}

fn add_logout_pages(chrome: Chrome<'_>, name: &str, add: &mut impl FnMut(&str, maud::Markup)) {
    let (account, client) = (Account { name, username: name }, Some(client(name)));
    let logout = LogoutView { chrome, action: ACTION, form_token: "TOKEN", account, client, drawn_again: false };
    add("logout", logout::page(&logout));
    add("logout again", logout::page(&LogoutView { drawn_again: true, client: None, ..logout }));
    let back = Some(BackLink { name, uri: "https://client.example/" });
    let frames = [ClientFrame { client_name: name, address: "https://client.example/out?iss=i&sid=s" }];
    let ended = SignedOutView { chrome, back, unknown_way_back: false, frames: &[], provider: None, goes_on: false };
    add("signed out", logout::signed_out_page(&ended));
    let stranded = SignedOutView { back: None, unknown_way_back: true, ..ended };
    add("signed out, unknown way back", logout::signed_out_page(&stranded));
    let framed = SignedOutView { frames: &frames, goes_on: true, ..ended };
    add("signed out with frames", logout::signed_out_page(&framed));
    let provider = Some(BackLink { name, uri: "https://client.example/upstream" });
    add("signed out with frames, upstream", logout::signed_out_page(&SignedOutView { provider, ..framed }));
}

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
    let (form_name, known_as, subject) = ("IDENTITY", Some(name), name);
    let identity = IdentityItem { form_name, provider: name, known_as, subject, since: NOW };
    let identities = [identity, IdentityItem { known_as: None, ..identity }];
    let linkable = [ProviderItem { name: "corp", display_name: name }, ProviderItem { name, display_name: "Other" }];
    let account = Account { name, username: name };
    let view = AccountView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        sign_out: "/auth/logout",
        account,
        tenant: Some(name),
        outcome: None,
        sessions: &sessions,
        applications: &applications,
        identities: &identities,
        linkable: &linkable,
        has_password: true,
    };
    add("account", account::page(&view));
    let linked = [Outcome::IdentityLinked(name), Outcome::IdentityLinkedAlready(name), Outcome::IdentityUnlinked(name)];
    let problem = Outcome::Problem(AccountProblem::PresentPasswordWrong);
    for (number, outcome) in linked.into_iter().chain([Outcome::AccessWithdrawn(name), problem]).enumerate() {
        add(&format!("account {number}"), account::page(&AccountView { outcome: Some(outcome), ..view }));
    }
    let (action, form_token, offer, label, back) = (ACTION, "TOKEN", "OFFER", Some(name), "/auth/account");
    let link = LinkView { chrome, action, form_token, offer, account, provider: name, label, subject: name, back };
    add("link", link::page(&link));
    add("link without a label", link::page(&LinkView { label: None, ..link }));
}

fn add_device_pages(chrome: Chrome<'_>, name: &str, add: &mut impl FnMut(&str, maud::Markup)) {
    let (action, form_token) = (ACTION, "TOKEN");
    let code = UserCodeView { chrome, action, form_token, user_code: name, to_be_compared: true, problem: None };
    add("device code from the link", device::user_code_page(&code));
    let problem = Some(UserCodeProblem::Wrong);
    add("device code after a problem", device::user_code_page(&UserCodeView { problem, ..code }));
    let client = client(name);
    for allowed in [true, false] {
        add(&format!("decided {allowed}"), device::decided_page(chrome, client, allowed));
    }
}

fn client(name: &str) -> Client<'_> {
    let (home, policy) = (Some("https://client.example/"), Some("https://client.example/policy?a&b"));
    Client { name, logo: Some("/auth/static/logos/x"), home, policy, terms: Some(name) }
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

/// One start tag: its name, and its attributes decoded.
pub(super) struct Tag {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
}

impl Tag {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(attribute, _)| attribute == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn is(&self, attribute: &str, value: &str) -> bool {
        self.attribute(attribute) == Some(value)
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
