//! Makes every token: authorization codes, access tokens in both forms, ID tokens, refresh tokens
//! and logout tokens.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::{GrantContext, invalid_grant};
use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::endpoints::token::grants::id_jag::is_given_to;
use crate::keys::random;
use crate::registry::Snapshot;
use gatepost_protocol::authorize::authorization_code::AuthorizationCode;
use gatepost_protocol::authorize::authorization_code::PREFIX as CODE_PREFIX;
use gatepost_protocol::authorize::authorize_response::{FrontChannelAccessToken, Issued};
use gatepost_protocol::keys::jwt::{self, ID_JAG_TYP, ID_TOKEN_TYP, LOGOUT_TOKEN_TYP};
use gatepost_protocol::logout::end_session;
use gatepost_protocol::token::access_token::{AccessToken, Jti, JwtForm, StandsOn, expiry};
use gatepost_protocol::token::audience::Narrowed;
use gatepost_protocol::token::claims::{self, ClaimNames, identity_claims};
use gatepost_protocol::token::delegation::Delegation;
use gatepost_protocol::token::grant::Grant;
use gatepost_protocol::token::id_jag::IdJagGrant;
use gatepost_protocol::token::id_token::{IdToken, TokenResponse};
use gatepost_protocol::token::refresh_token::{self, RefreshHandle};
use gatepost_protocol::words::client::{AccessTokenType, Client, SigningAlgorithm};
use gatepost_protocol::words::identifiers::{KeyThumbprint, Sid, Subject};
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::json::JsonObject;
use gatepost_protocol::words::parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::response_type::ResponseType;
use gatepost_protocol::words::scope::{OPENID, ScopeSet};
use gatepost_protocol::words::secret::SecretText;
use gatepost_protocol::words::session::{SignIn, User};
use gatepost_store::StoreError;

/// Reference access tokens start with this.
pub const ACCESS_TOKEN_PREFIX: &str = "gpa_";

/// What a token response is made of.
pub struct Issue<'a> {
    pub app: &'a App,
    pub snapshot: &'a Snapshot,
    pub client: &'a Client,
    pub scope: &'a ScopeSet,
    /// The user; `None` for a client's own token.
    pub user: Option<IssueUser<'a>>,
    pub stands_on: StandsOn,
    /// How long the access token lives, if nothing that it stands on ends before.
    pub lifetime: Duration,
    /// The key that the access token is bound to; `None` for one that goes through the browser.
    pub bound_to: Option<KeyThumbprint>,
    pub now: Instant,
}

/// The part of a response that speaks of a user.
#[derive(Clone, Copy)]
pub struct IssueUser<'a> {
    pub sign_in: &'a SignIn,
    /// The user's row, read by the statement that decided to issue.
    pub user: &'a User,
    /// The grant that the tokens stand on. Its generation is that of the refresh token to hand out.
    pub grant: Option<&'a Grant>,
    pub claims: &'a ClaimNames,
    /// `nonce` of the authorization request.
    pub nonce: Option<&'a str>,
}

#[derive(Default)]
pub struct Additions {
    /// Further claims of the access token. They were judged.
    pub claims: JsonObject,
    /// Who acts for the user, in an exchanged token.
    pub delegation: Option<Delegation>,
    pub ends_at: Option<Instant>,
    pub members: JsonObject,
}

/// Makes the tokens of a grant that was entered or refreshed just now. The ID token speaks of
/// `scope`.
pub fn of_grant(
    context: GrantContext<'_>,
    narrowed: Narrowed,
    grant: &Grant,
    user: &User,
    scope: &ScopeSet,
    nonce: Option<&str>,
) -> Result<TokenResponse> {
    let user = IssueUser {
        sign_in: &grant.user,
        user,
        grant: Some(grant),
        claims: &grant.claims,
        nonce,
    };
    let issue = Issue {
        user: Some(user),
        ..Issue::new(context, scope, StandsOn::Grant(grant.id))
    };
    let additions = Additions {
        claims: grant.token_claims.clone(),
        ..Additions::default()
    };
    issue.tokens(narrowed, additions)
}

