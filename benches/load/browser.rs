//! A person at the provider's pages: cookies, redirects, and forms filled in as they come. It knows
//! no provider's pages by heart, so that the same person can sign in anywhere pages work without
//! scripts.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::http::{Answer, Client, Outgoing};
use crate::provider::Provider;

/// A browser with its cookies.
#[derive(Clone, Debug, Default)]
pub struct Browser {
    cookies: BTreeMap<String, String>,
    /// Sent as `X-Forwarded-For`, so that one machine can be many sources.
    pub source: Option<String>,
}

/// A form of a page, filled in but for user name and password.
#[derive(Clone, Debug)]
pub struct Form {
    action: String,
    fields: Vec<(String, String)>,
    username: Option<String>,
    password: Option<String>,
}

impl Browser {
    /// The `Cookie` header.
    pub fn cookie(&self) -> String {
        self.cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Gets a page, or posts a form, without following anything.
    pub fn send(
        &mut self,
        client: &mut Client,
        path: &str,
        form: Option<&str>,
    ) -> Result<Answer, String> {
        let cookie = self.cookie();
        let cookie = (!cookie.is_empty()).then_some(cookie.as_str());
        let forwarded_for = self.source.as_deref();
        let answer = client
            .send(&Outgoing {
                path,
                cookie,
                form,
                forwarded_for,
                ..Outgoing::default()
            })?
            .clone();
        for cookie in answer.headers("set-cookie") {
            let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
            if let Some((name, value)) = pair.split_once('=') {
                if value.is_empty() || attributes.to_ascii_lowercase().contains("max-age=0") {
                    self.cookies.remove(name);
                } else {
                    self.cookies.insert(name.to_owned(), value.to_owned());
                }
            }
        }
        Ok(answer)
    }

    /// Goes where redirects lead, as long as they stay with the provider.
    pub fn follow(
        &mut self,
        client: &mut Client,
        provider: &Provider,
        mut answer: Answer,
    ) -> Result<Answer, String> {
        for _ in 0..10 {
            let Some(path) = answer
                .header("location")
                .and_then(|location| provider.path_of(location))
            else {
                return Ok(answer);
            };
            answer = self.send(client, &path, None)?;
        }
        Err(String::from("redirects without end"))
    }

    /// Opens a page of the provider.
    pub fn visit(
        &mut self,
        client: &mut Client,
        provider: &Provider,
        path: &str,
    ) -> Result<Answer, String> {
        let answer = self.send(client, path, None)?;
        self.follow(client, provider, answer)
    }

    /// Sends a form.
    pub fn submit(
        &mut self,
        client: &mut Client,
        form: &Form,
        (name, password): (&str, &str),
    ) -> Result<Answer, String> {
        let typed = [(&form.username, name), (&form.password, password)];
        let typed = typed
            .into_iter()
            .filter_map(|(field, value)| Some((field.as_deref()?, value)));
        let fields = form
            .fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(typed);
        let body = form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        self.send(client, &form.action, Some(&body))
    }

    /// Sends a form, and again when the provider is too busy to take it: what that costs shows in
    /// the latency.
    pub fn submit_patiently(
        &mut self,
        client: &mut Client,
        form: &Form,
        user: (&str, &str),
    ) -> Result<Answer, String> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let answer = self.submit(client, form, user)?;
            if answer.status != 503 || Instant::now() > deadline {
                return Ok(answer);
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// Goes through the pages, signing in and consenting, until the answer for the client is there.
    pub fn authorize(
        &mut self,
        client: &mut Client,
        provider: &Provider,
        path: &str,
    ) -> Result<Answer, String> {
        let mut answer = self.visit(client, provider, path)?;
        for _ in 0..5 {
            if answer.header("location").is_some() {
                return Ok(answer);
            }
            let form = Form::of(&answer, provider)?;
            let (username, password) = provider.user();
            answer = self.submit_patiently(client, &form, (&username, password))?;
            answer = self.follow(client, provider, answer)?;
        }
        Err(format!("no end of pages: {}", answer.text()))
    }
}

impl Form {
    /// The page's main form: the one with a password or a code, else the last one. Boxes are ticked,
    /// its first button is pressed.
    pub fn of(page: &Answer, provider: &Provider) -> Result<Form, String> {
        let text = page.expect(200)?.text();
        let forms: Vec<&str> = text
            .split("<form")
            .skip(1)
            .map(|rest| rest.split("</form").next().unwrap_or_default())
            .collect();
        let main = forms
            .iter()
            .find(|form| form.contains("type=\"password\"") || form.contains("one-time-code"))
            .or(forms.last());
        let main = main.ok_or_else(|| format!("a page without a form: {text}"))?;
        let action = attribute(main, "action").unwrap_or_default();
        let action = provider
            .path_of(&action)
            .ok_or_else(|| format!("a form that leads away: {action}"))?;
        let mut form = Form {
            action,
            fields: Vec::new(),
            username: None,
            password: None,
        };
        let mut button = None;
        for tag in main.split('<').skip(1) {
            let Some(name) = attribute(tag, "name") else {
                button = button.or(tag.starts_with("button").then_some(None));
                continue;
            };
            let value = attribute(tag, "value").unwrap_or_default();
            match (
                tag.split([' ', '\n']).next(),
                attribute(tag, "type").as_deref().unwrap_or("text"),
            ) {
                (Some("input"), "password") => form.password = Some(name),
                (Some("input"), "text" | "email") => form.username = Some(name),
                (Some("button"), _) | (Some("input"), "submit") => {
                    button = button.or(Some(Some((name, value))))
                }
                (Some("input"), _) => form.fields.push((name, value)),
                (Some(_) | None, _) => {}
            }
        }
        form.fields.extend(button.flatten());
        Ok(form)
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split('>').next()?.split_once(&format!(" {name}=\""))?;
    let value = rest.split('"').next()?;
    Some(
        value
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&amp;", "&"),
    )
}
