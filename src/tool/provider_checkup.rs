//! What keeps a registered identity provider from working, by its own answers: for
//! `gatepost idp test`.

use std::collections::BTreeSet;

use gatepost_protocol::keys::key_set::KeySet;
use gatepost_protocol::upstream::metadata::{UpstreamMetadata, address};
use gatepost_protocol::upstream::round_trip::PromptValues;
use gatepost_protocol::words::identity_provider::IdentityProvider;
use gatepost_protocol::words::joined::joined;
use gatepost_registration::finding::Finding;
use gatepost_registration::{broken, fine, weak};

#[derive(Clone, Copy)]
pub enum SecretStanding {
    Absent,
    Opens,
    Lost,
}

/// The provider's answers. Each error is a sentence for operators.
pub enum ProviderAnswers {
    OpenId {
        metadata: Result<Box<UpstreamMetadata>, String>,
        /// The keys at its `jwks_uri`. `None` where no document names one.
        keys: Option<Result<KeySet, String>>,
    },
    /// A provider without an issuer: each endpoint with the status that it answered.
    OAuth {
        token: Result<u16, String>,
        userinfo: Result<u16, String>,
        emails: Option<Result<u16, String>>,
    },
}

pub fn examine(
    provider: &IdentityProvider,
    secret: SecretStanding,
    asked: &ProviderAnswers,
) -> Vec<Finding> {
    let mut findings = of_registration(provider);
    findings.push(secret_at(secret, asked));
    match asked {
        ProviderAnswers::OpenId {
            metadata: Ok(metadata),
            keys,
        } => {
            findings.extend(of_metadata(provider, metadata));
            findings.extend(keys.iter().flat_map(|keys| of_keys(keys, metadata)));
        }
        ProviderAnswers::OpenId {
            metadata: Err(cause),
            ..
        } => {
            findings.push(broken!(
                "discovery at {}: {cause}",
                address(provider.authority())
            ));
        }
        ProviderAnswers::OAuth {
            token,
            userinfo,
            emails,
        } => {
            findings.extend([
                of_prompt(provider, None),
                reached("token_endpoint", token),
                reached("userinfo_endpoint", userinfo),
            ]);
            findings.extend(
                emails
                    .iter()
                    .map(|emails| reached("emails_endpoint", emails)),
            );
        }
    }
    findings
}

fn of_registration(provider: &IdentityProvider) -> Vec<Finding> {
    let enabled = if provider.enabled {
        fine!("it is enabled")
    } else {
        weak!("it is disabled: nobody is sent there")
    };
    // Whether users without an account here can sign in by it.
    let account_page = Finding::fine(match (provider.account_page, provider.provision) {
        (true, true) => {
            "new people get an account, and whoever has one can link one there on the account page"
        }
        (true, false) => {
            "new people get no account (provision), but whoever has one by another way can link \
             one there on the account page: account_page false leaves linking to the operator"
        }
        (false, true) => {
            "new people get an account; the account page does not offer it (account_page)"
        }
        (false, false) => {
            "it lets in only those who are linked by `gatepost user link` (provision, account_page)"
        }
    });
    vec![enabled, account_page]
}

fn of_metadata(provider: &IdentityProvider, metadata: &UpstreamMetadata) -> Vec<Finding> {
    let algorithms = metadata.algorithms.iter().map(|one| one.as_str());
    let mut findings = vec![
        fine!(
            "its discovery document is of the registered issuer, {}",
            provider.authority()
        ),
        fine!("ID tokens are taken with {}", joined(", ", algorithms)),
    ];
    if metadata.userinfo_endpoint.is_none() {
        let text = "it has no userinfo_endpoint: only claims of the ID token can be taken over";
        findings.push(Finding::weak(text));
    }
    if provider.sign_out && metadata.end_session_endpoint.is_none() {
        let text = "sign_out is registered, and it has no end_session_endpoint: sessions \
                    there stay";
        findings.push(Finding::weak(text));
    }
    findings.push(of_prompt(provider, metadata.prompt_values.as_ref()));
    findings.extend(of_response_mode(provider, metadata));
    if let Some(known) = &metadata.scopes {
        let unknown = provider
            .scope
            .iter()
            .filter(|scope| !known.contains(*scope));
        let unknown: Vec<&str> = unknown.collect();
        if !unknown.is_empty() {
            findings.push(weak!(
                "it is asked for a scope that its metadata does not name, which it may refuse: {}",
                unknown.join(", ")
            ));
        }
    }
    findings
}

