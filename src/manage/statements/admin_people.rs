//! What administrators read of people and write to them. Each statement that writes asks itself
//! whether the administrator may act on the person (`{acted on}`), and finds nobody where that is
//! not so, or no longer. No statement raises the registry's version.

use std::slice;

use postgres::types::Json;

use gatepost_protocol::words::identifiers::{Sid, Subject};
use gatepost_protocol::words::instant::{Day, Instant};
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::session_clients::call_late;
use gatepost_store::sign_in_failures::{self, FailureBucket};
use gatepost_store::users::{CurrentUser, UserRow, current};
use gatepost_store::{Result, Store, read};

/// The tenants whose people an administrator looks after; an empty name stands for no tenant.
pub type AdminReach<'a> = &'a [&'a str];

/// A person, as an administrator sees them.
pub struct Person {
    pub found: CurrentUser,
    /// Another one after each change.
    pub version: String,
    /// The last day that they signed in on, or used what they had signed in to.
    pub used_on: Option<Day>,
    pub has_identity: bool,
    /// Whether letters that let somebody in may go to their address.
    pub address_counts: bool,
    /// Whether the administrator may act on them.
    pub may_be_changed: bool,
    /// When they got the first of the roles that were asked for; `None` where that is not known, or
    /// they have none.
    pub since: Option<Instant>,
}

impl Person {
    /// Whether they never had a way to sign in: what they were invited by is still to be used.
    pub fn is_new(&self) -> bool {
        let user = &self.found.user;
        user.password_hash.is_none() && user.factors == 0 && !self.has_identity
    }

    /// Whether a link for a new password is of use to them.
    pub fn takes_link(&self) -> bool {
        self.found.user.may_act() && self.found.user.username.is_some()
    }
}

// One by one: for many at once Postgres would read the identities of everybody.
const FIND_PERSON: &str = "
SELECT p.*, i.epoch AS installation_epoch, 0::int8 AS consent_epoch
FROM unnest(:subs::text[]) WITH ORDINALITY AS f (sub, place)
CROSS JOIN LATERAL (
    SELECT u.*, {has ended}, u.xmin::text AS version,
        (SELECT o.day FROM user_uses o WHERE o.sub = u.sub) AS used_on,
        EXISTS (SELECT FROM linked_identities o WHERE o.sub = u.sub) AS has_identity,
        coalesce({address counts}, false) AS address_counts,
        {may be changed} AS may_be_changed,
        (SELECT min(m.since) FROM role_members m
         WHERE m.tenant = u.tenant AND m.role = ANY(:roles::text[]) AND m.sub = u.sub
         HAVING bool_and(m.since IS NOT NULL)) AS since
    FROM users u CROSS JOIN LATERAL (SELECT u.sub, u.claims) AS h
    WHERE u.sub = f.sub AND u.tenant = ANY(:reach::text[]) LIMIT 1
) AS p
CROSS JOIN installation i ORDER BY f.place";

impl ActingAdmin<'_> {
    /// Those of these people who are within reach, in that order, and since when they have one of
    /// the roles.
    pub fn find(&self, subs: &[Subject], roles: Option<&[&str]>) -> Result<Vec<Person>> {
        let bound = bind_acting!(FIND_PERSON, self, subs, roles);
        self.store.list(bound, |row| {
            read!(row, Person {
                version, used_on, has_identity, address_counts, may_be_changed, since;
                found: current(row)?
            })
        })
    }
}

/// An administrator who acts on a person.
#[derive(Clone, Copy)]
pub struct ActingAdmin<'a> {
    pub store: &'a Store,
    pub admin: &'a Subject,
    pub reach: AdminReach<'a>,
    /// The only roles that the person may have, besides the registered ones that administrators
    /// give.
    pub given_roles: &'a [String],
    /// The role that makes administrators: no registration has it given by them.
    pub admin_role: &'a str,
}

