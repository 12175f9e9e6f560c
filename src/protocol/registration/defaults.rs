//! What a client gets that registers nothing else. The operator's settings fill this in.

use std::time::Duration;

use crate::protocol::client::AccessTokenTyp;

/// What an installation gives clients that do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientDefaults {
    /// 60 s; at most 600 s.
    pub authorization_code_lifetime: Duration,
    /// 300 s
    pub id_token_lifetime: Duration,
    /// 3600 s
    pub access_token_lifetime: Duration,
    /// 2592000 s
    pub refresh_token_lifetime: Duration,
    /// 1296000 s
    pub refresh_token_idle_lifetime: Duration,
    /// 30 s, for confidential clients.
    pub refresh_token_retry_window: Duration,
    /// 10 s
    pub refresh_token_retry_window_public: Duration,
    /// 600 s
    pub device_code_lifetime: Duration,
    /// 5 s
    pub device_interval: Duration,
    /// `at+jwt`
    pub access_token_typ: AccessTokenTyp,
}

impl Default for ClientDefaults {
    fn default() -> ClientDefaults {
        ClientDefaults {
            authorization_code_lifetime: Duration::from_secs(60),
            id_token_lifetime: Duration::from_secs(300),
            access_token_lifetime: Duration::from_secs(3_600),
            refresh_token_lifetime: Duration::from_secs(2_592_000),
            refresh_token_idle_lifetime: Duration::from_secs(1_296_000),
            refresh_token_retry_window: Duration::from_secs(30),
            refresh_token_retry_window_public: Duration::from_secs(10),
            device_code_lifetime: Duration::from_secs(600),
            device_interval: Duration::from_secs(5),
            access_token_typ: AccessTokenTyp::AtJwt,
        }
    }
}
