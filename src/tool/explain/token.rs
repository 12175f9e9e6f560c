//! Which rule of the token endpoint a request breaks, and what is wrong with a token.

use serde_json::{Map, Value, json};

use super::client_assertion;
use super::extension;
use super::proof;
use super::standing::{by_word, ended_by, life};
use super::{Judged, explain_refusal, only};
use crate::output::time;
use gatepost_protocol::authorize::authorization_code::{
    AuthorizationCode, CodeVerdict, PREFIX as CODE_PREFIX, redeem,
};
use gatepost_protocol::discovery::{TOKEN_PATH, endpoint_url};
use gatepost_protocol::keys::jwt::UnverifiedJws;
use gatepost_protocol::registration::client::METHODS;
use gatepost_protocol::registration::problem::{Finding, Verdict};
use gatepost_protocol::token::access_token::AccessToken;
use gatepost_protocol::token::audience::{
    granted_scope, narrow, narrow_granted, with_registered_names,
};
use gatepost_protocol::token::client_authentication::{ClientVerdict, PresentedClient};
use gatepost_protocol::token::refresh_token::{PresentedRefresh, RefreshVerdict, judge};
use gatepost_protocol::token::token_request::{
    AuthorizationCodeRequest, RefreshTokenRequest, SINGLE_PARAMETERS, TokenRequest,
};
use gatepost_protocol::words::client::{Client, GrantType};
use gatepost_protocol::words::identifiers::{ClientId, KeyThumbprint, Subject, in_text};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::{Reason, TokenError};
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::secret::SecretText;
use gatepost_registrar::explanation::{Explained, near, refused, told};
use gatepost_server::app::{App, id_tokens};
use gatepost_server::endpoints::token::grants::refresh_token::refresh_handle;
use gatepost_server::endpoints::token::introspection::{PresentedToken, open};
use gatepost_store::{StoreError, grants, users};

/// Headers, if any, and the form as the last line.
struct SentRequest<'a> {
    headers: Vec<(&'a str, &'a str)>,
    form: &'a str,
}

impl<'a> SentRequest<'a> {
    fn read(text: &'a str) -> SentRequest<'a> {
        let lines = text.lines().map(str::trim);
        let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let form = lines.pop().unwrap_or_default();
        let mut headers = Vec::new();
        for line in lines {
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name, value.trim()));
            }
        }
        SentRequest { headers, form }
    }

    fn all(&self, name: &str) -> Vec<&'a str> {
        let mut values = Vec::new();
        for (other, value) in &self.headers {
            if other.eq_ignore_ascii_case(name) {
                values.push(*value);
            }
        }
        values
    }
}

/// A request as it is sent.
pub(super) fn request(app: &App, text: &str) -> Judged {
    let sent = SentRequest::read(text);
    let parameters = Parameters::parse(sent.form.as_bytes())?;
    parameters.refuse_repeated(SINGLE_PARAMETERS)?;
    let presented = PresentedClient::from_request(&sent.all("authorization"), &parameters)
        .map_err(|failure| failure.error.reason)?;
    let raw = presented.retry();
    let mut reason = Reason::UnknownClientAtToken;
    let mut proven = None;
    let mut registered = Map::new();
    for reading in raw.iter().chain([&presented]) {
        let found = app.registry.client(&reading.client_id)?;
        let (client, secrets) = match &found {
            Some(found) => (Some(&found.client), &found.secrets[..]),
            None => (None, &[][..]),
        };
        let said = match reading.judge(client, secrets, app.now()) {
            ClientVerdict::Refused(failure) => Err(failure.error.reason),
            ClientVerdict::Authenticated => Ok(Finding::fine(format!(
                "the client {} is proven",
                in_text(reading.client_id.as_str())
            ))),
            ClientVerdict::ByAssertion(jws) => client_assertion::judge(app, found.as_ref(), &jws),
        };
        registered.extend(client.map(about_client).into_iter().flatten());
        match said {
            Ok(said) => proven = found.map(|found| (found, said)),
            Err(refused) => reason = refused,
        }
    }
    let Some((client, said)) = proven else {
        // What nobody has for a name may be a secret in the wrong field.
        let named = match reason == Reason::UnknownClientAtToken {
            true => format!("no such client{}", near(app, &presented.client_id)?),
            false => in_text(presented.client_id.as_str()),
        };
        return Ok((refused(reason, Some(&named)).0, registered));
    };
    if said.verdict == Verdict::Broken {
        return Ok((vec![said], registered));
    }
    let address = endpoint_url(app.issuer(), TOKEN_PATH);
    let mut examined = proof::examine(app, &sent.all("dpop"), &address, Some(&client.client));
    let sender = ProvenSender {
        client: &client.client,
        key: examined.key,
    };
    let (findings, mut about) = grant(app, sender, &parameters).or_else(explain_refusal)?;
    about.append(&mut registered);
    about.append(&mut examined.about);
    let findings = [said].into_iter().chain(examined.findings).chain(findings);
    Ok((findings.collect(), about))
}

