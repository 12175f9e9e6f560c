//! Applications, their refusals, and the audit log at `/admin`: who sees what, and that looking
//! changes nothing.

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, basic, code, issued, redeem_with, sign_in, text, with_clients,
};
use crate::support::gatepost::{BOB_PASSWORD, CONF1_SECRET, Gatepost, RP1, document};
use crate::support::http::{Answer, Browser, encode};
use crate::support::phone::Phone;
use crate::support::tables::rows_of;
use crate::support::waiting::{SOON, await_that};

const KEY: &str = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const ON: [(&str, &str); 1] = [("GATEPOST_ADMIN_ROLE", "office")];
const HTML: &str = "<b onclick='x'>&amp;\"</b>";

fn person(name: &str, tenant: &str, role: &Value) -> Value {
    let mut person = json!({
        "sub": format!("sub|{name}"), "username": name, "password": BOB_PASSWORD,
        "claims": {"name": name, "role": role},
    });
    if *role == json!("office") {
        person["totp"] = json!(KEY);
    }
    if !tenant.is_empty() {
        person["tenant"] = json!(tenant);
    }
    person
}

/// Administrators of everybody and of one tenant, people of two, and clients for some of them.
fn registered() -> Value {
    let mut registered = document();
    registered["tenants"] = json!([{"name": "acme", "display_name": "Acme"}, {"name": "globex", "display_name": "Globex"}]);
    registered["identity_providers"] = json!([{"name": "globex-house", "issuer": "https://globex.example",
        "client_id": "x", "client_secret": {"value": "y"}, "tenant": "globex"}]);
    let people = [
        person("boss", "", &json!("office")),
        person("anna", "acme", &json!("office")),
        person("amy", "acme", &json!("staff")),
        person("gus", "globex", &json!("staff")),
    ];
    registered["users"].as_array_mut().unwrap().extend(people);
    let offline = json!(["authorization_code", "refresh_token"]);
    let tenants = json!(["acme", "globex"]);
    let clients = [
        (
            "acmes",
            json!({"client_name": "Wiki", "tenants": ["acme"], "allowed_roles": ["staff"], "grant_types": offline, "scope": "openid offline_access"}),
        ),
        (
            "globexs",
            json!({"client_name": "Ledger", "tenants": ["globex"]}),
        ),
        ("both", json!({"client_name": "Chat", "tenants": tenants})),
        (
            "shared",
            json!({"client_name": "Calendar", "identity_providers": ["globex-house"], "tenants": tenants}),
        ),
        (
            "odd/name%2F",
            json!({"client_name": HTML, "scope": "openid orders.read"}),
        ),
        ("off", json!({"client_name": "Old", "enabled": false})),
    ];
    with_clients(registered, &clients)
}

pub(crate) fn start() -> Gatepost {
    Gatepost::start_with(&registered(), &ON)
}

/// A browser in which an administrator has signed in. A code is good once, so each signs in once.
fn admin(gatepost: &Gatepost, name: &str, tenant: &str) -> Browser {
    let mut browser = gatepost.browser();
    let page = browser.visit(&format!("/admin?tenant={tenant}"));
    let asked = sign_in(&mut browser, &page, name, BOB_PASSWORD);
    let code = Phone::with_key(KEY.to_owned(), 0).code(0);
    let answer = browser.submit(&asked, &[("code", &code)]);
    assert_eq!(answer.status, 303, "{name}: {}", answer.text());
    browser
}

pub(crate) fn boss(gatepost: &Gatepost) -> Browser {
    admin(gatepost, "boss", "")
}

pub(crate) fn anna(gatepost: &Gatepost) -> Browser {
    admin(gatepost, "anna", "acme")
}

