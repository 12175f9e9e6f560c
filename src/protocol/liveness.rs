//! Whether what was issued still stands: the one rule for userinfo, introspection and every later use of a token. What a
//! token names and the database does not have is dead.

use std::time::Duration;

use super::access_token::AccessToken;
use super::instant::Instant;
use super::user::User;

/// How far ahead of `now` another process of ours may have stamped a token.
const SKEW: Duration = Duration::from_secs(60);
/// How far beyond the beginning of its second the mark of a revocation lies, whatever it revokes.
const MARK: Duration = Duration::from_micros(2_999_999);
/// How far our clock may be ahead of the database's, by which marks are made.
const CLOCK: Duration = Duration::from_millis(500);

/// When something that shall be dated `date` may be issued: only once every revocation from then on reaches it. What is
/// given right after a revocation is dated behind its mark, which lies ahead of the clock; given at once, it would outlive
/// a revocation of another kind, whose mark takes no notice of the first.
pub fn may_be_issued_at(date: Instant) -> Instant {
    let second = date.minus(MARK).plus(Duration::from_micros(999_999)).seconds();
    Instant::from_seconds(second).plus(CLOCK)
}

/// What the database says about everything a token stands on; one read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivenessFacts {
    /// Whether this very token was revoked.
    pub token_revoked: bool,
    /// The grant its `jti` names; `None` when there is no such row (or the token names none).
    pub grant: Option<GrantFacts>,
    /// The session its `sid` names; `None` when there is no such row (or the token names none).
    pub session: Option<SessionFacts>,
    /// The client; `None` when it is gone.
    pub client: Option<ClientFacts>,
    /// Where the user's consent to this client was withdrawn: what was issued until then is dead.
    pub consent_revoked_before: Option<Instant>,
    /// `gatepost revoke --everything`
    pub installation_tokens_valid_after: Option<Instant>,
}

/// A grant's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantFacts {
    /// Revoked, or burnt.
    pub revoked: bool,
    /// `offline_access` was granted: it outlives its session.
    pub offline: bool,
    /// Its absolute expiry.
    pub expires_at: Instant,
}

/// A session's row. Its natural end does not end tokens, signing out does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Signed out, or ended by an operator.
    pub ended: bool,
}

/// A client's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    /// `enabled`
    pub enabled: bool,
    /// Nothing of this client issued at or before this instant is good any more.
    pub tokens_valid_after: Instant,
}

/// What a browser session stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFooting {
    /// When it began.
    pub begun_at: Instant,
    /// Signed out, or ended by an operator.
    pub ended: bool,
    /// Its natural end.
    pub expires_at: Instant,
    /// Its user; `None` when there is no such user any more.
    pub user: Option<UserFooting>,
    /// `gatepost revoke --everything`
    pub installation_tokens_valid_after: Instant,
}

/// A session's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserFooting {
    /// `enabled`
    pub enabled: bool,
    /// Nothing begun or issued at or before this instant is good any more.
    pub tokens_valid_after: Instant,
}

impl SessionFooting {
    /// Whether somebody is signed in by it: not ended, not run out, its user there and enabled, and begun after the last
    /// revocation of everything it stands on.
    pub fn stands(&self, now: Instant) -> bool {
        !self.ended
            && now < self.expires_at
            && self.begun_at > self.installation_tokens_valid_after
            && self.user.is_some_and(|user| user.enabled && self.begun_at > user.tokens_valid_after)
    }
}

/// Whether the token and all it stands on are alive. `user` is the row of the token's subject. Of an exchanged token this
/// is said of itself alone: the tokens it was made from must stand as well ([`Delegation::origins_of`]).
///
/// [`Delegation::origins_of`]: super::delegation::Delegation::origins_of
pub fn stands(token: &AccessToken, user: Option<&User>, facts: &LivenessFacts, now: Instant) -> bool {
    let issued_after = |instant: Option<Instant>| instant.is_none_or(|instant| token.issued_at > instant);
    !token.is_expired(now)
        && token.issued_at <= now.plus(SKEW)
        && !facts.token_revoked
        && issued_after(facts.installation_tokens_valid_after)
        && issued_after(facts.consent_revoked_before)
        && facts.client.is_some_and(|client| client.enabled && issued_after(Some(client.tokens_valid_after)))
        && grant_stands(token, facts, now)
        && session_stands(token, facts)
        && user_stands(token, user)
}

