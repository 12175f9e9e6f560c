//! What a person with a keyboard, a screen reader or a password manager relies on, and what each page offers.

use super::brand::Brand;
use super::error::{self, ErrorView};
use super::frame::Chrome;
use super::language::Language;
use super::samples::{FAILURES, Page, Tag, every_page, pages, tags, words};

/// Every page whose name begins so, with its tags.
fn pages_of(start: &str) -> impl Iterator<Item = (&'static Page, Vec<Tag>)> {
    let found =
        every_page().iter().filter(move |page| page.name.starts_with(start)).map(|page| (page, tags(&page.html)));
    let found: Vec<_> = found.collect();
    assert!(!found.is_empty(), "{start}");
    found.into_iter()
}

/// An attribute of all tags of a name, where they have it.
fn told<'a>(tags: &'a [Tag], name: &str, attribute: &str) -> Vec<&'a str> {
    tags.iter().filter(|tag| tag.name == name).filter_map(|tag| tag.attribute(attribute)).collect()
}

/// How often something is said in this role.
fn said(tags: &[Tag], role: &str) -> usize {
    tags.iter().filter(|tag| tag.is("role", role)).count()
}

#[test]
fn a_page_has_its_language_one_main_headings_in_order_and_a_label_for_every_field() {
    for language in Language::ALL {
        let start = format!("<!DOCTYPE html><html lang=\"{}\"><head><meta charset=\"utf-8\">", language.tag());
        assert!(pages(language, "plain").iter().all(|page| page.html.starts_with(&start)), "{language:?}");
    }
    for (page, tags) in pages_of("") {
        let ids: Vec<&str> = tags.iter().filter_map(|tag| tag.attribute("id")).collect();
        for id in &ids {
            assert_eq!(ids.iter().filter(|other| *other == id).count(), 1, "{}: {id}", page.name);
        }
        for tag in &tags {
            let fragment = tag.attribute("href").and_then(|href| href.strip_prefix('#'));
            let named = ["for", "aria-describedby", "aria-labelledby"].map(|name| tag.attribute(name));
            for wanted in named.into_iter().chain([fragment]).flatten().flat_map(str::split_whitespace) {
                assert!(ids.contains(&wanted), "{}: no id {wanted}", page.name);
            }
            if tag.name == "input" && !tag.is("type", "hidden") {
                let id = tag.attribute("id").expect("an input has an id");
                assert!(tags.iter().any(|tag| tag.is("for", id)), "{}: no label for {id}", page.name);
            }
        }
        let is_heading = |name: &str| name.len() == 2 && name.starts_with('h') && name != "hr";
        let levels: Vec<_> = tags.iter().map(|tag| tag.name.as_str()).filter(|name| is_heading(name)).collect();
        let in_order = levels.first() == Some(&"h1") && levels.iter().skip(1).all(|level| *level == "h2");
        assert!(in_order, "{}: {levels:?}", page.name);
        assert_eq!(tags.iter().filter(|tag| tag.name == "main").count(), 1, "{}", page.name);
    }
}

#[test]
fn focus_goes_to_the_first_empty_field() {
    for (page, tags) in pages_of("") {
        let focused = tags.iter().filter(|tag| tag.attribute("autofocus").is_some());
        let focused: Vec<&str> = focused.map(|tag| tag.attribute("name").expect("a field")).collect();
        let expected: &[&str] = match page.name.as_str() {
            name if name.starts_with("login without hint") => &["username"],
            name if name.starts_with("login") => &["password"],
            name if name.starts_with("device code from the link") => &[],
            name if name.starts_with("device code") => &["user_code"],
            _ => &[],
        };
        assert_eq!(focused, expected, "{}", page.name);
    }
}

#[test]
fn a_problem_is_announced_and_marks_its_fields() {
    let in_title = Language::ALL.map(|language| format!("<title>{}", language.texts().error_in_title.parts().0));
    for (page, tags) in pages_of("login").chain(pages_of("account")) {
        let wrong = tags.iter().filter(|tag| tag.is("aria-invalid", "true"));
        let described = |tag: &Tag| tag.is("aria-describedby", "problem") || page.name.starts_with("account");
        let wrong: Vec<&str> =
            wrong.inspect(|tag| assert!(described(tag))).filter_map(|tag| tag.attribute("name")).collect();
        let (alerts, expected): (usize, &[&str]) = match page.name.split([' ', '(']).nth(1).unwrap() {
            "WrongCredentials" | "BothMissing" => (1, &["username", "password"]),
            "UsernameMissing" => (1, &["username"]),
            "PasswordMissing" => (1, &["password"]),
            "PresentPasswordMissing" | "PresentPasswordWrong" => (1, &["present_password"]),
            "NewPasswordUnfit" => (1, &["new_password"]),
            "NewPasswordsDiffer" => (1, &["new_password_again"]),
            "" | "without" | "for" | "with" | "done" => (0, &[]),
            _ => (1, &[]),
        };
        assert_eq!((said(&tags, "alert"), wrong.as_slice()), (alerts, expected), "{}", page.name);
        assert_eq!(said(&tags, "status"), usize::from(page.name.contains(" done ")), "{}", page.name);
        let is_login = page.name.starts_with("login");
        assert!(!is_login || in_title.iter().any(|start| page.html.contains(start)) == (alerts == 1), "{}", page.name);
    }
}

