//! Each line stands on the right side: it says what happens here, and what does not.

use super::access::imported;
use super::*;

/// Each line is there, and each text after it is in no line.
fn told(lines: &str, wanted: &[&str], silent: &[&str]) {
    for line in wanted {
        assert!(lines.contains(line), "{line}: {lines}");
    }
    for line in silent {
        assert!(!lines.contains(line), "{line}: {lines}");
    }
}

fn mapper(name: &str, kind: &str, config: Value) -> Value {
    json!({"name": name, "protocolMapper": kind, "config": config})
}

/// An attribute as a claim of the same name, in the tokens that are named.
fn attribute(name: &str, tokens: &[&str]) -> Value {
    let mut config = json!({"user.attribute": name, "claim.name": name});
    for token in tokens {
        config[format!("{token}.token.claim")] = json!("true");
    }
    mapper(name, "oidc-usermodel-attribute-mapper", config)
}

fn with(mut realm: Value, members: Value) -> Value {
    let members = members.as_object().unwrap().clone();
    realm.as_object_mut().unwrap().extend(members);
    realm
}

fn in_realm(members: Value) -> (Value, String) {
    imported(&with(json!({"realm": "shop"}), members))
}

/// A stock browser flow, whose subflow with the factors has that requirement and those steps.
fn flows(requirement: &str, steps: Value) -> Value {
    let step = |authenticator: &str, requirement: &str| json!({"authenticator": authenticator, "requirement": requirement});
    let flow = |alias: &str, requirement: &str| json!({"flowAlias": alias, "requirement": requirement, "authenticatorFlow": true});
    json!([
        {"id": "1", "alias": "browser", "builtIn": true, "authenticationExecutions": [step("auth-cookie", "ALTERNATIVE"), flow("Organization", "ALTERNATIVE"), flow("forms", "ALTERNATIVE")]},
        {"id": "2", "alias": "forms", "builtIn": true, "authenticationExecutions": [step("auth-username-password-form", "REQUIRED"), flow("2fa", requirement)]},
        {"id": "5", "alias": "Organization", "builtIn": true, "authenticationExecutions": [flow("of-members", "CONDITIONAL")]},
        {"id": "6", "alias": "of-members", "builtIn": true, "authenticationExecutions": [step("conditional-user-configured", "REQUIRED"), step("organization", "ALTERNATIVE")]},
        {"id": "7", "alias": "two-ways", "builtIn": true, "authenticationExecutions": [flow("strict", "ALTERNATIVE"), flow("lax", "ALTERNATIVE")]},
        {"id": "8", "alias": "lax", "builtIn": true, "authenticationExecutions": [step("auth-username-password-form", "REQUIRED")]},
        {"id": "9", "alias": "passkey-or", "builtIn": true, "authenticationExecutions": [flow("strict", "ALTERNATIVE"), step("webauthn-authenticator-passwordless", "ALTERNATIVE")]},
        {"id": "3", "alias": "2fa", "builtIn": true, "authenticationExecutions": steps},
        {"id": "4", "alias": "strict", "builtIn": true, "authenticationExecutions": [step("auth-username-password-form", "REQUIRED"), step("auth-otp-form", "REQUIRED")]},
    ])
}

