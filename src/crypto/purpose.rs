//! What a derived key is for. Two purposes never share a key, so nothing made for one is ever taken for another.

/// Purposes of sealing keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SealingPurpose {
    /// Authorization codes.
    Code,
    /// Reference access tokens.
    AccessToken,
    /// Authorization requests on their way through the pages.
    Request,
    /// Private signing keys in the database.
    KeyWrapping,
    /// Digests of client and resource secrets, and upstream client secrets, in the database.
    SecretWrapping,
}

impl SealingPurpose {
    pub(super) const ALL: [SealingPurpose; 5] = [
        SealingPurpose::Code,
        SealingPurpose::AccessToken,
        SealingPurpose::Request,
        SealingPurpose::KeyWrapping,
        SealingPurpose::SecretWrapping,
    ];

    /// The label that goes into derivation and associated data. Never changed: what is stored hangs on it.
    pub(super) fn label(self) -> &'static str {
        match self {
            SealingPurpose::Code => "gatepost/seal/code",
            SealingPurpose::AccessToken => "gatepost/seal/access-token",
            SealingPurpose::Request => "gatepost/seal/request",
            SealingPurpose::KeyWrapping => "gatepost/seal/signing-key",
            SealingPurpose::SecretWrapping => "gatepost/seal/secret",
        }
    }

    /// What a text of this purpose begins with, so that a secret scanner knows it when it sees it.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            SealingPurpose::Code => "gpc_",
            SealingPurpose::AccessToken => "gpa_",
            SealingPurpose::Request | SealingPurpose::KeyWrapping | SealingPurpose::SecretWrapping => "",
        }
    }
}

/// Purposes of MAC keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MacPurpose {
    /// Refresh tokens.
    RefreshToken,
    /// Device and user codes as stored.
    UserCode,
    /// Tokens in our own forms.
    FormToken,
    /// Names of failure counters as stored.
    FailureBucket,
}

impl MacPurpose {
    pub(super) const ALL: [MacPurpose; 4] =
        [MacPurpose::RefreshToken, MacPurpose::UserCode, MacPurpose::FormToken, MacPurpose::FailureBucket];

    pub(super) fn label(self) -> &'static str {
        match self {
            MacPurpose::RefreshToken => "gatepost/mac/refresh-token",
            MacPurpose::UserCode => "gatepost/mac/user-code",
            MacPurpose::FormToken => "gatepost/mac/form-token",
            MacPurpose::FailureBucket => "gatepost/mac/failure-bucket",
        }
    }
}
