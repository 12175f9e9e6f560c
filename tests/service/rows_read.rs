//! How many rows each statement of the store reads in a database that has been served from for a
//! while, with plans as serving processes make them. A plan that reads every consent of a client
//! shows here. In a database with one consent it would not.

use std::collections::{BTreeMap, BTreeSet};

use postgres::Client;
use serde_json::Value;

use crate::store_schema::{all_queries, all_values, operator_settings, serving_settings};
use crate::support::postgres::TestDatabase;

const FILLED: &str = include_str!("../support/filled.sql");

/// A statement of a request reads at most so many rows, and of each table one partition.
const MOST_ROWS: i64 = 20;

/// Statements that a request of a client or a browser runs.
const REQUESTS: &str = "
    admin_people::END_OF_PERSON admin_people::NOTE
    admin_people::FIND_PERSON invitations::HELD invitations::INVITE
    authenticators::FIND_PASSKEY authenticators::LIST authenticators::USER_HANDLE
    authenticators::USE_PASSKEY authenticators::USE_RECOVERY_CODE authenticators::USE_STEP
    clients::FIND consents::END_LAPSED consents::FIND consents::LIST_OF_USER
    device_authorizations::DECIDE device_authorizations::FIND_WAITING
    device_authorizations::INSERT device_authorizations::POLL device_authorizations::REDEEM
    grants::FIND grants::MOVE_ON grants::MOVE_ON_IN_SESSION grants::REDEEM grants::REDEEM_FIRST grants::REFRESH grants::REVOKE installation::EPOCH
    scim_users::FIND_SCIM scim_users::INSERT_SCIM scim_users::LOOK_UP scim_users::SHARING
    scim_users::UPDATE_SCIM
    installation::READ linked_identities::FIND_USER linked_identities::LINK linked_identities::OF_USER
    linked_identities::OWNER linked_identities::PROVISION linked_identities::UPDATE_CLAIMS
    session_clients::CALL_LATE session_clients::ENTER session_clients::LIST session_clients::SETTLE sessions::END
    sessions::BIND sessions::FIND sessions::FIND_OF_USER sessions::NOTE_REFUSAL sessions::TOUCH sign_in_failures::CLEAR
    sign_in_failures::FIND sign_in_failures::TAKE_BACK tokens::FIND tokens::FIND_LASTING tokens::FIND_OF_CLIENT tokens::FIND_OFFLINE
    upstream_sessions::FIND users::CHANGE_ADDRESS users::CHANGE_NAME users::FIND users::FIND_FOR_CLIENT
    users::FIND_FOR_SIGN_IN users::FIND_SHARING users::REHASH sign_up_links::FIND
    sign_up_links::HOLDS sign_up_links::JOIN users::ADDRESS_COUNTS
    users::FIND_BY_NAME_OR_ADDRESS";

/// The same of those that only write: they read nothing that counts, at most what must not be
/// there.
const WRITES: &str = "
    audit_event::INSERT consents::GIVE consents::WITHDRAW endings::CONFIRM
    sign_in_failures::RECORD sign_in_failures::RECORD_OF_ACCOUNT tokens::REVOKE tokens::REVOKE_LASTING
    tokens::TAKE user_changes::INSERT";

/// What a person of this database has: sessions, and in each of them three clients that would be
/// called.
const SESSIONS: i64 = 100;
const CALLS: i64 = 300;
/// All users of the filled database.
const USERS: i64 = 1_001;