#[test]
fn a_flow_in_use_that_wants_a_second_factor_of_everybody_has_a_line() {
    let step = |authenticator: &str, requirement: &str| json!({"authenticator": authenticator, "requirement": requirement});
    let otp = "auth-otp-form";
    let configured = step("conditional-user-configured", "REQUIRED");
    let role = step("conditional-user-role", "REQUIRED");
    for (requirement, steps, is_asked) in [
        (
            "CONDITIONAL",
            json!([
                configured,
                step(otp, "ALTERNATIVE"),
                step("webauthn-authenticator", "DISABLED")
            ]),
            false,
        ),
        ("CONDITIONAL", json!([role, step(otp, "REQUIRED")]), true),
        (
            "REQUIRED",
            json!([
                configured,
                step(otp, "ALTERNATIVE"),
                step("webauthn-authenticator", "ALTERNATIVE")
            ]),
            true,
        ),
        (
            "REQUIRED",
            json!([
                step(otp, "ALTERNATIVE"),
                step("a-form-of-ours", "ALTERNATIVE")
            ]),
            false,
        ),
        (
            "REQUIRED",
            json!([step(otp, "ALTERNATIVE"), step("a-form-of-ours", "REQUIRED")]),
            false,
        ),
        ("REQUIRED", json!([step(otp, "DISABLED")]), false),
        ("DISABLED", json!([step(otp, "REQUIRED")]), false),
        // A flow within itself.
        (
            "REQUIRED",
            json!([{"flowAlias": "forms", "requirement": "REQUIRED"}, step(otp, "REQUIRED")]),
            true,
        ),
    ] {
        let (_, lines) =
            in_realm(json!({"authenticationFlows": flows(requirement, steps.clone())}));
        let line = "flow browser: its second factor is REQUIRED";
        assert_eq!(
            lines.contains(line),
            is_asked,
            "{requirement} {steps}: {lines}"
        );
        told(&lines, &[], &["flow strict"]);
    }
    let client =
        |flows: Value| json!({"clientId": "web", "authenticationFlowBindingOverrides": flows});
    for (members, line) in [
        (
            json!({"browserFlow": "strict"}),
            "flow strict: its second factor is REQUIRED: there everybody",
        ),
        (
            json!({"clients": [client(json!({"browser": "4"}))]}),
            "flow strict: its second factor is REQUIRED: there everybody",
        ),
        (
            json!({"browserFlow": "passkey-or"}),
            "flow passkey-or: its second factor is REQUIRED",
        ),
        (json!({"browserFlow": "two-ways"}), ""),
        (
            json!({"directGrantFlow": "strict"}),
            "flow strict: its second factor is REQUIRED: there everybody whom its conditions choose must send a code",
        ),
        (
            json!({"clients": [client(json!({"direct_grant": "strict"}))]}),
            "must send a code",
        ),
        (
            json!({"identityProviders": [{"alias": "p", "providerId": "oidc", "postBrokerLoginFlowAlias": "strict"}]}),
            "flow strict: ",
        ),
    ] {
        let flows = json!({"authenticationFlows": flows("DISABLED", json!([]))});
        let (_, lines) = in_realm(with(flows, members));
        told(&lines, &[line], &["flow browser", "flow two-ways"]);
    }
}

#[test]
fn claims_of_a_scope_that_come_in_one_kind_of_token_are_named() {
    let audience = mapper(
        "api",
        "oidc-audience-mapper",
        json!({"included.custom.audience": "urn:api", "access.token.claim": "true"}),
    );
    let mappers = [
        attribute("a", &["access"]),
        attribute("b", &["id"]),
        attribute("c", &["access", "userinfo"]),
    ];
    let scope = |name: &str, more: &[Value]| json!({"name": name, "protocolMappers": ([mappers.as_slice(), more].concat())});
    let (document, lines) = in_realm(json!({"clientScopes": [
        scope("of-people", &[]), scope("of-api", &[audience]), {"name": "plain", "protocolMappers": [attribute("b", &["id"])]},
    ]}));
    assert_eq!(
        document["identity_scopes"][0]["claims"],
        json!({"b": "b", "c": "c"})
    );
    assert_eq!(
        document["resource_scopes"][0]["claims"],
        json!({"a": "a", "c": "c"})
    );
    let wanted = [
        "scope of-people: a: in no token here, as access tokens alone had them",
        "scope of-people: its claims are in UserInfo and ID tokens, and not in access tokens",
        "scope of-api: b: in no token here, as access tokens had none of them",
        "scope of-api: its claims are in access tokens alone here",
    ];
    told(&lines, &wanted, &["scope plain"]);
    // Nothing is in both.
    let of_both = |tokens: &str| json!({"name": "two", "protocolMappers": [attribute("a", &["access"]), attribute("b", &[tokens])]});
    let (_, lines) = in_realm(json!({"clientScopes": [of_both("id")]}));
    told(
        &lines,
        &["scope two: a: in no token here"],
        &["its claims are in"],
    );
}

#[test]
fn mappers_that_no_scope_can_stand_for_say_what_follows() {
    let resolve = mapper(
        "r",
        "oidc-audience-resolve-mapper",
        json!({"access.token.claim": "true"}),
    );
    let pairwise = mapper(
        "s",
        "oidc-sha256-pairwise-sub-mapper",
        json!({"sectorIdentifierUri": "https://canary.example"}),
    );
    let (_, lines) = in_realm(json!({
        "clientScopes": [{"name": "roles", "protocolMappers": [resolve]}],
        "clients": [{"clientId": "web", "protocolMappers": [pairwise, resolve]}],
    }));
    let wanted = [
        "client web, scope roles: aud of access tokens named the clients of whose roles",
        "client web: people have another sub there in its tokens",
    ];
    let lines = lines.replace("scope roles, client web", "client web, scope roles");
    told(&lines, &wanted, &["canary", "mapper r is", "mapper s is"]);
}

