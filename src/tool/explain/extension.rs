//! What the grants say that bring a token or an assertion along: token exchange, the JWT bearer
//! grant, and ID-JAGs, of ours and of others.

use serde_json::Value;

use super::standing::life;
use super::token::{as_sender, grant};
use super::{Judged, explain_refusal, refusal};
use gatepost_protocol::keys::jwt::{ID_JAG_TYP, UnverifiedJws};
use gatepost_protocol::token::assertion::{self, ExpectedAssertion, is_type, numeric_date};
use gatepost_protocol::token::audience::narrow;
use gatepost_protocol::token::extension_grant::scope_for_user;
use gatepost_protocol::token::id_jag;
use gatepost_protocol::token::jwt_bearer::{self, ShownAssertion};
use gatepost_protocol::token::token_exchange::{self, check_client};
use gatepost_protocol::token::token_request::ExtensionRequest;
use gatepost_protocol::words::client::GrantType;
use gatepost_protocol::words::identifiers::{ClientId, KeyThumbprint};
use gatepost_protocol::words::json::{JsonObject, Members};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;
use gatepost_protocol::words::scope::ScopeSet;
use gatepost_protocol::words::sender::Sender;
use gatepost_registrar::explanation::{broken, refused};
use gatepost_registration::finding::Finding;
use gatepost_registration::{broken, fine, weak};
use gatepost_server::app::App;
use gatepost_server::endpoints::token::grants::extension::asked;
use gatepost_server::endpoints::token::grants::id_jag::id_token;
use gatepost_server::endpoints::token::grants::token_exchange::opened;
use gatepost_store::tokens;

/// A text of somebody else's is cut at so many characters.
const LONGEST_TOLD: usize = 200;

/// A request of such a grant, as far as it can be judged without doing it.
pub fn request(app: &App, sender: Sender<'_>, request: &ExtensionRequest) -> Judged {
    let is_of = |grant: GrantType| request.grant_type == grant.as_str();
    if id_jag::is_asked(request) {
        return issued_id_jag(app, sender, request);
    }
    let asked = asked(request, sender)?.scope;
    if is_of(GrantType::TokenExchange) {
        return exchange(app, sender, request);
    }
    if is_of(GrantType::JwtBearer) {
        return assertion(app, sender, request, &asked);
    }
    let left_out = "the request is well-formed; what it brings is not judged here";
    Ok(Finding::weak(left_out).into())
}