/// Statements that answer with many rows, or end many sessions, each with how many rows of a table
/// those are. Of each table they read [`MOST_ROWS`] more.
const LISTS: [(&str, i64); 31] = [
    ("admin_people::CHANGE_PERSON", CALLS),
    ("audit_pages::PAGE", 100),
    ("authenticators::ADD", CALLS),
    ("authenticators::REMOVE", CALLS),
    ("clients::LIST", 3),
    ("clients::OPEN_TO", 3),
    ("disowned_sign_ins::ADMINISTRATORS", 0),
    // It has the clients called of all sessions.
    ("disowned_sign_ins::DISOWN", CALLS),
    // A used link lies under one of two days.
    ("disowned_sign_ins::STANDS", 0),
    ("disowned_sign_ins::TAKE_NEW_BROWSER", 0),
    ("grants::LIST", 100),
    ("grants::LIST_OFFLINE_OF_USER", 5),
    ("linked_identities::SESSIONS_THROUGH", SESSIONS),
    ("linked_identities::UNLINK", CALLS),
    // All that are due are among those due longest and among those due last; each is read again
    // when it is taken, and when it is written.
    ("session_clients::TAKE", 4 * DUE),
    // It counts them all: who has many asks by cursor.
    ("scim_users::COUNT", USERS),
    ("scim_users::PAGE", 100),
    ("scim_users::REMOVE_SCIM", CALLS),
    ("session_endings::OTHERS", SESSIONS),
    ("sessions::END_OTHERS", CALLS),
    // These two look for a sign-out upstream under two days.
    ("sessions::INSERT", 0),
    ("sessions::RENEW", 0),
    ("sessions::LIST", 100),
    ("sessions::LIST_OF_USER", SESSIONS),
    ("upstream_sessions::END", 3),
    ("upstream_sessions::OF_SESSION", 1),
    ("upstream_sessions::OF_SUBJECT", SESSIONS),
    ("users::CHANGE_PASSWORD", CALLS),
    ("user_list::LIST", 100),
    ("user_list::REVOKE", CALLS),
    ("users::SET_PASSWORD", CALLS),
];

/// Those of commands, which plan otherwise than requests.
const LISTS_OF_COMMANDS: [&str; 3] = ["grants::LIST", "sessions::LIST", "user_list::LIST"];

/// Calls that are due.
const DUE: i64 = 50;

/// Statements that no request runs but those of administrators, which read many rows: commands of
/// operators, changes of the registry, upkeep, and what a process reads at its start.
const ELSEWHERE: &str = "
    people_list::COUNT people_list::COUNT_MEMBERS people_list::EVERYBODY_BEFORE people_list::EVERYBODY_BEHIND people_list::FIND
    people_list::MEMBERS_BEFORE people_list::MEMBERS_BEHIND
    catalogue_changes::UPSERT_ROLE role_removal::CLIENTS_THAT_ASK role_removal::MEMBERS role_removal::TAKE_FROM_SOME
    applications::COUNT_GRANTS applications::LIST_APPLICATIONS applications::NOTE_USES audit_log::LIST
    audit_events::CHAIN_ENDS audit_events::COMMAND_HEADS audit_list::LIST
    audit_events::EXPIRED_CHAIN audit_events::REMOVE_CHAIN
    audit_list::UNDER_WAY user_changes::ADD_APP
    sealed_factors::DROP sealed_factors::LIST_SEALED sealed_factors::RESEAL
    catalogue_changes::ERASE_ENTRY_SECRET catalogue::LOAD catalogue::LOOK_UP catalogue_changes::REMOVE_ENTRY
    catalogue_changes::UPSERT_ENTRY clients::LONGEST_LIFETIMES clients::NAMES_AND_ORIGINS
    client_changes::PUT_CLIENT_SECRETS client_changes::PUT_RESOURCE_SECRETS client_changes::REMOVE_CLIENTS
    client_changes::REMOVE_CLIENT_SECRETS client_changes::REMOVE_RESOURCE_SECRETS client_revocation::REVOKE_CLIENT
    client_changes::UPSERT_CLIENTS clients::WEAK_SETTINGS device_authorizations::CLEAN
    examination::COMMIT examination::EXAMINE folds::ALONE folds::CLEAR hourly_counts::COUNTS folds::DUE
    folds::FOLD folds::FORGET folds::NEWEST user_ends::DUE user_ends::EXPIRE user_ends::NOTE_TOLD
    user_list::DISABLE user_list::DORMANT flow_uses::LIST flow_uses::NOTE installation_changes::CREATE installation::FIND
    installation_changes::KEEP_LOWERED installation_changes::RENAME everything_revoked::REVOKE_EVERYTHING installation::SIZES
    identities::OWNERS identities::STRAY_SESSIONS schema::EFFECTS migrate::HAS_TABLE schema::INDEXES schema::INSERT
    migrate::LEVELS schema::TABLES schema::TRY_LOCK schema::UNLOCK partitions::LEAD
    partitions::LEAD_PATIENTLY partitions::LIST registry_writer::BUMP registry_writer::VERSION
    registry_writer::CALL_CLIENTS everything_revoked::CALL_REVOKED sign_in_failures::CLEAN
    sign_up_changes::END sign_up_changes::INSERT sign_up_changes::LIST
    signing_keys::INSERT_KEY signing_keys::LOAD signing_keys::REMOVE_KEY
    signing_keys::RESCHEDULE_KEY signing_keys::REWRAP_KEY tokens::FORGET_LASTING user_changes::ALL_USERS user_names::CLASHES
    user_names::FREE_KEYS user_names::KEY_NAMES
    user_changes::FIND_USERS user_names::FIND_USER_BY_NAME user_changes::REMOVED_SUBJECTS
    user_changes::REMOVE_USER user_changes::SUBJECTS_AMONG user_changes::TENANTS_OF_OTHERS
    user_changes::UPDATE_USER user_list::COUNT_SHARED users::USUAL_IMPORTED_HASH
    access::APPLICATIONS access::CALLED access::OPENERS roles::CAN_BE_GIVEN roles::HOLD roles::LIST roles::OPENED roles::TAKE";

