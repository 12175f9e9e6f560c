//! Short texts: the first byte says which. What is read and written is read again as the same, and
//! where there is one way to write a thing, no second one is taken.
#![no_main]

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gatepost::protocol::audit::audit_chain;
use gatepost::protocol::authorize::pkce::{CodeChallenge, CodeChallengeMethod, verify};
use gatepost::protocol::device::device_code::UserCode;
use gatepost::protocol::login::pbkdf2::Pbkdf2Hash;
use gatepost::protocol::login::second_factor::{from_base32, to_base32};
use gatepost::protocol::registration::timestamp;
use gatepost::protocol::token::access_token::Jti;
use gatepost::protocol::token::client_secret::readings;
use gatepost::protocol::token::refresh_token::RefreshHandle;
use gatepost::protocol::words::forwarded::{Cidr, source};
use gatepost::protocol::words::identifiers::{GrantId, decode, encode};
use gatepost::protocol::words::mail_address::MailAddress;
use gatepost::protocol::words::response_type::{Prompts, ResponseType};
use gatepost::protocol::words::scope::ScopeSet;
use libfuzzer_sys::fuzz_target;

fn basic(text: &str) {
    for pair in readings(text).into_iter().flatten() {
        let encoded =
            |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let (name, secret) = (pair.client_id.as_str(), pair.secret.expose());
        let joined = format!("{}:{}", encoded(name), encoded(secret));
        let again = readings(&format!("Basic {}", STANDARD.encode(joined)));
        let first = again.and_then(|pairs| pairs.into_iter().next());
        assert_eq!(first, Some(pair));
    }
}

fn forwarded(text: &str) {
    let trusted = [Cidr::v4([10, 0, 0, 0], 8), Cidr::v6([0xfd00, 0], 16)];
    let peer: IpAddr = [10, 0, 0, 1].into();
    let found = source(Some(peer), text.split('\n'), &trusted);
    let stranger: IpAddr = [192, 0, 2, 1].into();
    assert_eq!(source(Some(stranger), text.split('\n'), &trusted), stranger);
    assert!(found == peer || !text.is_empty());
    if let Ok(block) = Cidr::parse(text) {
        let address = text.split('/').next().unwrap_or_default();
        let address: IpAddr = address.parse().expect("a block begins with an address");
        assert_eq!(
            block.contains(address),
            address == address.to_canonical(),
            "{text}"
        );
    }
}

fn pkce(text: &str) {
    for method in CodeChallengeMethod::ALL {
        let Ok(challenge) = CodeChallenge::parse(text, method) else {
            continue;
        };
        let digest = challenge.digest();
        let itself = verify(Some(&digest), Some(text));
        assert_eq!(itself.is_ok(), method == CodeChallengeMethod::Plain);
        assert!(verify(Some(&digest), None).is_err());
    }
    assert!(verify(None, Some(text)).is_err());
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    let Ok(text) = str::from_utf8(rest) else {
        return;
    };
    match kind {
        b'a' => {
            if let Ok(address) = MailAddress::parse(text) {
                assert_eq!(
                    format!("{}@{}", address.local_part(), address.domain()),
                    text
                );
                assert!(text.is_ascii() && !text.contains(char::is_control));
            }
        }
        b'b' => basic(text),
        b'f' => forwarded(text),
        b'p' => pkce(text),
        b's' => {
            if let Some(scope) = ScopeSet::parse(text) {
                assert_eq!(ScopeSet::parse(&scope.to_string()), Some(scope));
            }
        }
        b't' => {
            if let Some(instant) = timestamp::parse(text) {
                let written = timestamp::format(instant);
                let is_common = !written.starts_with('-') && written.len() == 20;
                assert!(
                    !is_common || timestamp::parse(&written) == Some(instant),
                    "{written}"
                );
            }
            let _ = timestamp::seconds(text);
        }
        b'u' => {
            if let Some(code) = UserCode::parse(text) {
                let again = UserCode::parse(&code.to_string());
                assert_eq!(again.as_ref().map(UserCode::letters), Some(code.letters()));
            }
        }
        b'j' => {
            if let Some(jti) = Jti::from_text(text) {
                assert_eq!(jti.to_text(), text);
            }
            if let Some(grant) = GrantId::from_text(text) {
                assert_eq!(grant.to_text(), text);
            }
        }
        b'r' => {
            if let Some((handle, tag)) = RefreshHandle::parse(text) {
                assert_eq!(handle.to_text(&tag).expose(), text);
            }
        }
        b'3' => {
            if let Some(secret) = from_base32(text) {
                let again = from_base32(&to_base32(&secret));
                assert_eq!(
                    again.as_ref().map(|secret| secret.expose()),
                    Some(secret.expose())
                );
            }
        }
        b'h' => {
            let _ = Pbkdf2Hash::parse(text);
            let _ = Pbkdf2Hash::dummy(text);
        }
        b'x' => {
            if let Some(bytes) = decode(text) {
                assert_eq!(encode(&bytes), text.to_ascii_lowercase());
            }
            let _ = audit_chain::from_hex(text);
        }
        _ => {
            if let Some(kind) = ResponseType::parse(text) {
                assert_eq!(ResponseType::parse(&kind.to_string()), Some(kind));
            }
            let _ = Prompts::parse(text);
        }
    }
});
