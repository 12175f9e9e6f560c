//! What the account page shows, as it is stored now.

use std::sync::Arc;

use crate::app::App;
use crate::app::failure::Failure;
use crate::endpoints::answers::{self, Presentation};
use crate::endpoints::authorize::consent::scope_view;
use crate::endpoints::authorize::form_tokens::{self, Form};
use crate::endpoints::authorize::present_session::PresentSession;
use crate::endpoints::client_view::{client_view, logo_address};
use crate::http::{Request, Response};
use crate::pages;
use crate::pages::account::{AccountView, ApplicationItem, IdentityItem, Outcome, ProviderItem, SessionItem};
use crate::pages::consent::ConsentScope;
use crate::pages::language::Language;
use crate::protocol::authorize::allowance::{Allowance, merged};
use crate::protocol::registration::provider::IdentityProvider;
use crate::protocol::upstream::claims::known_as;
use crate::protocol::upstream::link::readable;
use crate::protocol::words::scope::Catalogue;
use crate::protocol::words::session::{LOCAL, Session};
use crate::registry::{RegisteredClient, Snapshot};
use crate::store::linked_identities::LinkedIdentity;
use crate::store::sessions;
use crate::store::{consents, grants};

use super::linked;

/// Sign-ins shown: the latest ones.
const MOST_SESSIONS: i64 = 100;
/// Grants looked at: the latest ones.
const MOST_GRANTS: i64 = 500;

struct Application {
    client: Arc<RegisteredClient>,
    logo: Option<String>,
    allowance: Allowance,
}

/// All that this person allowed, one entry an application.
pub(super) fn allowances(app: &App, present: &PresentSession) -> Result<Vec<Allowance>, Failure> {
    let (now, sub) = (app.now(), &present.user.sub);
    let mut found = Vec::new();
    for (client_id, row) in consents::list_of_user(&app.store, sub)? {
        if let Some(client) = app.registry.client(&client_id)? {
            found.extend(Allowance::of_consent(&row.consent, row.expires_at, &client.client, now));
        }
    }
    for grant in grants::list_offline_of_user(&app.store, sub, MOST_GRANTS)? {
        if let Some(client) = app.registry.client(&grant.client_id)? {
            found.extend(Allowance::of_grant(&grant, &client.client, now));
        }
    }
    Ok(merged(found))
}

fn applications(app: &App, present: &PresentSession) -> Result<Vec<Application>, Failure> {
    let mut applications = Vec::new();
    for allowance in allowances(app, present)? {
        if let Some(client) = app.registry.client(&allowance.client_id)? {
            applications.push(Application { logo: logo_address(app, &client.client), client, allowance });
        }
    }
    Ok(applications)
}

pub(super) fn draw(
    app: &App,
    request: &Request,
    present: &PresentSession,
    status: u16,
    outcome: Option<Outcome<'_>>,
) -> Result<Response, Failure> {
    let snapshot = app.registry.snapshot();
    let catalogue = &snapshot.catalogue;
    let found = sessions::list_of_user(&app.store, &present.user.sub, MOST_SESSIONS)?;
    let sessions: Vec<SessionItem<'_>> =
        found.iter().map(|session| session_item(session, present, catalogue)).collect();
    let allowed = applications(app, present)?;
    let presentation = Presentation { config: &app.config, request };
    let language = presentation.language("");
    let scopes: Vec<Vec<ConsentScope<'_>>> =
        allowed.iter().map(|one| scope_items(&one.allowance, catalogue, language)).collect();
    let applications: Vec<ApplicationItem<'_>> =
        allowed.iter().zip(&scopes).map(|(one, scopes)| application_item(one, scopes, language)).collect();
    let own = linked::identities(app, &snapshot, present)?;
    let names: Vec<[String; 2]> =
        own.iter().map(|one| [linked::form_name(app, &snapshot, one), readable(&one.upstream_subject)]).collect();
    let identities: Vec<IdentityItem<'_>> =
        own.iter().zip(&names).map(|(one, names)| identity_item(one, names, &snapshot)).collect();
    let linkable = linked::linkable(&snapshot, present, &own);
    let linkable: Vec<ProviderItem<'_>> = linkable.into_iter().map(provider_item).collect();
    let path = app.config.base_url.path();
    let tenant = present.row.tenant.as_ref().and_then(|tenant| catalogue.tenants.get(tenant.as_str()));
    let form_token = form_tokens::issue(app, Form::Account, "", &present.handle.random);
    let address = |page: &str| presentation.in_its_language(format!("{path}{page}"));
    let markup = presentation.draw("", |chrome| {
        pages::account::page(&AccountView {
            chrome,
            action: &address("/account"),
            form_token: &form_token,
            sign_out: &address("/logout"),
            account: present.account(),
            tenant: tenant.map(|tenant| tenant.display_name.as_str()),
            outcome,
            sessions: &sessions,
            applications: &applications,
            identities: &identities,
            linkable: &linkable,
            has_password: present.user.password_hash.is_some(),
        })
    });
    Ok(answers::form_page(status, markup))
}

fn session_item<'a>(session: &'a Session, present: &PresentSession, catalogue: &'a Catalogue) -> SessionItem<'a> {
    let name = session.identity_provider();
    let registered = catalogue.identity_providers.get(name);
    let display_name = registered.map_or(name, |provider| provider.display_name.as_str());
    SessionItem {
        sid: session.sid.as_str(),
        since: session.auth_time,
        until: session.expires_at,
        provider: (name != LOCAL).then_some(display_name),
        is_this: session.sid == present.row.sid,
    }
}

/// Scopes that are registered no more are nothing that an application could still use.
fn scope_items<'a>(allowance: &Allowance, catalogue: &'a Catalogue, language: Language) -> Vec<ConsentScope<'a>> {
    let registered = allowance.scope.iter().filter_map(|name| catalogue.scopes.get(name));
    registered.map(|scope| scope_view(scope, false, language)).collect()
}

fn application_item<'a>(
    application: &'a Application,
    scopes: &'a [ConsentScope<'a>],
    language: Language,
) -> ApplicationItem<'a> {
    ApplicationItem {
        client_id: application.client.client.client_id.as_str(),
        client: client_view(&application.client.client, application.logo.as_deref(), language),
        scopes,
        since: application.allowance.since,
    }
}

fn identity_item<'a>(
    identity: &'a LinkedIdentity,
    [form_name, subject]: &'a [String; 2],
    snapshot: &'a Snapshot,
) -> IdentityItem<'a> {
    IdentityItem {
        form_name,
        provider: linked::provider_name(snapshot, identity),
        known_as: known_as(&identity.claims),
        subject,
        since: identity.linked_at,
    }
}

fn provider_item(provider: &IdentityProvider) -> ProviderItem<'_> {
    ProviderItem { name: &provider.name, display_name: &provider.display_name }
}
