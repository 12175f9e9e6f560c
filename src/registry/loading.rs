//! From stored rows to what the core works with. A row that `apply` would refuse today is `Corrupt`, not served.

use std::collections::BTreeMap;

use super::{RegisteredClient, Registry};
use crate::keys::sealing::Sealer;
use crate::protocol::registration::defaults::ClientDefaults;
use crate::protocol::registration::walker::Walker;
use crate::protocol::registration::{self, Kind, assertion_issuer, catalogue as registered, extension_grant, provider};
use crate::protocol::token::claims::built_in_scopes;
use crate::protocol::token::client_secret::SecretDigest;
use crate::protocol::words::cors;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::scope::Catalogue;
use crate::protocol::words::secret::SecretText;
use crate::store::StoreError;
use crate::store::catalogue::{CatalogueRow, CatalogueRows};
use crate::store::clients::{ClientRow, SecretRow};

pub(super) fn client(
    row: ClientRow,
    defaults: &ClientDefaults,
    sealer: &Sealer,
) -> Result<RegisteredClient, StoreError> {
    let client = registration::client::from_json(&row.metadata, "client", defaults)
        .map_err(|problems| corrupt("client", row.client_id.as_str(), &problems))?;
    let secrets = open_all("client", row.client_id.as_str(), &row.secrets, sealer);
    let ClientRow { epoch, installation_epoch, .. } = row;
    Ok(RegisteredClient { client, secrets, epoch, installation_epoch })
}

/// The digests that open. One that does not is as if it were not there: nobody can prove anything with it.
fn open_all(kind: &str, name: &str, rows: &[SecretRow], sealer: &Sealer) -> Vec<SecretDigest> {
    let open = |row: &SecretRow| SecretDigest::decode(&sealer.open(row.sealed_digest.expose())?, row.expires_at);
    let opened: Vec<SecretDigest> = rows.iter().filter_map(open).collect();
    let lost = rows.len() - opened.len();
    if lost > 0 {
        log::error!(
            "{kind} {name}: {lost} of its secrets were sealed under another master secret and do not count: add that \
             secret's line to the file, or give {name} a new one"
        );
    }
    opened
}

/// What each resource proves itself with.
pub(super) fn resource_secrets(rows: &CatalogueRows, sealer: &Sealer) -> BTreeMap<String, Vec<SecretDigest>> {
    let resources = rows.entries.iter().filter(|row| row.kind == Kind::Resource);
    resources.map(|row| (row.name.clone(), open_all("resource", &row.name, &row.secrets, sealer))).collect()
}

/// What we prove ourselves with at each identity provider. One that does not open is `None`: whoever needs it must say so.
pub(super) fn provider_secrets(rows: &CatalogueRows, sealer: &Sealer) -> BTreeMap<String, Option<SecretText>> {
    let open = |row: &CatalogueRow| {
        let opened = sealer.open(row.sealed_secret.as_ref()?.expose());
        let text = opened.and_then(|bytes| String::from_utf8(bytes).ok().map(SecretText::new));
        if text.is_none() {
            log::error!(
                "identity provider {0}: its client_secret was sealed under another master secret, so nobody can sign in \
                 there: add that secret's line to the file, or apply {0} with its client_secret",
                row.name
            );
        }
        Some((row.name.clone(), text))
    };
    rows.entries.iter().filter(|row| row.kind == Kind::IdentityProvider).filter_map(open).collect()
}

pub(super) fn catalogue(rows: CatalogueRows) -> Result<Catalogue, StoreError> {
    let built_in = built_in_scopes().into_iter().map(|scope| (scope.name.clone(), scope));
    let mut catalogue = Catalogue {
        scopes: built_in.collect(),
        plain_pkce: rows.plain_pkce,
        idle_identity_providers: rows.idle_identity_providers,
        ..Catalogue::default()
    };
    for row in rows.entries {
        match row.kind {
            Kind::IdentityScope => put(&mut catalogue.scopes, row, registered::identity_scope)?,
            Kind::ResourceScope => put(&mut catalogue.scopes, row, registered::resource_scope)?,
            Kind::Resource => put(&mut catalogue.resources, row, registered::resource)?,
            Kind::Tenant => put(&mut catalogue.tenants, row, registered::tenant)?,
            Kind::IdentityProvider => put(&mut catalogue.identity_providers, row, provider::read)?,
            Kind::ExtensionGrant => put(&mut catalogue.extension_grants, row, extension_grant::read)?,
            Kind::AssertionIssuer => put(&mut catalogue.assertion_issuers, row, assertion_issuer::read)?,
            Kind::Client | Kind::User => {}
        }
    }
    Ok(catalogue)
}

fn put<T>(
    map: &mut BTreeMap<String, T>,
    row: CatalogueRow,
    read: impl FnOnce(&mut Walker<'_, '_>) -> T,
) -> Result<(), StoreError> {
    let kind = row.kind.as_str();
    let object =
        registration::stored(&row.document, kind, read).map_err(|problems| corrupt(kind, &row.name, &problems))?;
    map.insert(row.name, object);
    Ok(())
}

fn corrupt(what: &str, name: &str, problems: &[registration::Problem]) -> StoreError {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    StoreError::Corrupt(format!("{what} {name}: {first}"))
}

impl Registry {
    /// Whether scripts of `origin` may read answers about this client.
    pub fn client_shares_with(&self, client_id: &str, origin: &str) -> bool {
        let client = self.client(&ClientId::new(client_id));
        client.is_ok_and(|client| client.is_some_and(|client| cors::allowed_origin(&client.client, origin)))
    }

    /// Whether scripts of `origin` may read answers about some client.
    pub fn some_client_shares_with(&self, origin: &str) -> bool {
        self.snapshot().origins.contains(origin)
    }
}
