//! What `gatepost client test` says of a client: what keeps it from working, or makes it weaker
//! than necessary.

use std::time::Duration;

use crate::finding::Finding;
use crate::grade::grade;
use crate::{broken, fine, weak};
use gatepost_protocol::authorize::authorize_request::check_kinds;
use gatepost_protocol::authorize::interaction::always_asks;
use gatepost_protocol::token::audience::granted_scope;
use gatepost_protocol::token::client_secret::SecretDigest;
use gatepost_protocol::words::catalogue::Catalogue;
use gatepost_protocol::words::client::{
    AccessTokenType, Client, ClientAuthenticationMethod, CodeBinding, GrantType, SigningAlgorithm,
    WorkloadIdentity,
};
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::joined::joined;
use gatepost_protocol::words::redirect_uri::RedirectTarget;
use gatepost_protocol::words::response_type::ResponseType;
use gatepost_protocol::words::scope::{OFFLINE_ACCESS, OPENID, ScopeKind, ScopeSet};
use gatepost_protocol::words::session::LOCAL;

/// A secret that ends within this time is mentioned.
const SOON: Duration = Duration::from_secs(30 * 86_400);

/// Examines everything. `secrets` holds `None` for a secret that does not open under the master
/// secret. `signing` are the algorithms that have a signing key.
pub fn examine(
    client: &Client,
    secrets: &[Option<SecretDigest>],
    signing: &[SigningAlgorithm],
    catalogue: &Catalogue,
    now: Instant,
) -> Vec<Finding> {
    let mut findings = vec![if client.enabled {
        fine!("it is enabled")
    } else {
        broken!("it is disabled: register \"enabled\": true")
    }];
    findings.extend(of_credentials(client, secrets, now));
    findings.extend(of_signing(client, signing));
    findings.push(of_grants(client));
    let uses_code = client.allows_grant(&GrantType::AuthorizationCode);
    if uses_code && client.redirect_uris.is_empty() && !client.metadata_document {
        findings.push(broken!("the code flow without redirect_uris"));
    }
    findings.extend(of_session_watching(client));
    if client.scope.iter().next().is_none() {
        findings.push(weak!("it may ask for no scope"));
    }
    findings.extend(never_granted(client, catalogue));
    // It can be registered on loopback alone, which no network sees.
    if client
        .redirect_uris
        .iter()
        .any(|uri| uri.starts_with("http://"))
    {
        findings.push(fine!(
            "a redirect URI on http: for programs on the person's own machine"
        ));
    }
    if uses_code {
        findings.push(of_code_binding(client));
    }
    findings.extend(by_proof(client));
    findings.extend(consent_each_time(client));
    findings.push(grade(client, now));
    findings.extend(ways_to_sign_in(client, catalogue));
    findings.extend(weaknesses(client));
    findings
}

/// Algorithms of its tokens that have no signing key.
fn of_signing(client: &Client, signing: &[SigningAlgorithm]) -> Vec<Finding> {
    let mut algorithms = vec![client.id_token_signed_response_alg];
    if signs_access_tokens(client) {
        algorithms.push(client.access_token_signed_response_alg);
    }
    let mut findings = Vec::new();
    for algorithm in algorithms {
        if !signing.contains(&algorithm) {
            let name = algorithm.as_str();
            let text = format!("no key signs with {name}: see `gatepost key list`");
            findings.push(Finding::broken(text));
        }
    }
    findings
}

fn signs_access_tokens(client: &Client) -> bool {
    match client.access_token_type {
        AccessTokenType::Jwt => true,
        AccessTokenType::Reference => false,
    }
}

fn of_grants(client: &Client) -> Finding {
    if client.grant_types.is_empty() {
        broken!("it is registered for no grant: nothing can be asked for")
    } else {
        let names = client.grant_types.iter().map(GrantType::as_str);
        fine!("grants: {}", joined(", ", names))
    }
}

