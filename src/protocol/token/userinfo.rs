//! UserInfo (OpenID Connect Core §5.3): who may ask, and what they read.

use serde_json::{Map, Value, json};

use super::access_token::AccessToken;
use super::claims;
use crate::protocol::words::bearer::BearerFailure;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::liveness::{self, LivenessFacts};
use crate::protocol::words::scope::{Catalogue, OPENID};
use crate::protocol::words::user::User;

/// Whether a token opens the UserInfo endpoint.
#[must_use]
#[derive(Clone, Debug, PartialEq)]
pub enum UserInfoVerdict<'a> {
    /// Answer with this user's claims.
    Answer(&'a User),
    /// Refuse.
    Refuse(BearerFailure),
}

/// Judges a token of ours: alive, of a user, with `openid`; for whichever audience it was made.
pub fn judge<'a>(
    token: &AccessToken,
    user: Option<&'a User>,
    facts: &LivenessFacts,
    now: Instant,
) -> UserInfoVerdict<'a> {
    if !liveness::stands(token, user, facts, now) {
        return UserInfoVerdict::Refuse(BearerFailure::InvalidToken);
    }
    match user {
        Some(user) if token.user.is_some() && token.scope.contains(OPENID) => UserInfoVerdict::Answer(user),
        Some(_) | None => UserInfoVerdict::Refuse(BearerFailure::InsufficientScope),
    }
}

/// The answer: `sub`, and the claims that the token's identity scopes and requested names release.
pub fn response(token: &AccessToken, user: &User, catalogue: &Catalogue) -> Map<String, Value> {
    let sources = claims::identity_claims(&token.scope, &token.userinfo_claims, catalogue);
    let mut members = claims::mapped(user, &sources);
    members.insert(String::from("sub"), json!(user.subject.as_str()));
    members
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::access_token::{Jti, StandsOn};
    use super::*;
    use crate::protocol::words::liveness::{GrantFacts, SessionFacts};
    use crate::protocol::words::samples::{self, EPOCHS, NOW, catalogue, scope};

    fn facts() -> LivenessFacts {
        let expires_at = NOW.plus(Duration::from_secs(86_400));
        LivenessFacts {
            token_revoked: false,
            grant: Some(GrantFacts { revoked: false, offline: false, expires_at, epochs: EPOCHS }),
            session: Some(SessionFacts { ended: false }),
            client_enabled: true,
            epochs: EPOCHS,
        }
    }

    fn refusal(token: &AccessToken, user: Option<&User>, facts: &LivenessFacts, now: Instant) -> Option<BearerFailure> {
        match judge(token, user, facts, now) {
            UserInfoVerdict::Answer(_) => None,
            UserInfoVerdict::Refuse(failure) => Some(failure),
        }
    }

    #[test]
    fn a_live_token_with_openid_is_answered_whatever_its_audience() {
        for audience in ["https://orders.example.com/", "https://op.example/resources", "stock"] {
            let token = AccessToken { audience: vec![audience.to_owned()], ..samples::access_token() };
            assert_eq!(refusal(&token, Some(&samples::alice()), &facts(), NOW), None, "{audience}");
        }
    }

    #[test]
    fn a_dead_token_is_invalid_even_without_openid() {
        let (token, user) = (samples::access_token(), samples::alice());
        let no_openid = AccessToken { scope: scope("stock"), ..token.clone() };
        let revoked = LivenessFacts { token_revoked: true, ..facts() };
        let disabled = User { enabled: false, ..samples::alice() };
        let invalid = Some(BearerFailure::InvalidToken);
        assert_eq!(refusal(&token, Some(&user), &facts(), token.expires_at), invalid);
        assert_eq!(refusal(&no_openid, Some(&user), &revoked, NOW), invalid);
        assert_eq!(refusal(&token, Some(&disabled), &facts(), NOW), invalid);
        assert_eq!(refusal(&token, None, &facts(), NOW), invalid);
    }

    #[test]
    fn without_openid_or_user_the_scope_is_insufficient() {
        let (token, user) = (samples::access_token(), samples::alice());
        let insufficient = Some(BearerFailure::InsufficientScope);
        let no_openid = AccessToken { scope: scope("profile orders.read"), ..token.clone() };
        assert_eq!(refusal(&no_openid, Some(&user), &facts(), NOW), insufficient);
        let stands_on = StandsOn::Client { installation: 1, client: 2 };
        let of_client = AccessToken { user: None, jti: Jti { stands_on, random: [1; 12] }, ..token };
        assert_eq!(refusal(&of_client, None, &facts(), NOW), insufficient);
        assert_eq!(refusal(&of_client, Some(&user), &facts(), NOW), insufficient);
    }

    #[test]
    fn the_answer_holds_what_scopes_and_requested_names_release() {
        let token = AccessToken { scope: scope("openid roles orders.read"), ..samples::access_token() };
        let expected = json!({ "sub": "alice-subject", "name": "Alice Smith", "role": ["admin"] });
        assert_eq!(Value::Object(response(&token, &samples::alice(), &catalogue())), expected);
    }

    #[test]
    fn with_openid_alone_the_answer_is_the_subject() {
        let bare = AccessToken { scope: scope("openid"), userinfo_claims: Vec::new(), ..samples::access_token() };
        let impostor = samples::user(json!({ "sub": "root", "iss": "x", "name": "Alice", "role": "admin" }));
        assert_eq!(Value::Object(response(&bare, &impostor, &catalogue())), json!({ "sub": "alice-subject" }));
        let asking = AccessToken { userinfo_claims: vec![String::from("sub"), String::from("iss")], ..bare };
        assert_eq!(Value::Object(response(&asking, &impostor, &catalogue())), json!({ "sub": "alice-subject" }));
    }

    #[test]
    fn every_standard_claim_has_its_shape() {
        let user = samples::user(json!({
            "name": "A", "given_name": "A", "family_name": "S", "middle_name": "M", "nickname": "a", "preferred_username": "a",
            "profile": "https://a.example/", "picture": "https://a.example/p", "website": "https://a.example/w",
            "gender": "f", "birthdate": "1990-01-01", "zoneinfo": "Europe/Berlin", "locale": "de", "updated_at": "1795132800",
            "email": "a@a.example", "email_verified": "true", "phone_number": "+49 1", "phone_number_verified": false,
            "address": "Street 1", "role": "admin"
        }));
        let every = scope("openid profile email phone address roles");
        let token = AccessToken { scope: every, ..samples::access_token() };
        let answer = Value::Object(response(&token, &user, &catalogue()));
        assert_eq!(answer.as_object().unwrap().len(), 21);
        assert_eq!(answer["updated_at"], json!(1_795_132_800));
        assert_eq!((&answer["email_verified"], &answer["phone_number_verified"]), (&json!(true), &json!(false)));
        assert_eq!((&answer["address"], &answer["role"]), (&json!({ "formatted": "Street 1" }), &json!(["admin"])));
    }
}
