//! From a callback to a person: the code is exchanged, the ID token verified, UserInfo asked where it is needed.

use serde_json::{Map, Value};

use super::Keys;
use super::connection::{Connection, Endpoints, not_believed, secret};
use crate::app::App;
use crate::app::foreign_keys::Provenance;
use crate::outbound::{Asker, Place};
use crate::protocol::jwt::UnverifiedJws;
use crate::protocol::parameters::Parameters;
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::secret::SecretText;
use crate::protocol::upstream::claims::{TakenOver, acr, are_wanting, label, mapped, merged, oauth_subject};
use crate::protocol::upstream::id_token::{self, ExpectedIdToken, IdTokenFacts, TokenProblem};
use crate::protocol::upstream::metadata::UpstreamMetadata;
use crate::protocol::upstream::token_exchange::UpstreamTokens;
use crate::protocol::upstream::{Ask, UpstreamIdentity, UpstreamProblem, callback, emails};
use crate::registry::Snapshot;

const ID_TOKEN: &str = "the ID token";

/// Who came back: what the callback's parameters prove. `provider` is of `snapshot`; `ask` and `keys` are those of the
/// departure. All requests together take 5 s at most.
pub fn identity(
    app: &App,
    snapshot: &Snapshot,
    provider: &IdentityProvider,
    ask: &Ask,
    keys: &Keys<'_>,
    callback: &Parameters,
) -> Result<UpstreamIdentity, UpstreamProblem> {
    let secret = secret(snapshot, provider)?;
    let connection = Connection::open(app, provider)?;
    let code = callback::code(callback, connection.expected_issuer())?;
    let place = connection.take_place()?;
    let tokens = connection.exchange(&place, &code, keys.code_verifier, secret)?;
    match &connection.endpoints {
        Endpoints::OpenId { issuer, metadata } => {
            let signed_in = SignedIn { app, connection: &connection, place: &place, issuer, metadata, tokens: &tokens };
            signed_in.identity(ask, keys)
        }
        Endpoints::OAuth { userinfo, emails, subject_claim, .. } => {
            let user_info = connection.user_info(&place, userinfo, &tokens.access_token)?;
            let subject = oauth_subject(&user_info, subject_claim);
            let unusable = "the userinfo endpoint's answer has no usable subject: the member that subject_claim names \
                            must be a text or a whole number";
            let subject = subject.ok_or_else(|| UpstreamProblem::NotBelieved(unusable.to_owned()))?;
            let all = match emails.filter(|_| emails::are_wanting(provider, &user_info)) {
                Some(endpoint) => {
                    emails::added(user_info, connection.primary_email(&place, endpoint, &tokens.access_token)?)
                }
                None => user_info,
            };
            Ok(without_id_token(provider, subject, &all))
        }
    }
}

fn without_id_token(provider: &IdentityProvider, subject: String, all: &Map<String, Value>) -> UpstreamIdentity {
    let TakenOver { claims, left_out } = mapped(provider, all);
    UpstreamIdentity {
        issuer: provider.authority().to_owned(),
        subject,
        claims,
        left_out,
        label: label(all),
        auth_time: None,
        acr: acr(provider, None),
        amr: Vec::new(),
        sid: None,
        id_token: None,
    }
}

struct SignedIn<'a> {
    app: &'a App,
    connection: &'a Connection<'a>,
    place: &'a Place<'a>,
    issuer: &'a str,
    metadata: &'a UpstreamMetadata,
    tokens: &'a UpstreamTokens,
}

impl SignedIn<'_> {
    fn identity(&self, ask: &Ask, keys: &Keys<'_>) -> Result<UpstreamIdentity, UpstreamProblem> {
        let missing = || UpstreamProblem::NotBelieved(String::from("the token endpoint's answer has no id_token"));
        let id_token = self.tokens.id_token.as_ref().ok_or_else(missing)?;
        let (claims, facts) = self.verify(id_token, ask, keys)?;
        let all = merged(&claims, self.user_info(&claims, &facts.subject)?.as_ref());
        let TakenOver { claims, left_out } = mapped(self.connection.provider, &all);
        Ok(UpstreamIdentity {
            issuer: self.issuer.to_owned(),
            subject: facts.subject,
            claims,
            left_out,
            label: label(&all),
            auth_time: facts.auth_time,
            acr: acr(self.connection.provider, facts.acr.as_deref()),
            amr: facts.amr,
            sid: facts.sid,
            id_token: Some(id_token.clone()),
        })
    }

    fn verify(
        &self,
        id_token: &SecretText,
        ask: &Ask,
        keys: &Keys<'_>,
    ) -> Result<(Map<String, Value>, IdTokenFacts), UpstreamProblem> {
        let refused = |problem| not_believed(ID_TOKEN, problem);
        let jws = UnverifiedJws::parse(id_token.expose()).ok_or_else(|| refused(TokenProblem::Malformed))?;
        id_token::check_typ(jws.typ.as_deref()).map_err(refused)?;
        let claims = self.connection.verified_claims(
            Asker::Seated(self.place),
            ID_TOKEN,
            (&jws, Provenance::Answered),
            self.metadata,
        )?;
        let expected = ExpectedIdToken {
            issuer: self.issuer,
            client_id: &self.connection.provider.client_id,
            nonce: keys.nonce,
            access_token: &self.tokens.access_token,
            alg: jws.alg,
            needs_auth_time: ask.max_age.is_some(),
        };
        match id_token::judge(&claims, &expected, self.app.now()) {
            Ok(facts) => Ok((claims, facts)),
            Err(TokenProblem::NoAuthTime) => Err(UpstreamProblem::LoginRequired),
            Err(problem) => Err(refused(problem)),
        }
    }

    /// What UserInfo adds, where something is wanting. Of anybody else it must not be used (OpenID Connect Core §5.3.2).
    fn user_info(
        &self,
        id_token: &Map<String, Value>,
        subject: &str,
    ) -> Result<Option<Map<String, Value>>, UpstreamProblem> {
        let is_wanted = are_wanting(self.connection.provider, id_token);
        let Some(endpoint) = self.metadata.userinfo_endpoint.as_deref().filter(|_| is_wanted) else { return Ok(None) };
        let user_info = self.connection.user_info(self.place, endpoint, &self.tokens.access_token)?;
        if user_info.get("sub").and_then(Value::as_str) == Some(subject) {
            Ok(Some(user_info))
        } else {
            let cause = "the userinfo endpoint's answer is about another sub than the ID token";
            Err(UpstreamProblem::NotBelieved(cause.to_owned()))
        }
    }
}
