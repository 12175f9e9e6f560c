//! Who is let in at `/admin`, and which page answers.

use std::collections::BTreeSet;

use super::{Administrator, applications, audit, explanation, not_found, people, person, way_back};
use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::present_session::PresentSession;
use crate::endpoints::visit::{self, Turn, Visit};
use crate::http::{Request, Response};
use crate::protocol::authorize::interaction::{Interaction, Step};
use crate::protocol::registration::administration::Administration;
use crate::protocol::sealed_request::SealedPurpose;
use crate::protocol::words::parameters::{self, Parameters};

/// Answers below `/admin/`. `page` is what follows that.
pub fn handle(app: &App, request: &Request, page: &str) -> Result<Response, Failure> {
    let administration = app.config.administration.as_ref().ok_or_else(not_found)?;
    let present = PresentSession::find(app, request)?;
    let reach = match &present {
        Some(present) => reach(app, administration, present),
        None => Vec::new(),
    };
    if present.is_some() && reach.is_empty() {
        return Err(not_found());
    }
    let query = Parameters::parse(request.query.as_bytes())?;
    let asked = |name| query.bounded(name, parameters::OTHER);
    let purpose = SealedPurpose::Admin {
        page: way_back(page),
        tenant: asked("tenant")?.map(str::to_owned),
        ui_locales: asked("ui_locales")?.map(str::to_owned),
        anew: false,
    };
    let visit = Visit::resume(app, visit::seal(app, purpose))?;
    let turn = Turn {
        app,
        request,
        visit: &visit,
        present: present.as_ref(),
        someone_else: false,
    };
    let interaction = turn.judge(Step::Arrival)?.interaction;
    let is_enough = matches!(interaction, Interaction::Proceed { .. });
    let Some(signed_in) = turn.in_session().filter(|_| is_enough) else {
        return Ok(turn.redirect("/login"));
    };
    let administrator = Administrator {
        turn: signed_in,
        administration,
        reach,
        page,
    };
    answer(&administrator)
}

fn answer(administrator: &Administrator<'_>) -> Result<Response, Failure> {
    match administrator.page {
        "" | "people" => people::find(administrator),
        "invite" => people::invite(administrator),
        "applications" => applications::list(administrator),
        "explain" => explanation::handle(administrator),
        "audit" => audit::show(administrator),
        page => match page.split_once('/') {
            Some(("people", id)) => person::handle(administrator, id),
            Some(("applications", name)) => applications::show(administrator, name),
            Some(_) | None => Err(not_found()),
        },
    }
}

fn reach(app: &App, administration: &Administration, present: &PresentSession) -> Vec<String> {
    let snapshot = app.registry.snapshot();
    let tenants = snapshot.catalogue.tenants.keys();
    let registered: BTreeSet<&str> = tenants.map(String::as_str).collect();
    let user = &present.user;
    administration.reach(user.tenant.as_ref(), &user.claims, &registered)
}