#[test]
fn a_group_has_its_own_name_and_one_path_is_one_group() {
    let names = mapper(
        "names",
        "oidc-group-membership-mapper",
        json!({"full.path": "false", "claim.name": "teams", "id.token.claim": "true"}),
    );
    let (document, lines) = in_realm(json!({
        "clientScopes": [{"name": "teams", "protocolMappers": [names]}],
        "groups": [
            {"name": "guests/admin", "path": "/guests/admin", "realmRoles": ["guest"]},
            {"name": "staff", "path": "/staff", "subGroups": [{"name": "it", "path": "/staff/it", "realmRoles": ["root"]}]},
            {"name": "staff/it", "path": "/staff/it"},
        ],
        "users": [{"id": "u", "username": "ada", "groups": ["/guests/admin"]}, {"id": "v", "username": "bob", "groups": ["/staff/it"]}],
    }));
    let claims = &document["users"][0]["claims"];
    assert_eq!(claims["group_names"], json!(["guests/admin"]));
    assert_eq!(claims["role"], json!(["guest"]));
    let claims = &document["users"][1]["claims"];
    assert_eq!(claims["groups"], json!(["/staff/it"]));
    assert_eq!(
        (claims.get("group_names"), claims.get("role")),
        (None, None)
    );
    told(
        &lines,
        &["group /staff/it: two groups have this path"],
        &["group /guests"],
    );
}

#[test]
fn claims_of_a_provider_count_as_its_lines_say() {
    let lines_of = |more: Value, config: Value| {
        let config = with(
            json!({"issuer": "https://p.example", "clientId": "x", "clientSecret": "y"}),
            config,
        );
        let provider = with(
            json!({"alias": "p", "providerId": "oidc", "config": config}),
            more,
        );
        in_realm(json!({"identityProviders": [provider]}))
    };
    let sync = "identity provider p: syncMode is not FORCE";
    let trusted = "identity provider p: trustEmail: there its addresses were verified";
    let untrusted = "identity provider p: trustEmail is off";
    for (more, config, wanted, silent) in [
        (
            json!({}),
            json!({}),
            [sync, untrusted],
            ["on_sign_in", trusted],
        ),
        (
            json!({"trustEmail": true}),
            json!({"syncMode": "IMPORT"}),
            [sync, trusted],
            ["on_sign_in", untrusted],
        ),
        (
            json!({"trustEmail": false}),
            json!({"syncMode": "FORCE"}),
            [untrusted, untrusted],
            [sync, trusted],
        ),
        (
            json!({}),
            json!({"logoutUrl": "https://canary.example"}),
            [sync, "identity provider p: logoutUrl: signing out here"],
            ["canary", trusted],
        ),
    ] {
        let (document, lines) = lines_of(more, config);
        told(&lines, &wanted, &silent);
        let provider = &document["identity_providers"][0];
        assert_eq!(provider.get("trust_email"), None);
    }
}

#[test]
fn a_provider_by_which_nobody_signs_in_stays_behind() {
    let provider = |alias: &str, kind: &str, types: Value| json!({"alias": alias, "providerId": kind, "types": types, "storeToken": true, "config": {"issuer": "https://p.example", "clientId": "x", "clientSecret": "y"}});
    let people = json!(["USER_AUTHENTICATION", "CLIENT_ASSERTION"]);
    let (document, lines) = in_realm(json!({"identityProviders": [
        provider("pods", "kubernetes", json!(["CLIENT_ASSERTION"])), provider("old-pods", "kubernetes", json!([])),
        provider("jwt", "oidc", json!(["JWT_AUTHORIZATION_GRANT"])), provider("all", "oidc", people), provider("old", "oidc", json!([])),
    ]}));
    let kept = document["identity_providers"].as_array().unwrap();
    let kept: Vec<&Value> = kept.iter().map(|provider| &provider["name"]).collect();
    assert_eq!(kept, ["all", "old"]);
    let scope = &document["identity_providers"][0]["scope"];
    assert_eq!(scope, "openid", "nothing else is asked for there");
    let line = "identity provider pods, identity provider old-pods, identity provider jwt: left out: nobody signs in by it there";
    told(
        &lines,
        &[
            line,
            "identity provider all, identity provider old: storeToken",
        ],
        &["types", "old-pods: storeToken"],
    );
}

