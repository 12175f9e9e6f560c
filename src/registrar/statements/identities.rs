//! Whose identities of providers are, and what is left of those that are nobody's any more.

use gatepost_protocol::words::identifiers::{Sid, Subject};
use gatepost_registration::user::{Identity, Owners};
use gatepost_store::registry_writer::RegistryReader;
use gatepost_store::{Result, Store, bind, column, each, read};

const OWNERS: &str = "
SELECT l.issuer, l.upstream_subject, l.sub FROM linked_identities l
WHERE l.sub = ANY (:subs::text[])
UNION
SELECT l.issuer, l.upstream_subject, l.sub FROM linked_identities l
JOIN unnest(:issuers::text[], :subjects::text[]) AS given (issuer, subject)
  ON l.issuer = given.issuer AND l.upstream_subject = given.subject";

/// All identities of these users, and these identities themselves, each with whose it is.
pub fn identities(
    reader: &mut RegistryReader<'_>,
    subs: &[&Subject],
    given: &[&Identity],
) -> Result<Owners> {
    let bound = bind!(
        OWNERS,
        subs,
        issuers = each(given, |identity| &identity.issuer),
        subjects = each(given, |identity| &identity.subject),
    );
    let mut owners = Owners::default();
    for row in reader.read(bound)? {
        let identity = Identity {
            issuer: column(&row, "issuer")?,
            subject: column(&row, "upstream_subject")?,
        };
        owners.insert(identity, column(&row, "sub")?);
    }
    Ok(owners)
}

/// A session that came from an identity that is no longer linked to its user.
pub struct StraySession {
    pub sid: Sid,
    pub sub: Subject,
    pub identity: Identity,
}

const STRAY_SESSIONS: &str = "
SELECT s.sid, s.sub, s.upstream_issuer, s.upstream_subject FROM sessions s
WHERE s.sub = ANY (:subs::text[])
  AND s.upstream_issuer IS NOT NULL AND s.upstream_subject IS NOT NULL
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
  AND NOT EXISTS (SELECT FROM linked_identities l
                  WHERE l.issuer = s.upstream_issuer
                    AND l.upstream_subject = s.upstream_subject AND l.sub = s.sub)";

/// Sessions of these users that began through an identity while it was unlinked, and have not
/// ended.
pub fn stray_sessions(store: &Store, subs: &[Subject]) -> Result<Vec<StraySession>> {
    store.list(bind!(STRAY_SESSIONS, subs), |row| {
        let identity = Identity {
            issuer: column(row, "upstream_issuer")?,
            subject: column(row, "upstream_subject")?,
        };
        read!(row, StraySession { sid, sub; identity })
    })
}
