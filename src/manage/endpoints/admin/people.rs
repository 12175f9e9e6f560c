//! Finding people, and inviting somebody.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Administrator, tidy, wrong_passwords};
use crate::pages::admin::AdminSection;
use crate::pages::admin::people::{
    Invitation, InviteProblem, Invited, LOCKED, MOST_COUNTED, PeopleCount, PeoplePage, SearchedFor,
    invite_page, page_of, people_page,
};
use crate::scim::resource::ScimProfile;
use crate::statements::people_list::{self, ListedPerson, PeopleAsked};
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

/// How many people a page shows.
const PAGE: usize = 25;

const SESSION_CHANGED: InviteProblem =
    InviteProblem::Account(JoinProblem::Other(AccountProblem::SessionChanged));

/// Where a page begins or ends: at the person of that subject.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cursor<'a> {
    /// An empty text: from the first person on.
    Behind(&'a str),
    Before(&'a str),
}

/// The people of one page.
struct Part {
    subs: Vec<Subject>,
    count: PeopleCount,
    next: Option<Subject>,
    previous: Option<Subject>,
}

impl Administrator<'_> {
    /// Lists everybody, or those with the words, the role and the state that were asked for.
    pub(super) fn find_people(&self) -> Result<Response, Failure> {
        let query = self.query()?;
        let text = |name| Ok::<_, Failure>(query.bounded(name, parameters::USERNAME)?);
        let searched = SearchedFor {
            typed: text("q")?.unwrap_or_default().trim(),
            role: text("role")?.unwrap_or_default(),
            state: text("state")?.unwrap_or_default(),
        };
        let role = [searched.role];
        let asked = PeopleAsked {
            tenants: self.reach,
            typed: searched.typed,
            roles: (!searched.role.is_empty()).then_some(&role),
            state: searched.state,
        };
        self.with_people(asked, searched, |page| {
            let page = PeoplePage {
                page: "people",
                is_dated: false,
                ..page
            };
            self.shown(AdminSection::People, |around| people_page(around, page))
        })
    }

    /// Draws the people who were asked for, from where the query says on.
    pub(super) fn with_people(
        &self,
        asked: PeopleAsked<'_>,
        searched: SearchedFor<'_>,
        draw: impl FnOnce(PeoplePage<'_>) -> Response,
    ) -> Result<Response, Failure> {
        let query = self.query()?;
        let text = |name| Ok::<_, Failure>(query.bounded(name, parameters::USERNAME)?);
        let cursor = match (text("before")?, text("after")?) {
            (Some(sub), _) => Cursor::Before(sub),
            (None, after) => Cursor::Behind(after.unwrap_or_default()),
        };
        let _permit = self.survey()?;
        let part = if asked.typed.is_empty() && asked.roles.is_none() {
            self.part_of_everybody(asked.state, cursor)?
        } else {
            self.part_of_found(asked, cursor)?
        };
        let people = people_list::shown(self.store(), self.acting(""), &part.subs, asked.roles)?;
        Ok(draw(PeoplePage {
            page: self.page,
            asked: searched,
            is_dated: true,
            has_ticks: false,
            people: &people,
            locked_out: &self.locked_out(&people)?,
            count: part.count,
            next: part.next.as_ref(),
            previous: part.previous.as_ref(),
            catalogue: &self.context.transaction.snapshot.catalogue,
        }))
    }

    /// Those of them whom too many wrong passwords keep from signing in.
    fn locked_out(&self, people: &[ListedPerson]) -> Result<BTreeSet<Subject>, Failure> {
        let InSession { app, request, .. } = self.context;
        let found = Vec::from_iter(people.iter().map(|person| &person.found));
        let wrong = wrong_passwords::look_up(app, &found, request.source)?;
        let locked = found.iter().zip(wrong);
        let locked = locked.filter(|(_, wrong)| wrong.locked_until.is_some());
        Ok(locked.map(|(found, _)| found.user.sub.clone()).collect())
    }

    /// Those of them who are locked out, which no statement of a list knows.
    fn locked_among(&self, subs: &[Subject]) -> Result<BTreeSet<Subject>, Failure> {
        let people = people_list::shown(self.store(), self.acting(""), subs, None)?;
        self.locked_out(&people)
    }

    /// Of everybody within reach those in that state, read from the cursor on.
    fn part_of_everybody(&self, state: &str, cursor: Cursor<'_>) -> Result<Part, Failure> {
        let store = self.store();
        let most = match state {
            "" => PAGE + 1,
            _ => people_list::MOST_LOOKED_AT,
        };
        let limit = i64::try_from(most).unwrap_or(i64::MAX);
        let (mut looked, is_backward) = match cursor {
            Cursor::Behind(sub) => (
                people_list::everybody_behind(store, self.reach, sub, state, limit)?,
                false,
            ),
            Cursor::Before(sub) => (
                people_list::everybody_before(store, self.reach, sub, state, limit)?,
                true,
            ),
        };
        // More are there than fit on the page, or may be there behind those who were looked at.
        let mut further = (looked.len() >= most)
            .then(|| looked.last().cloned())
            .flatten();
        let mut shown = Vec::new();
        looked.retain(|one| one.is_asked_for);
        if state == LOCKED {
            let subs = Vec::from_iter(looked.iter().map(|one| one.sub.clone()));
            let locked = self.locked_among(&subs)?;
            looked.retain(|one| locked.contains(&one.sub));
        }
        for one in looked {
            if shown.len() == PAGE {
                further = shown.last().cloned();
                break;
            }
            shown.push(one);
        }
        let mut subs = Vec::from_iter(shown.into_iter().map(|one| one.sub));
        let further = further.map(|one| one.sub);
        let begins_at_first = cursor == Cursor::Behind("");
        let (next, previous) = if is_backward {
            subs.reverse();
            (subs.last().cloned(), further)
        } else {
            let previous = subs.first().filter(|_| !begins_at_first);
            (further, previous.cloned())
        };
        Ok(Part {
            subs,
            count: self.count_of_everybody(state)?,
            next,
            previous,
        })
    }

    fn count_of_everybody(&self, state: &str) -> Result<PeopleCount, Failure> {
        if !state.is_empty() {
            return Ok(PeopleCount::Unknown);
        }
        let count = people_list::count(self.store(), self.reach, MOST_COUNTED + 1)?;
        Ok(PeopleCount::of(count))
    }

    /// Of those who were found, all of whom are known.
    fn part_of_found(&self, asked: PeopleAsked<'_>, cursor: Cursor<'_>) -> Result<Part, Failure> {
        let mut found = people_list::find(self.store(), asked)?;
        if asked.state == LOCKED {
            let locked = self.locked_among(&found.subs)?;
            found.subs.retain(|sub| locked.contains(sub));
        }
        let place = |sub: &str| found.subs.iter().position(|one| one.as_str() == sub);
        let begin = match cursor {
            Cursor::Behind(sub) => place(sub).map_or(0, |place| place + 1),
            Cursor::Before(sub) => place(sub).map_or(0, |place| place.saturating_sub(PAGE)),
        };
        let subs = Vec::from_iter(found.subs.iter().skip(begin).take(PAGE).cloned());
        let has_more = begin + subs.len() < found.subs.len();
        let length = i64::try_from(found.subs.len()).unwrap_or(i64::MAX);
        let count = match PeopleCount::of(length) {
            PeopleCount::Exactly(count) if found.is_cut => PeopleCount::MoreThan(count),
            count => count,
        };
        Ok(Part {
            next: subs.last().filter(|_| has_more).cloned(),
            previous: subs.first().filter(|_| begin > 0).cloned(),
            subs,
            count,
        })
    }

    /// `/admin/invite`: a new person, and the link by which they choose their password.
    pub(super) fn invite(&self) -> Result<Response, Failure> {
        match self.context.request.method {
            Method::Post => self.take_invitation(),
            _ => {
                let problem = self.left_undone()?.then_some(SESSION_CHANGED);
                Ok(self.draw_invitation(Invited::default(), problem))
            }
        }
    }

    /// What people can be invited with.
    pub(super) fn invitation(&self) -> Invitation<'_> {
        Invitation {
            catalogue: &self.context.transaction.snapshot.catalogue,
            tenants: self.reach,
            given_roles: self.given_roles,
            by_letter: self.context.app.letters.from().is_some(),
        }
    }

    fn draw_invitation(&self, typed: Invited<'_>, problem: Option<InviteProblem>) -> Response {
        let invitation = self.invitation();
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
            return Ok(self.draw_invitation(typed, Some(SESSION_CHANGED)));
        }
        if self.lost_role(&roles).is_some() {
            return Ok(self.draw_invitation(typed, Some(InviteProblem::RoleGone)));
        }
        let sent = form.single("username")?.unwrap_or_default().trim();
        let by_letter = app.letters.from().is_some();
        let needs_address = by_letter || !address.is_empty();
        let is_unfit = needs_address && parsed_address(&form)?.is_none();
        let unfit = is_unfit.then_some(JoinProblem::Other(AccountProblem::AddressUnfit));
        let problem = JoinProblem::of_name(sent, &address).or(unfit);
        if let Some(problem) = problem {
            return Ok(self.draw_invitation(typed, Some(InviteProblem::Account(problem))));
        }
        match self.add_invited(typed, by_letter) {
            Ok(subject) => self.welcome(&subject),
            Err(Failure::Unavailable(StoreError::Taken(_))) => {
                // By the same invitation, maybe, of which no standby heard.
                app.store.confirm()?;
                let problem = InviteProblem::Account(JoinProblem::UsernameTaken);
                Ok(self.draw_invitation(typed, Some(problem)))
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
        let tenant = tenant_of(self.reach, invited.tenant)?;
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

/// The tenant that somebody is invited to; what was asked for counts where there is a choice.
pub(super) fn tenant_of(reach: &[&str], asked: &str) -> Result<Option<TenantName>, Failure> {
    let tenant = match reach {
        [only] => only,
        _ => asked,
    };
    if !reach.contains(&tenant) {
        return Err(Failure::bad_request(Reason::UnknownTenant));
    }
    Ok((!tenant.is_empty()).then(|| TenantName::new(tenant)))
}

pub(super) fn claims_of(invited: Invited<'_>) -> Map<String, Value> {
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
