//! Statements, as the files of the tables write them. A value is written by its name, `:client_id`,
//! and [`bind!`] gives the names their values; a test compares the names of both. Postgres gets
//! numbers: [`written_out`] makes that text when a connection prepares the statement, once for each
//! connection and not for each request.

use postgres::types::ToSql;

use super::seen_partitions::{DayOfTable, Partitions, SeenPartition};

pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A statement with its values.
#[derive(Clone, Copy)]
pub struct Bound<'a> {
    pub sql: &'static str,
    /// The first is `$1` to Postgres.
    pub names: &'static [&'static str],
    pub values: Values<'a>,
    /// Where it looks and writes: it names the partition of such a day, where that is known.
    pub days: [Option<DayOfTable>; 3],
}

impl Bound<'_> {
    /// The text that Postgres gets.
    pub fn text(self) -> String {
        written_out(self.sql, self.names)
    }
}

/// Gives a statement its values: `bind!(FIND, ..id { day }, client_id, limit = 5)`. Fields of a
/// struct come first, each for the name of the field. A name alone is the variable of that name.
/// The rows of the events, `:events`, are added by whoever runs the statement.
#[macro_export]
macro_rules! bind {
    (@value $name:ident) => { $name };
    (@value $name:ident = $value:expr) => { $value };
    (
        $sql:expr
        $(, ..$of:ident { $($field:ident),* $(,)? })*
        $(, $name:ident $(= $value:expr)?)* $(,)?
    ) => {
        $crate::Bound {
            sql: $sql,
            names: &[$($(stringify!($field),)*)* $(stringify!($name)),*],
            values: &[$($(&$of.$field,)*)* $(&$crate::bind!(@value $name $(= $value)?)),*],
            days: [None; 3],
        }
    };
}
pub use bind;

/// The name of the events that a statement writes, which comes behind all others.
const EVENTS: &str = "events";

/// The same of the one event that a statement chooses from alternatives: its values one by one,
/// with a name and a hash for each alternative.
const EVENT: &str = "event_day event_at event_chain event_seq event_previous event_hashes \
    event_names event_client_id event_source event_request_id event_detail";

/// What follows them: whom the event is about, or the end of what is hashed, where the statement
/// finds the user.
const ABOUT: &str = "event_sub event_sid";
const ENDING: &str = "event_ending";

/// A text that several statements share, by its name in braces. It sees no value but those it
/// names.
struct Piece {
    name: &'static str,
    sql: &'static str,
}

/// Tables that a statement may have in braces, `{grants}`: their partition, where it is known.
const PARTITIONED: [&str; 4] = ["audit_events", "grants", "revoked_tokens", "sessions"];