#[test]
fn standard_scopes_that_are_not_there_are_no_scopes_of_clients() {
    let client = json!({"ClientId": "c", "AllowedScopes": ["openid", "profile", "email", "offline_access"], "AllowOfflineAccess": true,
                        "AllowedGrantTypes": ["authorization_code"], "RedirectUris": ["https://a.example/cb"], "ClientSecrets": [{"Value": SECRET}]});
    let (document, lines) = read(json!({
        "Clients": [client], "IdentityResources": [{"Name": "openid"}, {"Name": "profile", "Enabled": false}], "ApiScopes": [{"Name": "email"}],
    }));
    assert_eq!(document["clients"][0]["scope"], "openid offline_access");
    let wanted = [
        "client c: left out of scope: email: no enabled scope",
        "client c: left out of scope: profile: no enabled scope",
    ];
    told(&lines.join("\n"), &wanted, &[]);
    let (document, _) = read(json!({"Clients": [client]}));
    assert_eq!(
        document["clients"][0]["scope"],
        "openid profile email offline_access"
    );
}

#[test]
fn a_client_that_stays_behind_takes_no_name() {
    let client = json!({"ClientId": "api", "ProtocolType": "wsfed"});
    let (document, lines) = read(json!({"Clients": [client], "ApiResources": [{"Name": "api"}]}));
    assert_eq!(document["resources"], json!([{"name": "api"}]));
    assert_eq!(document.get("clients"), None);
    let wanted = ["client api: left out: it speaks WS-Federation"];
    told(
        &lines.join("\n"),
        &wanted,
        &["has the name of this resource"],
    );
}

#[test]
fn rows_and_columns_of_child_tables_that_are_not_read_have_lines() {
    let (_, lines) = read(json!({
        "AspNetUsers": [{"Id": "u", "UserName": "ada"}], "AspNetRoles": [{"Id": "r", "Name": "admin"}],
        "AspNetUserRoles": [{"UserId": "u", "RoleId": "r", "GrantedUntil": "canary"}, {"UserId": "gone", "RoleId": "r"}, {"UserId": "lost", "RoleId": "r"}],
        "AspNetUserClaims": [{"Id": 1, "UserId": "u", "ClaimType": "floor", "ClaimValue": "3"}],
        "Clients": [{"Id": 1, "ClientId": "c"}], "ClientSecrets": [{"ClientId": 1, "Type": "SharedSecret", "Value": SECRET, "Description": "canary"}],
    }));
    let wanted = [
        "user ada: GrantedUntil: is not known here, and is left out",
        "dump: AspNetUserRoles: rows that belong to no row of the dump are left out: 2",
        "client c: Description: descriptions of secrets stay behind",
    ];
    told(
        &lines.join("\n"),
        &wanted,
        &["canary", "ClaimType", "AspNetUserClaims"],
    );
}

#[test]
fn properties_of_a_provider_of_duende_are_read_or_told() {
    let provider = |scheme: &str, properties: &str| json!({"Scheme": scheme, "Type": "oidc", "Properties": properties});
    let whole = r#"{"Authority": "https://x.example", "ClientId": "us", "ClientSecret": "s", "ResponseType": "code", "Prompt": "canary", "UsePkce": "true"}"#;
    let (document, lines) = read(
        json!({"AspNetRoles": [], "IdentityProviders": [provider("x", whole), provider("y", "{canary"), provider("z", "[]")]}),
    );
    let ours = json!({"name": "x", "issuer": "https://x.example", "client_id": "us", "client_secret": "s", "scope": "openid"});
    assert_eq!(document["identity_providers"], json!([ours]));
    let wanted = [
        "identity provider x: Prompt: is not known here",
        "identity provider y, identity provider z: left out: its Properties are no JSON object",
    ];
    told(
        &lines.join("\n"),
        &wanted,
        &["canary", "no issuer", "UsePkce", "ResponseType"],
    );
}

