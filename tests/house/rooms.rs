//! The rooms of the house, and how much each may hold. Whoever makes a room smaller lowers its row; whoever raises one
//! says why in the row. Core rooms decide who gets a token: they are what an auditor reads first.

use std::collections::BTreeMap;

use super::source::{Measure, SourceFile, sources};

pub struct Room {
    pub name: &'static str,
    pub core: bool,
    /// Whether `gatepost` links it: the binary that is installed, and that an auditor reads.
    pub linked: bool,
    /// Files, and folders with all below them; the longest that fits a file has it.
    pub paths: &'static str,
    /// Most lines of code, of comments, of unit tests.
    pub most: [usize; 3],
    /// Why a row was raised.
    pub reason: &'static str,
}

const fn room(name: &'static str, paths: &'static str, most: [usize; 3], reason: &'static str) -> Room {
    Room { name, core: false, linked: true, paths, most, reason }
}

const fn core(name: &'static str, paths: &'static str, most: [usize; 3], reason: &'static str) -> Room {
    Room { core: true, ..room(name, paths, most, reason) }
}

/// What lies in `src`, too, but not in `gatepost`.
const fn beside(name: &'static str, paths: &'static str, most: [usize; 3], reason: &'static str) -> Room {
    Room { linked: false, ..room(name, paths, most, reason) }
}

/// A row that stands further above its room than this is out of date.
pub const SLACK: usize = 25;

#[rustfmt::skip]
pub const ROOMS: &[Room] = &[
    core("protocol/words", "protocol/mod protocol/words", [1962, 326, 1443], ""),
    core("protocol/authorize", "protocol/authorize", [1182, 187, 1765], "`interaction` judges what a device and the account page are asked, too"),
    core("protocol/token", "protocol/token", [2000, 300, 1908], ""),
    core("protocol/device", "protocol/device", [106, 16, 102], "a user code travels under a seal as the value it is"),
    core("protocol/login", "protocol/login", [104, 6, 24], ""),
    core("protocol/logout", "protocol/logout", [111, 28, 122], ""),
    core("protocol/keys", "protocol/keys", [394, 63, 333], "claims are signed as the object they are"),
    room("protocol/audit", "protocol/audit", [409, 45, 174], ""),
    room("protocol/upstream", "protocol/upstream", [1124, 176, 1174], ""),
    room("protocol/registration", "protocol/registration", [2315, 253, 794], ""),
    room("protocol/discovery", "protocol/discovery", [86, 12, 24], ""),
    core("keys", "keys app/key_keeping", [714, 76, 321], "what must not open, tested where it is sealed: the codecs that tested it are gone"),
    core("store/grants", "store/grants store/endings store/tokens store/consents store/device_authorizations store/values", [983, 174, 10], "an ending says each epoch it changes"),
    core("store/sessions", "store/sessions store/session_clients store/upstream_sessions", [508, 93, 0], "what a renewal compares is said where it is compared"),
    core("store/users", "store/users store/sign_in_failures store/linked_identities", [551, 118, 0], "a user is read with the epochs that a sign-in must find again; an unlinking sent again ends latecomers"),
    room("store", "store", [2758, 342, 164], ""),
    core("endpoints/authorize", "endpoints/authorize endpoints/cookies endpoints/forms", [862, 125, 0], ""),
    core("endpoints/token", "endpoints/token app/extension_grant", [1565, 153, 87], "four epochs where one date was"),
    core("endpoints/device", "endpoints/device", [230, 14, 0], ""),
    core("endpoints/login", "endpoints/login app/guesses", [582, 60, 51], "a session begins only at the epochs its user was read with"),
    core("endpoints/logout", "endpoints/logout", [352, 36, 0], ""),
    room("endpoints/account", "endpoints/account", [580, 34, 0], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    room("endpoints/upstream", "endpoints/upstream", [861, 77, 30], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    room("endpoints", "endpoints", [544, 73, 0], "how a page for a device or the account answers is told here"),
    room("pages", "pages", [1629, 153, 646], ""),
    room("app", "app", [860, 107, 175], "what it uses lies in more rooms"),
    room("registry", "registry", [434, 56, 83], ""),
    room("outbound", "outbound", [439, 56, 264], ""),
    room("config", "config clock deadline permits", [955, 108, 375], "whoever answers a request late is the one who counts it"),
    room("metrics", "metrics", [151, 14, 47], ""),
    room("server", "server http dispatch", [1955, 272, 318], ""),
    room("supervisor", "supervisor", [603, 68, 62], ""),
    room("cli", "cli main lib", [4743, 287, 285], ""),
    beside("dev", "bin/gatepost-dev", [1970, 142, 770], ""),
];

/// A file without a room is a failure.
pub fn room_of(file: &SourceFile) -> &'static Room {
    let path = file.path.strip_suffix(".rs").unwrap();
    let fits = |part: &str| path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let parts = ROOMS.iter().flat_map(|room| room.paths.split(' ').map(move |part| (part, room)));
    let found = parts.filter(|(part, _)| fits(part)).max_by_key(|(part, _)| part.len());
    assert!(found.is_some(), "src/{} is in no room: give it one", file.path);
    found.unwrap().1
}

/// What each room holds, and how many files.
pub fn measured() -> BTreeMap<&'static str, (Measure, usize)> {
    let mut rooms = BTreeMap::new();
    for file in sources() {
        let (sum, files): &mut (Measure, usize) = rooms.entry(room_of(file).name).or_default();
        sum.code += file.measure.code;
        sum.comments += file.measure.comments;
        sum.tests += file.measure.tests;
        *files += 1;
    }
    rooms
}
