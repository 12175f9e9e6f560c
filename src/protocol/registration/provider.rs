//! Identity providers of a document: upstreams that people sign in with.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::names::{own_claim, plain_name, require};
use super::problem::DocumentProblem;
use super::walker::{Walker, text};
use crate::discovery::CONFIGURATION_PATH;
use crate::registration::catalogue::display_name;
use crate::registration::key_table::key_table;
use crate::words::claim_shape::listed;
use crate::words::identifiers::TenantName;
use crate::words::identity_provider::{IdentityProvider, ProviderKind};
use crate::words::rule::RuleKept;
use crate::words::scope::ScopeSet;
use crate::words::session::LOCAL;
use crate::words::web_url::WebUrl;

const MOST_CLAIMS: usize = 64;
const OAUTH_KEYS: [&str; 5] = [
    "authorization_endpoint",
    "token_endpoint",
    "userinfo_endpoint",
    "emails_endpoint",
    "subject_claim",
];

pub fn from_json(document: &Value, path: &str) -> Result<IdentityProvider, Vec<DocumentProblem>> {
    super::stored(document, path, read)
}

pub fn read(walker: &mut Walker<'_>) -> IdentityProvider {
    let provider = read_keys(walker);
    check_emails_endpoint(walker, &provider);
    if provider.sign_out && !is_openid(&provider.kind) {
        walker.problem(
            "sign_out",
            "is for providers with an issuer: only they say where to sign out",
        );
    }
    provider
}

key_table! {
    fn read_keys(walker) -> IdentityProvider;
    pub const IDENTITY_PROVIDER_KEYS;
    /// `name` | as in `acr_values=idp:<name>`, a client's `identity_providers`, and in its
    /// addresses, as `/external/<name>/callback` | required
    name: required(provider_name);
    /// `display_name` | the text of its button | the name
    display_name => display_name(walker, &name);
    /// `enabled` | `false` refuses sign-ins with it: people whose session came from it sign in
    /// anew. What clients were given stays: `gatepost user revoke` or `revoke --everything` ends it
    /// | `true`
    enabled: flag or true;
    /// `issuer` | the issuer of an OpenID provider, byte for byte: https, or http on loopback.
    /// After a change all its people are new, and sign in anew | required, or the four endpoint
    /// keys
    ///
    /// `authorization_endpoint`, `token_endpoint`, `userinfo_endpoint`, `subject_claim` | for a
    /// provider without OpenID. `subject_claim` is the member of its UserInfo answer that
    /// identifies the account: a text or a whole number that never changes. Never a name or an
    /// e-mail address | instead of `issuer`
    ///
    /// `emails_endpoint` | for a provider without OpenID: where Gatepost reads `[{"email",
    /// "primary", "verified"}]`. The primary address becomes `email`, its `verified` becomes
    /// `email_verified`. Gatepost asks only if `claims` maps one of them and UserInfo lacks it |
    /// none
    kind => kind(walker);
    /// `client_id`, `client_secret` | what the provider gave you. The secret is a text, `{"file":
    /// ".."}` or `{"env": ".."}`; `apply` reads it and stores it sealed. If you leave it out, the
    /// stored one stays, unless `issuer` or `token_endpoint` changes | required; none
    client_id: required(present);
    /// `scope` | the scopes to ask for. With an `issuer` it has `openid` | `openid profile email`;
    /// none
    scope => scope(walker, is_openid(&kind));
    /// `response_mode` | `form_post` has the provider post its answer, as
    /// [Apple](../providers/apple.md) does where a name or an address is asked for; or `query` |
    /// `query`
    posts_answer => walker
        .choice("response_mode", &[("form_post", true), ("query", false)])
        .unwrap_or(false);
    /// `claims` | an object from the claim there to the claim here, at most 64 | the standard
    /// claims
    claims => claims(walker);
    /// `role_map` | an object from a value there to a role here, or to several. Values that it does
    /// not have give no role | values are roles as they are
    role_map => role_map(walker, &claims);
    /// `acr_map` | with an `issuer`: an object from an `acr` there to the `acr` here. Its `amr` is
    /// passed on where that is not `1`. If a request has an essential `acr`, Gatepost asks the
    /// provider for it | every sign-in there is `1`, and has no `amr`
    acr_map => acr_map(
        walker,
        is_openid(&kind),
        "is for providers with an issuer: only ID tokens tell an acr"
    );
    /// `prompt_values_supported` | the values of `prompt` that it understands, if its metadata is
    /// wrong: `none`, `login`, `consent`, `select_account`, `create`. Gatepost sends only these:
    /// `login` in place of `select_account`. Without `login`, a client that asks for a new sign-in
    /// gets `login_required` | as its metadata says, else all
    prompt_values => walker
        .strings_of("prompt_values_supported", prompt_value, &PROMPT_VALUES)
        .map(BTreeSet::from_iter);
    /// `provision` | `false` creates no account for a person who is new. People with an account can
    /// still link one there: see `account_page` | `true`
    provision: flag or true;
    /// `account_page` | `false` hides it on the account page. Then only `gatepost user link` links
    /// people; with `"provision": false`, only you let people in | `true`
    account_page: flag or true;
    /// `tenant` | its people belong to this tenant, and only sign-ins in this tenant offer it |
    /// none
    tenant => walker.checked("tenant", plain_name).map(TenantName::new);
    /// `trust_email` | `true`: an address that it calls verified counts as such here: people sign
    /// in by it (`GATEPOST_SIGN_IN_WITH`), and e-mails go to it. Only for a provider that proves
    /// addresses, and whose owner you trust with the accounts | `false`
    trust_email: is_set;
    /// `sign_out` | `true`: signing out here also signs out there | `false`
    sign_out: is_set;
}

