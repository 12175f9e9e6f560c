//! Judgements that are bent, each in one way. A promise must break: what cannot fail shows nothing.

use gatepost::protocol::authorize::authorization_code::{AuthorizationCode, CodeVerdict};
use gatepost::protocol::token::access_token::AccessToken;
use gatepost::protocol::token::grant::Grant;
use gatepost::protocol::token::liveness::{self, LivenessFacts};
use gatepost::protocol::token::refresh_token::{
    self, PresentedRefresh, RefreshHandle, RefreshVerdict,
};
use gatepost::protocol::token::token_request::AuthorizationCodeRequest;
use gatepost::protocol::words::catalogue::Catalogue;
use gatepost::protocol::words::client::Client;
use gatepost::protocol::words::epochs::SessionEpochs;
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::reason::{Reason, TokenError, TokenErrorCode};
use gatepost::protocol::words::sender::Sender;
use gatepost::protocol::words::session::{Session, User};

use crate::judges::{Judges, OF_THE_CODE};
use crate::statements::{self, EpochsHeld, GrantRow, RedemptionAnswer, Sent};
use crate::world::{
    Cast, GrantScope, Promise, World, with_code, with_tokens, with_tokens_of_a_thief,
};

pub struct Bent {
    pub what: String,
    pub judges: Judges,
    pub beginning: World,
    pub breaks: Promise,
}

/// Judgements of the code with a change.
fn bent(what: &str, beginning: World, breaks: Promise, change: fn(&mut Judges)) -> Bent {
    let mut judges = OF_THE_CODE;
    change(&mut judges);
    Bent {
        what: what.to_owned(),
        judges,
        beginning,
        breaks,
    }
}

const INSTALLATION: usize = 0;
const CLIENT: usize = 1;
const USER: usize = 2;
const CONSENT: usize = 3;

/// The facts with one epoch as it was when the grant was given.
fn overlooking<const EPOCH: usize>(facts: &LivenessFacts) -> LivenessFacts {
    let mut facts = facts.clone();
    let given = facts.grant.unwrap().epochs;
    let now = &mut facts.epochs;
    match EPOCH {
        INSTALLATION => now.installation = given.installation,
        CLIENT => now.client = given.client,
        USER => now.user = given.user,
        CONSENT => now.consent = given.consent,
        _ => unreachable!("there are four"),
    }
    facts
}

fn stands_without<const EPOCH: usize>(
    token: &AccessToken,
    client: Option<&Client>,
    user: Option<&User>,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    liveness::stands(token, client, user, &overlooking::<EPOCH>(facts), now)
}

fn refresh_token_stands_without<const EPOCH: usize>(
    grant: &Grant,
    handle: RefreshHandle,
    client: &Client,
    catalogue: &Catalogue,
    user: Option<&User>,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    let facts = overlooking::<EPOCH>(facts);
    refresh_token::stands(grant, handle, client, catalogue, user, &facts, now)
}

fn session_stands_without<const EPOCH: usize>(
    session: &Session,
    now_at: Option<SessionEpochs>,
    now: Instant,
) -> bool {
    let at = now_at.map(|mut at| {
        match EPOCH {
            INSTALLATION => at.installation = session.epochs.installation,
            _ => at.user = session.epochs.user,
        }
        at
    });
    session.stands(at, now)
}

fn session_stands_though_ended(session: &Session, at: Option<SessionEpochs>, now: Instant) -> bool {
    let session = Session {
        ended_at: None,
        ..session.clone()
    };
    session.stands(at, now)
}

fn no_code_is_burnt(
    _: &AuthorizationCode,
    _: &AuthorizationCodeRequest,
    _: Sender<'_>,
) -> CodeVerdict {
    CodeVerdict::Redeem
}

fn stands_without_withdrawals(
    token: &AccessToken,
    client: Option<&Client>,
    user: Option<&User>,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    facts.epochs.consent == 0 && liveness::stands(token, client, user, facts, now)
}

fn stands_though_revoked(
    token: &AccessToken,
    client: Option<&Client>,
    user: Option<&User>,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    let mut facts = facts.clone();
    facts.grant.as_mut().unwrap().revoked = false;
    liveness::stands(token, client, user, &facts, now)
}

fn refuses(reason: Reason) -> RefreshVerdict {
    RefreshVerdict::Refuse(TokenError::new(TokenErrorCode::InvalidGrant, reason))
}

fn old_tokens_are_refused(
    grant: &Grant,
    presented: PresentedRefresh<'_>,
    sender: Sender<'_>,
) -> RefreshVerdict {
    let verdict = refresh_token::judge(grant, presented, sender);
    match verdict {
        RefreshVerdict::OldToken(_) => refuses(Reason::RefreshTokenReplayed),
        verdict => verdict,
    }
}

