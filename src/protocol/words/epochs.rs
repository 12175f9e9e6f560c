//! Epochs: what is issued carries the random number that each row it stands on had then, and stands while every row still
//! has that number. To revoke is to draw another one. No clock takes part.

use serde::{Deserialize, Serialize};

/// What a code, a grant or a token of a user carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Epochs {
    pub installation: i64,
    pub client: i64,
    pub user: i64,
    /// Of the user's consent to the client: 0 until it is withdrawn or lapses for the first time.
    pub consent: i64,
}

/// What a browser session carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionEpochs {
    pub installation: i64,
    pub user: i64,
}

impl SessionEpochs {
    /// With those of the client, and of the user's consent to it.
    pub fn at_client(self, client: i64, consent: i64) -> Epochs {
        Epochs { installation: self.installation, client, user: self.user, consent }
    }
}
