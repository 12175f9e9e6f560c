//! The open loop: flows are due at a fixed rate, whether or not those before have been answered. The
//! latency of a flow counts from when it was due, so it tells what a user waits where a server falls
//! behind.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Target;
use crate::drive::{Load, Outcome, drive};
use crate::flows::{FLOWS, Flow, Walker};
use crate::http::Connections;
use crate::provider::Provider;

/// What flows ask for at once at most, each by a connection of its own.
const CONNECTIONS: usize = 16;
const PACED: [Flow; 5] = [
    Flow::Code("code"),
    Flow::Refresh("refresh"),
    Flow::Refresh("refresh_es256"),
    Flow::Introspection,
    Flow::UserInfo,
];
/// Hundredths of the rate that the closed loop came to.
const SHARES: [u32; 4] = [30, 50, 70, 90];

/// Measures each flow's own limit, then its latency below that limit, and prints the table.
pub fn run(targets: &[Target], duration: Duration) -> Result<(), String> {
    println!("| provider | flow | limit, flows/s | at 30 %: p50 ms, p99 | 50 % | 70 % | 90 % |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    for target in targets {
        let provider = &target.provider;
        for (flow, name) in FLOWS {
            if !PACED.contains(&flow) || !flow.is_possible(provider) {
                continue;
            }
            let load = Load {
                connections: CONNECTIONS,
                kind: Connections::KeptAlive,
                warm_up: Duration::from_secs(1),
                duration,
            };
            let (closed, ..) = drive(provider, flow, load, || (), || ())?;
            print!(
                "| {} | {name} | {:.0} ",
                provider.settings.name,
                closed.rate()
            );
            for share in SHARES {
                let rate = (closed.rate() as u32 * share / 100).max(1);
                let outcome = paced(provider, flow, CONNECTIONS, rate, duration)?;
                print!(
                    "| {:.1}, {:.1} ",
                    outcome.percentile(50),
                    outcome.percentile(99)
                );
            }
            println!("|");
        }
    }
    Ok(())
}

/// Walks the flow so many times a second by so many connections: whichever is free takes the next
/// one that is due.
pub fn paced(
    provider: &Provider,
    flow: Flow,
    connections: usize,
    rate: u32,
    duration: Duration,
) -> Result<Outcome, String> {
    let walkers = (0..connections)
        .map(|number| Walker::prepare(provider, flow, Connections::KeptAlive, number))
        .collect::<Result<Vec<_>, String>>()?;
    let (started, next) = (Instant::now(), AtomicU32::new(0));
    let failed = AtomicBool::new(false);
    let keep_walking = |mut walker: Walker<'_>| {
        let mut latencies = Vec::new();
        loop {
            let after = f64::from(next.fetch_add(1, Ordering::Relaxed)) / f64::from(rate);
            let due = started + Duration::from_secs_f64(after);
            if due >= started + duration || failed.load(Ordering::Relaxed) {
                return Ok(latencies);
            }
            thread::sleep(due.saturating_duration_since(Instant::now()));
            walker
                .walk(flow)
                .inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            latencies.push(u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
    };
    let latencies = thread::scope(|scope| {
        let walking: Vec<_> = walkers
            .into_iter()
            .map(|walker| scope.spawn(|| keep_walking(walker)))
            .collect();
        let ended = |_| Err(String::from("a walker panicked"));
        walking
            .into_iter()
            .map(|walker| walker.join().unwrap_or_else(ended))
            .collect::<Result<Vec<_>, String>>()
    });
    let mut latencies = latencies?.concat();
    latencies.sort_unstable();
    Ok(Outcome {
        latencies,
        elapsed: duration,
    })
}
