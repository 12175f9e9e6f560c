//! What an extension grant answers, and the judgement on it. Nothing is issued that the
//! registration, the request or a standard does not allow.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Value, json};

use super::claims::is_reserved;
use super::delegation::Exchanged;
use crate::words::claim_shape;
use crate::words::client::Client;
use crate::words::epochs::Epochs;
use crate::words::identifiers::{Subject, TenantName};
use crate::words::instant::Instant;
use crate::words::json::JsonObject;
use crate::words::place::SignInPlace;
use crate::words::reason::{Reason, Result, TokenError, invalid_grant, invalid_scope};
use crate::words::scope::{ScopeKind, ScopeSet};
use crate::words::sender::Sender;
use crate::words::session::{LOCAL, User};
use crate::words::strength::Strength;

/// The most bytes of claims and further members together, as compact JSON.
pub const LONGEST_ADDITIONS: usize = 2_048;
/// The most characters of a description.
const LONGEST_DESCRIPTION: usize = 200;
/// The one reserved claim that a grant may propose: it can only restrict (RFC 8693 §4.4).
pub const MAY_ACT: &str = "may_act";

/// Members of a token response that a grant cannot give (RFC 6749 §5.1, RFC 8693 §2.2.1), beside
/// all that begin with `error`.
const STANDARD_MEMBERS: [&str; 8] = [
    "access_token",
    "token_type",
    "expires_in",
    "refresh_token",
    "id_token",
    "scope",
    "state",
    "issued_token_type",
];

#[derive(Clone, Debug, PartialEq)]
pub enum GrantAnswer {
    /// Issue what is proposed, as far as it is allowed.
    Propose(Box<Proposal>),
    /// Issue what the built-in token exchange has judged before.
    Exchange(Box<Exchanged>),
    Refuse(GrantRefusal),
}

/// What a grant proposes. The default is a token without a user, for all requested scopes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// The user; `None` for a token of the client itself.
    pub subject: Option<Subject>,
    /// The scopes that the grant allows; `None` for all.
    pub scope: Option<ScopeSet>,
    /// Claims of this access token and of all later ones of the same grant.
    pub claims: JsonObject,
    pub parameters: JsonObject,
    /// The identity provider that the user came from; `local` by default. The client must allow it.
    pub identity_provider: Option<String>,
    /// How the user proved who they are (RFC 8176).
    pub amr: Vec<String>,
    /// How strongly; the weakest by default.
    pub acr: Option<String>,
    /// When; now by default.
    pub auth_time: Option<Instant>,
    /// The resources that the token is for; empty for all behind its scope.
    pub resources: Vec<String>,
    /// The epochs that the tokens carry, where the handler has read the user itself. Otherwise the
    /// user is read, with their epochs, after this.
    pub epochs: Option<Epochs>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRefusal {
    pub error: TokenError,
    /// The grant's own description, if it gives one.
    pub description: Option<Description>,
}

/// A text that may stand in `error_description` (RFC 6749 §5.2).
#[derive(Clone, PartialEq, Eq)]
pub struct Description(String);

impl Description {
    /// Keeps printable ASCII without `"` and `\`, at most 200 characters. `None` when nothing is
    /// left.
    pub fn new(text: &str) -> Option<Description> {
        let fits =
            |character: &char| (' '..='~').contains(character) && !matches!(character, '"' | '\\');
        let text: String = text
            .chars()
            .filter(fits)
            .take(LONGEST_DESCRIPTION)
            .collect();
        let text = text.trim();
        (!text.is_empty()).then(|| Description(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.0)
    }
}

impl Proposal {
    pub fn allows_scope(&self, name: &str) -> bool {
        let scope = self.scope.as_ref();
        scope.is_none_or(|scope| scope.contains(name))
    }
}

impl GrantRefusal {
    /// A refusal with our own description.
    pub fn of(error: TokenError) -> GrantRefusal {
        GrantRefusal {
            error,
            description: None,
        }
    }

