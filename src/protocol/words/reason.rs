//! Why a request was refused: one enum for the whole house, and the one table that gives each
//! reason its row.

use crate::words::named::named;

pub struct Explanation {
    pub code: &'static str,
    /// Fixed text, fit for an `error_description` (RFC 6749 §5.2).
    pub description: &'static str,
    pub remedy: &'static str,
}

/// A row each: the variant, its code, its public description, and its remedy, which stands on lines
/// of its own where the row is long. Codes are never given again.
macro_rules! reasons {
    ($($name:ident $code:literal $description:literal $remedy:literal;)*) => {
        /// The code stands in the log line and on the error page.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reason { $(#[doc = $description] $name,)* }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            pub const fn explanation(self) -> Explanation {
                match self {
                    $(Reason::$name => Explanation {
                        code: $code,
                        description: $description,
                        remedy: $remedy,
                    },)*
                }
            }

            pub const fn code(self) -> &'static str {
                self.explanation().code
            }

            pub const fn description(self) -> &'static str {
                self.explanation().description
            }

            pub const fn remedy(self) -> &'static str {
                self.explanation().remedy
            }
        }
    };
}

reasons! {
    // Shape of a request
    MalformedParameters "GP1001" "The request has a parameter that is not well-formed."
        "Percent-encode parameters as UTF-8, without NUL.";
    RepeatedParameter "GP1002" "A parameter was sent more than once." "Send each parameter once.";
    OverlongParameter "GP1003" "A parameter is longer than allowed."
        "Shorten it: `gatepost help lengths` has the limits.";
    ParameterInQuery "GP1004" "Parameters of this endpoint belong in the body."
        "Send them in the form body, not in the URL.";
    UnsupportedContentType "GP1005" "The body must be application/x-www-form-urlencoded."
        "Set Content-Type and encode the body as a form.";
    MethodNotAllowed "GP1006" "The method is not supported here."
        "Use a method that the Allow header names.";
    NotFound "GP1007" "There is nothing at this address."
        "Check the path, which is case-sensitive, and whether a setting has switched it off.";
    ForeignFormPost "GP1009" "The form was not sent from a page of this service."
        "Open the page again and send the form from there.";
    // Authorization endpoint
    MissingClientId "GP1101" "The parameter client_id is missing."
        "Send the client's registered client_id.";
    UnknownClient "GP1102" "The application is not registered here."
        "Check client_id; register the client with `gatepost apply`.";
    DisabledClient "GP1103" "The application is not registered here."
        "The client is disabled; enable it with `gatepost apply`.";
    MissingRedirectUri "GP1104" "The parameter redirect_uri is missing."
        "Send one of the client's registered redirect URIs.";
    UnregisteredRedirectUri "GP1105" "The redirect_uri is not registered for this application."
        "Register exactly this URI, byte for byte; the log names both.";
    RequestObjectUnsupported "GP1106" "Request objects are not supported."
        "Send the parameters in the query or the form.";
    RequestUriUnsupported "GP1107" "Requests by reference are not supported."
        "Send the parameters, or the request_uri that /connect/par gave.";
    MissingResponseType "GP1108" "The parameter response_type is missing."
        "Send response_type, for instance code.";
    UnsupportedResponseType "GP1109" "The response_type is not supported."
        "Use a response type that discovery lists.";
    UnregisteredResponseType "GP1110" "The client may not use this response_type."
        "Add it to the client's response_types, unless its profile forbids it. Where the log says \
            legacy_until, the client may use this flow no more: use code instead.";
    TokensThroughBrowser "GP1111" "The client may not receive access tokens through the browser."
        "Use the code flow, or set allow_access_tokens_via_browser.";
    UnknownResponseMode "GP1112" "The response_mode is not supported."
        "Use query, fragment or form_post.";
    IllegalResponseMode "GP1113" "The response_mode is not allowed for this response_type."
        "Tokens never travel in a query: use fragment or form_post.";
    MissingScope "GP1114" "The parameter scope is missing." "Ask for at least one scope.";
    UnknownScope "GP1115" "A requested scope is unknown or not allowed for the client."
        "Register the scope and add it to the client's scope.";
    MissingOpenid "GP1116" "Identity scopes need the scope openid." "Add openid to scope.";
    ScopeKind "GP1117" "A requested scope does not fit the response_type."
        "id_token takes identity scopes, token takes resource scopes.";
    MissingNonce "GP1118" "The parameter nonce is missing."
        "Send a fresh nonce with response types that return an ID token from this endpoint.";
    MissingCodeChallenge "GP1119" "The parameter code_challenge or nonce is missing."
        "Use PKCE with S256. A nonce with the scope openid is enough only for a confidential \
            client that neither require_pkce true nor a profile obliges to PKCE. Where the log \
            says legacy_until, the client may no longer leave out both.";
    MalformedCodeChallenge "GP1120" "The code_challenge is not well-formed."
        "Send 43 to 128 unreserved characters; exactly 43 base64url characters for S256.";
    UnsupportedCodeChallengeMethod "GP1121" "The code_challenge_method is not supported."
        "Use S256.";
    PlainPkce "GP1122" "The client may not use the plain code_challenge_method."
        "Send code_challenge_method=S256: without it the method is plain.";
    MalformedPrompt "GP1123" "The prompt is not supported."
        "Use none alone, or login, consent, select_account.";
    MalformedMaxAge "GP1124" "The max_age is not a number of seconds." "Send digits only.";
    MalformedClaims "GP1125" "The claims parameter is not well-formed."
        "Send a JSON object as OpenID Connect Core section 5.5 describes.";
    UnknownTenant "GP1126" "The tenant is unknown or not allowed for the client."
        "Name one registered tenant that the client allows.";
    UnknownResource "GP1127" "The resource is unknown or not allowed."
        "Name a registered resource behind one of the requested scopes.";
    InvalidIdTokenHint "GP1128" "The id_token_hint is not an ID token of this issuer."
        "Send an ID token that this issuer gave to the client.";
    RequestTooLong "GP1129" "The request is too long." "Shorten state, scope or claims.";
    LoginRequired "GP1130" "The user must sign in." "Repeat the request without prompt=none.";
    ConsentRequired "GP1131" "The user must give consent."
        "Repeat the request without prompt=none.";
    AccessDenied "GP1134" "The user denied the request." "Nothing to mend: the person said no.";
    OtherSubject "GP1135" "The user who signed in is not the one asked for."
        "Sign in as the user the request names.";
    UnmetAuthenticationRequirements "GP1136" "The authentication requirements cannot be met."
        "Ask for an acr value that discovery lists. A sign-in at an identity provider has what its \
            acr_map gives.";
    NoWayToSignIn "GP1138" "There is no way to sign in for this application."
        "Allow the client an identity provider that this server has, enabled, and of the tenant \
            that was asked for; local is the password login.";
    NotOpenToUser "GP1139" "The application is not open to this user."
        "Give the user one of the client's allowed_roles, or let somebody who has one sign in.";
    PushedRequestTooLong "GP1150" "The request is too long."
        "Shorten state, scope or claims: the request_uri, which is the request sealed, may have \
            7000 characters.";
    PushedRequestDamaged "GP1151" "The request_uri is not valid (invalid_request_uri)."
        "Send the request_uri as /connect/par gave it.";
    PushedRequestOfAnother "GP1152" "The request_uri is not valid (invalid_request_uri)."
        "Send the client_id of the client that pushed the request.";
    PushedRequestExpired "GP1153" "The request_uri is not valid any more (invalid_request_uri)."
        "Send the browser within 90 seconds, or push the request again.";
    PushedRequestUsed "GP1154" "The request_uri was used before (invalid_request_uri)."
        "Push a request for each sign-in.";
    PushedRequestRequired "GP1155" "The request must be pushed first."
        "The client registers require_pushed_authorization_requests: send the request to \
            /connect/par.";
    UnregisteredDocument "GP1169" "The application is not registered here."
        "Whoever runs this service can register it: the log has a line with the document to apply.";
    MetadataDocumentUnavailable "GP1170" "The application's metadata document cannot be read now."
        "Let the client_id answer 200 with application/json, within 5 seconds and without a \
            redirect; the log says what it did instead.";
    MalformedMetadataDocument "GP1171" "The application's metadata document is not valid."
        "Serve one JSON object of at most 5 KiB, with exactly this client_id and at most 20 \
            redirect_uris.";
    MetadataDocumentMethod "GP1172" "The application's metadata document is not valid."
        "Leave secrets and private keys out, and let token_endpoint_auth_method be the registered \
            one; absent is none.";
    MetadataDocumentRedirectUris "GP1173" "The application's metadata document is not valid."
        "List redirect_uris on https of the document's own host, of a registered redirect_hosts, \
            or on http of localhost, 127.0.0.1 or [::1].";
    InteractionRequired "GP1140" "The user must prove who they are by another factor."
        "Repeat the request without prompt=none.";
    SecondFactorWrong "GP1805" "The code is not right."
        "Type the code that the app shows now, or a recovery code; the clocks of phone and server \
            must agree to 30 seconds.";
    TooManyCodes "GP1806" "Too many wrong codes."
        "Wait as long as Retry-After says. Passkeys go on, and recovery codes where it was an \
            app's.";
    LastFactor "GP1804" "The last second factor cannot be removed."
        "GATEPOST_MINIMUM_ACR asks for one, or the user has no password: add another first.";
    FactorImpossible "GP1807" "The factor was not added."
        "The page was out of date, or the user was changed meanwhile: begin again.";
    PasskeyMalformed "GP1811" "The passkey was not accepted."
        "The browser's answer is not one of WebAuthn, or has more in it than is read here.";
    PasskeyElsewhere "GP1812" "The passkey was not accepted."
        "It was used at another address, in a frame, or for something else: the base URL must be \
            what browsers see.";
    PasskeyUnverified "GP1813" "The passkey was not accepted."
        "The device did not check who uses it, by a PIN, a finger or a face.";
    PasskeyKey "GP1814" "The passkey was not accepted."
        "Its key is none of ES256, EdDSA and RS256, or no key.";
    PasskeySignature "GP1815" "The passkey was not accepted."
        "Its signature is wrong, or its owner is not to sign in here.";
    PasskeyCloned "GP1816" "The passkey was not accepted."
        "Its counter did not grow: somebody may have copied it. Have its owner remove it and add \
            another.";
    PasskeyChallenge "GP1817" "The passkey was not accepted."
        "Its challenge was made for another page or browser, was used before, or is too old.";
    PasskeyUnknown "GP1819" "The passkey was not accepted."
        "Nobody has that passkey here: it was removed, or its person was. The browser is told so.";
    PasskeyNeeded "GP1818" "The ways to sign in were not changed."
        "Their owner has a passkey and did not sign in with it. Who has lost theirs gets a link: \
            `gatepost user reset --enrol`, or `--passkey` where they have no password.";
    RegistrationMistaken "GP1820" "The document has mistakes: nothing was done."
        "The answer has each mistake with its place.";
    RegistrationOfTenants "GP1821" "The client is restricted to tenants."
        "What is registered is everybody's: use a client without tenants.";
    RegistrationVersion "GP1822" "The parameter version is missing, or no number."
        "Send the registry_version that /admin/plan answered.";
    RegistrationMoved "GP1823"
        "What is registered has changed since it was planned: nothing was done."
        "Ask /admin/plan again, and apply with its registry_version and changes_digest.";
    RegistrationUnseen "GP1825" "The document has users, and the parameter changes is missing."
        "Send the changes_digest that /admin/plan answered.";
    RegistrationNotJson "GP1824" "The body must be application/json."
        "Set Content-Type to application/json.";
    FactorDeclined "GP1801" "The authentication requirements cannot be met."
        "The user has no factor as strong as the client asks for, and may not add one now, or did \
            not want to.";
    ScopeOutsideRequest "GP1137" "The form names a scope that was not asked for."
        "Tick only scopes that the page shows.";
    // End session endpoint
    HintOfAnotherClient "GP1160" "The id_token_hint was made for another client."
        "Send the client_id that the ID token was made for, or none.";
    UnregisteredPostLogoutRedirectUri "GP1161"
        "The post_logout_redirect_uri is not registered for this application."
        "Register exactly this URI in post_logout_redirect_uris; the log names both.";
    PostLogoutRedirectUriOfNobody "GP1162"
        "Nobody is named whose post_logout_redirect_uri this could be."
        "Send id_token_hint or client_id: by them the URI is known to be registered.";
    // Token endpoint
    MissingGrantType "GP1201" "The parameter grant_type is missing." "Send grant_type.";
    UnsupportedGrantType "GP1202" "The grant_type is not supported."
        "Use a grant type that discovery lists.";
    UnregisteredGrantType "GP1203" "The client may not use this grant_type."
        "Add it to the client's grant_types. Where the log says legacy_until, the client may use \
            this grant no more: use authorization_code instead.";
    MissingCode "GP1204" "The parameter code is missing." "Send the authorization code.";
    MissingTokenRedirectUri "GP1205" "The parameter redirect_uri is missing."
        "Send the redirect_uri of the authorization request.";
    UnknownCode "GP1206" "The grant is not valid."
        "The code is not one of this issuer's, or was damaged on the way.";
    CodeReplayed "GP1207" "The grant is not valid."
        "The code was used before, and what it gave is revoked. Send each code once, with its own \
            code_verifier, redirect_uri and key.";
    CodeExpired "GP1208" "The grant is not valid."
        "Redeem the code at once; its lifetime is authorization_code_lifetime.";
    CodeOfAnotherClient "GP1209" "The grant is not valid."
        "Redeem the code with the client that asked for it.";
    RedirectUriMismatch "GP1210" "The grant is not valid."
        "Send the same redirect_uri as in the authorization request.";
    CodeVerifierMismatch "GP1211" "The grant is not valid."
        "Send the code_verifier that belongs to the code_challenge.";
    CodeVerifierUnexpected "GP1212" "The grant is not valid."
        "Send a code_verifier only if the authorization request had a code_challenge.";
    CodeVerifierMissing "GP1213" "The grant is not valid." "Send the code_verifier.";
    GrantNoLongerStands "GP1214" "The grant is not valid."
        "Session, user, consent, scope, role or client was withdrawn in the meantime: sign in \
            again.";
    AcrBelowMinimum "GP1802" "The grant is not valid."
        "The sign-in was weaker than the client's minimum_acr, or GATEPOST_MINIMUM_ACR: sign in \
            again.";
    PasswordAlone "GP1803" "The grant is not valid."
        "The user has a second factor, which the password grant cannot ask for: use the \
            authorization code flow.";
    PublicClientCredentials "GP1215" "The client may not use this grant_type."
        "client_credentials needs a confidential client.";
    IdentityScopeForClient "GP1216" "A requested scope needs a user."
        "Ask for resource scopes only with client_credentials.";
    NoScopeLeft "GP1217" "There is no scope that this grant may carry."
        "Ask for a scope that the client may have. It must be one of a resource; for an ID-JAG it \
            must be in the scope of the id_jag entry that gives it, or of the assertion_issuers \
            entry that takes it.";
    InvalidTarget "GP1218" "The resource or audience is unknown or not allowed."
        "Ask for resources within what was authorized. For an ID-JAG send the audience of one \
            id_jag entry, and one of its resources.";
    MissingRefreshToken "GP1219" "The parameter refresh_token is missing."
        "Send the refresh token.";
    UnknownRefreshToken "GP1220" "The grant is not valid."
        "The refresh token is not one of this client's, or was damaged on the way.";
    RefreshTokenReplayed "GP1221" "The grant is not valid."
        "An old refresh token came again; what hangs on its grant is revoked. Keep the newest, and \
            send each once.";
    RefreshTokenExpired "GP1222" "The grant is not valid."
        "Its absolute or idle lifetime is over: sign in again.";
    GrantRevoked "GP1223" "The grant is not valid." "The grant was revoked: sign in again.";
    ScopeBeyondGrant "GP1224" "The scope is wider than what was granted."
        "Ask for scopes within what was granted.";
    MissingToken "GP1225" "The parameter token is missing."
        "Send the token to revoke or to look at.";
    // The grants password and device_code, and the device page
    MissingUsername "GP1250" "The parameter username is missing." "Send username.";
    MissingPassword "GP1251" "The parameter password is missing." "Send password.";
    NoPasswordSignIn "GP1252" "The client may not use this grant_type."
        "Allow the client the identity provider local.";
    IdentityProviderWithPassword "GP1253" "Passwords are not checked by an identity provider."
        "Leave idp: out of acr_values, or send idp:local.";
    PasswordRefused "GP1254" "The grant is not valid."
        "Check user name, password and tenant; the log does not say which.";
    PasswordThrottled "GP1255" "The grant is not valid."
        "Too many wrong passwords for this account or from this source: wait, then try again.";
    MissingDeviceCode "GP1256" "The parameter device_code is missing." "Send the device code.";
    UnknownDeviceCode "GP1257" "The grant is not valid."
        "The device code is not one of this client's, or was redeemed before.";
    DeviceCodeExpired "GP1258" "The device code has expired."
        "Start again with a new device authorization; see device_code_lifetime.";
    DeviceDenied "GP1259" "The user denied the request." "Nothing to mend: the person said no.";
    DevicePending "GP1601" "The user has not decided yet." "Poll again after the interval.";
    DevicePolledTooEarly "GP1602" "The device polls too often."
        "Wait five seconds longer between polls from now on.";
    TooManyDeviceAuthorizations "GP1603" "Too many device authorizations."
        "Wait as long as Retry-After says; the limits are settings.";
    TooManyPendingDevices "GP1604" "Too many device authorizations."
        "Wait until some of this client's are decided or expire; the limit is a setting.";
    TooManyUserCodes "GP1605" "Too many wrong codes." "Wait as long as Retry-After says.";
    UnknownUserCode "GP1606" "The code is not valid."
        "Type the code that the device shows; start again there when it is too old.";
    DeviceAlreadyDecided "GP1607" "This code was used already, or has expired."
        "Start again on the device.";
    // Extension grants and token exchange
    ExtensionRefused "GP1260" "The grant is not valid."
        "Nothing to mend here: the operator's grant said no.";
    ExtensionSubject "GP1261" "The grant is not valid."
        "The grant named a user who is not there, is disabled, is out of time, or is not the \
         client's to have.";
    ExtensionInput "GP1262" "A parameter has a value that this grant cannot read."
        "Send text that the grant can read.";
    TooManyExtensionFailures "GP1263" "Too many failed attempts."
        "Wait as long as Retry-After says.";
    MissingSubjectToken "GP1264" "The parameters subject_token and subject_token_type are required."
        "Send subject_token and subject_token_type.";
    UnsupportedTokenType "GP1265" "The token type is not supported here."
        "Use the type URI of access tokens, or of JWTs for one of ours; for an ID-JAG that of ID \
            tokens.";
    InvalidSubjectToken "GP1266" "The subject token is not valid."
        "Send a live access token of this issuer that speaks for a user and that this client may \
            exchange; for an ID-JAG an ID token that the token endpoint gave to this client.";
    InvalidActorToken "GP1267" "The actor token is not valid."
        "Send a live access token of this issuer, of the same tenant, with its type.";
    ActorNotAllowed "GP1268" "The actor may not act for this subject."
        "The subject token's may_act names somebody else.";
    DelegationTooDeep "GP1269" "The subject token has been exchanged too often."
        "Exchange an earlier token of the chain; it is four deep at most.";
    ExchangeNotRegistered "GP1270" "The client is not registered to exchange tokens."
        "Token exchange needs a confidential client with token_exchange in its registration; an \
            ID-JAG needs id_jag there.";
    ScopeBeyondSubjectToken "GP1271" "The scope is beyond what this exchange can give."
        "Ask for scopes of the subject token and of the client, without openid and offline_access.";
    // Client authentication
    NoClientAuthentication "GP1301" "Client authentication failed."
        "Send client_id, in the body or the Authorization header.";
    SeveralAuthenticationMethods "GP1302"
        "The request uses more than one way of client authentication."
        "Use the Authorization header or the body, not both.";
    MalformedAuthorizationHeader "GP1303" "Client authentication failed."
        "Send Basic with the form-encoded client_id and client_secret in base64.";
    UnknownClientAtToken "GP1304" "Client authentication failed." "Check client_id.";
    WrongClientSecret "GP1305" "Client authentication failed."
        "Check client_secret; add one with `gatepost client secret`.";
    WrongAuthenticationMethod "GP1306" "Client authentication failed."
        "Use the registered token_endpoint_auth_method.";
    SecretOfPublicClient "GP1307" "Client authentication failed."
        "A public client has no secret: leave it out.";
    ClientIdMismatch "GP1308" "Client authentication failed."
        "The client_id of the body must be that of the Authorization header, and the sub of the \
            client's own assertion.";
    TooManyClientFailures "GP1309" "Too many failed attempts." "Wait as long as Retry-After says.";
    DisabledClientAtToken "GP1310" "Client authentication failed."
        "The client is disabled; enable it with `gatepost apply`.";
    MissingClientSecret "GP1311" "Client authentication failed."
        "Send client_secret; an empty one counts as none.";
    PublicClientIntrospection "GP1312" "Client authentication failed."
        "Introspect as a resource with a secret, or as a confidential client.";
    // DPoP proofs
    ProofMissing "GP1320" "A DPoP proof is required."
        "The client registers dpop_bound_access_tokens, or the access token is bound: send the \
            header DPoP, and a bound token as Authorization: DPoP.";
    ProofMalformed "GP1321" "The DPoP proof is not valid."
        "Send one header DPoP: a JWT of typ dpop+jwt, signed with ES256 or EdDSA by the public key \
            in its jwk.";
    ProofElsewhere "GP1322" "The DPoP proof was made for another request."
        "Set htm to the method and htu to the address under the base URL; a proxy must not change \
            either.";
    ProofTime "GP1323" "The DPoP proof is too old, or from the future."
        "Set iat to the time of the request: it may be 60 seconds old and 10 seconds ahead. \
            Correct the device's clock.";
    ProofNonce "GP1324" "The DPoP proof must have a fresh nonce."
        "Make another proof with the nonce of the header DPoP-Nonce, and send the same request \
            again.";
    ProofReplayed "GP1325" "The DPoP proof was used before, or has no jti."
        "Make a proof for each request, with a jti of its own of 1 to 256 bytes.";
    ProofToken "GP1326" "The DPoP proof was made for another access token."
        "Set ath to the SHA-256 of the access token, in base64url.";
    ProofKey "GP1327" "The DPoP proof is not of the right key."
        "Use the key that the code, refresh token or access token is bound to; dpop_jkt is its \
            thumbprint. A token that is bound to none goes as Authorization: Bearer.";
    MalformedDpopJkt "GP1328" "The dpop_jkt is not well-formed."
        "Send the SHA-256 thumbprint of the public key (RFC 7638) in base64url, 43 characters; or \
            leave it out.";
    // JWT bearer grant
    MissingAssertion "GP1240" "The parameter assertion is missing." "Send the JWT as assertion.";
    UnknownAssertionIssuer "GP1241" "The grant is not valid."
        "Register its issuer under assertion_issuers, and the client among those that may redeem \
            its assertions. An issuer with id_jag true is taken for ID-JAGs alone.";
    AssertionKey "GP1242" "The grant is not valid."
        "Sign with a registered alg and key; give each key a kid of its own.";
    AssertionSignature "GP1243" "The grant is not valid."
        "Sign with the private part of the registered key.";
    AssertionClaims "GP1244" "The grant is not valid."
        "Set sub, jti, exp at most 10 minutes ahead, and aud to this issuer or its token endpoint \
            alone. An ID-JAG needs iat as well, aud of this issuer alone, and no \
            authorization_details.";
    AssertionReplayed "GP1245" "The grant is not valid." "Get a new assertion for each request.";
    AssertionKeysUnavailable "GP1246" "The grant is not valid."
        "Let the issuer's jwks_uri answer 200 with a JWK set; the log says what it did instead.";
    AssertionSubject "GP1247" "The grant is not valid."
        "Link the subject to a user with `gatepost user link`, or check the user name.";
    IdJagNotTaken "GP1176" "The grant is not valid."
        "Set GATEPOST_ID_JAG=on, and id_jag at the issuer. The ID-JAG's client_id must be that of \
            the client that redeems it, which must be confidential; its resource must be \
            registered.";
    IdJagOfKey "GP1177" "The grant is not valid."
        "The ID-JAG has cnf: it is good only with a DPoP proof by that key in the same request. \
            Send one.";
    IdJagForBrowser "GP1178" "This token type is not given to browsers."
        "Ask for it from the client's server: a request with Origin comes from a script.";
    ScopeBeyondAssertion "GP1248" "The scope is wider than what such an assertion can give."
        "Ask for scopes of the issuer's registration, without offline_access.";
    // Client authentication by keys
    MalformedClientAssertion "GP1230" "Client authentication failed."
        "Send one JWT as client_assertion, signed with ES256, EdDSA or, where no profile forbids \
            it, RS256, its sub the client_id, and client_assertion_type.";
    ClientAssertionAlgorithm "GP1231" "Client authentication failed."
        "Sign with the registered token_endpoint_auth_signing_alg; without one with ES256 or \
            EdDSA, which are always taken.";
    ClientAssertionKey "GP1232" "Client authentication failed."
        "Register the key under the kid that the header names; each kid once.";
    ClientAssertionSignature "GP1233" "Client authentication failed."
        "Sign with the private part of the registered key.";
    ClientAssertionParties "GP1234" "Client authentication failed."
        "Set iss and sub to the client_id.";
    ClientAssertionAudience "GP1235" "Client authentication failed."
        "Set aud to the issuer, as one text and nothing else: that is always taken. A workload's \
            token may have the audience of its federated entry instead.";
    ClientAssertionTimes "GP1236" "Client authentication failed."
        "Send one that has not ended and was made now, not ahead of time: leave nbf out, set iat \
            to now, and exp at most 10 minutes ahead; compare the clocks.";
    ClientAssertionWithoutJti "GP1237" "Client authentication failed."
        "Set jti to a value of its own for each assertion.";
    ClientAssertionReplayed "GP1238" "Client authentication failed."
        "Make a new assertion for each request.";
    ClientKeysUnavailable "GP1239" "Client authentication failed."
        "Let jwks_uri answer 200 with a JWK set; the log says what it did instead.";
    UnknownWorkload "GP1174" "Client authentication failed."
        "Register an entry in federated with exactly this issuer, subject and claims; the log has \
            the first two.";
    WorkloadTokenTooLong "GP1175" "Client authentication failed."
        "Let the platform give out tokens that end sooner, or register max_lifetime, up to 86400.";
    // UserInfo
    NoAccessToken "GP1401" "An access token is required."
        "Send Authorization: Bearer, or DPoP with a token that is bound to a key.";
    SeveralAccessTokens "GP1402" "The access token must be sent in one way only."
        "Use the Authorization header alone.";
    AccessTokenInQuery "GP1403" "Access tokens are not accepted in the URL."
        "Send Authorization: Bearer.";
    InvalidAccessToken "GP1404" "The access token is not valid."
        "It expired, was revoked, is not one of this issuer's access tokens, or is not for this \
            resource.";
    InsufficientScope "GP1405" "The access token does not have the scope openid." "Ask for openid.";
    MalformedBearer "GP1406" "The Authorization header is not well-formed."
        "Send Authorization: Bearer and one token.";
    TokenNotOfProgram "GP1407" "The access token must be one without a user, with the scope"
        "Get it by client_credentials, with the scope that the answer names, and register that at \
            the client.";
    // Sessions that are bound to a key of the browser
    UnboundRequest "GP1480" "The browser did not show that it is the one that signed in."
        "Sign in again. The session is bound to a key of the browser that signed in: its cookie \
            came alone, from another browser or because the key could not be used. Where the log \
            says skipped, the browser says why.";
    BindingRefused "GP1481" "The session was not bound to the browser's key."
        "The challenge is older than 60 seconds or of a session that goes on no more, another key \
            was first, or the signature is wrong. The session goes on without a key until the next \
            sign-in.";
    BoundRefreshRefused "GP1482" "The browser's proof of its key is not valid."
        "The identifier is not one of this service's, or its session has run out, or the proof is \
            by another key. People sign in again.";
    UnboundAdministrator "GP1483" "This page opens only in a browser that has bound its session."
        "Sign in anew with a browser that binds its session to a key, as Chrome on Windows does. \
            GATEPOST_ADMIN_BOUND_SESSION wants it, and GATEPOST_BOUND_SESSIONS has to be on.";
    UnboundSession "GP1484" "The client takes only sessions that are bound to their browser."
        "Repeat the request without prompt=none: a sign-in counts for 90 seconds. The client has \
            require_bound_session.";
    // Sign-in, consent and other pages
    WrongPassword "GP1501" "Username or password is wrong."
        "Check both; the log does not say which.";
    TooManySignInFailures "GP1502" "Too many failed attempts." "Wait, then try again.";
    LinkOver "GP1810" "This link cannot be used, or no longer."
        "Make a new one with `gatepost user invite`, `user reset` or `signup make`. An e-mail is \
            asked for again where it was: at /login/forgotten, /join or /account.";
    PersonChanged "GP1830" "The person was not changed."
        "They were changed meanwhile: look at their page again.";
    PersonOfOthers "GP1831" "The person was not changed."
        "Administrators change neither themselves nor people with roles that GATEPOST_ADMIN_ROLES \
            does not have: use `gatepost user`.";
    NoConfirmedAddress "GP1832" "No link was sent."
        "The address of the person is not verified: use `gatepost user reset`, and pass the link \
            on yourself.";
    PageExpired "GP1503" "This page has expired." "Start again from the application.";
    SealedRequestInvalid "GP1504" "This address is not valid any more."
        "Start again from the application.";
    UnknownPageAction "GP1505" "The form is not complete." "Open the page again.";
    NoSuchDay "GP1840" "The day is none of the calendar." "Write it as 2027-01-31.";
    // The way back from an identity provider
    RoundTripOver "GP1711" "This browser is on no such way to an identity provider, or no longer."
        "Start again from the application.";
    NotProvisioned "GP1712" "No user is linked to that account at the identity provider."
        "Register the provider with provision true, or link the account there to a user.";
    UpstreamUserDisabled "GP1713"
        "The user linked to that account at the identity provider is disabled, or out of time."
        "Enable the user with `gatepost user enable`.";
    UpstreamUserElsewhere "GP1714" "That account at the identity provider is of another tenant."
        "Name the tenant that the provider, and the user, belong to.";
    LinkSessionOver "GP1715" "The session that asked for the link is over."
        "Sign in and begin the link again.";
    SignInTooOld "GP1721" "The user's sign-in is older than asked for."
        "Let the identity provider honour max_age and prompt=login, or ask for less.";
    UpstreamCancelled "GP1722" "The user did not sign in with the identity provider."
        "Nothing to mend: the person changed their mind, or was refused there.";
    UpstreamLoginRequired "GP1723" "The identity provider could not sign the user in as asked."
        "Ask for less than the identity provider can meet: max_age, prompt=login.";
    UpstreamUnavailable "GP1724" "The identity provider is not available."
        "Try again later; `gatepost idp test` and the log say what is wrong.";
    UpstreamUnusable "GP1734" "The identity provider's answer cannot be used."
        "Look into the log, which says what was wrong with it. It stays so until it is mended, \
            there or in the registration here; `gatepost idp test` asks anew.";
    UpstreamNotBelieved "GP1725" "The answer of the identity provider could not be verified."
        "Look into the log, which says what was wrong with it.";
    LinkImpossible "GP1726" "That way of signing in cannot be linked now."
        "Check that the identity provider is registered, enabled, of the person's tenant, and has \
            account_page.";
    LinkOfAnotherSession "GP1727" "The question belongs to another sign-in."
        "Start again on the account page.";
    LinkExpired "GP1728" "The question waited too long."
        "Start again on the account page; it waits five minutes.";
    IdentityLinkedElsewhere "GP1729" "That account is linked to another account."
        "Unlink it there first, or have the operator do it with `gatepost user unlink`.";
    LastWayIn "GP1730" "Nothing would be left to sign in with."
        "Link another account first, or have the operator set a password.";
    LogoutTokenRefused "GP1731" "The logout token is not valid."
        "Compare the provider's registration, its keys and the clocks; the log says what was \
            wrong.";
    TooManyLogoutTokens "GP1732" "Too many logout tokens that are not valid."
        "Wait as long as Retry-After says.";
    SignOutNotBegunHere "GP1733" "This sign-out did not begin here."
        "Nothing to mend: whoever came back is shown whether they are signed in.";
    // This service
    Unavailable "GP1901" "The service is temporarily unavailable." "Try again in a few seconds.";
    Internal "GP1902" "Something went wrong here." "The log has the cause under the request id.";
    Overloaded "GP1903" "The service is busy." "Try again in a few seconds.";
    ScimRefused "GP1904" "The SCIM request cannot be carried out."
        "The detail says what to change.";
}

