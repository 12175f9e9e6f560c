//! Where those go on who open a page of ours too late, or without a request: the page stood open, a
//! browser restored the tab, or somebody bookmarked it. What an old form held is thrown away.

use std::time::Duration;

use super::opening::{invalid, page_address, seal};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::http::{Request, Response};
use crate::pages::error::Problem;
use gatepost_protocol::authorize::authorize_request::{anew, client_id};
use gatepost_protocol::authorize::pushed_request::PushedRequest;
use gatepost_protocol::sealed_request::{SealedPurpose, SealedRequest};
use gatepost_protocol::words::parameters::Parameters;
use gatepost_protocol::words::reason::Reason;

/// The parameter of the sign-in page's address: they come from a page that stood open too long.
pub const EXPIRED: &str = "expired";
/// The parameter by which the sign-in page asks who it is, whoever is signed in.
pub const SOMEONE_ELSE: &str = "someone_else";
/// How long after a client's request came it may begin anew.
const BEGINS_ANEW_WITHIN: Duration = Duration::from_secs(86_400);

/// Why a sealed request does not open.
pub enum Unopened {
    Invalid,
    Expired(Box<SealedRequest>),
}

impl Unopened {
    /// The answer to whoever came with it.
    pub fn answered(self, app: &App, request: &Request) -> Failure {
        let Unopened::Expired(expired) = self else {
            return invalid();
        };
        let answer = lead_on(app, Presentation::of(app, request), &expired);
        Failure::Answered(Box::new(answers::noted(answer, Reason::PageExpired)))
    }
}

/// Leads to the account page, and so to its sign-in: no application is known.
pub(super) fn without_request(app: &App, request: &Request) -> Failure {
    let answer = to_own_page(Presentation::of(app, request), "/account", &None);
    Failure::Answered(Box::new(answer))
}

/// A page of ours begins anew by itself, and so does the request of a client that does not say
/// where its users begin. All else says so: what a client pushed is good for one answer, and what
/// a link, a letter or a device began is the person's to begin again.
fn lead_on(app: &App, presentation: Presentation<'_>, expired: &SealedRequest) -> Response {
    let (problem, client_id) = match &expired.purpose {
        SealedPurpose::Account(visit) | SealedPurpose::AddFactor { visit, .. } => {
            return to_own_page(presentation, "/account", &visit.tenant);
        }
        SealedPurpose::Start(visit) => {
            return to_own_page(presentation, "/start", &visit.tenant);
        }
        SealedPurpose::Admin { page, tenant, .. } => {
            return to_own_page(presentation, page, tenant);
        }
        SealedPurpose::Authorize(parameters)
        | SealedPurpose::Pushed(PushedRequest { parameters, .. }) => {
            (Problem::PageExpired, client_id(parameters).ok())
        }
        SealedPurpose::Logout(asked) if asked.client_id.is_none() => {
            (Problem::LogoutPageExpired, None)
        }
        SealedPurpose::Logout(asked) => (Problem::PageExpired, asked.client_id.clone()),
        SealedPurpose::Device(_) => (Problem::DevicePageExpired, None),
        _ => (Problem::PageExpired, None),
    };
    let client = client_id.as_ref().and_then(|id| app.known_client(id));
    let has_home = client.is_some_and(|known| known.client.links.client_uri.is_some());
    match begun_anew(app, expired).filter(|_| !has_home) {
        Some(sealed) => {
            let address = page_address(app, "/login", &sealed);
            let mut address = format!("{address}&{EXPIRED}=true");
            if names_somebody(presentation.request) {
                address = format!("{address}&{SOMEONE_ELSE}=true");
            }
            answers::see_other(presentation.in_its_language(address))
        }
        None => {
            let presentation = presentation.about(client_id.as_ref());
            answers::error_page(&presentation, problem, Reason::PageExpired)
        }
    }
}

/// Whether the old page, or its form, was about somebody: a name was typed, or it asked for another
/// account. Then nobody goes on as whoever has signed in meanwhile.
fn names_somebody(request: &Request) -> bool {
    let says = |text: &[u8], name: &str| {
        let parameters = Parameters::parse(text).unwrap_or_default();
        parameters.single(name).is_ok_and(|said| said.is_some())
    };
    let [query, form] = [request.query.as_bytes(), request.body.as_slice()];
    says(query, SOMEONE_ELSE) || says(form, SOMEONE_ELSE) || says(form, "username")
}

/// The request of a client, sealed as one that came now: once, and not too late.
fn begun_anew(app: &App, expired: &SealedRequest) -> Option<String> {
    let SealedPurpose::Authorize(parameters) = &expired.purpose else {
        return None;
    };
    let is_late = app.now() >= expired.received_at.plus(BEGINS_ANEW_WITHIN);
    let parameters = anew(parameters).filter(|_| !is_late)?;
    Some(seal(app, SealedPurpose::Authorize(parameters)).sealed)
}

fn to_own_page(presentation: Presentation<'_>, page: &str, tenant: &Option<String>) -> Response {
    let mut address = presentation.config.base_url.path_of(page);
    if let Some(tenant) = tenant {
        let joint = if page.contains('?') { '&' } else { '?' };
        let encoded: String = form_urlencoded::byte_serialize(tenant.as_bytes()).collect();
        address = format!("{address}{joint}tenant={encoded}");
    }
    answers::see_other(presentation.in_its_language(address))
}
