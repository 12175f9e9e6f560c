//! What is asked of a session that is weaker than it must be, or than a client wishes.

use super::case::*;
use super::*;

#[test]
fn an_essential_acr_is_asked_for_once_of_people_from_elsewhere_and_then_refused() {
    let asked = asking_for(
        "claims",
        r#"{"id_token":{"acr":{"essential":true,"values":["2"]}}}"#,
    );
    let elsewhere = Session {
        identity_provider: Some("corp".to_owned()),
        ..fresh()
    };
    asked
        .clone()
        .of(elsewhere.clone())
        .needs_sign_in(LoginCause::OtherAcr);
    let refused = AuthorizeErrorCode::UnmetAuthenticationRequirements;
    asked
        .clone()
        .of(elsewhere.clone())
        .at(Step::AfterSignIn)
        .is_refused(refused, Reason::UnmetAuthenticationRequirements);
    asked
        .of(Session {
            acr: String::from("phr"),
            ..elsewhere
        })
        .proceeds("openid");
}

/// What a local session of so much meets: what must be, what its user has, what they may add.
#[test]
fn a_session_that_is_too_weak_is_made_stronger_or_refused() {
    use Strength::{PhishingResistant, SignedIn, TwoFactors};
    let prove = Interaction::Stronger(Stronger::Prove { may_skip: false });
    let enrol = |strength| Interaction::Stronger(Stronger::Enrol(strength));
    let unmet = AuthorizeErrorCode::UnmetAuthenticationRequirements;
    let refused = |code, reason| Interaction::Refuse(AuthorizeRefusal::new(code, reason));
    let never = refused(unmet, Reason::UnmetAuthenticationRequirements);
    let declined = refused(unmet, Reason::FactorDeclined);
    let interaction = refused(
        AuthorizeErrorCode::InteractionRequired,
        Reason::InteractionRequired,
    );
    let go_on = proceed(ScopeSet::parse("openid").unwrap());
    let essential = |values: &str| {
        format!(r#"{{"id_token":{{"acr":{{"essential":true,"values":{values}}}}}}}"#)
    };
    for (acr, values, [minimum, has, may_add], expected, silent) in [
        (
            "1",
            "[\"1\"]",
            [SignedIn, SignedIn, TwoFactors],
            &go_on,
            &go_on,
        ),
        (
            "1",
            "[\"2\"]",
            [SignedIn, TwoFactors, TwoFactors],
            &prove,
            &interaction,
        ),
        (
            "1",
            "[\"2\"]",
            [SignedIn, SignedIn, TwoFactors],
            &enrol(TwoFactors),
            &declined,
        ),
        (
            "1",
            "[\"2\"]",
            [SignedIn, SignedIn, SignedIn],
            &declined,
            &declined,
        ),
        (
            "1",
            "[\"1\"]",
            [TwoFactors, TwoFactors, TwoFactors],
            &never,
            &never,
        ),
        (
            "1",
            "[\"1\", \"2\"]",
            [TwoFactors, TwoFactors, TwoFactors],
            &prove,
            &interaction,
        ),
        (
            "2",
            "[\"phr\", \"2\"]",
            [SignedIn, PhishingResistant, PhishingResistant],
            &go_on,
            &go_on,
        ),
        (
            "2",
            "[\"phr\"]",
            [SignedIn, PhishingResistant, PhishingResistant],
            &prove,
            &interaction,
        ),
        (
            "2",
            "[\"phr\"]",
            [SignedIn, TwoFactors, PhishingResistant],
            &enrol(PhishingResistant),
            &declined,
        ),
        (
            "2",
            "[\"phr\"]",
            [SignedIn, TwoFactors, TwoFactors],
            &declined,
            &declined,
        ),
        (
            "phr",
            "[\"2\"]",
            [PhishingResistant, PhishingResistant, PhishingResistant],
            &never,
            &never,
        ),
    ] {
        let asked = asking_for("claims", &essential(values)).of(Session {
            acr: acr.to_owned(),
            ..fresh()
        });
        let case = Case {
            acr: [minimum, has, may_add],
            step: Step::AfterSignIn,
            ..asked
        };
        assert_eq!(
            case.decided(),
            *expected,
            "{acr} {values} {minimum:?} {has:?} {may_add:?}"
        );
        let case = Case {
            step: Step::Arrival,
            ..case
        }
        .with("prompt", "none");
        assert_eq!(
            case.decided(),
            *silent,
            "silent {acr} {values} {minimum:?} {has:?} {may_add:?}"
        );
    }
    // A first factor is added by whoever typed the password just now.
    let old = Session {
        auth_time: NOW.minus(std::time::Duration::from_secs(301)),
        ..session()
    };
    let case = Case {
        acr: [TwoFactors, SignedIn, TwoFactors],
        ..case()
    }
    .of(old);
    assert_eq!(
        case.decided(),
        Interaction::Login {
            cause: LoginCause::OtherAcr
        }
    );
}

#[test]
fn a_wish_is_asked_once_of_a_standing_session_and_never_in_silence() {
    use Strength::{PhishingResistant, SignedIn, TwoFactors};
    let skippable = Interaction::Stronger(Stronger::Prove { may_skip: true });
    for (acr, wish, has, is_asked) in [
        ("1", "2", TwoFactors, true),
        ("1", "2", SignedIn, false),
        ("1", "2", PhishingResistant, true),
        ("1", "phr", TwoFactors, false),
        ("1", "phr 2", TwoFactors, true),
        ("1", "1 2", TwoFactors, false),
        ("2", "2 phr", PhishingResistant, false),
        ("2", "phr 2", PhishingResistant, true),
        ("1", "gold", PhishingResistant, false),
    ] {
        let asked = asking_for("acr_values", wish).of(Session {
            acr: acr.to_owned(),
            ..session()
        });
        let case = Case {
            acr: [SignedIn, has, PhishingResistant],
            ..asked
        };
        // Whoever was asked for their account first, and chose it, was not asked for this yet.
        let chosen = case.clone().with("prompt", "select_account");
        assert_eq!(chosen.decided(), Interaction::SelectAccount);
        for asked in [&case, &chosen.at(Step::AfterAccountChosen)] {
            assert_eq!(
                asked.decided() == skippable,
                is_asked,
                "{acr} {wish} {has:?} {:?}",
                asked.step
            );
        }
        case.clone().at(Step::AfterWishDeclined).proceeds("openid");
        case.clone()
            .of(Session {
                acr: acr.to_owned(),
                ..fresh()
            })
            .proceeds("openid");
        case.with("prompt", "none").proceeds("openid");
    }
}
