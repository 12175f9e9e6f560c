//! Every sentence a page can show. A language is one file under `static/texts/`, a line a sentence,
//! in the order of the table below; the compiler refuses a file that lacks a sentence, or has one
//! too many.

use crate::pages::language::Language;

/// A sentence with one place, written `{}`, for a name or a number that comes from outside.
#[derive(Clone, Copy, Debug)]
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
#[derive(Debug)]
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
    // The compiler runs this for each byte of each file, and gives up on what takes long.
    while let ([first, left @ ..], [begin, ..]) = (rest, mark) {
        if *first == *begin && is_same(rest.split_at(mark.len()).0, mark) {
            break;
        }
        rest = left;
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

/// A row is the name of a sentence; `{}` stands behind it where it does in the sentence.
macro_rules! texts {
    (@kind) => {
        Text
    };
    (@kind $place:block) => {
        Template
    };
    (@read $line:expr) => {
        $line
    };
    (@read $line:expr, $place:block) => {
        Template($line)
    };
    ($($name:ident $($place:block)?)* @scopes $($scope:literal)* @claims $($claim:literal)*) => {
        #[derive(Debug)]
        pub struct Texts {
            pub language: Language,
            $(pub $name: texts!(@kind $($place)?),)*
            standard_scopes: [(&'static str, ScopeText); [$($scope),*].len()],
            standard_claims: [(&'static str, Text); [$($claim),*].len()],
        }

        impl Texts {
            pub const fn read(language: Language, file: &'static str) -> Texts {
                let mut lines = Lines(file);
                let texts = Texts {
                    language,
                    $($name: texts!(@read lines.next(stringify!($name)) $(, $place)?),)*
                    standard_scopes: [$(($scope, ScopeText {
                        name: lines.next(concat!("scope_", $scope)),
                        description: lines.next(concat!("scope_", $scope, "_description")),
                    }),)*],
                    standard_claims: [$(($claim, lines.next(concat!("claim_", $claim))),)*],
                };
                lines.end();
                texts
            }
        }
    };
}

texts! {
    // Every page
    error_in_title {}
    about_this_service
    privacy_policy
    terms_of_service
    website
    about_client {}
    opens_in_new_tab
    there_is_a_problem
    cancel
    one_minute {} few_minutes {} many_minutes {}

    moment
    months

    // Sign-in
    sign_in_title
    to_continue_to {}
    with_account_of_tenant {}
    username
    username_or_email
    password
    remember_device
    sign_in
    wrong_credentials
    wrong_credentials_or_email
    too_many_attempts {}
    sign_in_busy
    page_expired
    key_not_shown
    username_missing
    username_or_email_missing
    password_missing
    choose_account_title
    signed_in_here_as {}
    continue_as {}
    use_another_account
    not_open_title
    not_open

    // Signing in with another service
    sign_in_with {}
    or
    upstream_cancelled
    upstream_unavailable
    upstream_unusable
    upstream_login_required

    // Consent
    consent_title
    client_asks_for_access {}
    signed_in_as {}
    not_you
    scopes_legend
    scope_required
    scope_required_hint
    scope_emphasized
    claims_heading
    remember
    remember_hint
    consent_hint {}
    client_belongs_to {}
    answer_goes_to {}
    answer_goes_to_program
    allow
    deny
    session_changed
    sign_in_was_old

    // Connecting a device
    device_title
    device_hint
    device_compare
    device_code
    device_continue
    device_code_missing
    device_code_wrong
    device_page_expired
    device_asks_for_access {}
    device_warning_title
    device_must_show {}
    device_warning
    device_connected_title
    device_connected_hint {}
    device_denied_title
    device_denied_hint {}

    // Sign-out
    sign_out_title
    client_asks_to_sign_out {}
    sign_out_hint
    sign_out
    stay_signed_in
    signed_out_title
    signed_out_hint
    unknown_way_back
    back_to_client {}

    // Signing out of the applications as well
    applications_sign_out
    signing_out_of {}
    going_back_to {}

    // The account
    to_see_your_account
    sign_in_again
    account_title
    sessions_heading
    sessions_hint
    sessions_hint_without_password
    this_browser
    signed_in_on {}
    last_used_on {}
    address {}
    unknown_browser
    signed_in_until {}
    signed_in_with_password
    signed_in_through {}
    bound_to_device
    end_session
    end_other_sessions
    applications_heading
    no_applications
    allowed_since {}
    withdraw
    withdraw_hint
    change_password_heading
    ends_all_else
    present_password
    new_password
    new_password_hint {}
    new_password_again
    change_password
    session_ended
    other_sessions_ended
    access_withdrawn {}
    password_changed
    nothing_there
    present_password_missing
    present_password_wrong
    new_password_short {}
    new_password_long
    new_password_common
    new_passwords_differ
    new_password_is_present
    set_password_title
    set_password_for {}
    set_password
    password_is_set

    // Accounts elsewhere
    identities_heading
    no_identities
    linked_since {}
    unlink
    link_hint
    link_account_at {}
    link_title
    your_account_at {}
    known_there_as
    identifier_there
    link_to_account {}
    link_warning
    link
    signed_in_anew
    identity_linked {}
    identity_linked_already {}
    identity_unlinked {}
    last_way_in
    linked_elsewhere
    link_expired
    sign_in_too_old
    link_cancelled
    provider_unavailable

    // Second factors
    second_factor_title
    second_factor_code
    second_factor_hint
    second_factor_confirm
    second_factor_missing
    second_factor_wrong
    not_now
    use_passkey
    passkey_refused
    add_app_title
    factor_required
    scan_code
    qr_code
    key_by_hand
    code_now
    add_app
    recovery_title
    recovery_hint
    recovery_kept
    save_codes
    factors_heading
    no_factors
    app_factor
    replace_app
    passkey_factor
    added_on {}
    remove_factor
    add_passkey
    passkey_name
    recovery_codes_left {}
    make_recovery_codes
    factor_added
    factor_removed
    last_factor
    last_passkey
    set_passkey_title
    passkey_needs_script
    passkey_needs_browser
    passkey_is_set
    factor_impossible
    factors_changed
    passkey_needed

    // Signing out elsewhere as well
    going_on_to_provider {}
    sign_out_at_provider {}

    // What went wrong, and what one can do
    bad_request
    bad_request_advice
    ask_operator
    request_expired
    request_used
    page_had_expired
    page_had_expired_advice
    page_had_expired_here
    forbidden
    forbidden_advice
    unbound_browser
    unbound_browser_advice
    not_found
    not_found_advice
    method_not_allowed
    method_not_allowed_advice
    too_large
    too_large_advice
    too_many_requests
    too_many_requests_advice {}
    internal
    internal_advice
    unavailable
    unavailable_advice

    // A sign-in with another service that led nowhere
    round_trip_over
    round_trip_over_advice
    link_over
    link_over_advice
    not_believed
    not_believed_advice
    not_provisioned
    not_provisioned_advice
    account_disabled
    account_disabled_advice
    account_elsewhere
    account_elsewhere_advice
    to_sign_in_page

    // What helps whoever helps
    support_hint
    reference
    reason_code
    for_developers
    to_start_page

    // Back to the application by form_post
    form_post_title
    form_post_hint
    form_post_continue

    // Start page
    to_your_applications
    start_title
    start_empty
    look_after_people

    // Forgotten passwords, letters, and the address that they go to
    cannot_sign_in
    forgotten_title
    forgotten_hint
    name_or_address
    name_or_address_missing
    send_letter
    letter_sent_title
    letter_sent
    letter_sent_advice
    letter_reset_subject {}
    letter_greeting {}
    letter_account {}
    letter_reset
    letter_until {}
    letter_no_password
    letter_goes_on {}
    letter_source {}
    letter_not_you
    letter_help {}
    letter_invitation_subject {}
    letter_invited_by {}
    letter_invitation {}
    letter_choose_password
    letter_passkey
    letter_unexpected
    letter_address_subject {}
    letter_address
    letter_notice_subject {}
    notice_password
    notice_password_removed
    notice_address
    notice_factor_added
    notice_factor_removed
    notice_factors_removed
    notice_recovery_codes
    notice_linked
    notice_unlinked
    letter_moment {}
    letter_browser {}
    letter_notice_press {}
    letter_notice_not_you
    letter_notice_by {}
    letter_new_browser_subject {}
    letter_new_browser
    letter_network {}
    letter_new_browser_yours
    letter_not_me
    letter_disabled_subject {}
    letter_disabled
    not_me
    not_me_title
    not_me_ends
    not_me_disables
    not_me_disabled_title
    not_me_disabled
    letter_ends_subject {}
    letter_ends {}
    letter_ends_advice
    no_address
    address_not_confirmed
    new_address
    change_address
    address_letter_sent {}
    address_unfit
    confirm_address_title
    confirm_address {}
    confirm_address_now
    sign_in_to_confirm
    address_changed
    change_name
    name_changed

    // Making an account by a sign-up link
    join_title
    join_hint
    email_address
    join_letter_sent
    join_address {}
    your_name
    create_account
    username_unfit
    username_of_others
    username_taken
    letter_join_subject {}
    letter_join
    letter_join_held
    letter_join_not_you

    // Applications, their refusals, and the audit log
    no_known_use
    access_grants
    more_than {}
    scopes
    who_may_use
    everybody
    check_findings
    why_refused
    address_or_code
    never_tokens
    explain
    nothing_found
    next_page
    person
    day_in_utc
    sent
    registered

    // Looking after people and applications
    to_administer
    admin_title
    people
    applications
    audit_log
    search_people
    search_people_hint
    search
    found {}
    previous_page
    any_role
    any_state
    state
    invited
    no_second_factor
    not_signed_in
    has_ended
    ends_at {}
    valid_until
    valid_until_hint
    until_unfit
    locked_out
    nobody_found
    not_all_found
    invite
    invite_again
    invite_another
    invite_several
    pasted_lines
    pasted_lines_hint
    no_lines
    too_many_lines
    nobody_invited
    line {}
    line_columns
    name_missing
    line_held
    line_twice {}
    line_role {}
    roles
    organisation
    invite_by_letter
    invite_by_link
    letter_under_way {}
    was_invited {}
    were_invited {}
    their_link
    letters_under_way
    no_letter
    link_shown_once {}
    links_shown_once
    account_state
    enabled
    disabled
    is_set
    none
    address_confirmed
    last_sign_in
    never
    counted_hourly
    wrong_tries
    locked_until {}
    let_try
    let_try_hint
    was_let_try {}
    too_many_pardons
    their_sign_ins
    end_everything
    end_everything_hint
    ask_end_everything {}
    ended_for_good
    was_signed_out {}
    change_made
    new_password_link
    new_password_link_hint
    disable
    ask_disable {}
    disable_hint
    was_disabled {}
    was_enabled {}
    enable
    remove_factors
    remove_factors_hint
    ask_remove_factors {}
    factors_for_good
    factors_were_removed {}
    save
    name_address_roles
    new_address_hint
    old_address_hint
    also_username
    changed_meanwhile
    stored_now {}
    role_gone
    person_gone
    not_yours
    role_not_yours
    no_confirmed_address
    help_them_sign_in
    end_access
    roles_and_opened
    may_open_it
    open_to_everybody {}
    uses_are_late

    // Roles
    not_registered
    people_count {}
    opens
    opens_nothing
    members
    since
    since_before
    take_role
    role_was_taken {}
    give_role_hint
    nobody_ticked
    role_changed_meanwhile
    no_such_role
    delete_role
    ask_delete_role {}
    delete_role_hint
    role_was_deleted {}
    role_is_asked_for {}
    role_in_setting
    role_for_operator

    // Standard scopes, and standard claims (OpenID Connect Core §5.1), in words.
    @scopes "openid" "profile" "email" "address" "phone" "offline_access" "roles" "groups"
    @claims "name" "given_name" "family_name" "middle_name" "nickname" "preferred_username"
        "profile" "picture" "website" "email" "email_verified" "gender" "birthdate" "zoneinfo"
        "locale" "phone_number" "phone_number_verified" "address" "updated_at"
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

    /// That there were too many attempts, and the whole minutes to wait.
    pub fn wait(&self, minutes: u32) -> String {
        self.too_many_attempts.fill(&self.minutes(minutes))
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
