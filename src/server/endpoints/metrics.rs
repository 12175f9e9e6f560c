//! How this process stands: `/healthz`, that it takes requests; on the admin listener alone
//! `/readyz`, that it can also answer them, and `/metrics`, what it counts, in Prometheus' text
//! format.

use std::fs;

use serde_json::{Value, json};

use crate::app::letters::Letters;
use crate::app::{App, BoundSessionCounts, Standing};
use crate::endpoints::answers;
use crate::http::{Body, Request, Response};
use crate::metrics::exposition::{CONTENT_TYPE, Exposition};
use crate::metrics::{Metrics, ServerStats};
use gatepost_protocol::token::dpop_proof::NONCE_HEADER;
use gatepost_store::installation::table_sizes;

/// Alive: the answer itself is the proof.
pub fn live() -> Response {
    text(200, "ok\n")
}

/// Prefix of the nonces of `gatepost doctor`. The time is sealed in them.
pub const DOCTOR: &str = "gpd_";
/// Behind such a nonce: it asks for an answer with 400.
pub const AS_REFUSAL: &str = "&refuse";

/// `gatepost doctor` proves itself by a nonce, at any address, and learns which header fields
/// arrived there; of secret ones, how long each line is. A nonce is good for a minute, and once in
/// each process. With [`AS_REFUSAL`] the answer is one of those that some proxies change.
pub fn answer_doctor(request: &Request, app: Option<&App>) -> Option<Response> {
    let asked = request.query.strip_prefix("doctor=")?;
    let (nonce, status) = match asked.strip_suffix(AS_REFUSAL) {
        Some(nonce) => (nonce, 400),
        None => (asked, 200),
    };
    let app = app?;
    let asked: i64 = app.vault.doctor.open_text(DOCTOR, nonce)?;
    let is_fresh = |asked: &i64| app.now().micros().abs_diff(*asked) <= 60_000_000;
    let mut answered = app.doctor_nonces.lock();
    answered.retain(is_fresh);
    let is_new = is_fresh(&asked) && !answered.contains(&asked);
    is_new.then(|| answered.push(asked))?;
    // A proxy may take it from answers, and `gatepost doctor` sees that it does.
    Some(answers::json(status, &arrived(request)).header(NONCE_HEADER, "doctor"))
}

fn arrived(request: &Request) -> Value {
    let lines = |name: &str| request.headers.all(name).collect::<Vec<_>>();
    let lengths = |name: &str| request.headers.all(name).map(str::len).collect::<Vec<_>>();
    json!({
        "source": request.source,
        "x_forwarded_for": lines("x-forwarded-for"),
        "x_forwarded_proto": lines("x-forwarded-proto"),
        "lengths": {
            "Authorization": lengths("authorization"),
            "Cookie": lengths("cookie"),
            "DPoP": lengths("dpop"),
            "If-Match": lengths("if-match"),
        },
    })
}

/// Ready once loaded, while the registry is fresh, clocks agree and partitions reach far enough
/// ahead. One that could not be read anew a moment ago leaves it in service, degraded: mostly no
/// other process would be better off.
pub fn ready(app: Option<&App>) -> Response {
    match app.map(App::standing) {
        None => text(503, "not ready: waiting for the database\n"),
        Some(Standing::Ready) => text(200, "ready\n"),
        Some(Standing::Degraded(trouble)) => text(200, format!("degraded: {}\n", trouble.words())),
        Some(Standing::NotReady(why)) => text(503, format!("not ready: {why}\n")),
    }
}

fn text(status: u16, words: impl Into<String>) -> Response {
    Response::with_body(
        status,
        "text/plain; charset=utf-8",
        Body::Owned(words.into().into_bytes()),
    )
    .header("Cache-Control", "no-store")
}

