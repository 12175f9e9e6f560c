//! Statements, as the files of the tables write them. A value is written by its name, `:client_id`,
//! and [`bind!`] gives the names their values; that both have the same names is checked when this
//! is compiled. Postgres gets numbers: [`written_out`] makes that text when a connection prepares
//! the statement, once for each connection and not for each request.

use postgres::types::ToSql;

pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A statement with its values.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) sql: &'static str,
    /// The first is `$1` to Postgres.
    pub(super) names: &'static [&'static str],
    pub(super) values: Values<'a>,
}

impl Bound<'_> {
    pub(super) fn text(self) -> String {
        written_out(self.sql, self.names)
    }
}

/// Gives a statement its values: `bind!(FIND, day = id.day, client_id)`, where a name alone is the
/// variable of that name. The rows of the events, `:events`, are added by whoever runs it.
macro_rules! bind {
    (@value $name:ident) => { $name };
    (@value $name:ident = $value:expr) => { $value };
    ($sql:expr $(, $name:ident $(= $value:expr)?)* $(,)?) => {
        $crate::store::statement::Bound {
            sql: $sql,
            names: const { $crate::store::statement::checked($sql, &[$(stringify!($name)),*]) },
            values: &[$(&bind!(@value $name $(= $value)?)),*],
        }
    };
}
pub(super) use bind;

/// The name of the events that a statement writes, which comes behind all others.
const EVENTS: &str = "events";

/// A text that several statements share, by its name in braces. It sees no value but those it
/// names.
struct Piece {
    name: &'static str,
    sql: &'static str,
}

const PIECES: [Piece; 7] = [
    // Whether the user has one of the client's roles, as `Client::is_open_to` says.
    Piece {
        name: "{open}",
        sql: "CASE WHEN jsonb_typeof(c.metadata -> 'allowed_roles') = 'array' \
         THEN coalesce(jsonb_typeof(u.claims -> 'role') <> 'object' AND (u.claims -> 'role') ?| array(SELECT jsonb_array_elements_text(c.metadata -> 'allowed_roles')), false) \
         ELSE true END",
    },
    Piece {
        name: "{user}",
        sql: "u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.claims, u.epoch, u.factors, u.strongest_acr",
    },
    Piece {
        name: "{session}",
        sql: "s.day, s.sid, s.sub AS session_sub, s.auth_time, s.amr, s.acr, s.tenant AS session_tenant, s.identity_provider, \
         s.upstream_issuer, s.installation_epoch, s.user_epoch, s.source, s.user_agent, s.created_at, s.used_at, \
         s.expires_at, s.ended_at",
    },
    Piece {
        name: "{grant}",
        sql: "g.day, g.id, g.client_id, g.sub, g.scopes, g.resources, g.claims AS grant_claims, g.token_claims, g.sid, \
         g.tenant AS grant_tenant, g.identity_provider, g.auth_time, g.amr, g.acr, g.installation_epoch, g.client_epoch, g.user_epoch, \
         g.consent_epoch, g.generation, g.issued_at, \
         coalesce(g.used_at, g.moved_at, g.redeemed_at) AS last_used_at, g.expires_at, g.revoked_at",
    },
    // The session that somebody changes their own account in, while it lives.
    Piece {
        name: "{own session}",
        sql: "own AS (SELECT s.sid FROM sessions s \
         WHERE s.day = :day::int4 AND s.sid = :sid::text AND s.sub = :sub::text AND s.ended_at IS NULL \
           AND s.expires_at > clock_timestamp())",
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
];

/// The text that Postgres gets: with its pieces in their places, and with numbers for its names.
/// `{audited source}` writes the events, once for each row of `source`, and begins the answer with
/// the hashes of those that it wrote.
pub fn written_out(sql: &str, names: &[&str]) -> String {
    let mut text = PIECES.iter().fold(sql.to_owned(), |text, piece| {
        text.replace(piece.name, piece.sql)
    });
    while let Some((before, rest)) = text.split_once("{audited ")
        && let Some((source, after)) = rest.split_once('}')
    {
        text = format!(
            "{before}audited AS (INSERT INTO audit_events \
             SELECT a.* FROM {source}, unnest(:events::audit_events[]) AS a RETURNING hash) \
             SELECT array(SELECT hash FROM audited) AS audited{after}"
        );
    }
    numbered(&text, names)
}

fn numbered(text: &str, names: &[&str]) -> String {
    let mut numbered = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(':') {
        let length = if before.is_empty() {
            0
        } else {
            name_length(after.as_bytes())
        };
        let name = after.get(..length).unwrap_or_default();
        let known = names.iter().chain([&EVENTS]).position(|one| *one == name);
        numbered.push_str(before);
        match known {
            Some(index) => numbered.push_str(&format!("${}", index + 1)),
            None => numbered.push(':'),
        }
        rest = after.get(known.map_or(0, |_| length)..).unwrap_or_default();
    }
    numbered + rest
}

/// How long the name is that begins here; 0 where none does.
const fn name_length(text: &[u8]) -> usize {
    let mut rest = text;
    while let [b'a'..=b'z' | b'_', after @ ..] = rest {
        rest = after;
    }
    text.len() - rest.len()
}

/// The names, once it is sure that the statement names each of them and no other.
pub(super) const fn checked(
    sql: &'static str,
    names: &'static [&'static str],
) -> &'static [&'static str] {
    let all = (1_u64 << names.len()) - 1;
    assert!(
        named(sql.as_bytes(), names) == all,
        "a value that the statement does not name"
    );
    names
}

