//! Letters about sign-ins in browsers that are new to somebody, and their link, by which people say
//! that a sign-in was not theirs.

use serde_json::json;

use crate::admin_people::registered;
use crate::passkey_sign_in::{add, post, shown};
use crate::support::flow::{authorize_path, is_signed_in, sign_in, signed_in};
use crate::support::gatepost::{ALICE_PASSWORD, BOB_PASSWORD, Gatepost, RP1, document};
use crate::support::house::House;
use crate::support::http::{Answer, Browser};
use crate::support::mailbox::{Letter, Mailbox};
use crate::support::phone::add_app;
use crate::support::postgres::TestDatabase;
use crate::support::traveller::Traveller;
use crate::support::waiting::{SOON, all_at_once, await_that};

const NEW: &str = "a password of their own choosing";
const SUBJECT: &str = "New sign-in to your account at Gatepost";
const ON: (&str, &str) = ("GATEPOST_NEW_BROWSER_MAIL", "on");

/// For people of the tenant `acme`, who have signed in before.
struct Scene {
    mailbox: Mailbox,
    gatepost: Gatepost,
}

impl Scene {
    fn start() -> Scene {
        Scene::over(|settings| Gatepost::start_with(&registered(), settings))
    }

    fn over(start: impl FnOnce(&[(&str, &str)]) -> Gatepost) -> Scene {
        let mailbox = Mailbox::open();
        let office = ("GATEPOST_ADMIN_ROLE", "office");
        let gatepost = start(&[&mailbox.settings()[..2], &[ON, office]].concat());
        Scene { mailbox, gatepost }
    }

    /// Signs somebody in, in a browser that nobody has used.
    fn signed_in(&self, name: &str) -> Browser {
        let mut browser = self.gatepost.browser();
        assert_eq!(
            enter(&mut browser, name, BOB_PASSWORD).status,
            303,
            "{name}"
        );
        browser
    }

    /// The link that they get after another sign-in.
    fn link(&self, name: &str) -> String {
        self.signed_in(name);
        self.signed_in(name);
        let letter = self.letters(name, 1).remove(0);
        letter.link().to_owned()
    }

    /// The letters to somebody, once there are so many.
    fn letters(&self, name: &str, number: usize) -> Vec<Letter> {
        let to = [format!("{name}@example.com")];
        let mut found = Vec::new();
        await_that(&format!("{number} letters to {name}"), SOON, || {
            let all = (1..=self.mailbox.count()).map(|at| self.mailbox.letter(at));
            found = all.filter(|letter| letter.to == to).collect();
            found.len() >= number
        });
        found
    }

    fn lets_in(&self, name: &str, password: &str) -> bool {
        enter(&mut self.gatepost.browser(), name, password).status == 303
    }

    fn run(&self, line: &str) {
        self.gatepost.run_line(&format!("{line} --tenant acme"));
    }

    fn count(&self, event: &str) -> i64 {
        self.gatepost.database.events(event)
    }
}

fn enter(browser: &mut Browser, name: &str, password: &str) -> Answer {
    let changes = [("acr_values", "tenant:acme"), ("prompt", "login")];
    let page = browser.visit(&authorize_path("conf1", RP1, &changes));
    sign_in(browser, &page, name, password)
}

fn set(browser: &mut Browser, page: &Answer) -> Answer {
    browser.submit(page, &[("new_password", NEW), ("new_password_again", NEW)])
}

fn is_over(answer: &Answer, what: &str) {
    answer.assert_error_page(400, "GP1810", what);
}

