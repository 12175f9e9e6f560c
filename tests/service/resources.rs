//! `resource` (RFC 8707) as clients of MCP send it, and what a resource says of itself (RFC 9728).

use serde_json::{Value, json};

use crate::support::claims::Says;
use crate::support::flow::{
    authorize_path, code, decode_jwt, issued, redeem_with, signed_in, text,
};
use crate::support::gatepost::{Gatepost, RP1, document};

const TOOLS: &str = "https://tools.example/";

/// `conf1` may have the scopes of a resource that is registered with a slash, too.
fn registered() -> Value {
    let mut document = document();
    document["resources"] = json!([{"name": "https://orders.example"}, {"name": "https://stock.example"},
        {"name": TOOLS}, {"name": "https://tools.example/mcp"}, {"name": "urn:example:tools"}]);
    let scopes = document["resource_scopes"].as_array_mut().unwrap();
    scopes.push(json!({"name": "tools.use", "resources": [TOOLS]}));
    scopes.push(json!({"name": "tools.call", "resources": ["https://tools.example/mcp", "urn:example:tools"]}));
    let client = &mut document["clients"][0];
    client["scope"] =
        json!("openid profile offline_access orders.read orders.write tools.use tools.call");
    client["default_scope"] = json!("orders.write");
    client["grant_types"] = json!(["authorization_code", "refresh_token", "client_credentials"]);
    document["clients"].as_array_mut().unwrap().push(json!({
        "client_id": "online", "redirect_uris": [RP1], "scope": "tools.use", "token_endpoint_auth_method": "none",
    }));
    document
}

#[test]
fn a_slash_behind_the_host_leads_to_the_same_resource_at_both_endpoints() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (sent, again, scope, audience) in [
        (
            "https://orders.example/",
            "https://orders.example",
            "orders.read",
            "https://orders.example",
        ),
        (
            "https://orders.example",
            "https://orders.example/",
            "orders.read",
            "https://orders.example",
        ),
        ("https://tools.example", TOOLS, "tools.use", TOOLS),
    ] {
        let changes = [("scope", scope), ("resource", sent)];
        let code = code(&mut browser, &authorize_path("conf1", RP1, &changes));
        let tokens = issued(&redeem_with(
            &gatepost,
            "conf1",
            &code,
            &[("resource", again)],
        ));
        let (_, claims) = decode_jwt(text(&tokens, "access_token"));
        assert_eq!(claims["aud"], json!(audience), "{sent}");
    }
    let wrongs = "https://tools.example/mcp/ https://orders.example//
                  https://orders.example/?a=b https://orders.example.evil.example/";
    for wrong in wrongs.split_whitespace() {
        let changes = [("scope", "orders.read tools.call"), ("resource", wrong)];
        let answer = browser.get(&authorize_path("conf1", RP1, &changes));
        assert_eq!(answer.query()["error"], "invalid_target", "{wrong}");
    }
}

#[test]
fn offline_access_alone_leaves_it_to_the_resource_which_scopes_there_are() {
    let gatepost = Gatepost::shared_with(&registered(), &[]);
    let mut browser = signed_in(&gatepost);
    for (scope, granted) in [
        ("offline_access", "tools.use offline_access"),
        ("", "tools.use"),
        // What else is asked for is all there is, with the default.
        (
            "offline_access tools.use",
            "offline_access tools.use orders.write",
        ),
    ] {
        let changes = [("scope", scope), ("resource", TOOLS)];
        let code = code(&mut browser, &authorize_path("conf1", RP1, &changes));
        let tokens = issued(&redeem_with(&gatepost, "conf1", &code, &[]));
        assert_eq!(
            tokens.get("refresh_token").is_some(),
            scope.contains("offline"),
            "{scope}"
        );
        let scope = text(&tokens, "scope");
        let without_other = granted.replace(" orders.write", "");
        assert!(scope == granted || scope == without_other, "{scope}");
    }
    let changes = [("scope", "offline_access"), ("resource", TOOLS)];
    let answer = browser.get(&authorize_path("online", RP1, &changes));
    assert!(answer.query().contains_key("code"), "{}", answer.location());
    let answer = browser.get(&authorize_path("online", RP1, &changes[..1]));
    assert_eq!(answer.query()["error"], "invalid_scope");
}

#[test]
fn a_resource_is_told_what_to_say_of_itself() {
    let gatepost = Gatepost::prepare(&[]);
    gatepost.apply(&registered());
    let told = gatepost.run_well(&["resource", "metadata", "https://tools.example/mcp"], "");
    let address = "https://tools.example/.well-known/oauth-protected-resource/mcp";
    let metadata = json!({
        "resource": "https://tools.example/mcp", "authorization_servers": [gatepost.base_url], "scopes_supported": ["tools.call"],
    });
    for words in [
        format!("Its address: {address}\n"),
        format!("WWW-Authenticate: Bearer resource_metadata=\"{address}\", scope=\"tools.call\"\n"),
        String::from("location = /.well-known/oauth-protected-resource/mcp {"),
        format!("return 200 '{metadata}';"),
    ] {
        assert!(told.contains(&words), "{words}: {told}");
    }
    let arguments = [
        "resource",
        "metadata",
        "https://tools.example/mcp",
        "--json",
    ];
    let document: Value = serde_json::from_str(&gatepost.run_well(&arguments, "")).unwrap();
    assert_eq!(document, metadata);
    let root = gatepost.run_well(&["resource", "metadata", TOOLS], "");
    root.assert_says("Its address: https://tools.example/.well-known/oauth-protected-resource\n");
    for (name, why) in [
        ("urn:example:tools", "not an address"),
        ("https://tools.example/mpc", "the nearest is"),
    ] {
        let output = gatepost.run(&["resource", "metadata", name], "");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
}
