//! Tables of exchanges.

use serde_json::json;

use super::super::token_request::TokenRequest;
use super::*;
use crate::words::client::GrantType;
use crate::words::identifiers::{ClientId, Subject, TenantName};
use crate::words::parameters::Parameters;
use crate::words::samples::{self, scope};
use crate::words::session::SignIn;

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
        ("subject_token", "t"),
        ("subject_token_type", ACCESS_TOKEN_TYPE),
    ];
    let pairs: Vec<(&str, &str)> = own.into_iter().chain(pairs.iter().copied()).collect();
    request_of(&pairs)
}

fn request_of(pairs: &[(&str, &str)]) -> ExtensionRequest {
    let own = [("grant_type", NAME)];
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
    let sender = samples::sender(&client, &catalogue);
    let outcome = match check_client(&client) {
        Ok(()) => judge(&request(pairs), &subject, None, sender),
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
    let public = crate::words::client::ClientAuthenticationMethod::None;
    assert_eq!(
        exchanged(&[], |_, client| client.authentication = public).map(drop),
        unregistered
    );
}

#[test]
fn tokens_are_shown_with_their_types() {
    let read = |pairs: &[(&str, &str)]| {
        read(&request_of(pairs)).map_err(|error| (error.code.as_str(), error.reason))
    };
    let token = |text: &str, must_be_jwt| ShownToken {
        token: SecretText::new(text),
        must_be_jwt,
    };
    let subject = [
        ("subject_token", "t"),
        ("subject_token_type", ACCESS_TOKEN_TYPE),
    ];
    let and = |pairs: &[(&'static str, &'static str)]| [&subject[..], pairs].concat();
    let alone = ShownTokens {
        subject: token("t", false),
        actor: None,
    };
    assert_eq!(read(&subject), Ok(alone.clone()));
    let as_jwt = [subject[0], ("subject_token_type", JWT_TYPE)];
    assert_eq!(read(&as_jwt).unwrap().subject, token("t", true));
    let asked = and(&[("requested_token_type", ACCESS_TOKEN_TYPE)]);
    assert_eq!(read(&asked), Ok(alone));
    let actor = and(&[("actor_token", "a"), ("actor_token_type", JWT_TYPE)]);
    assert_eq!(read(&actor).unwrap().actor, Some(token("a", true)));
    let kind = "urn:ietf:params:oauth:token-type:refresh_token";
    let missing = Err(("invalid_request", Reason::MissingSubjectToken));
    let unsupported = Err(("invalid_request", Reason::UnsupportedTokenType));
    let no_actor = Err(("invalid_request", Reason::InvalidActorToken));
    for (pairs, refused) in [
        (vec![], &missing),
        (vec![subject[0]], &missing),
        (vec![subject[1]], &missing),
        (vec![subject[0], ("subject_token_type", kind)], &unsupported),
        (and(&[("requested_token_type", JWT_TYPE)]), &unsupported),
        (and(&[("actor_token", "a")]), &no_actor),
        (and(&[("actor_token_type", ACCESS_TOKEN_TYPE)]), &no_actor),
        (
            and(&[("actor_token", "a"), ("actor_token_type", kind)]),
            &unsupported,
        ),
    ] {
        assert_eq!(&read(&pairs), refused, "{pairs:?}");
    }
}

#[test]
fn a_scope_is_narrowed_to_what_client_subject_and_catalogue_share() {
    let narrowed = |pairs: &[(&str, &str)], change: fn(&mut AccessToken, &mut Client)| {
        let exchanged = exchanged(pairs, change)?;
        Ok((
            exchanged.narrowed.scope.to_string(),
            exchanged.narrowed.audience,
        ))
    };
    let to = |scope: &str, audience: &[&str]| {
        let audience = audience.iter().map(ToString::to_string).collect();
        Ok((scope.to_owned(), audience))
    };
    let beyond = Err(("invalid_scope", Reason::ScopeBeyondSubjectToken));
    let nowhere = Err(("invalid_target", Reason::InvalidTarget));
    let reaching = |_: &mut AccessToken, client: &mut Client| {
        client.scope = scope("openid offline_access orders.read stock ping orders.write");
    };
    let both = to("orders.read stock ping", &[ORDERS, "stock"]);
    assert_eq!(narrowed(&[], reaching), both);
    // `ping` is not the gateway's.
    let own = to("orders.read stock", &[ORDERS, "stock"]);
    assert_eq!(narrowed(&[], |_, _| {}), own);
    let stock = to("stock", &["stock"]);
    assert_eq!(narrowed(&[("scope", "stock")], reaching), stock);
    assert_eq!(narrowed(&[("audience", "stock")], |_, _| {}), stock);
    let orders = to("orders.read", &[ORDERS]);
    assert_eq!(narrowed(&[("resource", ORDERS)], |_, _| {}), orders);
    let twice = [("resource", ORDERS), ("audience", ORDERS)];
    assert_eq!(narrowed(&twice, |_, _| {}), orders);
    for name in ["openid", "offline_access", "orders.write", "phone", "gone"] {
        let asked = [("scope", name)];
        assert_eq!(narrowed(&asked, reaching), beyond, "{name}");
    }
    assert_eq!(narrowed(&[("scope", "ping")], |_, _| {}), beyond);
    let unregistered = |subject: &mut AccessToken, client: &mut Client| {
        subject.scope = scope("gone stock");
        client.scope = scope("gone stock");
    };
    assert_eq!(narrowed(&[("scope", "gone")], unregistered), beyond);
    assert_eq!(narrowed(&[], unregistered), stock);
    for pairs in [
        [("resource", "stock")],
        [("resource", "https://elsewhere.example/")],
        [("audience", "gone")],
    ] {
        assert_eq!(narrowed(&pairs, |_, _| {}), nowhere, "{pairs:?}");
    }
    // Registered and allowed, but not behind the scope that is asked for.
    let other = [("scope", "stock"), ("resource", ORDERS)];
    assert_eq!(narrowed(&other, |_, _| {}), nowhere);
    let to_stock_alone = |_: &mut AccessToken, client: &mut Client| {
        client.token_exchange = Some(json!({"from_clients": ["web"], "to_resources": ["stock"]}));
    };
    assert_eq!(narrowed(&[], to_stock_alone), stock);
    assert_eq!(narrowed(&[("resource", ORDERS)], to_stock_alone), nowhere);
    let asked = [("scope", "orders.read stock")];
    assert_eq!(narrowed(&asked, to_stock_alone), nowhere);
    let aimed = [("scope", "orders.read stock"), ("audience", "stock")];
    assert_eq!(narrowed(&aimed, to_stock_alone), stock);
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
    let (client, catalogue) = (gateway(), samples::catalogue());
    let sender = samples::sender(&client, &catalogue);
    let outcome = judge(&request(&[]), &subject, Some(actor), sender);
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

#[test]
fn an_actor_is_a_user_or_a_client_that_may_be_taken_over() {
    let itself = json!({"sub": "gateway", "client_id": "gateway"});
    let alone = exchanged(&[], |_, _| {}).unwrap();
    assert_eq!(alone.delegation.act(), itself);
    let of = |client_id: &str, user: Option<SignIn>| AccessToken {
        client_id: ClientId::new(client_id),
        user,
        ..subject()
    };
    assert_eq!(acting(&of("gateway", None), |_| {}), Ok(itself));
    let web = json!({"sub": "web", "client_id": "web"});
    assert_eq!(acting(&of("web", None), |_| {}), Ok(web));
    let bob = of_bob().user;
    let acting_for = |client_id: &str| acting(&of(client_id, bob.clone()), |_| {});
    assert_eq!(acting_for("gateway"), Ok(json!({"sub": "bob"})));
    assert_eq!(acting_for("other"), Err(Reason::InvalidActorToken));
}

#[test]
fn an_exchange_says_what_it_was_made_from_and_how_deep() {
    let exchanged_after = |before: usize| {
        exchanged(&[], |subject, _| {
            let origin = TokenOrigin::of(subject);
            subject.delegation = Some(Delegation {
                actors: vec![Actor::Client(ClientId::new("first")); before],
                origins: vec![origin; before],
            });
            drop(subject.claims.insert(String::from("tier"), json!("gold")));
        })
    };
    let deepest = exchanged_after(DEEPEST - 1).unwrap();
    assert_eq!(deepest.delegation.actors.len(), DEEPEST);
    assert_eq!(
        deepest.delegation.actors.first(),
        Some(&Actor::Client(ClientId::new("gateway")))
    );
    let last = deepest.delegation.origins.last();
    assert_eq!(last, Some(&TokenOrigin::of(&subject())));
    assert_eq!(deepest.claims["tier"], "gold");
    assert_eq!(deepest.ends_at, subject().expires_at);
    let deeper = exchanged_after(DEEPEST).map(drop);
    let refused = Err(("invalid_request", Reason::DelegationTooDeep));
    assert_eq!(deeper, refused);
}
