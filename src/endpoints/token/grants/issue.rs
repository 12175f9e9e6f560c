//! Where every token is made: authorization codes, access tokens in either form, ID tokens, logout
//! tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{GrantContext, invalid_grant};
use crate::app::App;
use crate::app::failure::Failure;
use crate::keys::random;
use crate::protocol::authorize::authorization_code::AuthorizationCode;
use crate::protocol::authorize::authorization_code::PREFIX as CODE_PREFIX;
use crate::protocol::authorize::authorize_response::{FrontChannelAccessToken, Issued};
use crate::protocol::keys::jwt::{self, ID_TOKEN_TYP, LOGOUT_TOKEN_TYP};
use crate::protocol::logout::end_session;
use crate::protocol::token::access_token::{AccessToken, Jti, JwtForm, StandsOn, expiry};
use crate::protocol::token::audience::Narrowed;
use crate::protocol::token::claims::{self, ClaimNames};
use crate::protocol::token::delegation::Delegation;
use crate::protocol::token::grant::Grant;
use crate::protocol::token::id_token::{IdToken, TokenResponse};
use crate::protocol::token::refresh_token::{self, RefreshHandle};
use crate::protocol::words::client::{AccessTokenType, Client, SigningAlgorithm};
use crate::protocol::words::identifiers::{Sid, Subject};
use crate::protocol::words::instant::Instant;
use crate::protocol::words::parameters;
use crate::protocol::words::reason::Reason;
use crate::protocol::words::response_type::ResponseType;
use crate::protocol::words::scope::{OPENID, ScopeSet};
use crate::protocol::words::secret::SecretText;
use crate::protocol::words::session::{SignIn, User};
use crate::registry::Snapshot;
use crate::store::StoreError;
use crate::store::users::UserRow;

/// Reference access tokens start with this.
pub const ACCESS_TOKEN_PREFIX: &str = "gpa_";

/// What a token response is made of.
#[derive(Clone, Copy, Debug)]
pub struct Issue<'a> {
    pub client: &'a Client,
    pub scope: &'a ScopeSet,
    /// The user; `None` for a client's own token.
    pub user: Option<IssueUser<'a>>,
    pub stands_on: StandsOn,
    pub now: Instant,
}

/// The part of a response that speaks of a user.
#[derive(Clone, Copy, Debug)]
pub struct IssueUser<'a> {
    pub sign_in: &'a SignIn,
    /// Their row, as current as the decision to issue.
    pub user: &'a User,
    /// The grant the tokens hang on: its generation is that of the refresh token to hand out.
    pub grant: Option<&'a Grant>,
    pub claims: &'a ClaimNames,
    /// `nonce` of the authorization request.
    pub nonce: Option<&'a str>,
}

#[derive(Clone, Debug, Default)]
pub struct Additions {
    /// Claims of the access token, judged.
    pub claims: Map<String, Value>,
    /// Who acts for the user, of an exchanged token.
    pub delegation: Option<Delegation>,
    pub ends_at: Option<Instant>,
    pub members: Map<String, Value>,
}

/// Makes the tokens of a grant that was begun or refreshed just now, for `scope` of it.
pub fn of_grant(
    context: GrantContext<'_>,
    snapshot: &Snapshot,
    narrowed: Narrowed,
    grant: &Grant,
    user: UserRow,
    scope: &ScopeSet,
    nonce: Option<&str>,
) -> Result<TokenResponse, Failure> {
    let user = &user.into_core();
    let user = IssueUser {
        sign_in: &grant.user,
        user,
        grant: Some(grant),
        claims: &grant.claims,
        nonce,
    };
    let client = &context.client.client;
    let stands_on = StandsOn::Grant(grant.id);
    let issue = Issue {
        client,
        scope,
        user: Some(user),
        stands_on,
        now: context.now,
    };
    let additions = Additions {
        claims: grant.token_claims.clone(),
        ..Additions::default()
    };
    tokens(context.app, snapshot, narrowed, &issue, additions)
}

