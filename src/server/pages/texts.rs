//! Every sentence a page can show. A language is one file under `static/texts/`, a line a sentence,
//! in the order of the table below; the compiler refuses a file that lacks a sentence, or has one
//! too many.

use crate::pages::language::Language;

/// A sentence with one place, written `{}`, for a name or a number that comes from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Template(pub &'static str);

impl Template {
    pub fn parts(self) -> (&'static str, &'static str) {
        self.0.split_once("{}").unwrap_or((self.0, ""))
    }

    pub fn fill(self, value: &str) -> String {
        let (before, after) = self.parts();
        [before, value, after].concat()
    }
}

pub type Text = &'static str;

/// What a standard scope lets an application do: a short name and a sentence about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeText {
    pub name: Text,
    pub description: Text,
}

/// The lines of a language's file that were not read yet.
struct Lines(&'static str);

impl Lines {
    /// The sentence of that name, which must be the next. Empty lines and those that begin with `#`
    /// are passed over.
    const fn next(&mut self, name: &str) -> Text {
        loop {
            let (line, rest) = cut(self.0, b"\n");
            self.0 = rest;
            if let [b'#', ..] | [] = line.as_bytes() {
                continue;
            }
            let (found, sentence) = cut(line, b" = ");
            assert!(
                is_same(found.as_bytes(), name.as_bytes()),
                "sentences are missing, too many, or out of order"
            );
            return sentence;
        }
    }

    const fn end(self) {
        assert!(self.0.is_empty(), "a sentence too many");
    }
}

const fn cut(text: &'static str, mark: &[u8]) -> (&'static str, &'static str) {
    let mut at = 0;
    let mut rest = text.as_bytes();
    while !is_same(rest.split_at(mark.len()).0, mark) {
        (_, rest) = rest.split_at(1);
        at += 1;
    }
    let (before, rest) = text.split_at(at);
    (before, rest.split_at(mark.len()).1)
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([first, left @ ..], [second, right @ ..]) = (one, other) {
        if *first != *second {
            return false;
        }
        (one, other) = (left, right);
    }
    one.is_empty() && other.is_empty()
}

macro_rules! sentence {
    (Text $line:expr) => {
        $line
    };
    (Template $line:expr) => {
        Template($line)
    };
}

macro_rules! texts {
    (
        $($name:ident: $kind:ident,)*
        @scopes $($scope:literal)*
        @claims $($claim:literal)*
        @then $($later:ident: $later_kind:ident,)*
    ) => {
        #[derive(Debug)]
        pub struct Texts {
            pub language: Language,
            $(pub $name: $kind,)*
            standard_scopes: [(&'static str, ScopeText); [$($scope),*].len()],
            standard_claims: [(&'static str, Text); [$($claim),*].len()],
            $(pub $later: $later_kind,)*
        }

        impl Texts {
            pub const fn read(language: Language, file: &'static str) -> Texts {
                let mut lines = Lines(file);
                let texts = Texts {
                    language,
                    $($name: sentence!($kind lines.next(stringify!($name))),)*
                    standard_scopes: [$(($scope, ScopeText {
                        name: lines.next(concat!("scope_", $scope)),
                        description: lines.next(concat!("scope_", $scope, "_description")),
                    }),)*],
                    standard_claims: [$(($claim, lines.next(concat!("claim_", $claim))),)*],
                    $($later: sentence!($later_kind lines.next(stringify!($later))),)*
                };
                lines.end();
                texts
            }
        }
    };
}

texts! {
    // Every page
    error_in_title: Template,
    about_this_service: Text,
    privacy_policy: Text,
    terms_of_service: Text,
    website: Text,
    about_client: Template,
    opens_in_new_tab: Text,
    there_is_a_problem: Text,
    cancel: Text,
    one_minute: Template, few_minutes: Template, many_minutes: Template,

    moment: Text,
    months: Text,

    // Sign-in
    sign_in_title: Text,
    to_continue_to: Template,
    with_account_of_tenant: Template,
    username: Text,
    username_or_email: Text,
    password: Text,
    remember_device: Text,
    sign_in: Text,
    wrong_credentials: Text,
    wrong_credentials_or_email: Text,
    too_many_attempts: Template,
    sign_in_busy: Text,
    page_expired: Text,
    username_missing: Text,
    username_or_email_missing: Text,
    password_missing: Text,
    choose_account_title: Text,
    signed_in_here_as: Template,
    continue_as: Template,
    use_another_account: Text,
    not_open_title: Text,
    not_open: Text,

    // Signing in with another service
    sign_in_with: Template,
    or: Text,
    upstream_cancelled: Text,
    upstream_unavailable: Text,
    upstream_unusable: Text,
    upstream_login_required: Text,

    // Consent
    consent_title: Text,
    client_asks_for_access: Template,
    signed_in_as: Template,
    not_you: Text,
    scopes_legend: Text,
    scope_required: Text,
    scope_required_hint: Text,
    scope_emphasized: Text,
    claims_heading: Text,
    remember: Text,
    remember_hint: Text,
    consent_hint: Template,
    client_belongs_to: Template,
    answer_goes_to: Template,
    answer_goes_to_program: Text,
    allow: Text,
    deny: Text,
    session_changed: Text,

    @scopes "openid" "profile" "email" "address" "phone" "offline_access" "roles" "groups"
    // Standard claims (OpenID Connect Core §5.1), in words.
    @claims "name" "given_name" "family_name" "middle_name" "nickname" "preferred_username"
        "profile" "picture" "website" "email" "email_verified" "gender" "birthdate" "zoneinfo"
        "locale" "phone_number" "phone_number_verified" "address" "updated_at"
    @then

    // Connecting a device
    device_title: Text,
    device_hint: Text,
    device_compare: Text,
    device_code: Text,
    device_continue: Text,
    device_code_missing: Text,
    device_code_wrong: Text,
    device_page_expired: Text,
    device_asks_for_access: Template,
    device_warning_title: Text,
    device_must_show: Template,
    device_warning: Text,
    device_connected_title: Text,
    device_connected_hint: Template,
    device_denied_title: Text,
    device_denied_hint: Template,

    // Sign-out
    sign_out_title: Text,
    client_asks_to_sign_out: Template,
    sign_out_hint: Text,
    sign_out: Text,
    stay_signed_in: Text,
    signed_out_title: Text,
    signed_out_hint: Text,
    unknown_way_back: Text,
    back_to_client: Template,

    // Signing out of the applications as well
    applications_sign_out: Text,
    signing_out_of: Template,
    going_back_to: Template,

    // The account
    to_see_your_account: Text,
    account_title: Text,
    sessions_heading: Text,
    sessions_hint: Text,
    sessions_hint_without_password: Text,
    this_browser: Text,
    signed_in_on: Template,
    last_used_on: Template,
    address: Template,
    unknown_browser: Text,
    signed_in_until: Template,
    signed_in_with_password: Text,
    signed_in_through: Template,
    end_session: Text,
    end_other_sessions: Text,
    applications_heading: Text,
    no_applications: Text,
    allowed_since: Template,
    withdraw: Text,
    withdraw_hint: Text,
    change_password_heading: Text,
    ends_all_else: Text,
    present_password: Text,
    new_password: Text,
    new_password_hint: Template,
    new_password_again: Text,
    change_password: Text,
    session_ended: Text,
    other_sessions_ended: Text,
    access_withdrawn: Template,
    password_changed: Text,
    nothing_there: Text,
    present_password_missing: Text,
    present_password_wrong: Text,
    new_password_short: Template,
    new_password_long: Text,
    new_password_common: Text,
    new_passwords_differ: Text,
    new_password_is_present: Text,
    set_password_title: Text,
    set_password_for: Template,
    set_password: Text,
    password_is_set: Text,

    // Accounts elsewhere
    identities_heading: Text,
    no_identities: Text,
    linked_since: Template,
    unlink: Text,
    link_hint: Text,
    link_account_at: Template,
    link_title: Text,
    your_account_at: Template,
    known_there_as: Text,
    identifier_there: Text,
    link_to_account: Template,
    link_warning: Text,
    link: Text,
    signed_in_anew: Text,
    identity_linked: Template,
    identity_linked_already: Template,
    identity_unlinked: Template,
    last_way_in: Text,
    linked_elsewhere: Text,
    link_expired: Text,
    sign_in_too_old: Text,
    link_cancelled: Text,
    provider_unavailable: Text,

    // Second factors
    second_factor_title: Text,
    second_factor_code: Text,
    second_factor_hint: Text,
    second_factor_confirm: Text,
    second_factor_missing: Text,
    second_factor_wrong: Text,
    not_now: Text,
    use_passkey: Text,
    passkey_refused: Text,
    add_app_title: Text,
    factor_required: Text,
    scan_code: Text,
    qr_code: Text,
    key_by_hand: Text,
    code_now: Text,
    add_app: Text,
    recovery_title: Text,
    recovery_hint: Text,
    recovery_kept: Text,
    factors_heading: Text,
    no_factors: Text,
    app_factor: Text,
    replace_app: Text,
    passkey_factor: Text,
    added_on: Template,
    remove_factor: Text,
    add_passkey: Text,
    passkey_name: Text,
    recovery_codes_left: Template,
    make_recovery_codes: Text,
    factor_added: Text,
    factor_removed: Text,
    last_factor: Text,
    last_passkey: Text,
    set_passkey_title: Text,
    passkey_needs_script: Text,
    passkey_needs_browser: Text,
    passkey_is_set: Text,
    factor_impossible: Text,
    factors_changed: Text,
    passkey_needed: Text,

    // Signing out elsewhere as well
    going_on_to_provider: Template,
    sign_out_at_provider: Template,

    // What went wrong, and what one can do
    bad_request: Text,
    bad_request_advice: Text,
    ask_operator: Text,
    request_expired: Text,
    request_used: Text,
    page_had_expired: Text,
    page_had_expired_advice: Text,
    page_had_expired_here: Text,
    forbidden: Text,
    forbidden_advice: Text,
    not_found: Text,
    not_found_advice: Text,
    method_not_allowed: Text,
    method_not_allowed_advice: Text,
    too_large: Text,
    too_large_advice: Text,
    too_many_requests: Text,
    too_many_requests_advice: Template,
    internal: Text,
    internal_advice: Text,
    unavailable: Text,
    unavailable_advice: Text,

    // A sign-in with another service that led nowhere
    round_trip_over: Text,
    round_trip_over_advice: Text,
    link_over: Text,
    link_over_advice: Text,
    not_believed: Text,
    not_believed_advice: Text,
    not_provisioned: Text,
    not_provisioned_advice: Text,
    account_disabled: Text,
    account_disabled_advice: Text,
    account_elsewhere: Text,
    account_elsewhere_advice: Text,
    to_sign_in_page: Text,

    // What helps whoever helps
    support_hint: Text,
    reference: Text,
    reason_code: Text,
    for_developers: Text,
    to_start_page: Text,

    // Back to the application by form_post
    form_post_title: Text,
    form_post_hint: Text,
    form_post_continue: Text,

    // Start page
    home_title: Text,
    home_hint: Template,
    home_advice: Text,

    // Forgotten passwords, letters, and the address that they go to
    cannot_sign_in: Text,
    forgotten_title: Text,
    forgotten_hint: Text,
    name_or_address: Text,
    name_or_address_missing: Text,
    send_letter: Text,
    letter_sent_title: Text,
    letter_sent: Text,
    letter_sent_advice: Text,
    letter_reset_subject: Template,
    letter_account: Template,
    letter_reset: Text,
    letter_until: Template,
    letter_no_password: Text,
    letter_goes_on: Template,
    letter_source: Template,
    letter_not_you: Text,
    letter_help: Template,
    letter_invitation_subject: Template,
    letter_invitation: Text,
    letter_passkey: Text,
    letter_address_subject: Template,
    letter_address: Text,
    letter_notice_subject: Template,
    notice_password: Text,
    notice_password_removed: Text,
    notice_address: Text,
    notice_factor_added: Text,
    notice_factor_removed: Text,
    notice_linked: Text,
    notice_unlinked: Text,
    letter_notice_not_you: Text,
    no_address: Text,
    address_not_confirmed: Text,
    new_address: Text,
    change_address: Text,
    address_letter_sent: Template,
    address_unfit: Text,
    confirm_address_title: Text,
    confirm_address: Template,
    confirm_address_now: Text,
    sign_in_to_confirm: Text,
    address_changed: Text,

    // Making an account by a sign-up link
    join_title: Text,
    join_hint: Text,
    email_address: Text,
    join_letter_sent: Text,
    join_address: Template,
    your_name: Text,
    create_account: Text,
    username_unfit: Text,
    username_of_others: Text,
    username_taken: Text,
    letter_join_subject: Template,
    letter_join: Text,
    letter_join_held: Text,
    letter_join_not_you: Text,

    // Applications, their refusals, and the audit log
    no_known_use: Text,
    access_grants: Text,
    more_than: Template,
    scopes: Text,
    who_may_use: Text,
    everybody: Text,
    check_findings: Text,
    why_refused: Text,
    address_or_code: Text,
    never_tokens: Text,
    explain: Text,
    nothing_found: Text,
    next_page: Text,
    person: Text,
    event: Text,
    day_in_utc: Text,
    sent: Text,
    registered: Text,

    // Looking after people and applications
    to_administer: Text,
    admin_title: Text,
    people: Text,
    applications: Text,
    audit_log: Text,
    search_people: Text,
    search: Text,
    nobody_found: Text,
    most_shown: Template,
    invite: Text,
    roles: Text,
    organisation: Text,
    invite_by_letter: Text,
    invite_by_link: Text,
    letter_under_way: Template,
    link_shown_once: Template,
    account_state: Text,
    enabled: Text,
    disabled: Text,
    is_set: Text,
    none: Text,
    address_confirmed: Text,
    last_sign_in: Text,
    wrong_tries: Text,
    their_sign_ins: Text,
    end_everything: Text,
    end_everything_hint: Text,
    change_made: Text,
    new_password_link: Text,
    new_password_link_hint: Text,
    disable: Text,
    enable: Text,
    remove_factors: Text,
    remove_factors_hint: Text,
    save: Text,
    name_address_roles: Text,
    new_address_hint: Text,
    old_address_hint: Text,
    changed_meanwhile: Text,
    not_yours: Text,
    no_confirmed_address: Text,
}

impl Texts {
    /// So many minutes, in the form that their number takes (Polish has three).
    pub fn minutes(&self, count: u32) -> String {
        let form = match (count, count % 10, count % 100) {
            (1, _, _) => self.one_minute,
            (_, 2..=4, 0..=11 | 15..) => self.few_minutes,
            (_, _, _) => self.many_minutes,
        };
        form.fill(&count.to_string())
    }

    /// Name and description of a standard scope; `None` for any other.
    pub fn standard_scope(&self, scope: &str) -> Option<&ScopeText> {
        let mut known = self.standard_scopes.iter();
        let (_, text) = known.find(|(name, _)| *name == scope)?;
        Some(text)
    }

    /// A standard claim in words; `None` for any other.
    pub fn standard_claim(&self, claim: &str) -> Option<Text> {
        let mut known = self.standard_claims.iter();
        let (_, words) = known.find(|(name, _)| *name == claim)?;
        Some(*words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field as (name, text): `Debug` prints all of them, also those added later.
    fn fields(language: Language) -> Vec<String> {
        let printed = format!("{:#?}", language.texts());
        printed
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| line.contains('"'))
            .collect()
    }

    #[test]
    fn no_sentence_is_empty_or_written_as_code() {
        for language in Language::ALL {
            assert_eq!(language.texts().language, language);
            let fields = fields(language);
            assert!(fields.len() > 100, "Debug no longer shows the fields");
            for field in fields {
                let text = field
                    .split_once('"')
                    .and_then(|(_, rest)| rest.rsplit_once('"'))
                    .map_or("", |(text, _)| text);
                assert!(
                    !text.is_empty() && text == text.trim(),
                    "{language:?}: {field}"
                );
                assert!(
                    !text.contains(r"\\"),
                    "nothing decodes a backslash: {language:?}: {field}"
                );
            }
        }
    }

    #[test]
    fn templates_have_one_place_and_sentences_none() {
        for language in Language::ALL {
            let printed = format!("{:?}", language.texts());
            let templates: Vec<&str> = printed
                .split("Template(\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .collect();
            assert!(templates.len() > 10, "Debug no longer shows the templates");
            for template in &templates {
                assert_eq!(
                    template.matches("{}").count(),
                    1,
                    "{language:?}: {template}"
                );
            }
            assert_eq!(
                printed.matches("{}").count(),
                templates.len(),
                "{language:?}: a sentence with a place"
            );
        }
    }

    #[test]
    fn minutes_stand_in_the_form_that_their_number_takes() {
        let forms = [
            (1, "minutę"),
            (2, "minuty"),
            (5, "minut"),
            (12, "minut"),
            (21, "minut"),
            (34, "minuty"),
            (112, "minut"),
        ];
        for (count, form) in forms {
            assert_eq!(
                Language::Polish.texts().minutes(count),
                format!("{count} {form}")
            );
        }
        assert_eq!(
            [1, 2].map(|count| Language::English.texts().minutes(count)),
            ["1 minute", "2 minutes"]
        );
    }

    #[test]
    fn no_sentence_was_left_in_english() {
        let words = |language: Language| -> Vec<String> {
            fields(language)
                .into_iter()
                .filter(|field| field.matches(' ').count() > 4)
                .collect()
        };
        let english = words(Language::English);
        for language in Language::ALL.into_iter().skip(1) {
            let left: Vec<String> = words(language)
                .into_iter()
                .filter(|field| english.contains(field))
                .collect();
            assert!(left.is_empty(), "{language:?}: {left:?}");
        }
    }
}
