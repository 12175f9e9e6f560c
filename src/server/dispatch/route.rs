//! What a route is, and how the one for a path is found. Tables of routes are handed in by whoever
//! starts the server: its own, `ROUTES` of `dispatch/routes.rs`, and those of `src/manage`.

use crate::app::App;
use crate::app::failure::Result;
use crate::config::Config;
use crate::endpoints::conversation::Page;
use crate::http::{Method, Request, Response};
use gatepost_protocol::discovery as metadata;

/// Who reads the answer when something goes wrong.
#[derive(Clone, Copy)]
pub enum Audience {
    Person,
    /// A program that reads errors as OAuth has them (RFC 6749 §5.2).
    Program(Sharing),
    /// A program that reads errors in another format, which the function writes: status and
    /// description.
    ProgramWith(fn(u16, &str) -> Response),
}

/// Which other origins may read the answer in a browser (Fetch §3.2).
#[derive(Clone, Copy)]
pub enum Sharing {
    Nobody,
    Everybody,
    ClientOrigins,
    /// The same, for scripts that send the cookies they have with each request, too. The endpoint
    /// reads none.
    ClientOriginsWithCredentials,
}

/// Which paths below the base URL a route has. They are case-sensitive, and end where they end.
#[derive(Clone, Copy)]
pub enum RoutePath {
    Exact(&'static str),
    /// All that begin so. The name is what follows.
    Below(&'static str),
    /// The name stands between the two, and has no slash.
    Between(&'static str, &'static str),
    /// The same, but the name may have slashes.
    AllBetween(&'static str, &'static str),
}

#[derive(Clone, Copy)]
pub enum Endpoint {
    Plain(fn(&App, &Request) -> Result<Response>),
    /// Takes a name from the path.
    Named(fn(&App, &Request, &str) -> Result<Response>),
    /// A page of the conversation.
    Conversation(Page),
    /// Answers without the database.
    Standing(fn(&Config, &Request, &str) -> Result<Response>),
}

/// Whether a request may have a long body. It is asked before the body is read.
pub type TakesLongBody = fn(&App, &Request) -> bool;

pub struct Route {
    pub path: RoutePath,
    /// What metrics call it.
    pub label: &'static str,
    /// HEAD is taken wherever GET is, except where GET has effects.
    pub allow: &'static str,
    pub audience: Audience,
    pub endpoint: Endpoint,
    pub takes_long_body: Option<TakesLongBody>,
}

/// The route of a path, with the name that the path has; empty where it has none.
pub struct Found<'a> {
    pub route: &'a Route,
    pub name: &'a str,
}

pub(super) const HEALTH_PATH: &str = "/healthz";
pub(super) const PASSKEY_ENDPOINTS_PATH: &str = "/.well-known/passkey-endpoints";

impl Route {
    pub const fn new(
        audience: Audience,
        path: RoutePath,
        label: &'static str,
        allow: &'static str,
        endpoint: Endpoint,
    ) -> Route {
        Route {
            path,
            label,
            allow,
            audience,
            endpoint,
            takes_long_body: None,
        }
    }

    pub(super) fn allows(&self, method: Method) -> bool {
        self.allow
            .split(", ")
            .any(|allowed| allowed == method.as_str())
    }
}

impl RoutePath {
    /// The name in a path that is one of these.
    fn name<'a>(&self, path: &'a str) -> Option<&'a str> {
        match *self {
            RoutePath::Exact(exact) => (path == exact).then_some(""),
            RoutePath::Below(before) => path.strip_prefix(before),
            RoutePath::AllBetween(before, after) => between(path, before, after),
            RoutePath::Between(before, after) => {
                between(path, before, after).filter(|name| !name.contains('/'))
            }
        }
    }
}

fn between<'a>(path: &'a str, before: &str, after: &str) -> Option<&'a str> {
    path.strip_prefix(before)?.strip_suffix(after)
}

/// The route of a path. An exact one goes before one that it lies below, as `/admin/export` does.
pub fn find<'a>(tables: &[&'a [Route]], base_path: &str, path: &'a str) -> Option<Found<'a>> {
    // RFC 8414 §3.1 puts the well-known part before the issuer's path, not after it.
    let is_well_known = path.strip_prefix(metadata::AUTHORIZATION_SERVER_PATH) == Some(base_path);
    let below = if is_well_known {
        metadata::CONFIGURATION_PATH
    } else if path == HEALTH_PATH || path == PASSKEY_ENDPOINTS_PATH {
        // Balancers and `gatepost healthcheck`, and password managers, ask for these at the root,
        // whatever path the base URL has.
        path
    } else {
        path.strip_prefix(base_path)?
    };
    let mut found = None;
    for route in tables.iter().copied().flatten() {
        let Some(name) = route.path.name(below) else {
            continue;
        };
        if matches!(route.path, RoutePath::Exact(_)) {
            return Some(Found { route, name });
        }
        found = Some(Found { route, name });
    }
    found
}
