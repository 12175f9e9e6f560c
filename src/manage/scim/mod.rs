//! SCIM 2.0 for users (RFC 7643, RFC 7644): which attributes are kept and as what, how a resource
//! is read and shown, filters, and changes by PATCH. There are no groups: roles are values of a
//! user.

pub mod attribute;
pub mod attribute_path;
pub mod error;
pub mod filter;
pub mod patch;
pub mod projection;
pub mod resource;