/// What the statements are given: names of values, or of a module's or a statement's value. All are
/// of alice, of her session and of the first client.
const VALUES: &str = "
    sub='alice' client_id='app-1' username='filled-7' tenant='' by_address='true' issuer='https://upstream.example'
    upstream_issuer='https://upstream.example' upstream_subject='there-alice' subject='there-alice'
    provider='upstream' identity_provider='upstream' events='{}' event_day=day event_at=now() event_chain='c' event_seq='1'
    event_previous='x' event_hashes=ARRAY['a','b','c']::bytea[] event_names='{a,b,c}' event_client_id=NULL event_source=NULL event_request_id=NULL
    event_detail='{}' event_sub=NULL event_sid=NULL event_ending='x' acr='1' amr='{pwd}' scopes='{openid,profile}'
    granted_scopes='{openid}' resources='{}' claims='{}' attempt='x' expires_at='2100-01-01' issued_at=now()
    auth_time=now() created_at=now() signed_in_at=now() consent_epoch='0' offline='false' token_claims='{}' burn='false' presented='0' confirmation=NULL bind_to=NULL
    reuse='false' window='30' letter='x' address='filled-8@example.com' domain=NULL roles='{}' uses='5' tenants='{\"\"}' expires_after=now() used_after='2000-01-01' acrs=NULL limit='100'
    kind='passkey' jti=sha256(int4send(4)) jti_hash=sha256('new') whom=sha256('whom')
    logouts=ARRAY[sha256('a'),sha256('b')] left_at=now() way=sha256('way') source='::1' user_agent='browser'
    upstream_id_token=NULL id=sha256('passkeyalice') sign_count='0' next_sign_count='1' forgotten=ARRAY[sha256(int4send(7))]
    bucket=sha256(int4send(7)) step='1' with_codes='true' factors='0' strongest='2' password_hash='x' user_handle='x'
    ends_all_else='true' replaces_all='false' ids='{}' kinds='{}' names='{}' secrets='{}' public_keys='{}' sign_counts='{}' last_steps='{}'
    backups='{}' is_required='true' kept_epoch='0' asked_scopes='{}' device_code_hash='x' user_code_hash='y' most='100' acr_values=NULL interval='5'
    lifetime='600' ends_lapsed_consent='true' allowed='true' said='{}' usable_issuers=NULL
    told='true' again='false' tries='0' unless_after='2000-01-01' enabled='true' new='y' old='x'
    verified=NULL typed='filled-7' valid_until=NULL accounts_for=NULL
    after_sid='' after='' seq='0' chain=''
    buckets=ARRAY[sha256(int4send(1)),sha256(int4send(2))] windows='{60,60}'
    device_code_hashes=ARRAY[sha256(int4send(1)),sha256(int4send(2))]
    user_code_hashes=ARRAY[sha256(int4send(-1)),sha256(int4send(-2))]
    device_authorizations::client_id='device-1'
    device_authorizations::day=grants::day device_authorizations::id='0123456789abcdef'
    authenticators::USE_RECOVERY_CODE::id=sha256('recovery_codealice') authenticators::REMOVE::id=sha256('totpalice')
    linked_identities::PROVISION::sub='new' linked_identities::LINK::upstream_subject='new'
    linked_identities::PROVISION::upstream_subject='new'
    grants::REDEEM::id='0123456789abcdef' grants::LIST::sub=NULL grants::LIST::client_id=NULL after_day='-2147483648' after_id=''
    sessions::INSERT::sid='new' sessions::INSERT::handle_hash=sha256('new') sessions::RENEW::handle_hash=sha256('new')
    sessions::BIND::key=sha256('key') sessions::LIST::sub=NULL users::CHANGE_PASSWORD::handle_hash=sha256('new') authenticators::handle_hash=sha256('new')
    user_changes::INSERT::sub='new' user_changes::INSERT::username='new' users::REHASH::sub='filled-2' sign_up_links::id='0123456789abcdef'
    sign_up_links::JOIN::sub='new' sign_up_links::JOIN::username='new' sign_up_links::JOIN::address='new@example.com'
    typed='filled-77' users::FIND_BY_NAME_OR_ADDRESS::typed='filled-8@example.com'
    pardon=sha256('pardon') lock=sha256('lock') account_and_source=sha256(int4send(1)) sign_in_failures::source=sha256(int4send(2))
    invitations::subs='{new-1,new-2}' invitations::usernames='{new-1,new-2}' invitations::claims=ARRAY['{}','{}']::jsonb[] invitations::ends='{NULL,NULL}' invitations::names='{filled-7}' invitations::sub='' admin_people::CHANGE_PERSON::username='alice' subs='{alice}'
    admin='boss' admin_role='office' given_roles='{}' ends_all='true' drops_factors='true'
    reach='{\"\"}' skipped='0' version=NULL external_id=NULL email=NULL active=NULL user_name='filled-7' scim_users::LOOK_UP::id=NULL
    scim_users::PAGE::sub='' scim_users::INSERT_SCIM::sub='new' scim_users::INSERT_SCIM::username='new'
    aaguids='{}' browser=sha256('browser') address_hash=sha256('') stands='true' role='office'
    tokens::REVOKE::jti=sha256('new') tokens::REVOKE_LASTING::jti=sha256('new') upstream_sessions::issuer='https://upstream.example'";

