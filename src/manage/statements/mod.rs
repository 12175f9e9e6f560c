//! The statements of administrators and of SCIM, written as those of the store are, on its
//! connections.

pub mod admin_people;
pub mod audit_log;
pub mod hourly_counts;
pub mod invitations;
pub mod people_list;
pub mod roles;
pub mod scim_users;
