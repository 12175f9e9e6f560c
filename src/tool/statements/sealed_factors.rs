//! Second factors whose secrets are sealed anew, or are lost.

use std::slice;

use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::secret::SecretBytes;
use gatepost_store::authenticators::{Authenticator, authenticator, of_each, secret};
use gatepost_store::registry_writer::{RegistryReader, RegistryWriter};
use gatepost_store::{Bound, Result, Store, StoreError, bind, column};

const LIST_SEALED: &str =
    "SELECT a.* FROM authenticators a WHERE a.secret IS NOT NULL ORDER BY a.sub, a.kind, a.id";

/// The sealed secrets of all factors.
pub fn sealed_authenticators(
    reader: &mut RegistryReader<'_>,
) -> Result<Vec<(Subject, Authenticator)>> {
    reader.list(bind!(LIST_SEALED), |row| {
        Ok((column(row, "sub")?, authenticator(row)?))
    })
}

/// A factor as it was read, and its secret as it is to be.
pub struct ResealedFactor {
    pub sub: Subject,
    pub factor: Authenticator,
    pub sealed: SecretBytes,
}

/// Leaves alone what is no longer as it was read: its user has just put another app in its place.
const RESEAL: &str = "
UPDATE authenticators a SET secret = n.resealed
FROM unnest(:subs::text[], :kinds::text[], :ids::bytea[], :secrets::bytea[], :resealed::bytea[])
     AS n (sub, kind, id, secret, resealed)
WHERE a.sub = n.sub AND a.kind = n.kind AND a.id = n.id AND a.secret = n.secret";

/// Seals a few anew, in a statement of its own: whoever signs in by one of them waits no longer.
/// Answers how many were still as they were read.
pub fn reseal(store: &Store, resealed: &[ResealedFactor]) -> Result<u64> {
    with_reseal(resealed, |bound| store.execute(bound))
}

/// Seals a factor anew. A change that finds it replaced fails as a whole.
pub fn reseal_authenticator(writer: &mut RegistryWriter<'_>, resealed: &ResealedFactor) -> Result {
    match with_reseal(slice::from_ref(resealed), |bound| writer.execute(bound))? {
        0 => Err(StoreError::Conflict(String::from(
            "a second factor was replaced meanwhile: try again",
        ))),
        _ => Ok(()),
    }
}

fn with_reseal<T>(resealed: &[ResealedFactor], run: impl FnOnce(Bound<'_>) -> T) -> T {
    run(bind!(
        RESEAL,
        subs = of_each(resealed, |one| &one.sub),
        kinds = of_each(resealed, |one| one.factor.kind.as_str()),
        ids = of_each(resealed, |one| &one.factor.id),
        secrets = of_each(resealed, |one| secret(&one.factor)),
        resealed = of_each(resealed, |one| one.sealed.expose())
    ))
}

const DROP: &str = "
DELETE FROM authenticators
WHERE sub = :sub::text AND kind = :kind::text AND id = :id::bytea AND secret = :secret::bytea";

/// Drops a factor whose secret is lost. The strength of the user's factors stays: a lost secret
/// must not let them in by less.
pub fn drop_authenticator(
    writer: &mut RegistryWriter<'_>,
    sub: &Subject,
    factor: &Authenticator,
) -> Result {
    let bound = bind!(
        DROP,
        sub,
        kind = factor.kind.as_str(),
        id = factor.id,
        secret = secret(factor)
    );
    writer.execute(bound).map(drop)
}
