//! `gatepostd`: as the supervisor, which owns the socket; or, started by it, as the server
//! process, which loads the house from the database and answers.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{env, mem, thread};

use signal_hook::consts::SIGTERM;

use self::house::House;
use crate::app::extension_grant::{self, ExtensionGrant};
use crate::app::hashing::PLACES_IN_LINE;
use crate::app::{App, Extensions, LoadError};
use crate::arguments::{SERVER_PROCESS, SUCCESSOR, ServeArguments, Typed, parse};
use crate::config::{Config, ListenAddress, SameSite};
use crate::dispatch;
use crate::dispatch::route::{self, Route};
use crate::endpoints::letters::keep_sending;
use crate::endpoints::logout::back_channel_logout::keep_calling;
use crate::endpoints::notices;
use crate::endpoints::static_files;
use crate::http::{Refused, Request, Response};
use crate::keys::master::MasterSecret;
use crate::keys::random;
use crate::logging;
use crate::server::{self, ServerSettings, ServerStats};
use crate::supervisor::{self, Listen, SupervisorSettings};
use gatepost_protocol::discovery::REGISTRATION_EXPORT_PATH;
use gatepost_protocol::registration::weak_setting::{self, TOKEN_ENDPOINT_AS_AUDIENCE, WeakUse};
use gatepost_protocol::words::web_url::WebUrl;
use gatepost_store::clients::weak_settings;
use gatepost_store::named_thread;
use gatepost_store::{
    DatabaseSettings, Result, Store, audit_events, device_authorizations, folds, partitions,
    sign_in_failures, tokens, user_ends,
};

mod house;

/// What is wrong with what was typed.
const EXIT_USAGE: u8 = 2;
/// `EX_CONFIG` of sysexits.h.
const EXIT_CONFIGURATION: u8 = 78;
/// How often the registry asks the database for its version.
const REFRESH: Duration = Duration::from_millis(900);
const HOUSEKEEPING: Duration = Duration::from_secs(60);
/// How long a server process that nobody else serves beside waits for the house before it accepts
/// connections without it. Callers wait in the socket's queue meanwhile. Nobody waits longer than
/// five seconds, and some of those are for the answer.
const LOAD_PATIENCE: Duration = Duration::from_secs(3);
/// How often it looks whether the house is open, or the database away.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long a successor waits. It takes over with the house open or not at all, and its predecessor
/// goes on serving.
const SUCCESSOR_PATIENCE: Duration = Duration::from_secs(30);
const LOAD_RETRY: Duration = Duration::from_millis(250);

/// What a program serves beside what is registered.
pub struct Program {
    pub routes: &'static [&'static [Route]],
    pub extension_grants: &'static [ExtensionGrant],
}

/// Starts the server by what was typed after the program's name. Exit codes: 0 after a drain, 1
/// failed, 2 usage, 78 configuration.
pub fn run_with(
    arguments: Vec<OsString>,
    routes: &'static [&'static [Route]],
    extension_grants: &'static [ExtensionGrant],
) -> ExitCode {
    let program = Program {
        routes,
        extension_grants,
    };
    let exit_code = match parse(arguments) {
        Ok(Typed::Serve(typed)) => {
            run(typed, program).unwrap_or_else(|rule| say(&rule, EXIT_CONFIGURATION))
        }
        Ok(Typed::Print(text)) => {
            // A reader that closed its end early is no failure.
            let _ = writeln!(io::stdout().lock(), "{text}");
            ExitCode::SUCCESS
        }
        Err(rule) => say(&rule, EXIT_USAGE),
    };
    log::logger().flush();
    exit_code
}

fn say(rule: &str, exit_code: u8) -> ExitCode {
    // Nobody is left to tell when standard error is closed.
    let _ = writeln!(io::stderr().lock(), "gatepost: {rule}");
    ExitCode::from(exit_code)
}

