//! The schema's levels: `sql/*.sql`, embedded, forward only. `gatepost migrate` applies each once
//! and remembers it with its checksum; the server asks whether it may serve.

use postgres::Row;
use sha2::{Digest, Sha256};

use super::Store;
use super::error::StoreError;
use super::statement::bind;
use super::values::{column, read};
use crate::Result;

#[derive(Clone, Copy)]
pub struct Migration {
    /// Its number: 1 and up, without gaps.
    pub level: i32,
    pub name: &'static str,
    /// Its text; the first line reads `-- compatible_from: N`, N being the oldest level whose
    /// binary works with this one. A statement ends where a line ends with a semicolon, outside of
    /// `$$`. `CREATE INDEX CONCURRENTLY name ON table ...` comes before the rest, and after that
    /// what has `$1`, in batches.
    pub sql: &'static str,
}

/// A level with its file.
macro_rules! migrations {
    ($($level:literal $name:literal;)*) => {
        &[$(Migration {
            level: $level,
            name: concat!($name, ".sql"),
            sql: include_str!(concat!("../../sql/", $name, ".sql")),
        }),*]
    };
}

pub const MIGRATIONS: &[Migration] = migrations! {
    1 "0001_foundation";
    2 "0002_people";
    3 "0003_external_id";
    4 "0004_external_ids";
    5 "0005_find_people";
    6 "0006_last_use";
    7 "0007_events_of_administrators";
    8 "0008_flow_uses_and_lasting_tokens";
    9 "0009_keys_of_grants";
    10 "0010_lowering";
    11 "0011_roles_and_words";
    12 "0012_members_and_words_of_before";
    13 "0013_folds";
    14 "0014_bcrypt";
    15 "0015_ends_of_people";
    16 "0016_those_who_have_an_end";
    17 "0017_bound_sessions";
    18 "0018_tokens_of_a_day";
    19 "0019_tokens_of_a_day_of_before";
    20 "0020_sessions_by_handle";
};

pub const LEVELS: &str =
    "SELECT level, sha256, compatible_from FROM schema_migrations ORDER BY level";

/// A level as the database remembers it.
pub struct AppliedLevel {
    pub level: i32,
    /// Of its text.
    pub sha256: Vec<u8>,
    pub compatible_from: i32,
}

/// The level of a row of [`LEVELS`].
pub fn level(row: &Row) -> Result<AppliedLevel> {
    read!(row, AppliedLevel { level, sha256, compatible_from; })
}

const HAS_TABLE: &str = "SELECT to_regclass('schema_migrations') IS NOT NULL AS present";

/// Whether this binary may serve with the schema as it stands; the refusal says what to do.
pub fn check_level(store: &Store) -> Result {
    let present: bool = column(&store.one(bind!(HAS_TABLE))?, "present")?;
    let applied: Vec<AppliedLevel> = if present {
        store.list(bind!(LEVELS), level)?
    } else {
        Vec::new()
    };
    check_texts(&applied, MIGRATIONS)?;
    let own = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    let newest = applied.last().map_or(0, |newest| newest.level);
    if newest < own {
        let elsewhere = if newest == 0 {
            ", or look whether search_path names the schema where it was run"
        } else {
            ""
        };
        let cause = format!(
            "the database stands at schema level {newest} of {own}: \
             run `gatepost migrate`{elsewhere}"
        );
        return Err(StoreError::Refused(cause));
    }
    check_compatible(&applied, own)
}

/// A later program's schema may be one that this one must not touch.
pub fn check_compatible(applied: &[AppliedLevel], own_level: i32) -> Result {
    match applied.last() {
        Some(newest) if newest.compatible_from > own_level => Err(StoreError::Refused(format!(
            "the database stands at schema level {}, which needs a gatepost that knows level {}; \
             this one knows {own_level}: put the newer one in its place",
            newest.level, newest.compatible_from
        ))),
        _ => Ok(()),
    }
}

/// A released file is never edited: the applied text must equal the embedded one.
pub fn check_texts(applied: &[AppliedLevel], migrations: &[Migration]) -> Result {
    for level in applied {
        let known = migrations
            .iter()
            .find(|migration| migration.level == level.level);
        if known.is_some_and(|migration| Sha256::digest(migration.sql).as_slice() != level.sha256) {
            return Err(StoreError::Refused(format!(
                "schema level {} was applied with another text than this gatepost has: it comes \
                 from another build; use that one",
                level.level
            )));
        }
    }
    Ok(())
}

