//! Inviting somebody, or several people by pasted lines.

use maud::{Markup, html};

use crate::pages::admin::people::{role_choices, roles_had};
use crate::pages::admin::person::{PersonDetails, name_field, until_field};
use crate::pages::admin::{AdminChrome, choice, table};
use crate::statements::admin_people::Person;
use gatepost_protocol::login::letters::stored_address;
use gatepost_protocol::words::mail_address::MailAddress;
use gatepost_server::pages::form_problem::FormProblem;
use gatepost_server::pages::frame::{
    PageForm, button_to, done, field_problem, hidden, problem_notice, submit,
};
use gatepost_server::pages::texts::Texts;

/// Somebody who is to be invited.
#[derive(Debug, Default, PartialEq)]
pub struct Newcomer {
    pub username: String,
    pub details: PersonDetails,
}

impl Newcomer {
    /// What they can sign in by, with an address.
    pub fn names(&self) -> [&str; 2] {
        [&self.username, &self.details.address]
    }

    /// What is wrong with their address, their user name or their end.
    pub fn problem(&self, by_letter: bool) -> Option<FormProblem> {
        let address = self.details.address.as_str();
        let is_needed = by_letter || !address.is_empty();
        if is_needed && MailAddress::parse(address).is_err() {
            return Some(FormProblem::AddressUnfit);
        }
        let is_unfit = self.details.valid_until().is_err();
        FormProblem::of_name(&self.username, address)
            .or(is_unfit.then_some(FormProblem::UntilUnfit))
    }
}

/// The form for one person, as it is drawn.
pub struct InviteForm<'a> {
    pub typed: &'a Newcomer,
    /// The one that was chosen.
    pub tenant: &'a str,
    pub batch: &'a str,
    pub problem: Option<FormProblem>,
}

/// The page that invites somebody to the tenant that was chosen. Its form posts `form_token`,
/// `batch`, `username`, `name`, `address`, `until`, `tenant`, and any number of `role` and
/// `offered`.
pub fn invite_page(around: AdminChrome<'_>, form: &PageForm<'_>, drawn: InviteForm<'_>) -> Markup {
    let texts = around.texts;
    let InviteForm {
        typed,
        tenant,
        batch,
        problem,
    } = drawn;
    let wrong = problem.and_then(FormProblem::field);
    let is_wrong = |field: &str| (wrong == Some(field)).then_some("true");
    let described = |field: &str| is_wrong(field).map(|_| "problem");
    let PersonDetails {
        name,
        address,
        until,
        roles,
    } = &typed.details;
    let card = html! {
        p .lead { (invite_hint(around)) }
        @if let Some(problem) = problem {
            (field_problem(texts, wrong.or(Some("username")), &problem.sentence(texts)))
        }
        (form.of(&html! {
            (hidden("batch", batch))
            div .field {
                label for="username" { (texts.username) }
                input #username type="text" name="username" value=(typed.username) required
                    maxlength="256" autocomplete="off" autocapitalize="none" spellcheck="false"
                    dir="auto" aria-invalid=[is_wrong("username")]
                    aria-describedby=[described("username")];
            }
            (name_field(texts, name))
            div .field {
                label for="new-address" { (texts.email_address) }
                input #new-address type="email" name="address" value=(address) maxlength="254"
                    required[around.by_letter] autocomplete="off" dir="auto"
                    aria-invalid=[is_wrong("new-address")]
                    aria-describedby=[described("new-address")];
            }
            (until_field(texts, until, wrong == Some("until")))
            (tenant_field(around, tenant))
            (role_choices(around, roles))
            (submit(texts.invite))
        }))
    };
    let several = html! {
        a .button href=(around.address("invite-several")) { (texts.invite_several) }
    };
    around.document_beside(problem.is_some(), texts.invite, &several, &card)
}

/// How somebody gets their first link.
pub fn invite_hint(around: AdminChrome<'_>) -> &'static str {
    if around.by_letter {
        around.texts.invite_by_letter
    } else {
        around.texts.invite_by_link
    }
}

fn tenant_field(around: AdminChrome<'_>, chosen: &str) -> Markup {
    let tenants = around.reach.iter().map(|tenant| match *tenant {
        "" => ("", around.texts.none),
        name => (name, around.catalogue.tenant_name(name)),
    });
    html! {
        @if around.reach.len() > 1 {
            (choice("tenant", around.texts.organisation, chosen, tenants))
        }
    }
}

/// A pasted line: who is in it, and what is wrong with it.
#[derive(Debug, Default, PartialEq)]
pub struct PastedLine {
    /// From one on.
    pub number: usize,
    pub newcomer: Newcomer,
    pub mistakes: Vec<String>,
}

/// What was pasted.
#[derive(Clone, Copy, Default)]
pub struct Pasted<'a> {
    pub text: &'a str,
    pub tenant: &'a str,
    /// Says that a form which is sent again is the same one.
    pub batch: &'a str,
    /// Why nobody was invited, in general; and the lines with their mistakes.
    pub complaint: Option<&'a str>,
    pub lines: &'a [PastedLine],
}