pub(crate) fn page(browser: &mut Browser, path: &str) -> String {
    let answer = browser.get(path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
    answer.text()
}

/// Signs somebody in at a client, and gets its tokens.
pub(crate) fn uses(
    gatepost: &Gatepost,
    client_id: &str,
    name: &str,
    tenant: &str,
    scope: &str,
) -> Value {
    let tenant = format!("tenant:{tenant}");
    let path = authorize_path(client_id, RP1, &[("acr_values", &tenant), ("scope", scope)]);
    let mut browser = gatepost.browser();
    let page = browser.visit(&path);
    sign_in(&mut browser, &page, name, BOB_PASSWORD);
    let code = code(&mut browser, &path);
    issued(&redeem_with(gatepost, client_id, &code, &[]))
}

/// The ids of the clients that a list shows.
fn listed(page: &str) -> Vec<&str> {
    page.split("<p class=\"hint\"><bdi>")
        .skip(1)
        .filter_map(|rest| rest.split_once('<'))
        .map(|(id, _)| id)
        .collect()
}

fn is_nothing(answer: &Answer, what: &str) {
    answer.assert_error_page(404, "GP1007", what);
}

/// All rows of all tables, but for what a sign-in and the housekeeper write meanwhile.
fn rows(gatepost: &Gatepost) -> String {
    let counted = "SELECT string_agg(relname || ' ' || (xpath('/row/c/text()', query_to_xml('SELECT count(*) AS c, coalesce(sum(xmin::text::int8), 0) AS x FROM ' || oid::regclass, false, true, '')))[1]::text
                   || ' ' || (xpath('/row/x/text()', query_to_xml('SELECT coalesce(sum(xmin::text::int8), 0) AS x FROM ' || oid::regclass, false, true, '')))[1]::text, ', ' ORDER BY relname)
                   FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname NOT IN ('leader', 'client_uses')";
    gatepost.database.value(counted, &[])
}

#[test]
fn each_administrator_sees_the_applications_that_are_open_to_their_people() {
    let gatepost = start();
    uses(&gatepost, "acmes", "amy", "acme", "openid offline_access");
    uses(&gatepost, "both", "gus", "globex", "openid");
    let mut boss = boss(&gatepost);
    let all = page(&mut boss, "/admin/applications");
    let hers = "acmes both conf1 conf2 native odd/name%2F off pub1 service shared";
    let ids = hers.replace("native", "globexs native");
    assert_eq!(listed(&all).join(" "), ids);
    all.assert_says("&lt;b onclick='x'&gt;");
    all.assert_says_not("<b onclick");

    let mut anna = anna(&gatepost);
    let shown = page(&mut anna, "/admin/applications");
    assert_eq!(listed(&shown).join(" "), hers);
    shown.to_lowercase().assert_says_not("globex");

    for [id, grade, grants, who] in rows_of(
        r#"
        acmes           | ok    | 1 | <dd>Roles<br><bdi>staff</bdi><br>Organisation<br><bdi>Acme</bdi></dd>
        both            | ok    | 0 | <dd>Organisation<br><bdi>Acme</bdi></dd>
        conf1           | ok    | 0 | <dd><span class="badge warning">Everybody</span></dd>
        off             | fails | 0 | <dd><span class="badge warning">Everybody</span></dd>
        odd%2Fname%252F | ok    | 0 | <dd><span class="badge warning">Everybody</span></dd>
    "#,
    ) {
        let one = page(&mut anna, &format!("/admin/applications/{id}"));
        let badge = match grade {
            "ok" => "badge",
            _ => "badge warning",
        };
        let badge = format!("</bdi></h1><span class=\"{badge}\" lang=\"en\">{grade}</span></div>");
        one.assert_says_for(id, &badge);
        one.assert_says_for(id, &format!("<dt>Access grants</dt><dd>{grants}</dd>"));
        assert!(one.contains(who), "{id}: {one}");
        assert!(!one.to_lowercase().contains("globex"), "{one}");
    }
    let both = page(&mut boss, "/admin/applications/both");
    both.assert_says("<bdi>Acme</bdi><br><bdi>Globex</bdi>");
    assert!(both.contains("<dt>Access grants</dt><dd>1</dd>"), "{both}");
    let off = page(&mut boss, "/admin/applications/off");
    assert!(off.contains("it is disabled"), "{off}");
}

