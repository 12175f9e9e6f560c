//! Why a request was refused: one enum for the whole house, and the one table that gives each reason its stable code,
//! the sentence the outside may read, and what to do about it.

/// A reason. The code (`GP1207`) stands in the log line and on the error page; the description is fixed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    // Shape of a request
    /// Percent-encode parameters as UTF-8, without NUL.
    MalformedParameters,
    /// Send each parameter once.
    RepeatedParameter,
    /// See the table of lengths in the README.
    OverlongParameter,
    /// Send them in the form body, not in the URL.
    ParameterInQuery,
    /// Set Content-Type and encode the body as a form.
    UnsupportedContentType,
    /// Use a method that the Allow header names.
    MethodNotAllowed,
    /// Check the path; paths are case-sensitive.
    NotFound,
    /// Send at most 64 KiB.
    BodyTooLarge,
    /// Open the page again and send the form from there.
    ForeignFormPost,
    // Authorization endpoint
    /// Send the client's registered client_id.
    MissingClientId,
    /// Check client_id; register the client with `gatepost apply`.
    UnknownClient,
    /// The client is disabled; enable it with `gatepost apply`.
    DisabledClient,
    /// Send one of the client's registered redirect URIs.
    MissingRedirectUri,
    /// Register exactly this URI, byte for byte; the log names both.
    UnregisteredRedirectUri,
    /// Send the parameters in the query or the form.
    RequestObjectUnsupported,
    /// Send the parameters in the query or the form.
    RequestUriUnsupported,
    /// Send response_type, for instance code.
    MissingResponseType,
    /// Use a response type that discovery lists.
    UnsupportedResponseType,
    /// Add it to the client's response_types.
    UnregisteredResponseType,
    /// Use the code flow, or set allow_access_tokens_via_browser.
    TokensThroughBrowser,
    /// Use query, fragment or form_post.
    UnknownResponseMode,
    /// Tokens never travel in a query: use fragment or form_post.
    IllegalResponseMode,
    /// Ask for at least one scope.
    MissingScope,
    /// Register the scope and add it to the client's scope.
    UnknownScope,
    /// Add openid to scope.
    MissingOpenid,
    /// id_token takes identity scopes, token takes resource scopes.
    ScopeKind,
    /// Send a fresh nonce with response types that return an ID token from this endpoint.
    MissingNonce,
    /// Use PKCE with S256. A confidential client may instead send a nonce with the scope openid, unless it is registered with require_pkce true.
    MissingCodeChallenge,
    /// Send 43 to 128 unreserved characters; exactly 43 base64url characters for S256.
    MalformedCodeChallenge,
    /// Use S256.
    UnsupportedCodeChallengeMethod,
    /// Use S256, or register allow_plain_pkce.
    PlainPkce,
    /// Use none alone, or login, consent, select_account.
    MalformedPrompt,
    /// Send digits only.
    MalformedMaxAge,
    /// Send a JSON object as OpenID Connect Core section 5.5 describes.
    MalformedClaims,
    /// Name one registered tenant that the client allows.
    UnknownTenant,
    /// Name a registered resource behind one of the requested scopes.
    UnknownResource,
    /// Send an ID token that this issuer gave to the client.
    InvalidIdTokenHint,
    /// Shorten state, scope or claims.
    RequestTooLong,
    /// Repeat the request without prompt=none.
    LoginRequired,
    /// Repeat the request without prompt=none.
    ConsentRequired,
    /// Nothing to mend: the person said no.
    AccessDenied,
    /// Sign in as the user the request names.
    OtherSubject,
    /// Ask for an acr value that discovery lists.
    UnmetAuthenticationRequirements,
    /// Allow the client an identity provider that this server has; local is the password login.
    NoWayToSignIn,
    /// Tick only scopes that the page shows.
    ScopeOutsideRequest,
    // End session endpoint
    /// Send the client_id that the ID token was made for, or none.
    HintOfAnotherClient,
    /// Register exactly this URI in post_logout_redirect_uris; the log names both.
    UnregisteredPostLogoutRedirectUri,
    /// Send id_token_hint or client_id: by them the URI is known to be registered.
    PostLogoutRedirectUriOfNobody,
    // Token endpoint
    /// Send grant_type.
    MissingGrantType,
    /// Use a grant type that discovery lists.
    UnsupportedGrantType,
    /// Add it to the client's grant_types.
    UnregisteredGrantType,
    /// Send the authorization code.
    MissingCode,
    /// Send the redirect_uri of the authorization request.
    MissingTokenRedirectUri,
    /// The code is not one of this issuer's, or was damaged on the way.
    UnknownCode,
    /// The code was redeemed before; what the first redemption gave is revoked. Send each code once.
    CodeReplayed,
    /// Redeem the code at once; its lifetime is authorization_code_lifetime.
    CodeExpired,
    /// Redeem the code with the client that asked for it.
    CodeOfAnotherClient,
    /// Send the same redirect_uri as in the authorization request.
    RedirectUriMismatch,
    /// Send the code_verifier that belongs to the code_challenge.
    CodeVerifierMismatch,
    /// Send a code_verifier only if the authorization request had a code_challenge.
    CodeVerifierUnexpected,
    /// Send the code_verifier.
    CodeVerifierMissing,
    /// Session, user, consent, scope or client was withdrawn in the meantime: sign in again.
    GrantNoLongerStands,
    /// client_credentials needs a confidential client.
    PublicClientCredentials,
    /// Ask for resource scopes only with client_credentials.
    IdentityScopeForClient,
    /// Add a resource scope to the client.
    NoScopeLeft,
    /// Ask for resources within what was authorized.
    InvalidTarget,
    /// Send the refresh token.
    MissingRefreshToken,
    /// The refresh token is not one of this client's, or was damaged on the way.
    UnknownRefreshToken,
    /// An old refresh token came again; what hangs on its grant is revoked. Keep the newest, and send each once.
    RefreshTokenReplayed,
    /// Its absolute or idle lifetime is over: sign in again.
    RefreshTokenExpired,
    /// The grant was revoked: sign in again.
    GrantRevoked,
    /// Ask for scopes within what was granted.
    ScopeBeyondGrant,
    /// Send the token to revoke or to look at.
    MissingToken,
    // The grants password and device_code, and the device page
    /// Send username.
    MissingUsername,
    /// Send password.
    MissingPassword,
    /// Allow the client the identity provider local.
    NoPasswordSignIn,
    /// Leave idp: out of acr_values, or send idp:local.
    IdentityProviderWithPassword,
    /// Check user name, password and tenant; the log does not say which.
    PasswordRefused,
    /// Too many wrong passwords for this account or from this source: wait, then try again.
    PasswordThrottled,
    /// Send the device code.
    MissingDeviceCode,
    /// The device code is not one of this client's, or was redeemed before.
    UnknownDeviceCode,
    /// Start again with a new device authorization; see device_code_lifetime.
    DeviceCodeExpired,
    /// Nothing to mend: the person said no.
    DeviceDenied,
    /// Poll again after the interval.
    DevicePending,
    /// Wait five seconds longer between polls from now on.
    DevicePolledTooEarly,
    /// Wait as long as Retry-After says; the limits are settings.
    TooManyDeviceAuthorizations,
    /// Wait until some of this client's are decided or expire; the limit is a setting.
    TooManyPendingDevices,
    /// Wait as long as Retry-After says.
    TooManyUserCodes,
    /// Type the code that the device shows; start again there when it is too old.
    UnknownUserCode,
    /// Start again on the device.
    DeviceAlreadyDecided,
    /// Nothing to mend here: the operator's grant said no.
    ExtensionRefused,
    /// The grant named a user who is not there, is disabled, or is not the client's to have.
    ExtensionSubject,
    /// Send text that the grant can read.
    ExtensionInput,
    /// Wait as long as Retry-After says.
    TooManyExtensionFailures,
    /// Send subject_token and subject_token_type.
    MissingSubjectToken,
    /// Use the type URI of access tokens, or of JWTs for one of ours.
    UnsupportedTokenType,
    /// Send a live access token of this issuer that speaks for a user and that this client may exchange.
    InvalidSubjectToken,
    /// Send a live access token of this issuer, of the same tenant, with its type.
    InvalidActorToken,
    /// The subject token's may_act names somebody else.
    ActorNotAllowed,
    /// Exchange an earlier token of the chain; it is four deep at most.
    DelegationTooDeep,
    /// Token exchange needs a confidential client with token_exchange in its registration.
    ExchangeNotRegistered,
    /// Ask for scopes of the subject token and of the client, without openid and offline_access.
    ScopeBeyondSubjectToken,
    // Client authentication
    /// Send client_id, in the body or the Authorization header.
    NoClientAuthentication,
    /// Use the Authorization header or the body, not both.
    SeveralAuthenticationMethods,
    /// Send Basic with the form-encoded client_id and client_secret in base64.
    MalformedAuthorizationHeader,
    /// Check client_id.
    UnknownClientAtToken,
    /// Check client_secret; add one with `gatepost client secret`.
    WrongClientSecret,
    /// Use the registered token_endpoint_auth_method.
    WrongAuthenticationMethod,
    /// A public client has no secret: leave it out.
    SecretOfPublicClient,
    /// client_id in body and header must be the same.
    ClientIdMismatch,
    /// Wait as long as Retry-After says.
    TooManyClientFailures,
    /// The client is disabled; enable it with `gatepost apply`.
    DisabledClientAtToken,
    /// Send client_secret; an empty one counts as none.
    MissingClientSecret,
    /// Introspect as a resource with a secret, or as a confidential client.
    PublicClientIntrospection,
    // JWT bearer grant
    /// Send the JWT as assertion.
    MissingAssertion,
    /// Register its issuer under assertion_issuers, and the client among those that may redeem its assertions.
    UnknownAssertionIssuer,
    /// Sign with a registered alg and key; give each key a kid of its own.
    AssertionKey,
    /// Sign with the private part of the registered key.
    AssertionSignature,
    /// Set sub, jti, exp at most 10 minutes ahead, and aud to this issuer or its token endpoint alone.
    AssertionClaims,
    /// Get a new assertion for each request.
    AssertionReplayed,
    /// Let the issuer's jwks_uri answer 200 with a JWK set; the log says what it did instead.
    AssertionKeysUnavailable,
    /// Link the subject to a user with `gatepost user link`, or check the user name.
    AssertionSubject,
    /// Ask for scopes of the issuer's registration, without offline_access.
    ScopeBeyondAssertion,
    // Client authentication by keys
    /// Send one JWT as client_assertion, signed with RS256, ES256 or EdDSA, its sub the client_id, and client_assertion_type.
    MalformedClientAssertion,
    /// Sign with the registered token_endpoint_auth_signing_alg.
    ClientAssertionAlgorithm,
    /// Register the key under the kid that the header names; each kid once.
    ClientAssertionKey,
    /// Sign with the private part of the registered key.
    ClientAssertionSignature,
    /// Set iss and sub to the client_id.
    ClientAssertionParties,
    /// Set aud to the issuer, or to the token endpoint's URL, and to nothing else.
    ClientAssertionAudience,
    /// Set exp at most 10 minutes ahead; compare the clocks.
    ClientAssertionTimes,
    /// Set jti to a value of its own for each assertion.
    ClientAssertionWithoutJti,
    /// Make a new assertion for each request.
    ClientAssertionReplayed,
    /// Let jwks_uri answer 200 with a JWK set; the log says what it did instead.
    ClientKeysUnavailable,
    // UserInfo
    /// Send Authorization: Bearer.
    NoAccessToken,
    /// Use the Authorization header alone.
    SeveralAccessTokens,
    /// Send Authorization: Bearer.
    AccessTokenInQuery,
    /// It expired, was revoked, or is not one of this issuer's access tokens.
    InvalidAccessToken,
    /// Ask for openid.
    InsufficientScope,
    /// Send Authorization: Bearer and one token.
    MalformedBearer,
    // Sign-in, consent and other pages
    /// Check both; the log does not say which.
    WrongPassword,
    /// Wait, then try again.
    TooManySignInFailures,
    /// Start again from the application.
    PageExpired,
    /// Start again from the application.
    SealedRequestInvalid,
    /// Open the page again.
    UnknownPageAction,
    // The way back from an identity provider
    /// Start again from the application.
    RoundTripOver,
    /// Register the provider with provision true, or link the account there to a user.
    NotProvisioned,
    /// Enable the user with `gatepost user enable`.
    UpstreamUserDisabled,
    /// Name the tenant that the provider, and the user, belong to.
    UpstreamUserElsewhere,
    /// Sign in and begin the link again.
    LinkSessionOver,
    // Sign-in with an identity provider
    /// Let the identity provider honour max_age and prompt=login, or ask for less.
    SignInTooOld,
    /// Nothing to mend: the person changed their mind, or was refused there.
    UpstreamCancelled,
    /// Ask for less than the identity provider can meet: max_age, prompt=login.
    UpstreamLoginRequired,
    /// Try again later; `gatepost idp test` and the log say what is wrong.
    UpstreamUnavailable,
    /// Look into the log, which says what was wrong with it.
    UpstreamNotBelieved,
    // Linked accounts, and signing out elsewhere
    /// Check that the identity provider is registered, enabled, and of the person's tenant.
    LinkImpossible,
    /// Start again on the account page.
    LinkOfAnotherSession,
    /// Start again on the account page; it waits five minutes.
    LinkExpired,
    /// Unlink it there first, or have the operator do it with `gatepost user unlink`.
    IdentityLinkedElsewhere,
    /// Link another account first, or have the operator set a password.
    LastWayIn,
    /// Compare the provider's registration, its keys and the clocks; the log says what was wrong.
    LogoutTokenRefused,
    /// Wait as long as Retry-After says.
    TooManyLogoutTokens,
    /// Nothing to mend: whoever came back is shown whether they are signed in.
    SignOutNotBegunHere,
    // This service
    /// Try again in a few seconds.
    Unavailable,
    /// The log has the cause under the request id.
    Internal,
    /// Try again in a few seconds.
    Overloaded,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// Stable; never given to another reason.
    pub code: &'static str,
    /// Public: printable ASCII without `"` and `\` (RFC 6749 §5.2).
    pub description: &'static str,
    /// What the operator or the application's developer can do.
    pub remedy: &'static str,
}

