//! The modules. Core modules decide who gets a token: they are what an auditor reads
//! first.

use std::collections::BTreeMap;

use super::source::{SourceFile, sources};

pub struct Module {
    pub name: &'static str,
    pub core: bool,
    /// Whether one of the two programs that are installed links it.
    pub linked: bool,
    /// Files, and folders with all below them; the longest that fits a file has it.
    pub paths: &'static str,
}

const fn module(name: &'static str, paths: &'static str) -> Module {
    let (core, linked) = (false, true);
    Module {
        name,
        core,
        linked,
        paths,
    }
}

const fn core(name: &'static str, paths: &'static str) -> Module {
    Module {
        core: true,
        ..module(name, paths)
    }
}

/// What lies in `src`, too, and is not installed.
const fn beside(name: &'static str, paths: &'static str) -> Module {
    Module {
        linked: false,
        ..module(name, paths)
    }
}

#[rustfmt::skip]
pub const ROOMS: &[Module] = &[
    core("protocol/words", "protocol/lib protocol/words"),
    core("protocol/keys", "protocol/keys"),
    core("protocol/token", "protocol/token"),
    core("protocol/device", "protocol/device"),
    core("protocol/authorize", "protocol/authorize protocol/sealed_request"),
    core("protocol/login", "protocol/login"),
    core("protocol/logout", "protocol/logout"),
    module("protocol", "protocol"),
    core("server/keys", "server/keys server/app/key_keeping tool/imported_key"),
    core("store/grants", "store/grants store/endings store/tokens store/consents store/device_authorizations"),
    core("store/sessions", "store/sessions"),
    core("store/users", "store/users store/disowned_sign_ins manage/statements/scim_users manage/statements/admin_people registrar/statements/user_changes store/sign_in_failures store/linked_identities"),
    module("store", "store"),
    core("server/endpoints/authorize", "server/endpoints/conversation server/endpoints/consent server/endpoints/transaction server/endpoints/current_session server/app/id_tokens server/endpoints/answer server/endpoints/cookies server/endpoints/forms"),
    core("server/endpoints/token", "server/endpoints/token server/app/extension_grant"),
    core("server/endpoints/device", "server/endpoints/device"),
    core("server/endpoints/login", "server/endpoints/login server/app/guesses"),
    module("server", "server server/endpoints/login/new_factor"),
    module("registration", "registration"),
    module("registrar", "registrar"),
    module("manage", "manage"),
    module("import", "import"),
    module("tool", "tool lib bin/gatepost bin/gatepostd"),
    beside("dev", "bin/gatepost-dev"),
];

/// A file without a module is a failure.
pub fn module_of(file: &SourceFile) -> &'static Module {
    let path = file.path.strip_suffix(".rs").unwrap();
    let fits = |part: &str| {
        let rest = path.strip_prefix(part);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let parts = ROOMS
        .iter()
        .flat_map(|module| module.paths.split(' ').map(move |part| (part, module)));
    let found = parts
        .filter(|(part, _)| fits(part))
        .max_by_key(|(part, _)| part.len());
    found
        .unwrap_or_else(|| panic!("src/{path} is in no module: give it one"))
        .1
}

/// How many tokens each module has.
pub fn tokens_of_modules() -> BTreeMap<&'static str, usize> {
    let mut modules = BTreeMap::new();
    for file in sources() {
        *modules.entry(module_of(file).name).or_default() += file.tokens().len();
    }
    modules
}