/// What speaks against the way in which its answer comes back.
fn of_response_mode(provider: &IdentityProvider, metadata: &UpstreamMetadata) -> Option<Finding> {
    let modes = metadata.response_modes.as_ref()?;
    let mode = if provider.posts_answer {
        "form_post"
    } else {
        "query"
    };
    // The standard has no scope `name`.
    let is_like_apple = metadata.scopes.as_ref()?.contains("name") && modes.contains("form_post");
    let asks_for_person = provider.scope.contains("name") || provider.scope.contains("email");
    if !modes.contains(mode) {
        Some(weak!(
            "its metadata does not name the response_mode {mode}, by which its answer is to come"
        ))
    } else if is_like_apple && asks_for_person && !provider.posts_answer {
        Some(weak!(
            "its metadata is like Apple's: asked for name or email, such a provider answers by \
             form_post alone, so register \"response_mode\": \"form_post\""
        ))
    } else {
        None
    }
}

fn secret_at(secret: SecretStanding, asked: &ProviderAnswers) -> Finding {
    let metadata = match asked {
        ProviderAnswers::OpenId { metadata, .. } => metadata.as_deref().ok(),
        ProviderAnswers::OAuth { .. } => None,
    };
    let takes_none = metadata.is_some_and(|metadata| metadata.authentication.is_none());
    let needs_one = metadata.is_some_and(|metadata| !metadata.serves_public_clients);
    match secret {
        SecretStanding::Lost => broken!(
            "its client_secret does not open under the master secret: add that secret's line to \
             GATEPOST_SECRET_FILE, or apply the provider with its client_secret"
        ),
        SecretStanding::Opens if takes_none => broken!(
            "its token endpoint takes neither client_secret_basic nor client_secret_post, and \
             other ways are not spoken here"
        ),
        SecretStanding::Opens => {
            fine!("a client_secret is stored; whether it is right shows at the first sign-in")
        }
        SecretStanding::Absent if needs_one => broken!(
            "no client_secret is registered, and it does not say that it serves clients without \
             one"
        ),
        SecretStanding::Absent => {
            weak!("no client_secret is registered: we go there as a public client")
        }
    }
}

fn of_prompt(provider: &IdentityProvider, announced: Option<&BTreeSet<String>>) -> Finding {
    let registered = provider.prompt_values.as_ref();
    let (listed, source) = match (registered, announced) {
        (Some(registered), _) => (registered, "as registered (prompt_values_supported)"),
        (None, Some(announced)) => (announced, "as its metadata says"),
        (None, None) => {
            return fine!(
                "nobody says which values of prompt it takes, so login and select_account are \
                 sent: where it answers one with an error, register prompt_values_supported"
            );
        }
    };
    let unannounced: Vec<&str> = match announced {
        Some(announced) => listed.difference(announced).map(String::as_str).collect(),
        None => Vec::new(),
    };
    let taken = PromptValues::of(registered, announced);
    if !taken.login && !taken.select_account {
        let rule = "it takes neither login nor select_account as prompt";
        weak!(
            "{rule}, {source}: who is signed in there is not asked, not even where they link an \
             account"
        )
    } else if !unannounced.is_empty() {
        let extra = unannounced.join(", ");
        weak!(
            "prompt_values_supported is registered with {extra}, which its metadata does not name"
        )
    } else {
        fine!("prompt may be {}, {source}", joined(", ", listed))
    }
}

