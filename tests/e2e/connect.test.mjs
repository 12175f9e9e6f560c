// The programs of docs/connect, each with the registration of its page, against the real binary. A page that registers a
// program for port 3000 is run at a free one.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { webcrypto } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, test } from "node:test";
import { alice, decide, enterPassword } from "./browser.mjs";
import { authorizeAsAlice, decideForDevice } from "./foreign_clients.mjs";
import { binary, environment, registerAndSettle, root, run } from "./gatepost.mjs";
import { freePorts } from "./nginx.mjs";
import { preparePython, python } from "./python.mjs";
import { dev, directory, letSomebodyIn, setScene, someone } from "./scene.mjs";

const at = (path) => join(root, "tests/e2e/connect", path);
const secret = "a-secret-that-a-page-does-not-show";
const children = [];

// The first registration of a page, with a secret for each that it reads from a file, and for `port`.
async function register(page, port = 3000) {
  const text = await readFile(join(root, `docs/connect/${page}.md`), "utf8");
  const [, registration] = text.match(/```json\n(.*?)```/s);
  const here = registration.replaceAll(/http:\/\/localhost:300[02]|https:\/\/intranet.example.com/g, `http://localhost:${port}`).replaceAll(/\{"file": "[^"]*"\}/g, `{"value": "${secret}"}`);
  await registerAndSettle(directory, JSON.parse(here));
  return text;
}

function start(program, args, settings, options = {}) {
  const env = { ...environment(), ISSUER: dev.provider, CLIENT_SECRET: secret, NODE_OPTIONS: webCrypto, ...settings };
  const child = spawn(program, args, { env, stdio: ["pipe", "pipe", "pipe"], ...options });
  const running = { child, output: "" };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (part) => (running.output += part));
  children.push({ child, isGroup: options.detached });
  return running;
}

// Node 18, Debian 12's, has it, but not as a global.
const webCrypto = globalThis.crypto ? "" : "--experimental-global-webcrypto";

