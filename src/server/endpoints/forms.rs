//! Form posts, whoever sends them: the media type, and parameters where they belong. And the forms
//! of our own pages: which one a post is of, and in which browser it was drawn.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::app::failure::{Failure, Result};
use crate::http::Request;
use gatepost_protocol::token::token_request::known_parameter_in_query;
use gatepost_protocol::words::named::named;
use gatepost_protocol::words::parameters::{self, Parameters, check_sender};
use gatepost_protocol::words::reason::{Reason, TokenErrorCode};
use gatepost_protocol::words::secret::{SecretBytes, SecretText};

/// Requires `application/x-www-form-urlencoded`, with or without parameters; `status` otherwise.
pub fn require_form(request: &Request, status: u16) -> Result {
    let media_type = request.media_type();
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Ok(());
    }
    Err(Failure::refused(
        status,
        TokenErrorCode::InvalidRequest,
        Reason::UnsupportedContentType,
    ))
}

/// Parameters in the URL end up in logs: refused even where the body has them too.
pub fn refuse_parameters_in_query(request: &Request, known: &[&str]) -> Result {
    let query = request.query_parameters()?;
    if known_parameter_in_query(query, known) {
        Err(Failure::bad_request(Reason::ParameterInQuery))
    } else {
        Ok(())
    }
}

/// The parameters of endpoints that take a token.
const PRESENTED_TOKEN_PARAMETERS: [&str; 6] = [
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "token",
    "token_type_hint",
];

/// The same for an endpoint that takes a token.
pub fn refuse_presented_token_in_query(request: &Request) -> Result {
    refuse_parameters_in_query(request, &PRESENTED_TOKEN_PARAMETERS)
}

/// Reads `token`. Each token says what it is, so `token_type_hint` (RFC 7009 §2.1, RFC 7662 §2.1)
/// may be anything. It must only not be sent twice.
pub fn presented_token(parameters: &Parameters) -> Result<SecretText> {
    parameters.single("token_type_hint")?;
    let token = parameters.bounded("token", parameters::HANDLE)?;
    Ok(token.map(SecretText::new).ok_or(Reason::MissingToken)?)
}

named! {
    pub enum Form {
        Login = "login",
        /// `/login`, where it offers the account of this browser.
        SelectAccount = "select account",
        Consent = "consent",
        Logout = "logout",
        /// `/device`, where it asks for the code.
        UserCode = "user code",
        Account = "account",
        /// `/login/forgotten`.
        Forgotten = "forgotten",
        /// `/join`, where it asks for an address.
        SignUp = "sign up",
        /// `/join`, where it makes the account.
        Join = "join",
        /// Behind a link by which somebody says that a sign-in was not theirs.
        NotMe = "not me",
        /// Behind a link that confirms an address.
        NewAddress = "new address",
        /// Behind a link to set a password.
        Password = "password",
        /// Where a new factor is added during a sign-in.
        NewFactor = "new factor",
        /// New recovery codes, on the account page.
        RecoveryCodes = "recovery codes",
        /// The question whether to link an account elsewhere.
        Link = "link",
        /// Below `/admin`; its matter is the page, and whom it is about.
        Admin = "admin",
    }
}

/// The token of a form about `subject_matter` (a sealed request, or nothing) drawn for `browser`
/// (the pre-session value, or the session's handle).
pub fn issue(app: &App, form: Form, subject_matter: &str, browser: &SecretBytes) -> String {
    let matter = Sha256::digest(subject_matter);
    URL_SAFE_NO_PAD.encode(app.vault.form_tokens.tag(&[
        form.as_str().as_bytes(),
        &matter,
        browser.expose(),
    ]))
}

/// Whether the posted `form_token` is that of this form in this browser.
pub fn matches(
    app: &App,
    form: Form,
    subject_matter: &str,
    browser: Option<&SecretBytes>,
    posted: &Parameters,
) -> bool {
    let (Some(browser), Ok(Some(posted))) = (browser, posted.single("form_token")) else {
        return false;
    };
    let matter = Sha256::digest(subject_matter);
    let decoded = URL_SAFE_NO_PAD.decode(posted);
    decoded.is_ok_and(|tag| {
        app.vault
            .form_tokens
            .verify(&[form.as_str().as_bytes(), &matter, browser.expose()], &tag)
    })
}

/// What was typed, without control characters and what is too long.
pub fn tidy(typed: Option<&str>, most: usize) -> String {
    let typed = typed.unwrap_or_default().trim();
    let kept = typed.chars().filter(|one| !one.is_control());
    kept.take(most).collect()
}

/// Reads the post of one of our forms. It must come from one of our pages (403 otherwise) and be
/// form-encoded.
pub fn read_post(app: &App, request: &Request) -> Result<Parameters> {
    let sender = check_sender(
        app.config.base_url.origin(),
        request.headers.first("origin"),
        request.headers.first("sec-fetch-site"),
    );
    sender.map_err(|reason| Failure::refused(403, TokenErrorCode::InvalidRequest, reason))?;
    require_form(request, 415)?;
    let form = request.form_parameters()?;
    form.single("form_token")?;
    Ok(form)
}
