//! The judgements that every world asks. They are the code's own functions; where the test shows
//! that it can fail, one of them is bent.

use gatepost::protocol::authorize::authorization_code::{
    self, AuthorizationCode, CodeVerdict, redirect_uri_hash,
};
use gatepost::protocol::authorize::pkce::{CodeChallenge, CodeChallengeMethod};
use gatepost::protocol::token::access_token::AccessToken;
use gatepost::protocol::token::grant::Grant;
use gatepost::protocol::token::liveness::{self, LivenessFacts};
use gatepost::protocol::token::refresh_token::{
    self, RefreshHandle, RefreshVerdict, Within, judge, within,
};
use gatepost::protocol::token::token_request::{
    AuthorizationCodeRequest, PresentedVerifier, RefreshTokenRequest,
};
use gatepost::protocol::words::catalogue::Catalogue;
use gatepost::protocol::words::client::Client;
use gatepost::protocol::words::epochs::SessionEpochs;
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::response_type::ResponseType;
use gatepost::protocol::words::scope::ScopeSet;
use gatepost::protocol::words::secret::SecretText;
use gatepost::protocol::words::session::{Session, User};

use crate::statements::sample::{CATALOGUE, CLIENT, NOW, OFFLINE, REDIRECT_URI, alice};
use crate::statements::{self, EpochsHeld, GrantRow, RedemptionAnswer, Sent};

type Liveness = fn(&AccessToken, Option<&Client>, Option<&User>, &LivenessFacts, Instant) -> bool;

/// What decides, and the statement that decides in Postgres alone.
#[derive(Clone, Copy)]
pub struct Judges {
    pub code: fn(
        &AuthorizationCode,
        &AuthorizationCodeRequest,
        &Client,
        &Catalogue,
        Instant,
    ) -> CodeVerdict,
    pub within:
        for<'a> fn(&RefreshTokenRequest, &'a Client, &'a Catalogue, Instant) -> Option<Within<'a>>,
    pub refresh: fn(
        &Grant,
        RefreshHandle,
        &RefreshTokenRequest,
        &Client,
        &Catalogue,
        &str,
        Instant,
    ) -> RefreshVerdict,
    pub refresh_token_stands: fn(
        &Grant,
        RefreshHandle,
        &Client,
        &Catalogue,
        Option<&User>,
        &LivenessFacts,
        Instant,
    ) -> bool,
    pub access_token_stands: Liveness,
    /// In the place of `{stands}` of the statements, which says the same: `what_ends_what` holds
    /// both to one table.
    pub stands: Liveness,
    pub session_stands: fn(&Session, Option<SessionEpochs>, Instant) -> bool,
    pub redeem: fn(&mut Option<GrantRow>, EpochsHeld, bool, Sent) -> RedemptionAnswer,
}

pub const OF_THE_CODE: Judges = Judges {
    code: authorization_code::redeem,
    within,
    refresh: judge,
    refresh_token_stands: refresh_token::stands,
    access_token_stands: liveness::stands,
    stands: liveness::stands,
    session_stands: Session::stands,
    redeem: statements::redeem,
};

/// Sent in the `code_verifier`; its challenge is `plain`.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// Whether the request of that verifier may redeem a code of that grant.
pub fn verdict_on_code(judges: &Judges, grant: Grant, is_right: bool, now: Instant) -> CodeVerdict {
    let challenge = CodeChallenge::parse(VERIFIER, CodeChallengeMethod::Plain).unwrap();
    let code = AuthorizationCode {
        grant,
        redirect_uri_hash: redirect_uri_hash(REDIRECT_URI),
        challenge: Some(challenge.digest()),
        nonce: None,
        response_type: ResponseType::CODE,
        expires_at: NOW.plus(CLIENT.lifetimes.authorization_code),
    };
    let code_verifier = match is_right {
        true => SecretText::new(VERIFIER),
        false => SecretText::new(VERIFIER.to_lowercase()),
    };
    let request = AuthorizationCodeRequest {
        code: SecretText::new("gpc_sealed"),
        redirect_uri: REDIRECT_URI.to_owned(),
        code_verifier: PresentedVerifier::Sent(code_verifier),
        resources: Vec::new(),
    };
    (judges.code)(&code, &request, &CLIENT, &CATALOGUE, now)
}

/// `names_scope`: the request names the scope that it has anyhow. Then `MOVE_ON` is not tried.
pub fn refresh_request(names_scope: bool) -> RefreshTokenRequest {
    RefreshTokenRequest {
        refresh_token: SecretText::new("gpr_tagged"),
        scope: names_scope.then(|| ScopeSet::parse(OFFLINE).unwrap()),
        resources: Vec::new(),
    }
}

pub fn verdict_on_refresh(
    judges: &Judges,
    grant: &Grant,
    generation: u8,
    names_scope: bool,
    now: Instant,
) -> RefreshVerdict {
    let handle = handle(grant, generation);
    let request = refresh_request(names_scope);
    let issuer = "https://op.example";
    (judges.refresh)(grant, handle, &request, &CLIENT, &CATALOGUE, issuer, now)
}

fn handle(grant: &Grant, generation: u8) -> RefreshHandle {
    RefreshHandle {
        grant: grant.id,
        generation: generation.into(),
    }
}

/// Introspection of a refresh token.
pub fn refresh_token_stands(
    judges: &Judges,
    grant: &Grant,
    generation: u8,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    let user = alice();
    (judges.refresh_token_stands)(
        grant,
        handle(grant, generation),
        &CLIENT,
        &CATALOGUE,
        Some(&user),
        facts,
        now,
    )
}

/// An access token of a grant, or what the grant stands on.
pub fn is_alive(stands: Liveness, grant: &Grant, facts: &LivenessFacts, now: Instant) -> bool {
    let user = alice();
    let token = grant.as_access_token();
    stands(&token, Some(&CLIENT), Some(&user), facts, now)
}
