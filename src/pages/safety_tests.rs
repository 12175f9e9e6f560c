//! Whatever the names from outside are, pages keep their structure, send forms only where they should, and load nothing foreign.

use super::brand::Brand;
use super::form_post::{self, FormPostView};
use super::frame::Chrome;
use super::language::Language;
use super::samples::{ACTION, PAYLOADS, Tag, every_page, pages, tags, words};

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
        let asking = ["login", "providers", "chooser", "consent", "logout", "account", "link", "device"];
        let asks = asking.iter().any(|name| page.name.starts_with(name));
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
            assert!(tag.name != "style" && tag.name != "base", "{}: {}", page.name, tag.name);
            let is_frame = tag.name == "iframe";
            assert!(!is_frame || page.name.starts_with("signed out with frames"), "{}", page.name);
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
                assert!(!loads || local || is_frame, "{}: {name}={value}", page.name);
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
fn no_page_source_bypasses_the_escaping() {
    let sources = [
        include_str!("brand.rs"),
        include_str!("consent.rs"),
        include_str!("error.rs"),
        include_str!("form_post.rs"),
        include_str!("frame.rs"),
        include_str!("home.rs"),
        include_str!("link.rs"),
        include_str!("login.rs"),
        include_str!("logout.rs"),
    ];
    assert!(sources.iter().all(|source| !source.contains("PreEscaped")));
}
