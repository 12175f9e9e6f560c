//! The name of an account: writing another one on the account page, where the operator allows it.

use serde_json::{Value, json};

use super::{Change, draw_again};
use crate::app::failure::Result;
use crate::endpoints::forms;
use crate::endpoints::transaction::InSession;
use crate::http::Response;
use crate::pages::account::Outcome;
use crate::pages::form_problem::FormProblem;
use gatepost_store::audit_events::AuditEvent;
use gatepost_store::users;

pub fn change(change: Change<'_>) -> Result<Response> {
    let InSession {
        app,
        current_session,
        ..
    } = change.context;
    let name = forms::tidy(change.form.single("new_name")?, 200);
    if name.is_empty() {
        return change.problem(FormProblem::NameMissing);
    }
    let user = &current_session.user;
    if user.claims.get("name") != Some(&Value::from(name.as_str())) {
        let event = AuditEvent {
            detail: json!({"by": "user", "changed": ["name"]}),
            ..change.event("user_changed", &current_session.row.sid)
        };
        if !users::change_name(&app.store, user, &current_session.row, &name, &event)? {
            app.store.confirm()?;
            return change.problem(FormProblem::SessionChanged);
        }
    }
    draw_again(change.context, Outcome::NameChanged)
}
