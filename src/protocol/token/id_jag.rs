//! ID-JAGs: identity assertion authorization grants
//! (draft-ietf-oauth-identity-assertion-authz-grant-04). The authorization server that people sign
//! in to gives a client an ID-JAG for another server, and that one redeems it for an access token,
//! so that nobody signs in twice. We are either of the two: [`propose`] judges the ID-JAG of
//! somebody else, [`judge`] the request for one of ours.

use std::time::Duration;

use serde_json::{Value, json};

use super::access_token::AccessToken;
use super::assertion::{numeric_date, single};
use super::audience::meant;
use super::extension_grant::Proposal;
use super::jwt_bearer::of_issuer;
use super::liveness::{self, LivenessFacts, check_registration, consent_has_lapsed};
use super::token_request::ExtensionRequest;
use crate::keys::jwt::UnverifiedJws;
use crate::words::catalogue::AssertionIssuer;
use crate::words::claim_set::ClaimSet;
use crate::words::client::{Client, GrantType, IdJagEntry, allows_role};
use crate::words::identifiers::KeyThumbprint;
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members, SetMember};
use crate::words::reason::{
    Reason, Result, TokenError, TokenErrorCode, invalid_grant, invalid_request, invalid_scope,
    invalid_target, unauthorized_client,
};
use crate::words::scope::{OPENID, ScopeSet};
use crate::words::sender::Sender;
use crate::words::session::{SignIn, User};
use crate::words::strength::Strength;

pub const ID_JAG_TYPE: &str = "urn:ietf:params:oauth:token-type:id-jag";
const ID_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:id_token";
/// What discovery calls servers that redeem ID-JAGs.
pub const GRANT_PROFILE: &str = "urn:ietf:params:oauth:grant-profile:id-jag";
/// `token_type` of an answer with an ID-JAG: it opens nothing by itself (RFC 8693 §2.2.1).
pub const NOT_APPLICABLE: &str = "N_A";
const LIFETIME: Duration = Duration::from_secs(300);

/// Judges an ID-JAG beyond what is asked of any assertion, and proposes what it may give here. Its
/// signature is verified after this, before anything is issued.
pub fn propose(
    jws: &UnverifiedJws,
    issuer: &AssertionIssuer,
    sender: Sender<'_>,
) -> Result<Proposal> {
    let Sender {
        client, catalogue, ..
    } = sender;
    let claims = jws.unverified_claims().unwrap_or_default();
    // The access token is bound to the same key, as every token is that a proof asks for.
    let proved = sender.key.map(|key| json!({"jkt": key.to_text()}));
    if claims.contains_key("cnf") && claims.get("cnf") != proved.as_ref() {
        return Err(invalid_grant(Reason::IdJagOfKey));
    }
    let is_clients =
        client.is_confidential() && claims.text("client_id") == Some(client.client_id.as_str());
    let resource = claims.get("resource").and_then(single);
    let resource =
        resource.and_then(|one| meant(one, |name| catalogue.resources.contains_key(name)));
    let Some(resource) = resource.filter(|_| is_clients) else {
        return Err(invalid_grant(Reason::IdJagNotTaken));
    };
    let scope = match claims.get("scope") {
        None => Some(of_issuer(issuer, client)),
        Some(scope) => scope
            .as_str()
            .and_then(ScopeSet::parse)
            .map(|scope| of_issuer(issuer, client).retain(|name| scope.contains(name))),
    };
    // A limit that nobody here understands must not count as none (RFC 9396 §5).
    let is_limited_otherwise = claims.contains_key("authorization_details");
    let auth_time = claims.get("auth_time").map(numeric_date);
    if scope.is_none()
        || is_limited_otherwise
        || auth_time == Some(None)
        || !claims.contains_key("iat")
    {
        return Err(invalid_grant(Reason::AssertionClaims));
    }
    Ok(Proposal {
        scope,
        acr: claims
            .text("acr")
            .and_then(|theirs| issuer.acr_map.get(theirs))
            .cloned(),
        auth_time: auth_time.flatten(),
        resources: vec![resource],
        ..Proposal::default()
    })
}

/// Whether it is a token exchange that asks for an ID-JAG.
pub fn is_asked(request: &ExtensionRequest) -> bool {
    request.grant_type == GrantType::TokenExchange.as_str()
        && request.parameter("requested_token_type") == Some(ID_JAG_TYPE)
}

