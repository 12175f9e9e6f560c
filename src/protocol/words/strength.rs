//! How strong a sign-in is.

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    /// How strong a sign-in at Gatepost is, the weakest first (OpenID Connect Core §2, `acr`).
    #[derive(PartialOrd, Ord, Serialize, Deserialize)]
    pub enum Strength {
        /// One factor.
        SignedIn = "1",
        TwoFactors = "2",
        /// A passkey that verified its user (OpenID EAP ACR Values §4).
        PhishingResistant = "phr",
    }
}

impl Strength {
    /// The strength of an `acr`. A name that is not one of ours comes from an identity provider,
    /// and counts as one factor.
    pub fn of(acr: &str) -> Strength {
        Strength::from_name(acr).unwrap_or(Strength::SignedIn)
    }
}

/// Whether a sign-in of `acr` is as strong as `wanted`: the same name, or one of ours that is not
/// stronger.
pub fn reaches(acr: &str, wanted: &str) -> bool {
    acr == wanted || Strength::from_name(wanted).is_some_and(|wanted| Strength::of(acr) >= wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_is_as_strong_as_its_own_name_and_as_ours_that_are_weaker() {
        for (acr, wanted, is_enough) in [
            ("1", "1", true),
            ("2", "1", true),
            ("phr", "2", true),
            ("1", "2", false),
            ("2", "phr", false),
            ("urn:corp:gold", "urn:corp:gold", true),
            ("urn:corp:gold", "1", true),
            ("urn:corp:gold", "2", false),
            ("phr", "urn:corp:gold", false),
        ] {
            assert_eq!(reaches(acr, wanted), is_enough, "{acr} for {wanted}");
        }
    }
}
