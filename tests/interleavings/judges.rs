//! The judgements that every world asks. They are the code's own functions; where the test shows
//! that it can fail, one of them is bent.

use std::cell::RefCell;
use std::collections::HashMap;

use gatepost::protocol::authorize::authorization_code::{
    self, AuthorizationCode, CodeVerdict, redirect_uri_hash,
};
use gatepost::protocol::authorize::pkce::{CodeChallenge, CodeChallengeMethod};
use gatepost::protocol::token::access_token::AccessToken;
use gatepost::protocol::token::grant::Grant;
use gatepost::protocol::token::liveness::{self, GrantFacts, LivenessFacts, SessionFacts};
use gatepost::protocol::token::refresh_token::{
    self, PresentedRefresh, RefreshHandle, RefreshVerdict, Within, judge, within,
};
use gatepost::protocol::token::token_request::{
    AuthorizationCodeRequest, PresentedVerifier, RefreshTokenRequest,
};
use gatepost::protocol::words::catalogue::Catalogue;
use gatepost::protocol::words::client::Client;
use gatepost::protocol::words::epochs::SessionEpochs;
use gatepost::protocol::words::identifiers::KeyThumbprint;
use gatepost::protocol::words::instant::Instant;
use gatepost::protocol::words::reason::Reason;
use gatepost::protocol::words::response_type::ResponseType;
use gatepost::protocol::words::scope::ScopeSet;
use gatepost::protocol::words::secret::SecretText;
use gatepost::protocol::words::sender::Sender;
use gatepost::protocol::words::session::{Session, User};

use crate::sample::{self, CATALOGUE, CLIENT, NOW, OFFLINE, ONLINE, REDIRECT_URI, alice, facts_of};
use crate::statements::{self, EpochsHeld, GrantRow, RedemptionAnswer, Sent, is_within};
use crate::world::{GrantScope, SessionRow};

type Liveness = fn(&AccessToken, Option<&Client>, Option<&User>, &LivenessFacts, Instant) -> bool;

/// What decides, and the statement that decides in Postgres alone.
#[derive(Clone, Copy)]
pub struct Judges {
    pub code: fn(&AuthorizationCode, &AuthorizationCodeRequest, Sender<'_>) -> CodeVerdict,
    pub within: for<'a> fn(&RefreshTokenRequest, Sender<'a>) -> Option<Within<'a>>,
    pub refresh: fn(&Grant, PresentedRefresh<'_>, Sender<'_>) -> RefreshVerdict,
    pub refresh_token_stands: fn(
        &Grant,
        RefreshHandle,
        &Client,
        &Catalogue,
        Option<&User>,
        &LivenessFacts,
        Instant,
    ) -> bool,
    pub access_token_stands: Liveness,
    /// In the place of `{stands}` of the statements, which says the same: `what_ends_what` holds
    /// both to one table.
    pub stands: Liveness,
    pub session_stands: fn(&Session, Option<SessionEpochs>, Instant) -> bool,
    pub redeem: fn(&mut Option<GrantRow>, EpochsHeld, bool, Sent) -> RedemptionAnswer,
}

pub const OF_THE_CODE: Judges = Judges {
    code: authorization_code::redeem,
    within,
    refresh: judge,
    refresh_token_stands: refresh_token::stands,
    access_token_stands: liveness::stands,
    stands: liveness::stands,
    session_stands: Session::stands,
    redeem: statements::redeem,
};

/// Asks the judges. Each is pure, so each question is asked once: there are few of them, and
/// hundreds of thousands of worlds.
pub struct Court<'a> {
    pub judges: &'a Judges,
    answers: RefCell<HashMap<Question, Verdict>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Whether a request with the right `code_verifier`, or another, may redeem a code.
    Code {
        is_right: bool,
    },
    /// Whether `MOVE_ON` is tried; not where the request names the scope that it has anyhow.
    IsTriedAtOnce {
        names_scope: bool,
    },
    /// Whether `MOVE_ON` finds the grant to be as `within` says.
    IsWithin,
    Refresh {
        given: Given,
        generation: u8,
        names_scope: bool,
    },
    /// `{stands}`
    Stands(Given),
    /// Introspection of an access token, and of the newest refresh token.
    AccessToken(Given),
    RefreshToken(Given),
    /// Whether the session of the first sign-in stands.
    Session {
        now: EpochsHeld,
        row: SessionRow,
    },
}

/// A grant, and what it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Given {
    pub scope: GrantScope,
    pub at: EpochsHeld,
    pub now: EpochsHeld,
    pub generation: u8,
    pub revoked: bool,
    pub session: SessionRow,
    /// Whether it ends with its session.
    pub in_session: bool,
    pub is_bound: bool,
    pub is_later: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Yes,
    No,
    /// Of a refresh: `GrantRevoked`, which is confirmed.
    Revoked,
    /// Of a refresh: the statement is to tell.
    OldToken,
}

