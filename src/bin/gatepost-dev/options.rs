//! The arguments of `gatepost-dev`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::Trouble;

pub(super) const USAGE: &str = "\
Usage: gatepost-dev [--listen ADDRESS] [--demo-listen ADDRESS]

Starts a private Postgres, the provider and a demo application for trying out.

  --listen ADDRESS       where the provider listens
  --demo-listen ADDRESS  where the demo application is

ADDRESS is IP:PORT or PORT, on the loopback interface; port 0 takes a free one.
Without them it is 127.0.0.1:8080 and 8081, or a free port where one is taken.
With GATEPOST_DATABASE_URL set, that database is used instead of a private one.

Example:
  gatepost-dev --listen 9000";

/// `None` where nobody said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) listen: Option<SocketAddr>,
    pub(super) demo_listen: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Start(Options),
    Help,
}

pub(super) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Trouble> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(usage)? {
        match argument {
            lexopt::Arg::Long("listen") => options.listen = Some(address(&mut parser, "--listen")?),
            lexopt::Arg::Long("demo-listen") => {
                options.demo_listen = Some(address(&mut parser, "--demo-listen")?)
            }
            lexopt::Arg::Long("help") | lexopt::Arg::Short('h') => return Ok(Command::Help),
            other @ (lexopt::Arg::Short(_) | lexopt::Arg::Long(_) | lexopt::Arg::Value(_)) => {
                return Err(usage(other.unexpected()));
            }
        }
    }
    if options.listen == options.demo_listen
        && options.listen.is_some_and(|address| address.port() != 0)
    {
        return Err(Trouble::new(
            "--listen and --demo-listen name the same address",
        ));
    }
    Ok(Command::Start(options))
}

pub(super) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

fn address(parser: &mut lexopt::Parser, flag: &str) -> Result<SocketAddr, Trouble> {
    let value = parser.value().map_err(usage)?;
    let text = value.to_string_lossy();
    let parsed = text
        .parse::<u16>()
        .map(loopback)
        .or_else(|_| text.parse::<SocketAddr>());
    match parsed {
        // The demo passwords are public and nothing here is encrypted.
        Ok(address) if !address.ip().is_loopback() => Err(Trouble::new(format!(
            "{flag} must be on the loopback interface, as 127.0.0.1:8080"
        ))),
        Ok(address) => Ok(address),
        Err(_) => Err(Trouble::new(format!(
            "{flag} takes IP:PORT or PORT, as 127.0.0.1:8080"
        ))),
    }
}

fn usage(error: lexopt::Error) -> Trouble {
    Trouble::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command, Trouble> {
        parse(arguments.iter().map(OsString::from))
    }

    #[test]
    fn without_arguments_nothing_is_said() {
        assert_eq!(
            parsed(&[]),
            Ok(Command::Start(Options {
                listen: None,
                demo_listen: None
            }))
        );
    }

    #[test]
    fn a_bare_port_means_loopback() {
        let expected = Options {
            listen: Some(loopback(9000)),
            demo_listen: "[::1]:0".parse().ok(),
        };
        assert_eq!(
            parsed(&["--listen=9000", "--demo-listen", "[::1]:0"]),
            Ok(Command::Start(expected))
        );
    }

    #[test]
    fn help_wins() {
        assert_eq!(parsed(&["--listen", "1", "--help"]), Ok(Command::Help));
    }

    #[test]
    fn what_would_not_work_is_refused() {
        let refused: &[&[&str]] = &[
            &["--listen", "0.0.0.0:8080"],
            &["--listen", "192.0.2.1:8080"],
            &["--listen", "localhost"],
            &["--listen", "65536"],
            &["--listen"],
            &["--listen", "9000", "--demo-listen", "9000"],
            &["--port", "8080"],
            &["now"],
        ];
        for arguments in refused {
            assert!(parsed(arguments).is_err(), "{arguments:?}");
        }
    }
}
