//! Everything of a document that is neither client nor user, on its way into the database.

use serde_json::{Value, json};

use crate::crypto::sealing::Sealer;
use crate::protocol::registration::Problem;
use crate::protocol::registration::document::Document;
use crate::protocol::secret::{SecretBytes, SecretText};
use crate::store::catalogue::{CatalogueKind, CatalogueRow};
use crate::store::registry_writer::RegistryWriter;

use super::Outcome;
use super::secrets::{self, HashedSecret};
use crate::cli::failure::Failure;
use crate::cli::operator::audit_event;

/// An entry, with the secrets it came with.
pub(super) struct Item<'a> {
    pub(super) kind: CatalogueKind,
    pub(super) name: &'a str,
    document: &'a Value,
    /// Our secret at an identity provider.
    client_secret: Option<SecretText>,
    /// What a resource proves itself with.
    secrets: Option<Vec<HashedSecret>>,
}

/// All entries of the document; notes secrets that cannot be fetched.
pub(super) fn items<'a>(document: &'a Document, problems: &mut Vec<Problem>) -> Vec<Item<'a>> {
    let mut items = Vec::new();
    let mut plain = |kind, name, document| {
        items.push(Item { kind, name, document, client_secret: None, secrets: None });
    };
    for entry in &document.tenants {
        plain(CatalogueKind::Tenant, &entry.object.name, &entry.document);
    }
    for entry in &document.identity_scopes {
        plain(CatalogueKind::IdentityScope, &entry.object.name, &entry.document);
    }
    for entry in &document.resource_scopes {
        plain(CatalogueKind::ResourceScope, &entry.object.name, &entry.document);
    }
    for entry in &document.assertion_issuers {
        plain(CatalogueKind::AssertionIssuer, &entry.object.issuer, &entry.document);
    }
    for entry in &document.extension_grants {
        plain(CatalogueKind::ExtensionGrant, &entry.object.name, &entry.document);
    }
    for (index, entry) in document.resources.iter().enumerate() {
        let place = format!("resources[{index}]");
        items.push(Item {
            kind: CatalogueKind::Resource,
            name: &entry.object.resource.name,
            document: &entry.document,
            client_secret: None,
            secrets: secrets::hash_all(entry.object.secrets.as_ref(), &place, problems),
        });
    }
    for (index, entry) in document.identity_providers.iter().enumerate() {
        let place = format!("identity_providers[{index}].client_secret");
        let fetched = entry.object.client_secret.as_ref().map(|source| secrets::fetch(source, &place));
        let client_secret = fetched.transpose().map_err(|problem| problems.push(problem)).ok().flatten();
        let (name, document) = (&entry.object.name, &entry.document);
        items.push(Item { kind: CatalogueKind::IdentityProvider, name, document, client_secret, secrets: None });
    }
    items
}

/// Adds the entry, or makes the stored one like it.
pub(super) fn apply(
    writer: &mut RegistryWriter<'_>,
    item: &Item<'_>,
    stored: Option<&CatalogueRow>,
    sealer: &Sealer,
) -> Result<Outcome, Failure> {
    let secrets_changed = apply_secrets(writer, item, stored, sealer)?;
    let sealed_secret = sealed_secret(item, stored, sealer);
    let entry_changed = stored.is_none_or(|stored| {
        stored.document != *item.document || stored.sealed_secret.as_ref() != sealed_secret.as_ref()
    });
    if entry_changed {
        writer.upsert_entry(&CatalogueRow {
            kind: item.kind,
            name: item.name.to_owned(),
            document: item.document.clone(),
            sealed_secret,
            secrets: Vec::new(),
        })?;
    }
    if !entry_changed && !secrets_changed {
        return Ok(Outcome::Unchanged);
    }
    let outcome = if stored.is_some() { Outcome::Changed } else { Outcome::Added };
    let detail = json!({"kind": item.kind.as_str(), "name": item.name, "secrets": secrets_changed});
    writer.audit(&audit_event("registration_changed", detail))?;
    Ok(outcome)
}

/// What is stored already, where it seals the same text or the document gives none.
fn sealed_secret(item: &Item<'_>, stored: Option<&CatalogueRow>, sealer: &Sealer) -> Option<SecretBytes> {
    let present = stored.and_then(|stored| stored.sealed_secret.as_ref());
    let Some(wanted) = &item.client_secret else { return present.cloned() };
    let is_same =
        |sealed: &&SecretBytes| sealer.open(sealed.expose()).is_some_and(|opened| opened == wanted.expose().as_bytes());
    let kept = present.filter(is_same).cloned();
    Some(kept.unwrap_or_else(|| SecretBytes::new(sealer.seal(wanted.expose().as_bytes()))))
}

fn apply_secrets(
    writer: &mut RegistryWriter<'_>,
    item: &Item<'_>,
    stored: Option<&CatalogueRow>,
    sealer: &Sealer,
) -> Result<bool, Failure> {
    let Some(wanted) = &item.secrets else { return Ok(false) };
    let present = stored.map(|stored| stored.secrets.as_slice()).unwrap_or_default();
    let changes = secrets::compare(present, wanted, sealer);
    for id in &changes.removed {
        writer.remove_resource_secret(item.name, id)?;
    }
    for secret in &changes.added {
        writer.upsert_resource_secret(item.name, secret)?;
    }
    Ok(!changes.is_empty())
}
