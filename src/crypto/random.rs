//! Randomness for ids, handles, nonces and secrets: a generator seeded, and seeded again, by the operating system.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;

/// `N` random bytes.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// 256 random bits as 43 base64url characters.
pub fn token() -> String {
    URL_SAFE_NO_PAD.encode(bytes::<32>())
}

/// 128 random bits as 22 base64url characters: subjects and the like.
pub fn identifier() -> String {
    URL_SAFE_NO_PAD.encode(bytes::<16>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tokens_do_not_repeat_and_hold_256_bits() {
        let tokens: BTreeSet<String> = (0..10_000).map(|_| token()).collect();
        assert_eq!(tokens.len(), 10_000);
        assert!(tokens.iter().all(|token| token.len() == 43));
        assert_eq!(identifier().len(), 22);
    }

    #[test]
    fn bits_are_balanced() {
        let ones: u32 = (0..1_000).map(|_| bytes::<32>().iter().map(|byte| byte.count_ones()).sum::<u32>()).sum();
        // 256,000 fair bits: 128,000 on average, standard deviation 253; seven of them either way.
        assert!((126_200..=129_800).contains(&ones), "{ones}");
    }
}