#[test]
fn what_requests_without_a_browser_get_is_told() {
    let client = |flags: Value, optional: Value| {
        let client = json!({"clientId": "c", "secret": "a-secret-of-thirty-two-characters", "standardFlowEnabled": false, "defaultClientScopes": ["profile"], "optionalClientScopes": optional});
        in_realm(json!({"clients": [with(client, flags)]})).1
    };
    let password = "client c: the grant password gives the scopes that the request names, without default_scope";
    let factor = "client c: the grant password refuses people who have a second factor";
    let unasked =
        "client c: a request to the token or device endpoint that names no scope gets all";
    let email = json!(["email"]);
    told(
        &client(json!({"directAccessGrantsEnabled": true}), email.clone()),
        &[password, factor, unasked],
        &[],
    );
    told(
        &client(json!({"directAccessGrantsEnabled": true}), json!([])),
        &[password, factor],
        &[unasked],
    );
    told(
        &client(json!({"serviceAccountsEnabled": true}), email.clone()),
        &[unasked],
        &[password, factor],
    );
    // What a mapper of its own gives comes without asking, too.
    let own = json!({"directAccessGrantsEnabled": true, "defaultClientScopes": [], "protocolMappers": [attribute("unit", &["id"])]});
    told(&client(own, json!([])), &[password], &[]);
    let bare = json!({"directAccessGrantsEnabled": true, "defaultClientScopes": ["basic"]});
    told(&client(bare, json!([])), &[factor], &[password]);
    let device = json!({"attributes": {"oauth2.device.authorization.grant.enabled": "true"}});
    told(&client(device, email.clone()), &[unasked], &[password]);
    told(
        &client(json!({"standardFlowEnabled": true}), email),
        &[],
        &[unasked, password],
    );
}

#[test]
fn a_service_account_with_groups_or_attributes_has_a_line() {
    let line = "client job: its service account has groups or attributes";
    for (more, is_told) in [
        (json!({}), false),
        (json!({"groups": [], "attributes": {}}), false),
        (json!({"groups": ["/canary"]}), true),
        (json!({"attributes": {"canary": ["x"]}}), true),
    ] {
        let account =
            json!({"id": "j", "username": "service-account-job", "serviceAccountClientId": "job"});
        let (_, lines) = in_realm(json!({
            "clients": [{"clientId": "job", "standardFlowEnabled": false, "serviceAccountsEnabled": true}], "users": [with(account, more.clone())],
        }));
        assert_eq!(lines.contains(line), is_told, "{more}: {lines}");
        told(&lines, &[], &["canary"]);
    }
}

#[test]
fn an_attribute_of_people_is_not_the_one_of_that_name_in_a_scope_of_the_realm() {
    let stock = mapper(
        "phone number",
        "oidc-usermodel-attribute-mapper",
        json!({"user.attribute": "phoneNumber", "claim.name": "phone_number", "id.token.claim": "true"}),
    );
    let attributes = json!({"phoneNumber": ["+1 forged"], "phone_number": ["+49 30 1"]});
    let (document, lines) = in_realm(json!({
        "clientScopes": [{"name": "desk", "protocolMappers": [attribute("phone_number", &["id"])]}, {"name": "phone", "protocolMappers": [stock]}],
        "clients": [{"clientId": "web", "protocolMappers": [attribute("phone_number", &["access"])]}],
        "users": [{"id": "u", "username": "ada", "attributes": attributes}],
    }));
    for list in ["identity_scopes", "resource_scopes"] {
        let scopes = document[list].as_array().into_iter().flatten();
        for scope in scopes.filter(|scope| scope["name"] != "phone") {
            assert_eq!(scope.get("claims"), None, "{scope}");
        }
    }
    let wanted = [
        "scope desk, client web: mapper phone_number is left out",
        "user ada: attribute phone_number is left out: the claim of that name has another source",
    ];
    told(&lines, &wanted, &[]);
}

/// What the same roles bring along is found once. It took minutes when each user's were compared
/// with one another.
#[test]
fn very_many_roles_of_very_many_people_are_found_at_once() {
    let parts: Vec<String> = (0..3_000).map(|part| format!("part-{part}")).collect();
    let users =
        (0..300).map(|id| json!({"id": id, "username": format!("u{id}"), "realmRoles": ["all"]}));
    let (document, lines) = in_realm(json!({
        "roles": {"realm": [{"name": "all", "composites": {"realm": parts}}]}, "users": users.collect::<Vec<_>>(),
    }));
    let roles = document["users"][299]["claims"]["role"].as_array().unwrap();
    assert_eq!(roles.len(), 3_001);
    told(
        &lines,
        &["role part-0 (by another role): 300"],
        &["role all"],
    );
}

