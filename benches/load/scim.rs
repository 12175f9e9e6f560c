//! What it costs others that a program adds many users over SCIM: refreshes at a fixed rate while
//! people sign in, before it and meanwhile. Afterwards each user that was acknowledged is looked for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use postgres::NoTls;
use serde_json::json;

use crate::beside::{refresh, sign_in};
use crate::drive::Outcome;
use crate::flows::Flow;
use crate::http::{Connections, Outgoing};
use crate::provider::{Provider, Settings};

/// Connections of the program.
const WRITING: u64 = 2;
/// People who sign in one after the other.
const SIGNING_IN: usize = 2;

/// Adds `users`, and prints a line for before and one for meanwhile.
pub fn run(settings: &Settings, users: u64, duration: Duration) -> Result<(), String> {
    let provider = Provider::discover(settings.clone())?;
    println!(
        "| beside it | refreshes: p50 ms | p99 | sign-ins/s | users/s |\n|---|--:|--:|--:|--:|"
    );
    let (refreshed, signed_in) = others(&provider, duration)?;
    print(&refreshed, &signed_in, "nothing", None);
    let acknowledged = AtomicU64::new(0);
    let began = Instant::now();
    let (mut refreshed, mut signed_in) = (Outcome::default(), Outcome::default());
    let took = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITING)
            .map(|writer| {
                let numbers = (writer..users).step_by(WRITING as usize);
                let provider = &provider;
                let acknowledged = &acknowledged;
                scope.spawn(move || add(provider, numbers, acknowledged))
            })
            .collect();
        while writers.iter().any(|writer| !writer.is_finished()) {
            let further = others(&provider, duration)?;
            refreshed.add(further.0);
            signed_in.add(further.1);
        }
        let panicked = |_| Err(String::from("the program panicked"));
        let ended: Result<Vec<Instant>, String> = writers
            .into_iter()
            .map(|writer| writer.join().unwrap_or_else(panicked))
            .collect();
        let last = ended?.into_iter().max().unwrap_or(began);
        Ok::<Duration, String>(last - began)
    })?;
    let rate = users as f64 / took.as_secs_f64();
    print(&refreshed, &signed_in, "users over SCIM", Some(rate));
    let found = found(settings)?;
    let told = acknowledged.into_inner();
    println!("\n{told} users were acknowledged, {found} are there, each with its event.");
    if told != users || found != i64::try_from(users).unwrap_or(i64::MAX) {
        return Err(format!("{users} were to be added"));
    }
    Ok(())
}

fn print(refreshed: &Outcome, signed_in: &Outcome, what: &str, rate: Option<f64>) {
    let rate = rate.map_or(String::new(), |rate| format!("{rate:.0}"));
    println!(
        "| {what} | {:.2} | {:.2} | {:.0} | {rate} |",
        refreshed.percentile(50),
        refreshed.percentile(99),
        signed_in.rate()
    );
}

fn others(provider: &Provider, duration: Duration) -> Result<(Outcome, Outcome), String> {
    thread::scope(|scope| {
        let longer = duration + Duration::from_secs(1);
        let people = scope.spawn(move || sign_in(provider, Flow::SignIn, SIGNING_IN, longer));
        let refreshed = refresh(provider, duration)?;
        let panicked = |_| Err(String::from("the sign-ins panicked"));
        let signed_in = people.join().unwrap_or_else(panicked)?;
        Ok((refreshed, signed_in))
    })
}

/// Adds users with these numbers, one after the other. Answers when the last one was acknowledged.
fn add(
    provider: &Provider,
    numbers: impl Iterator<Item = u64>,
    acknowledged: &AtomicU64,
) -> Result<Instant, String> {
    let mut client = provider.client(Connections::KeptAlive);
    let registered = provider.settings.clients.get("scim");
    let basic = registered.ok_or("no client for SCIM")?.basic();
    let token_path = provider.endpoint("token_endpoint").ok_or("no token")?;
    let asking = Outgoing {
        path: &token_path,
        authorization: Some(&basic),
        form: Some("grant_type=client_credentials"),
        ..Outgoing::default()
    };
    let mut bearer = String::new();
    let mut asked_at = None::<Instant>;
    for number in numbers {
        if asked_at.is_none_or(|at| at.elapsed() > Duration::from_secs(600)) {
            let answer = client.send(&asking)?.expect(200)?.json()?;
            bearer = format!(
                "Bearer {}",
                answer["access_token"].as_str().unwrap_or_default()
            );
            asked_at = Some(Instant::now());
        }
        let user = json!({
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
            "userName": format!("scim-{number}"),
            "displayName": format!("Number {number}"),
            "externalId": format!("hr-{number}"),
            "emails": [{"value": format!("scim-{number}@example.com"), "type": "work", "primary": true}],
        });
        let outgoing = Outgoing {
            path: "/scim/v2/Users",
            authorization: Some(&bearer),
            json: Some(&user.to_string()),
            ..Outgoing::default()
        };
        client.send(&outgoing)?.expect(201)?;
        acknowledged.fetch_add(1, Ordering::Relaxed);
    }
    Ok(Instant::now())
}

fn found(settings: &Settings) -> Result<i64, String> {
    let url = settings.database_url.as_deref().ok_or("no database")?;
    let mut client = postgres::Client::connect(url, NoTls).map_err(|error| error.to_string())?;
    let sql = "SELECT count(*) FROM users u JOIN audit_events e ON e.sub = u.sub AND e.event = 'user_added'
               WHERE u.username LIKE 'scim-%'";
    let row = client
        .query_one(sql, &[])
        .map_err(|error| error.to_string())?;
    Ok(row.get(0))
}
