//! What a client gets that registers nothing else. The operator's settings fill this in.

use std::time::Duration;

use crate::protocol::words::client::AccessTokenTyp;

/// What an installation gives clients that do not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientDefaults {
    pub authorization_code_lifetime: Duration,
    pub id_token_lifetime: Duration,
    pub access_token_lifetime: Duration,
    pub refresh_token_lifetime: Duration,
    pub refresh_token_idle_lifetime: Duration,
    pub refresh_token_retry_window: Duration,
    pub refresh_token_retry_window_public: Duration,
    pub device_code_lifetime: Duration,
    pub device_interval: Duration,
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
