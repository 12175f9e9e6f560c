//! The server: arguments in, exit code out. Built with the feature `manage` it has the routes of
//! those who look after people and the registration, too.

use std::process::ExitCode;

use gatepost_server::dispatch::route::Route;

#[cfg(feature = "manage")]
const ROUTES: &[&[Route]] = &[gatepost_server::ROUTES, gatepost_manage::ROUTES];
#[cfg(not(feature = "manage"))]
const ROUTES: &[&[Route]] = &[gatepost_server::ROUTES];

fn main() -> ExitCode {
    gatepost_server::run_with(std::env::args_os().skip(1).collect(), ROUTES, &[])
}
