//! Every reason to show a page, and none to show it twice.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::super::authorize_request::LandingPage;
use super::super::authorize_request::fixtures::*;
use super::case::*;
use super::*;
use crate::device::device_code::UserCode;
use crate::words::acr_values::AcrValues;
use crate::words::identifiers::TenantName;
use crate::words::session::LOCAL;

#[test]
fn a_session_is_enough_for_a_plain_request() {
    case().proceeds("openid");
    asking_for("scope", "openid profile orders.read").proceeds("openid profile orders.read");
    asking_for("prompt", "none").proceeds("openid");
}

#[test]
fn without_a_living_session_somebody_signs_in() {
    Case {
        session: None,
        ..case()
    }
    .needs_sign_in(LoginCause::NoSession);
    case()
        .of(Session {
            expires_at: NOW,
            ..session()
        })
        .needs_sign_in(LoginCause::NoSession);
    case()
        .of(Session {
            expires_at: NOW.plus(std::time::Duration::from_micros(1)),
            ..session()
        })
        .proceeds("openid");
    Case {
        session: None,
        ..case()
    }
    .at(agreed("openid"))
    .needs_sign_in(LoginCause::NoSession);
}

#[test]
fn prompt_login_is_satisfied_by_a_sign_in_of_its_own_and_by_no_other() {
    let asked = asking_for("prompt", "login");
    let almost = Session {
        auth_time: RECEIVED_AT.minus(std::time::Duration::from_micros(1)),
        ..session()
    };
    for step in [
        Step::Arrival,
        Step::AfterAccountChosen,
        Step::AfterWishDeclined,
        agreed("openid"),
    ] {
        asked
            .clone()
            .at(step.clone())
            .needs_sign_in(LoginCause::Prompt);
        asked
            .clone()
            .of(almost.clone())
            .at(step.clone())
            .needs_sign_in(LoginCause::Prompt);
        asked.clone().of(fresh()).at(step).proceeds("openid");
    }
    asked.of(fresh()).at(Step::AfterSignIn).proceeds("openid");
}

/// The request was made before each of these sign-ins, which helps nobody.
#[test]
fn a_session_without_a_key_counts_for_90_seconds_where_the_client_requires_one() {
    let arrival = Step::Arrival;
    for (millis, step, is_bound, counts) in [
        (0, &arrival, false, true),
        (89_999, &arrival, false, true),
        (90_000, &arrival, false, false),
        (90_000, &Step::AfterAccountChosen, false, false),
        (90_000, &Step::AfterWishDeclined, false, false),
        (90_000, &Step::AfterSignIn, false, true),
        (89_999, &Step::AfterFactor, false, true),
        (90_000, &Step::AfterFactor, false, false),
        (3_500_000, &agreed("openid"), false, true),
        (3_500_000, &arrival, true, true),
    ] {
        let strict = Case {
            client: Client {
                require_bound_session: true,
                ..client()
            },
            is_bound,
            now: RECEIVED_AT.plus(Duration::from_millis(millis)),
            ..case().of(fresh()).at(step.clone())
        };
        if counts {
            strict.proceeds("openid");
        } else {
            strict.needs_sign_in(LoginCause::Unbound);
        }
    }
}

#[test]
fn a_client_with_roles_is_open_to_whoever_has_one_of_them() {
    let closed = Case {
        client: Client {
            allowed_roles: Some(["admin".into()].into()),
            ..client()
        },
        ..case()
    };
    for step in [Step::Arrival, Step::AfterSignIn, agreed("openid")] {
        Case {
            role: Some(json!(["user", "admin"])),
            ..closed.clone()
        }
        .at(step.clone())
        .proceeds("openid");
        for role in [
            None,
            Some(json!([])),
            Some(json!("Staff")),
            Some(json!({"admin": 1})),
        ] {
            let case = Case {
                role,
                ..closed.clone()
            }
            .at(step.clone());
            assert_eq!(case.decided(), Interaction::NotOpen);
            case.with("prompt", "none")
                .is_refused(AuthorizeErrorCode::AccessDenied, Reason::NotOpenToUser);
        }
    }
}