impl<'a> Issue<'a> {
    /// Speaks of the client alone.
    pub fn of_client(context: GrantContext<'a>, scope: &'a ScopeSet) -> Issue<'a> {
        let stands_on = StandsOn::Client {
            installation: context.client.installation_epoch,
            client: context.client.epoch,
        };
        Issue::new(context, scope, stands_on)
    }

    /// Speaks of no user as yet.
    pub fn new(context: GrantContext<'a>, scope: &'a ScopeSet, stands_on: StandsOn) -> Issue<'a> {
        Issue {
            app: context.app,
            snapshot: context.snapshot,
            client: &context.client.client,
            scope,
            user: None,
            stands_on,
            lifetime: context.client.client.lifetimes.access_token,
            bound_to: context.key(),
            now: context.now,
        }
    }

    /// Makes the token response: an access token for the scopes and audience of `narrowed`, an ID
    /// token if `openid` was granted, and a refresh token if the grant has one.
    pub fn tokens(&self, narrowed: Narrowed, additions: Additions) -> Result<TokenResponse> {
        self.check_user()?;
        let further = additions.members.clone();
        let token = self.describe(narrowed, additions);
        let access_token = self.access_token(&token)?;
        let id_token = match self.user {
            Some(user) if self.scope.contains(OPENID) => {
                let beside = Beside {
                    access_token: Some(&access_token),
                    code: None,
                    // Claims of identity scopes wait for userinfo unless the registration wants
                    // them here.
                    with_scope_claims: self.client.always_include_user_claims_in_id_token,
                    requested: &user.claims.id_token,
                };
                Some(self.id_token(user, &beside)?)
            }
            _ => None,
        };
        let refresh_token = self.refresh_token();
        self.app.note_use(&self.client.client_id);
        Ok(TokenResponse {
            access_token,
            token_type: token.token_type(),
            expires_in: token.expires_in(self.now),
            id_token,
            refresh_token,
            scope: token.scope,
            further,
        })
    }

    /// Whether the client may have tokens of this user, by this sign-in.
    fn check_user(&self) -> Result {
        let Some(user) = self.user else {
            return Ok(());
        };
        if !self.client.is_open_to(user.user.claims.get("role")) {
            return Err(invalid_grant(Reason::NotOpenToUser));
        }
        if !self.client.takes(&user.sign_in.acr) {
            return Err(invalid_grant(Reason::AcrBelowMinimum));
        }
        Ok(())
    }

    /// The refresh token of the grant's generation. It is computed, and neither drawn nor stored,
    /// so the same generation always gives the same text.
    fn refresh_token(&self) -> Option<SecretText> {
        let grant = self.grant()?;
        if !refresh_token::is_issued(grant, self.client) {
            return None;
        }
        let handle = RefreshHandle {
            grant: grant.id,
            generation: grant.generation,
        };
        let tag = self.app.vault.refresh_tokens.tag(&[&handle.encode()]);
        Some(handle.to_text(&tag))
    }

    /// Makes what the browser carries to the client (OpenID Connect Core §3.2.2.5, §3.3.2.5):
    /// beside `code`, sealed already, an access token for what `narrowed` says, and an ID token
    /// where the response type names one.
    pub fn through_browser(
        &self,
        response_type: ResponseType,
        code: Option<SecretText>,
        narrowed: Option<Narrowed>,
    ) -> Result<Issued> {
        let access_token = match narrowed {
            Some(narrowed) => Some(self.front_channel_access_token(narrowed)?),
            None => None,
        };
        let id_token = match self.user {
            Some(user) if response_type.id_token => {
                let always = self.client.always_include_user_claims_in_id_token;
                let beside = Beside {
                    access_token: access_token.as_ref().map(|token| &token.access_token),
                    code: code.as_ref(),
                    with_scope_claims: always || response_type.is_id_token_alone(),
                    // With a code, requested claims wait for the token endpoint's ID token, so that
                    // fewer pass through the browser.
                    requested: if response_type.code {
                        &[]
                    } else {
                        &user.claims.id_token
                    },
                };
                Some(self.id_token(user, &beside)?)
            }
            _ => None,
        };
        self.app.note_use(&self.client.client_id);
        Ok(Issued {
            code,
            id_token,
            access_token,
        })
    }

    fn front_channel_access_token(&self, narrowed: Narrowed) -> Result<FrontChannelAccessToken> {
        let token = self.describe(narrowed, Additions::default());
        Ok(FrontChannelAccessToken {
            access_token: self.access_token(&token)?,
            expires_in: token.expires_in(self.now),
            scope: token.scope,
        })
    }

    fn grant(&self) -> Option<&'a Grant> {
        self.user.and_then(|user| user.grant)
    }

    fn jti(&self) -> Jti {
        Jti {
            stands_on: self.stands_on,
            random: random::bytes(),
        }
    }

    fn describe(&self, narrowed: Narrowed, additions: Additions) -> AccessToken {
        let grant_ends_at = self.grant().map(|grant| grant.expires_at);
        let user_ends_at = self.user.and_then(|user| user.user.valid_until);
        let latest = [grant_ends_at, user_ends_at, additions.ends_at];
        AccessToken {
            jti: self.jti(),
            client_id: self.client.client_id.clone(),
            user: self.user.map(|user| SignIn {
                identity_provider: None,
                ..user.sign_in.clone()
            }),
            scope: narrowed.scope,
            audience: narrowed.audience,
            userinfo_claims: self
                .user
                .map(|user| user.claims.userinfo.clone())
                .unwrap_or_default(),
            claims: additions.claims,
            delegation: additions.delegation,
            issued_at: self.now,
            expires_at: expiry(self.now, self.lifetime, latest.into_iter().flatten().min()),
            confirmation: self.bound_to,
        }
    }

    fn access_token(&self, token: &AccessToken) -> Result<SecretText> {
        let app = self.app;
        let client = self.client;
        match client.access_token_type {
            AccessTokenType::Reference => {
                let sealer = &app.vault.access_tokens;
                let sealed = sealer.seal_bound(ACCESS_TOKEN_PREFIX, token, token.confirmation);
                Ok(SecretText::new(sealed))
            }
            AccessTokenType::Jwt => {
                let mut claims = token.jwt_claims(JwtForm {
                    issuer: app.issuer(),
                    scope_claim: app.config.scope_claim,
                    client_as_subject: client.client_credentials_sub,
                });
                claims::add_for_access_token(
                    &mut claims,
                    self.user.map(|user| user.user),
                    client,
                    &token.scope,
                    &token.audience,
                    &self.snapshot.catalogue,
                );
                let alg = client.access_token_signed_response_alg;
                let typ = client.access_token_typ.as_str();
                sign(self.snapshot, self.now, alg, typ, &claims)
            }
        }
    }

    fn id_token(&self, user: IssueUser<'_>, beside: &Beside<'_>) -> Result<SecretText> {
        let client = self.client;
        let alg = client.id_token_signed_response_alg;
        let id_token = IdToken {
            issuer: self.app.issuer(),
            client_id: &client.client_id,
            user: user.sign_in,
            with_sid: client.gets_sid(),
            nonce: user.nonce,
            access_token: beside.access_token.map(SecretText::expose),
            code: beside.code.map(SecretText::expose),
            jti: self.id_token_jti(),
            issued_at: self.now,
            lifetime: user.user.at_most(client.lifetimes.id_token, self.now),
        };
        let releasing = if beside.with_scope_claims {
            self.scope
        } else {
            &ScopeSet::default()
        };
        let sources = identity_claims(
            releasing,
            beside.requested,
            &client.scope,
            &self.snapshot.catalogue,
        );
        let mut claims = id_token.claims(alg);
        claims::add_of_user(&mut claims, user.user, client, &sources);
        sign(self.snapshot, self.now, alg, ID_TOKEN_TYP, &claims)
    }

    /// What the ID token is exchanged by for an ID-JAG. One that comes through the browser stands
    /// on no grant, and has none: somebody may have seen it.
    fn id_token_jti(&self) -> Option<String> {
        let has_grant = matches!(self.stands_on, StandsOn::Grant(_));
        (has_grant && is_given_to(self.app, self.client)).then(|| self.jti().to_text())
    }
}

