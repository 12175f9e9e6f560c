//! Extension grants that a SQL function of the operator answers: the request and the client's public registration in, a
//! JSON object out.

use super::GrantContext;
use crate::app::failure::Failure;
use crate::protocol::token::extension_grant::{Answer, Refusal};
use crate::protocol::token::function_answer::{client_metadata, read};
use crate::protocol::token::token_request::ExtensionRequest;
use crate::protocol::words::errors::{TokenError, TokenErrorCode};
use crate::protocol::words::reason::Reason;
use crate::store::{Objection, catalogue};

/// Calls the function. What goes wrong with it is the service's trouble, not the client's: 503, and a line in the log.
pub fn handle(context: GrantContext<'_>, request: &ExtensionRequest) -> Result<Answer, Failure> {
    let GrantContext { app, client, .. } = context;
    let snapshot = app.registry.snapshot();
    let Some(grant) = snapshot.catalogue.extension_grants.get(&request.grant_type) else {
        return Err(TokenError::new(TokenErrorCode::UnsupportedGrantType, Reason::UnsupportedGrantType).into());
    };
    let parameters = request.to_json();
    let metadata = client_metadata(&client.client);
    let answer =
        catalogue::call_function(&app.extensions.functions, grant, &parameters, &metadata).map_err(|error| {
            log::error!("request {}: function {}.{}: {error}", context.request.id, grant.schema, grant.function);
            Failure::Busy
        })?;
    match answer {
        Ok(None) => Ok(Answer::Refuse(Refusal::invalid_grant(""))),
        Ok(Some(answer)) => read(&answer).map_err(|fault| {
            Failure::Internal(format!("function {}.{} answered {fault}", grant.schema, grant.function))
        }),
        Err(Objection::Raised(message)) => Ok(Answer::Refuse(Refusal::invalid_grant(&message))),
        Err(Objection::Unreadable) => {
            Ok(Answer::Refuse(Refusal::of(TokenError::new(TokenErrorCode::InvalidRequest, Reason::ExtensionInput))))
        }
    }
}
