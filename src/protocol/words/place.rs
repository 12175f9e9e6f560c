//! The place of a sign-in: for which client, within which tenant. It says which identity providers
//! count there.

use super::catalogue::Catalogue;
use super::client::Client;
use super::identifiers::TenantName;
use super::identity_provider::IdentityProvider;
use super::session::{LOCAL, Session};

#[derive(Clone, Copy, Debug)]
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
