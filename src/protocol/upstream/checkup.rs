//! What keeps people from signing in at a provider, or could be better: what `gatepost idp test` tells.

use std::collections::BTreeSet;

use super::super::registration::provider::IdentityProvider;
use super::PromptValues;
use super::metadata::{UpstreamMetadata, address};
use crate::protocol::keys::key_set::KeySet;
use crate::protocol::words::finding::Finding;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretStanding {
    Absent,
    Opens,
    Lost,
}

/// What came of asking the provider. Each error is a sentence for operators.
#[derive(Clone, Debug)]
pub enum Asked {
    OpenId {
        metadata: Result<UpstreamMetadata, String>,
        /// The keys at its `jwks_uri`; `None` where no document says where that is.
        keys: Option<Result<KeySet, String>>,
    },
    /// One without: whether its endpoints answer at all, each with the status it answered with.
    OAuth { token: Result<u16, String>, userinfo: Result<u16, String>, emails: Option<Result<u16, String>> },
}

pub fn examine(provider: &IdentityProvider, secret: SecretStanding, asked: &Asked) -> Vec<Finding> {
    let enabled = match provider.enabled {
        true => Finding::fine("it is enabled"),
        false => Finding::weak("it is disabled: nobody is sent there"),
    };
    // Who can come in by it besides those who have come before.
    let account_page = Finding::fine(match (provider.account_page, provider.provision) {
        (true, true) => "new people get an account, and whoever has one can link one there on the account page",
        (true, false) => {
            "new people get no account (provision), but whoever has one by another way can link one there on the account page: \
             account_page false leaves linking to the operator"
        }
        (false, true) => "new people get an account; the account page does not offer it (account_page)",
        (false, false) => "it lets in only those who are linked by `gatepost user link` (provision, account_page)",
    });
    let mut findings = vec![enabled, account_page];
    match asked {
        Asked::OpenId { metadata: Ok(metadata), keys } => {
            let algorithms: Vec<&str> = metadata.algorithms.iter().map(|algorithm| algorithm.as_str()).collect();
            findings.extend([
                secret_at(secret, Some(metadata)),
                Finding::fine(format!("its discovery document is of the registered issuer, {}", provider.authority())),
                Finding::fine(format!("ID tokens are taken with {}", algorithms.join(", "))),
            ]);
            if metadata.userinfo_endpoint.is_none() {
                let text = "it has no userinfo_endpoint: only claims of the ID token can be taken over";
                findings.push(Finding::weak(text));
            }
            if provider.sign_out && metadata.end_session_endpoint.is_none() {
                let text = "sign_out is registered, and it has no end_session_endpoint: sessions there stay";
                findings.push(Finding::weak(text));
            }
            findings.push(of_prompt(provider, metadata.prompt_values.as_ref()));
            findings.extend(keys.iter().flat_map(|keys| of_keys(keys, metadata)));
        }
        Asked::OpenId { metadata: Err(cause), .. } => {
            findings.push(secret_at(secret, None));
            findings.push(Finding::broken(format!("discovery at {}: {cause}", address(provider.authority()))));
        }
        Asked::OAuth { token, userinfo, emails } => {
            findings.push(secret_at(secret, None));
            findings.push(of_prompt(provider, None));
            findings.push(reached("token_endpoint", token));
            findings.push(reached("userinfo_endpoint", userinfo));
            findings.extend(emails.iter().map(|emails| reached("emails_endpoint", emails)));
        }
    }
    findings
}

fn secret_at(secret: SecretStanding, metadata: Option<&UpstreamMetadata>) -> Finding {
    let takes_none = metadata.is_some_and(|metadata| metadata.authentication.is_none());
    let needs_one = metadata.is_some_and(|metadata| !metadata.serves_public_clients);
    match secret {
        SecretStanding::Lost => Finding::broken(
            "its client_secret does not open under the master secret: add that secret's line to GATEPOST_SECRET_FILE, or apply \
             the provider with its client_secret",
        ),
        SecretStanding::Opens if takes_none => Finding::broken(
            "its token endpoint takes neither client_secret_basic nor client_secret_post, and other ways are not spoken here",
        ),
        SecretStanding::Opens => {
            Finding::fine("a client_secret is stored; whether it is right shows at the first sign-in")
        }
        SecretStanding::Absent if needs_one => {
            Finding::broken("no client_secret is registered, and it does not say that it serves clients without one")
        }
        SecretStanding::Absent => Finding::weak("no client_secret is registered: we go there as a public client"),
    }
}

