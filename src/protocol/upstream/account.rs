//! Which account belongs to an identity that was proved upstream, and which of its claims change
//! with that sign-in. Also when such an identity may be linked to an account, and the link that
//! waits for the user's yes.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::registration::administration::Administration;
use super::super::registration::names::is_invisible;
use super::super::registration::user::is_possible_claim;
use super::super::registration::verified_address;
use crate::words::identifiers::{Sid, TenantName};
use crate::words::identity_provider::IdentityProvider;
use crate::words::instant::Instant;
use crate::words::json::{JsonObject, SetMember};
use crate::words::session::User;

#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub enum AccountDecision {
    SignIn,
    Provision,
    Refuse(AccountRefusal),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AccountRefusal {
    /// No user is linked to that identity, and the provider does not provision new ones.
    NotProvisioned,
    Disabled,
    /// The provider's people, or this person's account, belong to another tenant than the one of
    /// the request.
    OtherTenant,
}

/// A tenant is entered by its own people alone: those who have an account in it, and new ones of a
/// provider that is bound to it. The tenant stands in an address that anybody can write, so a
/// provider of no tenant brings new people to none.
pub fn decide(
    provider: &IdentityProvider,
    tenant: Option<&TenantName>,
    linked: Option<&User>,
) -> AccountDecision {
    let is_bound_elsewhere = provider
        .tenant
        .as_ref()
        .is_some_and(|bound| Some(bound) != tenant);
    match linked {
        _ if is_bound_elsewhere => AccountDecision::Refuse(AccountRefusal::OtherTenant),
        Some(user) if user.tenant.as_ref() != tenant => {
            AccountDecision::Refuse(AccountRefusal::OtherTenant)
        }
        Some(user) if !user.enabled => AccountDecision::Refuse(AccountRefusal::Disabled),
        Some(_) => AccountDecision::SignIn,
        None if !provider.provision => AccountDecision::Refuse(AccountRefusal::NotProvisioned),
        None if provider.tenant.as_ref() != tenant => {
            AccountDecision::Refuse(AccountRefusal::OtherTenant)
        }
        None => AccountDecision::Provision,
    }
}

/// What upstream says that a user here can have: `role` and the standard claims in their types,
/// none of the names that tokens use themselves.
pub fn possible_claims(claims: &JsonObject) -> JsonObject {
    let mut possible = claims.clone();
    possible.retain(|name, value| is_possible_claim(name, value));
    possible
}

#[derive(Default)]
pub struct ClaimsChange {
    pub set: JsonObject,
    pub removed: BTreeSet<String>,
}

impl ClaimsChange {
    /// The changes to a user who has `present`, where upstream said `before` the last time and says
    /// `now`. A claim that upstream says is set, whatever it was. A claim that it no longer says
    /// goes, unless it was changed here since. That an address or number is verified was changed
    /// here with the address or number. A claim that it never said is left alone.
    pub fn between(present: &JsonObject, before: &JsonObject, now: &JsonObject) -> ClaimsChange {
        let mut change = ClaimsChange::default();
        for (name, value) in now {
            if present.get(name) != Some(value) {
                change.set.insert(name.clone(), value.clone());
            }
        }
        let is_unchanged = |name: &str| present.get(name) == before.get(name);
        for name in before.keys() {
            let about = name.trim_end_matches("_verified");
            if !now.contains_key(name) && is_unchanged(name) && is_unchanged(about) {
                change.removed.insert(name.clone());
            }
        }
        change.settle_verification(present, now);
        change
    }

    /// A verification goes with the address or number that it was of.
    fn settle_verification(&mut self, present: &JsonObject, now: &JsonObject) {
        if let Some(email) = self.set.get("email")
            && !now.contains_key("email_verified")
            && let Some(verified) = verified_address::unsaid(present, email)
        {
            self.removed.remove("email_verified");
            self.set.set("email_verified", verified);
        }
        for (is_touched, flag) in [
            (self.removed.contains("email"), "email_verified"),
            (
                self.names().contains("phone_number"),
                "phone_number_verified",
            ),
        ] {
            if is_touched && !now.contains_key(flag) && present.contains_key(flag) {
                self.removed.insert(flag.to_owned());
            }
        }
    }

    /// The same with the roles of administrators, which a provider neither gives nor takes: they
    /// are set aside, and put back where the role changes. What it says `now` has none of them.
    pub fn beside_admin_roles(
        administration: &Administration,
        present: &JsonObject,
        before: &JsonObject,
        now: &JsonObject,
    ) -> ClaimsChange {
        let rest = administration.without_admin_roles(present);
        let before = administration.without_admin_roles(before);
        let mut change = ClaimsChange::between(&rest, &before, now);
        if change.names().contains("role") {
            administration.keep_admin_roles(present, &mut change.set);
        }
        change
    }

    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty()
    }

    pub fn applied(&self, present: &JsonObject) -> JsonObject {
        let mut applied = present.clone();
        applied.retain(|name, _| !self.removed.contains(name));
        applied.extend(self.set.clone());
        applied
    }

    pub fn names(&self) -> BTreeSet<&str> {
        self.set
            .keys()
            .chain(&self.removed)
            .map(String::as_str)
            .collect()
    }
}