/// Upstream they may be content with a sign-in of theirs that is older than the request.
#[test]
fn a_sign_in_upstream_that_is_still_too_old_is_refused_and_not_asked_for_again() {
    let upstream = Session {
        identity_provider: Some("corp".to_owned()),
        ..session()
    };
    for (name, value, cause) in [
        ("prompt", "login", LoginCause::Prompt),
        ("max_age", "0", LoginCause::TooOld),
        ("max_age", "102", LoginCause::TooOld),
    ] {
        let asked = asking_for(name, value).of(upstream.clone());
        asked.needs_sign_in(cause);
        asked
            .at(Step::AfterSignIn)
            .is_refused(AuthorizeErrorCode::LoginRequired, Reason::SignInTooOld);
    }
    let good_enough = asking_for("max_age", "103").of(upstream.clone());
    good_enough.at(Step::AfterSignIn).proceeds("openid");
    let died = Session {
        expires_at: NOW,
        ..upstream
    };
    case()
        .of(died)
        .at(Step::AfterSignIn)
        .needs_sign_in(LoginCause::NoSession);
}

#[test]
fn max_age_counts_from_the_last_sign_in() {
    // The session is 103 s old.
    for (max_age, good) in [
        ("0", false),
        ("1", false),
        ("102", false),
        ("103", true),
        ("104", true),
        ("999999999999999999", true),
    ] {
        let asked = asking_for("max_age", max_age);
        if good {
            asked.proceeds("openid")
        } else {
            asked.needs_sign_in(LoginCause::TooOld)
        }
        asked.of(fresh()).proceeds("openid");
    }
    let later = NOW.plus(std::time::Duration::from_millis(1));
    Case {
        now: later,
        ..asking_for("max_age", "103")
    }
    .needs_sign_in(LoginCause::TooOld);
    // A clock that runs behind does not make an old session fresh.
    let now = Instant::from_seconds(RECEIVED_AT.seconds() - 1);
    let behind = Case {
        now,
        ..asking_for("max_age", "0")
    };
    behind
        .of(Session {
            auth_time: now,
            ..session()
        })
        .needs_sign_in(LoginCause::TooOld);
    // A sign-in answers its own request, however long its pages stay open.
    let now = Instant::from_seconds(RECEIVED_AT.seconds() + 3000);
    let asked = Case {
        now,
        ..asking_for("max_age", "0")
    }
    .of(fresh());
    asked.clone().proceeds("openid");
    asked.at(agreed("openid")).proceeds("openid");
    let client = Client {
        default_max_age: Some(60),
        ..client()
    };
    Case {
        client: client.clone(),
        ..case()
    }
    .needs_sign_in(LoginCause::TooOld);
    Case { client, ..case() }
        .with("max_age", "600")
        .proceeds("openid");
}

#[test]
fn a_session_of_another_tenant_or_of_none_will_not_do() {
    let of = |tenant: Option<&str>| Session {
        tenant: tenant.map(TenantName::new),
        ..session()
    };
    let plain = Case {
        catalogue: catalogue_with_tenants(),
        ..case()
    };
    let acme = plain.clone().with("acr_values", "tenant:acme");
    acme.clone().of(of(Some("acme"))).proceeds("openid");
    acme.clone()
        .of(of(Some("globex")))
        .needs_sign_in(LoginCause::OtherTenant);
    acme.of(of(None)).needs_sign_in(LoginCause::OtherTenant);
    plain
        .clone()
        .of(of(Some("acme")))
        .needs_sign_in(LoginCause::OtherTenant);
    plain.clone().of(of(None)).proceeds("openid");
    let only_acme = Client {
        tenants: Some(BTreeSet::from([TenantName::new("acme")])),
        ..client()
    };
    Case {
        client: only_acme.clone(),
        ..plain.clone()
    }
    .of(of(Some("acme")))
    .proceeds("openid");
    Case {
        client: only_acme,
        ..plain
    }
    .of(of(None))
    .needs_sign_in(LoginCause::OtherTenant);
}

