//! The page for what went wrong: what happened, what one can do, and what to tell whoever helps.

use maud::{Markup, html};

use crate::pages::frame::{Chrome, back_to, button_to, headed, help, in_fours, web_link};
use crate::pages::texts::{Text, Texts};
use gatepost_protocol::words::client::Client;

/// A row is a problem, the status of its page, what happened, and what one can do.
macro_rules! problems {
    ($($(#[$doc:meta])* $problem:ident $status:literal: $heading:ident, $advice:ident;)*) => {
        #[derive(Clone, Copy)]
        pub enum Problem {
            $($(#[$doc])* $problem,)*
            TooManyRequests {
                /// Whole minutes to wait, rounded up; at least 1.
                minutes: u32,
            },
        }

        impl Problem {
            pub const fn status(self) -> u16 {
                match self {
                    $(Problem::$problem => $status,)*
                    Problem::TooManyRequests { .. } => 429,
                }
            }

            /// What happened, and what one can do.
            fn told(self, texts: &Texts) -> (Text, String) {
                match self {
                    $(Problem::$problem => (texts.$heading, texts.$advice.to_owned()),)*
                    Problem::TooManyRequests { minutes } => (
                        texts.too_many_requests,
                        texts.too_many_requests_advice.fill(&texts.minutes(minutes)),
                    ),
                }
            }
        }
    };
}

problems! {
    BadRequest 400: bad_request, bad_request_advice;
    /// The operator may register the application.
    NotRegistered 400: bad_request, ask_operator;
    /// The way from the application took too long.
    RequestExpired 400: bad_request, request_expired;
    /// Somebody signed in by this address before.
    RequestUsed 400: bad_request, request_used;
    /// A page stood open too long. What it was for begins at the application.
    PageExpired 400: page_had_expired, page_had_expired_advice;
    /// The same; it begins with the code of a device.
    DevicePageExpired 400: page_had_expired, page_had_expired_here;
    /// The same; no application asked for the sign-out.
    LogoutPageExpired 400: page_had_expired, page_had_expired_here;
    Forbidden 403: forbidden, forbidden_advice;
    /// The page is for sessions that are bound to a key of their browser.
    Unbound 403: unbound_browser, unbound_browser_advice;
    NotFound 404: not_found, not_found_advice;
    MethodNotAllowed 405: method_not_allowed, method_not_allowed_advice;
    TooLarge 413: too_large, too_large_advice;
    Internal 500: internal, internal_advice;
    Unavailable 503: unavailable, unavailable_advice;
    /// Nobody in this browser is on that way upstream, or any more.
    RoundTripOver 400: round_trip_over, round_trip_over_advice;
    /// A link of the operator's that was used, has expired, or is none.
    LinkOver 400: link_over, link_over_advice;
    /// What came from upstream is not believed.
    NotBelieved 400: not_believed, not_believed_advice;
    /// Nobody here is who they are upstream.
    NotProvisioned 403: not_provisioned, not_provisioned_advice;
    AccountDisabled 403: account_disabled, account_disabled_advice;
    /// Their account is of another tenant.
    AccountElsewhere 403: account_elsewhere, account_elsewhere_advice;
}

impl Problem {
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
