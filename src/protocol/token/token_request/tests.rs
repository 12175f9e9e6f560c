//! Tables of token requests.

use super::*;
use crate::words::samples;

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

#[test]
fn only_targets_may_be_sent_twice() {
    let (single, several) = PARAMETERS.split_at(SINGLE_PARAMETERS.len());
    assert_eq!(
        (single, several),
        (SINGLE_PARAMETERS, &["resource", "audience"][..])
    );
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

fn sent(client: &Client, pairs: &[(&str, &str)]) -> Result<TokenRequest, (&'static str, Reason)> {
    let parameters = Parameters::from_pairs(pairs.iter().copied());
    let is_extension = |name: &str| name == "urn:example:key";
    let read = TokenRequest::from_form(&parameters, client, is_extension, samples::NOW);
    read.map_err(|error| (error.code.as_str(), error.reason))
}

fn allowed(grant_type: GrantType) -> Client {
    Client {
        grant_types: [grant_type].into(),
        ..samples::client()
    }
}

#[test]
fn a_grant_type_is_served_and_the_clients() {
    let sent_as = |name: &str| sent(&samples::client(), &[("grant_type", name)]);
    let missing = Err(("invalid_request", Reason::MissingGrantType));
    assert_eq!(sent(&samples::client(), &[]), missing);
    let unsupported = Err(("unsupported_grant_type", Reason::UnsupportedGrantType));
    for name in ["implicit", "urn:example:other", "Refresh_token"] {
        assert_eq!(sent_as(name), unsupported, "{name}");
    }
    let unregistered = Err(("unauthorized_client", Reason::UnregisteredGrantType));
    for name in ["refresh_token", "password", "urn:example:key"] {
        assert_eq!(sent_as(name), unregistered, "{name}");
    }
    let key = allowed(GrantType::Extension(String::from("urn:example:key")));
    let read = sent(&key, &[("grant_type", "urn:example:key")]);
    assert!(matches!(read, Ok(TokenRequest::Extension(_))), "{read:?}");
    let missing = Err(("invalid_request", Reason::MissingCode));
    assert_eq!(sent_as("authorization_code"), missing);
    let known = Parameters::from_pairs([("state", "x"), ("code", "y")]);
    assert!(known_parameter_in_query(&known, &["grant_type", "code"]));
    assert!(!known_parameter_in_query(&known, &["grant_type"]));
}

#[test]
fn the_password_grant_ends_after_its_last_day() {
    let until = |days: i32| Client {
        legacy_until: Some(crate::words::instant::Day(samples::NOW.day().0 + days)),
        ..allowed(GrantType::Password)
    };
    let form = [
        ("grant_type", "password"),
        ("username", "alice"),
        ("password", "p"),
    ];
    assert!(sent(&until(0), &form).is_ok());
    let parameters = Parameters::from_pairs(form);
    let over = TokenRequest::from_form(&parameters, &until(-1), no_extension, samples::NOW);
    let over = over.unwrap_err();
    assert_eq!(over.reason, Reason::UnregisteredGrantType);
    assert_eq!(over.detail.as_deref(), Some(LEGACY_UNTIL));
    let never =
        TokenRequest::from_form(&parameters, &samples::client(), no_extension, samples::NOW);
    assert_eq!(never.unwrap_err().detail, None);
    // The day ends no other grant.
    let refreshing = Client {
        grant_types: [GrantType::RefreshToken].into(),
        ..until(-1)
    };
    let form = [("grant_type", "refresh_token"), ("refresh_token", "t")];
    assert!(sent(&refreshing, &form).is_ok());
}

#[test]
fn a_refresh_asks_with_its_token_and_perhaps_for_less() {
    let refreshing = allowed(GrantType::RefreshToken);
    let with = |pairs: &[(&str, &str)]| {
        let own = [("grant_type", "refresh_token")];
        sent(&refreshing, &[&own[..], pairs].concat())
    };
    let token = ("refresh_token", "gpr_x");
    let read = |scope: Option<&str>, resources: &[&str]| {
        Ok(TokenRequest::RefreshToken(RefreshTokenRequest {
            refresh_token: SecretText::new("gpr_x"),
            scope: scope.map(samples::scope),
            resources: resources.iter().map(ToString::to_string).collect(),
        }))
    };
    assert_eq!(with(&[token]), read(None, &[]));
    assert_eq!(with(&[token, ("scope", "")]), read(None, &[]));
    let narrower = [token, ("scope", "openid"), ("resource", "stock")];
    assert_eq!(with(&narrower), read(Some("openid"), &["stock"]));
    let missing = Err(("invalid_request", Reason::MissingRefreshToken));
    assert_eq!(with(&[]), missing);
    let repeated = Err(("invalid_request", Reason::RepeatedParameter));
    assert_eq!(with(&[token, token]), repeated);
    let invalid_scope = Err(("invalid_scope", Reason::UnknownScope));
    for scope in [" ", "a\"b"] {
        assert_eq!(with(&[token, ("scope", scope)]), invalid_scope, "{scope}");
    }
    // One that is too long is not ours.
    let unknown = Err(("invalid_grant", Reason::UnknownRefreshToken));
    let long = "x".repeat(parameters::HANDLE + 1);
    assert_eq!(with(&[("refresh_token", &long)]), unknown);
    let longest = "x".repeat(parameters::HANDLE);
    assert!(with(&[("refresh_token", &longest)]).is_ok());
}

#[test]
fn client_credentials_are_for_confidential_clients() {
    let form = [
        ("grant_type", "client_credentials"),
        ("scope", "stock"),
        ("resource", "stock"),
    ];
    let read = TokenRequest::ClientCredentials(ClientCredentialsRequest {
        scope: Some(samples::scope("stock")),
        resources: vec![String::from("stock")],
    });
    assert_eq!(sent(&samples::client(), &form), Ok(read));
    let public = Client {
        authentication: crate::words::client::ClientAuthenticationMethod::None,
        ..samples::client()
    };
    let refused = Err(("unauthorized_client", Reason::PublicClientCredentials));
    assert_eq!(sent(&public, &form), refused);
}

#[test]
fn a_password_comes_with_a_name_and_within_bounds() {
    let client = allowed(GrantType::Password);
    let with = |pairs: &[(&str, &str)]| {
        let own = [("grant_type", "password")];
        sent(&client, &[&own[..], pairs].concat())
    };
    let name = ("username", "alice");
    let word = ("password", "p");
    let read = TokenRequest::Password(PasswordRequest {
        username: String::from("alice"),
        password: SecretText::new("p"),
        acr_values: Some(String::from("2")),
        scope: Some(samples::scope("openid")),
        resources: vec![String::from("stock")],
    });
    let further = [
        name,
        word,
        ("acr_values", "2"),
        ("scope", "openid"),
        ("resource", "stock"),
    ];
    assert_eq!(with(&further), Ok(read));
    let missing_name = Err(("invalid_request", Reason::MissingUsername));
    assert_eq!(with(&[word]), missing_name);
    let missing = Err(("invalid_request", Reason::MissingPassword));
    assert_eq!(with(&[name]), missing);
    let overlong = Err(("invalid_request", Reason::OverlongParameter));
    let longest = "p".repeat(parameters::PASSWORD_BYTES);
    assert!(with(&[name, ("password", &longest)]).is_ok());
    let longer = format!("{longest}p");
    assert_eq!(with(&[name, ("password", &longer)]), overlong);
    let elsewhere = Client {
        identity_providers: Some([String::from("corp")].into()),
        ..client.clone()
    };
    let refused = Err(("unauthorized_client", Reason::NoPasswordSignIn));
    let form = [("grant_type", "password"), name, word];
    assert_eq!(sent(&elsewhere, &form), refused);
}

#[test]
fn a_device_asks_with_its_code() {
    let device = allowed(GrantType::DeviceCode);
    let kind = ("grant_type", "urn:ietf:params:oauth:grant-type:device_code");
    let form = [kind, ("device_code", "gpd_x"), ("resource", "stock")];
    let read = TokenRequest::DeviceCode(DeviceCodeRequest {
        device_code: SecretText::new("gpd_x"),
        resources: vec![String::from("stock")],
    });
    assert_eq!(sent(&device, &form), Ok(read));
    let missing = Err(("invalid_request", Reason::MissingDeviceCode));
    assert_eq!(sent(&device, &[kind]), missing);
    let unknown = Err(("invalid_grant", Reason::UnknownDeviceCode));
    let long = "x".repeat(parameters::HANDLE + 1);
    assert_eq!(sent(&device, &[kind, ("device_code", &long)]), unknown);
}

#[test]
fn a_resource_has_a_bound_of_its_own() {
    let longest = "x".repeat(parameters::RESOURCE);
    assert_eq!(
        code_accepted(&[("resource", &longest)]).resources,
        std::slice::from_ref(&longest)
    );
    let longer = format!("{longest}x");
    let overlong = ("invalid_request", Reason::OverlongParameter);
    assert_eq!(code_refusal(&[("resource", &longer)]), overlong);
    let missing = ("invalid_request", Reason::MissingTokenRedirectUri);
    let without = [CODE[0], CODE[1]];
    assert_eq!(refusal(&without), missing);
}
