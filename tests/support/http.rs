//! A plain HTTP/1.1 client that keeps to the bytes, a browser that keeps cookies, and the headers
//! that every answer owes.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::claims::Says;
use super::{record, secrets};

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    /// In the order received, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The only value of a header; a header sent twice is a failure.
    pub fn header(&self, name: &str) -> Option<&str> {
        let values = self.headers_named(name);
        assert!(values.len() <= 1, "{name} was sent {} times", values.len());
        values.first().copied()
    }

    pub fn headers_named(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(field, _)| field == name)
            .map(|(_, value)| value.as_str())
            .collect()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> Value {
        let content_type = self.header("content-type").unwrap_or_default();
        let is_json = ["application/json", "application/scim+json"].contains(&content_type);
        assert!(is_json, "{content_type}: {}", self.text());
        serde_json::from_slice(&self.body).unwrap()
    }

    pub fn location(&self) -> &str {
        self.header("location")
            .unwrap_or_else(|| panic!("no Location in {} {}", self.status, self.text()))
    }

    /// Parameters in the query of `Location`, decoded; repeated ones are a failure.
    pub fn query(&self) -> BTreeMap<String, String> {
        let location = self.location();
        let (_, query) = location.split_once('?').unwrap_or((location, ""));
        decode(query.split('#').next().unwrap())
    }

    /// Parameters in the fragment of `Location`, decoded.
    pub fn fragment(&self) -> BTreeMap<String, String> {
        let location = self.location();
        decode(
            location
                .split_once('#')
                .map_or("", |(_, fragment)| fragment),
        )
    }

    /// The value of an attribute in the first tag that contains `marker`, entities undone.
    pub fn attribute(&self, marker: &str, attribute: &str) -> Option<String> {
        let text = self.text();
        let tag = text.split('<').find(|tag| tag.contains(marker))?;
        let start = format!("{attribute}=\"");
        let (_, rest) = tag.split_once(&start)?;
        Some(unescape(rest.split_once('"')?.0))
    }

    /// The hidden fields of the page's forms, entities undone; two values of one name are a
    /// failure.
    pub fn fields(&self) -> BTreeMap<String, String> {
        let mut fields = BTreeMap::new();
        let text = self.text();
        for tag in text
            .split('<')
            .filter(|tag| tag.starts_with("input type=\"hidden\""))
        {
            let value = |attribute: &str| {
                let (_, rest) = tag.split_once(&format!(" {attribute}=\"")).unwrap();
                unescape(rest.split_once('"').unwrap().0)
            };
            let before = fields.insert(value("name"), value("value"));
            assert!(
                before.is_none_or(|before| before == value("value")),
                "{tag}"
            );
        }
        fields
    }

    /// Its text without the challenge for passkeys, which is another at each look.
    pub fn without_challenge(&self) -> String {
        let text = self.text();
        let Some((before, rest)) = text.split_once("data-passkey=\"") else {
            return text;
        };
        format!("{before}{}", rest.split_once('"').unwrap().1)
    }

    /// Where the page's form goes.
    pub fn action(&self) -> String {
        self.attribute("form method=\"post\"", "action")
            .unwrap_or_else(|| panic!("no form in {}", self.text()))
    }

    /// The token by which the page's forms are known as its own.
    pub fn form_token(&self) -> String {
        self.attribute("name=\"form_token\"", "value")
            .unwrap_or_else(|| panic!("no form in {}", self.text()))
    }

    /// The page, cut down to the form that has the button of that decision; all of it where there
    /// is none.
    fn form_of(&self, decision: &str) -> Answer {
        let button = format!("name=\"decision\" value=\"{decision}\"");
        let text = self.text();
        let mut forms = text
            .split("<form")
            .filter_map(|form| form.split("</form>").next());
        let form = forms.find(|form| form.contains(&button)).unwrap_or(&text);
        Answer {
            body: form.as_bytes().to_vec(),
            ..self.clone()
        }
    }

    /// How an authorization response travels to `redirect_uri` (a `response_mode`), and what it
    /// says: in that place, and in no other.
    pub fn response_to(&self, redirect_uri: &str) -> (&'static str, BTreeMap<String, String>) {
        if self.status == 200 {
            assert_eq!(self.header("location"), None);
            assert_eq!(self.action().as_str(), redirect_uri);
            return ("form_post", self.fields());
        }
        assert_eq!((self.status, self.body.len()), (303, 0), "{}", self.text());
        let encoded = self
            .location()
            .strip_prefix(redirect_uri)
            .unwrap_or_else(|| panic!("to {}", self.location()));
        let (mark, encoded) = encoded.split_at(1);
        assert!(!encoded.contains(['?', '#']), "{encoded}");
        match mark {
            "#" => ("fragment", decode(encoded)),
            "?" | "&" => ("query", decode(encoded)),
            other => panic!("{other} in {}", self.location()),
        }
    }

    /// Asserts an error page with that reason code: nothing redirects, nothing posts.
    pub fn assert_error_page(&self, status: u16, reason_code: &str, what: &str) {
        let text = self.text();
        self.assert_stays_for(what, status);
        self.assert_header_for(what, "content-type", "text/html; charset=utf-8");
        assert!(text.contains(reason_code), "{what}: {text}");
        text.assert_says_not_for(what, "<form");
        text.assert_says_not_for(what, "http-equiv");
    }

    /// A form must arrive with our origin in `Origin`: here, or at the application. Under these
    /// policies browsers send it; under the others they send `null`, or more than the origin.
    fn assert_posts_with_its_origin(&self, path: &str) {
        let text = self.text();
        let wanted: &[&str] = match text.split_once("<form method=\"post\" action=\"http") {
            Some(_) => &["origin"],
            None if text.contains("method=\"post\"") => &["same-origin"],
            None => &["same-origin", "no-referrer"],
        };
        let policy = self.header("referrer-policy").unwrap_or_default();
        assert!(wanted.contains(&policy), "{path}: {policy}");
    }

    /// What every answer owes, whatever it is.
    fn assert_headers(&self, path: &str) {
        self.assert_header_for(path, "x-content-type-options", "nosniff");
        assert!(self.header("date").is_some(), "{path}");
        assert!(self.header("x-request-id").is_some(), "{path}");
        assert_eq!(self.header("server"), None, "{path}");
        let content_type = self.header("content-type").unwrap_or_default().to_owned();
        let cache = self.header("cache-control").unwrap_or_default();
        if content_type.starts_with("text/html") {
            let policy = self
                .header("content-security-policy")
                .unwrap_or_else(|| panic!("{path}: no policy"));
            policy.assert_says_for(path, "default-src 'none'");
            policy.assert_says_for(path, "base-uri 'none'");
            assert!(!policy.contains("unsafe"), "{path}: {policy}");
            assert!(policy.contains("frame-ancestors"), "{path}: {policy}");
            self.assert_posts_with_its_origin(path);
            assert_eq!(cache, "no-store", "{path}");
        }
        if (300..400).contains(&self.status) {
            assert_eq!(self.status, 303, "{path}");
            self.assert_header_for(path, "referrer-policy", "no-referrer");
            assert_eq!(cache, "no-store", "{path}");
            self.assert_header_for(path, "pragma", "no-cache");
        }
        if path.starts_with("/connect/") && self.status != 204 {
            assert_eq!(cache, "no-store", "{path}");
        }
        for cookie in self.headers_named("set-cookie") {
            // The browser's state alone is for scripts, and for every site.
            let own = if cookie.contains("gatepost-state-") {
                "; Secure; SameSite=None"
            } else {
                "; HttpOnly"
            };
            let attributes = [own, "; SameSite=", "; Path=/"];
            assert!(
                attributes
                    .iter()
                    .all(|attribute| cookie.contains(attribute)),
                "{cookie}"
            );
        }
    }
}

