// What a client can ask for in its request, and what the person sees of it.

import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { describe, test } from "node:test";
import { alice, bob, decide, enterPassword, isLoginPage, signIn, visitor } from "./browser.mjs";
import { answer, authorization, redeemed } from "./relying_party.mjs";
import { browser, dev, letSomebodyIn, setScene, someone } from "./scene.mjs";

describe("what a client asks for", { timeout: 300_000 }, () => {
  setScene({
    prepare: async () => {
      // Once for all: alice's consent is remembered.
      const first = await visitor(browser);
      await signIn(first.page, dev.demo);
      await first.context.close();
    },
  });
  letSomebodyIn();

  test("fragment: the answer stands behind the hash, where no server sees it", async () => {
    const { page } = someone;
    const request = authorization(dev, { response_mode: "fragment" });
    await page.goto(request.url);
    await enterPassword(page, alice);
    const { search, hash, parameters } = await answer(page, dev);
    assert.equal(search, "");
    assert.ok(hash.startsWith("#"));
    assert.equal((await redeemed(dev, request, parameters)).aud, "demo");
  });

  test("fragment: a refusal stands there too", async () => {
    const { page } = someone;
    const request = authorization(dev, { response_mode: "fragment", prompt: "none" });
    await page.goto(request.url);
    const { search, parameters } = await answer(page, dev);
    assert.equal(search, "");
    assert.equal(parameters.get("error"), "login_required");
    assert.equal(parameters.get("state"), request.query.get("state"));
  });

  test("max_age: an older sign-in asks for the password, and the new time is told", async () => {
    const { page } = someone;
    const first = await through(page, authorization(dev));
    const young = await silently(page, authorization(dev, { max_age: "600" }));
    assert.equal(young.auth_time, first.auth_time);

    await pause(2_100);
    const request = authorization(dev, { max_age: "1" });
    await page.goto(request.url);
    assert.ok(await isLoginPage(page));
    await enterPassword(page, alice);
    const again = await redeemed(dev, request, (await answer(page, dev)).parameters);
    assert.ok(again.auth_time > first.auth_time, `${again.auth_time} after ${first.auth_time}`);
  });

  test("prompt=login tells of a later sign-in; giving up leaves the session as it was", async () => {
    const { page } = someone;
    const first = await through(page, authorization(dev));
    const request = authorization(dev, { prompt: "login" });
    await page.goto(request.url);
    assert.ok(await isLoginPage(page));
    await page.locator("button[name=decision][value=cancel]").click();
    assert.equal((await answer(page, dev)).parameters.get("error"), "access_denied");
    assert.equal((await silently(page, authorization(dev))).auth_time, first.auth_time);
  });

  test("prompt=select_account: to continue as who is signed in takes one press", async () => {
    const { page } = someone;
    const first = await through(page, authorization(dev));
    const request = authorization(dev, { prompt: "select_account" });
    await page.goto(request.url);
    assert.equal(await isLoginPage(page), false);
    await page.getByRole("button", { name: "Continue as Alice Liddell" }).click();
    const chosen = await redeemed(dev, request, (await answer(page, dev)).parameters);
    assert.equal(chosen.sub, first.sub);
  });

  test("prompt=select_account: another account signs in instead, and is asked for its own consent", async () => {
    const { page } = someone;
    const first = await through(page, authorization(dev));
    const request = authorization(dev, { prompt: "select_account" });
    await page.goto(request.url);
    await page.getByRole("button", { name: "Use another account" }).click();
    assert.ok(await isLoginPage(page));
    await enterPassword(page, bob);
    await page.locator("main", { hasText: "Bob Dodgson" }).waitFor();
    await page.locator("input[name=remember]").uncheck();
    await decide(page, "allow");
    const other = await redeemed(dev, request, (await answer(page, dev)).parameters);
    assert.notEqual(other.sub, first.sub);
  });

  test("login_hint stands in the form already, the cursor in the password", async () => {
    const { page } = someone;
    await page.goto(authorization(dev, { login_hint: "alice" }).url);
    assert.equal(await page.getByLabel("User name").inputValue(), "alice");
    assert.equal(await page.evaluate(() => document.activeElement.name), "password");
  });

  test("a client's error without a place to send it is a page that says so", async () => {
    const { page } = someone;
    const wrong = authorization(dev, { redirect_uri: "https://elsewhere.example/callback" });
    const response = await page.goto(wrong.url);
    assert.equal(response.status(), 400);
    assert.ok(page.url().startsWith(dev.provider));
    await clearError(page);
  });

  test("an address of ours that was cut or changed leads to a clear page", async () => {
    const { page } = someone;
    await page.goto(authorization(dev).url);
    const whole = page.url();
    const changed = whole.slice(0, -12) + (whole.at(-12) === "A" ? "B" : "A") + whole.slice(-11);
    for (const address of [whole.slice(0, -9), changed, `${dev.provider}/login?r=x`, `${dev.provider}/consent?r=x`]) {
      const response = await page.goto(address);
      assert.equal(response.status(), 400, address);
      await clearError(page);
    }
    // A bookmark of the sign-in page leads to where one can begin: the account page's sign-in.
    const bookmarked = await page.goto(`${dev.provider}/login`);
    assert.equal(bookmarked.status(), 200);
    assert.match(page.url(), /\/login\?r=/);
    const nowhere = await page.goto(`${dev.provider}/nothing-here`);
    assert.equal(nowhere.status(), 404);
    await clearError(page);
  });

  test("German: by ui_locales, and by what the browser prefers", async () => {
    const { page } = someone;
    await page.goto(authorization(dev, { ui_locales: "de-AT en" }).url);
    await speaksGerman(page);
    await enterPassword(page, { ...alice, password: "wrong" });
    assert.match(await page.getByRole("alert").innerText(), /Passwort/);

    const german = await visitor(browser, { locale: "de-DE" });
    await german.page.goto(authorization(dev).url);
    await speaksGerman(german.page);
    await german.page.goto(authorization(dev, { ui_locales: "en" }).url);
    assert.equal(await german.page.locator("html").getAttribute("lang"), "en");
    await german.page.goto(`${dev.provider}/login?r=broken`);
    assert.equal(await german.page.locator("html").getAttribute("lang"), "de");
    await german.context.close();
    assert.deepEqual(german.complaints, []);
  });

  test("sent twice by an impatient press, a sign-in still comes to one end", async () => {
    const { page } = someone;
    const request = authorization(dev);
    await page.goto(request.url);
    await page.getByLabel("User name").fill(alice.username);
    await page.getByLabel("Password", { exact: true }).fill(alice.password);
    let sent = 0;
    const twice = page.waitForRequest((asked) => asked.method() === "POST" && ++sent === 2);
    // Answers take a second, so that the second press comes before the first of them; of two presses in one go Chromium
    // sends one.
    const devtools = await page.context().newCDPSession(page);
    const slow = { offline: false, latency: 1_000, downloadThroughput: -1, uploadThroughput: -1 };
    await devtools.send("Network.emulateNetworkConditions", slow);
    await page.locator("form:has([name=password])").evaluate(async (form) => {
      const press = () => form.requestSubmit(form.querySelector("button[type=submit]:not([name=decision])"));
      press();
      await new Promise((done) => setTimeout(done, 200));
      press();
    });
    await twice;
    await redeemed(dev, request, (await answer(page, dev)).parameters);
  });

  // Alice signs in on the way.
  async function through(page, request) {
    await page.goto(request.url);
    await enterPassword(page, alice);
    return redeemed(dev, request, (await answer(page, dev)).parameters);
  }

  async function silently(page, request) {
    await page.goto(request.url);
    return redeemed(dev, request, (await answer(page, dev)).parameters);
  }

  async function clearError(page) {
    const text = await page.locator("main").innerText();
    assert.ok((await page.getByRole("heading", { level: 1 }).innerText()).length > 0);
    assert.doesNotMatch(text, /panicked|undefined|null|Err\(|<\/?\w+>/);
    assert.match(text, /GP\d{4}/);
  }

  async function speaksGerman(page) {
    assert.equal(await page.locator("html").getAttribute("lang"), "de");
    await page.getByRole("heading", { name: "Anmelden" }).waitFor();
    await page.getByLabel("Benutzername").waitFor();
  }
});
