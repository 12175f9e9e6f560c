//! One world: the primary and its standby, three requests, and what an observer outside knows.

use crate::statements::{EpochsHeld, GrantRow, Moved, RedemptionAnswer};

/// A "line" is what comes of one sign-in at the client: the code, its grant, the tokens of it. The
/// first is there at the beginning; a sign-in may add another.
pub const LINES: usize = 2;
pub const REQUESTS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub primary: Rows,
    /// An earlier state of the primary, or the same.
    pub standby: Rows,
    /// In the order in which they came.
    pub running: [Option<Running>; REQUESTS as usize],
    /// How many have come.
    pub came: u8,
    pub crash: Crash,
    /// Whether more time than the retry window has passed.
    pub is_later: bool,
    pub scope: GrantScope,
    /// Whether the grant is bound to a key, since its first refresh: whoever sends the refresh
    /// token from before that has no proof of it, and everybody else has.
    pub is_bound: bool,
    pub cast: Cast,
    pub lines: [Line; LINES],
    /// Somebody was told that the first session has ended.
    pub session_is_over: bool,
    /// Something has been done that may end it.
    pub session_may_end: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrantScope {
    /// `offline_access`: with refresh tokens, and beyond its session.
    Offline,
    Online,
}

/// What may come: all of it in every run would take minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cast {
    Whole,
    /// No sign-in by password, and no other `code_verifier`; neither the client's epoch nor the
    /// installation's. Where the grant outlives its session, nothing of sessions or consents: to
    /// one grant the four epochs are alike.
    Shorter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crash {
    ToCome,
    Past,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rows {
    /// Of `installation`, `clients`, `users`, `consents`.
    pub epochs: EpochsHeld,
    /// Of each line's own sign-in.
    pub sessions: [SessionRow; LINES],
    pub grants: [Option<GrantRow>; LINES],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SessionRow {
    #[default]
    Absent,
    Begun,
    Ended,
}

/// What an observer knows of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Line {
    /// Its user was read.
    pub has_begun: bool,
    pub code: Option<Code>,
    pub over: Over,
    /// Something has been done that may end it: an ending, a replay, a wrong `code_verifier`.
    pub may_end: bool,
    pub gave_tokens: bool,
    /// How often its code was sent, up to 2.
    pub presented: u8,
    /// Refresh tokens that somebody has: the generations below this one.
    pub handed_out: u8,
    /// Refresh tokens below this one may no longer be repeated: the successor was used.
    pub closed_below: u8,
    /// Whoever sends a refresh token below this one replays it.
    pub replay_below: u8,
}

/// Sealed; nothing is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    pub epochs: EpochsHeld,
    /// The line whose sign-in began its session.
    pub session: u8,
}

/// Whether somebody was told that a line has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Over {
    #[default]
    No,
    Acknowledged,
    /// A replay was answered as one.
    Replayed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    Redeem {
        line: u8,
        is_right: bool,
    },
    Refresh {
        line: u8,
        generation: u8,
        names_scope: bool,
    },
    SignIn,
    SingleSignOn,
    End(Ending),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Of `user revoke`; a new password, `user disable` and more draw the same epoch.
    User,
    Client,
    Consent,
    Installation,
    Session,
    Grant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Running {
    /// 1 to 3: names its attempt, and is the epoch that it draws.
    pub number: u8,
    pub request: Request,
    pub stage: Stage,
    /// What was known of its line when it came.
    pub over_before: Over,
    /// What it sends had been used up when it came.
    pub is_replay: bool,
    /// How many lines had begun when its ending was committed.
    pub lines_before: u8,
}

/// Where a request is. One that never goes on is one whose process died, whose client went away, or
/// whose wait for the standby was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Is about to send it; for the first time, or once more with the same attempt.
    Sends(Statement),
    /// It has begun, and its joined rows are those of that moment: whether they `stand`.
    Begun { statement: Statement, stands: bool },
    /// `FIND` is next, and then `judge`.
    Finds,
    /// The answer waits until the standby has the commit.
    Committed {
        statement: Statement,
        answer: Answer,
        is_received: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    Redeem {
        burn: bool,
    },
    MoveOn,
    Refresh,
    /// Of a grant that was found revoked, so that whoever is refused can count on that.
    Revoke,
    /// Of a session. The user was read, and the password is right.
    Insert {
        epochs: EpochsHeld,
    },
    End,
}

