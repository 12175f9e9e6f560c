//! The load tool behind `make bench`: walks the flows of a provider in a closed loop, checks every
//! answer, and prints a Markdown table. It starts a Gatepost of its own; `--against FILE` loads
//! other providers beside it, flow by flow in turn, so that what counts are ratios within one run.
//!
//! ```text
//! cargo bench --bench load -- [--smoke] [--seconds N] [--connections N] [--only NAME]... [--against FILE]...
//! cargo bench --bench load -- --tokens N       what so many reference tokens leave in the tables when they have expired
//! cargo bench --bench load -- --fresh          code flows while partitions fill from empty, with and without scans
//! cargo bench --bench load -- --clients N      tokens of clients drawn from 100, 10000 and N
//! cargo bench --bench load -- --users N        code flows beside 1000 and N users
//! cargo bench --bench load -- --beside         refreshes while people sign in; takes --against, too
//! cargo bench --bench load -- --open         flows due at 30 to 90 % of their own limit; takes --against, too
//! cargo bench --bench load -- --scim N         refreshes and sign-ins while a program adds N users over SCIM
//! cargo bench --bench load -- --console        administrators' pages beside a thousand people and a million
//! cargo bench --bench load -- --filled         any of them over a database that has been served from for a while
//! cargo bench --bench load -- --serve FILE     only start a Gatepost, and write its settings for --against
//! ```

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool at a developer's hand: it prints, and a defect of it may end it"
)]

mod beside;
mod browser;
mod console;
mod drive;
mod flows;
mod fresh;
mod gatepost;
mod http;
mod jwt;
mod limits;
mod many;
mod paced;
mod provider;
mod report;
mod scim;
mod tokens;
mod usage;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use drive::{Load, Outcome, drive};
use flows::{FLOWS, Flow};
use gatepost::Gatepost;
use http::Connections;
use limits::BareHttp;
use provider::{Provider, Settings};
use report::{Figures, Limits, Report, Row};
use usage::{Usage, Watched};

/// What the command line says.
struct Options {
    smoke: bool,
    fresh: bool,
    beside: bool,
    open: bool,
    filled: bool,
    console: bool,
    seconds: u64,
    connections: usize,
    only: Vec<String>,
    against: Vec<PathBuf>,
    serve: Option<PathBuf>,
    tokens: Option<u64>,
    clients: Option<u64>,
    users: Option<u64>,
    scim: Option<u64>,
}

/// A provider, and where its costs show.
struct Target {
    provider: Provider,
    watched: Watched,
}

/// For how long one provider is loaded before the next has its turn.
const TURN: Duration = Duration::from_secs(1);

impl Target {
    fn new(settings: Settings) -> Result<Target, String> {
        let watched = Watched::new(settings.pid, settings.database_url.clone());
        Ok(Target {
            provider: Provider::discover(settings)?,
            watched,
        })
    }