/// Makes the answer of a grant: an access token for what `narrowed` says; an ID token when `openid`
/// was granted; a refresh token where one is due.
pub fn tokens(
    app: &App,
    snapshot: &Snapshot,
    narrowed: Narrowed,
    issue: &Issue<'_>,
    additions: Additions,
) -> Result<TokenResponse, Failure> {
    if issue
        .user
        .is_some_and(|user| !issue.client.is_open_to(user.user.claims.get("role")))
    {
        return Err(invalid_grant(Reason::NotOpenToUser));
    }
    if issue
        .user
        .is_some_and(|user| !issue.client.takes(&user.sign_in.acr))
    {
        return Err(invalid_grant(Reason::AcrBelowMinimum));
    }
    let further = additions.members.clone();
    let token = describe(issue, narrowed, additions);
    let access_token = access_token(app, snapshot, issue, &token)?;
    let id_token = match issue.user {
        Some(user) if issue.scope.contains(OPENID) => {
            let beside = Beside {
                access_token: Some(&access_token),
                code: None,
                // Claims of identity scopes wait for userinfo unless the registration wants them
                // here.
                with_scope_claims: issue.client.always_include_user_claims_in_id_token,
                requested: &user.claims.id_token,
            };
            Some(id_token(app, snapshot, issue, user, &beside)?)
        }
        Some(_) | None => None,
    };
    let expires_in = token.expires_in(issue.now);
    let grant = issue.user.and_then(|user| user.grant);
    let refresh_token = grant
        .filter(|grant| refresh_token::is_issued(&grant.scope, issue.client))
        .map(|grant| refresh_token(app, grant));
    Ok(TokenResponse {
        access_token,
        expires_in,
        id_token,
        refresh_token,
        scope: token.scope,
        further,
    })
}

/// Makes what the browser carries to the client (OpenID Connect Core §3.2.2.5, §3.3.2.5): beside
/// `code`, sealed already, an access token for what `narrowed` says, and an ID token where the
/// response type names one.
pub fn through_browser(
    app: &App,
    snapshot: &Snapshot,
    issue: &Issue<'_>,
    response_type: ResponseType,
    code: Option<SecretText>,
    narrowed: Option<Narrowed>,
) -> Result<Issued, Failure> {
    let access_token = match narrowed {
        Some(narrowed) => {
            let token = describe(issue, narrowed, Additions::default());
            let access_token = access_token(app, snapshot, issue, &token)?;
            Some(FrontChannelAccessToken {
                access_token,
                expires_in: token.expires_in(issue.now),
                scope: token.scope,
            })
        }
        None => None,
    };
    let id_token = match issue.user {
        Some(user) if response_type.id_token => {
            let always = issue.client.always_include_user_claims_in_id_token;
            let beside = Beside {
                access_token: access_token.as_ref().map(|token| &token.access_token),
                code: code.as_ref(),
                with_scope_claims: always || response_type.is_id_token_alone(),
                // With a code they wait for the token endpoint's ID token: less is said through the
                // browser.
                requested: if response_type.code {
                    &[]
                } else {
                    &user.claims.id_token
                },
            };
            Some(id_token(app, snapshot, issue, user, &beside)?)
        }
        Some(_) | None => None,
    };
    Ok(Issued {
        code,
        id_token,
        access_token,
    })
}

/// The same text whenever the same generation is handed out: nothing of it is stored or drawn.
fn refresh_token(app: &App, grant: &Grant) -> SecretText {
    let handle = RefreshHandle {
        grant: grant.id,
        generation: grant.generation,
    };
    handle.to_text(&app.vault.refresh_tokens.tag(&[&handle.encode()]))
}

fn describe(issue: &Issue<'_>, narrowed: Narrowed, additions: Additions) -> AccessToken {
    let grant = issue.user.and_then(|user| user.grant);
    let latest = [grant.map(|grant| grant.expires_at), additions.ends_at]
        .into_iter()
        .flatten()
        .min();
    AccessToken {
        jti: Jti {
            stands_on: issue.stands_on,
            random: random::bytes(),
        },
        client_id: issue.client.client_id.clone(),
        user: issue.user.map(|user| SignIn {
            identity_provider: None,
            ..user.sign_in.clone()
        }),
        scope: narrowed.scope,
        audience: narrowed.audience,
        userinfo_claims: issue
            .user
            .map(|user| user.claims.userinfo.clone())
            .unwrap_or_default(),
        claims: additions.claims,
        delegation: additions.delegation,
        issued_at: issue.now,
        expires_at: expiry(issue.now, issue.client.lifetimes.access_token, latest),
    }
}

