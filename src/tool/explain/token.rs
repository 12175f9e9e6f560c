//! Which rule of the token endpoint a request breaks, and what is wrong with a token.

use super::client_assertion;
use super::extension;
use super::proof;
use super::standing::{by_word, ended_by, life};
use super::{Judged, explain_refusal, refusal};
use crate::output::time;
use gatepost_protocol::authorize::authorization_code::{
    AuthorizationCode, CodeVerdict, PREFIX as CODE_PREFIX, redeem,
};
use gatepost_protocol::discovery::{TOKEN_PATH, endpoint_url};
use gatepost_protocol::keys::jwt::UnverifiedJws;
use gatepost_protocol::registration::client::METHODS;
use gatepost_protocol::token::access_token::AccessToken;
use gatepost_protocol::token::audience::with_registered_names;
use gatepost_protocol::token::client_authentication::PresentedClient;
use gatepost_protocol::token::refresh_token::{PresentedRefresh, RefreshVerdict, ends_at, judge};
use gatepost_protocol::token::token_request::{
    AuthorizationCodeRequest, RefreshTokenRequest, SINGLE_PARAMETERS, TokenRequest,
};
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::{Client, GrantType};
use gatepost_protocol::words::identifiers::{ClientId, KeyThumbprint, Subject};
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::sender::Sender;
use gatepost_registrar::explanation::{Explained, broken, near, refused};
use gatepost_registration::finding::{Finding, Verdict};
use gatepost_registration::{broken, fine, weak};
use gatepost_server::app::failure::Stopped;
use gatepost_server::app::{App, id_tokens};
use gatepost_server::endpoints::token::client_authentication::{RecognisedClient, recognise};
use gatepost_server::endpoints::token::grants::authorization_code::opened;
use gatepost_server::endpoints::token::grants::client_credentials;
use gatepost_server::endpoints::token::grants::id_jag::is_given_to;
use gatepost_server::endpoints::token::grants::refresh_token::refresh_handle;
use gatepost_server::endpoints::token::introspection::{PresentedToken, open};
use gatepost_server::http::Headers;
use gatepost_store::{Result, grants, tokens, users};

/// A request as it is sent: headers, if any, and the form as the last line.
pub fn request(app: &App, text: &str) -> Judged {
    let (headers, form) = text.rsplit_once('\n').unwrap_or(("", text));
    let fields = headers.lines().filter_map(|line| line.split_once(':'));
    let headers = Headers::of(fields.map(|(name, value)| (name.trim_start(), value.trim())));
    let authorization: Vec<&str> = headers.all("authorization").collect();
    let proofs: Vec<&str> = headers.all("dpop").collect();
    let parameters = Parameters::parse(form.trim().as_bytes())?;
    parameters.refuse_repeated(SINGLE_PARAMETERS)?;
    let presented = PresentedClient::from_request(&authorization, &parameters)
        .map_err(|failure| failure.error.reason)?;
    let raw = presented.retry();
    let mut recognised = recognise(app, &presented, app.now());
    if let (Err(Stopped::Refused(_)), Some(raw)) = (&recognised, &raw) {
        match recognise(app, raw, app.now()) {
            Err(Stopped::Refused(_)) => {}
            by_other_reading => recognised = by_other_reading,
        }
    }
    let RecognisedClient {
        client,
        by_assertion,
    } = match recognised {
        Ok(recognised) => recognised,
        Err(Stopped::Refused(failure)) => {
            return unrecognised(app, &presented, raw.as_ref(), failure.error.reason);
        }
        Err(Stopped::Failed(failure)) => return Err(failure),
    };
    let client = &client.client;
    let said = match &by_assertion {
        Some(assertion) => client_assertion::judge(app, assertion),
        None => fine!("the client {} is proven", client.client_id.in_text()),
    };
    let mut explained = about_client(client);
    let is_broken = said.verdict == Verdict::Broken;
    explained.findings.push(said);
    if is_broken {
        return Ok(explained);
    }
    let address = endpoint_url(app.issuer(), TOKEN_PATH);
    let examined = proof::examine(app, &proofs, Some(&address), Some(client));
    let snapshot = app.registry.snapshot();
    let sender = as_sender(app, client, &snapshot.catalogue, examined.key);
    explained.extend(examined.explained);
    explained.extend(grant(app, sender, &parameters).or_else(explain_refusal)?);
    Ok(explained)
}

/// Neither reading of what the client presents is right.
fn unrecognised(
    app: &App,
    presented: &PresentedClient,
    raw: Option<&PresentedClient>,
    reason: Reason,
) -> Judged {
    // What nobody has for a name may be a secret in the wrong field.
    let named = if reason == Reason::UnknownClientAtToken {
        format!("no such client{}", near(app, &presented.client_id)?)
    } else {
        presented.client_id.in_text()
    };
    let mut explained = refused(reason, Some(&named));
    for reading in raw.into_iter().chain([presented]) {
        if let Some(found) = app.registry.client(&reading.client_id)? {
            explained.extend(about_client(&found.client));
        }
    }
    Ok(explained)
}