/// Whether an ID-JAG of ours would be given out.
fn issued_id_jag(app: &App, sender: Sender<'_>, request: &ExtensionRequest) -> Judged {
    let client = sender.client;
    if !app.config.id_jag {
        let off = "no ID-JAG is given out: set GATEPOST_ID_JAG=on";
        return Ok(Finding::broken(off).into());
    }
    let none = "subject_token is no ID token that this client got here for ID-JAGs";
    let token = id_token(app, client, id_jag::read(request, client)?);
    let token = token.ok_or_else(|| refusal(Reason::InvalidSubjectToken, none))?;
    let found = tokens::find(&app.store, &token)?;
    let user = found.user.as_ref();
    match id_jag::judge(request, &token, user, &found.facts, sender) {
        Ok(granted) => Ok(fine!(
            "it gets an ID-JAG for {} at {}, with the scope {}",
            granted.resource,
            granted.entry.audience,
            granted.scope
        )
        .into()),
        Err(error) if error.reason == Reason::InvalidTarget => {
            let mut entries = Vec::new();
            for entry in &client.id_jag {
                entries.push(format!(
                    "{} for {}",
                    entry.audience,
                    entry.resources.join(" ")
                ));
            }
            let detail = format!("registered in id_jag: {}", entries.join("; "));
            Err(refusal(error.reason, &detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a token exchange would give a token, and for whom.
fn exchange(app: &App, sender: Sender<'_>, request: &ExtensionRequest) -> Judged {
    check_client(sender.client)?;
    let shown = token_exchange::read(request)?;
    let no_token = |reason| refusal(reason, "it is no access token of this issuer");
    let subject = opened(app, &shown.subject);
    let subject = subject.ok_or_else(|| no_token(Reason::InvalidSubjectToken))?;
    let actor = match &shown.actor {
        Some(token) => Some(opened(app, token).ok_or_else(|| no_token(Reason::InvalidActorToken))?),
        None => None,
    };
    let judged = match token_exchange::judge(request, &subject, actor.as_ref(), sender) {
        Ok(exchanged) => fine!(
            "it gets the scope {} for the audience {}",
            exchanged.narrowed.scope,
            exchanged.narrowed.audience.join(" ")
        ),
        Err(error) => broken(error.reason, error.detail.as_deref()),
    };
    let mut explained = life(app, &subject, None)?;
    explained.findings.insert(0, judged);
    if let Some(actor) = &actor {
        explained.findings.extend(life(app, actor, None)?.findings);
    }
    Ok(explained)
}

/// An assertion, as far as it can be judged without its issuer's keys.
fn assertion(
    app: &App,
    sender: Sender<'_>,
    request: &ExtensionRequest,
    asked: &ScopeSet,
) -> Judged {
    let ShownAssertion {
        jws,
        issuer,
        proposal,
    } = match jwt_bearer::shown(request, sender, app.config.id_jag) {
        Ok(shown) => shown,
        Err(error) => {
            let jws = UnverifiedJws::parse(request.parameter("assertion").unwrap_or_default());
            let detail = jws.map(|jws| named(&jws));
            return Ok(refused(error.reason, detail.as_deref()));
        }
    };
    let audiences = app.grant_audiences(issuer);
    let expected = ExpectedAssertion::of_issuer(&issuer.issuer, &audiences);
    let claims = jws.unverified_claims().unwrap_or_default();
    if let Err(problem) = assertion::judge(&claims, expected, sender.now) {
        let reason = jwt_bearer::refused(problem).reason;
        return Err(refusal(reason, problem.as_str()));
    }
    let scope = scope_for_user(&proposal, sender.client, asked).map_err(|error| {
        let together = if issuer.id_jag {
            "what the ID-JAG, its issuer and the client allow together"
        } else {
            "what the issuer of the assertion and the client allow together"
        };
        match error.reason {
            Reason::NoScopeLeft => refusal(error.reason, together),
            _ => error.into(),
        }
    })?;
    let (requested, proposed) = (&request.resources, &proposal.resources);
    let narrowed = narrow(&scope, requested, proposed, sender.catalogue, sender.issuer)?;
    Ok(weak!(
        "it fits the issuer {}, and gives at most the scope {}; its signature, its user, and \
         whether it was used before are not looked at",
        issuer.issuer,
        narrowed.scope
    )
    .into())
}

/// An ID-JAG that came without the request it is for.
pub fn id_jag_alone(app: &App, jws: &UnverifiedJws, text: &str) -> Judged {
    let mut explained = if app.registry.snapshot().keys.verifies(jws) {
        of_ours(app, &jws.unverified_claims().unwrap_or_default()).into()
    } else {
        of_another(app, jws, text).or_else(explain_refusal)?
    };
    explained.about.clear();
    explained.tell("kind", "ID-JAG");
    Ok(explained)
}

/// It is judged as if the client that it names sent it, with the key that it names.
fn of_another(app: &App, jws: &UnverifiedJws, text: &str) -> Judged {
    let claims = jws.unverified_claims().unwrap_or_default();
    let client_id = claims.text("client_id");
    let client_id = client_id.unwrap_or_default();
    let Some(registered) = app.registry.client(&ClientId::new(client_id))? else {
        let detail = format!("no such client: {}", cut(client_id));
        return Err(refusal(Reason::IdJagNotTaken, &detail));
    };
    let confirmation = claims.get("cnf").and_then(|cnf| cnf.get("jkt"));
    let key = confirmation.and_then(Value::as_str);
    let snapshot = app.registry.snapshot();
    let key = key.and_then(KeyThumbprint::from_text);
    let sender = as_sender(app, &registered.client, &snapshot.catalogue, key);
    let form = [
        ("grant_type", GrantType::JwtBearer.as_str()),
        ("assertion", text),
    ];
    grant(app, sender, &Parameters::from_pairs(form))
}

/// We signed it, so we wrote these claims.
fn of_ours(app: &App, claims: &JsonObject) -> Finding {
    let text = |name: &str| claims.text(name).unwrap_or_default();
    let whom = format!(
        "we gave it to a client for {} at {}",
        text("resource"),
        text("aud")
    );
    let ends = claims.get("exp").and_then(numeric_date);
    let left = ends.map_or(0, |ends| ends.seconds() - app.now().seconds());
    if left > 0 {
        fine!("{whom}, where it is good for {left} s more")
    } else {
        broken!(
            "{whom}, and it ended {} s ago: ask for one when it is needed",
            -left
        )
    }
}

/// Whether a JWT says that it is an ID-JAG.
pub fn is_id_jag(jws: &UnverifiedJws) -> bool {
    jws.typ
        .as_deref()
        .is_some_and(|typ| is_type(typ, ID_JAG_TYP))
}

/// Whose a JWT says that it is, and of what kind.
pub fn named(jws: &UnverifiedJws) -> String {
    let claims = jws.unverified_claims().unwrap_or_default();
    let issuer = claims.text("iss");
    let issuer = issuer.map_or_else(|| String::from("none"), cut);
    let typ = jws.typ.as_deref().map_or_else(|| String::from("none"), cut);
    format!("its iss is {issuer}, its typ {typ}")
}

pub fn cut(text: &str) -> String {
    let told: String = text.chars().take(LONGEST_TOLD).collect();
    told.escape_debug().to_string()
}
