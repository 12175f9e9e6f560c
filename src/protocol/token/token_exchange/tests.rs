//! Tables of exchanges.

use serde_json::json;

use super::super::token_request::TokenRequest;
use super::*;
use crate::protocol::words::client::GrantType;
use crate::protocol::words::identifiers::{ClientId, Subject, TenantName};
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::samples::{self, scope};
use crate::protocol::words::session::SignIn;

const ISSUER: &str = "https://op.example";
const ORDERS: &str = "https://orders.example.com/";
const NAME: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

fn gateway() -> Client {
    Client {
        client_id: ClientId::new("gateway"),
        grant_types: [GrantType::TokenExchange].into(),
        token_exchange: Some(json!({"from_clients": ["web"], "to_resources": [ORDERS, "stock"]})),
        ..samples::client()
    }
}

fn request(pairs: &[(&str, &str)]) -> ExtensionRequest {
    let own = [
        ("grant_type", NAME),
        ("subject_token", "t"),
        ("subject_token_type", ACCESS_TOKEN_TYPE),
    ];
    let pairs: Vec<(&str, &str)> = own.into_iter().chain(pairs.iter().copied()).collect();
    match TokenRequest::from_form(
        &Parameters::from_pairs(pairs),
        &gateway(),
        |_| false,
        samples::NOW,
    ) {
        Ok(TokenRequest::Extension(request)) => request,
        other => panic!("{other:?}"),
    }
}

fn subject() -> AccessToken {
    AccessToken {
        scope: scope("openid offline_access orders.read stock ping"),
        ..samples::access_token()
    }
}

fn exchanged(
    pairs: &[(&str, &str)],
    change: impl FnOnce(&mut AccessToken, &mut Client),
) -> Result<Exchanged, (&'static str, Reason)> {
    let mut subject = subject();
    let mut client = gateway();
    let catalogue = samples::catalogue();
    change(&mut subject, &mut client);
    let circumstances = ExchangeCircumstances {
        client: &client,
        catalogue: &catalogue,
        issuer: ISSUER,
    };
    let outcome = match check_client(&client) {
        Ok(()) => judge(&request(pairs), &subject, None, circumstances),
        Err(error) => Err(error),
    };
    outcome.map_err(|error| (error.code.as_str(), error.reason))
}

#[test]
fn only_tokens_that_the_registration_names_are_taken() {
    let unfit = Err(("invalid_request", Reason::InvalidSubjectToken));
    let refused = |change: fn(&mut AccessToken, &mut Client)| exchanged(&[], change).map(drop);
    assert_eq!(refused(|_, _| {}), Ok(()));
    assert_eq!(refused(|subject, _| subject.user = None), unfit);
    assert_eq!(
        refused(|subject, _| subject.client_id = ClientId::new("other")),
        unfit
    );
    assert_eq!(
        refused(|subject, _| subject.client_id = ClientId::new("gateway")),
        unfit
    );
    assert_eq!(
        refused(|_, client| client.token_exchange = Some(json!({"to_resources": [ORDERS]}))),
        unfit
    );
    let as_orders = |client: &mut Client| {
        client.token_exchange = Some(json!({"as_resources": [ORDERS], "to_resources": ["stock"]}))
    };
    assert_eq!(
        exchanged(&[], |_, client| as_orders(client)).map(drop),
        Ok(())
    );
    let elsewhere = |subject: &mut AccessToken, client: &mut Client| {
        subject.audience = vec![String::from("stock")];
        as_orders(client);
    };
    assert_eq!(exchanged(&[], elsewhere).map(drop), unfit);
    let unregistered = Err(("unauthorized_client", Reason::ExchangeNotRegistered));
    assert_eq!(
        refused(|_, client| client.token_exchange = None),
        unregistered
    );
    let public = crate::protocol::words::client::ClientAuthenticationMethod::None;
    assert_eq!(
        exchanged(&[], |_, client| client.authentication = public).map(drop),
        unregistered
    );
}

#[test]
fn without_a_registered_resource_it_goes_nowhere() {
    let nowhere = |_: &mut AccessToken, client: &mut Client| {
        client.token_exchange = Some(json!({"from_clients": ["web"]}))
    };
    assert_eq!(
        exchanged(&[], nowhere).map(drop),
        Err(("invalid_scope", Reason::NoScopeLeft))
    );
}

#[test]
fn the_tenant_must_be_the_clients() {
    let of = |tenants: &[&str], tenant: Option<&str>| {
        exchanged(&[], |subject, client| {
            client.tenants = Some(tenants.iter().map(|name| TenantName::new(*name)).collect());
            subject.user.as_mut().unwrap().tenant = tenant.map(TenantName::new);
        })
        .is_ok()
    };
    assert!(
        of(&["acme"], Some("acme"))
            && of(&["acme", "globex"], Some("acme"))
            && of(&["acme", "globex"], None)
    );
    assert!(!of(&["globex"], Some("acme")) && !of(&["acme"], None));
    assert!(!of(&["acme", "gone"], Some("gone")), "no longer registered");
}

fn acting(actor: &AccessToken, change: impl FnOnce(&mut AccessToken)) -> Result<Value, Reason> {
    let mut subject = subject();
    change(&mut subject);
    let circumstances = ExchangeCircumstances {
        client: &gateway(),
        catalogue: &samples::catalogue(),
        issuer: ISSUER,
    };
    let outcome = judge(&request(&[]), &subject, Some(actor), circumstances);
    outcome
        .map(|exchanged| exchanged.delegation.act())
        .map_err(|error| error.reason)
}

fn of_bob() -> AccessToken {
    let bob = SignIn {
        subject: Subject::new("bob"),
        ..subject().user.unwrap()
    };
    AccessToken {
        user: Some(bob),
        ..subject()
    }
}

#[test]
fn may_act_is_obeyed_to_the_letter() {
    let with = |may_act: Value| {
        exchanged(&[], |subject, _| {
            drop(subject.claims.insert(String::from("may_act"), may_act))
        })
        .map(drop)
    };
    for may_act in [
        json!({"sub": "gateway"}),
        json!({"client_id": "gateway"}),
        json!({"sub": "gateway", "client_id": "gateway", "iss": ISSUER}),
    ] {
        assert_eq!(with(may_act.clone()), Ok(()), "{may_act}");
    }
    #[rustfmt::skip]
    let rows = [
        json!({}), json!({"sub": "Gateway"}), json!({"sub": ["gateway"]}), json!({"iss": ISSUER}),
        json!({"sub": "gateway", "iss": "https://elsewhere.example"}),
        json!({"sub": "gateway", "client_id": "other"}), json!({"sub": "gateway", "email": "x"}), json!("gateway"),
    ];
    for may_act in rows {
        assert_eq!(
            with(may_act.clone()),
            Err(("invalid_request", Reason::ActorNotAllowed)),
            "{may_act}"
        );
    }
    let for_bob = |token: &mut AccessToken| {
        drop(
            token
                .claims
                .insert(String::from("may_act"), json!({"sub": "bob"})),
        )
    };
    assert_eq!(acting(&of_bob(), for_bob), Ok(json!({"sub": "bob"})));
    assert!(exchanged(&[], |subject, _| for_bob(subject)).is_err());
}

#[test]
fn an_actor_of_another_tenant_is_none() {
    assert_eq!(acting(&of_bob(), |_| {}), Ok(json!({"sub": "bob"})));
    let elsewhere = |token: &mut AccessToken| token.user.as_mut().unwrap().tenant = None;
    assert_eq!(acting(&of_bob(), elsewhere), Err(Reason::InvalidActorToken));
}
