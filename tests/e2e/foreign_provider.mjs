// Identity providers that nobody here wrote: npm's oidc-provider, with pages of its own, and a small one of the kind of
// GitHub, which knows OAuth 2.0 and nothing of OpenID. Both on 127.0.0.1, another site than localhost.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const clientSecret = "a-secret-of-gatepost-at-the-other-provider";

// Somebody's account there: what it says depends on the name alone.
function claimsOf(name) {
  return {
    sub: `id-of-${name}`,
    name: `${name[0].toUpperCase()}${name.slice(1)} Upstream`,
    email: `${name}@upstream.example`,
    email_verified: true,
    groups: name === "carol" ? ["staff"] : [],
  };
}

// Answers { issuer, registration(name), rotate, delay, broken, visits, close }. `gatepost` is the base URL of the server
// that sends its people here, under each of `names`.
export async function startForeignProvider(gatepost, names) {
  const server = createServer((request, response) => void serve(request, response));
  const issuer = await listening(server);
  // `delay` and `broken` are about what the other server asks, not the person's browser.
  const running = { issuer, delay: 0, broken: false, visits: [] };
  const store = new Map();
  let provider;

  running.rotate = () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const kid = randomBytes(4).toString("hex");
    provider = openProvider(issuer, gatepost, names, store, { ...privateKey.export({ format: "jwk" }), kid, use: "sig" });
    return kid;
  };
  running.rotate();

  async function serve(request, response) {
    const { pathname } = new URL(request.url, issuer);
    running.visits.push(pathname);
    if (["/token", "/jwks", "/me"].includes(pathname)) {
      await new Promise((done) => setTimeout(done, running.delay));
      if (running.broken) return void response.writeHead(500).end("a stack trace of the other provider");
    }
    if (pathname.startsWith("/interaction/")) return interact(provider, request, response).catch(() => spent(response));
    return provider.callback()(request, response);
  }

  running.close = () => closed(server);
  running.registration = (name, changes = {}) => ({
    name,
    display_name: "Foreign <Works> & Söhne",
    issuer,
    client_id: "gatepost",
    client_secret: clientSecret,
    claims: { groups: "role" },
    role_map: { staff: "admin" },
    ...changes,
  });
  return running;
}

async function listening(server) {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${server.address().port}`;
}

async function closed(server) {
  server.close();
  server.closeAllConnections?.();
  await once(server, "close");
}

function openProvider(issuer, gatepost, names, store, key) {
  const provider = new Provider(issuer, {
    adapter: adapterOver(store),
    jwks: { keys: [key] },
    cookies: { keys: ["a-key-for-cookies"] },
    clients: [
      {
        client_id: "gatepost",
        client_secret: clientSecret,
        redirect_uris: names.map((name) => `${gatepost}/external/${name}/callback`),
        post_logout_redirect_uris: names.map((name) => `${gatepost}/external/${name}/signed-out`),
        backchannel_logout_uri: `${gatepost}/external/${names[0]}/logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ["sub"], profile: ["name", "groups"], email: ["email", "email_verified"] },
    // It answers select_account with an error, and says so.
    discovery: { prompt_values_supported: ["none", "login", "consent"] },
    pkce: { methods: ["S256"], required: () => true },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context, form) => {
          context.body = page("Sign out of the other provider?", `${form}<button form="op.logoutForm" name="logout" value="yes">Yes, out</button>`);
        },
        // The one that comes with it fetches its typeface from the internet.
        postLogoutSuccessSource: (context) => {
          context.body = page("Signed out of the other provider", "");
        },
      },
    },
    findAccount: (context, accountId) => ({ accountId, claims: () => claimsOf(accountId.replace("id-of-", "")) }),
    interactions: { url: (context, interaction) => `/interaction/${interaction.uid}` },
    // Whoever signs in has agreed.
    loadExistingGrant: async (context) => {
      const { client, session } = context.oidc;
      const grant = new context.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId });
      grant.addOIDCScope("openid profile email");
      await grant.save();
      return grant;
    },
    ttl: { Interaction: 600, Session: 3_600, Grant: 3_600, AccessToken: 600, IdToken: 600 },
    renderError: (context, out) => {
      context.body = page("The other provider is not pleased", JSON.stringify(out));
    },
  });
  // It warns of plain http, among other things.
  provider.on("server_error", (context, error) => console.error(error));
  return provider;
}

