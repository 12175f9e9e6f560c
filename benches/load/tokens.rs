//! What many reference tokens leave behind: issues them, revokes every tenth, lets all of them
//! expire, and shows the size of every table before, between and after. Time is not waited for:
//! partitions are looked after as of a day on which everything is over.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use form_urlencoded::Serializer;
use gatepost::protocol::words::instant::Day;
use gatepost::protocol::words::secret::SecretText;
use gatepost::store::partitions::{self, Horizons};
use gatepost::store::{DatabaseSettings, Store};
use postgres::NoTls;

use crate::http::{Connections, Outgoing};
use crate::provider::{Provider, Settings};

/// Of so many tokens one is revoked.
const REVOKED: u64 = 10;
/// Lifetimes as they are by default.
const HORIZONS: Horizons = Horizons {
    grants: Duration::from_secs(30 * 86_400),
    sessions: Duration::from_secs(36_000 + 3_600),
    revoked_tokens: Duration::from_secs(3_600),
    used_assertions: Duration::from_secs(86_400),
    audit_events: Duration::from_secs(400 * 86_400),
};
/// Beyond the end of every partition that there can be now.
const LATER: i32 = 1_000;

/// KiB and partitions by table.
type Sizes = BTreeMap<String, (i64, i64)>;

/// Issues `tokens`, expires them, and prints the tables.
pub fn run(settings: &Settings, tokens: u64, connections: usize) -> Result<(), String> {
    let url = settings
        .database_url
        .as_deref()
        .ok_or("no database to look into")?;
    let before = sizes(url)?;
    let began = Instant::now();
    issue(settings, tokens, connections)?;
    let took = began.elapsed();
    let between = sizes(url)?;
    let dropped = expire(url)?;
    let after = sizes(url)?;
    println!(
        "{tokens} reference tokens in {} s, every {REVOKED}th revoked; {dropped} partitions dropped.\n",
        took.as_secs()
    );
    println!(
        "| table | before, KiB | after issuing | after expiry | partitions before | and after |\n|---|--:|--:|--:|--:|--:|"
    );
    let size = |sizes: &Sizes, name: &str| sizes.get(name).copied().unwrap_or_default();
    for name in before.keys() {
        let (first, second, third) = (
            size(&before, name),
            size(&between, name),
            size(&after, name),
        );
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            first.0, second.0, third.0, first.1, third.1
        );
    }
    Ok(())
}

fn issue(settings: &Settings, tokens: u64, connections: usize) -> Result<(), String> {
    let provider = Provider::discover(settings.clone())?;
    let each = tokens.div_ceil(connections as u64);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..connections)
            .map(|_| scope.spawn(|| issue_some(&provider, each)))
            .collect();
        let panicked = |_| Err(String::from("a worker panicked"));
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(panicked))
    })
}

fn issue_some(provider: &Provider, tokens: u64) -> Result<(), String> {
    let mut client = provider.client(Connections::KeptAlive);
    let registered = provider
        .settings
        .clients
        .get("reference")
        .ok_or("no client for reference tokens")?;
    let basic = registered.basic();
    let endpoint = |name: &str| provider.endpoint(name).ok_or_else(|| format!("no {name}"));
    let (token_path, revocation_path) = (
        endpoint("token_endpoint")?,
        endpoint("revocation_endpoint")?,
    );
    for number in 0..tokens {
        let outgoing = |path, form| Outgoing {
            path,
            authorization: Some(&basic),
            form: Some(form),
            ..Outgoing::default()
        };
        let answer = client.send(&outgoing(&token_path, "grant_type=client_credentials"))?;
        let token = answer.expect(200)?.json()?["access_token"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        if number % REVOKED == 0 {
            let form = Serializer::new(String::new())
                .append_pair("token", &token)
                .finish();
            client
                .send(&outgoing(&revocation_path, &form))?
                .expect(200)?;
        }
    }
    Ok(())
}

/// Looks after partitions as of a day on which everything written so far is over; answers how many
/// went.
fn expire(url: &str) -> Result<usize, String> {
    let store = Store::open(&DatabaseSettings {
        url: SecretText::new(url),
        connections: 2,
        workers: 8,
        cancel_after: Duration::from_secs(60),
        stuck_after: Duration::from_secs(120),
        process: String::from("bench"),
        audit_days: 400,
    });
    let store = store.map_err(|error| error.to_string())?;
    let mut client = postgres::Client::connect(url, NoTls).map_err(|error| error.to_string())?;
    let today = "SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4";
    let today: i32 = client
        .query_one(today, &[])
        .map_err(|error| error.to_string())?
        .get(0);
    // The server looks after them once a minute as well: one of the two has the lead.
    for _ in 0..100 {
        let maintained = partitions::maintain(&store, &HORIZONS, Day(today + LATER))
            .map_err(|error| error.to_string())?;
        if !maintained.left_to_another && maintained.postponed.is_empty() {
            return Ok(maintained.dropped.len());
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(String::from("the partitions are held by somebody"))
}

fn sizes(url: &str) -> Result<Sizes, String> {
    let mut client = postgres::Client::connect(url, NoTls).map_err(|error| error.to_string())?;
    let sql =
        "SELECT coalesce(p.relname, c.relname)::text, (sum(pg_total_relation_size(c.oid)) / 1024)::int8, count(p.oid)
               FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent
               WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY 1";
    let rows = client.query(sql, &[]).map_err(|error| error.to_string())?;
    Ok(rows
        .iter()
        .map(|row| (row.get(0), (row.get(1), row.get(2))))
        .collect())
}
