//! What must hold on every page, whatever the names in it are.

use super::brand::Brand;
use super::consent::{self, ConsentScope, ConsentView};
use super::error::{self, ErrorView, Problem};
use super::form_post::{self, FormPostView};
use super::frame::{Account, Chrome, Client};
use super::home;
use super::language::Language;
use super::login::{self, LoginProblem, LoginView};
use super::logout::{self, BackLink, LogoutView, SignedOutView};

const ACTION: &str = "/auth/login?request=AAAA&x='\"<>";
const PAYLOADS: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onfocus='alert(1)' autofocus x='",
    "a&b&amp;c&lt;",
    "\u{202e}\u{2066}gnp.exe\u{200b}\u{feff}",
    "</title></textarea></style><!--",
    "{}{{0}}${x}\r\n\t\0",
];

const PROBLEMS: [LoginProblem; 6] = [
    LoginProblem::WrongCredentials,
    LoginProblem::TooManyAttempts { minutes: 7 },
    LoginProblem::PageExpired,
    LoginProblem::UsernameMissing,
    LoginProblem::PasswordMissing,
    LoginProblem::BothMissing,
];

const FAILURES: [Problem; 8] = [
    Problem::BadRequest,
    Problem::Forbidden,
    Problem::NotFound,
    Problem::MethodNotAllowed,
    Problem::TooLarge,
    Problem::TooManyRequests { minutes: 1 },
    Problem::Internal,
    Problem::Unavailable,
];

struct Page {
    name: String,
    html: String,
}

/// Every page in one language, with `name` wherever a name from outside can stand.
fn pages(language: Language, name: &str) -> Vec<Page> {
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
    for problem in PROBLEMS {
        add(&format!("login {problem:?}"), login::page(&LoginView { problem: Some(problem), ..login }));
    }
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
    let client = Some(client(name));
    let logout = LogoutView { chrome, action: ACTION, form_token: "TOKEN", account, client, drawn_again: false };
    add("logout", logout::page(&logout));
    add("logout again", logout::page(&LogoutView { drawn_again: true, client: None, ..logout }));
    let back = BackLink { name, uri: "https://client.example/" };
    add("signed out", logout::signed_out_page(&SignedOutView { chrome, back: Some(back) }));
    for problem in FAILURES {
        let view =
            ErrorView { chrome, problem, reason_code: Some("GP1207"), reason_text: Some(name), home: Some("/auth/") };
        add(&format!("error {problem:?}"), error::page(&view));
    }
    let fields = [("state", name), (name, "x"), ("code", "C")];
    add(
        "form_post",
        form_post::page(&FormPostView { chrome, action: "https://client.example/cb?a=1&b='", fields: &fields }),
    );
    add("home", home::page(chrome));
    pages
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

fn login_view<'a>(chrome: Chrome<'a>, name: &'a str) -> LoginView<'a> {
    LoginView {
        chrome,
        action: ACTION,
        form_token: "TOKEN",
        client: client(name),
        tenant: Some(name),
        username: name,
        problem: None,
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
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(attribute, _)| attribute == name).map(|(_, value)| value.as_str())
    }
}

