//! Tells clients, server to server, that a session is over (OpenID Connect Back-Channel Logout 1.0
//! §2.5). The queue is in the database (`store/session_clients.rs`), so that a call outlives the
//! process that should have made it; every process takes from it, on threads that are none of the
//! workers.

use std::thread;
use std::time::Duration;

use crate::app::failure::Failure;
use crate::app::{App, LogoutCall};
use crate::endpoints::token::grants::issue;
use crate::outbound::OutboundRequest;
use gatepost_protocol::words::secret::SecretText;
use gatepost_store::Result;
use gatepost_store::session_clients::{self, CallOutcome, DueCall, MOST_TRIES};

const PAUSE: Duration = Duration::from_secs(1);
const AT_ONCE: u8 = 8;
/// How often storing an outcome is tried; the next call of the same row is a minute away.
const SETTLING_TRIES: u32 = 30;
/// What is read of an answer: its status says everything.
const MOST_BYTES: usize = 4_096;

/// Makes the calls that are due, for as long as the process lives.
pub fn keep_calling(app: &App) -> ! {
    let mut answered = true;
    loop {
        let made = call_once(app);
        match &made {
            Err(error) if answered => {
                log::warn!("back-channel logouts that are due cannot be read: {error}")
            }
            _ => {}
        }
        answered = made.is_ok();
        // A full hand means that there may be more.
        if !made.is_ok_and(|calls| calls == usize::from(AT_ONCE)) {
            thread::sleep(PAUSE);
        }
    }
}

/// Takes a handful of calls and makes them side by side: a client that does not answer holds up
/// seven others, once.
fn call_once(app: &App) -> Result<usize> {
    let due = session_clients::take(&app.store, i64::from(AT_ONCE))?;
    thread::scope(|scope| {
        for call in &due {
            let caller = thread::Builder::new().name(String::from("logout-call"));
            if let Err(error) = caller.spawn_scoped(scope, || make(app, call)) {
                log::warn!("no thread for a back-channel logout, it is tried again: {error}");
            }
        }
    });
    Ok(due.len())
}

fn make(app: &App, call: &DueCall) {
    let DueCall {
        client_id, tries, ..
    } = call;
    let notified = notify(app, call);
    let counted = match &notified {
        Ok(CallOutcome::Told) => Some(LogoutCall::Told),
        Ok(CallOutcome::Failed | CallOutcome::Moot) => None,
        Err(_) if *tries >= MOST_TRIES => Some(LogoutCall::GivenUp),
        Err(_) => Some(LogoutCall::Failed),
    };
    if let Some(counted) = counted {
        app.logout_calls.raise(counted);
    }
    let outcome = notified.unwrap_or_else(|problem| {
        log::warn!(
            "back-channel logout of client {} failed (try {tries} of {MOST_TRIES}): {problem}",
            client_id.in_text()
        );
        CallOutcome::Failed
    });
    // Keep trying: if this is not written down, the client is told a second time.
    for _ in 0..SETTLING_TRIES {
        match session_clients::settle(&app.store, call, outcome) {
            Ok(()) => return,
            Err(error) => log::warn!("how a back-channel logout ended cannot be stored: {error}"),
        }
        thread::sleep(PAUSE);
    }
}

/// By the registration of now: a client that is gone, or has no such address any more, is not
/// called.
fn notify(app: &App, call: &DueCall) -> Result<CallOutcome, String> {
    let client = app
        .registry
        .client(&call.client_id)
        .map_err(|error| error.to_string())?;
    let logout = client
        .as_ref()
        .and_then(|client| client.client.backchannel_logout.as_ref());
    let (Some(client), Some(logout)) = (&client, logout) else {
        return Ok(CallOutcome::Moot);
    };
    let token = issue::logout_token(
        app,
        &app.registry.snapshot(),
        &client.client,
        &call.sub,
        &call.sid,
    );
    let token = token.map_err(|failure| match failure {
        Failure::Internal(cause) => cause,
        _ => String::from("its token could not be made"),
    })?;
    send(app, &logout.uri, &token)
}

fn send(app: &App, uri: &str, token: &SecretText) -> Result<CallOutcome, String> {
    let request =
        OutboundRequest::post_form(uri, &[("logout_token", token.expose())]).at_most(MOST_BYTES);
    match app.outbound.send_from_background(&request) {
        Ok(answer) if (200..300).contains(&answer.status) => Ok(CallOutcome::Told),
        Ok(answer) => Err(format!("it answered {}", answer.status)),
        Err(error) => Err(error.to_string()),
    }
}