fn grant_stands(token: &AccessToken, facts: &LivenessFacts, now: Instant) -> bool {
    token.jti.grant.is_none() || facts.grant.is_some_and(|grant| !grant.revoked && now < grant.expires_at)
}

/// An exchanged token has its session through the token it was made from, whose grant may be offline.
fn session_stands(token: &AccessToken, facts: &LivenessFacts) -> bool {
    let in_session = token.delegation.is_none() && token.user.as_ref().is_some_and(|user| user.sid.is_some());
    let offline = token.jti.grant.is_some() && facts.grant.is_some_and(|grant| grant.offline);
    !in_session || offline || facts.session.is_some_and(|session| !session.ended)
}

fn user_stands(token: &AccessToken, user: Option<&User>) -> bool {
    let Some(named) = &token.user else {
        return true;
    };
    user.is_some_and(|user| user.enabled && user.subject == named.subject && token.issued_at > user.tokens_valid_after)
}

#[cfg(test)]
mod tests {
    use super::super::access_token::Jti;
    use super::super::identifiers::Subject;
    use super::super::samples::{self, NOW};
    use super::*;

    const LATER: Instant = Instant::from_seconds(NOW.seconds() + 60);

    fn standing() -> LivenessFacts {
        let grant_end = NOW.plus(Duration::from_secs(86_400));
        LivenessFacts {
            token_revoked: false,
            grant: Some(GrantFacts { revoked: false, offline: false, expires_at: grant_end }),
            session: Some(SessionFacts { ended: false }),
            client: Some(ClientFacts { enabled: true, tokens_valid_after: NOW.minus(Duration::from_secs(1)) }),
            consent_revoked_before: None,
            installation_tokens_valid_after: None,
        }
    }

    fn lives(token: &AccessToken, change: impl FnOnce(&mut LivenessFacts)) -> bool {
        let mut facts = standing();
        change(&mut facts);
        stands(token, Some(&samples::alice()), &facts, LATER)
    }

    fn grant(facts: &mut LivenessFacts) -> &mut GrantFacts {
        facts.grant.as_mut().unwrap()
    }

    fn of_client() -> AccessToken {
        AccessToken { user: None, jti: Jti { grant: None, random: [1; 12] }, ..samples::access_token() }
    }

    #[test]
    fn what_is_dated_now_is_issued_now_and_what_lies_ahead_once_marks_reach_it() {
        let mark = |now: Instant| Instant::from_seconds(now.seconds()).plus(MARK);
        let behind = |mark: Instant| mark.plus(Duration::from_micros(1));
        for micros in [0, 1, 499_999, 500_000, 999_999] {
            let now = NOW.plus(Duration::from_micros(micros));
            assert!(may_be_issued_at(now) <= now);
            let date = behind(mark(now));
            let issued = may_be_issued_at(date);
            assert!(issued > now && issued.since(now) <= Duration::from_millis(1_500));
            assert!(date <= mark(issued.minus(CLOCK)), "by a clock half a second behind, too");
            assert!(date > mark(issued.minus(CLOCK).minus(Duration::from_micros(1))), "and no sooner");
            let stacked = behind(mark(now).plus(Duration::from_secs(3_600)));
            assert!(may_be_issued_at(stacked).since(now) > Duration::from_secs(3_599));
        }
    }

