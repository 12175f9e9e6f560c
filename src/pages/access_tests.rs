//! What a person with a keyboard, a screen reader or a password manager relies on, and what each page offers.

use super::brand::Brand;
use super::error::{self, ErrorView, Problem};
use super::frame::Chrome;
use super::language::Language;
use super::samples::{FAILURES, Page, Tag, every_page, pages, tags, words};

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
            for wanted in
                [tag.attribute("for"), tag.attribute("aria-describedby"), tag.attribute("aria-labelledby"), fragment]
                    .into_iter()
                    .flatten()
                    .flat_map(str::split_whitespace)
            {
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
fn focus_goes_to_the_first_empty_field() {
    for page in every_page() {
        let focused: Vec<String> = tags(&page.html)
            .iter()
            .filter(|tag| tag.attribute("autofocus").is_some())
            .map(|tag| tag.attribute("name").expect("a field").to_owned())
            .collect();
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
            "UpstreamCancelled" | "UpstreamUnavailable" | "UpstreamLoginRequired" => (1, &[]),
            _ => (0, &[]),
        };
        assert_eq!((alerts, wrong.as_slice()), (expected_alerts, expected_wrong), "{}", page.name);
        let said_in_title =
            Language::ALL.map(|language| format!("<title>{}", language.texts().error_in_title.parts().0));
        assert_eq!(said_in_title.iter().any(|start| page.html.contains(start)), alerts == 1, "{}", page.name);
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
        let buttons: Vec<_> = tags.iter().filter(|tag| tag.name == "button").map(|tag| tag.attribute("name")).collect();
        let expected: &[Option<&str>] = match page.name.starts_with("login with providers") {
            true => &[None, Some("identity_provider"), Some("identity_provider"), Some("decision")],
            false => &[None, Some("decision")],
        };
        assert_eq!(buttons, expected, "Enter must press the sign-in");
        assert!(field("decision").attribute("formnovalidate").is_some(), "going back needs no password");
    }
}

#[test]
fn other_services_are_buttons_of_a_form_without_fields() {
    let with_providers = |page: &&Page| page.name.contains("providers");
    for page in every_page().iter().filter(with_providers) {
        let forms: Vec<_> = page.html.split("<form").skip(1).map(|form| format!("<form{form}")).collect();
        let last = tags(forms.last().expect("a form").split_once("</form>").expect("a form closes").0);
        let fields: Vec<_> = last.iter().filter(|tag| tag.name == "input").collect();
        assert!(fields.iter().all(|tag| tag.attribute("type") == Some("hidden")), "{}", page.name);
        let buttons: Vec<_> =
            last.iter().filter(|tag| tag.name == "button").filter_map(|tag| tag.attribute("name")).collect();
        assert_eq!(buttons, ["identity_provider", "identity_provider", "decision"], "{}", page.name);
        let alone = page.name.starts_with("providers");
        assert_eq!((forms.len(), page.html.contains("class=\"or\"")), if alone { (1, false) } else { (2, true) });
        assert_eq!(fields.len(), if alone { 2 } else { 1 }, "{}", page.name);
        let alerts = page.html.matches("role=\"alert\"").count();
        assert_eq!(alerts, usize::from(page.name.starts_with("providers after")), "{}", page.name);
    }
}

#[test]
fn the_account_page_names_each_thing_its_buttons_end() {
    for page in every_page().iter().filter(|page| page.name.starts_with("account")) {
        let tags = tags(&page.html);
        let buttons: Vec<_> =
            tags.iter().filter(|tag| tag.name == "button").filter_map(|tag| tag.attribute("value")).collect();
        let expected = ["end_session", "end_others", "withdraw", "unlink", "unlink", "link", "link", "change_password"];
        assert_eq!(buttons, expected, "{}", page.name);
        let described = |value| {
            let button = tags.iter().find(|tag| tag.attribute("value") == Some(value)).expect("a button");
            button.attribute("aria-describedby").map(str::to_owned)
        };
        assert_eq!(described("end_session").as_deref(), Some("session-1"), "the second: this browser has none");
        assert_eq!(described("withdraw").as_deref(), Some("application-0"));
        assert_eq!(described("unlink").as_deref(), Some("identity-0"));
        let fields = tags.iter().filter(|tag| tag.attribute("type") == Some("password"));
        let fields: Vec<_> =
            fields.map(|tag| (tag.attribute("autocomplete").unwrap_or(""), tag.attribute("value"))).collect();
        assert_eq!(fields, [("current-password", None), ("new-password", None), ("new-password", None)]);
    }
}