impl Court<'_> {
    pub fn of(judges: &Judges) -> Court<'_> {
        Court {
            judges,
            answers: RefCell::default(),
        }
    }

    pub fn says(&self, question: Question) -> bool {
        self.verdict(question) == Verdict::Yes
    }

    pub fn verdict(&self, question: Question) -> Verdict {
        if let Some(answer) = self.answers.borrow().get(&question) {
            return *answer;
        }
        let answer = self.judged(question);
        self.answers.borrow_mut().insert(question, answer);
        answer
    }

    fn judged(&self, question: Question) -> Verdict {
        let judges = self.judges;
        let user = alice();
        let holds = match question {
            Question::Code { is_right } => self.may_redeem(is_right),
            Question::IsTriedAtOnce { names_scope } => {
                (judges.within)(&refresh_request(names_scope), sender(None, NOW)).is_some()
            }
            Question::IsWithin => {
                let grant = sample::grant(OFFLINE, EpochsHeld::default());
                let within = (judges.within)(&refresh_request(false), sender(None, NOW));
                within.is_some_and(|within| is_within(&grant, &within))
            }
            Question::Refresh {
                given,
                generation,
                names_scope,
            } => return self.verdict_on_refresh(given, generation, names_scope),
            Question::Stands(given) => self.is_alive(judges.stands, given),
            Question::AccessToken(given) => self.is_alive(judges.access_token_stands, given),
            Question::RefreshToken(given) => {
                let grant = given.grant();
                let handle = handle(&grant, given.generation);
                let facts = given.facts();
                let now = given.time();
                let user = Some(&user);
                (judges.refresh_token_stands)(
                    &grant, handle, &CLIENT, &CATALOGUE, user, &facts, now,
                )
            }
            Question::Session { now, row } => {
                let epochs = |of: EpochsHeld| SessionEpochs {
                    installation: of.installation.into(),
                    user: of.user.into(),
                };
                let ended_at = (row == SessionRow::Ended).then_some(NOW);
                let session = sample::session(epochs(EpochsHeld::default()), ended_at);
                (judges.session_stands)(&session, Some(epochs(now)), NOW)
            }
        };
        match holds {
            true => Verdict::Yes,
            false => Verdict::No,
        }
    }

    fn may_redeem(&self, is_right: bool) -> bool {
        let challenge = CodeChallenge::parse(VERIFIER, CodeChallengeMethod::Plain).unwrap();
        let code = AuthorizationCode {
            grant: sample::grant(OFFLINE, EpochsHeld::default()),
            redirect_uri_hash: redirect_uri_hash(REDIRECT_URI),
            challenge: Some(challenge.digest()),
            nonce: None,
            response_type: ResponseType::CODE,
            expires_at: NOW.plus(CLIENT.lifetimes.authorization_code),
            confirmation: None,
        };
        let code_verifier = match is_right {
            true => SecretText::new(VERIFIER),
            false => SecretText::new(VERIFIER.to_lowercase()),
        };
        let request = AuthorizationCodeRequest {
            code: SecretText::new("gpc_sealed"),
            redirect_uri: REDIRECT_URI.to_owned(),
            code_verifier: PresentedVerifier::Sent(code_verifier),
            resources: Vec::new(),
        };
        match (self.judges.code)(&code, &request, sender(None, NOW)) {
            CodeVerdict::Redeem => true,
            CodeVerdict::Burn(_) => false,
            other => panic!("{other:?}"),
        }
    }

    fn verdict_on_refresh(&self, given: Given, generation: u8, names_scope: bool) -> Verdict {
        let grant = given.grant();
        let handle = handle(&grant, generation);
        let request = refresh_request(names_scope);
        let judge = self.judges.refresh;
        let has_key = given.is_bound && generation > 0;
        let presented = PresentedRefresh {
            handle,
            request: &request,
        };
        let sender = sender(has_key.then_some(KEY), given.time());
        match judge(&grant, presented, sender) {
            RefreshVerdict::Refresh(_) => Verdict::Yes,
            RefreshVerdict::OldToken(_) => Verdict::OldToken,
            RefreshVerdict::Refuse(error) if error.reason == Reason::GrantRevoked => {
                Verdict::Revoked
            }
            RefreshVerdict::Refuse(_) => Verdict::No,
        }
    }

    fn is_alive(&self, stands: Liveness, given: Given) -> bool {
        let user = alice();
        let token = given.grant().as_access_token();
        stands(
            &token,
            Some(&CLIENT),
            Some(&user),
            &given.facts(),
            given.time(),
        )
    }
}

fn sender(key: Option<KeyThumbprint>, now: Instant) -> Sender<'static> {
    Sender {
        client: &CLIENT,
        catalogue: &CATALOGUE,
        issuer: "https://op.example",
        key,
        now,
    }
}

impl Given {
    fn time(self) -> Instant {
        match self.is_later {
            true => NOW.plus(CLIENT.lifetimes.refresh_token_retry_window),
            false => NOW,
        }
    }

    fn grant(self) -> Grant {
        let scope = match self.scope {
            GrantScope::Offline => OFFLINE,
            GrantScope::Online => ONLINE,
        };
        Grant {
            generation: self.generation.into(),
            revoked_at: self.revoked.then_some(NOW),
            confirmation: self.is_bound.then_some(KEY),
            ..sample::grant(scope, self.at)
        }
    }

    fn facts(self) -> LivenessFacts {
        let ended = match self.session {
            SessionRow::Absent => None,
            SessionRow::Begun => Some(false),
            SessionRow::Ended => Some(true),
        };
        LivenessFacts {
            token_revoked: false,
            grant: Some(GrantFacts {
                revoked: self.revoked,
                offline: !self.in_session,
                expires_at: sample::grant_end(),
                epochs: facts_of(self.at),
            }),
            session: ended.map(|ended| SessionFacts {
                ended,
                expires_at: sample::grant_end(),
            }),
            client_enabled: true,
            epochs: facts_of(self.now),
            consent_expires_at: None,
        }
    }
}

/// The `code_verifier`; its challenge is `plain`.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// What a grant is bound to.
const KEY: KeyThumbprint = KeyThumbprint([8; 32]);

fn refresh_request(names_scope: bool) -> RefreshTokenRequest {
    RefreshTokenRequest {
        refresh_token: SecretText::new("gpr_tagged"),
        scope: names_scope.then(|| ScopeSet::parse(OFFLINE).unwrap()),
        resources: Vec::new(),
    }
}

fn handle(grant: &Grant, generation: u8) -> RefreshHandle {
    RefreshHandle {
        grant: grant.id,
        generation: generation.into(),
    }
}
