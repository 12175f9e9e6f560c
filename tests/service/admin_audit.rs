//! The audit log at `/admin`: sentences, kinds, references, and the picture of the week.

use std::time::Duration;

use gatepost::clock::time_of_day;
use gatepost::protocol::registration::timestamp;
use gatepost::protocol::words::instant::Instant;
use gatepost::store::folds;

use crate::admin_applications::{anna, boss, page, start, uses};
use crate::support::claims::Says;
use crate::support::gatepost::Gatepost;
use crate::support::tables::rows_of;

const AMY: &str = r#"<a href="/admin/people/sub%7Camy"><bdi>amy</bdi></a>"#;
const BOSS: &str = r#"<a href="/admin/people/sub%7Cboss"><bdi>boss</bdi></a>"#;

/// Writes an event of that moment.
fn tell(gatepost: &Gatepost, at: &str, event: &str, sub: &str, request_id: &str, detail: &str) {
    let seq = gatepost.database.count("audit_events");
    gatepost.run_sql(&format!(
        "INSERT INTO audit_events SELECT day, {at}, 'told', {seq}, '', '', '{event}', NULL, nullif('{sub}', ''), NULL,
         '192.0.2.7', '{request_id}', '{detail}' FROM audit_events LIMIT 1"
    ));
}