#[test]
fn many_applications_are_shown_by_pages() {
    let mut registered = registered();
    for n in 0..205 {
        let client = json!({"client_id": format!("many-{n:03}"), "client_name": "Many", "redirect_uris": [RP1], "scope": "openid", "token_endpoint_auth_method": "none"});
        registered["clients"].as_array_mut().unwrap().push(client);
    }
    let gatepost = Gatepost::start_with(&registered, &ON);
    let mut boss = boss(&gatepost);
    let mut path = String::from("/admin/applications");
    let mut seen = Vec::new();
    loop {
        let page = page(&mut boss, &path);
        seen.extend(listed(&page).into_iter().map(str::to_owned));
        let Some((_, rest)) = page.split_once("/admin/applications?after=") else {
            break;
        };
        let after = rest.split_once('"').unwrap().0;
        path = format!("/admin/applications?after={after}");
    }
    let mut sorted = seen.clone();
    sorted.dedup();
    assert_eq!((seen.len(), sorted.len()), (216, 216));
}

#[test]
fn the_last_use_is_noted_once_a_day_and_shown() {
    let mut gatepost = start();
    let unused = page(&mut boss(&gatepost), "/admin/applications/acmes");
    assert!(unused.contains("No use is known."), "{unused}");
    let mut database = gatepost.database.client();
    let written = "SELECT day, xmin::text, (SELECT registry_version FROM installation) FROM client_uses WHERE client_id = 'acmes'";
    let mut version = None;
    for _ in 0..2 {
        uses(&gatepost, "acmes", "amy", "acme", "openid");
        // What is not written yet, a process that ends writes.
        gatepost.stop();
        let row = database.query_one(written, &[]).unwrap();
        let now: (i32, String, i64) = (row.get(0), row.get(1), row.get(2));
        assert_eq!(version.get_or_insert_with(|| now.clone()), &now);
        gatepost.serve();
    }
    let today = "SELECT to_char(date '1970-01-01' + day, 'YYYY-MM-DD') FROM client_uses WHERE client_id = 'acmes'";
    let today: String = database.query_one(today, &[]).unwrap().get(0);
    let mut browser = admin(&gatepost, "anna", "acme");
    let used = page(&mut browser, "/admin/applications/acmes");
    let said = format!("Last used on <time datetime=\"{today}\">");
    assert!(used.contains(&said), "{used}");
    // An older use does not come before a newer one, and who is removed takes theirs along.
    gatepost.run_sql("UPDATE client_uses SET day = day + 3 WHERE client_id = 'acmes'");
    uses(&gatepost, "acmes", "amy", "acme", "openid");
    gatepost.stop();
    let ahead: i32 = database.query_one(written, &[]).unwrap().get(0);
    assert_eq!(Some(ahead - 3), version.map(|(day, ..)| day));
    gatepost.run_well(&["client", "remove", "acmes"], "");
    assert!(database.query_opt(written, &[]).unwrap().is_none());
}

