// openid-client (npm) against Gatepost, with nothing set that the library does not ask for. Its pushed requests and proofs
// are in `proofs_behind_proxies.test.mjs`.

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { authorizeAsAlice, decideForDevice, demo, device, everyType, offline, service, startProvider } from "./foreign_clients.mjs";

// Node 18, Debian 12's, has them, but not as globals.
globalThis.crypto ??= webcrypto;
globalThis.CryptoKey ??= webcrypto.CryptoKey;
const library = await import("openid-client");

describe("openid-client", { timeout: 300_000 }, () => {
  let provider;

  before(async () => {
    provider = await startProvider();
  });

  after(async () => {
    await provider?.close();
  });

  // Plain HTTP is for this machine alone, which the library wants to be told.
  function discover({ client_id, client_secret }, authentication = library.ClientSecretBasic(client_secret)) {
    const options = { execute: [library.allowInsecureRequests] };
    return library.discovery(new URL(provider.issuer), client_id, undefined, authentication, options);
  }

  async function signIn(configuration, scope, wishes = {}, cookies = undefined) {
    const verifier = library.randomPKCECodeVerifier();
    const [state, nonce] = [library.randomState(), library.randomNonce()];
    const url = library.buildAuthorizationUrl(configuration, {
      redirect_uri: provider.redirectUri,
      scope,
      state,
      nonce,
      code_challenge: await library.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      ...wishes,
    });
    const answer = await authorizeAsAlice(url, provider.redirectUri, cookies);
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce, idTokenExpected: true };
    return { answer, checks, tokens: await library.authorizationCodeGrant(configuration, answer, checks) };
  }

  test("discovers the provider, and finds the issuer it asked", async () => {
    const metadata = (await discover(demo)).serverMetadata();
    assert.equal(metadata.issuer, provider.issuer);
    assert.ok(metadata.supportsPKCE());
    assert.equal(metadata.authorization_response_iss_parameter_supported, true);
  });

  test("steps up by acr_values and by claims", async () => {
    const configuration = await discover(demo);
    const [before, weak] = [new Map(), new Map()];
    const essential = { claims: JSON.stringify({ id_token: { acr: { essential: true, values: ["2"] } } }) };
    const acr = async (wishes, cookies) => (await signIn(configuration, "openid", wishes, cookies)).tokens.claims().acr;
    assert.equal(await acr({}, weak), "1");
    assert.equal(await acr({}, before), "1");
    assert.equal(await acr(essential, before), "2", "with an app that was set up on the way");
    assert.equal(await acr({}, weak), "2", "the session of before has ended, and signing in takes the app");
    assert.equal(await acr({ acr_values: "2" }, weak), "2");
    assert.ok(configuration.serverMetadata().acr_values_supported.includes("phr"));
    await provider.forgetFactors();
  });

  test("redeems a code with PKCE, checks the id_token and asks userinfo", async () => {
    const configuration = await discover(demo);
    // The signature too: without this the library trusts the connection.
    library.enableNonRepudiationChecks(configuration);
    const { tokens } = await signIn(configuration, "openid profile email roles");
    const { sub, iss, auth_time } = tokens.claims();
    assert.equal(iss, provider.issuer);
    assert.equal(typeof auth_time, "number");
    const info = await library.fetchUserInfo(configuration, tokens.access_token, sub);
    assert.equal(info.name, "Alice Liddell");
    assert.deepEqual(info.role, ["admin"]);
    await assert.rejects(library.fetchUserInfo(configuration, tokens.access_token, "somebody-else"));
  });

  test("is told that a code was used", async () => {
    const configuration = await discover(demo);
    const { answer, checks, tokens } = await signIn(configuration, "openid");
    await assert.rejects(library.authorizationCodeGrant(configuration, answer, checks), { error: "invalid_grant" });
    await assert.rejects(library.fetchUserInfo(configuration, tokens.access_token, tokens.claims().sub), { status: 401 });
  });

  // An authorization request of the client for every type, as far as the library leaves it to the caller.
  function request(configuration, further) {
    const checks = { expectedState: library.randomState(), expectedNonce: library.randomNonce() };
    const { expectedState: state, expectedNonce: nonce } = checks;
    const parameters = { redirect_uri: provider.redirectUri, scope: "openid profile", state, nonce, ...further };
    return { checks, answer: () => authorizeAsAlice(library.buildAuthorizationUrl(configuration, parameters), provider.redirectUri) };
  }

  // With a code there is a verifier, too.
  async function codeRequest(configuration, further) {
    const pkceCodeVerifier = library.randomPKCECodeVerifier();
    const code_challenge = await library.calculatePKCECodeChallenge(pkceCodeVerifier);
    const { checks, answer } = request(configuration, { code_challenge, code_challenge_method: "S256", ...further });
    return { checks: { ...checks, pkceCodeVerifier }, answer };
  }

  test("redeems a code with a nonce in place of PKCE", async () => {
    const configuration = await discover(everyType);
    const { checks, answer } = request(configuration);
    const tokens = await library.authorizationCodeGrant(configuration, await answer(), { ...checks, idTokenExpected: true });
    assert.equal(tokens.claims().nonce, checks.expectedNonce);
  });

  for (const response_mode of ["fragment", "form_post"]) {
    test(`takes an id_token from the browser by ${response_mode}`, async () => {
      const configuration = await discover(everyType);
      library.useIdTokenResponseType(configuration);
      const { checks, answer } = request(configuration, { response_mode });
      const { expectedNonce, expectedState } = checks;
      const came = await answer();
      const claims = await library.implicitAuthentication(configuration, came.clone?.() ?? came, expectedNonce, { expectedState });
      assert.equal(claims.name, "Alice Liddell");
      await assert.rejects(library.implicitAuthentication(configuration, came, "another nonce", { expectedState }));
    });

    test(`takes a code and an id_token that fit each other by ${response_mode}`, async () => {
      const configuration = await discover(everyType);
      library.useCodeIdTokenResponseType(configuration);
      const { checks, answer } = await codeRequest(configuration, { response_mode });
      const tokens = await library.authorizationCodeGrant(configuration, await answer(), checks);
      const info = await library.fetchUserInfo(configuration, tokens.access_token, tokens.claims().sub);
      assert.equal(info.name, "Alice Liddell");
    });
  }

  test("notices when the code beside an id_token is another one", async () => {
    const configuration = await discover(everyType);
    library.useCodeIdTokenResponseType(configuration);
    const [one, other] = [await codeRequest(configuration), await codeRequest(configuration)];
    const [came, foreign] = [await one.answer(), await other.answer()];
    const mixed = new URLSearchParams(came.hash.slice(1));
    mixed.set("code", new URLSearchParams(foreign.hash.slice(1)).get("code"));
    came.hash = mixed.toString();
    await assert.rejects(library.authorizationCodeGrant(configuration, came, one.checks), ({ cause }) => /c_hash/.test(cause.message));
  });

  test("takes a plain code by form_post", async () => {
    const configuration = await discover(everyType);
    const { checks, answer } = await codeRequest(configuration, { response_mode: "form_post" });
    const tokens = await library.authorizationCodeGrant(configuration, await answer(), checks);
    assert.equal(tokens.claims().nonce, checks.expectedNonce);
  });

  for (const client of offline) {
    const scope = "openid profile offline_access orders.read";

    test(`refreshes a ${client.kind} token, and asks for less`, async () => {
      const configuration = await discover(client);
      const { tokens } = await signIn(configuration, scope);
      const next = await library.refreshTokenGrant(configuration, tokens.refresh_token);
      assert.notEqual(next.refresh_token, tokens.refresh_token);
      assert.equal(next.claims().sub, tokens.claims().sub);
      assert.equal(next.claims().auth_time, tokens.claims().auth_time);
      assert.equal((await library.fetchUserInfo(configuration, next.access_token, next.claims().sub)).name, "Alice Liddell");
      const less = await library.refreshTokenGrant(configuration, next.refresh_token, { scope: "openid" });
      assert.equal(less.scope, "openid");
      const more = library.refreshTokenGrant(configuration, less.refresh_token, { scope: `${scope} email` });
      await assert.rejects(more, { error: "invalid_scope" });
    });

    test(`sees a ${client.kind} token alive, and dead once it is revoked`, async () => {
      const configuration = await discover(client);
      const { tokens } = await signIn(configuration, scope);
      const seen = await library.tokenIntrospection(configuration, tokens.access_token);
      assert.equal(seen.active, true);
      assert.equal(seen.sub, tokens.claims().sub);
      assert.equal(seen.client_id, client.client_id);
      await library.tokenRevocation(configuration, tokens.access_token, { token_type_hint: "access_token" });
      assert.deepEqual(await library.tokenIntrospection(configuration, tokens.access_token), { active: false });
      await assert.rejects(library.fetchUserInfo(configuration, tokens.access_token, tokens.claims().sub), { status: 401 });
      assert.ok((await library.refreshTokenGrant(configuration, tokens.refresh_token)).access_token);
    });

    test(`ends everything of a grant with its refresh token (${client.kind})`, async () => {
      const configuration = await discover(client);
      const { tokens } = await signIn(configuration, scope);
      assert.equal((await library.tokenIntrospection(configuration, tokens.refresh_token)).active, true);
      await library.tokenRevocation(configuration, tokens.refresh_token);
      await assert.rejects(library.refreshTokenGrant(configuration, tokens.refresh_token), { error: "invalid_grant" });
      assert.deepEqual(await library.tokenIntrospection(configuration, tokens.access_token), { active: false });
    });
  }

  test("waits for the person in front of a device, and gets tokens that last", async () => {
    const configuration = await discover(device, library.None());
    const waiting = await library.initiateDeviceAuthorization(configuration, { scope: "openid profile offline_access" });
    assert.match(waiting.user_code, /^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    assert.match(await decideForDevice(waiting.verification_uri_complete), /Your device is connected/);
    const tokens = await library.pollDeviceAuthorizationGrant(configuration, waiting);
    const info = await library.fetchUserInfo(configuration, tokens.access_token, tokens.claims().sub);
    assert.equal(info.name, "Alice Liddell");
    const next = await library.refreshTokenGrant(configuration, tokens.refresh_token);
    assert.equal(next.claims().auth_time, tokens.claims().auth_time);
  });

  test("is told that the person turned the device away", async () => {
    const configuration = await discover(device, library.None());
    const waiting = await library.initiateDeviceAuthorization(configuration, { scope: "openid" });
    assert.match(await decideForDevice(waiting.verification_uri_complete, "deny"), /was not connected/);
    await assert.rejects(library.pollDeviceAuthorizationGrant(configuration, waiting), { error: "access_denied" });
  });

  for (const method of ["ClientSecretBasic", "ClientSecretPost"]) {
    test(`gets a token for itself with ${method}`, async () => {
      const configuration = await discover(service, library[method](service.client_secret));
      const tokens = await library.clientCredentialsGrant(configuration, { scope: "orders.read" });
      assert.equal(tokens.token_type, "bearer");
      assert.equal(tokens.scope, "orders.read");
      assert.ok(tokens.expiresIn() > 0);
    });
  }

  test("is told that its secret is wrong", async () => {
    const configuration = await discover({ ...service, client_secret: "wrong" });
    // For the library the challenge of the 401 comes first, and its body second.
    const refused = { code: "OAUTH_WWW_AUTHENTICATE_CHALLENGE", status: 401 };
    await assert.rejects(library.clientCredentialsGrant(configuration), refused);
  });
});