fn about_client(client: &Client) -> [(String, Value); 3] {
    let method = METHODS
        .iter()
        .find(|(_, method)| *method == client.authentication);
    let method = match method {
        Some((name, _)) => name,
        None => "client_secret_basic or client_secret_post",
    };
    let grants: Vec<&str> = client.grant_types.iter().map(GrantType::as_str).collect();
    let told = [
        ("token_endpoint_auth_method", method),
        ("grant_types", &grants.join(" ")),
        ("scope", &client.scope.to_string()),
    ];
    told.map(|(name, value)| (format!("registered.{name}"), json!(value)))
}

/// Who sent a request, with the key of its proof.
#[derive(Clone, Copy)]
pub(super) struct ProvenSender<'a> {
    pub client: &'a Client,
    pub key: Option<KeyThumbprint>,
}

/// What it asks for, as far as that can be judged without doing it.
pub(super) fn grant(app: &App, sender: ProvenSender<'_>, parameters: &Parameters) -> Judged {
    let client = sender.client;
    let snapshot = app.registry.snapshot();
    let named = with_registered_names(parameters, &snapshot.catalogue);
    match TokenRequest::from_form(&named, client, |name| app.has_grant(name), app.now())? {
        TokenRequest::AuthorizationCode(request) => {
            code(app, &request.code, Some((sender, &request)))
        }
        TokenRequest::RefreshToken(request) => refresh(app, &request, Some(sender)),
        TokenRequest::ClientCredentials(request) => {
            let catalogue = &snapshot.catalogue;
            let scope = granted_scope(request.scope.as_ref(), client, catalogue)?;
            let narrowed = narrow(&scope, &request.resources, &[], catalogue, app.issuer())?;
            Ok(only(gets(&narrowed.scope)))
        }
        TokenRequest::Password(_) => Ok(left_out("whether user name and password are right")),
        TokenRequest::DeviceCode(_) => Ok(left_out("whether the person has decided")),
        TokenRequest::Extension(request) => extension::request(app, sender, &request),
    }
}

pub(super) fn broken(error: &TokenError) -> Finding {
    Finding::broken(told(error.reason, error.detail.as_deref()))
}

fn gets(scope: &ScopeSet) -> Finding {
    Finding::fine(format!("it gets the scope {scope}"))
}

fn left_out(what: &str) -> Explained {
    only(Finding::weak(format!(
        "the request is well-formed; {what} is not judged here"
    )))
}

/// Any token of ours, or an authorization code.
pub(super) fn token(app: &App, text: &SecretText) -> Judged {
    if text.expose().starts_with(CODE_PREFIX) {
        return code(app, text, None);
    }
    match open(app, text) {
        Some(PresentedToken::Access(token)) => access(app, &token),
        Some(PresentedToken::Refresh(_)) => {
            let request = RefreshTokenRequest {
                refresh_token: text.clone(),
                scope: None,
                resources: Vec::new(),
            };
            refresh(app, &request, None)
        }
        None => unopened(app, text),
    }
}

