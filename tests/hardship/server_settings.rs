//! Settings of the service that concern both of its processes. Against the running service.

use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::serving::{PROGRAM, Service, Wire, connect, scratch, serve_command, wait_for};
use crate::support::claims::Says;
use crate::support::http::free_address;
use crate::support::waiting::await_that;

/// Whatever is waited for takes a moment, and no longer than this on a machine that is busy with
/// other things.
const SOON: Duration = Duration::from_secs(20);

#[test]
fn an_admin_address_belongs_to_one_supervisor_until_it_ends() {
    let address = free_address();
    let admin: SocketAddr = address.parse().unwrap();
    let environment = [("GATEPOST_ADMIN_LISTEN", &*address)];
    let first = Service::start_with("admin-first", &environment);
    let directory = scratch("admin-second");
    let second = || {
        let mut command = serve_command(PROGRAM, &directory);
        command.env("GATEPOST_LISTEN", free_address());
        command.envs(environment).spawn().unwrap()
    };
    assert_eq!(wait_for(&mut second()).code(), Some(1));
    let log = std::fs::read_to_string(directory.join("log")).unwrap();
    log.assert_says("GATEPOST_ADMIN_LISTEN: another service of Gatepost has this port");
    assert_eq!(Wire::over(connect(admin)).get("/healthz").status, 200);
    let old = first.server_process();
    first.signal("HUP");
    await_that("a successor serves", SOON, || first.server_process() != old);
    assert_eq!(Wire::over(connect(admin)).get("/healthz").status, 200);
    drop(first);
    let mut second = second();
    await_that("the address is the other's", SOON, || {
        // The one that was killed may take a last connection with it.
        TcpStream::connect(admin).is_ok_and(|stream| {
            let mut wire = Wire::over(stream);
            let is_sent = wire.try_send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
            let answer = is_sent.then(|| wire.read_answer(true)).flatten();
            answer.is_some_and(|answer| answer.status == 200)
        })
    });
    second.kill().unwrap();
    second.wait().unwrap();
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn settings_from_a_pipe_reach_every_server_process() {
    let directory = scratch("pipe");
    let plain = serve_command(PROGRAM, &directory);
    let mut command = Command::new("bash");
    command.args([
        "-c",
        "exec \"$0\" serve --env-file <(printf 'GATEPOST_BASE_URL=http://localhost:8080\\n')",
        PROGRAM,
    ]);
    command
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env_remove("GATEPOST_BASE_URL");
    command.stderr(Stdio::null());
    let service = Service::start_command(command, directory);
    let old = service.server_process();
    service.signal("HUP");
    await_that("a successor serves", SOON, || {
        service.server_process() != old
    });
    assert!(service.is_healthy());
}
