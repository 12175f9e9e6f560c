//! The statements of `tests/interleavings`, which are functions of a row in memory, and those of
//! `store/grants.rs` say the same of every row, and leave the same row.

use std::time::Duration;

use gatepost::protocol::token::grant::Grant;
use gatepost::protocol::token::refresh_token::{RefreshHandle, Within};
use gatepost::protocol::words::identifiers::ClientId;
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::scope::ScopeSet;
use gatepost::store::audit_events::AuditEvent;
use gatepost::store::grants::{self, CodeRedemption, NewRefresh, Refreshed};
use postgres::Client;

use crate::store_grants::{Scene, client_id, scene};
use crate::support::tables::rows_of;

#[path = "../interleavings/cases.rs"]
mod cases;
#[path = "../interleavings/statements.rs"]
mod statements;

use cases::{Answer, OWN, Statement, every_case};
use statements::{EpochsHeld, GrantRow, Moved, RedemptionAnswer, RefreshAnswer, Sent, is_within};

const WINDOW: Duration = Duration::from_secs(30);

/// What a grant stands on: how it ends, how that is undone, and who sees that it has ended.
const GROUNDS: &str = "
    nothing                  |                                                  |                                            | nobody
    the user's epoch         | UPDATE users SET epoch = epoch + 1               | UPDATE users SET epoch = epoch - 1         | both
    the user                 | UPDATE users SET enabled = false                 | UPDATE users SET enabled = true            | both
    the client's epoch       | UPDATE clients SET epoch = epoch + 1             | UPDATE clients SET epoch = epoch - 1       | both
    the consent's epoch      | INSERT INTO consents (sub, client_id, scopes, claims, epoch) \
                                SELECT sub, client_id, '{}', '{}', 1 FROM users, clients | DELETE FROM consents            | both
    the installation's epoch | UPDATE installation SET epoch = epoch + 1        | UPDATE installation SET epoch = epoch - 1  | both
    the session              | UPDATE sessions SET ended_at = clock_timestamp() | UPDATE sessions SET ended_at = NULL        | a redemption
";

struct Postgres {
    scene: Scene,
    /// One connection, since there are thousands of statements.
    database: Client,
    grant: Grant,
}

impl Postgres {
    fn new() -> Postgres {
        let scene = scene();
        let grant = Grant {
            scope: ScopeSet::parse("openid offline_access").unwrap(),
            ..scene.grant()
        };
        let entered = grants::redeem(&scene.store, &grant, [9; 16], &AuditEvent::default());
        assert!(matches!(entered, Ok(CodeRedemption::Issued(_))));
        let mut database = scene.database.client();
        let kept = "CREATE TABLE kept AS SELECT * FROM grants";
        database.batch_execute(kept).unwrap();
        Postgres {
            scene,
            database,
            grant,
        }
    }

    fn run(&mut self, sql: &str) {
        self.database.batch_execute(sql).unwrap();
    }

    fn put(&mut self, row: Option<GrantRow>) {
        self.run("DELETE FROM grants");
        let Some(row) = row else { return };
        let moved_at = match row.moved {
            Moved::Never => "NULL",
            Moved::LongAgo => "clock_timestamp() - interval '31 seconds'",
            Moved::JustNow => "clock_timestamp()",
        };
        let revoked_at = match row.revoked {
            true => "clock_timestamp()",
            false => "NULL",
        };
        self.run(&format!(
            "INSERT INTO grants SELECT * FROM kept;
             UPDATE grants SET generation = {}, moved_at = {moved_at}, revoked_at = {revoked_at},
                               attempt = decode(repeat('0{}', 16), 'hex')",
            row.generation, row.attempt
        ));
    }

    fn row(&mut self) -> Option<GrantRow> {
        let found = "SELECT generation, moved_at IS NULL, moved_at > clock_timestamp() - interval '30 seconds',
                            get_byte(attempt, 0), revoked_at IS NOT NULL FROM grants";
        let row = self.database.query_opt(found, &[]).unwrap()?;
        Some(GrantRow {
            epochs: EpochsHeld::default(),
            generation: row.get::<_, i32>(0).try_into().unwrap(),
            moved: match (row.get(1), row.get(2)) {
                (true, _) => Moved::Never,
                (false, Some(true)) => Moved::JustNow,
                (false, _) => Moved::LongAgo,
            },
            attempt: row.get::<_, i32>(3).try_into().unwrap(),
            revoked: row.get(4),
        })
    }

