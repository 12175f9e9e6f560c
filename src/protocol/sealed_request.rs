//! What travels sealed in the address of a page of ours: what was asked for, when, and what the address is for. Who signed
//! in and what they agreed to is never in it.

use super::codec::{Reader, Writer};
use super::instant::Instant;
use super::parameters::Parameters;

/// What the address of a page is for. A request sealed for one purpose is none for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedPurpose {
    /// An authorization request.
    Authorize,
    /// A device that waits for its user.
    Device,
    /// The account page.
    Account,
    /// Linking an identity provider to an account.
    Link,
    /// A sign-out that a client asked for.
    Logout,
    /// A sign-out that was done here and goes on upstream: where it ends once the browser is back.
    SignedOut,
}

impl SealedPurpose {
    /// Every purpose.
    pub const ALL: [SealedPurpose; 6] = [
        SealedPurpose::Authorize,
        SealedPurpose::Device,
        SealedPurpose::Account,
        SealedPurpose::Link,
        SealedPurpose::Logout,
        SealedPurpose::SignedOut,
    ];

    /// The first byte of what is sealed; never given to another purpose.
    pub(super) fn byte(self) -> u8 {
        match self {
            SealedPurpose::Authorize => 1,
            SealedPurpose::Device => 2,
            SealedPurpose::Account => 3,
            SealedPurpose::Link => 4,
            SealedPurpose::Logout => 5,
            SealedPurpose::SignedOut => 6,
        }
    }

    /// The purpose of that byte.
    pub(super) fn of_byte(byte: u8) -> Option<SealedPurpose> {
        SealedPurpose::ALL.into_iter().find(|purpose| purpose.byte() == byte)
    }
}

/// A request under seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRequest {
    /// What it is for.
    pub purpose: SealedPurpose,
    /// When it came in.
    pub received_at: Instant,
    /// What was asked, decoded: percent-encoding would triple a long state, and the address of a page must stay short.
    pub parameters: Parameters,
}

impl SealedRequest {
    /// The bytes to seal.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.u8(self.purpose.byte());
        writer.instant(self.received_at);
        writer.texts(self.parameters.iter().flat_map(|(name, value)| [name, value]));
        writer.finish()
    }

    /// Reads opened bytes.
    pub fn decode(opened: &[u8]) -> Option<SealedRequest> {
        let mut reader = Reader::new(opened);
        let purpose = SealedPurpose::of_byte(reader.u8()?)?;
        let (received_at, texts) = (reader.instant()?, reader.texts()?);
        reader.finish()?;
        let (pairs, []) = texts.as_chunks::<2>() else { return None };
        let parameters = Parameters::from_pairs(pairs.iter().map(|[name, value]| (name.as_str(), value.as_str())));
        Some(SealedRequest { purpose, received_at, parameters })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(purpose: SealedPurpose) -> SealedRequest {
        let parameters = Parameters::from_pairs([("state", "a b\u{e9}"), ("state", ""), ("client_id", "web")]);
        SealedRequest { purpose, received_at: Instant::from_micros(-7), parameters }
    }

    #[test]
    fn what_was_sealed_is_read_with_its_purpose() {
        for purpose in SealedPurpose::ALL {
            assert_eq!(SealedRequest::decode(&request(purpose).encode()), Some(request(purpose)));
        }
    }

    #[test]
    fn purposes_never_share_a_byte() {
        let bytes: std::collections::BTreeSet<u8> = SealedPurpose::ALL.into_iter().map(SealedPurpose::byte).collect();
        assert_eq!(bytes.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn anything_else_is_no_request() {
        let whole = request(SealedPurpose::Device).encode();
        for length in 0..whole.len() {
            assert_eq!(SealedRequest::decode(&whole[..length]), None, "{length}");
        }
        assert_eq!(SealedRequest::decode(&[&whole[..], &[0]].concat()), None);
        for purpose in [0, 7, 255] {
            assert_eq!(SealedRequest::decode(&[&[purpose], &whole[1..]].concat()), None, "{purpose}");
        }
        let mut odd = Writer::new();
        odd.u8(1);
        odd.instant(Instant::from_micros(0));
        odd.texts(["name without value"]);
        assert_eq!(SealedRequest::decode(&odd.finish()), None);
    }
}
