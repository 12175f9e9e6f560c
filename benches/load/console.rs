//! What administrators' pages cost where there are many: the people, a search by family name, a
//! role's members and the audit log of a Gatepost with many people and events, in turns with one
//! that has a thousand. Then refreshes at a fixed rate, alone and while somebody turns such pages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;

use crate::beside::refresh;
use crate::browser::{Browser, Form};
use crate::drive::Outcome;
use crate::gatepost::{ADMINISTRATOR, ADMINISTRATORS_KEY, Gatepost, PASSWORD};
use crate::http::{Answer, Client, Connections};
use crate::many::fill;
use crate::provider::Provider;

const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;
/// Pages a second that somebody turns beside the refreshes.
const PAGES_A_SECOND: u32 = 4;

/// One in a hundred is a Brandt, twenty are of each other family, one in fifty is a clerk.
const PEOPLE: &str = "
INSERT INTO users (sub, username, username_key, claims)
SELECT 'many-' || n, 'many-' || n, 'many-' || n,
       jsonb_build_object(
           'name', 'Given' || n % 997 || ' ' || CASE WHEN n % 100 = 0 THEN 'Brandt' ELSE 'Family' || lpad((n / 20)::text, 6, '0') END,
           'email', 'many-' || n || '@example.com')
       || CASE WHEN n % 50 = 0 THEN '{\"role\": \"clerk\"}' ELSE '{}' END::jsonb
FROM generate_series(1, $1::int8) AS n";

/// Of the last seven days, the newest now. One in ten is a wrong password.
const EVENTS: &str = "
INSERT INTO audit_events (day, at, chain, seq, previous, hash, event, client_id, sub, source, detail)
SELECT floor(extract(epoch FROM e.at) / 86400)::int4 + 401, e.at, 'many/' || e.n % 20, e.n, 'x', 'x',
       CASE WHEN e.n % 10 = 0 THEN 'sign_in_failed' ELSE 'signed_in' END, 'code', 'many-' || 1 + e.n % 1000,
       '192.0.2.1', '{}'
FROM (SELECT n, now() - interval '7 days' * n / $1::int8 AS at FROM generate_series(1, $1::int8) AS n) AS e";

/// What is looked at: its name in the table, and its address.
const PAGES: [(&str, &str); 6] = [
    ("people", "/admin/people"),
    ("a family of twenty", "/admin/people?q=family000007"),
    ("a family of one in a hundred", "/admin/people?q=brandt"),
    ("people with a role", "/admin/people?role=clerk"),
    ("a role's members", "/admin/roles/clerk"),
    ("audit log", "/admin/audit"),
];

/// An administrator in front of a Gatepost.
struct Seat<'a> {
    provider: &'a Provider,
    client: Client,
    browser: Browser,
}

/// Fills two Gateposts, prints what each page takes in both, and what refreshes take beside them.
pub fn run(cluster: &str, duration: Duration, is_smoke: bool) -> Result<(), String> {
    let many = if is_smoke { 10 * FEW } else { MANY };
    let mut providers = Vec::new();
    let mut owned = Vec::new();
    for size in [FEW, many] {
        let own = Gatepost::start(cluster, "")?;
        fill(&own, PEOPLE, size)?;
        fill(&own, EVENTS, size)?;
        providers.push(Provider::discover(own.settings.clone())?);
        owned.push(own);
    }
    let mut seats = Vec::new();
    for provider in &providers {
        seats.push(Seat::take(provider)?);
    }
    println!(
        "| page | p50 ms with {FEW} | p95 | p50 ms with {many} | p95 | p95, of that with {FEW} |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for (name, path) in PAGES {
        let mut sums = [Outcome::default(), Outcome::default()];
        // They take turns; the first round of each does not count.
        for round in 0..=duration.as_secs() {
            for (seat, sum) in seats.iter_mut().zip(&mut sums) {
                let turn = seat.turn(path, Duration::from_secs(1))?;
                if round > 0 {
                    sum.add(turn);
                }
            }
        }
        let [few, many] = &sums;
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} |",
            few.percentile(50),
            few.percentile(95),
            many.percentile(50),
            many.percentile(95),
            many.percentile(95) / few.percentile(95)
        );
    }
    let Some(mut seat) = seats.pop() else {
        return Ok(());
    };
    beside_refreshes(&mut seat, duration)
}

