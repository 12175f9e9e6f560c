//! A situation in the making, for the tests of the decision.

use std::collections::BTreeSet;

use super::super::authorize_request::fixtures::*;
use super::super::authorize_request::validate;
use super::*;
use crate::words::samples;

/// Three seconds after the request came in.
pub(crate) const NOW: Instant = Instant::from_seconds(RECEIVED_AT.seconds() + 3);

/// One case: everything [`Situation`] borrows, owned.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) asked: Asking,
    pub(crate) client: Client,
    pub(crate) catalogue: Catalogue,
    pub(crate) session: Option<Session>,
    pub(crate) is_bound: bool,
    pub(crate) role: Option<Value>,
    /// At least, there, and what may be added.
    pub(crate) acr: [Strength; 3],
    pub(crate) consent: Option<Consent>,
    pub(crate) hinted_subject: Option<Subject>,
    pub(crate) step: Step,
    pub(crate) now: Instant,
}

/// Alice signed in 100 s before the request came in.
pub(crate) fn session() -> Session {
    Session {
        subject: Subject::new("alice"),
        auth_time: Instant::from_seconds(RECEIVED_AT.seconds() - 100),
        expires_at: Instant::from_seconds(RECEIVED_AT.seconds() + 36_000),
        ..samples::session()
    }
}

/// Alice just signed in for this request.
pub(crate) fn fresh() -> Session {
    Session {
        auth_time: RECEIVED_AT,
        ..session()
    }
}

pub(crate) fn case() -> Case {
    Case {
        asked: asking(),
        client: client(),
        catalogue: catalogue(),
        session: Some(session()),
        is_bound: false,
        role: None,
        acr: [
            Strength::SignedIn,
            Strength::SignedIn,
            Strength::PhishingResistant,
        ],
        consent: None,
        hinted_subject: None,
        step: Step::Arrival,
        now: NOW,
    }
}

pub(crate) fn asking_for(name: &str, value: &str) -> Case {
    Case {
        asked: asking().with(name, value),
        ..case()
    }
}

pub(crate) fn agreed(scope: &str) -> Step {
    Step::AfterConsent {
        granted: ScopeSet::parse(scope).unwrap(),
    }
}

pub(crate) fn consent(scope: &str) -> Option<Consent> {
    let scope = ScopeSet::parse(scope).unwrap();
    Some(Consent {
        scope,
        claims: BTreeSet::new(),
        given_at: RECEIVED_AT,
    })
}

impl Case {
    pub(crate) fn request(&self) -> AuthorizeRequest {
        let parameters = self.asked.parameters();
        validate(&parameters, &self.client, &self.catalogue, RECEIVED_AT).unwrap()
    }

    pub(crate) fn decided(&self) -> Interaction {
        self.decided_for(&self.request())
    }

    /// For that request, and of no client where it is for none.
    pub(crate) fn decided_for(&self, request: &AuthorizeRequest) -> Interaction {
        decide(&Situation {
            request,
            client: (!matches!(request.ending, Ending::Account { .. })).then_some(&self.client),
            catalogue: &self.catalogue,
            session: self.session.as_ref(),
            is_bound: self.is_bound,
            role: self.role.as_ref(),
            minimum_acr: self.acr[0],
            strongest_acr: self.acr[1],
            may_enrol: self.acr[2],
            consent: self.consent.as_ref(),
            hinted_subject: self.hinted_subject.as_ref(),
            step: self.step.clone(),
            now: self.now,
        })
    }

    pub(crate) fn with(self, name: &str, value: &str) -> Case {
        Case {
            asked: self.asked.with(name, value),
            ..self
        }
    }

    pub(crate) fn of(self, session: Session) -> Case {
        Case {
            session: Some(session),
            ..self
        }
    }

    pub(crate) fn at(self, step: Step) -> Case {
        Case { step, ..self }
    }

    /// Asserts that somebody has to sign in, and that `prompt=none` says so.
    #[track_caller]
    pub(crate) fn needs_sign_in(&self, cause: LoginCause) {
        assert_eq!(self.decided(), Interaction::Login { cause });
        let silent = Case {
            asked: self.asked.clone().with("prompt", "none"),
            ..self.clone()
        };
        let reason = if cause == LoginCause::Unbound {
            Reason::UnboundSession
        } else {
            Reason::LoginRequired
        };
        if cause != LoginCause::Prompt {
            silent.is_refused(AuthorizeErrorCode::LoginRequired, reason);
        }
    }

    #[track_caller]
    pub(crate) fn is_refused(&self, code: AuthorizeErrorCode, reason: Reason) {
        assert_eq!(
            self.decided(),
            Interaction::Refuse(AuthorizeRefusal::new(code, reason))
        );
    }

    #[track_caller]
    pub(crate) fn proceeds(&self, scope: &str) {
        assert_eq!(self.decided(), proceed(ScopeSet::parse(scope).unwrap()));
    }

    /// Asserts that consent is asked for, and that `prompt=none` says so.
    #[track_caller]
    pub(crate) fn needs_consent(&self, may_remember: bool) {
        assert_eq!(self.decided(), Interaction::Consent { may_remember });
        if !self.request().prompt.consent {
            let silent = Case {
                asked: self.asked.clone().with("prompt", "none"),
                ..self.clone()
            };
            silent.is_refused(AuthorizeErrorCode::ConsentRequired, Reason::ConsentRequired);
        }
    }
}