#[test]
fn what_every_realm_has_is_told_once() {
    let own = json!({"realm-management": ["realm-admin"], "account": ["manage-account"]});
    let (document, lines) = in_realm(json!({
        "clients": [{"clientId": "admin-cli"}, {"clientId": "account"}],
        "roles": {"realm": [{"name": "default-roles-shop", "composites": {"realm": ["offline_access"], "client": {"account": ["manage-account"]}}}]},
        "users": [{"id": "u", "username": "ada", "realmRoles": ["default-roles-shop"]}, {"id": "v", "username": "bob", "clientRoles": own}],
    }));
    assert_eq!(document.get("clients"), None);
    let wanted = [
        "client admin-cli, client account: left out: every realm of Keycloak has it",
        "role account/manage-account: 1, role realm-management/realm-admin: 1: so many users had these roles of clients",
    ];
    told(&lines, &wanted, &["offline_access", "default-roles"]);
}

#[test]
fn keys_that_had_no_line_have_one() {
    let scope = |text: &str| json!({"name": "own", "attributes": {"consent.screen.text": text}});
    let component = |kind: &str, config: Value| json!({"components": {kind: [{"name": "c", "providerId": "c", "config": config}]}});
    let policy = "org.keycloak.services.clientregistration.policy.ClientRegistrationPolicy";
    let profile = "org.keycloak.userprofile.UserProfileProvider";
    let client = |members: Value| json!({"clients": [with(json!({"clientId": "web", "redirectUris": ["https://a.example/cb"], "secret": "a-secret-of-thirty-two-characters"}), members)]});
    let role = |members: Value| json!({"roles": {"client": {"web": [with(json!({"name": "r"}), members)]}}});
    for (members, line, is_told) in [
        (
            json!({"enabled": false}),
            "realm shop: enabled: the realm is disabled",
            true,
        ),
        (json!({"enabled": true}), "realm shop: enabled", false),
        (
            json!({"browserSecurityHeaders": {"xFrameOptions": "canary"}}),
            "realm shop: browserSecurityHeaders: the pages have",
            true,
        ),
        (
            json!({"scimApiEnabled": true}),
            "realm shop: scimApiEnabled: set GATEPOST_SCIM=on",
            true,
        ),
        (
            json!({"registrationAllowed": true}),
            "people make an account here only by a link of yours",
            true,
        ),
        (
            json!({"resetPasswordAllowed": true}),
            "by mail here, once GATEPOST_SMTP_URL is set",
            true,
        ),
        (
            json!({"revokeRefreshToken": false}),
            "realm shop: revokeRefreshToken: there a refresh token works again",
            true,
        ),
        (
            json!({"revokeRefreshToken": true}),
            "revokeRefreshToken",
            false,
        ),
        (
            component(policy, json!({"trusted-hosts": ["canary"]})),
            "registration policy c: trusted-hosts: clients are registered by",
            true,
        ),
        (
            component(
                policy,
                json!({"max-clients": ["200"], "allow-default-scopes": ["true"]}),
            ),
            "registration policy",
            false,
        ),
        (
            component(profile, json!({"kc.user.profile.config": ["canary"]})),
            "user profile c: config: people change no attribute",
            true,
        ),
        (component(profile, json!({})), "user profile", false),
        (
            json!({"clientScopes": [scope("canary")]}),
            "scope own: consent.screen.text: the page that asks",
            true,
        ),
        (
            json!({"clientScopes": [scope("${profileScopeConsentText}")]}),
            "consent.screen.text",
            false,
        ),
        (
            client(json!({"description": "canary"})),
            "client web: description: is left out",
            true,
        ),
        (
            client(json!({"adminUrl": "https://canary.example"})),
            "client web: adminUrl: Gatepost tells",
            true,
        ),
        (
            client(json!({"registeredNodes": {"canary": 1}})),
            "client web: registeredNodes: Gatepost tells",
            true,
        ),
        (
            role(json!({"attributes": {"canary": ["x"]}})),
            "role r: attributes: attributes of roles stay behind",
            true,
        ),
        (
            role(json!({"description": "canary"})),
            "role r: description: descriptions of roles stay behind",
            true,
        ),
        (
            role(json!({"description": "${role_view-profile}"})),
            "role r",
            false,
        ),
        (
            json!({"groups": [{"path": "/g", "description": "canary"}]}),
            "group /g: description: descriptions of groups",
            true,
        ),
        (
            json!({"users": [{"id": "u", "username": "ada", "requiredActions": ["canary"]}]}),
            "is not asked to here: an action of your own",
            true,
        ),
    ] {
        let (_, lines) = in_realm(members.clone());
        assert_eq!(lines.contains(line), is_told, "{members} {line}: {lines}");
        told(&lines, &[], &["canary"]);
    }
}

