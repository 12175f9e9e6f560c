//! stub
use super::GrantContext;
use crate::app::failure::Failure;
use crate::protocol::token_request::DeviceCodeRequest;
use crate::protocol::token_response::TokenResponse;
/// x
pub fn handle(_context: GrantContext<'_>, _request: &DeviceCodeRequest) -> Result<TokenResponse, Failure> {
    Err(Failure::Busy)
}
