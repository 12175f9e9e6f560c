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
    core("protocol/words", "protocol/mod protocol/acr_values protocol/bearer protocol/claim_shape protocol/client protocol/cors protocol/epochs protocol/errors protocol/finding protocol/forms protocol/forwarded protocol/hex protocol/identifiers protocol/instant protocol/lengths protocol/named protocol/liveness protocol/localized_text protocol/nearest protocol/parameters protocol/reason protocol/redirect_uri protocol/response_mode protocol/response_type protocol/scope protocol/secret protocol/session protocol/throttle protocol/failed_attempts protocol/user protocol/user_scope protocol/web_url protocol/samples protocol/prompt protocol/grant", [2022, 335, 1485], ""),
    core("protocol/authorize", "protocol/allowance protocol/authorization_code protocol/authorize_request protocol/authorize_response protocol/consent protocol/interaction protocol/pkce protocol/requested_claims protocol/sealed_request", [1146, 183, 1747], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    core("protocol/token", "protocol/access_token protocol/assertion protocol/audience protocol/basic_credentials protocol/claims protocol/client_assertion protocol/client_authentication protocol/client_credentials protocol/client_secret protocol/delegation protocol/extension_grant protocol/function_answer protocol/id_token protocol/introspection protocol/jwt_bearer protocol/refresh_token protocol/token_exchange protocol/token_request protocol/token_response protocol/userinfo", [2022, 317, 1908], ""),
    core("protocol/device", "protocol/device_code protocol/device_authorization_request", [125, 18, 147], "a user code travels under a seal as the value it is"),
    core("protocol/login", "protocol/password", [103, 5, 24], ""),
    core("protocol/logout", "protocol/end_session protocol/logout_token protocol/session_state", [108, 27, 150], ""),
    core("protocol/keys", "protocol/jwks protocol/jwt protocol/key_schedule protocol/key_set", [427, 64, 417], "claims are signed as the object they are"),
    room("protocol/audit", "protocol/audit_chain protocol/audit_heads protocol/audit_verification", [462, 52, 230], ""),
    room("protocol/upstream", "protocol/upstream protocol/outbound_address", [1304, 227, 1712], ""),
    room("protocol/registration", "protocol/registration protocol/client_checkup protocol/weak_settings protocol/raster_image", [2355, 277, 1019], ""),
    room("protocol/discovery", "protocol/discovery", [86, 12, 24], ""),
    core("keys", "crypto app/key_keeping app/foreign_keys", [751, 94, 370], "what must not open, tested where it is sealed: the codecs that tested it are gone"),
    core("store/grants", "store/grants store/endings store/grant_refresh store/token_standing store/revoked_tokens store/consents store/used_assertions store/device_authorizations store/values", [999, 185, 19], "an ending says each epoch it changes"),
    core("store/sessions", "store/sessions store/session_clients store/upstream_sessions store/upstream_logout", [520, 100, 0], "what a renewal compares is said where it is compared"),
    core("store/users", "store/users store/password_change store/sign_in_failures store/linked_identities store/unlinking", [551, 118, 0], "a user is read with the epochs that a sign-in must find again; an unlinking sent again ends latecomers"),
    room("store", "store", [2816, 451, 210], ""),
    core("endpoints/authorize", "endpoints/authorize endpoints/consent endpoints/visit endpoints/granted endpoints/present_session endpoints/form_tokens endpoints/cookies endpoints/sealed_address endpoints/id_token_hint endpoints/forms", [1026, 153, 0], ""),
    core("endpoints/token", "endpoints/token endpoints/client_authentication endpoints/introspection endpoints/revocation endpoints/userinfo grants app/assertions app/extension_grant", [1628, 164, 87], "four epochs where one date was"),
    core("endpoints/device", "endpoints/device endpoints/device_authorization", [395, 33, 0], ""),
    core("endpoints/login", "endpoints/login endpoints/sign_in app/password_sign_in app/guesses", [711, 65, 51], "a session begins only at the epochs its user was read with"),
    core("endpoints/logout", "endpoints/logout endpoints/end_session endpoints/check_session back_channel_logout app/logout_calls", [383, 45, 0], ""),
    room("endpoints/account", "endpoints/account", [603, 34, 0], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    room("endpoints/upstream", "endpoints/external app/upstream_metadata", [1114, 90, 30], "unlinking is a purpose of a seal like any other, so each place that matches them names it"),
    room("endpoints", "endpoints", [565, 70, 0], ""),
    room("pages", "pages", [1713, 157, 875], ""),
    room("app", "app", [854, 107, 175], ""),
    room("registry", "registry", [455, 60, 83], ""),
    room("outbound", "outbound", [449, 65, 474], ""),
    room("config", "config clock deadline permits", [1176, 107, 375], "whoever answers a request late is the one who counts it"),
    room("metrics", "metrics", [151, 14, 47], ""),
    room("server", "server http dispatch", [1959, 275, 323], ""),
    room("supervisor", "supervisor", [603, 68, 62], ""),
    room("cli", "cli main lib", [4747, 287, 285], ""),
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