    fn drive(&self, flow: Flow, load: Load) -> Result<(Outcome, Usage), String> {
        let usage = || self.watched.usage();
        let (outcome, before, after) = drive(&self.provider, flow, load, usage, usage)?;
        Ok((outcome, after.since(before)))
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let done = match arguments.as_slice() {
        [mode, workers] if mode == limits::BARE_HTTP => {
            limits::serve_bare_http(workers.parse().unwrap_or(16))
        }
        _ => Options::parse(&arguments).and_then(|options| run(&options)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("load: {problem}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options {
            smoke: false,
            fresh: false,
            beside: false,
            open: false,
            filled: false,
            console: false,
            seconds: 5,
            connections: 8,
            only: Vec::new(),
            against: Vec::new(),
            serve: None,
            tokens: None,
            clients: None,
            users: None,
            scim: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--smoke" {
                options.smoke = true;
                continue;
            }
            if argument == "--fresh" {
                options.fresh = true;
                continue;
            }
            if argument == "--filled" {
                options.filled = true;
                continue;
            }
            if argument == "--console" {
                options.console = true;
                continue;
            }
            if argument == "--beside" {
                options.beside = true;
                continue;
            }
            if argument == "--open" {
                options.open = true;
                continue;
            }
            let value = rest
                .next()
                .ok_or_else(|| format!("{argument} wants a value, or is unknown"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|error| format!("{argument} {value}: {error}"))
            };
            match argument.as_str() {
                "--seconds" => options.seconds = number()?,
                "--connections" => {
                    options.connections = usize::try_from(number()?.max(1)).unwrap_or(1)
                }
                "--only" => options.only.push(value.clone()),
                "--against" => options.against.push(value.into()),
                "--tokens" => options.tokens = Some(number()?),
                "--clients" => options.clients = Some(number()?),
                "--users" => options.users = Some(number()?),
                "--scim" => options.scim = Some(number()?),
                "--serve" => options.serve = Some(value.into()),
                other => return Err(format!("unknown option {other}")),
            }
        }
        Ok(options)
    }

    fn load(&self, kind: Connections) -> Load {
        let (warm_up, duration) = if self.smoke {
            (0, 1)
        } else {
            (1, self.seconds)
        };
        let (warm_up, duration) = (Duration::from_secs(warm_up), Duration::from_secs(duration));
        Load {
            connections: self.connections,
            kind,
            warm_up,
            duration,
        }
    }

    /// `--only` is the whole name of a flow, or else a part of several.
    fn wants(&self, name: &str) -> bool {
        let is_whole = |only: &String| FLOWS.iter().any(|(_, flow)| flow == only);
        let names = |only: &String| name == only || !is_whole(only) && name.contains(only.as_str());
        self.only.is_empty() || self.only.iter().any(names)
    }
}

fn run(options: &Options) -> Result<(), String> {
    let cluster = std::env::var("TEST_DATABASE_URL").map_err(
        |_| "TEST_DATABASE_URL is not set: run make bench, or tests/with-postgres cargo bench",
    )?;
    if options.fresh {
        return fresh::run(&cluster, options.connections, options.seconds);
    }
    if options.console {
        return console::run(
            &cluster,
            Duration::from_secs(options.seconds),
            options.smoke,
        );
    }
    if let Some(count) = options.users {
        return many::users(&cluster, count, options);
    }
    let own = Gatepost::start(&cluster, "")?;
    if options.filled {
        many::filled(&own)?;
    }
    if let Some(count) = options.clients {
        return many::clients(&own, count, options);
    }
    if let Some(path) = &options.serve {
        let settings =
            serde_json::to_string_pretty(&own.settings).map_err(|error| error.to_string())?;
        fs::write(path, settings).map_err(|error| error.to_string())?;
        println!(
            "{} serves until this input ends; its settings are in {}",
            own.settings.issuer,
            path.display()
        );
        return std::io::copy(&mut std::io::stdin(), &mut std::io::sink())
            .map(drop)
            .map_err(|error| error.to_string());
    }
    if let Some(tokens) = options.tokens {
        return tokens::run(&own.settings, tokens, options.connections);
    }
    if let Some(users) = options.scim {
        let seconds = Duration::from_secs(options.seconds);
        return scim::run(&own.settings, users, seconds);
    }
    let targets = targets(&own, options)?;
    if options.beside {
        return beside::run(&targets, Duration::from_secs(options.seconds));
    }
    if options.open {
        return paced::run(&targets, Duration::from_secs(options.seconds));
    }
    let limits = limits(&cluster, options)?;
    // What the start took is given back by then.
    thread::sleep(Duration::from_secs(2));
    let idle = targets
        .iter()
        .map(|target| target.watched.memory())
        .collect();
    let rows = rows(&targets, options)?;
    let loaded = targets
        .iter()
        .map(|target| target.watched.memory())
        .collect();
    let report = Report {
        names: targets
            .iter()
            .map(|target| target.provider.settings.name.clone())
            .collect(),
        start_to_ready: own.start_to_ready,
        idle,
        loaded,
        rows,
        limits,
    };
    println!(
        "{}",
        report.markdown(
            options.connections,
            options.load(Connections::KeptAlive).duration,
            &cluster
        )
    );
    Ok(())
}

fn targets(own: &Gatepost, options: &Options) -> Result<Vec<Target>, String> {
    let others = options.against.iter().map(|path| {
        let text =
            fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str::<Settings>(&text)
            .map_err(|error| format!("{}: {error}", path.display()))
    });
    let all = std::iter::once(Ok(own.settings.clone())).chain(others);
    all.map(|settings| Target::new(settings?)).collect()
}

/// Every flow, then what people notice of a storm of wrong passwords.
fn rows(targets: &[Target], options: &Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (flow, name) in FLOWS {
        if options.wants(name) {
            rows.push(Row {
                name: name.to_owned(),
                work: flow.work(),
                figures: measure(targets, flow, name, options)?,
            });
        }
    }
    for flow in [Flow::Discovery, Flow::UserInfo, Flow::Refresh("refresh")] {
        let plain = FLOWS
            .iter()
            .find(|(other, _)| *other == flow)
            .map_or("", |(_, name)| name);
        let name = format!("{plain}, during wrong passwords");
        if options.wants(&name) {
            rows.push(Row {
                figures: in_storm(targets, flow, &name, options)?,
                name,
                work: None,
            });
        }
    }
    Ok(rows)
}

fn measure(
    targets: &[Target],
    flow: Flow,
    name: &str,
    options: &Options,
) -> Result<Vec<Option<Figures>>, String> {
    let one = |target: &Target, load| target.drive(flow, load);
    let having = |target: &Target| flow.is_possible(&target.provider);
    let kept = in_turns(
        targets,
        name,
        having,
        options.load(Connections::KeptAlive),
        TURN,
        one,
    )?;
    let new = in_turns(
        targets,
        name,
        having,
        options.load(Connections::New),
        TURN,
        one,
    )?;
    let both = kept.into_iter().zip(new);
    Ok(both
        .map(|(kept, new)| Some(Figures::new(&kept?, new.map(|(new, _)| new).as_ref())))
        .collect())
}

fn in_storm(
    targets: &[Target],
    flow: Flow,
    name: &str,
    options: &Options,
) -> Result<Vec<Option<Figures>>, String> {
    let raging = |target: &Target, load: Load| {
        let lasting = load.warm_up + load.duration + Duration::from_secs(1);
        let storm = Load {
            warm_up: Duration::ZERO,
            duration: lasting,
            ..load
        };
        thread::scope(|scope| {
            let raging = scope.spawn(move || target.drive(Flow::BadSignIn, storm));
            let measured = target.drive(flow, load);
            raging
                .join()
                .unwrap_or_else(|_| Err(String::from("the storm panicked")))?;
            measured
        })
    };
    let having = |target: &Target| {
        flow.is_possible(&target.provider) && Flow::BadSignIn.is_possible(&target.provider)
    };
    let load = options.load(Connections::KeptAlive);
    // A storm takes a while to rise.
    let measured = in_turns(targets, name, having, load, load.duration, raging)?;
    Ok(measured
        .into_iter()
        .map(|one| Some(Figures::new(&one?, None)))
        .collect())
}

/// Loads the providers in turn until each had its time: what slows the machine for a while slows
/// all of them. Every other round goes the other way.
fn in_turns(
    targets: &[Target],
    name: &str,
    having: impl Fn(&Target) -> bool,
    load: Load,
    turn: Duration,
    one: impl Fn(&Target, Load) -> Result<(Outcome, Usage), String>,
) -> Result<Vec<Option<(Outcome, Usage)>>, String> {
    let names: Vec<_> = targets
        .iter()
        .map(|target| target.provider.settings.name.as_str())
        .collect();
    eprintln!("{}: {name}", names.join(", "));
    let mut sums: Vec<_> = targets
        .iter()
        .map(|target| having(target).then(Default::default))
        .collect();
    for round in 0..load.duration.as_millis().div_ceil(turn.as_millis()) {
        let warm_up = if round == 0 {
            load.warm_up
        } else {
            load.warm_up / 5
        };
        let load = Load {
            warm_up,
            duration: turn,
            ..load
        };
        let mut order: Vec<_> = targets.iter().zip(&mut sums).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for (target, sum) in order {
            let Some((outcome, usage)): &mut Option<(Outcome, Usage)> = sum else {
                continue;
            };
            let wrong =
                |problem: String| format!("{}: {name}: {problem}", target.provider.settings.name);
            let (further, spent) = one(target, load).map_err(wrong)?;
            outcome.add(further);
            usage.add(spent);
        }
    }
    Ok(sums)
}

fn limits(cluster: &str, options: &Options) -> Result<Limits, String> {
    if !options.only.is_empty() {
        return Ok(Limits::default());
    }
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let load = options.load(Connections::KeptAlive);
    eprintln!("limits of this machine");
    let bare = BareHttp::start((cores * 4).max(16))?;
    let settings = Settings::bare(&format!("http://{}", bare.address), bare.pid());
    let watched = Watched::new(settings.pid, None);
    let bare_tiny_http = [Target {
        provider: Provider::discover(settings)?,
        watched,
    }];
    postgres::Client::connect(cluster, postgres::NoTls)
        .and_then(|mut client| client.batch_execute(limits::TABLE))
        .map_err(|error| error.to_string())?;
    let seconds = load.duration.as_secs();
    let pgbench = |script| limits::pgbench(cluster, script, options.connections, seconds);
    Ok(Limits {
        signatures: Some(limits::rsa_signatures(cores)?),
        commits: Some(pgbench(limits::COMMIT)?),
        look_ups: Some(pgbench(limits::LOOK_UP)?),
        bare_http: measure(
            &bare_tiny_http,
            Flow::Discovery,
            "one fixed answer",
            options,
        )?
        .remove(0),
    })
}
