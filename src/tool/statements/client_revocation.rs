//! The end of all that a client holds.

use std::slice;

use gatepost_protocol::words::identifiers::ClientId;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::registry_writer::RegistryWriter;
use gatepost_store::{Result, bind};

const REVOKE_CLIENT: &str = "
WITH revoked AS (
    UPDATE clients SET epoch = new_epoch() WHERE client_id = :client_id::text RETURNING client_id
), {audited revoked} FROM revoked";

/// Ends all that was granted or issued to this client until now, and has it called about the
/// sessions it was in; `false` when there is no such client. A change of the registry: what a
/// process issues by the registration that it holds is dead until it has read the new epoch.
pub fn revoke_client(
    writer: &mut RegistryWriter<'_>,
    client_id: &ClientId,
    audit: &AuditEvent<'_>,
) -> Result<bool> {
    let revoked = writer.audited(bind!(REVOKE_CLIENT, client_id), slice::from_ref(audit))?;
    writer.revoked_clients.push(client_id.clone());
    Ok(!revoked.is_empty())
}
