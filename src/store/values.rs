//! How this program's plain values travel to and from Postgres columns.

use std::error::Error;

use postgres::Row;
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::error::StoreError;
use crate::protocol::words::epochs::Epochs;
use crate::protocol::words::identifiers::{ClientId, Sid, Subject, TenantName};
use crate::protocol::words::instant::{Day, Instant};
use crate::protocol::words::session::SignIn;

type Fault = Box<dyn Error + Sync + Send>;

/// Microseconds between 1970-01-01 and 2000-01-01, where `timestamptz` counts from.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

impl<'a> FromSql<'a> for Instant {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Instant, Fault> {
        let micros = i64::from_be_bytes(raw.try_into()?);
        Ok(Instant::from_micros(micros.saturating_add(POSTGRES_EPOCH_MICROS)))
    }

    accepts!(TIMESTAMPTZ);
}

impl ToSql for Instant {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        let micros = self.micros().checked_sub(POSTGRES_EPOCH_MICROS).ok_or("instant out of range")?;
        out.extend_from_slice(&micros.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Day {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Day, Fault> {
        i32::from_sql(kind, raw).map(Day)
    }

    accepts!(INT4);
}

impl ToSql for Day {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        self.0.to_sql(kind, out)
    }

    accepts!(INT4);
    to_sql_checked!();
}

/// Reads a column, naming it when it does not fit.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, name: &'static str) -> Result<T, StoreError> {
    row.try_get(name).map_err(|_| StoreError::Corrupt(format!("column {name}")))
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
    column::<&[u8]>(row, name)?.try_into().map_err(|_| StoreError::Corrupt(format!("column {name}")))
}

/// A tenant column: empty means none.
pub(super) fn tenant(row: &Row, name: &'static str) -> Result<Option<TenantName>, StoreError> {
    let text: &str = column(row, name)?;
    Ok((!text.is_empty()).then(|| TenantName::new(text)))
}

pub(super) fn tenant_text(tenant: Option<&TenantName>) -> &str {
    tenant.map_or("", TenantName::as_str)
}

pub(super) fn subject(row: &Row, name: &'static str) -> Result<Subject, StoreError> {
    column::<&str>(row, name).map(Subject::new)
}

pub(super) fn client_id(row: &Row, name: &'static str) -> Result<ClientId, StoreError> {
    column::<&str>(row, name).map(ClientId::new)
}

pub(super) fn sid(row: &Row, name: &'static str) -> Result<Sid, StoreError> {
    column::<&str>(row, name).map(Sid::new)
}

/// Who signed in, and how: the columns that have its fields' names, and `sub`.
pub(super) fn sign_in(row: &Row) -> Result<SignIn, StoreError> {
    Ok(SignIn {
        subject: subject(row, "sub")?,
        sid: column::<Option<&str>>(row, "sid")?.map(Sid::new),
        tenant: tenant(row, "tenant")?,
        identity_provider: column(row, "identity_provider")?,
        auth_time: column(row, "auth_time")?,
        amr: column(row, "amr")?,
        acr: column(row, "acr")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_outside_the_range_is_an_error_not_a_wrap() {
        let mut out = BytesMut::new();
        assert!(Instant::from_micros(i64::MIN).to_sql(&Type::TIMESTAMPTZ, &mut out).is_err());
    }
}
