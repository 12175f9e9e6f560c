//! The `gatepost` binary: arguments in, exit code out.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use gatepost::http::{Body, Method, Request, Response};
use gatepost::protocol::forwarded::loopback_proxies;
use gatepost::server::{self, ServerSettings, ServerStats};
use gatepost::supervisor::{self, Listen, SupervisorSettings};

fn main() -> ExitCode {
    if log::set_logger(&StandardError).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.iter().map(|argument| argument.to_str()).collect::<Option<Vec<_>>>().as_deref() {
        Some(["serve"]) => supervise(),
        Some(["serve", "--server-process"]) => serve(),
        Some(_) | None => ExitCode::from(2),
    }
}

fn setting(name: &str, default: &str) -> String {
    env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn supervise() -> ExitCode {
    let listen = match Listen::parse(&setting("GATEPOST_LISTEN", "127.0.0.1:8080")) {
        Ok(listen) => listen,
        Err(error) => {
            log::error!("GATEPOST_LISTEN: {error}");
            return ExitCode::from(78);
        }
    };
    let Ok(program) = env::current_exe() else { return ExitCode::FAILURE };
    let watchdog = env::var("WATCHDOG_USEC").ok().and_then(|micros| micros.parse().ok()).map(Duration::from_micros);
    supervisor::run(SupervisorSettings {
        listen,
        program,
        arguments: vec![OsString::from("serve"), OsString::from("--server-process")],
        environment: Vec::new(),
        notify_socket: env::var_os("NOTIFY_SOCKET"),
        watchdog,
    })
}

fn serve() -> ExitCode {
    let (Ok(workers), admin) = (setting("GATEPOST_WORKERS", "16").parse(), setting("GATEPOST_ADMIN_LISTEN", "")) else {
        return ExitCode::from(78);
    };
    let settings = ServerSettings {
        workers,
        trusted_proxies: loopback_proxies(),
        admin_listen: admin.parse().ok(),
        refusal: plain,
    };
    server::run(settings, Arc::new(ServerStats::default()), answer, answer)
}

fn answer(request: Request) -> Response {
    match (request.path.as_str(), request.method) {
        ("/healthz", Method::Get | Method::Head) => plain(200),
        _ => plain(503),
    }
}

fn plain(status: u16) -> Response {
    let body = Body::Owned(format!("{status}\n").into_bytes());
    Response::with_body(status, "text/plain", body).header("Cache-Control", "no-store")
}

struct StandardError;

impl log::Log for StandardError {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    #[allow(clippy::print_stderr, reason = "this is the log")]
    fn log(&self, record: &log::Record<'_>) {
        eprintln!("{} [{}] {}: {}", record.level(), std::process::id(), record.target(), record.args());
    }

    fn flush(&self) {}
}
