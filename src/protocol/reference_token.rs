//! The reference form of an access token: the whole token under seal, behind a handle only our endpoints can open.

use super::access_token::{AccessToken, AccessTokenUser, Jti};
use super::codec::{Reader, Writer};
use super::identifiers::{ClientId, Sid, Subject, TenantName};

/// The byte form's version.
const VERSION: u8 = 1;

/// The bytes to seal.
pub fn encode(token: &AccessToken) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.u8(VERSION);
    writer.bytes(&token.jti.encode());
    writer.text(token.client_id.as_str());
    writer.optional(token.user.as_ref(), write_user);
    writer.texts(token.scope.iter());
    writer.texts(token.audience.iter().map(String::as_str));
    writer.texts(token.userinfo_claims.iter().map(String::as_str));
    writer.instant(token.issued_at);
    writer.instant(token.expires_at);
    writer.finish()
}

/// Reads bytes that were sealed; `None` when they are not a whole token of this version.
pub fn decode(bytes: &[u8]) -> Option<AccessToken> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != VERSION {
        return None;
    }
    let token = AccessToken {
        jti: Jti::decode(reader.bytes()?)?,
        client_id: ClientId::new(reader.text()?),
        user: reader.optional(read_user)?,
        scope: reader.texts()?.iter().map(String::as_str).collect(),
        audience: reader.texts()?,
        userinfo_claims: reader.texts()?,
        issued_at: reader.instant()?,
        expires_at: reader.instant()?,
    };
    reader.finish()?;
    Some(token)
}

fn write_user(writer: &mut Writer, user: &AccessTokenUser) {
    writer.text(user.subject.as_str());
    writer.optional(user.sid.as_ref().map(Sid::as_str), Writer::text);
    writer.optional(user.tenant.as_ref().map(TenantName::as_str), Writer::text);
    writer.instant(user.auth_time);
    writer.texts(user.amr.iter().map(String::as_str));
}

fn read_user(reader: &mut Reader<'_>) -> Option<AccessTokenUser> {
    Some(AccessTokenUser {
        subject: Subject::new(reader.text()?),
        sid: reader.optional(Reader::text)?.map(Sid::new),
        tenant: reader.optional(Reader::text)?.map(TenantName::new),
        auth_time: reader.instant()?,
        amr: reader.texts()?,
    })
}