const fn row(code: &'static str, description: &'static str, remedy: &'static str) -> Explanation {
    Explanation { code, description, remedy }
}

impl Reason {
    /// Every reason, for tests and for the documentation.
    pub const ALL: &'static [Reason] = &[
        Reason::MalformedParameters,
        Reason::RepeatedParameter,
        Reason::OverlongParameter,
        Reason::ParameterInQuery,
        Reason::UnsupportedContentType,
        Reason::MethodNotAllowed,
        Reason::NotFound,
        Reason::BodyTooLarge,
        Reason::ForeignFormPost,
        Reason::MissingClientId,
        Reason::UnknownClient,
        Reason::DisabledClient,
        Reason::MissingRedirectUri,
        Reason::UnregisteredRedirectUri,
        Reason::RequestObjectUnsupported,
        Reason::RequestUriUnsupported,
        Reason::MissingResponseType,
        Reason::UnsupportedResponseType,
        Reason::UnregisteredResponseType,
        Reason::TokensThroughBrowser,
        Reason::UnknownResponseMode,
        Reason::IllegalResponseMode,
        Reason::MissingScope,
        Reason::UnknownScope,
        Reason::MissingOpenid,
        Reason::ScopeKind,
        Reason::MissingNonce,
        Reason::MissingCodeChallenge,
        Reason::MalformedCodeChallenge,
        Reason::UnsupportedCodeChallengeMethod,
        Reason::PlainPkce,
        Reason::MalformedPrompt,
        Reason::MalformedMaxAge,
        Reason::MalformedClaims,
        Reason::UnknownTenant,
        Reason::UnknownResource,
        Reason::InvalidIdTokenHint,
        Reason::RequestTooLong,
        Reason::LoginRequired,
        Reason::ConsentRequired,
        Reason::AccessDenied,
        Reason::OtherSubject,
        Reason::UnmetAuthenticationRequirements,
        Reason::NoWayToSignIn,
        Reason::ScopeOutsideRequest,
        Reason::HintOfAnotherClient,
        Reason::UnregisteredPostLogoutRedirectUri,
        Reason::PostLogoutRedirectUriOfNobody,
        Reason::MissingGrantType,
        Reason::UnsupportedGrantType,
        Reason::UnregisteredGrantType,
        Reason::MissingCode,
        Reason::MissingTokenRedirectUri,
        Reason::UnknownCode,
        Reason::CodeReplayed,
        Reason::CodeExpired,
        Reason::CodeOfAnotherClient,
        Reason::RedirectUriMismatch,
        Reason::CodeVerifierMismatch,
        Reason::CodeVerifierUnexpected,
        Reason::CodeVerifierMissing,
        Reason::GrantNoLongerStands,
        Reason::PublicClientCredentials,
        Reason::IdentityScopeForClient,
        Reason::NoScopeLeft,
        Reason::InvalidTarget,
        Reason::MissingRefreshToken,
        Reason::UnknownRefreshToken,
        Reason::RefreshTokenReplayed,
        Reason::RefreshTokenExpired,
        Reason::GrantRevoked,
        Reason::ScopeBeyondGrant,
        Reason::MissingToken,
        Reason::MissingUsername,
        Reason::MissingPassword,
        Reason::NoPasswordSignIn,
        Reason::IdentityProviderWithPassword,
        Reason::PasswordRefused,
        Reason::PasswordThrottled,
        Reason::MissingDeviceCode,
        Reason::UnknownDeviceCode,
        Reason::DeviceCodeExpired,
        Reason::DeviceDenied,
        Reason::DevicePending,
        Reason::DevicePolledTooEarly,
        Reason::TooManyDeviceAuthorizations,
        Reason::TooManyPendingDevices,
        Reason::TooManyUserCodes,
        Reason::UnknownUserCode,
        Reason::DeviceAlreadyDecided,
        Reason::ExtensionRefused,
        Reason::ExtensionSubject,
        Reason::ExtensionInput,
        Reason::TooManyExtensionFailures,
        Reason::MissingSubjectToken,
        Reason::UnsupportedTokenType,
        Reason::InvalidSubjectToken,
        Reason::InvalidActorToken,
        Reason::ActorNotAllowed,
        Reason::DelegationTooDeep,
        Reason::ExchangeNotRegistered,
        Reason::ScopeBeyondSubjectToken,
        Reason::NoClientAuthentication,
        Reason::SeveralAuthenticationMethods,
        Reason::MalformedAuthorizationHeader,
        Reason::UnknownClientAtToken,
        Reason::WrongClientSecret,
        Reason::WrongAuthenticationMethod,
        Reason::SecretOfPublicClient,
        Reason::ClientIdMismatch,
        Reason::TooManyClientFailures,
        Reason::DisabledClientAtToken,
        Reason::MissingClientSecret,
        Reason::PublicClientIntrospection,
        Reason::MissingAssertion,
        Reason::UnknownAssertionIssuer,
        Reason::AssertionKey,
        Reason::AssertionSignature,
        Reason::AssertionClaims,
        Reason::AssertionReplayed,
        Reason::AssertionKeysUnavailable,
        Reason::AssertionSubject,
        Reason::ScopeBeyondAssertion,
        Reason::MalformedClientAssertion,
        Reason::ClientAssertionAlgorithm,
        Reason::ClientAssertionKey,
        Reason::ClientAssertionSignature,
        Reason::ClientAssertionParties,
        Reason::ClientAssertionAudience,
        Reason::ClientAssertionTimes,
        Reason::ClientAssertionWithoutJti,
        Reason::ClientAssertionReplayed,
        Reason::ClientKeysUnavailable,
        Reason::NoAccessToken,
        Reason::SeveralAccessTokens,
        Reason::AccessTokenInQuery,
        Reason::InvalidAccessToken,
        Reason::InsufficientScope,
        Reason::MalformedBearer,
        Reason::WrongPassword,
        Reason::TooManySignInFailures,
        Reason::PageExpired,
        Reason::SealedRequestInvalid,
        Reason::UnknownPageAction,
        Reason::RoundTripOver,
        Reason::NotProvisioned,
        Reason::UpstreamUserDisabled,
        Reason::UpstreamUserElsewhere,
        Reason::LinkSessionOver,
        Reason::SignInTooOld,
        Reason::UpstreamCancelled,
        Reason::UpstreamLoginRequired,
        Reason::UpstreamUnavailable,
        Reason::UpstreamNotBelieved,
        Reason::LinkImpossible,
        Reason::LinkOfAnotherSession,
        Reason::LinkExpired,
        Reason::IdentityLinkedElsewhere,
        Reason::LastWayIn,
        Reason::LogoutTokenRefused,
        Reason::TooManyLogoutTokens,
        Reason::SignOutNotBegunHere,
        Reason::Unavailable,
        Reason::Internal,
        Reason::Overloaded,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        self.explanation().code
    }

    /// The public sentence.
    pub fn description(self) -> &'static str {
        self.explanation().description
    }

    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        self.explanation().remedy
    }

    /// The table.
    #[allow(clippy::too_many_lines, reason = "a table, one row a reason")]
    #[rustfmt::skip]
    pub fn explanation(self) -> Explanation {
        match self {
            // Shape of a request
            Reason::MalformedParameters => row("GP1001", "The request has a parameter that is not well-formed.", "Percent-encode parameters as UTF-8, without NUL."),
            Reason::RepeatedParameter => row("GP1002", "A parameter was sent more than once.", "Send each parameter once."),
            Reason::OverlongParameter => row("GP1003", "A parameter is longer than allowed.", "See the table of lengths in the README."),
            Reason::ParameterInQuery => row("GP1004", "Parameters of this endpoint belong in the body.", "Send them in the form body, not in the URL."),
            Reason::UnsupportedContentType => row("GP1005", "The body must be application/x-www-form-urlencoded.", "Set Content-Type and encode the body as a form."),
            Reason::MethodNotAllowed => row("GP1006", "The method is not supported here.", "Use a method that the Allow header names."),
            Reason::NotFound => row("GP1007", "There is nothing at this address.", "Check the path; paths are case-sensitive."),
            Reason::BodyTooLarge => row("GP1008", "The request is too large.", "Send at most 64 KiB."),
            Reason::ForeignFormPost => row("GP1009", "The form was not sent from a page of this service.", "Open the page again and send the form from there."),
            // Authorization endpoint
            Reason::MissingClientId => row("GP1101", "The parameter client_id is missing.", "Send the client's registered client_id."),
            Reason::UnknownClient => row("GP1102", "The application is not registered here.", "Check client_id; register the client with `gatepost apply`."),
            Reason::DisabledClient => row("GP1103", "The application is not registered here.", "The client is disabled; enable it with `gatepost apply`."),
            Reason::MissingRedirectUri => row("GP1104", "The parameter redirect_uri is missing.", "Send one of the client's registered redirect URIs."),
            Reason::UnregisteredRedirectUri => row("GP1105", "The redirect_uri is not registered for this application.", "Register exactly this URI, byte for byte; the log names both."),
            Reason::RequestObjectUnsupported => row("GP1106", "Request objects are not supported.", "Send the parameters in the query or the form."),
            Reason::RequestUriUnsupported => row("GP1107", "Requests by reference are not supported.", "Send the parameters in the query or the form."),
            Reason::MissingResponseType => row("GP1108", "The parameter response_type is missing.", "Send response_type, for instance code."),
            Reason::UnsupportedResponseType => row("GP1109", "The response_type is not supported.", "Use a response type that discovery lists."),
            Reason::UnregisteredResponseType => row("GP1110", "The client may not use this response_type.", "Add it to the client's response_types."),
            Reason::TokensThroughBrowser => row("GP1111", "The client may not receive access tokens through the browser.", "Use the code flow, or set allow_access_tokens_via_browser."),
            Reason::UnknownResponseMode => row("GP1112", "The response_mode is not supported.", "Use query, fragment or form_post."),
            Reason::IllegalResponseMode => row("GP1113", "The response_mode is not allowed for this response_type.", "Tokens never travel in a query: use fragment or form_post."),
            Reason::MissingScope => row("GP1114", "The parameter scope is missing.", "Ask for at least one scope."),
            Reason::UnknownScope => row("GP1115", "A requested scope is unknown or not allowed for the client.", "Register the scope and add it to the client's scope."),
            Reason::MissingOpenid => row("GP1116", "Identity scopes need the scope openid.", "Add openid to scope."),
            Reason::ScopeKind => row("GP1117", "A requested scope does not fit the response_type.", "id_token takes identity scopes, token takes resource scopes."),
            Reason::MissingNonce => row("GP1118", "The parameter nonce is missing.", "Send a fresh nonce with response types that return an ID token from this endpoint."),
            Reason::MissingCodeChallenge => row("GP1119", "The parameter code_challenge is missing.", "Use PKCE with S256. A confidential client may instead send a nonce with the scope openid, unless it is registered with require_pkce true."),
            Reason::MalformedCodeChallenge => row("GP1120", "The code_challenge is not well-formed.", "Send 43 to 128 unreserved characters; exactly 43 base64url characters for S256."),
            Reason::UnsupportedCodeChallengeMethod => row("GP1121", "The code_challenge_method is not supported.", "Use S256."),
            Reason::PlainPkce => row("GP1122", "The client may not use the plain code_challenge_method.", "Use S256, or register allow_plain_pkce."),
            Reason::MalformedPrompt => row("GP1123", "The prompt is not supported.", "Use none alone, or login, consent, select_account."),
            Reason::MalformedMaxAge => row("GP1124", "The max_age is not a number of seconds.", "Send digits only."),
            Reason::MalformedClaims => row("GP1125", "The claims parameter is not well-formed.", "Send a JSON object as OpenID Connect Core section 5.5 describes."),
            Reason::UnknownTenant => row("GP1126", "The tenant is unknown or not allowed for the client.", "Name one registered tenant that the client allows."),
            Reason::UnknownResource => row("GP1127", "The resource is unknown or not allowed.", "Name a registered resource behind one of the requested scopes."),
            Reason::InvalidIdTokenHint => row("GP1128", "The id_token_hint is not an ID token of this issuer.", "Send an ID token that this issuer gave to the client."),
            Reason::RequestTooLong => row("GP1129", "The request is too long.", "Shorten state, scope or claims."),
            Reason::LoginRequired => row("GP1130", "The user must sign in.", "Repeat the request without prompt=none."),
            Reason::ConsentRequired => row("GP1131", "The user must give consent.", "Repeat the request without prompt=none."),
            Reason::AccessDenied => row("GP1134", "The user denied the request.", "Nothing to mend: the person said no."),
            Reason::OtherSubject => row("GP1135", "The user who signed in is not the one asked for.", "Sign in as the user the request names."),
            Reason::UnmetAuthenticationRequirements => row("GP1136", "The authentication requirements cannot be met.", "Ask for an acr value that discovery lists."),
            Reason::NoWayToSignIn => row("GP1138", "There is no way to sign in for this application.", "Allow the client an identity provider that this server has; local is the password login."),
            Reason::ScopeOutsideRequest => row("GP1137", "The form names a scope that was not asked for.", "Tick only scopes that the page shows."),
            // End session endpoint
            Reason::HintOfAnotherClient => row("GP1160", "The id_token_hint was made for another client.", "Send the client_id that the ID token was made for, or none."),
            Reason::UnregisteredPostLogoutRedirectUri => row("GP1161", "The post_logout_redirect_uri is not registered for this application.", "Register exactly this URI in post_logout_redirect_uris; the log names both."),
            Reason::PostLogoutRedirectUriOfNobody => row("GP1162", "Nobody is named whose post_logout_redirect_uri this could be.", "Send id_token_hint or client_id: by them the URI is known to be registered."),
            // Token endpoint
            Reason::MissingGrantType => row("GP1201", "The parameter grant_type is missing.", "Send grant_type."),
            Reason::UnsupportedGrantType => row("GP1202", "The grant_type is not supported.", "Use a grant type that discovery lists."),
            Reason::UnregisteredGrantType => row("GP1203", "The client may not use this grant_type.", "Add it to the client's grant_types."),
            Reason::MissingCode => row("GP1204", "The parameter code is missing.", "Send the authorization code."),
            Reason::MissingTokenRedirectUri => row("GP1205", "The parameter redirect_uri is missing.", "Send the redirect_uri of the authorization request."),
            Reason::UnknownCode => row("GP1206", "The grant is not valid.", "The code is not one of this issuer's, or was damaged on the way."),
            Reason::CodeReplayed => row("GP1207", "The grant is not valid.", "The code was redeemed before; what the first redemption gave is revoked. Send each code once."),
            Reason::CodeExpired => row("GP1208", "The grant is not valid.", "Redeem the code at once; its lifetime is authorization_code_lifetime."),
            Reason::CodeOfAnotherClient => row("GP1209", "The grant is not valid.", "Redeem the code with the client that asked for it."),
            Reason::RedirectUriMismatch => row("GP1210", "The grant is not valid.", "Send the same redirect_uri as in the authorization request."),
            Reason::CodeVerifierMismatch => row("GP1211", "The grant is not valid.", "Send the code_verifier that belongs to the code_challenge."),
            Reason::CodeVerifierUnexpected => row("GP1212", "The grant is not valid.", "Send a code_verifier only if the authorization request had a code_challenge."),
            Reason::CodeVerifierMissing => row("GP1213", "The grant is not valid.", "Send the code_verifier."),
            Reason::GrantNoLongerStands => row("GP1214", "The grant is not valid.", "Session, user, consent, scope or client was withdrawn in the meantime: sign in again."),
            Reason::PublicClientCredentials => row("GP1215", "The client may not use this grant_type.", "client_credentials needs a confidential client."),
            Reason::IdentityScopeForClient => row("GP1216", "A requested scope needs a user.", "Ask for resource scopes only with client_credentials."),
            Reason::NoScopeLeft => row("GP1217", "There is no scope that this grant may carry.", "Add a resource scope to the client."),
            Reason::InvalidTarget => row("GP1218", "The resource is unknown or not allowed.", "Ask for resources within what was authorized."),
            Reason::MissingRefreshToken => row("GP1219", "The parameter refresh_token is missing.", "Send the refresh token."),
            Reason::UnknownRefreshToken => row("GP1220", "The grant is not valid.", "The refresh token is not one of this client's, or was damaged on the way."),
            Reason::RefreshTokenReplayed => row("GP1221", "The grant is not valid.", "An old refresh token came again; what hangs on its grant is revoked. Keep the newest, and send each once."),
            Reason::RefreshTokenExpired => row("GP1222", "The grant is not valid.", "Its absolute or idle lifetime is over: sign in again."),
            Reason::GrantRevoked => row("GP1223", "The grant is not valid.", "The grant was revoked: sign in again."),
            Reason::ScopeBeyondGrant => row("GP1224", "The scope is wider than what was granted.", "Ask for scopes within what was granted."),
            Reason::MissingToken => row("GP1225", "The parameter token is missing.", "Send the token to revoke or to look at."),
            // The grants password and device_code, and the device page
            Reason::MissingUsername => row("GP1250", "The parameter username is missing.", "Send username."),
            Reason::MissingPassword => row("GP1251", "The parameter password is missing.", "Send password."),
            Reason::NoPasswordSignIn => row("GP1252", "The client may not use this grant_type.", "Allow the client the identity provider local."),
            Reason::IdentityProviderWithPassword => row("GP1253", "Passwords are not checked by an identity provider.", "Leave idp: out of acr_values, or send idp:local."),
            Reason::PasswordRefused => row("GP1254", "The grant is not valid.", "Check user name, password and tenant; the log does not say which."),
            Reason::PasswordThrottled => row("GP1255", "The grant is not valid.", "Too many wrong passwords for this account or from this source: wait, then try again."),
            Reason::MissingDeviceCode => row("GP1256", "The parameter device_code is missing.", "Send the device code."),
            Reason::UnknownDeviceCode => row("GP1257", "The grant is not valid.", "The device code is not one of this client's, or was redeemed before."),
            Reason::DeviceCodeExpired => row("GP1258", "The device code has expired.", "Start again with a new device authorization; see device_code_lifetime."),
            Reason::DeviceDenied => row("GP1259", "The user denied the request.", "Nothing to mend: the person said no."),
            Reason::DevicePending => row("GP1601", "The user has not decided yet.", "Poll again after the interval."),
            Reason::DevicePolledTooEarly => row("GP1602", "The device polls too often.", "Wait five seconds longer between polls from now on."),
            Reason::TooManyDeviceAuthorizations => row("GP1603", "Too many device authorizations.", "Wait as long as Retry-After says; the limits are settings."),
            Reason::TooManyPendingDevices => row("GP1604", "Too many device authorizations.", "Wait until some of this client's are decided or expire; the limit is a setting."),
            Reason::TooManyUserCodes => row("GP1605", "Too many wrong codes.", "Wait as long as Retry-After says."),
            Reason::UnknownUserCode => row("GP1606", "The code is not valid.", "Type the code that the device shows; start again there when it is too old."),
            Reason::DeviceAlreadyDecided => row("GP1607", "This code was used already, or has expired.", "Start again on the device."),
            // Extension grants and token exchange
            Reason::ExtensionRefused => row("GP1260", "The grant is not valid.", "Nothing to mend here: the operator's grant said no."),
            Reason::ExtensionSubject => row("GP1261", "The grant is not valid.", "The grant named a user who is not there, is disabled, or is not the client's to have."),
            Reason::ExtensionInput => row("GP1262", "A parameter has a value that this grant cannot read.", "Send text that the grant can read."),
            Reason::TooManyExtensionFailures => row("GP1263", "Too many failed attempts.", "Wait as long as Retry-After says."),
            Reason::MissingSubjectToken => row("GP1264", "The parameters subject_token and subject_token_type are required.", "Send subject_token and subject_token_type."),
            Reason::UnsupportedTokenType => row("GP1265", "The token type is not supported here.", "Use the type URI of access tokens, or of JWTs for one of ours."),
            Reason::InvalidSubjectToken => row("GP1266", "The subject token is not valid.", "Send a live access token of this issuer that speaks for a user and that this client may exchange."),
            Reason::InvalidActorToken => row("GP1267", "The actor token is not valid.", "Send a live access token of this issuer, of the same tenant, with its type."),
            Reason::ActorNotAllowed => row("GP1268", "The actor may not act for this subject.", "The subject token's may_act names somebody else."),
            Reason::DelegationTooDeep => row("GP1269", "The subject token has been exchanged too often.", "Exchange an earlier token of the chain; it is four deep at most."),
            Reason::ExchangeNotRegistered => row("GP1270", "The client is not registered to exchange tokens.", "Token exchange needs a confidential client with token_exchange in its registration."),
            Reason::ScopeBeyondSubjectToken => row("GP1271", "The scope is beyond what this exchange can give.", "Ask for scopes of the subject token and of the client, without openid and offline_access."),
            // Client authentication
            Reason::NoClientAuthentication => row("GP1301", "Client authentication failed.", "Send client_id, in the body or the Authorization header."),
            Reason::SeveralAuthenticationMethods => row("GP1302", "The request uses more than one way of client authentication.", "Use the Authorization header or the body, not both."),
            Reason::MalformedAuthorizationHeader => row("GP1303", "Client authentication failed.", "Send Basic with the form-encoded client_id and client_secret in base64."),
            Reason::UnknownClientAtToken => row("GP1304", "Client authentication failed.", "Check client_id."),
            Reason::WrongClientSecret => row("GP1305", "Client authentication failed.", "Check client_secret; add one with `gatepost client secret`."),
            Reason::WrongAuthenticationMethod => row("GP1306", "Client authentication failed.", "Use the registered token_endpoint_auth_method."),
            Reason::SecretOfPublicClient => row("GP1307", "Client authentication failed.", "A public client has no secret: leave it out."),
            Reason::ClientIdMismatch => row("GP1308", "Client authentication failed.", "client_id in body and header must be the same."),
            Reason::TooManyClientFailures => row("GP1309", "Too many failed attempts.", "Wait as long as Retry-After says."),
            Reason::DisabledClientAtToken => row("GP1310", "Client authentication failed.", "The client is disabled; enable it with `gatepost apply`."),
            Reason::MissingClientSecret => row("GP1311", "Client authentication failed.", "Send client_secret; an empty one counts as none."),
            Reason::PublicClientIntrospection => row("GP1312", "Client authentication failed.", "Introspect as a resource with a secret, or as a confidential client."),
            // JWT bearer grant
            Reason::MissingAssertion => row("GP1240", "The parameter assertion is missing.", "Send the JWT as assertion."),
            Reason::UnknownAssertionIssuer => row("GP1241", "The grant is not valid.", "Register its issuer under assertion_issuers, and the client among those that may redeem its assertions."),
            Reason::AssertionKey => row("GP1242", "The grant is not valid.", "Sign with a registered alg and key; give each key a kid of its own."),
            Reason::AssertionSignature => row("GP1243", "The grant is not valid.", "Sign with the private part of the registered key."),
            Reason::AssertionClaims => row("GP1244", "The grant is not valid.", "Set sub, jti, exp at most 10 minutes ahead, and aud to this issuer or its token endpoint alone."),
            Reason::AssertionReplayed => row("GP1245", "The grant is not valid.", "Get a new assertion for each request."),
            Reason::AssertionKeysUnavailable => row("GP1246", "The grant is not valid.", "Let the issuer's jwks_uri answer 200 with a JWK set; the log says what it did instead."),
            Reason::AssertionSubject => row("GP1247", "The grant is not valid.", "Link the subject to a user with `gatepost user link`, or check the user name."),
            Reason::ScopeBeyondAssertion => row("GP1248", "The scope is wider than what such an assertion can give.", "Ask for scopes of the issuer's registration, without offline_access."),
            // Client authentication by keys
            Reason::MalformedClientAssertion => row("GP1230", "Client authentication failed.", "Send one JWT as client_assertion, signed with RS256, ES256 or EdDSA, its sub the client_id, and client_assertion_type."),
            Reason::ClientAssertionAlgorithm => row("GP1231", "Client authentication failed.", "Sign with the registered token_endpoint_auth_signing_alg."),
            Reason::ClientAssertionKey => row("GP1232", "Client authentication failed.", "Register the key under the kid that the header names; each kid once."),
            Reason::ClientAssertionSignature => row("GP1233", "Client authentication failed.", "Sign with the private part of the registered key."),
            Reason::ClientAssertionParties => row("GP1234", "Client authentication failed.", "Set iss and sub to the client_id."),
            Reason::ClientAssertionAudience => row("GP1235", "Client authentication failed.", "Set aud to the issuer, or to the token endpoint's URL, and to nothing else."),
            Reason::ClientAssertionTimes => row("GP1236", "Client authentication failed.", "Set exp at most 10 minutes ahead; compare the clocks."),
            Reason::ClientAssertionWithoutJti => row("GP1237", "Client authentication failed.", "Set jti to a value of its own for each assertion."),
            Reason::ClientAssertionReplayed => row("GP1238", "Client authentication failed.", "Make a new assertion for each request."),
            Reason::ClientKeysUnavailable => row("GP1239", "Client authentication failed.", "Let jwks_uri answer 200 with a JWK set; the log says what it did instead."),
            // UserInfo
            Reason::NoAccessToken => row("GP1401", "An access token is required.", "Send Authorization: Bearer."),
            Reason::SeveralAccessTokens => row("GP1402", "The access token must be sent in one way only.", "Use the Authorization header alone."),
            Reason::AccessTokenInQuery => row("GP1403", "Access tokens are not accepted in the URL.", "Send Authorization: Bearer."),
            Reason::InvalidAccessToken => row("GP1404", "The access token is not valid.", "It expired, was revoked, or is not one of this issuer's access tokens."),
            Reason::InsufficientScope => row("GP1405", "The access token does not have the scope openid.", "Ask for openid."),
            Reason::MalformedBearer => row("GP1406", "The Authorization header is not well-formed.", "Send Authorization: Bearer and one token."),
            // Sign-in, consent and other pages
            Reason::WrongPassword => row("GP1501", "Username or password is wrong.", "Check both; the log does not say which."),
            Reason::TooManySignInFailures => row("GP1502", "Too many failed attempts.", "Wait, then try again."),
            Reason::PageExpired => row("GP1503", "This page has expired.", "Start again from the application."),
            Reason::SealedRequestInvalid => row("GP1504", "This address is not valid any more.", "Start again from the application."),
            Reason::UnknownPageAction => row("GP1505", "The form is not complete.", "Open the page again."),
            // The way back from an identity provider
            Reason::RoundTripOver => row("GP1711", "This browser is on no such way to an identity provider, or no longer.", "Start again from the application."),
            Reason::NotProvisioned => row("GP1712", "No user is linked to that account at the identity provider.", "Register the provider with provision true, or link the account there to a user."),
            Reason::UpstreamUserDisabled => row("GP1713", "The user linked to that account at the identity provider is disabled.", "Enable the user with `gatepost user enable`."),
            Reason::UpstreamUserElsewhere => row("GP1714", "That account at the identity provider is of another tenant.", "Name the tenant that the provider, and the user, belong to."),
            Reason::LinkSessionOver => row("GP1715", "The session that asked for the link is over.", "Sign in and begin the link again."),
            // Sign-in with an identity provider
            Reason::SignInTooOld => row("GP1721", "The user's sign-in is older than asked for.", "Let the identity provider honour max_age and prompt=login, or ask for less."),
            Reason::UpstreamCancelled => row("GP1722", "The user did not sign in with the identity provider.", "Nothing to mend: the person changed their mind, or was refused there."),
            Reason::UpstreamLoginRequired => row("GP1723", "The identity provider could not sign the user in as asked.", "Ask for less than the identity provider can meet: max_age, prompt=login."),
            Reason::UpstreamUnavailable => row("GP1724", "The identity provider is not available.", "Try again later; `gatepost idp test` and the log say what is wrong."),
            Reason::UpstreamNotBelieved => row("GP1725", "The answer of the identity provider could not be verified.", "Look into the log, which says what was wrong with it."),
            // Linked accounts, and signing out elsewhere
            Reason::LinkImpossible => row("GP1726", "That way of signing in cannot be linked now.", "Check that the identity provider is registered, enabled, and of the person's tenant."),
            Reason::LinkOfAnotherSession => row("GP1727", "The question belongs to another sign-in.", "Start again on the account page."),
            Reason::LinkExpired => row("GP1728", "The question waited too long.", "Start again on the account page; it waits five minutes."),
            Reason::IdentityLinkedElsewhere => row("GP1729", "That account is linked to another account.", "Unlink it there first, or have the operator do it with `gatepost user unlink`."),
            Reason::LastWayIn => row("GP1730", "Nothing would be left to sign in with.", "Link another account first, or have the operator set a password."),
            Reason::LogoutTokenRefused => row("GP1731", "The logout token is not valid.", "Compare the provider's registration, its keys and the clocks; the log says what was wrong."),
            Reason::TooManyLogoutTokens => row("GP1732", "Too many logout tokens that are not valid.", "Wait as long as Retry-After says."),
            Reason::SignOutNotBegunHere => row("GP1733", "This sign-out did not begin here.", "Nothing to mend: whoever came back is shown whether they are signed in."),
            // This service
            Reason::Unavailable => row("GP1901", "The service is temporarily unavailable.", "Try again in a few seconds."),
            Reason::Internal => row("GP1902", "Something went wrong here.", "The log has the cause under the request id."),
            Reason::Overloaded => row("GP1903", "The service is busy.", "Try again in a few seconds."),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_well_formed() {
        let codes: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        assert!(codes.iter().all(|code| code.len() == 6 && code.starts_with("GP1")));
    }

    #[test]
    fn descriptions_hold_only_what_an_error_description_may() {
        for reason in Reason::ALL {
            let allowed = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
            assert!(reason.description().bytes().all(allowed), "{reason:?}");
            assert!(!reason.description().is_empty() && !reason.remedy().is_empty(), "{reason:?}");
        }
    }

    #[test]
    fn invalid_grant_has_one_public_text() {
        let is_of_grant = |code: &str| {
            ("GP1206".."GP1215").contains(&code)
                || ("GP1220".."GP1224").contains(&code)
                || ["GP1254", "GP1255", "GP1257"].contains(&code)
        };
        let grant_reasons = Reason::ALL.iter().filter(|reason| is_of_grant(reason.code()));
        assert_eq!(grant_reasons.clone().count(), 16);
        for reason in grant_reasons {
            assert_eq!(reason.description(), Reason::UnknownCode.description(), "{reason:?}");
        }
    }
}