/// The page that takes lines. Its form posts `form_token`, `batch`, `lines` and `tenant`.
pub fn invite_several_page(
    around: AdminChrome<'_>,
    form: &PageForm<'_>,
    pasted: Pasted<'_>,
) -> Markup {
    let texts = around.texts;
    // The address says that a long text is coming.
    let form = PageForm {
        action: around.address_with("invite-several", &[("form_token", &form.token)]),
        ..form.clone()
    };
    let some_roles = Vec::from_iter(around.roles_to_give.iter().take(2).map(String::as_str));
    let is_wrong = pasted.complaint.map(|_| "true");
    let described = is_wrong.map_or("lines-hint", |_| "problem lines-hint");
    let card = html! {
        p .lead { (invite_hint(around)) }
        @if let Some(sentence) = pasted.complaint {
            (problem_notice(texts, &html! {
                p { a href="#lines" { (sentence) } }
                (mistakes(texts, pasted.lines))
            }))
        }
        (form.of(&html! {
            (hidden("batch", pasted.batch))
            (tenant_field(around, pasted.tenant))
            div .field {
                label for="lines" { (texts.pasted_lines) }
                // A line break behind the tag would not count.
                textarea #lines name="lines" rows="10" required spellcheck="false" dir="auto"
                    aria-invalid=[is_wrong] aria-describedby=(described) { "\n" (pasted.text) }
                div #lines-hint .hint {
                    p { (texts.pasted_lines_hint) }
                    p { code { "Nora Novak,nora@example.com,nora," (some_roles.join("|")) } }
                    @if !around.roles_to_give.is_empty() {
                        p { (texts.roles) }
                        ul {
                            @for role in around.roles_to_give {
                                li { bdi { (around.role_name(role)) } }
                            }
                        }
                    }
                }
            }
            (submit(texts.invite_several))
        }))
    };
    around.document(pasted.complaint.is_some(), texts.invite_several, &card)
}

fn mistakes(texts: &Texts, lines: &[PastedLine]) -> Markup {
    html! {
        @if lines.iter().any(|line| !line.mistakes.is_empty()) {
            ul {
                @for line in lines {
                    @for mistake in &line.mistakes {
                        li { (texts.line.fill(&line.number.to_string())) " " bdi { (mistake) } }
                    }
                }
            }
        }
    }
}

/// Somebody who was invited.
pub struct InvitedPerson<'a> {
    pub person: &'a Person,
    /// To pass on, where there is no e-mail.
    pub link: Option<String>,
    /// Whether too many letters were sent or wait.
    pub lacks_letter: bool,
}

/// The page that says who was invited, with their links where there is no e-mail.
pub fn invited_page(around: AdminChrome<'_>, invited: &[InvitedPerson<'_>]) -> Markup {
    let texts = around.texts;
    let name = texts.standard_claim("name").unwrap_or(texts.your_name);
    let last_head = if around.by_letter {
        texts.state
    } else {
        texts.their_link
    };
    let heads = [
        name,
        texts.username,
        texts.email_address,
        texts.roles,
        last_head,
    ];
    let card = html! {
        (done(html! {
            (texts.were_invited.fill(&invited.len().to_string())) " "
            @if around.by_letter { (texts.letters_under_way) } @else { (texts.links_shown_once) }
        }))
        (table(&heads, &html! { @for one in invited { (row(around, one)) } }))
        (button_to(&around.address("invite"), texts.invite_another))
    };
    around.document(false, texts.invite_several, &card)
}

fn row(around: AdminChrome<'_>, invited: &InvitedPerson<'_>) -> Markup {
    let user = &invited.person.found.user;
    html! {
        tr {
            th scope="row" {
                (around.link_to("people", user.sub.as_str(), user.called()))
            }
            td { bdi { (user.designation()) } }
            td { @if let Some(address) = stored_address(&user.claims) { bdi { (address) } } }
            td { (roles_had(around, user)) }
            td {
                @if let Some(link) = &invited.link { code .link-shown { (link) } }
                @if invited.lacks_letter {
                    span .badge .warning { (around.texts.no_letter) }
                }
            }
        }
    }
}
