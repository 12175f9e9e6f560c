//! Names of things as types, so that a subject is never passed where a client was meant.

use std::fmt;

/// A registered client's name (RFC 6749 §2.2). At most 200 characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(String);

/// A user's identifier towards clients (OpenID Connect Core §2, `sub`): at most 255 ASCII characters, never reused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subject(String);

/// A browser session's public name (`sid`, OpenID Connect Front-Channel Logout §3). Unrelated to the cookie's handle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sid(String);

/// A tenant's registered name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(String);

impl ClientId {
    /// Takes the name as registered or as sent.
    pub fn new(text: impl Into<String>) -> ClientId {
        ClientId(text.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Subject {
    /// Takes the identifier as stored.
    pub fn new(text: impl Into<String>) -> Subject {
        Subject(text.into())
    }

    /// The identifier.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Sid {
    /// Takes the name as stored.
    pub fn new(text: impl Into<String>) -> Sid {
        Sid(text.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TenantName {
    /// Takes the name as registered or as sent.
    pub fn new(text: impl Into<String>) -> TenantName {
        TenantName(text.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A grant's name: the UTC day of its absolute expiry (which names the partition) and 128 random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrantId {
    /// Day of the grant's absolute expiry.
    pub day: super::instant::Day,
    /// Random, unique.
    pub random: [u8; 16],
}
