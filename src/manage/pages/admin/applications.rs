//! What is registered, for those who look after people: read only. What is wrong with an
//! application is said as `gatepost client test` says it, in English.

use maud::{Markup, html};

use crate::pages::admin::AdminChrome;
use crate::pages::admin::people::{PeoplePage, listing};
use gatepost_protocol::words::client::Client;
use gatepost_protocol::words::identifiers::{ClientId, TenantName};
use gatepost_registrar::examined_client::ExaminedClient;
use gatepost_registrar::statements::applications::MOST_GRANTS;
use gatepost_registration::finding::{Finding, Verdict};
use gatepost_server::pages::moment::on_day;

/// All of them, in the order of their names; with `next`, there are more behind that name. Of
/// tenants, those within reach are named.
pub fn list_page(
    around: AdminChrome<'_>,
    applications: &[ExaminedClient],
    next: Option<&ClientId>,
) -> Markup {
    let texts = around.texts;
    let card = html! {
        p { a href=(around.address("explain")) { (texts.why_refused) } }
        @if applications.is_empty() {
            p role="status" { (texts.nothing_found) }
        } @else {
            ul .items {
                @for one in applications {
                    li {
                        p { (headline(around, one)) }
                        (facts(around, one, None))
                    }
                }
            }
        }
        (around.next_page("applications", next.map(ClientId::as_str)))
    };
    around.document(false, texts.applications, &card)
}

fn headline(around: AdminChrome<'_>, application: &ExaminedClient) -> Markup {
    let client = &application.client;
    html! {
        (around.link_to("applications", client.client_id.as_str(), around.name_of(client)))
        " " (grade(&application.findings))
    }
}

/// One of them, with how many grants it has, where that could be counted, and the people who may
/// open it by a role.
pub fn application_page(
    around: AdminChrome<'_>,
    application: &ExaminedClient,
    grants: Option<i64>,
    people: &PeoplePage<'_>,
) -> Markup {
    let texts = around.texts;
    let ExaminedClient {
        client, findings, ..
    } = application;
    let card = html! {
        (facts(around, application, grants))
        @if client.allowed_roles.is_some() {
            h2 { (texts.may_open_it) }
            (listing(around, people))
        }
        section aria-labelledby="findings" {
            h2 #findings { (texts.check_findings) }
            (told(findings))
        }
    };
    let name = around.name_of(client);
    around.document_beside(false, name, &grade(findings), &card)
}

/// Findings are in English, whatever the language of the page is.
pub fn told(findings: &[Finding]) -> Markup {
    html! {
        ul .items lang="en" {
            @for finding in findings {
                li { p { (badge(finding.verdict)) " " bdi { (finding.text) } } }
            }
        }
    }
}

fn badge(verdict: Verdict) -> Markup {
    let is_fine = verdict == Verdict::Fine;
    html! { span .badge .warning[!is_fine] lang="en" { (verdict.as_str()) } }
}

/// The worst that was found.
fn grade(findings: &[Finding]) -> Markup {
    let worst = [Verdict::Broken, Verdict::Weak]
        .into_iter()
        .find(|verdict| findings.iter().any(|finding| finding.verdict == *verdict));
    badge(worst.unwrap_or(Verdict::Fine))
}

fn facts(around: AdminChrome<'_>, application: &ExaminedClient, grants: Option<i64>) -> Markup {
    let texts = around.texts;
    let client = &application.client;
    html! {
        p .hint { bdi { (client.client_id) } }
        p .hint {
            @match application.used_on {
                Some(day) => (on_day(texts, texts.last_used_on, day)),
                None => (texts.no_known_use),
            }
        }
        dl .facts {
            @if let Some(count) = grants {
                dt { (texts.access_grants) }
                dd {
                    @if count > MOST_GRANTS {
                        (texts.more_than.fill(&MOST_GRANTS.to_string()))
                    } @else {
                        (count)
                    }
                }
            }
            dt { (texts.scopes) }
            dd { @for scope in client.scope.iter() { bdi { (scope) } " " } }
            dt { (texts.who_may_use) }
            dd { (who_may_use(around, client)) }
        }
    }
}

fn who_may_use(around: AdminChrome<'_>, client: &Client) -> Markup {
    let texts = around.texts;
    let roles = client.allowed_roles.as_ref();
    let is_reached = |tenant: &str| around.reach.contains(&tenant);
    let is_known = |tenant: &&TenantName| is_reached("") || is_reached(tenant.as_str());
    html! {
        @if roles.is_none() && client.tenants.is_none() {
            span .badge .warning { (texts.everybody) }
        }
        @if let Some(roles) = roles {
            (texts.roles) @for role in roles { br; bdi { (around.role_name(role)) } }
        }
        @if let Some(tenants) = &client.tenants {
            @if roles.is_some() { br; }
            (texts.organisation)
            @for tenant in tenants.iter().filter(is_known) {
                br;
                bdi { (around.catalogue.tenant_name(tenant.as_str())) }
            }
        }
    }
}
