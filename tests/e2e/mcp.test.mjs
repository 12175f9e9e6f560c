// MCP's own client libraries at the program of docs/connect/mcp.md. They are known by the address of their metadata document,
// and get there without anybody's help: from the program's challenge to its metadata, ours, and a token for it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";
import { authorizeAsAlice } from "./foreign_clients.mjs";
import { environment, newProject, operate, registerAndSettle, removeProject, root, run, startDev } from "./gatepost.mjs";
import { freePorts } from "./nginx.mjs";
import { preparePython, python } from "./python.mjs";

const callback = "http://localhost:4711/callback";
let directory, dev, site, program, server;

// What the client at that address says of itself.
function describes(client_id) {
  return { client_id, client_name: "Assistant", redirect_uris: ["http://localhost/callback"], scope: "tools.call", grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none" };
}

async function startSite() {
  const [key, certificate] = ["site.key", "site.pem"].map((name) => join(directory, name));
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"];
  run("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", ...names, "-keyout", key, "-out", certificate]);
  site = createServer({ key: await readFile(key), cert: await readFile(certificate) }, (request, response) => {
    response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(describes(address(request.url))));
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  return certificate;
}

const address = (path) => `https://localhost:${site.address().port}${path}`;

async function startProgram() {
  const [port] = await freePorts(1);
  server = `http://localhost:${port}/mcp`;
  const settings = { ...environment(), ISSUER: dev.provider, RESOURCE: server };
  program = spawn(process.execPath, [join(root, "tests/e2e/connect/mcp/server.mjs")], { env: settings, stdio: "inherit" });
  for (let tries = 0; tries < 200; tries += 1) {
    if (await fetch(server).then(() => true, () => false)) return;
    await pause(100);
  }
  assert.fail("the program does not come");
}

describe("MCP clients that describe themselves", () => {
  before(async () => {
    await preparePython();
    directory = await newProject();
    const certificate = await startSite();
    dev = await startDev(directory, [], { GATEPOST_OUTBOUND_ALLOW: "127.0.0.0/8", GATEPOST_CA_FILE: certificate });
    await startProgram();
    const client = (path) => ({ client_id: address(path), metadata_document: true, scope: "offline_access tools.call" });
    await registerAndSettle(directory, {
      resources: [{ name: server }],
      resource_scopes: [{ name: "tools.call", display_name: "Call tools", resources: [server] }],
      clients: [client("/typescript.json"), client("/python.json")],
    });
  });

  after(async () => {
    program?.kill();
    site?.close();
    await dev?.stop();
    await removeProject(directory);
  });

  test("TypeScript: auth() with clientMetadataUrl", async () => {
    const kept = {};
    const provider = {
      redirectUrl: callback,
      clientMetadataUrl: address("/typescript.json"),
      clientMetadata: describes(address("/typescript.json")),
      clientInformation: () => kept.client,
      saveClientInformation: (client) => (kept.client = client),
      tokens: () => kept.tokens,
      saveTokens: (tokens) => (kept.tokens = tokens),
      redirectToAuthorization: (url) => (kept.url = url),
      saveCodeVerifier: (verifier) => (kept.verifier = verifier),
      codeVerifier: () => kept.verifier,
    };
    // Alone, as the SDK asks where it knows no scope: the resource decides which others there are.
    assert.equal(await auth(provider, { serverUrl: server, scope: "offline_access" }), "REDIRECT");
    const back = await authorizeAsAlice(kept.url, callback);
    assert.equal(await auth(provider, { serverUrl: server, authorizationCode: back.searchParams.get("code") }), "AUTHORIZED");
    assert.equal(kept.client.client_id, address("/typescript.json"));
    const first = kept.tokens;
    const answer = await fetch(server, { method: "POST", headers: { Authorization: `Bearer ${first.access_token}` } });
    assert.equal(answer.status, 200, await answer.text());
    assert.equal(await auth(provider, { serverUrl: server }), "AUTHORIZED");
    assert.notEqual(kept.tokens.access_token, first.access_token);
  });

  test("Python: OAuthClientProvider with client_metadata_url", async () => {
    const args = [join(root, "tests/e2e/mcp_client.py"), server, address("/python.json"), callback];
    const child = spawn(python, args, { env: environment(), stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { value: url } = await lines.next();
    const back = await authorizeAsAlice(url, callback);
    child.stdin.end(`${back.href}\n`);
    const { value: answer } = await lines.next();
    assert.match(answer, /^200 .*"tools"/);
  });

  test("the resource says of itself what the command prints", async () => {
    const printed = JSON.parse(await operate(directory, ["resource", "metadata", server, "--json"]));
    const { pathname, origin } = new URL(server);
    const served = await (await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`)).json();
    assert.deepEqual(served, printed);
  });
});