fn about_client(client: &Client) -> Explained {
    let method = METHODS
        .iter()
        .find(|(_, method)| *method == client.authentication)
        .map_or("client_secret_basic or client_secret_post", |(name, _)| {
            name
        });
    let grants = client.grant_types.iter().map(GrantType::as_str);
    let mut about = Explained::default();
    about.tell("registered.token_endpoint_auth_method", method);
    about.tell("registered.grant_types", joined(" ", grants));
    about.tell("registered.scope", client.scope.to_string());
    about
}

/// A client that sends a request now, with the key of its proof.
pub fn as_sender<'a>(
    app: &'a App,
    client: &'a Client,
    catalogue: &'a Catalogue,
    key: Option<KeyThumbprint>,
) -> Sender<'a> {
    Sender {
        client,
        catalogue,
        issuer: app.issuer(),
        key,
        now: app.now(),
    }
}

/// What it asks for, as far as that can be judged without doing it.
pub fn grant(app: &App, sender: Sender<'_>, parameters: &Parameters) -> Judged {
    let named = with_registered_names(parameters, sender.catalogue);
    let has_grant = |name: &str| app.has_grant(name);
    match TokenRequest::from_form(&named, sender.client, has_grant, sender.now)? {
        TokenRequest::AuthorizationCode(request) => {
            let code = opened(app, &request.code).ok_or(Reason::UnknownCode)?;
            let mut explained = code_alone(app, &code)?;
            let judged = redeemable(&code, sender, &request);
            explained.findings.insert(0, judged);
            Ok(explained)
        }
        TokenRequest::RefreshToken(request) => refresh(app, &request, Some(sender)),
        TokenRequest::ClientCredentials(request) => {
            let given = client_credentials::judge(&request, sender)?;
            Ok(gets(&given.narrowed.scope).into())
        }
        TokenRequest::Password(_) => Ok(left_out("whether user name and password are right")),
        TokenRequest::DeviceCode(_) => Ok(left_out("whether the person has decided")),
        TokenRequest::Extension(request) => extension::request(app, sender, &request),
    }
}

fn gets(scope: &ScopeSet) -> Finding {
    fine!("it gets the scope {scope}")
}

fn left_out(what: &str) -> Explained {
    weak!("the request is well-formed; {what} is not judged here").into()
}

/// Any token of ours, or an authorization code.
pub fn token(app: &App, text: &SecretText) -> Judged {
    if text.expose().starts_with(CODE_PREFIX) {
        let code = opened(app, text).ok_or(Reason::UnknownCode)?;
        return code_alone(app, &code);
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
        return id_token(app, &claims);
    }
    let Some(jws) = UnverifiedJws::parse(text.expose()) else {
        let damaged = "it does not open: it is another installation's, or was damaged on the way";
        return Ok(Finding::broken(damaged).into());
    };
    if proof::is_meant(&jws) {
        return Ok(proof::alone(app, text.expose()));
    }
    if extension::is_id_jag(&jws) {
        return extension::id_jag_alone(app, &jws, text.expose());
    }
    if snapshot.keys.verifies(&jws) {
        let neither = "we signed it, and it is neither an access token nor an ID token";
        return Err(refusal(Reason::InvalidIdTokenHint, neither));
    }
    Ok(broken!(
        "no key of ours signed this JWT: it is another issuer's, or was changed ({})",
        extension::named(&jws)
    )
    .into())
}

/// An ID token: whether its client may still send it as a hint.
fn id_token(app: &App, claims: &JsonObject) -> Judged {
    let audience = claims.text("aud");
    let audience = audience.unwrap_or_default();
    let client = app.registry.client(&ClientId::new(audience))?;
    let client = client.ok_or_else(|| refusal(Reason::UnknownClient, audience))?;
    if !client.client.enabled {
        return Err(refusal(Reason::DisabledClient, audience));
    }
    let use_of_it = if is_given_to(app, &client.client) {
        "it is good as an id_token_hint, and its client gets ID-JAGs by it"
    } else {
        "it is good as an id_token_hint alone"
    };
    Ok(weak!("we signed it, and it is no access token: {use_of_it}").into())
}

/// An access token: beside what it stands on, whether its client would still get one.
fn access(app: &App, token: &AccessToken) -> Judged {
    let mut explained = life(app, token, None)?;
    explained.findings.extend(bound(token.confirmation));
    if let Some(user) = &token.user {
        let closed = closed(app, &token.client_id, &user.subject)?;
        explained.findings.extend(closed);
        let client = app.registry.client(&token.client_id)?;
        if client.is_some_and(|client| !client.client.takes(&user.acr)) {
            explained
                .findings
                .push(broken(Reason::AcrBelowMinimum, None));
        }
    }
    Ok(explained)
}

