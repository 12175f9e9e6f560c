//! From a request received to an answer sent. Workers take requests from tiny_http themselves and never wait for a body.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use super::control::Report;
use super::lane::{Arrival, BODY_LIMIT, BODY_PATIENCE, DISCARD_LIMIT, LEAST_BODY_PATIENCE, Lane, Waiting, read_body};
use super::probe::is_own_probe;
use super::turns::Turns;
use super::{ServerStats, State};
use crate::http::incoming::{
    Head, body_must_be_awaited, can_be_released_unread, expects_continue, method, persistence, read_head,
};
use crate::http::outgoing::{UnsafeHeader, abandon, serialise};
use crate::http::{Persistence, Request, Response};

/// One listener with what answers its requests. Lives until the process ends: dropping tiny_http's server would remove
/// the Unix socket's path, which may be the next process's by then.
pub struct Service<H: 'static> {
    pub http: tiny_http::Server,
    pub handler: H,
    pub state: &'static State,
    pub turns: Turns<tiny_http::Request>,
    /// Bodies longer than a kilobyte are refused where there is none.
    pub lane: Option<Lane>,
    /// Whether every answer is the last of its connection.
    pub is_one_shot: bool,
    /// What to tell the supervisor when tiny_http fails.
    pub failure: Report,
}

/// Counts a request from its arrival until it is answered.
pub struct InFlight(Arc<ServerStats>);

impl InFlight {
    fn begin(stats: &Arc<ServerStats>) -> InFlight {
        stats.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlight(Arc::clone(stats))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<H> Service<H>
where
    H: Fn(Request) -> Response + Send + Sync + 'static,
{
    /// A worker's life.
    pub fn work(&'static self) {
        loop {
            match self.http.recv() {
                Ok(request) => self.take_turns(request),
                Err(error) => {
                    // tiny_http says so once, to one worker, and accepts nothing from then on.
                    log::error!("connections are no longer accepted: {error}");
                    self.state.control.report(self.failure);
                }
            }
        }
    }

    /// The life of a thread of the lane.
    pub fn read_bodies(&'static self) {
        while let Some(waiting) = self.lane.as_ref().and_then(Lane::next) {
            contained(|| self.read_and_serve(waiting));
            self.state.stats.awaited.fetch_sub(1, Ordering::Relaxed);
            self.state.stats.bodies.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn take_turns(&'static self, request: tiny_http::Request) {
        let peer = request.remote_addr().copied();
        let mut turn = self.turns.begin(peer, request);
        while let Some(request) = turn {
            contained(|| self.receive(request));
            turn = self.turns.next(peer);
        }
    }

    fn receive(&'static self, request: tiny_http::Request) {
        let in_flight = InFlight::begin(&self.state.stats);
        if is_own_probe(&request, &self.state.nonce) {
            return self.answer(request, &Response::empty(200).header("Gatepost-Probe", self.state.nonce.clone()));
        }
        self.state.stats.received.fetch_add(1, Ordering::Relaxed);
        match read_head(&request, &self.state.settings.trusted_proxies) {
            Ok(head) => self.admit(request, head, in_flight),
            Err(status) => self.refuse(request, status),
        }
    }

    /// Serves a request whose body is at hand; lets the lane wait for any other, within limits.
    fn admit(&'static self, request: tiny_http::Request, head: Head, in_flight: InFlight) {
        let id = format!("{:016x}", rand::random::<u64>());
        let waiting = Waiting { request, head, id, in_flight, arrived: Instant::now() };
        let length = waiting.head.body_length;
        if !body_must_be_awaited(&waiting.request, length) {
            return self.read_and_serve(waiting);
        }
        // A client that asks first is told before it sends anything.
        if length > DISCARD_LIMIT || (length > BODY_LIMIT && expects_continue(&waiting.request)) {
            return self.refuse(waiting.request, 413);
        }
        let Some(lane) = &self.lane else { return self.refuse(waiting.request, 413) };
        self.state.stats.awaited.fetch_add(1, Ordering::Relaxed);
        if let Some(waiting) = lane.enter(waiting) {
            self.state.stats.awaited.fetch_sub(1, Ordering::Relaxed);
            self.refuse(waiting.request, 503);
        }
    }

    fn read_and_serve(&self, waiting: Waiting) {
        let Waiting { mut request, head, id, arrived, in_flight: _in_flight } = waiting;
        // Time in line counts, but a body that is already here shall still be taken.
        let deadline = (arrived + BODY_PATIENCE).max(Instant::now() + LEAST_BODY_PATIENCE);
        match read_body(request.as_reader(), head.body_length, deadline) {
            Arrival::Whole(body) => {
                let response = self.handle(head.with_body(id, body));
                self.answer(request, &response);
            }
            Arrival::TooLong => self.answer(request, &(self.state.settings.refusal)(413)),
            Arrival::TooSlow => self.abandon(request, 408),
            // Nothing is left to wait for, so tiny_http can let go of it.
            Arrival::Broken => self.answer(request, &(self.state.settings.refusal)(400)),
        }
    }

    /// Runs the handler. A panic is a defect of ours, answered as one, and the next request is served.
    fn handle(&self, request: Request) -> Response {
        let id = request.id.clone();
        catch_unwind(AssertUnwindSafe(|| (self.handler)(request))).unwrap_or_else(|_| {
            self.state.stats.panicked.fetch_add(1, Ordering::Relaxed);
            log::error!("request {id}: the handler panicked; answered 500");
            (self.state.settings.refusal)(500)
        })
    }

    /// Answers a request that no handler will see.
    fn refuse(&self, request: tiny_http::Request, status: u16) {
        if can_be_released_unread(&request) {
            self.answer(request, &(self.state.settings.refusal)(status));
        } else {
            self.abandon(request, status);
        }
    }

    fn abandon(&self, request: tiny_http::Request, status: u16) {
        abandon(request, &(self.state.settings.refusal)(status), SystemTime::now());
        self.state.stats.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    fn answer(&self, request: tiny_http::Request, response: &Response) {
        let is_last = self.is_one_shot || self.state.is_draining();
        let persistence = if is_last { Persistence::Close } else { persistence(&request) };
        let method = method(&request);
        let now = SystemTime::now();
        let bytes = serialise(response, method, persistence, now).or_else(|UnsafeHeader(name)| {
            log::error!("the answer's header {name} cannot be sent; answered 500");
            let refusal = (self.state.settings.refusal)(500);
            serialise(&refusal, method, persistence, now)
                .or_else(|_| serialise(&Response::empty(500), method, persistence, now))
        });
        let mut writer = request.into_writer();
        let sent = bytes.map(|bytes| writer.write_all(&bytes).and_then(|()| writer.flush()));
        if let Ok(Err(error)) = sent {
            log::debug!("an answer could not be sent: {error}");
        }
        self.state.stats.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// Keeps a worker alive whatever happens; the panic hook has logged the place.
fn contained(serve: impl FnOnce()) {
    let _caught_panic = catch_unwind(AssertUnwindSafe(serve));
}