/// How long the question whether to link waits for its answer.
pub const OFFER_LIFETIME: Duration = Duration::from_secs(300);

/// An identity that was proven upstream and waits, sealed in a form, for the person to say that it
/// shall be theirs.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkOffer {
    pub provider: String,
    pub issuer: String,
    pub subject: String,
    pub label: Option<String>,
    /// The session that asked for it, and no other, may take it.
    pub sid: Sid,
}

#[derive(Debug, PartialEq)]
pub enum OfferProblem {
    OtherSession,
    Expired,
}

/// A subject as the person reads it who says yes to it: what cannot be seen, or turns the rest
/// around, is seen to be there.
pub fn readable(subject: &str) -> String {
    subject
        .chars()
        .map(|character| {
            if is_invisible(character) {
                '\u{fffd}'
            } else {
                character
            }
        })
        .collect()
}

impl LinkOffer {
    /// Whether this session may take it now.
    pub fn judge(&self, sid: &Sid, made_at: Instant, now: Instant) -> Result<(), OfferProblem> {
        if self.sid != *sid {
            Err(OfferProblem::OtherSession)
        } else if now >= made_at.plus(OFFER_LIFETIME) {
            Err(OfferProblem::Expired)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::super::registration::provider;
    use super::*;
    use crate::words::samples;
    use crate::words::strength::Strength;

    fn registered(more: Value) -> IdentityProvider {
        let document =
            json!({"name": "corp", "issuer": "https://login.example.com", "client_id": "gatepost"});
        provider::from_json(&samples::changed(document, more), "").unwrap()
    }

    fn user(tenant: Option<&str>, enabled: bool) -> User {
        User {
            tenant: tenant.map(TenantName::new),
            enabled,
            ..samples::alice()
        }
    }

    #[test]
    fn an_offer_is_for_its_session_and_for_five_minutes() {
        let offer = LinkOffer {
            provider: String::from("corp"),
            issuer: String::from("https://login.example.com"),
            subject: String::from("4712"),
            label: None,
            sid: Sid::new("own"),
        };
        for (sid, seconds, verdict) in [
            ("own", 0, Ok(())),
            ("own", 299, Ok(())),
            ("own", 300, Err(OfferProblem::Expired)),
            ("other", 0, Err(OfferProblem::OtherSession)),
        ] {
            let now = samples::NOW.plus(Duration::from_secs(seconds));
            let judged = offer.judge(&Sid::new(sid), samples::NOW, now);
            assert_eq!(judged, verdict, "{sid} after {seconds} s");
        }
    }

    #[test]
    fn only_claims_that_a_user_here_can_have_are_taken() {
        let said =
            json!({"name": "Alice", "role": ["staff"], "sub": "4712", "acr": "phr", "email": 7});
        let possible = possible_claims(said.as_object().unwrap());
        assert_eq!(
            Value::Object(possible),
            json!({"name": "Alice", "role": ["staff"]})
        );
    }

    #[test]
    fn who_signs_in_where() {
        let [other_tenant, not_provisioned, disabled_here] = [
            AccountRefusal::OtherTenant,
            AccountRefusal::NotProvisioned,
            AccountRefusal::Disabled,
        ]
        .map(AccountDecision::Refuse);
        let (sign_in, provision) = (AccountDecision::SignIn, AccountDecision::Provision);
        let (none, acme, other) = (None, Some("acme"), Some("other"));
        let (alice, of_acme) = (user(none, true), user(acme, true));
        let (disabled, disabled_of_acme) = (user(none, false), user(acme, false));
        let cases = [
            (json!({}), none, None, provision),
            (json!({}), acme, None, other_tenant),
            (json!({"provision": false}), acme, None, not_provisioned),
            (json!({"provision": false}), acme, Some(&of_acme), sign_in),
            (json!({}), none, Some(&alice), sign_in),
            (json!({}), acme, Some(&of_acme), sign_in),
            (json!({}), none, Some(&disabled), disabled_here),
            (json!({}), acme, Some(&disabled_of_acme), disabled_here),
            // Do not tell one tenant whether an account of another is disabled.
            (json!({}), other, Some(&disabled_of_acme), other_tenant),
            (json!({}), acme, Some(&alice), other_tenant),
            (json!({}), none, Some(&of_acme), other_tenant),
            (json!({}), other, Some(&of_acme), other_tenant),
            (json!({"tenant": "acme"}), acme, None, provision),
            (json!({"tenant": "acme"}), acme, Some(&of_acme), sign_in),
            (json!({"tenant": "acme"}), none, None, other_tenant),
            (json!({"tenant": "acme"}), other, None, other_tenant),
            (json!({"tenant": "acme"}), none, Some(&alice), other_tenant),
            (json!({"tenant": "acme"}), acme, Some(&alice), other_tenant),
            (json!({"provision": false}), none, None, not_provisioned),
            (json!({"provision": false}), none, Some(&alice), sign_in),
            (
                json!({"provision": false, "tenant": "acme"}),
                none,
                None,
                other_tenant,
            ),
            (
                json!({"provision": false, "tenant": "acme"}),
                acme,
                None,
                not_provisioned,
            ),
        ];
        for (provider, tenant, linked, expected) in cases {
            let tenant_name = tenant.map(TenantName::new);
            let decision = decide(&registered(provider.clone()), tenant_name.as_ref(), linked);
            assert_eq!(decision, expected, "{provider} {tenant:?} {linked:?}");
        }
    }

    #[test]
    fn what_upstream_says_holds_and_what_it_unsays_goes() {
        let verified = r#"{"email":"a@a","email_verified":true}"#;
        for (present, before, now, after) in [
            ("{}", "{}", "{}", "{}"),
            ("{}", "{}", r#"{"name":"A"}"#, r#"{"name":"A"}"#),
            (
                r#"{"name":"A"}"#,
                r#"{"name":"A"}"#,
                r#"{"name":"B"}"#,
                r#"{"name":"B"}"#,
            ),
            (r#"{"name":"A"}"#, r#"{"name":"A"}"#, "{}", "{}"),
            (
                r#"{"name":"mine"}"#,
                r#"{"name":"A"}"#,
                "{}",
                r#"{"name":"mine"}"#,
            ),
            (r#"{"name":"mine"}"#, "{}", "{}", r#"{"name":"mine"}"#),
            (
                r#"{"name":"mine"}"#,
                r#"{"name":"A"}"#,
                r#"{"name":"A"}"#,
                r#"{"name":"A"}"#,
            ),
            (
                r#"{"role":["admin"],"x":1}"#,
                "{}",
                r#"{"role":["editor"]}"#,
                r#"{"role":["editor"],"x":1}"#,
            ),
            ("{}", r#"{"name":"A"}"#, "{}", "{}"),
            // An address and whether it is verified go together.
            (
                verified,
                "{}",
                r#"{"email":"b@b"}"#,
                r#"{"email":"b@b","email_verified":false}"#,
            ),
            (verified, "{}", r#"{"email":"a@a"}"#, verified),
            (verified, r#"{"email":"a@a"}"#, "{}", "{}"),
            (verified, verified, "{}", "{}"),
            (
                verified,
                verified,
                r#"{"email":"a@a"}"#,
                r#"{"email":"a@a"}"#,
            ),
            (
                verified,
                r#"{"email":"b@b","email_verified":true}"#,
                "{}",
                verified,
            ),
            (
                r#"{"phone_number":"1","phone_number_verified":true}"#,
                r#"{"phone_number":"2","phone_number_verified":true}"#,
                "{}",
                r#"{"phone_number":"1","phone_number_verified":true}"#,
            ),
        ] {
            let [here, earlier, later, kept] =
                [present, before, now, after].map(|text| serde_json::from_str(text).unwrap());
            let change = ClaimsChange::between(&here, &earlier, &later);
            assert_eq!(change.applied(&here), kept, "{present} {before} {now}");
            assert_eq!(
                change.is_empty(),
                present == after,
                "{present} {before} {now}"
            );
        }
    }

    #[test]
    fn a_provider_leaves_the_roles_of_administrators_as_they_are() {
        let administration = Administration {
            role: String::from("office"),
            given_roles: Vec::new(),
            minimum_acr: Strength::TwoFactors,
            requires_bound_session: false,
        };
        let claims = |role: &Value| {
            let role = Some(role.clone()).filter(|role| !role.is_null());
            JsonObject::from_iter(role.map(|role| (String::from("role"), role)))
        };
        let none = Value::Null;
        let staff = json!(["staff"]);
        let sales = json!(["sales"]);
        let office = json!(["office"]);
        let both = json!(["staff", "office"]);
        let others = json!(["sales", "office"]);
        for (present, before, now, after) in [
            (&both, &staff, &staff, &both),
            (&both, &staff, &sales, &others),
            (&both, &staff, &none, &office),
            (&office, &none, &none, &office),
            (&json!("office"), &none, &staff, &both),
            // Somebody here has changed it since.
            (&others, &staff, &none, &others),
            // Once, what was put back was stored with what the provider had said.
            (&both, &both, &staff, &both),
            (&both, &both, &none, &office),
        ] {
            let here = claims(present);
            let change = ClaimsChange::beside_admin_roles(
                &administration,
                &here,
                &claims(before),
                &claims(now),
            );
            assert_eq!(
                change.applied(&here),
                claims(after),
                "{present} {before} {now}"
            );
            assert_eq!(
                change.is_empty(),
                present == after,
                "{present} {before} {now}"
            );
        }
    }

    #[test]
    fn a_subject_hides_nothing_from_whom_it_is_shown_to() {
        for (subject, shown) in [
            ("\u{e9}\u{4e9c} <b>", "\u{e9}\u{4e9c} <b>"),
            ("a\u{202e}b\u{200b}", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(readable(subject), shown);
        }
    }
}