fn decode(encoded: &str) -> BTreeMap<String, String> {
    assert!(!encoded.contains('+'), "a space must be %20: {encoded}");
    let mut decoded = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(encoded.as_bytes()).into_owned() {
        assert!(
            decoded.insert(name.clone(), value).is_none(),
            "{name} twice in {encoded}"
        );
    }
    decoded
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// Name and value pairs as a form body or query.
pub fn encode(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// One kept-alive connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    pub fn open(port: u16) -> io::Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream: BufReader::new(stream),
            host: format!("localhost:{port}"),
        })
    }

    /// Sends a request and reads its answer, whose headers must be in order.
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let answer = self.try_send(method, path, headers, body).unwrap();
        answer.assert_headers(path.split('?').next().unwrap());
        answer
    }

    /// The same, without looking at the headers.
    pub fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.host);
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" {
            request.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        self.stream
            .get_mut()
            .write_all(&[request.as_bytes(), body].concat())?;
        let answer = self.read(method)?;
        let fields: String = answer
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect();
        let body = String::from_utf8_lossy(&answer.body);
        record::write(
            &format!("{method} {path}"),
            &format!("{}\n{fields}\n{body}", answer.status),
        );
        Ok(answer)
    }

    /// Posts a form.
    pub fn post(&mut self, path: &str, headers: &[(&str, &str)], form: &[(&str, &str)]) -> Answer {
        self.post_raw(path, headers, encode(form).as_bytes())
    }

    /// Posts bytes as a form.
    pub fn post_raw(&mut self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let content_type = [("Content-Type", "application/x-www-form-urlencoded")];
        self.send("POST", path, &[&content_type, headers].concat(), body)
    }

    fn read(&mut self, method: &str) -> io::Result<Answer> {
        let broken = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let status_line = self.line()?;
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or_else(|| broken("status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| broken("header line"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .and_then(|(_, value)| value.parse().ok());
        let length: usize = if method == "HEAD" || status == 204 || status == 304 {
            0
        } else {
            length.unwrap_or(0)
        };
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let answer = Answer {
            status,
            headers,
            body,
        };
        secrets::learn_from_answer(&answer);
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// A person's browser: cookies, `Origin` on posts, no redirects followed by itself.
#[derive(Clone)]
pub struct Browser {
    port: u16,
    origin: String,
    pub cookies: BTreeMap<String, String>,
    /// Sent with every request.
    pub headers: Vec<(String, String)>,
}

impl Browser {
    pub fn new(port: u16, origin: &str) -> Browser {
        Browser {
            port,
            origin: origin.to_owned(),
            cookies: BTreeMap::new(),
            headers: Vec::new(),
        }
    }

    pub fn get(&mut self, address: &str) -> Answer {
        let path = self.path(address);
        self.send("GET", &path, &[], b"")
    }

    /// The head of what a GET would answer.
    pub fn head(&mut self, address: &str) -> Answer {
        let path = self.path(address);
        self.send("HEAD", &path, &[], b"")
    }

    /// Posts a form as a page of the provider's own origin would.
    pub fn post(&mut self, address: &str, form: &[(&str, &str)]) -> Answer {
        let path = self.path(address);
        let origin = self.origin.clone();
        self.send(
            "POST",
            &path,
            &[("Origin", &origin), ("Sec-Fetch-Site", "same-origin"), FORM],
            encode(form).as_bytes(),
        )
    }

    /// Sends the form of a page with these fields and the hidden ones that tell its state: the form
    /// that has the button of the `decision` among them, else the first.
    pub fn submit(&mut self, page: &Answer, fields: &[(&str, &str)]) -> Answer {
        let decision = fields.iter().find(|(name, _)| *name == "decision");
        let form = page.form_of(decision.map_or("", |(_, decision)| decision));
        let hidden = |name| {
            form.attribute(&format!("name=\"{name}\""), "value")
                .unwrap_or_default()
        };
        let (token, app) = (hidden("form_token"), hidden("app"));
        let mut all = vec![("form_token", token.as_str()), ("app", app.as_str())];
        all.retain(|(_, value)| !value.is_empty());
        self.post(&page.action(), &[&all, fields].concat())
    }

    /// Sends the consent page with a decision, these optional scopes ticked, and the decision
    /// remembered or not.
    pub fn decide(
        &mut self,
        page: &Answer,
        decision: &str,
        scopes: &[&str],
        remember: bool,
    ) -> Answer {
        let mut fields = vec![("decision", decision)];
        fields.extend(scopes.iter().map(|scope| ("scope", *scope)));
        if remember {
            fields.push(("remember", "true"));
        }
        let action = page.attribute("form ", "action").unwrap();
        self.submit_to(&action, page, &fields)
    }

    /// Sends these fields under the page's token to that address.
    pub fn submit_to(&mut self, address: &str, page: &Answer, fields: &[(&str, &str)]) -> Answer {
        let token = page.form_token();
        let form = [&[("form_token", token.as_str())], fields].concat();
        self.post(address, &form)
    }

    /// Posts a form from somewhere else, with headers of one's own choosing.
    pub fn post_from(
        &mut self,
        address: &str,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
    ) -> Answer {
        let path = self.path(address);
        self.send(
            "POST",
            &path,
            &[headers, &[FORM]].concat(),
            encode(form).as_bytes(),
        )
    }

    /// Follows `Location` while it stays here.
    pub fn follow(&mut self, mut answer: Answer) -> Answer {
        for _ in 0..10 {
            match answer.header("location").map(str::to_owned) {
                Some(location)
                    if location.starts_with('/') || location.starts_with(&self.origin) =>
                {
                    answer = self.get(&location)
                }
                Some(_) | None => return answer,
            }
        }
        panic!("a redirect loop")
    }

    /// GET, following redirects that stay here.
    pub fn visit(&mut self, address: &str) -> Answer {
        let answer = self.get(address);
        self.follow(answer)
    }

    fn path(&self, address: &str) -> String {
        address
            .strip_prefix(&self.origin)
            .unwrap_or(address)
            .to_owned()
    }

    /// What it sends as `Cookie`.
    pub fn cookie_header(&self) -> String {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        cookies.join("; ")
    }

    fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let cookies = self.cookie_header();
        let own: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let mut all = [headers, &own].concat();
        if !cookies.is_empty() {
            all.push(("Cookie", &cookies));
        }
        let answer = Connection::open(self.port)
            .unwrap()
            .send(method, path, &all, body);
        for cookie in answer.headers_named("set-cookie") {
            let (pair, attributes) = cookie.split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }
}

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// A port of 127.0.0.1 that nobody listens on, and nobody else gets: none of those that the system
/// itself hands out, or somebody had it before its server is up.
pub fn free_port() -> u16 {
    const PORTS: std::ops::Range<u32> = 10_000..20_000;
    static DRAWN: AtomicU32 = AtomicU32::new(0);
    let nth = |n: u32| PORTS.start + (std::process::id() * 701 + n) % (PORTS.end - PORTS.start);
    let mut drawn = (0..PORTS.end).map(|_| nth(DRAWN.fetch_add(1, Ordering::Relaxed)) as u16);
    drawn
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .unwrap()
}

/// The same as an address.
pub fn free_address() -> String {
    format!("127.0.0.1:{}", free_port())
}

/// Head and body of the answer to one request, as to the admin listener: the header set of pages is
/// not asked for.
pub fn ask_alone(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}
