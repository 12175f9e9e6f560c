//! Tokens of workloads: a pipeline or a pod gets one from the platform that it runs on, and
//! authenticates with it as a client (RFC 7523 §2.2 with an issuer elsewhere). GitHub Actions,
//! GitLab, Kubernetes and SPIFFE give such tokens out. The registration says whose is taken.

use std::time::Duration;

use crate::token::assertion::{SKEW, numeric_date, single};
use crate::words::client::WorkloadIdentity;
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, Members};
use crate::words::reason::Reason;

/// Characters of an issuer or a subject. Dots stand for what is cut off.
const LONGEST_SHOWN: usize = 200;

/// The entry that the token fits: `iss`, `sub` and each registered claim are equal byte for byte.
/// `None` also for a token with our own `iss`: a token of ours never authenticates a client.
pub fn registered<'a>(
    entries: &'a [WorkloadIdentity],
    claims: &JsonObject,
    our_issuer: &str,
) -> Option<&'a WorkloadIdentity> {
    if claims.get("iss").is_some_and(|issuer| issuer == our_issuer) {
        return None;
    }
    let is_whole = |entry: &&WorkloadIdentity| differing(entry, claims).is_empty();
    entries.iter().find(is_whole)
}

/// The claims of a token that are others than the entry has.
pub fn differing<'a>(entry: &'a WorkloadIdentity, claims: &JsonObject) -> Vec<&'a str> {
    let mut names = Vec::new();
    if entry.issuer.is_some() && claims.text("iss") != entry.issuer.as_deref() {
        names.push("iss");
    }
    if claims.text("sub") != Some(entry.subject.as_str()) {
        names.push("sub");
    }
    for (name, value) in &entry.claims {
        if claims.text(name) != Some(value) {
            names.push(name);
        }
    }
    names
}

/// The first entry that the token fits, or else the one that it fits best, with its place. One of
/// the same issuer comes before others.
pub fn nearest<'a>(
    entries: &'a [WorkloadIdentity],
    claims: &JsonObject,
) -> Option<(usize, &'a WorkloadIdentity)> {
    let issuer = claims.text("iss");
    let distance = |(_, entry): &(usize, &WorkloadIdentity)| {
        let count = differing(entry, claims).len();
        (count > 0, entry.issuer.as_deref() != issuer, count)
    };
    entries.iter().enumerate().min_by_key(distance)
}

/// Whose token it says it is: for logs.
pub fn whose(claims: &JsonObject) -> String {
    format!("iss {}, sub {}", shown(claims, "iss"), shown(claims, "sub"))
}

fn shown(claims: &JsonObject, name: &str) -> String {
    let text = claims.text(name).unwrap_or("none");
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", text.split_at(end).0),
        None => text.to_owned(),
    }
}

/// Judges audience and times of a token whose signature was verified. It may be used again until it
/// ends: Kubernetes and SPIFFE give one token out many times.
pub fn judge(
    claims: &JsonObject,
    entry: &WorkloadIdentity,
    our_issuer: &str,
    now: Instant,
) -> Result<(), Reason> {
    let audience = entry.audience.as_deref().unwrap_or(our_issuer);
    if claims.get("aud").and_then(single) != Some(audience) {
        return Err(Reason::ClientAssertionAudience);
    }
    check_times(claims, entry.max_lifetime, now)
}

fn check_times(claims: &JsonObject, max_lifetime: Duration, now: Instant) -> Result<(), Reason> {
    let issued_at = time(claims, "iat")?;
    let not_before = time(claims, "nbf")?;
    let expires_at = time(claims, "exp")?.ok_or(Reason::ClientAssertionTimes)?;
    let latest_begin = now.plus(SKEW);
    let is_ahead = |begin: Option<Instant>| begin.is_some_and(|begin| begin > latest_begin);
    if now >= expires_at.plus(SKEW) || is_ahead(issued_at) || is_ahead(not_before) {
        return Err(Reason::ClientAssertionTimes);
    }
    let longest = match issued_at {
        Some(issued_at) => issued_at.plus(max_lifetime),
        None => latest_begin.plus(max_lifetime),
    };
    if expires_at <= longest {
        Ok(())
    } else {
        Err(Reason::WorkloadTokenTooLong)
    }
}

fn time(claims: &JsonObject, name: &str) -> Result<Option<Instant>, Reason> {
    match claims.get(name) {
        None => Ok(None),
        Some(time) => match numeric_date(time) {
            Some(time) => Ok(Some(time)),
            None => Err(Reason::ClientAssertionTimes),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::words::samples::NOW;

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

    fn token(changes: &Value) -> JsonObject {
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
    fn the_log_tells_the_nearest_entry_and_what_differs() {
        let other = WorkloadIdentity {
            issuer: Some(String::from("https://gitlab.example")),
            claims: BTreeMap::new(),
            ..entry()
        };
        let entries = [other.clone(), entry()];
        let place = |changes: Value| {
            let token = token(&changes);
            nearest(&entries, &token).map(|(place, _)| place)
        };
        // A whole fit, wherever it stands.
        assert_eq!(place(json!({})), Some(1));
        assert_eq!(place(json!({"iss": "https://gitlab.example"})), Some(0));
        // Of the same issuer, though the other has fewer claims that differ.
        let changes = json!({"sub": "other", "repository_id": "35"});
        assert_eq!(place(changes.clone()), Some(1));
        assert_eq!(
            differing(&entry(), &token(&changes)),
            ["sub", "repository_id"]
        );
        // Of neither: the one that differs least.
        assert_eq!(
            place(json!({"iss": "https://elsewhere.example", "repository_id": "35"})),
            Some(0)
        );
        assert_eq!(differing(&other, &token(&json!({}))), ["iss"]);
        assert_eq!(differing(&entry(), &token(&json!({}))), [""; 0]);
        assert_eq!(nearest(&[], &token(&json!({}))), None);
        // One without an issuer that fits comes before one of the issuer that does not.
        let of_branch = WorkloadIdentity {
            subject: String::from("repo:acme@12/shop@34:ref:refs/heads/main"),
            ..entry()
        };
        let of_any_issuer = WorkloadIdentity {
            issuer: None,
            ..entry()
        };
        let entries = [of_branch, of_any_issuer];
        let token = token(&json!({}));
        let found = nearest(&entries, &token).map(|(place, _)| place);
        assert_eq!(found, Some(1));
    }

    #[test]
    fn the_log_names_whose_token_it_is_and_not_at_any_length() {
        assert_eq!(
            whose(&token(&json!({}))),
            format!("iss {ISSUER}, sub {SUBJECT}")
        );
        let odd = token(&json!({"iss": null, "sub": 7}));
        assert_eq!(whose(&odd), "iss none, sub none");
        let fits = "\u{e9}".repeat(LONGEST_SHOWN);
        let described = whose(&token(&json!({"iss": fits, "sub": format!("{fits}x")})));
        assert_eq!(described, format!("iss {fits}, sub {fits}..."));
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