/// Tells everything. What only the house knows is left out until it is open; what only the database
/// knows, while it is away.
pub fn handle(metrics: &Metrics, server: &ServerStats, app: Option<&App>) -> Response {
    let mut text = Exposition::default();
    text.family("gatepost_build_info", "Which build this is.");
    text.sample("", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    process(&mut text);
    server_figures(&mut text, server);
    metrics.expose(&mut text);
    standing(&mut text, app);
    if let Some(app) = app {
        house(&mut text, app);
        keys(&mut text, app);
        if app.hears_the_database() {
            tables(&mut text, app);
        }
    }
    Response::with_body(
        200,
        CONTENT_TYPE,
        Body::Owned(text.into_text().into_bytes()),
    )
    .header("Cache-Control", "no-store")
}

fn standing(text: &mut Exposition, app: Option<&App>) {
    let (ready, degraded) = match app.map(App::standing) {
        Some(Standing::Ready) => (true, false),
        Some(Standing::Degraded(_)) => (true, true),
        Some(Standing::NotReady(_)) | None => (false, false),
    };
    let help = "Whether /readyz answers 200.";
    text.single("gatepost_ready", help, u8::from(ready));
    let help = "Whether it does although something is wrong, as it says.";
    text.single("gatepost_degraded", help, u8::from(degraded));
}

fn process(text: &mut Exposition) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = field(&status, "VmRSS:").trim_end_matches(" kB");
    if let Ok(kibibytes) = resident.parse::<u64>() {
        text.single(
            "process_resident_memory_bytes",
            "Resident memory.",
            kibibytes.saturating_mul(1_024),
        );
    }
    if let Ok(threads) = field(&status, "Threads:").parse::<u64>() {
        text.single("process_threads", "Threads.", threads);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        text.single("process_open_fds", "Open descriptors.", open.count());
    }
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let mut lines = status.lines();
    let found = lines.find_map(|line| line.strip_prefix(name));
    found.unwrap_or_default().trim()
}

fn server_figures(text: &mut Exposition, server: &ServerStats) {
    for (name, help, count) in [
        (
            "gatepost_connections",
            "Connections open when last counted.",
            &server.connections,
        ),
        (
            "gatepost_requests_in_flight",
            "Requests received and not yet answered.",
            &server.in_flight,
        ),
        (
            "gatepost_bodies_awaited",
            "Requests of which the body is being waited for.",
            &server.awaited,
        ),
        (
            "gatepost_requests_received_total",
            "Requests received, those too broken to route included.",
            &server.received,
        ),
        (
            "gatepost_connections_abandoned_total",
            "Connections given up with an unread body.",
            &server.abandoned,
        ),
        (
            "gatepost_requests_refused_total",
            "Requests that the server refused itself, unread.",
            &server.refused,
        ),
        (
            "gatepost_requests_unanswered_total",
            "Requests on connections that had ended.",
            &server.unanswered,
        ),
        (
            "gatepost_handler_panics_total",
            "Requests answered 500 because a handler panicked.",
            &server.panicked,
        ),
        (
            "gatepost_successors_asked_for_total",
            "Times this process asked to be replaced.",
            &server.recycles,
        ),
        (
            "gatepost_log_lines_dropped_total",
            "Log lines that nobody read in time.",
            &server.dropped_log_lines,
        ),
    ] {
        text.single(name, help, count.get());
    }
}

fn house(text: &mut Exposition, app: &App) {
    let [connections, idle, most] = app.store.pool_figures().map(u64::from);
    for (name, help, value) in [
        (
            "gatepost_database_connections",
            "Connections to the database.",
            connections,
        ),
        (
            "gatepost_database_connections_idle",
            "Of those, unused ones.",
            idle,
        ),
        (
            "gatepost_database_connections_max",
            "Connections at most.",
            most,
        ),
        (
            "gatepost_hashing_places_free",
            "Strangers more who may wait for a password hash.",
            app.free_hashing_places(),
        ),
        (
            "gatepost_outbound_places_free",
            "Requests more that may wait for other servers.",
            app.outbound.free_places(),
        ),
        (
            "gatepost_outbound_waiting",
            "Requests that wait for such a place.",
            app.outbound.waiting(),
        ),
        (
            "gatepost_registry_clients_cached",
            "Clients held in memory.",
            app.registry.cached_clients(),
        ),
    ] {
        text.single(name, help, value);
    }
    text.single(
        "gatepost_registry_age_seconds",
        "Since the database last confirmed what is held in memory.",
        app.registry.age().as_secs_f64(),
    );
    text.single(
        "gatepost_clock_skew_seconds",
        "How far this machine's clock is behind the database's.",
        seconds(app.clock.skew_micros()),
    );
    factors(text, app);
    logout_calls(text, app);
    letters(text, &app.letters);
    bound_sessions(text, &app.bound_sessions);
    text.single(
        "gatepost_identity_providers_dropped_total",
        "Requests that named an identity provider which their client cannot have.",
        app.dropped_identity_providers.get(),
    );
}

