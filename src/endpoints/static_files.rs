//! `/static/*`: the stylesheet, icons and the one script, embedded in the binary; and the brand's colour.

use sha2::{Digest, Sha256};
use std::sync::OnceLock;

use crate::app::failure::Failure;
use crate::config::Config;
use crate::http::{Body, Response};
use crate::pages::brand::brand_css;
use crate::protocol::errors::TokenErrorCode;
use crate::protocol::reason::Reason;

use super::answers;

const CSS: &str = "text/css; charset=utf-8";
const FILES: [(&str, &str, &[u8]); 3] = [
    ("app.css", CSS, include_bytes!("../../static/app.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../../static/icon.svg")),
    ("form-post.js", "text/javascript; charset=utf-8", include_bytes!("../../static/form-post.js")),
];

/// Answers with an embedded file. There is no file system behind it, so there is nothing to traverse.
pub fn handle(config: &Config, name: &str) -> Result<Response, Failure> {
    if name == "brand.css" {
        let color = config.brand.color.map(|color| color.to_string());
        let css = brand_css(&answers::brand(config, color.as_deref())).ok_or_else(not_found)?;
        return Ok(cached(Response::with_body(200, CSS, Body::Owned(css.into_bytes()))));
    }
    let file = FILES.iter().find(|(file, _, _)| *file == name);
    let (_, content_type, bytes) = file.ok_or_else(not_found)?;
    Ok(cached(Response::with_body(200, content_type, Body::Static(bytes))))
}

/// Eight hex digits over every embedded file: part of their addresses, so that a new binary's pages get its own files.
pub fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let digest = FILES.iter().fold(Sha256::new(), |digest, (_, _, bytes)| digest.chain_update(bytes)).finalize();
        digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    })
}

fn cached(response: Response) -> Response {
    response.header("Cache-Control", "public, max-age=86400")
}

fn not_found() -> Failure {
    Failure::refused(404, TokenErrorCode::InvalidRequest, Reason::NotFound)
}
