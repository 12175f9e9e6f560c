//! The user behind a token, and how they signed in: what a code remembers and every token of a grant repeats.

use super::codec::{Reader, Writer};
use super::identifiers::{Sid, Subject, TenantName};
use super::instant::Instant;

/// A signed-in user as tokens name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSubject {
    /// `sub`
    pub subject: Subject,
    /// `sid`: the browser session, where there is one.
    pub sid: Option<Sid>,
    /// `tenant`: the tenant signed in within.
    pub tenant: Option<TenantName>,
    /// `idp`: the identity provider, where the request named one.
    pub identity_provider: Option<String>,
    /// `auth_time`
    pub auth_time: Instant,
    /// `amr` (RFC 8176)
    pub amr: Vec<String>,
    /// `acr`
    pub acr: String,
}

impl TokenSubject {
    /// Appends the byte form.
    pub fn write(&self, writer: &mut Writer) {
        writer.text(self.subject.as_str());
        writer.optional(self.sid.as_ref().map(Sid::as_str), Writer::text);
        writer.optional(self.tenant.as_ref().map(TenantName::as_str), Writer::text);
        writer.optional(self.identity_provider.as_deref(), Writer::text);
        writer.instant(self.auth_time);
        writer.texts(self.amr.iter().map(String::as_str));
        writer.text(&self.acr);
    }

    /// Takes the byte form off the front.
    pub fn read(reader: &mut Reader<'_>) -> Option<TokenSubject> {
        Some(TokenSubject {
            subject: Subject::new(reader.text()?),
            sid: reader.optional(Reader::text)?.map(Sid::new),
            tenant: reader.optional(Reader::text)?.map(TenantName::new),
            identity_provider: reader.optional(Reader::text)?,
            auth_time: reader.instant()?,
            amr: reader.texts()?,
            acr: reader.text()?,
        })
    }
}