/// Refreshes of the larger one alone, and while the administrator turns pages.
fn beside_refreshes(seat: &mut Seat<'_>, duration: Duration) -> Result<(), String> {
    let provider = seat.provider;
    println!("\n| refreshes beside | p50 ms | p99 | p99, of that alone |\n|---|--:|--:|--:|");
    let (mut alone, mut beside) = (Outcome::default(), Outcome::default());
    for _ in 0..4 {
        alone.add(refresh(provider, duration)?);
        let is_over = AtomicBool::new(false);
        let refreshed = thread::scope(|scope| {
            let turning = scope.spawn(|| seat.turn_until(&is_over));
            let refreshed = refresh(provider, duration);
            is_over.store(true, Ordering::Relaxed);
            let panicked = |_| Err(String::from("the administrator panicked"));
            turning.join().unwrap_or_else(panicked)?;
            refreshed
        });
        beside.add(refreshed?);
    }
    let lines = [
        (String::from("nothing"), &alone),
        (format!("{PAGES_A_SECOND} pages a second"), &beside),
    ];
    for (what, outcome) in lines {
        println!(
            "| {what} | {:.2} | {:.2} | {:.2} |",
            outcome.percentile(50),
            outcome.percentile(99),
            outcome.percentile(99) / alone.percentile(99)
        );
    }
    Ok(())
}

impl<'a> Seat<'a> {
    /// Signs in, with the code of an app.
    fn take(provider: &'a Provider) -> Result<Seat<'a>, String> {
        let mut seat = Seat {
            provider,
            client: provider.client(Connections::KeptAlive),
            browser: Browser::default(),
        };
        let mut page = seat.open("/admin/people")?;
        // The field of the code is filled in as that of the user name is.
        for typed in [(ADMINISTRATOR, PASSWORD), (app_code()?.as_str(), "")] {
            let form = Form::of(&page, provider)?;
            let answer = seat.browser.submit(&mut seat.client, &form, typed)?;
            page = seat.browser.follow(&mut seat.client, provider, answer)?;
        }
        seat.check(&page)?;
        Ok(seat)
    }

    fn open(&mut self, path: &str) -> Result<Answer, String> {
        self.browser.visit(&mut self.client, self.provider, path)
    }

    fn check(&self, page: &Answer) -> Result<(), String> {
        let text = page.expect(200)?.text();
        if text.contains("aria-current=\"page\"") {
            Ok(())
        } else {
            Err(format!("not a page for administrators: {text}"))
        }
    }

    /// Opens the page again and again for so long.
    fn turn(&mut self, path: &str, duration: Duration) -> Result<Outcome, String> {
        let began = Instant::now();
        let mut latencies = Vec::new();
        while began.elapsed() < duration {
            let asked = Instant::now();
            let page = self.open(path)?;
            latencies.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
            self.check(&page)?;
        }
        latencies.sort_unstable();
        Ok(Outcome {
            latencies,
            elapsed: began.elapsed(),
        })
    }

    /// Opens one page after the other at a fixed rate.
    fn turn_until(&mut self, is_over: &AtomicBool) -> Result<(), String> {
        for (_, path) in PAGES.iter().cycle() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            let asked = Instant::now();
            let page = self.open(path)?;
            self.check(&page)?;
            let pause = Duration::from_secs(1) / PAGES_A_SECOND;
            thread::sleep(pause.saturating_sub(asked.elapsed()));
        }
        Ok(())
    }
}

/// The present code of the administrator's app (RFC 6238).
fn app_code() -> Result<String, String> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let step = since.map_err(|error| error.to_string())?.as_secs() / 30;
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, ADMINISTRATORS_KEY);
    let tag = hmac::sign(&key, &step.to_be_bytes());
    let digest = tag.as_ref();
    let at = usize::from(digest[19] & 15);
    let number = u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]);
    Ok(format!("{:06}", (number & 0x7fff_ffff) % 1_000_000))
}
