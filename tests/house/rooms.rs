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
    core("protocol/words", "protocol/mod protocol/words", [1729, 250, 1154], "roles, who may use a client, and how strong a sign-in is"),
    core("protocol/authorize", "protocol/authorize", [1236, 171, 1541], "`interaction` judges what a device and the account page are asked, too; a client may be closed to somebody, or want a stronger sign-in"),
    core("protocol/token", "protocol/token", [2117, 259, 1302], "bearer tokens and the scope of a client's own token are judged here; what a refresh in one statement must be within; `minimum_acr`"),
    core("protocol/device", "protocol/device", [98, 15, 73], "a user code travels under a seal as the value it is"),
    core("protocol/login", "protocol/login", [456, 76, 224], "links by which a password is set; codes of an app, recovery codes, passkeys and the CBOR they come in; PBKDF2 of imported users, within bounds"),
    core("protocol/logout", "protocol/logout", [105, 25, 94], ""),
    core("protocol/keys", "protocol/keys", [395, 60, 333], "claims are signed as the object they are"),
    room("protocol/audit", "protocol/audit", [474, 54, 296], "failed attempts are counted here; events of links and second factors"),
    room("protocol/upstream", "protocol/upstream", [1103, 173, 1082], ""),
    room("protocol/registration", "protocol/registration", [3160, 315, 1289], "nearest names and findings are told here; times with units; what Keycloak says of temporary passwords and linked accounts"),
    room("protocol/discovery", "protocol/discovery", [87, 11, 24], ""),
    core("keys", "keys app/key_keeping", [663, 79, 325], "what must not open, tested where it is sealed: the codecs that tested it are gone; the key that checks our own signatures is parsed once"),
    core("store/grants", "store/grants store/endings store/tokens store/consents store/device_authorizations", [762, 106, 0], "an ending says each epoch it changes; a refresh reads and moves its grant at once"),
    core("store/sessions", "store/sessions", [196, 23, 0], "what a renewal compares is said where it is compared; where a session began and when it was used"),
    core("store/users", "store/users store/sign_in_failures store/linked_identities", [488, 71, 0], "a user is read with the epochs that a sign-in must find again; an unlinking sent again ends latecomers"),
    room("store", "store", [3211, 402, 184], "columns of rows, and who hears of a session's end, decide nothing and lie here; audit rows are encoded as rows; second factors; origins of clients"),
    core("endpoints/authorize", "endpoints/authorize endpoints/cookies endpoints/forms", [827, 106, 0], "the page of a closed client; use is noted once an hour; an ignored audience is logged"),
    core("endpoints/token", "endpoints/token app/extension_grant", [1354, 129, 88], "four epochs where one date was; nobody gets a token of a client that is closed to them"),
    core("endpoints/device", "endpoints/device", [203, 12, 0], ""),
    core("endpoints/login", "endpoints/login app/guesses", [1017, 85, 51], "a session begins only at the epochs its user was read with; a device is remembered; what lies between a password and a session"),
    room("endpoints/logout", "endpoints/logout", [304, 30, 0], ""),
    room("endpoints/account", "endpoints/account", [965, 70, 0], "each purpose of a seal is named; links by which a password is set; second factors are added and removed"),
    room("endpoints/upstream", "endpoints/upstream", [748, 76, 30], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    room("endpoints", "endpoints", [508, 68, 0], "how a page for a device or the account answers is told here; what `doctor` is told of a proxy"),
    room("pages", "pages", [1868, 178, 568], "sign-ins by browser and system, the closed page, the page behind a link, pages about second factors"),
    room("app", "app", [828, 105, 176], "what it uses lies in more rooms; hashes leave a core to tokens"),
    room("registry", "registry", [457, 58, 105], "clients are cached within a size, origins as hashes"),
    room("outbound", "outbound", [457, 56, 264], "until when a certificate is good, for `doctor`"),
    room("config", "config clock deadline permits", [913, 103, 359], "whoever answers a request late is the one who counts it; three settings for sign-ins, one for the cache of clients"),
    room("metrics", "metrics", [150, 21, 47], "what the server counts is named here"),
    room("server", "server http dispatch", [1779, 248, 309], "the head of an answer is written into room that holds it; request ids; what developers are told"),
    room("supervisor", "supervisor", [529, 61, 58], ""),
    room("cli", "cli main lib", [4903, 343, 184], "links; user names beside subjects; `user factors`; listings are cut and searched; questions at a terminal; addresses that are out of reach; `help` and `reference`; `import`, links in documents; `explain`; `doctor`"),
    beside("dev", "bin/gatepost-dev", [1972, 142, 770], ""),
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