    pub fn invalid_grant(description: &str) -> GrantRefusal {
        GrantRefusal {
            error: invalid_grant(Reason::ExtensionRefused),
            description: Description::new(description),
        }
    }
}

#[derive(Debug, PartialEq)]
pub struct GrantedProposal {
    pub scope: ScopeSet,
    pub claims: JsonObject,
    pub parameters: JsonObject,
    /// Names of claims and members that a grant must not give. They are left out, and the log names
    /// them.
    pub left_out: Vec<String>,
}

#[must_use]
#[derive(Debug, PartialEq)]
pub enum ProposalVerdict {
    Issue(GrantedProposal),
    Refuse(TokenError),
    /// The grant gave an answer that it must not give. The client cannot mend that.
    Faulty(&'static str),
}

pub struct ProposalCircumstances<'a> {
    pub sender: Sender<'a>,
    /// The scopes that the request names, if any.
    pub requested: Option<&'a ScopeSet>,
    /// What [`requested_scope`](crate::token::audience::requested_scope) made of these.
    pub asked: &'a ScopeSet,
    /// The tenant of the request, or of the client's registration.
    pub tenant: Option<&'a TenantName>,
    pub user: Option<&'a User>,
}

pub fn judge(proposal: &Proposal, circumstances: &ProposalCircumstances<'_>) -> ProposalVerdict {
    if !is_allowed_subject(proposal, circumstances) {
        return ProposalVerdict::Refuse(invalid_grant(Reason::ExtensionSubject));
    }
    let scope = match proposal.subject {
        Some(_) => scope_for_user(proposal, circumstances.sender.client, circumstances.asked),
        None => scope_for_client(proposal, circumstances),
    };
    let scope = match scope {
        Ok(scope) => scope,
        Err(error) => return ProposalVerdict::Refuse(error),
    };
    match fault(proposal) {
        Some(fault) => ProposalVerdict::Faulty(fault),
        None => ProposalVerdict::Issue(granted(proposal, scope)),
    }
}

fn fault(proposal: &Proposal) -> Option<&'static str> {
    let size = serialized(&proposal.claims) + serialized(&proposal.parameters);
    if size > LONGEST_ADDITIONS {
        return Some("claims and further members together are longer than 2 KiB");
    }
    // A restriction that cannot be read must not be dropped.
    let may_act = proposal.claims.get(MAY_ACT)?;
    let is_readable = may_act.is_null() || may_act.is_object();
    (!is_readable).then_some("a may_act that is no object")
}

/// What is given out, and the names of what is left out.
fn granted(proposal: &Proposal, scope: ScopeSet) -> GrantedProposal {
    let mut claims = JsonObject::new();
    let mut parameters = JsonObject::new();
    let mut left_out = Vec::new();
    for (name, value) in &proposal.claims {
        if let Some(value) = open_claim(name, value) {
            claims.insert(name.clone(), value);
        } else if is_reserved(name) {
            left_out.push(name.clone());
        }
    }
    for (name, value) in &proposal.parameters {
        if STANDARD_MEMBERS.contains(&name.as_str()) || name.starts_with("error") {
            left_out.push(name.clone());
        } else if !value.is_null() {
            parameters.insert(name.clone(), value.clone());
        }
    }
    GrantedProposal {
        scope,
        claims,
        parameters,
        left_out,
    }
}

/// Whether the proposal is for the client itself, or for a user who exists, is enabled, belongs to
/// the tenant, and comes from a provider that the client allows.
fn is_allowed_subject(proposal: &Proposal, circumstances: &ProposalCircumstances<'_>) -> bool {
    let Some(subject) = &proposal.subject else {
        return true;
    };
    let provider = proposal.identity_provider.as_deref().unwrap_or(LOCAL);
    let ProposalCircumstances { sender, tenant, .. } = *circumstances;
    let client = sender.client;
    let place = SignInPlace {
        client: Some(client),
        tenant,
        catalogue: sender.catalogue,
    };
    let Some(user) = circumstances.user else {
        return false;
    };
    place.allows(provider)
        && user.subject == *subject
        && user.enabled
        && user.tenant.as_ref() == tenant
        && tenant.is_none_or(|tenant| client.allows_tenant(tenant))
}

/// What of the scope that was asked for a user is given, if the client takes how they signed in.
pub fn scope_for_user(proposal: &Proposal, client: &Client, asked: &ScopeSet) -> Result<ScopeSet> {
    let acr = proposal.acr.as_deref();
    if !client.takes(acr.unwrap_or(Strength::SignedIn.as_str())) {
        return Err(invalid_grant(Reason::AcrBelowMinimum));
    }
    not_empty(asked.retain(|name| proposal.allows_scope(name)))
}