#[test]
fn a_problem_with_the_account_is_announced_and_marks_its_field() {
    for page in every_page().iter().filter(|page| page.name.starts_with("account")) {
        let tags = tags(&page.html);
        let role = |role| tags.iter().filter(|tag| tag.attribute("role") == Some(role)).count();
        let wrong = tags.iter().find(|tag| tag.attribute("aria-invalid") == Some("true"));
        let wrong = wrong.and_then(|tag| tag.attribute("name"));
        let expected = match page.name.split(' ').nth(1).unwrap_or("") {
            "PresentPasswordMissing" | "PresentPasswordWrong" => (1, 0, Some("present_password")),
            "NewPasswordUnfit" => (1, 0, Some("new_password")),
            "NewPasswordsDiffer" => (1, 0, Some("new_password_again")),
            "SessionChanged"
            | "NothingThere"
            | "TooManyAttempts"
            | "LastWayIn"
            | "LinkedElsewhere"
            | "LinkExpired"
            | "SignInTooOld"
            | "LinkCancelled"
            | "ProviderUnavailable" => (1, 0, None),
            "done" => (0, 1, None),
            _ => (0, 0, None),
        };
        assert_eq!((role("alert"), role("status"), wrong), expected, "{}", page.name);
    }
}

#[test]
fn the_question_whether_to_link_names_both_accounts_and_can_be_left() {
    for language in Language::ALL {
        for page in pages(language, "alice@corp").iter().filter(|page| page.name.starts_with("link ")) {
            let tags = tags(&page.html);
            let decisions: Vec<_> =
                tags.iter().filter(|tag| tag.name == "button").map(|tag| tag.attribute("value")).collect();
            assert_eq!(decisions, [Some("confirm_link")], "{}", page.name);
            let offer = tags.iter().find(|tag| tag.attribute("name") == Some("offer")).expect("what is linked");
            assert_eq!(offer.attribute("value"), Some("OFFER"));
            assert!(tags.iter().any(|tag| tag.attribute("href") == Some("/auth/account")), "{}: a way back", page.name);
            // Provider, identifier there, who is signed in here; and the name there, where one is known.
            let named = words(&page.html).matches("alice@corp").count();
            let brand = words(page.html.split_once("<main").unwrap().1).matches("alice@corp").count();
            assert!(named >= 3 && brand >= 3, "{}: {named}", page.name);
            assert_eq!(page.html.matches("<dt>").count(), if page.name.contains("label") { 1 } else { 2 });
        }
    }
}

#[test]
fn the_account_page_offers_linking_only_where_something_can_be_linked() {
    for page in every_page().iter().filter(|page| page.name.contains("account")) {
        let has = |decision: &str| page.html.contains(&format!("value=\"{decision}\""));
        let expected = match page.name.split(" account").next() {
            Some("linkable") => (true, false),
            Some("linked") => (false, true),
            Some("an empty" | "login for the") => (false, false),
            _ => (true, true),
        };
        assert_eq!((has("link"), has("unlink")), expected, "{}", page.name);
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
        (Language::Polish, "pod nieobecność", "Data urodzenia"),
        (Language::Japanese, "ご利用中でないとき", "生年月日"),
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
            let view = ErrorView {
                chrome,
                problem,
                reason_code: Some("GP1207"),
                reason_text: None,
                home: None,
                sign_in: None,
            };
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
    assert_eq!(FAILURES.map(Problem::status), [400, 403, 404, 405, 413, 429, 500, 503, 400, 400, 403, 403, 403]);
}
