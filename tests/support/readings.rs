//! What tests read from the database by a query of their own.

use postgres::types::{FromSqlOwned, ToSql};

use super::postgres::TestDatabase;

impl TestDatabase {
    /// The one value that a query finds.
    pub fn value<T: FromSqlOwned>(&self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> T {
        self.ask(|client| client.query_one(query, parameters))
            .get(0)
    }

    /// How many events of that name the audit log has.
    pub fn events(&self, name: &str) -> i64 {
        let counted = "SELECT count(*) FROM audit_events WHERE event = $1";
        self.value(counted, &[&name])
    }
}
