//! The page that clients frame to watch the browser's sign-in (OpenID Connect Session Management §3.3): nothing to see,
//! one script.

use maud::{DOCTYPE, Markup, html};

/// The page. `cookie` is the name of the cookie that holds the browser's state, `script` the script's address.
pub fn page(cookie: &str, script: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="robots" content="noindex";
                title { "Check session" }
            }
            body data-cookie=(cookie) { script src=(script) {} }
        }
    }
}
