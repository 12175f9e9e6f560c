//! The table of everything that can be asked for: paths, methods, who reads the answer, who may share it.

use crate::http::Method;
use crate::protocol::discovery as metadata;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route<'a> {
    Home,
    Health,
    Discovery,
    Jwks,
    Authorize,
    EndSession,
    CheckSession,
    Token,
    Revocation,
    Introspection,
    DeviceAuthorization,
    UserInfo,
    Login,
    Consent,
    Logout,
    Account,
    Device,
    ClientLogo(&'a str),
    ExternalCallback(&'a str),
    ExternalLogout(&'a str),
    ExternalSignedOut(&'a str),
    StaticFile(&'a str),
}

/// Who reads the answer when something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    Person,
    Program,
}

/// Which other origins may read the answer in a browser (Fetch §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    Nobody,
    Everybody,
    ClientOrigins,
}

impl<'a> Route<'a> {
    /// Paths are case-sensitive and end where they end.
    pub(super) fn find(base_path: &str, path: &'a str) -> Option<Route<'a>> {
        // RFC 8414 §3.1 puts the well-known part before the issuer's path, not after it.
        if path.strip_prefix(metadata::AUTHORIZATION_SERVER_PATH) == Some(base_path) {
            return Some(Route::Discovery);
        }
        match path.strip_prefix(base_path)? {
            "" | "/" => Some(Route::Home),
            "/healthz" => Some(Route::Health),
            metadata::CONFIGURATION_PATH => Some(Route::Discovery),
            metadata::JWKS_PATH => Some(Route::Jwks),
            metadata::AUTHORIZE_PATH => Some(Route::Authorize),
            metadata::END_SESSION_PATH => Some(Route::EndSession),
            metadata::CHECK_SESSION_PATH => Some(Route::CheckSession),
            metadata::TOKEN_PATH => Some(Route::Token),
            metadata::REVOCATION_PATH => Some(Route::Revocation),
            metadata::INTROSPECTION_PATH => Some(Route::Introspection),
            metadata::DEVICE_AUTHORIZATION_PATH => Some(Route::DeviceAuthorization),
            metadata::USERINFO_PATH => Some(Route::UserInfo),
            "/login" => Some(Route::Login),
            "/consent" => Some(Route::Consent),
            "/logout" => Some(Route::Logout),
            "/account" => Some(Route::Account),
            "/device" => Some(Route::Device),
            other => Route::with_a_name(other),
        }
    }

    fn with_a_name(path: &'a str) -> Option<Route<'a>> {
        let (first, rest) = path.strip_prefix('/')?.split_once('/')?;
        match first {
            "clients" => rest.strip_suffix("/logo").map(Route::ClientLogo),
            "external" => match rest.split_once('/')? {
                (provider, "callback") => Some(Route::ExternalCallback(provider)),
                (provider, "logout") => Some(Route::ExternalLogout(provider)),
                (provider, "signed-out") => Some(Route::ExternalSignedOut(provider)),
                _ => None,
            },
            "static" => Some(Route::StaticFile(rest)),
            _ => None,
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Route::Home => "home",
            Route::Health => "healthz",
            Route::Discovery => "discovery",
            Route::Jwks => "jwks",
            Route::Authorize => "authorize",
            Route::EndSession => "endsession",
            Route::CheckSession => "checksession",
            Route::Token => "token",
            Route::Revocation => "revocation",
            Route::Introspection => "introspect",
            Route::UserInfo => "userinfo",
            Route::Login => "login",
            Route::Consent => "consent",
            Route::Logout => "logout",
            Route::Account => "account",
            Route::ClientLogo(_) => "logo",
            Route::ExternalCallback(_) => "external_callback",
            Route::ExternalLogout(_) => "external_logout",
            Route::ExternalSignedOut(_) => "external_signed_out",
            Route::Device => "device",
            Route::DeviceAuthorization => "deviceauthorization",
            Route::StaticFile(_) => "static",
        }
    }

    /// The methods for `Allow`. HEAD goes wherever GET does, but for requests that have effects.
    pub(super) fn allow(self) -> &'static str {
        match self {
            Route::Home
            | Route::Health
            | Route::CheckSession
            | Route::ClientLogo(_)
            | Route::ExternalCallback(_)
            | Route::ExternalSignedOut(_)
            | Route::StaticFile(_) => "GET, HEAD",
            Route::Discovery | Route::Jwks => "GET, HEAD, OPTIONS",
            Route::Authorize | Route::EndSession => "GET, POST",
            Route::Login | Route::Consent | Route::Logout | Route::Account | Route::Device => "GET, HEAD, POST",
            Route::Token | Route::Revocation | Route::DeviceAuthorization => "POST, OPTIONS",
            Route::Introspection | Route::ExternalLogout(_) => "POST",
            Route::UserInfo => "GET, HEAD, POST, OPTIONS",
        }
    }

    pub(super) fn allows(self, method: Method) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method.as_str())
    }

    pub(super) fn audience(self) -> Audience {
        match self {
            Route::Home
            | Route::Authorize
            | Route::EndSession
            | Route::CheckSession
            | Route::Login
            | Route::Consent
            | Route::Logout
            | Route::Account
            | Route::Device
            | Route::ClientLogo(_)
            | Route::ExternalCallback(_)
            | Route::ExternalSignedOut(_)
            | Route::StaticFile(_) => Audience::Person,
            Route::Health
            | Route::Discovery
            | Route::Jwks
            | Route::Token
            | Route::Revocation
            | Route::Introspection
            | Route::DeviceAuthorization
            | Route::ExternalLogout(_)
            | Route::UserInfo => Audience::Program,
        }
    }

    pub(super) fn sharing(self) -> Sharing {
        match self {
            Route::Discovery | Route::Jwks => Sharing::Everybody,
            Route::Token | Route::Revocation | Route::DeviceAuthorization | Route::UserInfo => Sharing::ClientOrigins,
            Route::Home
            | Route::Health
            | Route::Introspection
            | Route::Authorize
            | Route::EndSession
            | Route::CheckSession
            | Route::Login
            | Route::Consent
            | Route::Logout
            | Route::Account
            | Route::Device
            | Route::ClientLogo(_)
            | Route::ExternalLogout(_)
            | Route::ExternalCallback(_)
            | Route::ExternalSignedOut(_)
            | Route::StaticFile(_) => Sharing::Nobody,
        }
    }
}