fn of_keys(keys: &Result<KeySet, String>, metadata: &UpstreamMetadata) -> Vec<Finding> {
    let keys = match keys {
        Ok(keys) => keys,
        Err(cause) => {
            return vec![broken!("its keys at {}: {cause}", metadata.jwks_uri)];
        }
    };
    if !metadata
        .algorithms
        .iter()
        .any(|algorithm| keys.has_key_for(*algorithm))
    {
        let rule =
            "among its keys (jwks_uri) is none that is strong enough and fits these algorithms";
        return vec![Finding::broken(rule)];
    }
    let mut findings = vec![fine!("its keys can be had")];
    if keys.has_ambiguous_names() {
        findings.push(weak!(
            "two of its keys have the same kid: tokens under that name are not believed"
        ));
    }
    findings
}

/// Any status counts as reached: without a token or a code the endpoint refuses.
fn reached(endpoint: &str, asked: &Result<u16, String>) -> Finding {
    match asked {
        Ok(300..=399) => {
            broken!("its {endpoint} redirects, which is not followed")
        }
        Ok(status @ 500..) => {
            broken!("its {endpoint} answers with status {status}")
        }
        Ok(status) => fine!("its {endpoint} answers (status {status} to an empty question)"),
        Err(cause) => broken!("its {endpoint}: {cause}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use gatepost_protocol::registration::provider;
    use gatepost_protocol::upstream::metadata::read;
    use gatepost_protocol::words::client::SigningAlgorithm;
    use gatepost_protocol::words::samples::{self, changed};
    use gatepost_registration::finding::Verdict;

    const ISSUER: &str = "https://login.example.com/realms/corp";

    fn document() -> Value {
        json!({
            "issuer": ISSUER,
            "authorization_endpoint": "https://login.example.com/auth",
            "token_endpoint": "https://login.example.com/token",
            "jwks_uri": "https://login.example.com/keys",
        })
    }

    fn registered(changes: Value) -> IdentityProvider {
        let document =
            json!({"name": "corp", "issuer": ISSUER, "client_id": "gatepost", "sign_out": true});
        provider::from_json(&changed(document, changes), "").unwrap()
    }

    fn answers(metadata: UpstreamMetadata) -> ProviderAnswers {
        let one = samples::p256(1).to_jwk();
        let es256 = UpstreamMetadata {
            algorithms: vec![SigningAlgorithm::Es256],
            ..metadata
        };
        ProviderAnswers::OpenId {
            metadata: Ok(Box::new(es256)),
            keys: Some(Ok(KeySet::parse(&json!({"keys": [one]})).unwrap())),
        }
    }

    /// What is not fine.
    fn faults(provider: &IdentityProvider, secret: SecretStanding, of: &ProviderAnswers) -> String {
        let findings = examine(provider, secret, of);
        assert!(findings.len() > 2, "{findings:?}");
        let faults = findings
            .into_iter()
            .filter(|one| one.verdict != Verdict::Fine);
        let faults: Vec<String> = faults.map(|one| one.text).collect();
        faults.join("; ")
    }

    #[test]
    fn what_a_provider_lacks_is_told() {
        use SecretStanding::{Absent, Lost, Opens};
        let whole = json!({
            "userinfo_endpoint": "https://login.example.com/me",
            "end_session_endpoint": "https://login.example.com/out",
        });
        let whole = read(&changed(document(), whole), ISSUER).unwrap();
        let public = UpstreamMetadata {
            serves_public_clients: true,
            ..whole.clone()
        };
        let no_secrets = UpstreamMetadata {
            authentication: None,
            ..whole.clone()
        };
        let no_userinfo = UpstreamMetadata {
            userinfo_endpoint: None,
            ..whole.clone()
        };
        let no_sign_out = UpstreamMetadata {
            end_session_endpoint: None,
            ..whole.clone()
        };
        let named = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let apple = UpstreamMetadata {
            response_modes: named(&["query", "fragment", "form_post"]),
            scopes: named(&["openid", "email", "name"]),
            ..whole.clone()
        };
        let no_query = UpstreamMetadata {
            response_modes: named(&["form_post"]),
            scopes: named(&["openid", "profile", "email"]),
            ..whole.clone()
        };
        let apples = json!({"scope": "openid name", "response_mode": "form_post"});
        for (changes, secret, metadata, fault) in [
            (json!({}), Opens, &apple, "it may refuse: profile"),
            (apples.clone(), Opens, &apple, ""),
            (json!({"scope": "openid"}), Opens, &apple, ""),
            (
                json!({"scope": "openid name"}),
                Opens,
                &apple,
                "like Apple's",
            ),
            (
                json!({"scope": "openid email"}),
                Opens,
                &apple,
                "like Apple's",
            ),
            (json!({}), Opens, &no_query, "the response_mode query"),
            (json!({"response_mode": "form_post"}), Opens, &no_query, ""),
            (json!({}), Opens, &whole, ""),
            (json!({"enabled": false}), Opens, &whole, "it is disabled"),
            (
                json!({}),
                Lost,
                &whole,
                "does not open under the master secret",
            ),
            (
                json!({}),
                Absent,
                &whole,
                "no client_secret is registered, and",
            ),
            (json!({}), Absent, &public, "as a public client"),
            (
                json!({}),
                Opens,
                &no_secrets,
                "takes neither client_secret_basic",
            ),
            (json!({}), Opens, &no_userinfo, "no userinfo_endpoint"),
            (json!({}), Opens, &no_sign_out, "no end_session_endpoint"),
            (json!({"sign_out": false}), Opens, &no_sign_out, ""),
        ] {
            let told = faults(&registered(changes), secret, &answers(metadata.clone()));
            assert!(told.contains(fault), "{fault}: {told}");
            assert_eq!(told.is_empty(), fault.is_empty(), "{fault}: {told}");
        }
    }

    #[test]
    fn prompts_that_are_not_taken_are_told() {
        let values = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (registered_as, announced, fault) in [
            (None, None, ""),
            (None, Some(&["login", "none"][..]), ""),
            (None, Some(&["select_account"]), ""),
            (
                None,
                Some(&["none"]),
                "takes neither login nor select_account",
            ),
            (
                Some(json!(["none"])),
                None,
                "takes neither login nor select_account",
            ),
            (Some(json!(["login"])), None, ""),
            (Some(json!(["login"])), Some(&["login"]), ""),
            (
                Some(json!(["login", "none"])),
                Some(&["login"]),
                "registered with none, which",
            ),
        ] {
            let provider = registered(json!({"prompt_values_supported": registered_as}));
            let announced: Option<BTreeSet<String>> = announced.map(values);
            let told = of_prompt(&provider, announced.as_ref());
            let is_fine = told.verdict == Verdict::Fine;
            assert!(told.text.contains(fault), "{fault}: {}", told.text);
            assert_eq!(is_fine, fault.is_empty(), "{}", told.text);
        }
    }

    #[test]
    fn keys_that_verify_nothing_are_told() {
        let metadata = read(&document(), ISSUER).unwrap();
        let es256 = UpstreamMetadata {
            algorithms: vec![SigningAlgorithm::Es256],
            ..metadata.clone()
        };
        let named = |number| changed(samples::p256(number).to_jwk(), json!({"kid": "a"}));
        let set = |keys: &[Value]| Ok(KeySet::parse(&json!({ "keys": keys })).unwrap());
        for (keys, metadata, fault) in [
            (set(&[named(1)]), &es256, ""),
            (set(&[named(1)]), &metadata, "is none that is strong enough"),
            (set(&[]), &es256, "is none that is strong enough"),
            (set(&[named(1), named(2)]), &es256, "the same kid"),
            (Err(String::from("late")), &es256, "/keys: late"),
        ] {
            let told = of_keys(&keys, metadata);
            let faults = told.iter().filter(|one| one.verdict != Verdict::Fine);
            let faults: Vec<&str> = faults.map(|one| one.text.as_str()).collect();
            assert!(
                !told.is_empty() && faults.join("; ").contains(fault),
                "{told:?}"
            );
            assert_eq!(faults.is_empty(), fault.is_empty(), "{told:?}");
        }
    }
}
