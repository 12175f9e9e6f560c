//! Whether what a user gave a client still stands, and whether a token is alive: the one rule for
//! UserInfo, introspection and every later use of a token. A token that names a row that is gone is
//! dead.
//!
//! Two things end what was given. The registration may have changed: [`check_registration`] says so
//! before a code, a device or a refresh token is used. And the rows may have changed that it stands
//! on. Only the statement that uses a code, a device or a refresh token can tell that without a
//! race: the piece `{stands}` of `store/pieces.sql` does. `grounds_stand` judges rows that were
//! read. It differs in two things: whether a consent has lapsed it leaves to
//! [`consent_has_lapsed`], and it asks for the `minimum_acr`, which `{stands}` leaves to
//! [`check_registration`]. A test of `what_ends_what` holds both to one table.

use super::access_token::{AccessToken, StandsOn};
use crate::words::acr_values::tenant_stands;
use crate::words::catalogue::Catalogue;
use crate::words::client::Client;
use crate::words::epochs::Epochs;
use crate::words::identifiers::Sid;
use crate::words::instant::Instant;
use crate::words::reason::Reason;
use crate::words::scope::ScopeSet;
use crate::words::session::{SignIn, User};

/// What the database says about everything a token stands on; one read.
#[derive(Clone)]
pub struct LivenessFacts {
    pub token_revoked: bool,
    /// The grant its `jti` names; `None` when there is no such row (or the token names none).
    pub grant: Option<GrantFacts>,
    /// The session its `sid` names; `None` when there is no such row (or the token names none).
    pub session: Option<SessionFacts>,
    pub client_enabled: bool,
    pub epochs: Epochs,
    /// When the remembered consent lapses; `None` is never.
    pub consent_expires_at: Option<Instant>,
}

/// Whether the client's registration still allows it what it was given at this sign-in.
pub fn check_registration(
    sign_in: &SignIn,
    scope: &ScopeSet,
    client: &Client,
    catalogue: &Catalogue,
) -> Result<(), Reason> {
    if !client.takes(&sign_in.acr) {
        return Err(Reason::AcrBelowMinimum);
    }
    let is_registered =
        scope.is_within(&client.scope) && scope.iter().all(|name| catalogue.kind(name).is_some());
    if is_registered && tenant_stands(sign_in.tenant.as_ref(), client, catalogue) {
        Ok(())
    } else {
        Err(Reason::GrantNoLongerStands)
    }
}

/// Whether a remembered consent that the client needs has lapsed since the grant or ID token was
/// given. This ends codes, devices and refresh tokens; an access token lives until it expires.
pub fn consent_has_lapsed(
    issued_at: Instant,
    client: &Client,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    let has_lapsed = |end: Instant| end <= now && issued_at < end;
    client.require_consent == Some(true) && facts.consent_expires_at.is_some_and(has_lapsed)
}

#[derive(Clone, Copy)]
pub struct GrantFacts {
    pub revoked: bool,
    /// `offline_access` was granted: it outlives its session.
    pub offline: bool,
    pub expires_at: Instant,
    pub epochs: Epochs,
}

impl GrantFacts {
    pub fn is_alive(&self, now: Instant) -> bool {
        !self.revoked && now < self.expires_at
    }
}

/// A session's row. Its natural end does not end tokens, signing out does.
#[derive(Clone, Copy)]
pub struct SessionFacts {
    /// Signed out, or ended by an operator.
    pub ended: bool,
    pub expires_at: Instant,
}

/// Whether the token and all it stands on are alive. `client` is the registration of its client,
/// `user` the row of its subject. Of an exchanged token this is said of itself alone: the tokens it
/// was made from must stand as well ([`Delegation::origins_of`]).
///
/// [`Delegation::origins_of`]: super::delegation::Delegation::origins_of
pub fn stands(
    token: &AccessToken,
    client: Option<&Client>,
    user: Option<&User>,
    facts: &LivenessFacts,
    now: Instant,
) -> bool {
    let Some(given) = given_at(token, facts) else {
        return false;
    };
    let grant_stands = match token.jti.stands_on {
        StandsOn::Grant(_) => facts.grant.is_some_and(|grant| grant.is_alive(now)),
        StandsOn::User(_) | StandsOn::Client { .. } => true,
    };
    grounds_stand(token.user.as_ref(), given, client, user, facts)
        && grant_stands
        && !facts.token_revoked
        && !token.is_expired(now)
        && session_stands(token, facts)
}

