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
