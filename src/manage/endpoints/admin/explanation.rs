//! Why an application refuses, as administrators ask it.

use super::Administrator;
use crate::pages::admin::explanation::explain_page;
use gatepost_registrar::explanation::explain;
use gatepost_server::app::failure::Result;
use gatepost_server::endpoints::answers::scripted_page;
use gatepost_server::http::Response;

impl Administrator<'_> {
    pub fn explain_refusal(&self) -> Result<Response> {
        let sent = match self.form {
            Some(form) => form,
            None => self.query()?,
        };
        let what = sent.single("what")?.filter(|_| self.undone.is_none());
        let explained = match what {
            Some(what) => Some(explain(self.context.app, what, self.acting.reach)?),
            None => None,
        };
        let form = self.page_form();
        Ok(scripted_page(
            200,
            explain_page(
                self.around,
                &form,
                self.undone.is_some(),
                explained.as_ref(),
            ),
        ))
    }
}
