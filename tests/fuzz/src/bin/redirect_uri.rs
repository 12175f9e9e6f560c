//! Redirect URIs: the first line is registered, the second one sent. A URI that is taken is the one
//! that was sent, and a browser that follows it arrives at the registered scheme and host, and at
//! the registered port unless the host is a loopback address. `url` says what browsers read.
#![no_main]

use gatepost::protocol::words::redirect_uri::{
    RedirectTarget, check_registered, is_absolute_uri, origin_of,
};
use gatepost_fuzz::{client, public_client};
use libfuzzer_sys::fuzz_target;
use url::Url;

fn is_web(uri: &str) -> bool {
    uri.starts_with("https:") || uri.starts_with("http:")
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let (registered, sent) = text.split_once('\n').unwrap_or((text, text));
    let _ = is_absolute_uri(sent);
    if check_registered(registered, true).is_err() {
        return;
    }
    let mut client = if data.len() % 2 == 0 {
        client()
    } else {
        public_client(&["https://rp1.example/"])
    };
    client.redirect_uris = vec![registered.to_owned()];
    client.post_logout_redirect_uris = vec![registered.to_owned()];
    if let Some(target) = RedirectTarget::match_post_logout(sent, &client) {
        assert!(target.uri() == sent && sent == registered);
    }
    let Some(target) = RedirectTarget::match_registered(sent, &client) else {
        assert!(sent != registered || check_registered(sent, !client.is_confidential()).is_err());
        return;
    };
    assert_eq!(target.uri(), sent);
    assert_eq!(target.is_custom_scheme(), !is_web(sent));
    let (Ok(there), Ok(here)) = (Url::parse(registered), Url::parse(sent)) else {
        // Browsers go nowhere by a URL that they cannot read.
        assert_eq!(sent, registered, "no browser reads it");
        return;
    };
    assert_eq!(here.scheme(), there.scheme());
    assert_eq!(here.host_str(), there.host_str());
    assert_eq!((here.path(), here.query()), (there.path(), there.query()));
    assert!(here.username().is_empty() && here.password().is_none() && here.fragment().is_none());
    if sent != registered {
        let loopback = ["127.0.0.1", "[::1]"];
        assert!(
            here.host_str().is_some_and(|host| loopback.contains(&host)),
            "{sent}"
        );
    }
    if is_web(sent) {
        assert!(
            here.scheme() == "https" || target.is_loopback(),
            "{sent} in clear"
        );
        let origin = origin_of(sent).expect("a web address has an origin");
        assert_eq!(target.origin().as_ref(), Some(&origin));
        assert_eq!(
            origin,
            here.origin().ascii_serialization(),
            "the origin of {sent}"
        );
    }
});