/// What a statement read of one table.
#[derive(Default)]
struct ReadOfTable {
    rows: i64,
    partitions: BTreeSet<String>,
}

impl ReadOfTable {
    fn is_partitioned(&self) -> bool {
        let mut names = self.partitions.iter();
        names.any(|name| name.ends_with(|letter: char| letter.is_ascii_digit()))
    }
}

/// By table.
type Read = BTreeMap<String, ReadOfTable>;

fn add(read: &mut Read, node: &Value) {
    let figure = |name: &str| node[name].as_f64().unwrap_or(0.0);
    let loops = figure("Actual Loops");
    if let Some(relation) = node["Relation Name"].as_str()
        && node["Node Type"] != "ModifyTable"
        && loops > 0.0
    {
        let each = figure("Actual Rows")
            + figure("Rows Removed by Filter")
            + figure("Rows Removed by Index Recheck");
        let is_of_days = |letter: char| letter.is_ascii_digit() || letter == '_';
        let table = relation.trim_end_matches(is_of_days).to_owned();
        let of_table = read.entry(table).or_default();
        of_table.rows += (each * loops).ceil() as i64;
        of_table.partitions.insert(relation.to_owned());
    }
    for below in node["Plans"].as_array().into_iter().flatten() {
        add(read, below);
    }
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split_whitespace().collect()
}

