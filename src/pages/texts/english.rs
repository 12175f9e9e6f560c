//! English.

use crate::pages::language::Language;
use crate::pages::texts::{ScopeText, Template, Texts};

/// The English table, which also documents what each sentence says.
pub const ENGLISH: Texts = Texts {
    language: Language::English,

    error_in_title: Template("Error: {}"),
    about_this_service: "About this service",
    privacy_policy: "Privacy policy",
    terms_of_service: "Terms of service",
    website: "Website",
    about_client: Template("About {}"),
    opens_in_new_tab: "(opens in a new tab)",
    there_is_a_problem: "There is a problem",
    cancel: "Cancel",
    minutes,

    sign_in_title: "Sign in",
    to_continue_to: Template("to continue to {}"),
    with_account_of_tenant: Template("with your account at {}"),
    username: "User name",
    password: "Password",
    sign_in: "Sign in",
    wrong_credentials: "The user name or the password is not correct. Please check both and try again.",
    too_many_attempts: Template("There were too many failed attempts. Please wait {} and try again."),
    page_expired: "This page was no longer up to date, so you were not signed in. Please try again.",
    username_missing: "Enter your user name.",
    password_missing: "Enter your password.",
    choose_account_title: "Choose an account",
    signed_in_here_as: Template("You are signed in here as {}."),
    continue_as: Template("Continue as {}"),
    use_another_account: "Use another account",

    consent_title: "Allow access?",
    client_asks_for_access: Template("{} asks for access"),
    signed_in_as: Template("You are signed in as {}."),
    not_you: "Not you?",
    scopes_legend: "Requested access",
    scope_required: "Always included",
    scope_required_hint: "The application cannot work without this.",
    scope_emphasized: "Please note",
    claims_heading: "It also asks for these details about you",
    remember: "Remember my decision",
    remember_hint: "You will be asked again only when the application wants more.",
    consent_hint: Template("Allow this only if you trust {}. Your password is not shared."),
    allow: "Allow",
    deny: "Do not allow",
    session_changed: "The sign-in in this browser changed while this page was open, so nothing was done. Please check again.",
    standard_scopes: [
        ScopeText {
            scope: "openid",
            name: "Recognise you",
            description: "An identifier that stands for your account.",
        },
        ScopeText {
            scope: "profile",
            name: "See your profile",
            description: "Your name and, where you entered them, details such as picture, birthday and language.",
        },
        ScopeText {
            scope: "email",
            name: "See your e-mail address",
            description: "The address, and whether it is verified.",
        },
        ScopeText { scope: "address", name: "See your postal address", description: "The address in your account." },
        ScopeText {
            scope: "phone",
            name: "See your phone number",
            description: "The number, and whether it is verified.",
        },
        ScopeText {
            scope: "offline_access",
            name: "Keep access while you are away",
            description: "The application can use what you allow here even when you are not using it, until you withdraw it.",
        },
    ],
    standard_claims: [
        ("name", "Full name"),
        ("given_name", "First name"),
        ("family_name", "Last name"),
        ("middle_name", "Middle name"),
        ("nickname", "Nickname"),
        ("preferred_username", "Preferred user name"),
        ("profile", "Profile page"),
        ("picture", "Picture"),
        ("website", "Website"),
        ("email", "E-mail address"),
        ("email_verified", "Whether your e-mail address is verified"),
        ("gender", "Gender"),
        ("birthdate", "Date of birth"),
        ("zoneinfo", "Time zone"),
        ("locale", "Language and region"),
        ("phone_number", "Phone number"),
        ("phone_number_verified", "Whether your phone number is verified"),
        ("address", "Postal address"),
        ("updated_at", "When your details last changed"),
    ],

    sign_out_title: "Sign out?",
    client_asks_to_sign_out: Template("{} would like to sign you out."),
    sign_out_hint: "Signing out ends your sign-in here and in the applications that you use with it in this browser.",
    sign_out: "Sign out",
    stay_signed_in: "Stay signed in",
    signed_out_title: "You are signed out",
    signed_out_hint: "If others use this device, close all browser windows as well.",
    back_to_client: Template("Back to {}"),

    // Signing out of the applications as well
    applications_sign_out: "The applications that you used with this sign-in are being signed out, too.",
    signing_out_of: Template("Signing out of {}"),
    going_back_to: Template("You will be taken back to {} in a moment."),

    bad_request: "This request cannot be completed",
    bad_request_advice: "Go back to the application and start again. If this page returns, the application's developers need to \
                         mend the link or form that brought you here.",
    forbidden: "This was not allowed",
    forbidden_advice: "The form did not come from our page, or the page was out of date. Go back to the application and start \
                       again.",
    not_found: "There is no page here",
    not_found_advice: "Check the address, or start from the application that you want to use.",
    method_not_allowed: "This page cannot be used in this way",
    method_not_allowed_advice: "Start again from the application that you want to use.",
    too_large: "Too much was sent at once",
    too_large_advice: "Go back and start again. If this page returns, the application sends more than we accept.",
    too_many_requests: "Too many attempts",
    too_many_requests_advice: Template("To protect your account, please wait {} and try again."),
    internal: "Something went wrong on our side",
    internal_advice: "It is not your fault. Please try again in a moment.",
    unavailable: "We cannot answer just now",
    unavailable_advice: "This should pass soon. Please wait a moment and try again.",
    support_hint: "When you ask for help, please pass on these details:",
    reference: "Reference",
    reason_code: "Reason",
    for_developers: "For developers",
    to_start_page: "To the start page",

    form_post_title: "One moment",
    form_post_hint: "You are on your way back to the application. If nothing happens, choose “Continue”.",
    form_post_continue: "Continue",

    home_title: "Sign-in service",
    home_hint: Template("This is {}. It signs you in to your applications."),
    home_advice: "There is nothing to do here: open the application that you want to use and choose to sign in there.",
};

fn minutes(count: u32) -> String {
    match count {
        1 => String::from("1 minute"),
        _ => format!("{count} minutes"),
    }
}