fn access_token(
    app: &App,
    snapshot: &Snapshot,
    issue: &Issue<'_>,
    token: &AccessToken,
) -> Result<SecretText, Failure> {
    match issue.client.access_token_type {
        AccessTokenType::Reference => {
            let sealed = app
                .vault
                .access_tokens
                .seal_text(ACCESS_TOKEN_PREFIX, token);
            Ok(SecretText::new(sealed))
        }
        AccessTokenType::Jwt => {
            let claims = token.jwt_claims(JwtForm {
                issuer: app.issuer(),
                scope_claim: app.config.scope_claim,
                client_as_subject: issue.client.client_credentials_sub,
                further_claims: claims::for_access_token(
                    issue.user.map(|user| user.user),
                    issue.client,
                    &token.scope,
                    &token.audience,
                    &snapshot.catalogue,
                ),
            });
            let alg = issue.client.access_token_signed_response_alg;
            let typ = issue.client.access_token_typ.as_str();
            sign(snapshot, issue.now, alg, typ, &claims)
        }
    }
}

/// What an ID token travels with, and what it says of the user.
struct Beside<'a> {
    access_token: Option<&'a SecretText>,
    code: Option<&'a SecretText>,
    with_scope_claims: bool,
    requested: &'a [String],
}

fn id_token(
    app: &App,
    snapshot: &Snapshot,
    issue: &Issue<'_>,
    user: IssueUser<'_>,
    beside: &Beside<'_>,
) -> Result<SecretText, Failure> {
    let alg = issue.client.id_token_signed_response_alg;
    let claims = IdToken {
        issuer: app.issuer(),
        client_id: &issue.client.client_id,
        user: user.sign_in,
        nonce: user.nonce,
        access_token: beside.access_token.map(SecretText::expose),
        code: beside.code.map(SecretText::expose),
        user_claims: claims::for_id_token(
            user.user,
            issue.scope,
            beside.requested,
            &issue.client.scope,
            beside.with_scope_claims,
            &snapshot.catalogue,
        ),
        issued_at: issue.now,
        lifetime: issue.client.lifetimes.id_token,
    };
    let claims = claims.claims(alg);
    sign(snapshot, issue.now, alg, ID_TOKEN_TYP, &claims)
}

fn sign(
    snapshot: &Snapshot,
    now: Instant,
    alg: SigningAlgorithm,
    typ: &str,
    claims: &impl Serialize,
) -> Result<SecretText, Failure> {
    let key = snapshot.keys.signing_key(alg, now);
    let missing =
        || StoreError::Unavailable(format!("there is no {} key to sign with", alg.as_str()));
    let key = key.ok_or_else(|| Failure::Unavailable(missing()))?;
    let input = jwt::signing_input(alg, key.kid(), typ, claims);
    let signature = key.sign(input.as_bytes()).map_err(Failure::Internal)?;
    Ok(SecretText::new(jwt::assemble(input, &signature)))
}

/// Makes the token that tells a client of a session's end, signed as its ID tokens are.
pub fn logout_token(
    app: &App,
    snapshot: &Snapshot,
    client: &Client,
    sub: &Subject,
    sid: &Sid,
) -> Result<SecretText, Failure> {
    let jti = URL_SAFE_NO_PAD.encode(random::bytes::<16>());
    let now = app.now();
    let claims = end_session::claims(app.issuer(), &client.client_id, sub, sid, &jti, now);
    let alg = client.id_token_signed_response_alg;
    sign(snapshot, now, alg, LOGOUT_TOKEN_TYP, &claims)
}

/// Seals an authorization code. `None` when it would be longer than a code may be.
pub fn authorization_code(app: &App, code: &AuthorizationCode) -> Option<SecretText> {
    let sealed = app.vault.authorization_codes.seal_text(CODE_PREFIX, code);
    (sealed.len() <= parameters::AUTHORIZATION_CODE).then(|| SecretText::new(sealed))
}