#[test]
fn a_whole_sign_in_with_a_password_is_told_in_a_new_browser_alone() {
    let scene = Scene::start();
    // The first of all; again in the same browser; a wrong password; a password without its code.
    let mut browser = scene.signed_in("amy");
    enter(&mut browser, "amy", BOB_PASSWORD).assert_status(303);
    assert!(!scene.lets_in("amy", "a guess"));
    let (phone, codes) = add_app(&mut browser, 0);
    let of_factor = scene.letters("amy", 1);
    assert_eq!(of_factor[0].subject, "Your account at Gatepost was changed");
    let mut new = scene.gatepost.browser();
    let page = enter(&mut new, "amy", BOB_PASSWORD);
    page.assert_says("name=\"code\"");
    let wrong = new.submit(&page, &[("code", &phone.code(-9))]);
    new.submit(&wrong, &[("code", &codes[0])])
        .assert_status(303);
    let letter = scene.letters("amy", 2).remove(1);
    assert_eq!(letter.subject, SUBJECT);
    for part in [
        "Hello amy of the office",
        "Network: 127.0.0.0/24",
        "Browser: ",
        "Account: amy",
    ] {
        assert!(letter.text.contains(part), "{part}: {}", letter.text);
    }
    assert!(!letter.text.contains("127.0.0.1\n"), "{}", letter.text);
    // In the same browser with the second factor alone, and after it: it is known by now.
    enter(&mut new, "amy", BOB_PASSWORD).assert_status(200);
    // Three a day and person, and other letters beside them.
    for _ in 0..4 {
        scene.signed_in("abe");
    }
    scene.letters("abe", 3);
    scene.signed_in("abe");
    await_that("what is too much is told", SOON, || {
        scene.count("letter_withheld") == 1
    });
    scene.run("user set abe email=elsewhere@example.com");
    scene.signed_in("root");
    scene.signed_in("root");
    scene.letters("root", 1);
    assert_eq!(scene.letters("abe", 3).len(), 3);
    assert_eq!(scene.letters("amy", 2).len(), 2);
}

#[test]
fn neither_passkey_nor_provider_nor_password_grant_is_told_nor_where_it_is_off() {
    let mailbox = Mailbox::open();
    let mut registered = document();
    let mut direct = registered["clients"][1].clone();
    direct["client_id"] = json!("direct");
    direct["grant_types"] = json!(["password"]);
    direct["response_types"] = json!([]);
    direct["redirect_uris"] = json!([]);
    direct["require_consent"] = json!(false);
    registered["clients"].as_array_mut().unwrap().push(direct);
    registered["users"][1]["claims"] = json!({"email": "bob@example.com", "email_verified": true});
    let settings = [&mailbox.settings()[..2], &[ON]].concat();
    let house = House::start_with(registered, &json!({}), &settings);
    let gatepost = &house.gatepost;
    house.link(&mut house.alice(), "up");
    house.through(&mut Traveller::new(), "up").unwrap();
    let form = [
        ("grant_type", "password"),
        ("username", "bob"),
        ("password", BOB_PASSWORD),
    ];
    for _ in 0..2 {
        gatepost.post_as("direct", "/connect/token", &form);
    }
    let mut browser = gatepost.browser();
    let enter = |browser: &mut Browser, name: &str, password: &str| {
        let page = browser.visit(&authorize_path("conf1", RP1, &[]));
        sign_in(browser, &page, name, password).assert_status(303);
    };
    enter(&mut browser, "bob", BOB_PASSWORD);
    let (held, _) = add(gatepost, &mut browser, "a passkey of bob's");
    let mut new = gatepost.browser();
    let page = new.visit(&authorize_path("conf1", RP1, &[]));
    let fields = shown(&page, &held, gatepost.origin(), "webauthn.get", 0);
    post(&mut new, &page, &fields).assert_status(303);
    // Alice's next sign-ins with her password are told, and nothing else was.
    enter(&mut gatepost.browser(), "alice", ALICE_PASSWORD);
    enter(&mut gatepost.browser(), "alice", ALICE_PASSWORD);
    let of = |subject: &str| {
        let all = (1..=mailbox.count()).map(|at| mailbox.letter(at));
        let those = all.filter(|letter| letter.subject == subject);
        those.map(|letter| letter.to.concat()).collect::<Vec<_>>()
    };
    await_that("both are told", SOON, || of(SUBJECT).len() >= 2);
    assert_eq!(of(SUBJECT), ["alice@example.com", "alice@example.com"]);

    let quiet = Gatepost::start_with(&document(), &mailbox.settings());
    for _ in 0..3 {
        enter(&mut quiet.browser(), "alice", ALICE_PASSWORD);
    }
    add_app(&mut signed_in(&quiet), 0);
    await_that("her app is told", SOON, || {
        of("Your account at Gatepost was changed").len() >= 3
    });
    assert_eq!(of(SUBJECT).len(), 2);
}

