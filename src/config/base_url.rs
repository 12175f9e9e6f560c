//! The issuer and base URL.

use crate::protocol::words::web_url::WebUrl;

/// The issuer: https, or http on loopback; no trailing slash, query, fragment or user info.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    text: String,
    origin_length: usize,
}

impl BaseUrl {
    /// Reads a base URL; the error is the rule that was broken. What can be spelt in two ways is refused: clients compare
    /// the issuer byte for byte (OpenID Connect Discovery §4.3), browsers its origin with their own spelling.
    pub fn parse(text: &str) -> Result<BaseUrl, &'static str> {
        let url = WebUrl::parse(text)?;
        if !url.is_protected() {
            return Err("must be https; plain http is for 127.0.0.1, [::1] and localhost only");
        }
        if url.query.is_some() {
            return Err("must not have a query");
        }
        if url.port == Some(if url.https { 443 } else { 80 }) {
            return Err("must leave out the scheme's own port, as browsers do");
        }
        if url.path.ends_with('/') {
            return Err("must not end with a slash");
        }
        if !url.path.split('/').skip(1).all(is_plain_segment) {
            return Err("must have a path of plain segments: letters, digits, - . _ ~, no // and no dot segments");
        }
        Ok(BaseUrl { text: text.to_owned(), origin_length: url.origin.len() })
    }

    /// Stands in while problems are still being collected; a configuration that holds it is never handed out.
    pub(super) fn placeholder() -> BaseUrl {
        BaseUrl { text: String::new(), origin_length: 0 }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Scheme, host and port, as browsers send them in `Origin`.
    pub fn origin(&self) -> &str {
        self.text.split_at_checked(self.origin_length).map_or(&self.text, |(origin, _)| origin)
    }

    /// The path in front of every path of ours; empty or beginning with `/`.
    pub fn path(&self) -> &str {
        self.text.split_at_checked(self.origin_length).map_or("", |(_, path)| path)
    }

    /// Whether cookies can be `Secure` and carry the `__Host-` prefix.
    pub fn is_https(&self) -> bool {
        self.text.starts_with("https://")
    }
}

fn is_plain_segment(segment: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    !matches!(segment, "" | "." | "..") && segment.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_and_path_are_told_apart() {
        let url = BaseUrl::parse("https://login.example.com:8443/id/v1").unwrap();
        assert_eq!((url.origin(), url.path()), ("https://login.example.com:8443", "/id/v1"));
        let url = BaseUrl::parse("http://localhost:8080").unwrap();
        assert_eq!((url.origin(), url.path(), url.is_https()), ("http://localhost:8080", "", false));
    }

    #[test]
    fn issuers_that_could_be_spelt_in_two_ways_are_refused() {
        for text in
            "http://login.example.com https://login.example.com/ https://login.example.com/a/ https://a.example//b \
            https://a.example/../b https://a.example/./b https://a.example/b?c https://a.example/b? \
            https://a.example#b https://u:p@a.example https://A.example https://a.example:443 \
            http://localhost:80 https://a.example/%41 login.example.com https:// http://127.0.0.2:8080"
                .split(' ')
        {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }
}
