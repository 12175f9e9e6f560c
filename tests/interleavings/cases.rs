//! Every row of a grant, and every statement that may come to it. A test of the service has
//! Postgres answer them, too.

use super::statements::{
    EpochsHeld, GrantRow, Moved, RedemptionAnswer, RefreshAnswer, Sent, move_on, redeem, refresh,
    revoke,
};

/// The number of the request that a case is about.
pub const OWN: u8 = 1;
const ANOTHERS: u8 = 2;

#[derive(Clone, Copy, Debug)]
pub enum Statement {
    Redeem { burn: bool },
    MoveOn { presented: u8 },
    Refresh { presented: u8 },
    Revoke,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    Redeemed(RedemptionAnswer),
    /// Only whether something was left to spend or to revoke is told.
    Burnt(bool),
    Moved(bool),
    Refreshed(Option<RefreshAnswer>),
    Revoked(bool),
}

impl Statement {
    pub fn run(self, row: &mut Option<GrantRow>, sent: Sent) -> Answer {
        let epochs = EpochsHeld::default();
        match self {
            Statement::Redeem { burn: false } => Answer::Redeemed(redeem(row, epochs, false, sent)),
            Statement::Redeem { burn: true } => {
                let answer = redeem(row, epochs, true, sent);
                Answer::Burnt(answer != RedemptionAnswer::ReplayedAgain)
            }
            Statement::MoveOn { presented } => Answer::Moved(move_on(row, presented, true, sent)),
            Statement::Refresh { presented } => Answer::Refreshed(refresh(row, presented, sent)),
            Statement::Revoke => Answer::Revoked(revoke(row)),
        }
    }
}

/// Every row before, and each statement that may come to it.
pub fn every_case() -> Vec<(Option<GrantRow>, Statement)> {
    let mut rows = vec![None];
    for generation in 0..3 {
        for moved in [Moved::Never, Moved::LongAgo, Moved::JustNow] {
            for attempt in [OWN, ANOTHERS] {
                for revoked in [false, true] {
                    rows.push(Some(GrantRow {
                        epochs: EpochsHeld::default(),
                        generation,
                        moved,
                        attempt,
                        revoked,
                    }));
                }
            }
        }
    }
    let mut statements = vec![
        Statement::Redeem { burn: false },
        Statement::Redeem { burn: true },
        Statement::Revoke,
    ];
    for presented in 0..3 {
        statements.push(Statement::MoveOn { presented });
        statements.push(Statement::Refresh { presented });
    }
    let mut cases = Vec::new();
    for row in rows {
        cases.extend(statements.iter().map(|statement| (row, *statement)));
    }
    cases
}
