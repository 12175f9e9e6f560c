//! What the service does, asked from outside: over HTTP, on the command line, in its database. One
//! binary, since each would compile and link the same support again; a file of it alone: `make test
//! TEST="--test service login::"`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a panic here is a failed test"
)]

mod account;
mod account_page_providers;
mod admin_applications;
mod admin_audit;
mod admin_lists;
mod admin_meanwhile;
mod admin_people;
mod admin_roles;
mod allowed_roles;
mod anonymous;
mod aspnet_core;
mod audit;
mod authorize;
mod authorize_bad_input;
mod authorize_errors;
mod authorize_outage;
mod authorize_redirect_uris;
mod authorize_responses;
mod authorize_sign_in;
mod back_channel_logout;
mod bound_sessions;
mod certification;
mod cli_commands;
mod cli_completions;
mod cli_doctor;
mod cli_explain;
mod cli_help;
mod cli_idp;
mod cli_installed;
mod cli_keys;
mod cli_plan;
mod cli_registry;
mod cli_support;
mod cli_terminal;
mod client_authentication;
mod client_logos;
mod code_flow;
mod consent;
mod conversation;
mod default_scope;
mod device_page;
mod discovery;
mod document_identities;
mod documentation;
mod documentation_commands;
mod dpop;
mod end_session;
mod ends;
mod errors_that_travel;
mod external_callback;
mod fapi_modules;
mod fapi_profile;
mod federation;
mod federation_hostile;
mod federation_linking;
mod federation_round_trips;
mod fold;
mod fresh_sign_in;
mod front_channel_logout;
mod grant_device_code;
mod grant_extension_rust;
mod grant_extension_sql;
mod grant_jwt_bearer;
mod grant_password;
mod grant_token_exchange;
mod hashing;
mod id_jag;
mod imported_passwords;
mod introspection;
mod invite_several;
mod issued_tokens;
mod legacy_flows;
mod letters;
mod letters_as_read;
mod linked_accounts;
mod localized_names;
mod locked_out;
mod login;
mod login_limits;
mod login_providers;
mod logout;
mod metadata_documents;
mod metrics;
mod moving_in;
mod moving_in_compared;
mod moving_in_people;
mod moving_in_realm;
mod new_browsers;
mod new_passwords;
mod one_address;
mod own_sessions;
mod pages;
mod passkey_alone;
mod passkey_sign_in;
mod passkeys;
mod password_links;
mod private_key_jwt;
mod pushed_requests;
mod refresh_both_ways;
mod refresh_families;
mod refresh_token;
mod registration_over_http;
mod required_binding;
mod resources;
mod restored;
mod restored_elsewhere;
mod revocation;
mod revocations_hold;
mod roles;
mod rows_read;
mod scim;
mod scim_provisioning;
mod second_factors;
mod session_management;
mod sessions;
mod sign_in_by_address;
mod sign_in_storm;
mod sign_up;
mod start_page;
mod statements_as_modelled;
mod static_files;
mod stolen_database;
mod stood_open;
mod store_grants;
mod store_levels;
mod store_partitions;
mod store_pool;
mod store_registry;
mod store_schema;
mod store_users;
mod tenants;
mod token_authorization_code;
mod token_client_credentials;
mod token_endpoint;
mod tokens_through_browser;
mod upstream_logout;
mod userinfo;
mod userinfo_claims;
mod what_broke_others;
mod what_ends_what;
mod without_database;
mod workload_identity;

#[allow(dead_code, reason = "no test binary uses all of it")]
#[path = "../support/mod.rs"]
mod support;
