//! Finding people, and inviting somebody.

use serde_json::{Map, Value, json};

use super::{Administrator, tidy};
use crate::pages::admin::AdminSection;
use crate::pages::admin::people::{Invitation, Invited, Search, invite_page, page_of, search_page};
use crate::scim::resource::ScimProfile;
use crate::statements::admin_people;
use crate::statements::scim_users::{self, NewUser};
use gatepost_protocol::registration::administration::set_roles;
use gatepost_protocol::words::identifiers::{Subject, TenantName};
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_protocol::words::parameters::{self, Parameters};
use gatepost_protocol::words::reason::Reason;
use gatepost_server::app::failure::Failure;
use gatepost_server::endpoints::forms;
use gatepost_server::endpoints::transaction::InSession;
use gatepost_server::http::{Method, Response};
use gatepost_server::keys::random;
use gatepost_server::pages::account::AccountProblem;
use gatepost_server::pages::join::JoinProblem;
use gatepost_store::{StoreError, sign_up_links};

/// How many people a search shows.
const MOST: i64 = 50;

impl Administrator<'_> {
    /// Finds people by the beginning of what they are called.
    pub(super) fn find_people(&self) -> Result<Response, Failure> {
        let query = self.query()?;
        let typed = query.bounded("q", parameters::USERNAME)?;
        let typed = typed.unwrap_or_default().trim();
        let found = admin_people::search(self.store(), self.reach, typed, MOST)?;
        let search = Search {
            typed,
            found: &found,
            most: MOST,
        };
        Ok(self.shown(AdminSection::People, |around| search_page(around, search)))
    }

    /// `/admin/invite`: a new person, and the link by which they choose their password.
    pub(super) fn invite(&self) -> Result<Response, Failure> {
        match self.context.request.method {
            Method::Post => self.take_invitation(),
            _ => {
                let undone = JoinProblem::Other(AccountProblem::SessionChanged);
                let problem = self.left_undone()?.then_some(undone);
                Ok(self.draw_invitation(Invited::default(), problem))
            }
        }
    }

    fn draw_invitation(&self, typed: Invited<'_>, problem: Option<JoinProblem>) -> Response {
        let InSession {
            app, transaction, ..
        } = self.context;
        let invitation = Invitation {
            catalogue: &transaction.snapshot.catalogue,
            tenants: self.reach,
            given_roles: &self.administration.given_roles,
            by_letter: app.letters.from().is_some(),
        };
        self.shown_with_form(AdminSection::People, |around, form| {
            invite_page(around, form, invitation, typed, problem)
        })
    }

    fn take_invitation(&self) -> Result<Response, Failure> {
        let InSession { app, request, .. } = self.context;
        let form = forms::read_post(app, request)?;
        let username = tidy(form.single("username")?, 256);
        let name = tidy(form.single("name")?, 200);
        let address = tidy(form.single("address")?, 254);
        let roles = self.posted_roles(&form)?;
        let typed = Invited {
            username: &username,
            name: &name,
            address: &address,
            tenant: form.single("tenant")?.unwrap_or_default(),
            roles: &roles,
        };
        if !self.may_act() {
            return self.sign_in_anew();
        }
        if !self.matches(&form) {
            return Ok(self.draw_invitation(
                typed,
                Some(JoinProblem::Other(AccountProblem::SessionChanged)),
            ));
        }
        let sent = form.single("username")?.unwrap_or_default().trim();
        let by_letter = app.letters.from().is_some();
        let needs_address = by_letter || !address.is_empty();
        let is_unfit = needs_address && parsed_address(&form)?.is_none();
        let unfit = is_unfit.then_some(JoinProblem::Other(AccountProblem::AddressUnfit));
        let problem = JoinProblem::of_name(sent, &address).or(unfit);
        if problem.is_some() {
            return Ok(self.draw_invitation(typed, problem));
        }
        match self.add_invited(typed, by_letter) {
            Ok(subject) => self.welcome(&subject),
            Err(Failure::Unavailable(StoreError::Taken(_))) => {
                // By the same invitation, maybe, of which no standby heard.
                app.store.confirm()?;
                Ok(self.draw_invitation(typed, Some(JoinProblem::UsernameTaken)))
            }
            Err(failure) => Err(failure),
        }
    }
}

fn parsed_address(form: &Parameters) -> Result<Option<MailAddress>, Failure> {
    let sent = form.single("address")?.unwrap_or_default();
    Ok(MailAddress::parse(sent.trim()).ok())
}

impl Administrator<'_> {
    fn add_invited(&self, invited: Invited<'_>, by_letter: bool) -> Result<Subject, Failure> {
        let tenant = tenant_of(self.reach, invited)?;
        let store = self.store();
        // People also sign in by address: that of somebody else is as good as taken.
        if sign_up_links::holds(store, tenant.as_ref(), invited.username)? {
            return Err(StoreError::Taken(String::from("email")).into());
        }
        let profile = ScimProfile {
            username: Some(invited.username.to_owned()),
            tenant,
            enabled: true,
            claims: claims_of(invited),
        };
        let subject = Subject::of_random(random::bytes());
        let detail = json!({"link": true, "mail": by_letter, "new": {"role": invited.roles}});
        let event = self.event("user_added", &subject, detail);
        let new = NewUser {
            sub: &subject,
            profile: &profile,
            external_id: None,
            password_hash: None,
        };
        scim_users::insert(store, &new, &[event])?;
        Ok(subject)
    }
}

fn tenant_of(reach: &[&str], invited: Invited<'_>) -> Result<Option<TenantName>, Failure> {
    let tenant = match reach {
        [only] => only,
        _ => invited.tenant,
    };
    if !reach.contains(&tenant) {
        return Err(Failure::bad_request(Reason::UnknownTenant));
    }
    Ok((!tenant.is_empty()).then(|| TenantName::new(tenant)))
}

fn claims_of(invited: Invited<'_>) -> Map<String, Value> {
    let mut claims = Map::new();
    for (claim, text) in [("name", invited.name), ("email", invited.address)] {
        if !text.is_empty() {
            claims.insert(claim.to_owned(), Value::from(text));
        }
    }
    set_roles(&mut claims, invited.roles);
    claims
}

impl Administrator<'_> {
    /// Sends or shows the link, on the page of the new person.
    fn welcome(&self, subject: &Subject) -> Result<Response, Failure> {
        let person = self.found_person(subject)?;
        let page = page_of(&person.found.user);
        let at_page = Administrator {
            page: &page,
            ..*self
        };
        at_page.pass_link_on(&person, &at_page.link_way(&person))
    }
}
