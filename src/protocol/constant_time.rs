//! Comparison of secrets whose time tells nothing about where they differ.

use std::hint::black_box;

/// Whether both are equal. Every byte is read whatever the others were; only a difference in length ends early, and
/// lengths of what we compare (digests, MACs) are public.
pub fn constant_time_eq(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let difference = left.iter().zip(right).fold(0_u8, |seen, (a, b)| black_box(seen | (a ^ b)));
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_differing_bit_anywhere_is_seen() {
        let secret = [0x5a_u8; 32];
        assert!(constant_time_eq(&secret, &secret));
        for position in 0..secret.len() {
            for bit in 0..8 {
                let mut other = secret;
                other[position] ^= 1 << bit;
                assert!(!constant_time_eq(&secret, &other), "byte {position}, bit {bit}");
            }
        }
    }

    #[test]
    fn a_prefix_is_not_equal() {
        assert!(!constant_time_eq(b"abc", b"ab"));
        assert!(!constant_time_eq(b"", b"a"));
        assert!(constant_time_eq(b"", b""));
    }

    proptest! {
        #[test]
        fn it_agrees_with_plain_comparison(left in prop::collection::vec(0_u8..3, 0..6), right in prop::collection::vec(0_u8..3, 0..6)) {
            prop_assert_eq!(constant_time_eq(&left, &right), left == right);
        }
    }
}
