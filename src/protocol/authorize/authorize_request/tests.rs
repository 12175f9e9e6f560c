//! Whole requests: what is accepted, what a page answers, what survives sealing.

use proptest::prelude::*;

use super::fixtures::*;
use super::*;
use crate::words::legacy_flow::LegacyFlow;

fn path(request: &AuthorizeRequest) -> &ReturnPath {
    if let Ending::Client(path) = &request.ending {
        path
    } else {
        panic!("not a client's: {request:?}")
    }
}

fn redirect_error(
    result: Result<AuthorizeRequest, AuthorizeError>,
) -> (AuthorizeErrorCode, Reason) {
    match result {
        Err(AuthorizeError::Redirect(_, refusal)) => (refusal.code, refusal.reason),
        other => panic!("not a redirect: {other:?}"),
    }
}

#[test]
fn the_log_hears_what_was_registered_and_what_was_received() {
    let Err(AuthorizeError::Page {
        detail: Some(detail),
        ..
    }) = asking()
        .with("redirect_uri", "https://rp1.example/x")
        .judged()
    else {
        panic!("no detail");
    };
    assert_eq!(
        detail,
        "received https://rp1.example/x; registered https://rp1.example/cb"
    );
}

#[test]
fn every_known_parameter_is_refused_twice_or_too_long() {
    for (name, most) in KNOWN.into_iter().skip(2) {
        let twice = asking().with(name, "a").also(name, "a").judged();
        assert_eq!(
            redirect_error(twice),
            (
                AuthorizeErrorCode::InvalidRequest,
                Reason::RepeatedParameter
            ),
            "{name}"
        );
        let twice_empty = asking().with(name, "").also(name, "").judged();
        assert_eq!(
            redirect_error(twice_empty).1,
            Reason::RepeatedParameter,
            "{name}"
        );
        let long = asking().with(name, &"\u{e9}".repeat(most + 1)).judged();
        assert_eq!(
            redirect_error(long),
            (
                AuthorizeErrorCode::InvalidRequest,
                Reason::OverlongParameter
            ),
            "{name}"
        );
    }
}

#[test]
fn only_known_parameters_are_kept() {
    let asked = asking()
        .also("extra", "1")
        .with("request", "x")
        .with("state", "a b&c")
        .also("resource", "urn:x");
    let kept = known(&asked.parameters());
    assert_eq!(
        kept.iter()
            .skip_while(|(name, _)| *name != "state")
            .collect::<Vec<_>>(),
        [("state", "a b&c"), ("resource", "urn:x")]
    );
    assert!(!kept.was_sent("extra") && !kept.was_sent("request"));
}

#[test]
fn a_request_begins_anew_once_as_the_same_and_no_client_can_say_that_it_has() {
    let asked = asking().with("state", "a b&c").also("begun_anew", "true");
    let sealed = known(&asked.parameters());
    let begun = anew(&sealed).unwrap();
    assert_eq!(anew(&begun), None);
    // As any build reads it: the mark is a parameter that means nothing to the request itself.
    let judge = |parameters| validate(parameters, &client(), &catalogue(), RECEIVED_AT);
    assert_eq!(judge(&begun), judge(&sealed));
    assert_eq!(known(&begun), sealed);
}

#[test]
fn a_request_names_the_legacy_flows_that_it_uses() {
    let allowing_plain = Client {
        allow_plain_pkce: true,
        ..client()
    };
    let judged = |asked: Asking| asked.judged_for(&allowing_plain).unwrap();
    let openid = judged(asking());
    let plain = judged(asking().with("code_challenge_method", "plain"));
    let not_openid = judged(asking().with("scope", "orders.read"));
    let through_browser = judged(asking().with("response_type", "code id_token token"));
    let no_code = judged(asking().with("response_type", "id_token"));
    assert!(openid.is_openid() && !not_openid.is_openid());
    let without_challenge = |request: &AuthorizeRequest, nonce: Option<&str>| AuthorizeRequest {
        code_challenge: None,
        nonce: nonce.map(str::to_owned),
        ..request.clone()
    };
    let token = LegacyFlow::TokenThroughBrowser;
    for (request, flows) in [
        (openid.clone(), vec![]),
        (plain, vec![LegacyFlow::PlainPkce]),
        // A nonce binds the code only where an ID token brings it back.
        (without_challenge(&openid, Some("n-1")), vec![]),
        (without_challenge(&openid, None), vec![LegacyFlow::Unbound]),
        (
            without_challenge(&not_openid, Some("n-1")),
            vec![LegacyFlow::Unbound],
        ),
        (through_browser.clone(), vec![token]),
        (
            without_challenge(&through_browser, None),
            vec![token, LegacyFlow::Unbound],
        ),
        (without_challenge(&no_code, None), vec![]),
    ] {
        assert_eq!(request.legacy_flows(), flows, "{request:?}");
    }
}