#[test]
fn a_session_of_another_identity_provider_will_not_do() {
    let of = |provider: Option<&str>| Session {
        identity_provider: provider.map(str::to_owned),
        ..session()
    };
    let corp = asking_for("acr_values", "idp:corp");
    corp.clone().of(of(Some("corp"))).proceeds("openid");
    corp.clone()
        .of(of(None))
        .needs_sign_in(LoginCause::OtherIdentityProvider);
    corp.of(of(Some(LOCAL)))
        .needs_sign_in(LoginCause::OtherIdentityProvider);
    let local = asking_for("acr_values", "idp:local");
    local.clone().of(of(None)).proceeds("openid");
    local
        .of(of(Some("corp")))
        .needs_sign_in(LoginCause::OtherIdentityProvider);
    // An unknown one is no wish at all.
    asking_for("acr_values", "idp:nope")
        .of(of(Some("corp")))
        .proceeds("openid");
}

#[test]
fn a_session_of_a_provider_the_client_does_not_allow_will_not_do() {
    let only_corp = Client {
        identity_providers: Some(BTreeSet::from(["corp".to_owned()])),
        ..client()
    };
    Case {
        client: only_corp.clone(),
        ..case()
    }
    .needs_sign_in(LoginCause::OtherIdentityProvider);
    let corp = Session {
        identity_provider: Some("corp".to_owned()),
        ..session()
    };
    Case {
        client: only_corp,
        ..case()
    }
    .of(corp)
    .proceeds("openid");
    for gone in ["former", "never-registered"] {
        let former = Session {
            identity_provider: Some(gone.to_owned()),
            ..session()
        };
        let asked = case().of(former);
        asked.needs_sign_in(LoginCause::OtherIdentityProvider);
        asked
            .clone()
            .at(agreed("openid"))
            .needs_sign_in(LoginCause::OtherIdentityProvider);
        asked
            .at(Step::AfterSignIn)
            .is_refused(AuthorizeErrorCode::AccessDenied, Reason::NoWayToSignIn);
    }
}

#[test]
fn a_provider_that_came_to_belong_to_a_tenant_vouches_for_nobody_outside_it() {
    let mut catalogue = catalogue_with_tenants();
    catalogue.identity_providers.get_mut("corp").unwrap().tenant = Some(TenantName::new("acme"));
    let of = |tenant: Option<&str>| Session {
        identity_provider: Some("corp".to_owned()),
        tenant: tenant.map(TenantName::new),
        ..session()
    };
    let plain = Case {
        catalogue,
        ..case()
    };
    plain
        .clone()
        .of(of(None))
        .needs_sign_in(LoginCause::OtherIdentityProvider);
    let acme = plain.with("acr_values", "tenant:acme");
    acme.clone().of(of(Some("acme"))).proceeds("openid");
    acme.of(of(Some("globex")))
        .needs_sign_in(LoginCause::OtherTenant);
}

