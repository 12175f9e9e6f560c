//! Tokens of workloads: a pipeline or a pod gets one from the platform that it runs on, and
//! authenticates with it as a client (RFC 7523 §2.2 with an issuer elsewhere). GitHub Actions,
//! GitLab, Kubernetes and SPIFFE give such tokens out. The registration says whose is taken.

use serde_json::{Map, Value};

use crate::protocol::token::assertion::{SKEW, numeric_date, single};
use crate::protocol::words::client::WorkloadIdentity;
use crate::protocol::words::instant::Instant;
use crate::protocol::words::reason::Reason;

/// The entry that the token fits: `iss`, `sub` and each registered claim are equal byte for byte.
/// `None` also for a token with our own `iss`: a token of ours never authenticates a client.
pub fn registered<'a>(
    entries: &'a [WorkloadIdentity],
    claims: &Map<String, Value>,
    our_issuer: &str,
) -> Option<&'a WorkloadIdentity> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") == Some(our_issuer) {
        return None;
    }
    entries.iter().find(|entry| {
        let is_issuer = entry.issuer.is_none() || text("iss") == entry.issuer.as_deref();
        let is_subject = text("sub") == Some(entry.subject.as_str());
        let mut wanted = entry.claims.iter();
        is_issuer && is_subject && wanted.all(|(name, value)| text(name) == Some(value))
    })
}

