//! From a request received to an answer sent. Workers take requests from tiny_http themselves and
//! never wait for a body.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime};

use super::control::Report;
use super::entrance::Entrance;
use super::lane::{
    Arrival, BODY_LIMIT, BODY_PATIENCE, LEAST_BODY_PATIENCE, LONG_BODY_LIMIT, Lane, Waiting,
    read_body,
};
use super::listener::WRITE_STEPS;
use super::probe::is_own_probe;
use super::turns::{Ended, Turn, Turns};
use super::{Handler, ServerStats, State, start_thread};
use crate::http::incoming::{
    self, body_must_be_awaited, can_be_released_unread, expects_continue, method, persistence,
    read_head, remains_of, request_id, source_of,
};
use crate::http::outgoing::{UnsafeHeader, abandon, serialise};
use crate::http::{Persistence, Refused, Request, Response};
use gatepost_protocol::words::forwarded::network;
use gatepost_store::mutex::Mutex;
use gatepost_store::worker::{self, Permit, Permits};

/// One listener, and what answers its requests. It is never dropped: tiny_http's server would
/// remove the path of the Unix socket, which the next process may have by then.
pub struct Service<H: 'static> {
    pub http: tiny_http::Server,
    pub handler: H,
    pub state: &'static State,
    pub turns: Turns<tiny_http::Request>,
    /// Takes the connections that have got their last answer.
    pub ended: Sender<Ended>,
    /// Requests whose turn has come after tiny_http handed them out.
    pub revived: Mutex<VecDeque<tiny_http::Request>>,
    /// `None` for a Unix socket, whose requests take no turns.
    pub entrance: Option<Entrance>,
    /// Without it, bodies longer than a kilobyte are refused.
    pub lane: Option<Lane<Waiting>>,
    /// Held by the one worker that may hand a request over while it waits for the database.
    pub looking: Permits,
    /// Threads that wait for something other than the database, or did.
    pub beside: Permits,
    /// Bodies longer than most paths take, from the first byte to the answer.
    pub long_bodies: Permits,
    /// Whether every answer is the last of its connection.
    pub is_one_shot: bool,
    /// What to tell the supervisor when tiny_http fails.
    pub failure: Report,
}

/// Counts a request from its arrival until it is answered.
pub struct InFlight(Arc<ServerStats>);

impl InFlight {
    fn begin(stats: &Arc<ServerStats>) -> InFlight {
        stats.in_flight.raise();
        InFlight(Arc::clone(stats))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.lower();
    }
}

impl<H: Handler> Service<H> {
    pub fn work(&'static self) {
        let start = move || start_thread("worker", move || self.work()).is_ok();
        worker::take_post(&self.beside, start, || self.hand_over());
        while worker::has_post() {
            if let Some(request) = self.due(self.next_turn()) {
                self.take_turns(request);
            }
        }
    }

