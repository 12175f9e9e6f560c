//! The byte form of an authorization code: what is sealed into the handle that the client holds.

use super::authorization_code::AuthorizationCode;
use super::claims::ClaimNames;
use super::codec::{Reader, Writer};
use super::identifiers::ClientId;
use super::lengths;
use super::pkce::{CodeChallengeDigest, CodeChallengeMethod};
use super::response_type::ResponseType;
use super::token_subject::TokenSubject;

/// The byte form's version; another one is not ours to read.
const VERSION: u8 = 1;

/// The most bytes of a code's plain form: sealing adds a key byte, a nonce of 12 and a tag of 16, base64url a third,
/// and with the prefix `gpc_` the whole stays within 2,000 characters.
const MOST_BYTES: usize = (lengths::AUTHORIZATION_CODE - 4) / 4 * 3 - 29;

impl AuthorizationCode {
    /// The bytes to seal.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(VERSION);
        writer.grant_id(self.grant);
        writer.text(self.client_id.as_str());
        writer.fixed(&self.redirect_uri_hash);
        writer.optional(self.challenge.as_ref(), write_challenge);
        writer.optional(self.nonce.as_deref(), Writer::text);
        writer.texts(self.scope.iter());
        writer.texts(self.resources.iter().map(String::as_str));
        self.claims.write(&mut writer);
        self.user.write(&mut writer);
        write_response_type(&mut writer, self.response_type);
        writer.instant(self.issued_at);
        writer.instant(self.expires_at);
        writer.instant(self.grant_expires_at);
        writer.finish()
    }

    /// Reads bytes that were sealed; `None` when they are not a whole code of this version.
    pub fn decode(bytes: &[u8]) -> Option<AuthorizationCode> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return None;
        }
        let code = AuthorizationCode {
            grant: reader.grant_id()?,
            client_id: ClientId::new(reader.text()?),
            redirect_uri_hash: reader.fixed()?,
            challenge: reader.optional(read_challenge)?,
            nonce: reader.optional(Reader::text)?,
            scope: reader.texts()?.iter().map(String::as_str).collect(),
            resources: reader.texts()?,
            claims: ClaimNames::read(&mut reader)?,
            user: TokenSubject::read(&mut reader)?,
            response_type: read_response_type(&mut reader)?,
            issued_at: reader.instant()?,
            expires_at: reader.instant()?,
            grant_expires_at: reader.instant()?,
        };
        reader.finish()?;
        Some(code)
    }

    /// Whether the sealed code stays within 2,000 characters; otherwise the request is refused (`RequestTooLong`).
    pub fn fits(&self) -> bool {
        self.encode().len() <= MOST_BYTES
    }
}

fn write_challenge(writer: &mut Writer, challenge: &CodeChallengeDigest) {
    writer.boolean(challenge.method == CodeChallengeMethod::S256);
    writer.fixed(&challenge.sha256);
}

fn read_challenge(reader: &mut Reader<'_>) -> Option<CodeChallengeDigest> {
    Some(CodeChallengeDigest { method: read_challenge_method(reader)?, sha256: reader.fixed()? })
}

fn read_challenge_method(reader: &mut Reader<'_>) -> Option<CodeChallengeMethod> {
    reader.boolean().map(|is_s256| if is_s256 { CodeChallengeMethod::S256 } else { CodeChallengeMethod::Plain })
}

fn write_response_type(writer: &mut Writer, response_type: ResponseType) {
    writer.boolean(response_type.code);
    writer.boolean(response_type.id_token);
    writer.boolean(response_type.token);
}

