//! A page of ours whose forms are good in one browser, whoever is signed in there.

use serde_json::Value;

use super::page_address;
use crate::app::App;
use crate::endpoints::answers::Presentation;
use crate::endpoints::cookies::Browser;
use crate::endpoints::forms::{self, Form};
use crate::http::Method;
use crate::pages::frame::{Chrome, PageForm};
use gatepost_protocol::login::second_factor::tie;
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::parameters::Parameters;
use gatepost_store::audit_events::AuditEvent;

pub struct TiedPage<'a> {
    pub app: &'a App,
    pub presentation: Presentation<'a>,
    pub path: &'static str,
    /// The request in its address.
    pub sealed: String,
    pub browser: Browser,
}

impl<'a> TiedPage<'a> {
    pub fn is_post(&self) -> bool {
        self.presentation.request.method == Method::Post
    }

    pub fn chrome(&self) -> Chrome<'a> {
        self.presentation.chrome("")
    }

    /// The address of one of our pages with the same request.
    pub fn address(&self, path: &str) -> String {
        let address = page_address(self.app, path, &self.sealed);
        self.presentation.in_its_language(address)
    }

    /// A form of this page.
    pub fn form(&self, form: Form) -> PageForm<'a> {
        PageForm {
            chrome: self.chrome(),
            action: self.address(self.path),
            token: forms::issue(self.app, form, &self.sealed, &self.browser.value),
        }
    }

    /// Whether the form was drawn for this request, in this browser.
    pub fn matches(&self, form: Form, posted: &Parameters) -> bool {
        let browser = Some(&self.browser.value);
        forms::matches(self.app, form, &self.sealed, browser, posted)
    }

    /// What ties tickets and challenges to this request and this browser.
    pub fn tie(&self) -> [u8; 32] {
        tie(&self.sealed, &self.browser.value)
    }

    /// What the audit log is told of a user who did something here.
    pub fn event<'b>(&'b self, event: &'b str, sub: &'b Subject, detail: Value) -> AuditEvent<'b> {
        AuditEvent {
            event,
            sub: Some(sub),
            detail,
            ..self.presentation.request.caused(AuditEvent::default())
        }
    }
}
