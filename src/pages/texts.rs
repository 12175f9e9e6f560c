//! Every sentence a page can show, one field each. A language is one [`Texts`] table under `texts/`; the compiler refuses a
//! table that lacks a sentence.

pub mod chinese;
pub mod dutch;
pub mod english;
pub mod french;
pub mod german;
pub mod italian;
pub mod japanese;
pub mod polish;
pub mod portuguese;
pub mod spanish;

use crate::pages::language::Language;

/// A sentence with one place, written `{}`, for a name or a number that comes from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template(pub &'static str);

impl Template {
    /// What stands before and after the place.
    pub fn parts(self) -> (&'static str, &'static str) {
        self.0.split_once("{}").unwrap_or((self.0, ""))
    }

    /// The sentence as plain text.
    pub fn fill(self, value: &str) -> String {
        let (before, after) = self.parts();
        [before, value, after].concat()
    }
}

/// What a standard scope lets an application do: a short name and a sentence about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeText {
    /// The wire name, as `profile`.
    pub scope: &'static str,
    /// Said in a few words.
    pub name: &'static str,
    /// Said in a sentence.
    pub description: &'static str,
}

/// All sentences of one language.
#[derive(Debug)]
#[allow(missing_docs, reason = "a field's name says which sentence it is; the English table shows it")]
pub struct Texts {
    pub language: Language,

    // Every page
    pub error_in_title: Template,
    pub about_this_service: &'static str,
    pub privacy_policy: &'static str,
    pub terms_of_service: &'static str,
    pub website: &'static str,
    pub about_client: Template,
    pub opens_in_new_tab: &'static str,
    pub there_is_a_problem: &'static str,
    pub cancel: &'static str,
    pub minutes: fn(u32) -> String,

    // Sign-in
    pub sign_in_title: &'static str,
    pub to_continue_to: Template,
    pub with_account_of_tenant: Template,
    pub username: &'static str,
    pub password: &'static str,
    pub sign_in: &'static str,
    pub wrong_credentials: &'static str,
    pub too_many_attempts: Template,
    pub page_expired: &'static str,
    pub username_missing: &'static str,
    pub password_missing: &'static str,
    pub choose_account_title: &'static str,
    pub signed_in_here_as: Template,
    pub continue_as: Template,
    pub use_another_account: &'static str,

    // Signing in with another service
    pub sign_in_with: Template,
    pub or: &'static str,
    pub upstream_cancelled: &'static str,
    pub upstream_unavailable: &'static str,
    pub upstream_login_required: &'static str,

    // Consent
    pub consent_title: &'static str,
    pub client_asks_for_access: Template,
    pub signed_in_as: Template,
    pub not_you: &'static str,
    pub scopes_legend: &'static str,
    pub scope_required: &'static str,
    pub scope_required_hint: &'static str,
    pub scope_emphasized: &'static str,
    pub claims_heading: &'static str,
    pub remember: &'static str,
    pub remember_hint: &'static str,
    pub consent_hint: Template,
    pub allow: &'static str,
    pub deny: &'static str,
    pub session_changed: &'static str,
    pub standard_scopes: [ScopeText; 6],
    /// Standard claims (OpenID Connect Core §5.1) by wire name, in words.
    pub standard_claims: [(&'static str, &'static str); 19],

    // Connecting a device
    pub device_title: &'static str,
    pub device_hint: &'static str,
    pub device_compare: &'static str,
    pub device_code: &'static str,
    pub device_continue: &'static str,
    pub device_code_missing: &'static str,
    pub device_code_wrong: &'static str,
    pub device_page_expired: &'static str,
    pub device_asks_for_access: Template,
    pub device_warning_title: &'static str,
    pub device_must_show: Template,
    pub device_warning: &'static str,
    pub device_connected_title: &'static str,
    pub device_connected_hint: Template,
    pub device_denied_title: &'static str,
    pub device_denied_hint: Template,

    // Sign-out
    pub sign_out_title: &'static str,
    pub client_asks_to_sign_out: Template,
    pub sign_out_hint: &'static str,
    pub sign_out: &'static str,
    pub stay_signed_in: &'static str,
    pub signed_out_title: &'static str,
    pub signed_out_hint: &'static str,
    pub unknown_way_back: &'static str,
    pub back_to_client: Template,