#[test]
fn who_says_that_it_was_not_them_ends_everything_and_sets_another_password() {
    let scene = Scene::start();
    let mut thief = scene.signed_in("amy");
    let link = scene.link("amy");
    // A scanner's looks change nothing.
    for method in ["GET", "HEAD", "GET"] {
        let path = link.strip_prefix(scene.gatepost.origin()).unwrap();
        scene
            .gatepost
            .send(method, path, &[], b"")
            .assert_status(303);
    }
    let mut browser = scene.gatepost.browser();
    let page = browser.visit(&link);
    page.assert_says("its password no longer works");
    browser.head(&page.action());
    browser
        .post(&page.action(), &[("form_token", "x")])
        .assert_says("That was not me");
    assert!(scene.lets_in("amy", BOB_PASSWORD), "nothing yet");
    let next = browser.submit(&page, &[]);
    next.assert_status(303);
    is_over(
        &scene.gatepost.browser().get(next.location()),
        "another browser",
    );
    assert!(!is_signed_in(&mut thief) && !scene.lets_in("amy", BOB_PASSWORD));
    let form = browser.follow(next);
    // Every link that was made on the same is over with it: none of them disables the account.
    let others = scene.letters("amy", 3);
    for used in others.iter().filter(|letter| letter.subject == SUBJECT) {
        is_over(&scene.gatepost.browser().get(used.link()), "used");
    }
    is_over(&browser.submit(&page, &[]), "used");
    // Whoever leaves the form gets another link, as after a forgotten password.
    let changes = [("acr_values", "tenant:acme")];
    let sign_in_page = browser.visit(&authorize_path("conf1", RP1, &changes));
    let asking = browser.get(&sign_in_page.attribute("/login/forgotten", "href").unwrap());
    browser
        .submit(&asking, &[("name", "amy")])
        .assert_status(200);
    assert!(scene.letters("amy", 4)[3].text.contains("/account/link?l="));
    set(&mut browser, &form).assert_status(303);
    assert!(scene.lets_in("amy", NEW));
    assert_eq!(scene.count("password_dropped_by_link"), 1);
    assert_eq!(scene.count("user_disabled_by_link"), 0);

    // Who has a second factor proves it.
    let (_, codes) = add_app(&mut scene.signed_in("abe"), 0);
    let mut new = scene.gatepost.browser();
    let page = enter(&mut new, "abe", BOB_PASSWORD);
    new.submit(&page, &[("code", &codes[0])]).assert_status(303);
    let letters = scene.letters("abe", 2);
    let letter = letters
        .iter()
        .find(|letter| letter.subject == SUBJECT)
        .unwrap();
    let page = browser.visit(letter.link());
    let asked = browser.submit(&page, &[]);
    let asked = browser.follow(asked);
    asked.assert_says("name=\"code\"");
    asked.assert_says_not("new_password");
    let shown = browser.submit(&asked, &[("code", &codes[1])]);
    let form = browser.follow(shown);
    set(&mut browser, &form).assert_status(303);
}

/// A thief may have been faster, or the mailbox may be an old one.
#[test]
fn a_linked_account_or_an_address_that_is_verified_no_more_disables_the_account_too() {
    let scene = Scene::start();
    let link = scene.link("amy");
    let says = |words: &str| scene.gatepost.browser().visit(&link).assert_says(words);
    let of_amy =
        "UPDATE users SET claims = claims || '{\"email_verified\": false}' WHERE username = 'amy'";
    says("After that you choose another one.");
    scene.gatepost.database.run(
        "INSERT INTO linked_identities (issuer, upstream_subject, sub) \
         SELECT 'https://idp.example', 'thief', sub FROM users WHERE username = 'amy'",
    );
    says("If you made that change yourself");
    scene.gatepost.database.run("DELETE FROM linked_identities");
    says("After that you choose another one.");
    scene.gatepost.database.run(of_amy);
    says("If you made that change yourself");
}