/// oidc-client signs in with `id_token token`, but looks by `id_token` whether the session is still
/// there.
fn of_session_watching(client: &Client) -> Option<Finding> {
    let mut response_types = client.response_types.iter();
    let watches = response_types.any(|kind| kind.is_id_token_alone());
    if watches || client.response_types.iter().all(|kind| kind.code) {
        return None;
    }
    let effect = "a library that watches the session by it takes the refusal for a sign-out";
    Some(weak!(
        "the implicit flow without the response type id_token: {effect}"
    ))
}

/// What makes a stolen code useless.
fn of_code_binding(client: &Client) -> Finding {
    match client.code_binding() {
        CodeBinding::Pkce => fine!("this client must send PKCE: code_challenge, with S256"),
        CodeBinding::PkceOrNonce => fine!(
            "PKCE or a nonce is required; if it uses PKCE, \"require_pkce\": true is stronger"
        ),
        CodeBinding::Neither => {
            weak!("neither PKCE nor a nonce is required (RFC 9700 §2.1.1): leave require_pkce out")
        }
    }
}

/// Flows that the client is registered for, and whose every request is refused for its scope.
fn never_granted(client: &Client, catalogue: &Catalogue) -> Vec<Finding> {
    let mut findings = Vec::new();
    for response_type in &client.response_types {
        if askable_scope(client, *response_type, catalogue).is_none() {
            findings.push(broken!(
                "response_type={response_type} is always refused: add {} to its scope",
                missing_scope(*response_type)
            ));
        }
    }
    let uses_client_credentials = client.allows_grant(&GrantType::ClientCredentials);
    if uses_client_credentials && granted_scope(None, client, catalogue).is_err() {
        let refused = "client_credentials is always refused: add a resource scope to its scope";
        findings.push(if client.response_types.is_empty() {
            Finding::broken(refused)
        } else {
            Finding::weak(refused)
        });
    }
    findings
}

/// The most that the client can ask for with that response type; `None` where every request is
/// refused. The claims of a user need `openid`: without it, resource scopes are left.
pub fn askable_scope(
    client: &Client,
    response_type: ResponseType,
    catalogue: &Catalogue,
) -> Option<ScopeSet> {
    let has_openid = client.scope.contains(OPENID);
    let scope = client.scope.retain(|name| match catalogue.kind(name) {
        Some(kind) if response_type.takes(kind) => {
            has_openid || kind == ScopeKind::Resource || name == OFFLINE_ACCESS
        }
        _ => false,
    });
    // offline_access alone leads to nothing.
    let is_of_use = scope.iter().any(|name| name != OFFLINE_ACCESS);
    (is_of_use && check_kinds(&scope, response_type, catalogue).is_ok()).then_some(scope)
}

/// What the scope lacks where [`askable_scope`] finds none.
fn missing_scope(response_type: ResponseType) -> &'static str {
    if response_type == ResponseType::CODE {
        "openid or a resource scope"
    } else if response_type.takes(ScopeKind::Identity) {
        "openid"
    } else {
        "a resource scope"
    }
}

/// Tokens that outlive the key that signed them: once the key is no longer published, nobody can
/// check them. `published` is how long a key stays published after its last signature.
pub fn outlives_keys(client: &Client, published: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    let effect = "is longer than a signing key stays published: such tokens cannot be checked \
                  until they expire";
    if signs_access_tokens(client) && client.lifetimes.access_token > published {
        findings.push(weak!(
            "access_token_lifetime {effect}; shorten it, register \"access_token_type\": \
             \"reference\", or lengthen GATEPOST_KEY_PUBLISH_DAYS"
        ));
    }
    if client.lifetimes.id_token > published {
        findings.push(weak!(
            "id_token_lifetime {effect}; shorten it, or lengthen GATEPOST_KEY_PUBLISH_DAYS"
        ));
    }
    findings
}