    fn next_turn(&self) -> io::Result<Turn<tiny_http::Request>> {
        let _attending = self.entrance.as_ref().map(Entrance::attend);
        loop {
            if let Some(request) = self.revived.lock().pop_front() {
                return Ok(Turn::Now(request));
            }
            match self.http.recv() {
                Ok(request) => return Ok(self.begin(request)),
                // The kernel's errors have a number; the one that `unblock` makes has none.
                Err(error) if error.raw_os_error().is_none() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn begin(&self, request: tiny_http::Request) -> Turn<tiny_http::Request> {
        self.turns.begin(request.remote_addr().copied(), request)
    }

    /// The request that is to be served now, if one is.
    fn due(&self, next: io::Result<Turn<tiny_http::Request>>) -> Option<tiny_http::Request> {
        match next {
            Ok(Turn::Now(request)) => return Some(request),
            Ok(Turn::Later) => {}
            Ok(Turn::Never(request)) => {
                contained(|| self.discard(request));
            }
            Err(error) => {
                // tiny_http returns this error once, to one worker, and accepts nothing afterwards.
                if !self.is_one_shot {
                    self.state.accepting.store(false, Ordering::SeqCst);
                }
                if !self.state.is_draining() {
                    log::error!("connections are no longer accepted: {error}");
                    // The supervisor kills a process that is deaf.
                    log::logger().flush();
                    self.state.control.report(self.failure);
                }
            }
        }
        None
    }

    /// Hands the next request to an idle worker, before this one waits for the database (see
    /// `entrance`).
    fn hand_over(&'static self) -> Option<Permit<'static>> {
        let entrance = self.entrance.as_ref()?;
        let looking = self.looking.take(Duration::ZERO)?;
        entrance.look(|| {
            let Some(received) = self.http.try_recv().transpose() else {
                return false;
            };
            let next = received.map(|request| self.begin(request));
            let Some(request) = self.due(next) else {
                return false;
            };
            self.revived.lock().push_back(request);
            true
        });
        Some(looking)
    }

    pub fn serve_soon(&self, request: tiny_http::Request) {
        self.revived.lock().push_back(request);
        self.http.unblock();
    }

    pub fn read_bodies(&'static self) {
        let Some(lane) = &self.lane else { return };
        loop {
            let (source, waiting) = lane.next();
            self.take_body_post(lane, source, true);
            let peer = waiting.request.remote_addr().copied();
            let is_elsewhere = contained(|| self.read_and_serve(waiting)).unwrap_or(false);
            if worker::has_post() {
                self.take_body_post(lane, source, false);
                self.count_body();
            }
            let next = if is_elsewhere {
                None
            } else {
                self.turns.next(peer)
            };
            if let Some(next) = next {
                self.take_turns(next);
            }
            if !worker::has_post() {
                return;
            }
            lane.leave(source);
        }
    }

    /// For a thread that takes this thread's place. It counts the body while that `is_awaited`, and
    /// gives the place in the lane back to the source.
    fn take_body_post(
        &'static self,
        lane: &'static Lane<Waiting>,
        source: IpAddr,
        is_awaited: bool,
    ) {
        let start = move || {
            let is_started = start_thread("body", move || self.read_bodies()).is_ok();
            if is_started {
                if is_awaited {
                    self.count_body();
                }
                lane.leave(source);
            }
            is_started
        };
        worker::take_post(&self.beside, start, || self.hand_over());
    }

    fn count_body(&self) {
        self.state.stats.awaited.lower();
        self.state.stats.bodies.raise();
    }

    fn take_turns(&'static self, request: tiny_http::Request) {
        let peer = request.remote_addr().copied();
        let mut turn = Some(request);
        while let Some(request) = turn {
            let is_elsewhere = contained(|| self.receive(request)).unwrap_or(false);
            turn = if is_elsewhere {
                None
            } else {
                self.turns.next(peer)
            };
        }
    }

    /// Answers whether another thread has the turn now: one of the lane, or the one that answered
    /// in this worker's place.
    fn receive(&'static self, request: tiny_http::Request) -> bool {
        let in_flight = InFlight::begin(&self.state.stats);
        if is_own_probe(&request, &self.state.nonce) {
            self.answer(
                request,
                &Response::empty(200).header("Gatepost-Probe", self.state.nonce.clone()),
            );
            return false;
        }
        self.state.stats.received.raise();
        let id = request_id(&request, &self.state.settings.trusted_proxies);
        let arrived = Instant::now();
        match read_head(&request, &self.state.settings.trusted_proxies) {
            Ok((read, body_length)) => self.admit(Waiting {
                request,
                read: Request { id, ..read },
                body_length,
                arrived,
                in_flight,
            }),
            Err(status) => {
                // We and a proxy may disagree where such a request ends. So its answer is the last
                // on the connection.
                let response = self.refusal(&request, &id, arrived, status);
                self.release(request, &response, Persistence::Close);
                false
            }
        }
    }

    /// Serves a request whose body has arrived. The lane takes any other, within limits. Answers
    /// whether the lane has it.
    fn admit(&'static self, waiting: Waiting) -> bool {
        let length = waiting.body_length;
        if !body_must_be_awaited(&waiting.request, length) {
            return self.read_and_serve(waiting);
        }
        // A client that sent `Expect: 100-continue` is told before it sends the body.
        let limit = self.body_limit(&waiting);
        let is_too_long =
            length > LONG_BODY_LIMIT || (length > limit && expects_continue(&waiting.request));
        let Some(lane) = self.lane.as_ref().filter(|_| !is_too_long) else {
            self.turn_away(waiting, 413);
            return false;
        };
        self.state.stats.awaited.raise();
        let source = network(waiting.read.source);
        let Some(waiting) = lane.enter(source, waiting) else {
            return true;
        };
        self.state.stats.awaited.lower();
        self.turn_away(waiting, 503);
        false
    }

    fn body_limit(&self, waiting: &Waiting) -> u64 {
        let takes_long_body = &self.state.settings.takes_long_body;
        if waiting.body_length > BODY_LIMIT && takes_long_body(&waiting.read) {
            LONG_BODY_LIMIT
        } else {
            BODY_LIMIT
        }
    }

    fn turn_away(&self, waiting: Waiting, status: u16) {
        let Waiting {
            request,
            read,
            arrived,
            in_flight: _in_flight,
            ..
        } = waiting;
        let response = self.refusal(&request, &read.id, arrived, status);
        let persistence = self.persistence(&request);
        self.release(request, &response, persistence);
    }

    /// Whether the turn is elsewhere (see `serve`).
    fn read_and_serve(&'static self, waiting: Waiting) -> bool {
        let mut limit = self.body_limit(&waiting);
        let is_long = limit > BODY_LIMIT;
        let alone = is_long.then(|| self.long_bodies.take(Duration::ZERO));
        let is_busy = matches!(alone, Some(None));
        if is_busy {
            // It is read and not kept: a connection given up would bring a successor nearer.
            limit = BODY_LIMIT;
        }
        let Waiting {
            mut request,
            read,
            body_length,
            arrived,
            in_flight,
        } = waiting;
        // The time in line counts. But a body that has arrived meanwhile is taken.
        let deadline = (arrived + BODY_PATIENCE).max(Instant::now() + LEAST_BODY_PATIENCE);
        let status = match read_body(request.as_reader(), body_length, limit, deadline) {
            Arrival::Whole(body) => {
                return self.serve(
                    request,
                    Request { body, ..read },
                    arrived,
                    in_flight,
                    alone.flatten(),
                );
            }
            Arrival::TooLong if is_busy => 503,
            Arrival::TooLong => 413,
            Arrival::TooSlow => {
                let response = self.refusal(&request, &read.id, arrived, 408);
                self.abandon(request, &response);
                return false;
            }
            // The body will never be whole, so tiny_http need not read on.
            Arrival::Broken => 400,
        };
        let response = self.refusal(&request, &read.id, arrived, status);
        self.answer(request, &response);
        false
    }

    /// Answers a request. If the database keeps this worker waiting for too long, another thread
    /// answers in its place, and the result that the worker gets later is dropped. Answers whether
    /// that happened, so that the turn is elsewhere.
    fn serve(
        &'static self,
        request: tiny_http::Request,
        read: Request,
        arrived: Instant,
        in_flight: InFlight,
        alone: Option<Permit<'_>>,
    ) -> bool {
        // The request is in flight until it is answered. A drain does not wait for a worker that
        // hangs.
        let unanswered = Arc::new(Mutex::new(Some((request, in_flight))));
        let given_up = Arc::clone(&unanswered);
        let id = read.id.clone();
        let give_up = move || {
            if let Some((request, _in_flight)) = take(&given_up) {
                self.give_up(request, &id, arrived);
            }
        };
        let response = worker::serve(give_up, || self.handle(&read));
        // Before the answer: whoever has it may send the next long body at once.
        drop(alone);
        let answered_here =
            take(&unanswered).map(|(request, _in_flight)| self.answer(request, &response));
        answered_here.is_none()
    }

    fn give_up(&self, request: tiny_http::Request, id: &str, arrived: Instant) {
        let peer = request.remote_addr().copied();
        let response = self.refusal(&request, id, arrived, 503);
        self.send(request, &response, Persistence::Close);
        // The worker's turn ends here. What is next, after an end that needs no watching, does not
        // wait for the worker.
        if let Some(next) = self.turns.next(peer) {
            self.serve_soon(next);
        }
    }

    /// Runs the handler. A panic is a defect of ours: it is answered by 500, and the thread goes
    /// on.
    fn handle(&self, request: &Request) -> Response {
        let response = catch_unwind(AssertUnwindSafe(|| (self.handler)(Ok(request))))
            .unwrap_or_else(|_| {
                self.state.stats.panicked.raise();
                log::error!("request {}: the handler panicked; answered 500", request.id);
                let refused = Refused {
                    status: 500,
                    request: request.bare(),
                };
                catch_unwind(AssertUnwindSafe(|| (self.handler)(Err(refused))))
                    .unwrap_or_else(|_| Response::empty(500))
            });
        response.header("X-Request-Id", request.id.clone())
    }

    /// The answer to a request that no handler sees, and its line in the log.
    fn refusal(
        &self,
        request: &tiny_http::Request,
        id: &str,
        arrived: Instant,
        status: u16,
    ) -> Response {
        self.state.stats.refused.raise();
        let source = source_of(request, &self.state.settings.trusted_proxies);
        let remains = remains_of(request, id, source);
        let shown: String = remains
            .path
            .chars()
            .take(200)
            .flat_map(char::escape_default)
            .collect();
        let method = remains.method.as_str();
        let ms = u64::try_from(arrived.elapsed().as_millis()).unwrap_or(u64::MAX);
        log::info!(
            target: "gatepost::request",
            id, method, path = shown.as_str(), status, ms,
            source = source.to_string().as_str(), refused = "server";
            "id={id} method={method} path={shown} status={status} ms={ms} source={source} \
             refused=server"
        );
        (self.handler)(Err(Refused {
            status,
            request: remains,
        }))
        .header("X-Request-Id", id.to_owned())
    }

    fn release(&self, request: tiny_http::Request, response: &Response, persistence: Persistence) {
        if can_be_released_unread(&request) {
            self.send(request, response, persistence);
        } else {
            self.abandon(request, response);
        }
    }

    fn abandon(&self, request: tiny_http::Request, response: &Response) {
        abandon(request, response, SystemTime::now());
        self.state.stats.abandoned.raise();
    }

    fn answer(&self, request: tiny_http::Request, response: &Response) {
        let persistence = self.persistence(&request);
        self.send(request, response, persistence);
    }

    fn send(&self, request: tiny_http::Request, response: &Response, persistence: Persistence) {
        let peer = request.remote_addr().copied();
        let goes_on = incoming::persistence(&request) != Persistence::Close;
        let bytes = self.serialised(&request, response, persistence);
        let mut writer = request.into_writer();
        let written = write_in_time(&mut writer, &bytes);
        self.state.stats.answered.raise();
        let is_last = match written {
            Ok(()) => persistence == Persistence::Close,
            Err(error) if error.kind() == ErrorKind::TimedOut => true,
            Err(error) => {
                log::debug!("an answer could not be sent: {error}");
                self.turns.go_on(peer);
                false
            }
        };
        // tiny_http may read on after the last answer. What it reads then must not be answered.
        if let Some(peer) = peer
            && is_last
            && goes_on
        {
            self.turns.end(peer);
            // Its thread lives as long as this process.
            let _ = self.ended.send(Ended::new(peer, writer));
        }
    }

    fn serialised(
        &self,
        request: &tiny_http::Request,
        response: &Response,
        persistence: Persistence,
    ) -> Vec<u8> {
        let method = method(request);
        let now = SystemTime::now();
        let bytes = serialise(response, method, persistence, now).or_else(|UnsafeHeader(name)| {
            let id = request_id(request, &self.state.settings.trusted_proxies);
            log::error!("request {id}: the answer's header {name} cannot be sent; answered 500");
            let refusal = self.refusal(request, &id, Instant::now(), 500);
            serialise(&refusal, method, persistence, now)
                .or_else(|_| serialise(&Response::empty(500), method, persistence, now))
        });
        bytes.unwrap_or_default()
    }

    fn persistence(&self, request: &tiny_http::Request) -> Persistence {
        let is_last = self.is_one_shot
            || self.state.is_draining()
            || self.turns.is_last(request.remote_addr().copied());
        if is_last {
            Persistence::Close
        } else {
            persistence(request)
        }
    }

    pub fn discard(&self, request: tiny_http::Request) {
        self.state.stats.unanswered.raise();
        if can_be_released_unread(&request) {
            drop(request.into_writer());
        } else {
            // tiny_http would read its body to the end, however long that takes.
            std::mem::forget(request);
            self.state.stats.abandoned.raise();
        }
    }
}

fn take<T>(unanswered: &Mutex<Option<T>>) -> Option<T> {
    unanswered.lock().take()
}

/// A client that does not read, or reads byte by byte, must not hold a worker for long. Only what
/// blocks counts: while this process waits for a processor, the client is at no fault, and an
/// answer given up is lost to it.
fn write_in_time(writer: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    for _ in 0..WRITE_STEPS {
        match write_until_it_blocks(writer, &mut rest) {
            Ok(()) => return Ok(()),
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(ErrorKind::TimedOut))
}

/// The kernel takes less than all only when the client left its buffer full for a step.
fn write_until_it_blocks(writer: &mut impl Write, rest: &mut &[u8]) -> io::Result<()> {
    if !rest.is_empty() {
        let count = writer.write(rest)?;
        if count == 0 {
            return Err(io::Error::from(ErrorKind::WriteZero));
        }
        *rest = rest.get(count..).unwrap_or_default();
    }
    if rest.is_empty() {
        writer.flush()
    } else {
        Err(io::Error::from(ErrorKind::WouldBlock))
    }
}

/// Keeps the worker alive after a panic. The panic hook has logged the place.
pub fn contained<T>(serve: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(serve)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    /// Takes all it is given, as long as it is told to; then it is full.
    struct Kernel {
        pause: Duration,
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for Kernel {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            sleep(self.pause);
            let free = self.room - self.taken.len();
            let count = free.min(bytes.len());
            if count == 0 {
                return Err(io::Error::from(ErrorKind::WouldBlock));
            }
            self.taken.extend(bytes.iter().take(count));
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            sleep(self.pause);
            Ok(())
        }
    }

    #[test]
    fn an_answer_is_written_however_long_this_process_waits_for_a_processor() {
        let mut busy = Kernel {
            pause: Duration::from_millis(300),
            room: 100,
            taken: Vec::new(),
        };
        write_in_time(&mut busy, b"HTTP/1.1 303").unwrap();
        assert_eq!(busy.taken, b"HTTP/1.1 303");
    }

    #[test]
    fn a_client_that_does_not_read_holds_no_worker() {
        let mut full = Kernel {
            pause: Duration::ZERO,
            room: 4,
            taken: Vec::new(),
        };
        let refused = write_in_time(&mut full, b"HTTP/1.1 303").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::TimedOut);
        assert_eq!(full.taken, b"HTTP");
    }
}
