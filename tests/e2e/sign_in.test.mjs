// A person signs in to the demo application, in every way they may go about it.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  alice,
  beginSignIn,
  bob,
  claims,
  decide,
  decodedToken,
  enterPassword,
  isLoginPage,
  signIn,
  visitor,
} from "./browser.mjs";
import { browser, dev, letSomebodyIn, setScene, someone } from "./scene.mjs";

describe("signing in to the demo application", { timeout: 300_000 }, () => {
  setScene();
  letSomebodyIn();

  // Consents are remembered per user: the scenarios that meet the consent page for the first time come first.

  test("a wrong password is refused with the user name kept, the right one leads to the consent page", async () => {
    const { page } = someone;
    await beginSignIn(page, dev.demo);
    assert.ok(page.url().startsWith(`${dev.provider}/`), page.url());
    await enterPassword(page, { ...alice, password: "wrong" });
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /not correct/);
    assert.equal(await page.getByLabel("User name").inputValue(), "alice");
    assert.equal(await page.getByLabel("Password", { exact: true }).inputValue(), "");
    await enterPassword(page, alice);

    await page.getByRole("heading", { name: /Demo application.* asks for access/ }).waitFor();
    const text = await page.locator("main").innerText();
    for (const expected of ["Alice", "Your roles", "What you may do", "Read orders", "See your profile"]) {
      assert.ok(text.includes(expected), `${expected} is missing in: ${text}`);
    }
    assert.equal(await page.locator("input[name=scope][value=roles]").count(), 1);
  });

  test("what is denied is shown by the demo as access_denied, and nothing is remembered", async () => {
    const { page } = someone;
    await beginSignIn(page, dev.demo);
    await enterPassword(page, bob);
    await decide(page, "deny");
    await page.getByRole("heading", { name: /access_denied/ }).waitFor();
    await beginSignIn(page, dev.demo);
    // Signed in already, but asked again.
    await page.locator("button[name=decision][value=allow]").waitFor();
    assert.equal(await isLoginPage(page), false);
  });

  test("cancelling the sign-in goes back with access_denied", async () => {
    const { page } = someone;
    await beginSignIn(page, dev.demo);
    await page.locator("button[name=decision][value=cancel]").click();
    await page.getByRole("heading", { name: /access_denied/ }).waitFor();
  });

  test("a scope that is unticked is not granted", async () => {
    const { page } = someone;
    await beginSignIn(page, dev.demo);
    await enterPassword(page, bob);
    await page.locator("input[name=scope][value=roles]").uncheck();
    await page.locator("input[name=remember]").uncheck();
    await decide(page, "allow");
    await page.getByRole("heading", { name: "Signed in as Bob Dodgson" }).waitFor();
    assert.equal((await claims(page)).role, undefined);
    const granted = (await page.locator("#scope").innerText()).split(/\s+/);
    assert.ok(granted.includes("openid") && !granted.includes("roles"), granted.join(" "));
  });

  test("what is allowed is shown: the claims with the role, and the decoded tokens", async () => {
    const { page } = someone;
    await signIn(page, dev.demo);
    assert.equal(new URL(page.url()).pathname, "/");
    const usual = await claims(page);
    assert.equal(usual.name, "Alice Liddell");
    assert.equal(usual.role, "admin");
    assert.equal(usual.email, undefined, "it was not asked for");

    await page.goto(`${dev.demo}/sign-in?scope=all`);
    await decide(page, "allow");
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
    const told = await claims(page);
    assert.equal(told.email, "alice@example.com");
    assert.equal(told.phone_number_verified, "true");
    assert.match(told.address, /Oxford/);
    const [header, payload] = await decodedToken(page, "id_token");
    assert.equal(header.alg, "RS256");
    assert.equal(payload.iss, dev.provider);
    assert.equal(payload.aud, "demo");
    assert.equal(payload.sub, told.sub);
    const [accessHeader, accessPayload] = await decodedToken(page, "access_token");
    assert.equal(accessHeader.typ, "at+jwt");
    assert.equal(accessPayload.client_id, "demo");
  });

  test("the second sign-in is silent: the session and the remembered consent answer", async () => {
    const { page } = someone;
    await signInKnown(page);
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await page.getByRole("link", { name: "Sign in", exact: true }).click();
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();

    await page.goto(`${dev.demo}/sign-in?prompt=none`);
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
  });

  test("prompt=none without a session is an error for the demo, not a page of ours", async () => {
    const { page } = someone;
    await page.goto(`${dev.demo}/sign-in?prompt=none`);
    await page.getByRole("heading", { name: /login_required/ }).waitFor();
    assert.ok(page.url().startsWith(dev.demo), page.url());
  });

  test("prompt=login asks for the password in spite of the session, prompt=consent for the consent", async () => {
    const { page } = someone;
    await signInKnown(page);
    await page.goto(`${dev.demo}/sign-in?prompt=login`);
    assert.ok(await isLoginPage(page));
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
    await page.goto(`${dev.demo}/sign-in?prompt=consent`);
    await decide(page, "allow");
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
  });

  test("the whole works without JavaScript, form_post by its button", async () => {
    const plain = await visitor(browser, { javaScriptEnabled: false });
    await signInKnown(plain.page);
    assert.equal(await plain.page.locator("#claims tr", { hasText: "role" }).locator("td").innerText(), "admin");
    await plain.page.goto(`${dev.demo}/sign-in?prompt=consent&response_mode=form_post`);
    await decide(plain.page, "allow");
    await plain.page.getByRole("button", { name: "Continue" }).click();
    await plain.page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
    await plain.context.close();
  });

  test("form_post goes on by itself where there is JavaScript", async () => {
    const { page } = someone;
    await page.goto(`${dev.demo}/sign-in?response_mode=form_post`);
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
    assert.equal(page.url(), `${dev.demo}/`);
  });

  test("the back button leads to no error and signs nobody in twice", async () => {
    const { page } = someone;
    await signInKnown(page);
    await page.goBack();
    const heading = await page.getByRole("heading", { level: 1 }).innerText();
    assert.ok(heading.length > 0);
    assert.doesNotMatch(heading, /went wrong|error/i);
    await page.goForward();
    await page.goto(dev.demo);
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
  });

  test("going back from a wrong password to the form, and entering the right one, works", async () => {
    const { page } = someone;
    await beginSignIn(page, dev.demo);
    await enterPassword(page, { ...alice, password: "wrong" });
    await page.getByRole("alert").waitFor();
    await page.goBack();
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
  });

  test("two tabs each come to their end, whichever is first", async () => {
    const { page, context } = someone;
    const second = await context.newPage();
    await beginSignIn(page, dev.demo);
    await beginSignIn(second, dev.demo);
    await enterPassword(second, alice);
    await second.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
    // The first tab's page was drawn before that sign-in. It may be drawn again; it must not be a dead end.
    await enterPassword(page, alice);
    if (await isLoginPage(page)) await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
  });

  test("the keyboard is enough", async () => {
    const { page } = someone;
    await page.goto(dev.demo);
    await tabTo(page, { text: "Sign in" });
    await page.keyboard.press("Enter");
    await page.waitForURL(`${dev.provider}/**`);
    await tabTo(page, { name: "username" });
    await page.keyboard.type(alice.username);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.name), "password");
    await page.keyboard.type(alice.password);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
  });

  test("after signing out at the provider the password is asked for again", async () => {
    const { page } = someone;
    await signInKnown(page);
    await page.goto(`${dev.provider}/logout`);
    await decide(page, "sign_out");
    await page.getByRole("heading", { name: /signed out/i }).waitFor();
    await page.goto(`${dev.demo}/sign-in`);
    assert.ok(await isLoginPage(page));
  });

  // Alice's consent was remembered by an earlier scenario.
  async function signInKnown(page) {
    await beginSignIn(page, dev.demo);
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Signed in as Alice Liddell" }).waitFor();
  }

  async function tabTo(page, wanted) {
    for (let presses = 0; presses < 30; presses++) {
      const there = await page.evaluate(({ name, text }) => {
        const focused = document.activeElement;
        return name ? focused.name === name : focused !== document.body && focused.innerText === text;
      }, wanted);
      if (there) return;
      await page.keyboard.press("Tab");
    }
    assert.fail("the keyboard does not reach it");
  }
});