/// The start tags of a page, read as strictly as maud writes: a quote or bracket out of place is a failed test.
fn tags(html: &str) -> Vec<Tag> {
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
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// What a reader sees of a page, with the tags taken out.
fn words(html: &str) -> String {
    let mut words = String::new();
    for piece in html.split('<').skip(1) {
        words.push_str(piece.split_once('>').expect("a tag closes").1);
    }
    decode(&words)
}

fn every_page() -> Vec<Page> {
    Language::ALL
        .into_iter()
        .flat_map(|language| PAYLOADS.into_iter().flat_map(move |name| pages(language, name)))
        .collect()
}

/// The tags of a page with their names and attribute names, without any value.
fn skeleton(html: &str) -> Vec<String> {
    let shape =
        |tag: &Tag| format!("{} {:?}", tag.name, tag.attributes.iter().map(|(name, _)| name).collect::<Vec<_>>());
    tags(html).iter().map(shape).collect()
}

#[test]
fn names_from_outside_never_change_the_structure() {
    for language in Language::ALL {
        let plain = pages(language, "plain");
        let long = "x".repeat(2_000);
        for name in PAYLOADS.into_iter().chain([long.as_str()]) {
            for (page, plain) in pages(language, name).iter().zip(&plain) {
                assert_eq!(skeleton(&page.html), skeleton(&plain.html), "{}: {name:?}", page.name);
            }
        }
    }
}

#[test]
fn names_from_outside_are_shown_whole() {
    for language in Language::ALL {
        for name in PAYLOADS {
            for page in pages(language, name) {
                let in_attribute =
                    tags(&page.html).iter().any(|tag| tag.attributes.iter().any(|(_, value)| value == name));
                assert!(words(&page.html).contains(name) || in_attribute, "{}: {name:?}", page.name);
            }
        }
    }
}

#[test]
fn names_in_sentences_are_isolated_from_their_direction() {
    let name = "\u{202e}evil";
    for page in pages(Language::English, name) {
        let main = page.html.split_once("<main").unwrap().1.split_once("</main>").unwrap().0;
        for (before, _) in main.match_indices(name).map(|(at, _)| main.split_at(at)) {
            let in_tag = before.rfind('<') > before.rfind('>');
            let alone = before.ends_with("<code>") || before.ends_with("<dd lang=\"en\">");
            let isolated = before.rfind("<bdi>") > before.rfind("</bdi>");
            assert!(in_tag || alone || isolated, "{}: ...{}", page.name, &before[before.len().saturating_sub(60)..]);
        }
    }
}

#[test]
fn every_form_posts_and_carries_one_form_token() {
    for page in every_page() {
        let tags = tags(&page.html);
        let forms: Vec<&Tag> = tags.iter().filter(|tag| tag.name == "form").collect();
        assert!(forms.iter().all(|form| form.attribute("method") == Some("post")), "{}", page.name);
        let asks = ["login", "chooser", "consent", "logout"].iter().any(|name| page.name.starts_with(name));
        assert_eq!(asks, forms.iter().any(|form| form.attribute("action") == Some(ACTION)), "{}", page.name);
        for form in page.html.split("<form").skip(1).filter(|_| asks) {
            let form = form.split_once("</form>").expect("a form closes").0;
            assert_eq!(
                form.matches(r#"<input type="hidden" name="form_token" value="TOKEN">"#).count(),
                1,
                "{}",
                page.name
            );
            assert_eq!(form.matches("form_token").count(), 1, "{}", page.name);
        }
    }
}

#[test]
fn the_form_post_page_has_one_form_to_exactly_the_redirect_uri() {
    for action in ["https://client.example/cb?a=1&b=\"2\"&amp;c='<x>", "http://127.0.0.1:9/", "https://x.example/?"] {
        for page in pages(Language::English, "plain").iter().filter(|page| page.name.starts_with("form_post")) {
            assert_eq!(page.html.matches("form-post.js?v=plain\"></script>").count(), 1);
        }
        let brand =
            Brand { name: "B", logo: None, color: None, privacy_url: Some("https://p.example/"), terms_url: None };
        let chrome = Chrome {
            brand: &brand,
            texts: Language::German.texts(),
            base_path: "",
            assets_version: "1",
            request_id: "0",
        };
        let state = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\r\n\u{202e}";
        let fields = [("code", "C"), ("state", state), ("submit", "x")];
        let html = form_post::page(&FormPostView { chrome, action, fields: &fields }).into_string();
        let tags = tags(&html);
        let forms: Vec<&Tag> = tags.iter().filter(|tag| tag.name == "form").collect();
        assert_eq!(forms.len(), 1);
        assert_eq!(forms[0].attribute("action"), Some(action));
        let inputs: Vec<_> = tags.iter().filter(|tag| tag.name == "input").collect();
        let sent: Vec<_> =
            inputs.iter().map(|tag| (tag.attribute("name").unwrap(), tag.attribute("value").unwrap())).collect();
        assert_eq!(sent, fields);
        assert!(inputs.iter().all(|tag| tag.attribute("type") == Some("hidden")));
        assert!(!tags.iter().any(|tag| tag.name == "a"), "nothing leads elsewhere");
        let button = tags.iter().find(|tag| tag.name == "button").expect("a button for browsers without scripts");
        assert_eq!(button.attribute("name"), None, "a name would travel with the response");
    }
}

#[test]
fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
    for page in every_page() {
        for tag in tags(&page.html) {
            assert!(tag.name != "style" && tag.name != "iframe" && tag.name != "base", "{}: {}", page.name, tag.name);
            assert_eq!(
                tag.name == "script",
                tag.name == "script" && page.name.starts_with("form_post"),
                "{}",
                page.name
            );
            assert!(tag.name != "script" || tag.attribute("src").is_some(), "{}", page.name);
            for (name, value) in &tag.attributes {
                assert!(name != "style" && !name.starts_with("on"), "{}: {name}", page.name);
                let loads = name == "src" || (name == "href" && tag.name == "link");
                let local = value.starts_with("/auth/static/") || PAYLOADS.contains(&value.as_str());
                assert!(!loads || local, "{}: {name}={value}", page.name);
                let leads =
                    ["https://client.example/", "https://brand.example/"].iter().any(|site| value.starts_with(site));
                assert!(!value.contains("://") || leads, "{}: {name}={value}", page.name);
            }
        }
        assert!(page.html.matches("<script").count() == page.html.matches("></script>").count(), "{}", page.name);
    }
}

#[test]
fn registered_addresses_that_are_not_on_the_web_are_no_links() {
    for uri in ["javascript:alert(1)", "data:text/html,x", "intent://x", ""] {
        for page in pages(Language::English, uri) {
            for link in tags(&page.html).iter().filter(|tag| tag.name == "a") {
                let href = link.attribute("href").expect("a link leads somewhere");
                assert!(
                    href.starts_with("https://") || href.starts_with('#') || href.starts_with('/'),
                    "{}: {href}",
                    page.name
                );
            }
        }
    }
}

#[test]
fn the_document_says_its_language() {
    for language in Language::ALL {
        for page in pages(language, "plain") {
            let start = format!("<!DOCTYPE html><html lang=\"{}\"><head><meta charset=\"utf-8\">", language.tag());
            assert!(page.html.starts_with(&start), "{}", page.name);
        }
    }
}

#[test]
fn labels_descriptions_and_summary_links_lead_to_what_exists() {
    for page in every_page() {
        let tags = tags(&page.html);
        let mut ids: Vec<&str> = tags.iter().filter_map(|tag| tag.attribute("id")).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{}: an id stands twice", page.name);
        for tag in &tags {
            let fragment = tag.attribute("href").and_then(|href| href.strip_prefix('#'));
            for wanted in [tag.attribute("for"), tag.attribute("aria-describedby"), fragment].into_iter().flatten() {
                assert!(ids.contains(&wanted), "{}: no id {wanted}", page.name);
            }
        }
        for input in tags.iter().filter(|tag| tag.name == "input" && tag.attribute("type") != Some("hidden")) {
            let id = input.attribute("id").expect("an input has an id");
            assert!(tags.iter().any(|tag| tag.attribute("for") == Some(id)), "{}: no label for {id}", page.name);
        }
    }
}

#[test]
fn headings_start_at_one_and_skip_nothing() {
    for page in every_page() {
        let tags = tags(&page.html);
        let levels: Vec<&str> =
            tags.iter().map(|tag| tag.name.as_str()).filter(|name| ["h1", "h2", "h3", "h4"].contains(name)).collect();
        assert_eq!(levels.first(), Some(&"h1"), "{}", page.name);
        assert!(levels.iter().skip(1).all(|level| *level == "h2"), "{}: {levels:?}", page.name);
        assert_eq!(tags.iter().filter(|tag| tag.name == "main").count(), 1, "{}", page.name);
    }
}

#[test]
fn focus_goes_to_the_first_empty_field_of_the_sign_in() {
    for page in every_page() {
        let focused: Vec<String> = tags(&page.html)
            .iter()
            .filter(|tag| tag.attribute("autofocus").is_some())
            .map(|tag| tag.attribute("name").expect("a field").to_owned())
            .collect();
        let expected: &[&str] = match page.name.as_str() {
            name if name.starts_with("login without hint") => &["username"],
            name if name.starts_with("login") => &["password"],
            _ => &[],
        };
        assert_eq!(focused, expected, "{}", page.name);
    }
}

#[test]
fn a_problem_is_announced_and_marks_its_fields() {
    for page in every_page().iter().filter(|page| page.name.starts_with("login")) {
        let tags = tags(&page.html);
        let alerts = tags.iter().filter(|tag| tag.attribute("role") == Some("alert")).count();
        let wrong: Vec<&str> = tags
            .iter()
            .filter(|tag| tag.attribute("aria-invalid") == Some("true"))
            .inspect(|tag| assert_eq!(tag.attribute("aria-describedby"), Some("problem")))
            .filter_map(|tag| tag.attribute("name"))
            .collect();
        let problem = page.name.split(' ').nth(1).unwrap_or("");
        let (expected_alerts, expected_wrong): (usize, &[&str]) = match problem {
            "WrongCredentials" | "BothMissing" => (1, &["username", "password"]),
            "UsernameMissing" => (1, &["username"]),
            "PasswordMissing" => (1, &["password"]),
            "TooManyAttempts" | "PageExpired" => (1, &[]),
            _ => (0, &[]),
        };
        assert_eq!((alerts, wrong.as_slice()), (expected_alerts, expected_wrong), "{}", page.name);
        assert_eq!(page.html.contains("<title>Error: ") || page.html.contains("<title>Fehler: "), alerts == 1);
    }
}

#[test]
fn the_password_is_never_prefilled_and_fields_say_what_they_are_for() {
    for page in every_page().iter().filter(|page| page.name.starts_with("login")) {
        let tags = tags(&page.html);
        let field = |name| tags.iter().find(|tag| tag.attribute("name") == Some(name)).expect("the field");
        assert_eq!(field("password").attribute("value"), None);
        assert_eq!(field("password").attribute("type"), Some("password"));
        assert_eq!(field("password").attribute("autocomplete"), Some("current-password"));
        assert_eq!(field("username").attribute("autocomplete"), Some("username"));
        assert_eq!(field("username").attribute("autocapitalize"), Some("none"));
        assert_eq!(field("username").attribute("spellcheck"), Some("false"));
        let buttons: Vec<_> =
            tags.iter().filter(|tag| tag.name == "button").map(|tag| tag.attribute("value")).collect();
        assert_eq!(buttons, [None, Some("cancel")], "Enter must press the sign-in");
        assert!(field("decision").attribute("formnovalidate").is_some(), "going back needs no password");
    }
}

#[test]
fn the_chooser_asks_for_no_password() {
    for page in every_page().iter().filter(|page| page.name.starts_with("chooser")) {
        let tags = tags(&page.html);
        assert!(tags.iter().all(|tag| tag.attribute("name") != Some("password")));
        let buttons: Vec<_> =
            tags.iter().filter(|tag| tag.name == "button").filter_map(|tag| tag.attribute("value")).collect();
        assert_eq!(buttons, ["continue", "another", "cancel"]);
    }
}

#[test]
fn required_scopes_are_locked_and_only_those() {
    for page in every_page().iter().filter(|page| page.name.starts_with("consent")) {
        let tags = tags(&page.html);
        let boxes: Vec<&Tag> = tags.iter().filter(|tag| tag.attribute("name") == Some("scope")).collect();
        assert_eq!(boxes.len(), 4);
        for scope in boxes {
            assert!(scope.attribute("checked").is_some());
            assert_eq!(scope.attribute("disabled").is_some(), scope.attribute("value") == Some("openid"));
        }
        let decisions: Vec<_> =
            tags.iter().filter(|tag| tag.name == "button").filter_map(|tag| tag.attribute("value")).collect();
        assert_eq!(decisions, ["another", "allow", "deny"]);
        let remembers = tags.iter().any(|tag| tag.attribute("name") == Some("remember"));
        assert_eq!(remembers, !page.name.starts_with("consent again"));
        assert_eq!(page.html.matches("choice emphasized").count(), 2);
    }
}

#[test]
fn standard_scopes_and_claims_are_explained_in_the_pages_language() {
    for (language, away, birth) in [
        (Language::English, "while you are away", "Date of birth"),
        (Language::German, "in Ihrer Abwesenheit", "Geburtsdatum"),
    ] {
        let consent = pages(language, "plain").into_iter().find(|page| page.name.starts_with("consent (")).expect("it");
        let words = words(&consent.html);
        assert!(words.contains(away) && words.contains(birth), "{language:?}: {words}");
        assert!(words.contains("orders.read"), "a scope without words shows its name");
    }
}

#[test]
fn the_error_page_tells_reference_and_reason() {
    let brand = Brand { name: "B", logo: None, color: None, privacy_url: None, terms_url: None };
    for language in Language::ALL {
        let chrome = Chrome {
            brand: &brand,
            texts: language.texts(),
            base_path: "",
            assets_version: "1",
            request_id: "00c0ffee00c0ffee",
        };
        let mut headings = Vec::new();
        for problem in FAILURES {
            let view = ErrorView { chrome, problem, reason_code: Some("GP1207"), reason_text: None, home: None };
            let html = error::page(&view).into_string();
            assert!(html.contains("<code>00c0ffee00c0ffee</code>") && html.contains("<code>GP1207</code>"));
            assert!(!html.contains("<form") && !html.contains("<a ") && !html.contains("lang=\"en\">B"));
            assert!(!html.contains("brand.css"), "no colour, no second stylesheet");
            headings.push(html.split_once("<h1>").expect("a heading").1.split_once('<').unwrap().0.to_owned());
        }
        headings.sort();
        headings.dedup();
        assert_eq!(headings.len(), FAILURES.len());
    }
    assert_eq!(FAILURES.map(Problem::status), [400, 403, 404, 405, 413, 429, 500, 503]);
}

#[test]
fn no_page_source_bypasses_the_escaping() {
    let sources = [
        include_str!("brand.rs"),
        include_str!("consent.rs"),
        include_str!("error.rs"),
        include_str!("form_post.rs"),
        include_str!("frame.rs"),
        include_str!("home.rs"),
        include_str!("login.rs"),
        include_str!("logout.rs"),
    ];
    assert!(sources.iter().all(|source| !source.contains("PreEscaped")));
}
