//! What this process has done, counted for `/metrics`: answers by endpoint and status, how long
//! they took, tokens by grant, failures by reason. Bounded: every label is one of ours or
//! registered, never what a request brought.

pub mod exposition;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use exposition::Exposition;

use gatepost_protocol::words::named::Named;
use gatepost_store::mutex::Mutex;

/// Upper bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// The counters. One per process; shared by reference.
#[derive(Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    answers: BTreeMap<(&'static str, u16), u64>,
    latencies: BTreeMap<&'static str, Histogram>,
    token_answers: BTreeMap<String, u64>,
    failures: BTreeMap<&'static str, u64>,
}

#[derive(Default)]
struct Histogram {
    buckets: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

/// What is counted, by whichever thread.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn raise(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub fn lower(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn set(&self, count: u64) {
        self.0.store(count, Ordering::SeqCst);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A counter for each of a few kinds, which have names.
#[derive(Debug)]
pub struct CountersByKind<K>(Vec<(&'static str, K, Counter)>);

impl<K: Named> Default for CountersByKind<K> {
    fn default() -> CountersByKind<K> {
        let kinds = K::CHOICES.iter();
        CountersByKind(
            kinds
                .map(|(name, kind)| (*name, *kind, Counter::default()))
                .collect(),
        )
    }
}

impl<K: Named + PartialEq> CountersByKind<K> {
    pub fn raise(&self, raised: K) {
        for (_, kind, counter) in &self.0 {
            if *kind == raised {
                counter.raise();
            }
        }
    }

    pub fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0
            .iter()
            .map(|(name, _, counter)| (*name, counter.get()))
    }
}

/// What the server counts, from its socket to its handlers.
#[derive(Default)]
pub struct ServerStats {
    pub connections: Counter,
    /// Own probes aside.
    pub received: Counter,
    /// Own probes included.
    pub answered: Counter,
    /// Received and not yet answered.
    pub in_flight: Counter,
    /// In the body lane or in line before it.
    pub awaited: Counter,
    /// Have left the body lane.
    pub bodies: Counter,
    pub abandoned: Counter,
    /// Before a handler saw them.
    pub refused: Counter,
    /// Let go of, because their connection had ended.
    pub unanswered: Counter,
    /// Connections whose peer left before its address was read, since the last line about them.
    pub departed: AtomicU64,
    pub panicked: Counter,
    /// Times a successor was asked for.
    pub recycles: Counter,
    /// As of when this process was last asked.
    pub dropped_log_lines: Counter,
}

#[derive(Clone, Copy)]
pub struct Answered<'a> {
    pub endpoint: &'static str,
    pub status: u16,
    pub took: Duration,
    /// The grant by which tokens were given; only names that are registered.
    pub grant: Option<&'a str>,
    /// The code of what went wrong, as `GP1207`.
    pub reason: Option<&'static str>,
}

impl Metrics {
    pub fn count(&self, answered: &Answered<'_>) {
        let mut counts = self.0.lock();
        *counts
            .answers
            .entry((answered.endpoint, answered.status))
            .or_default() += 1;
        counts
            .latencies
            .entry(answered.endpoint)
            .or_default()
            .record(answered.took);
        if let Some(grant) = answered.grant {
            *counts.token_answers.entry(grant.to_owned()).or_default() += 1;
        }
        if let Some(reason) = answered.reason {
            *counts.failures.entry(reason).or_default() += 1;
        }
    }

    pub fn expose(&self, exposition: &mut Exposition) {
        let counts = self.0.lock();
        exposition.family(
            "gatepost_http_requests_total",
            "Answers by endpoint and HTTP status.",
        );
        for ((endpoint, status), count) in &counts.answers {
            exposition.sample(
                "",
                &[("endpoint", endpoint), ("status", &status.to_string())],
                *count,
            );
        }
        exposition.histogram(
            "gatepost_http_request_duration_seconds",
            "Time from a handler's beginning to its end, by endpoint.",
        );
        for (endpoint, histogram) in &counts.latencies {
            histogram.expose(exposition, endpoint);
        }
        exposition.by_label(
            "gatepost_token_responses_total",
            "Token responses by grant type (implicit: at the authorization endpoint).",
            "grant_type",
            &counts.token_answers,
        );
        exposition.by_label(
            "gatepost_failures_total",
            "Refused requests by reason code.",
            "reason",
            &counts.failures,
        );
    }
}

impl Histogram {
    fn record(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        // The last bucket is not stored: it is the count.
        if let Some(bucket) = BOUNDS
            .iter()
            .zip(&mut self.buckets)
            .find(|(bound, _)| seconds <= **bound)
        {
            *bucket.1 += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(took);
    }

    fn expose(&self, exposition: &mut Exposition, endpoint: &str) {
        let mut below = 0;
        for (bound, count) in BOUNDS.iter().zip(&self.buckets) {
            below += count;
            exposition.sample(
                "_bucket",
                &[("endpoint", endpoint), ("le", &bound.to_string())],
                below,
            );
        }
        exposition.sample(
            "_bucket",
            &[("endpoint", endpoint), ("le", "+Inf")],
            self.count,
        );
        exposition.sample("_sum", &[("endpoint", endpoint)], self.sum.as_secs_f64());
        exposition.sample("_count", &[("endpoint", endpoint)], self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed(metrics: &Metrics) -> String {
        let mut exposition = Exposition::default();
        metrics.expose(&mut exposition);
        exposition.into_text()
    }

    fn answered(took_millis: u64) -> Answered<'static> {
        Answered {
            endpoint: "token",
            status: 400,
            took: Duration::from_millis(took_millis),
            grant: None,
            reason: Some("GP1207"),
        }
    }

    #[test]
    fn buckets_hold_all_that_took_no_longer() {
        let metrics = Metrics::default();
        for millis in [1, 2, 30, 11_000] {
            metrics.count(&answered(millis));
        }
        let text = exposed(&metrics);
        for (bound, count) in [
            ("0.001", 1),
            ("0.0025", 2),
            ("0.025", 2),
            ("0.05", 3),
            ("10", 3),
            ("+Inf", 4),
        ] {
            let line = format!("_bucket{{endpoint=\"token\",le=\"{bound}\"}} {count}\n");
            assert!(text.contains(&line), "{line}{text}");
        }
        assert!(
            text.contains(
                "gatepost_http_request_duration_seconds_sum{endpoint=\"token\"} 11.033\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("gatepost_http_request_duration_seconds_count{endpoint=\"token\"} 4\n"),
            "{text}"
        );
    }
}
