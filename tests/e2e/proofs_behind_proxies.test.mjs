// Pushed requests and bound tokens (RFC 9126, RFC 9449) as other people's libraries do them, through each proxy that the
// project has a configuration for: openid-client, oauth4webapi and Authlib as servers, oidc-client-ts in a browser. And what
// TLS these proxies take.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { createServer as createPlainServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { createServer } from "node:tls";
import { enterPassword, launch, visitor } from "./browser.mjs";
import { alice, authorizeAsAlice } from "./foreign_clients.mjs";
import { newProject, removeProject, startDev } from "./gatepost.mjs";
import { ask as askAt, certified, fetchFrom, handshake, takesGoodSuitesAlone } from "./nginx.mjs";
import { claimsOf, headerOf, newProver } from "./proofs.mjs";
import { libraries } from "./proving_clients.mjs";
import { startBehind, startProxy } from "./proxies.mjs";
import { preparePython } from "./python.mjs";

// A client with a secret, and two of the FAPI 2.0 profile with a key.
const holder = { client_id: "holder", redirectUri: "https://shop.example.com/callback", secret: "a-secret-of-the-client-with-a-key" };
const banks = [
  { alg: "ES256", keys: generateKeyPairSync("ec", { namedCurve: "P-256" }), signed: "ES256" },
  { alg: "Ed25519", keys: generateKeyPairSync("ed25519"), signed: "EdDSA" },
].map(({ alg, keys, signed }) => ({
  client_id: `bank-${alg}`,
  redirectUri: "https://bank.example.com/callback",
  alg,
  signed,
  jwk: { ...keys.publicKey.export({ format: "jwk" }), kid: "2026-11" },
  privateKey: keys.privateKey.export({ type: "pkcs8", format: "pem" }),
}));
const document = (origin) => ({
  clients: [
    {
      client_id: "page",
      client_name: "A page",
      redirect_uris: [`${origin}/callback`],
      grant_types: ["authorization_code", "refresh_token"],
      token_endpoint_auth_method: "none",
      allowed_cors_origins: [origin],
      scope: "openid profile offline_access",
      // Said in so many words: any program on this machine can be at a loopback address.
      require_consent: false,
      dpop_bound_access_tokens: true,
      dpop_nonce: true,
    },
    {
      client_id: holder.client_id,
      client_name: "Shop",
      redirect_uris: [holder.redirectUri],
      grant_types: ["authorization_code", "refresh_token", "client_credentials"],
      scope: "openid profile offline_access orders.read",
      require_pushed_authorization_requests: true,
      dpop_bound_access_tokens: true,
      dpop_nonce: true,
      secrets: [{ value: holder.secret }],
    },
    {
      client_id: "pipeline",
      client_name: "Pipeline",
      grant_types: ["client_credentials"],
      scope: "registration.read",
      dpop_bound_access_tokens: true,
      secrets: [{ value: holder.secret }],
    },
    ...banks.map(({ client_id, redirectUri, alg, signed, jwk }) => ({
      client_id,
      client_name: "Bank",
      profile: "fapi2",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      scope: "openid profile offline_access",
      token_endpoint_auth_signing_alg: alg,
      id_token_signed_response_alg: signed,
      jwks: { keys: [jwk] },
    })),
  ],
  resource_scopes: [
    { name: "orders.read", resources: ["https://orders.example"] },
    { name: "registration.read", resources: ["urn:gatepost:admin"] },
  ],
  resources: [{ name: "https://orders.example" }, { name: "urn:gatepost:admin" }],
  users: [{ ...alice, claims: { name: "Alice Liddell" } }],
});

// Somebody who holds the key at "/connect/token" of a proxy, by hand.
const form = { "content-type": "application/x-www-form-urlencoded" };
const own = String(new URLSearchParams({ grant_type: "client_credentials", client_id: holder.client_id, client_secret: holder.secret }));

// A page of another origin, which has the library and does with it what it is told.
const script = await readFile(new URL("node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js", import.meta.url));
const html = '<!doctype html><title>A page</title><link rel="icon" href="data:,"><script src="/oidc-client-ts.js"></script>';

function servePage(request, response) {
  const isScript = request.url === "/oidc-client-ts.js";
  response.setHeader("Content-Type", `text/${isScript ? "javascript" : "html"}; charset=utf-8`);
  response.end(isScript ? script : html);
}

let directory, dev, pages, origin, browser;

before(async () => {
  await preparePython();
  pages = createPlainServer(servePage).listen(0, "127.0.0.1");
  await once(pages, "listening");
  origin = `http://127.0.0.1:${pages.address().port}`;
  directory = await newProject();
  dev = await startDev(directory);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  pages?.close();
  pages?.closeAllConnections();
  await dev?.stop();
  await removeProject(directory);
});