named! {
    /// `error` at the token endpoint and its neighbours (RFC 6749 §5.2, RFC 8628 §3.5, RFC 8707
    /// §2, RFC 9449 §5, §8).
    pub enum TokenErrorCode {
        InvalidRequest = "invalid_request",
        InvalidClient = "invalid_client",
        InvalidGrant = "invalid_grant",
        UnauthorizedClient = "unauthorized_client",
        UnsupportedGrantType = "unsupported_grant_type",
        InvalidScope = "invalid_scope",
        InvalidTarget = "invalid_target",
        AuthorizationPending = "authorization_pending",
        SlowDown = "slow_down",
        AccessDenied = "access_denied",
        ExpiredToken = "expired_token",
        TemporarilyUnavailable = "temporarily_unavailable",
        /// RFC 9470 §3: sign in again, stronger.
        InsufficientUserAuthentication = "insufficient_user_authentication",
        InvalidDpopProof = "invalid_dpop_proof",
        UseDpopNonce = "use_dpop_nonce",
    }
}

/// What was asked for; or why a token endpoint refuses.
pub type Result<T = (), E = TokenError> = core::result::Result<T, E>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenError {
    pub code: TokenErrorCode,
    /// Why; its description goes out, the rest to the log.
    pub reason: Reason,
    pub detail: Option<String>,
}