#[test]
fn each_statement_is_known_as_one_of_requests_or_not() {
    let mut known: Vec<&str> = [REQUESTS, WRITES, ELSEWHERE]
        .iter()
        .flat_map(|names| words(names))
        .chain(LISTS.map(|(name, _)| name))
        .collect();
    known.sort_unstable();
    let all = all_queries();
    let all: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    let but = |of: &[&str], others: &[&str]| {
        let mut rest = of.to_vec();
        rest.retain(|name| !others.contains(name));
        rest.join(" ")
    };
    let unnamed = but(&all, &known);
    assert!(
        unnamed.is_empty(),
        "in which of the four lists belongs {unnamed}?"
    );
    let gone = but(&known, &all);
    assert!(gone.is_empty(), "there is no {gone}");
    assert_eq!(known.len(), all.len(), "one is named twice");
}

#[test]
fn a_request_reads_the_rows_that_it_needs_of_one_partition_of_each_table() {
    reads_what_requests_need(Filled::new(), |_| true);
}

/// Every few days a partition begins, empty when its first statements are planned. Postgres counts
/// its rows up to a minute later. Other tables are empty but once.
#[test]
fn a_plan_that_was_made_over_empty_partitions_reads_no_more() {
    reads_what_requests_need(Filled::after_planning(), ReadOfTable::is_partitioned);
}

