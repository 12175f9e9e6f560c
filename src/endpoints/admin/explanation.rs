//! Why an application refuses, as administrators ask it.

use super::Administrator;
use crate::app::explanation::{Explained, explain};
use crate::app::failure::Failure;
use crate::endpoints::answers;
use crate::endpoints::forms;
use crate::http::{Method, Response};
use crate::pages::admin::AdminSection;
use crate::pages::admin::explanation::{Asked, explain_page};

pub(super) fn handle(administrator: &Administrator<'_>) -> Result<Response, Failure> {
    let turn = administrator.turn;
    let is_post = turn.request.method == Method::Post;
    let sent = if is_post {
        forms::read_post(turn.app, turn.request)?
    } else {
        administrator.query()?
    };
    if is_post && !administrator.matches(&sent) {
        return Ok(draw(administrator, Asked::SessionChanged));
    }
    let Some(what) = sent.single("what")? else {
        return Ok(draw(administrator, Asked::Nothing));
    };
    let explained: Explained = explain(turn.app, what, &administrator.reach())?;
    Ok(draw(administrator, Asked::Explained(&explained)))
}

fn draw(administrator: &Administrator<'_>, asked: Asked<'_>) -> Response {
    let around = administrator.chrome(AdminSection::Applications);
    answers::scripted_page(
        200,
        administrator.with_form(|form| explain_page(around, form, asked)),
    )
}