/// The epochs at which a token was given; `None` where its grant is gone.
pub fn given_at(token: &AccessToken, facts: &LivenessFacts) -> Option<Epochs> {
    match token.jti.stands_on {
        StandsOn::Grant(_) => facts.grant.map(|grant| grant.epochs),
        StandsOn::User(epochs) => Some(epochs),
        // A client's own token stands on no user and no consent: for these two, the epochs of today
        // are taken for those it was given at, so that neither can end it.
        StandsOn::Client {
            installation,
            client,
        } if token.user.is_none() => Some(Epochs {
            installation,
            client,
            ..facts.epochs
        }),
        StandsOn::Client { .. } => None,
    }
}

/// Whether nothing was revoked, the client is enabled, and the user is there and would still get
/// into the client by this sign-in. A role that was taken away, or a `minimum_acr` that was raised,
/// thus ends access tokens as it ends refresh tokens.
fn grounds_stand(
    sign_in: Option<&SignIn>,
    given: Epochs,
    client: Option<&Client>,
    user: Option<&User>,
    facts: &LivenessFacts,
) -> bool {
    let may_enter = |sign_in: &SignIn| {
        let Some(client) = client else { return false };
        let Some(user) = user else { return false };
        let is_there = user.enabled && user.subject == sign_in.subject;
        is_there && client.takes(&sign_in.acr) && client.is_open_to(user.claims.get("role"))
    };
    facts.client_enabled && given == facts.epochs && sign_in.is_none_or(may_enter)
}

fn session_stands(token: &AccessToken, facts: &LivenessFacts) -> bool {
    session_of(token, facts).is_none() || facts.session.is_some_and(|session| !session.ended)
}