/// As the supervisor, or as the server process of one. The error is a rule that the settings or the
/// program's extension grants break.
fn run(typed: ServeArguments, program: Program) -> Result<ExitCode, String> {
    extension_grant::check_table(program.extension_grants)?;
    let source = typed.source().map_err(|error| error.to_string())?;
    let config = Config::load(&source).map_err(|error| error.to_string())?;
    if let Some(setting) = without_routes(&config, program.routes) {
        return Err(format!(
            "{setting} is set, and this gatepostd was built without the feature manage, which it \
             needs"
        ));
    }
    if let Some(fault) = config.bound_sessions_fault() {
        return Err(fault.to_owned());
    }
    if typed.is_server_process {
        return Ok(serve(config, typed.is_successor, program));
    }
    logging::start(&config);
    if let Some(fault) = config.administration_fault() {
        log::warn!("{fault}");
    }
    let mut arguments = typed.as_typed;
    let mut environment = Vec::new();
    // A file is read anew by each server process. A pipe can be read once: its settings come as
    // their environment.
    if typed.env_file.is_some_and(|file| !file.is_file()) {
        let mut typed = mem::take(&mut arguments).into_iter();
        while let Some(argument) = typed.next() {
            if argument == "--env-file" {
                typed.next();
            } else if !argument.as_encoded_bytes().starts_with(b"--env-file=") {
                arguments.push(argument);
            }
        }
        for (name, text) in source.texts() {
            environment.push((OsString::from(name), OsString::from(text)));
        }
    }
    arguments.push(OsString::from(SERVER_PROCESS));
    let Some(program) = started_by() else {
        log::error!("this program's own path cannot be told");
        return Ok(ExitCode::FAILURE);
    };
    let watchdog = env::var("WATCHDOG_USEC")
        .ok()
        .and_then(|micros| micros.parse().ok())
        .map(Duration::from_micros);
    Ok(supervisor::run(SupervisorSettings {
        listen: match &config.listeners.main {
            ListenAddress::Tcp(address) => Listen::Tcp(*address),
            ListenAddress::Unix(path) => Listen::Unix(path.clone()),
        },
        admin_listen: config.listeners.admin,
        program,
        arguments,
        successor_argument: OsString::from(SUCCESSOR),
        environment,
        notify_socket: env::var_os("NOTIFY_SOCKET"),
        watchdog,
    }))
}

/// The setting that turns on what no route of this program leads to.
fn without_routes(config: &Config, routes: &[&[Route]]) -> Option<&'static str> {
    let needs = [
        ("GATEPOST_SCIM", config.scim, "/scim/v2/Users"),
        (
            "GATEPOST_ADMIN_API",
            config.admin_api,
            REGISTRATION_EXPORT_PATH,
        ),
        (
            "GATEPOST_ADMIN_ROLE",
            config.administration.is_some(),
            "/admin",
        ),
    ];
    let missing = needs
        .iter()
        .find(|(_, is_on, path)| *is_on && route::find(routes, "", path).is_none());
    missing.map(|(setting, ..)| *setting)
}

/// The path this binary was started by: after an upgrade it names the new one, which `current_exe`
/// would not.
pub fn started_by() -> Option<PathBuf> {
    let path = PathBuf::from(env::args_os().next()?);
    match path.components().count() {
        0 | 1 => env::current_exe().ok(),
        _ => std::path::absolute(path).ok(),
    }
}

fn serve(mut config: Config, is_successor: bool, program: Program) -> ExitCode {
    logging::start(&config);
    if config.error_details
        && !WebUrl::parse(config.base_url.as_str()).is_ok_and(|url| url.is_loopback())
    {
        log::warn!(
            "GATEPOST_ERROR_DETAILS is on: whoever asks is told what is registered; it is for \
             development alone"
        );
    }
    if let Some(fault) = static_files::logo_fault(&config.brand) {
        log::warn!("{fault}");
        config.brand.logo = None;
    }
    let (master, store, extensions) = match prepare(&config, program.extension_grants) {
        Ok(prepared) => prepared,
        Err(problem) => {
            log::error!("{problem}");
            return ExitCode::from(EXIT_CONFIGURATION);
        }
    };
    let house: &'static House = Box::leak(Box::new(House::of(config, program.routes)));
    let watched = [store.clone(), extensions.functions.clone()];
    let loading = store.clone();
    let keeper = named_thread::spawn("keeper", move || {
        let app = persist(|| open(house, &loading, &extensions, &master));
        start_upkeep(app);
        persist(|| keep(app))
    });
    let watch = named_thread::spawn("store-watch", move || persist(|| watch(&watched)));
    if let Err(error) = keeper.and(watch) {
        log::error!("a thread cannot be started: {error}");
        return ExitCode::FAILURE;
    }
    await_opening(house, &store, is_successor);
    if is_successor && house.app.get().is_none() {
        log::error!(
            "the database did not answer within {} s: not taking over",
            SUCCESSOR_PATIENCE.as_secs()
        );
        return ExitCode::FAILURE;
    }
    let stats = Arc::new(ServerStats::default());
    let settings = ServerSettings {
        workers: house.config.workers as usize,
        // As many as have places may wait for one.
        waiting: house.config.upstream_places as usize * 2 + PLACES_IN_LINE,
        trusted_proxies: house.config.trusted_proxies.clone(),
        admin_listen: house.config.listeners.admin,
        takes_long_body: Box::new(|request| dispatch::takes_long_body(house.serving(), request)),
        is_open: Arc::clone(&house.is_open),
    };
    server::run(
        settings,
        Arc::clone(&stats),
        |arrived: Result<&Request, Refused>| match arrived {
            Ok(request) => dispatch::handle(house.serving(), request),
            Err(refused) => dispatch::refusal(house.serving(), &refused),
        },
        move |arrived: Result<&Request, Refused>| match arrived {
            Ok(request) => {
                stats.dropped_log_lines.set(logging::dropped_lines());
                dispatch::handle_admin(&house.metrics, &stats, house.app.get(), request)
            }
            Err(refused) => Response::empty(refused.status),
        },
        |ends| close(house, ends),
    )
}

