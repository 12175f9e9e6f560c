//! The `gatepost` binary: arguments in, exit code out.

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use gatepost::cli::{logging, serve};
use gatepost::config::{Config, Source};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let config = match Source::from_environment(None, &[]).and_then(|source| Config::load(&source)) {
        Ok(config) => config,
        Err(error) => {
            logging::start_plainly();
            log::error!("{error}");
            return ExitCode::from(78);
        }
    };
    if arguments.iter().any(|argument| argument == serve::SERVER_PROCESS) {
        return serve::serve(config);
    }
    logging::start(&config);
    serve::supervise(&config, arguments)
}
