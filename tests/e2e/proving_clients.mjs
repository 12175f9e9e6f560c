// Clients by other people's libraries that hold the key of their tokens. Each is started with { issuer, registered, browse,
// caFile, alg }: `registered` is a client of `boundClients`, `browse` a `fetch`, `alg` that of the proofs. Each can:
//   push(withProof)    push the request, with a proof or with `dpop_jkt`; answers where the browser goes
//   redeem(address)    take what came back; answers { tokens, sub }
//   refresh(tokens)    answers the new tokens
//   userinfo(), userinfoAsBearer()    with the last token; the second answers { status, challenge }
//   forgetNonce()      as a program that was started again
//   traffic()          what it sent with a proof, { path, proof, status, text, nonce, challenge } each

import { createPrivateKey, webcrypto } from "node:crypto";
import { startAuthlib } from "./authlib.mjs";
import { thumbprint } from "./proofs.mjs";

// Node 18, Debian 12's, has them, but not as globals.
globalThis.crypto ??= webcrypto;
globalThis.CryptoKey ??= webcrypto.CryptoKey;
const openid = await import("openid-client");
const oauth = await import("oauth4webapi");

const kid = "2026-11";
const scope = "openid profile offline_access";

// Passes on, and writes down what has a proof.
function watched(browse) {
  const traffic = [];
  const watching = async (address, options) => {
    const answer = await browse(address, options);
    const proof = new Headers(options.headers).get("dpop");
    if (proof) {
      const text = await answer.clone().text();
      const [nonce, challenge] = ["dpop-nonce", "www-authenticate"].map((name) => answer.headers.get(name));
      traffic.push({ path: new URL(address).pathname, proof, status: answer.status, text, nonce, challenge });
    }
    return answer;
  };
  return { traffic, watching };
}

async function keyOf(registered) {
  if (!registered.privateKey) return undefined;
  const jwk = createPrivateKey(registered.privateKey).export({ format: "jwk" });
  const kind = registered.alg === "Ed25519" ? { name: "Ed25519" } : { name: "ECDSA", namedCurve: "P-256" };
  return { kid, key: await webcrypto.subtle.importKey("jwk", jwk, kind, false, ["sign"]) };
}

const jktOf = async ({ publicKey }) => thumbprint(await webcrypto.subtle.exportKey("jwk", publicKey));

// What a bound token is answered where it comes as any other.
async function askedAsBearer(browse, address, token) {
  const answer = await browse(address, { headers: { authorization: `Bearer ${token}` } });
  return { status: answer.status, challenge: answer.headers.get("www-authenticate") };
}

async function startOpenidClient({ issuer, registered, browse, alg }) {
  const { traffic, watching } = watched(browse);
  const key = await keyOf(registered);
  const authentication = key ? openid.PrivateKeyJwt(key) : openid.ClientSecretBasic(registered.secret);
  const options = { [openid.customFetch]: watching };
  const configuration = await openid.discovery(new URL(issuer), registered.client_id, undefined, authentication, options);
  openid.enableNonRepudiationChecks(configuration);
  const pair = await openid.randomDPoPKeyPair(alg);
  let DPoP = openid.getDPoPHandle(configuration, pair);
  let [checks, tokens, sub] = [];
  return {
    push: async (withProof) => {
      const pkceCodeVerifier = openid.randomPKCECodeVerifier();
      checks = { pkceCodeVerifier, expectedState: openid.randomState(), expectedNonce: openid.randomNonce(), idTokenExpected: true };
      const parameters = {
        redirect_uri: registered.redirectUri,
        scope,
        state: checks.expectedState,
        nonce: checks.expectedNonce,
        code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: "S256",
      };
      if (withProof) return openid.buildAuthorizationUrlWithPAR(configuration, parameters, { DPoP });
      return openid.buildAuthorizationUrlWithPAR(configuration, { ...parameters, dpop_jkt: await jktOf(pair) });
    },
    redeem: async (address) => {
      tokens = await openid.authorizationCodeGrant(configuration, address, checks, undefined, { DPoP });
      ({ sub } = tokens.claims());
      return { tokens, sub };
    },
    refresh: async (before) => (tokens = await openid.refreshTokenGrant(configuration, before.refresh_token, undefined, { DPoP })),
    userinfo: () => openid.fetchUserInfo(configuration, tokens.access_token, sub, { DPoP }),
    userinfoAsBearer: () => askedAsBearer(browse, configuration.serverMetadata().userinfo_endpoint, tokens.access_token),
    forgetNonce: () => (DPoP = openid.getDPoPHandle(configuration, pair)),
    traffic: () => traffic,
    end: () => {},
  };
}

