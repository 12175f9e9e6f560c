//! The row of the installation: made, and given another issuer.

use postgres::Client;

use gatepost_store::installation::{self, Installation, check_issuer};
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::{Result, bind};

const CREATE: &str = "
WITH made AS (
    INSERT INTO installation (id, issuer) VALUES (:id::bytea, :issuer::text)
    ON CONFLICT (only_row) DO NOTHING RETURNING id
)
INSERT INTO lowering (lowered) SELECT {lowered} FROM made";

/// Makes the row where there is none; answers the row that stands. Refused when that one has
/// another issuer: tokens, codes and wrapped keys are bound to it.
pub fn ensure(client: &mut Client, new_id: [u8; 16], issuer: &str) -> Result<Installation> {
    let created = bind!(CREATE, id = &new_id[..], issuer);
    client.execute(&created.text(), created.values)?;
    let found =
        installation::installation(&client.query_one(&bind!(installation::FIND).text(), &[])?)?;
    check_issuer(&found, issuer)?;
    Ok(found)
}

const RENAME: &str = "UPDATE installation SET issuer = :issuer::text";

/// Makes this the database of another issuer. Everything sealed must be sealed anew in the same
/// transaction.
pub fn rename_issuer(writer: &mut RegistryWriter<'_>, issuer: &str) -> Result {
    writer.execute(bind!(RENAME, issuer)).map(drop)
}

const KEEP_LOWERED: &str = "
INSERT INTO lowering (lowered) VALUES ({lowered})
ON CONFLICT (only_row) DO UPDATE SET lowered = excluded.lowered";

/// From then on this database counts as the one that the keys of user names were made in.
pub fn keep_lowered(writer: &mut RegistryWriter<'_>) -> Result {
    writer.execute(bind!(KEEP_LOWERED)).map(drop)
}