for (const proxy of Object.keys(startProxy)) {
  describe(`behind ${proxy}`, { timeout: 300_000 }, () => {
    let behind, browse;

    before(async () => {
      behind = await startBehind(proxy, directory, document(origin));
      browse = fetchFrom(behind.at);
    });

    after(async () => {
      await behind?.stop();
    });

    const start = (library, registered, alg) =>
      libraries[library]({ issuer: behind.issuer, registered, browse, caFile: behind.certificate.caFile, alg });

    // Pushes, signs in, redeems, asks userinfo, refreshes and asks again. `between` comes before each request with a proof.
    async function goThrough(client, registered, withProof, between) {
      await between();
      const url = await client.push(withProof);
      assert.deepEqual([...new URL(url).searchParams.keys()].sort(), ["client_id", "request_uri"]);
      const came = await authorizeAsAlice(url, registered.redirectUri, new Map(), browse);
      await between();
      let { tokens, sub } = await client.redeem(came);
      const first = tokens;
      for (const refreshed of [false, true]) {
        await between();
        if (refreshed) {
          tokens = await client.refresh(tokens);
          assert.notEqual(tokens.access_token, first.access_token);
          await between();
        }
        assert.equal(tokens.token_type.toLowerCase(), "dpop");
        const info = await client.userinfo();
        assert.equal(info.sub, sub);
        assert.equal(info.name, "Alice Liddell");
        const { status, challenge } = await client.userinfoAsBearer();
        assert.equal(status, 401, "a bound token is nothing without its key");
        assert.match(challenge, /^DPoP .*error="invalid_token"/);
      }
      return first;
    }

    // One proof for each request, for the public address; answers the requests, "PATH STATUS" each.
    async function provenRequests(client) {
      const requests = await client.traffic();
      for (const { path, proof } of requests) assert.equal(claimsOf(proof).htu, behind.issuer + path);
      assert.equal(new Set(requests.map(({ proof }) => claimsOf(proof).jti)).size, requests.length);
      return requests.map(({ path, status }) => `${path} ${status}`);
    }

    for (const library of Object.keys(libraries)) {
      test(`${library} goes through the round of nonces at each endpoint, when it knows none`, async () => {
        const client = await start(library, holder, "Ed25519");
        try {
          await goThrough(client, holder, true, () => client.forgetNonce());
          const [push, token, userinfo] = ["/connect/par", "/connect/token", "/connect/userinfo"];
          const rounds = [[push, 400, 201], [token, 400, 200], [userinfo, 401, 200], [token, 400, 200], [userinfo, 401, 200]];
          const expected = rounds.flatMap(([path, refused, taken]) => [`${path} ${refused}`, `${path} ${taken}`]);
          assert.deepEqual(await provenRequests(client), expected);
          for (const { status, text, nonce, challenge } of await client.traffic()) {
            assert.ok(nonce, "the nonce came through");
            if (status === 400) assert.equal(JSON.parse(text).error, "use_dpop_nonce");
            if (status === 401) assert.match(challenge, /^DPoP .*error="use_dpop_nonce"/);
          }
        } finally {
          await client.end();
        }
      });

      for (const bank of banks) {
        test(`${library} keeps the FAPI 2.0 profile with its own key (${bank.alg}), and a nonce once it has one`, async () => {
          const client = await start(library, bank, bank.alg);
          try {
            const first = await goThrough(client, bank, false, () => {});
            assert.ok(first.refresh_token);
            assert.equal(headerOf(first.id_token).alg, bank.signed);
            const requests = await provenRequests(client);
            // The push named the key by `dpop_jkt`: the code is the first to come with a proof.
            const [token, userinfo] = ["/connect/token 200", "/connect/userinfo 200"];
            assert.deepEqual(requests, ["/connect/token 400", token, userinfo, token, userinfo]);
          } finally {
            await client.end();
          }
        });
      }
    }

    test("a proof that was used is refused when it comes again with the same credentials", async () => {
      const authorization = `Basic ${Buffer.from(`pipeline:${holder.secret}`).toString("base64")}`;
      const body = String(new URLSearchParams({ grant_type: "client_credentials", resource: "urn:gatepost:admin" }));
      const prove = newProver();
      for (let round = 0; round < 4; round += 1) {
        const dpop = prove({ htm: "POST", htu: `${behind.issuer}/connect/token` });
        const statuses = [];
        for (const scheme of ["Basic", "basic", "BASIC", "Basic "]) {
          const headers = { ...form, authorization: authorization.replace("Basic", scheme), dpop };
          const { status } = await askAt(behind.at, "POST", "/connect/token", headers, body);
          statuses.push(status);
        }
        assert.deepEqual(statuses, [200, 400, 400, 400]);
      }
    });

    test("a script of another origin hears that it may send what its libraries add", async () => {
      const asked = "authorization,baggage,dpop,sentry-trace,traceparent,x-requested-with";
      for (const path of ["token", "par", "userinfo", "revocation", "deviceauthorization"]) {
        const headers = { origin, "access-control-request-method": "POST", "access-control-request-headers": asked };
        const answer = await askAt(behind.at, "OPTIONS", `/connect/${path}`, headers);
        assert.equal(answer.status, 204, path);
        assert.equal(answer.headers["access-control-allow-headers"], asked, path);
        assert.equal(answer.headers["access-control-allow-origin"], origin, path);
        const credentials = path === "token" ? "true" : undefined;
        assert.equal(answer.headers["access-control-allow-credentials"], credentials, path);
      }
    });

    test("oidc-client-ts does so in a browser, from another origin", async () => {
      const { page, context, complaints } = await visitor(browser, { ignoreHTTPSErrors: true });
      const answers = [];
      page.on("response", (response) => {
        if (/\/connect\/(token|userinfo)$/.test(response.url()) && response.request().method() !== "OPTIONS") answers.push(response);
      });
      const settings = {
        authority: behind.issuer,
        client_id: "page",
        redirect_uri: `${origin}/callback`,
        scope: "openid profile offline_access",
      };
      const inPage = (act) => page.evaluate(act, settings);
      const manage = () =>
        inPage((settings) => {
          const dpop = { bind_authorization_code: true, store: new oidc.IndexedDbDPoPStore() };
          globalThis.manager = new oidc.UserManager({ ...settings, dpop });
        });
      await page.goto(origin);
      await manage();
      const left = page.waitForURL(`${behind.issuer}/**`);
      await inPage(() => void manager.signinRedirect());
      await left;
      await enterPassword(page, alice);
      await page.waitForURL(`${origin}/callback?**`);
      await manage();
      const user = await inPage(async () => ({ ...(await manager.signinRedirectCallback()) }));
      assert.equal(user.token_type, "DPoP");
      const renewed = await inPage(async () => ({ ...(await manager.signinSilent()) }));
      assert.equal(renewed.token_type, "DPoP");
      assert.notEqual(renewed.access_token, user.access_token);
      // Of a resource's nonce the library leaves the round to the page.
      const asked = await inPage(async ({ authority }) => {
        const address = `${authority}/connect/userinfo`;
        const user = await manager.getUser();
        const ask = async (nonce) => {
          const DPoP = await manager.dpopProof(address, user, "GET", nonce);
          return fetch(address, { headers: { Authorization: `DPoP ${user.access_token}`, DPoP } });
        };
        const first = await ask();
        const second = await ask(first.headers.get("DPoP-Nonce"));
        const bearer = await fetch(address, { headers: { Authorization: `Bearer ${user.access_token}` } });
        const challenges = [first, bearer].map((answer) => answer.headers.get("WWW-Authenticate"));
        return { statuses: [first.status, second.status, bearer.status], challenges, claims: await second.json() };
      });
      assert.deepEqual(asked.statuses, [401, 200, 401]);
      assert.match(asked.challenges[0], /error="use_dpop_nonce"/);
      assert.match(asked.challenges[1], /error="invalid_token"/);
      assert.equal(asked.claims.name, "Alice Liddell");
      const [token, userinfo] = ["/connect/token", "/connect/userinfo"];
      const expected = [`${token} 400`, `${token} 200`, `${token} 200`, `${userinfo} 401`, `${userinfo} 200`, `${userinfo} 401`];
      assert.deepEqual(answers.map((answer) => `${new URL(answer.url()).pathname} ${answer.status()}`), expected);
      // But for the last, which came with Bearer.
      for (const answer of answers.slice(0, -1)) {
        const { dpop } = await answer.request().allHeaders();
        assert.equal(claimsOf(dpop).htu, answer.url());
      }
      assert.deepEqual(complaints, []);
      await context.close();
    });

    test("a request that was not pushed is refused", async () => {
      for (const { client_id, redirectUri } of [holder, ...banks]) {
        const query = new URLSearchParams({
          client_id, redirect_uri: redirectUri, response_type: "code", scope: "openid", state: "kept",
          code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", code_challenge_method: "S256",
        });
        const answer = await browse(`${behind.issuer}/connect/authorize?${query}`, { redirect: "manual" });
        const { origin, searchParams } = new URL(answer.headers.get("location"));
        assert.equal(origin, new URL(redirectUri).origin);
        assert.equal(searchParams.get("error"), "invalid_request");
      }
    });

    test("the address in a proof is the public one", async () => {
      const proof = newProver();
      const token = (htu, nonce, headers = {}) =>
        askAt(behind.at, "POST", "/connect/token", { ...form, ...headers, dpop: proof({ htm: "POST", htu, nonce }) }, own);
      const address = `${behind.issuer}/connect/token`;
      const round = await token(address);
      assert.equal(JSON.parse(round.text).error, "use_dpop_nonce");
      const nonce = round.headers["dpop-nonce"];
      const answer = await token(address, nonce);
      assert.equal(JSON.parse(answer.text).token_type, "DPoP", answer.text);
      // Where Gatepost listens, and what a visitor may claim, is not it.
      const [upstream] = behind.upstreams;
      const inside = upstream.startsWith("unix:") ? "localhost" : upstream;
      const others = [`http://${inside}/connect/token`, "https://localhost/connect/token", address.replace("https", "http"), address.replace("token", "par")];
      for (const htu of others) {
        const refused = await token(htu, nonce);
        assert.equal(JSON.parse(refused.text).error, "invalid_dpop_proof", `${htu}: ${refused.text}`);
        assert.equal(refused.headers["dpop-nonce"], undefined);
      }
      const forged = { "x-forwarded-host": "evil.example", "x-forwarded-proto": "http", forwarded: "host=evil.example;proto=http" };
      assert.equal((await token("http://evil.example/connect/token", nonce, forged)).status, 400);
      assert.equal((await token(address, nonce, forged)).status, 200);
    });

    test("a proof reaches the registration over HTTP", async () => {
      const prove = newProver();
      const secret = { client_id: "pipeline", client_secret: holder.secret };
      const body = String(new URLSearchParams({ grant_type: "client_credentials", ...secret }));
      const dpop = prove({ htm: "POST", htu: `${behind.issuer}/connect/token` });
      const { access_token } = JSON.parse((await askAt(behind.at, "POST", "/connect/token", { ...form, dpop }, body)).text);
      const ath = createHash("sha256").update(access_token).digest("base64url");
      const bound = (htm, path) => ({
        authorization: `DPoP ${access_token}`,
        "content-type": "application/json",
        dpop: prove({ htm, htu: behind.issuer + path, ath }),
      });
      const exported = await askAt(behind.at, "GET", "/admin/export", bound("GET", "/admin/export"));
      assert.equal(exported.status, 200, exported.text);
      const planned = await askAt(behind.at, "POST", "/admin/plan", bound("POST", "/admin/plan"), "{}");
      assert.equal(planned.status, 200, planned.text);
    });

    test("two lines of proof arrive as two", async () => {
      const prove = newProver();
      const proof = (nonce) => prove({ htm: "POST", htu: `${behind.issuer}/connect/token`, nonce });
      const token = (...dpop) => askAt(behind.at, "POST", "/connect/token", { ...form, dpop }, own);
      const nonce = (await token(proof())).headers["dpop-nonce"];
      const twice = await token(proof(nonce), proof(nonce));
      assert.equal(JSON.parse(twice.text).error, "invalid_dpop_proof", twice.text);
      assert.equal((await token(proof(nonce))).status, 200);
    });

    test("it takes TLS 1.2 with the suites that FAPI 2.0 allows, TLS 1.3, and nothing else", async () => {
      await takesGoodSuitesAlone(behind.port, "ECDSA");
      const elsewhere = join(directory, `rsa-${proxy}`);
      await mkdir(elsewhere);
      await behind.useCertificate(await certified(elsewhere, "localhost", "RSA"));
      await takesGoodSuitesAlone(behind.port, "RSA");
    });
  });
}

// Else a library that can do no more would make a bad server look good.
test("a server that takes old TLS is seen to take it", async () => {
  const { chain, key } = await certified(directory, "localhost");
  const anything = { ciphers: "ALL:@SECLEVEL=0", minVersion: "TLSv1" };
  const server = createServer({ ...anything, key: await readFile(key), cert: await readFile(chain) }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  try {
    for (const maxVersion of ["TLSv1", "TLSv1.1"]) {
      assert.equal((await handshake(port, { ...anything, maxVersion })).version, maxVersion);
    }
    await assert.rejects(takesGoodSuitesAlone(port), /ECDHE-ECDSA-CHACHA20-POLY1305/);
  } finally {
    server.close();
  }
});
