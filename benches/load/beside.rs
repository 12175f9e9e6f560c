//! What sign-ins cost those who have tokens: refreshes at a fixed rate, alone and while people sign
//! in as fast as they can.

use std::thread;
use std::time::Duration;

use crate::Target;
use crate::drive::{Load, Outcome, drive};
use crate::flows::Flow;
use crate::http::Connections;
use crate::paced::paced;
use crate::provider::Provider;

/// Refreshes a second.
const RATE: u32 = 200;
/// Refresh tokens in use; each is refreshed some ten times a second.
const HOLDERS: usize = 20;
const SIGNING_IN: usize = 32;
const REFRESH: Flow = Flow::Refresh("refresh");

/// Measures each provider, and prints the table.
pub fn run(targets: &[Target], duration: Duration) -> Result<(), String> {
    println!(
        "| provider | beside {RATE} refreshes a second | p50 ms | p99 | sign-ins/s | sign-ins/s alone |"
    );
    println!("|---|---|--:|--:|--:|--:|");
    for target in targets {
        let (provider, name) = (&target.provider, &target.provider.settings.name);
        let quiet = refresh(provider, duration)?;
        println!(
            "| {name} | nothing | {:.2} | {:.2} | | |",
            quiet.percentile(50),
            quiet.percentile(99)
        );
        for (flow, what) in [
            (Flow::SignIn, "right passwords"),
            (Flow::BadSignIn, "wrong passwords"),
        ] {
            let alone = sign_in(provider, flow, SIGNING_IN, duration)?;
            let (refreshed, beside) = thread::scope(|scope| {
                let beside = scope.spawn(|| {
                    sign_in(
                        provider,
                        flow,
                        SIGNING_IN,
                        duration + Duration::from_secs(1),
                    )
                });
                let refreshed = refresh(provider, duration);
                (
                    refreshed,
                    beside
                        .join()
                        .unwrap_or_else(|_| Err(String::from("the sign-ins panicked"))),
                )
            });
            let (refreshed, beside) = (refreshed?, beside?);
            let (p50, p99) = (refreshed.percentile(50), refreshed.percentile(99));
            println!(
                "| {name} | {what} | {p50:.2} | {p99:.2} | {:.0} | {:.0} |",
                beside.rate(),
                alone.rate()
            );
        }
    }
    Ok(())
}

pub fn sign_in(
    provider: &Provider,
    flow: Flow,
    connections: usize,
    duration: Duration,
) -> Result<Outcome, String> {
    let load = Load {
        connections,
        kind: Connections::KeptAlive,
        warm_up: Duration::from_secs(1),
        duration,
    };
    drive(provider, flow, load, || (), || ()).map(|(outcome, ..)| outcome)
}

pub fn refresh(provider: &Provider, duration: Duration) -> Result<Outcome, String> {
    paced(provider, REFRESH, HOLDERS, RATE, duration)
}
