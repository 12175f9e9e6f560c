//! Who is believed, who is not, and with which answer.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::super::client_secret::DigestAlgorithm;
use super::*;
use crate::keys::jwt;
use crate::words::client::{SigningAlgorithm, WorkloadIdentity};
use crate::words::samples::{self, NOW};
use crate::words::secret::SecretBytes;

fn basic(user_pass: &str) -> String {
    format!("Basic {}", STANDARD.encode(user_pass))
}

fn presented(
    header: Option<&str>,
    pairs: &[(&str, &str)],
) -> Result<PresentedClient, AuthenticationFailure> {
    PresentedClient::from_request(
        &header.into_iter().collect::<Vec<_>>(),
        &Parameters::from_pairs(pairs.to_vec()),
    )
}

fn refusal(header: Option<&str>, pairs: &[(&str, &str)]) -> (&'static str, Reason, u16) {
    let failure = presented(header, pairs).unwrap_err();
    (
        failure.error.code.as_str(),
        failure.error.reason,
        failure.status(InvalidClientStatus::Standard),
    )
}

fn secret(text: &str) -> SecretDigest {
    let digest = SecretBytes::new(Sha256::digest(text.as_bytes()).to_vec());
    SecretDigest {
        algorithm: DigestAlgorithm::Sha256,
        digest,
        expires_at: None,
    }
}

fn registered(authentication: ClientAuthenticationMethod) -> Client {
    Client {
        authentication,
        ..samples::client()
    }
}

fn reason(verdict: ClientVerdict) -> Option<Reason> {
    match verdict {
        ClientVerdict::Authenticated => None,
        ClientVerdict::ByAssertion(_) => panic!("an assertion nobody sent"),
        ClientVerdict::Refused(failure) => {
            assert_eq!(failure.error.code, TokenErrorCode::InvalidClient);
            assert_eq!(
                failure.error.reason.description(),
                Reason::WrongClientSecret.description()
            );
            Some(failure.error.reason)
        }
    }
}

fn judged(
    presented: &PresentedClient,
    authentication: ClientAuthenticationMethod,
) -> Option<Reason> {
    reason(presented.judge(Some(&registered(authentication)), &[secret("s3cret")], NOW))
}

#[test]
fn each_way_names_its_client() {
    let header = presented(Some(&basic("web:s3cret")), &[("client_id", "web")]).unwrap();
    assert!(header.header_used && header.client_id.as_str() == "web" && header.secret.is_some());
    let body = presented(None, &[("client_id", "web"), ("client_secret", "s3cret")]).unwrap();
    assert!(!body.header_used && body.secret == header.secret);
    let public = presented(None, &[("client_id", "web"), ("client_secret", "")]).unwrap();
    assert!(!public.header_used && public.secret.is_none());
    // What is sent empty is not sent (RFC 6749 §3.2).
    let beside = presented(Some(&basic("web:s3cret")), &[("client_secret", "")]).unwrap();
    assert!(beside.header_used && beside.secret == header.secret);
    let empty = ("invalid_client", Reason::MalformedAuthorizationHeader, 401);
    assert_eq!(
        refusal(Some(""), &[("client_id", "web")]),
        empty,
        "an empty header is one"
    );
}

#[test]
fn what_names_no_client_or_two_is_refused() {
    let several = ("invalid_request", Reason::SeveralAuthenticationMethods, 400);
    let named = ("client_id", "web");
    let in_body = [named, ("client_secret", "s3cret")];
    assert_eq!(refusal(Some(&basic("web:s3cret")), &in_body), several);
    let header = basic("web:s3cret");
    let twice =
        PresentedClient::from_request(&[&header, &header], &Parameters::from_pairs(vec![named]));
    let twice = twice.unwrap_err();
    assert_eq!(twice.error.reason, Reason::SeveralAuthenticationMethods);
    assert!(twice.header_used);
    let mismatch = ("invalid_client", Reason::ClientIdMismatch, 401);
    assert_eq!(refusal(Some(&header), &[("client_id", "app")]), mismatch);
    let nobody = ("invalid_client", Reason::NoClientAuthentication, 400);
    assert_eq!(refusal(None, &[]), nobody);
    let repeated = ("invalid_request", Reason::RepeatedParameter, 400);
    assert_eq!(refusal(None, &[named, named]), repeated);
    assert_eq!(refusal(None, &[named, in_body[1], in_body[1]]), repeated);
    let long = "n".repeat(parameters::CLIENT_ID + 1);
    let (code, _, status) = refusal(None, &[("client_id", &long)]);
    assert_eq!((code, status), ("invalid_client", 400));
}