// This library leaves the second try to its caller.
async function withNonce(ask) {
  try {
    return await ask();
  } catch (error) {
    if (!oauth.isDPoPNonceError(error)) throw error;
    return ask();
  }
}

async function startOauth4webapi({ issuer, registered, browse, alg }) {
  const { traffic, watching } = watched(browse);
  const fetching = { [oauth.customFetch]: watching };
  const found = await oauth.discoveryRequest(new URL(issuer), fetching);
  const provider = await oauth.processDiscoveryResponse(new URL(issuer), found);
  const client = { client_id: registered.client_id };
  const key = await keyOf(registered);
  const authentication = key ? oauth.PrivateKeyJwt(key) : oauth.ClientSecretBasic(registered.secret);
  const pair = await oauth.generateKeyPair(alg);
  let DPoP = oauth.DPoP(client, pair);
  let [verifier, state, nonce, tokens, sub] = [];
  const proving = () => ({ ...fetching, DPoP });
  return {
    push: async (withProof) => {
      [verifier, state, nonce] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState(), oauth.generateRandomNonce()];
      const parameters = new URLSearchParams({
        response_type: "code",
        redirect_uri: registered.redirectUri,
        scope,
        state,
        nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      if (!withProof) parameters.set("dpop_jkt", await jktOf(pair));
      const { request_uri } = await withNonce(async () => {
        const options = withProof ? proving() : fetching;
        const answer = await oauth.pushedAuthorizationRequest(provider, client, authentication, parameters, options);
        return oauth.processPushedAuthorizationResponse(provider, client, answer);
      });
      const url = new URL(provider.authorization_endpoint);
      url.search = String(new URLSearchParams({ client_id: client.client_id, request_uri }));
      return url;
    },
    redeem: async (address) => {
      const came = oauth.validateAuthResponse(provider, client, address, state);
      tokens = await withNonce(async () => {
        const { redirectUri } = registered;
        const answer = await oauth.authorizationCodeGrantRequest(provider, client, authentication, came, redirectUri, verifier, proving());
        const result = await oauth.processAuthorizationCodeResponse(provider, client, answer, { expectedNonce: nonce, requireIdToken: true });
        await oauth.validateApplicationLevelSignature(provider, answer, fetching);
        return result;
      });
      ({ sub } = oauth.getValidatedIdTokenClaims(tokens));
      return { tokens, sub };
    },
    refresh: async ({ refresh_token }) => {
      tokens = await withNonce(async () => {
        const answer = await oauth.refreshTokenGrantRequest(provider, client, authentication, refresh_token, proving());
        return oauth.processRefreshTokenResponse(provider, client, answer);
      });
      return tokens;
    },
    userinfo: () =>
      withNonce(async () => {
        const answer = await oauth.userInfoRequest(provider, client, tokens.access_token, proving());
        return oauth.processUserInfoResponse(provider, client, sub, answer);
      }),
    userinfoAsBearer: () => askedAsBearer(browse, provider.userinfo_endpoint, tokens.access_token),
    forgetNonce: () => (DPoP = oauth.DPoP(client, pair)),
    traffic: () => traffic,
    end: () => {},
  };
}

// Proofs and the push are added to the library in `authlib_client.py`.
async function startAuthlibClient({ issuer, registered, caFile, alg }) {
  const ask = startAuthlib({ REQUESTS_CA_BUNDLE: caFile });
  const { client_id, secret: client_secret, redirectUri: redirect_uri, privateKey: key } = registered;
  const found = await ask("discover_and_hold", { alg, issuer, client_id, client_secret, redirect_uri, scope });
  const kind = registered.alg === "Ed25519" ? "ed25519" : "ec";
  if (key) await ask("sign_for_oneself", { key, kind, kid, alg: registered.alg, audience: issuer });
  let state;
  return {
    push: async (withProof) => {
      const pushed = await ask("push", { with_proof: withProof, ...(withProof ? {} : { dpop_jkt: found.thumbprint }) });
      ({ state } = pushed);
      return pushed.url;
    },
    redeem: async (address) => {
      const { token, claims } = await ask("fetch_token", { answer: address.href, state });
      return { tokens: token, sub: claims.sub };
    },
    refresh: async ({ refresh_token }) => (await ask("refresh", { refresh_token })).token,
    userinfo: async () => (await ask("userinfo")).claims,
    userinfoAsBearer: () => ask("userinfo_as_bearer"),
    forgetNonce: () => ask("forget_nonce"),
    traffic: async () => (await ask("traffic")).requests,
    end: () => ask.end(),
  };
}

export const libraries = { "openid-client": startOpenidClient, oauth4webapi: startOauth4webapi, Authlib: startAuthlibClient };
