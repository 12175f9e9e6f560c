//! The closed loop: as many walkers as there are connections, each starting its next round when the
//! last one is done.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::flows::{Flow, Walker};
use crate::http::Connections;
use crate::provider::Provider;

/// How to load.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub connections: usize,
    pub kind: Connections,
    pub warm_up: Duration,
    pub duration: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Microseconds of each flow, in ascending order.
    pub latencies: Vec<u32>,
    pub elapsed: Duration,
}

impl Outcome {
    pub fn add(&mut self, further: Outcome) {
        self.latencies.extend(further.latencies);
        self.latencies.sort_unstable();
        self.elapsed += further.elapsed;
    }

    /// Flows per second.
    pub fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The latency that so many hundredths of the flows stay within, in milliseconds.
    pub fn percentile(&self, hundredths: usize) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (self.latencies.len() * hundredths / 100).min(last);
        self.latencies
            .get(index)
            .map_or(f64::NAN, |micros| f64::from(*micros) / 1_000.0)
    }
}

/// Loads a provider with one flow. `begin` is called when the measured time begins, `end` when it
/// is over. The first wrong answer is the result.
pub fn drive<T>(
    provider: &Provider,
    flow: Flow,
    load: Load,
    begin: impl Fn() -> T,
    end: impl Fn() -> T,
) -> Result<(Outcome, T, T), String> {
    let (ready, over) = (Barrier::new(load.connections + 1), AtomicBool::new(false));
    let wrong: Mutex<Option<String>> = Mutex::new(None);
    let note = |problem: String| {
        wrong
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(problem);
        over.store(true, Ordering::Relaxed);
    };
    thread::scope(|scope| {
        let walkers: Vec<_> = (0..load.connections)
            .map(|number| {
                let (ready, over, note) = (&ready, &over, &note);
                scope.spawn(move || {
                    let prepared = Walker::prepare(provider, flow, load.kind, number);
                    ready.wait();
                    match prepared {
                        Ok(walker) => go_round(walker, flow, over, note),
                        Err(problem) => {
                            note(format!("preparing: {problem}"));
                            Vec::new()
                        }
                    }
                })
            })
            .collect();
        ready.wait();
        wait(load.warm_up, &over);
        let (before, started) = (begin(), Instant::now());
        wait(load.duration, &over);
        let (ended, after) = (Instant::now(), end());
        over.store(true, Ordering::Relaxed);
        let rounds = walkers
            .into_iter()
            .flat_map(|walker| walker.join().unwrap_or_default());
        // Rounds that end within the measured time are those of the measured time.
        let counted = rounds.filter(|(at, _)| *at >= started && *at < ended);
        let mut latencies: Vec<u32> = counted.map(|(_, micros)| micros).collect();
        latencies.sort_unstable();
        match wrong.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(problem) => Err(problem),
            None if latencies.is_empty() => Err(String::from("no flow came to its end")),
            None => Ok((
                Outcome {
                    latencies,
                    elapsed: ended - started,
                },
                before,
                after,
            )),
        }
    })
}

fn go_round(
    mut walker: Walker<'_>,
    flow: Flow,
    over: &AtomicBool,
    note: &impl Fn(String),
) -> Vec<(Instant, u32)> {
    let mut rounds = Vec::with_capacity(100_000);
    let mut started = Instant::now();
    while !over.load(Ordering::Relaxed) {
        if let Err(problem) = walker.walk(flow) {
            note(problem);
            break;
        }
        let ended = Instant::now();
        rounds.push((
            ended,
            u32::try_from((ended - started).as_micros()).unwrap_or(u32::MAX),
        ));
        started = ended;
    }
    rounds
}

fn wait(duration: Duration, over: &AtomicBool) {
    let deadline = Instant::now() + duration;
    while Instant::now() < deadline && !over.load(Ordering::Relaxed) {
        thread::sleep(
            Duration::from_millis(10).min(deadline.saturating_duration_since(Instant::now())),
        );
    }
}
