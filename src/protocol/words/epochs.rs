//! Epochs: random numbers. Whoever revokes many things at once draws a new one, and what carries
//! another one is revoked.

use serde::{Deserialize, Serialize};

/// The epochs that a code, a grant or a token of a user carries. It stands while each equals
/// today's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Epochs {
    pub installation: i64,
    pub client: i64,
    pub user: i64,
    /// The epoch of the user's consent to the client: 0 until the consent is withdrawn or lapses
    /// for the first time.
    pub consent: i64,
}

/// The epochs that a browser session carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionEpochs {
    pub installation: i64,
    pub user: i64,
}

impl SessionEpochs {
    /// These epochs, with the epochs of the client and of the user's consent to it.
    pub fn at_client(self, client: i64, consent: i64) -> Epochs {
        Epochs {
            installation: self.installation,
            client,
            user: self.user,
            consent,
        }
    }
}