fn read_response_type(reader: &mut Reader<'_>) -> Option<ResponseType> {
    let response_type = ResponseType { code: reader.boolean()?, id_token: reader.boolean()?, token: reader.boolean()? };
    ResponseType::ALL.contains(&response_type).then_some(response_type)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;

    use super::super::identifiers::{GrantId, Sid, Subject, TenantName};
    use super::super::instant::{Day, Instant};
    use super::super::samples::{self, authorization_code as code};
    use super::*;

    #[test]
    fn damaged_bytes_are_no_code() {
        let bytes = code().encode();
        assert_eq!(AuthorizationCode::decode(&bytes), Some(code()));
        for length in 0..bytes.len() {
            assert_eq!(AuthorizationCode::decode(&bytes[..length]), None, "cut to {length}");
        }
        assert_eq!(AuthorizationCode::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(AuthorizationCode::decode(&[&[VERSION + 1], &bytes[1..]].concat()), None);
    }

    #[test]
    fn a_code_that_was_asked_for_nothing_is_no_code() {
        let mut bytes = code().encode();
        let flag = bytes.len() - 3 * 8 - 3;
        assert_eq!(bytes[flag..flag + 3], [1, 0, 0]);
        bytes[flag] = 0;
        assert_eq!(AuthorizationCode::decode(&bytes), None);
    }

    #[test]
    fn what_fits_stays_within_two_thousand_characters_once_sealed() {
        // Key byte, nonce and tag around the plain form.
        let sealed_length =
            |code: &AuthorizationCode| 4 + URL_SAFE_NO_PAD.encode(vec![0; code.encode().len() + 29]).len();
        let with_nonce = |length: usize| AuthorizationCode { nonce: Some("n".repeat(length)), ..code() };
        let longest = (0..2_000).map(with_nonce).take_while(AuthorizationCode::fits).last().unwrap();
        assert!(longest.nonce.as_ref().is_some_and(|nonce| nonce.len() > 1_024));
        assert!((1_997..=2_000).contains(&sealed_length(&longest)));
        assert!(!with_nonce(2_000).fits());
    }

    prop_compose! {
        fn any_code()(
            (random, sha256) in any::<([u8; 16], [u8; 32])>(),
            (day, issued, expires, absolute) in any::<(i32, i64, i64, i64)>(),
            method in prop::option::of(prop::sample::select(&CodeChallengeMethod::ALL[..])),
            nonce in prop::option::of(".{0,40}"),
            (scope, resources) in (prop::collection::vec("[a-z.]{1,8}", 0..6), prop::collection::vec(".{0,20}", 0..3)),
            (subject, sid, tenant, idp) in ("[!-~]{1,30}", prop::option::of(".{0,9}"), prop::option::of(".{0,9}"), prop::option::of(".{0,9}")),
            response_type in prop::sample::select(&ResponseType::ALL[..]),
        ) -> AuthorizationCode {
            let mut user = samples::token_subject();
            user.subject = Subject::new(subject);
            user.sid = sid.map(Sid::new);
            user.tenant = tenant.map(TenantName::new);
            user.identity_provider = idp;
            AuthorizationCode {
                grant: GrantId { day: Day(day), random },
                redirect_uri_hash: sha256,
                challenge: method.map(|method| CodeChallengeDigest { method, sha256 }),
                nonce,
                scope: scope.iter().map(String::as_str).collect(),
                resources,
                user,
                response_type,
                issued_at: Instant::from_micros(issued),
                expires_at: Instant::from_micros(expires),
                grant_expires_at: Instant::from_micros(absolute),
                ..code()
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(code in any_code()) {
            prop_assert_eq!(AuthorizationCode::decode(&code.encode()), Some(code));
        }

        #[test]
        fn no_bytes_make_decoding_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = AuthorizationCode::decode(&[&[VERSION], &bytes[..]].concat());
        }

        #[test]
        fn bytes_that_decode_are_the_only_form(mut bytes in any_code().prop_map(|code| code.encode()), at in any::<prop::sample::Index>(), flip in 1u8..) {
            let index = at.index(bytes.len());
            bytes[index] ^= flip;
            if let Some(code) = AuthorizationCode::decode(&bytes) {
                // Repeated scope names are folded; every other reading is reversible.
                prop_assert!(code.encode() == bytes || code.encode().len() < bytes.len());
            }
        }
    }
}
