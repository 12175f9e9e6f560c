export const users = new oidc.UserManager({
  authority: "http://localhost:8080",
  client_id: "shop",
  redirect_uri: `${location.origin}/`,
  post_logout_redirect_uri: `${location.origin}/`,
  scope: "openid profile offline_access orders.read",
  // The key lies in IndexedDB, and no script can take it out of the browser.
  dpop: { bind_authorization_code: true, store: new oidc.IndexedDbDPoPStore() },
});

const nonces = new Map();

// Calls an API, or UserInfo, with the access token and a proof of the key.
export async function call(url, options = {}) {
  const { origin } = new URL(url);
  const before = nonces.get(origin);
  const answer = await send(url, options, before);
  const nonce = answer.headers.get("DPoP-Nonce");
  if (nonce) nonces.set(origin, nonce);
  const again = answer.status === 401 && nonce && nonce !== before;
  return again ? send(url, options, nonce) : answer;
}

async function send(url, options, nonce) {
  const user = await users.getUser();
  const proof = await users.dpopProof(url, user, options.method ?? "GET", nonce);
  const headers = { ...options.headers, Authorization: `DPoP ${user.access_token}`, DPoP: proof };
  return fetch(url, { ...options, headers });
}
