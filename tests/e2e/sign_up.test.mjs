// Sign-up links in a real browser, by letters that a real Postfix takes.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { enterPassword, launch, looked, visitor } from "./browser.mjs";
import { newProject, operate, removeProject, startDev } from "./gatepost.mjs";
import { startPostfix } from "./postfix.mjs";

const domain = "wonderland.example";
let browser, dev, directory, postfix;
let letters = 0;

describe("sign-up links", { timeout: 300_000 }, () => {
  before(async () => {
    directory = await newProject();
    browser = await launch();
    postfix = await startPostfix(domain);
    dev = await startDev(directory, [], { ...postfix.settings, GATEPOST_SIGN_IN_WITH: "username,email" });
  });

  after(async () => {
    await browser?.close();
    const code = await dev?.stop();
    await postfix?.stop();
    await removeProject(directory);
    assert.equal(code, 0, dev?.output);
  });

  // On a small telephone, in the dark; without scripts.
  for (const [shot, options] of [
    ["en", { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
    ["de", { locale: "de-DE", viewport: { width: 320, height: 640 } }],
    ["ja", { locale: "ja-JP" }],
    ["without-script", { javaScriptEnabled: false }],
  ]) {
    test(`somebody makes an account and signs in by address (${shot})`, async () => {
      const see = async (page, name) => {
        if (options.javaScriptEnabled !== false) await looked(page, `${name}-${shot}`);
      };
      const link = (await operate(directory, ["signup", "make", "--uses", "1", "--for", "1d", "--domain", domain])).trim();
      const { page, context, complaints } = await visitor(browser, options);
      await page.goto(link);
      assert.ok(!page.url().includes(link.match(/gpj_[\w-]+/)[0]), page.url());
      await see(page, "join");
      const address = `new-${shot}@${domain}`;
      await page.locator("input[name=address]").fill(address);
      await page.locator("button.primary").click();
      await page.locator("input[name=address]").waitFor({ state: "detached" });
      await see(page, "join-sent");
      const letter = await postfix.letter((letters += 1));
      assert.equal(letter.to, `<${address}>`);
      await page.goto(letter.link);
      assert.ok(!page.url().includes(letter.link.match(/gpu_[\w-]+/)[0]), page.url());
      await see(page, "join-account");
      const password = "curiouser and curiouser";
      const fill = async (username, again) => {
        await page.locator("input[name=username]").fill(username);
        await page.locator("input[name=new_password]").fill(password);
        await page.locator("input[name=new_password_again]").fill(again);
        await page.locator("button.primary").click();
      };
      await fill("alice", password);
      await page.getByRole("alert").waitFor();
      await see(page, "join-name-taken");
      await fill(`new-${shot}`, password);
      await page.getByRole("status").waitFor();
      assert.equal(await page.locator("input[name=username]").inputValue(), `new-${shot}`);
      await see(page, "join-done");
      await enterPassword(page, { username: address, password });
      await page.waitForURL(/\/start/);
      await page.goto(letter.link);
      await page.getByText("GP1810", { exact: true }).waitFor();
      await context.close();
      assert.deepEqual(complaints, []);
    });
  }
});
