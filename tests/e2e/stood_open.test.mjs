// Pages that stood open until what they were for had expired, in a browser.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { alice, beginSignIn, enterPassword, looked, visitor } from "./browser.mjs";
import { browser, dev, letSomebodyIn, setScene, someone, startAnew } from "./scene.mjs";

const lifetime = 60;

describe("pages that stood open", { timeout: 300_000 }, () => {
  setScene({ prepare: () => startAnew([], { GATEPOST_AUTHORIZATION_REQUEST_LIFETIME: `${lifetime}` }) });
  letSomebodyIn();

  test("an application that says where it is at home is the way back, and the account page begins anew", async () => {
    const others = [];
    for (const [name, options] of [
      ["320-dark", { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
      ["german-320", { viewport: { width: 320, height: 640 }, locale: "de-DE" }],
      ["1280-dark", { colorScheme: "dark", locale: "ja-JP" }],
    ]) {
      const other = await visitor(browser, options);
      await beginSignIn(other.page, dev.demo);
      others.push({ name, ...other });
    }
    const { page, context } = someone;
    await beginSignIn(page, dev.demo);
    const account = await context.newPage();
    await account.goto(`${dev.provider}/account`);
    await pause((lifetime + 2) * 1_000);

    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "This page had expired" }).waitFor();
    await looked(page, "page-had-expired");
    for (const other of others) {
      await other.page.reload();
      await other.page.locator("a.button").waitFor();
      await looked(other.page, `page-had-expired-${other.name}`);
      await other.context.close();
    }
    await page.getByRole("link", { name: /^Back to / }).click();
    await page.waitForURL(`${dev.demo}/`);
    await beginSignIn(page, dev.demo);
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: /asks for access/ }).waitFor();

    // Its form holds a password no longer; the page of today is there at once.
    await enterPassword(account, alice);
    await account.getByRole("heading", { name: "Your account" }).waitFor();
  });

  test("a bookmarked sign-in page leads to the account page", async () => {
    const { page } = someone;
    await page.goto(`${dev.provider}/login`);
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Your account" }).waitFor();
  });
});
