//! `gatepost user invite|reset`: links by which people set a password, or make a passkey.

use std::time::Duration;

use serde_json::json;

use super::named;
use crate::cli::arguments::Invocation;
use crate::cli::mail;
use crate::cli::operator::{Operator, user_event};
use crate::cli::output::{self, Failure};
use crate::keys::master::Purpose;
use crate::keys::sealing::Sealer;
use crate::protocol::login::passkey;
use crate::protocol::login::password_link::{PASSKEY_PREFIX, PREFIX, PasskeyLink, PasswordLink};
use crate::protocol::registration::timestamp;
use crate::store::installation::Installation;
use crate::store::users::UserRow;
use crate::store::{audit_events, installation};

/// A link for somebody without a password; `has_one` is for those who have.
pub(in crate::cli) fn invite(invocation: &Invocation, has_one: bool) -> Result<(), Failure> {
    let (operator, installation) = Operator::open_installed(invocation)?;
    let user = named(&operator, invocation, invocation.value(0))?;
    let has = match invocation.has("--passkey") {
        true => user.has_own_way_in(),
        false => user.password_hash.is_some(),
    };
    if has != has_one {
        let rule = match has_one {
            true => "that user has nothing to reset: use `gatepost user invite`",
            false => "that user has a way to sign in: use `gatepost user reset`",
        };
        return Err(Failure::Refused(String::from(rule)));
    }
    print_link(&operator, &installation, invocation, &user)
}

pub(super) fn print_link(
    operator: &Operator,
    installation: &Installation,
    invocation: &Invocation,
    user: &UserRow,
) -> Result<(), Failure> {
    let lifetime = lifetime(invocation)?;
    if !user.enabled || user.username.is_none() {
        return Err(Failure::Refused(String::from(
            "that user cannot sign in with a password: no user name, or disabled",
        )));
    }
    // Another master secret than the server's would make a link that nobody can open.
    operator.sealers(installation)?;
    let is_passkey = invocation.has("--passkey");
    if is_passkey && (invocation.has("--enrol") || invocation.has("--mail")) {
        let rule = "--passkey does not go with --enrol or --mail";
        return Err(Failure::Usage(String::from(rule)));
    }
    if is_passkey && passkey::host(operator.config.base_url.as_str()).is_none() {
        let rule = "browsers have no passkeys for the host of GATEPOST_BASE_URL";
        return Err(Failure::Refused(String::from(rule)));
    }
    if invocation.has("--mail") {
        return mail::send_link(operator, installation, invocation, user, lifetime);
    }
    let derived = operator
        .master_secret()?
        .derive(&installation.id, &installation.issuer);
    let expires_at = operator.now()?.plus(lifetime);
    let installation_epoch = installation::epoch(&operator.store)?;
    let link = PasswordLink {
        subject: user.sub.clone(),
        epoch: user.epoch,
        installation_epoch,
        factors: user.factors,
        enrols: invocation.has("--enrol"),
        expires_at,
    };
    let sealed = match is_passkey {
        true => Sealer::new(&derived, Purpose::PasskeyLink)
            .seal_text(PASSKEY_PREFIX, &PasskeyLink { link }),
        false => Sealer::new(&derived, Purpose::PasswordLink).seal_text(PREFIX, &link),
    };
    let detail = json!({"by": "operator", "expires_at": output::time(expires_at)});
    audit_events::insert(&operator.store, &user_event("link_made", &user.sub, detail))?;
    let address = format!(
        "{}/account/link?l={sealed}",
        operator.config.base_url.as_str()
    );
    match invocation.has("--json") {
        true => output::line(
            &json!({"link": address, "expires_at": output::time(expires_at)}).to_string(),
        ),
        false => output::line(&address),
    }
}

pub(super) fn lifetime(invocation: &Invocation) -> Result<Duration, Failure> {
    let text = invocation.option("--for").unwrap_or("72h");
    let rule = "--for must be a number with s, m, h or d, as 72h; at most 30d";
    let fits = timestamp::seconds(text).filter(|seconds| (1..=30 * 86_400).contains(seconds));
    fits.map(Duration::from_secs)
        .ok_or_else(|| Failure::Usage(String::from(rule)))
}
