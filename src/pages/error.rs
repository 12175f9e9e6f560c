//! The page for what went wrong: what happened, what one can do, and what to tell whoever helps.

use maud::{Markup, html};

use crate::pages::frame::{Chrome, document, given};
use crate::pages::texts::Texts;

#[derive(Clone, Copy, Debug)]
pub struct ErrorView<'a> {
    pub chrome: Chrome<'a>,
    pub problem: Problem,
    /// The reason's stable code, as `GP1207`.
    pub reason_code: Option<&'a str>,
    /// The reason's fixed public description, in English, for the application's developers.
    pub reason_text: Option<&'a str>,
    pub home: Option<&'a str>,
    pub sign_in: Option<&'a str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    BadRequest,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    TooManyRequests {
        /// Whole minutes to wait, rounded up; at least 1.
        minutes: u32,
    },
    Internal,
    Unavailable,
    /// 400: nobody in this browser is on that way upstream, or any more.
    RoundTripOver,
    /// 400: what came from upstream is not believed.
    NotBelieved,
    /// 403: nobody here is who they are upstream.
    NotProvisioned,
    AccountDisabled,
    /// 403: their account is of another tenant.
    AccountElsewhere,
}

impl Problem {
    pub const fn status(self) -> u16 {
        match self {
            Problem::BadRequest | Problem::RoundTripOver | Problem::NotBelieved => 400,
            Problem::Forbidden | Problem::NotProvisioned | Problem::AccountDisabled | Problem::AccountElsewhere => 403,
            Problem::NotFound => 404,
            Problem::MethodNotAllowed => 405,
            Problem::TooLarge => 413,
            Problem::TooManyRequests { .. } => 429,
            Problem::Internal => 500,
            Problem::Unavailable => 503,
        }
    }

    fn heading(self, texts: &Texts) -> &'static str {
        match self {
            Problem::BadRequest => texts.bad_request,
            Problem::Forbidden => texts.forbidden,
            Problem::NotFound => texts.not_found,
            Problem::MethodNotAllowed => texts.method_not_allowed,
            Problem::TooLarge => texts.too_large,
            Problem::TooManyRequests { .. } => texts.too_many_requests,
            Problem::Internal => texts.internal,
            Problem::Unavailable => texts.unavailable,
            Problem::RoundTripOver => texts.round_trip_over,
            Problem::NotBelieved => texts.not_believed,
            Problem::NotProvisioned => texts.not_provisioned,
            Problem::AccountDisabled => texts.account_disabled,
            Problem::AccountElsewhere => texts.account_elsewhere,
        }
    }

    fn advice(self, texts: &Texts) -> String {
        match self {
            Problem::BadRequest => texts.bad_request_advice.to_owned(),
            Problem::Forbidden => texts.forbidden_advice.to_owned(),
            Problem::NotFound => texts.not_found_advice.to_owned(),
            Problem::MethodNotAllowed => texts.method_not_allowed_advice.to_owned(),
            Problem::TooLarge => texts.too_large_advice.to_owned(),
            Problem::TooManyRequests { minutes } => texts.too_many_requests_advice.fill(&texts.minutes(minutes)),
            Problem::Internal => texts.internal_advice.to_owned(),
            Problem::Unavailable => texts.unavailable_advice.to_owned(),
            Problem::RoundTripOver => texts.round_trip_over_advice.to_owned(),
            Problem::NotBelieved => texts.not_believed_advice.to_owned(),
            Problem::NotProvisioned => texts.not_provisioned_advice.to_owned(),
            Problem::AccountDisabled => texts.account_disabled_advice.to_owned(),
            Problem::AccountElsewhere => texts.account_elsewhere_advice.to_owned(),
        }
    }
}

pub fn page(view: &ErrorView<'_>) -> Markup {
    let texts = view.chrome.texts;
    let heading = view.problem.heading(texts);
    document(
        view.chrome,
        &texts.error_in_title.fill(heading),
        html! {
            h1 { (heading) }
            p { (view.problem.advice(texts)) }
            @if let Some(sign_in) = given(view.sign_in) {
                div .actions { a .button href=(sign_in) { (texts.to_sign_in_page) } }
            }
            @if let Some(home) = given(view.home) {
                div .actions { a .button href=(home) { (texts.to_start_page) } }
            }
            (details(view))
        },
    )
}

fn details(view: &ErrorView<'_>) -> Markup {
    let texts = view.chrome.texts;
    html! {
        div .details {
            p { (texts.support_hint) }
            dl {
                dt { (texts.reference) }
                dd { code { (view.chrome.request_id) } }
                @if let Some(code) = given(view.reason_code) {
                    dt { (texts.reason_code) }
                    dd { code { (code) } }
                }
                @if let Some(text) = given(view.reason_text) {
                    dt { (texts.for_developers) }
                    dd lang="en" { (text) }
                }
            }
        }
    }
}