    #[test]
    fn a_session_stands_only_on_everything_at_once() {
        let user = UserFooting { enabled: true, tokens_valid_after: NOW.minus(Duration::from_secs(100)) };
        let session = SessionFooting {
            begun_at: NOW.minus(Duration::from_secs(50)),
            ended: false,
            expires_at: NOW.plus(Duration::from_secs(50)),
            user: Some(user),
            installation_tokens_valid_after: NOW.minus(Duration::from_secs(100)),
        };
        assert!(session.stands(NOW));
        let begun = session.begun_at;
        let dead = [
            SessionFooting { ended: true, ..session },
            SessionFooting { expires_at: NOW, ..session },
            SessionFooting { user: None, ..session },
            SessionFooting { user: Some(UserFooting { enabled: false, ..user }), ..session },
            SessionFooting { user: Some(UserFooting { tokens_valid_after: begun, ..user }), ..session },
            SessionFooting { installation_tokens_valid_after: begun, ..session },
        ];
        for session in dead {
            assert!(!session.stands(NOW), "{session:?}");
        }
    }

    #[test]
    fn a_token_lives_while_all_it_stands_on_does() {
        let token = samples::access_token();
        assert!(lives(&token, |_| {}));
        for (what, change) in [
            ("revoked token", (|facts| facts.token_revoked = true) as fn(&mut LivenessFacts)),
            ("absent grant", |facts| facts.grant = None),
            ("revoked grant", |facts| grant(facts).revoked = true),
            ("expired grant", |facts| grant(facts).expires_at = LATER),
            ("absent session", |facts| facts.session = None),
            ("ended session", |facts| facts.session = Some(SessionFacts { ended: true })),
            ("absent client", |facts| facts.client = None),
            ("disabled client", |facts| facts.client.as_mut().unwrap().enabled = false),
            ("revoked client", |facts| facts.client.as_mut().unwrap().tokens_valid_after = NOW),
            ("withdrawn consent", |facts| facts.consent_revoked_before = Some(NOW)),
            ("revoked installation", |facts| facts.installation_tokens_valid_after = Some(NOW)),
        ] {
            assert!(!lives(&token, change), "{what}");
        }
    }

    #[test]
    fn what_was_revoked_before_its_issue_does_not_matter() {
        let before = NOW.minus(Duration::from_micros(1));
        assert!(lives(&samples::access_token(), |facts| {
            facts.consent_revoked_before = Some(before);
            facts.installation_tokens_valid_after = Some(before);
        }));
    }

    #[test]
    fn an_offline_grant_outlives_its_session_but_not_its_revocation() {
        let token = samples::access_token();
        assert!(lives(&token, |facts| {
            grant(facts).offline = true;
            facts.session = None;
        }));
        assert!(!lives(&token, |facts| {
            grant(facts).offline = true;
            grant(facts).revoked = true;
        }));
    }

    #[test]
    fn a_token_without_grant_is_not_kept_alive_by_somebody_elses() {
        let front_channel = AccessToken { jti: Jti { grant: None, random: [1; 12] }, ..samples::access_token() };
        assert!(lives(&front_channel, |facts| facts.grant = None));
        assert!(!lives(&front_channel, |facts| {
            grant(facts).offline = true;
            facts.session = None;
        }));
    }

    #[test]
    fn a_clients_token_needs_neither_grant_nor_session_nor_user() {
        let facts = LivenessFacts { grant: None, session: None, ..standing() };
        assert!(stands(&of_client(), None, &facts, LATER));
        assert!(!stands(&of_client(), None, &LivenessFacts { client: None, ..facts }, LATER));
    }

    #[test]
    fn the_user_must_be_there_and_be_the_one() {
        let token = samples::access_token();
        let with = |user: Option<&User>| stands(&token, user, &standing(), LATER);
        assert!(with(Some(&samples::alice())));
        assert!(!with(None));
        assert!(!with(Some(&User { enabled: false, ..samples::alice() })));
        assert!(!with(Some(&User { subject: Subject::new("bob"), ..samples::alice() })));
        assert!(!with(Some(&User { tokens_valid_after: NOW, ..samples::alice() })));
    }

    #[test]
    fn the_edges_of_its_time_are_exact() {
        let token = samples::access_token();
        let at = |now: Instant| stands(&token, Some(&samples::alice()), &standing(), now);
        assert!(at(token.expires_at.minus(Duration::from_micros(1))));
        assert!(!at(token.expires_at));
        assert!(at(NOW.minus(Duration::from_secs(60))));
        assert!(!at(NOW.minus(Duration::from_secs(61))));
    }
}
