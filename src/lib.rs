//! Gatepost: an OpenID Connect and OAuth 2.0 provider. One binary, one Postgres database, no async
//! code of its own. `bin/gatepost-dev/` beside it is for trying out: it starts a Postgres and a
//! demo application, which `gatepost` never does.
//!
//! The map of the house, from the street to the cellar. A module may use what stands below it,
//! never what stands above or beside it; `tests/house.rs` holds every `use` line to that.
//!
//! ```text
//! main          argv -> command -> exit code
//! cli           one file a noun, one function a command; `commands.txt` says what there is
//! supervisor    owns the listening socket; starts, watches and replaces the server process
//! server        tiny_http over the inherited socket, worker threads, lanes, self-probe, drain
//! manage        the routes for those who look after people and the registration
//! dispatch      (method, path) -> handler; failures -> responses; one log line per request
//! endpoints     shell, a room a feature: load, ask the core, write, answer;
//!               `token/grants/issue.rs` makes every token
//! pages         pure: values of the core in, HTML out
//! app           what a handler may touch, passed by reference
//! registry      clients, scopes, tenants, providers: cached, refreshed when the database says so
//! keys          keys, sealing, password hashing
//! outbound      the one client for requests of our own
//! http          our Request and Response
//! config, metrics
//!               every setting; counters
//! store         a crate of its own. Postgres, one file per table; and what a request waits by:
//!               clock, permits (bounded lanes), deadline (how long a request waits)
//! protocol      a crate of its own, below all. Pure core: types, parsers, decisions. No I/O, no
//!               clock, no randomness, no logging. Its rooms, from the top floor down:
//!               sealed_request, upstream, registration and audit, discovery, logout, login,
//!               authorize, device, token, keys, words
//! ```
//!
//! The two crates lie in `src/`, too, and are known here as `crate::store` and `crate::protocol`.
//!
//! Three walks for a first visit, each from the socket to the answer.
//!
//! A token request: `server/workers.rs` takes it from tiny_http, `http/incoming.rs` makes a
//! `Request` of it, `cli/serve.rs` is where the server meets `dispatch.rs`, which picks
//! `endpoints/token.rs`; `endpoints/token/client_authentication.rs`, then
//! `protocol/token/token_request/` reads the form, `endpoints/token/grants/authorization_code.rs`
//! opens the code, `protocol/authorize/authorization_code.rs` judges it, `store/grants.rs` enters
//! it, `endpoints/token/grants/issue.rs` makes the tokens, and `http/outgoing.rs` writes them out.
//! What ends a refresh token is listed in `protocol/token/refresh_token.rs`.
//!
//! A sign-in: `endpoints/conversation.rs` opens each page and goes on to the next one; its head
//! tells the four requests of a sign-in one by one. It begins with `endpoints/visit.rs`, which
//! seals the request for the addresses of the pages, validates it, and asks
//! `protocol/authorize/interaction.rs` what the request needs; `endpoints/login.rs` shows its page
//! and takes the form, `endpoints/login/password.rs` tries the password,
//! `endpoints/login/second_factor.rs` asks for a code where the user has a second factor, and
//! `endpoints/answer.rs` begins the session and grants.
//!
//! A sign-in elsewhere: from `endpoints/conversation.rs` to `endpoints/upstream/departure.rs`,
//! which seals the round trip and sends the browser upstream; back at
//! `endpoints/upstream/callback.rs`, `provider.rs` beside it exchanges the code and has
//! `protocol/upstream/` judge what came, `callback.rs` finds the account, and the conversation goes
//! on as for a password.

pub use gatepost_protocol as protocol;
pub use gatepost_server::*;
pub use gatepost_store as store;
pub use gatepost_store::{clock, deadline, permits};

#[cfg(feature = "tools")]
pub use gatepost_import as import;
#[cfg(feature = "manage")]
pub use gatepost_manage as manage;
#[cfg(feature = "tools")]
pub use gatepost_registrar as registrar;
#[cfg(feature = "tools")]
pub use gatepost_registration as registration;
#[cfg(feature = "tools")]
pub use gatepost_tool as tool;

/// The examples of the documentation compile.
#[cfg(doctest)]
#[doc = include_str!("../docs/operate/own-grants-rust.md")]
struct Documentation;