fn factors(text: &mut Exposition, app: &App) {
    text.by_label(
        "gatepost_factors_used_total",
        "Second factors that signed somebody in, by kind.",
        "factor",
        app.factors_used.by_name(),
    );
}

fn logout_calls(text: &mut Exposition, app: &App) {
    text.by_label(
        "gatepost_backchannel_logouts_total",
        "Calls that told clients of a session's end; failed ones are repeated until they are given \
         up.",
        "outcome",
        app.logout_calls.by_name(),
    );
}

fn letters(text: &mut Exposition, letters: &Letters) {
    text.single(
        "gatepost_letters_waiting",
        "E-mails that wait to be sent, or are under way.",
        letters.waiting(),
    );
    text.by_label(
        "gatepost_letters_total",
        "E-mails by outcome; failed ones are repeated until they are given up.",
        "outcome",
        letters.counts.tries.by_name(),
    );
    text.by_label(
        "gatepost_letters_withheld_total",
        "E-mails that were not sent, by the limit that kept them.",
        "limit",
        letters.counts.withheld.by_name(),
    );
}

fn bound_sessions(text: &mut Exposition, counts: &BoundSessionCounts) {
    text.by_label(
        "gatepost_session_bindings_total",
        "Registrations of a key that a session is to be bound to.",
        "outcome",
        [
            ("bound", counts.bound.get()),
            ("refused", counts.binding_refused.get()),
        ],
    );
    text.by_label(
        "gatepost_session_refreshes_total",
        "Requests for the next cookie of a bound session.",
        "outcome",
        [
            ("refreshed", counts.refreshed.get()),
            ("challenged", counts.challenged.get()),
            ("refused", counts.refresh_refused.get()),
        ],
    );
    text.by_label(
        "gatepost_unbound_requests_total",
        "Requests of a bound session that did not show its key, by why the browser says so.",
        "skipped",
        counts.unbound.by_name(),
    );
}

fn keys(text: &mut Exposition, app: &App) {
    let snapshot = app.registry.snapshot();
    let now = app.now();
    text.family(
        "gatepost_signing_key_age_seconds",
        "Since a published key began to sign; negative while it is only announced.",
    );
    for (kid, algorithm, activates_at) in snapshot.keys.ages(now) {
        let age = now.micros().saturating_sub(activates_at.micros());
        text.sample(
            "",
            &[("kid", kid), ("alg", algorithm.as_str())],
            seconds(age),
        );
    }
}

fn tables(text: &mut Exposition, app: &App) {
    // A scrape is no reason to fail: what cannot be measured now is left out.
    let Ok(sizes) = table_sizes(&app.store) else {
        return;
    };
    let partitioned = sizes.iter().filter(|size| size.partitions > 0);
    text.by_label(
        "gatepost_partitions",
        "Partitions by table.",
        "table",
        partitioned.map(|size| (&size.table, size.partitions)),
    );
    text.by_label(
        "gatepost_table_bytes",
        "Bytes on disk by table, indexes included.",
        "table",
        sizes.iter().map(|size| (&size.table, size.bytes)),
    );
}

/// Seconds from microseconds, as far as a float can tell.
#[allow(
    clippy::cast_precision_loss,
    reason = "a metric needs no more digits than a float has"
)]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1_000_000.0
}