/// Letters that are under way get their time, and then the audit log is told the last.
fn close(house: &House, ends: Instant) {
    let Some(app) = house.app.get() else { return };
    app.letters.close(ends);
    app.write_last_uses();
    app.close_audit();
}

/// Waits until requests can be answered or, unless this is a successor, until the database is known
/// to be away. Nothing is accepted before: whoever is in the socket's queue waits, and is not
/// turned away.
fn await_opening(house: &House, store: &Store, is_successor: bool) {
    let until = Instant::now()
        + if is_successor {
            SUCCESSOR_PATIENCE
        } else {
            LOAD_PATIENCE
        };
    let is_hopeless = || !is_successor && store.is_away();
    while house.app.get().is_none() && Instant::now() < until && !is_hopeless() {
        thread::sleep(LOOK_EVERY);
    }
}

fn start_upkeep(app: &'static App) {
    start("housekeeper", app, keep_house);
    start("logout-calls", app, keep_calling);
    start("audit", app, keep_audit);
    if app.config.mail.is_some() {
        start("letters", app, keep_sending);
        start("letters", app, keep_sending);
    }
}

/// The process is nothing without it.
fn start(name: &str, app: &'static App, work: fn(&App) -> !) {
    if let Err(error) = named_thread::spawn(name, move || persist(|| work(app))) {
        log::error!("a thread cannot be started: {error}");
        log::logger().flush();
        process::exit(1);
    }
}

/// Does background work, and begins anew where it panics. Requests are served all the same, so a
/// defect of ours in it shall neither end the process nor the work for good. The panic hook has
/// logged the place.
fn persist<T>(work: impl Fn() -> T) -> T {
    loop {
        if let Ok(done) = catch_unwind(AssertUnwindSafe(&work)) {
            return done;
        }
        log::error!("background work panicked: it begins anew");
        thread::sleep(REFRESH);
    }
}

fn prepare(
    config: &Config,
    table: &'static [ExtensionGrant],
) -> Result<(MasterSecret, Store, Extensions), String> {
    let path = config.secret_file.as_deref().ok_or(
        "there is no master secret: set GATEPOST_SECRET_FILE, or give the systemd credential \
         gatepost-secret (`gatepost secret` makes one)",
    )?;
    let master = MasterSecret::read(path)?;
    let store = Store::open(&database_settings(config)).map_err(|error| error.to_string())?;
    let functions = Store::open_for_functions(&function_settings(config)).map_err(|error| {
        match config.grants_database_url {
            Some(_) => error.to_string().replacen(
                "GATEPOST_DATABASE_URL",
                "GATEPOST_GRANTS_DATABASE_URL",
                1,
            ),
            None => error.to_string(),
        }
    });
    Ok((
        master,
        store,
        Extensions {
            table,
            functions: functions?,
        },
    ))
}

pub fn database_settings(config: &Config) -> DatabaseSettings {
    DatabaseSettings {
        url: config.database_url.clone(),
        connections: config.database_connections,
        workers: config.workers as usize,
        cancel_after: Duration::from_secs(3),
        stuck_after: Duration::from_secs(5),
        process: format!("{:016x}", u64::from_be_bytes(random::bytes())),
        audit_days: u16::try_from(config.audit_days).unwrap_or(u16::MAX),
    }
}

