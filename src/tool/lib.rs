//! The commands, one file a noun: what an operator types, and what is answered. Results go to
//! standard output, all else to standard error.

#[macro_use]
mod output;

mod access;
mod arguments;
mod audit;
pub mod audit_heads;
pub mod audit_verification;
mod client;
mod command;
mod completions;
mod doctor;
mod explain;
mod healthcheck;
mod idp;
mod import;
mod imported_key;
mod input;
mod key;
mod key_standing;
mod mail;
mod migrate;
mod operator;
mod page_headings;
mod provider_checkup;
mod reference;
mod registry;
mod released_claims;
mod resource;
mod role;
mod sealed;
mod serve;
mod session;
mod signup;
pub mod statements;
mod user;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use arguments::{Wanted, parse};
use command::Run;
use gatepost_server::app::extension_grant::{self, ExtensionGrant};
use gatepost_server::logging;
use operator::Operator;
use output::{CommandResult, say};

/// A command in a line: its name, how it runs, and what does what `commands.txt` says of it.
macro_rules! commands {
    ($($name:literal $manner:ident $run:path;)+) => { &[$(($name, Run::$manner($run))),+] };
}

const RUN: &[(&str, Run)] = commands! {
    "serve"                 Stays     serve::run;
    "migrate"               Once      migrate::run;
    "plan"                  Stays     registry::plan;
    "apply"                 Once      registry::apply;
    "export"                Installed registry::export;
    "import identityserver" Once      import::from_identity_server;
    "import keycloak"       Once      import::from_keycloak;
    "secret"                Once      sealed::generate;
    "secret rotate"         Installed sealed::rotate;
    "user add"              Once      user::add;
    "user list"             Installed user::list;
    "user show"             Installed user::show;
    "user password"         Installed user::password;
    "user invite"           Once      user::links::invite;
    "user reset"            Once      user::links::reset;
    "user factors"          Installed user::change::factors;
    "user role"             Once      user::change::role;
    "user set"              Once      user::change::set;
    "user disable"          Once      user::change::disable;
    "user enable"           Once      user::change::enable;
    "user until"            Once      user::change::until;
    "user remove"           Installed user::change::remove;
    "user revoke"           Installed user::revoke;
    "user link"             Once      user::change::link;
    "user unlink"           Once      user::change::unlink;
    "role remove"           Installed role::remove;
    "access"                Installed access::report;
    "client list"           Installed client::list;
    "client show"           Installed client::show;
    "client secret"         Once      client::secret;
    "client test"           Installed client::test;
    "explain"               Once      explain::run;
    "explain request"       Once      explain::request;
    "client revoke"         Installed client::revoke;
    "client remove"         Installed client::remove;
    "resource metadata"     Installed resource::metadata;
    "signup make"           Installed signup::make;
    "signup list"           Installed signup::list;
    "signup end"            Installed signup::end;
    "session list"          Installed session::list;
    "session end"           Once      session::end;
    "grant list"            Installed session::list_grants;
    "grant revoke"          Once      session::revoke_grant;
    "revoke"                Installed session::revoke_everything;
    "key list"              Installed key::list;
    "key rotate"            Once      key::rotate;
    "key retire"            Once      key::retire;
    "key import"            Once      key::import;
    "key reset"             Installed sealed::reset;
    "idp list"              Installed idp::list;
    "idp test"              Installed idp::test;
    "mail test"             Once      mail::test;
    "audit list"            Once      audit::list;
    "audit verify"          Once      audit::verify;
    "doctor"                Once      doctor::run;
    "healthcheck"           Once      healthcheck::run;
    "completions"           Once      completions::run;
    "man"                   Once      command::man;
    "reference"             Once      reference::write;
};

/// Runs what was typed after the program's name. Exit codes: 0 done, 1 refused or failed, 2 usage,
/// 78 configuration.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    run_with(arguments, &[])
}

/// The same for a binary of one's own, which brings extension grants along: a `main` of one line
/// and a plain function for each. docs/operate/own-grants-rust.md has a whole one.
pub fn run_with(arguments: Vec<OsString>, extension_grants: &'static [ExtensionGrant]) -> ExitCode {
    let outcome = dispatch(arguments, extension_grants);
    log::logger().flush();
    outcome.unwrap_or_else(|failure| {
        // Nobody is left to tell when standard error is closed.
        let _ = writeln!(io::stderr().lock(), "gatepost: {failure}");
        failure.exit_code()
    })
}

fn dispatch(
    arguments: Vec<OsString>,
    extension_grants: &'static [ExtensionGrant],
) -> CommandResult<ExitCode> {
    extension_grant::check_table(extension_grants).map_err(output::Failure::Configuration)?;
    match parse(arguments)? {
        Wanted::Command(mut invocation) => {
            invocation.extension_grants = extension_grants;
            match invocation.command.run {
                Run::Once(run) => {
                    logging::start_plainly();
                    run(&invocation)?;
                }
                Run::Installed(run) => {
                    logging::start_plainly();
                    run(&Operator::open(&invocation)?)?;
                }
                Run::Stays(run) => return run(&invocation),
            }
        }
        Wanted::Help(words) => command::help(&words)?,
        Wanted::About(words) => reference::help(&words)?,
        Wanted::Version => say(concat!("gatepost ", env!("CARGO_PKG_VERSION")))?,
    }
    Ok(ExitCode::SUCCESS)
}
