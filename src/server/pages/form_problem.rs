//! What is wrong with what a form of ours brought.

use maud::{Markup, html};

use crate::pages::frame::field_problem;
use crate::pages::texts::Texts;
use gatepost_protocol::login::password::PasswordFlaw;
use gatepost_protocol::login::sign_up::may_be_called;
use gatepost_protocol::registration::user::check_username;

/// A row is a problem, the id of the field that it concerns, where there is one, and its sentence.
macro_rules! form_problems {
    ($($(#[$doc:meta])* $problem:ident $(at $field:literal)?: $sentence:ident;)*) => {
        #[derive(Clone, Copy, PartialEq)]
        pub enum FormProblem {
            $($(#[$doc])* $problem,)*
            /// Too many wrong ones; whole minutes to wait, rounded up.
            TooManyAttempts { minutes: u32 },
            /// The new password is missing, too short, too long or much used.
            NewPasswordUnfit(PasswordFlaw),
        }

        impl FormProblem {
            /// The id of the field that it concerns.
            pub fn field(self) -> Option<&'static str> {
                match self {
                    $(FormProblem::$problem => None$(.or(Some($field)))?,)*
                    FormProblem::TooManyAttempts { .. } => None,
                    FormProblem::NewPasswordUnfit(_) => Some("new-password"),
                }
            }

            /// What is wrong, and what to do.
            pub fn sentence(self, texts: &Texts) -> String {
                match self {
                    $(FormProblem::$problem => texts.$sentence.to_owned(),)*
                    FormProblem::TooManyAttempts { minutes } => texts.wait(minutes),
                    FormProblem::NewPasswordUnfit(flaw) => unfit(texts, flaw),
                }
            }
        }
    };
}

form_problems! {
    /// The page was drawn for another session, or with another cookie.
    SessionChanged: session_changed;
    /// They had to sign in anew, and what they sent before was not done.
    SignInWasOld: sign_in_was_old;
    /// The page was drawn in another browser, or is too old.
    PageExpired: page_expired;

    /// Unknown user, wrong password, disabled account: one text for all. The sign-in page has a
    /// sentence of its own where people sign in by their addresses.
    WrongCredentials at "username": wrong_credentials;
    PasswordMissing at "password": password_missing;
    /// The sign-in page says of each field what is missing.
    BothMissing at "username": username_missing;
    /// Too many passwords wait to be looked at.
    SignInBusy: sign_in_busy;
    /// Their session is bound to a key that the request did not show.
    KeyNotShown: key_not_shown;
    /// They cancelled with the other service, or were refused there.
    UpstreamCancelled: upstream_cancelled;
    UpstreamUnavailable: upstream_unavailable;
    UpstreamUnusable: upstream_unusable;
    UpstreamLoginRequired: upstream_login_required;
    PasskeyRefused: passkey_refused;
    /// Nobody has it.
    PasskeyUnknown: passkey_refused;

    /// It had ended before.
    NothingThere: nothing_there;
    PresentPasswordMissing at "present-password": present_password_missing;
    PresentPasswordWrong at "present-password": present_password_wrong;
    NewPasswordsDiffer at "new-password-again": new_passwords_differ;
    NewPasswordIsPresent at "new-password": new_password_is_present;
    AddressUnfit at "new-address": address_unfit;
    NameMissing at "new-name": name_missing;

    LastWayIn: last_way_in;
    LinkedElsewhere: linked_elsewhere;
    LinkExpired: link_expired;
    /// They were sent to sign in anew, and the provider says that they did so before.
    SignInTooOld: sign_in_too_old;
    LinkCancelled: link_cancelled;
    ProviderUnavailable: provider_unavailable;

    LastFactor: last_factor;
    /// Of somebody without a password.
    LastPasskey: last_passkey;
    /// User or session changed meanwhile, or the page was out of date.
    FactorImpossible: factor_impossible;
    FactorsChanged: factors_changed;
    PasskeyNeeded: passkey_needed;
    CodeMissing at "code": second_factor_missing;
    CodeWrong at "code": second_factor_wrong;

    UserCodeMissing at "user-code": device_code_missing;
    /// No device waits under it: never, not any more, or not yet.
    UserCodeWrong at "user-code": device_code_wrong;
    UserCodePageExpired: device_page_expired;

    NameOrAddressMissing at "name": name_or_address_missing;
    /// The field has another id there.
    JoinAddressUnfit at "address": address_unfit;
    UsernameMissing at "username": username_missing;
    /// The rules of user names refuse it.
    UsernameUnfit at "username": username_unfit;
    /// It reads as an address, and is another.
    UsernameOfOthers at "username": username_of_others;
    UsernameTaken at "username": username_taken;

    /// Of somebody who is invited. People sign in by their addresses, too.
    AddressHeld at "new-address": line_held;
    /// What was typed for their end says nothing.
    UntilUnfit at "until": until_unfit;
    /// A role was ticked that is not there any more.
    RoleGone at "role-0": role_gone;
}

impl FormProblem {
    /// What is wrong with the user name of somebody new with this address.
    pub fn of_name(username: &str, address: &str) -> Option<FormProblem> {
        if check_username(username).is_err() {
            Some(FormProblem::UsernameUnfit)
        } else if !may_be_called(username, address) {
            Some(FormProblem::UsernameOfOthers)
        } else {
            None
        }
    }
}

fn unfit(texts: &Texts, flaw: PasswordFlaw) -> String {
    match flaw {
        PasswordFlaw::TooShort(least) => texts.new_password_short.fill(&least.to_string()),
        PasswordFlaw::TooLong | PasswordFlaw::HasNul => texts.new_password_long.to_owned(),
        PasswordFlaw::TooCommon => texts.new_password_common.to_owned(),
    }
}

/// Nothing where there is none.
pub fn told(texts: &Texts, problem: Option<FormProblem>) -> Markup {
    html! {
        @if let Some(problem) = problem {
            (field_problem(texts, problem.field(), &problem.sentence(texts)))
        }
    }
}