/// The ID token that was shown, not yet opened, if the client may get ID-JAGs at all.
pub fn read<'a>(request: &'a ExtensionRequest, client: &Client) -> Result<&'a str> {
    if !client.gets_id_jags() {
        return Err(unauthorized_client(Reason::ExchangeNotRegistered));
    }
    // Nobody else acts for the user.
    if request.parameter("actor_token").is_some() {
        return Err(invalid_request(Reason::InvalidActorToken));
    }
    let token = request.parameter("subject_token");
    match (token, request.parameter("subject_token_type")) {
        (Some(token), Some(ID_TOKEN_TYPE)) => Ok(token),
        (Some(_), Some(_)) => Err(invalid_request(Reason::UnsupportedTokenType)),
        (None, _) | (_, None) => Err(invalid_request(Reason::MissingSubjectToken)),
    }
}

/// The claims of an ID token of ours, as those of an access token that stands on the same. `None`
/// where no grant can be found by it.
pub fn as_access_token(mut claims: JsonObject, issuer: &str) -> Option<AccessToken> {
    // Access tokens may have the same `typ`. They have this claim.
    if claims.contains_key("client_id") {
        return None;
    }
    let client_id = claims.get("aud")?.clone();
    claims.set("client_id", client_id);
    claims.set("scope", OPENID);
    AccessToken::from_verified_claims(&claims, issuer)
}

/// What an ID-JAG of ours is given for.
pub struct IdJagGrant<'a> {
    pub entry: &'a IdJagEntry,
    pub resource: String,
    pub scope: ScopeSet,
    pub sign_in: &'a SignIn,
    pub user: &'a User,
}

/// Whether the client gets the ID-JAG that it asks for with its ID token. What ends a refresh token
/// ends this. The registered entry stands for the user's consent.
pub fn judge<'a>(
    request: &ExtensionRequest,
    token: &'a AccessToken,
    user: Option<&'a User>,
    facts: &LivenessFacts,
    sender: Sender<'a>,
) -> Result<IdJagGrant<'a>> {
    let Sender {
        client,
        catalogue,
        now,
        ..
    } = sender;
    let unfit = || invalid_request(Reason::InvalidSubjectToken);
    let named = |entry: &&IdJagEntry| request.audiences == [entry.audience.as_str()];
    let entry = client
        .id_jag
        .iter()
        .find(named)
        .ok_or_else(invalid_target)?;
    let is_name = |name: &str| entry.resources.iter().any(|resource| resource == name);
    let resource = match request.resources.as_slice() {
        [resource] => meant(resource, is_name),
        [] | [_, _, ..] => None,
    };
    let resource = resource.ok_or_else(invalid_target)?;
    let scope = match &request.scope {
        Some(asked) => entry.scope.retain(|name| asked.contains(name)),
        None => entry.scope.clone(),
    };
    if scope.is_empty() {
        return Err(invalid_scope(Reason::NoScopeLeft));
    }
    let sign_in = token.user.as_ref().ok_or_else(unfit)?;
    let user = user.ok_or_else(unfit)?;
    let role = user.claims.get("role");
    if !client.is_open_to(role) || !allows_role(entry.allowed_roles.as_ref(), role) {
        return Err(invalid_grant(Reason::NotOpenToUser));
    }
    if Strength::of(&sign_in.acr) < entry.minimum_acr.max(client.minimum_acr) {
        let code = TokenErrorCode::InsufficientUserAuthentication;
        return Err(TokenError::new(code, Reason::AcrBelowMinimum));
    }
    let stands = check_registration(sign_in, &token.scope, client, catalogue).is_ok()
        && !consent_has_lapsed(token.issued_at, client, facts, now)
        && liveness::stands(token, Some(client), Some(user), facts, now);
    let granted = IdJagGrant {
        entry,
        resource,
        scope,
        sign_in,
        user,
    };
    stands.then_some(granted).ok_or_else(unfit)
}