/// Which of the names a text and its pieces have, one bit each.
const fn named(text: &[u8], names: &[&str]) -> u64 {
    let mut found = 0;
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return found,
            [b':', b':', behind @ ..] => behind,
            [b':', behind @ ..] => {
                found |= bit(behind.split_at(name_length(behind)).0, names);
                behind
            }
            [first, behind @ ..] => {
                if *first == b'{' {
                    found |= named_by_piece(rest, names);
                }
                behind
            }
        };
    }
}

const fn named_by_piece(text: &[u8], names: &[&str]) -> u64 {
    let mut pieces: &[Piece] = &PIECES;
    while let [piece, others @ ..] = pieces {
        if begins_with(text, piece.name.as_bytes()) {
            return named(piece.sql.as_bytes(), names);
        }
        pieces = others;
    }
    0
}

const fn bit(name: &[u8], names: &[&str]) -> u64 {
    let mut index = 0;
    let mut others = names;
    while let [one, behind @ ..] = others {
        if one.len() == name.len() && begins_with(name, one.as_bytes()) {
            return 1 << index;
        }
        index += 1;
        others = behind;
    }
    let is_known =
        name.is_empty() || (name.len() == EVENTS.len() && begins_with(name, EVENTS.as_bytes()));
    assert!(is_known, "a name without a value");
    0
}

const fn begins_with(text: &[u8], start: &[u8]) -> bool {
    let mut text = text;
    let mut start = start;
    while let [wanted, others @ ..] = start {
        let [first, behind @ ..] = text else {
            return false;
        };
        if *first != *wanted {
            return false;
        }
        text = behind;
        start = others;
    }
    true
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

    #[test]
    fn a_value_without_a_name_and_a_name_without_a_value_do_not_compile() {
        let fits = |sql, names| std::panic::catch_unwind(|| checked(sql, names)).is_ok();
        assert!(fits("SELECT :a, :events", &["a"]));
        assert!(!fits("SELECT :a", &["a", "b"]));
        assert!(!fits("SELECT :a, :b", &["a"]));
        assert!(!fits("WITH {own session} SELECT 1", &["sub"]));
        assert!(fits("WITH {own session} SELECT 1", &["sub", "sid", "day"]));
    }
}
