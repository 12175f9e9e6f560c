//! A link by which somebody sets a password, for whoever made it to pass on.

use gatepost_protocol::login::password_link::{PREFIX, PasswordLink, PasswordLinkOrigin};
use gatepost_protocol::words::instant::Instant;
use gatepost_server::app::App;
use gatepost_store::users::CurrentUser;

/// `factors` is what the link is good for, of the user and as the origin counts them.
pub fn link_to_pass_on(
    app: &App,
    found: &CurrentUser,
    factors: i64,
    origin: PasswordLinkOrigin,
    expires_at: Instant,
) -> String {
    let link = PasswordLink {
        subject: found.user.sub.clone(),
        epoch: found.user.epoch,
        installation_epoch: found.installation_epoch,
        factors,
        origin,
        expires_at,
    };
    let sealed = app.vault.password_links.seal_text(PREFIX, &link);
    format!("{}/account/link?l={sealed}", app.issuer())
}
