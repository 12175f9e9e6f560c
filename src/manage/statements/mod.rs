//! The statements of administrators and of SCIM, written as those of the store are, on its
//! connections.

/// Binds what a statement judges an administrator by, and other values.
macro_rules! bind_acting {
    ($sql:expr, $acting:ident, $($further:tt)*) => {
        gatepost_store::bind!(
            $sql,
            ..$acting { admin, reach, given_roles, admin_role },
            $($further)*
        )
    };
}

pub mod admin_people;
pub mod audit_log;
pub mod hourly_counts;
pub mod invitations;
pub mod people_list;
pub mod roles;
pub mod scim_users;