    // Signing out of the applications as well
    pub applications_sign_out: &'static str,
    pub signing_out_of: Template,
    pub going_back_to: Template,
    // The account
    pub to_see_your_account: &'static str,
    pub account_title: &'static str,
    pub sessions_heading: &'static str,
    pub sessions_hint: &'static str,
    pub sessions_hint_without_password: &'static str,
    pub this_browser: &'static str,
    pub signed_in_on: Template,
    pub signed_in_until: Template,
    pub signed_in_with_password: &'static str,
    pub signed_in_through: Template,
    pub end_session: &'static str,
    pub end_other_sessions: &'static str,
    pub applications_heading: &'static str,
    pub no_applications: &'static str,
    pub allowed_since: Template,
    pub withdraw: &'static str,
    pub withdraw_hint: &'static str,
    pub change_password_heading: &'static str,
    pub change_password_hint: &'static str,
    pub present_password: &'static str,
    pub new_password: &'static str,
    pub new_password_hint: &'static str,
    pub new_password_again: &'static str,
    pub change_password: &'static str,
    pub session_ended: &'static str,
    pub other_sessions_ended: &'static str,
    pub access_withdrawn: Template,
    pub password_changed: &'static str,
    pub nothing_there: &'static str,
    pub present_password_missing: &'static str,
    pub present_password_wrong: &'static str,
    pub new_password_unfit: &'static str,
    pub new_passwords_differ: &'static str,

    // Accounts elsewhere
    pub identities_heading: &'static str,
    pub no_identities: &'static str,
    pub linked_since: Template,
    pub unlink: &'static str,
    pub link_hint: &'static str,
    pub link_account_at: Template,
    pub link_title: &'static str,
    pub your_account_at: Template,
    pub known_there_as: &'static str,
    pub identifier_there: &'static str,
    pub link_to_account: Template,
    pub link_warning: &'static str,
    pub link: &'static str,
    pub signed_in_anew: &'static str,
    pub identity_linked: Template,
    pub identity_linked_already: Template,
    pub identity_unlinked: Template,
    pub last_way_in: &'static str,
    pub linked_elsewhere: &'static str,
    pub link_expired: &'static str,
    pub sign_in_too_old: &'static str,
    pub link_cancelled: &'static str,
    pub provider_unavailable: &'static str,

    // Signing out elsewhere as well
    pub going_on_to_provider: Template,
    pub sign_out_at_provider: Template,

    // What went wrong, and what one can do
    pub bad_request: &'static str,
    pub bad_request_advice: &'static str,
    pub forbidden: &'static str,
    pub forbidden_advice: &'static str,
    pub not_found: &'static str,
    pub not_found_advice: &'static str,
    pub method_not_allowed: &'static str,
    pub method_not_allowed_advice: &'static str,
    pub too_large: &'static str,
    pub too_large_advice: &'static str,
    pub too_many_requests: &'static str,
    pub too_many_requests_advice: Template,
    pub internal: &'static str,
    pub internal_advice: &'static str,
    pub unavailable: &'static str,
    pub unavailable_advice: &'static str,

    // A sign-in with another service that led nowhere
    pub round_trip_over: &'static str,
    pub round_trip_over_advice: &'static str,
    pub not_believed: &'static str,
    pub not_believed_advice: &'static str,
    pub not_provisioned: &'static str,
    pub not_provisioned_advice: &'static str,
    pub account_disabled: &'static str,
    pub account_disabled_advice: &'static str,
    pub account_elsewhere: &'static str,
    pub account_elsewhere_advice: &'static str,
    pub to_sign_in_page: &'static str,

    // What helps whoever helps
    pub support_hint: &'static str,
    pub reference: &'static str,
    pub reason_code: &'static str,
    pub for_developers: &'static str,
    pub to_start_page: &'static str,

    // Back to the application by form_post
    pub form_post_title: &'static str,
    pub form_post_hint: &'static str,
    pub form_post_continue: &'static str,

    // Start page
    pub home_title: &'static str,
    pub home_hint: Template,
    pub home_advice: &'static str,
}

impl Texts {
    /// Name and description of a standard scope; `None` for any other.
    pub fn standard_scope(&self, scope: &str) -> Option<&ScopeText> {
        self.standard_scopes.iter().find(|text| text.scope == scope)
    }

