// ID-JAG, MCP's Enterprise-Managed Authorization, with the functions of MCP's TypeScript SDK 2. Two Gateposts play it: people
// sign in at one, which gives ID-JAGs; the other stands in front of an MCP server, the program of docs/connect/mcp.md, and takes them. The client is that of docs/connect/id-jag.md.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { webcrypto } from "node:crypto";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { alice, authorizeAsAlice } from "./foreign_clients.mjs";
import { environment, newProject, operate, registerAndSettle, removeProject, root, startDev } from "./gatepost.mjs";
import { freePorts } from "./nginx.mjs";

// Node 18, Debian 12's, has it, but not as a global.
globalThis.crypto ??= webcrypto;
globalThis.CryptoKey ??= webcrypto.CryptoKey;
const openid = await import("openid-client");
const sdk = await import("@modelcontextprotocol/client");

const wiki = { clientId: "wiki", clientSecret: "a-secret-of-the-wiki-where-people-sign-in" };
const agent = { clientId: "f53f", clientSecret: "a-secret-of-the-wiki-at-the-other-server" };
const callback = "http://localhost:4711/callback";

describe("ID-JAGs with MCP's SDK", { timeout: 200_000 }, () => {
  let directories, giving, taking, program, resource, accessFor;

  before(async () => {
    directories = [await newProject(), await newProject()];
    // The one that takes fetches the keys of the other, which is on this machine.
    const settings = { GATEPOST_ID_JAG: "on", GATEPOST_OUTBOUND_ALLOW: "127.0.0.0/8,::1/128" };
    [giving, taking] = await Promise.all(directories.map((directory) => startDev(directory, [], settings)));
    await startProgram();
    const addresses = { ISSUER: giving.provider, CHAT_ISSUER: taking.provider };
    Object.assign(process.env, addresses, { WIKI_SECRET: wiki.clientSecret, CHAT_SECRET: agent.clientSecret });
    ({ accessFor } = await import("./connect/id-jag/access.mjs"));
    await Promise.all([registerAndSettle(giving.directory, givingSide()), registerAndSettle(taking.directory, takingSide())]);
    const { sub } = opened(await idToken());
    await operate(taking.directory, ["user", "link", alice.username, "--issuer", giving.provider, "--subject", sub]);
  });

  after(async () => {
    program?.kill();
    await Promise.all([giving?.stop(), taking?.stop()]);
    await Promise.all(directories.map(removeProject));
  });

  async function startProgram() {
    const [port] = await freePorts(1);
    resource = `http://localhost:${port}/mcp`;
    const NODE_OPTIONS = process.version.startsWith("v18.") ? "--experimental-global-webcrypto" : "";
    const env = { ...environment(), NODE_OPTIONS, ISSUER: taking.provider, RESOURCE: resource };
    program = spawn(process.execPath, [join(root, "tests/e2e/connect/mcp/server.mjs")], { env, stdio: "inherit" });
    for (let tries = 0; tries < 200; tries += 1) {
      if (await fetch(resource).then(() => true, () => false)) return;
      await pause(100);
    }
    assert.fail("the program does not come");
  }

  function givingSide() {
    return {
      clients: [
        {
          client_id: wiki.clientId,
          redirect_uris: [callback],
          grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:token-exchange"],
          scope: "openid offline_access",
          secrets: [{ value: wiki.clientSecret }],
          id_jag: [{ audience: taking.provider, client_id: agent.clientId, resources: [resource], scope: "tools.call tools.list" }],
        },
      ],
    };
  }

  function takingSide() {
    return {
      resources: [{ name: resource }],
      resource_scopes: [{ name: "tools.call", resources: [resource] }],
      assertion_issuers: [
        {
          issuer: giving.provider,
          jwks_uri: `${giving.provider}/.well-known/openid-configuration/jwks`,
          id_jag: true,
          clients: [agent.clientId],
          scope: "tools.call",
          subject: "link",
        },
      ],
      clients: [
        {
          client_id: agent.clientId,
          response_types: [],
          grant_types: ["urn:ietf:params:oauth:grant-type:jwt-bearer"],
          scope: "tools.call",
          secrets: [{ value: agent.clientSecret }],
        },
      ],
    };
  }

  // The one sign-in. It is good for as many ID-JAGs as are asked for.
  async function idToken() {
    const options = { execute: [openid.allowInsecureRequests] };
    const configuration = await openid.discovery(new URL(giving.provider), wiki.clientId, wiki.clientSecret, undefined, options);
    const [pkceCodeVerifier, expectedState] = [openid.randomPKCECodeVerifier(), openid.randomState()];
    const url = openid.buildAuthorizationUrl(configuration, {
      redirect_uri: callback,
      scope: "openid offline_access",
      state: expectedState,
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: "S256",
    });
    const answer = await authorizeAsAlice(url, callback);
    const tokens = await openid.authorizationCodeGrant(configuration, answer, { pkceCodeVerifier, expectedState });
    return tokens.id_token;
  }

  const opened = (jwt) => JSON.parse(Buffer.from(jwt.split(".")[1], "base64url"));
  const tokenEndpoint = (side) => `${side.provider}/connect/token`;

  async function idJag(changes = {}) {
    const usual = { tokenEndpoint: tokenEndpoint(giving), audience: taking.provider, resource, idToken: await idToken(), ...wiki };
    return sdk.requestJwtAuthorizationGrant({ ...usual, ...changes });
  }

  const redeem = (jwtAuthGrant, changes = {}) => sdk.exchangeJwtAuthGrant({ tokenEndpoint: tokenEndpoint(taking), jwtAuthGrant, ...agent, ...changes });
  const callProgram = (token) => fetch(resource, { method: "POST", headers: { Authorization: `Bearer ${token}` } });

  test("requestJwtAuthorizationGrant gets one, exchangeJwtAuthGrant redeems it", async () => {
    const granted = await idJag({ scope: "tools.call" });
    assert.deepEqual([granted.expiresIn, granted.scope], [300, "tools.call"]);
    const claims = opened(granted.jwtAuthGrant);
    assert.deepEqual([claims.iss, claims.aud, claims.client_id, claims.resource], [giving.provider, taking.provider, agent.clientId, resource]);
    const tokens = await redeem(granted.jwtAuthGrant);
    assert.deepEqual([tokens.token_type, tokens.scope, tokens.refresh_token], ["Bearer", "tools.call", undefined]);
    assert.equal(opened(tokens.access_token).aud, resource);
    const answer = await callProgram(tokens.access_token);
    assert.equal(answer.status, 200, await answer.text());
    assert.equal((await callProgram(granted.jwtAuthGrant)).status, 401, "the ID-JAG itself opens nothing");
  });

  test("the SDK's other way of client authentication works, too", async () => {
    const { jwtAuthGrant } = await idJag();
    const tokens = await redeem(jwtAuthGrant, { authMethod: "client_secret_post" });
    assert.equal(tokens.scope, "tools.call", "of two scopes the other server has one");
  });

  test("CrossAppAccessProvider brings a client to the program, from its challenge to its answer", async () => {
    const authProvider = accessFor(idToken);
    const transport = new sdk.StreamableHTTPClientTransport(new URL(resource), { authProvider });
    const answered = new Promise((done) => (transport.onmessage = done));
    await transport.start();
    await transport.send({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    assert.deepEqual((await answered).result, { tools: [] });
    await transport.close();
    const { client_id, aud, scope } = opened(authProvider.tokens().access_token);
    assert.deepEqual([client_id, aud, scope], [agent.clientId, resource, "tools.call"], "the scope of the program's challenge");
  });

  test("the SDK binds what it gets to a key, and goes through the round of nonces with one ID-JAG", async () => {
    const { clients } = takingSide();
    const bound = { ...clients[0], dpop_bound_access_tokens: true, dpop_nonce: true };
    await registerAndSettle(taking.directory, { clients: [bound] });
    const session = await sdk.DpopSession.create();
    const authProvider = Object.assign(accessFor(idToken), { dpop: () => session });
    const statuses = [];
    const fetchFn = async (url, options) => {
      const answer = await fetch(url, options);
      if (String(url) === tokenEndpoint(taking)) statuses.push(answer.status);
      return answer;
    };
    assert.equal(await sdk.auth(authProvider, { serverUrl: resource, fetchFn }), "AUTHORIZED");
    assert.deepEqual(statuses, [400, 200]);
    const { access_token, token_type } = authProvider.tokens();
    assert.equal(token_type, "DPoP");
    assert.deepEqual(opened(access_token).cnf, { jkt: session.thumbprint });
    await registerAndSettle(taking.directory, { clients });
  });

  test("what is wrong is refused at the server that has to know", async () => {
    await assert.rejects(idJag({ resource: "http://localhost:1/mcp" }), /Token exchange failed: invalid_target/);
    await assert.rejects(idJag({ audience: "https://auth.elsewhere.example" }), /Token exchange failed: invalid_target/);
    await assert.rejects(idJag({ scope: "openid" }), /Token exchange failed: invalid_scope/);
    await assert.rejects(idJag({ clientSecret: "wrong" }), /Token exchange failed: invalid_client/);
    const { jwtAuthGrant } = await idJag();
    await assert.rejects(redeem(jwtAuthGrant, { clientSecret: "wrong" }), /JWT grant exchange failed: invalid_client/);
    assert.ok((await redeem(jwtAuthGrant)).access_token, "and that spent nothing");
    await assert.rejects(redeem(jwtAuthGrant), /JWT grant exchange failed: invalid_grant/, "it is good once");
    const [head, body, signature] = (await idJag()).jwtAuthGrant.split(".");
    const other = Buffer.from(JSON.stringify({ ...JSON.parse(Buffer.from(body, "base64url")), scope: "tools.call tools.all" })).toString("base64url");
    await assert.rejects(redeem([head, other, signature].join(".")), /JWT grant exchange failed: invalid_grant/);
  });

  test("after a revocation at the first server there is no more of it", async () => {
    const person = await idToken();
    assert.ok((await idJag({ idToken: person })).jwtAuthGrant);
    await operate(giving.directory, ["user", "revoke", alice.username]);
    await assert.rejects(idJag({ idToken: person }), /Token exchange failed: invalid_request/);
  });
});
