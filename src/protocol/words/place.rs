//! The place of a sign-in: for which client, within which tenant. It says which identity providers
//! count there.

use super::catalogue::Catalogue;
use super::client::Client;
use super::identifiers::TenantName;
use super::identity_provider::IdentityProvider;
use super::session::{LOCAL, Session};

pub struct SignInPlace<'a> {
    /// For whom; `None` where the person came for their own account.
    pub client: Option<&'a Client>,
    pub tenant: Option<&'a TenantName>,
    pub catalogue: &'a Catalogue,
}

impl SignInPlace<'_> {
    /// Whether a sign-in by that provider counts here: registered, enabled, allowed to the client,
    /// and of this tenant or of none. `local` is the password login, which is always registered.
    pub fn allows(&self, provider: &str) -> bool {
        let registered = self.catalogue.identity_providers.get(provider);
        let fits = registered.is_some_and(|known| {
            known.enabled
                && known
                    .tenant
                    .as_ref()
                    .is_none_or(|own| self.tenant == Some(own))
        });
        let allowed = self
            .client
            .is_none_or(|client| client.allows_identity_provider(provider));
        allowed && (provider == LOCAL || fits)
    }

    /// Whether the user of that session counts as signed in here: its provider is allowed, and its
    /// name still stands for the same issuer. A provider that took over the name of another has
    /// vouched for none of its users.
    pub fn accepts(&self, session: &Session) -> bool {
        let provider = session.identity_provider();
        let registered = self
            .catalogue
            .identity_providers
            .get(provider)
            .map(IdentityProvider::authority);
        let is_same = |then: &str| registered.is_none_or(|now| now == then);
        self.allows(provider) && session.upstream_issuer.as_deref().is_none_or(is_same)
    }

    /// Whether people are told of that provider here: it counts, and the account page may name it
    /// where this is for no client.
    pub fn offers(&self, provider: &str) -> bool {
        let may_be_named = || match self.catalogue.identity_providers.get(provider) {
            Some(known) => known.account_page && self.is_way_in(provider),
            None => provider == LOCAL,
        };
        self.allows(provider) && (self.client.is_some() || may_be_named())
    }

    /// Whether a sign-in by that provider counts here, and some client allows it.
    pub fn is_way_in(&self, provider: &str) -> bool {
        self.allows(provider) && !self.catalogue.idle_identity_providers.contains(provider)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::authorize::authorize_request::fixtures::{
        catalogue_with_tenants, identity_provider,
    };

    /// `corp` and `former` (disabled) of no tenant, `own` of `acme`, `idle` that no client allows,
    /// `hidden` that the account page does not name.
    fn catalogue() -> Catalogue {
        let mut catalogue = catalogue_with_tenants();
        let providers = &mut catalogue.identity_providers;
        for name in ["own", "idle", "hidden"] {
            providers.insert(name.to_owned(), identity_provider(name, true));
        }
        providers.get_mut("own").unwrap().tenant = Some(TenantName::new("acme"));
        providers.get_mut("hidden").unwrap().account_page = false;
        catalogue.idle_identity_providers.insert("idle".to_owned());
        catalogue
    }

    fn client(identity_providers: Option<&[&str]>) -> Client {
        let names = identity_providers.map(|names| names.iter().map(|name| (*name).to_owned()));
        Client {
            identity_providers: names.map(Iterator::collect),
            ..samples::client()
        }
    }

    #[test]
    fn a_provider_counts_where_it_is_enabled_allowed_and_of_this_tenant() {
        let catalogue = catalogue();
        let (any, corp_alone) = (client(None), client(Some(&["corp"])));
        let (acme, globex) = (TenantName::new("acme"), TenantName::new("globex"));
        for (client, tenant, provider, counts) in [
            (Some(&any), None, "corp", true),
            (Some(&any), Some(&acme), "corp", true),
            (Some(&any), None, "former", false),
            (Some(&any), None, "unknown", false),
            (Some(&any), None, LOCAL, true),
            (Some(&any), Some(&acme), "own", true),
            (Some(&any), Some(&globex), "own", false),
            (Some(&any), None, "own", false),
            (Some(&corp_alone), None, "corp", true),
            (Some(&corp_alone), None, LOCAL, false),
            (Some(&corp_alone), Some(&acme), "own", false),
            (None, None, "corp", true),
            (None, None, LOCAL, true),
        ] {
            let place = SignInPlace {
                client,
                tenant,
                catalogue: &catalogue,
            };
            assert_eq!(place.allows(provider), counts, "{tenant:?} {provider}");
        }
    }

    #[test]
    fn a_session_counts_while_its_provider_has_the_same_issuer() {
        let catalogue = catalogue();
        let any = client(None);
        let place = SignInPlace {
            client: Some(&any),
            tenant: None,
            catalogue: &catalogue,
        };
        for (provider, issuer, counts) in [
            (None, None, true),
            (Some("corp"), Some("https://login.corp.example"), true),
            (Some("corp"), Some("https://another.example"), false),
            (Some("corp"), None, true),
            (Some("former"), Some("https://login.former.example"), false),
        ] {
            let session = Session {
                identity_provider: provider.map(str::to_owned),
                upstream_issuer: issuer.map(str::to_owned),
                ..samples::session()
            };
            assert_eq!(session.identity_provider(), provider.unwrap_or("local"));
            assert_eq!(place.accepts(&session), counts, "{provider:?} {issuer:?}");
        }
    }

    #[test]
    fn a_provider_is_named_to_whoever_may_come_in_by_it() {
        let catalogue = catalogue();
        let any = client(None);
        for (provider, to_client, on_account_page, is_way_in) in [
            ("corp", true, true, true),
            ("hidden", true, false, true),
            ("idle", true, false, false),
            ("former", false, false, false),
            (LOCAL, true, true, true),
            ("unknown", false, false, false),
        ] {
            let place = |client| SignInPlace {
                client,
                tenant: None,
                catalogue: &catalogue,
            };
            assert_eq!(place(Some(&any)).offers(provider), to_client, "{provider}");
            assert_eq!(place(None).offers(provider), on_account_page, "{provider}");
            assert_eq!(place(None).is_way_in(provider), is_way_in, "{provider}");
        }
    }
}
