//! Which ways to sign in a user has: what the client allows, what the request names, and what the
//! tenant allows. A provider that is bound to a tenant is offered within that tenant only. A
//! provider of no tenant is offered everywhere, as the account behind it must be of the right
//! tenant. The account page is for everybody: it names no provider that is kept from it, and none
//! that no client allows. Also what comes after a sign-in that failed upstream: another try on the
//! login page, an answer to the client, or a page that says no. The provider's own words go only
//! into the log.

use super::UpstreamProblem;
use crate::authorize::authorize_request::AuthorizeRefusal;
use crate::words::catalogue::Catalogue;
use crate::words::identity_provider::IdentityProvider;
use crate::words::place::SignInPlace;
use crate::words::reason::AuthorizeErrorCode;
use crate::words::session::LOCAL;

#[derive(Clone)]
pub struct Choices {
    pub password: bool,
    /// Names of identity providers, in the order shown: by display name.
    pub providers: Vec<String>,
}

impl Choices {
    /// What there is to choose from. `wanted` is the `idp:` of the request: then only that provider
    /// is offered.
    pub fn of(place: &SignInPlace<'_>, wanted: Option<&str>) -> Choices {
        let offered = |name: &str| wanted.is_none_or(|wanted| wanted == name) && place.offers(name);
        let known = place.catalogue.identity_providers.values();
        let mut providers: Vec<_> = known.filter(|provider| offered(&provider.name)).collect();
        providers.sort_by_key(|provider| (provider.display_name.to_lowercase(), &provider.name));
        let providers = providers
            .into_iter()
            .map(|provider| provider.name.clone())
            .collect();
        Choices {
            password: offered(LOCAL),
            providers,
        }
    }

    /// The provider, where there is exactly one and no password form. The user is then sent
    /// straight to it.
    pub fn only(&self) -> Option<&str> {
        match (self.password, self.providers.as_slice()) {
            (false, [only]) => Some(only),
            (true, _) | (false, [] | [_, _, ..]) => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        !self.password && self.providers.is_empty()
    }

    pub fn offers(&self, provider: &str) -> bool {
        self.providers.iter().any(|offered| offered == provider)
    }

    pub fn has_other_than(&self, provider: &str) -> bool {
        self.password || self.providers.iter().any(|offered| offered != provider)
    }
}

/// The registered provider of an issuer.
pub fn provider_of<'a>(catalogue: &'a Catalogue, issuer: &str) -> Option<&'a IdentityProvider> {
    catalogue
        .identity_providers
        .values()
        .find(|provider| provider.authority() == issuer)
}

#[derive(Debug, PartialEq)]
pub enum WayOut {
    /// The login page, which says what happened. It sends no user straight upstream.
    ChooseAgain,
    TellClient(AuthorizeRefusal),
    /// A page that tells the user, with the way back to the login page. The client does not hear of
    /// it.
    Page,
}

