use std::collections::HashMap;
use std::env;
use std::error::Error;

use openidconnect::core::{CoreAuthenticationFlow, CoreClient, CoreProviderMetadata, CoreUserInfoClaims};
use openidconnect::url::Url;
use openidconnect::{
    reqwest, AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl, Nonce, OAuth2TokenResponse,
    PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, TokenResponse,
};
use tiny_http::{Header, Response, Server};

/// What a sign-in that was begun must come back with.
type Begun = (CsrfToken, Nonce, PkceCodeVerifier);

fn header(line: &str) -> Header {
    line.parse().expect("a header")
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let setting = |name: &str, usual: &str| env::var(name).unwrap_or_else(|_| usual.to_owned());
    let home = format!("http://localhost:{}", setting("PORT", "3000"));
    // No redirects: they would lead this program wherever a server says.
    let mut http = reqwest::blocking::Client::builder().redirect(reqwest::redirect::Policy::none());
    if let Ok(file) = env::var("CA_FILE") {
        http = http.add_root_certificate(reqwest::Certificate::from_pem(&std::fs::read(file)?)?);
    }
    let http = http.build()?;
    let issuer = IssuerUrl::new(setting("ISSUER", "http://localhost:8080"))?;
    let metadata = CoreProviderMetadata::discover(&issuer, &http)?;
    let secret = ClientSecret::new(env::var("CLIENT_SECRET")?);
    let client = CoreClient::from_provider_metadata(metadata, ClientId::new("web-rust".to_owned()), Some(secret))
        .set_redirect_uri(RedirectUrl::new(format!("{home}/callback"))?);
    let finish = |url: &Url, begun: Option<Begun>| -> Result<String, Box<dyn Error + Send + Sync>> {
        let (state, nonce, verifier) = begun.ok_or("no sign-in was begun here")?;
        let sent: HashMap<String, String> = url.query_pairs().into_owned().collect();
        if sent.get("state") != Some(state.secret()) {
            return Err("the state is another one".into());
        }
        let code = AuthorizationCode::new(sent.get("code").cloned().ok_or_else(|| format!("no code: {sent:?}"))?);
        let token = client.exchange_code(code)?.set_pkce_verifier(verifier).request(&http)?;
        let id_token = token.id_token().ok_or("no ID token")?;
        let subject = id_token.claims(&client.id_token_verifier(), &nonce)?.subject().clone();
        let info: CoreUserInfoClaims = client.user_info(token.access_token().clone(), Some(subject))?.request(&http)?;
        let name = info.name().and_then(|names| names.get(None)).ok_or("no name")?;
        Ok(format!("Signed in as {}", name.as_str()))
    };

    let server = Server::http(home.trim_start_matches("http://"))?;
    let mut under_way: HashMap<String, Begun> = HashMap::new();
    for request in server.incoming_requests() {
        let Ok(url) = Url::parse(&home)?.join(request.url()) else { continue };
        let cookies = request.headers().iter().filter(|header| header.field.equiv("Cookie"));
        let mut pairs = cookies.flat_map(|header| header.value.as_str().split("; "));
        let named = pairs.find_map(|pair| pair.strip_prefix("sign_in=")).unwrap_or_default().to_owned();
        let done = match url.path() {
            "/login" => {
                let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
                let flow = CoreAuthenticationFlow::AuthorizationCode;
                let asked = client.authorize_url(flow, CsrfToken::new_random, Nonce::new_random);
                let (to, state, nonce) =
                    asked.add_scope(Scope::new("profile".to_owned())).set_pkce_challenge(challenge).url();
                let id = CsrfToken::new_random().secret().clone();
                // And Secure, with https.
                let cookie = format!("Set-Cookie: sign_in={id}; HttpOnly; SameSite=Lax; Path=/");
                under_way.insert(id, (state, nonce, verifier));
                let answer = Response::from_string("").with_status_code(302);
                request.respond(answer.with_header(header(&format!("Location: {to}"))).with_header(header(&cookie)))
            }
            "/callback" => match finish(&url, under_way.remove(&named)) {
                Ok(text) => request.respond(Response::from_string(text)),
                Err(error) => {
                    eprintln!("{error}"); // names error and error_description
                    request.respond(Response::from_string("The sign-in failed. Try again.").with_status_code(400))
                }
            },
            _ => request.respond(Response::from_string("Not signed in: go to /login")),
        };
        if let Err(error) = done {
            eprintln!("{error}"); // the browser has gone
        }
    }
    Ok(())
}
