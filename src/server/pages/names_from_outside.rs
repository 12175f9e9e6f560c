//! What tests ask of pages, here and in the crate above: whatever the names from outside are, they
//! are shown whole, and pages keep their structure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::string_slice,
    reason = "a panic is how a test fails"
)]

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::language::Language;

pub struct Page {
    pub name: String,
    pub html: String,
}

const PAYLOADS: [&str; 7] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onfocus='alert(1)' autofocus x='",
    "a&b&amp;c&lt;",
    "\u{202e}\u{2066}gnp.exe\u{200b}\u{feff}",
    "</title></textarea></style><!--",
    "{}{{0}}${x}\r\n\t\0",
];

/// As it stands in a page, and in an address.
pub fn escaped(name: &str) -> [String; 2] {
    let text = name
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;");
    [
        text,
        utf8_percent_encode(name, NON_ALPHANUMERIC).to_string(),
    ]
}

/// `pages` draws each page with a name wherever one from outside can stand.
pub fn assert_names_keep_the_structure(pages: impl Fn(Language, &str) -> Vec<Page>) {
    let long = "x".repeat(2_000);
    for language in Language::ALL {
        let plain = pages(language, "plain");
        for name in PAYLOADS.into_iter().chain([long.as_str()]) {
            let [text, address] = escaped(name);
            for (page, plain) in pages(language, name).iter().zip(&plain) {
                let restored = page.html.replace(&text, "plain").replace(&address, "plain");
                assert_eq!(restored, plain.html, "{}: {name:?}", page.name);
            }
        }
    }
}

/// `pages` are drawn with this name.
pub fn assert_names_are_isolated(pages: Vec<Page>, name: &str) {
    for page in pages {
        let main = page
            .html
            .split_once("<main")
            .unwrap()
            .1
            .split_once("</main>")
            .unwrap()
            .0;
        for (before, _) in main.match_indices(name).map(|(at, _)| main.split_at(at)) {
            let in_tag = before.rfind('<') > before.rfind('>');
            let alone = before.ends_with("<code>") || before.ends_with("<dd lang=\"en\">");
            let isolated = before.rfind("<bdi>") > before.rfind("</bdi>");
            assert!(
                in_tag || alone || isolated,
                "{}: ...{}",
                page.name,
                &before[before.len().saturating_sub(60)..]
            );
        }
    }
}

/// But for those that search, which change nothing. `action_of` says where a form goes; the token
/// is `TOKEN`.
pub fn assert_forms_post_with_one_token(page: &Page, action_of: impl Fn(&str) -> &'static str) {
    let name = &page.name;
    for form in page.html.split("<form").skip(1) {
        let form = form.split_once("</form>").expect("a form closes").0;
        if form.contains("role=\"search\"") {
            continue;
        }
        let token = r#"<input type="hidden" name="form_token" value="TOKEN">"#;
        let counts = [token, "form_token"].map(|text| form.matches(text).count());
        assert_eq!(counts, [1, 1], "{name}");
        let [action, _] = escaped(action_of(form));
        let posts = format!(r#"method="post" action="{action}""#);
        assert!(form.contains(&posts), "{name}");
    }
}
