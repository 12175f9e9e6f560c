// Every page as it is drawn: nothing that axe calls serious, nothing wider than the screen, and a picture of each to
// look at, in `screenshots/`.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import axe from "axe-core";
import { alice, beginSignIn, decide, enterPassword, launch, screenshot, visitor } from "./browser.mjs";
import { newProject, removeProject, startDev } from "./gatepost.mjs";
import { authorization } from "./relying_party.mjs";

const looks = [];
for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 1280]) looks.push({ colorScheme, width });
}

describe("every page", { timeout: 400_000 }, () => {
  let dev, browser, directory, someone;

  before(async () => {
    directory = await newProject();
    browser = await launch();
    dev = await startDev(directory);
    someone = await visitor(browser);
  });

  after(async () => {
    await someone?.context.close();
    await browser?.close();
    await dev?.stop();
    await removeProject(directory);
    assert.deepEqual(someone?.complaints, []);
  });

  // One walk: each page stands on the steps before it.
  test("is accessible and fits, in the light and in the dark, on a telephone and on a desk", async (walk) => {
    const { page } = someone;
    const step = (name, reach) =>
      walk.test(name, async () => {
        await reach();
        await looked(page, name);
      });

    await step("demo-welcome", () => page.goto(dev.demo));
    await step("demo-choices", () => page.getByText("Other ways to sign in").click());
    await step("login", () => beginSignIn(page, dev.demo));
    await step("login-error", () => enterPassword(page, { ...alice, password: "wrong" }));
    await step("login-german", () => page.goto(authorization(dev, { ui_locales: "de" }).url));
    await step("consent", async () => {
      await beginSignIn(page, dev.demo);
      await enterPassword(page, alice);
      await page.locator("button[name=decision][value=allow]").waitFor();
    });
    await step("consent-german", () => page.goto(authorization(dev, { ui_locales: "de" }).url));
    await step("demo-denied", async () => {
      await beginSignIn(page, dev.demo);
      await decide(page, "deny");
      await page.getByRole("heading", { name: /access_denied/ }).waitFor();
    });
    await step("demo-signed-in", async () => {
      await beginSignIn(page, dev.demo);
      await decide(page, "allow");
      await page.getByRole("heading", { name: /^Signed in as / }).waitFor();
    });
    await step("account", async () => {
      // Another browser, so that there is a sign-in to end.
      const other = await visitor(browser);
      await other.page.goto(`${dev.provider}/account`);
      await enterPassword(other.page, alice);
      await other.page.getByRole("heading", { name: "Your account" }).waitFor();
      await other.context.close();
      await page.goto(`${dev.provider}/account`);
      assert.equal(await page.getByRole("button", { name: "Sign out there" }).count(), 1);
      assert.equal(await page.getByRole("button", { name: "Withdraw access" }).count(), 1);
    });
    await step("account-error", async () => {
      await page.getByLabel("Present password").fill("wrong");
      await page.getByLabel("New password", { exact: true }).fill("a long enough passphrase");
      await page.getByLabel("New password once more").fill("a long enough passphrase");
      await decide(page, "change_password");
      await page.getByRole("alert").waitFor();
    });
    await step("chooser", () => page.goto(`${dev.demo}/sign-in?prompt=select_account`));
    await step("error", () => page.goto(`${dev.provider}/login?r=broken`));
    await step("error-for-developers", () => page.goto(authorization(dev, { redirect_uri: "https://x.example/" }).url));
    await step("not-found", () => page.goto(`${dev.provider}/nothing-here`));
    await step("home", () => page.goto(`${dev.provider}/`));
    await step("logout", () => page.goto(`${dev.provider}/logout`));
    await step("signed-out", async () => {
      await decide(page, "sign_out");
      await page.getByRole("heading", { name: /signed out/i }).waitFor();
    });
  });

  test("form_post, where its script does not run", async () => {
    const other = await visitor(browser);
    await other.page.route("**/form-post.js*", (route) => route.abort());
    await other.page.goto(`${dev.demo}/sign-in?response_mode=form_post`);
    await enterPassword(other.page, alice);
    await other.page.locator("form[action$='/callback'] button").waitFor();
    await looked(other.page, "form-post");
    await other.context.close();
  });

  test("the account, to somebody whose browser speaks German", async () => {
    const other = await visitor(browser, { locale: "de-DE" });
    await other.page.goto(`${dev.provider}/account`);
    await looked(other.page, "login-account-german");
    await other.page.getByLabel("Benutzername").fill(alice.username);
    await other.page.getByLabel("Passwort", { exact: true }).fill(alice.password);
    await other.page.getByRole("button", { name: "Anmelden" }).click();
    await other.page.getByRole("heading", { name: "Ihr Konto" }).waitFor();
    await looked(other.page, "account-german");
    await other.context.close();
  });

  async function looked(page, name) {
    for (const { colorScheme, width } of looks) {
      // No transitions: a colour on its way is nobody's choice.
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width, height: 800 });
      // The form_post page shows itself only after a second.
      await page.getByRole("heading", { level: 1 }).waitFor();
      await screenshot(page, `${name}-${colorScheme}-${width}`);
      assert.deepEqual(await findings(page), [], `${name}, ${colorScheme}, ${width} px`);
      assert.ok((await overflow(page)) <= 0, `${name} is wider than ${width} px`);
    }
  }

  async function findings(page) {
    // Pages that run no scripts of their own still run what is handed to the browser from outside.
    await page.evaluate(axe.source);
    const result = await page.evaluate(() => window.axe.run(document));
    assert.ok(result.passes.length > 5, "axe looked at nothing");
    return result.violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  }

  function overflow(page) {
    return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }
});
