//! The device authorization grant (RFC 8628).

pub mod device_code;
