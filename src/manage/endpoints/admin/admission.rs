//! Who is let in at `/admin`, and which page answers.

use super::{Administrator, EXPLAIN, way_back};
use crate::endpoints::not_found;
use crate::pages::admin::AdminChrome;
use crate::statements::admin_people::ActingAdmin;
use gatepost_protocol::login::bound_session::REGISTERS_WITHIN;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::App;
use gatepost_server::app::failure::Result;
use gatepost_server::endpoints::current_session::CurrentSession;
use gatepost_server::endpoints::transaction::{InSession, own_page};
use gatepost_server::endpoints::{answers, forms};
use gatepost_server::http::{Method, Request, Response};
use gatepost_server::pages::error::Problem;

/// Answers below `/admin/`. `page` is what follows that.
pub fn handle(app: &App, request: &Request, page: &str) -> Result<Response> {
    let administration = app.config.administration.as_ref().ok_or_else(not_found)?;
    let current_session = CurrentSession::find(app, request)?;
    let reach = match &current_session {
        Some(current_session) => app.reach_of(administration, &current_session.user),
        None => Vec::new(),
    };
    let reach: Vec<&str> = reach.iter().map(String::as_str).collect();
    if current_session.is_some() && reach.is_empty() {
        return Err(not_found());
    }
    let purpose = purpose(request, page)?;
    own_page::to_signed_in(app, request, current_session.as_ref(), purpose, |context| {
        if administration.requires_bound_session && !context.current_session.is_bound() {
            return Ok(unbound(context));
        }
        let catalogue = &context.transaction.snapshot.catalogue;
        let user = &context.current_session.user;
        let form = match request.method {
            Method::Post => Some(forms::read_post(app, request)?),
            _ => None,
        };
        let mut administrator = Administrator {
            context,
            around: AdminChrome {
                chrome: context.chrome(),
                section: section_of(page),
                administrator: user.called(),
                ui_locales: context.transaction.ui_locales(),
                catalogue,
                reach: &reach,
                roles_to_give: &administration.roles_to_give(&catalogue.roles),
                by_letter: app.letters.from().is_some(),
            },
            acting: ActingAdmin {
                store: &app.store,
                admin: &user.sub,
                reach: &reach,
                given_roles: &administration.given_roles,
                admin_role: &administration.role,
            },
            page,
            form: form.as_ref(),
            undone: None,
        };
        // Much is typed there: whoever would have to sign in does it before.
        let writes = form.is_some() && page != EXPLAIN || page.starts_with("invite");
        if writes && !administrator.may_act() {
            return administrator.sign_in_anew();
        }
        administrator.undone = administrator.what_was_undone()?;
        answer(&administrator)
    })
}

/// Which one of the navigation a page belongs to.
fn section_of(page: &str) -> &str {
    match page.split(['/', '-']).next().unwrap_or_default() {
        "" | "invite" => "people",
        EXPLAIN => "applications",
        section => section,
    }
}

/// Says which browsers are let in. One that can comes in by itself once its session is bound: the
/// page is loaded anew for as long as a sign-in, which is noted as a use, can be followed by that.
fn unbound(context: InSession<'_>) -> Response {
    let page = answers::error_page_with(
        &context.presentation(),
        Problem::Unbound,
        (Reason::UnboundAdministrator, None),
        context.transaction.ui_locales(),
        None,
    );
    if context.app.now() < context.current_session.row.used_at.plus(REGISTERS_WITHIN) {
        page.header("Refresh", "2")
    } else {
        page
    }
}

fn purpose(request: &Request, page: &str) -> Result<SealedPurpose> {
    Ok(SealedPurpose::Admin {
        page: way_back(page, request.query_parameters()?),
        tenant: own_page::asked(request, "tenant")?,
        ui_locales: own_page::asked(request, "ui_locales")?,
        anew: false,
    })
}

fn answer(administrator: &Administrator<'_>) -> Result<Response> {
    match administrator.page {
        "" | "people" => administrator.find_people(),
        "invite" => administrator.invite(),
        "roles" => administrator.list_roles(None),
        "invite-several" => administrator.invite_several(),
        "applications" => administrator.list_applications(),
        EXPLAIN => administrator.explain_refusal(),
        "audit" => administrator.show_audit_log(),
        page => match page.split_once('/') {
            Some(("people", id)) => administrator.handle_person(id),
            Some(("roles", name)) => administrator.handle_role(name),
            Some(("applications", name)) => administrator.show_application(name),
            _ => Err(not_found()),
        },
    }
}