/// Decides where a failed sign-in with `provider` goes on. `has_client` says whether a client waits
/// for an answer that travels through this browser.
pub fn way_out(
    problem: &UpstreamProblem,
    provider: &str,
    choices: &Choices,
    has_client: bool,
) -> WayOut {
    let code = match problem {
        UpstreamProblem::Cancelled => AuthorizeErrorCode::AccessDenied,
        UpstreamProblem::LoginRequired => AuthorizeErrorCode::LoginRequired,
        UpstreamProblem::Busy | UpstreamProblem::Unavailable(_) => {
            AuthorizeErrorCode::TemporarilyUnavailable
        }
        UpstreamProblem::Unusable(_) => AuthorizeErrorCode::ServerError,
        UpstreamProblem::NotBelieved(_) => return WayOut::Page,
    };
    if has_client && !choices.has_other_than(provider) {
        WayOut::TellClient(AuthorizeRefusal::new(code, problem.reason()))
    } else {
        WayOut::ChooseAgain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorize::authorize_request::fixtures::{
        catalogue_with_tenants, client, identity_provider,
    };
    use crate::words::client::Client;
    use crate::words::identifiers::TenantName;
    use crate::words::samples::session;
    use crate::words::session::Session;

    fn choices(password: bool, providers: &[&str]) -> Choices {
        Choices {
            password,
            providers: providers.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn whoever_has_one_way_is_sent_there() {
        for (password, providers, only) in [
            (false, &["corp"][..], Some("corp")),
            (true, &["corp"], None),
            (false, &["corp", "hub"], None),
            (false, &[], None),
        ] {
            let choices = choices(password, providers);
            assert_eq!(choices.only(), only, "{password} {providers:?}");
        }
    }

    #[test]
    fn a_password_is_a_way_in_and_no_provider() {
        for (password, providers, offers_corp) in [
            (false, &["corp"][..], true),
            (true, &["corp"], true),
            (true, &["hub"], false),
            (true, &[], false),
        ] {
            let choices = choices(password, providers);
            assert!(!choices.is_empty(), "{password} {providers:?}");
            assert_eq!(
                choices.offers("corp"),
                offers_corp,
                "{password} {providers:?}"
            );
        }
        assert!(choices(false, &[]).is_empty());
    }

    #[test]
    fn a_provider_is_found_by_its_issuer() {
        let catalogue = catalogue();
        let corp = &catalogue.identity_providers["corp"];
        let found = provider_of(&catalogue, corp.authority()).map(|provider| &provider.name);
        assert_eq!(found, Some(&corp.name));
        assert!(provider_of(&catalogue, "https://nobody.example").is_none());
    }

    /// Five providers: two for everybody, one switched off, one each of two tenants.
    fn catalogue() -> Catalogue {
        let of = |name: &str, display_name: &str, tenant: Option<&str>| IdentityProvider {
            display_name: display_name.to_owned(),
            tenant: tenant.map(TenantName::new),
            ..identity_provider(name, name != "former")
        };
        let all = [
            of("a-hub", "zebra Hub", None),
            of("corp", "Corporate", None),
            of("former", "Former", None),
            of("acme-ad", "ACME", Some("acme")),
            of("globex-ad", "Globex", Some("globex")),
        ];
        let identity_providers = all
            .into_iter()
            .map(|provider| (provider.name.clone(), provider))
            .collect();
        Catalogue {
            identity_providers,
            ..catalogue_with_tenants()
        }
    }

    fn allowing(names: &[&str]) -> Client {
        Client {
            identity_providers: Some(names.iter().map(|name| (*name).to_owned()).collect()),
            ..client()
        }
    }

    /// The choices as one text, the password form as `local` in front.
    fn shown(client: Option<&Client>, tenant: Option<&str>, wanted: Option<&str>) -> String {
        let tenant = tenant.map(TenantName::new);
        let catalogue = catalogue();
        let choices = Choices::of(
            &SignInPlace {
                client,
                tenant: tenant.as_ref(),
                catalogue: &catalogue,
            },
            wanted,
        );
        let password = choices.password.then_some(LOCAL);
        password
            .into_iter()
            .chain(choices.providers.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn who_is_shown_which_ways_in() {
        let (anybody, acme) = (None::<&[&str]>, Some("acme"));
        for (allowed, tenant, wanted, expected) in [
            // By display name, whatever its case.
            (anybody, None, None, "local corp a-hub"),
            (Some(&["local"][..]), None, None, "local"),
            (Some(&["corp"]), None, None, "corp"),
            (Some(&["a-hub", "corp"]), None, None, "corp a-hub"),
            (
                Some(&["local", "corp", "former", "gone"]),
                None,
                None,
                "local corp",
            ),
            (Some(&["former"]), None, None, ""),
            (Some(&["gone"]), None, None, ""),
            (Some(&["acme-ad"]), None, None, ""),
            (anybody, acme, None, "local acme-ad corp a-hub"),
            (anybody, Some("globex"), None, "local corp globex-ad a-hub"),
            (Some(&["acme-ad", "globex-ad"]), acme, None, "acme-ad"),
            // A wanted provider leaves itself alone.
            (anybody, None, Some("corp"), "corp"),
            (anybody, None, Some("local"), "local"),
            (Some(&["corp"]), None, Some("local"), ""),
            (anybody, None, Some("former"), ""),
            (anybody, None, Some("acme-ad"), ""),
            (anybody, acme, Some("acme-ad"), "acme-ad"),
        ] {
            let client = allowed.map_or_else(client, allowing);
            assert_eq!(
                shown(Some(&client), tenant, wanted),
                expected,
                "{allowed:?} {tenant:?} {wanted:?}"
            );
        }
        assert_eq!(
            shown(None, None, None),
            "local corp a-hub",
            "the account page"
        );
        assert_eq!(shown(None, acme, None), "local acme-ad corp a-hub");
    }

    #[test]
    fn a_session_counts_only_while_the_name_of_its_provider_stands_for_the_same_issuer() {
        let catalogue = catalogue();
        let place = SignInPlace {
            client: None,
            tenant: None,
            catalogue: &catalogue,
        };
        let of = |provider: Option<&str>, issuer: Option<&str>| Session {
            identity_provider: provider.map(str::to_owned),
            upstream_issuer: issuer.map(str::to_owned),
            ..session()
        };
        let issuer = catalogue.identity_providers["corp"].authority();
        assert!(
            ["", "LOCAL", "Corp", "former", "gone", "acme-ad"]
                .iter()
                .all(|name| !place.allows(name))
        );
        assert!(place.accepts(&of(None, None)) && place.accepts(&of(Some(LOCAL), None)));
        assert!(place.accepts(&of(Some("corp"), Some(issuer))));
        assert!(!place.accepts(&of(Some("corp"), Some("https://former.example"))));
        assert!(!place.accepts(&of(Some("corp"), Some(&format!("{issuer}/")))));
        assert!(
            !place.accepts(&of(Some("former"), Some(issuer))),
            "disabled"
        );
    }

    #[test]
    fn whoever_has_another_way_may_choose_it_and_else_the_client_is_told() {
        let several = [
            choices(true, &["corp"]),
            choices(false, &["corp", "hub"]),
            choices(true, &[]),
        ];
        let alone = [choices(false, &["corp"]), choices(false, &[])];
        for (problem, code) in [
            (
                UpstreamProblem::Cancelled,
                Some(AuthorizeErrorCode::AccessDenied),
            ),
            (
                UpstreamProblem::LoginRequired,
                Some(AuthorizeErrorCode::LoginRequired),
            ),
            (
                UpstreamProblem::Busy,
                Some(AuthorizeErrorCode::TemporarilyUnavailable),
            ),
            (
                UpstreamProblem::unavailable("no route"),
                Some(AuthorizeErrorCode::TemporarilyUnavailable),
            ),
            (
                UpstreamProblem::unusable("status 404"),
                Some(AuthorizeErrorCode::ServerError),
            ),
            // Only the user is told of an answer that does not verify.
            (
                UpstreamProblem::not_believed("the nonce is another one"),
                None,
            ),
        ] {
            let on_page = if code.is_some() {
                WayOut::ChooseAgain
            } else {
                WayOut::Page
            };
            let told = code.map_or(WayOut::Page, |code| {
                WayOut::TellClient(AuthorizeRefusal::new(code, problem.reason()))
            });
            assert!(
                several
                    .iter()
                    .all(|choices| way_out(&problem, "corp", choices, true) == on_page),
                "{problem:?}"
            );
            for choices in &alone {
                assert_eq!(way_out(&problem, "corp", choices, true), told);
                assert_eq!(
                    way_out(&problem, "corp", choices, false),
                    on_page,
                    "nobody to tell"
                );
            }
        }
    }
}
