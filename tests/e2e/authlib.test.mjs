// Authlib (PyPI) against Gatepost, in a Python environment of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, afterEach, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { alice, authorizeAsAlice, decideForDevice, demo, device, direct, offline, run, service, startProvider } from "./foreign_clients.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const environment = join(here, ".venv");

// Made once, and anew when other versions are asked for.
async function preparePython() {
  const requirements = join(here, "requirements.txt");
  const made = join(environment, "made-from.txt");
  const wanted = await readFile(requirements, "utf8");
  if (existsSync(made) && (await readFile(made, "utf8")) === wanted) return;
  run("python3", ["-m", "venv", "--clear", environment]);
  run(join(environment, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
  await writeFile(made, wanted);
}

// Answers a function that has the library do something: (name, arguments) => its answer.
function startAuthlib() {
  const python = spawn(join(environment, "bin/python"), ["-W", "ignore", join(here, "authlib_client.py")], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: python.stdout })[Symbol.asyncIterator]();
  const ask = async (name, wish = {}) => {
    python.stdin.write(`${JSON.stringify({ do: name, ...wish })}\n`);
    const { value, done } = await lines.next();
    assert.ok(!done, "the Python process has ended");
    const answer = JSON.parse(value);
    assert.equal(answer.exception, undefined);
    return answer;
  };
  ask.end = async () => {
    python.stdin.end();
    if (python.exitCode === null) await once(python, "exit");
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
    ask = startAuthlib();
    assert.deepEqual(await ask("discover", { issuer: provider.issuer, ...client, ...further }), { issuer: provider.issuer });
  }

  async function signIn(scope, { client_id, client_secret } = demo) {
    await discover({ client_id, client_secret }, { scope, redirect_uri: provider.redirectUri });
    const { url, state } = await ask("authorization_url");
    const answer = await authorizeAsAlice(url, provider.redirectUri);
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

  test("is told that a code was used", async () => {
    const answer = await signIn("openid");
    await ask("fetch_token", answer);
    assert.equal((await ask("fetch_token", answer)).error, "invalid_grant");
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
});
