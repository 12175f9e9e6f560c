//! Reads columns and values from rows. How the types of the core travel to and from columns stands
//! in `protocol/words/columns.rs`.

use std::error::Error;

use postgres::Row;
use postgres::types::FromSql;

use super::error::StoreError;
use crate::Result;
use gatepost_protocol::words::epochs::Epochs;
use gatepost_protocol::words::identifiers::{KeyThumbprint, TenantName};
use gatepost_protocol::words::session::SignIn;

pub type Fault = Box<dyn Error + Sync + Send>;

/// Reads a struct of a row: first the fields that are the column of their name, then, behind a
/// semicolon, the others.
#[macro_export]
macro_rules! read {
    ($row:ident, $name:ident { $($field:ident),*; $($others:tt)* }) => {
        Ok::<_, $crate::StoreError>($name {
            $($field: $crate::column($row, stringify!($field))?,)*
            $($others)*
        })
    };
}
pub use read;

/// Reads a column, naming it when it does not fit.
pub fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &'static str) -> Result<T> {
    row.try_get(name).map_err(|_| unreadable(name))
}

pub fn unreadable(name: &str) -> StoreError {
    StoreError::Corrupt(format!("column {name}"))
}

pub fn epochs(row: &Row) -> Result<Epochs> {
    Ok(Epochs {
        installation: column(row, "installation_epoch")?,
        client: column(row, "client_epoch")?,
        user: column(row, "user_epoch")?,
        consent: column(row, "consent_epoch")?,
    })
}

pub fn id(row: &Row, name: &'static str) -> Result<[u8; 16]> {
    column::<&[u8]>(row, name)?
        .try_into()
        .map_err(|_| unreadable(name))
}

/// The thumbprint of a key, where there is one.
pub fn key_thumbprint(row: &Row, name: &'static str) -> Result<Option<KeyThumbprint>> {
    let Some(bytes) = column::<Option<&[u8]>>(row, name)? else {
        return Ok(None);
    };
    let bytes = bytes.try_into().map_err(|_| unreadable(name))?;
    Ok(Some(KeyThumbprint(bytes)))
}

pub fn key_bytes(key: &Option<KeyThumbprint>) -> Option<&[u8]> {
    key.as_ref().map(|key| key.0.as_slice())
}

/// What a column is to have, of each of these.
pub fn each<'a, T, V>(all: &'a [T], of: impl Fn(&'a T) -> V) -> Vec<V> {
    all.iter().map(of).collect()
}

/// A tenant column: empty means none.
pub fn tenant(row: &Row, name: &'static str) -> Result<Option<TenantName>> {
    let text: &str = column(row, name)?;
    Ok((!text.is_empty()).then(|| TenantName::new(text)))
}

/// A tenant as a column has it: empty means none.
pub fn tenant_text(tenant: Option<&TenantName>) -> &str {
    tenant.map_or("", TenantName::as_str)
}

/// The user and how they signed in: the columns named as its fields, `sub`, and the tenant's.
pub fn sign_in(row: &Row, of_tenant: &'static str) -> Result<SignIn> {
    read!(row, SignIn { sid, identity_provider, auth_time, amr, acr;
        subject: column(row, "sub")?,
        tenant: tenant(row, of_tenant)?,
    })
}
