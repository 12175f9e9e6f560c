//! The rooms of the house. Core rooms decide who gets a token: they are what an auditor reads
//! first.

use std::collections::BTreeMap;

use super::source::{SourceFile, sources};

pub struct Room {
    pub name: &'static str,
    pub core: bool,
    /// Whether `gatepost` links it: the binary that is installed, and that an auditor reads.
    pub linked: bool,
    /// Files, and folders with all below them; the longest that fits a file has it.
    pub paths: &'static str,
}

const fn room(name: &'static str, paths: &'static str) -> Room {
    Room {
        name,
        core: false,
        linked: true,
        paths,
    }
}

const fn core(name: &'static str, paths: &'static str) -> Room {
    Room {
        core: true,
        ..room(name, paths)
    }
}

/// What lies in `src`, too, but not in `gatepost`.
const fn beside(name: &'static str, paths: &'static str) -> Room {
    Room {
        linked: false,
        ..room(name, paths)
    }
}

#[rustfmt::skip]
pub const ROOMS: &[Room] = &[
    core("protocol/words", "protocol/lib protocol/words"),
    core("protocol/keys", "protocol/keys"),
    core("protocol/token", "protocol/token"),
    core("protocol/device", "protocol/device"),
    core("protocol/authorize", "protocol/authorize protocol/sealed_request"),
    core("protocol/login", "protocol/login"),
    core("protocol/logout", "protocol/logout"),
    room("protocol/audit", "protocol/audit"),
    room("protocol/upstream", "protocol/upstream"),
    room("protocol/registration", "protocol/registration"),
    room("protocol/discovery", "protocol/discovery"),
    room("protocol/scim", "protocol/scim"),
    core("keys", "keys app/key_keeping"),
    core("store/grants", "store/grants store/endings store/tokens store/consents store/device_authorizations"),
    core("store/sessions", "store/sessions"),
    core("store/users", "store/users store/scim_users store/admin_people store/sign_in_failures store/linked_identities"),
    room("store", "store"),
    core("endpoints/authorize", "endpoints/conversation endpoints/consent endpoints/visit endpoints/present_session app/id_tokens endpoints/answer endpoints/cookies endpoints/forms"),
    core("endpoints/token", "endpoints/token app/extension_grant"),
    core("endpoints/device", "endpoints/device"),
    core("endpoints/login", "endpoints/login app/guesses"),
    room("endpoints/logout", "endpoints/logout"),
    room("endpoints/account", "endpoints/account endpoints/login/new_factor"),
    room("endpoints/upstream", "endpoints/upstream"),
    room("endpoints/scim", "endpoints/scim"),
    room("endpoints/admin", "endpoints/admin manage"),
    room("endpoints", "endpoints"),
    room("pages", "pages"),
    room("app", "app"),
    room("registry", "registry"),
    room("outbound", "outbound"),
    room("config", "config"),
    room("metrics", "metrics"),
    room("server", "server http dispatch"),
    room("supervisor", "supervisor"),
    room("cli", "cli main lib"),
    beside("dev", "bin/gatepost-dev"),
];

/// A file without a room is a failure.
pub fn room_of(file: &SourceFile) -> &'static Room {
    let path = file.path.strip_suffix(".rs").unwrap();
    let fits = |part: &str| {
        path.strip_prefix(part)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let parts = ROOMS
        .iter()
        .flat_map(|room| room.paths.split(' ').map(move |part| (part, room)));
    let found = parts
        .filter(|(part, _)| fits(part))
        .max_by_key(|(part, _)| part.len());
    assert!(
        found.is_some(),
        "src/{} is in no room: give it one",
        file.path
    );
    found.unwrap().1
}

/// How many tokens each room has.
pub fn tokens_of_rooms() -> BTreeMap<&'static str, usize> {
    let mut rooms = BTreeMap::new();
    for file in sources() {
        *rooms.entry(room_of(file).name).or_default() += file.tokens().len();
    }
    rooms
}
