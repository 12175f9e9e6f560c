//! How this program's plain values travel to and from Postgres columns.

use std::error::Error;

use postgres::Row;
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::error::StoreError;
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::identifiers::{ClientId, KeyThumbprint, Sid, Subject, TenantName};
use crate::protocol::words::instant::{Day, Instant};
use crate::protocol::words::scope::ScopeSet;
use crate::protocol::words::session::SignIn;
use crate::protocol::words::strength::Strength;

pub(super) type Fault = Box<dyn Error + Sync + Send>;

/// Microseconds between 1970-01-01 and 2000-01-01, where `timestamptz` counts from.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

impl<'a> FromSql<'a> for Instant {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Instant, Fault> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Instant::from_micros(
            micros.saturating_add(POSTGRES_EPOCH_MICROS),
        ))
    }

    accepts!(TIMESTAMPTZ);
}

impl ToSql for Instant {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        let micros = self
            .micros()
            .checked_sub(POSTGRES_EPOCH_MICROS)
            .ok_or("instant out of range")?;
        out.extend_from_slice(&micros.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

/// Types that travel as a plainer one does.
macro_rules! travels {
    ($($name:ident as $plain:ty: $read:expr, |$value:ident| $write:expr;)*) => { $(
        impl<'a> FromSql<'a> for $name {
            fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<$name, Fault> {
                <$plain>::from_sql(kind, raw).map($read)
            }

            fn accepts(kind: &Type) -> bool {
                <$plain as FromSql<'_>>::accepts(kind)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
                let $value = self;
                $write.to_sql(kind, out)
            }

            fn accepts(kind: &Type) -> bool {
                <$plain as ToSql>::accepts(kind)
            }

            to_sql_checked!();
        }
    )* };
}

travels! {
    Day as i32: Day, |day| day.0;
    ClientId as &str: ClientId::new, |name| name.as_str();
    Subject as &str: Subject::new, |name| name.as_str();
    Sid as &str: Sid::new, |name| name.as_str();
    Strength as &str: Strength::of, |strength| strength.as_str();
    ScopeSet as Vec<&str>: |names| names.into_iter().collect(),
        |scope| scope.iter().collect::<Vec<_>>();
}

/// Reads a struct of a row: first the fields that are the column of their name, then, behind a
/// semicolon, the others.
macro_rules! read {
    ($row:ident, $name:ident { $($field:ident),*; $($others:tt)* }) => {
        Ok::<_, $crate::store::StoreError>($name {
            $($field: $crate::store::values::column($row, stringify!($field))?,)*
            $($others)*
        })
    };
}
pub(super) use read;

/// Reads a column, naming it when it does not fit.
pub(super) fn column<'a, T: FromSql<'a>>(
    row: &'a Row,
    name: &'static str,
) -> Result<T, StoreError> {
    row.try_get(name).map_err(|_| unreadable(name))
}

pub(super) fn unreadable(name: &str) -> StoreError {
    StoreError::Corrupt(format!("column {name}"))
}

pub(super) fn epochs(row: &Row) -> Result<Epochs, StoreError> {
    Ok(Epochs {
        installation: column(row, "installation_epoch")?,
        client: column(row, "client_epoch")?,
        user: column(row, "user_epoch")?,
        consent: column(row, "consent_epoch")?,
    })
}

pub(super) fn id(row: &Row, name: &'static str) -> Result<[u8; 16], StoreError> {
    column::<&[u8]>(row, name)?
        .try_into()
        .map_err(|_| unreadable(name))
}

/// The thumbprint of a key, where there is one.
pub(super) fn key_thumbprint(
    row: &Row,
    name: &'static str,
) -> Result<Option<KeyThumbprint>, StoreError> {
    let Some(bytes) = column::<Option<&[u8]>>(row, name)? else {
        return Ok(None);
    };
    let bytes = bytes.try_into().map_err(|_| unreadable(name))?;
    Ok(Some(KeyThumbprint(bytes)))
}

pub(super) fn key_bytes(key: &Option<KeyThumbprint>) -> Option<&[u8]> {
    key.as_ref().map(|key| key.0.as_slice())
}

/// A tenant column: empty means none.
pub(super) fn tenant(row: &Row, name: &'static str) -> Result<Option<TenantName>, StoreError> {
    let text: &str = column(row, name)?;
    Ok((!text.is_empty()).then(|| TenantName::new(text)))
}

pub(super) fn tenant_text(tenant: Option<&TenantName>) -> &str {
    tenant.map_or("", TenantName::as_str)
}

/// The user and how they signed in: the columns named as its fields, `sub`, and the tenant's.
pub(super) fn sign_in(row: &Row, of_tenant: &'static str) -> Result<SignIn, StoreError> {
    read!(row, SignIn { sid, identity_provider, auth_time, amr, acr;
        subject: column(row, "sub")?,
        tenant: tenant(row, of_tenant)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_outside_the_range_is_an_error_not_a_wrap() {
        let mut out = BytesMut::new();
        assert!(
            Instant::from_micros(i64::MIN)
                .to_sql(&Type::TIMESTAMPTZ, &mut out)
                .is_err()
        );
    }
}
