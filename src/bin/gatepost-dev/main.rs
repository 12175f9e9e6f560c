//! `gatepost-dev`: everything needed to see a sign-in, from one command. It keeps a private
//! Postgres and a master secret under `.gatepost/`, then runs the `gatepost` that was built beside
//! it as an operator would (`migrate`, `apply`, `serve`) and a small demo application. Whatever it
//! started ends with it. For trying out and for the tests: nobody installs it.

mod caught_mail;
mod demo;
mod demo_data;
mod listeners;
mod options;
mod postgres;
mod project;
mod provider;
mod system_user;

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use caught_mail::Mailbox;
use demo_data::DemoData;
use gatepost::config::Source;
use gatepost::protocol::words::client::GrantType;
use listeners::Listening;
use options::{Command, Options};
use postgres::PrivatePostgres;
use project::Project;
use provider::{Provider, ServeProcess};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Why the command ended before it was asked to: one sentence for the person who typed it, with
/// what to do about it.
#[derive(Debug, PartialEq, Eq)]
struct Trouble(String);

impl Trouble {
    fn new(text: impl Into<String>) -> Trouble {
        Trouble(text.into())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Runs until SIGINT, SIGTERM or SIGHUP. Exit codes: 0 ended when asked to, 1 something could not
/// be started or broke, 2 usage.
fn main() -> ExitCode {
    let options = match options::parse(std::env::args_os().skip(1)) {
        Ok(Command::Start(options)) => options,
        Ok(Command::Help) => {
            say(options::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(trouble) => {
            complain(&format!("gatepost-dev: {trouble}\n\n{}", options::USAGE));
            return ExitCode::from(2);
        }
    };
    match play(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            complain(&format!("gatepost-dev: {trouble}"));
            ExitCode::FAILURE
        }
    }
}

/// Starts everything in the order in which one stands on the other; leaving this function, by
/// whichever way, ends it in the reverse order.
fn play(options: &Options) -> Result<(), Trouble> {
    let settings =
        Source::from_environment(None, &[]).map_err(|error| Trouble::new(error.to_string()))?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))
            .map_err(|error| Trouble::new(format!("signals cannot be caught: {error}")))?;
    }
    let project = Project::open()?;
    provider::end_left_over(&project)?;
    // Those that somebody asked for come first: nobody else takes them then.
    let said = |address: Option<SocketAddr>, flag| {
        address
            .map(|address| Listening::bind(address, flag))
            .transpose()
    };
    let (provider_said, demo_said) = (
        said(options.listen, "--listen")?,
        said(options.demo_listen, "--demo-listen")?,
    );
    let provider_socket = provider_said.map_or_else(|| Listening::bind_near(8080), Ok)?;
    let demo_socket = demo_said.map_or_else(|| Listening::bind_near(8081), Ok)?;
    let data = DemoData::following(&demo_socket.base_url)?;

    let mut database = private_database(&project, &settings, &provider_socket)?;
    let mailbox = mailbox(&settings);
    let mail_server = mailbox.as_ref().map(caught_mail::start).transpose()?;
    let provider = Provider::new(
        &project,
        &provider_socket,
        database.as_ref(),
        &settings,
        mail_server,
    )?;
    provider.migrate()?;
    provider.apply(&data.document)?;
    let mut serving = provider.serve(&project, &provider_socket)?;
    serving.wait_until_ready(&provider_socket.base_url, &interrupted)?;
    demo::start(
        demo_socket.listener,
        data.relying_parties(&provider_socket.base_url, &demo_socket.base_url)?,
        data.users.clone(),
        mailbox,
    )?;

    if !interrupted.load(Ordering::Relaxed) {
        let env_file = provider.write_env_file(&project)?;
        say(&what_to_try(
            &provider_socket.base_url,
            &demo_socket.base_url,
            &data,
            &format!(
                "{} user list --env-file {}",
                provider.typed(),
                env_file.display()
            ),
        ));
    }
    watch(&mut serving, database.as_mut(), &interrupted)?;
    say("\nStopping.");
    Ok(())
}

fn private_database(
    project: &Project,
    settings: &Source,
    provider_socket: &Listening,
) -> Result<Option<PrivatePostgres>, Trouble> {
    let names = ["GATEPOST_DATABASE_URL", "GATEPOST_DATABASE_URL_FILE"];
    if is_provided(settings, &names, "gatepost-database-url") {
        say("Using the configured database. Demo users with well-known passwords go into it.");
        return Ok(None);
    }
    let mut postgres = PrivatePostgres::start(project)?;
    // The issuer is frozen in a database; another port is another issuer, so it gets a database of
    // its own.
    postgres.ensure_database(&format!("gatepost_{}", provider_socket.address.port()))?;
    Ok(Some(postgres))
}

/// Where e-mails are caught, unless a setting says where they go; an empty one says nowhere.
fn mailbox(settings: &Source) -> Option<Mailbox> {
    let is_free = settings.given("GATEPOST_SMTP_URL").is_none();
    is_free.then(Mailbox::default)
}

/// Whether the environment has one of these settings, or the credential: then it is used, and none
/// is made here.
fn is_provided(settings: &Source, names: &[&str], credential: &str) -> bool {
    names
        .iter()
        .any(|name| settings.given(name).is_some_and(|text| !text.is_empty()))
        || settings.credential(credential).is_some()
}

fn watch(
    serving: &mut ServeProcess,
    mut database: Option<&mut PrivatePostgres>,
    interrupted: &AtomicBool,
) -> Result<(), Trouble> {
    while !interrupted.load(Ordering::Relaxed) {
        serving.still_running()?;
        if let Some(postgres) = database.as_deref_mut() {
            postgres.still_running()?;
        }
        thread::sleep(WATCH_INTERVAL);
    }
    Ok(())
}

fn what_to_try(provider: &str, demo: &str, data: &DemoData, other_command: &str) -> String {
    let mut text = format!(
        "\nGatepost is running.\n\n  Open {demo} and sign in.\n\n  \
         Applications     {demo}\n  \
         Start page       {provider}/start\n  \
         Administrators   {provider}/admin as olivia; {demo} shows the code of her app\n  \
         E-mails          {demo}/e-mails\n  \
         Provider         {provider}\n  \
         Discovery        {provider}/.well-known/openid-configuration\n"
    );
    for user in &data.users {
        text.push_str(&format!(
            "  User             {} / {}\n",
            user.username,
            user.password()
        ));
    }
    for client in &data.clients {
        text.push_str(&format!("  Client           {}\n", client.summary()));
    }
    text.push_str(&format!("  Other commands   {other_command}\n",));
    text.push_str(&format!(
        "\n  Be a device: ask, open the link that comes back and decide, then fetch the \
         tokens.\n\n    \
         curl -d client_id=demo-device {provider}/connect/deviceauthorization\n    \
         curl -d client_id=demo-device -d grant_type={} -d device_code=CODE \
         {provider}/connect/token\n",
        GrantType::DeviceCode.as_str()
    ));
    text.push_str(
        "\nThese names and passwords are public: for trying out, never for production. Ctrl-C ends \
         everything.",
    );
    text
}

/// A closed pipe is no reason to stop.
fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
