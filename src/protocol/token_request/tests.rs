//! Tables of token requests.

use super::super::client::ClientAuthenticationMethod;
use super::super::samples;
use super::*;

fn no_extension(_: &str) -> bool {
    false
}

fn refusal(pairs: &[(&str, &str)]) -> (&'static str, Reason) {
    let parameters = Parameters::from_pairs(pairs.iter().copied());
    let error = TokenRequest::from_form(&parameters, &samples::client(), no_extension).unwrap_err();
    (error.code.as_str(), error.reason)
}

fn accepted(pairs: &[(&str, &str)]) -> TokenRequest {
    TokenRequest::from_form(&Parameters::from_pairs(pairs.iter().copied()), &samples::client(), no_extension).unwrap()
}

const CODE: [(&str, &str); 3] =
    [("grant_type", "authorization_code"), ("code", "gpc_x"), ("redirect_uri", "https://shop.example.com/cb")];

fn code_request(further: &[(&str, &str)]) -> Vec<(String, String)> {
    CODE.iter().chain(further).map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

fn code_refusal(further: &[(&str, &str)]) -> (&'static str, Reason) {
    let pairs = code_request(further);
    refusal(&pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>())
}

fn code_accepted(further: &[(&str, &str)]) -> AuthorizationCodeRequest {
    let pairs = code_request(further);
    match accepted(&pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>()) {
        TokenRequest::AuthorizationCode(request) => request,
        TokenRequest::RefreshToken(_)
        | TokenRequest::ClientCredentials(_)
        | TokenRequest::Password(_)
        | TokenRequest::DeviceCode(_)
        | TokenRequest::Extension(_) => panic!("another grant"),
    }
}

#[test]
fn grant_type_comes_first() {
    for (pairs, expected) in [
        (&[][..], ("invalid_request", Reason::MissingGrantType)),
        (&[("grant_type", "")], ("invalid_request", Reason::MissingGrantType)),
        (&[("Grant_Type", "authorization_code")], ("invalid_request", Reason::MissingGrantType)),
        (&[("grant_type", "a"), ("grant_type", "b")], ("invalid_request", Reason::RepeatedParameter)),
        (&[("grant_type", "Authorization_Code")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
        (&[("grant_type", "authorization_code ")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
        (&[("grant_type", "implicit")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
        (&[("grant_type", "urn:example:none")], ("unsupported_grant_type", Reason::UnsupportedGrantType)),
    ] {
        assert_eq!(refusal(pairs), expected, "{pairs:?}");
    }
    let long = "g".repeat(301);
    assert_eq!(refusal(&[("grant_type", &long)]), ("invalid_request", Reason::OverlongParameter));
}

#[test]
fn a_grant_the_client_does_not_have_is_unauthorized_before_its_parameters_are_read() {
    let mut client = samples::client();
    client.grant_types = [GrantType::ClientCredentials].into();
    let parameters = Parameters::from_pairs([("grant_type", "authorization_code")]);
    let error = TokenRequest::from_form(&parameters, &client, no_extension).unwrap_err();
    assert_eq!(error, TokenError::new(TokenErrorCode::UnauthorizedClient, Reason::UnregisteredGrantType));
}

#[test]
fn a_public_client_gets_no_token_of_its_own() {
    let mut client = samples::client();
    client.authentication = ClientAuthenticationMethod::None;
    let parameters = Parameters::from_pairs([("grant_type", "client_credentials")]);
    let error = TokenRequest::from_form(&parameters, &client, no_extension).unwrap_err();
    assert_eq!(error, TokenError::new(TokenErrorCode::UnauthorizedClient, Reason::PublicClientCredentials));
}

#[test]
fn required_parameters_of_a_code_are_missed_by_name() {
    let grant_type = ("grant_type", "authorization_code");
    assert_eq!(refusal(&[grant_type]), ("invalid_request", Reason::MissingCode));
    assert_eq!(refusal(&[grant_type, ("code", "")]), ("invalid_request", Reason::MissingCode));
    assert_eq!(refusal(&[grant_type, ("code", "x")]), ("invalid_request", Reason::MissingTokenRedirectUri));
    assert_eq!(
        refusal(&[grant_type, ("code", "x"), ("redirect_uri", "")]),
        ("invalid_request", Reason::MissingTokenRedirectUri)
    );
}

#[test]
fn repeated_parameters_are_refused() {
    for further in [("code", "y"), ("redirect_uri", ""), ("grant_type", "authorization_code")] {
        assert_eq!(code_refusal(&[further]), ("invalid_request", Reason::RepeatedParameter), "{further:?}");
    }
    let twice = [("code_verifier", ""), ("code_verifier", "")];
    assert_eq!(code_refusal(&twice), ("invalid_request", Reason::RepeatedParameter));
    assert_eq!(code_accepted(&[("unknown", "1"), ("unknown", "2"), ("scope", "nope")]).resources, [""; 0]);
}

#[test]
fn overlong_values_are_refused_as_what_they_are() {
    let long = |most: usize| "x".repeat(most + 1);
    let (uri, code) = (long(2_000), long(8_192));
    let grant_type = ("grant_type", "authorization_code");
    assert_eq!(refusal(&[grant_type, ("code", &code)]), ("invalid_grant", Reason::UnknownCode));
    assert_eq!(
        refusal(&[grant_type, ("code", "x"), ("redirect_uri", &uri)]),
        ("invalid_request", Reason::OverlongParameter)
    );
    assert_eq!(code_refusal(&[("resource", &uri)]), ("invalid_request", Reason::OverlongParameter));
    assert_eq!(code_accepted(&[("resource", &uri[1..])]).resources.len(), 1);
}

#[test]
fn an_empty_code_verifier_is_told_from_none() {
    assert_eq!(code_accepted(&[]).code_verifier, PresentedVerifier::Absent);
    assert_eq!(code_accepted(&[("code_verifier", "")]).code_verifier, PresentedVerifier::Empty);
    let sent = PresentedVerifier::Sent(SecretText::new("v"));
    assert_eq!(code_accepted(&[("code_verifier", "v")]).code_verifier, sent);
}

#[test]
fn ten_resources_and_no_more() {
    let names: Vec<String> = (0..11).map(|number| format!("https://{number}.example")).collect();
    let pairs: Vec<(&str, &str)> = names.iter().map(|name| ("resource", name.as_str())).collect();
    assert_eq!(code_accepted(&pairs[..10]).resources.len(), 10);
    assert_eq!(code_refusal(&pairs), ("invalid_request", Reason::OverlongParameter));
    assert_eq!(code_accepted(&[pairs[0], pairs[0], ("resource", "")]).resources, [names[0].clone()]);
}

#[test]
fn client_credentials_ask_for_scopes_or_leave_the_choice() {
    let grant_type = ("grant_type", "client_credentials");
    let asked = |pairs: &[(&str, &str)]| match accepted(pairs) {
        TokenRequest::ClientCredentials(request) => request.scope.map(|scope| scope.to_string()),
        TokenRequest::AuthorizationCode(_)
        | TokenRequest::RefreshToken(_)
        | TokenRequest::Password(_)
        | TokenRequest::DeviceCode(_)
        | TokenRequest::Extension(_) => panic!("another grant"),
    };
    assert_eq!(asked(&[grant_type]), None);
    assert_eq!(asked(&[grant_type, ("scope", "")]), None);
    assert_eq!(asked(&[grant_type, ("scope", "b  a b")]), Some(String::from("b a")));
}

#[test]
fn a_malformed_scope_is_an_invalid_one() {
    let grant_type = ("grant_type", "client_credentials");
    let spaces = " ".repeat(2_000);
    for scope in ["a\"b", "é", "a\tb", " ", spaces.as_str()] {
        assert_eq!(refusal(&[grant_type, ("scope", scope)]), ("invalid_scope", Reason::UnknownScope), "{scope:?}");
    }
    let long = "a".repeat(2_001);
    assert_eq!(refusal(&[grant_type, ("scope", &long)]), ("invalid_request", Reason::OverlongParameter));
    assert_eq!(refusal(&[grant_type, ("scope", "a"), ("scope", "a")]), ("invalid_request", Reason::RepeatedParameter));
}

#[test]
fn known_parameters_are_found_in_a_query() {
    let query = |raw: &str| Parameters::parse(raw.as_bytes()).unwrap();
    for raw in ["client_secret=x", "a=1&grant_type=", "%63ode=x", "resource"] {
        assert!(known_parameter_in_query(&query(raw), &PARAMETERS), "{raw}");
    }
    for raw in ["", "trace=1", "Code=x", "codes=x"] {
        assert!(!known_parameter_in_query(&query(raw), &PARAMETERS), "{raw}");
    }
}

#[test]
fn a_password_needs_the_password_login_before_anything_else() {
    let mut client = samples::client();
    client.grant_types = [GrantType::Password].into();
    let asked = |client: &Client, pairs: &[(&str, &str)]| {
        let pairs = [&[("grant_type", "password")], pairs].concat();
        let request = TokenRequest::from_form(&Parameters::from_pairs(pairs), client, no_extension);
        request.map_err(|error| (error.code.as_str(), error.reason))
    };
    let both = [("username", "alice"), ("password", "secret")];
    let expected = PasswordRequest {
        username: String::from("alice"),
        password: SecretText::new("secret"),
        acr_values: None,
        scope: None,
        resources: Vec::new(),
    };
    assert_eq!(asked(&client, &both), Ok(TokenRequest::Password(expected)));
    assert_eq!(asked(&client, &both[..1]), Err(("invalid_request", Reason::MissingPassword)));
    assert_eq!(asked(&client, &both[1..]), Err(("invalid_request", Reason::MissingUsername)));
    client.identity_providers = Some([String::from("corp")].into());
    assert_eq!(asked(&client, &both), Err(("unauthorized_client", Reason::NoPasswordSignIn)));
    assert_eq!(asked(&client, &[]), Err(("unauthorized_client", Reason::NoPasswordSignIn)));
}

#[test]
fn a_device_code_is_a_handle_like_the_others() {
    let mut client = samples::client();
    client.grant_types = [GrantType::DeviceCode].into();
    let asked = |device_code: &str| {
        let pairs =
            [("grant_type", GrantType::DeviceCode.as_str().to_owned()), ("device_code", device_code.to_owned())];
        let parameters = Parameters::from_pairs(pairs.iter().map(|(name, value)| (*name, value.as_str())));
        TokenRequest::from_form(&parameters, &client, no_extension).map_err(|error| (error.code.as_str(), error.reason))
    };
    assert!(asked("gpd_x").is_ok());
    assert_eq!(asked(""), Err(("invalid_request", Reason::MissingDeviceCode)));
    assert_eq!(asked(&"x".repeat(8_193)), Err(("invalid_grant", Reason::UnknownDeviceCode)));
}
