//! Randomness from the operating system.

use rand::TryRng;
use rand::rngs::SysRng;

/// `N` unpredictable bytes. A system without randomness cannot serve anyone: the process ends.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = SysRng.try_fill_bytes(&mut bytes) {
        log::error!("the operating system gives no randomness: {error}");
        std::process::abort();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_values_are_alike_and_ones_are_as_many_as_zeros() {
        let values: BTreeSet<[u8; 32]> = (0..4_096).map(|_| bytes()).collect();
        assert_eq!(values.len(), 4_096);
        let ones: u32 = values.iter().flatten().map(|byte| byte.count_ones()).sum();
        // 2^20 bits: the standard deviation is 512; eight of them never happen by chance.
        assert!(ones.abs_diff(524_288) < 4_096, "{ones}");
    }
}
