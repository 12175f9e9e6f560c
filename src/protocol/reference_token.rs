//! The reference form of an access token: the whole token under seal, behind a handle only our endpoints can open.

use super::access_token::{AccessToken, AccessTokenUser, Jti};
use super::codec::{Reader, Writer};
use super::delegation::Delegation;
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
    writer.optional((!token.claims.is_empty()).then_some(&token.claims), |writer, claims| {
        writer.bytes(serde_json::Value::Object(claims.clone()).to_string().as_bytes());
    });
    writer.optional(token.delegation.as_ref(), |writer, delegation| delegation.write(writer));
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
        claims: reader.optional(|reader| serde_json::from_slice(reader.bytes()?).ok())?.unwrap_or_default(),
        delegation: reader.optional(Delegation::read)?,
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
    writer.text(&user.acr);
}

fn read_user(reader: &mut Reader<'_>) -> Option<AccessTokenUser> {
    Some(AccessTokenUser {
        subject: Subject::new(reader.text()?),
        sid: reader.optional(Reader::text)?.map(Sid::new),
        tenant: reader.optional(Reader::text)?.map(TenantName::new),
        auth_time: reader.instant()?,
        amr: reader.texts()?,
        acr: reader.text()?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::instant::Instant;
    use super::super::samples;
    use super::*;

    #[test]
    fn both_kinds_are_read_back() {
        let of_user = samples::access_token();
        let of_client = AccessToken { user: None, jti: Jti { grant: None, random: [3; 12] }, ..of_user.clone() };
        for token in [of_user, of_client] {
            assert_eq!(decode(&encode(&token)), Some(token));
        }
    }

    #[test]
    fn damaged_bytes_are_no_token() {
        let bytes = encode(&samples::access_token());
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None, "cut to {length}");
        }
        assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(decode(&[&[VERSION + 1], &bytes[1..]].concat()), None);
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(
            (issued, expires, signed_in) in any::<(i64, i64, i64)>(),
            (subject, sid, tenant) in (".{0,20}", prop::option::of(".{0,20}"), prop::option::of(".{0,20}")),
            acr in ".{0,9}",
            (audience, claims, amr) in (prop::collection::vec(".{0,9}", 0..4), prop::collection::vec(".{0,9}", 0..4), prop::collection::vec(".{0,9}", 0..4)),
            (has_user, random) in any::<(bool, [u8; 12])>(),
        ) {
            let user = AccessTokenUser {
                subject: Subject::new(subject),
                sid: sid.map(Sid::new),
                tenant: tenant.map(TenantName::new),
                auth_time: Instant::from_micros(signed_in),
                amr,
                acr,
            };
            let token = AccessToken {
                jti: Jti { grant: has_user.then(samples::grant), random },
                user: has_user.then_some(user),
                audience,
                userinfo_claims: claims,
                issued_at: Instant::from_micros(issued),
                expires_at: Instant::from_micros(expires),
                ..samples::access_token()
            };
            prop_assert_eq!(decode(&encode(&token)), Some(token));
        }

        #[test]
        fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&[VERSION], &bytes[..]].concat());
        }
    }
}