async function until(running, holds, what, most = 600) {
  for (let tries = 0; tries < most; tries += 1) {
    if (await holds()) return;
    assert.equal(running.child.exitCode, null, running.output);
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.fail(`${what} does not come: ${running.output}`);
}

const answers = (running, url, most) => until(running, () => fetch(url, { redirect: "manual" }).then(() => true, () => false), url, most);

// What it printed when it ended by itself.
async function finished(running, code = 0) {
  if (running.child.exitCode === null) await once(running.child, "close");
  assert.equal(running.child.exitCode, code, running.output);
  return running.output;
}

// `begin` is the button by which a program wants a sign-in to begin.
async function signIn(home, begin) {
  const { page } = someone;
  await page.goto(`${home}login`);
  if (begin) await page.getByRole("button", { name: begin }).click();
  await enterPassword(page, alice);
  await page.waitForURL((url) => url.href.startsWith(home));
  await page.getByText("Signed in as Alice Liddell").waitFor();
}

// Types the commands of a page as they stand, where the page's files are, and signs in at what they start. Only what differs
// between machines is another: the port, and where the secret lies. `files` are those of tests/e2e/connect, each with its place.
async function typed(page, files, { settings = {}, begin, home = (port) => `http://localhost:${port}/` } = {}) {
  const [port] = await freePorts(1);
  const folder = join(directory, `typed-${page}`);
  await mkdir(join(folder, "bin"), { recursive: true });
  for (const [from, to] of Object.entries(files)) {
    await mkdir(dirname(join(folder, to)), { recursive: true });
    const text = await readFile(at(from), "utf8");
    await writeFile(join(folder, to), text.replace("http://localhost:8080", dev.provider));
  }
  const here = (text) => text.replaceAll("3000", String(port)).replaceAll("/etc/shop/secret", join(folder, "secret"));
  await writeFile(join(folder, "secret"), secret, { mode: 0o600 });
  const text = await readFile(join(root, `docs/connect/${page}.md`), "utf8");
  const [, registration] = text.match(/```json\n(.*?)```/s);
  await writeFile(join(folder, "registration.json"), here(registration));
  const commands = { sudo: 'exec "$@"', gatepost: `exec ${binary} "$@" --env-file ${join(directory, ".gatepost/env")}` };
  for (const [name, command] of Object.entries(commands)) {
    await writeFile(join(folder, "bin", name), `#!/bin/sh\n${command}\n`, { mode: 0o755 });
  }
  const [, block] = text.match(/```sh\n(.*?)```/s);
  const path = [join(folder, "bin"), dirname(python), process.env.PATH].join(":");
  const running = start("bash", ["-ec", here(block)], { PATH: path, PORT: String(port), ...settings }, { cwd: folder, detached: true });
  // What has to be built first may take minutes.
  await answers(running, home(port), 3_000);
  // What was registered is in force a second later.
  await pause(2_000);
  if (begin !== null) await signIn(home(port), begin);
  return home(port);
}

async function signOut(home) {
  const { page } = someone;
  await page.goto(`${home}logout`);
  await page.waitForURL(home);
  await page.getByText("Not signed in").waitFor();
}

// What a JMESPath says of the claims.
function evaluated(expression, claims) {
  const program = "import json, jmespath, sys; print(jmespath.search(sys.argv[1], json.load(sys.stdin)))";
  return run(python, ["-c", program, expression], { input: JSON.stringify(claims) }).trim();
}

// A token of a client for itself.
async function ownToken(client, parameters) {
  const response = await fetch(`${dev.provider}/connect/token`, {
    method: "POST",
    headers: { Authorization: `Basic ${btoa(`${client}:${secret}`)}` },
    body: new URLSearchParams({ grant_type: "client_credentials", ...parameters }),
  });
  const token = await response.json();
  assert.equal(response.status, 200, JSON.stringify(token));
  return token.access_token;
}

describe("the programs of docs/connect", { timeout: 540_000 }, () => {
  setScene({ prepare: preparePython });
  letSomebodyIn();

  afterEach(() => {
    for (const { child, isGroup } of children.splice(0)) {
      if (child.exitCode === null) process.kill(isGroup ? -child.pid : child.pid, "SIGKILL");
    }
  });

  test("a single-page app", async () => {
    const files = { "single-page-app/index.html": "index.html", "single-page-app/app.js": "app.js" };
    const home = await typed("single-page-app", files, { begin: null });
    const { page } = someone;
    await page.goto(home);
    await page.getByRole("button", { name: "Sign in" }).click();
    await enterPassword(page, alice);
    await decide(page, "allow");
    await page.waitForURL(home); // the code is out of the address
    await page.getByText("Signed in as Alice Liddell").waitFor();
    await page.reload();
    await page.getByText("Signed in as Alice Liddell").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("Not signed in").waitFor();
    assert.equal(page.url(), home);
  });

  test("Node", async () => {
    const home = await typed("node", { "node/server.mjs": "server.mjs" });
    // Nobody can bring a session of their own choice, and no state counts twice.
    const [theirs] = (await fetch(`${home}login`, { headers: { Cookie: "session=chosen" }, redirect: "manual" })).headers.get("set-cookie").split(";");
    assert.notEqual(theirs, "session=chosen");
    const callback = await fetch(`${home}callback?code=x`, { headers: { Cookie: "session=chosen" }, redirect: "manual" });
    assert.deepEqual([callback.status, callback.headers.get("set-cookie")], [400, null]);
    await signOut(home);
  });

  test("Python", async () => {
    await signOut(await typed("python", { "python/app.py": "app.py" }));
  });

  test("PHP", async () => {
    const home = await typed("php", { "php/index.php": "index.php" });
    assert.equal((await fetch(`${home}callback?code=x&state=`)).status, 400);
    await signOut(home);
  });

  test("Ruby", async () => {
    const [port] = await freePorts(1);
    await register("ruby", port);
    const home = `http://localhost:${port}/`;
    await answers(start("ruby", [at("ruby/app.rb")], { PORT: String(port) }), home);
    await signIn(home, "Sign in");
    assert.notEqual((await fetch(`${home}auth/gatepost/callback?code=x`, { redirect: "manual" })).status, 200);
    await signOut(home);
  });

  test("Go", async () => {
    const home = await typed("go", { "go/main.go": "main.go" }, { settings: { GOTOOLCHAIN: "local" } });
    assert.equal((await fetch(`${home}callback?code=x`)).status, 400);
    await signOut(home);
  });

  test("Rust", async () => {
    const files = { "rust/Cargo.toml": "Cargo.toml", "rust/Cargo.lock": "Cargo.lock", "rust/main.rs": "main.rs" };
    const settings = { CARGO_TARGET_DIR: join(root, "target/connect-rust") };
    const home = await typed("rust", files, { settings });
    assert.equal((await fetch(`${home}callback?code=x`)).status, 400);
  });

  test("Spring Boot", async () => {
    const files = {
      "java-spring/pom.xml": "pom.xml",
      "java-spring/application.yaml": "src/main/resources/application.yaml",
      "java-spring/Shop.java": "src/main/java/shop/Shop.java",
      "java-spring/Api.java": "src/main/java/shop/Api.java",
    };
    const away = await typed("java-spring", files, { begin: null, home: (port) => `http://localhost:${port}/signed-out` });
    const home = away.replace("signed-out", "");
    const { page } = someone;
    await page.goto(home);
    await enterPassword(page, alice);
    await page.waitForURL((url) => url.href.startsWith(home));
    await page.getByText("Signed in as Alice Liddell").waitFor();
    await page.goto(`${home}logout`);
    await page.waitForURL(`${home}signed-out`);
    const status = async (token) => (await fetch(`${home}api/orders`, { headers: token ? { Authorization: `Bearer ${token}` } : {} })).status;
    const token = await ownToken("web-spring", { scope: "orders.read" });
    assert.deepEqual([await status(), await status(`${token}x`), await status(token)], [401, 401, 200]);
    await takesBoundTokens(new URL(`${home}api/orders`));
  });

  // Spring Security as a resource server, openid-client as the client that holds a key.
  async function takesBoundTokens(url) {
    globalThis.crypto ??= webcrypto;
    globalThis.CryptoKey ??= webcrypto.CryptoKey;
    const library = await import("openid-client");
    const options = { execute: [library.allowInsecureRequests] };
    const configuration = await library.discovery(new URL(dev.provider), "web-spring", secret, undefined, options);
    const [own, others] = [await library.randomDPoPKeyPair("ES256"), await library.randomDPoPKeyPair("ES256")];
    const holding = (pair) => ({ DPoP: library.getDPoPHandle(configuration, pair) });
    const { access_token, token_type } = await library.clientCredentialsGrant(configuration, { scope: "orders.read" }, holding(own));
    assert.equal(token_type, "dpop");
    const call = async (holder) => {
      const asked = library.fetchProtectedResource(configuration, access_token, url, "GET", undefined, undefined, holder);
      return asked.then(({ status }) => status, ({ status, cause }) => `${status} ${cause[0].scheme} ${cause[0].parameters.error}`);
    };
    assert.equal(await call(holding(own)), 200);
    assert.equal(await call(holding(others)), "401 dpop invalid_dpop_proof");
    assert.equal(await call(undefined), "401 bearer invalid_token");
  }

  test("Apache", async () => {
    const [port] = await freePorts(1);
    const home = `http://localhost:${port}`;
    await register("mod-auth-openidc", port);
    const [secretFile, shown] = ["gatepost-secrets", "shown"].map((name) => join(directory, name));
    await mkdir(shown);
    await writeFile(secretFile, `OIDCClientSecret ${secret}\nOIDCCryptoPassphrase ${secret}`);
    await writeFile(join(shown, "index.shtml"), 'Signed in as <!--#echo var="OIDC_CLAIM_name" -->, <!--#echo var="REMOTE_USER" -->');
    await writeFile(join(shown, "signed-out"), "Not signed in");
    await writeFile(join(directory, "types"), "");
    const site = (await readFile(at("apache/gatepost.conf"), "utf8"))
      .replaceAll("https://login.example.com", dev.provider)
      .replaceAll("https://intranet.example.com", home)
      .replace("/etc/apache2/gatepost-secrets", secretFile);
    const modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "auth_openidc", "include", "mime", "dir"];
    const whole = [
      ...modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
      `ServerRoot ${directory}`,
      `PidFile ${join(directory, "apache.pid")}`,
      `DefaultRuntimeDir ${directory}`,
      `ErrorLog ${join(directory, "apache-error.log")}`,
      "ServerName localhost",
      `Listen 127.0.0.1:${port}`,
      ...(process.getuid() === 0 ? ["User www-data", "Group www-data"] : []),
      `DocumentRoot ${shown}`,
      `TypesConfig ${join(directory, "types")}`,
      "AddType text/html .shtml",
      "AddOutputFilter INCLUDES .shtml",
      "DirectoryIndex index.shtml",
      `<Directory ${shown}>`,
      "Options +Includes",
      "</Directory>",
      site,
    ];
    const file = join(directory, "apache.conf");
    await writeFile(file, whole.join("\n"));
    const running = start("/usr/sbin/apache2", ["-X", "-f", file], {});
    await answers(running, `${home}/signed-out`);
    const { page } = someone;
    await page.goto(`${home}/`);
    await enterPassword(page, alice);
    await page.getByText(/Signed in as Alice Liddell, (?!alice)[\w-]+/).waitFor();
    await page.goto(`${home}/oidc?logout=${encodeURIComponent(`${home}/signed-out`)}`);
    await page.waitForURL(`${home}/signed-out`);
    await page.getByText("Not signed in").waitFor();
    await page.goto(`${home}/`);
    await page.waitForURL((url) => url.href.startsWith(dev.provider));
  });

  test("an API and a service that calls it", async () => {
    const text = await register("apis");
    assert.ok(text.includes("https://api.example.com"));
    await register("services");
    const [port] = await freePorts(1);
    const url = `http://localhost:${port}/orders`;
    await answers(start(process.execPath, [at("apis/api.mjs")], { PORT: String(port) }), url);
    const service = start(python, [at("services/service.py")], { API: url });
    assert.match(await finished(service), /^200 \{"orders":\["a teapot"\]\}/);
    assert.match(await finished(start(python, [at("services/service.py")], { API: url, CLIENT_SECRET: "wrong" }), 1), /invalid_client/);
    const status = async (token) => (await fetch(url, { headers: token ? { Authorization: `Bearer ${token}` } : {} })).status;
    const token = await ownToken("nightly", { scope: "orders.read" });
    assert.deepEqual([await status(), await status(`${token}x`), await status(token)], [401, 401, 200]);
    const ask = async (token, secretOfApi = secret) => {
      const running = start(python, [at("apis/introspect.py")], { API_SECRET: secretOfApi });
      running.child.stdin.end(token);
      return running;
    };
    assert.match(await finished(await ask(token)), /let nightly in/);
    assert.match(await finished(await ask("gpa_nonsense")), /401/);
    assert.match(await finished(await ask(token, "wrong"), 1), /401 Client Error/);
  });

  test("an MCP server", async () => {
    const [port] = await freePorts(1);
    await register("mcp", port);
    const url = `http://localhost:${port}/mcp`;
    const running = start(process.execPath, [at("mcp/server.mjs")], { RESOURCE: url });
    await answers(running, url);
    const refused = await fetch(url, { method: "POST" });
    assert.equal(refused.status, 401);
    const challenge = refused.headers.get("www-authenticate");
    assert.ok(!challenge.includes("error"), challenge);
    const [, metadataAt] = challenge.match(/resource_metadata="([^"]+)"/);
    // Only where a token was sent is there one to call invalid (RFC 6750 §3.1).
    const nonsense = await fetch(url, { method: "POST", headers: { Authorization: "Bearer nonsense" } });
    assert.equal(nonsense.status, 401);
    assert.match(nonsense.headers.get("www-authenticate"), /^Bearer error="invalid_token", resource_metadata="/);
    const { resource, authorization_servers, scopes_supported } = await (await fetch(metadataAt)).json();
    assert.deepEqual([authorization_servers, scopes_supported], [[dev.provider], ["tools.call"]]);
    // Clients refuse a resource that is not the address they called.
    assert.equal(resource, url);
    const access_token = await ownToken("assistant", { scope: "tools.call", resource });
    const taken = await fetch(url, { method: "POST", headers: { Authorization: `Bearer ${access_token}` } });
    assert.equal(taken.status, 200);
    const client = { client_id: "onlooker", grant_types: ["client_credentials"], response_types: [], scope: "tools.list", secrets: [{ value: secret }] };
    await registerAndSettle(directory, { resource_scopes: [{ name: "tools.list", resources: [resource] }], clients: [client] });
    const weak = await ownToken("onlooker", { scope: "tools.list" });
    const forbidden = await fetch(url, { method: "POST", headers: { Authorization: `Bearer ${weak}` } });
    assert.deepEqual([forbidden.status, await forbidden.json()], [403, { error: "insufficient_scope" }]);
  });

  test("a device", async () => {
    await register("devices");
    const running = start(python, [at("devices/device.py")], {});
    await until(running, () => running.output.includes("QR code"), "the code");
    const link = running.output.match(/QR code: (\S+)/)[1];
    assert.match(await decideForDevice(link), /Your device is connected/);
    assert.match(await finished(running), /Hello Alice Liddell/);
  });

  test("Grafana's registration and expressions", async () => {
    const page = await register("grafana");
    const [, settings] = page.match(/```ini\n(.*?)```/s);
    const setting = (name) => settings.match(new RegExp(`^${name} = (.*)$`, "m"))[1];
    const [redirectUri] = page.match(/https:\/\/grafana[^"]*generic_oauth/);
    const [challenge, verifier] = ["E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"];
    const asked = { client_id: setting("client_id"), response_type: "code", scope: setting("scopes"), redirect_uri: redirectUri, state: "s" };
    const query = new URLSearchParams({ ...asked, code_challenge: challenge, code_challenge_method: "S256" });
    const address = `${setting("auth_url").replace("https://login.example.com", dev.provider)}?${query}`;
    const back = await authorizeAsAlice(address, redirectUri);
    const form = { grant_type: "authorization_code", code: back.searchParams.get("code"), redirect_uri: redirectUri, code_verifier: verifier };
    const authorization = `Basic ${btoa(`${asked.client_id}:${secret}`)}`;
    const at = (name) => setting(name).replace("https://login.example.com", dev.provider);
    const tokens = await (await fetch(at("token_url"), { method: "POST", headers: { authorization }, body: new URLSearchParams(form) })).json();
    assert.ok(tokens.refresh_token, JSON.stringify(tokens));
    const person = await (await fetch(at("api_url"), { headers: { authorization: `Bearer ${tokens.access_token}` } })).json();
    const found = (name, claims) => evaluated(setting(name), claims);
    assert.deepEqual([found("role_attribute_path", person), found("login_attribute_path", person)], ["Admin", "alice"]);
    assert.deepEqual([found("role_attribute_path", { ...person, role: ["editor"] }), found("role_attribute_path", { sub: "x" })], ["Editor", "Viewer"]);
    assert.equal(found("login_attribute_path", { sub: "x" }), "x");
  });

  test("any software with a form for OAuth", async () => {
    const text = await register("generic-oauth");
    const metadata = await (await fetch(`${dev.provider}/.well-known/openid-configuration`)).json();
    for (const name of ["authorization_endpoint", "token_endpoint", "userinfo_endpoint", "end_session_endpoint", "jwks_uri"]) {
      const path = metadata[name].slice(dev.provider.length);
      assert.ok(text.includes(`https://login.example.com${path}`), name);
    }
  });
});
