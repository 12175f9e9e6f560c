//! The statements of codes, refresh tokens and revocations, as functions of a row in memory. A test
//! of the service, `statements_as_modelled`, gives them and the functions of `store/grants.rs` the
//! same rows, those of `cases.rs`, and wants the same answers and the same rows after that.

use gatepost::protocol::token::grant::Grant;
use gatepost::protocol::token::refresh_token::Within;

/// Small, since there are hundreds of thousands of worlds: 0 is what everything begins at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EpochsHeld {
    pub installation: u8,
    pub client: u8,
    pub user: u8,
    pub consent: u8,
}

/// `grants`: what changes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GrantRow {
    pub epochs: EpochsHeld,
    pub generation: u8,
    pub moved: Moved,
    pub attempt: u8,
    pub revoked: bool,
}

/// `moved_at`: within the retry window, before that, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    Never,
    LongAgo,
    JustNow,
}

/// `CodeRedemption`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedemptionAnswer {
    Issued,
    Replayed,
    ReplayedAgain,
    NoLongerStands,
}

/// `Refreshed`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefreshAnswer {
    Issued { generation: u8 },
    Revoked,
    NoLongerStands,
}

/// One request's use of a statement: its own number, and what its snapshot said of the joined rows.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub attempt: u8,
    pub stands: bool,
}

/// `REDEEM`, also of a code that is burnt.
pub fn redeem(
    row: &mut Option<GrantRow>,
    epochs: EpochsHeld,
    burn: bool,
    sent: Sent,
) -> RedemptionAnswer {
    let own = match row {
        None => {
            *row = Some(GrantRow {
                epochs,
                generation: 0,
                moved: Moved::Never,
                attempt: sent.attempt,
                revoked: burn || !sent.stands,
            });
            true
        }
        Some(row) if row.attempt == sent.attempt => true,
        Some(row) if row.revoked => return RedemptionAnswer::ReplayedAgain,
        Some(row) => {
            row.revoked = true;
            false
        }
    };
    match own && row.is_some_and(|row| !row.revoked) {
        true => RedemptionAnswer::Issued,
        false if own && !sent.stands => RedemptionAnswer::NoLongerStands,
        false => RedemptionAnswer::Replayed,
    }
}

/// `MOVE_ON`: whether it moved the grant.
pub fn move_on(row: &mut Option<GrantRow>, presented: u8, is_within: bool, sent: Sent) -> bool {
    let Some(row) = row else { return false };
    let moves = sent.stands
        && is_within
        && row.generation == presented
        && row.attempt != sent.attempt
        && !row.revoked;
    if moves {
        to_the_next(row, sent.attempt);
    }
    moves
}

fn to_the_next(row: &mut GrantRow, attempt: u8) {
    row.generation += 1;
    row.moved = Moved::JustNow;
    row.attempt = attempt;
}

/// `REFRESH`
pub fn refresh(row: &mut Option<GrantRow>, presented: u8, sent: Sent) -> Option<RefreshAnswer> {
    let row = row.as_mut()?;
    let is_repeated = row.generation == presented + 1
        && (row.attempt == sent.attempt || row.moved == Moved::JustNow);
    if row.generation > presented && !is_repeated {
        row.revoked = true;
    }
    if !row.revoked && sent.stands && row.generation == presented {
        to_the_next(row, sent.attempt);
    }
    let is_behind = row.attempt != sent.attempt && row.generation <= presented;
    Some(match row.revoked {
        true => RefreshAnswer::Revoked,
        false if sent.stands && !is_behind => RefreshAnswer::Issued {
            generation: row.generation,
        },
        false => RefreshAnswer::NoLongerStands,
    })
}

/// `REVOKE`: whether there was a live one.
pub fn revoke(row: &mut Option<GrantRow>) -> bool {
    let live = row.as_mut().filter(|row| !row.revoked);
    live.map(|row| row.revoked = true).is_some()
}

/// What `MOVE_ON` compares the row with.
pub fn is_within(grant: &Grant, within: &Within<'_>) -> bool {
    let tenant = grant.user.tenant.as_ref().map_or("", |name| name.as_str());
    let acr = grant.user.acr.as_str();
    grant.is_offline()
        && grant.scope.iter().all(|name| within.scopes.contains(&name))
        && within.tenants.contains(&tenant)
        && grant.expires_at > within.expires_after
        && grant.last_used_at > within.used_after
        && within.acrs.as_ref().is_none_or(|acrs| acrs.contains(&acr))
        && (grant.confirmation.is_none() || grant.confirmation == within.confirmation)
}
