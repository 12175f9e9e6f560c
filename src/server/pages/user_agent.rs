//! Which browser on which system a session began in, by what the browser called itself (RFC 9110
//! §10.1.5).

use crate::pages::texts::Texts;

/// In this order: most name others as well, to be served like them.
const BROWSERS: [(&str, &str); 10] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Vivaldi/", "Vivaldi"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
];

fn named(table: &[(&str, &'static str)], sent: &str) -> Option<&'static str> {
    let (_, name) = table.iter().find(|(part, _)| sent.contains(part))?;
    Some(name)
}

/// As people call them; what is not known is said to be so.
pub fn browser(texts: &Texts, user_agent: Option<&str>) -> String {
    let sent = user_agent.unwrap_or_default();
    match (named(&BROWSERS, sent), named(&SYSTEMS, sent)) {
        (Some(browser), Some(system)) => format!("{browser} · {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, system) => [texts.unknown_browser, system.unwrap_or_default()]
            .join(if system.is_some() { " · " } else { "" }),
    }
}