    fn answer(&self, statement: Statement) -> Answer {
        let event = AuditEvent::default();
        let attempt = [OWN; 16];
        let store = &self.scene.store;
        let grant = &self.grant;
        match statement {
            Statement::Redeem { burn: false } => Answer::Redeemed(
                match grants::redeem(store, grant, attempt, &event).unwrap() {
                    CodeRedemption::Issued(_) => RedemptionAnswer::Issued,
                    CodeRedemption::Replayed => RedemptionAnswer::Replayed,
                    CodeRedemption::ReplayedAgain => RedemptionAnswer::ReplayedAgain,
                    CodeRedemption::NoLongerStands => RedemptionAnswer::NoLongerStands,
                },
            ),
            Statement::Redeem { burn: true } => {
                Answer::Burnt(grants::burn(store, grant, attempt, &event).unwrap())
            }
            Statement::MoveOn { presented } => {
                Answer::Moved(self.moves(presented, &everything(grant)))
            }
            Statement::Refresh { presented } => {
                let new = self.refresh(presented);
                let refreshed = grants::refresh(store, &new.of(&client_id()), &event).unwrap();
                Answer::Refreshed(refreshed.map(|refreshed| match refreshed {
                    Refreshed::Issued { generation, .. } => RefreshAnswer::Issued {
                        generation: generation.try_into().unwrap(),
                    },
                    Refreshed::Revoked => RefreshAnswer::Revoked,
                    Refreshed::NoLongerStands => RefreshAnswer::NoLongerStands,
                }))
            }
            Statement::Revoke => {
                let revoked = grants::revoke(store, grant.id, None, &event);
                Answer::Revoked(revoked.unwrap())
            }
        }
    }
}

/// A refresh that has what it names.
struct Presented {
    handle: RefreshHandle,
}

impl Presented {
    fn of<'a>(&self, client_id: &'a ClientId) -> NewRefresh<'a> {
        NewRefresh {
            handle: self.handle,
            client_id,
            attempt: [OWN; 16],
            reuse: false,
            retry_window: WINDOW,
            bind_to: None,
        }
    }
}

impl Postgres {
    fn refresh(&self, presented: u8) -> Presented {
        Presented {
            handle: RefreshHandle {
                grant: self.grant.id,
                generation: presented.into(),
            },
        }
    }

    fn moves(&self, presented: u8, within: &Within<'_>) -> bool {
        let new = self.refresh(presented);
        let event = AuditEvent::default();
        grants::move_on(&self.scene.store, &new.of(&client_id()), within, &event)
            .unwrap()
            .is_some()
    }
}

type Narrowing = fn(&mut Within<'_>, Instant);

/// What the grant is within.
fn everything(grant: &Grant) -> Within<'static> {
    Within {
        in_session: false,
        scopes: vec!["openid", "offline_access", "profile"],
        tenants: vec!["acme", ""],
        expires_after: grant.issued_at,
        used_after: grant.issued_at.minus(Duration::from_secs(86_400)),
        acrs: Some(vec!["1", "2"]),
        confirmation: None,
    }
}

#[test]
fn postgres_answers_each_case_as_the_statement_in_memory_does_and_leaves_the_same_row() {
    let mut postgres = Postgres::new();
    for [what, done, undone, seen_by] in rows_of(GROUNDS) {
        postgres.run(done);
        for (before, statement) in every_case() {
            let is_seen = match statement {
                Statement::Redeem { .. } => seen_by != "nobody",
                _ => seen_by == "both",
            };
            let sent = Sent {
                attempt: OWN,
                stands: !is_seen,
            };
            let mut row = before;
            let answer = statement.run(&mut row, sent);
            postgres.put(before);
            let found = (postgres.answer(statement), postgres.row());
            let case = format!("{statement:?} comes to {before:?}, and {what} has ended");
            assert_eq!(found, (answer, row), "{case}");
        }
        postgres.run(undone);
    }
}

#[test]
fn move_on_compares_the_row_with_all_that_it_is_within() {
    let mut postgres = Postgres::new();
    let grant = postgres.grant.clone();
    let live = GrantRow {
        epochs: EpochsHeld::default(),
        generation: 0,
        moved: Moved::Never,
        attempt: 2,
        revoked: false,
    };
    let later = |seconds| grant.issued_at.plus(Duration::from_secs(seconds));
    let changes: [(bool, Narrowing); 6] = [
        (true, |_, _| {}),
        (false, |within, _| within.scopes = vec!["offline_access"]),
        (false, |within, _| within.tenants = vec!["acme"]),
        (false, |within, end| within.expires_after = end),
        (false, |within, end| within.used_after = end),
        (false, |within, _| within.acrs = Some(vec!["2"])),
    ];
    for (number, (moves, change)) in changes.into_iter().enumerate() {
        let mut within = everything(&grant);
        change(&mut within, later(30 * 86_400));
        postgres.put(Some(live));
        assert_eq!(is_within(&grant, &within), moves, "{number}");
        assert_eq!(postgres.moves(0, &within), moves, "{number}");
    }
}