/// What the first line of a level says.
pub fn compatible_from(sql: &str) -> Option<i32> {
    sql.lines()
        .next()?
        .strip_prefix("-- compatible_from: ")?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_numbered_without_gaps_and_name_what_they_work_with() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            assert_eq!(usize::try_from(migration.level).unwrap(), index + 1);
            assert!(
                migration
                    .name
                    .starts_with(&format!("{:04}_", migration.level))
            );
            assert!(compatible_from(migration.sql).unwrap() <= migration.level);
        }
    }

    /// SHA-256 of every level that has landed.
    const LANDED: &[&str] = &[
        "ea6543e50c23769d24d73b82526db3e1e64a72dfa72bea4dba4212edb1f9799e",
        "04c1148578330f4cdbf2599895970c62877476fad3f3a1eacc523fbaafa52154",
        "bf3da6c5d769b2af1cea0e092a684df0481f42df45e4f35b16d456d8c687ac18",
        "f1ed96766a8b0e3432afadf1c5f71be67bbebb37f6b5b0166babc76aae442ce5",
        "4c7e59c72f453f8ac2c6d45c8379ab0d25388b50dc9c74ecc9576ad84a923913",
        "d79075be1a69fb5a171d7253fef01a94bfd1663b36a20db2da9b9a0186f79158",
        "fb63d35eb9d072dfd9825a2263ab1adc9229cb5343e8b1894155a6305a38d97a",
        "edf71d8ce918a01d6028c1b3c82ded0332327dd1b0018d7a20e0b4732367d691",
        "8a72e981442ff4d8854cb088f3732a72cfd39da1c7a6da343c64b38062537a22",
        "6ee554316e5d874593f3f21ba7b780f475811c85984d97650e0d92d17bd2a08e",
        "36bc16962791352f5ed61bdba385f754b4611aa85eec32d5c9d8db89286e99be",
        "2a4faef373ef0c994da304ec8400deb30b35526f29923a4046ca17d1e3aba4ba",
        "41e5e74819153a102418cb43c4fc9088a93d4c934e1934771e492d28f0d70771",
        "e00289b4345b244a113dab1f1ea119e56f19f9b348644e50dc067be6e1fe8363",
        "0940107b8b97fdf24e5da28c59a9decb4dcb104b939682feb2e6eae0819e476c",
        "3005143c84d1608f456b83f5a6ad9d9f733836f52e62368e526421803b7390dd",
        "482e8a4640fe52d442947d58835b54e77ef0a21fe1eb846f77108fcb8949bf72",
        "2560c0e78707ba200b438a6517f9fa0c07696e06f7f754b3a53bb3ffc607c924",
        "8cbac45c488307ebca28a61c45cd176cb6a5b92be1ea5e36f0de4efd213c29bb",
        "71fd965737e64fe6f4b1b4e7a93bcc2f9d1539e60ea4979489702df53b0b27ca",
    ];

    #[test]
    fn a_level_that_has_landed_is_frozen() {
        for (index, migration) in MIGRATIONS.iter().enumerate() {
            let sha256: String = Sha256::digest(migration.sql)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            let Some(landed) = LANDED.get(index) else {
                panic!("{}: enter {sha256} in LANDED", migration.name)
            };
            assert_eq!(
                *landed,
                sha256,
                "sql/{} has landed, and databases stand at it: they refuse a gatepost with another text. Put the old \
                 text back, and write a new level: sql/{:04}_what_it_does.sql",
                migration.name,
                MIGRATIONS.len() + 1
            );
        }
        assert_eq!(LANDED.len(), MIGRATIONS.len());
    }

    #[test]
    fn every_file_of_the_sql_directory_is_embedded() {
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../sql")).unwrap();
        let is_level =
            |file: &std::fs::DirEntry| file.path().extension().is_some_and(|it| it == "sql");
        let levels = files.map(|file| file.unwrap()).filter(is_level);
        assert_eq!(levels.count(), MIGRATIONS.len());
    }
}
