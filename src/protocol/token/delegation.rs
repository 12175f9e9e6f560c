//! What an exchanged token says beside the usual (RFC 8693 §4.1): who acts, and from which tokens
//! it was made. It ends when any of those ends.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access_token::{AccessToken, Jti};
use super::audience::Narrowed;
use super::claims::present;
use crate::words::identifiers::{ClientId, Subject};
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::session::SignIn;

/// The most actors in a token, and so the most exchanges in a row.
pub const DEEPEST: usize = 4;

/// Who acts for the user, and the tokens that this one was made from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// The present actor first, then the ones before; at most [`DEEPEST`].
    pub actors: Vec<Actor>,
    /// The oldest first; never empty.
    pub origins: Vec<TokenOrigin>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Actor {
    /// A user: `{"sub": ..}`.
    User(Subject),
    /// A client: `{"sub": .., "client_id": ..}`, both the client's name.
    Client(ClientId),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenOrigin {
    pub jti: Jti,
    pub client_id: ClientId,
    pub expires_at: Instant,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Exchanged {
    pub user: SignIn,
    pub narrowed: Narrowed,
    pub delegation: Delegation,
    /// Claims that an extension grant gave to the subject token.
    pub claims: JsonObject,
    pub ends_at: Instant,
}

impl Actor {
    /// The JSON members of the actor. `within` is the actor before.
    pub fn to_json(&self, within: Option<JsonObject>) -> JsonObject {
        present(match self {
            Actor::User(subject) => json!({ "sub": subject, "act": within }),
            Actor::Client(client_id) => {
                json!({ "sub": client_id, "client_id": client_id, "act": within })
            }
        })
    }

    fn from_json(members: &JsonObject) -> Option<Actor> {
        match members.get("client_id") {
            Some(client_id) => Some(Actor::Client(ClientId::new(client_id.as_str()?))),
            None => Some(Actor::User(Subject::new(members.text("sub")?))),
        }
    }
}

impl Delegation {
    /// `act`: the present actor, with the one before inside it, and so on (RFC 8693 §4.1).
    pub fn act(&self) -> Value {
        let mut act = None;
        for actor in self.actors.iter().rev() {
            act = Some(actor.to_json(act));
        }
        act.unwrap_or_default().into()
    }

    /// `exchanged_from`: the tokens that this one was made from. A later look-up of this token
    /// checks each.
    pub fn exchanged_from(&self) -> Value {
        self.origins.iter().map(TokenOrigin::to_json).collect()
    }

    /// Reads both claims; `None` unless they are as Gatepost writes them.
    pub fn from_claims(act: &Value, exchanged_from: &Value) -> Option<Delegation> {
        let mut actors = Vec::new();
        let mut present = Some(act);
        while let Some(actor) = present {
            let members = actor.as_object().filter(|_| actors.len() < DEEPEST)?;
            actors.push(Actor::from_json(members)?);
            present = members.get("act");
        }
        let origins = exchanged_from
            .as_array()?
            .iter()
            .map(TokenOrigin::from_json)
            .collect::<Option<Vec<_>>>()?;
        let sound = (1..=DEEPEST).contains(&origins.len());
        sound.then_some(Delegation { actors, origins })
    }

    /// The tokens that this one was made from, with the values that decide whether each stands.
    /// Their other values are those of `token`.
    pub fn origins_of(&self, token: &AccessToken) -> Vec<AccessToken> {
        let mut tokens = Vec::new();
        for (index, origin) in self.origins.iter().enumerate() {
            let before: Vec<TokenOrigin> = self.origins.iter().take(index).cloned().collect();
            let delegation = Delegation {
                actors: self.actors.clone(),
                origins: before,
            };
            tokens.push(AccessToken {
                jti: origin.jti,
                client_id: origin.client_id.clone(),
                expires_at: origin.expires_at,
                delegation: (index > 0).then_some(delegation),
                ..token.clone()
            });
        }
        tokens
    }
}

impl TokenOrigin {
    pub fn of(token: &AccessToken) -> TokenOrigin {
        TokenOrigin {
            jti: token.jti,
            client_id: token.client_id.clone(),
            expires_at: token.expires_at,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "jti": self.jti.to_text(),
            "client_id": self.client_id,
            "exp": self.expires_at.seconds()
        })
    }

    fn from_json(value: &Value) -> Option<TokenOrigin> {
        Some(TokenOrigin {
            jti: Jti::from_text(value.text("jti")?)?,
            client_id: ClientId::new(value.text("client_id")?),
            expires_at: Instant::from_seconds(value.get("exp")?.as_i64()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::samples;

    pub(crate) fn delegation() -> Delegation {
        let token = samples::access_token();
        let second = TokenOrigin {
            client_id: ClientId::new("gateway"),
            ..TokenOrigin::of(&token)
        };
        Delegation {
            actors: vec![
                Actor::Client(ClientId::new("orders")),
                Actor::User(Subject::new("bob")),
            ],
            origins: vec![TokenOrigin::of(&token), second],
        }
    }

    #[test]
    fn what_was_written_reads_back_and_nothing_deeper_does() {
        let delegation = delegation();
        assert_eq!(
            Delegation::from_claims(&delegation.act(), &delegation.exchanged_from()),
            Some(delegation.clone())
        );
        let deep = Delegation {
            actors: vec![Actor::User(Subject::new("x")); 5],
            ..delegation.clone()
        };
        let long = Delegation {
            origins: vec![delegation.origins[0].clone(); 5],
            ..delegation.clone()
        };
        let none = Delegation {
            origins: Vec::new(),
            ..delegation
        };
        for broken in [deep, long, none] {
            assert_eq!(
                Delegation::from_claims(&broken.act(), &broken.exchanged_from()),
                None,
                "{broken:?}"
            );
        }
        for act in [
            json!("x"),
            json!({}),
            json!({"sub": 1}),
            json!({"sub": "a", "act": 1}),
        ] {
            assert_eq!(
                Delegation::from_claims(&act, &self::delegation().exchanged_from()),
                None,
                "{act}"
            );
        }
    }

    #[test]
    fn the_first_origin_is_a_token_of_its_own_and_each_later_one_stands_on_those_before() {
        let token = AccessToken {
            delegation: Some(delegation()),
            ..samples::access_token()
        };
        let mut delegated = delegation();
        let second = &mut delegated.origins[1];
        second.jti.random = [3; 12];
        second.expires_at = samples::NOW;
        let origins = delegated.origins_of(&token);
        assert_eq!(origins[0], samples::access_token());
        assert_eq!(origins[1].jti, delegated.origins[1].jti);
        assert_eq!(origins[1].expires_at, samples::NOW);
        assert_eq!(origins[1].client_id, ClientId::new("gateway"));
        assert_eq!(
            origins[1].delegation.as_ref().unwrap().origins,
            delegation().origins[..1]
        );
    }
}