impl IdJagGrant<'_> {
    /// How long it is good that is given out now: not beyond the end of the person.
    pub fn lifetime(&self, now: Instant) -> Duration {
        self.user.at_most(LIFETIME, now)
    }

    /// The claims to sign. Whoever redeems the ID-JAG must hold the key that was `proved` here.
    pub fn claims<'a>(
        &'a self,
        issuer: &'a str,
        jti: &'a str,
        proved: Option<KeyThumbprint>,
        now: Instant,
    ) -> ClaimSet<'a> {
        let stored = &self.user.claims;
        let mut claims = ClaimSet::default();
        self.sign_in.add_claims(&mut claims);
        claims
            .text("iss", issuer)
            .text("aud", self.entry.audience.as_str())
            .text("jti", jti)
            .set("iat", now.seconds())
            .set("exp", now.plus(self.lifetime(now)).seconds())
            .text("client_id", self.entry.client_id.as_str())
            .text("resource", self.resource.as_str())
            .text("scope", self.scope.as_str())
            .set("cnf", proved.map(|key| json!({"jkt": key.to_text()})));
        // Others may find people by their address, so it must be theirs.
        let is_verified = stored.get("email_verified") == Some(&Value::Bool(true));
        if self.entry.email && is_verified {
            claims.set("email", stored.get("email").cloned());
        }
        claims
    }
}

#[cfg(test)]
mod tests {
    use super::super::liveness::SessionFacts;
    use super::super::token_request::TokenRequest;
    use super::*;
    use crate::token::access_token::{Jti, StandsOn};
    use crate::words::parameters::Parameters;
    use crate::words::samples::{self, EPOCHS, NOW, scope};

    const CHAT: &str = "https://auth.chat.example";
    const MCP: &str = "https://mcp.chat.example";

    fn wiki() -> Client {
        Client {
            grant_types: [GrantType::TokenExchange].into(),
            require_consent: Some(true),
            id_jag: vec![IdJagEntry {
                audience: String::from(CHAT),
                client_id: String::from("f53f"),
                resources: vec![String::from(MCP)],
                scope: scope("chat.read"),
                allowed_roles: None,
                minimum_acr: Strength::SignedIn,
                email: false,
            }],
            ..samples::client()
        }
    }

    /// An exchange of an ID token for an ID-JAG, and all that it is judged by.
    struct Case {
        form: Vec<(&'static str, &'static str)>,
        client: Client,
        token: AccessToken,
        user: Option<User>,
        facts: LivenessFacts,
    }

    fn case() -> Case {
        Case {
            form: vec![("audience", CHAT), ("resource", MCP)],
            client: wiki(),
            token: AccessToken {
                jti: Jti {
                    stands_on: StandsOn::User(EPOCHS),
                    random: [1; 12],
                },
                scope: scope("openid"),
                ..samples::access_token()
            },
            user: Some(samples::alice()),
            facts: LivenessFacts {
                token_revoked: false,
                grant: None,
                session: Some(SessionFacts {
                    ended: false,
                    expires_at: NOW,
                }),
                client_enabled: true,
                epochs: EPOCHS,
                consent_expires_at: None,
            },
        }
    }

