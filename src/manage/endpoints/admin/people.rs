//! Finding people.

use std::collections::BTreeSet;

use super::{Administrator, wrong_passwords};
use crate::pages::admin::people::{LOCKED, MOST_COUNTED, PeoplePage, counted, people_page};
use crate::statements::admin_people::Person;
use crate::statements::people_list::{self, LookedAt, PeopleAsked, PeopleCursor};
use gatepost_protocol::words::identifiers::Subject;
use gatepost_protocol::words::parameters;
use gatepost_server::app::failure::Result;
use gatepost_server::endpoints::answers::scripted_page;
use gatepost_server::endpoints::transaction::InSession;
use gatepost_server::http::Response;
use gatepost_store::user_ends::TOLD_BEFORE;

/// How many people a page shows.
const PAGE: usize = 25;
/// So many are looked at for one: whoever comes behind it tells that there is a next page.
const MOST_OF_PAGE: i64 = 26;

/// People who are what was asked for, from a cursor on: in the order in which they were read, which
/// before a cursor is backwards.
struct Part {
    subs: Vec<Subject>,
    /// The last one who was looked at, where there may be more behind them.
    further: Option<Subject>,
    /// How many there are in all, in words.
    count: Option<String>,
    /// Whether there are people with these words who were not looked at, and never are.
    is_cut: bool,
}

impl Administrator<'_> {
    /// Lists everybody, or those with the words, the role and the state that were asked for.
    pub fn find_people(&self) -> Result<Response> {
        let text = |name| self.asked_for(name);
        let role = [text("role")?];
        let asked = PeopleAsked {
            tenants: self.acting.reach,
            typed: text("q")?.trim(),
            roles: (role != [""]).then_some(&role),
            state: text("state")?,
        };
        let page = PeoplePage {
            is_search: true,
            page: "people",
            ..self.list_people(asked)?
        };
        Ok(scripted_page(200, people_page(self.around, &page)))
    }

    /// What the query has of that name; an empty text where it has none.
    pub fn asked_for(&self, name: &str) -> Result<&str> {
        let text = self.query()?.bounded(name, parameters::USERNAME)?;
        Ok(text.unwrap_or_default())
    }

    /// The people who were asked for, from where the query says on.
    pub fn list_people<'b>(&'b self, asked: PeopleAsked<'b>) -> Result<PeoplePage<'b>> {
        let before = self.asked_for("before")?;
        let is_backward = !before.is_empty();
        let sub = if is_backward {
            before
        } else {
            self.asked_for("after")?
        };
        let cursor = PeopleCursor { sub, is_backward };
        let _permit = self.survey()?;
        let Part {
            mut subs,
            mut further,
            count,
            is_cut,
        } = self.part(asked, cursor)?;
        if subs.len() > PAGE {
            subs.truncate(PAGE);
            further = subs.last().cloned();
        }
        let (next, previous) = if is_backward {
            subs.reverse();
            (subs.last().cloned(), further)
        } else if sub.is_empty() {
            (further, None)
        } else {
            // Those of the page may be gone: somebody took the role from them.
            let first = subs.first().cloned();
            (further, Some(first.unwrap_or(Subject::new(sub))))
        };
        let people = self.acting.find(&subs, asked.roles)?;
        let now = self.context.app.now();
        Ok(PeoplePage {
            page: self.page,
            asked,
            is_search: false,
            has_ticks: false,
            locked_out: self.locked_out(&people)?,
            people,
            soon: now..now.plus(TOLD_BEFORE),
            count,
            is_cut: is_cut && next.is_none(),
            next,
            previous,
        })
    }

    /// Those of them whom too many wrong passwords keep from signing in.
    fn locked_out(&self, people: &[Person]) -> Result<BTreeSet<Subject>> {
        let InSession { app, request, .. } = self.context;
        let found = Vec::from_iter(people.iter().map(|person| &person.found));
        let wrong = wrong_passwords::look_up(app, &found, request.source)?;
        let locked = found.iter().zip(wrong);
        let locked = locked.filter(|(_, wrong)| wrong.locked_until.is_some());
        Ok(locked.map(|(found, _)| found.user.sub.clone()).collect())
    }

    /// Members of roles are sorted by their names while they can all be counted.
    fn part(&self, asked: PeopleAsked<'_>, cursor: PeopleCursor<'_>) -> Result<Part> {
        let store = self.acting.store;
        let most = MOST_COUNTED + 1;
        // Of those in a state nobody knows how many there are.
        let is_countable = asked.state.is_empty();
        if !asked.typed.is_empty() {
            return self.part_of_found(asked, cursor);
        }
        if asked.roles.is_some() {
            let count = people_list::count_members(store, asked, most)?;
            return if count > MOST_COUNTED {
                self.part_of_many(asked, cursor, is_countable.then_some(count))
            } else {
                self.part_of_found(asked, cursor)
            };
        }
        let count = if is_countable {
            Some(people_list::count(store, asked.tenants, most)?)
        } else {
            None
        };
        self.part_of_many(asked, cursor, count)
    }

    /// Of everybody within reach, or of the members of roles, those in that state, read from the
    /// cursor on. `count` is how many they are, where that is known.
    fn part_of_many(
        &self,
        asked: PeopleAsked<'_>,
        cursor: PeopleCursor<'_>,
        count: Option<i64>,
    ) -> Result<Part> {
        let most = if asked.state.is_empty() {
            MOST_OF_PAGE
        } else {
            people_list::MOST_LOOKED_AT
        };
        let looked = if asked.roles.is_some() {
            people_list::members(self.acting.store, asked, cursor, most)?
        } else {
            people_list::everybody(self.acting.store, asked.tenants, cursor, asked.state, most)?
        };
        let last = looked.last().filter(|one| one.is_cut);
        Ok(Part {
            further: last.map(|one| one.sub.clone()),
            subs: self.those_asked_for(looked, asked.state)?,
            count: count.map(|count| counted(self.around.texts, count)),
            is_cut: false,
        })
    }

    /// Of those who were found, all of whom are known.
    fn part_of_found(&self, asked: PeopleAsked<'_>, cursor: PeopleCursor<'_>) -> Result<Part> {
        let looked = people_list::find(self.acting.store, asked)?;
        let is_cut = looked.iter().any(|one| one.is_cut);
        let mut subs = self.those_asked_for(looked, asked.state)?;
        let count = i64::try_from(subs.len()).unwrap_or(i64::MAX);
        let is_known = !is_cut || count > MOST_COUNTED;
        let place = subs.iter().position(|one| one.as_str() == cursor.sub);
        if cursor.is_backward {
            subs.truncate(place.unwrap_or_default());
            subs.reverse();
        } else {
            subs.drain(..place.map_or(0, |place| place + 1));
        }
        Ok(Part {
            subs,
            further: None,
            count: is_known.then(|| counted(self.around.texts, count)),
            is_cut,
        })
    }

    /// Those who are what was asked for. Who is locked out no statement of a list knows.
    fn those_asked_for(&self, looked: Vec<LookedAt>, state: &str) -> Result<Vec<Subject>> {
        let asked_for = looked.into_iter().filter(|one| one.is_asked_for);
        let mut subs = Vec::from_iter(asked_for.map(|one| one.sub));
        if state == LOCKED {
            let locked = self.locked_out(&self.acting.find(&subs, None)?)?;
            subs.retain(|sub| locked.contains(sub));
        }
        Ok(subs)
    }
}