/// The session that a token ends with. An exchanged token has its session through the token it was
/// made from, whose grant may be offline.
pub fn session_of<'a>(token: &'a AccessToken, facts: &LivenessFacts) -> Option<&'a Sid> {
    let offline = matches!(token.jti.stands_on, StandsOn::Grant(_))
        && facts.grant.is_some_and(|grant| grant.offline);
    let sid = token.user.as_ref()?.sid.as_ref();
    sid.filter(|_| token.delegation.is_none() && !offline)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::token::access_token::Jti;
    use crate::token::delegation::Delegation;
    use crate::words::identifiers::Subject;
    use crate::words::samples::{self, EPOCHS, NOW};
    use crate::words::strength::Strength;

    const LATER: Instant = Instant::from_seconds(NOW.seconds() + 60);

    fn standing() -> LivenessFacts {
        let grant_end = NOW.plus(Duration::from_secs(86_400));
        LivenessFacts {
            token_revoked: false,
            grant: Some(GrantFacts {
                revoked: false,
                offline: false,
                expires_at: grant_end,
                epochs: EPOCHS,
            }),
            session: Some(SessionFacts {
                ended: false,
                expires_at: grant_end,
            }),
            client_enabled: true,
            epochs: EPOCHS,
            consent_expires_at: None,
        }
    }

    fn lives(token: &AccessToken, change: impl FnOnce(&mut LivenessFacts)) -> bool {
        let mut facts = standing();
        change(&mut facts);
        stands(
            token,
            Some(&samples::client()),
            Some(&samples::alice()),
            &facts,
            LATER,
        )
    }

    fn grant(facts: &mut LivenessFacts) -> &mut GrantFacts {
        facts.grant.as_mut().unwrap()
    }

    fn standing_on(stands_on: StandsOn) -> AccessToken {
        AccessToken {
            jti: Jti {
                stands_on,
                random: [1; 12],
            },
            ..samples::access_token()
        }
    }

    fn of_client() -> AccessToken {
        AccessToken {
            user: None,
            ..standing_on(StandsOn::Client {
                installation: 1,
                client: 2,
            })
        }
    }

    type Revocation = fn(&mut Epochs);
    const REVOKED: [(&str, Revocation); 4] = [
        ("installation", |epochs| epochs.installation = 9),
        ("client", |epochs| epochs.client = 9),
        ("user", |epochs| epochs.user = 9),
        ("consent", |epochs| epochs.consent = 9),
    ];

    #[test]
    fn a_token_lives_while_all_it_stands_on_does() {
        let token = samples::access_token();
        assert!(lives(&token, |_| {}));
        for (what, change) in [
            (
                "revoked token",
                (|facts| facts.token_revoked = true) as fn(&mut LivenessFacts),
            ),
            ("absent grant", |facts| facts.grant = None),
            ("revoked grant", |facts| grant(facts).revoked = true),
            ("expired grant", |facts| grant(facts).expires_at = LATER),
            ("absent session", |facts| facts.session = None),
            ("ended session", |facts| {
                facts.session.as_mut().unwrap().ended = true
            }),
            ("absent or disabled client", |facts| {
                facts.client_enabled = false
            }),
        ] {
            assert!(!lives(&token, change), "{what}");
        }
        // An offline grant outlives its session, but neither its own revocation nor for a token
        // that is not of it.
        let signed_out = |facts: &mut LivenessFacts| {
            grant(facts).offline = true;
            facts.session = None;
        };
        assert!(
            lives(&token, signed_out) && !lives(&standing_on(StandsOn::User(EPOCHS)), signed_out)
        );
        assert!(!lives(&token, |facts| {
            signed_out(facts);
            grant(facts).revoked = true;
        }));
    }

    #[test]
    fn a_users_token_ends_with_each_epoch_whoever_carries_it() {
        let (of_grant, alone) = (samples::access_token(), standing_on(StandsOn::User(EPOCHS)));
        assert!(lives(&alone, |facts| facts.grant = None));
        for (what, revoke) in REVOKED {
            assert!(
                !lives(&of_grant, |facts| revoke(&mut facts.epochs)),
                "{what}"
            );
            assert!(
                !lives(&of_grant, |facts| revoke(&mut grant(facts).epochs)),
                "{what}"
            );
            assert!(!lives(&alone, |facts| revoke(&mut facts.epochs)), "{what}");
        }
    }

    #[test]
    fn a_clients_token_ends_with_its_own_epochs_and_needs_neither_grant_nor_session_nor_user() {
        let facts = LivenessFacts {
            grant: None,
            session: None,
            ..standing()
        };
        assert!(stands(&of_client(), None, None, &facts, LATER));
        assert!(!stands(
            &of_client(),
            None,
            None,
            &LivenessFacts {
                client_enabled: false,
                ..facts.clone()
            },
            LATER
        ));
        for (what, revoke) in REVOKED {
            let mut facts = facts.clone();
            revoke(&mut facts.epochs);
            assert_eq!(
                stands(&of_client(), None, None, &facts, LATER),
                matches!(what, "user" | "consent"),
                "{what}"
            );
        }
        let of_nobodys_user = AccessToken {
            user: samples::access_token().user,
            ..of_client()
        };
        assert!(!lives(&of_nobodys_user, |_| {}));
    }

    #[test]
    fn the_user_must_be_there_and_be_the_one() {
        let token = samples::access_token();
        let with = |user: Option<&User>| {
            stands(&token, Some(&samples::client()), user, &standing(), LATER)
        };
        assert!(with(Some(&samples::alice())));
        assert!(!with(None));
        assert!(!with(Some(&User {
            enabled: false,
            ..samples::alice()
        })));
        assert!(!with(Some(&User {
            subject: Subject::new("bob"),
            ..samples::alice()
        })));
    }

    #[test]
    fn the_client_must_still_take_that_sign_in_of_that_user() {
        let with = |token: &AccessToken, client: Option<&Client>| {
            stands(token, client, Some(&samples::alice()), &standing(), LATER)
        };
        let sign_in = SignIn {
            acr: String::from("2"),
            ..samples::access_token().user.unwrap()
        };
        let token = AccessToken {
            user: Some(sign_in),
            ..samples::access_token()
        };
        let open_to = |role: &str| Client {
            allowed_roles: Some([role.to_owned()].into()),
            ..samples::client()
        };
        let of_strength = |minimum_acr| Client {
            minimum_acr,
            ..samples::client()
        };
        for (client, lives) in [
            (Some(samples::client()), true),
            (Some(open_to("admin")), true),
            (Some(open_to("staff")), false),
            (Some(of_strength(Strength::TwoFactors)), true),
            (Some(of_strength(Strength::PhishingResistant)), false),
            (None, false),
        ] {
            assert_eq!(with(&token, client.as_ref()), lives, "{client:?}");
            // A client's own token is nobody's sign-in.
            let own = LivenessFacts {
                grant: None,
                session: None,
                ..standing()
            };
            assert!(
                stands(&of_client(), client.as_ref(), None, &own, LATER),
                "{client:?}"
            );
        }
    }

    #[test]
    fn an_exchanged_token_has_no_session_of_its_own() {
        let exchanged = AccessToken {
            delegation: Some(Delegation {
                actors: Vec::new(),
                origins: Vec::new(),
            }),
            ..standing_on(StandsOn::User(EPOCHS))
        };
        assert!(lives(&exchanged, |facts| facts.session = None));
        let sign_in = SignIn {
            sid: None,
            ..samples::sign_in()
        };
        let without_session = AccessToken {
            user: Some(sign_in),
            ..standing_on(StandsOn::User(EPOCHS))
        };
        assert!(lives(&without_session, |facts| facts.session = None));
    }

    #[test]
    fn a_registration_stands_by_strength_scope_and_tenant() {
        let judged = |client: &Client, catalogue: &Catalogue, names: &str| {
            check_registration(
                &samples::sign_in(),
                &samples::scope(names),
                client,
                catalogue,
            )
        };
        let (client, catalogue) = (samples::client(), samples::catalogue());
        assert_eq!(judged(&client, &catalogue, "openid stock"), Ok(()));
        let stronger = Client {
            minimum_acr: Strength::TwoFactors,
            ..samples::client()
        };
        let weak = Err(Reason::AcrBelowMinimum);
        assert_eq!(judged(&stronger, &catalogue, "openid"), weak);
        let gone = Err(Reason::GrantNoLongerStands);
        assert_eq!(judged(&client, &catalogue, "openid phone"), gone);
        let mut without_scope = samples::catalogue();
        without_scope.scopes.remove("stock");
        assert_eq!(judged(&client, &without_scope, "openid stock"), gone);
        let mut without_tenant = samples::catalogue();
        without_tenant.tenants.clear();
        assert_eq!(judged(&client, &without_tenant, "openid"), gone);
    }

    #[test]
    fn a_consent_lapses_for_what_was_given_before_its_end_where_the_client_needs_one() {
        let grant = samples::given("openid");
        let asking = Client {
            require_consent: Some(true),
            ..samples::client()
        };
        let at = |seconds| grant.issued_at.plus(Duration::from_secs(seconds));
        let has_lapsed = |client: &Client, end: Option<Instant>, now: Instant| {
            let facts = LivenessFacts {
                consent_expires_at: end,
                ..standing()
            };
            consent_has_lapsed(grant.issued_at, client, &facts, now)
        };
        assert!(has_lapsed(&asking, Some(at(10)), at(10)));
        assert!(!has_lapsed(&asking, Some(at(10)), at(9)));
        assert!(!has_lapsed(&asking, None, at(10)));
        // What is given at the end, or after it, was consented to anew.
        assert!(!has_lapsed(&asking, Some(at(0)), at(10)));
        for require_consent in [None, Some(false)] {
            let client = Client {
                require_consent,
                ..samples::client()
            };
            assert!(!has_lapsed(&client, Some(at(10)), at(10)));
        }
    }

    #[test]
    fn the_end_of_its_time_is_exact() {
        let token = samples::access_token();
        let at = |now: Instant| {
            stands(
                &token,
                Some(&samples::client()),
                Some(&samples::alice()),
                &standing(),
                now,
            )
        };
        assert!(at(token.expires_at.minus(Duration::from_micros(1))));
        assert!(!at(token.expires_at));
    }
}
