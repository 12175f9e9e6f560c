//! The tools: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    gatepost_tool::run(std::env::args_os().skip(1).collect())
}