#[test]
fn a_resource_shows_its_secret() {
    let judged = |presented: &PresentedClient| {
        let verdict = presented.judge_resource(&[secret("s3cret")], NOW);
        verdict.map_err(|failure| (failure.error.reason, failure.header_used))
    };
    let sent = |user_pass: &str| presented(Some(&basic(user_pass)), &[]).unwrap();
    assert_eq!(judged(&sent("web:s3cret")), Ok(()));
    let wrong = Err((Reason::WrongClientSecret, true));
    assert_eq!(judged(&sent("web:other")), wrong);
    let nothing = presented(None, &[("client_id", "web")]).unwrap();
    let missing = Err((Reason::MissingClientSecret, false));
    assert_eq!(judged(&nothing), missing);
}

#[test]
fn a_failure_is_answered_as_the_header_was_used_and_the_rule_says() {
    use InvalidClientStatus::{Always400, Standard};
    let failure = |header_used, error| AuthenticationFailure {
        error,
        header_used,
        detail: None,
    };
    let wrong = invalid_client(Reason::WrongClientSecret);
    let of_header = failure(true, wrong.clone());
    let of_body = failure(false, wrong);
    let contradictory = failure(true, invalid_request(Reason::RepeatedParameter));
    for (failure, rule, status) in [
        (&of_header, Standard, 401),
        (&of_header, Always400, 400),
        (&of_body, Standard, 400),
        (&of_body, Always400, 400),
        (&contradictory, Standard, 400),
    ] {
        assert_eq!(failure.status(rule), status, "{failure:?} {rule:?}");
        let challenge = (status == 401).then_some("Basic realm=\"gatepost\"");
        assert_eq!(failure.challenge(rule), challenge);
    }
    let introspected = of_body.clone().at_introspection();
    assert_eq!(introspected.status(Standard), 401);
    assert_eq!(introspected.error, of_body.error);
}

#[test]
fn only_a_wrong_secret_and_an_unknown_client_may_be_guesses() {
    for (reason, may_be) in [
        (Reason::WrongClientSecret, true),
        (Reason::UnknownClientAtToken, true),
        (Reason::MissingClientSecret, false),
        (Reason::WrongAuthenticationMethod, false),
        (Reason::DisabledClientAtToken, false),
    ] {
        let failure = presented(None, &[("client_id", "web")]).unwrap();
        assert_eq!(
            failure.failure(reason).counts_as_guess(),
            may_be,
            "{reason:?}"
        );
    }
}

#[test]
fn a_pinned_method_refuses_the_others() {
    use ClientAuthenticationMethod::{
        AnySecret, ClientSecretBasic, ClientSecretPost, None as Public, PrivateKeyJwt,
    };
    let header = presented(Some(&basic("web:s3cret")), &[]).unwrap();
    let body = presented(None, &[("client_id", "web"), ("client_secret", "s3cret")]).unwrap();
    let nothing = presented(None, &[("client_id", "web")]).unwrap();
    let empty = presented(Some(&basic("web:")), &[]).unwrap();
    let wrong = presented(Some(&basic("web:s3creT")), &[]).unwrap();
    for (authentication, expected) in [
        (AnySecret, [None, None, Some(Reason::MissingClientSecret)]),
        (
            ClientSecretBasic,
            [
                None,
                Some(Reason::WrongAuthenticationMethod),
                Some(Reason::WrongAuthenticationMethod),
            ],
        ),
        (
            ClientSecretPost,
            [
                Some(Reason::WrongAuthenticationMethod),
                None,
                Some(Reason::MissingClientSecret),
            ],
        ),
        (PrivateKeyJwt, [Some(Reason::WrongAuthenticationMethod); 3]),
        (
            Public,
            [
                Some(Reason::SecretOfPublicClient),
                Some(Reason::SecretOfPublicClient),
                None,
            ],
        ),
    ] {
        let verdicts =
            [&header, &body, &nothing].map(|presented| judged(presented, authentication));
        assert_eq!(verdicts, expected, "{authentication:?}");
    }
    assert_eq!(judged(&empty, AnySecret), Some(Reason::MissingClientSecret));
    assert_eq!(judged(&empty, Public), None);
    assert_eq!(judged(&wrong, AnySecret), Some(Reason::WrongClientSecret));
}

