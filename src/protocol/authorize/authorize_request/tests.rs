//! Whole requests: what is accepted, what a page answers, what survives sealing.

use proptest::prelude::*;

use super::fixtures::*;
use super::*;

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
