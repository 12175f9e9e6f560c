// What the tests with other people's client libraries share: a provider to ask, and a person who signs in by plain HTTP,
// because no library does that.

import { appCode } from "./app_code.mjs";
import { newProject, operate, registerAndSettle, removeProject, startDev } from "./gatepost.mjs";

export const alice = { username: "alice", password: "looking-glass" };
export const demo = { client_id: "demo", client_secret: "demo-secret-for-trying-out-only" };
export const service = { client_id: "demo-service", client_secret: "demo-service-secret-for-trying-out-only" };
export const device = { client_id: "demo-device" };
export const direct = { client_id: "direct", client_secret: "a-secret-of-the-direct-client" };
export const offline = ["jwt", "reference"].map((kind) => ({
  client_id: `offline-${kind}`,
  client_secret: "a-secret-of-the-offline-client",
  kind,
}));

export const everyType = { client_id: "every-type", client_secret: "a-secret-of-the-client-of-every-type" };

// Clients that may stay while the person is away, and one for every way of the authorization endpoint.
function clients(redirectUri) {
  const registered = offline.map(({ client_id, client_secret, kind }) => ({
    client_id,
    client_name: client_id,
    redirect_uris: [redirectUri],
    response_types: ["code"],
    grant_types: ["authorization_code", "refresh_token"],
    scope: "openid profile offline_access orders.read",
    access_token_type: kind,
    secrets: [{ value: client_secret }],
  }));
  registered.push({
    client_id: direct.client_id,
    response_types: [],
    grant_types: ["password", "refresh_token"],
    scope: "openid profile offline_access orders.read",
    secrets: [{ value: direct.client_secret }],
  });
  const { client_id, client_secret } = everyType;
  registered.push({
    client_id,
    client_name: client_id,
    redirect_uris: [redirectUri],
    response_types: ["code", "id_token", "id_token token", "code id_token", "code id_token token"],
    grant_types: ["authorization_code", "implicit"],
    allow_access_tokens_via_browser: true,
    scope: "openid profile orders.read",
    secrets: [{ value: client_secret }],
  });
  return registered;
}

// Answers { issuer, redirectUri, register, close }.
export async function startProvider() {
  const directory = await newProject();
  const dev = await startDev(directory);
  const redirectUri = `${dev.demo.replace(/\/$/, "")}/callback`;
  await registerAndSettle(directory, { clients: clients(redirectUri) });
  return {
    issuer: dev.provider,
    redirectUri,
    forgetFactors: () => operate(directory, ["user", "factors", alice.username, "--remove-all"]),
    register: (clients) => registerAndSettle(directory, { clients }),
    close: async () => {
      await dev.stop();
      await removeProject(directory);
    },
  };
}

// Goes through the provider's pages as alice; answers where the client is sent, or the form it is sent.
// `cookies` are those of a browser that goes on; `browse` is its way to the provider.
export async function authorizeAsAlice(authorizationUrl, redirectUri, cookies = new Map(), browse = fetch) {
  const goesBack = (url) => url?.startsWith(redirectUri);
  const ends = (step) => goesBack(step.location ?? step.next?.url);
  const { location, next } = await walkAsAlice(String(authorizationUrl), ends, "allow", cookies, browse);
  return location ? new URL(location) : new Request(next.url, next.options);
}

// Lets a device in as alice, or turns it away; answers the last page.
export async function decideForDevice(link, decision = "allow") {
  const { page } = await walkAsAlice(link, ({ page }) => page && !page.includes("<form"), decision);
  return page;
}

// Fills in one page after the other until `ends` says so of a step: a redirect's location, a page, or the form to send next.
async function walkAsAlice(start, ends, decision = "allow", cookies = new Map(), browse = fetch) {
  let next = { url: start, options: {} };
  for (let hop = 0; hop < 10; hop += 1) {
    const { url, options } = next;
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const answer = await browse(url, { ...options, redirect: "manual", headers: { ...options.headers, cookie } });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      cookies.set(name, value);
    }
    const location = answer.headers.get("location");
    const step = location ? { location } : { page: await answer.text() };
    if (ends(step)) return step;
    next = location ? { url: new URL(location, url).href, options: {} } : filledIn(step.page, url, decision);
    if (ends({ next })) return { next };
  }
  throw new Error(`the pages that begin at ${start} do not end`);
}

// The app on her phone. A code counts once: each is of the next step.
const phone = { key: undefined, steps: -1 };

// The page's main form, as alice would send it.
function filledIn(page, url, decision) {
  const form = page.match(/<form method="post" action="([^"]*)">(.*?)<\/form>/s);
  if (!form) throw new Error(`no form at ${url}:\n${page}`);
  const [, action, content] = form;
  const fields = new URLSearchParams();
  for (const [tag] of content.matchAll(/<input[^>]*>/g)) {
    const name = tag.match(/ name="([^"]*)"/)?.[1];
    if (name && !(name in alice)) fields.append(name, unescaped(tag.match(/ value="([^"]*)"/)?.[1] ?? ""));
  }
  if (content.includes('type="password"')) {
    Object.entries(alice).forEach(([name, value]) => fields.append(name, value));
  } else if (content.includes('autocomplete="one-time-code"')) {
    const key = page.match(/<code class="key">([^<]*)</)?.[1];
    if (key) Object.assign(phone, { key: key.replaceAll(" ", ""), steps: -1 });
    fields.set("code", appCode(phone.key, phone.steps++));
    if (key) fields.append("decision", "add_app");
  } else {
    fields.append("decision", content.includes('value="continue"') ? "continue" : decision);
  }
  return { url: new URL(unescaped(action), url).href, options: { method: "POST", body: fields } };
}

function unescaped(text) {
  return text.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