fn scope_for_client(
    proposal: &Proposal,
    circumstances: &ProposalCircumstances<'_>,
) -> Result<ScopeSet> {
    let is_identity =
        |name: &str| circumstances.sender.catalogue.kind(name) == Some(ScopeKind::Identity);
    let requested = circumstances.requested;
    if requested.is_some_and(|scope| scope.iter().any(is_identity)) {
        return Err(invalid_scope(Reason::IdentityScopeForClient));
    }
    let allowed = |name: &str| proposal.allows_scope(name) && !is_identity(name);
    not_empty(circumstances.asked.retain(allowed))
}

fn not_empty(scope: ScopeSet) -> Result<ScopeSet> {
    if scope.is_empty() {
        Err(invalid_scope(Reason::NoScopeLeft))
    } else {
        Ok(scope)
    }
}

/// The value that a claim goes out with; `None` where it must not.
fn open_claim(name: &str, value: &Value) -> Option<Value> {
    match name {
        // As it is: an empty one allows nobody.
        MAY_ACT => Some(value.clone()).filter(Value::is_object),
        _ if is_reserved(name) => None,
        _ => claim_shape::shaped(name, Cow::Borrowed(value)).map(Cow::into_owned),
    }
}

fn serialized(members: &JsonObject) -> usize {
    if members.is_empty() {
        0
    } else {
        json!(members).to_string().len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::token::audience::requested_scope;
    use crate::words::client::GrantType;
    use crate::words::samples::{self, alice, catalogue, scope};

    fn client() -> Client {
        let mut client = samples::client();
        client.grant_types.insert(GrantType::RefreshToken);
        client
    }

    fn for_alice() -> Proposal {
        Proposal {
            subject: Some(alice().subject),
            ..Proposal::default()
        }
    }

    fn judged(
        proposal: &Proposal,
        requested: Option<&str>,
        change: impl Fn(&mut Client, &mut User),
    ) -> ProposalVerdict {
        let (mut client, mut user, catalogue) = (client(), alice(), catalogue());
        change(&mut client, &mut user);
        let requested = requested.map(scope);
        let asked = match requested_scope(requested.as_ref(), &client, &catalogue) {
            Ok(asked) => asked,
            Err(error) => return ProposalVerdict::Refuse(error),
        };
        let circumstances = ProposalCircumstances {
            sender: samples::sender(&client, &catalogue),
            requested: requested.as_ref(),
            asked: &asked,
            tenant: None,
            user: Some(&user),
        };
        judge(proposal, &circumstances)
    }

    #[test]
    fn what_is_ours_to_say_is_left_out() {
        let proposal = Proposal {
            claims: serde_json::from_value(json!({
                "tier": "gold", "role": "partner", "sub": "root", "iss": "https://evil.example", "scope": "admin", "exp": 9,
                "auth_time": 1, "act": {"sub": "x"}, "may_act": {"sub": "gateway"}, "nothing": null, "exchanged_from": []
            }))
            .unwrap(),
            parameters: serde_json::from_value(json!({
                "account": 7, "access_token": "x", "token_type": "mac", "expires_in": 9, "refresh_token": "x", "id_token": "x",
                "scope": "admin", "error": "x", "error_uri": "x", "errors": [], "issued_token_type": "x", "nothing": null
            }))
            .unwrap(),
            ..for_alice()
        };
        let ProposalVerdict::Issue(granted) = judged(&proposal, None, |_, _| {}) else {
            panic!("refused")
        };
        let expected = json!({"tier": "gold", "role": ["partner"], "may_act": {"sub": "gateway"}});
        assert_eq!(Value::Object(granted.claims), expected);
        assert_eq!(Value::Object(granted.parameters), json!({"account": 7}));
        assert_eq!(granted.left_out.len(), 7 + 10);
    }

    #[test]
    fn a_restriction_of_who_may_act_is_never_lost() {
        let with = |may_act: Value| {
            let claims = JsonObject::from_iter([(String::from(MAY_ACT), may_act)]);
            judged(
                &Proposal {
                    claims,
                    ..for_alice()
                },
                None,
                |_, _| {},
            )
        };
        let ProposalVerdict::Issue(granted) = with(json!({})) else {
            panic!("refused")
        };
        assert_eq!(Value::Object(granted.claims), json!({"may_act": {}}));
        assert!(matches!(with(json!("gateway")), ProposalVerdict::Faulty(_)));
    }

    #[test]
    fn only_an_enabled_user_of_the_place_may_be_proposed() {
        type Change = fn(&mut Client, &mut User);
        let acme = || Some(TenantName::new("acme"));
        let cases: [(&str, Change, bool); 6] = [
            ("as registered", |_, _| {}, true),
            ("disabled", |_, user| user.enabled = false, false),
            (
                "another",
                |_, user| user.subject = Subject::new("bob"),
                false,
            ),
            (
                "of a tenant",
                |_, user| user.tenant = Some(TenantName::new("acme")),
                false,
            ),
            (
                "none of ours",
                |client, _| client.identity_providers = Some([String::from("corp")].into()),
                false,
            ),
            (
                "at the client's own",
                |client, _| client.tenants = Some([TenantName::new("acme")].into()),
                true,
            ),
        ];
        for (case, change, is_taken) in cases {
            let verdict = judged(&for_alice(), None, change);
            assert_eq!(
                matches!(verdict, ProposalVerdict::Issue(_)),
                is_taken,
                "{case}: {verdict:?}"
            );
        }
        let of_acme = |tenants: &[&str], asked: Option<TenantName>| {
            let mut client = client();
            client.tenants = Some(tenants.iter().map(|name| TenantName::new(*name)).collect());
            let user = User {
                tenant: acme(),
                ..alice()
            };
            let catalogue = catalogue();
            let asked_scope = scope("openid");
            let circumstances = ProposalCircumstances {
                sender: samples::sender(&client, &catalogue),
                requested: None,
                asked: &asked_scope,
                tenant: asked.as_ref(),
                user: Some(&user),
            };
            matches!(
                judge(&for_alice(), &circumstances),
                ProposalVerdict::Issue(_)
            )
        };
        assert!(of_acme(&["acme"], acme()));
        assert!(!of_acme(&["acme"], None));
        assert!(!of_acme(&["other"], acme()));
    }

    #[test]
    fn a_proposal_narrows_the_scope_and_a_client_alone_gets_none_of_a_users() {
        let narrowed = |text: &str| Proposal {
            scope: Some(scope(text)),
            ..for_alice()
        };
        let refused = |reason| ProposalVerdict::Refuse(invalid_scope(reason));
        for (proposal, requested, expected) in [
            (for_alice(), Some("openid stock"), Ok("openid stock")),
            (narrowed("stock ping"), Some("openid stock"), Ok("stock")),
            (
                narrowed("ping"),
                Some("openid stock"),
                Err(Reason::NoScopeLeft),
            ),
            (Proposal::default(), Some("stock"), Ok("stock")),
            (
                Proposal::default(),
                None,
                Ok("orders.read orders.write stock"),
            ),
            (
                Proposal::default(),
                Some("openid stock"),
                Err(Reason::IdentityScopeForClient),
            ),
        ] {
            let verdict = judged(&proposal, requested, |_, _| {});
            match (expected, verdict) {
                (Ok(text), ProposalVerdict::Issue(granted)) => {
                    assert_eq!(granted.scope.to_string(), text, "{requested:?}");
                }
                (Err(reason), verdict) => assert_eq!(verdict, refused(reason), "{requested:?}"),
                (Ok(_), verdict) => panic!("{requested:?}: {verdict:?}"),
            }
        }
    }

    #[test]
    fn additions_have_two_kibibytes_together() {
        let fills = |name: &str, length: usize| {
            // {"tier":"..."} has eleven characters around the text.
            json!({ name: "x".repeat(length - 11) })
                .as_object()
                .unwrap()
                .clone()
        };
        for (claims, parameters, is_taken) in [
            (LONGEST_ADDITIONS, None, true),
            (LONGEST_ADDITIONS + 1, None, false),
            (LONGEST_ADDITIONS - 100, Some(100), true),
            (LONGEST_ADDITIONS - 100, Some(101), false),
        ] {
            let proposal = Proposal {
                claims: fills("tier", claims),
                parameters: parameters
                    .map(|length| fills("note", length))
                    .unwrap_or_default(),
                ..for_alice()
            };
            let verdict = judged(&proposal, None, |_, _| {});
            assert_eq!(
                matches!(verdict, ProposalVerdict::Issue(_)),
                is_taken,
                "{claims} {parameters:?}"
            );
        }
    }

    #[test]
    fn a_description_is_shown_as_a_text() {
        let description = Description::new("not today").unwrap();
        assert_eq!(format!("{description:?}"), "\"not today\"");
    }

    proptest! {
        #[test]
        fn no_words_leave_that_may_not(text in any::<String>()) {
            let description = Description::new(&text).map(|description| description.as_str().to_owned());
            let fits = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
            prop_assert!(description.is_none_or(|text| text.len() <= 200 && text.bytes().all(fits)));
        }
    }
}
