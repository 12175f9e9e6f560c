//! `POST /connect/deviceauthorization` (RFC 8628 §3.1): a device asks to be let in by its user, who will come with a
//! browser of their own.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::app::App;
use crate::app::failure::Failure;
use crate::app::guesses::Source;
use crate::endpoints::answers;
use crate::endpoints::forms::{refuse_parameters_in_query, require_form};
use crate::endpoints::token::client_authentication::authenticate;
use crate::http::{Request, Response};
use crate::keys::random;
use crate::protocol::device::device_authorization_request::{
    DeviceAuthorizationRequest, PARAMETERS, SINGLE_PARAMETERS,
};
use crate::protocol::device::device_code::{PREFIX, UserCode};
use crate::protocol::words::client::{Client, GrantType};
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::secret::SecretText;
use crate::store::device_authorizations::{self, Entered, NewDevice};

/// With some billions of user codes even a second drawing is rare.
const DRAWINGS: usize = 8;
/// For how long a client with too many devices waiting is told to wait.
const CROWDED: Duration = Duration::from_secs(60);

/// Answers a device authorization request.
pub fn handle(app: &App, request: &Request) -> Result<Response, Failure> {
    require_form(request, 400)?;
    let parameters = Parameters::parse(&request.body)?;
    refuse_parameters_in_query(request, &PARAMETERS)?;
    parameters.refuse_repeated(&SINGLE_PARAMETERS)?;
    app.require_fresh_registry()?;
    let client = &authenticate(app, request, &parameters, app.now())?.client;
    let answer = answer(app, request, client, &parameters).map_err(|failure| failure.about(&client.client_id, None))?;
    let mut response = answers::json(200, &answer);
    response.note.client_id = Some(client.client_id.to_string());
    Ok(response)
}

fn answer(app: &App, request: &Request, client: &Client, parameters: &Parameters) -> Result<Value, Failure> {
    if !client.allows_grant(&GrantType::DeviceCode) {
        return Err(TokenError::new(TokenErrorCode::UnauthorizedClient, Reason::UnregisteredGrantType).into());
    }
    let snapshot = app.registry.snapshot();
    let asked = DeviceAuthorizationRequest::from_form(parameters, client, &snapshot.catalogue, app.issuer())?;
    let throttled = |reason, retry_after| Failure::Throttled { reason, retry_after };
    let asking = (client.client_id.clone(), Source::of(request.source));
    let counted = app.device_authorizations.count(asking, app.now());
    counted.map_err(|wait| throttled(Reason::TooManyDeviceAuthorizations, wait))?;
    let device_code = SecretText::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random::bytes::<32>())));
    for _ in 0..DRAWINGS {
        let Some(user_code) = UserCode::draw(&random::bytes::<32>()) else { continue };
        let new = NewDevice {
            device_code_hash: app.vault.device_codes.tag(&[device_code.expose().as_bytes()]),
            user_code_hash: app.vault.user_codes.tag(&[user_code.letters().as_bytes()]),
            client_id: &client.client_id,
            scopes: &asked.scope,
            resources: &asked.resources,
            acr_values: asked.acr_values.as_deref(),
            interval: client.device_interval,
            lifetime: client.lifetimes.device_code,
            most_pending: app.config.limits.device_pending,
        };
        match device_authorizations::insert(&app.store, &new)? {
            Entered::Waiting => {}
            Entered::CodeTaken => continue,
            Entered::TooManyPending => return Err(throttled(Reason::TooManyPendingDevices, CROWDED)),
        }
        let page = format!("{}/device", app.issuer().trim_end_matches('/'));
        return Ok(json!({
            "device_code": device_code.expose(),
            "user_code": user_code.to_string(),
            "verification_uri": page,
            "verification_uri_complete": format!("{page}?user_code={user_code}"),
            "expires_in": client.lifetimes.device_code.as_secs(),
            "interval": client.device_interval.as_secs(),
        }));
    }
    Err(Failure::Internal(String::from("no free user code was found")))
}
