//! What `sessions` keeps of the sign-in at an identity provider that a session came from.

use super::error::StoreError;
use super::values::column;
use super::{Store, used_assertions};
use crate::protocol::words::identifiers::Sid;
use crate::protocol::words::instant::{Day, Instant};

/// What is kept of the sign-in upstream that a session came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamSession {
    /// The issuer; for a provider without one, its `userinfo_endpoint`.
    pub issuer: String,
    /// `sub` there.
    pub subject: String,
    /// `sid` there, where the provider tells.
    pub sid: Option<String>,
    /// The ID token under `Purpose::UpstreamIdToken`, where signing out here signs out there.
    pub sealed_id_token: Option<Vec<u8>>,
}

/// Somebody who comes from upstream.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// What is kept of their sign-in there.
    pub session: UpstreamSession,
    /// When they left for there: whoever signed out there since did not come.
    pub left_at: Instant,
    /// Names their way there and back, as nothing else is named.
    pub way: [u8; 32],
    /// When nobody can come back by it any more.
    pub way_over_at: Instant,
}

impl Arrival {
    /// The keys under which a logout token since would have left whom it was about.
    pub(super) fn logout_keys(&self) -> Vec<Vec<u8>> {
        let (sid, subject) = (self.session.sid.as_deref(), Some(self.session.subject.as_str()));
        let of_session = sid.map(|sid| [None, subject].map(|subject| used_assertions::whom(Some(sid), subject)));
        of_session.into_iter().flatten().chain([used_assertions::whom(None, subject)]).collect()
    }
}

const FIND: &str = "
SELECT upstream_issuer, upstream_subject, upstream_sid, upstream_id_token FROM sessions WHERE day = $1::int4 AND sid = $2::text";

/// What is kept of the sign-in upstream that a session came from; `None` for one that came from here.
pub fn find(store: &Store, day: Day, sid: &Sid) -> Result<Option<UpstreamSession>, StoreError> {
    let row = store.read(|connection| connection.query_opt(FIND, &[&day, &sid.as_str()]))?;
    let Some(row) = row else { return Ok(None) };
    let (issuer, subject) = (column(&row, "upstream_issuer")?, column(&row, "upstream_subject")?);
    let (Some(issuer), Some(subject)) = (issuer, subject) else { return Ok(None) };
    let sealed_id_token = column(&row, "upstream_id_token")?;
    Ok(Some(UpstreamSession { issuer, subject, sid: column(&row, "upstream_sid")?, sealed_id_token }))
}
