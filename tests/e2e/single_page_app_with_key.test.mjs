// oidc-client-ts (npm) with its setting `dpop`, in a browser, for a page of another origin than the provider: the program
// users.js of docs/connect/single-page-app.md. The browser itself decides what the page may send and see (CORS).

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { beforeEach, describe, test } from "node:test";
import { alice, decide, enterPassword } from "./browser.mjs";
import { registerAndSettle } from "./gatepost.mjs";
import { dev, directory, letSomebodyIn, setScene, someone } from "./scene.mjs";

const library = await readFile(new URL("node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js", import.meta.url));
const program = await readFile(new URL("connect/single-page-app/users.js", import.meta.url), "utf8");

const page = `<!doctype html><title>Shop</title><link rel="icon" href="data:,"><h1>Shop</h1>
<script src="/oidc-client-ts.js"></script><script type="module" src="/users.js"></script>`;

describe("a single-page app that holds the key of its tokens", { timeout: 200_000 }, () => {
  let origin, server;
  // What the page asked the provider since the test began, and what came back.
  const asked = [];

  setScene({ prepare, clear: () => server?.close() });
  letSomebodyIn();

  async function prepare() {
    server = createServer(serve).listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `http://127.0.0.1:${server.address().port}`;
    await registerAndSettle(directory, {
      resources: [{ name: "https://api.example.com" }],
      resource_scopes: [{ name: "orders.read", resources: ["https://api.example.com"] }],
      clients: [application()],
    });
  }

  function application() {
    return {
      client_id: "shop",
      client_name: "Shop",
      token_endpoint_auth_method: "none",
      redirect_uris: [`${origin}/`],
      post_logout_redirect_uris: [`${origin}/`],
      allowed_cors_origins: [origin],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      scope: "openid profile offline_access orders.read",
      dpop_bound_access_tokens: true,
      dpop_nonce: true,
    };
  }

  function serve(request, response) {
    const { pathname } = new URL(request.url, "http://application");
    const scripts = { "/oidc-client-ts.js": library, "/users.js": program.replace("http://localhost:8080", dev.provider) };
    response.setHeader("Content-Type", `text/${pathname in scripts ? "javascript" : "html"}; charset=utf-8`);
    response.end(scripts[pathname] ?? page);
  }

  beforeEach(async () => {
    asked.length = 0;
    someone.page.on("response", (response) => {
      const request = response.request();
      const { pathname } = new URL(request.url());
      // What the browser asks on its own, before the page's request, is not the page's.
      if (request.method() === "OPTIONS" || !pathname.startsWith("/connect/")) return;
      const proof = request.headers().dpop;
      const form = new URLSearchParams(request.postData() ?? "");
      asked.push({ pathname, url: request.url(), status: response.status(), form, proof: proof && opened(proof) });
    });
    await signIn();
  });

  function opened(jwt) {
    const [header, claims] = jwt.split(".").slice(0, 2).map((part) => JSON.parse(Buffer.from(part, "base64url")));
    return { header, claims };
  }

  // RFC 7638.
  function thumbprint({ crv, kty, x, y }) {
    return createHash("sha256").update(JSON.stringify({ crv, kty, x, y })).digest("base64url");
  }

  // What the page's script answers, which is given `users`, `call` and `given`.
  function inPage(ask, given) {
    const evaluated = `(async () => (${ask})({ ...(await import("/users.js")), given: ${JSON.stringify(given)} }))()`;
    return someone.page.evaluate(evaluated);
  }

  // The library stores what it awaits before it leads the browser away.
  async function leave(how) {
    await inPage(how).catch((error) => assert.match(String(error), /navigation|context was destroyed/i));
  }

  async function signIn() {
    await someone.page.goto(origin);
    await leave(({ users }) => void users.signinRedirect());
    await enterPassword(someone.page, alice);
    await decide(someone.page, "allow");
    await someone.page.waitForURL(`${origin}/?**`);
    await inPage(({ users }) => users.signinCallback().then(() => {}));
  }

  const stored = () => inPage(async ({ users }) => ({ ...(await users.getUser()) }));

  function refresh() {
    const failed = ({ error, message }) => ({ error: error ?? message });
    return inPage(`({ users }) => users.signinSilent().then((user) => ({ ...user }), ${failed})`);
  }

  function userinfo() {
    const ask = async ({ call, given }) => {
      const answer = await call(given);
      return { status: answer.status, claims: await answer.json() };
    };
    return inPage(ask, `${dev.provider}/connect/userinfo`);
  }

  const at = (path) => asked.filter(({ pathname }) => pathname === `/connect/${path}`);
  const statuses = (path) => at(path).map(({ status }) => status);

  test("binds its code to a key, and redeems it once it was told a nonce", async () => {
    const [authorize] = at("authorize");
    const [first, second] = at("token");
    assert.deepEqual(statuses("token"), [400, 200]);
    const key = thumbprint(second.proof.header.jwk);
    assert.equal(new URL(authorize.url).searchParams.get("dpop_jkt"), key);
    assert.equal(first.proof.claims.nonce, undefined);
    assert.ok(second.proof.claims.nonce);
    assert.equal(first.form.get("code"), second.form.get("code"), "the refusal spends no code");
    assert.deepEqual([...second.form.keys()].filter((name) => /secret|assertion/.test(name)), []);
    const user = await stored();
    assert.equal(user.token_type, "DPoP");
    assert.deepEqual(opened(user.access_token).claims.cnf, { jkt: key });
  });

  test("asks UserInfo with a proof, and is refused without one", async () => {
    const { status, claims } = await userinfo();
    assert.deepEqual([status, claims.name], [200, "Alice Liddell"]);
    assert.deepEqual(statuses("userinfo"), [401, 200]);
    const [, { proof }] = at("userinfo");
    assert.ok(proof.claims.ath && proof.claims.nonce);
    assert.equal((await userinfo()).status, 200);
    assert.deepEqual(statuses("userinfo"), [401, 200, 200], "the nonce is kept");
    const bare = await inPage(async ({ users, given }) => {
      const { access_token } = await users.getUser();
      const answer = await fetch(given, { headers: { Authorization: `Bearer ${access_token}` } });
      return { status: answer.status, challenge: answer.headers.get("WWW-Authenticate") };
    }, `${dev.provider}/connect/userinfo`);
    assert.equal(bare.status, 401);
    assert.match(bare.challenge, /^DPoP .*error="invalid_token"/);
  });

  test("refreshes with the same key, also after the page was loaded anew", async () => {
    const before = await stored();
    await someone.page.reload();
    asked.length = 0;
    const after = await refresh();
    assert.deepEqual(statuses("token"), [200], "with the nonce that lies beside the key");
    assert.notEqual(after.access_token, before.access_token);
    assert.notEqual(after.refresh_token, before.refresh_token);
    assert.deepEqual(opened(after.access_token).claims.cnf, opened(before.access_token).claims.cnf);
    assert.equal((await userinfo()).status, 200);
  });

  test("refreshes when its nonce is too old", async () => {
    await inPage(async ({ users }) => {
      const { store } = users.settings.dpop;
      const state = await store.get("shop");
      await store.set("shop", { ...state, nonce: "c2l4IG1pbnV0ZXMgb2xk" });
    });
    asked.length = 0;
    assert.equal((await refresh()).token_type, "DPoP");
    const [first, second] = at("token");
    assert.deepEqual(statuses("token"), [400, 200]);
    assert.equal(first.form.get("refresh_token"), second.form.get("refresh_token"), "the refusal spends no refresh token");
  });

  test("cannot refresh with another key, and goes on with its own", async () => {
    await inPage(async ({ users }) => {
      const { store } = users.settings.dpop;
      globalThis.own = await store.remove("shop");
    });
    assert.deepEqual(await refresh(), { error: "invalid_grant" });
    await inPage(({ users }) => users.settings.dpop.store.set("shop", own));
    assert.equal((await refresh()).token_type, "DPoP");
  });

  test("forgets the key when the person signs out", async () => {
    await leave(({ users }) => void users.signoutRedirect());
    await someone.page.waitForURL((url) => url.origin === origin && !url.searchParams.has("code"));
    assert.deepEqual(await inPage(({ users }) => users.settings.dpop.store.getAllKeys()), []);
  });
});
