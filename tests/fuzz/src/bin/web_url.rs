//! URLs that operators register. What is taken, a browser reads as the same scheme, host and port,
//! and without a user name. `url` says what browsers read.
#![no_main]

use gatepost::protocol::login::passkey::host;
use gatepost::protocol::words::web_url::WebUrl;
use libfuzzer_sys::fuzz_target;
use url::Url;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let Ok(ours) = WebUrl::parse(text) else {
        return;
    };
    let Ok(theirs) = Url::parse(text) else {
        // Browsers look into such labels, and we do not.
        assert!(text.contains("xn--"), "browsers do not read {text}");
        return;
    };
    assert_eq!(theirs.scheme() == "https", ours.https);
    assert_eq!(theirs.host_str(), Some(ours.host), "the host of {text}");
    let port = ours.port.unwrap_or(if ours.https { 443 } else { 80 });
    assert_eq!(theirs.port_or_known_default(), Some(port));
    assert!(theirs.username().is_empty() && theirs.password().is_none());
    // Browsers encode this one mark more.
    let query = ours.query.map(|query| query.replace('\'', "%27"));
    assert_eq!(theirs.query(), query.as_deref());
    assert_eq!(
        text,
        format!(
            "{}{}{}",
            ours.origin,
            ours.path,
            ours.query
                .map(|query| format!("?{query}"))
                .unwrap_or_default()
        )
    );
    let _ = host(text);
});
