//! `gatepost serve` becomes `gatepostd`, which lies beside it: at a start, at a reload, and where it
//! is missing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::server_processes::await_successor;
use crate::serving::{
    PROGRAM, SERVER, Service, install, kill, scratch, serve_command, serve_for_a_while,
};
use crate::support::waiting::{SOON, await_that};

/// Both, in a directory of their own.
fn installed(name: &str) -> PathBuf {
    let directory = scratch(name);
    install(PROGRAM, &directory.join("gatepost"));
    install(SERVER, &directory.join("gatepostd"));
    directory
}

fn start(program: &Path) -> Service {
    let files = program.with_extension("files");
    fs::create_dir(&files).unwrap();
    Service::start_command(serve_command(program.to_str().unwrap(), &files), files)
}

/// The file that a process runs.
fn running(process: u32) -> PathBuf {
    fs::read_link(format!("/proc/{process}/exe")).unwrap()
}

/// What a process was started as.
fn started_as(process: u32) -> PathBuf {
    let arguments = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap();
    PathBuf::from(arguments.split('\0').next().unwrap())
}

fn install_both(server: &Path) -> String {
    format!(
        "gatepost: {} cannot be started: No such file or directory: install both, gatepost and gatepostd",
        server.display()
    )
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env_clear();
    command.output().unwrap()
}

fn said(output: &Output) -> (Option<i32>, String) {
    let told = String::from_utf8_lossy(&output.stderr);
    (output.status.code(), told.trim_end().to_owned())
}

#[test]
fn a_server_knows_its_own_path_and_needs_no_other_program() {
    let directory = installed("own-path");
    let files = scratch("own-path-files");
    let mut command = serve_command("./gatepost", &files);
    command.current_dir(&directory);
    let service = Service::start_command(command, files);
    let server = directory.join("gatepostd");
    let old = service.server_process();
    for process in [service.supervisor.id(), old] {
        assert_eq!(running(process), server.clone());
        assert_eq!(started_as(process), server.clone());
    }
    fs::remove_file(directory.join("gatepost")).unwrap();
    service.signal("HUP");
    await_successor(&service, old);
    assert_eq!(running(service.server_process()), server);
    drop(service);
    fs::remove_dir_all(directory).unwrap();
}

/// The build before was one program. `gatepostd` under its name is started as it was: by the path of
/// `gatepost`, at which it starts its server processes.
#[test]
fn a_single_program_serves_until_both_are_there_and_is_followed_by_gatepostd() {
    let directory = scratch("single");
    let (tool, server) = (directory.join("gatepost"), directory.join("gatepostd"));
    install(SERVER, &tool);
    let service = start(&tool);
    serve_for_a_while();
    let old = service.server_process();
    install(PROGRAM, &tool);
    service.signal("HUP");
    await_that("the failure is logged", SOON, || {
        service.log().contains("ended: exit status: 1")
    });
    let log = service.log();
    assert!(
        log.lines().any(|line| line == install_both(&server)),
        "{log}"
    );
    assert!(!log.contains("exit status: 78"), "{log}");
    assert!(service.server_processes().contains(&old));
    assert!(service.is_healthy());
    // It is tried again without another signal.
    install(SERVER, &server);
    await_successor(&service, old);
    assert_eq!(running(service.server_process()), server);
    assert!(service.is_healthy());
    drop(service);
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_reload_starts_what_a_switched_link_names() {
    for program in ["gatepost", "gatepostd"] {
        let directory = scratch(&format!("link-to-{program}"));
        for version in ["v1", "v2"] {
            let both = installed(&format!("{version}-of-{program}"));
            fs::rename(both, directory.join(version)).unwrap();
        }
        let current = directory.join("current");
        symlink("v1", &current).unwrap();
        let files = scratch(&format!("files-of-{program}"));
        let started = current.join(program);
        let service =
            Service::start_command(serve_command(started.to_str().unwrap(), &files), files);
        let old = service.server_process();
        assert_eq!(running(old), directory.join("v1/gatepostd"));
        symlink("v2", directory.join("next")).unwrap();
        fs::rename(directory.join("next"), &current).unwrap();
        service.signal("HUP");
        await_successor(&service, old);
        let new = service.server_process();
        assert_eq!(running(new), directory.join("v2/gatepostd"), "{program}");
        drop(service);
        fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn the_tools_alone_say_what_to_install() {
    let directory = scratch("tools-alone");
    let tool = directory.join("gatepost");
    install(PROGRAM, &tool);
    let line = install_both(&directory.join("gatepostd"));
    for arguments in [
        &["serve"][..],
        &["serve", "--server-process", "--successor"],
    ] {
        let output = run(&tool, arguments);
        assert_eq!(said(&output), (Some(1), line.clone()), "{arguments:?}");
        assert!(output.stdout.is_empty(), "it is the supervisor's socket");
    }
    // What was typed comes first.
    let (code, _) = said(&run(&tool, &["serve", "--lisen", "x"]));
    assert_eq!(code, Some(2));
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn the_server_takes_no_command_and_says_who_does() {
    let server = Path::new(SERVER);
    for (arguments, told) in [
        (
            &["user", "list"][..],
            "gatepostd starts the server; type gatepost user list",
        ),
        (
            &["serve", "again"],
            "gatepostd starts the server; type gatepost serve again",
        ),
        (
            &["--lisen", "x"],
            "\"--lisen\" is not a flag; try gatepostd --help",
        ),
    ] {
        let output = run(server, arguments);
        assert_eq!(said(&output), (Some(2), format!("gatepost: {told}")));
        assert!(output.stdout.is_empty());
    }
    let version = format!("gatepostd {}\n", env!("CARGO_PKG_VERSION"));
    for (flag, told) in [
        ("--version", version.as_str()),
        ("--help", "gatepostd starts the server at GATEPOST_LISTEN"),
    ] {
        let output = run(server, &[flag]);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{printed}");
        assert!(printed.starts_with(told), "{printed}");
    }
}

#[test]
fn settings_that_come_through_a_pipe_are_read_once_and_serve_each_process() {
    let files = scratch("piped");
    let of_file = serve_command(PROGRAM, &files);
    let settings = of_file.get_envs().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value?.to_str()?);
        name.starts_with("GATEPOST_")
            .then(|| format!("{name}={value}\n"))
    });
    let file = files.join("settings");
    fs::write(&file, settings.collect::<String>()).unwrap();
    let log = fs::File::create(files.join("log")).unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-c", "exec \"$0\" serve --env-file <(cat \"$1\")", PROGRAM])
        .arg(&file)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .stderr(log);
    let service = Service::start_command(command, files);
    fs::remove_file(&file).unwrap();
    kill(service.server_process());
    assert!(service.is_healthy());
    assert_eq!(
        running(service.server_process()),
        fs::canonicalize(SERVER).unwrap()
    );
}