/// What a client's request for a code breaks.
fn redeemable(
    code: &AuthorizationCode,
    sender: Sender<'_>,
    request: &AuthorizationCodeRequest,
) -> Finding {
    match redeem(code, request, sender) {
        CodeVerdict::Redeem => {}
        CodeVerdict::Burn(reason)
        | CodeVerdict::ReplayOnly(reason)
        | CodeVerdict::Reject(reason) => return broken(reason, None),
    }
    match code
        .grant
        .narrowed(&request.resources, sender.catalogue, sender.issuer)
    {
        Ok(_) => {
            fine!("client, redirect_uri, code_verifier and resource are those of the code")
        }
        Err(error) => broken(error.reason, error.detail.as_deref()),
    }
}

/// Whether a code is spent, and what it stands on.
fn code_alone(app: &App, code: &AuthorizationCode) -> Judged {
    let grant = &code.grant;
    let mut explained = Explained::default();
    let findings = &mut explained.findings;
    findings.extend(bound(code.confirmation));
    findings.push(match grants::find(&app.store, grant.id, None)? {
        Some(_) => {
            let of_grant = by_word(&grant.id.to_text());
            let events = "code_redeemed code_refused code_replayed";
            broken(
                Reason::CodeReplayed,
                Some(&ended_by(app, events, &of_grant)?),
            )
        }
        None if app.now() >= code.expires_at => broken(Reason::CodeExpired, None),
        None => fine!("it was not redeemed"),
    });
    findings.extend(closed(app, &grant.client_id, &grant.user.subject)?);
    explained.extend(life(app, &grant.as_access_token(), Some(grant.epochs))?);
    explained.tell("kind", "authorization code");
    explained.tell("expires_at", time(code.expires_at));
    Ok(explained)
}

fn refresh(app: &App, request: &RefreshTokenRequest, sender: Option<Sender<'_>>) -> Judged {
    let unknown = |detail: &str| refusal(Reason::UnknownRefreshToken, detail);
    let handle = refresh_handle(app, &request.refresh_token);
    let handle = handle.ok_or_else(|| unknown("its seal is not ours"))?;
    let grant = grants::find(&app.store, handle.grant, None)?;
    let grant = grant.ok_or_else(|| unknown("its grant is gone"))?;
    let registered = app.registry.client(&grant.client_id)?;
    let registered = registered.ok_or_else(|| unknown("its client is gone"))?;
    let client = &registered.client;
    if sender.is_some_and(|sender| sender.client.client_id != grant.client_id) {
        let whose = grant.client_id.in_text();
        return Err(unknown(&format!("it is one of {whose}")));
    }
    let presented = PresentedRefresh { handle, request };
    let snapshot = app.registry.snapshot();
    // A token that is shown alone is judged as if its key were proved.
    let alone = as_sender(app, client, &snapshot.catalogue, grant.confirmation);
    let session = tokens::find(&app.store, &grant.as_access_token())?
        .facts
        .session;
    let judged = match judge(&grant, presented, sender.unwrap_or(alone)) {
        RefreshVerdict::Refresh(_) if app.now() >= ends_at(&grant, client, session) => {
            broken(Reason::RefreshTokenExpired, Some("its session has run out"))
        }
        RefreshVerdict::Refresh(narrowed) => gets(&narrowed.scope),
        RefreshVerdict::Refuse(error) => broken(error.reason, error.detail.as_deref()),
        RefreshVerdict::OldToken(_) => broken!(
            "there is a newer one, since {} (refresh_token_retry_window {}: a lost answer is given \
             once more for so many seconds, then it ends the grant)",
            time(grant.last_used_at),
            client.lifetimes.refresh_token_retry_window.as_secs()
        ),
    };
    let mut explained = Explained::from(judged);
    let key = grant.confirmation.filter(|_| !client.is_confidential());
    explained.findings.extend(bound(key));
    let closed = closed(app, &grant.client_id, &grant.user.subject)?;
    explained.findings.extend(closed);
    explained.extend(life(app, &grant.as_access_token(), None)?);
    explained.tell("kind", "refresh token");
    explained.tell("last_used_at", time(grant.last_used_at));
    Ok(explained)
}

/// What a thief lacks.
fn bound(key: Option<KeyThumbprint>) -> Option<Finding> {
    let key = key?.to_text();
    Some(fine!(
        "it is bound to the key {key}: it needs a proof of that key (DPoP)"
    ))
}

/// Tokens are for those to whom the client is open now.
fn closed(app: &App, client_id: &ClientId, sub: &Subject) -> Result<Option<Finding>> {
    let client = app.registry.client(client_id)?;
    let user = users::find(&app.store, sub)?;
    let is_closed = client.zip(user).is_some_and(|(client, user)| {
        let role = user.claims.get("role");
        !client.client.is_open_to(role)
    });
    Ok(is_closed.then(|| broken(Reason::NotOpenToUser, None)))
}
