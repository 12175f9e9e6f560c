// Authlib (PyPI) against Gatepost, in a Python environment of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { alice, authorizeAsAlice, decideForDevice, demo, device, direct, everyType, offline, service, startProvider } from "./foreign_clients.mjs";
import { preparePython, python } from "./python.mjs";

const here = dirname(fileURLToPath(import.meta.url));

// Answers a function that has the library do something: (name, arguments) => its answer.
function startAuthlib() {
  const library = spawn(python, ["-W", "ignore", join(here, "authlib_client.py")], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: library.stdout })[Symbol.asyncIterator]();
  const ask = async (name, wish = {}) => {
    library.stdin.write(`${JSON.stringify({ do: name, ...wish })}\n`);
    const { value, done } = await lines.next();
    assert.ok(!done, "the Python process has ended");
    const answer = JSON.parse(value);
    assert.equal(answer.exception, undefined);
    return answer;
  };
  ask.end = async () => {
    library.stdin.end();
    if (library.exitCode === null) await once(library, "exit");
  };
  return ask;
}

describe("Authlib", { timeout: 300_000 }, () => {
  let provider, ask;

  before(async () => {
    await preparePython();
    provider = await startProvider();
  });

  after(async () => {
    await provider?.close();
  });

  afterEach(async () => {
    await ask?.end();
  });

  async function discover(client, further = {}) {
    await ask?.end();
    ask = startAuthlib();
    assert.deepEqual(await ask("discover", { issuer: provider.issuer, ...client, ...further }), { issuer: provider.issuer });
  }

  async function signIn(scope, { client_id, client_secret } = demo, wishes = {}, cookies = undefined) {
    await discover({ client_id, client_secret }, { scope, redirect_uri: provider.redirectUri });
    const { url, state } = await ask("authorization_url", wishes);
    const answer = await authorizeAsAlice(url, provider.redirectUri, cookies);
    return { answer: answer.href, state };
  }

  test("finds nothing wrong with the metadata", async () => {
    await discover(demo);
    assert.deepEqual(await ask("validate_metadata"), {});
  });

  test("redeems a code with PKCE, validates the id_token and asks userinfo", async () => {
    const answer = await signIn("openid profile roles");
    const { token, claims } = await ask("fetch_token", answer);
    assert.equal(token.token_type, "Bearer");
    const info = (await ask("userinfo")).claims;
    assert.equal(info.sub, claims.sub);
    assert.equal(info.name, "Alice Liddell");
  });

  test("steps up by acr_values and by claims", async () => {
    const [before, weak] = [new Map(), new Map()];
    const acr = async (wishes, cookies) => {
      const answer = await signIn("openid", demo, wishes, cookies);
      return (await ask("fetch_token", answer)).claims.acr;
    };
    const essential = { claims: JSON.stringify({ id_token: { acr: { essential: true, values: ["2"] } } }) };
    assert.equal(await acr({}, weak), "1");
    assert.equal(await acr(essential, before), "2", "with an app that was set up on the way");
    assert.equal(await acr({ acr_values: "2" }, weak), "2", "the standing session was made stronger");
    await provider.forgetFactors();
  });

  test("is told that a code was used", async () => {
    const answer = await signIn("openid");
    await ask("fetch_token", answer);
    assert.equal((await ask("fetch_token", answer)).error, "invalid_grant");
  });

  test("hands its request over before the browser comes (PAR)", async () => {
    const pushing = { client_id: "pushing", client_secret: "a-secret-of-the-client-that-pushes" };
    await provider.register([
      {
        client_id: pushing.client_id,
        client_name: pushing.client_id,
        redirect_uris: [provider.redirectUri],
        response_types: ["code"],
        grant_types: ["authorization_code"],
        scope: "openid profile",
        require_pushed_authorization_requests: true,
        secrets: [{ value: pushing.client_secret }],
      },
    ]);
    await discover(pushing, { scope: "openid profile", redirect_uri: provider.redirectUri });
    const { url, state } = await ask("authorization_url");
    const direct = await authorizeAsAlice(url, provider.redirectUri);
    assert.equal(direct.searchParams.get("error"), "invalid_request");
    const pushed = await ask("push", { url });
    assert.deepEqual([...new URL(pushed.url).searchParams.keys()], ["client_id", "request_uri"]);
    const answer = await authorizeAsAlice(pushed.url, provider.redirectUri);
    const { claims } = await ask("fetch_token", { answer: answer.href, state });
    assert.equal((await ask("userinfo")).claims.sub, claims.sub);
    const elsewhere = new URL(url);
    elsewhere.searchParams.set("redirect_uri", "https://elsewhere.example/callback");
    assert.equal((await ask("push", { url: elsewhere.href })).error, "invalid_request");
    await discover({ ...pushing, client_secret: "wrong" }, { scope: "openid", redirect_uri: provider.redirectUri });
    assert.equal((await ask("push", { url })).error, "invalid_client");
  });

  // What came back by fragment or form, as the library reads it.
  async function cameBack(response_type, response_mode, scope = "openid profile") {
    await discover(everyType, { scope, redirect_uri: provider.redirectUri });
    const { url, state } = await ask("authorization_url", { response_type, response_mode });
    const answer = await authorizeAsAlice(url, provider.redirectUri);
    const fragment = response_mode === "form_post" ? await answer.text() : answer.hash.slice(1);
    return { answer: `${provider.redirectUri}#${fragment}`, state };
  }

  for (const response_mode of ["fragment", "form_post"]) {
    test(`validates what the implicit types bring by ${response_mode}`, async () => {
      for (const response_type of ["id_token", "id_token token"]) {
        const came = await cameBack(response_type, response_mode);
        const { token, claims } = await ask("from_browser", came);
        assert.equal("access_token" in token, response_type === "id_token token");
        assert.equal("at_hash" in claims, "access_token" in token);
        if ("access_token" in token) assert.equal((await ask("userinfo")).claims.sub, claims.sub);
      }
    });

    test(`validates what the hybrid types bring by ${response_mode}, and redeems the code`, async () => {
      for (const response_type of ["code id_token", "code id_token token"]) {
        const came = await cameBack(response_type, response_mode);
        const { claims, redeemed } = await ask("from_browser", came);
        assert.ok(claims.c_hash);
        assert.equal(redeemed.claims.sub, claims.sub);
        assert.ok(redeemed.token.access_token);
      }
    });
  }

  test("is refused a token through the browser with an identity scope alone", async () => {
    await discover(everyType, { scope: "openid profile", redirect_uri: provider.redirectUri });
    const { url } = await ask("authorization_url", { response_type: "token", response_mode: "fragment" });
    const { hash } = await authorizeAsAlice(url, provider.redirectUri);
    assert.equal(new URLSearchParams(hash.slice(1)).get("error"), "unauthorized_client");
  });

  for (const client of offline) {
    const scope = "openid profile offline_access orders.read";

    test(`refreshes, introspects and revokes (${client.kind})`, async () => {
      const answer = await signIn(scope, client);
      const { token } = await ask("fetch_token", answer);
      const next = (await ask("refresh", { refresh_token: token.refresh_token })).token;
      assert.notEqual(next.refresh_token, token.refresh_token);
      assert.equal((await ask("userinfo")).claims.name, "Alice Liddell");
      const alive = await ask("introspect", { token: next.access_token, token_type_hint: "access_token" });
      assert.equal(alive.claims.active, true);
      assert.equal(alive.claims.client_id, client.client_id);
      assert.equal((await ask("revoke", { token: next.access_token, token_type_hint: "access_token" })).status, 200);
      assert.deepEqual((await ask("introspect", { token: next.access_token })).claims, { active: false });
      assert.equal((await ask("revoke", { token: next.refresh_token })).status, 200);
      assert.equal((await ask("refresh", { refresh_token: next.refresh_token })).error, "invalid_grant");
    });
  }

  test("brings a password along, and refreshes, introspects and revokes what it gets", async () => {
    await discover(direct, { scope: "openid profile offline_access" });
    const { token } = await ask("password", alice);
    assert.equal(token.scope, "openid profile offline_access");
    assert.equal((await ask("userinfo")).claims.name, "Alice Liddell");
    const next = (await ask("refresh", { refresh_token: token.refresh_token })).token;
    assert.equal((await ask("introspect", { token: next.access_token })).claims.active, true);
    assert.equal((await ask("revoke", { token: next.refresh_token, token_type_hint: "refresh_token" })).status, 200);
    assert.deepEqual((await ask("introspect", { token: next.access_token })).claims, { active: false });
    assert.equal((await ask("password", { ...alice, password: "wrong" })).error, "invalid_grant");
  });

  test("is a device: waits, is let in, and gets its tokens once", async () => {
    await discover(device, { scope: "openid profile offline_access" });
    const { waiting } = await ask("device_authorization");
    assert.equal((await ask("device_token", waiting)).error, "authorization_pending");
    assert.match(await decideForDevice(waiting.verification_uri_complete), /Your device is connected/);
    const { token } = await ask("device_token", waiting);
    assert.equal(token.scope, "openid profile offline_access");
    assert.equal((await ask("userinfo")).claims.name, "Alice Liddell");
    assert.equal((await ask("device_token", waiting)).error, "invalid_grant");
    assert.equal((await ask("revoke", { token: token.refresh_token })).status, 200);
    assert.equal((await ask("refresh", { refresh_token: token.refresh_token })).error, "invalid_grant");
  });

  test("gets a token for itself", async () => {
    await discover(service, { scope: "orders.read" });
    assert.equal((await ask("client_credentials")).token.scope, "orders.read");
  });

  test("is told that its secret is wrong", async () => {
    await discover({ ...service, client_secret: "wrong" });
    assert.equal((await ask("client_credentials")).error, "invalid_client");
  });

  for (const [alg, kind, options] of [
    ["RS256", "rsa", { modulusLength: 2048 }],
    ["ES256", "ec", { namedCurve: "P-256" }],
    ["EdDSA", "ed25519", {}],
  ]) {
    test(`authenticates by a key of its own (${alg})`, async () => {
      const [own, foreign] = [1, 2].map(() => generateKeyPairSync(kind, options));
      const client_id = `by-key-${alg.toLowerCase()}`;
      await provider.register([
        {
          client_id,
          grant_types: ["client_credentials"],
          response_types: [],
          scope: "orders.read",
          token_endpoint_auth_method: "private_key_jwt",
          token_endpoint_auth_signing_alg: alg,
          jwks: { keys: [{ ...own.publicKey.export({ format: "jwk" }), kid: "k" }] },
        },
      ]);
      const signWith = async ({ privateKey }) => {
        await discover({ client_id, client_secret: null }, { scope: "orders.read" });
        const key = privateKey.export({ type: "pkcs8", format: "pem" });
        await ask("sign_for_oneself", { key, kind, kid: "k", alg });
      };
      await signWith(foreign);
      assert.equal((await ask("client_credentials")).error, "invalid_client");
      await ask.end();
      await signWith(own);
      const { token } = await ask("client_credentials");
      assert.equal(token.scope, "orders.read");
      assert.equal((await ask("introspect", { token: token.access_token })).claims.client_id, client_id);
      assert.equal((await ask("revoke", { token: token.access_token })).status, 200);
      assert.deepEqual((await ask("introspect", { token: token.access_token })).claims, { active: false });
    });
  }
});