/// How it authenticates.
fn of_credentials(client: &Client, secrets: &[Option<SecretDigest>], now: Instant) -> Vec<Finding> {
    let has_keys = client.jwks.is_some() || client.jwks_uri.is_some();
    let has_other_proof = client.metadata_document || !client.federated.is_empty();
    match client.authentication {
        ClientAuthenticationMethod::None => vec![fine!("it is public: no secret")],
        ClientAuthenticationMethod::PrivateKeyJwt if !has_keys && !has_other_proof => {
            vec![broken!(
                "private_key_jwt without a key: register jwks, jwks_uri or federated"
            )]
        }
        ClientAuthenticationMethod::PrivateKeyJwt => {
            let own = has_keys.then(|| fine!("it authenticates with its own key"));
            let workloads = client.federated.iter().flat_map(of_workload);
            own.into_iter().chain(workloads).collect()
        }
        ClientAuthenticationMethod::AnySecret
        | ClientAuthenticationMethod::ClientSecretBasic
        | ClientAuthenticationMethod::ClientSecretPost => of_secrets(client, secrets, now),
    }
}

/// Whether its access tokens are of use to a thief.
fn by_proof(client: &Client) -> Option<Finding> {
    let told = match (client.requires_dpop, client.requires_dpop_nonce) {
        (true, true) => "it must send DPoP proofs with a nonce: its tokens are bound to a key",
        (true, false) => "it must send DPoP proofs: its tokens are bound to a key",
        (false, true) => "where it sends DPoP proofs, they must have a nonce",
        (false, false) => return None,
    };
    Some(Finding::fine(told))
}

/// Who signs in at each visit. `bound_sessions`: browsers are asked to bind their sessions.
pub fn by_bound_session(client: &Client, bound_sessions: bool) -> Option<Finding> {
    let rule = "require_bound_session: a sign-in counts for 90 seconds";
    client.require_bound_session.then(|| {
        if bound_sessions {
            fine!("{rule}, unless their browser has bound its session to a key")
        } else {
            weak!("{rule}, anybody's, because GATEPOST_BOUND_SESSIONS is off")
        }
    })
}

/// What a workload's registration leaves open.
fn of_workload(entry: &WorkloadIdentity) -> Vec<Finding> {
    let subject = &entry.subject;
    let mut findings = vec![fine!("tokens of the workload {subject} authenticate it")];
    let repository = subject.strip_prefix("repo:");
    let repository = repository.and_then(|rest| rest.split(':').next());
    if repository.is_some_and(|names| names.split('/').any(|name| !name.contains('@'))) {
        findings.push(weak!(
            "{subject}: names of owners and repositories are taken anew by others; have GitHub add \
             their ids"
        ));
    }
    if subject.starts_with("repo:") && subject.ends_with(":pull_request") {
        findings.push(weak!(
            "{subject}: whoever may open a pull request has such a token"
        ));
    }
    if entry.audience.is_some() {
        findings.push(weak!(
            "{subject}: audience takes tokens that were made for somebody else; leave it out, and \
             ask the platform for this issuer"
        ));
    }
    findings
}

fn of_secrets(client: &Client, secrets: &[Option<SecretDigest>], now: Instant) -> Vec<Finding> {
    let id = client.client_id.in_text();
    let mut findings = Vec::new();
    let lost = secrets.iter().filter(|secret| secret.is_none()).count();
    if lost > 0 {
        let remedy = "add the master secret's old line, or make a new one with \
                      `gatepost client secret --replace`";
        findings.push(broken!(
            "{lost} of its secrets do not open under the master secret: {remedy}"
        ));
    }
    let good_now = good_at(secrets, now);
    let good_soon = good_at(secrets, now.plus(SOON));
    findings.push(match (good_now, good_soon) {
        (0, _) => broken!("it has no secret that is good: `gatepost client secret {id}` makes one"),
        (_, 0) => weak!(
            "its last secret ends within 30 days: `gatepost client secret {id}` makes another"
        ),
        (count, _) => fine!("secrets that are good: {count}"),
    });
    findings
}

fn good_at(secrets: &[Option<SecretDigest>], then: Instant) -> usize {
    let secrets = secrets.iter().flatten();
    let good = secrets.filter(|secret| secret.expires_at.is_none_or(|end| then < end));
    good.count()
}