/// A token that is none of ours to open, though we may have signed it.
fn unopened(app: &App, text: &SecretText) -> Judged {
    let snapshot = app.registry.snapshot();
    if let Some(claims) = id_tokens::claims(app, &snapshot, text) {
        return Ok(only(id_token(app, &claims)?));
    }
    let Some(jws) = UnverifiedJws::parse(text.expose()) else {
        let damaged = "it does not open: it is another installation's, or was damaged on the way";
        return Ok(only(Finding::broken(damaged)));
    };
    if proof::is_meant(&jws) {
        return Ok(proof::alone(app, text.expose()));
    }
    if extension::is_id_jag(&jws) {
        return extension::id_jag_alone(app, &jws, text.expose());
    }
    if snapshot.keys.verifies(&jws) {
        let neither = "we signed it, and it is neither an access token nor an ID token";
        return Ok(refused(Reason::InvalidIdTokenHint, Some(neither)));
    }
    Ok(only(Finding::broken(format!(
        "no key of ours signed this JWT: it is another issuer's, or was changed ({})",
        extension::named(&jws)
    ))))
}

/// An ID token: whether its client may still send it as a hint.
fn id_token(app: &App, claims: &Map<String, Value>) -> Result<Finding, StoreError> {
    let audience = claims
        .get("aud")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let reason = match app.registry.client(&ClientId::new(audience))? {
        None => Reason::UnknownClient,
        Some(client) if !client.client.enabled => Reason::DisabledClient,
        Some(client) => {
            let client = &client.client;
            let gets_id_jags =
                app.config.id_jag && client.is_confidential() && !client.id_jag.is_empty();
            let use_of_it = match gets_id_jags {
                true => "it is good as an id_token_hint, and its client gets ID-JAGs by it",
                false => "it is good as an id_token_hint alone",
            };
            return Ok(Finding::weak(format!(
                "we signed it, and it is no access token: {use_of_it}"
            )));
        }
    };
    Ok(Finding::broken(told(reason, Some(audience))))
}

/// An access token: beside what it stands on, whether its client would still get one.
fn access(app: &App, token: &AccessToken) -> Judged {
    let (mut findings, about) = life(app, token, None)?;
    findings.extend(bound(token.confirmation));
    if let Some(user) = &token.user {
        findings.extend(closed(app, &token.client_id, &user.subject)?);
        let client = app.registry.client(&token.client_id)?;
        if client.is_some_and(|client| !client.client.takes(&user.acr)) {
            findings.push(Finding::broken(told(Reason::AcrBelowMinimum, None)));
        }
    }
    Ok((findings, about))
}

/// What a client's request for a code breaks.
fn redeemable(
    app: &App,
    code: &AuthorizationCode,
    sender: ProvenSender<'_>,
    request: &AuthorizationCodeRequest,
) -> Finding {
    let ProvenSender { client, key } = sender;
    let catalogue = &app.registry.snapshot().catalogue;
    match redeem(code, request, key, client, catalogue, app.now()) {
        CodeVerdict::Redeem => {}
        CodeVerdict::Burn(reason)
        | CodeVerdict::ReplayOnly(reason)
        | CodeVerdict::Reject(reason) => {
            return Finding::broken(told(reason, None));
        }
    }
    let grant = &code.grant;
    let narrowed = narrow_granted(
        &grant.scope,
        &request.resources,
        &grant.resources,
        catalogue,
        app.issuer(),
    );
    match narrowed {
        Ok(_) => {
            Finding::fine("client, redirect_uri, code_verifier and resource are those of the code")
        }
        Err(error) => broken(&error),
    }
}