/// What is sent together with an ID token, and which claims it has.
struct Beside<'a> {
    access_token: Option<&'a SecretText>,
    code: Option<&'a SecretText>,
    /// Set where the client gets no access token (OpenID Connect Core §5.4), or is registered so.
    with_scope_claims: bool,
    requested: &'a [String],
}

fn sign(
    snapshot: &Snapshot,
    now: Instant,
    alg: SigningAlgorithm,
    typ: &str,
    claims: &impl Serialize,
) -> Result<SecretText> {
    let Some(key) = snapshot.keys.signing_key(alg, now) else {
        let problem = format!("there is no {} key to sign with", alg.as_str());
        return Err(Failure::Unavailable(StoreError::Unavailable(problem)));
    };
    let input = jwt::signing_input(alg, key.kid(), typ, claims);
    let signature = key.sign(input.as_bytes()).map_err(Failure::Internal)?;
    Ok(SecretText::new(jwt::assemble(input, &signature)))
}

/// Makes the token that tells a client that a session ended. It is signed as the client's ID tokens
/// are.
pub fn logout_token(
    app: &App,
    snapshot: &Snapshot,
    client: &Client,
    sub: &Subject,
    sid: &Sid,
) -> Result<SecretText> {
    let jti = random_jti();
    let now = app.now();
    let claims = end_session::claims(app.issuer(), &client.client_id, sub, sid, &jti, now);
    let alg = client.id_token_signed_response_alg;
    sign(snapshot, now, alg, LOGOUT_TOKEN_TYP, &claims)
}

/// Makes an ID-JAG. It is signed as the client's ID tokens are.
pub fn id_jag(context: GrantContext<'_>, granted: &IdJagGrant<'_>) -> Result<SecretText> {
    let now = context.now;
    let jti = random_jti();
    let claims = granted.claims(context.app.issuer(), &jti, context.key(), now);
    let alg = context.client.client.id_token_signed_response_alg;
    sign(context.snapshot, now, alg, ID_JAG_TYP, &claims)
}

fn random_jti() -> String {
    URL_SAFE_NO_PAD.encode(random::bytes::<16>())
}

/// Seals an authorization code. `None` when the text is longer than a code may be.
pub fn authorization_code(app: &App, code: &AuthorizationCode) -> Option<SecretText> {
    let sealer = &app.vault.authorization_codes;
    let sealed = sealer.seal_bound(CODE_PREFIX, code, code.confirmation);
    (sealed.len() <= parameters::AUTHORIZATION_CODE).then(|| SecretText::new(sealed))
}
