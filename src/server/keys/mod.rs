//! Keys and what is done with them: randomness, the master secret and the keys derived from it,
//! sealing, message authentication, signatures, password hashes. Nothing here knows the database.

pub mod master;
pub mod password;
pub mod sealing;
pub mod signing;

/// Randomness from the operating system.
pub mod random {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
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

    /// As many, in base64url.
    pub fn text<const N: usize>() -> String {
        URL_SAFE_NO_PAD.encode(bytes::<N>())
    }
}
