//! A registered identity provider: an upstream that people sign in with.

use std::collections::{BTreeMap, BTreeSet};

use super::identifiers::TenantName;
use super::scope::ScopeSet;

#[derive(Clone, Debug)]
pub struct IdentityProvider {
    /// `name`, as in `idp:<name>`.
    pub name: String,
    /// `display_name`; the name where none was registered.
    pub display_name: String,
    pub enabled: bool,
    pub kind: ProviderKind,
    pub client_id: String,
    pub scope: ScopeSet,
    /// `response_mode`: whether it posts its answer (`form_post`).
    pub posts_answer: bool,
    /// `claims`: from the name there to the name here.
    pub claims: BTreeMap<String, String>,
    /// `role_map`: from a value there to roles here.
    pub role_map: BTreeMap<String, BTreeSet<String>>,
    /// `acr_map`: from an `acr` there to one here.
    pub acr_map: BTreeMap<String, String>,
    /// `prompt_values_supported`: the values of `prompt` that it takes; `None` leaves that to its
    /// metadata.
    pub prompt_values: Option<BTreeSet<String>>,
    /// `provision`: whether new people get an account.
    pub provision: bool,
    /// `account_page`: whether the account page, which is everybody's, offers it for signing in and
    /// for linking.
    pub account_page: bool,
    pub tenant: Option<TenantName>,
    /// `trust_email`: whether its `email_verified` counts for signing in here, and for letters.
    pub trust_email: bool,
    /// `sign_out`: whether signing out here signs out there.
    pub sign_out: bool,
}

#[derive(Clone, Debug)]
pub enum ProviderKind {
    /// OpenID Connect: everything else comes from its discovery document.
    OpenId { issuer: String },
    /// OAuth 2.0 alone.
    OAuth {
        authorization_endpoint: String,
        token_endpoint: String,
        userinfo_endpoint: String,
        /// `emails_endpoint`: where addresses are that the userinfo answer leaves out.
        emails_endpoint: Option<String>,
        /// `subject_claim`: the member of the answer that names the account and never changes.
        subject_claim: String,
    },
}

impl IdentityProvider {
    /// The issuer half of the key of its people's accounts: the issuer; without one, the
    /// `userinfo_endpoint`, as it is the authority on who somebody is there.
    pub fn authority(&self) -> &str {
        match &self.kind {
            ProviderKind::OpenId { issuer } => issuer,
            ProviderKind::OAuth {
                userinfo_endpoint, ..
            } => userinfo_endpoint,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::authorize::authorize_request::fixtures::{catalogue, identity_provider};
    use crate::words::scope::ScopeKind;

    use super::*;

    #[test]
    fn the_authority_is_the_issuer_or_who_answers_for_the_user() {
        let mut provider = identity_provider("corp", true);
        assert_eq!(provider.authority(), "https://login.corp.example");
        provider.kind = ProviderKind::OAuth {
            authorization_endpoint: String::from("https://hub.example/authorize"),
            token_endpoint: String::from("https://hub.example/token"),
            userinfo_endpoint: String::from("https://api.hub.example/user"),
            emails_endpoint: None,
            subject_claim: String::from("id"),
        };
        assert_eq!(provider.authority(), "https://api.hub.example/user");
    }

    #[test]
    fn a_scope_that_is_registered_has_a_kind() {
        let catalogue = catalogue();
        assert_eq!(catalogue.kind("openid"), Some(ScopeKind::Identity));
        assert_eq!(catalogue.kind("orders.read"), Some(ScopeKind::Resource));
        assert_eq!(catalogue.kind("nope"), None);
    }
}