#[test]
fn resources_are_registered_absolute_and_behind_a_scope() {
    const ORDERS: &str = "https://api.example/orders";
    let asked = asking().with("scope", "openid orders.read");
    let twice = asked.clone().also("resource", ORDERS).also("resource", "");
    let request = twice.also("resource", ORDERS).judged().unwrap();
    assert_eq!(request.resources, [ORDERS]);
    for refused in [
        "https://api.example/stock",
        "https://api.example/free",
        "https://api.example/gone",
        "orders",
    ] {
        let asked = asked.clone().also("resource", ORDERS);
        assert_eq!(
            redirect_error(asked.also("resource", refused).judged()),
            (AuthorizeErrorCode::InvalidTarget, Reason::UnknownResource),
            "{refused}"
        );
    }
}

/// RFC 6749 §3.3
#[test]
fn without_a_scope_those_that_lead_to_the_resource_count() {
    let scope_of = |scope: &str, resource: &str| {
        let asked = asking().with("scope", scope).also("resource", resource);
        asked.judged().map(|request| request.scope.to_string())
    };
    let orders = "https://api.example/orders";
    assert_eq!(scope_of("", orders), Ok(String::from("orders.read")));
    let with_refresh = scope_of("offline_access", orders).unwrap();
    assert_eq!(
        ScopeSet::parse(&with_refresh),
        ScopeSet::parse("orders.read offline_access")
    );
    for (scope, resource) in [("", "https://api.example/free"), ("openid", orders)] {
        let asked = asking().with("scope", scope).also("resource", resource);
        assert_eq!(
            redirect_error(asked.judged()),
            (AuthorizeErrorCode::InvalidTarget, Reason::UnknownResource),
            "{scope}: {resource}"
        );
    }
}

#[test]
fn the_key_of_a_code_is_kept_where_there_is_a_code() {
    let key = |response_type: &str| {
        let asked = asking().with("response_type", response_type);
        let asked = asked.with("dpop_jkt", CODE_CHALLENGE);
        asked.judged().unwrap().dpop_jkt
    };
    assert_eq!(key("code"), KeyThumbprint::from_text(CODE_CHALLENGE));
    assert_eq!(key("id_token"), None);
}

#[test]
fn the_way_back_knows_whether_nobody_was_to_be_asked() {
    for (prompt, silent) in [("none", true), ("login", false), ("", false)] {
        let request = asking().with("prompt", prompt).judged().unwrap();
        assert_eq!(path(&request).silent, silent, "{prompt}");
        let refused = asking().with("prompt", prompt).with("scope", "nope");
        let Err(AuthorizeError::Redirect(path, _)) = refused.judged() else {
            panic!("not a redirect")
        };
        assert_eq!(path.silent, silent, "{prompt}, refused");
    }
}

fn any_pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    let further = ["resource", "request", "request_uri", "extra"];
    let names = KNOWN
        .iter()
        .map(|(name, _)| *name)
        .chain(further)
        .collect::<Vec<&str>>();
    let names = prop::sample::select(names);
    let values = "(conf1|https://rp1\\.example/cb|code|token|id_token| |openid|profile|orders\\.read|query|fragment|form_post|none|login|[0-9]{1,3}|S256|plain|[a-zA-Z]{43}|idp:|corp|\\{\\}|[^\0]){0,3}";
    prop::collection::vec((names.prop_map(str::to_owned), values), 0..8)
}

proptest! {
    #[test]
    fn no_request_makes_it_panic_or_redirects_elsewhere(pairs in any_pairs(), keep_base in any::<bool>()) {
        let base = if keep_base { asking() } else { asking().without("response_type").without("scope").without("state") };
        let asked = pairs.iter().fold(base, |asked, (name, value)| asked.with(name, value));
        match asked.judged() {
            Ok(request) => {
                prop_assert_eq!(path(&request).to.uri(), REDIRECT_URI);
                prop_assert!(path(&request).mode.is_legal_for(request.response_type));
                prop_assert_eq!(request.code_challenge.is_some(), request.response_type.code);
            }
            Err(AuthorizeError::Redirect(path, _)) => prop_assert_eq!(path.to.uri(), REDIRECT_URI),
            Err(AuthorizeError::Page { .. }) => {
                let parameters = asked.parameters();
                let named = parameters.single("client_id") == Ok(Some("conf1")) && parameters.single("redirect_uri") == Ok(Some(REDIRECT_URI));
                prop_assert!(!named);
            }
        }
    }

    #[test]
    fn sealing_and_reading_again_gives_the_same_verdict(pairs in any_pairs()) {
        let asked = pairs.iter().fold(asking(), |asked, (name, value)| if value.len() % 4 == 0 { asked.also(name, value) } else { asked.with(name, value) });
        // What is sealed was accepted first, so nothing refused for `request` gets that far.
        let asked = asked.without("request").without("request_uri");
        let again = known(&asked.parameters());
        let judged = validate(&again, &client(), &catalogue(), RECEIVED_AT);
        prop_assert_eq!(judged, asked.judged());
        prop_assert_eq!(known(&again), again);
    }
}
