//! What ties a post to a form of ours: an HMAC over the page, what the form is about, and the browser it was drawn for.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::app::App;
use crate::app::failure::Failure;
use crate::http::Request;
use crate::protocol::words::errors::TokenErrorCode;
use crate::protocol::words::forms::check_sender;
use crate::protocol::words::named::named;
use crate::protocol::words::parameters::Parameters;
use crate::protocol::words::secret::SecretBytes;

named! {
    /// Which of our pages a form is on.
    pub enum Form {
        Login = "login",
        /// `/login`, where it offers the present account.
        SelectAccount = "select account",
        Consent = "consent",
        Logout = "logout",
        /// `/device`, where it asks for the code.
        UserCode = "user code",
        Account = "account",
        /// The question whether to link an account elsewhere.
        Link = "link",
    }
}

/// The token of a form about `subject_matter` (a sealed request, or nothing) drawn for `browser` (the pre-session value,
/// or the session's handle).
pub fn issue(app: &App, form: Form, subject_matter: &str, browser: &SecretBytes) -> String {
    let matter = Sha256::digest(subject_matter);
    URL_SAFE_NO_PAD.encode(app.vault.form_tokens.tag(&[form.as_str().as_bytes(), &matter, browser.expose()]))
}

/// Whether the posted `form_token` is that of this form in this browser.
pub fn matches(
    app: &App,
    form: Form,
    subject_matter: &str,
    browser: Option<&SecretBytes>,
    posted: &Parameters,
) -> bool {
    let (Some(browser), Ok(Some(posted))) = (browser, posted.single("form_token")) else { return false };
    let matter = Sha256::digest(subject_matter);
    let decoded = URL_SAFE_NO_PAD.decode(posted);
    decoded.is_ok_and(|tag| app.vault.form_tokens.verify(&[form.as_str().as_bytes(), &matter, browser.expose()], &tag))
}

/// Reads the post of one of our forms: sent from a page of ours (403 otherwise), form-encoded, its fields in the body.
pub fn read_post(app: &App, request: &Request) -> Result<Parameters, Failure> {
    let sender = check_sender(
        app.config.base_url.origin(),
        request.headers.first("origin"),
        request.headers.first("sec-fetch-site"),
    );
    sender.map_err(|reason| Failure::refused(403, TokenErrorCode::InvalidRequest, reason))?;
    crate::endpoints::forms::require_form(request, 415)?;
    let form = Parameters::parse(&request.body)?;
    form.single("form_token")?;
    Ok(form)
}