/// Whether users are asked for consent each time although the registration does not demand it.
fn consent_each_time(client: &Client) -> Option<Finding> {
    let mut asking = Vec::new();
    for uri in &client.redirect_uris {
        let target = RedirectTarget::match_registered(uri, client);
        asking.extend(target.filter(|target| always_asks(client, target)));
    }
    if asking.is_empty() {
        return None;
    }
    let uris = joined(", ", asking.iter().map(RedirectTarget::uri));
    let remedy = if asking.iter().any(RedirectTarget::is_loopback) {
        ": \"allow_remember_consent\": true keeps the answer on loopback, \"require_consent\": \
         false does not ask"
    } else {
        ": \"require_consent\": false does not ask"
    };
    let told = "people are asked for consent each time, and prompt=none is consent_required, at";
    Some(fine!(
        "{told} {uris}, where any program can pose as it (RFC 8252 §8.6){remedy}"
    ))
}

/// The client as somebody sees it who reaches these tenants: without the names of other tenants'
/// providers. An empty name stands for no tenant: whoever reaches that sees all.
pub fn as_seen(client: &Client, catalogue: &Catalogue, reach: &[&str]) -> Client {
    let mut seen = client.clone();
    let Some(named) = &mut seen.identity_providers else {
        return seen;
    };
    for provider in catalogue.identity_providers.values() {
        if !is_seen(provider, reach) {
            named.remove(&provider.name);
        }
    }
    seen
}

fn is_seen(provider: &IdentityProvider, reach: &[&str]) -> bool {
    let tenant = provider.tenant.as_ref();
    reach.contains(&"") || tenant.is_none_or(|tenant| reach.contains(&tenant.as_str()))
}

/// Whether anybody can sign in for this client. Only a client that names its `identity_providers`
/// can have none that works.
pub fn ways_to_sign_in(client: &Client, catalogue: &Catalogue) -> Option<Finding> {
    let named = client.identity_providers.as_ref()?;
    let mut usable = Vec::new();
    let mut others = Vec::new();
    for name in named {
        match obstacle(client, name, catalogue) {
            None => usable.push(name.as_str()),
            Some(why) => others.push(format!("{name} ({why})")),
        }
    }
    let listed = usable.join(", ");
    let unusable = others.join(", ");
    Some(match (usable.is_empty(), others.is_empty()) {
        (true, true) => broken!("nobody can sign in for it"),
        (true, false) => broken!("nobody can sign in for it with {unusable}"),
        (false, true) => fine!("people sign in with: {listed}"),
        (false, false) => weak!("people sign in with: {listed}; nobody can with {unusable}"),
    })
}

/// Why nobody can sign in for this client with a provider that it names.
fn obstacle(client: &Client, name: &str, catalogue: &Catalogue) -> Option<String> {
    if name == LOCAL {
        return None;
    }
    let Some(provider) = catalogue.identity_providers.get(name) else {
        return Some(String::from("not registered"));
    };
    if !provider.enabled {
        return Some(String::from("disabled"));
    }
    let tenant = provider.tenant.as_ref()?;
    (!client.allows_tenant(tenant))
        .then(|| format!("for the tenant {tenant}, which this client does not have"))
}

