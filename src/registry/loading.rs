//! From stored rows to what the core works with. A row that `apply` would refuse today is `Corrupt`, not served.

use std::collections::{BTreeMap, BTreeSet};

use super::{RegisteredClient, Registry};
use crate::crypto::sealing::Sealer;
use crate::protocol::claims::built_in_scopes;
use crate::protocol::client_secret::SecretDigest;
use crate::protocol::cors;
use crate::protocol::redirect_uri::origin_of;
use crate::protocol::registration;
use crate::protocol::registration::defaults::ClientDefaults;
use crate::protocol::scope::Catalogue;
use crate::store::StoreError;
use crate::store::catalogue::{CatalogueKind, CatalogueRow, CatalogueRows};
use crate::store::clients::{ClientRow, SecretRow};

pub(super) fn client(
    row: ClientRow,
    defaults: &ClientDefaults,
    sealer: &Sealer,
) -> Result<RegisteredClient, StoreError> {
    let client = registration::client::from_json(&row.metadata, "client", defaults)
        .map_err(|problems| corrupt("client", row.client_id.as_str(), &problems))?;
    let secrets = row.secrets.iter().map(|secret| open(secret, sealer)).collect::<Result<_, _>>()?;
    Ok(RegisteredClient { client, secrets })
}

fn open(row: &SecretRow, sealer: &Sealer) -> Result<SecretDigest, StoreError> {
    let opened = sealer.open(row.sealed_digest.expose());
    let digest = opened.and_then(|bytes| SecretDigest::decode(&bytes, row.expires_at));
    digest.ok_or_else(|| StoreError::Corrupt(String::from("a secret's digest does not open under the master secret")))
}

/// What each resource proves itself with.
pub(super) fn resource_secrets(
    rows: &CatalogueRows,
    sealer: &Sealer,
) -> Result<BTreeMap<String, Vec<SecretDigest>>, StoreError> {
    let resources = rows.entries.iter().filter(|row| row.kind == CatalogueKind::Resource);
    let opened = resources.map(|row| {
        let digests = row.secrets.iter().map(|secret| open(secret, sealer)).collect::<Result<_, _>>()?;
        Ok((row.name.clone(), digests))
    });
    opened.collect()
}

pub(super) fn catalogue(rows: CatalogueRows) -> Result<Catalogue, StoreError> {
    let built_in = built_in_scopes().into_iter().map(|scope| (scope.name.clone(), scope));
    let mut catalogue = Catalogue { scopes: built_in.collect(), plain_pkce: rows.plain_pkce, ..Catalogue::default() };
    for row in rows.entries {
        add(&mut catalogue, row)?;
    }
    Ok(catalogue)
}

fn add(catalogue: &mut Catalogue, row: CatalogueRow) -> Result<(), StoreError> {
    let CatalogueRow { kind, name, document, .. } = row;
    let unfit = |problems: Vec<registration::Problem>| corrupt(kind.as_str(), &name, &problems);
    match kind {
        CatalogueKind::IdentityScope => {
            let scope = registration::scope::identity_from_json(&document, "identity_scope").map_err(unfit)?;
            catalogue.scopes.insert(name, scope);
        }
        CatalogueKind::ResourceScope => {
            let scope = registration::scope::resource_from_json(&document, "resource_scope").map_err(unfit)?;
            catalogue.scopes.insert(name, scope);
        }
        CatalogueKind::Resource => {
            let resource = registration::resource::from_json(&document, "resource").map_err(unfit)?;
            catalogue.resources.insert(name, resource);
        }
        CatalogueKind::Tenant => {
            let tenant = registration::tenant::from_json(&document, "tenant").map_err(unfit)?;
            catalogue.tenants.insert(name, tenant);
        }
        CatalogueKind::IdentityProvider => drop(catalogue.identity_providers.insert(name, document)),
        CatalogueKind::ExtensionGrant => {
            let grant = registration::extension_grant::from_json(&document, "extension_grant").map_err(unfit)?;
            catalogue.extension_grants.insert(name, grant);
        }
        CatalogueKind::AssertionIssuer => {}
    }
    Ok(())
}

/// Origins of all redirect URIs and `allowed_cors_origins`: who may send a preflight, which names no client.
pub(super) fn origins(uris: &[String]) -> BTreeSet<String> {
    uris.iter().filter_map(|uri| origin_of(uri)).collect()
}

fn corrupt(what: &str, name: &str, problems: &[registration::Problem]) -> StoreError {
    let first = problems.first().map(ToString::to_string).unwrap_or_default();
    StoreError::Corrupt(format!("{what} {name}: {first}"))
}

impl Registry {
    /// Whether scripts of `origin` may read answers about this client.
    pub fn client_shares_with(&self, client_id: &str, origin: &str) -> bool {
        let client = self.client(&crate::protocol::identifiers::ClientId::new(client_id));
        client.is_ok_and(|client| client.is_some_and(|client| cors::allowed_origin(&client.client, origin)))
    }

    /// Whether scripts of `origin` may read answers about some client.
    pub fn some_client_shares_with(&self, origin: &str) -> bool {
        self.snapshot().origins.contains(origin)
    }
}
