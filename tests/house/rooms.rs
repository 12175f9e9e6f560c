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
    core("protocol/words", "protocol/mod protocol/words", [1672, 239, 1147], ""),
    core("protocol/authorize", "protocol/authorize", [1160, 156, 1440], "`interaction` judges what a device and the account page are asked, too"),
    core("protocol/token", "protocol/token", [2060, 250, 1299], "bearer tokens and the scope of a client's own token are judged here"),
    core("protocol/device", "protocol/device", [98, 15, 73], "a user code travels under a seal as the value it is"),
    core("protocol/login", "protocol/login", [152, 11, 66], "the limit of wrong passwords is judged here"),
    core("protocol/logout", "protocol/logout", [105, 25, 94], ""),
    core("protocol/keys", "protocol/keys", [388, 60, 333], "claims are signed as the object they are"),
    room("protocol/audit", "protocol/audit", [464, 53, 296], "failed attempts are counted here"),
    room("protocol/upstream", "protocol/upstream", [1101, 173, 1082], ""),
    room("protocol/registration", "protocol/registration", [2279, 238, 816], "nearest names and findings are told here"),
    room("protocol/discovery", "protocol/discovery", [85, 11, 24], ""),
    core("keys", "keys app/key_keeping", [637, 72, 309], "what must not open, tested where it is sealed: the codecs that tested it are gone"),
    core("store/grants", "store/grants store/endings store/tokens store/consents store/device_authorizations", [732, 105, 0], "an ending says each epoch it changes"),
    core("store/sessions", "store/sessions", [186, 22, 0], "what a renewal compares is said where it is compared"),
    core("store/users", "store/users store/sign_in_failures store/linked_identities", [436, 62, 0], "a user is read with the epochs that a sign-in must find again; an unlinking sent again ends latecomers"),
    room("store", "store", [2862, 364, 174], "columns of rows, and who hears of a session's end, decide nothing and lie here"),
    core("endpoints/authorize", "endpoints/authorize endpoints/cookies endpoints/forms", [776, 100, 0], ""),
    core("endpoints/token", "endpoints/token app/extension_grant", [1327, 127, 87], "four epochs where one date was"),
    core("endpoints/device", "endpoints/device", [202, 12, 0], ""),
    core("endpoints/login", "endpoints/login app/guesses", [566, 57, 51], "a session begins only at the epochs its user was read with"),
    room("endpoints/logout", "endpoints/logout", [304, 30, 0], ""),
    room("endpoints/account", "endpoints/account", [434, 32, 0], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    room("endpoints/upstream", "endpoints/upstream", [742, 76, 30], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    room("endpoints", "endpoints", [461, 62, 0], "how a page for a device or the account answers is told here"),
    room("pages", "pages", [1453, 148, 530], ""),
    room("app", "app", [778, 95, 176], "what it uses lies in more rooms; hashes leave a core to tokens"),
    room("registry", "registry", [417, 51, 84], ""),
    room("outbound", "outbound", [417, 53, 264], ""),
    room("config", "config clock deadline permits", [869, 99, 346], "whoever answers a request late is the one who counts it"),
    room("metrics", "metrics", [150, 21, 47], "what the server counts is named here"),
    room("server", "server http dispatch", [1736, 240, 309], ""),
    room("supervisor", "supervisor", [529, 61, 58], ""),
    room("cli", "cli main lib", [3641, 272, 184], ""),
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