#[test]
fn a_link_that_was_made_on_something_else_disables_the_account_and_leads_to_no_password() {
    let scene = Scene::start();
    for (at, (name, change)) in [
        ("amy", "user password amy"),
        ("abe", "user set abe email=new@example.com"),
        ("root", ""),
    ]
    .into_iter()
    .enumerate()
    {
        let link = scene.link(name);
        let mut browser = scene.gatepost.browser();
        let before = browser.visit(&link);
        if change.is_empty() {
            // A further factor, of somebody who has one, draws no new epoch.
            let added = "UPDATE users SET factors = factors + 1 WHERE username = 'root'";
            scene.gatepost.database.run(added);
        } else {
            let line: Vec<&str> = change.split(' ').chain(["--tenant", "acme"]).collect();
            scene.gatepost.run_well(&line, "what the thief chose\n");
        }
        let page = browser.visit(&link);
        page.assert_says("it is disabled to be safe");
        // A form that was drawn before the change does no other thing.
        let done = browser.submit(if at == 0 { &before } else { &page }, &[]);
        done.assert_status(200);
        done.assert_says("Your account is disabled");
        done.assert_says_not("password");
        let enabled: bool = scene
            .gatepost
            .database
            .value("SELECT enabled FROM users WHERE username = $1", &[&name]);
        assert!(!enabled, "{name}");
        is_over(&browser.submit(&page, &[]), name);
        is_over(&scene.gatepost.browser().get(&link), name);
        assert_eq!(scene.count("user_disabled_by_link"), at as i64 + 1);
        // Those who reach them are told; whoever enables them again is not undone by the link.
        for admin in ["boss", "helper", "anna"] {
            let letters = scene.letters(admin, at + 1);
            let told = letters.iter().filter(|letter| {
                letter.subject == "An account at Gatepost was disabled"
                    && letter.text.contains(&format!("Account: {name}\n"))
            });
            assert_eq!(told.count(), 1, "{admin} {name}");
        }
        scene.run(&format!("user enable {name}"));
        is_over(&scene.gatepost.browser().get(&link), name);
        for password in [BOB_PASSWORD, "what the thief chose"] {
            assert!(!scene.lets_in(name, password), "{name}");
        }
    }
    let all = (1..=scene.mailbox.count()).map(|at| scene.mailbox.letter(at));
    assert!(
        all.into_iter()
            .all(|letter| letter.to != ["gina@example.com"])
    );
    assert_eq!(scene.count("password_dropped_by_link"), 0);
}

#[test]
fn two_servers_at_once_tell_of_a_sign_in_once_and_take_its_link_once() {
    let scene = Scene::start();
    let mut second = scene.gatepost.beside();
    second.serve();
    let servers = [&scene.gatepost, &second];
    let at_both = |browser: &Browser, page: &Answer, fields: &[(&str, &str)]| {
        all_at_once(2, |number| {
            let mut own = servers[number].browser();
            own.cookies = browser.cookies.clone();
            let path = page.action();
            let path = path.strip_prefix(scene.gatepost.origin()).unwrap_or(&path);
            own.submit_to(path, page, fields)
        })
    };
    scene.signed_in("amy");
    let mut browser = scene.gatepost.browser();
    let changes = [("acr_values", "tenant:acme")];
    let page = browser.visit(&authorize_path("conf1", RP1, &changes));
    let typed = [("username", "amy"), ("password", BOB_PASSWORD)];
    for answer in at_both(&browser, &page, &typed) {
        answer.assert_status(303);
    }
    let link = scene.letters("amy", 1).remove(0).link().to_owned();
    let mut browser = scene.gatepost.browser();
    let page = browser.visit(&link);
    let answers = at_both(&browser, &page, &[]);
    let mut forms = 0;
    for answer in answers {
        let answer = if answer.status == 303 {
            browser.follow(answer)
        } else {
            answer
        };
        forms += i32::from(answer.text().contains("new_password"));
    }
    assert_eq!(forms, 1);
    assert_eq!(scene.count("password_dropped_by_link"), 1);
    assert_eq!(scene.count("user_disabled_by_link"), 0);
    // Two later ones have come, and no second one of the first.
    scene.signed_in("abe");
    scene.signed_in("abe");
    scene.signed_in("abe");
    scene.letters("abe", 2);
    assert_eq!(scene.letters("amy", 1).len(), 1);
}

#[test]
fn the_link_is_over_after_a_day_and_three_more_are_told_then() {
    let scene = Scene::over(|settings| {
        let database = TestDatabase::with_a_clock_of_its_own();
        let mut gatepost = Gatepost::prepare_over(database, settings);
        gatepost.apply(&registered());
        gatepost.serve();
        gatepost
    });
    let link = scene.link("amy");
    for number in 1..3 {
        scene.signed_in("amy");
        scene.letters("amy", number + 1);
    }
    scene.gatepost.travel(86_399 - 600);
    assert_eq!(scene.gatepost.browser().visit(&link).status, 200);
    scene.gatepost.travel(86_401);
    is_over(&scene.gatepost.browser().get(&link), "after a day");
    scene.signed_in("amy");
    scene.letters("amy", 4);
}