    /// A standard claim in words; `None` for any other.
    pub fn standard_claim(&self, claim: &str) -> Option<&'static str> {
        self.standard_claims.iter().find(|(name, _)| *name == claim).map(|(_, words)| *words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field as (name, text): `Debug` prints all of them, also those added later.
    fn fields(language: Language) -> Vec<String> {
        let printed = format!("{:#?}", language.texts());
        printed.lines().map(|line| line.trim().to_owned()).filter(|line| line.contains('"')).collect()
    }

    #[test]
    fn no_sentence_is_empty() {
        for language in Language::ALL {
            assert_eq!(language.texts().language, language);
            let fields = fields(language);
            assert!(fields.len() > 100, "Debug no longer shows the fields");
            for field in fields {
                let text =
                    field.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')).map_or("", |(text, _)| text);
                assert!(!text.is_empty() && text == text.trim(), "{language:?}: {field}");
            }
        }
    }

    #[test]
    fn templates_have_one_place_and_sentences_none() {
        for language in Language::ALL {
            let printed = format!("{:?}", language.texts());
            let templates: Vec<&str> =
                printed.split("Template(\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
            assert!(templates.len() > 10, "Debug no longer shows the templates");
            for template in &templates {
                assert_eq!(template.matches("{}").count(), 1, "{language:?}: {template}");
            }
            assert_eq!(printed.matches("{}").count(), templates.len(), "{language:?}: a sentence with a place");
        }
    }

    #[test]
    fn languages_name_the_same_scopes_and_claims() {
        let english = Language::English.texts();
        for language in Language::ALL {
            let texts = language.texts();
            let scopes = |texts: &Texts| texts.standard_scopes.map(|text| text.scope);
            let claims = |texts: &Texts| texts.standard_claims.map(|(claim, _)| claim);
            assert_eq!(scopes(texts), scopes(english), "{language:?}");
            assert_eq!(claims(texts), claims(english), "{language:?}");
        }
    }

    #[test]
    fn minutes_stand_in_the_form_that_their_number_takes() {
        let forms: [(Language, [&str; 6]); 10] = [
            (Language::English, ["minute", "minutes", "minutes", "minutes", "minutes", "minutes"]),
            (Language::German, ["Minute", "Minuten", "Minuten", "Minuten", "Minuten", "Minuten"]),
            (Language::French, ["minute", "minutes", "minutes", "minutes", "minutes", "minutes"]),
            (Language::Spanish, ["minuto", "minutos", "minutos", "minutos", "minutos", "minutos"]),
            (Language::Italian, ["minuto", "minuti", "minuti", "minuti", "minuti", "minuti"]),
            (Language::Portuguese, ["minuto", "minutos", "minutos", "minutos", "minutos", "minutos"]),
            (Language::Dutch, ["minuut", "minuten", "minuten", "minuten", "minuten", "minuten"]),
            (Language::Polish, ["minutę", "minuty", "minut", "minut", "minut", "minuty"]),
            (Language::Japanese, ["分"; 6]),
            (Language::SimplifiedChinese, ["分钟"; 6]),
        ];
        assert_eq!(forms.map(|(language, _)| language), Language::ALL);
        for (language, forms) in forms {
            for (count, form) in [1, 2, 5, 12, 21, 34].into_iter().zip(forms) {
                assert_eq!((language.texts().minutes)(count), format!("{count} {form}"));
            }
        }
        assert_eq!((Language::Polish.texts().minutes)(112), "112 minut");
    }

    #[test]
    fn no_sentence_was_left_in_english() {
        let words = |language: Language| -> Vec<String> {
            fields(language).into_iter().filter(|field| field.matches(' ').count() > 4).collect()
        };
        let english = words(Language::English);
        for language in Language::ALL.into_iter().skip(1) {
            let left: Vec<String> = words(language).into_iter().filter(|field| english.contains(field)).collect();
            assert!(left.is_empty(), "{language:?}: {left:?}");
        }
    }

    #[test]
    fn a_filled_place_is_not_read_again() {
        assert_eq!(Template("to {}.").fill("{}"), "to {}.");
        assert_eq!(Template("nowhere").fill("x"), "nowherex");
    }
}