fn revoked_grants_are_unknown(
    grant: &Grant,
    presented: PresentedRefresh<'_>,
    sender: Sender<'_>,
) -> RefreshVerdict {
    if grant.revoked_at.is_some() {
        return refuses(Reason::UnknownRefreshToken);
    }
    refresh_token::judge(grant, presented, sender)
}

fn a_wrong_key_is_refused_first(
    grant: &Grant,
    presented: PresentedRefresh<'_>,
    sender: Sender<'_>,
) -> RefreshVerdict {
    if grant.confirmation.is_some() && grant.confirmation != sender.key {
        return refuses(Reason::ProofKey);
    }
    refresh_token::judge(grant, presented, sender)
}

/// As if its attempt were not compared, nor the row looked at: whoever comes enters it.
fn redeem_enters_again(
    row: &mut Option<GrantRow>,
    epochs: EpochsHeld,
    burn: bool,
    sent: Sent,
) -> RedemptionAnswer {
    *row = None;
    statements::redeem(row, epochs, burn, sent)
}

fn of_epoch<const EPOCH: usize>(name: &str) -> [Bent; 3] {
    let code = with_code(GrantScope::Online);
    let tokens = World {
        cast: Cast::Whole,
        ..with_tokens(GrantScope::Offline, 0)
    };
    let over = Promise::WhatEndedIsNeverHonoured;
    let overlooks = |who: &str| format!("{who} overlooks {name}");
    [
        bent(&overlooks("liveness::stands"), tokens, over, |judges| {
            judges.access_token_stands = stands_without::<EPOCH>;
        }),
        bent(
            &overlooks("refresh_token::stands"),
            tokens,
            over,
            |judges| {
                judges.refresh_token_stands = refresh_token_stands_without::<EPOCH>;
            },
        ),
        bent(&overlooks("{stands}"), code, over, |judges| {
            judges.stands = stands_without::<EPOCH>;
        }),
    ]
}

pub fn every_one() -> Vec<Bent> {
    let code = with_code(GrantScope::Offline);
    let tokens = with_tokens(GrantScope::Offline, 1);
    let of_a_thief = with_tokens_of_a_thief();
    let over = Promise::WhatEndedIsNeverHonoured;
    let replay = Promise::AReplayEndsTheLine;
    let issued_after = Promise::NothingIssuedAfterAnEndingIsEndedByIt;
    let right_verifier = Promise::OnlyTheRightVerifierGetsTokens;
    let repeated = Promise::ARepeatedRefreshGetsAnAnswerThatWorks;
    let once = Promise::ACodeGivesTokensOnce;
    let mut all = vec![
        bent(
            "Session::stands overlooks installation.epoch",
            code,
            over,
            |judges| {
                judges.session_stands = session_stands_without::<INSTALLATION>;
            },
        ),
        bent(
            "Session::stands overlooks users.epoch",
            code,
            over,
            |judges| {
                judges.session_stands = session_stands_without::<USER>;
            },
        ),
        bent("Session::stands overlooks ended_at", code, over, |judges| {
            judges.session_stands = session_stands_though_ended;
        }),
        bent(
            "liveness::stands overlooks revoked_at",
            tokens,
            replay,
            |judges| {
                judges.access_token_stands = stands_though_revoked;
            },
        ),
        bent(
            "{stands} refuses whoever withdrew a consent once",
            code,
            issued_after,
            |judges| {
                judges.stands = stands_without_withdrawals;
            },
        ),
        bent(
            "authorization_code::redeem never burns a code",
            code,
            right_verifier,
            |judges| {
                judges.code = no_code_is_burnt;
            },
        ),
        bent(
            "refresh_token::judge refuses every old token",
            tokens,
            repeated,
            |judges| {
                judges.refresh = old_tokens_are_refused;
            },
        ),
        bent(
            "refresh_token::judge says of a revoked grant that it is unknown",
            with_tokens(GrantScope::Offline, 2),
            replay,
            |judges| {
                judges.refresh = revoked_grants_are_unknown;
            },
        ),
        bent(
            "refresh_token::judge compares the key before it looks for a replay",
            of_a_thief,
            replay,
            |judges| {
                judges.refresh = a_wrong_key_is_refused_first;
            },
        ),
        bent("REDEEM enters a code again", code, once, |judges| {
            judges.redeem = redeem_enters_again;
        }),
    ];
    all.extend(of_epoch::<INSTALLATION>("installation.epoch"));
    all.extend(of_epoch::<CLIENT>("clients.epoch"));
    all.extend(of_epoch::<USER>("users.epoch"));
    all.extend(of_epoch::<CONSENT>("consents.epoch"));
    all
}
