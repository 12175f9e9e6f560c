//! Inviting several people by pasted lines: all of them, or nobody.

use serde_json::{Value, json};

use crate::admin_people::{anna, boss, choose_password, post_to, start, start_with_mail, tells};
use crate::support::gatepost::{BOB_PASSWORD, Gatepost};
use crate::support::http::{Answer, Browser};
use crate::support::mailbox::Mailbox;
use crate::support::waiting::all_at_once;

const PAGE: &str = "/admin/invite-several";

/// Sends these lines by that page.
fn send(browser: &mut Browser, page: &Answer, lines: &str) -> Answer {
    let hidden = page.fields();
    let hidden = hidden.iter().map(|(name, value)| (&**name, &**value));
    let fields = Vec::from_iter([("lines", lines)].into_iter().chain(hidden));
    browser.post(PAGE, &fields)
}

fn paste(browser: &mut Browser, lines: &str) -> Answer {
    let page = browser.get(PAGE);
    page.assert_status(200);
    send(browser, &page, lines)
}

fn links(page: &Answer) -> Vec<String> {
    let text = page.text();
    let links = text.split("link-shown\">").skip(1);
    let links = links.map(|rest| rest.split_once('<').unwrap().0.to_owned());
    links.collect()
}

/// All people of acme, by their user names, with their claims.
fn people(gatepost: &Gatepost) -> Vec<(String, String, Value)> {
    let sql = "SELECT username, sub, claims FROM users WHERE tenant = 'acme' ORDER BY username";
    let rows = gatepost.database.client().query(sql, &[]).unwrap();
    let row = |row: &postgres::Row| (row.get(0), row.get(1), row.get(2));
    rows.iter().map(row).collect()
}

/// How many events of administrators are of that kind.
fn events(gatepost: &Gatepost, event: &str) -> i64 {
    let sql = "SELECT count(*) FROM audit_events WHERE event = $1 AND detail->>'by' = 'admin'";
    gatepost.database.value(sql, &[&event])
}

#[test]
fn everybody_of_the_lines_is_invited_once_or_nobody_is() {
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let before = people(&gatepost);
    let page = anna.get(PAGE);
    let lines = "\u{feff}Name,Address,User name,Roles\r\n\
        Ann Ax,ann@example.com,ann,staff|sales\r\n\
        \"Bo, the Second\",bo@example.com,,\r\n\
        Cy <b>Cox</b>,cy.example.com,cy,sales\r\n\
        Dee Dow,,dee\r\n";
    let refused = send(&mut anna, &page, lines);
    tells(&refused, "Nobody was invited yet");
    tells(&refused, "Line 4:");
    tells(&refused, "Cy &lt;b&gt;Cox&lt;/b&gt;,cy.example.com,cy");
    let items = |page: &Answer| page.text().matches("<li>").count();
    assert_eq!(items(&refused) - items(&page), 1);
    assert_eq!(people(&gatepost), before);

    let lines = lines.replace("cy.example.com,", "cy@example.com,");
    let invited = send(&mut anna, &refused, &lines);
    tells(&invited, "People invited: 4.");
    tells(&invited, "They are shown this once");
    tells(&invited, "Bo, the Second");
    let after = people(&gatepost);
    assert_eq!(after.len(), before.len() + 4);
    let claims = |username: &str| {
        let found = after.iter().find(|(name, ..)| name == username);
        let (.., claims) = found.unwrap_or_else(|| panic!("{username}: {after:?}"));
        claims.clone()
    };
    let ann = json!({"name": "Ann Ax", "email": "ann@example.com", "role": ["sales", "staff"]});
    assert_eq!(claims("ann"), ann);
    let bo = json!({"name": "Bo, the Second", "email": "bo@example.com"});
    assert_eq!(claims("bo@example.com"), bo);
    assert_eq!(claims("dee"), json!({"name": "Dee Dow"}));
    assert_eq!(events(&gatepost, "user_added"), 4);
    let first = links(&invited);
    assert_eq!(first.len(), 4);
    choose_password(&gatepost, &first[0], BOB_PASSWORD).assert_status(303);

    // A browser that lost the answer sends the same form once more.
    let again = send(&mut anna, &refused, &lines);
    tells(&again, "People invited: 4.");
    let anew = links(&again);
    assert_eq!(anew.len(), 3, "who came already needs none");
    choose_password(&gatepost, &anew[0], BOB_PASSWORD).assert_status(303);
    let subs = |all: &[(String, String, Value)]| -> Vec<String> {
        all.iter().map(|(_, sub, _)| sub.clone()).collect()
    };
    assert_eq!(subs(&people(&gatepost)), subs(&after));
    assert_eq!(events(&gatepost, "user_added"), 4);
    assert_eq!(events(&gatepost, "link_made"), 3);
    // Another form with these lines is no repetition.
    let taken = paste(&mut anna, &lines);
    let sentence = "has this user name or e-mail address already";
    assert_eq!(taken.text().matches(sentence).count(), 4);
    assert_eq!(subs(&people(&gatepost)), subs(&after));
}