const PIECES: [Piece; 40] = [
    // Moves a grant on to its next generation where the presented token is the current one, and
    // everything stands but the session. The table of the update cannot be named in the joins, so
    // `{grounds}` is written out. `{stands}` needs user and client, so both are joined.
    Piece {
        name: "{move on}",
        sql: "UPDATE {grants} g \
         SET generation = CASE WHEN :reuse::bool THEN g.generation ELSE g.generation + 1 END, \
             moved_at = CASE WHEN NOT :reuse::bool THEN clock_timestamp() END, \
             used_at = CASE WHEN :reuse::bool THEN clock_timestamp() END, \
             attempt = :attempt::bytea, \
             confirmation = coalesce(g.confirmation, :bind_to::bytea) \
         FROM installation i, clients c CROSS JOIN users u \
         LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = c.client_id \
         WHERE g.day = :day::int4 AND g.id = :id::bytea AND g.client_id = :client_id::text \
           AND c.client_id = g.client_id AND u.sub = g.sub AND {stands} \
           AND g.generation = :presented::int4 AND g.attempt <> :attempt::bytea \
           AND g.revoked_at IS NULL AND g.scopes <@ :scopes::text[] \
           AND g.tenant = ANY (:tenants::text[]) AND g.expires_at > :expires_after::timestamptz \
           AND coalesce(g.used_at, g.moved_at, g.redeemed_at) > :used_after::timestamptz \
           AND (:acrs::text[] IS NULL OR g.acr = ANY (:acrs::text[])) \
           AND (g.confirmation IS NULL OR g.confirmation = :confirmation::bytea)",
    },
    // Answers the grant that was moved, with the hash of what is told of it.
    Piece {
        name: "{moved}",
        sql: "{granted}, {person}, sha256((:event_hashes::bytea[])[1] || hashed(g.sub) \
             || hashed(g.sid) || :event_ending::bytea) AS audited",
    },
    // Tells of the grant that was `moved`, and answers it.
    Piece {
        name: "{tell of moved}",
        sql: "told AS (INSERT INTO {audit_events} SELECT {event begins}, moved.audited, \
             (:event_names::text[])[1], :event_client_id::text, sub, sid, {event ends} FROM moved) \
         SELECT * FROM moved",
    },
    // Whether the grant `g` may be refreshed as far as its session goes: it has `offline_access`,
    // or its session goes on.
    Piece {
        name: "{session goes on}",
        sql: "(g.offline OR EXISTS (SELECT FROM sessions s \
             WHERE s.day = g.session_day AND s.sid = g.sid AND (s.sub = g.sub) IS TRUE \
               AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()))",
    },
    // Whether what the row `g` was given still stands, as the database alone can tell:
    // `grounds_stand` and `consent_has_lapsed` of `liveness` say the same of what was read. A grant
    // has these columns, and so has a device; a code brings them as values.
    Piece {
        name: "{stands}",
        sql: "{may act} AND u.epoch = g.user_epoch AND c.enabled AND c.epoch = g.client_epoch \
         AND i.epoch = g.installation_epoch AND coalesce(k.epoch, 0) = g.consent_epoch \
         AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp() \
              OR g.issued_at >= k.expires_at \
              OR (c.metadata ->> 'require_consent')::bool IS NOT TRUE) \
         AND CASE WHEN jsonb_typeof(c.metadata -> 'allowed_roles') = 'array' \
             THEN jsonb_path_exists(u.claims, '$.role[*] ? (@ == $allowed_roles[*])', c.metadata) \
             ELSE true END",
    },
    // The rows that `{stands}` compares with `g`.
    Piece {
        name: "{grounds}",
        sql: "CROSS JOIN installation i LEFT JOIN users u ON u.sub = g.sub \
         LEFT JOIN clients c ON c.client_id = g.client_id \
         LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id",
    },
    // Whether the grant `g` is at the generation that was presented, and all of `standing` stands.
    Piece {
        name: "{is current}",
        sql: "g.revoked_at IS NULL AND standing.stands AND g.generation = :presented::int4",
    },
    Piece {
        name: "{user}",
        sql: "u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.valid_until, {has ended}, \
         u.claims, u.epoch, u.factors, u.strongest_acr",
    },
    // What a token of a user stands on.
    Piece {
        name: "{standing}",
        sql: "r.jti IS NOT NULL AS revoked, c.enabled AS client_enabled, \
         i.epoch AS installation_epoch, c.epoch AS client_epoch, k.epoch AS consent_epoch, \
         g.offline, g.revoked_at, g.expires_at, g.installation_epoch AS of_installation, \
         g.client_epoch AS of_client, g.user_epoch AS of_user, g.consent_epoch AS of_consent, \
         k.expires_at AS consent_expires_at, {person}",
    },
    Piece {
        name: "{standing of user}",
        sql: "installation i \
         LEFT JOIN {revoked_tokens} r \
           ON r.day = :expires_on::int4 AND r.jti = :jti::bytea \
         LEFT JOIN clients c ON c.client_id = :client_id::text \
         LEFT JOIN consents k ON k.sub = :sub::text AND k.client_id = :client_id::text \
         LEFT JOIN {grants} g \
           ON g.day = :grant_day::int4 AND g.id = :grant_id::bytea \
              AND g.client_id = :client_id::text AND g.sub = :sub::text \
         LEFT JOIN users u ON u.sub = :sub::text",
    },
    Piece {
        name: "{standing of client}",
        sql: "c.enabled AS client_enabled, i.epoch AS installation_epoch, c.epoch AS client_epoch \
         FROM installation i \
         LEFT JOIN {revoked_tokens} r ON r.day = :expires_on::int4 AND r.jti = :jti::bytea \
         LEFT JOIN clients c ON c.client_id = :client_id::text",
    },
    // What tokens tell of the user `u`, and what ends them.
    Piece {
        name: "{person}",
        sql: "u.sub, u.username, u.tenant, {may act} AS enabled, u.valid_until, u.claims, u.epoch",
    },
    Piece {
        name: "{session}",
        sql: "s.day, s.sid, s.sub AS session_sub, s.auth_time, s.amr, s.acr, \
         s.tenant AS session_tenant, s.identity_provider, s.upstream_issuer, \
         s.installation_epoch, s.user_epoch, s.source, s.user_agent, s.created_at, s.used_at, \
         s.expires_at, s.ended_at, s.bound_to, s.bound_at, s.refused_at",
    },
    Piece {
        name: "{grant}",
        sql: "g.day, g.id, g.client_id, g.sub, g.revoked_at, {granted}",
    },
    // The same without what a statement knows that found it alive by its name.
    Piece {
        name: "{granted}",
        sql: "g.scopes, g.resources, g.claims AS grant_claims, \
         g.token_claims, g.sid, g.tenant AS grant_tenant, g.identity_provider, g.auth_time, g.amr, \
         g.acr, g.installation_epoch, g.client_epoch, g.user_epoch, g.consent_epoch, g.generation, \
         g.issued_at, coalesce(g.used_at, g.moved_at, g.redeemed_at) AS last_used_at, \
         g.expires_at, g.confirmation",
    },
    Piece {
        name: "{consent}",
        sql: "k.scopes AS consented_scopes, k.claims AS consented_claims, \
         k.granted_at AS consented_at, k.expires_at AS consent_expires_at, \
         k.epoch AS consent_epoch",
    },
    // The columns of the event that is the alternative `a.n`.
    Piece {
        name: "{event}",
        sql: "{event begins}, (:event_hashes::bytea[])[a.n], (:event_names::text[])[a.n], \
         :event_client_id::text, :event_sub::text, :event_sid::text, {event ends}",
    },
    // The same, of the user `a.sub` and the session `a.sid` that the statement found.
    Piece {
        name: "{event of its user}",
        sql: "{event begins}, sha256((:event_hashes::bytea[])[a.n] || hashed(a.sub) \
             || hashed(a.sid) || :event_ending::bytea), (:event_names::text[])[a.n], \
         :event_client_id::text, a.sub, a.sid, {event ends}",
    },
    Piece {
        name: "{event begins}",
        sql: ":event_day::int4, :event_at::timestamptz, :event_chain::text, :event_seq::int8, \
         :event_previous::bytea",
    },
    Piece {
        name: "{event ends}",
        sql: ":event_source::text, :event_request_id::text, :event_detail::text::json",
    },
    // Takes the names that `keys` has (tenant, name, is_alone), so that of two statements at once
    // that give somebody an address, or call somebody by it, the second finds that it was taken.
    // Neither sees what the other is about to do, nor what it committed a moment ago. So each
    // writes a row for the name, among the used assertions: of an issuer that no client can be, as
    // it ends with a space. The second waits for it, and then sees that it is not the row, or the
    // absence of one, that there was when it began. (Two that begin on different days of UTC write
    // two rows.)
    Piece {
        name: "{names taken}",
        sql: "hashed_keys AS (SELECT DISTINCT sha256(convert_to( \
             k.tenant || ' ' || lower(normalize(k.name, NFKC)), 'UTF8')) AS hash FROM keys k), \
         taken_keys AS (INSERT INTO used_assertions AS t (day, issuer, jti_hash) \
         SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4, 'name ', k.hash \
         FROM hashed_keys k ORDER BY k.hash \
         ON CONFLICT (day, issuer, jti_hash) DO UPDATE SET taken_at = clock_timestamp() \
         WHERE t.taken_at = (SELECT s.taken_at FROM used_assertions s \
             WHERE s.day = t.day AND s.issuer = t.issuer AND s.jti_hash = t.jti_hash) \
         RETURNING t.jti_hash)",
    },
    // Whether all of them were taken, and none that must be alone is the address of another user
    // than `:sub` who may sign in, and that counts.
    Piece {
        name: "{names are free}",
        sql: "(SELECT count(*) FROM taken_keys) = (SELECT count(*) FROM hashed_keys) \
         AND NOT EXISTS (SELECT FROM keys k JOIN users h ON h.tenant = k.tenant \
             AND h.claims ? 'email' AND left(lower(normalize(h.claims ->> 'email', NFKC)), 254) \
                 = left(lower(normalize(k.name, NFKC)), 254) COLLATE \"C\" \
             WHERE k.is_alone AND h.sub <> :sub::text AND h.enabled AND {in time} \
               AND {address counts})",
    },
    // The user of a link by which somebody disowns a sign-in, whether they are as it was made on,
    // and a mark of that. An account that was linked since, five minutes before the link was made
    // included, is another state, too. The mark is used with the link, so that every other link
    // that was made on the same is over with it.
    Piece {
        name: "{disowned}",
        sql: "SELECT u.epoch = :epoch::int8 AND u.factors = :factors::int8 \
             AND sha256(convert_to(coalesce(u.claims ->> 'email', ''), 'UTF8')) \
                 = :address_hash::bytea \
             AND u.claims -> 'email_verified' = 'true' \
             AND NOT EXISTS (SELECT FROM linked_identities l WHERE l.sub = u.sub \
                 AND l.linked_at > :expires_at::timestamptz - interval '24 hours 5 minutes') \
             AS stands, m.hash \
         FROM (SELECT sha256(:address_hash::bytea || int8send(:factors::int8) \
             || int8send(:epoch::int8) || convert_to(:sub::text, 'UTF8')) AS hash) AS m, users u \
         WHERE u.sub = :sub::text AND {may act} AND clock_timestamp() < :expires_at::timestamptz \
           AND (SELECT i.epoch FROM installation i) = :installation_epoch::int8 \
           AND NOT EXISTS (SELECT FROM used_assertions a, \
                   floor(extract(epoch FROM now()) / 86400) AS today \
               WHERE a.day IN (today::int4, today::int4 + 1) \
                 AND a.issuer = 'not me ' AND a.jti_hash = m.hash)",
    },
    // Whether the address of the user `h` counts for signing in and for letters: it is verified,
    // and not by the word of a provider alone whose registration does not say `trust_email`. Trust
    // is in an issuer (or, without one, in its `userinfo_endpoint`): names change hands.
    Piece {
        name: "{address counts}",
        sql: "h.claims -> 'email_verified' = 'true' AND NOT EXISTS ( \
         SELECT FROM linked_identities l \
         WHERE l.sub = h.sub AND h.claims ->> 'email' = coalesce(l.verified_email, \
             CASE WHEN l.claims -> 'email_verified' = 'true' THEN l.claims ->> 'email' END) \
           AND NOT EXISTS (SELECT FROM catalogue_entries e \
               WHERE e.kind = 'identity_provider' \
                 AND l.issuer = coalesce(e.document ->> 'issuer', \
                                         e.document ->> 'userinfo_endpoint') \
                 AND e.document -> 'trust_email' = 'true'))",
    },
    // Whether no logout token is being taken about whoever signs in. None can be until this
    // statement is committed: `upstream_sessions::END` takes the same locks alone.
    Piece {
        name: "{no logout is taken}",
        sql: "(SELECT bool_and(pg_try_advisory_xact_lock_shared( \
             hashtextextended(:upstream_issuer::text || encode(key, 'hex'), 0))) \
         FROM unnest(:logouts::bytea[]) AS key)",
    },
    // The session that somebody changes their own account in, while it lives.
    Piece {
        name: "{own session}",
        sql: "own AS (SELECT s.sid FROM sessions s \
         WHERE s.day = :day::int4 AND s.sid = :sid::text AND (s.sub = :sub::text) IS TRUE \
           AND s.ended_at IS NULL AND s.expires_at > clock_timestamp())",
    },
    // Whether the row `u` is the person on whom an administrator acts, as it was read.
    Piece {
        name: "{acted on}",
        sql: "u.sub = :sub::text AND u.xmin::text = :version::text AND {may be changed}",
    },
    // Whether the user `u` is in the reach of an administrator, not themselves, and without a role
    // that administrators may not give: `Administration::may_change` says the same of what was
    // read.
    Piece {
        name: "{may be changed}",
        sql: "(u.tenant = ANY(:reach::text[]) AND u.sub <> :admin::text \
         AND coalesce({given roles} @> (u.claims -> 'role'), true))",
    },
    // What administrators may give: `Administration::roles_to_give` says the same of what was read.
    Piece {
        name: "{given roles}",
        sql: "(to_jsonb(:given_roles::text[]) || (SELECT coalesce(jsonb_agg(r.name), '[]') \
             FROM roles r WHERE r.document @> '{\"given_by_administrators\": true}' \
               AND r.name <> :admin_role::text \
               AND NOT starts_with(r.name, :admin_role::text || ':')))",
    },
    // Whether people sign in to the client `c`; others get tokens for themselves alone.
    Piece {
        name: "{opened by people}",
        sql: "(c.metadata ->> 'grant_types' ~ 'authorization_code|implicit|password|device_code') \
         IS NOT FALSE",
    },
    // Whether people of the tenant `t`, or without one where its name is empty, may use the client
    // `c`: several tenants of a client leave room for people without one.
    Piece {
        name: "{lets tenant in}",
        sql: "CASE WHEN jsonb_typeof(c.metadata -> 'tenants') IS DISTINCT FROM 'array' THEN true \
         WHEN t.name = '' THEN jsonb_array_length(c.metadata -> 'tenants') <> 1 \
         ELSE c.metadata -> 'tenants' ? t.name END",
    },
    // The name of the user `u`, as people are sorted by it: the index `users_by_name` has this.
    Piece {
        name: "{name key}",
        sql: "left(lower(normalize(coalesce(u.claims->>'name', u.username, u.sub), NFKC)), 254) \
         COLLATE \"C\"",
    },
    // Whether the user `u` is in the state that was asked for, if any was.
    Piece {
        name: "{in state}",
        sql: "CASE :state::text WHEN 'disabled' THEN NOT {may act} WHEN 'enabled' THEN {may act} \
         WHEN 'invited' THEN {may act} AND u.password_hash IS NULL AND u.factors = 0 \
             AND NOT EXISTS (SELECT FROM linked_identities o WHERE o.sub = u.sub) \
         WHEN 'no-second-factor' THEN {may act} AND u.password_hash IS NOT NULL \
             AND u.strongest_acr = '1' \
         WHEN 'not-signed-in' THEN {may act} \
             AND {last use} < clock_timestamp() - interval '90 days' \
         ELSE true END",
    },
    // A text that locale providers and languages make different small letters of.
    Piece {
        name: "{lowered}",
        sql: "lower(normalize('ΣΑΣ İSMAİL ẞ Ì', NFKC))",
    },
    // Has the clients called of all sessions of the user `:sub`.
    Piece {
        name: "{user called}",
        sql: "called AS (UPDATE session_clients SET due_at = clock_timestamp() \
         WHERE sub = :sub::text AND due_at IS NULL AND tries = 0)",
    },
    // Has the clients called of the sessions that the statement `ended`.
    Piece {
        name: "{called}",
        sql: "called AS (UPDATE session_clients c SET due_at = clock_timestamp() FROM ended \
         WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0)",
    },
    // Whether the end of the user `u` has come, which nobody need have seen yet.
    Piece {
        name: "{has ended}",
        sql: "coalesce(u.valid_until <= clock_timestamp(), false) AS has_ended",
    },
    // Whether the user `u` is enabled, and in time.
    Piece {
        name: "{may act}",
        sql: "(u.enabled AND {in time})",
    },
    // Whether the end has not come of the one user whom the names around it can mean.
    Piece {
        name: "{in time}",
        sql: "(valid_until > clock_timestamp()) IS NOT FALSE",
    },
    // When the user `u` was there last, as far as anybody knows: made, enabled, signed in or with a
    // refresh token. Nothing is known of days before the log was folded, nor before the first fold.
    Piece {
        name: "{last use}",
        sql: "greatest(u.created_at, u.enabled_at, \
             to_timestamp((SELECT o.day + 1 FROM user_uses o WHERE o.sub = u.sub) * 86400.0), \
             (SELECT max(s.used_at) FROM sessions s WHERE s.sub = u.sub), \
             coalesce((SELECT least(to_timestamp(min(f.hour) * 3600.0), max(m.applied_at)) \
              FROM folds f, schema_migrations m WHERE m.name = '0013_folds.sql'), now()))",
    },
];