/// What RFC 9700 advises against.
fn weaknesses(client: &Client) -> Vec<Finding> {
    let told = [
        (
            client.allow_access_tokens_via_browser,
            "access tokens may pass through the browser (RFC 9700 §2.1.2)",
        ),
        (
            client.allows_grant(&GrantType::Implicit),
            "the implicit grant (RFC 9700 §2.1.2)",
        ),
        (
            client.allows_grant(&GrantType::Password),
            "the password grant: it sees passwords (RFC 9700 §2.4)",
        ),
        (client.allow_plain_pkce, "PKCE may be plain"),
        (
            client.lifetimes.client_credentials_token.is_some(),
            "its tokens live long: whoever reads one has it until then, or until \
             `gatepost client revoke`",
        ),
    ];
    let mut findings = Vec::new();
    for (is_so, text) in told {
        if is_so {
            findings.push(Finding::weak(text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::finding::Verdict;
    use gatepost_protocol::registration;
    use gatepost_protocol::registration::client_rules::ClientDefaults;
    use gatepost_protocol::token::client_secret::DigestAlgorithm;
    use gatepost_protocol::words::samples::{self, NOW};
    use gatepost_protocol::words::secret::SecretBytes;

    fn client(adjust: &Value) -> Client {
        let mut metadata = json!({"client_id": "web", "confidential": true, "scope": "openid", "redirect_uris": ["https://a.example/cb"]});
        metadata
            .as_object_mut()
            .unwrap()
            .extend(adjust.as_object().unwrap().clone());
        registration::client::from_json(&metadata, "", &ClientDefaults::default()).unwrap()
    }

    fn secret(expires_at: Option<Instant>) -> Option<SecretDigest> {
        Some(SecretDigest {
            algorithm: DigestAlgorithm::Sha256,
            digest: SecretBytes::new([1; 32]),
            expires_at,
        })
    }

    /// Providers: one in use, one that is not, and one of a tenant.
    fn catalogue() -> Catalogue {
        let providers = [
            ("corp", true, None),
            ("old", false, None),
            ("house", true, Some("acme")),
        ];
        let providers = providers.map(|(name, enabled, tenant)| {
            let issuer = format!("https://{name}.example");
            let document = json!({"name": name, "issuer": issuer, "client_id": "gatepost", "enabled": enabled, "tenant": tenant});
            let provider = registration::provider::from_json(&document, "").unwrap();
            (name.to_owned(), provider)
        });
        Catalogue {
            identity_providers: providers.into(),
            ..samples::catalogue()
        }
    }

    fn told(
        adjust: &Value,
        secrets: &[Option<SecretDigest>],
        signing: &[SigningAlgorithm],
    ) -> Vec<(Verdict, String)> {
        let findings = examine(&client(adjust), secrets, signing, &catalogue(), NOW);
        let told = findings
            .into_iter()
            .filter(|finding| finding.verdict != Verdict::Fine);
        told.map(|finding| (finding.verdict, finding.text))
            .collect()
    }

    #[test]
    fn a_client_in_order_has_nothing_told_against_it() {
        for adjust in [
            json!({}),
            json!({"identity_providers": ["local"]}),
            json!({"identity_providers": ["corp"]}),
            json!({"identity_providers": ["house"]}),
            json!({"identity_providers": ["house"], "tenants": ["acme", "globex"]}),
            json!({"scope": "ping"}),
            json!({"scope": "profile ping"}),
            json!({"grant_types": ["client_credentials"], "redirect_uris": [], "scope": "openid ping"}),
        ] {
            assert_eq!(told(&adjust, &[secret(None)], &SigningAlgorithm::ALL), []);
        }
    }

    #[test]
    fn signed_tokens_that_outlive_their_key_are_told() {
        let day = Duration::from_secs(86_400);
        for (adjust, named) in [
            (json!({}), vec![]),
            (
                json!({"access_token_lifetime": "14d", "id_token_lifetime": "14d"}),
                vec![],
            ),
            (
                json!({"access_token_lifetime": "30d"}),
                vec!["access_token_lifetime"],
            ),
            (
                json!({"access_token_lifetime": "30d", "id_token_lifetime": "15d"}),
                vec!["access_token_lifetime", "id_token_lifetime"],
            ),
            (
                json!({"access_token_lifetime": "30d", "access_token_type": "reference"}),
                vec![],
            ),
        ] {
            let findings = outlives_keys(&client(&adjust), 14 * day);
            let told: Vec<&str> = findings
                .iter()
                .filter_map(|finding| finding.text.split(' ').next())
                .collect();
            assert_eq!(told, named, "{adjust}");
            assert!(
                findings
                    .iter()
                    .all(|finding| finding.verdict == Verdict::Weak)
            );
        }
    }

    #[test]
    fn a_public_client_on_this_machine_is_told_that_people_are_asked_each_time() {
        let on = |uri: &str, said: Value| {
            let mut adjust = json!({"confidential": false, "redirect_uris": [uri]});
            adjust
                .as_object_mut()
                .unwrap()
                .extend(said.as_object().unwrap().clone());
            let findings = examine(
                &client(&adjust),
                &[],
                &SigningAlgorithm::ALL,
                &catalogue(),
                NOW,
            );
            findings
                .into_iter()
                .map(|finding| finding.text)
                .find(|text| text.contains("asked for consent each time"))
        };
        let (spa, app) = ("http://localhost:3000/cb", "com.example.app:/cb");
        let told = on(spa, json!({})).unwrap();
        assert!(
            told.contains(spa) && told.contains("\"allow_remember_consent\": true"),
            "{told}"
        );
        assert!(
            !on(app, json!({"allow_remember_consent": true}))
                .unwrap()
                .contains("allow_remember_consent")
        );
        for (uri, said) in [
            ("https://spa.example/cb", json!({})),
            (spa, json!({"allow_remember_consent": true})),
            (spa, json!({"require_consent": false})),
            (app, json!({"require_consent": false})),
            (spa, json!({"confidential": true})),
        ] {
            assert_eq!(on(uri, said.clone()), None, "{uri} {said}");
        }
    }

    #[test]
    fn what_does_not_work_and_what_is_weak_is_told() {
        let (past, soon) = (
            NOW.minus(Duration::from_secs(1)),
            NOW.plus(Duration::from_secs(60)),
        );
        for (adjust, secrets, verdict, text) in [
            (
                json!({"enabled": false}),
                vec![secret(None)],
                Verdict::Broken,
                "disabled",
            ),
            (json!({}), vec![], Verdict::Broken, "no secret that is good"),
            (
                json!({}),
                vec![secret(Some(past))],
                Verdict::Broken,
                "no secret that is good",
            ),
            (
                json!({}),
                vec![secret(Some(soon))],
                Verdict::Weak,
                "within 30 days",
            ),
            (
                json!({}),
                vec![secret(None), None],
                Verdict::Broken,
                "do not open under the master secret",
            ),
            (
                json!({"id_token_signed_response_alg": "EdDSA"}),
                vec![secret(None)],
                Verdict::Broken,
                "no key signs with EdDSA",
            ),
            (
                json!({"identity_providers": ["old"]}),
                vec![secret(None)],
                Verdict::Broken,
                "nobody can sign in for it with old (disabled)",
            ),
            (
                json!({"identity_providers": ["corp", "old"]}),
                vec![secret(None)],
                Verdict::Weak,
                "sign in with: corp; nobody can with old (disabled)",
            ),
            (
                json!({"identity_providers": ["house"], "tenants": ["globex"]}),
                vec![secret(None)],
                Verdict::Broken,
                "nobody can sign in for it with house (for the tenant acme, which this client does not",
            ),
            (
                json!({"response_types": ["id_token token"], "allow_access_tokens_via_browser": true}),
                vec![secret(None)],
                Verdict::Weak,
                "the implicit flow without the response type id_token",
            ),
            (
                json!({"scope": "profile email"}),
                vec![secret(None)],
                Verdict::Broken,
                "response_type=code is always refused: add openid or a resource scope to its scope",
            ),
            (
                json!({"scope": "profile ping", "response_types": ["id_token"]}),
                vec![secret(None)],
                Verdict::Broken,
                "response_type=id_token is always refused: add openid to its scope",
            ),
            (
                json!({"scope": "ping", "response_types": ["code id_token"]}),
                vec![secret(None)],
                Verdict::Broken,
                "response_type=code id_token is always refused: add openid to its scope",
            ),
            (
                json!({"response_types": ["token"], "allow_access_tokens_via_browser": true}),
                vec![secret(None)],
                Verdict::Broken,
                "response_type=token is always refused: add a resource scope to its scope",
            ),
            (
                json!({"grant_types": ["client_credentials"], "redirect_uris": [], "scope": "openid profile"}),
                vec![secret(None)],
                Verdict::Broken,
                "client_credentials is always refused: add a resource scope to its scope",
            ),
            (
                json!({"require_pkce": false}),
                vec![secret(None)],
                Verdict::Weak,
                "neither PKCE nor a nonce is required",
            ),
        ] {
            let told = told(&adjust, &secrets, &[SigningAlgorithm::Rs256]);
            assert!(
                told.iter()
                    .any(|(seen, said)| *seen == verdict && said.contains(text)),
                "{adjust}: {told:?}"
            );
        }
    }
}