impl Statement {
    /// `write_once_more`: it recognises its own commit, and is sent again where its answer was lost.
    pub fn is_repeated(self) -> bool {
        match self {
            Statement::Redeem { .. } | Statement::MoveOn | Statement::Refresh => true,
            Statement::Revoke | Statement::Insert { .. } | Statement::End => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Redeemed(RedemptionAnswer),
    /// With the refresh token of that generation.
    Refreshed {
        generation: u8,
    },
    /// `invalid_grant`
    Refused,
    SignedIn {
        epochs: EpochsHeld,
    },
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Comes(Request),
    /// The request of that number goes on.
    GoesOn(u8),
    /// What the primary has committed.
    StandbyReceives,
    /// More than the retry window.
    TimePasses,
    /// The crash: the standby takes the primary's place; what it did not have is lost.
    FailsOver,
    /// The crash: that connection breaks, before its statement or after its commit, which is kept.
    Breaks(u8),
}

/// Numbered as in docs/evidence/model.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    ACodeGivesTokensOnce = 1,
    AReplayEndsTheLine,
    WhatEndedIsNeverHonoured,
    NothingIssuedAfterAnEndingIsEndedByIt,
    ARepeatedRefreshGetsAnAnswerThatWorks,
    WhatWasAcknowledgedIsDurable,
    OnlyTheRightVerifierGetsTokens,
}

/// Whether something must be so.
pub fn keep(promise: Promise, holds: bool) -> Result<(), Promise> {
    if holds { Ok(()) } else { Err(promise) }
}

/// A code was given, before everything else.
pub fn with_code(scope: GrantScope) -> World {
    let rows = Rows {
        sessions: [SessionRow::Begun, SessionRow::Absent],
        ..Rows::default()
    };
    let first = Line {
        has_begun: true,
        code: Some(Code {
            epochs: EpochsHeld::default(),
            session: 0,
        }),
        ..Line::default()
    };
    World {
        primary: rows,
        standby: rows,
        running: [None; REQUESTS as usize],
        came: 0,
        crash: Crash::ToCome,
        is_later: false,
        scope,
        is_bound: false,
        cast: Cast::Whole,
        lines: [first, Line::default()],
        session_is_over: false,
        session_may_end: false,
    }
}

/// The code was redeemed, and the grant refreshed so often, the last time just now.
pub fn with_tokens(scope: GrantScope, generation: u8) -> World {
    let mut world = with_code(scope);
    world.cast = Cast::Shorter;
    let row = GrantRow {
        epochs: EpochsHeld::default(),
        generation,
        moved: match generation {
            0 => Moved::Never,
            _ => Moved::JustNow,
        },
        attempt: 0,
        revoked: false,
    };
    world.primary.grants[0] = Some(row);
    world.standby = world.primary;
    let line = &mut world.lines[0];
    line.gave_tokens = true;
    line.presented = 1;
    line.handed_out = match scope {
        GrantScope::Offline => generation + 1,
        GrantScope::Online => 0,
    };
    line.closed_below = generation.saturating_sub(1);
    line.replay_below = generation.saturating_sub(1);
    world
}

/// A thief had the first refresh token, and refreshed with a proof of a key, longer ago than the
/// retry window: the grant is bound to the thief's key, and the owner has the first token only.
pub fn with_tokens_of_a_thief() -> World {
    let mut world = with_tokens(GrantScope::Offline, 1);
    world.is_bound = true;
    world.is_later = true;
    for row in world.primary.grants.iter_mut().flatten() {
        row.moved = Moved::LongAgo;
    }
    world.standby = world.primary;
    let line = &mut world.lines[0];
    line.closed_below = 1;
    line.replay_below = 1;
    world
}
