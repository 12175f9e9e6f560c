//! Inviting several people by pasted lines.

use maud::{Markup, html};

use crate::pages::admin::AdminChrome;
use crate::pages::admin::people::{Invitation, invite_hint, page_of, role_name, tenant_field};
use crate::statements::admin_people::Person;
use gatepost_protocol::login::letters::stored_address;
use gatepost_server::pages::frame::{PageForm, button_to, done, hidden, problem_notice, submit};

/// What was pasted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pasted<'a> {
    pub lines: &'a str,
    pub tenant: &'a str,
    /// Says that a form which is sent again is the same one.
    pub batch: &'a str,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineProblem {
    /// From one on.
    pub line: usize,
    pub sentence: String,
}

/// Why nobody was invited.
#[derive(Clone, Copy, Debug)]
pub struct Complaint<'a> {
    pub sentence: &'a str,
    pub lines: &'a [LineProblem],
}

/// The page that takes lines. Its form posts `form_token`, `batch`, `lines` and `tenant`.
pub fn page(
    around: AdminChrome<'_>,
    form: PageForm<'_>,
    invitation: Invitation<'_>,
    pasted: Pasted<'_>,
    complaint: Option<Complaint<'_>>,
) -> Markup {
    let texts = around.chrome.texts;
    let some_roles = Vec::from_iter(invitation.given_roles.iter().take(2).map(String::as_str));
    let card = html! {
        p .lead { (invite_hint(texts, invitation.by_letter)) }
        @if let Some(complaint) = complaint { (told(around, complaint)) }
        (form.of(&html! {
            (hidden("batch", pasted.batch))
            (tenant_field(texts, invitation, pasted.tenant))
            div .field {
                label for="lines" { (texts.pasted_lines) }
                // A line break behind the tag would not count.
                textarea #lines name="lines" rows="10" required spellcheck="false" dir="auto"
                    aria-describedby="lines-hint" { "\n" (pasted.lines) }
                div #lines-hint .hint {
                    p { (texts.pasted_lines_hint) }
                    p { code { "Nora Novak,nora@example.com,nora," (some_roles.join("|")) } }
                    (roles(around, invitation))
                }
            }
            (submit(texts.invite_several))
        }))
    };
    around.document(complaint.is_some(), texts.invite_several, &card)
}

fn told(around: AdminChrome<'_>, complaint: Complaint<'_>) -> Markup {
    let texts = around.chrome.texts;
    let sentences = html! {
        p { a href="#lines" { (complaint.sentence) } }
        @if !complaint.lines.is_empty() {
            ul {
                @for problem in complaint.lines {
                    li {
                        (texts.line.fill(&problem.line.to_string())) " "
                        bdi { (problem.sentence) }
                    }
                }
            }
        }
    };
    problem_notice(texts, &sentences)
}

/// What can stand in the last column.
fn roles(around: AdminChrome<'_>, invitation: Invitation<'_>) -> Markup {
    html! {
        @if !invitation.given_roles.is_empty() {
            p { (around.chrome.texts.roles) }
            ul {
                @for role in invitation.given_roles {
                    li { bdi { (role_name(around, invitation.catalogue, role)) } }
                }
            }
        }
    }
}

/// Somebody who was invited.
#[derive(Clone, Debug)]
pub struct InvitedPerson<'a> {
    pub person: &'a Person,
    /// To pass on, where there is no e-mail.
    pub link: Option<String>,
    /// Whether too many letters were sent or wait.
    pub lacks_letter: bool,
}

/// The page that says who was invited, with their links where there is no e-mail.
pub fn invited_page(
    around: AdminChrome<'_>,
    by_letter: bool,
    invited: &[InvitedPerson<'_>],
) -> Markup {
    let texts = around.chrome.texts;
    let card = html! {
        (done(html! {
            (texts.were_invited.fill(&invited.len().to_string())) " "
            @if by_letter { (texts.letters_under_way) } @else { (texts.links_shown_once) }
        }))
        table .people { tbody { @for one in invited { (row(around, one)) } } }
        (button_to(&around.address("invite"), texts.invite_another))
    };
    around.document(false, texts.invite_several, &card)
}

fn row(around: AdminChrome<'_>, invited: &InvitedPerson<'_>) -> Markup {
    let user = &invited.person.found.user;
    html! {
        tr {
            th scope="row" { a href=(around.address(&page_of(user))) { bdi { (user.called()) } } }
            td { bdi { (user.designation()) } }
            td { @if let Some(address) = stored_address(&user.claims) { bdi { (address) } } }
            td {
                @if let Some(link) = &invited.link { code .link-shown { (link) } }
                @if invited.lacks_letter {
                    span .badge .warning { (around.chrome.texts.no_letter) }
                }
            }
        }
    }
}
