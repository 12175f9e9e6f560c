// Where people find their applications, by clicks and without scripts, on a telephone and on a screen.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { enterPassword, looked, visitor } from "./browser.mjs";
import { browser, dev, letSomebodyIn, setScene, someone } from "./scene.mjs";

const dinah = { username: "dinah", password: "flamingo-and-hedgehog" };

describe("the start page", { timeout: 300_000 }, () => {
  setScene();
  letSomebodyIn();

  test("leads to the applications of one's roles with one click", async () => {
    const { page } = someone;
    assert.ok(dev.output.includes(`${dev.provider}/start`), dev.output);
    await page.goto(dev.provider);
    await page.getByText("to open your applications").waitFor();
    await enterPassword(page, dinah);
    await page.getByRole("heading", { name: "Your applications" }).waitFor();
    const names = await page.locator(".applications bdi").allInnerTexts();
    assert.deepEqual(names.map((name) => name.trim()), ["Demo application", "Stock"]);
    assert.equal(await page.getByRole("link", { name: "Look after people" }).count(), 0);
    for (const width of [320, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      await looked(page, `start-${width}`);
    }
    await page.getByRole("link", { name: "Your account" }).click();
    await page.getByRole("heading", { name: "Your account" }).waitFor();
    await page.getByRole("link", { name: "Your applications" }).click();
    await page.getByRole("link", { name: "Stock" }).click();
    await page.waitForURL(`${dev.demo}/stock`);
  });

  test("needs no script", async () => {
    const { page, context } = await visitor(browser, { javaScriptEnabled: false, viewport: { width: 320, height: 640 } });
    await page.goto(`${dev.provider}/start`);
    await enterPassword(page, dinah);
    await page.getByRole("link", { name: "Demo application" }).waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
    await page.getByRole("link", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign out?" }).waitFor();
    await context.close();
  });
});