    fn request(form: &[(&'static str, &'static str)]) -> ExtensionRequest {
        let exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
        let form = [&[("grant_type", exchange)], form].concat();
        let form = Parameters::from_pairs(form);
        match TokenRequest::from_form(&form, &wiki(), |_| false, NOW) {
            Ok(TokenRequest::Extension(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    /// Judged a minute after the ID token was issued.
    fn outcome(change: impl FnOnce(&mut Case)) -> Result<String> {
        let mut case = case();
        change(&mut case);
        let request = request(&case.form);
        let catalogue = samples::catalogue();
        let sender = Sender {
            now: NOW.plus(Duration::from_secs(60)),
            ..samples::sender(&case.client, &catalogue)
        };
        let user = case.user.as_ref();
        let granted = judge(&request, &case.token, user, &case.facts, sender)?;
        assert_eq!(granted.entry.audience, CHAT);
        assert_eq!(granted.resource, MCP);
        Ok(granted.scope.to_string())
    }

    fn judged(change: impl FnOnce(&mut LivenessFacts)) -> Result<String, Reason> {
        outcome(|case| change(&mut case.facts)).map_err(|error| error.reason)
    }

    #[test]
    fn an_id_jag_is_given_as_the_entry_allows_and_no_further() {
        let refused = |change: fn(&mut Case)| {
            let error = outcome(change).unwrap_err();
            (error.code, error.reason)
        };
        let target = (TokenErrorCode::InvalidTarget, Reason::InvalidTarget);
        assert_eq!(refused(|case| case.form = vec![("audience", CHAT)]), target);
        assert_eq!(refused(|case| case.form = vec![("resource", MCP)]), target);
        assert_eq!(refused(|case| case.form.push(("audience", MCP))), target);
        assert_eq!(refused(|case| case.form.push(("resource", CHAT))), target);
        const ELSEWHERE: &str = "https://other.example";
        assert_eq!(
            refused(|case| case.form = vec![("audience", CHAT), ("resource", ELSEWHERE)]),
            target
        );
        assert_eq!(refused(|case| case.client.id_jag.clear()), target);
        let no_scope = (TokenErrorCode::InvalidScope, Reason::NoScopeLeft);
        assert_eq!(
            refused(|case| case.form.push(("scope", "openid orders.read"))),
            no_scope
        );
        let narrower = outcome(|case| case.form.push(("scope", "openid chat.read")));
        assert_eq!(narrower, Ok(String::from("chat.read")));

        let unfit = (TokenErrorCode::InvalidRequest, Reason::InvalidSubjectToken);
        assert_eq!(refused(|case| case.token.user = None), unfit);
        assert_eq!(refused(|case| case.user = None), unfit);
        assert_eq!(
            refused(|case| case.token.scope = scope("openid phone")),
            unfit
        );
        let not_open = (TokenErrorCode::InvalidGrant, Reason::NotOpenToUser);
        let staff = || Some([String::from("staff")].into());
        assert_eq!(
            refused(|case| case.client.allowed_roles = Some([String::from("staff")].into())),
            not_open
        );
        assert_eq!(
            refused(
                |case| case.client.id_jag[0].allowed_roles = Some([String::from("staff")].into())
            ),
            not_open
        );
        assert!(
            outcome(|case| {
                case.client.id_jag[0].allowed_roles = staff();
                let user = case.user.as_mut().unwrap();
                user.claims.insert(String::from("role"), json!("staff"));
            })
            .is_ok()
        );
        let weak = (
            TokenErrorCode::InsufficientUserAuthentication,
            Reason::AcrBelowMinimum,
        );
        assert_eq!(
            refused(|case| case.client.id_jag[0].minimum_acr = Strength::TwoFactors),
            weak
        );
        assert_eq!(
            refused(|case| case.client.minimum_acr = Strength::TwoFactors),
            weak
        );
        let strong = outcome(|case| {
            case.client.id_jag[0].minimum_acr = Strength::TwoFactors;
            case.token.user.as_mut().unwrap().acr = String::from("2");
        });
        assert!(strong.is_ok());
    }

    #[test]
    fn only_a_client_with_entries_may_ask_and_only_for_a_user() {
        let shown = |pairs: &[(&'static str, &'static str)], client: &Client| {
            let request = request(pairs);
            read(&request, client)
                .map(str::to_owned)
                .map_err(|error| (error.code, error.reason))
        };
        let token = [
            ("subject_token", "t"),
            ("subject_token_type", ID_TOKEN_TYPE),
        ];
        assert_eq!(shown(&token, &wiki()), Ok(String::from("t")));
        let unregistered = Err((
            TokenErrorCode::UnauthorizedClient,
            Reason::ExchangeNotRegistered,
        ));
        assert_eq!(shown(&token, &samples::client()), unregistered);
        let public = Client {
            authentication: crate::words::client::ClientAuthenticationMethod::None,
            ..wiki()
        };
        assert_eq!(shown(&token, &public), unregistered);
        let invalid = |reason| Err((TokenErrorCode::InvalidRequest, reason));
        let acted = [token[0], token[1], ("actor_token", "a")];
        let no_actor = invalid(Reason::InvalidActorToken);
        assert_eq!(shown(&acted, &wiki()), no_actor);
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        let other = [token[0], ("subject_token_type", kind)];
        let unsupported = invalid(Reason::UnsupportedTokenType);
        assert_eq!(shown(&other, &wiki()), unsupported);
        let missing = invalid(Reason::MissingSubjectToken);
        for pairs in [&token[..1], &token[1..], &[]] {
            assert_eq!(shown(pairs, &wiki()), missing, "{pairs:?}");
        }
        let asked = |pairs: &[(&'static str, &'static str)]| is_asked(&request(pairs));
        assert!(asked(&[("requested_token_type", ID_JAG_TYPE)]));
        assert!(!asked(&[("requested_token_type", kind)]) && !asked(&[]));
    }

    #[test]
    fn the_id_jag_of_another_server_is_for_this_client_and_one_resource() {
        use crate::words::catalogue::AssertionSubject;
        use crate::words::client::SigningAlgorithm;

        const ORDERS: &str = "https://orders.example.com/";
        let issuer = AssertionIssuer {
            issuer: String::from("https://idp.example"),
            jwks: None,
            jwks_uri: None,
            algs: [SigningAlgorithm::Es256].into(),
            clients: [String::from("web")].into(),
            scope: Some(scope("openid orders.read stock offline_access")),
            tenant: None,
            subject: AssertionSubject::Link,
            id_jag: true,
            acr_map: [(String::from("gold"), String::from("2"))].into(),
        };
        let key = KeyThumbprint([1; 32]);
        let proposed = |changes: Value, proved: Option<KeyThumbprint>, client: &Client| {
            let claims = json!({
                "client_id": "web", "resource": ORDERS, "scope": "orders.read orders.write",
                "iat": NOW.seconds(), "acr": "gold", "auth_time": NOW.seconds() - 10,
            });
            let claims = samples::changed(claims, changes);
            let jws = UnverifiedJws {
                alg: SigningAlgorithm::Es256,
                kid: None,
                typ: None,
                signing_input: String::new(),
                unverified_payload: claims.to_string().into_bytes(),
                signature: Vec::new(),
            };
            let catalogue = samples::catalogue();
            let sender = samples::sender(client, &catalogue);
            let key = proved;
            propose(&jws, &issuer, Sender { key, ..sender })
        };
        let client = samples::client();
        let given = |changes: Value, proved| {
            let proposal = proposed(changes, proved, &client).unwrap();
            assert_eq!(proposal.resources, [ORDERS]);
            proposal
        };
        let proposal = given(json!({}), None);
        let scope_of = |proposal: &Proposal| proposal.scope.as_ref().map(ToString::to_string);
        assert_eq!(scope_of(&proposal).as_deref(), Some("orders.read"));
        assert_eq!(proposal.acr.as_deref(), Some("2"));
        let signed_in_at = NOW.minus(Duration::from_secs(10));
        assert_eq!(proposal.auth_time, Some(signed_in_at));
        assert!(proposal.subject.is_none() && proposal.claims.is_empty());
        let whole = given(json!({"scope": null, "acr": "silver"}), None);
        let all = Some("openid orders.read stock");
        assert_eq!(scope_of(&whole).as_deref(), all);
        assert_eq!(whole.acr, None);
        // The resource with and without its slash is one, and so is a list with one in it.
        given(json!({"resource": ["https://orders.example.com"]}), None);
        let bound = json!({"cnf": {"jkt": key.to_text()}});
        given(bound.clone(), Some(key));
        given(json!({}), Some(key));

        let refused = |changes: Value, proved, client: &Client| {
            let error = proposed(changes, proved, client).unwrap_err();
            assert_eq!(error.code, TokenErrorCode::InvalidGrant);
            error.reason
        };
        let other = Some(KeyThumbprint([2; 32]));
        for (cnf, proved) in [
            (bound.clone(), None),
            (bound, other),
            (json!({"cnf": {}}), other),
            (
                json!({"cnf": {"jkt": key.to_text(), "kid": "k"}}),
                Some(key),
            ),
        ] {
            let reason = refused(cnf.clone(), proved, &client);
            assert_eq!(reason, Reason::IdJagOfKey, "{cnf} {proved:?}");
        }
        for changes in [
            json!({"client_id": "app"}),
            json!({"client_id": null}),
            json!({"client_id": ["web"]}),
            json!({"resource": null}),
            json!({"resource": "https://elsewhere.example/"}),
            json!({"resource": [ORDERS, "stock"]}),
        ] {
            let reason = refused(changes.clone(), None, &client);
            assert_eq!(reason, Reason::IdJagNotTaken, "{changes}");
        }
        let public = Client {
            authentication: crate::words::client::ClientAuthenticationMethod::None,
            ..samples::client()
        };
        let reason = refused(json!({}), None, &public);
        assert_eq!(reason, Reason::IdJagNotTaken);
        for changes in [
            json!({"scope": ["orders.read"]}),
            json!({"scope": "a\u{e9}"}),
            json!({"iat": null}),
            json!({"authorization_details": []}),
            json!({"auth_time": "yesterday"}),
        ] {
            let reason = refused(changes.clone(), None, &client);
            assert_eq!(reason, Reason::AssertionClaims, "{changes}");
        }
    }

    #[test]
    fn an_id_jag_tells_the_address_only_where_it_is_asked_for_and_verified() {
        let entry = |email| IdJagEntry {
            email,
            ..wiki().id_jag[0].clone()
        };
        let claims = |entry: &IdJagEntry, user: &User, proved| {
            let sign_in = samples::sign_in();
            let granted = IdJagGrant {
                entry,
                resource: String::from(MCP),
                scope: scope("chat.read"),
                sign_in: &sign_in,
                user,
            };
            let claims = granted.claims("https://op.example", "j", proved, NOW);
            serde_json::to_value(&claims).unwrap()
        };
        let alice = samples::alice();
        let issued = claims(&entry(true), &alice, Some(KeyThumbprint([1; 32])));
        assert_eq!(
            issued,
            json!({
                "iss": "https://op.example", "sub": "alice-subject", "aud": CHAT, "jti": "j",
                "iat": NOW.seconds(), "exp": NOW.seconds() + 300, "client_id": "f53f",
                "resource": MCP, "scope": "chat.read", "auth_time": NOW.seconds() - 10,
                "acr": "1", "amr": ["pwd"], "tenant": "acme", "email": "alice@example.com",
                "cnf": {"jkt": KeyThumbprint([1; 32]).to_text()},
            })
        );
        let unasked = claims(&entry(false), &alice, None);
        assert!(unasked.get("email").is_none() && unasked.get("cnf").is_none());
        for verified in [json!(false), json!("true"), json!(null)] {
            let mut user = samples::alice();
            user.claims.insert(String::from("email_verified"), verified);
            assert!(claims(&entry(true), &user, None).get("email").is_none());
        }
    }

    #[test]
    fn a_consent_that_lapsed_since_the_id_token_ends_it() {
        let at = |seconds: i64| Some(Instant::from_seconds(NOW.seconds() + seconds));
        let given = Ok(String::from("chat.read"));
        let over = Err(Reason::InvalidSubjectToken);
        for (consent, wanted) in [
            (None, &given),
            (at(61), &given),
            (at(60), &over),
            (at(1), &over),
            // Given anew since.
            (at(-1), &given),
        ] {
            assert_eq!(
                &judged(|facts| facts.consent_expires_at = consent),
                wanted,
                "{consent:?}"
            );
        }
        assert_eq!(judged(|facts| facts.client_enabled = false), over);
        assert_eq!(judged(|facts| facts.session = None), over);
    }

    #[test]
    fn an_id_token_stands_on_what_the_access_token_beside_it_does() {
        let token = samples::access_token();
        let claims = json!({
            "iss": "https://op.example", "sub": "alice-subject", "aud": "web", "sid": "sid-1",
            "tenant": "acme", "iat": NOW.seconds(), "exp": NOW.seconds() + 300,
            "auth_time": NOW.seconds() - 10, "acr": "1", "amr": ["pwd"], "jti": token.jti.to_text(),
        });
        let claims = claims.as_object().unwrap();
        let opened = as_access_token(claims.clone(), "https://op.example").unwrap();
        assert_eq!((opened.jti, opened.user), (token.jti, token.user));
        assert_eq!(opened.client_id.as_str(), "web");
        assert_eq!(
            as_access_token(claims.clone(), "https://other.example"),
            None
        );
        for (name, value) in [
            ("client_id", json!("web")),
            ("aud", json!(["web", "other"])),
            ("jti", json!("no-grants")),
            ("jti", Value::Null),
            ("auth_time", json!("now")),
        ] {
            let mut claims = claims.clone();
            claims.insert(String::from(name), value);
            assert_eq!(
                as_access_token(claims, "https://op.example"),
                None,
                "{name}"
            );
        }
    }
}