#[test]
fn the_password_is_never_prefilled_and_fields_say_what_they_are_for() {
    for (page, tags) in pages_of("login") {
        let field = |name| tags.iter().find(|tag| tag.is("name", name)).expect("the field");
        let (username, password) = (field("username"), field("password"));
        assert!(password.attribute("value").is_none() && password.is("type", "password"));
        assert!(password.is("autocomplete", "current-password") && username.is("autocomplete", "username"));
        assert!(username.is("autocapitalize", "none") && username.is("spellcheck", "false"));
        let buttons: Vec<_> = tags.iter().filter(|tag| tag.name == "button").map(|tag| tag.attribute("name")).collect();
        let providers = if page.name.starts_with("login with providers") { 2 } else { 0 };
        let expected = [&[None][..], &vec![Some("identity_provider"); providers], &[Some("decision")]].concat();
        assert_eq!(buttons, expected, "Enter must press the sign-in");
        assert!(field("decision").attribute("formnovalidate").is_some(), "going back needs no password");
    }
    for (_, tags) in pages_of("account") {
        let fields = tags.iter().filter(|tag| tag.is("type", "password"));
        let fields: Vec<_> =
            fields.map(|tag| (tag.attribute("autocomplete").unwrap(), tag.attribute("value"))).collect();
        assert_eq!(fields, [("current-password", None), ("new-password", None), ("new-password", None)]);
    }
}

#[test]
fn each_page_offers_its_decisions_and_says_what_each_is_about() {
    for (page, tags) in pages_of("account") {
        let expected = ["end_session", "end_others", "withdraw", "unlink", "unlink", "link", "link", "change_password"];
        assert_eq!(told(&tags, "button", "value"), expected, "{}", page.name);
        // The second session: this browser's own has no button.
        for (value, about) in [("end_session", "session-1"), ("withdraw", "application-0"), ("unlink", "identity-0")] {
            let button = tags.iter().find(|tag| tag.is("value", value)).expect("a button");
            assert!(button.is("aria-describedby", about), "{}: {value}", page.name);
        }
    }
    for (start, decisions) in [("linkable account", ["link"; 2]), ("linked account", ["unlink"; 2])] {
        assert!(pages_of(start).all(|(_, tags)| told(&tags, "button", "value") == decisions), "{start}");
    }
    assert!(pages_of("an empty account").all(|(_, tags)| told(&tags, "button", "value").is_empty()));
    for (page, tags) in pages_of("chooser") {
        assert!(!tags.iter().any(|tag| tag.is("name", "password")), "{}", page.name);
        assert_eq!(told(&tags, "button", "value"), ["continue", "another", "cancel"]);
    }
    for (page, tags) in pages_of("providers") {
        let fields: Vec<_> = tags.iter().filter(|tag| tag.name == "input").collect();
        assert!(fields.len() == 2 && fields.iter().all(|tag| tag.is("type", "hidden")), "{}", page.name);
        assert_eq!(told(&tags, "button", "name"), ["identity_provider", "identity_provider", "decision"]);
        assert_eq!(said(&tags, "alert"), usize::from(page.name.starts_with("providers after")), "{}", page.name);
    }
    for (page, tags) in pages_of("consent") {
        let boxes: Vec<&Tag> = tags.iter().filter(|tag| tag.is("name", "scope")).collect();
        assert_eq!(boxes.len(), 4, "{}", page.name);
        for scope in boxes {
            assert!(scope.attribute("checked").is_some());
            assert_eq!(
                scope.attribute("disabled").is_some(),
                scope.is("value", "openid"),
                "only what is required is locked"
            );
        }
        assert_eq!(told(&tags, "button", "value"), ["another", "allow", "deny"]);
        let remembers = tags.iter().any(|tag| tag.is("name", "remember"));
        assert_eq!(remembers, !page.name.starts_with("consent again"));
        assert_eq!(page.html.matches("choice emphasized").count(), 2);
    }
    for page in pages(Language::English, "alice@corp").iter().filter(|page| page.name.starts_with("link ")) {
        let tags = tags(&page.html);
        assert_eq!(told(&tags, "button", "value"), ["confirm_link"], "{}", page.name);
        assert!(tags.iter().any(|tag| tag.is("name", "offer") && tag.is("value", "OFFER")));
        assert!(tags.iter().any(|tag| tag.is("href", "/auth/account")), "{}: a way back", page.name);
        // Provider, identifier there, who is signed in here; and the name there, where one is known.
        assert!(words(page.html.split_once("<main").unwrap().1).matches("alice@corp").count() >= 3, "{}", page.name);
    }
}

#[test]
fn the_error_page_tells_reference_and_reason() {
    let brand = Brand { name: "B", logo: None, color: None, privacy_url: None, terms_url: None };
    for language in Language::ALL {
        let (texts, request_id) = (language.texts(), "00c0ffee00c0ffee");
        let chrome = Chrome { brand: &brand, texts, base_path: "", assets_version: "1", request_id };
        let mut headings = Vec::new();
        for (problem, status) in FAILURES {
            let (reason_code, reason_text) = (Some("GP1207"), None);
            let view = ErrorView { chrome, problem, reason_code, reason_text, home: None, sign_in: None };
            let html = error::page(&view).into_string();
            assert_eq!(problem.status(), status);
            assert!(html.contains("<code>00c0ffee00c0ffee</code>") && html.contains("<code>GP1207</code>"));
            assert!(!html.contains("<form") && !html.contains("<a ") && !html.contains("lang=\"en\">B"));
            assert!(!html.contains("brand.css"), "no colour, no second stylesheet");
            let heading = html.split_once("<h1>").expect("a heading").1.split_once('<').unwrap().0.to_owned();
            assert!(!headings.contains(&heading), "{language:?}: {heading}");
            headings.push(heading);
        }
    }
}