/// How SQL functions of extension grants are reached: over a connection of their own where one is
/// configured.
pub fn function_settings(config: &Config) -> DatabaseSettings {
    let url = config
        .grants_database_url
        .as_ref()
        .unwrap_or(&config.database_url)
        .clone();
    DatabaseSettings {
        url,
        cancel_after: Duration::from_secs(2),
        ..database_settings(config)
    }
}

/// Keeps the registry fresh: a change is in force a second after its commit, so the next look
/// begins a little earlier.
fn keep(app: &App) -> ! {
    let mut answered = true;
    let mut judged = 0;
    let mut told = None;
    let mut told_denials = [BTreeSet::new(), BTreeSet::new()];
    loop {
        let version = app.registry.snapshot().version;
        // Looks at every registration, so nothing waits for it.
        if judged != version
            && let Ok(uses) = weak_settings(&app.store)
        {
            let line = weak_line(app, uses);
            if told != line {
                log::warn!(
                    "{}",
                    line.as_deref()
                        .unwrap_or("no weak settings are in use any more")
                );
            }
            (judged, told) = (version, line);
        }
        let next = Instant::now() + REFRESH;
        app.release_hashing_memory();
        answered = refresh(app, answered);
        let stores = [&app.store, &app.extensions.functions];
        for (store, told) in stores.into_iter().zip(&mut told_denials) {
            tell_denials(store, told);
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// What weak settings are in use, as far as this server's own settings do not rule them out.
fn weak_line(app: &App, mut uses: Vec<WeakUse>) -> Option<String> {
    if app.config.client_assertions_name_issuer {
        uses.retain(|one| one.setting != TOKEN_ENDPOINT_AS_AUDIENCE);
    }
    let in_frames = app.config.cookie_same_site == SameSite::None;
    weak_setting::line(&uses, in_frames)
}

/// Answers whether the registry is fresh; `was_fresh` says whether it was at the last look.
fn refresh(app: &App, was_fresh: bool) -> bool {
    match app.registry.refresh() {
        Ok(()) if !was_fresh => log::info!("the database answers again"),
        Ok(()) => {}
        Err(error) if was_fresh => log::warn!("the registry cannot be refreshed: {error}"),
        Err(_) => {}
    }
    app.registry.age() < REFRESH * 2
}

fn tell_denials(store: &Store, told: &mut BTreeSet<String>) {
    let denied = store.denied_lately();
    for cause in denied.difference(told) {
        log::error!("the database does not do everything: {cause}");
    }
    if denied.is_empty() && !told.is_empty() {
        log::info!("the database has denied nothing for a minute");
    }
    *told = denied;
}

/// Asks for a successor when statements hang that cannot be cancelled although the database answers
/// others. While it answers nobody a successor would be worse off: it could not even load. On a
/// thread of its own, because whatever else talks to the database may hang, too.
fn watch(stores: &[Store]) -> ! {
    loop {
        thread::sleep(REFRESH);
        let Some(store) = stores
            .iter()
            .find(|store| store.is_stuck() && store.answers_anew())
        else {
            continue;
        };
        // A database that froze and goes on needs a moment for everything that hung.
        let hangs_on = (0..3).all(|_| {
            thread::sleep(REFRESH);
            store.is_stuck()
        });
        if hangs_on {
            log::error!("a statement cannot be cancelled: asking for a successor");
            // The server process answers this signal by asking its supervisor.
            let _ = signal_hook::low_level::raise(SIGTERM);
        }
    }
}

/// Loads the house, however long that takes.
fn open(
    house: &'static House,
    store: &Store,
    extensions: &Extensions,
    master: &MasterSecret,
) -> &'static App {
    let mut told = None;
    loop {
        match load(house, store, extensions.clone(), master) {
            Ok(app) => {
                log::info!("ready: serving {}", app.issuer());
                let app = house.app.get_or_init(|| app);
                house.is_open.store(true, Ordering::Release);
                return app;
            }
            Err(LoadError::Unfit(problem)) => {
                log::error!("{problem}");
                log::logger().flush();
                process::exit(i32::from(EXIT_CONFIGURATION));
            }
            Err(LoadError::NotYet(error)) => {
                let kind = Some(mem::discriminant(&error));
                if told != kind {
                    log::warn!("waiting for the database: {error}");
                    told = kind;
                }
                thread::sleep(LOAD_RETRY);
            }
        }
    }
}

/// Loads the house over one connection while the pool opens the others: requests shall not queue
/// for a connection each while a far database shakes hands.
fn load(
    house: &House,
    store: &Store,
    extensions: Extensions,
    master: &MasterSecret,
) -> Result<App, LoadError> {
    thread::scope(|scope| {
        let opening = thread::Builder::new().name(String::from("opening"));
        if let Err(error) = opening.spawn_scoped(scope, || store.open_connections()) {
            log::warn!("connections are not opened before requests come: {error}");
        }
        App::load(Arc::clone(&house.config), store.clone(), master, extensions)
    })
}

/// Writes down what failed, and tells the heads of the audit chains at once and with each minute
/// that begins.
fn keep_audit(app: &App) -> ! {
    let mut minute = app.now().minute();
    app.tell_audit_heads();
    loop {
        app.await_failures();
        let is_new = app.now().minute() != minute;
        app.write_failures();
        if is_new {
            minute = app.now().minute();
            app.tell_audit_heads();
        }
    }
}

/// Looks after partitions, signing keys and counters every minute. On a thread of its own: it may
/// wait for locks.
fn keep_house(app: &App) -> ! {
    loop {
        keep_ends(app);
        match partitions::maintain(&app.store, &app.horizons(), app.now().day()) {
            Ok(maintained) => {
                if !maintained.left_to_another && !app.clock.is_in_doubt() {
                    remove_expired(app);
                }
                for name in maintained.made.iter().chain(&maintained.dropped) {
                    log::info!("partition made or dropped: {name}");
                }
            }
            Err(error) => log::warn!("partitions could not be looked after: {error}"),
        }
        app.write_last_uses();
        if app.clock.is_in_doubt() {
            log::warn!(
                "this machine's clock is more than 30 seconds off the database's: nothing is \
                 removed for being old until they agree"
            );
        } else {
            keep_keys_and_counters(app);
        }
        thread::sleep(HOUSEKEEPING);
    }
}

fn keep_keys_and_counters(app: &App) {
    match app.keep_keys() {
        Ok(done) => {
            for line in done {
                log::info!("{line}");
            }
        }
        Err(error) => log::warn!("signing keys could not be looked after: {error}"),
    }
    let most = i64::from(app.config.limits.tracked);
    remove_all("sign-in failures", || {
        sign_in_failures::clean(&app.store, most)
    });
}

/// What any process does for all, once, by the database's clock alone.
fn keep_ends(app: &App) {
    remove_all("rights of people whose time ran out", || {
        user_ends::expire(&app.store)
    });
    if let Err(error) = notices::tell_ends(app) {
        log::warn!("people whose end is near could not be told: {error}");
    }
}

/// What one process does for all where partitions are due, and each otherwise: doing it again finds
/// nothing.
fn remove_expired(app: &App) {
    match audit_events::remove_expired(&app.store, app.now().day()) {
        Ok(0) => {}
        Ok(count) => log::info!("{count} audit events were kept long enough and are removed"),
        Err(error) => {
            log::warn!("audit events that were kept long enough could not be removed: {error}")
        }
    }
    remove_all("device authorizations", || {
        device_authorizations::clean(&app.store)
    });
    // Much time may have passed.
    if app.clock.is_in_doubt() {
        return;
    }
    match folds::fold(&app.store, app.now(), app.horizons().audit_events) {
        Ok(0..=3) => {}
        Ok(hours) => log::info!("{hours} hours of the audit log were folded"),
        Err(error) => log::warn!("the audit log could not be folded: {error}"),
    }
    if let Err(error) = tokens::forget_lasting(&app.store, app.now().day()) {
        log::warn!("old revocations could not be removed: {error}");
    }
}

/// 500 rows at a time, so that no statement holds many locks or takes long.
fn remove_all(what: &str, clean: impl Fn() -> Result<u64>) {
    loop {
        match clean() {
            Ok(500) => {}
            Ok(_) => return,
            Err(error) => return log::warn!("old {what} could not be removed: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn background_work_that_panics_begins_anew_and_ends_once_it_is_done() {
        let begun = Cell::new(0);
        let done = persist(|| {
            begun.set(begun.get() + 1);
            assert!(begun.get() > 1, "a defect");
            begun.get()
        });
        assert_eq!((done, begun.get()), (2, 2));
    }
}
