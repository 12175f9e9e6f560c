//! What the grants say that bring a token or an assertion along: token exchange, the JWT bearer
//! grant, and ID-JAGs, of ours and of others.

use serde_json::{Map, Value, json};

use super::standing::life;
use super::token::{ProvenSender, broken, grant};
use super::{Judged, explain_refusal, only};
use gatepost_protocol::keys::jwt::{ID_JAG_TYP, UnverifiedJws};
use gatepost_protocol::registration::problem::Finding;
use gatepost_protocol::token::access_token::AccessToken;
use gatepost_protocol::token::assertion::{self, ExpectedAssertion, is_type, numeric_date};
use gatepost_protocol::token::audience::{narrow, requested_scope};
use gatepost_protocol::token::extension_grant::Proposal;
use gatepost_protocol::token::token_exchange::{
    self, ExchangeCircumstances, ShownToken, check_client,
};
use gatepost_protocol::token::token_request::ExtensionRequest;
use gatepost_protocol::token::{id_jag, jwt_bearer};
use gatepost_protocol::words::client::{Client, GrantType};
use gatepost_protocol::words::identifiers::{ClientId, KeyThumbprint};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::strength::Strength;
use gatepost_registrar::explanation::refused;
use gatepost_server::app::App;
use gatepost_server::endpoints::token::grants::id_jag::id_token;
use gatepost_server::endpoints::token::introspection::access_token;
use gatepost_store::tokens;

/// A text of somebody else's is cut at so many characters.
const LONGEST_TOLD: usize = 200;

/// A request of such a grant, as far as it can be judged without doing it.
pub(super) fn request(app: &App, sender: ProvenSender<'_>, request: &ExtensionRequest) -> Judged {
    let is_of = |grant: GrantType| request.grant_type == grant.as_str();
    if is_of(GrantType::TokenExchange) && id_jag::is_asked(request) {
        return issued_id_jag(app, sender.client, request);
    }
    if is_of(GrantType::TokenExchange) {
        return exchange(app, sender.client, request);
    }
    if is_of(GrantType::JwtBearer) {
        return assertion(app, sender, request);
    }
    let left_out = "the request is well-formed; what it brings is not judged here";
    Ok(only(Finding::weak(left_out)))
}