fn is_openid(kind: &ProviderKind) -> bool {
    matches!(kind, ProviderKind::OpenId { .. })
}

fn scope(walker: &mut Walker<'_>, is_openid: bool) -> ScopeSet {
    let unsaid = if is_openid {
        "openid profile email"
    } else {
        ""
    };
    let scope = walker.scopes("scope");
    let scope = scope.unwrap_or_else(|| unsaid.split_whitespace().collect());
    if is_openid && !scope.contains("openid") {
        walker.problem("scope", "must contain openid for a provider with an issuer");
    }
    scope
}

fn claims(walker: &mut Walker<'_>) -> BTreeMap<String, String> {
    let members = walker.value("claims").and_then(Value::as_object);
    if members.is_some_and(|members| members.len() > MOST_CLAIMS) {
        walker.problem("claims", "must have at most 64 members");
    }
    walker.map("claims", |theirs, ours| {
        let ours = text(ours)?;
        target(theirs, ours)?;
        Ok(ours.to_owned())
    })
}

fn check_emails_endpoint(walker: &mut Walker<'_>, provider: &IdentityProvider) {
    let IdentityProvider { kind, claims, .. } = provider;
    let wants_email = claims.contains_key("email") || claims.contains_key("email_verified");
    if matches!(
        kind,
        ProviderKind::OAuth {
            emails_endpoint: Some(_),
            ..
        }
    ) && !wants_email
    {
        walker.problem(
            "emails_endpoint",
            "needs a claim that comes from it: \"claims\": {\"email\": \"email\"}",
        );
    }
}

/// Each value is one role or an array of roles.
fn role_map(
    walker: &mut Walker<'_>,
    claims: &BTreeMap<String, String>,
) -> BTreeMap<String, BTreeSet<String>> {
    let role_map: BTreeMap<_, _> = walker.map("role_map", |_, ours| {
        let roles = roles(ours).ok_or("must be a role or an array of roles, as strings")?;
        Ok(roles.into_iter().map(str::to_owned).collect())
    });
    if !role_map.is_empty() && !claims.values().any(|ours| ours == "role") {
        walker.problem(
            "role_map",
            "needs a claim that becomes role: \"claims\": {\"groups\": \"role\"}",
        );
    }
    role_map
}

fn roles(ours: &Value) -> Option<BTreeSet<&str>> {
    listed(ours).iter().map(Value::as_str).collect()
}

