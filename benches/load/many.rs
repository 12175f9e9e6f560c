//! What it costs that there are many: tokens of clients drawn from a hundred and from all that are
//! registered, and code flows beside a thousand users and beside as many as one likes. Those who
//! are compared take turns within one run.

use std::thread;
use std::time::{Duration, Instant};

use postgres::types::ToSql;
use postgres::{Client, NoTls};

use crate::drive::{Load, Outcome};
use crate::flows::Flow;
use crate::gatepost::Gatepost;
use crate::http::Connections;
use crate::{Options, Target, in_turns};

/// `many-1` and so on, each as the client `reference` is.
const MORE_CLIENTS: &str = "
WITH put AS (
    INSERT INTO clients (client_id, metadata, enabled, origins)
    SELECT 'many-' || n, jsonb_set(c.metadata, '{client_id}', to_jsonb('many-' || n)), c.enabled, c.origins
    FROM clients c, generate_series(1, $1::int8) AS n WHERE c.client_id = 'reference'
    RETURNING client_id
), secrets AS (
    INSERT INTO client_secrets (client_id, id, sealed_digest)
    SELECT p.client_id, s.id, s.sealed_digest FROM put p, client_secrets s WHERE s.client_id = 'reference'
)
UPDATE installation SET registry_version = registry_version + 1";

/// The same of the one user there is, with the same password.
const MORE_USERS: &str = "
INSERT INTO users (sub, username, username_key, password_hash, claims)
SELECT 'many-' || n, 'many-' || n, 'many-' || n, u.password_hash, u.claims FROM users u, generate_series(1, $1::int8) AS n";

/// Consents, grants, sessions and the like of 1,000 users.
const FILLED: &str = include_str!("../../tests/support/filled.sql");

const FEW_CLIENTS: u64 = 100;
const SOME_CLIENTS: u64 = 10_000;
const FEW_USERS: u64 = 1_000;

pub fn clients(own: &Gatepost, count: u64, options: &Options) -> Result<(), String> {
    fill(own, MORE_CLIENTS, count)?;
    // That is in force a second later.
    thread::sleep(Duration::from_secs(3));
    let target = Target::new(own.settings.clone())?;
    let mut sizes = vec![FEW_CLIENTS, SOME_CLIENTS, count];
    sizes.retain(|size| *size <= count);
    sizes.dedup();
    println!(
        "| clients in use | flows/s | p99 ms | of the rate with {FEW_CLIENTS} |\n|--:|--:|--:|--:|"
    );
    let mut sums: Vec<Outcome> = sizes.iter().map(|_| Outcome::default()).collect();
    for round in 0..=options.seconds.max(2) {
        let mut order: Vec<_> = sizes.iter().zip(&mut sums).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (size, sum) in order {
            // In the first round each comes by, and none counts.
            let duration = Duration::from_secs(if round == 0 { 1 + size / 2_000 } else { 1 });
            let load = Load {
                duration,
                warm_up: Duration::ZERO,
                ..options.load(Connections::KeptAlive)
            };
            let (outcome, _) = target.drive(Flow::ClientCredentialsOfMany(*size), load)?;
            if round > 0 {
                sum.add(outcome);
            }
        }
    }
    let few = sums.first().map_or(f64::NAN, Outcome::rate);
    for (size, sum) in sizes.iter().zip(&sums) {
        println!(
            "| {size} | {:.0} | {:.2} | {:.2} |",
            sum.rate(),
            sum.percentile(99),
            sum.rate() / few
        );
    }
    Ok(())
}

pub fn users(cluster: &str, count: u64, options: &Options) -> Result<(), String> {
    let sizes = [FEW_USERS, count];
    let gateposts = sizes.map(|_| Gatepost::start(cluster, ""));
    let mut targets = Vec::new();
    for (own, size) in gateposts.iter().zip(sizes) {
        let own = own.as_ref().map_err(String::clone)?;
        fill(own, MORE_USERS, size)?;
        let mut target = Target::new(own.settings.clone())?;
        target.provider.many_users = Some(size);
        targets.push(target);
    }
    println!("| users | flows/s | p99 ms | of the rate with {FEW_USERS} |\n|--:|--:|--:|--:|");
    let (flow, load) = (Flow::Code("code"), options.load(Connections::KeptAlive));
    let drive = |target: &Target, load| target.drive(flow, load);
    let measured = in_turns(
        &targets,
        "code flow",
        |_| true,
        load,
        Duration::from_secs(1),
        drive,
    )?;
    let measured: Vec<Outcome> = measured
        .into_iter()
        .flatten()
        .map(|(outcome, _)| outcome)
        .collect();
    let few = measured.first().map_or(f64::NAN, Outcome::rate);
    for (size, outcome) in sizes.iter().zip(&measured) {
        println!(
            "| {size} | {:.0} | {:.2} | {:.2} |",
            outcome.rate(),
            outcome.percentile(99),
            outcome.rate() / few
        );
    }
    Ok(())
}

pub fn filled(own: &Gatepost) -> Result<(), String> {
    let filled = connect(own)?.batch_execute(FILLED);
    filled.map_err(|error| error.to_string())
}

fn connect(own: &Gatepost) -> Result<Client, String> {
    let url = own
        .settings
        .database_url
        .as_deref()
        .ok_or("no database to fill")?;
    Client::connect(url, NoTls).map_err(|error| error.to_string())
}

pub fn fill(own: &Gatepost, sql: &str, count: u64) -> Result<(), String> {
    let mut client = connect(own)?;
    let (count, began) = (i64::try_from(count).unwrap_or(i64::MAX), Instant::now());
    let values: &[&(dyn ToSql + Sync)] = &[&count];
    client
        .execute(sql, values)
        .map_err(|error| error.to_string())?;
    client
        .batch_execute("ANALYZE")
        .map_err(|error| error.to_string())?;
    eprintln!("{count} more in {} s", began.elapsed().as_secs());
    Ok(())
}
