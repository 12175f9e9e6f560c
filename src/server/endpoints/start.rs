//! `/start`: what somebody who is signed in may open, and the pages that are for them. It shows the
//! session that the browser has, of whatever tenant. It writes nothing: an application that is
//! opened begins a request of its own.

use super::account::address;
use super::answers;
use crate::app::App;
use crate::app::failure::Result;
use crate::endpoints::current_session::CurrentSession;
use crate::endpoints::transaction::{InSession, own_page};
use crate::http::{Request, Response};
use crate::pages::start::page;
use gatepost_protocol::authorize::authorize_response::with_query;
use gatepost_protocol::registration::administration::roles_of;
use gatepost_protocol::sealed_request::SealedPurpose;
use gatepost_protocol::words::client::ClientLinks;
use gatepost_store::clients;

/// Applications that are shown at most.
const MOST: i64 = 200;

pub fn handle(app: &App, request: &Request) -> Result<Response> {
    let purpose = SealedPurpose::Start(own_page::visit(request)?);
    let current_session = CurrentSession::find(app, request)?;
    own_page::to_signed_in(app, request, current_session.as_ref(), purpose, draw)
}

fn draw(context: InSession<'_>) -> Result<Response> {
    let app = context.app;
    let user = &context.current_session.user;
    let mut applications = Vec::new();
    let open = clients::open_to(
        &app.store,
        user.tenant.as_ref(),
        &roles_of(&user.claims),
        MOST,
    )?;
    for client_id in open {
        if let Some(client) = app.registry.client(&client_id)? {
            let address = begins_at(&client.client.links, app.issuer());
            applications.push((client, address));
        }
    }
    Ok(answers::plain_page(
        200,
        page(
            context.chrome(),
            context.current_session.account(),
            &applications,
            app.is_administrator(&user.claims),
            |page| address(context, page),
        ),
    ))
}

/// Where a sign-in begins with an application (OpenID Connect Core §4); else where it is at home.
fn begins_at(links: &ClientLinks, issuer: &str) -> Option<String> {
    match &links.initiate_login_uri {
        Some(uri) => Some(with_query(uri, &[("iss", issuer.to_owned())])),
        None => links.client_uri.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_begins_where_it_is_registered_to() {
        let issuer = "https://id.example/a";
        let home = Some(String::from("https://shop.example/"));
        let iss = "iss=https%3A%2F%2Fid.example%2Fa";
        for (registered, expected) in [
            (
                "https://a.example/in",
                format!("https://a.example/in?{iss}"),
            ),
            ("https://a.example/?", format!("https://a.example/?{iss}")),
            (
                "https://a.example/?b=%2F",
                format!("https://a.example/?b=%2F&{iss}"),
            ),
        ] {
            let links = ClientLinks {
                client_uri: home.clone(),
                initiate_login_uri: Some(registered.to_owned()),
                ..ClientLinks::default()
            };
            assert_eq!(begins_at(&links, issuer), Some(expected));
        }
        let links = ClientLinks {
            client_uri: home.clone(),
            ..ClientLinks::default()
        };
        assert_eq!(begins_at(&links, issuer), home);
        assert_eq!(begins_at(&ClientLinks::default(), issuer), None);
    }
}
