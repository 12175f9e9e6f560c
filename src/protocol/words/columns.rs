//! How the types that are columns of a table travel to and from Postgres.

use std::error::Error;

use postgres_types::private::BytesMut;
use postgres_types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

use super::identifiers::{ClientId, Sid, Subject};
use super::instant::{Day, Instant};
use super::scope::ScopeSet;
use super::strength::Strength;

type Fault = Box<dyn Error + Sync + Send>;

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
