//! The access token: one value, whether the client holds a JWT (RFC 9068) or a sealed reference.
//! UserInfo and introspection judge this value, never its form.
//!
//! A token is a user's exactly when it has `auth_time`. Every sign-in has one, a client never has
//! one, and no registration or user attribute can put it there. `sub` does not tell: in a client's
//! own token it names the client (RFC 9068 §2.2). Resource servers see a client's own token by
//! `sub` and `client_id` being equal, so `apply` refuses a user whose subject is the name of a
//! client.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::claims::is_reserved;
use super::delegation::Delegation;
use super::extension_grant::MAY_ACT;
use crate::words::claim_set::{ClaimSet, ClaimValue};
use crate::words::claim_shape::{listed, optional};
use crate::words::epochs::Epochs;
use crate::words::identifiers::{ClientId, GrantId, KeyThumbprint, Sid, Subject, TenantName};
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::named::named;
use crate::words::scope::ScopeSet;
use crate::words::session::SignIn;

/// How far the clock of an API may be behind ours. Most libraries allow for no difference, and
/// refuse a fresh token whose `nbf` is a second ahead.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(10);

/// The name of an access token: what it stands on, and 96 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Jti {
    pub stands_on: StandsOn,
    pub random: [u8; 12],
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum StandsOn {
    /// A grant. Its row has the epochs.
    Grant(GrantId),
    /// The token itself: a user's token without a grant, from the authorization response or by
    /// token exchange.
    User(Epochs),
    /// The token itself: a client's own token (`client_credentials`).
    Client { installation: i64, client: i64 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessToken {
    pub jti: Jti,
    pub client_id: ClientId,
    /// The user; `None` for a client's own token.
    pub user: Option<SignIn>,
    pub scope: ScopeSet,
    pub audience: Vec<String>,
    /// `userinfo_claims`: the claims that the `claims` parameter asked for at UserInfo.
    pub userinfo_claims: Vec<String>,
    /// Claims that an extension grant gave, after they were judged. `grant_claims` lists their
    /// names.
    #[serde(with = "json_text")]
    pub claims: JsonObject,
    /// `act` and `exchanged_from` of a token that came by token exchange (RFC 8693).
    pub delegation: Option<Delegation>,
    pub issued_at: Instant,
    pub expires_at: Instant,
    /// `cnf`: the key that whoever uses the token must prove to hold (RFC 9449 §6). A reference has
    /// it beside the token.
    #[serde(skip)]
    pub confirmation: Option<KeyThumbprint>,
}

named! {
    /// `GATEPOST_SCOPE_CLAIM`
    pub enum ScopeClaim {
        /// Space-separated (RFC 9068 §2.2.3).
        Text = "string",
        /// An array with one element for each scope, as resource servers of the IdentityServer
        /// family read it.
        Array = "array",
    }
}

/// What the JWT form of a token has beside the token's own values.
pub struct JwtForm<'a> {
    pub issuer: &'a str,
    pub scope_claim: ScopeClaim,
    /// `client_credentials_sub`: whether a client's own token names the client as `sub`.
    pub client_as_subject: bool,
}

/// When a token that is issued now expires: after its lifetime, and never later than its grant. In
/// whole seconds, as in `exp`.
pub fn expiry(now: Instant, lifetime: Duration, grant_expires_at: Option<Instant>) -> Instant {
    let natural = now.plus(lifetime);
    let end = grant_expires_at.map_or(natural, |grant_expires_at| natural.min(grant_expires_at));
    Instant::from_seconds(end.seconds())
}

impl AccessToken {
    pub fn is_expired(&self, now: Instant) -> bool {
        now >= self.expires_at
    }

    /// Whether a client has it for itself for more than a day: its revocation lies apart.
    pub fn is_lasting(&self) -> bool {
        let a_day = Duration::from_secs(86_400);
        self.user.is_none() && self.expires_at > self.issued_at.plus(a_day)
    }

    /// `token_type` (RFC 6750 §6.1.1, RFC 9449 §5)
    pub fn token_type(&self) -> &'static str {
        match self.confirmation {
            Some(_) => "DPoP",
            None => "Bearer",
        }
    }

    /// `expires_in`: the whole seconds that are left.
    pub fn expires_in(&self, now: Instant) -> u64 {
        u64::try_from(self.expires_at.seconds().saturating_sub(now.seconds())).unwrap_or(0)
    }

    /// The claims of its JWT form (RFC 9068 §2.2).
    pub fn jwt_claims<'a>(&'a self, form: JwtForm<'a>) -> ClaimSet<'a> {
        let mut claims = ClaimSet::default();
        claims
            .text("iss", form.issuer)
            .text("client_id", self.client_id.as_str())
            .set("iat", self.issued_at.seconds())
            .set("nbf", self.issued_at.minus(CLOCK_DIFFERENCE).seconds())
            .set("exp", self.expires_at.seconds())
            .set("jti", self.jti.to_text())
            .set(
                "cnf",
                self.confirmation.map(|key| json!({"jkt": key.to_text()})),
            );
        // A text for one audience and an array for several (RFC 7519 §4.1.3).
        match self.audience.as_slice() {
            [only] => claims.text("aud", only.as_str()),
            several => claims.add("aud", ClaimValue::Texts(several)),
        };
        match form.scope_claim {
            ScopeClaim::Text => claims.text("scope", self.scope.as_str()),
            ScopeClaim::Array => claims.set("scope", self.scope.iter().collect::<Value>()),
        };
        if let Some(user) = &self.user {
            user.add_claims(&mut claims);
            claims.text("sid", user.sid.as_ref().map(Sid::as_str));
        } else if form.client_as_subject {
            claims.text("sub", self.client_id.as_str());
        }
        if !self.userinfo_claims.is_empty() {
            let names = ClaimValue::Texts(&self.userinfo_claims);
            claims.add("userinfo_claims", names);
        }
        if let Some(delegation) = &self.delegation {
            claims
                .set("act", delegation.act())
                .set("exchanged_from", delegation.exchanged_from());
        }
        if !self.claims.is_empty() {
            let names = self.claims.keys().map(String::as_str);
            claims.set("grant_claims", names.collect::<Value>());
        }
        for (name, value) in &self.claims {
            claims.add(name, ClaimValue::Json(Cow::Borrowed(value)));
        }
        claims
    }

    /// Reads the claims of a JWT after its signature and `typ` were verified. `None` unless it is
    /// an access token of `issuer`.
    pub fn from_verified_claims(members: &JsonObject, issuer: &str) -> Option<AccessToken> {
        if members.text("iss")? != issuer {
            return None;
        }
        Some(AccessToken {
            jti: Jti::from_text(members.text("jti")?)?,
            client_id: ClientId::new(members.text("client_id")?),
            user: optional(members.get("auth_time"), |_| user_of(members)).ok()?,
            scope: scope_from_value(members.get("scope")?)?,
            audience: texts(members.get("aud")?)?,
            userinfo_claims: optional(members.get("userinfo_claims"), texts)
                .ok()?
                .unwrap_or_default(),
            claims: optional(members.get("grant_claims"), |names| named(members, names))
                .ok()?
                .unwrap_or_default(),
            delegation: optional(members.get("act"), |act| {
                Delegation::from_claims(act, members.get("exchanged_from")?)
            })
            .ok()?,
            issued_at: seconds(members.get("iat")?)?,
            expires_at: seconds(members.get("exp")?)?,
            confirmation: optional(members.get("cnf"), |cnf| {
                KeyThumbprint::from_text(cnf.text("jkt")?)
            })
            .ok()?,
        })
    }
}