/// Whether an ID-JAG of ours would be given out.
fn issued_id_jag(app: &App, client: &Client, request: &ExtensionRequest) -> Judged {
    if !app.config.id_jag {
        let off = "no ID-JAG is given out: set GATEPOST_ID_JAG=on";
        return Ok(only(Finding::broken(off)));
    }
    let token = id_token(app, id_jag::read(request, client)?);
    let Some(token) = token.filter(|token| token.client_id == client.client_id) else {
        let detail = "subject_token is no ID token that this client got here for ID-JAGs";
        return Ok(refused(Reason::InvalidSubjectToken, Some(detail)));
    };
    let found = tokens::find(&app.store, &token)?;
    let snapshot = app.registry.snapshot();
    let judged = id_jag::judge(
        request,
        &token,
        found.user.as_ref(),
        &found.facts,
        client,
        &snapshot.catalogue,
        app.now(),
    );
    match judged {
        Ok(granted) => {
            let audience = &granted.entry.audience;
            let gets = format!(
                "it gets an ID-JAG for {} at {audience}, with the scope {}",
                granted.resource, granted.scope
            );
            Ok(only(Finding::fine(gets)))
        }
        Err(error) if error.reason == Reason::InvalidTarget => {
            let entries = client.id_jag.iter();
            let entries: Vec<String> = entries
                .map(|entry| format!("{} for {}", entry.audience, entry.resources.join(" ")))
                .collect();
            let detail = format!("registered in id_jag: {}", entries.join("; "));
            Ok(refused(error.reason, Some(&detail)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a token exchange would give a token, and for whom.
fn exchange(app: &App, client: &Client, request: &ExtensionRequest) -> Judged {
    check_client(client)?;
    let shown = token_exchange::read(request)?;
    let no_token = "it is no access token of this issuer";
    let Some(subject) = opened(app, &shown.subject) else {
        return Ok(refused(Reason::InvalidSubjectToken, Some(no_token)));
    };
    let actor = match &shown.actor {
        None => None,
        Some(token) => match opened(app, token) {
            Some(actor) => Some(actor),
            None => return Ok(refused(Reason::InvalidActorToken, Some(no_token))),
        },
    };
    let snapshot = app.registry.snapshot();
    let circumstances = ExchangeCircumstances {
        client,
        catalogue: &snapshot.catalogue,
        issuer: app.issuer(),
    };
    let judged = token_exchange::judge(request, &subject, actor.as_ref(), circumstances);
    let judged = match judged {
        Ok(exchanged) => Finding::fine(format!(
            "it gets the scope {} for the audience {}",
            exchanged.narrowed.scope,
            exchanged.narrowed.audience.join(" ")
        )),
        Err(error) => broken(&error),
    };
    let mut findings = vec![judged];
    let (stands, about) = life(app, &subject, None)?;
    findings.extend(stands);
    if let Some(actor) = &actor {
        findings.extend(life(app, actor, None)?.0);
    }
    Ok((findings, about))
}

fn opened(app: &App, shown: &ShownToken) -> Option<AccessToken> {
    if shown.must_be_jwt && !shown.token.expose().contains('.') {
        return None;
    }
    access_token(app, &shown.token)
}

/// An assertion, as far as it can be judged without its issuer's keys.
fn assertion(app: &App, sender: ProvenSender<'_>, request: &ExtensionRequest) -> Judged {
    let client = sender.client;
    let snapshot = app.registry.snapshot();
    let catalogue = &snapshot.catalogue;
    let asked = requested_scope(request.scope.as_ref(), client, catalogue)?;
    let read = jwt_bearer::read(request, &client.client_id, catalogue, app.config.id_jag);
    let (jws, issuer) = match read {
        Ok(read) => read,
        Err(error) => {
            let shown = request.parameter("assertion").unwrap_or_default();
            let jws = UnverifiedJws::parse(shown);
            let detail = jws.map(|jws| named(&jws));
            return Ok(refused(error.reason, detail.as_deref()));
        }
    };
    let proposal = match issuer.id_jag {
        true => id_jag::propose(&jws, issuer, client, catalogue, sender.key),
        false => jwt_bearer::reach(issuer, client, request.scope.as_ref()).map(|scope| Proposal {
            scope: Some(scope),
            ..Proposal::default()
        }),
    };
    let proposal = match proposal {
        Ok(proposal) => proposal,
        Err(error) => return Ok(refused(error.reason, Some(&named(&jws)))),
    };
    let audiences = app.grant_audiences(issuer);
    let expected = ExpectedAssertion {
        issuer: &issuer.issuer,
        subject: None,
        audiences: &audiences,
    };
    let claims = jws.unverified_claims().unwrap_or_default();
    if let Err(problem) = assertion::judge(&claims, expected, app.now()) {
        let reason = jwt_bearer::refused(problem).reason;
        return Ok(refused(reason, Some(problem.as_str())));
    }
    Ok(match given(app, client, request, &proposal, &asked) {
        Ok(scope) => {
            let fits = format!(
                "it fits the issuer {}, and gives at most the scope {scope}; its signature, its \
                 user, and whether it was used before are not looked at",
                issuer.issuer
            );
            only(Finding::weak(fits))
        }
        Err(error) => {
            let asked = match issuer.id_jag {
                true => "what the ID-JAG, its issuer and the client allow together",
                false => "what the issuer of the assertion and the client allow together",
            };
            let detail = (error.reason == Reason::NoScopeLeft).then_some(asked);
            refused(error.reason, error.detail.as_deref().or(detail))
        }
    })
}

/// What of the scope that was asked for a proposal gives to a user.
fn given(
    app: &App,
    client: &Client,
    request: &ExtensionRequest,
    proposal: &Proposal,
    asked: &ScopeSet,
) -> Result<ScopeSet, TokenError> {
    let acr = proposal.acr.as_deref();
    if !client.takes(acr.unwrap_or(Strength::SignedIn.as_str())) {
        let code = TokenErrorCode::InvalidGrant;
        return Err(TokenError::new(code, Reason::AcrBelowMinimum));
    }
    let scope = asked.retain(|name| proposal.allows_scope(name));
    if scope.is_empty() {
        let code = TokenErrorCode::InvalidScope;
        return Err(TokenError::new(code, Reason::NoScopeLeft));
    }
    let catalogue = &app.registry.snapshot().catalogue;
    let (requested, proposed) = (&request.resources, &proposal.resources);
    let narrowed = narrow(&scope, requested, proposed, catalogue, app.issuer())?;
    Ok(narrowed.scope)
}

/// An ID-JAG that came without the request it is for.
pub(super) fn id_jag_alone(app: &App, jws: &UnverifiedJws, text: &str) -> Judged {
    let claims = jws.unverified_claims().unwrap_or_default();
    let about = Map::from_iter([(String::from("kind"), json!("ID-JAG"))]);
    if app.registry.snapshot().keys.verifies(jws) {
        return Ok((vec![of_ours(app, &claims)], about));
    }
    let client_id = claims.get("client_id").and_then(Value::as_str);
    let client_id = client_id.unwrap_or_default();
    let Some(registered) = app.registry.client(&ClientId::new(client_id))? else {
        let detail = format!("no such client: {}", cut(client_id));
        let (findings, _) = refused(Reason::IdJagNotTaken, Some(&detail));
        return Ok((findings, about));
    };
    let confirmation = claims.get("cnf").and_then(|cnf| cnf.get("jkt"));
    let key = confirmation.and_then(Value::as_str);
    let sender = ProvenSender {
        client: &registered.client,
        // It is judged as if its key were proved.
        key: key.and_then(KeyThumbprint::from_text),
    };
    let form = [
        ("grant_type", GrantType::JwtBearer.as_str()),
        ("assertion", text),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let form = form.iter().map(|(name, value)| (&**name, &**value));
    let judged = grant(app, sender, &Parameters::from_pairs(form));
    let (findings, _) = judged.or_else(explain_refusal)?;
    Ok((findings, about))
}

/// We signed it, so we wrote these claims.
fn of_ours(app: &App, claims: &Map<String, Value>) -> Finding {
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    let whom = format!(
        "we gave it to a client for {} at {}",
        text("resource"),
        text("aud")
    );
    let ends = claims.get("exp").and_then(numeric_date);
    let left = ends.map_or(0, |ends| ends.seconds() - app.now().seconds());
    match left > 0 {
        true => Finding::fine(format!("{whom}, where it is good for {left} s more")),
        false => Finding::broken(format!(
            "{whom}, and it ended {} s ago: ask for one when it is needed",
            -left
        )),
    }
}

/// Whether a JWT says that it is an ID-JAG.
pub(super) fn is_id_jag(jws: &UnverifiedJws) -> bool {
    jws.typ
        .as_deref()
        .is_some_and(|typ| is_type(typ, ID_JAG_TYP))
}

/// Whose a JWT says that it is, and of what kind.
pub(super) fn named(jws: &UnverifiedJws) -> String {
    let claims = jws.unverified_claims().unwrap_or_default();
    let issuer = claims.get("iss").and_then(Value::as_str);
    let issuer = issuer.map_or_else(|| String::from("none"), cut);
    let typ = jws.typ.as_deref().map_or_else(|| String::from("none"), cut);
    format!("its iss is {issuer}, its typ {typ}")
}

pub(super) fn cut(text: &str) -> String {
    let told: String = text.chars().take(LONGEST_TOLD).collect();
    told.escape_debug().to_string()
}
