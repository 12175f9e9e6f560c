//! What an upstream provider is asked for beyond who somebody is.

use std::collections::BTreeSet;

use super::super::authorize_request::{AuthorizeRequest, Ending};

/// What goes on to the upstream provider of what was asked here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    pub login: bool,
    /// They shall show that they are there: by a new sign-in, or by choosing their account where `login` is not taken.
    pub presence: bool,
    pub select_account: bool,
    pub max_age: Option<u64>,
    pub login_hint: Option<String>,
    pub ui_locales: Option<String>,
    /// The essential `acr` of which one must be reached.
    pub acr: BTreeSet<String>,
}

impl Ask {
    pub fn of(request: &AuthorizeRequest) -> Ask {
        Ask {
            login: request.prompt.login,
            presence: matches!(request.ending, Ending::Account { anew: true }),
            select_account: request.prompt.select_account,
            max_age: request.max_age,
            login_hint: request.login_hint.clone(),
            ui_locales: request.ui_locales.clone(),
            acr: request.claims.essential_acr.clone().unwrap_or_default(),
        }
    }

    /// What makes somebody act there: who was signed in there by somebody else sees as whom.
    pub fn for_linking() -> Ask {
        Ask { select_account: true, ..Ask::default() }
    }

    /// What of it a provider takes. Without `select_account`, asking for a sign-in lets people be somebody else too. Nothing
    /// stands for `login`: where that is not taken, `None`, as a sign-in of last week would pass for one of this moment.
    /// `None` as well where nobody can be made to show that they are there.
    pub fn as_far_as(&self, taken: PromptValues) -> Option<Ask> {
        let login = self.login || self.presence || self.select_account && !taken.select_account;
        let wants_choice = self.select_account || self.presence && !taken.login;
        let select_account = wants_choice && taken.select_account;
        let is_met = (taken.login || !self.login) && (taken.login || taken.select_account || !self.presence);
        is_met.then(|| Ask { login: login && taken.login, select_account, ..self.clone() })
    }

    pub fn asks_for_age(&self) -> bool {
        self.login || self.presence || self.max_age.is_some()
    }
}

/// Which values of `prompt` a provider takes, of those that are sent. Some answer another one with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptValues {
    pub login: bool,
    pub select_account: bool,
}

impl PromptValues {
    /// By `prompt_values_supported` as the operator registered it, else as the metadata has it; all where neither says.
    pub fn of(registered: Option<&BTreeSet<String>>, announced: Option<&BTreeSet<String>>) -> PromptValues {
        let listed = registered.or(announced);
        let has = |value: &str| listed.is_none_or(|listed| listed.contains(value));
        PromptValues { login: has("login"), select_account: has("select_account") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_registered_goes_before_what_is_announced() {
        let list = |values: &[&str]| Some(values.iter().map(|value| (*value).to_owned()).collect::<BTreeSet<_>>());
        for (registered, announced, login, select_account) in [
            (None, None, true, true),
            (None, list(&["none", "login"]), true, false),
            (None, list(&[]), false, false),
            (list(&["none", "select_account"]), None, false, true),
            (list(&["login", "select_account"]), list(&["none"]), true, true),
            (list(&[]), list(&["login", "select_account"]), false, false),
        ] {
            let taken = PromptValues::of(registered.as_ref(), announced.as_ref());
            assert_eq!(taken, PromptValues { login, select_account }, "{registered:?} {announced:?}");
        }
    }

    #[test]
    fn only_what_a_provider_takes_is_asked_for() {
        let ask = |login, select_account| Ask { login, select_account, max_age: Some(7), ..Ask::default() };
        for (asked, taken, left) in [
            ((true, true), (true, true), Some((true, true))),
            ((false, true), (true, true), Some((false, true))),
            ((false, true), (true, false), Some((true, false))),
            ((false, true), (false, true), Some((false, true))),
            ((false, true), (false, false), Some((false, false))),
            ((true, true), (true, false), Some((true, false))),
            ((true, true), (false, true), None),
            ((true, false), (false, true), None),
            ((true, false), (false, false), None),
            ((false, false), (false, false), Some((false, false))),
        ] {
            let taken = PromptValues { login: taken.0, select_account: taken.1 };
            let left = left.map(|(login, select_account)| ask(login, select_account));
            assert_eq!(ask(asked.0, asked.1).as_far_as(taken), left, "{asked:?} {taken:?}");
        }
    }

    #[test]
    fn who_shall_be_there_signs_in_anew_or_at_least_chooses() {
        let asked = Ask { presence: true, ..Ask::default() };
        for (login, select_account, left) in [
            (true, true, Some((true, false))),
            (true, false, Some((true, false))),
            (false, true, Some((false, true))),
            (false, false, None),
        ] {
            let left = left.map(|(login, select_account)| Ask { login, select_account, ..asked.clone() });
            assert_eq!(asked.as_far_as(PromptValues { login, select_account }), left, "{login} {select_account}");
        }
        assert!(asked.asks_for_age());
    }
}