/// Posts the form of the page.
fn explained(browser: &mut Browser, what: &str) -> String {
    let form = browser.get("/admin/explain");
    let answer = browser.submit(&form, &[("what", what)]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.text()
}

#[test]
fn a_refusal_is_explained_by_its_code_and_by_the_address() {
    let gatepost = start();
    let mut boss = boss(&gatepost);
    let issuer = gatepost.origin().to_owned();
    let address = |client_id: &str, changes: &[(&str, &str)]| {
        format!("{issuer}{}", authorize_path(client_id, RP1, changes))
    };
    let good = address("conf1", &[]);
    let mismatched = address("conf1", &[("redirect_uri", "https://rp1.example/cbb")]);
    let elsewhere = "https://elsewhere.example/connect/authorize?client_id=conf1";
    let write = "write the address of an authorization request";
    for (what, said) in [
        ("GP1211", "GP1211: "),
        (" gp1105 ", "GP1105: "),
        ("GP9999", write),
        ("nothing of the kind", write),
        (&good, "it is good: whoever signs in is sent to"),
        (&mismatched, "GP1105"),
        (&address("conf1", &[("scope", "openid spam")]), "spam"),
        (&address("cnf1", &[]), "conf1"),
        (&address("off", &[]), "GP1103"),
        (elsewhere, "another issuer"),
        ("client_id=conf1&response_type=%zz", "GP1001"),
        ("client_id=conf1&x=%00", "GP1001"),
    ] {
        explained(&mut boss, what).assert_says_for(what, said);
    }
    let by_link = page(&mut boss, "/admin/explain?what=GP1211");
    assert!(by_link.contains("GP1211: "), "{by_link}");
    let mismatch = explained(&mut boss, &mismatched);
    mismatch.assert_says("<dt>Sent</dt><dd><bdi>https://rp1.example/cbb</bdi></dd>");
    // No form of another page, or of none.
    for form in [
        &[("form_token", "x"), ("what", "GP1211")][..],
        &[("what", "GP1211")],
    ] {
        boss.post("/admin/explain", form)
            .assert_says_not("GP1211: ");
    }
}

#[test]
fn no_token_is_explained_or_shown() {
    let gatepost = start();
    let tokens = uses(&gatepost, "acmes", "amy", "acme", "openid offline_access");
    let mut boss = boss(&gatepost);
    for name in ["access_token", "id_token", "refresh_token"] {
        let token = text(&tokens, name);
        let form = format!("grant_type=refresh_token&refresh_token={token}");
        let request = authorize_path("acmes", RP1, &[("scope", "openid")]);
        let hint = format!("{request}&id_token_hint={token}");
        for what in [token, &form, &hint] {
            let page = explained(&mut boss, what);
            assert!(!page.contains(token) && !page.contains("sub|amy"), "{page}");
        }
        // That it is none of ours is not said either.
        let hinted = explained(&mut boss, &hint);
        assert!(hinted.contains("it is good"), "{hinted}");
        assert!(!gatepost.log().contains(token));
    }
}

#[test]
fn a_client_out_of_reach_is_explained_as_an_unknown_one() {
    let gatepost = start();
    let mut anna = anna(&gatepost);
    let said = |browser: &mut Browser, client_id: &str, changes: &[(&str, &str)]| {
        let page = explained(browser, &authorize_path(client_id, RP1, changes));
        let (_, rest) = page.split_once("<ul class=\"items\"").unwrap();
        let (found, _) = rest.split_once("<form").unwrap();
        found.replace(client_id, "CLIENT")
    };
    for changes in [
        &[][..],
        &[("redirect_uri", "https://evil.example/")],
        &[("scope", "spam")],
        &[("response_type", "spam")],
        &[("acr_values", "tenant:globex")],
    ] {
        let hidden = said(&mut anna, "globexs", changes);
        assert_eq!(hidden, said(&mut anna, "nobodys", changes));
        assert!(hidden.contains("GP1102"), "{hidden}");
    }
    // Names that are nearly hers or theirs are not told.
    let near = explained(&mut anna, &authorize_path("globex", RP1, &[]));
    assert!(!near.contains("globexs"), "{near}");
    let good = authorize_path("acmes", RP1, &[("scope", "openid")]);
    explained(&mut anna, &good).assert_says("it is good");
}

#[test]
fn another_tenants_providers_and_tenants_are_not_told() {
    let gatepost = start();
    let mut boss = boss(&gatepost);
    let mut anna = anna(&gatepost);
    let request = |client_id: &str, acr_values: &str| {
        let parameters = [("scope", "openid"), ("acr_values", acr_values)];
        authorize_path(client_id, RP1, &parameters)
    };
    for path in ["/admin/applications", "/admin/applications/shared"] {
        page(&mut anna, path).assert_says_not_for(path, "globex");
    }
    let all = page(&mut boss, "/admin/applications/shared");
    assert!(all.contains("people sign in with: globex-house"), "{all}");
    let hers = explained(&mut anna, &request("shared", "")).replace("acr_values=", "");
    assert!(hers.contains("GP1138"), "{hers}");
    hers.assert_says_not("globex");
    // Who else may use it, and which tenants there are.
    let told = |browser: &mut Browser, client_id: &str, tenant: &str| {
        explained(browser, &request(client_id, &format!("tenant:{tenant}"))).contains("GP1126")
    };
    for client_id in ["both", "conf1"] {
        assert!(!told(&mut anna, client_id, "acme"), "{client_id}");
        assert!(told(&mut anna, client_id, "globex"), "{client_id}");
        assert!(told(&mut anna, client_id, "initech"), "{client_id}");
        assert!(!told(&mut boss, client_id, "globex"), "{client_id}");
    }
}

#[test]
fn events_of_a_client_that_is_gone_are_shown_to_whoever_sees_all() {
    let gatepost = start();
    uses(&gatepost, "acmes", "amy", "acme", "openid");
    let mut anna = anna(&gatepost);
    let mut boss = boss(&gatepost);
    let path = "/admin/audit?event=code_redeemed";
    assert_eq!(shown(&page(&mut anna, path)), ["code_redeemed amy"]);
    gatepost.run_well(&["client", "remove", "acmes"], "");
    assert_eq!(shown(&page(&mut anna, path)), Vec::<String>::new());
    assert_eq!(shown(&page(&mut boss, path)), ["code_redeemed amy"]);
}

#[test]
fn what_an_administrator_did_is_found_and_older_events_stand_on_further_pages() {
    let gatepost = start();
    // As `/admin` writes them: many at one moment, and some before it.
    let sql = "INSERT INTO audit_events
        SELECT a.day, now() - make_interval(secs => n / 300), 'made', n, a.previous, a.hash, 'user_changed', NULL,
            CASE WHEN n % 2 = 0 THEN 'sub|amy' ELSE 'sub|gus' END, NULL, NULL, NULL,
            json_build_object('by', 'admin', 'admin', CASE WHEN n % 3 = 0 THEN 'sub|anna' ELSE 'sub|boss' END)
        FROM (SELECT * FROM audit_events LIMIT 1) a, generate_series(1, 900) n";
    let made = gatepost.database.client().execute(sql, &[]).unwrap();
    assert_eq!(made, 900);
    let count = |browser: &mut Browser, query: &str| {
        let mut next = Some(format!("/admin/audit?{query}"));
        let mut counts = Vec::new();
        while let Some(path) = next {
            let page = page(browser, &path);
            counts.push(shown(&page).len());
            let mut links = page
                .split("href=\"")
                .map(|rest| rest.split('"').next().unwrap());
            let older = links.find(|link| link.contains("before="));
            next = older.map(|link| link.replace("&amp;", "&"));
        }
        counts
    };
    let mut boss = boss(&gatepost);
    let mut anna = anna(&gatepost);
    assert_eq!(count(&mut boss, "event=user_changed"), [50; 18]);
    assert_eq!(count(&mut boss, "event=user_changed&person=boss"), [50; 12]);
    let by_anna = "event=user_changed&person=sub%7Canna";
    assert_eq!(count(&mut boss, by_anna), [50; 6]);
    assert_eq!(count(&mut boss, "event=user_changed&person=amy"), [50; 9]);
    // Of her own people alone, whoever did it.
    assert_eq!(count(&mut anna, "event=user_changed&person=anna"), [50; 3]);
    assert_eq!(count(&mut anna, "event=user_changed"), [50; 9]);
    for before in ["x", "1/2", "1/x/c", "9999999999999999999/1/c"] {
        let answer = boss.get(&format!("/admin/audit?{}", encode(&[("before", before)])));
        answer.assert_error_page(400, "GP1505", before);
    }
    for before in "-9223372036854775808/0/ 9223372036854775807/9223372036854775807/x".split(' ') {
        page(&mut boss, &format!("/admin/audit?before={before}"));
    }
}

/// The events that a page of the audit log shows, and whom they are about.
fn shown(page: &str) -> Vec<String> {
    page.split("<strong lang=\"en\">")
        .skip(1)
        .map(|rest| {
            let event = rest.split_once('<').unwrap().0;
            let item = rest.split_once("</li>").unwrap().0;
            let about = item.split_once("<bdi>sub|");
            let about = about.map_or("nobody", |(_, rest)| rest.split_once('<').unwrap().0);
            format!("{event} {about}")
        })
        .collect()
}

#[test]
fn the_audit_log_is_shown_by_person_event_and_day() {
    let gatepost = start();
    uses(&gatepost, "acmes", "amy", "acme", "openid offline_access");
    uses(&gatepost, "both", "gus", "globex", "openid");
    let mut boss = boss(&gatepost);
    let all = shown(&page(&mut boss, "/admin/audit"));
    for (event, there) in [
        ("code_redeemed amy", true),
        ("code_redeemed gus", true),
        ("user_changed nobody", false),
    ] {
        let is_there = all.iter().any(|one| one == event);
        assert_eq!(is_there, there, "{event} {all:?}");
    }
    assert!(all.iter().any(|one| one.ends_with(" nobody")), "{all:?}");
    for [query, expected] in rows_of(
        "
        person=amy&event=code_redeemed       | code_redeemed amy
        person=sub%7Camy&event=code_redeemed | code_redeemed amy
        person=AMY&event=code_redeemed       | code_redeemed amy
        event=code_redeemed                  | code_redeemed gus code_redeemed amy
        event=code_redeemed&day=1999-12-31   |
        event=code_redeemed&day=2999-12-31   |
        event=code_redeemed&person=nobody    |
        event=spam                           |
        event=chain_opened                   |
    ",
    ) {
        let found = shown(&page(&mut boss, &format!("/admin/audit?{query}")));
        assert_eq!(found.join(" "), expected, "{query}");
    }
    for day in "yesterday 2026-02-30 2026-1-1 2026-01-1T -001-01-01".split(' ') {
        let answer = boss.get(&format!("/admin/audit?day={day}"));
        answer.assert_error_page(400, "GP1840", day);
    }
}

#[test]
fn an_administrator_of_a_tenant_sees_events_of_its_people_alone() {
    let gatepost = start();
    uses(&gatepost, "acmes", "amy", "acme", "openid offline_access");
    uses(&gatepost, "both", "gus", "globex", "openid");
    uses(&gatepost, "globexs", "gus", "globex", "openid");
    for client_id in ["acmes", "globexs", "both", "conf1"] {
        let authorization = basic(client_id, "wrong");
        let form = [("grant_type", "client_credentials")];
        let headers = [("Authorization", authorization.as_str())];
        assert_eq!(gatepost.post("/connect/token", &headers, &form).status, 401);
    }
    let failed = || gatepost.database.events("client_authentication_failed");
    await_that("four failures are told", SOON, || failed() == 4);
    let mut anna = anna(&gatepost);
    let hers = page(&mut anna, "/admin/audit");
    let events = shown(&hers);
    let is_hers = |one: &String| one.ends_with(" amy") || one.ends_with(" anna");
    assert!(events.iter().all(is_hers), "{events:?}");
    let redeemed = events.iter().any(|one| one == "code_redeemed amy");
    assert!(redeemed, "{events:?}");
    assert!(!hers.contains("globex") && !hers.contains("gus"), "{hers}");
    for query in "person=gus person=sub%7Cgus person=boss event=user_removed".split(' ') {
        let found = page(&mut anna, &format!("/admin/audit?{query}"));
        assert_eq!(shown(&found), Vec::<String>::new(), "{query}");
    }
}

#[test]
fn bent_requests_find_nothing_and_reading_writes_nothing() {
    let gatepost = start();
    uses(&gatepost, "globexs", "gus", "globex", "openid");
    let mut anna = anna(&gatepost);
    page(&mut anna, "/admin/applications");
    let before = rows(&gatepost);
    for path in "applications/globexs applications/%67lobexs applications/nobodys
                 applications/globexs%00 applications/%ff applications/%00 applications/acmes/
                 applications/acmes/x applications/odd/name%2F explain/x audit/x Applications spam"
        .split_whitespace()
    {
        let path = &format!("/admin/{path}");
        is_nothing(&anna.get(path), path);
        is_nothing(&anna.post(path, &[("what", "x")]), path);
    }
    // What another tenant has does not come by another order or by a start in between.
    for query in "after= after=globex after=both reach=globex&client_id=globexs".split(' ') {
        let page = page(&mut anna, &format!("/admin/applications?{query}"));
        page.replace("after=globex", "").assert_says_not("globex");
    }
    let paths = "/admin/applications /admin/applications/acmes /admin/explain?what=GP1211
                 /admin/audit /admin/audit?person=amy";
    for path in paths.split_whitespace() {
        page(&mut anna, path);
    }
    let request = authorize_path("acmes", RP1, &[("scope", "openid")]);
    explained(&mut anna, &request);
    assert_eq!(rows(&gatepost), before);

    // Without a sign-in, and with a token instead of one.
    let token = uses(&gatepost, "acmes", "amy", "acme", "openid");
    let bearer = format!("Bearer {}", text(&token, "access_token"));
    let paths = "/admin/applications /admin/applications/acmes /admin/explain /admin/audit";
    for path in paths.split(' ') {
        let answer = gatepost.send("GET", path, &[("Authorization", &bearer)], b"");
        assert_eq!(answer.status, 303, "{path}");
        answer.assert_leads_to_for(path, "/login");
    }
}

#[test]
fn hostile_texts_stay_texts() {
    let gatepost = start();
    let mut boss = boss(&gatepost);
    let long = "x".repeat(10_000);
    let bidi = "\u{202e}gnp.exe\u{2066}";
    for value in [
        HTML,
        bidi,
        &long,
        "'; DROP TABLE users; --",
        "a\0b",
        "%",
        "\\",
        "{}",
    ] {
        for [path, name] in rows_of(
            "
            applications | after
            explain      | what
            audit        | person
            audit        | event
            audit        | day
            audit        | ui_locales
        ",
        ) {
            let answer = boss.get(&format!("/admin/{path}?{}", encode(&[(name, value)])));
            let case = format!("{path} {name} {value:.20}");
            assert!(
                [200, 400].contains(&answer.status),
                "{case}: {}",
                answer.status
            );
            answer.assert_says_not_for(&case, "<b onclick");
            assert!(value != "a\0b" || answer.status == 400, "{path} {name}");
        }
        if value != "a\0b" {
            let changes = ["redirect_uri", "scope", "state"].map(|name| (name, value));
            let request = authorize_path("conf1", RP1, &changes);
            for what in [value, &request, &authorize_path(value, RP1, &[])] {
                assert!(!explained(&mut boss, what).contains("<b onclick"));
            }
        }
    }
    // Twice, and in a body that is no form.
    boss.get("/admin/audit?day=2026-01-01&day=2026-01-01")
        .assert_error_page(400, "GP1002", "twice");
    let secret = [("client_secret", CONF1_SECRET)];
    assert_eq!(boss.post("/admin/explain", &secret).status, 200);
}
