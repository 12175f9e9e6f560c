//! Whether a post of a form of ours was sent from a page of ours, by what the browser says about its origin.
//! A browser that says nothing is judged by the form's own token alone. Not for `/connect/*`, where others may post.

use super::reason::Reason;

/// Judges the headers `Origin` and `Sec-Fetch-Site` against our own origin. `null` is never ours.
pub fn check_sender(own_origin: &str, origin: Option<&str>, sec_fetch_site: Option<&str>) -> Result<(), Reason> {
    let foreign_origin = origin.is_some_and(|origin| origin != own_origin);
    let foreign_site = sec_fetch_site.is_some_and(|site| site != "same-origin" && site != "none");
    if foreign_origin || foreign_site { Err(Reason::ForeignFormPost) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "https://login.example";

    #[test]
    fn our_own_pages_and_silent_browsers_pass() {
        #[rustfmt::skip]
        let rows = [
            (None, None), (Some(OURS), None), (Some(OURS), Some("same-origin")), (None, Some("same-origin")),
            (None, Some("none")), (Some(OURS), Some("none")),
        ];
        for (origin, site) in rows {
            assert_eq!(check_sender(OURS, origin, site), Ok(()), "{origin:?} {site:?}");
        }
    }

    #[test]
    fn everyone_else_is_refused() {
        #[rustfmt::skip]
        let rows = [
            (Some("https://evil.example"), None), (Some("https://login.example.evil.example"), None),
            (Some("https://login.example:8443"), None), (Some("https://login.example/"), None),
            (Some("http://login.example"), None), (Some("HTTPS://LOGIN.EXAMPLE"), None), (Some("null"), None),
            (Some(""), None), (Some("null"), Some("same-origin")),
            (Some("https://evil.example"), Some("same-origin")), (Some(OURS), Some("cross-site")),
            (Some(OURS), Some("same-site")), (None, Some("cross-site")), (None, Some("same-site")), (None, Some("")),
            (None, Some("SAME-ORIGIN")),
        ];
        for (origin, site) in rows {
            assert_eq!(check_sender(OURS, origin, site), Err(Reason::ForeignFormPost), "{origin:?} {site:?}");
        }
    }
}