/// Notes `rule` where there is a map although no acr `is_told`.
pub(super) fn acr_map(
    walker: &mut Walker<'_>,
    is_told: bool,
    rule: &str,
) -> BTreeMap<String, String> {
    let acr_map: BTreeMap<_, _> = walker.map("acr_map", |theirs, ours| match ours.as_str() {
        Some(ours) if is_acr(ours) && is_acr(theirs) => Ok(ours.to_owned()),
        Some(_) | None => {
            let wanted = "must be an acr, like its name there: 1 to 100 characters without spaces";
            Err(String::from(wanted))
        }
    });
    if !acr_map.is_empty() && !is_told {
        walker.problem("acr_map", rule);
    }
    acr_map
}

fn kind(walker: &mut Walker<'_>) -> ProviderKind {
    if walker.count(&OAUTH_KEYS) == 0 {
        return ProviderKind::OpenId {
            issuer: walker.required("issuer", issuer),
        };
    }
    if walker.value("issuer").is_some() {
        walker.problem(
            "issuer",
            "must not stand beside endpoints: a provider is found by one or the other",
        );
    }
    ProviderKind::OAuth {
        authorization_endpoint: walker.required("authorization_endpoint", protected_url),
        token_endpoint: walker.required("token_endpoint", protected_url),
        userinfo_endpoint: walker.required("userinfo_endpoint", protected_url),
        emails_endpoint: walker.checked("emails_endpoint", protected_url),
        subject_claim: walker.required("subject_claim", subject_claim),
    }
}

/// Only upstream can say that a value was verified, and only of its own claim.
fn target(theirs: &str, ours: &str) -> RuleKept {
    match ours {
        "email_verified" | "phone_number_verified" if theirs != ours => {
            Err("can only come from the claim of that name")
        }
        _ => own_claim(ours),
    }
}

/// Whether the text can be one of `acr_values`, which are separated by spaces.
fn is_acr(text: &str) -> bool {
    (1..=100).contains(&text.len()) && text.as_bytes().iter().all(u8::is_ascii_graphic)
}

/// The values in the standards. A misspelt one would never match.
const PROMPT_VALUES: [&str; 5] = ["none", "login", "consent", "select_account", "create"];

fn prompt_value(text: &str) -> RuleKept {
    let rule = "must be one of none, login, consent, select_account, create";
    require(PROMPT_VALUES.contains(&text), rule)
}

fn provider_name(name: &str) -> RuleKept {
    if name == LOCAL {
        Err("must not be local: that is the password login")
    } else {
        plain_name(name)
    }
}

/// A URL whose traffic cannot be read or altered on the way.
pub(super) fn protected_url(text: &str) -> RuleKept {
    match WebUrl::parse(text) {
        Ok(url) if url.is_protected() => Ok(()),
        Ok(_) => Err("must be https; plain http is for 127.0.0.1, [::1] and localhost only"),
        Err(rule) => Err(rule),
    }
}

/// An issuer: it has no query (OpenID Connect Discovery §3). It cannot be a template either, as a
/// URL has no braces.
pub(super) fn issuer(text: &str) -> RuleKept {
    protected_url(text)?;
    if text.contains('?') {
        return Err("must not have a query");
    }
    if text.ends_with(CONFIGURATION_PATH) {
        return Err(
            "is the address of the discovery document: leave /.well-known/openid-configuration out",
        );
    }
    Ok(())
}

/// A name that users can change or give up is not a subject, however it is spelt: its next owner
/// would own the account.
fn subject_claim(name: &str) -> RuleKept {
    let letters: String = name
        .to_lowercase()
        .chars()
        .filter(|character| !matches!(character, '_' | '-'))
        .collect();
    match letters.as_str() {
        "email" | "mail" | "emailaddress" | "login" | "loginname" | "username"
        | "preferredusername" | "upn" | "userprincipalname" | "uniquename" | "screenname"
        | "name" | "displayname" | "fullname" | "globalname" | "nickname" | "nick" | "handle"
        | "phone" | "phonenumber" => {
            Err("must be an identifier that is never given to someone else, not a name or address")
        }
        _ => super::names::claim_name(name),
    }
}

fn present(text: &str) -> RuleKept {
    require(
        (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control),
        "must be 1 to 200 characters",
    )
}