// Nobody is called by the address of somebody else, or gets a role that cannot be given.
const CHANGE_PERSON: &str = "
WITH keys AS (
    SELECT u.tenant, :username::text AS name, true AS is_alone
    FROM users u WHERE u.sub = :sub::text AND u.username <> :username::text
), {names taken}, changed AS (
    UPDATE users u
    SET username = :username::text,
        username_key = CASE WHEN EXISTS (SELECT FROM keys)
            THEN lower(normalize(:username::text, NFKC)) ELSE u.username_key END,
        enabled = :enabled::bool, valid_until = :valid_until::timestamptz,
        claims = :claims::jsonb, updated_at = clock_timestamp(),
        epoch = CASE WHEN :ends_all::bool THEN new_epoch() ELSE u.epoch END,
        factors = CASE WHEN :drops_factors::bool THEN u.factors + 1 ELSE u.factors END,
        strongest_acr = CASE WHEN :drops_factors::bool THEN '1' ELSE u.strongest_acr END
    WHERE {acted on} AND {names are free}
      AND coalesce({given roles} @> (:claims::jsonb -> 'role'), true)
    RETURNING u.sub
), dropped AS (
    DELETE FROM authenticators a USING changed WHERE a.sub = changed.sub AND :drops_factors::bool
), called AS (
    UPDATE session_clients s SET due_at = clock_timestamp()
    FROM changed WHERE s.sub = changed.sub AND :ends_all::bool AND s.due_at IS NULL AND s.tries = 0
), {audited changed} FROM changed";

/// What becomes of a person.
#[derive(Clone, Copy)]
pub struct PersonChange<'a> {
    /// Of the person, as the administrator saw them.
    pub version: &'a str,
    /// With the user name, the claims, whether they are enabled, and until when.
    pub user: &'a UserRow,
    /// Whether all ends that was signed in, granted or issued, the clients of the sessions called.
    pub ends_all: bool,
    pub drops_factors: bool,
}

impl ActingAdmin<'_> {
    /// Changes a person. `false` when the administrator may not act on them, or they are no longer
    /// as they were seen, or a role cannot be given, or a new user name is the address of somebody
    /// else. `Taken` when somebody is called so.
    pub fn change(&self, change: PersonChange<'_>, audit: &AuditEvent<'_>) -> Result<bool> {
        let user = change.user;
        let bound = bind_acting!(
            CHANGE_PERSON,
            self,
            ..change {
                version,
                ends_all,
                drops_factors
            },
            ..user {
                sub,
                username,
                enabled,
                valid_until
            },
            claims = Json(&user.claims)
        );
        self.store.change(bound, audit)
    }
}

const END_OF_PERSON: &str = "
WITH ended AS (
    UPDATE sessions s SET ended_at = clock_timestamp(), upstream_id_token = NULL
    FROM users u
    WHERE s.day = :day::int4 AND s.sid = :sid::text AND (s.sub = u.sub) IS TRUE
      AND s.ended_at IS NULL AND {acted on}
    RETURNING s.day, s.sid
), {called}, {audited ended} FROM ended";

impl ActingAdmin<'_> {
    /// Ends one session of a person, and has its clients called. `false` as by
    /// [`ActingAdmin::change`], and where there is no such session of theirs, or it had ended.
    pub fn end_session(&self, person: &Person, sid: &Sid, audit: &AuditEvent<'_>) -> Result<bool> {
        let Some(day) = sid.day() else {
            return Ok(false);
        };
        let Person { found, version, .. } = person;
        let bound = bind_acting!(END_OF_PERSON, self, version, sub = found.user.sub, day, sid);
        let ended = self.store.change(bound, audit)?;
        if ended {
            call_late(self.store, slice::from_ref(sid));
        }
        Ok(ended)
    }
}

const NOTE: &str = "
WITH person AS (
    SELECT u.sub FROM users u WHERE {acted on} FOR SHARE
), pardoned AS (
    INSERT INTO sign_in_failures (bucket, failures, last_at, expires_at)
    SELECT b.bucket, 0, clock_timestamp(), clock_timestamp() + b.seconds * interval '1 second'
    FROM person CROSS JOIN unnest(:buckets::bytea[], :windows::int4[]) AS b (bucket, seconds)
    ORDER BY b.bucket
    ON CONFLICT (bucket) DO UPDATE
    SET last_at = excluded.last_at, expires_at = excluded.expires_at
), {audited person} FROM person";

impl ActingAdmin<'_> {
    /// Tells the audit log of what is done for a person, as a link that is made. With pardons, no
    /// wrong password of theirs counts that came before this moment. `false` as by
    /// [`ActingAdmin::change`]: then it is not to be done.
    pub fn note(
        &self,
        person: &Person,
        pardons: &[FailureBucket],
        audit: &AuditEvent<'_>,
    ) -> Result<bool> {
        let Person { found, version, .. } = person;
        let bound = bind_acting!(
            NOTE,
            self,
            version,
            sub = found.user.sub,
            buckets = sign_in_failures::names(pardons),
            windows = sign_in_failures::windows(pardons)
        );
        self.store.change(bound, audit)
    }
}
