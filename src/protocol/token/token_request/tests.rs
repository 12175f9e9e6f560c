//! Tables of token requests.

use super::*;
use crate::protocol::words::samples;

fn no_extension(_: &str) -> bool {
    false
}

fn refusal(pairs: &[(&str, &str)]) -> (&'static str, Reason) {
    let parameters = Parameters::from_pairs(pairs.iter().copied());
    let error =
        TokenRequest::from_form(&parameters, &samples::client(), no_extension, samples::NOW)
            .unwrap_err();
    (error.code.as_str(), error.reason)
}

fn accepted(pairs: &[(&str, &str)]) -> TokenRequest {
    TokenRequest::from_form(
        &Parameters::from_pairs(pairs.iter().copied()),
        &samples::client(),
        no_extension,
        samples::NOW,
    )
    .unwrap()
}

const CODE: [(&str, &str); 3] = [
    ("grant_type", "authorization_code"),
    ("code", "gpc_x"),
    ("redirect_uri", "https://shop.example.com/cb"),
];

fn code_request(further: &[(&str, &str)]) -> Vec<(String, String)> {
    CODE.iter()
        .chain(further)
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

fn code_refusal(further: &[(&str, &str)]) -> (&'static str, Reason) {
    let pairs = code_request(further);
    refusal(
        &pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect::<Vec<_>>(),
    )
}

fn code_accepted(further: &[(&str, &str)]) -> AuthorizationCodeRequest {
    let pairs = code_request(further);
    match accepted(
        &pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect::<Vec<_>>(),
    ) {
        TokenRequest::AuthorizationCode(request) => request,
        TokenRequest::RefreshToken(_)
        | TokenRequest::ClientCredentials(_)
        | TokenRequest::Password(_)
        | TokenRequest::DeviceCode(_)
        | TokenRequest::Extension(_) => panic!("another grant"),
    }
}

#[test]
fn an_empty_code_verifier_is_told_from_none() {
    assert_eq!(code_accepted(&[]).code_verifier, PresentedVerifier::Absent);
    assert_eq!(
        code_accepted(&[("code_verifier", "")]).code_verifier,
        PresentedVerifier::Empty
    );
    let sent = PresentedVerifier::Sent(SecretText::new("v"));
    assert_eq!(code_accepted(&[("code_verifier", "v")]).code_verifier, sent);
}

#[test]
fn ten_resources_and_no_more() {
    let names: Vec<String> = (0..11)
        .map(|number| format!("https://{number}.example"))
        .collect();
    let pairs: Vec<(&str, &str)> = names
        .iter()
        .map(|name| ("resource", name.as_str()))
        .collect();
    assert_eq!(code_accepted(&pairs[..10]).resources.len(), 10);
    assert_eq!(
        code_refusal(&pairs),
        ("invalid_request", Reason::OverlongParameter)
    );
    assert_eq!(
        code_accepted(&[pairs[0], pairs[0], ("resource", "")]).resources,
        [names[0].clone()]
    );
}