#[test]
fn the_raw_reading_is_tried_once_and_only_where_it_differs() {
    let encoded = presented(Some(&basic("web:a%2Bb")), &[]).unwrap();
    let raw = encoded.retry().unwrap();
    assert_eq!(encoded.secret, Some(SecretText::new("a+b")));
    assert_eq!(raw.secret, Some(SecretText::new("a%2Bb")));
    assert!(raw.retry().is_none() && raw.header_used);
    assert!(
        presented(Some(&basic("web:plain")), &[])
            .unwrap()
            .retry()
            .is_none()
    );
    assert!(
        presented(None, &[("client_id", "web"), ("client_secret", "a+b")])
            .unwrap()
            .retry()
            .is_none()
    );
}

#[test]
fn client_id_of_the_body_chooses_the_reading_it_equals() {
    let header = basic("w%65b:a%2Bb");
    let decoded = presented(Some(&header), &[("client_id", "web")]).unwrap();
    assert!(decoded.client_id.as_str() == "web" && decoded.retry().is_none());
    let raw = presented(Some(&header), &[("client_id", "w%65b")]).unwrap();
    assert!(raw.client_id.as_str() == "w%65b" && raw.retry().is_none());
}

#[test]
fn an_assertion_is_for_those_who_registered_keys_and_for_nobody_else() {
    use ClientAuthenticationMethod::{
        AnySecret, ClientSecretBasic, ClientSecretPost, None as Public, PrivateKeyJwt,
    };
    let claims = serde_json::json!({ "sub": "web" });
    let input = jwt::signing_input(SigningAlgorithm::Es256, "k", "JWT", &claims);
    let assertion = jwt::assemble(input, b"signature");
    let kind = (
        "client_assertion_type",
        super::super::assertion::CLIENT_ASSERTION_TYPE,
    );
    let pairs = [("client_assertion", assertion.as_str()), kind];
    let sent = presented(None, &pairs).unwrap();
    assert!(
        sent.client_id.as_str() == "web"
            && sent.secret.is_none()
            && !sent.header_used
            && sent.retry().is_none()
    );
    for authentication in [AnySecret, ClientSecretBasic, ClientSecretPost, Public] {
        assert_eq!(
            judged(&sent, authentication),
            Some(Reason::WrongAuthenticationMethod),
            "{authentication:?}"
        );
    }
    let verdict = sent.judge(Some(&registered(PrivateKeyJwt)), &[], NOW);
    assert_eq!(
        verdict,
        ClientVerdict::ByAssertion(sent.assertion.clone().unwrap())
    );
    let disabled = Client {
        enabled: false,
        ..registered(PrivateKeyJwt)
    };
    assert_eq!(
        reason(sent.judge(Some(&disabled), &[], NOW)),
        Some(Reason::DisabledClientAtToken)
    );
    assert_eq!(
        reason(sent.judge(None, &[], NOW)),
        Some(Reason::UnknownClientAtToken)
    );
    assert_eq!(
        sent.judge_resource(&[secret("s3cret")], NOW)
            .unwrap_err()
            .error
            .reason,
        Reason::MissingClientSecret
    );

    let several = ("invalid_request", Reason::SeveralAuthenticationMethods, 400);
    assert_eq!(refusal(Some(&basic("web:s3cret")), &pairs), several);
    assert_eq!(
        refusal(None, &[pairs[0], pairs[1], ("client_secret", "s3cret")]),
        several
    );
    // Named otherwise, it may be a workload's where the client has such.
    let other = presented(None, &[pairs[0], pairs[1], ("client_id", "other")]).unwrap();
    let of_other = |federated: Vec<WorkloadIdentity>| {
        let client = Client {
            client_id: ClientId::new("other"),
            federated,
            ..registered(PrivateKeyJwt)
        };
        other.judge(Some(&client), &[], NOW)
    };
    assert_eq!(reason(of_other(Vec::new())), Some(Reason::ClientIdMismatch));
    let workload = WorkloadIdentity {
        issuer: None,
        subject: String::from("web"),
        audience: None,
        claims: BTreeMap::new(),
        jwks: None,
        jwks_uri: None,
        max_lifetime: Duration::from_secs(3_600),
    };
    assert!(matches!(
        of_other(vec![workload]),
        ClientVerdict::ByAssertion(_)
    ));
    let half = ("invalid_client", Reason::MalformedClientAssertion, 400);
    assert_eq!(refusal(None, &[pairs[0], ("client_id", "web")]), half);
    assert_eq!(refusal(None, &[pairs[1], ("client_id", "web")]), half);
    let repeated = ("invalid_request", Reason::RepeatedParameter, 400);
    assert_eq!(refusal(None, &[pairs[0], pairs[0], pairs[1]]), repeated);
}