/// The text that Postgres gets: with its pieces in their places, and with numbers for its names.
/// `{audited source}` writes the events, once for each row of `source`, and begins the answer with
/// the hashes of those that it wrote.
pub fn written_out(sql: &str, names: &[&str]) -> String {
    written_for(sql, names, &Partitions::default())
}

/// The same, with these partitions named in place of their tables.
pub fn written_for(sql: &str, names: &[&str], partitions: &Partitions) -> String {
    let mut text = sql.to_owned();
    for piece in PIECES {
        text = text.replace(piece.name, piece.sql);
    }
    while let Some((before, rest)) = text.split_once("{audited ")
        && let Some((source, after)) = rest.split_once('}')
    {
        text = format!(
            "{before}audited AS (INSERT INTO audit_events \
             SELECT a.* FROM {source}, unnest(:events::audit_events[]) AS a RETURNING hash) \
             SELECT array(SELECT hash FROM audited) AS audited{after}"
        );
    }
    for SeenPartition { table, from, to } in partitions.iter().flatten() {
        text = text.replace(&format!("{{{table}}}"), &format!("{table}_{from}_{to}"));
    }
    for table in PARTITIONED {
        text = text.replace(&format!("{{{table}}}"), table);
    }
    numbered(&text, names)
}

/// The names of the values that whoever runs the statement adds behind the others.
pub fn names_of_events(text: &str) -> Vec<&'static str> {
    let names = if text.contains(":event_ending::") {
        [EVENT, ENDING]
    } else if text.contains(":event_day::") {
        [EVENT, ABOUT]
    } else {
        [EVENTS, ""]
    };
    names.into_iter().flat_map(str::split_whitespace).collect()
}

fn numbered(text: &str, names: &[&str]) -> String {
    let names = [names, &names_of_events(text)[..]].concat();
    let mut numbered = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(':') {
        let is_in_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        let name = after.split(|letter| !is_in_name(letter)).next();
        let known = names.iter().position(|one| name == Some(one));
        numbered.push_str(before);
        rest = match known {
            // `::text` is a cast, whatever the names.
            Some(index) if !before.is_empty() => {
                numbered.push_str(&format!("${}", index + 1));
                after.trim_start_matches(is_in_name)
            }
            Some(_) | None => {
                numbered.push(':');
                after
            }
        };
    }
    numbered + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_and_casts_stay() {
        let sql = "SELECT x[1 : :most::int4], ':' FROM t WHERE a = :a::text OR :a::text IS NULL";
        assert_eq!(
            written_out(sql, &["a", "most"]),
            "SELECT x[1 : $2::int4], ':' FROM t WHERE a = $1::text OR $1::text IS NULL"
        );
        assert_eq!(numbered("unnest(:events::x[])", &["a"]), "unnest($2::x[])");
    }
}
