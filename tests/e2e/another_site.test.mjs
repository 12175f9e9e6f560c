// A relying party on another site than the provider: 127.0.0.1 and localhost are two sites, two ports of localhost one.
// oidc-client-ts (npm) runs in its pages as in any single-page application.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { alice, visitorWithThirdPartyCookies } from "./browser.mjs";
import { newProject, register, removeProject, startDev } from "./gatepost.mjs";
import { authorization } from "./relying_party.mjs";

const library = await readFile(new URL("node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js", import.meta.url));

// One page for everything: it has the library, and does with it what it is told.
const page = `<!doctype html><title>Application</title><link rel="icon" href="data:,"><h1>Application</h1>
<script src="/oidc-client-ts.js"></script><script src="/settings.js"></script>`;

// In the frame of a silent renewal nobody tells it anything.
const silentPage = `${page}<script>manager.signinSilentCallback()</script>`;

describe("a relying party on another site", { timeout: 200_000 }, () => {
  let dev, directory, origin, someone, server;
  const posted = [];

  before(async () => {
    server = createServer(serve).listen(0, "127.0.0.1");
    await once(server, "listening");
    origin = `http://127.0.0.1:${server.address().port}`;
    directory = await newProject();
    dev = await startDev(directory, [], { GATEPOST_COOKIE_SAMESITE: "none" });
    assert.equal(new URL(dev.provider).hostname, "localhost");
    await register(directory, { clients: [application(), formPostClient()] });
    someone = await visitorWithThirdPartyCookies(join(directory, "profile"));
  });

  after(async () => {
    await someone?.context.close();
    await dev?.stop();
    server?.close();
    server?.closeAllConnections();
    await removeProject(directory);
    assert.deepEqual(someone?.complaints, []);
  });

  // By keyboard. On a busy machine Chromium gives no size to a page that comes from another site, and what has no size
  // cannot be clicked.
  async function signIn() {
    await someone.page.locator("input[name=username]").fill(alice.username);
    await someone.page.locator("input[name=password]").fill(alice.password);
    await someone.page.locator("input[name=password]").press("Enter");
  }

  function application() {
    return {
      client_id: "application",
      client_name: "Application",
      redirect_uris: [`${origin}/callback`, `${origin}/silent`],
      post_logout_redirect_uris: [`${origin}/signed-out`],
      response_types: ["code"],
      grant_types: ["authorization_code"],
      token_endpoint_auth_method: "none",
      // Said in so many words: any program on this machine can be at a loopback address.
      require_consent: false,
      scope: "openid profile",
    };
  }

  function formPostClient() {
    return {
      client_id: "form-post",
      client_name: "Form post",
      redirect_uris: [`${origin}/posted`],
      response_types: ["code", "code id_token", "id_token"],
      grant_types: ["authorization_code", "implicit"],
      scope: "openid profile",
      secrets: [{ value: "a-secret-of-the-form-post-client" }],
    };
  }

  function settings() {
    const told = {
      authority: dev.provider,
      client_id: "application",
      redirect_uri: `${origin}/callback`,
      silent_redirect_uri: `${origin}/silent`,
      post_logout_redirect_uri: `${origin}/signed-out`,
      scope: "openid profile",
      loadUserInfo: true,
      monitorSession: true,
      checkSessionIntervalInSeconds: 1,
      automaticSilentRenew: false,
      silentRequestTimeoutInSeconds: 10,
    };
    return `const manager = new oidc.UserManager(${JSON.stringify(told)});
      window.heard = [];
      for (const event of ["UserSignedOut", "UserSessionChanged", "SilentRenewError"])
        manager.events["add" + event](() => heard.push(event));`;
  }

  function serve(request, response) {
    const { pathname } = new URL(request.url, "http://application");
    if (pathname === "/posted") return take(request, response);
    const scripts = { "/oidc-client-ts.js": library, "/settings.js": settings() };
    response.setHeader("Content-Type", `text/${pathname in scripts ? "javascript" : "html"}; charset=utf-8`);
    response.end(scripts[pathname] ?? (pathname === "/silent" ? silentPage : page));
  }

  async function take(request, response) {
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += piece;
    const { method, headers } = request;
    posted.push({ method, type: headers["content-type"], origin: headers.origin, referer: headers.referer, fields: new URLSearchParams(body) });
    response.setHeader("Content-Type", "text/html; charset=utf-8");
    response.end(page.replace("<h1>Application", "<h1>Taken"));
  }

  // What the library in the page answers; `ask` runs there, with the manager at hand.
  function inPage(ask) {
    return someone.page.evaluate(ask);
  }

  const user = () => inPage(async () => ({ ...(await manager.getUser()) }));

  // The library stores what it awaits before it leads the browser away.
  async function leave(how) {
    await inPage(how).catch((error) => assert.match(String(error), /navigation|context was destroyed/i));
  }

  test("signs in with PKCE, by its own fetches across sites", async () => {
    await someone.page.goto(origin);
    await leave(() => void manager.signinRedirect({ state: { here: "there" } }));
    await someone.page.locator("input[name=password]").waitFor();
    await signIn();
    await someone.page.waitForURL(`${origin}/callback?**`);
    const { profile, state } = await inPage(async () => ({ ...(await manager.signinRedirectCallback()) }));
    assert.deepEqual(state, { here: "there" });
    assert.equal(profile.name, "Alice Liddell");
    assert.ok((await user()).session_state);
  });

  test("renews silently in a frame, and learns nothing has changed", async () => {
    const { access_token: before, profile } = await user();
    const renewed = await inPage(async () => ({ ...(await manager.signinSilent()) }));
    assert.notEqual(renewed.access_token, before);
    assert.equal(renewed.profile.sub, profile.sub);
    assert.equal(renewed.profile.auth_time, profile.auth_time);
    assert.equal(renewed.profile.sid, profile.sid);
    const status = await inPage(async () => ({ ...(await manager.querySessionStatus()) }));
    assert.equal(status.sub, profile.sub);
    await someone.page.waitForTimeout(2_500);
    assert.deepEqual(await inPage(() => heard), []);
  });

  test("hears from the check-session frame that the person signed out elsewhere", async () => {
    const other = await someone.context.newPage();
    await other.goto(`${dev.provider}/logout`);
    await other.locator("button[value=sign_out]").click();
    await other.locator("button[value=sign_out]").waitFor({ state: "detached" });
    await other.close();
    await someone.page.waitForFunction(() => heard.includes("UserSignedOut"));
    const refused = await inPage(() => manager.signinSilent().then(String, ({ error }) => error));
    assert.equal(refused, "login_required");
  });

  test("signs out, and is led back", async () => {
    await someone.page.goto(origin);
    await leave(() => void manager.signinRedirect());
    await signIn();
    await someone.page.waitForURL(`${origin}/callback?**`);
    await inPage(async () => void (await manager.signinRedirectCallback()));
    await leave(() => void manager.signoutRedirect({ state: "bye" }));
    await someone.page.waitForURL(`${origin}/signed-out?**`);
    await inPage(async () => void (await manager.signoutRedirectCallback()));
    assert.equal(await inPage(() => manager.getUser()), null);
    assert.equal(await inPage(() => manager.signinSilent().then(String, ({ error }) => error)), "login_required");
  });

  // An application that guards against forged posts knows Gatepost by its origin, and learns no address of a page.
  function assertSender({ origin: sender, referer }) {
    assert.deepEqual({ sender, referer }, { sender: new URL(dev.provider).origin, referer: `${new URL(dev.provider).origin}/` });
  }

  for (const response_type of ["code", "code id_token", "id_token"]) {
    test(`is posted what it asked for, from page to page: ${response_type}`, async () => {
      posted.length = 0;
      const state = `${response_type} !"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~ é 日`;
      const changes = { client_id: "form-post", redirect_uri: `${origin}/posted`, response_type, response_mode: "form_post", state };
      await someone.page.goto(authorization(dev, changes).url);
      if (response_type === "code") await signIn();
      await someone.page.locator("h1", { hasText: "Taken" }).waitFor({ state: "attached" });
      const [{ method, type, fields }] = posted;
      assert.deepEqual([method, type, posted.length], ["POST", "application/x-www-form-urlencoded", 1]);
      assertSender(posted[0]);
      assert.equal(fields.get("state"), state);
      assert.equal(fields.get("iss"), dev.provider);
      for (const part of ["code", "id_token"]) assert.equal(fields.has(part), response_type.split(" ").includes(part), part);
      assert.equal(new URL(someone.page.url()).search, "");
    });
  }

  test("is posted an error, too", async () => {
    posted.length = 0;
    const changes = { client_id: "form-post", redirect_uri: `${origin}/posted`, response_mode: "form_post", scope: "unheard-of" };
    await someone.page.goto(authorization(dev, changes).url);
    await someone.page.locator("h1", { hasText: "Taken" }).waitFor({ state: "attached" });
    assert.equal(posted[0].fields.get("error"), "invalid_scope");
    assertSender(posted[0]);
  });
});
