//! What every grant gets to see, and the one type of all handlers of extension grants (RFC 6749
//! §4.5), built in or not.

use super::App;
use crate::app::failure::Result;
use crate::http::Request;
use crate::registry::{RegisteredClient, Registry, Snapshot};
use gatepost_protocol::token::dpop_proof::DpopProof;
use gatepost_protocol::token::extension_grant::GrantAnswer;
use gatepost_protocol::token::token_request::ExtensionRequest;
use gatepost_protocol::words::client::GrantType;
use gatepost_protocol::words::identifiers::KeyThumbprint;
use gatepost_protocol::words::instant::Instant;
use gatepost_protocol::words::sender::Sender;
use gatepost_store::Store;
use gatepost_store::catalogue::{FoundFunction, look_up_function};

/// What every grant gets to see. The raw form is not part of it.
#[derive(Clone, Copy)]
pub struct GrantContext<'a> {
    pub app: &'a App,
    /// For the audit event: who sent it, and its id.
    pub request: &'a Request,
    pub client: &'a RegisteredClient,
    /// The proof that came along: tokens are bound to its key.
    pub proof: Option<&'a DpopProof>,
    /// What is registered, for the whole request.
    pub snapshot: &'a Snapshot,
    pub now: Instant,
}

impl<'a> GrantContext<'a> {
    /// By whom the request is judged.
    pub fn sender(&self) -> Sender<'a> {
        Sender {
            client: &self.client.client,
            catalogue: &self.snapshot.catalogue,
            issuer: self.app.issuer(),
            key: self.key(),
            now: self.now,
        }
    }

    /// The key that the sender holds.
    pub fn key(&self) -> Option<KeyThumbprint> {
        self.proof.map(|proof| proof.key)
    }

    /// The key to bind a refresh token to. One of a confidential client is bound to the client,
    /// which may come with another key each time (RFC 9449 §5).
    pub fn refresh_key(&self) -> Option<KeyThumbprint> {
        self.key().filter(|_| !self.client.client.is_confidential())
    }
}

/// Answers a request: a proposal, which is judged before anything is issued, or a refusal. A
/// [`Failure`](crate::app::failure::Failure) is for what the client can do nothing about.
pub type ExtensionHandler = fn(GrantContext<'_>, &ExtensionRequest) -> Result<GrantAnswer>;

/// A grant type and its handler: one entry of the table that your own binary gives to
/// `gatepost::run_with`.
#[derive(Clone, Copy, Debug)]
pub struct ExtensionGrant {
    /// `grant_type`; by custom a URI. No built-in name.
    pub name: &'static str,
    pub handle: ExtensionHandler,
}

/// The extension grants of this binary, and the pool for those of the operator.
#[derive(Clone, Debug)]
pub struct Extensions {
    pub table: &'static [ExtensionGrant],
    pub functions: Store,
}

/// Says what is wrong with a table of grants: a name that is built in, is no possible name, or
/// occurs twice.
pub fn check_table(grants: &[ExtensionGrant]) -> Result<(), String> {
    for (index, grant) in grants.iter().enumerate() {
        let name = grant.name;
        if !matches!(GrantType::from_name(name), GrantType::Extension(_)) {
            return Err(format!(
                "the extension grant \"{name}\" has the name of a built-in grant"
            ));
        }
        let sound =
            (1..=200).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic());
        if !sound {
            return Err(format!(
                "\"{}\" cannot be the name of an extension grant",
                name.escape_debug()
            ));
        }
        if grants
            .iter()
            .skip(index + 1)
            .any(|other| other.name == name)
        {
            return Err(format!("there are two extension grants \"{name}\""));
        }
    }
    Ok(())
}

/// Logs at the start which functions are missing, instead of when a client first asks for one. The
/// other grants are served.
pub(super) fn look_up_functions(functions: &Store, registry: &Registry) {
    for (name, grant) in &registry.snapshot().catalogue.extension_grants {
        let function = format!("{}.{}", grant.schema, grant.function);
        match look_up_function(functions, grant) {
            Ok(FoundFunction::Callable) => {}
            Ok(FoundFunction::Forbidden) => {
                log::error!("extension grant {name}: the role may not execute {function}")
            }
            Ok(FoundFunction::Missing) => {
                log::error!("extension grant {name}: no function {function} (jsonb, jsonb)")
            }
            Err(error) => {
                log::error!("extension grant {name}: {function} cannot be looked up: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gatepost_protocol::token::extension_grant::Proposal;

    fn anybody(_: GrantContext<'_>, request: &ExtensionRequest) -> Result<GrantAnswer> {
        Ok(GrantAnswer::Propose(Box::new(Proposal {
            claims: request.to_json(),
            ..Proposal::default()
        })))
    }

    fn grant(name: &'static str) -> ExtensionGrant {
        ExtensionGrant {
            name,
            handle: anybody,
        }
    }

    #[test]
    fn a_table_without_built_in_or_repeated_names_holds() {
        assert_eq!(check_table(&[]), Ok(()));
        assert_eq!(
            check_table(&[grant("urn:example:a"), grant("urn:example:b")]),
            Ok(())
        );
        for table in [
            vec![grant("password")],
            vec![grant("urn:ietf:params:oauth:grant-type:token-exchange")],
            vec![grant("urn:ietf:params:oauth:grant-type:jwt-bearer")],
            vec![grant("")],
            vec![grant("two words")],
            vec![grant("urn:example:a"), grant("urn:example:a")],
        ] {
            assert!(check_table(&table).is_err(), "{table:?}");
        }
    }
}
