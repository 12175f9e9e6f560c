//! What is wrong with a TLS handshake, in words that help: the library's own are names of its code.

/// By the library's text, where that is a known one.
pub fn tls_words(text: &str) -> Option<&'static str> {
    let known = [
        (
            "CaUsedAsEndEntity",
            "the server's certificate is an authority's own (CA:TRUE), which no server may show",
        ),
        ("Expired", "the server's certificate has ended: renew it"),
        ("expired", "the server's certificate has ended: renew it"),
        (
            "not valid for any names",
            "the server's certificate has no subjectAltName, and no other name of it counts",
        ),
        (
            "not valid for name",
            "the server's certificate is for other names",
        ),
        (
            "not valid yet",
            "the server's certificate is not good yet, or this machine's clock is slow",
        ),
        (
            "InvalidContentType",
            "the server does not speak TLS at that port",
        ),
    ];
    let found = known.iter().find(|(technical, _)| text.contains(technical));
    found.map(|(_, words)| *words)
}