#[test]
fn a_hinted_subject_is_asked_for_once_and_then_refused() {
    for (name, hinted) in [("alice", true), ("bob", false)] {
        let hint = Case {
            hinted_subject: Some(Subject::new(name)),
            ..case()
        };
        let claims = asking_for(
            "claims",
            &format!(r#"{{"id_token":{{"sub":{{"value":"{name}"}}}}}}"#),
        );
        for asked in [hint, claims] {
            if hinted {
                asked.clone().proceeds("openid");
                asked.of(fresh()).at(Step::AfterSignIn).proceeds("openid");
            } else {
                asked.needs_sign_in(LoginCause::OtherSubject);
                asked
                    .clone()
                    .at(agreed("openid"))
                    .needs_sign_in(LoginCause::OtherSubject);
                asked
                    .of(fresh())
                    .at(Step::AfterSignIn)
                    .is_refused(AuthorizeErrorCode::LoginRequired, Reason::OtherSubject);
            }
        }
    }
}

#[test]
fn an_account_is_chosen_on_the_chooser_or_by_signing_in() {
    let asked = asking_for("prompt", "select_account");
    assert_eq!(asked.decided(), Interaction::SelectAccount);
    // However long ago somebody signed in upstream, who comes from there has chosen.
    asked.clone().at(Step::AfterSignIn).proceeds("openid");
    asked
        .clone()
        .with("prompt", "select_account consent")
        .at(Step::AfterSignIn)
        .needs_consent(true);
    asked
        .clone()
        .at(Step::AfterAccountChosen)
        .proceeds("openid");
    asked
        .clone()
        .of(fresh())
        .at(Step::AfterSignIn)
        .proceeds("openid");
    asked.clone().at(agreed("openid")).proceeds("openid");
    Case {
        session: None,
        ..asked.clone()
    }
    .needs_sign_in(LoginCause::NoSession);
    let both = asked.with("prompt", "select_account login");
    both.needs_sign_in(LoginCause::Prompt);
    both.clone()
        .at(Step::AfterAccountChosen)
        .needs_sign_in(LoginCause::Prompt);
    both.of(fresh()).at(Step::AfterSignIn).proceeds("openid");
}

#[test]
fn choosing_comes_before_consent() {
    let asked = asking_for("prompt", "consent select_account");
    assert_eq!(asked.decided(), Interaction::SelectAccount);
    asked
        .clone()
        .at(Step::AfterAccountChosen)
        .needs_consent(true);
    asked.at(agreed("openid")).proceeds("openid");
}

#[test]
fn prompt_consent_asks_even_where_nothing_requires_it() {
    for require_consent in [None, Some(false), Some(true)] {
        let client = Client {
            require_consent,
            ..client()
        };
        let asked = Case {
            client,
            consent: consent("openid"),
            ..asking_for("prompt", "consent")
        };
        asked.needs_consent(true);
        asked.clone().at(Step::AfterSignIn).needs_consent(true);
        asked.at(agreed("openid")).proceeds("openid");
    }
}

#[test]
fn required_consent_is_asked_once_and_again_when_the_request_grows() {
    let asking_client = Client {
        require_consent: Some(true),
        ..client()
    };
    let asked = Case {
        client: asking_client,
        ..asking_for("scope", "openid email")
    };
    asked.needs_consent(true);
    Case {
        consent: consent("openid email profile"),
        ..asked.clone()
    }
    .proceeds("openid email");
    Case {
        consent: consent("openid"),
        ..asked.clone()
    }
    .needs_consent(true);
    let remembered = Case {
        consent: consent("openid email"),
        ..asked
    };
    remembered.proceeds("openid email");
    remembered
        .clone()
        .with("prompt", "none")
        .proceeds("openid email");
    remembered
        .clone()
        .with("claims", r#"{"userinfo":{"name":null}}"#)
        .needs_consent(true);
    let withdrawn = Consent {
        scope: ScopeSet::default(),
        ..remembered.consent.clone().unwrap()
    };
    Case {
        consent: Some(withdrawn),
        ..remembered.clone()
    }
    .needs_consent(true);
    let short_lived = Client {
        consent_lifetime: Some(std::time::Duration::from_secs(3)),
        ..remembered.client.clone()
    };
    Case {
        client: short_lived,
        ..remembered.clone()
    }
    .needs_consent(true);
    let forgetful = Client {
        allow_remember_consent: Some(false),
        ..remembered.client.clone()
    };
    Case {
        client: forgetful,
        ..remembered
    }
    .needs_consent(false);
}

#[test]
fn a_client_anyone_could_pose_as_is_asked_about_each_time() {
    for uri in [
        "http://127.0.0.1/cb",
        "http://localhost:3000/cb",
        "com.example.app:/cb",
    ] {
        let app = public_client(&[uri]);
        let asked = Case {
            client: app.clone(),
            consent: consent("openid"),
            ..asking_for("redirect_uri", uri)
        };
        asked.needs_consent(false);
        asked.clone().at(agreed("openid")).proceeds("openid");
        let client = Client {
            require_consent: Some(true),
            ..app.clone()
        };
        Case {
            client,
            ..asked.clone()
        }
        .needs_consent(false);
        let client = Client {
            require_consent: Some(false),
            ..app.clone()
        };
        Case {
            client,
            ..asked.clone()
        }
        .proceeds("openid");
        // Said in so many words it may be remembered where a web server listens, but not behind a
        // scheme that anybody may claim.
        for require_consent in [None, Some(true)] {
            let client = Client {
                allow_remember_consent: Some(true),
                require_consent,
                ..app.clone()
            };
            let asked = Case {
                client,
                ..asked.clone()
            };
            if uri.starts_with("http:") {
                asked.proceeds("openid");
                asked.clone().with("prompt", "none").proceeds("openid");
                Case {
                    consent: None,
                    ..asked
                }
                .needs_consent(true);
            } else {
                asked.needs_consent(false);
            }
        }
    }
    let confidential = Client {
        redirect_uris: vec!["http://127.0.0.1/cb".to_owned()],
        ..client()
    };
    Case {
        client: confidential,
        ..asking_for("redirect_uri", "http://127.0.0.1/cb")
    }
    .proceeds("openid");
    Case {
        client: public_client(&[REDIRECT_URI]),
        ..case()
    }
    .proceeds("openid");
}

#[test]
fn whether_people_are_always_asked_follows_from_the_registration() {
    let uris = ["http://127.0.0.1/cb", "com.example.app:/cb", REDIRECT_URI];
    let [loopback, own_scheme, web] = uris;
    let app = public_client(&uris);
    let confidential = Client {
        redirect_uris: app.redirect_uris.clone(),
        ..client()
    };
    let remembering = Client {
        allow_remember_consent: Some(true),
        ..app.clone()
    };
    for (client, uri, always) in [
        (&app, loopback, true),
        (&app, own_scheme, true),
        (&app, web, false),
        (&remembering, loopback, false),
        (&remembering, own_scheme, true),
        (&confidential, loopback, false),
    ] {
        let target = RedirectTarget::match_registered(uri, client).unwrap();
        assert_eq!(always_asks(client, &target), always, "{uri}");
    }
}

/// RFC 8628 §5.4.
#[test]
fn a_device_is_asked_about_whatever_was_allowed_and_registered() {
    for require_consent in [None, Some(false), Some(true)] {
        let client = Client {
            require_consent,
            allow_remember_consent: Some(true),
            ..client()
        };
        let code = Ending::Device(UserCode::parse("BCDF-GHJK").unwrap());
        let device =
            AuthorizeRequest::of_our_own(Some(&client), code, AcrValues::default(), RECEIVED_AT);
        let request = AuthorizeRequest {
            scope: ScopeSet::parse("openid").unwrap(),
            ..device
        };
        let asked = Case {
            client,
            consent: consent("openid email"),
            ..case()
        };
        for (step, session) in [(Step::Arrival, session()), (Step::AfterSignIn, fresh())] {
            let shown = asked.clone().of(session).at(step).decided_for(&request);
            assert_eq!(
                shown,
                Interaction::Consent {
                    may_remember: false
                }
            );
        }
        let agreed = asked.clone().at(agreed("openid email"));
        assert_eq!(agreed.decided_for(&request), proceed(request.scope.clone()));
        // Who may decide is judged as for any other request of that client.
        let fresh_only = AuthorizeRequest {
            max_age: Some(99),
            ..request.clone()
        };
        assert_eq!(
            agreed.decided_for(&fresh_only),
            Interaction::Login {
                cause: LoginCause::TooOld
            }
        );
        let other = Session {
            tenant: Some(TenantName::new("acme")),
            ..session()
        };
        let shown = agreed.of(other).decided_for(&request);
        assert_eq!(
            shown,
            Interaction::Login {
                cause: LoginCause::OtherTenant
            }
        );
    }
}

#[test]
fn an_account_is_shown_to_any_tenant_unless_one_is_named_and_to_nobody_whose_provider_is_gone() {
    let of = |tenant: Option<&str>| Session {
        tenant: tenant.map(TenantName::new),
        ..session()
    };
    let named = AcrValues {
        tenant: Some(TenantName::new("acme")),
        ..AcrValues::default()
    };
    for (acr_values, tenant, shown) in [
        (AcrValues::default(), None, true),
        (AcrValues::default(), Some("acme"), true),
        (named.clone(), Some("acme"), true),
        (named.clone(), Some("globex"), false),
        (named, None, false),
    ] {
        let request = AuthorizeRequest::of_our_own(
            None,
            Ending::Account {
                anew: false,
                page: LandingPage::Account,
            },
            acr_values,
            RECEIVED_AT,
        );
        let plain = Case {
            catalogue: catalogue_with_tenants(),
            ..case()
        }
        .of(of(tenant));
        let shows = |case: &Case| matches!(case.decided_for(&request), Interaction::Proceed { .. });
        assert_eq!(shows(&plain), shown, "{tenant:?}");
        let former = Session {
            identity_provider: Some("former".to_owned()),
            ..of(tenant)
        };
        assert!(!shows(&plain.of(former)));
    }
}

#[test]
fn what_was_granted_is_at_most_what_was_asked() {
    let asked = asking_for("scope", "openid email profile");
    asked
        .clone()
        .at(agreed("openid email"))
        .proceeds("openid email");
    asked
        .at(agreed("openid email orders.read"))
        .proceeds("openid email");
}

#[test]
fn ticks_narrow_but_never_widen() {
    let mut catalogue = catalogue();
    catalogue.scopes.get_mut("profile").unwrap().required = true;
    let set = |text: &str| ScopeSet::parse(text).unwrap();
    let ticks = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
    for (requested, ticked, granted) in [
        ("openid email", "openid email", "openid email"),
        ("openid email", "email", "openid email"),
        ("openid email", "", "openid"),
        ("openid profile email", "openid", "openid profile"),
        (
            "openid email offline_access",
            "openid email",
            "openid email",
        ),
        ("orders.read stock.read", "stock.read", "stock.read"),
    ] {
        assert_eq!(
            narrow(&set(requested), &ticks(ticked), &catalogue),
            Ok(set(granted)),
            "{requested}: {ticked}"
        );
    }
    for ticked in ["orders.read", "openid orders.read", "openid email nope"] {
        let refused = narrow(&set("openid email"), &ticks(ticked), &catalogue).unwrap_err();
        assert_eq!(
            (refused.code, refused.reason),
            (
                AuthorizeErrorCode::InvalidRequest,
                Reason::ScopeOutsideRequest
            )
        );
    }
    let denied = narrow(&set("orders.read"), &[], &catalogue).unwrap_err();
    assert_eq!(denied.code, AuthorizeErrorCode::AccessDenied);
}

fn any_case() -> impl Strategy<Value = Case> {
    let prompts = prop::sample::select(vec![
        "",
        "none",
        "login",
        "consent",
        "select_account",
        "login consent select_account",
    ]);
    let max_ages = prop::sample::select(vec!["", "0", "50", "500"]);
    let steps = prop::sample::select(vec![
        Step::Arrival,
        Step::AfterSignIn,
        Step::AfterFactor,
        Step::AfterAccountChosen,
        Step::AfterWishDeclined,
        agreed("openid"),
    ]);
    let sessions = prop::option::of((0_i64..200, prop::sample::select(vec!["alice", "bob"])));
    (
        prompts,
        max_ages,
        steps,
        sessions,
        any::<bool>(),
        prop::option::of(any::<bool>()),
    )
        .prop_map(
            |(prompt, max_age, step, signed_in, hinted, require_consent)| Case {
                asked: asking().with("prompt", prompt).with("max_age", max_age),
                client: Client {
                    require_consent,
                    ..client()
                },
                session: signed_in.map(|(age, name)| Session {
                    subject: Subject::new(name),
                    auth_time: Instant::from_seconds(NOW.seconds() - age),
                    ..session()
                }),
                hinted_subject: hinted.then(|| Subject::new("alice")),
                step,
                ..case()
            },
        )
}

proptest! {
    #[test]
    fn prompt_none_never_shows_a_page(any_case in any_case()) {
        let shown = any_case.with("prompt", "none").decided();
        prop_assert!(matches!(shown, Interaction::Proceed { .. } | Interaction::Refuse(_)), "{:?}", shown);
    }

    #[test]
    fn who_has_just_signed_in_is_never_sent_to_sign_in_again(any_case in any_case()) {
        let shown = any_case.clone().at(Step::AfterSignIn).decided();
        let is_alive = any_case.session.is_some();
        prop_assert!(!is_alive || !matches!(shown, Interaction::Login { .. } | Interaction::SelectAccount), "{:?}", shown);
    }

    #[test]
    fn nobody_proceeds_without_a_session_that_fits(any_case in any_case()) {
        if let Interaction::Proceed { scope } = any_case.decided() {
            let session = any_case.session.clone().unwrap();
            prop_assert!(scope.is_within(&any_case.request().scope));
            prop_assert!(any_case.hinted_subject.is_none_or(|hinted| hinted == session.subject));
            prop_assert!(!any_case.asked.parameters().all("prompt").any(|prompt| prompt.contains("login")) || session.auth_time >= RECEIVED_AT);
        }
    }
}