impl TokenError {
    pub const fn new(code: TokenErrorCode, reason: Reason) -> TokenError {
        TokenError {
            code,
            reason,
            detail: None,
        }
    }

    /// `invalid_scope` for one scope, which the log names.
    pub fn about_scope(reason: Reason, scope: &str) -> TokenError {
        TokenError {
            detail: Some(scope.to_owned()),
            ..invalid_scope(reason)
        }
    }
}

pub const fn invalid_request(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidRequest, reason)
}

pub const fn invalid_grant(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidGrant, reason)
}

pub const fn invalid_scope(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::InvalidScope, reason)
}

pub const fn invalid_target() -> TokenError {
    TokenError::new(TokenErrorCode::InvalidTarget, Reason::InvalidTarget)
}

pub const fn unauthorized_client(reason: Reason) -> TokenError {
    TokenError::new(TokenErrorCode::UnauthorizedClient, reason)
}

named! {
    /// RFC 6749 §4.1.2.1, OpenID Connect Core §3.1.2.6, RFC 8707 §2, Error Code
    /// unmet_authentication_requirements §2.
    pub enum AuthorizeErrorCode {
        InvalidRequest = "invalid_request",
        UnauthorizedClient = "unauthorized_client",
        AccessDenied = "access_denied",
        UnsupportedResponseType = "unsupported_response_type",
        InvalidScope = "invalid_scope",
        InvalidTarget = "invalid_target",
        ServerError = "server_error",
        TemporarilyUnavailable = "temporarily_unavailable",
        LoginRequired = "login_required",
        ConsentRequired = "consent_required",
        InteractionRequired = "interaction_required",
        RequestNotSupported = "request_not_supported",
        RequestUriNotSupported = "request_uri_not_supported",
        UnmetAuthenticationRequirements = "unmet_authentication_requirements",
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
        assert!(
            codes
                .iter()
                .all(|code| code.len() == 6 && code.starts_with("GP1"))
        );
    }

    #[test]
    fn descriptions_hold_only_what_an_error_description_may() {
        for reason in Reason::ALL {
            let allowed = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\';
            assert!(reason.description().bytes().all(allowed), "{reason:?}");
            assert!(
                !reason.description().is_empty() && !reason.remedy().is_empty(),
                "{reason:?}"
            );
        }
    }

    #[test]
    fn the_log_is_told_which_scope_was_wrong() {
        let error = TokenError::about_scope(Reason::UnknownScope, "nope");
        assert_eq!(error.code, TokenErrorCode::InvalidScope);
        assert_eq!(error.detail.as_deref(), Some("nope"));
    }

    #[test]
    fn invalid_grant_has_one_public_text() {
        let is_of_grant = |code: &str| {
            ("GP1206".."GP1215").contains(&code)
                || ("GP1220".."GP1224").contains(&code)
                || ["GP1254", "GP1255", "GP1257"].contains(&code)
        };
        let grant_reasons = Reason::ALL
            .iter()
            .filter(|reason| is_of_grant(reason.code()));
        assert_eq!(grant_reasons.clone().count(), 16);
        for reason in grant_reasons {
            assert_eq!(
                reason.description(),
                Reason::UnknownCode.description(),
                "{reason:?}"
            );
        }
    }
}
