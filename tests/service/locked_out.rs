//! Somebody who typed too many wrong passwords: what their administrators see, and do about it.

use crate::admin_people::{
    ON, act, admin_by, anna, boss, events, is_done, person_page, registered, start_with_mail, tells,
};
use crate::support::flow::sign_in;
use crate::support::gatepost::{BOB_PASSWORD, Gatepost};
use crate::support::http::{Answer, Browser};
use crate::support::mailbox::Mailbox;

const LET_TRY: [(&str, &str); 1] = [("decision", "let_try")];

fn attempt(browser: &mut Browser, username: &str, password: &str) -> Answer {
    browser.cookies.clear();
    let page = browser.visit("/account?tenant=acme");
    sign_in(browser, &page, username, password)
}

fn fail(browser: &mut Browser, username: &str, times: usize) {
    for _ in 0..times {
        attempt(browser, username, "wrong").assert_status_for(username, 200);
    }
}

fn gets_in(browser: &mut Browser, username: &str) {
    attempt(browser, username, BOB_PASSWORD).assert_status_for(username, 303);
}

fn waits(browser: &mut Browser, username: &str) {
    attempt(browser, username, BOB_PASSWORD).assert_status_for(username, 429);
}

fn start(settings: &[(&str, &str)]) -> Gatepost {
    Gatepost::start_with(&registered(), &[&ON, settings].concat())
}

fn locked(admin: &mut Browser) -> Vec<&'static str> {
    let page = admin.get("/admin/people?state=locked");
    page.assert_status(200);
    let text = page.text();
    let list = text.split("<tbody>").nth(1).unwrap_or_default();
    let names = ["abe", "amy", "anna", "root", "tess", "gus", "nora"];
    let listed = |name: &&str| list.contains(&format!("{name} of the office"));
    names.into_iter().filter(listed).collect()
}

#[test]
fn an_administrator_lets_somebody_try_again_by_name_and_by_address_three_times_an_hour() {
    let gatepost = start(&[("GATEPOST_SIGN_IN_WITH", "username,email")]);
    let mut anna = anna(&gatepost);
    let mut gina = admin_by(&gatepost, "gina", "globex", 0);
    let mut amy = gatepost.browser_at("192.0.2.7");
    assert_eq!(locked(&mut anna), Vec::<&str>::new());
    // What was typed is counted, and each of the two has half of the limit.
    fail(&mut amy, "amy", 5);
    fail(&mut amy, "amy@example.com", 5);
    waits(&mut amy, "AMY");
    waits(&mut amy, "amy@example.com");

    let page = anna.get(&person_page("amy"));
    tells(&page, "Cannot sign in until <time");
    tells(&page, "Let them try now");
    assert_eq!(locked(&mut anna), ["amy"]);
    let searched = anna.get("/admin/people?q=amy&state=locked");
    tells(&searched, "amy of the office");
    tells(&anna.get("/admin/people"), "Locked out</span>");
    // Nobody of another tenant sees it, or ends it.
    assert_eq!(locked(&mut gina), Vec::<&str>::new());
    let there = gina.get(&person_page("amy"));
    there.assert_error_page(404, "GP1007", "of another tenant");
    let own = gina.get(&person_page("gus"));
    let token = own.form_token();
    let forged = [("form_token", token.as_str()), LET_TRY[0]];
    let refused = gina.post(&person_page("amy"), &forged);
    refused.assert_error_page(404, "GP1007", "of another tenant");
    waits(&mut amy, "amy");

    let done = act(&mut anna, "amy", &LET_TRY);
    is_done(&done);
    tells(&done, "can try again now");
    done.assert_says_not("Cannot sign in until");
    assert_eq!(locked(&mut anna), Vec::<&str>::new());
    let told = events(&gatepost, "sub|amy");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "lock_out_ended");
    assert_eq!(told[0].1["admin"], "sub|anna");
    // A browser that lost the answer sends it again.
    is_done(&act(&mut anna, "amy", &LET_TRY));
    assert_eq!(events(&gatepost, "sub|amy").len(), 1);

    // It begins anew at one.
    for username in ["amy", "amy@example.com"] {
        fail(&mut amy, username, 4);
        gets_in(&mut amy, username);
    }
    for _ in 0..2 {
        fail(&mut amy, "amy", 5);
        waits(&mut amy, "amy");
        is_done(&act(&mut anna, "amy", &LET_TRY));
        gets_in(&mut amy, "amy");
    }
    fail(&mut amy, "amy", 5);
    let fourth = act(&mut anna, "amy", &LET_TRY);
    fourth.assert_status(429);
    fourth.assert_says("three times in the last hour");
    waits(&mut amy, "amy");
    assert_eq!(locked(&mut anna), ["amy"]);
    assert_eq!(events(&gatepost, "sub|amy").len(), 3);
}

#[test]
fn no_limit_of_a_source_ends_and_names_that_nobody_has_are_counted_alike() {
    let gatepost = start(&[("GATEPOST_LIMIT_PASSWORD_FAILURES_PER_SOURCE", "12")]);
    let rows = || -> i64 { gatepost.database.count("sign_in_failures") };
    let mut amy = gatepost.browser_at("192.0.2.7");
    let mut stranger = gatepost.browser_at("192.0.2.8");
    fail(&mut amy, "amy", 10);
    let of_amy = rows();
    fail(&mut stranger, "nobody", 10);
    assert_eq!(rows(), 2 * of_amy);
    waits(&mut amy, "amy");
    waits(&mut stranger, "nobody");
    assert_eq!(rows(), 2 * of_amy, "who waits writes nothing");

    let mut boss = boss(&gatepost);
    is_done(&act(&mut boss, "amy", &LET_TRY));
    fail(&mut amy, "amy", 2);
    waits(&mut amy, "amy");
    waits(&mut amy, "tess");
    assert_eq!(locked(&mut boss), Vec::<&str>::new(), "it is the source");
    gets_in(&mut gatepost.browser_at("192.0.2.9"), "amy");
    // Whoever has more roles than administrators give is shown, and that is all.
    fail(&mut gatepost.browser_at("192.0.2.10"), "root", 10);
    assert_eq!(locked(&mut boss), ["root"]);
    let page = boss.get(&person_page("root"));
    tells(&page, "Cannot sign in until");
    page.assert_says_not("let_try");
    tells(
        &act(&mut boss, "root", &LET_TRY),
        "You cannot change this person",
    );
    assert_eq!(locked(&mut boss), ["root"]);
}

#[test]
fn a_new_password_by_a_mailed_link_lets_in_where_it_comes_from() {
    let mailbox = Mailbox::open();
    let gatepost = start_with_mail(&mailbox);
    let mut boss = boss(&gatepost);
    let mut amy = gatepost.browser_at("192.0.2.7");
    let mut stranger = gatepost.browser_at("192.0.2.8");
    fail(&mut amy, "amy", 10);
    fail(&mut stranger, "amy", 10);
    tells(
        &act(&mut boss, "amy", &[("decision", "reset")]),
        "on its way",
    );
    let page = amy.visit(mailbox.letter(1).link());
    let new = "another password of amy";
    let set = amy.submit(&page, &[("new_password", new), ("new_password_again", new)]);
    set.assert_status(303);
    attempt(&mut amy, "amy", new).assert_status(303);
    attempt(&mut stranger, "amy", new).assert_status(429);
}
