//! Everything that stands in the database sealed under the master secret: signing keys, digests of the secrets of clients
//! and resources, secrets of ours at identity providers.

use crate::keys::sealing::Sealer;
use crate::protocol::words::identifiers::ClientId;
use crate::protocol::words::secret::SecretBytes;
use crate::registry::Sealers;
use crate::store::StoreError;
use crate::store::catalogue::CatalogueRow;
use crate::store::clients::SecretRow;
use crate::store::registry_writer::RegistryWriter;
use crate::store::signing_keys::SigningKeyRow;

pub(super) enum Sealed {
    Key(SigningKeyRow, SecretBytes),
    ClientSecret(ClientId, SecretRow),
    ResourceSecret(String, SecretRow),
    ProviderSecret(CatalogueRow, SecretBytes),
}

impl Sealed {
    pub(super) fn all(writer: &mut RegistryWriter<'_>) -> Result<Vec<Sealed>, StoreError> {
        let mut all = Vec::new();
        for row in writer.signing_keys()? {
            if let Some(wrapped) = row.wrapped_private.clone() {
                all.push(Sealed::Key(row, wrapped));
            }
        }
        for row in writer.clients()? {
            all.extend(row.secrets.into_iter().map(|secret| Sealed::ClientSecret(row.client_id.clone(), secret)));
        }
        for mut row in writer.catalogue()?.entries {
            let secrets = std::mem::take(&mut row.secrets);
            all.extend(secrets.into_iter().map(|secret| Sealed::ResourceSecret(row.name.clone(), secret)));
            if let Some(sealed) = row.sealed_secret.clone() {
                all.push(Sealed::ProviderSecret(row, sealed));
            }
        }
        Ok(all)
    }

    pub(super) fn name(&self) -> String {
        match self {
            Sealed::Key(row, _) => format!("signing key {}", row.kid),
            Sealed::ClientSecret(client_id, _) => format!("a secret of client {client_id}"),
            Sealed::ResourceSecret(name, _) => format!("a secret of resource {name}"),
            Sealed::ProviderSecret(row, _) => format!("the client_secret of identity provider {}", row.name),
        }
    }

    fn sealer<'s>(&self, sealers: &'s Sealers) -> &'s Sealer {
        match self {
            Sealed::Key(..) => &sealers.signing_keys,
            Sealed::ClientSecret(..) | Sealed::ResourceSecret(..) | Sealed::ProviderSecret(..) => {
                &sealers.client_secrets
            }
        }
    }

    fn sealed(&self) -> &[u8] {
        match self {
            Sealed::Key(_, sealed) | Sealed::ProviderSecret(_, sealed) => sealed.expose(),
            Sealed::ClientSecret(_, row) | Sealed::ResourceSecret(_, row) => row.sealed_digest.expose(),
        }
    }

    /// Whether it opens under some line.
    pub(super) fn opens(&self, sealers: &Sealers) -> bool {
        self.sealer(sealers).open(self.sealed()).is_some()
    }

    /// Whether it is sealed under the current line.
    fn is_current(&self, sealers: &Sealers) -> bool {
        self.sealer(sealers).seals_alike(self.sealed())
    }

    fn write(&self, writer: &mut RegistryWriter<'_>, sealed: SecretBytes) -> Result<(), StoreError> {
        match self {
            Sealed::Key(row, _) => writer.rewrap_signing_key(&row.kid, Some(&sealed)).map(drop),
            Sealed::ClientSecret(client_id, row) => {
                writer.put_secrets(true, &[(client_id.as_str(), SecretRow { sealed_digest: sealed, ..row.clone() })])
            }
            Sealed::ResourceSecret(name, row) => {
                writer.put_secrets(false, &[(name, SecretRow { sealed_digest: sealed, ..row.clone() })])
            }
            Sealed::ProviderSecret(row, _) => {
                writer.upsert_entry(&CatalogueRow { sealed_secret: Some(sealed), ..row.clone() })
            }
        }
    }

    /// Removes what nobody can open any longer. A key's public part stays for what it signed.
    pub(super) fn erase(&self, writer: &mut RegistryWriter<'_>) -> Result<(), StoreError> {
        match self {
            Sealed::Key(row, _) => writer.rewrap_signing_key(&row.kid, None).map(drop),
            Sealed::ClientSecret(client_id, row) => writer.remove_secrets(true, &[(client_id.as_str(), row.id)]),
            Sealed::ResourceSecret(name, row) => writer.remove_secrets(false, &[(name, row.id)]),
            Sealed::ProviderSecret(row, _) => writer.erase_entry_secret(row.kind, &row.name),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Resealed {
    pub(super) moved: usize,
    /// Sealed just so already.
    pub(super) current: usize,
    /// What does not open; when there is any, nothing was written.
    pub(super) lost: Vec<String>,
}

/// Seals everything under the current line of `to` that is not yet.
pub(super) fn reseal(writer: &mut RegistryWriter<'_>, from: &Sealers, to: &Sealers) -> Result<Resealed, StoreError> {
    let all = Sealed::all(writer)?;
    let lost: Vec<String> = all.iter().filter(|one| !one.opens(from) && !one.opens(to)).map(Sealed::name).collect();
    if !lost.is_empty() {
        return Ok(Resealed { lost, ..Resealed::default() });
    }
    let mut resealed = Resealed::default();
    for one in all {
        if one.is_current(to) {
            resealed.current += 1;
        } else if let Some(plain) = one.sealer(from).open(one.sealed()).or_else(|| one.sealer(to).open(one.sealed())) {
            let plain = SecretBytes::new(plain);
            one.write(writer, SecretBytes::new(one.sealer(to).seal(plain.expose())))?;
            resealed.moved += 1;
        }
    }
    Ok(resealed)
}
