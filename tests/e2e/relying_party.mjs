// A client written for the tests alone: it asks for what the demo application has no link for. It borrows the demo's
// registration, whose secret is public.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";

const secret = "demo-secret-for-trying-out-only";

// An authorization request of its own. `parameters` adds to it, or replaces.
export function authorization(dev, parameters = {}) {
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    client_id: "demo",
    response_type: "code",
    scope: "openid profile",
    redirect_uri: `${dev.demo}/callback`,
    state: randomBytes(16).toString("base64url"),
    nonce: randomBytes(16).toString("base64url"),
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    ...parameters,
  });
  return { verifier, query, url: `${dev.provider}/connect/authorize?${query}` };
}

// The parameters with which the browser came back, from the address it stands at.
export async function answer(page, dev) {
  await page.waitForURL((url) => url.href.startsWith(`${dev.demo}/callback`));
  const { search, hash } = new URL(page.url());
  return { search, hash, parameters: new URLSearchParams((hash || search).slice(1)) };
}

// Redeems the code of an answer; the ID token's claims.
export async function redeemed(dev, request, parameters) {
  assert.equal(parameters.get("state"), request.query.get("state"));
  assert.equal(parameters.get("iss"), dev.provider);
  const response = await fetch(`${dev.provider}/connect/token`, {
    method: "POST",
    headers: { Authorization: `Basic ${btoa(`${request.query.get("client_id")}:${secret}`)}` },
    body: new URLSearchParams({
      grant_type: "authorization_code",
      code: parameters.get("code"),
      redirect_uri: request.query.get("redirect_uri"),
      code_verifier: request.verifier,
    }),
  });
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  const claims = JSON.parse(Buffer.from(body.id_token.split(".")[1], "base64url"));
  assert.equal(claims.nonce, request.query.get("nonce"));
  return claims;
}