#[test]
fn each_mistake_is_told_with_its_line_and_nothing_is_done() {
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let before = people(&gatepost);
    let longest = format!("{},long@example.com,long", "x".repeat(70_000));
    let many = |count: usize| -> String {
        let line = |number: usize| format!("P {number},p{number}@example.com\n");
        (0..count).map(line).collect()
    };
    let overlong_name = format!("N,n@example.com,{}", "n".repeat(300));
    let overlong_address = format!("N,{}@example.com,n", "n".repeat(300));
    let (nobody, columns) = (
        "Enter at least one person.",
        "There must be two to five columns",
    );
    let (address, unusable) = ("such as name@example.com", "cannot be used here");
    let taken = "has this user name or e-mail address already";
    let twice = "stands in line 1 already";
    let cases = [
        ("", nobody),
        ("name,address,user name,roles\n\n", nobody),
        ("Ann", columns),
        ("Ann,ann@example.com,ann,staff,,more", columns),
        ("\"Ann,ann@example.com,ann", columns),
        ("Ann;ann@example.com,ann", address),
        (",ann@example.com,ann", "The name is missing."),
        ("Ann,nonsense,ann", address),
        (overlong_address.as_str(), address),
        (overlong_name.as_str(), unusable),
        ("Ann,,", unusable),
        ("Ann,ann@example.com,a\u{202e}b", unusable),
        ("Ann,ann@example.com,bo@example.com", "must be the same as"),
        ("Ann,ann@example.com,ann,office", "There is no role office"),
        (
            "Ann,ann@example.com,ann,staff|<i>",
            "There is no role &lt;i&gt;",
        ),
        ("A,a@example.com\nB,b@example.com\nC,A@EXAMPLE.COM,c", twice),
        ("A,a@example.com,x\nB,b@example.com,X", twice),
        ("Amy,another@example.com,AMY", taken),
        ("Amy,AMY@example.com,another", taken),
        ("Bo,nonsense,bo\nAmy,another@example.com,amy", taken),
        ("A,a@example.com,fiona\nB,b@example.com,\u{fb01}ona", twice),
        ("A,a@example.com\rB,b@example.com", columns),
        (&many(201), "There are more than 200 lines"),
    ];
    for (lines, sentence) in cases {
        let refused = paste(&mut anna, lines);
        tells(&refused, sentence);
        assert!(refused.text().contains("<textarea"), "{lines}");
    }
    // More than a browser sends otherwise is taken by the address of the form alone.
    paste(&mut anna, &longest).assert_status(413);
    let page = anna.get(PAGE);
    let encoded_longest = format!("{},nonsense", "\u{e4}".repeat(30_000));
    for (lines, sentence) in [
        (&longest, "more than 64 KiB of text"),
        (&encoded_longest, "such as name@example.com"),
    ] {
        let typed = [("lines", lines.as_str())];
        let refused = post_to(&mut anna, &page.action(), &page, &typed);
        tells(&refused, sentence);
        refused.assert_says(lines);
    }
    let no_text = paste(&mut anna, "Ann,a\0b@example.com,ann");
    no_text.assert_error_page(400, "GP1001", "what is no text");
    let page = anna.get(PAGE);
    let form = [("lines", "Ann,ann@example.com"), ("form_token", "x")];
    let forged = anna.post(PAGE, &form);
    tells(&forged, "changed while this page was open");
    assert_eq!(people(&gatepost), before);
    assert_eq!(events(&gatepost, "user_added"), 0);
    // Who is of another tenant is nobody here.
    let invited = send(&mut anna, &page, "Gus,gus@example.com,gus");
    tells(&invited, "People invited: 1.");
    let invited = paste(&mut anna, &many(200));
    tells(&invited, "People invited: 200.");
    assert_eq!(links(&invited).len(), 200);
}

#[test]
fn with_mail_each_gets_a_letter_and_who_has_not_come_another_when_it_is_sent_again() {
    let mailbox = Mailbox::open();
    let gatepost = start_with_mail(&mailbox);
    let mut boss = boss(&gatepost);
    let page = boss.get(PAGE);
    tells(&page, "Acme</option>");
    let refused = send(&mut boss, &page, "Nobody,,nobody");
    tells(&refused, "such as name@example.com");
    let lines = "Ann\tann@example.com\nBo\tbo@example.com\tbo\tstaff";
    let mut fields = vec![("lines", lines), ("tenant", "acme")];
    let hidden = page.fields();
    fields.extend(hidden.iter().map(|(name, value)| (&**name, &**value)));
    for letters in ["is on its way to them", "People invited: 2."] {
        let invited = boss.post(PAGE, &fields);
        tells(&invited, letters);
        assert_eq!(links(&invited).len(), 0);
        invited.assert_says_not("/account/link");
        gatepost.run_sql("UPDATE users SET password_hash = 'x' WHERE username = 'bo'");
    }
    let mut to: Vec<_> = [1, 2, 3].map(|number| mailbox.letter(number).to).concat();
    to.sort();
    assert_eq!(to, ["ann@example.com", "ann@example.com", "bo@example.com"]);
    assert_eq!(events(&gatepost, "link_made"), 1);
    let people = people(&gatepost);
    assert_eq!(people.iter().filter(|(name, ..)| name == "bo").count(), 1);
    // One that comes after tells that no more came before.
    tells(&paste(&mut boss, "Cy,cy@example.com"), "People invited: 1.");
    assert_eq!(mailbox.letter(4).to, ["cy@example.com"]);
    fields[1] = ("tenant", "initech");
    let refused = boss.post(PAGE, &fields);
    refused.assert_error_page(400, "GP1126", "an unknown tenant");
}

#[test]
fn a_form_sent_six_times_at_once_invites_once_and_says_so_each_time() {
    let gatepost = start();
    let anna = anna(&gatepost);
    let before = people(&gatepost).len();
    let several = [("lines", "Ann,ann@example.com\nBo,bo@example.com,bo")];
    let one = [("username", "newt"), ("name", "Newt New")];
    for (address, typed, said, invited) in [
        (PAGE, &several[..], "People invited: 2.", 2),
        ("/admin/invite", &one, "link-shown", 3),
    ] {
        let page = anna.clone().get(address);
        all_at_once(6, |_| {
            let answer = post_to(&mut anna.clone(), address, &page, typed);
            tells(&answer, said);
        });
        assert_eq!(people(&gatepost).len() - before, invited);
    }
}
