//! Functions that operators write to answer extension grants: looked up before they are registered, and called.

use postgres::types::Json;
use serde_json::{Map, Value};

use super::Store;
use super::error::{Objection, StoreError};
use super::values::column;
use crate::protocol::registration::extension_grant::ExtensionGrant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A function (jsonb, jsonb) returning jsonb that this connection's role may execute.
    Callable,
    /// Such a function, or its schema, that the role has no right to.
    Forbidden,
    Missing,
}

const LOOK_UP: &str = "
SELECT has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE') AS callable
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = $1::text AND p.proname = $2::text AND p.prokind = 'f' AND NOT p.proretset
  AND p.prorettype = 'jsonb'::regtype AND p.pronargs = 2
  AND p.proargtypes[0] = 'jsonb'::regtype AND p.proargtypes[1] = 'jsonb'::regtype";

pub fn look_up(store: &Store, grant: &ExtensionGrant) -> Result<Found, StoreError> {
    let row = store.read(|connection| connection.query_opt(LOOK_UP, &[&grant.schema, &grant.function]))?;
    match row.as_ref().map(|row| column(row, "callable")).transpose()? {
        Some(true) => Ok(Found::Callable),
        Some(false) => Ok(Found::Forbidden),
        None => Ok(Found::Missing),
    }
}

/// Calls the function of a grant; `None` when it answers NULL. Both arguments are bound, the name is quoted.
pub fn call(
    store: &Store,
    grant: &ExtensionGrant,
    parameters: &Map<String, Value>,
    client: &Map<String, Value>,
) -> Result<Result<Option<Value>, Objection>, StoreError> {
    let sql = format!("SELECT {}.{}($1::jsonb, $2::jsonb) AS answer", quoted(&grant.schema), quoted(&grant.function));
    let rows = store.write(|connection| connection.query_foreign(&sql, &[&Json(parameters), &Json(client)]))?;
    let rows = match rows {
        Ok(rows) => rows,
        Err(objection) => return Ok(Err(objection)),
    };
    let answer = rows.first().map(|row| column::<Option<Json<Value>>>(row, "answer")).transpose()?;
    Ok(Ok(answer.flatten().map(|Json(value)| value)))
}

fn quoted(identifier: &str) -> String {
    format!("\"{}\"", identifier.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_identifier() {
        assert_eq!(quoted("redeem_key"), "\"redeem_key\"");
        assert_eq!(quoted("x\"(); DROP TABLE y; --"), "\"x\"\"(); DROP TABLE y; --\"");
    }
}