#[test]
fn a_front_channel_that_was_off_stays_off() {
    for (flag, here) in [
        (json!(true), json!("https://a.example/out")),
        (json!(false), Value::Null),
    ] {
        let (document, lines) = in_realm(json!({"clients": [{
            "clientId": "web", "redirectUris": ["https://a.example/cb"], "frontchannelLogout": flag, "attributes": {"frontchannel.logout.url": "https://a.example/out"},
        }]}));
        assert_eq!(document["clients"][0]["frontchannel_logout_uri"], here);
        let line = "client web: frontchannel.logout.url is left out";
        assert_eq!(lines.contains(line), here.is_null(), "{lines}");
    }
}

#[test]
fn two_mappers_of_one_fixed_claim_do_not_overwrite_one_another() {
    let fixed = |name: &str, claim: &str| {
        let config =
            json!({"claim.name": claim, "claim.value": name, "access.token.claim": "true"});
        mapper(name, "oidc-hardcoded-claim-mapper", config)
    };
    let (document, lines) = in_realm(json!({
        "clients": [{"clientId": "job", "standardFlowEnabled": false, "serviceAccountsEnabled": true, "fullScopeAllowed": true,
                     "protocolMappers": [fixed("one", "tier"), fixed("two", "tier"), fixed("three", "role")]}],
        "users": [{"id": "j", "username": "service-account-job", "serviceAccountClientId": "job", "realmRoles": ["boss"]}],
    }));
    let claims = json!({"tier": "one", "role": "three"});
    assert_eq!(document["clients"][0]["claims"], claims);
    let wanted = [
        "client job: mapper two is left out: another gives tier",
        "client job: the roles of its service account are left out: a mapper gives",
    ];
    told(&lines, &wanted, &["set: the roles"]);
    let own = mapper("m", "script-canary.js", json!({"claim.name": "x"}));
    let (_, lines) = in_realm(json!({"clientScopes": [{"name": "own", "protocolMappers": [own]}]}));
    told(
        &lines,
        &["scope own: mapper m is left out: of a kind of your own, which gave x"],
        &["canary"],
    );
}

#[test]
fn a_name_that_cannot_be_a_scope_or_a_resource_is_told_and_takes_no_other_along() {
    let audience = mapper(
        "api",
        "oidc-audience-mapper",
        json!({"included.custom.audience": "my api", "access.token.claim": "true"}),
    );
    let (document, lines) = in_realm(json!({
        "clientScopes": [{"name": "my scope"}, {"name": "fine"}],
        "clients": [{"clientId": "my app", "publicClient": true, "redirectUris": ["https://a.example/cb"], "defaultClientScopes": ["my scope", "fine"],
                     "protocolMappers": [audience, attribute("unit", &["id"])]}],
    }));
    assert_eq!(document["clients"][0]["scope"], "my-app-claims fine openid");
    let wanted = [
        "scope my scope: left out: a name of a scope must be",
        "client \"my app\": the audience of mapper api is left out: a name of a resource must be",
    ];
    told(&lines, &wanted, &[]);
    let (document, lines) = read(json!({
        "ApiScopes": [{"Name": "my scope"}, {"Name": "fine"}],
        "Clients": [{"ClientId": "c", "AllowedScopes": ["my scope", "fine"], "AllowedGrantTypes": ["client_credentials"], "ClientSecrets": [{"Value": SECRET}]}],
    }));
    assert_eq!(document["clients"][0]["scope"], "fine");
    let wanted = [
        "my scope: left out: its name must be",
        "client c: left out of scope: my scope: no enabled scope",
    ];
    told(&lines.join("\n"), &wanted, &[]);
}
