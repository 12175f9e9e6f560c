//! Why an application refuses, as administrators ask it.

use super::Administrator;
use crate::pages::admin::AdminSection;
use crate::pages::admin::explanation::explain_page;
use gatepost_registrar::explanation::explain;
use gatepost_server::app::failure::Failure;
use gatepost_server::endpoints::forms;
use gatepost_server::http::{Method, Response};

impl Administrator<'_> {
    pub(super) fn explain_refusal(&self) -> Result<Response, Failure> {
        let context = self.context;
        let is_post = context.request.method == Method::Post;
        let sent = if is_post {
            forms::read_post(context.app, context.request)?
        } else {
            self.query()?.clone()
        };
        let drawn_again = is_post && !self.matches(&sent);
        let what = sent.single("what")?.filter(|_| !drawn_again);
        let explained = match what {
            Some(what) => Some(explain(context.app, what, self.reach)?),
            None => None,
        };
        Ok(
            self.shown_with_form(AdminSection::Applications, |around, form| {
                explain_page(around, form, drawn_again, explained.as_ref())
            }),
        )
    }
}
