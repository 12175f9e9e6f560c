//! The page for what went wrong: what happened, what one can do, and what to tell whoever helps.

use maud::{Markup, html};

use crate::pages::frame::{Chrome, back_to, button_to, headed, help, in_fours, web_link};
use crate::pages::texts::{Text, Texts};
use gatepost_protocol::words::client::Client;

#[derive(Clone, Copy)]
pub enum Problem {
    BadRequest,
    /// 400: the operator may register the application.
    NotRegistered,
    /// 400: the way from the application took too long.
    RequestExpired,
    /// 400: somebody signed in by this address before.
    RequestUsed,
    /// 400: a page stood open too long. What it was for begins at the application.
    PageExpired,
    /// The same; it begins with the code of a device.
    DevicePageExpired,
    /// The same; no application asked for the sign-out.
    LogoutPageExpired,
    Forbidden,
    /// 403: the page is for sessions that are bound to a key of their browser.
    Unbound,
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
    /// 400: a link of the operator's that was used, has expired, or is none.
    LinkOver,
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
            Problem::Forbidden
            | Problem::Unbound
            | Problem::NotProvisioned
            | Problem::AccountDisabled
            | Problem::AccountElsewhere => 403,
            Problem::NotFound => 404,
            Problem::MethodNotAllowed => 405,
            Problem::TooLarge => 413,
            Problem::TooManyRequests { .. } => 429,
            Problem::Internal => 500,
            Problem::Unavailable => 503,
            _ => 400,
        }
    }

    /// The page of ours where the person can begin, where nothing else leads on.
    pub const fn begins_at(self) -> Option<&'static str> {
        match self {
            Problem::RoundTripOver => Some("/"),
            Problem::DevicePageExpired => Some("/device"),
            Problem::LogoutPageExpired | Problem::Unbound => Some("/logout"),
            _ => None,
        }
    }

    /// What the button says that leads to a page of ours.
    fn way_on(self, texts: &Texts) -> Text {
        match self {
            Problem::RoundTripOver => texts.to_start_page,
            Problem::DevicePageExpired => texts.device_title,
            Problem::LogoutPageExpired | Problem::Unbound => texts.sign_out,
            _ => texts.to_sign_in_page,
        }
    }

    /// What happened, and what one can do.
    fn told(self, texts: &Texts) -> (&'static str, String) {
        let (heading, advice) = match self {
            Problem::TooManyRequests { minutes } => {
                return (
                    texts.too_many_requests,
                    texts.too_many_requests_advice.fill(&texts.minutes(minutes)),
                );
            }
            Problem::BadRequest => (texts.bad_request, texts.bad_request_advice),
            Problem::NotRegistered => (texts.bad_request, texts.ask_operator),
            Problem::RequestExpired => (texts.bad_request, texts.request_expired),
            Problem::RequestUsed => (texts.bad_request, texts.request_used),
            Problem::PageExpired => (texts.page_had_expired, texts.page_had_expired_advice),
            Problem::DevicePageExpired | Problem::LogoutPageExpired => {
                (texts.page_had_expired, texts.page_had_expired_here)
            }
            Problem::Forbidden => (texts.forbidden, texts.forbidden_advice),
            Problem::Unbound => (texts.unbound_browser, texts.unbound_browser_advice),
            Problem::NotFound => (texts.not_found, texts.not_found_advice),
            Problem::MethodNotAllowed => {
                (texts.method_not_allowed, texts.method_not_allowed_advice)
            }
            Problem::TooLarge => (texts.too_large, texts.too_large_advice),
            Problem::Internal => (texts.internal, texts.internal_advice),
            Problem::Unavailable => (texts.unavailable, texts.unavailable_advice),
            Problem::RoundTripOver => (texts.round_trip_over, texts.round_trip_over_advice),
            Problem::LinkOver => (texts.link_over, texts.link_over_advice),
            Problem::NotBelieved => (texts.not_believed, texts.not_believed_advice),
            Problem::NotProvisioned => (texts.not_provisioned, texts.not_provisioned_advice),
            Problem::AccountDisabled => (texts.account_disabled, texts.account_disabled_advice),
            Problem::AccountElsewhere => (texts.account_elsewhere, texts.account_elsewhere_advice),
        };
        (heading, advice.to_owned())
    }
}

/// What the page says besides.
#[derive(Clone, Copy, Default)]
pub struct Besides<'a> {
    /// The reason's stable one, as `GP1207`.
    pub code: Option<&'a str>,
    /// The reason's fixed public sentence, in English, for the application's developers.
    pub description: &'a str,
    /// A page of ours that leads on.
    pub way_on: Option<&'a str>,
    /// The page leads there, too, where it says its address (`client_uri`).
    pub client: Option<&'a Client>,
}

pub fn page(chrome: Chrome<'_>, problem: Problem, besides: Besides<'_>) -> Markup {
    let texts = chrome.texts;
    let (heading, advice) = problem.told(texts);
    let card = html! {
        p { (advice) }
        @if let Some(address) = besides.way_on { (button_to(address, problem.way_on(texts))) }
        @if let Some(client) = besides.client
            && let Some(uri) = client.links.client_uri.as_deref().and_then(web_link) {
            (back_to(chrome, client, uri))
        }
        (help(chrome))
        // What to tell whoever helps.
        div .details {
            p { (texts.support_hint) }
            dl {
                dt { (texts.reference) }
                dd { code { (reference(chrome.request_id)) } }
                @if let Some(code) = besides.code {
                    dt { (texts.reason_code) }
                    dd { code { (code) } }
                }
                dt { (texts.for_developers) }
                dd lang="en" { (besides.description) }
            }
        }
    };
    headed(chrome, true, heading, &card)
}

/// One of our own stands in groups, and is whole when it is copied. A proxy's is as the proxy
/// writes it.
fn reference(request_id: &str) -> Markup {
    let is_ours = request_id.len() == 16 && request_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    html! {
        @if is_ours {
            @for group in in_fours(request_id) { span { (group) } }
        } @else {
            (request_id)
        }
    }
}