#[test]
fn events_are_sentences_that_are_chosen_by_words_and_found_by_what_is_read_out() {
    let gatepost = start();
    uses(&gatepost, "acmes", "amy", "acme", "openid");
    let (mut boss, mut anna) = (boss(&gatepost), anna(&gatepost));
    let by_boss = |more: &str| format!(r#"{{"by":"admin","admin":"sub|boss"{more}}}"#);
    let disabled = by_boss(r#","old":{"enabled":true},"new":{"enabled":false}"#);
    let removed = by_boss(r#","factor":"all""#);
    for (event, sub, request_id, detail) in [
        (
            "factor_removed",
            "sub|amy",
            "ab12cd34ef567890",
            removed.as_str(),
        ),
        ("user_changed", "sub|gus", "1", &disabled),
        ("user_changed", "sub|amy", "2", r#"{"by":"operator"}"#),
        ("letter_sent", "sub|amy", "3", r#"{"letter":"reset"}"#),
        (
            "external_sign_in_failed",
            "",
            "B4-c5.d6",
            r#"{"reason":"GP1211"}"#,
        ),
        ("more_failures", "", "", r#"{"count":17,"turned_away":3}"#),
        ("user_removed", "sub|gone", "4", "{}"),
    ] {
        tell(&gatepost, "now()", event, sub, request_id, detail);
    }
    let usual = page(&mut boss, "/admin/audit");
    for sentence in [
        &format!("<p>{BOSS} removed all second factors of {AMY}</p>"),
        &format!("<p>{BOSS} disabled <a href=\"/admin/people/sub%7Cgus\"><bdi>gus</bdi></a></p>"),
        &format!(
            "<p>{AMY}: the account was changed <span class=\"hint\">by an operator</span></p>"
        ),
        &format!("<p>{AMY} opened <a href=\"/admin/applications/acmes\"><bdi>Wiki</bdi></a></p>"),
        "<p><bdi>17</bdi> further failures from one network, and <bdi>3</bdi> attempts turned away</p>",
        "<p><bdi>sub|gone</bdi> was removed</p>",
        r#"<a href="/admin/explain?what=GP1211">GP1211</a>"#,
    ] {
        assert!(usual.contains(sentence), "{sentence}: {usual}");
    }
    let german = page(&mut boss, "/admin/audit?ui_locales=de");
    german.assert_says("</a> entfernte alle zweiten Faktoren von <a ");
    // Each kind, and one event of it and one that is not.
    let letter = "was sent an e-mail";
    assert!(!usual.contains(letter), "{usual}");
    for [kind, there, elsewhere] in rows_of(
        "
        background     | was sent an e-mail | opened
        everything     | was sent an e-mail | spam
        administrators | disabled           | by an operator
        failures       | further failures   | disabled
        sign-ins       | signed in</p>      | opened
        factors        | removed all        | opened
        people         | was removed        | removed all
        applications   | opened             | was removed
        factor_removed | removed all        | disabled
    ",
    ) {
        let found = page(&mut boss, &format!("/admin/audit?event={kind}"));
        let list = found.split_once("</form>").unwrap().1;
        list.assert_says_for(kind, there);
        list.assert_says_not_for(kind, elsewhere);
        let chosen = [
            format!("<option value=\"{kind}\" selected>"),
            format!("<option selected>{kind}<"),
        ];
        let is_chosen = chosen.iter().any(|option| found.contains(option));
        assert!(is_chosen, "{kind}: {found}");
    }
    // As it is read out, and what is usually left out, too.
    for [typed, sentence] in rows_of(
        "
        AB12+cd34-EF56+7890 | removed all second factors
        b4c5.d6             | A sign-in with another service failed
        3                   | was sent an e-mail
    ",
    ) {
        let asked = format!("/admin/audit?event=&person=&day=&reference={typed}");
        let found = page(&mut boss, &asked);
        let events = found.matches("<details class=\"hint\">");
        assert_eq!(events.count(), 1, "{found}");
        found.assert_says_for(typed, sentence);
    }
    let other_day = page(&mut boss, "/admin/audit?reference=3&day=2020-01-01");
    other_day.assert_says_each("Nothing was found. | Most refusals leave no event here.");
    // Whoever is out of reach is named as before, and nobody out of reach is found.
    let hers = page(&mut anna, "/admin/audit");
    let removed = format!("<p><bdi>sub|boss</bdi> removed all second factors of {AMY}</p>");
    assert!(hers.contains(&removed), "{hers}");
    let theirs = page(&mut anna, "/admin/audit?reference=1");
    assert!(!theirs.contains("disabled"), "{theirs}");
}

#[test]
fn the_picture_counts_people_within_reach_and_tells_what_is_not_counted() {
    let gatepost = start();
    let hour = time_of_day().hour() - 2;
    let within = |seconds: i64| format!("to_timestamp({hour}::int8 * 3600 + {seconds})");
    for (second, event, sub, detail) in [
        (1, "signed_in", "sub|amy", "{}"),
        (2, "signed_in", "sub|amy", "{}"),
        (3, "signed_in", "sub|gus", "{}"),
        (4, "sign_in_failed", "sub|amy", "{}"),
        (5, "sign_in_failed", "", "{}"),
        (6, "more_failures", "", r#"{"count":17,"turned_away":4}"#),
    ] {
        tell(&gatepost, &within(second), event, sub, "1", detail);
    }
    let created = within(0);
    gatepost.run_sql(&format!("UPDATE installation SET created_at = {created}"));
    let store = gatepost.database.store();
    folds::fold(&store, time_of_day(), Duration::from_secs(86_400)).unwrap();
    // Of that hour, the cells of the table.
    let counted = |page: &str| {
        let time = timestamp::format(Instant::from_seconds(i64::from(hour) * 3_600));
        let start = format!("<time datetime=\"{time}\">");
        let (_, row) = page.split_once(&start).unwrap();
        let (row, _) = row.split_once("</tr>").unwrap();
        let cells = row.split("<td>").skip(1);
        let cells = cells.map(|cell| cell.split('<').next().unwrap());
        cells.collect::<Vec<_>>().join(" ")
    };
    let (mut boss, mut anna) = (boss(&gatepost), anna(&gatepost));
    let all = page(&mut boss, "/admin/audit");
    assert_eq!(counted(&all), "3 2 17 4");
    // What is only counted or turned away is drawn apart, and flattens nothing.
    all.assert_says_each("Failed attempts, at most 2 an | or turned away, at most 21 an");
    assert_eq!(all.matches("<rect class=\"in\"").count(), 1, "{all}");
    let unknown = all.matches("<rect class=\"unknown\"").count();
    let not_counted = all.matches("Not counted yet</td>").count();
    assert_eq!(unknown, not_counted, "{all}");
    assert!(unknown > 100, "{unknown}");
    assert_eq!(counted(&page(&mut anna, "/admin/audit")), "2 1 0 0");
    // The list of people has the day.
    let people = page(&mut boss, "/admin/people?q=amy");
    let written = "SELECT to_char(date '1970-01-01' + day, 'YYYY-MM-DD') FROM user_uses WHERE sub = 'sub|amy'";
    let day: String = gatepost.database.value(written, &[]);
    people.assert_says(&format!("<time datetime=\"{day}\">"));
}
