//! The schema: migrations, levels, and every statement of the store against it.

use std::collections::{BTreeMap, BTreeSet};

use gatepost::store::migrate::{self, Migration};
use gatepost::store::{StoreError, installation, names_of_events, written_out};
use gatepost::tool::statements::{installation_changes, schema};

use crate::support::claims::Says;
use crate::support::postgres::{INSTALLATION_ID, ISSUER, TestDatabase};
use crate::support::tables::rows_of;
use crate::support::waiting::all_at_once;

/// Where statements stand.
const FOLDERS: &str =
    "src/store src/registrar/statements src/manage/statements src/tool/statements";

/// The files of statements: module and text.
fn modules() -> Vec<(String, String)> {
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut modules = Vec::new();
    for folder in FOLDERS.split(' ') {
        for entry in std::fs::read_dir(home.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "rs") {
                let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
                modules.push((module, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    modules
}

/// Every statement by `module::NAME`, read from its source, so that none can be left
/// out; but those that `migrate` runs once, which its own tests do.
pub fn all_queries() -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for (name, literal) in all_literals() {
        let sql = written_out(&literal, &names(&written_out(&literal, &[])));
        assert!(!sql.contains('\\'), "{name}");
        let once = "schema::ANALYZE schema::BEGIN schema::ENCODING schema::FITNESS";
        if !once.split(' ').any(|one| one == name) {
            queries.push((name, sql));
        }
    }
    queries
}

/// The names of the values of a statement, in their order. Events come last.
pub fn all_values(statement: &str) -> Vec<String> {
    let literals = all_literals();
    let sql = written_out(&literals[statement], &[]);
    let mut names: Vec<String> = names(&sql).into_iter().map(str::to_owned).collect();
    // `written_out` numbers the events behind all other names: so it does with none.
    if sql.contains("$1::audit_events[]") {
        names.push(String::from("events"));
    }
    // Or the values of one event.
    if sql.contains("$1::int4, $2::timestamptz, $3::text") {
        let ending = if sql.contains("$12::bytea") {
            ":event_ending::"
        } else {
            ""
        };
        let of_event = names_of_events(&format!(":event_day:: {ending}"));
        names.extend(of_event.into_iter().map(str::to_owned));
    }
    names
}

/// What makes a session of Postgres plan as those of serving processes do.
pub fn serving_settings() -> String {
    settings_of("SERVING_OPTIONS")
}

/// What commands of operators set otherwise.
pub fn operator_settings() -> String {
    settings_of("OPERATOR_OPTIONS")
}

fn settings_of(list: &str) -> String {
    let mut modules = modules().into_iter();
    let (_, text) = modules
        .find(|(module, _)| module == "database_url")
        .unwrap();
    let (_, options) = text.split_once(list).unwrap();
    let (options, _) = options.split_once("];").unwrap();
    let words: Vec<&str> = options.split('"').skip(1).step_by(2).collect();
    let settings = words.chunks_exact(2).map(|pair| {
        let value = pair[1].replace('\\', "");
        format!("SET {} = '{value}';", pair[0])
    });
    settings.collect()
}

/// The same as they are written.
fn all_literals() -> BTreeMap<String, String> {
    let mut literals = BTreeMap::new();
    for (module, text) in modules() {
        for constant in text.split("const ").skip(1) {
            let Some((name, value)) = constant.split_once(": &str =") else {
                continue;
            };
            // What the server calls its own routines stands in `error`, words of its settings in
            // `database_url`, names of values in `statement`.
            let is_upper = |letter| matches!(letter, 'A'..='Z' | '0'..='9' | '_');
            let is_aside = ["error", "database_url", "statement"].contains(&module.as_str());
            if is_aside || !name.chars().all(is_upper) {
                continue;
            }
            let literal = value.trim_start().strip_prefix('"');
            let literal = literal.and_then(|rest| rest.split_once("\";"));
            let Some((literal, _)) = literal else {
                panic!("{module}::{name} is no plain text")
            };
            let literal = literal.replace("\\\"", "\"");
            literals.insert(format!("{module}::{name}"), literal);
        }
    }
    literals
}

/// The names of a statement's values, but `events`, which comes behind them.
fn names(sql: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, _) in sql.match_indices(':') {
        let behind = &sql[at + 1..];
        let end = behind.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        let name = &behind[..end.unwrap_or(behind.len())];
        if !sql[..at].ends_with(':') && !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What `bind!` is given, from its text behind the bracket: the statement, and the names.
fn bound(call: &str) -> (&str, Vec<&str>) {
    let mut depth = 1;
    let end = call.find(|letter: char| {
        depth += i32::from("([{".contains(letter)) - i32::from(")]}".contains(letter));
        depth == 0
    });
    let call = &call[..end.unwrap()];
    let (statement, values) = call.split_once(',').unwrap_or((call, ""));
    let mut names = Vec::new();
    let mut rest = values.trim();
    if let Some(behind) = rest.strip_prefix("self,") {
        names.push("self");
        rest = behind.trim();
    }
    while let Some(fields) = rest.strip_prefix("..") {
        let (_, fields) = fields.split_once('{').unwrap();
        let (fields, behind) = fields.split_once('}').unwrap();
        let fields = fields.split(',').map(str::trim);
        names.extend(fields.filter(|name| !name.is_empty()));
        rest = behind.trim_start_matches(',').trim();
    }
    let mut depth = 0;
    let values = rest.split(|letter: char| {
        depth += i32::from("([{".contains(letter)) - i32::from(")]}".contains(letter));
        letter == ',' && depth == 0
    });
    let values = values.map(|value| value.split('=').next().unwrap().trim());
    names.extend(values.filter(|name| !name.is_empty()));
    (statement.trim(), names)
}

/// What `bind_acting!` of `manage` gives a statement besides: an administrator by `self`.
const ACTING: [&str; 4] = ["admin", "reach", "given_roles", "admin_role"];

/// Otherwise it would show only when the statement runs.
#[test]
fn every_statement_is_given_the_values_that_it_names() {
    let literals = all_literals();
    let mut compared = 0;
    let mut acting = 0;
    for (module, text) in modules().iter().filter(|(module, _)| module != "statement") {
        let text = text.replace("bind_acting!(", "bind!(");
        for call in text.split("bind!(").skip(1) {
            let (statement, mut given) = bound(call);
            if statement == "$sql" {
                assert!(call.contains(&ACTING.join(", ")), "{call}");
                continue;
            }
            if given.first() == Some(&"self") {
                acting += 1;
                given.splice(..1, ACTING);
            }
            let name = match statement.contains("::") {
                true => statement.to_owned(),
                false => format!("{module}::{statement}"),
            };
            let given: BTreeSet<&str> = given.into_iter().collect();
            // One of another file is imported by its name.
            let imported = || {
                let ending = format!("::{statement}");
                let mut named = literals.iter().filter(|(name, _)| name.ends_with(&ending));
                named.next().map(|(_, literal)| literal)
            };
            let Some(literal) = literals.get(&name).or_else(imported) else {
                panic!("no statement {name}")
            };
            let expanded = written_out(literal, &[]);
            let named: BTreeSet<&str> = names(&expanded).into_iter().collect();
            assert_eq!(given, named, "{name}: given, and named");
            compared += 1;
        }
    }
    assert!(compared > 100 && acting > 3, "{compared} {acting}");
}

/// `doctor` and the log send whoever has a pooler in between there.
#[test]
fn what_a_pooler_drops_stands_in_the_documentation() {
    let home = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = home.join("docs/operate/several-machines.md");
    let page = std::fs::read_to_string(path).unwrap();
    let settings = serving_settings();
    assert!(settings.matches("SET ").count() > 6, "{settings}");
    for setting in settings.split(';').filter(|setting| !setting.is_empty()) {
        let (name, _) = setting.trim_start_matches("SET ").split_once(' ').unwrap();
        // Everybody's default, which `doctor` checks.
        if name != "default_transaction_isolation" {
            let line = format!("ALTER ROLE gatepost SET {name} = ");
            assert!(page.contains(&line), "{line}");
        }
    }
}

#[test]
fn every_query_prepares_against_the_migrated_schema() {
    let database = TestDatabase::migrated();
    let mut client = database.client();
    let queries = all_queries();
    assert!(queries.len() > 40, "{}", queries.len());
    for (name, sql) in queries {
        let prepared = client.prepare(&sql);
        assert!(prepared.is_ok(), "{name}: {:?}", prepared.err());
    }
}

/// Statements that read a large table from end to end, and may, each with its reason: no request
/// runs them.
const READS_ALL: &str = "
    applications::COUNT_GRANTS | for an administrator, over a connection of its own
    catalogue::LOAD            | at the start, and after a change of the registry: what all clients allow
    clients::LONGEST_LIFETIMES | upkeep: over all clients
    clients::NAMES_AND_ORIGINS | at the start, and after a change of the registry: names and origins of all clients
    roles::OPENED              | for an administrator: over all clients, of which there are few beside people
    user_names::FREE_KEYS      | by `migrate`, once for each locale provider: over all names
    user_names::KEY_NAMES      | by `migrate`, once for each locale provider: over all names
";

#[test]
fn an_index_leads_every_request_to_its_rows() {
    let database = TestDatabase::migrated();
    let mut client = database.client();
    client.batch_execute(&serving_settings()).unwrap();
    let large = "SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace
                 AND (c.relname IN ('users', 'clients') OR c.oid IN (SELECT inhrelid FROM pg_inherits))";
    let large = client.query(large, &[]).unwrap();
    let large: Vec<String> = large.iter().map(|row| row.get(0)).collect();
    let mut reading_all = Vec::new();
    for (name, sql) in all_queries() {
        let nulls = vec!["NULL"; client.prepare(&sql).unwrap().params().len()].join(", ");
        let arguments = match nulls.as_str() {
            "" => nulls,
            _ => format!("({nulls})"),
        };
        let prepare = format!("PREPARE planned AS {sql}");
        client.batch_execute(&prepare).unwrap();
        let Ok(plan) = client.query(&format!("EXPLAIN EXECUTE planned{arguments}"), &[]) else {
            panic!("{name}")
        };
        client.batch_execute("DEALLOCATE planned").unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let scanned = |line: &String| {
            let table = line.split("Seq Scan on ").nth(1);
            let table = table.and_then(|rest| rest.split(' ').next());
            table.is_some_and(|table| large.iter().any(|large| large == table))
        };
        if plan.iter().any(scanned) {
            reading_all.push(name);
        }
    }
    let may = rows_of(READS_ALL).into_iter().map(|[name, _reason]| name);
    assert_eq!(reading_all, Vec::from_iter(may));
}

#[test]
fn what_refers_to_a_row_is_found_by_an_index_when_that_row_goes() {
    let database = TestDatabase::migrated();
    let unindexed = "
        SELECT c.conrelid::regclass::text || '.' || c.conname FROM pg_constraint c
        WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace AND NOT EXISTS (
            SELECT FROM pg_index i
            WHERE i.indrelid = c.conrelid AND (i.indkey::int2[])[0:cardinality(c.conkey) - 1] = c.conkey)";
    let rows = database.client().query(unindexed, &[]).unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(names, [""; 0]);
    let keys = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND connamespace = current_schema()::regnamespace";
    assert!(database.value::<i64>(keys, &[]) > 3);
}

#[test]
fn migrating_twice_applies_nothing_the_second_time() {
    let database = TestDatabase::empty();
    let mut client = database.client();
    let applied = schema::migrate(&mut client).unwrap();
    assert_eq!(applied.len(), migrate::MIGRATIONS.len());
    assert!(schema::migrate(&mut client).unwrap().is_empty());
    assert!(migrate::check_level(&database.store()).is_ok());
}

#[test]
fn five_migrations_at_once_make_one_schema() {
    let database = TestDatabase::empty();
    let applied = all_at_once(5, |_| {
        schema::migrate(&mut database.client()).unwrap().len()
    });
    assert_eq!(applied.iter().sum::<usize>(), migrate::MIGRATIONS.len());
}

#[test]
fn five_installations_at_once_agree_on_one_id() {
    let database = TestDatabase::empty();
    schema::migrate(&mut database.client()).unwrap();
    let ids = all_at_once(5, |number| {
        let id = [u8::try_from(number).unwrap(); 16];
        let ensured = installation_changes::ensure(&mut database.client(), id, ISSUER);
        ensured.unwrap().id
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn an_edited_migration_is_refused() {
    let database = TestDatabase::empty();
    let mut client = database.client();
    schema::migrate(&mut client).unwrap();
    let edited = [Migration {
        level: 1,
        name: "0001_foundation.sql",
        sql: "-- compatible_from: 1\nSELECT 1",
    }];
    let refused = schema::apply(&mut client, &edited).unwrap_err();
    let refused = refused.to_string();
    let beginning = "schema level 1 was applied with another text than";
    assert!(refused.starts_with(beginning), "{refused}");
}

#[test]
fn a_later_programs_schema_that_needs_that_program_is_left_alone() {
    let database = TestDatabase::migrated();
    let own = migrate::MIGRATIONS.len() as i32;
    let later = |compatible_from: i32| {
        database.run(&format!(
            "DELETE FROM schema_migrations WHERE level > {own};
             INSERT INTO schema_migrations (level, name, sha256, compatible_from) VALUES ({own} + 1, 'x', '', {compatible_from})"
        ));
        let migrated = schema::migrate(&mut database.client());
        let rehearsed = schema::rehearse(&mut database.client(), migrate::MIGRATIONS);
        (migrated, rehearsed)
    };
    assert_eq!(later(own), (Ok(Vec::new()), Ok(Vec::new())));
    let (migrated, rehearsed) = later(own + 1);
    for refused in [migrated.unwrap_err(), rehearsed.unwrap_err()] {
        let refused = refused.to_string();
        refused.assert_says("put the newer one in its place");
    }
}

#[test]
fn a_migration_must_name_the_level_it_works_with() {
    let database = TestDatabase::empty();
    let unnamed = [Migration {
        level: 1,
        name: "0001_a.sql",
        sql: "CREATE TABLE a (x int4)",
    }];
    let refused = schema::apply(&mut database.client(), &unnamed);
    assert!(matches!(refused, Err(StoreError::Refused(_))));
}

#[test]
fn an_unmigrated_or_newer_database_is_not_served() {
    let database = TestDatabase::empty();
    let store = database.store();
    let refused = migrate::check_level(&store).unwrap_err().to_string();
    assert!(refused.contains("run `gatepost migrate`"), "{refused}");
    schema::migrate(&mut database.client()).unwrap();
    database.run("INSERT INTO schema_migrations (level, name, sha256, compatible_from) VALUES (99, 'x', '', 1)");
    assert!(migrate::check_level(&store).is_ok());
    database.run("UPDATE schema_migrations SET compatible_from = 99 WHERE level = 99");
    let refused = migrate::check_level(&store);
    assert!(matches!(refused, Err(StoreError::Refused(_))));
}

#[test]
fn another_issuer_is_refused_and_both_are_named() {
    let database = TestDatabase::migrated();
    let (mut client, other) = (database.client(), "https://other.example");
    let refused = installation_changes::ensure(&mut client, INSTALLATION_ID, other);
    let text = refused.unwrap_err().to_string();
    text.assert_says(ISSUER);
    text.assert_says(other);
    let found = installation::find(&database.store()).unwrap();
    assert_eq!(found.unwrap().id, INSTALLATION_ID);
}

#[test]
fn the_version_is_read_together_with_the_databases_clock() {
    let database = TestDatabase::migrated();
    let before = database.now();
    let reading = installation::read(&database.store()).unwrap();
    let after = database.now();
    assert!(before <= reading.now && reading.now <= after);
    assert_eq!(reading.registry_version, 1);
}