/// Judges audience and times of a token whose signature was verified. It may be used again until it
/// ends: Kubernetes and SPIFFE give one token out many times.
pub fn judge(
    claims: &Map<String, Value>,
    entry: &WorkloadIdentity,
    our_issuer: &str,
    now: Instant,
) -> Result<(), Reason> {
    let audience = entry.audience.as_deref().unwrap_or(our_issuer);
    if claims.get("aud").and_then(single) != Some(audience) {
        return Err(Reason::ClientAssertionAudience);
    }
    let time = |name: &str| match claims.get(name) {
        None => Ok(None),
        Some(value) => numeric_date(value)
            .map(Some)
            .ok_or(Reason::ClientAssertionTimes),
    };
    let issued_at = time("iat")?;
    let not_before = time("nbf")?;
    let expires_at = time("exp")?.ok_or(Reason::ClientAssertionTimes)?;
    let latest_begin = now.plus(SKEW);
    let is_ahead = |begin: Option<Instant>| begin.is_some_and(|begin| begin > latest_begin);
    if now >= expires_at.plus(SKEW) || is_ahead(issued_at) || is_ahead(not_before) {
        return Err(Reason::ClientAssertionTimes);
    }
    let longest = match issued_at {
        Some(issued_at) => issued_at.plus(entry.max_lifetime),
        None => latest_begin.plus(entry.max_lifetime),
    };
    match expires_at <= longest {
        true => Ok(()),
        false => Err(Reason::WorkloadTokenTooLong),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::protocol::words::samples::NOW;

    const OURS: &str = "https://login.example.com";
    const ISSUER: &str = "https://token.actions.githubusercontent.com";
    const SUBJECT: &str = "repo:acme@12/shop@34:environment:production";

    fn entry() -> WorkloadIdentity {
        WorkloadIdentity {
            issuer: Some(String::from(ISSUER)),
            subject: String::from(SUBJECT),
            audience: None,
            claims: BTreeMap::from([(String::from("repository_id"), String::from("34"))]),
            jwks: None,
            jwks_uri: Some(format!("{ISSUER}/.well-known/jwks")),
            max_lifetime: Duration::from_secs(3_600),
        }
    }

    fn token(changes: &Value) -> Map<String, Value> {
        let now = NOW.seconds();
        let mut token = json!({
            "iss": ISSUER, "sub": SUBJECT, "aud": OURS, "repository_id": "34", "iat": now - 10, "exp": now + 300,
        });
        for (name, value) in changes.as_object().unwrap() {
            token[name] = value.clone();
        }
        let members = token.as_object_mut().unwrap();
        members.retain(|_, value| !value.is_null());
        members.clone()
    }

    #[test]
    fn an_entry_is_for_one_workload_alone() {
        let entries = [entry()];
        assert!(registered(&entries, &token(&json!({})), OURS).is_some());
        for changes in [
            json!({"iss": "https://token.actions.githubusercontent.com/"}),
            json!({"iss": OURS}),
            json!({"iss": null}),
            json!({"iss": [ISSUER]}),
            json!({"sub": "repo:acme@12/shop@34:environment:Production"}),
            json!({"sub": "repo:acme@12/shop@34:environment:production2"}),
            json!({"sub": "repo:acme@12/shop@34:ref:refs/heads/main"}),
            json!({"sub": "repo:evil@13/shop@34:environment:production"}),
            json!({"sub": null}),
            json!({"repository_id": "35"}),
            json!({"repository_id": 34}),
            json!({"repository_id": null}),
        ] {
            let found = registered(&entries, &token(&changes), OURS);
            assert_eq!(found, None, "{changes}");
        }
        let own = WorkloadIdentity {
            issuer: Some(String::from(OURS)),
            ..entry()
        };
        assert_eq!(
            registered(&[own], &token(&json!({"iss": OURS})), OURS),
            None
        );
    }

    #[test]
    fn a_spiffe_id_needs_no_issuer() {
        let subject = "spiffe://acme.example/ns/shop/sa/orders";
        let entries = [WorkloadIdentity {
            issuer: None,
            subject: String::from(subject),
            claims: BTreeMap::new(),
            ..entry()
        }];
        for iss in [json!(null), json!("https://spire.acme.example")] {
            let found = registered(&entries, &token(&json!({"iss": iss, "sub": subject})), OURS);
            assert!(found.is_some(), "{iss}");
        }
        let another = json!({"iss": null, "sub": "spiffe://acme.example/ns/shop/sa/order"});
        assert_eq!(registered(&entries, &token(&another), OURS), None);
    }

    #[test]
    fn audience_and_times_are_judged() {
        use Reason::{
            ClientAssertionAudience as Audience, ClientAssertionTimes as Times,
            WorkloadTokenTooLong as TooLong,
        };
        let now = NOW.seconds();
        let judged =
            |changes: &Value, entry: &WorkloadIdentity| judge(&token(changes), entry, OURS, NOW);
        for (changes, wanted) in [
            (json!({}), Ok(())),
            (json!({"aud": [OURS]}), Ok(())),
            (
                json!({"aud": [OURS, "https://other.example"]}),
                Err(Audience),
            ),
            (
                json!({"aud": "https://login.example.com/connect/token"}),
                Err(Audience),
            ),
            (json!({"aud": "https://github.com/acme"}), Err(Audience)),
            (json!({"aud": null}), Err(Audience)),
            (json!({"aud": []}), Err(Audience)),
            (json!({"exp": null}), Err(Times)),
            (json!({"exp": "soon"}), Err(Times)),
            (json!({"exp": now - 59}), Ok(())),
            (json!({"exp": now - 60}), Err(Times)),
            (json!({"iat": now + 60}), Ok(())),
            (json!({"iat": now + 61}), Err(Times)),
            (json!({"iat": true}), Err(Times)),
            (json!({"nbf": now + 61}), Err(Times)),
            (json!({"iat": now - 10, "exp": now - 10 + 3_600}), Ok(())),
            (
                json!({"iat": now - 10, "exp": now - 10 + 3_601}),
                Err(TooLong),
            ),
            (json!({"iat": null, "exp": now + 3_660}), Ok(())),
            (json!({"iat": null, "exp": now + 3_661}), Err(TooLong)),
        ] {
            assert_eq!(judged(&changes, &entry()), wanted, "{changes}");
        }
        let for_another = WorkloadIdentity {
            audience: Some(String::from("https://vault.example")),
            ..entry()
        };
        assert_eq!(judged(&json!({}), &for_another), Err(Audience));
        let aud = json!({"aud": "https://vault.example"});
        assert_eq!(judged(&aud, &for_another), Ok(()));
    }
}