// The same store for a provider of other keys.
function adapterOver(store) {
  return class {
    constructor(model) {
      this.model = model;
    }
    key = (id) => `${this.model}:${id}`;
    async upsert(id, payload) {
      store.set(this.key(id), payload);
      if (payload.uid) store.set(`uid:${payload.uid}`, payload);
    }
    find = async (id) => store.get(this.key(id));
    findByUid = async (uid) => store.get(`uid:${uid}`);
    findByUserCode = async () => undefined;
    consume = async (id) => void (store.get(this.key(id)).consumed = Math.floor(Date.now() / 1_000));
    destroy = async (id) => void store.delete(this.key(id));
    async revokeByGrantId(grantId) {
      for (const [key, payload] of store) if (payload.grantId === grantId) store.delete(key);
    }
  };
}

// Somebody went back to a sign-in that is over.
function spent(response) {
  response.writeHead(400, { "Content-Type": "text/html" }).end(page("The other provider is done with that", ""));
}

// Its sign-in page: a name, no password, and a way out.
async function interact(provider, request, response) {
  if (request.method === "GET") {
    const { prompt } = await provider.interactionDetails(request, response);
    const form = `<p id="reasons">${prompt.reasons.join(" ")}</p><form method="post">
      <label>Name there <input name="login"></label>
      <button name="decision" value="in">Sign in there</button><button name="decision" value="cancel">Never mind</button></form>`;
    return void response.writeHead(200, { "Content-Type": "text/html" }).end(page("The other provider", form));
  }
  const form = await formOf(request);
  const result =
    form.get("decision") === "in"
      ? { login: { accountId: `id-of-${form.get("login")}`, amr: ["otp", "mfa"] } }
      : { error: "access_denied", error_description: "<b>the other provider's own words</b>" };
  return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

// The small one of GitHub's kind. `people` maps a number to what the account says.
export async function startOAuthOnlyProvider() {
  const codes = new Map();
  const running = { id: 583231, login: "octocat", visits: [] };
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://127.0.0.1");
    running.visits.push(pathname);
    const json = (value) => void response.writeHead(200, { "Content-Type": "application/json; charset=utf-8" }).end(JSON.stringify(value));
    if (pathname === "/login/oauth/authorize") {
      const code = randomBytes(10).toString("hex");
      codes.set(code, searchParams.get("redirect_uri"));
      const back = new URL(searchParams.get("redirect_uri"));
      back.search = new URLSearchParams({ code, state: searchParams.get("state") });
      return void response.writeHead(302, { Location: back }).end();
    }
    if (pathname === "/login/oauth/access_token") {
      const form = await formOf(request);
      // Errors are 200 there, and everything is a form unless JSON is asked for.
      const right = codes.delete(form.get("code")) && form.get("client_secret") === clientSecret && form.get("client_id") === "gatepost";
      const answer = right
        ? { access_token: "gho_of-octocat", scope: "read:user", token_type: "bearer" }
        : { error: "bad_verification_code", error_description: "The code passed is incorrect or expired." };
      if (/json/.test(request.headers.accept)) return json(answer);
      return void response.writeHead(200, { "Content-Type": "application/x-www-form-urlencoded" }).end(`${new URLSearchParams(answer)}`);
    }
    // Nobody without a name of their own is served.
    const known = request.headers.authorization === "Bearer gho_of-octocat" && request.headers["user-agent"];
    if (pathname === "/user" && known) return json({ login: running.login, id: running.id, name: "The Octocat", email: null });
    return void response.writeHead(known ? 404 : 403).end();
  });
  const origin = await listening(server);
  running.close = () => closed(server);
  running.registration = (name) => ({
    name,
    display_name: "Octopus",
    authorization_endpoint: `${origin}/login/oauth/authorize`,
    token_endpoint: `${origin}/login/oauth/access_token`,
    userinfo_endpoint: `${origin}/user`,
    subject_claim: "id",
    client_id: "gatepost",
    client_secret: clientSecret,
    scope: "read:user",
    claims: { name: "name", login: "nickname" },
  });
  return running;
}

function page(title, body) {
  return `<!doctype html><html lang="en"><title>${title}</title><link rel="icon" href="data:,"><h1>${title}</h1>${body}</html>`;
}

async function formOf(request) {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  return new URLSearchParams(text);
}