fn user_of(members: &JsonObject) -> Option<SignIn> {
    Some(SignIn {
        subject: Subject::new(members.text("sub")?),
        sid: optional(members.get("sid"), text).ok()?.map(Sid::new),
        tenant: optional(members.get("tenant"), text)
            .ok()?
            .map(TenantName::new),
        identity_provider: None,
        auth_time: seconds(members.get("auth_time")?)?,
        amr: texts(members.get("amr")?)?,
        acr: text(members.get("acr")?)?,
    })
}

impl Jti {
    /// base64url of [`Jti::encode`].
    pub fn to_text(self) -> String {
        URL_SAFE_NO_PAD.encode(self.encode())
    }

    pub fn from_text(text: &str) -> Option<Jti> {
        Jti::decode(&URL_SAFE_NO_PAD.decode(text).ok()?)
    }

    /// With a grant: the grant's name and the random bytes, 32 bytes. Without a grant: the random
    /// bytes and the epochs, 44 bytes with a user and 28 without.
    pub fn encode(self) -> Vec<u8> {
        match self.stands_on {
            StandsOn::Grant(grant) => {
                [&grant.day.0.to_be_bytes()[..], &grant.random, &self.random].concat()
            }
            StandsOn::User(Epochs {
                installation,
                client,
                user,
                consent,
            }) => self.behind_random([installation, client, user, consent]),
            StandsOn::Client {
                installation,
                client,
            } => self.behind_random([installation, client]),
        }
    }

    fn behind_random<const N: usize>(&self, epochs: [i64; N]) -> Vec<u8> {
        [
            &self.random[..],
            epochs.map(i64::to_be_bytes).as_flattened(),
        ]
        .concat()
    }

    /// Reads [`Jti::encode`]. The length tells the three forms apart.
    pub fn decode(bytes: &[u8]) -> Option<Jti> {
        if bytes.len() == 32 {
            let (grant, random) = bytes.split_last_chunk()?;
            return Some(Jti {
                stands_on: StandsOn::Grant(GrantId::from_bytes(grant)?),
                random: *random,
            });
        }
        let (random, epochs) = bytes.split_first_chunk()?;
        let (epochs, rest) = epochs.as_chunks();
        let epochs: Vec<i64> = epochs.iter().copied().map(i64::from_be_bytes).collect();
        let stands_on = match (&epochs[..], rest) {
            (&[installation, client], []) => StandsOn::Client {
                installation,
                client,
            },
            (&[installation, client, user, consent], []) => StandsOn::User(Epochs {
                installation,
                client,
                user,
                consent,
            }),
            (_, _) => return None,
        };
        Some(Jti {
            stands_on,
            random: *random,
        })
    }
}

/// Reads both forms of `scope`, so that a change of the setting does not end tokens that are in
/// use.
fn scope_from_value(value: &Value) -> Option<ScopeSet> {
    match value.as_str() {
        Some(text) => ScopeSet::parse(text),
        None => texts(value).map(|names| names.iter().map(String::as_str).collect()),
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    listed(value).iter().map(text).collect()
}

fn named(members: &JsonObject, names: &Value) -> Option<JsonObject> {
    let claims = texts(names)?.into_iter().map(|name| {
        let is_own = is_reserved(&name) && name != MAY_ACT;
        let value = members.get(&name).filter(|_| !is_own)?.clone();
        Some((name, value))
    });
    claims.collect()
}

fn seconds(value: &Value) -> Option<Instant> {
    value.as_i64().map(Instant::from_seconds)
}

/// Claims under a seal, as JSON text. The sealed encoding does not say which type comes next, so it
/// cannot read a JSON value.
pub(crate) mod json_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use serde_json::Value;

    use crate::words::json::JsonObject;

    pub fn serialize<S: Serializer>(claims: &JsonObject, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&Value::Object(claims.clone()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<JsonObject, D::Error> {
        serde_json::from_str(<&str>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
