//! Sessions that are bound to a key of their browser: Device Bound Session Credentials (DBSC). The
//! answer to a sign-in offers it; a browser that can then registers a key, and proves it for each
//! cookie that shows the key. Neither endpoint reads a cookie: browsers send none along after a
//! request that another site began.
//!
//! They answer 200, 401, 403 or 503. A browser takes 401, and any other status that is not among
//! these, as the end of its registration. It proves its key after 403, and comes again after 503.

use std::time::Duration;

use serde_json::json;

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::config::Config;
use crate::endpoints::answers;
use crate::endpoints::cookies::{self, SessionHandle};
use crate::http::{Request, Response};
use crate::keys::signing::verify;
use gatepost_protocol::keys::jwt::PublicKey;
use gatepost_protocol::login::bound_session::{
    self, Binding, BindingChallenge, BoundCookie, BoundIdentifier, COOKIE_SECONDS,
    RefreshChallenge, Skipped, UnverifiedKeyProof, unquoted,
};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};
use gatepost_protocol::words::session::Session;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::sessions;

const REFUSAL_NOTED_AFTER: Duration = Duration::from_secs(3_600);

/// The answer to a sign-in, with the offer to bind its session, unless it is bound.
pub fn offer(app: &App, response: Response, session: &Session, handle: &SessionHandle) -> Response {
    if !app.config.bound_sessions || session.bound_to.is_some() {
        return response;
    }
    let challenge = BindingChallenge::of(session, handle.hash(), app.now());
    let vault = &app.vault.bound_sessions;
    let sealed = vault.seal_text(BindingChallenge::PREFIX, &challenge);
    response.header(
        "Secure-Session-Registration",
        bound_session::registration(&sealed),
    )
}

/// `POST /session/bind`: takes the key that the browser made, and binds the session to it. The
/// first key wins. The same key again gets the same answer: the first may have been lost.
pub fn bind(app: &App, request: &Request) -> Result<Response> {
    require_setting(app)?;
    let now = app.now();
    let vault = &app.vault.bound_sessions;
    let refused = || {
        app.bound_sessions.binding_refused.raise();
        Ok(answers::empty(401, Reason::BindingRefused))
    };
    let Some(proof) = UnverifiedKeyProof::read(&proofs(request)) else {
        return refused();
    };
    // It is opened before anything is computed for a stranger.
    let challenge: Option<BindingChallenge> =
        vault.open_text(BindingChallenge::PREFIX, &proof.challenge);
    let Some(challenge) = challenge.filter(|challenge| challenge.is_fresh(now)) else {
        return refused();
    };
    let Some(key) = proof.embedded_key().filter(|key| is_by(&proof, key)) else {
        return refused();
    };
    let event = AuditEvent {
        event: "session_bound",
        sub: Some(&challenge.subject),
        sid: Some(&challenge.sid),
        ..AuditEvent::default().by(request.source, &request.id)
    };
    let is_bound = sessions::bind(&app.store, &challenge, key.key_thumbprint(), &event);
    if !is_bound.map_err(Failure::NotStored)? {
        return refused();
    }
    app.bound_sessions.bound.raise();
    let identifier = BoundIdentifier {
        sid: challenge.sid,
        key,
        ends_at: challenge.session_ends_at,
    };
    let config = &app.config;
    let instructions = bound_session::instructions(
        config.base_url.origin(),
        &vault.seal_text(BoundIdentifier::PREFIX, &identifier),
        &cookies::bound_name(config, &identifier.sid),
        cookies::bound_attributes(config),
    );
    let response = answers::json(200, &instructions);
    Ok(with_cookie(app, response, &identifier, now))
}

/// `POST /session/refresh`: gives the next cookie to the browser that proves its key. The database
/// is not asked, so nobody's binding ends because it is away. A proof is good for as long as its
/// challenge is, and may come again.
pub fn refresh(app: &App, request: &Request) -> Result<Response> {
    require_setting(app)?;
    let now = app.now();
    let vault = &app.vault.bound_sessions;
    let counts = &app.bound_sessions;
    let refused = || {
        counts.refresh_refused.raise();
        Ok(answers::empty(401, Reason::BoundRefreshRefused))
    };
    let sent = unquoted(
        request
            .headers
            .first("sec-secure-session-id")
            .unwrap_or_default(),
    );
    let identifier: Option<BoundIdentifier> = vault.open_text(BoundIdentifier::PREFIX, sent);
    let Some(identifier) = identifier.filter(|identifier| identifier.is_alive(now)) else {
        return refused();
    };
    let challenged = || {
        counts.challenged.raise();
        let challenge = RefreshChallenge {
            sid: identifier.sid.clone(),
            made_at: now,
        };
        let challenge = vault.seal_text(RefreshChallenge::PREFIX, &challenge);
        let header = format!("\"{challenge}\";id=\"{sent}\"");
        Ok(answers::no_store(Response::empty(403)).header("Secure-Session-Challenge", header))
    };
    let proofs = proofs(request);
    if proofs.is_empty() {
        return challenged();
    }
    let Some(proof) = UnverifiedKeyProof::read(&proofs) else {
        return refused();
    };
    let challenge: Option<RefreshChallenge> =
        vault.open_text(RefreshChallenge::PREFIX, &proof.challenge);
    if !challenge.is_some_and(|challenge| challenge.is_fresh(&identifier.sid, now)) {
        return challenged();
    }
    if !is_by(&proof, &identifier.key) {
        return refused();
    }
    counts.refreshed.raise();
    let response = answers::no_store(Response::empty(200));
    Ok(with_cookie(app, response, &identifier, now))
}