fn of_prompt(provider: &IdentityProvider, announced: Option<&BTreeSet<String>>) -> Finding {
    let registered = provider.prompt_values.as_ref();
    let (listed, source) = match (registered, announced) {
        (Some(registered), _) => (registered, "as registered (prompt_values_supported)"),
        (None, Some(announced)) => (announced, "as its metadata says"),
        (None, None) => {
            return Finding::fine(
                "nobody says which values of prompt it takes, so login and select_account are sent: where it answers one with an \
                 error, register prompt_values_supported",
            );
        }
    };
    let is_announced = |value: &&str| announced.is_none_or(|announced| announced.contains(*value));
    let unannounced: Vec<&str> = listed.iter().map(String::as_str).filter(|value| !is_announced(value)).collect();
    let taken = PromptValues::of(registered, announced);
    if !taken.login && !taken.select_account {
        let rule = "it takes neither login nor select_account as prompt";
        Finding::weak(format!(
            "{rule}, {source}: who is signed in there is not asked, not even where they link an account"
        ))
    } else if !unannounced.is_empty() {
        let extra = unannounced.join(", ");
        Finding::weak(format!("prompt_values_supported is registered with {extra}, which its metadata does not name"))
    } else {
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        Finding::fine(format!("prompt may be {}, {source}", listed.join(", ")))
    }
}

fn of_keys(keys: &Result<KeySet, String>, metadata: &UpstreamMetadata) -> Vec<Finding> {
    let keys = match keys {
        Ok(keys) => keys,
        Err(cause) => return vec![Finding::broken(format!("its keys at {}: {cause}", metadata.jwks_uri))],
    };
    if !metadata.algorithms.iter().any(|algorithm| keys.has_key_for(*algorithm)) {
        let rule = "among its keys (jwks_uri) is none that is strong enough and fits these algorithms";
        return vec![Finding::broken(rule)];
    }
    let mut findings = vec![Finding::fine("its keys can be had")];
    if keys.has_ambiguous_names() {
        findings.push(Finding::weak("two of its keys have the same kid: tokens under that name are not believed"));
    }
    findings
}

/// Any answer will do: what is asked without a token or a code is refused.
fn reached(endpoint: &str, asked: &Result<u16, String>) -> Finding {
    match asked {
        Ok(300..=399) => Finding::broken(format!("its {endpoint} redirects, which is not followed")),
        Ok(status @ 500..) => Finding::broken(format!("its {endpoint} answers with status {status}")),
        Ok(status) => Finding::fine(format!("its {endpoint} answers (status {status} to an empty question)")),
        Err(cause) => Finding::broken(format!("its {endpoint}: {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::registration::provider;
    use super::*;
    use crate::protocol::keys::jwks::PublicKey;
    use crate::protocol::words::client::SigningAlgorithm;
    use crate::protocol::words::finding::Verdict;
    use crate::protocol::words::samples::changed;

    fn provider(changes: &Value) -> IdentityProvider {
        let document = json!({"name": "corp", "issuer": "https://up.example", "client_id": "gatepost"});
        provider::from_json(&changed(document, changes.clone()), "").unwrap()
    }

    /// Each thing that is not as it should be, at a provider in order but for these changes.
    #[test]
    fn what_works_in_part_is_told_and_what_is_in_order_is_not() {
        use SecretStanding::{Absent, Opens};
        let eddsa = || UpstreamMetadata {
            userinfo_endpoint: Some(String::from("https://up.example/u")),
            algorithms: vec![SigningAlgorithm::EdDsa],
            authentication: Some(super::super::metadata::SecretTransport::Basic),
            ..UpstreamMetadata::default()
        };
        let public = || UpstreamMetadata { serves_public_clients: true, ..eddsa() };
        let rs256 = || UpstreamMetadata { algorithms: vec![SigningAlgorithm::Rs256], ..eddsa() };
        let no_userinfo = || UpstreamMetadata { userinfo_endpoint: None, ..eddsa() };
        for (changes, secret, metadata, expected) in [
            (json!({}), Opens, eddsa(), None),
            (json!({}), Absent, public(), Some((Verdict::Weak, "public client"))),
            (json!({"enabled": false}), Opens, eddsa(), Some((Verdict::Weak, "disabled"))),
            (json!({}), Opens, rs256(), Some((Verdict::Broken, "fits these algorithms"))),
            (json!({"sign_out": true}), Opens, eddsa(), Some((Verdict::Weak, "no end_session_endpoint"))),
            (json!({}), Opens, no_userinfo(), Some((Verdict::Weak, "no userinfo_endpoint"))),
        ] {
            let keys = KeySet::parse(&json!({"keys": [PublicKey::Ed25519 { x: [7; 32] }.to_jwk()]})).unwrap();
            let asked = Asked::OpenId { metadata: Ok(metadata), keys: Some(Ok(keys)) };
            let mut found = examine(&provider(&changes), secret, &asked);
            found.retain(|finding| finding.verdict != Verdict::Fine);
            let is_it = |(verdict, text): (Verdict, &str)| {
                found.iter().all(|one| one.verdict == verdict && one.text.contains(text))
            };
            assert!(
                found.len() == usize::from(expected.is_some()) && expected.is_none_or(is_it),
                "{expected:?}: {found:?}"
            );
        }
    }
}
