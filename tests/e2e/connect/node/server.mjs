import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import * as oidc from "openid-client";

const issuer = new URL(process.env.ISSUER ?? "http://localhost:8080");
const port = process.env.PORT ?? 3000;
const home = `http://localhost:${port}/`;
// Plain http is for this machine alone. With https the options stay empty.
const options = issuer.protocol === "http:" ? { execute: [oidc.allowInsecureRequests] } : {};
const secret = oidc.ClientSecretBasic(process.env.CLIENT_SECRET);
const provider = await oidc.discovery(issuer, "web", undefined, secret, options);
const sessions = new Map();

async function answer(url, session) {
  if (url.pathname === "/login") {
    Object.assign(session, { verifier: oidc.randomPKCECodeVerifier(), state: oidc.randomState() });
    return oidc.buildAuthorizationUrl(provider, {
      redirect_uri: `${home}callback`,
      scope: "openid profile email",
      state: session.state,
      code_challenge: await oidc.calculatePKCECodeChallenge(session.verifier),
      code_challenge_method: "S256",
    });
  }
  if (url.pathname === "/callback") {
    const checks = { pkceCodeVerifier: session.verifier, expectedState: session.state };
    for (const name of Object.keys(session)) delete session[name]; // each state counts once
    if (!checks.expectedState) throw new Error("no sign-in was begun here");
    const tokens = await oidc.authorizationCodeGrant(provider, url, checks);
    Object.assign(session, { user: tokens.claims(), idToken: tokens.id_token });
    session.info = await oidc.fetchUserInfo(provider, tokens.access_token, session.user.sub);
    return new URL(home);
  }
  if (url.pathname === "/logout") {
    const hint = session.idToken;
    for (const name of Object.keys(session)) delete session[name];
    return oidc.buildEndSessionUrl(provider, { id_token_hint: hint, post_logout_redirect_uri: home });
  }
  return undefined;
}

createServer(async (request, response) => {
  const url = new URL(request.url, home);
  const named = /(?:^|; )session=([\w-]+)/.exec(request.headers.cookie)?.[1];
  const session = sessions.get(named) ?? {}; // a name that was not given out here counts for nothing
  const keepAs = (id) => {
    sessions.delete(named);
    sessions.set(id, session);
    response.setHeader("Set-Cookie", `session=${id}; HttpOnly; SameSite=Lax; Path=/`); // and Secure, with https
  };
  try {
    const next = await answer(url, session);
    // Whoever signs in gets a new name: nobody else can have put it there.
    if (url.pathname === "/login" || url.pathname === "/callback") keepAs(randomUUID());
    if (next) return response.writeHead(302, { Location: next.href }).end();
    response.setHeader("Content-Type", "text/plain; charset=utf-8");
    response.end(session.info ? `Signed in as ${session.info.name}` : "Not signed in: go to /login");
  } catch (error) {
    console.error(error); // error.error and error.error_description say what Gatepost refused
    response.writeHead(400).end("The sign-in failed. Try again.");
  }
}).listen(port, "localhost", () => console.log(`open ${home}`));