fn require_setting(app: &App) -> Result {
    if app.config.bound_sessions {
        return Ok(());
    }
    let code = TokenErrorCode::InvalidRequest;
    Err(Failure::refused(404, code, Reason::NotFound))
}

fn proofs(request: &Request) -> Vec<&str> {
    request.headers.all("secure-session-response").collect()
}

fn is_by(proof: &UnverifiedKeyProof, key: &PublicKey) -> bool {
    let jws = &proof.jws;
    jws.alg == key.algorithm() && verify(key, jws.signing_input.as_bytes(), &jws.signature)
}

fn with_cookie(
    app: &App,
    response: Response,
    identifier: &BoundIdentifier,
    now: Instant,
) -> Response {
    let config = &app.config;
    let name = cookies::bound_name(config, &identifier.sid);
    let vault = &app.vault.bound_sessions;
    let value = vault.seal_text(BoundCookie::PREFIX, &identifier.cookie(now));
    cookies::set_bound(config, response, &name, &value, COOKIE_SECONDS)
}

/// Judges whether a request that brings a session's cookie comes from the browser that has its key.
pub fn judge(app: &App, request: &Request, session: &Session) -> Binding {
    if !app.config.bound_sessions || session.bound_to.is_none() {
        return Binding::Unbound;
    }
    let sent = request.cookie(&cookies::bound_name(&app.config, &session.sid));
    let cookie: Option<BoundCookie> = sent.and_then(|sent| {
        app.vault
            .bound_sessions
            .open_text(BoundCookie::PREFIX, sent)
    });
    bound_session::judge(session, cookie.as_ref(), app.now())
}

/// Counts a request that did not show the key of its session. The audit log is told once an hour.
pub fn note_refusal(app: &App, request: &Request, session: &Session) {
    let skipped = skipped(request);
    app.bound_sessions.unbound.raise(skipped);
    let an_hour_ago = app.now().minus(REFUSAL_NOTED_AFTER);
    if session.refused_at.is_some_and(|at| an_hour_ago < at) {
        return;
    }
    let event = AuditEvent {
        event: "bound_session_refused",
        sub: Some(&session.subject),
        sid: Some(&session.sid),
        detail: json!({"skipped": skipped.as_str()}),
        ..AuditEvent::default().by(request.source, &request.id)
    };
    if let Err(error) = sessions::note_refusal(&app.store, session, an_hour_ago, &event) {
        log::info!("that a bound session was refused was not noted: {error}");
    }
}

/// Why the browser says that it did not prove its key before the request.
fn skipped(request: &Request) -> Skipped {
    Skipped::of(request.headers.first("secure-session-skipped"))
}

/// What the log says of such a request: the session, by which the audit log is searched, and why
/// the browser did not prove its key.
pub fn refusal_detail(request: &Request, session: &Session) -> String {
    let skipped = skipped(request).as_str();
    format!("sid {}, skipped {skipped}", session.sid.as_str())
}

/// The answer to a browser that is signed in no longer. It ends the cookies that show a key, and
/// has the browser forget its registrations, where it is known to have one: by such a cookie, or
/// because its session `had_key`. The sign-in's own answer never says so: it would race with the
/// registration that it offers.
pub fn forget(app: &App, request: &Request, mut response: Response, had_key: bool) -> Response {
    let config = &app.config;
    if !config.bound_sessions {
        return response;
    }
    let sent = sent_cookies(config, request);
    for name in &sent {
        response = cookies::set_bound(config, response, name, "", 0);
    }
    if had_key || !sent.is_empty() {
        response.header("Clear-Site-Data", "\"storage\"")
    } else {
        response
    }
}

/// Whether a cookie came that shows the key of a session.
pub fn has_cookie(app: &App, request: &Request) -> bool {
    !sent_cookies(&app.config, request).is_empty()
}

/// The names of the cookies that came and show keys.
fn sent_cookies<'a>(config: &Config, request: &'a Request) -> Vec<&'a str> {
    let prefix = cookies::bound_prefix(config);
    let names = request.cookies().map(|(name, _)| name);
    names.filter(|name| name.starts_with(&prefix)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_protocol::words::samples::CHROMIUM_PROOFS;

    #[test]
    fn a_browsers_proofs_are_by_the_key_that_it_registers_and_by_no_other() {
        let read = |proof| UnverifiedKeyProof::read(&[proof]).unwrap();
        let keys = CHROMIUM_PROOFS.map(|[registration, _]| read(registration).embedded_key());
        for (at, proofs) in CHROMIUM_PROOFS.iter().enumerate() {
            for proof in proofs.map(read) {
                for (of, key) in keys.iter().flatten().enumerate() {
                    assert_eq!(is_by(&proof, key), of == at, "{proof:?}");
                }
                let mut changed = proof;
                changed.jws.signing_input.push('A');
                assert!(keys.iter().flatten().all(|key| !is_by(&changed, key)));
            }
        }
    }
}