/// Whether a code is spent, what it stands on, and what a request for it breaks.
fn code(
    app: &App,
    text: &SecretText,
    request: Option<(ProvenSender<'_>, &AuthorizationCodeRequest)>,
) -> Judged {
    let sealer = &app.vault.authorization_codes;
    let opened = sealer.open_bound(CODE_PREFIX, text.expose());
    let opened = opened.ok_or(Reason::UnknownCode)?;
    let code = AuthorizationCode {
        confirmation: opened.bound_to,
        ..opened.value
    };
    let grant = &code.grant;
    let mut findings = Vec::new();
    if let Some((sender, request)) = request {
        findings.push(redeemable(app, &code, sender, request));
    }
    findings.extend(bound(code.confirmation));
    findings.push(match grants::find(&app.store, grant.id, None)? {
        Some(_) => {
            let event = ended_by(
                app,
                "code_redeemed code_refused code_replayed",
                &by_word(&grant.id.to_text()),
            )?;
            Finding::broken(told(Reason::CodeReplayed, Some(&event)))
        }
        None if app.now() >= code.expires_at => Finding::broken(told(Reason::CodeExpired, None)),
        None => Finding::fine("it was not redeemed"),
    });
    findings.extend(closed(app, &grant.client_id, &grant.user.subject)?);
    let (stands, mut about) = life(app, &grant.as_access_token(), Some(grant.epochs))?;
    findings.extend(stands);
    about.insert(String::from("kind"), json!("authorization code"));
    about.insert(String::from("expires_at"), json!(time(code.expires_at)));
    Ok((findings, about))
}

fn refresh(app: &App, request: &RefreshTokenRequest, sender: Option<ProvenSender<'_>>) -> Judged {
    let unknown = |detail: &str| Ok(refused(Reason::UnknownRefreshToken, Some(detail)));
    let Some(handle) = refresh_handle(app, &request.refresh_token) else {
        return unknown("its seal is not ours");
    };
    let Some(grant) = grants::find(&app.store, handle.grant, None)? else {
        return unknown("its grant is gone");
    };
    let Some(client) = app.registry.client(&grant.client_id)? else {
        return unknown("its client is gone");
    };
    if sender.is_some_and(|sender| sender.client.client_id != grant.client_id) {
        return unknown(&format!(
            "it is one of {}",
            in_text(grant.client_id.as_str())
        ));
    }
    let snapshot = app.registry.snapshot();
    let client = &client.client;
    // A token that is shown alone is judged as if its key were proved.
    let key = sender.map_or(grant.confirmation, |sender| sender.key);
    let presented = PresentedRefresh {
        handle,
        request,
        key,
    };
    let judged = match judge(
        &grant,
        presented,
        client,
        &snapshot.catalogue,
        app.issuer(),
        app.now(),
    ) {
        RefreshVerdict::Refresh(narrowed) => gets(&narrowed.scope),
        RefreshVerdict::Refuse(error) => broken(&error),
        RefreshVerdict::OldToken(_) => {
            let last = time(grant.last_used_at);
            let window = client.lifetimes.refresh_token_retry_window.as_secs();
            let rule =
                "a lost answer is given once more for so many seconds, then it ends the grant";
            Finding::broken(format!(
                "there is a newer one, since {last} (refresh_token_retry_window {window}: {rule})"
            ))
        }
    };
    let (stands, mut about) = life(app, &grant.as_access_token(), None)?;
    about.insert(String::from("kind"), json!("refresh token"));
    about.insert(
        String::from("last_used_at"),
        json!(time(grant.last_used_at)),
    );
    let closed = closed(app, &grant.client_id, &grant.user.subject)?;
    let key = grant.confirmation.filter(|_| !client.is_confidential());
    Ok((
        [judged]
            .into_iter()
            .chain(bound(key))
            .chain(closed)
            .chain(stands)
            .collect(),
        about,
    ))
}

/// What a thief lacks.
fn bound(key: Option<KeyThumbprint>) -> Option<Finding> {
    let key = key?.to_text();
    Some(Finding::fine(format!(
        "it is bound to the key {key}: it needs a proof of that key (DPoP)"
    )))
}

/// Tokens are for those to whom the client is open now.
fn closed(app: &App, client_id: &ClientId, sub: &Subject) -> Result<Option<Finding>, StoreError> {
    let client = app.registry.client(client_id)?;
    let user = users::find(&app.store, sub)?;
    if let Some(client) = client
        && let Some(user) = user
        && !client.client.is_open_to(user.claims.get("role"))
    {
        return Ok(Some(Finding::broken(told(Reason::NotOpenToUser, None))));
    }
    Ok(None)
}
