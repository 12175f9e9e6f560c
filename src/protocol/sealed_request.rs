//! What travels sealed in the address of a page: what the person came for, when they came, and what they asked. Never who
//! signed in, nor what they agreed to.

use super::codec::{Reader, Writer};
use super::instant::Instant;
use super::parameters::Parameters;

/// What somebody is on our pages for. A sealed request opens for its own purpose alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An authorization request of a client.
    Authorize,
    /// To let a device in (RFC 8628).
    Device,
    /// To look after their own account.
    Account,
    /// To link an account of another identity provider.
    Link,
    /// To sign out, as a client asked.
    Logout,
}

impl Purpose {
    const ALL: [Purpose; 5] =
        [Purpose::Authorize, Purpose::Device, Purpose::Account, Purpose::Link, Purpose::Logout];

    /// Stands first under the seal; never change one.
    const fn byte(self) -> u8 {
        match self {
            Purpose::Authorize => 1,
            Purpose::Device => 2,
            Purpose::Account => 3,
            Purpose::Link => 4,
            Purpose::Logout => 5,
        }
    }
}

/// A request as it lies under the seal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRequest {
    /// What for.
    pub purpose: Purpose,
    /// When it came in: pages expire by it, and a sign-in from then on was made for it.
    pub received_at: Instant,
    /// What was asked, decoded: percent-encoding would triple a long `state`, and an address must stay short.
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

    /// Reads what [`SealedRequest::encode`] wrote; `None` for anything else.
    pub fn decode(bytes: &[u8]) -> Option<SealedRequest> {
        let mut reader = Reader::new(bytes);
        let byte = reader.u8()?;
        let purpose = Purpose::ALL.into_iter().find(|purpose| purpose.byte() == byte)?;
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

    fn request(purpose: Purpose) -> SealedRequest {
        let parameters = Parameters::from_pairs([("tenant", "acme"), ("state", "a b%\u{1f600}"), ("empty", "")]);
        SealedRequest { purpose, received_at: Instant::from_micros(1_795_132_800_000_001), parameters }
    }

    #[test]
    fn what_was_written_is_read_for_each_purpose() {
        for purpose in Purpose::ALL {
            assert_eq!(SealedRequest::decode(&request(purpose).encode()), Some(request(purpose)));
        }
        let first_bytes = Purpose::ALL.map(|purpose| request(purpose).encode()[0]);
        assert_eq!(first_bytes, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn nothing_else_is_a_request() {
        let bytes = request(Purpose::Account).encode();
        for length in 0..bytes.len() {
            assert_eq!(SealedRequest::decode(&bytes[..length]), None, "{length}");
        }
        assert_eq!(SealedRequest::decode(&[bytes.as_slice(), &[0]].concat()), None);
        for purpose in [0, 6, 255] {
            assert_eq!(SealedRequest::decode(&[&[purpose], &bytes[1..]].concat()), None);
        }
        let mut odd = Writer::new();
        odd.u8(1);
        odd.instant(Instant::from_seconds(1));
        odd.texts(["a name without a value"]);
        assert_eq!(SealedRequest::decode(&odd.finish()), None);
    }
}