fn reads_what_requests_need(mut filled: Filled, is_judged: fn(&ReadOfTable) -> bool) {
    let mut too_much = Vec::new();
    for (name, sql) in queries_of_requests() {
        let is_write = words(WRITES).contains(name.as_str());
        let mut read = filled.read(&name, &sql);
        let rows = rows_of(&read);
        // A statement that found nothing would show nothing.
        assert_eq!(rows == 0, is_write, "{name} reads {rows} rows");
        read.retain(|_, of_table| is_judged(of_table));
        let rows = rows_of(&read);
        for (table, of_table) in &read {
            if rows > MOST_ROWS || of_table.partitions.len() > 1 {
                let partitions = of_table.partitions.len();
                too_much.push(format!(
                    "{name}: {} rows of {table}, {partitions} partitions",
                    of_table.rows
                ));
            }
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
}

fn rows_of(read: &Read) -> i64 {
    read.values().map(|of_table| of_table.rows).sum()
}

fn queries_of_requests() -> Vec<(String, String)> {
    let of_requests = &words(REQUESTS) | &words(WRITES);
    let mut queries = all_queries();
    queries.retain(|(name, _)| of_requests.contains(name.as_str()));
    queries
}

#[test]
fn a_list_reads_what_it_shows_and_little_more() {
    let mut filled = Filled::new();
    let mut too_much = Vec::new();
    for (name, sql) in all_queries() {
        let Some((_, shown)) = LISTS.iter().find(|(list, _)| *list == name) else {
            continue;
        };
        let is_of_command = LISTS_OF_COMMANDS.contains(&name.as_str());
        let settings = [serving_settings(), operator_settings()];
        let settings = settings[..1 + usize::from(is_of_command)].concat();
        filled.client.batch_execute(&settings).unwrap();
        let read = filled.read(&name, &sql);
        let most = read.values().map(|of_table| of_table.rows).max();
        // It found what it is measured by.
        assert!(most >= Some(shown * 9 / 10), "{name}: {most:?} rows");
        for (table, of_table) in &read {
            if of_table.rows > shown + MOST_ROWS {
                too_much.push(format!("{name}: {} rows of {table}", of_table.rows));
            }
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
}

/// Nothing is due when Postgres counts, and everybody is signed out afterwards.
#[test]
fn thousands_of_calls_that_became_due_at_once_are_read_a_thousand_at_a_time() {
    let mut filled = Filled::new();
    filled
        .client
        .batch_execute(
            "UPDATE session_clients SET due_at = NULL;
             ANALYZE session_clients;
             UPDATE session_clients SET due_at = clock_timestamp()",
        )
        .unwrap();
    let queries = all_queries();
    let (name, sql) = queries
        .iter()
        .find(|(name, _)| name == "session_clients::TAKE")
        .unwrap();
    let read = filled.read(name, sql);
    let rows = read["session_clients"].rows;
    // Each of the hundred is read again when it is taken, and when it is written.
    assert!((1_000..=1_200 + MOST_ROWS).contains(&rows), "{rows} rows");
}

#[test]
fn a_command_reads_the_sessions_of_the_user_whom_it_names_and_no_others() {
    let mut filled = Filled::new();
    filled.client.batch_execute(&operator_settings()).unwrap();
    filled.values.insert(
        String::from("sessions::LIST::sub"),
        String::from("'filled-1'"),
    );
    let queries = all_queries();
    let (name, sql) = queries
        .iter()
        .find(|(name, _)| name == "sessions::LIST")
        .unwrap();
    let read = filled.read(name, sql);
    let rows = read["sessions"].rows;
    assert!((1..=MOST_ROWS).contains(&rows), "{rows} rows");
}

/// A filled database, and what its statements are given.
struct Filled {
    client: Client,
    values: BTreeMap<String, String>,
    /// The plans that were made before it was filled, by statement: what Postgres said that they
    /// cost.
    planned: BTreeMap<String, f64>,
    _database: TestDatabase,
}

impl Filled {
    fn new() -> Filled {
        let database = TestDatabase::migrated();
        let client = serving_client(&database);
        Filled::of(database, client, BTreeMap::new())
    }

    /// Postgres has planned what requests run, and will not count rows.
    fn after_planning() -> Filled {
        let database = TestDatabase::migrated();
        // What fills the database makes temporary tables. The first one of a database has Postgres
        // plan everything anew, so it is made before.
        database.run(
            "CREATE TEMPORARY TABLE early ();
             DO $$ DECLARE own regclass; BEGIN
                 FOR own IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace LOOP
                     EXECUTE 'ALTER TABLE ' || own || ' SET (autovacuum_enabled = off)';
                 END LOOP;
             END $$",
        );
        let mut client = serving_client(&database);
        let mut planned = BTreeMap::new();
        for (name, sql) in queries_of_requests() {
            let values = listed(all_values(&name).iter().map(|_| "NULL"));
            client
                .batch_execute(&format!("PREPARE \"{name}\" AS {sql}"))
                .unwrap();
            let explain = format!("EXPLAIN (FORMAT JSON) EXECUTE \"{name}\"{values}");
            let plan: Value = client.query_one(&explain, &[]).unwrap().get(0);
            planned.insert(name, cost(&plan));
        }
        Filled::of(database, client, planned)
    }

    fn of(database: TestDatabase, mut client: Client, planned: BTreeMap<String, f64>) -> Filled {
        database.run(
            "INSERT INTO users (sub, username, username_key) VALUES ('alice', 'alice', 'alice');
             INSERT INTO clients (client_id, metadata, enabled, origins)
             SELECT 'app-' || n, '{\"require_consent\": true}', true, '{}' FROM generate_series(1, 3) AS n",
        );
        let mut fill = format!(
            "{FILLED};
             UPDATE session_clients SET due_at = clock_timestamp() WHERE (day, sid, client_id) IN (
                 SELECT day, sid, client_id FROM session_clients WHERE sub <> 'alice' LIMIT {DUE});
             ANALYZE session_clients"
        );
        if !planned.is_empty() {
            // Counting would have Postgres plan anew. This does nothing.
            fill = fill.replace("ANALYZE", "EXPLAIN TABLE");
        }
        database.run(&fill);
        Filled {
            values: values(&mut client),
            client,
            planned,
            _database: database,
        }
    }

    /// Runs a statement by its generic plan, and takes it back.
    fn read(&mut self, name: &str, sql: &str) -> Read {
        let (module, _) = name.split_once("::").unwrap();
        let given = all_values(name);
        let values = listed(given.iter().map(|value| {
            let of_statement = self.values.get(&format!("{name}::{value}"));
            let of_module = || self.values.get(&format!("{module}::{value}"));
            let found = of_statement.or_else(of_module).or(self.values.get(value));
            found
                .unwrap_or_else(|| panic!("{name}: what is :{value}?"))
                .as_str()
        }));
        let mut transaction = self.client.transaction().unwrap();
        let planned = self.planned.get(name);
        if planned.is_none() {
            transaction
                .batch_execute(&format!("PREPARE \"{name}\" AS {sql}"))
                .unwrap();
        }
        let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE \"{name}\"{values}");
        let explained = transaction.query_one(&explain, &[]);
        let plan: Value = explained
            .unwrap_or_else(|error| panic!("{name}: {error:?}"))
            .get(0);
        transaction.rollback().unwrap();
        if let Some(planned) = planned {
            assert_eq!(cost(&plan), *planned, "{name} was planned anew");
        } else {
            let forget = format!("DEALLOCATE \"{name}\"");
            self.client.batch_execute(&forget).unwrap();
        }
        let mut read = Read::default();
        add(&mut read, &plan[0]["Plan"]);
        read
    }
}

/// One that plans as serving processes do.
fn serving_client(database: &TestDatabase) -> Client {
    let mut client = database.client();
    client.batch_execute(&serving_settings()).unwrap();
    client
}

fn cost(plan: &Value) -> f64 {
    plan[0]["Plan"]["Total Cost"].as_f64().unwrap()
}

/// Values of a prepared statement; in brackets, if there are any.
fn listed<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let values: Vec<&str> = values.collect();
    match values.is_empty() {
        true => String::new(),
        false => format!("({})", values.join(", ")),
    }
}

fn values(client: &mut Client) -> BTreeMap<String, String> {
    let facts = "
        SELECT s.day AS session_day, s.day, s.day AS expires_on, s.day AS way_day, s.day AS left_on, s.sid, s.sid AS kept,
               s.handle_hash, s.upstream_sid,
               ARRAY[s.sid] AS sids, ARRAY[s.day] AS days,
               g.day AS grant_day, g.day AS \"grants::day\", g.id AS grant_id, g.id AS \"grants::id\",
               (SELECT u.xmin::text FROM users u WHERE u.sub = s.sub) AS \"admin_people::version\",
               (SELECT u.xmin::text FROM users u WHERE u.sub = s.sub) AS \"linked_identities::version\",
               s.user_epoch, s.user_epoch AS epoch, g.client_epoch, g.installation_epoch
        FROM sessions s JOIN grants g ON g.sub = s.sub
        WHERE s.sub = 'alice' AND s.upstream_subject = 'there-alice' AND g.client_id = 'app-1' AND g.offline
        ORDER BY s.day, s.sid LIMIT 1";
    let row = client
        .query_one(&format!("SELECT to_jsonb(f) FROM ({facts}) AS f"), &[])
        .unwrap();
    let facts: BTreeMap<String, Value> = serde_json::from_value(row.get(0)).unwrap();
    let mut values = BTreeMap::new();
    for (name, value) in facts {
        let text = match value {
            Value::String(text) => text,
            other => other.to_string().replace('[', "{").replace(']', "}"),
        };
        values.insert(name, format!("'{text}'"));
    }
    for pair in VALUES.split_whitespace() {
        let (name, value) = pair.split_once('=').unwrap();
        let value = values.get(value).map_or(value, String::as_str).to_owned();
        values.insert(name.to_owned(), value);
    }
    values
}
