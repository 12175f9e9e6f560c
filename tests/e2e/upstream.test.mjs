// People sign in with an account elsewhere: at npm's oidc-provider, and at one of GitHub's kind. Both are on another site
// than Gatepost, as they are in life.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { alice, claims, decide, enterPassword, isLoginPage, looked, visitor } from "./browser.mjs";
import { startForeignProvider, startOAuthOnlyProvider } from "./foreign_provider.mjs";
import { registerAndSettle } from "./gatepost.mjs";
import { answer, authorization, redeemed } from "./relying_party.mjs";
import { browser, dev, directory, letSomebodyIn, setScene, someone } from "./scene.mjs";

const secret = "demo-secret-for-trying-out-only";
const foreignButton = { name: "Sign in with Foreign <Works> & Söhne" };

describe("an account elsewhere", { timeout: 300_000 }, () => {
  let foreign, hub;

  setScene({
    prepare: async () => {
      foreign = await startForeignProvider(dev.provider, ["foreign", "invited"]);
      hub = await startOAuthOnlyProvider();
      // The discard port: nobody listens there.
      const dead = foreign.registration("dead", { display_name: "Dead", issuer: "http://127.0.0.1:9" });
      const invited = foreign.registration("invited", { display_name: "Invited only", provision: false });
      await registerAndSettle(directory, {
        identity_providers: [foreign.registration("foreign", { sign_out: true }), invited, hub.registration("hub"), dead],
        clients: [
          client("plain", undefined),
          client("restricted", ["local", "hub"]),
          client("single", ["foreign"]),
          client("invitation", ["local", "invited"]),
          client("unlucky", ["local", "dead"]),
        ],
      });
    },
    clear: async () => {
      await foreign?.close();
      await hub?.close();
    },
  });
  letSomebodyIn();

  // A client at the demo's address, for those who need no consent.
  function client(name, identityProviders) {
    return {
      client_id: name,
      client_name: `Client ${name}`,
      redirect_uris: [`${dev.demo}/callback`],
      response_types: ["code"],
      grant_types: ["authorization_code"],
      require_consent: false,
      scope: "openid profile email",
      secrets: [{ value: secret }],
      ...(identityProviders && { identity_providers: identityProviders }),
    };
  }

  function asked(name, parameters = {}) {
    return authorization(dev, { client_id: name, ...parameters });
  }

  async function enterNameThere(page, name) {
    assert.ok(page.url().startsWith(foreign.issuer), page.url());
    await page.getByLabel("Name there").fill(name);
    await page.getByRole("button", { name: "Sign in there" }).click();
  }

  // What the Tab key comes by, from what has the focus on: names of fields, words of buttons.
  async function tabbedThrough(page, steps) {
    const seen = [];
    for (let step = 0; step < steps; step++) {
      seen.push(await page.evaluate(() => document.activeElement.labels?.length ? document.activeElement.name : document.activeElement.innerText));
      await page.keyboard.press("Tab");
    }
    return seen;
  }

  // The ID token's claims, once the browser is back at the client.
  async function tokens(page, request) {
    const { parameters } = await answer(page, dev);
    assert.equal(parameters.get("error"), null);
    return redeemed(dev, request, parameters);
  }

  // Straight there as `name`, and back.
  async function signedInAs(page, name, parameters = {}) {
    const request = asked("plain", { acr_values: "idp:foreign", ...parameters });
    await page.goto(request.url);
    await enterNameThere(page, name);
    return tokens(page, request);
  }

  test("is chosen by its button, and the application learns who it is", async () => {
    const { page } = someone;
    await page.goto(`${dev.demo}/sign-in?scope=all`);
    await looked(page, "upstream-login");
    assert.ok(await isLoginPage(page));
    const stops = ["username", "password", "Forgot your password?", "Sign in", "Use a passkey", "Sign in with Dead", foreignButton.name];
    assert.deepEqual(await tabbedThrough(page, stops.length), stops);
    await page.getByRole("button", foreignButton).click();
    await enterNameThere(page, "carol");
    await decide(page, "allow");
    await page.getByRole("heading", { name: "Signed in as Carol Upstream" }).waitFor();
    const told = await claims(page);
    assert.equal(told.email, "carol@upstream.example");
    assert.equal(told.role, "admin");
    assert.notEqual(told.sub, "id-of-carol");
  });

  test("is where idp: leads, past the login page, and is the same person each time", async () => {
    const { page } = someone;
    const first = await signedInAs(page, "dave");
    assert.equal(first.idp, "foreign");
    // A session from there answers by itself, and is asked about where the client says so.
    const silent = asked("plain", { acr_values: "idp:foreign", prompt: "none" });
    await page.goto(silent.url);
    assert.equal((await tokens(page, silent)).sub, first.sub);
    const again = asked("plain", { acr_values: "idp:foreign", prompt: "login" });
    await page.goto(again.url);
    assert.match(await page.locator("#reasons").innerText(), /login_prompt/);
    await enterNameThere(page, "dave");
    const second = await tokens(page, again);
    assert.equal(second.sub, first.sub);
    assert.ok(second.auth_time >= first.auth_time);
  });

  test("is hidden where the client does not allow it, its name as well", async () => {
    const { page } = someone;
    const visits = foreign.visits.length;
    for (const parameters of [{}, { acr_values: "idp:foreign" }]) {
      await page.goto(asked("restricted", parameters).url);
      assert.ok(await isLoginPage(page));
      assert.equal(await page.getByRole("button", { name: "Sign in with Octopus" }).count(), 1);
      // What is random may read like anything.
      assert.doesNotMatch((await page.content()).replaceAll(/[\w-]{30,}/g, ""), /foreign|invited|dead/i);
    }
    assert.equal(foreign.visits.length, visits);
  });

  test("is gone to at once where there is nothing else, and cancelling there is told to the client", async () => {
    const { page } = someone;
    const request = asked("single");
    await page.goto(request.url);
    await page.getByRole("button", { name: "Never mind" }).click();
    const { parameters } = await answer(page, dev);
    assert.equal(parameters.get("error"), "access_denied");
    assert.equal(parameters.get("state"), request.query.get("state"));
    assert.doesNotMatch(page.url(), /own.words/);
  });

  test("may be thought better of: the login page says so, and the password works", async () => {
    const { page } = someone;
    const request = asked("plain");
    await page.goto(request.url);
    await page.getByRole("button", foreignButton).click();
    await page.getByRole("button", { name: "Never mind" }).click();
    await page.getByRole("alert").waitFor();
    await looked(page, "upstream-cancelled");
    // The answer is spent: reloading it leads to a page that leads on.
    await page.reload();
    await looked(page, "upstream-over");
    await page.getByRole("link", { name: "To the start page" }).click();
    await page.getByText("to open your applications").waitFor();
    await page.goto(request.url);
    assert.doesNotMatch(await page.content(), /own words/);
    await enterPassword(page, alice);
    assert.equal((await tokens(page, request)).idp, undefined);
  });

  test("that nobody invited leads to a page, and to no account", async () => {
    const { page } = someone;
    await page.goto(asked("invitation", { acr_values: "idp:invited" }).url);
    await enterNameThere(page, "erin");
    await page.getByRole("heading", { level: 1 }).waitFor();
    assert.ok(page.url().startsWith(dev.provider), page.url());
    assert.equal(await isLoginPage(page), false);
    await looked(page, "upstream-not-invited");
    // Who has another account there can use that: they are asked who they are, though the provider knows somebody.
    await page.getByRole("link", { name: "Back to the sign-in page" }).click();
    assert.match(await page.locator("#reasons").innerText(), /login_prompt/);
    await page.goBack();
    const silent = asked("plain", { prompt: "none" });
    await page.goto(silent.url);
    assert.equal((await answer(page, dev)).parameters.get("error"), "login_required");
  });

  test("is linked and unlinked by its owner, who is asked first", async () => {
    const { page } = someone;
    const request = asked("plain");
    await page.goto(request.url);
    await enterPassword(page, alice);
    const here = await tokens(page, request);
    await page.goto(`${dev.provider}/account`);
    await looked(page, "upstream-account-unlinked");
    await page.getByRole("button", { name: "Link an account at Foreign <Works> & Söhne" }).click();
    await enterNameThere(page, "frank");
    await page.getByRole("heading", { name: "Link this account?" }).waitFor();
    const question = await page.locator("main").innerText();
    assert.ok(question.includes("Frank Upstream") || question.includes("frank@upstream.example"), question);
    assert.ok(question.includes("Alice"), question);
    await looked(page, "upstream-link");
    await decide(page, "confirm_link");
    await page.getByRole("status").waitFor();
    await looked(page, "upstream-account-linked");

    const elsewhere = await visitor(browser);
    const linked = await signedInAs(elsewhere.page, "frank");
    assert.equal(linked.sub, here.sub);
    await page.reload();
    await decide(page, "unlink");
    await page.getByRole("status").waitFor();
    // Whoever came by that account is signed out, and comes back as somebody else.
    const silent = asked("plain", { prompt: "none" });
    await elsewhere.page.goto(silent.url);
    assert.equal((await answer(elsewhere.page, dev)).parameters.get("error"), "login_required");
    const request2 = asked("plain", { acr_values: "idp:foreign" });
    await elsewhere.page.goto(request2.url);
    assert.notEqual((await tokens(elsewhere.page, request2)).sub, here.sub);
    assert.deepEqual(elsewhere.complaints, []);
    await elsewhere.context.close();
  });

  test("is not linked by somebody who says no", async () => {
    const { page } = someone;
    await page.goto(`${dev.provider}/account`);
    await enterPassword(page, alice);
    await page.getByRole("button", { name: "Link an account at Foreign <Works> & Söhne" }).click();
    await enterNameThere(page, "grace");
    await page.getByRole("link", { name: "Cancel" }).click();
    await page.getByRole("heading", { name: "Your account" }).waitFor();
    assert.equal(await page.locator("button[value=unlink]").count(), 0);
    // Nor by one who turns back there.
    await page.getByRole("button", { name: "Link an account at Invited only" }).click();
    // Whoever is signed in there is asked all the same.
    await enterNameThere(page, "grace");
    await page.getByRole("heading", { name: "Link this account?" }).waitFor();
    await page.goto(`${dev.provider}/account`);
    assert.equal(await page.locator("button[value=unlink]").count(), 0);
  });

  test("survives new keys at its provider", async () => {
    const before = await signedInAs(someone.page, "heidi");
    foreign.rotate();
    const later = await visitor(browser);
    assert.equal((await signedInAs(later.page, "heidi")).sub, before.sub);
    await later.context.close();
  });

  test("at a provider that is away is a sentence on the login page", async () => {
    const { page } = someone;
    const request = asked("unlucky");
    await page.goto(request.url);
    await page.getByRole("button", { name: "Sign in with Dead" }).click();
    await page.getByRole("alert").getByText("not available at the moment").waitFor();
    await looked(page, "upstream-away");
    await enterPassword(page, alice);
    await tokens(page, request);
  });

  test("at a provider that breaks in the middle is one too, without its words", async () => {
    const { page } = someone;
    foreign.broken = true;
    await page.goto(asked("plain").url);
    await page.getByRole("button", foreignButton).click();
    await enterNameThere(page, "ivan");
    await page.getByRole("alert").getByText("not available at the moment").waitFor();
    assert.doesNotMatch(await page.content(), /stack trace/);
    foreign.broken = false;
    const request = asked("plain", { acr_values: "idp:foreign" });
    await page.goto(request.url);
    await tokens(page, request);
  });

  test("at a provider that takes ten seconds holds nobody else up", async () => {
    const { page } = someone;
    const other = await visitor(browser);
    const request = asked("plain");
    await other.page.goto(request.url);
    foreign.delay = 10_000;
    await page.goto(asked("plain").url);
    await page.getByRole("button", foreignButton).click();
    await page.getByLabel("Name there").fill("judy");
    const visits = foreign.visits.length;
    const patient = page.getByRole("button", { name: "Sign in there" }).click({ noWaitAfter: true });
    while (!foreign.visits.slice(visits).includes("/token")) await page.waitForTimeout(20);
    await enterPassword(other.page, alice);
    await tokens(other.page, request);
    await other.context.close();
    assert.equal(await page.getByRole("alert").count(), 0);
    await patient;
    await page.getByRole("alert").getByText("not available at the moment").waitFor();
    foreign.delay = 0;
  });

  test("is signed out of there, too, and from there", async () => {
    const { page } = someone;
    await signedInAs(page, "kate");
    await page.goto(`${dev.provider}/logout`);
    await looked(page, "upstream-logout");
    await decide(page, "sign_out");
    await page.waitForURL(`${foreign.issuer}/**`);
    await page.getByRole("button", { name: "Yes, out" }).click();
    await page.getByRole("heading", { name: /signed out/i }).waitFor();
    assert.ok(page.url().startsWith(dev.provider), page.url());
    await looked(page, "upstream-signed-out");
    // There it asks who one is, as of a stranger.
    const signedIn = await signedInAs(page, "kate");
    assert.equal(signedIn.idp, "foreign");

    // The other way round it comes over the back channel, so a moment later.
    await page.goto(`${foreign.issuer}/session/end`);
    await page.getByRole("button", { name: "Yes, out" }).click();
    for (let tries = 0; tries < 50; tries++) {
      const silent = asked("plain", { prompt: "none" });
      await page.goto(silent.url);
      const { parameters } = await answer(page, dev);
      if (parameters.get("error") === "login_required") return;
      await page.waitForTimeout(100);
    }
    assert.fail("the session goes on");
  });

  test("of a provider without OpenID is known by its number, not by its name", async () => {
    const { page } = someone;
    const request = asked("restricted");
    await page.goto(request.url);
    await page.getByRole("button", { name: "Sign in with Octopus" }).click();
    const first = await tokens(page, request);
    hub.login = "renamed";
    const later = await visitor(browser);
    const again = asked("restricted", { acr_values: "idp:hub" });
    await later.page.goto(again.url);
    const second = await tokens(later.page, again);
    assert.deepEqual([second.sub, second.idp], [first.sub, "hub"]);
    await later.context.close();
  });
});
