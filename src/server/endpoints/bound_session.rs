//! Sessions that are bound to a key of their browser: Device Bound Session Credentials (DBSC).
