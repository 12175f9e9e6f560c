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
#[derive(Clone, Copy)]
pub(super) enum Audience {
    Person,
    Program,
}

/// Which other origins may read the answer in a browser (Fetch §3.2).
#[derive(Clone, Copy)]
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
            other => {
                let (first, rest) = other.strip_prefix('/')?.split_once('/')?;
                match (first, rest.rsplit_once('/')) {
                    ("static", _) => Some(Route::StaticFile(rest)),
                    ("clients", Some((client_id, "logo"))) => Some(Route::ClientLogo(client_id)),
                    ("external", Some((provider, _))) if provider.contains('/') => None,
                    ("external", Some((provider, "callback"))) => Some(Route::ExternalCallback(provider)),
                    ("external", Some((provider, "logout"))) => Some(Route::ExternalLogout(provider)),
                    ("external", Some((provider, "signed-out"))) => Some(Route::ExternalSignedOut(provider)),
                    _ => None,
                }
            }
        }
    }

    /// What metrics call it, the methods for `Allow`, who reads failures, who may share answers. HEAD goes wherever GET
    /// does, but for requests that have effects.
    const fn row(self) -> (&'static str, &'static str, Audience, Sharing) {
        use Audience::{Person, Program};
        use Sharing::{ClientOrigins, Everybody, Nobody};
        match self {
            Route::Home => ("home", "GET, HEAD", Person, Nobody),
            Route::Health => ("healthz", "GET, HEAD", Program, Nobody),
            Route::Discovery => ("discovery", "GET, HEAD, OPTIONS", Program, Everybody),
            Route::Jwks => ("jwks", "GET, HEAD, OPTIONS", Program, Everybody),
            Route::Authorize => ("authorize", "GET, POST", Person, Nobody),
            Route::EndSession => ("endsession", "GET, POST", Person, Nobody),
            Route::CheckSession => ("checksession", "GET, HEAD", Person, Nobody),
            Route::Token => ("token", "POST, OPTIONS", Program, ClientOrigins),
            Route::Revocation => ("revocation", "POST, OPTIONS", Program, ClientOrigins),
            Route::Introspection => ("introspect", "POST", Program, Nobody),
            Route::DeviceAuthorization => ("deviceauthorization", "POST, OPTIONS", Program, ClientOrigins),
            Route::UserInfo => ("userinfo", "GET, HEAD, POST, OPTIONS", Program, ClientOrigins),
            Route::Login => ("login", "GET, HEAD, POST", Person, Nobody),
            Route::Consent => ("consent", "GET, HEAD, POST", Person, Nobody),
            Route::Logout => ("logout", "GET, HEAD, POST", Person, Nobody),
            Route::Account => ("account", "GET, HEAD, POST", Person, Nobody),
            Route::Device => ("device", "GET, HEAD, POST", Person, Nobody),
            Route::ClientLogo(_) => ("logo", "GET, HEAD", Person, Nobody),
            Route::ExternalCallback(_) => ("external_callback", "GET, HEAD", Person, Nobody),
            Route::ExternalLogout(_) => ("external_logout", "POST", Program, Nobody),
            Route::ExternalSignedOut(_) => ("external_signed_out", "GET, HEAD", Person, Nobody),
            Route::StaticFile(_) => ("static", "GET, HEAD", Person, Nobody),
        }
    }

    pub(super) const fn label(self) -> &'static str {
        self.row().0
    }

    pub(super) const fn allow(self) -> &'static str {
        self.row().1
    }

    pub(super) fn allows(self, method: Method) -> bool {
        self.allow().split(", ").any(|allowed| allowed == method.as_str())
    }

    pub(super) const fn audience(self) -> Audience {
        self.row().2
    }

    pub(super) const fn sharing(self) -> Sharing {
        self.row().3
    }
}
