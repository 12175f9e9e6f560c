//! Whatever the names from outside are, pages keep their structure, send forms only where they should, and load nothing foreign.

use super::brand::Brand;
use super::form_post;
use super::frame::Chrome;
use super::language::Language;
use super::samples::{ACTION, PAYLOADS, Tag, every_page, pages, tags, words};

/// The tags of a page with their names and attribute names, without any value.
fn skeleton(tags: &[Tag]) -> Vec<(&str, Vec<&str>)> {
    let shape = tags.iter().map(|tag| (&tag.name, tag.attributes.iter().map(|(name, _)| name.as_str())));
    shape.map(|(name, attributes)| (name.as_str(), attributes.collect())).collect()
}

#[test]
fn names_from_outside_are_shown_whole_and_never_change_the_structure() {
    let long = "x".repeat(2_000);
    for language in Language::ALL {
        let plain = pages(language, "plain");
        for name in PAYLOADS.into_iter().chain([long.as_str()]) {
            for (page, plain) in pages(language, name).iter().zip(&plain) {
                let (found, plain) = (tags(&page.html), tags(&plain.html));
                assert_eq!(skeleton(&found), skeleton(&plain), "{}: {name:?}", page.name);
                let in_attribute = found.iter().any(|tag| tag.attributes.iter().any(|(_, value)| value == name));
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
        let mut forms = tags.iter().filter(|tag| tag.name == "form");
        assert!(forms.clone().all(|form| form.is("method", "post")), "{}", page.name);
        let asking = ["login", "providers", "chooser", "consent", "logout", "account", "link", "device"];
        let asks = asking.iter().any(|name| page.name.starts_with(name));
        assert_eq!(asks, forms.any(|form| form.is("action", ACTION)), "{}", page.name);
        for form in page.html.split("<form").skip(1).filter(|_| asks) {
            let form = form.split_once("</form>").expect("a form closes").0;
            let token = r#"<input type="hidden" name="form_token" value="TOKEN">"#;
            assert_eq!((form.matches(token).count(), form.matches("form_token").count()), (1, 1), "{}", page.name);
        }
    }
}

#[test]
fn the_form_post_page_has_one_form_to_exactly_the_redirect_uri() {
    let brand = Brand { name: "B", logo: None, color: None, privacy_url: Some("https://p.example/"), terms_url: None };
    let texts = Language::German.texts();
    let chrome = Chrome { brand: &brand, texts, base_path: "", assets_version: "1", request_id: "0" };
    let state = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\r\n\u{202e}";
    let fields = [("code", "C"), ("state", state), ("submit", "x")];
    let owned = fields.map(|(name, value)| (name, value.to_owned()));
    for action in ["https://client.example/cb?a=1&b=\"2\"&amp;c='<x>", "http://127.0.0.1:9/", "https://x.example/?"] {
        let html = form_post::page(chrome, action, &owned).into_string();
        assert_eq!(html.matches("form-post.js?v=1\"></script>").count(), 1);
        let tags = tags(&html);
        let of = |name: &'static str| tags.iter().filter(move |tag| tag.name == name);
        assert_eq!(of("form").map(|form| form.attribute("action")).collect::<Vec<_>>(), [Some(action)]);
        let sent = of("input").map(|tag| (tag.attribute("name").unwrap(), tag.attribute("value").unwrap()));
        assert_eq!(sent.collect::<Vec<_>>(), fields);
        assert!(of("input").all(|tag| tag.is("type", "hidden")));
        assert_eq!(of("a").count(), 0, "nothing leads elsewhere");
        let button = of("button").next().expect("a button for browsers without scripts");
        assert_eq!(button.attribute("name"), None, "a name would travel with the response");
    }
}

#[test]
fn nothing_is_inline_and_nothing_comes_from_elsewhere() {
    for page in every_page() {
        for tag in tags(&page.html) {
            let (is_frame, is_script) = (tag.name == "iframe", tag.name == "script");
            assert!(tag.name != "style" && tag.name != "base", "{}: {}", page.name, tag.name);
            assert!(!is_frame || page.name.starts_with("signed out with frames"), "{}", page.name);
            assert!(
                !is_script || page.name.starts_with("form_post") && tag.attribute("src").is_some(),
                "{}",
                page.name
            );
            for (name, value) in &tag.attributes {
                assert!(name != "style" && !name.starts_with("on"), "{}: {name}", page.name);
                let loads = name == "src" || (name == "href" && tag.name == "link");
                let local = value.starts_with("/auth/static/") || PAYLOADS.contains(&value.as_str());
                assert!(!loads || local || is_frame, "{}: {name}={value}", page.name);
                let known = ["https://client.example/", "https://brand.example/"];
                let leads = known.iter().any(|site| value.starts_with(site));
                assert!(!value.contains("://") || leads, "{}: {name}={value}", page.name);
            }
        }
        assert_eq!(page.html.matches("<script").count(), page.html.matches("></script>").count(), "{}", page.name);
    }
}

#[test]
fn registered_addresses_that_are_not_on_the_web_are_no_links() {
    for uri in ["javascript:alert(1)", "data:text/html,x", "intent://x", ""] {
        for page in pages(Language::English, uri) {
            for link in tags(&page.html).iter().filter(|tag| tag.name == "a") {
                let href = link.attribute("href").expect("a link leads somewhere");
                let on_the_web = ["https://", "#", "/"].iter().any(|start| href.starts_with(start));
                assert!(on_the_web, "{}: {href}", page.name);
            }
        }
    }
}

#[test]
fn no_page_fills_in_a_password() {
    for page in every_page() {
        let tags = tags(&page.html);
        let mut passwords = tags.iter().filter(|tag| tag.is("type", "password"));
        let fields = if page.name.starts_with("login") { 1 } else { 3 * usize::from(page.name.starts_with("account")) };
        assert_eq!(passwords.clone().count(), fields, "{}", page.name);
        assert!(passwords.all(|tag| tag.attribute("value").is_none()), "{}", page.name);
    }
}
