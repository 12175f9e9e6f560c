// What somebody meets in the first hour of `make run`: the company, its office manager, its applications and e-mails.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { beginSignIn, decide, enterPassword, looked } from "./browser.mjs";
import { dev, letSomebodyIn, setScene, shownCode, someone } from "./scene.mjs";

const olivia = { username: "olivia", password: "white-rabbit" };
const clara = { username: "clara", password: "dormouse-in-the-pot" };

describe("the first hour", { timeout: 300_000 }, () => {
  setScene();
  letSomebodyIn();

  test("says where to look after people, and where e-mails are", async () => {
    const { page } = someone;
    assert.ok(dev.output.includes(`${dev.provider}/admin as olivia`), dev.output);
    assert.ok(dev.output.includes(`${dev.demo}/e-mails`), dev.output);
    await page.goto(dev.demo);
    await looked(page, "first-hour-welcome");
    assert.equal(await page.getByRole("link", { name: `${dev.provider}/admin` }).count(), 1);
  });

  test("the first consent page asks for three things", async () => {
    const { page } = someone;
    await beginSignIn(page, dev.demo);
    await enterPassword(page, { username: "alice", password: "looking-glass" });
    await page.locator("button[name=decision][value=allow]").waitFor();
    const scopes = await page.locator("[name=scope]").evaluateAll((all) => all.map((one) => one.value));
    assert.deepEqual(scopes.filter((scope) => scope !== "openid"), ["profile", "roles", "orders.read"]);
    await looked(page, "first-hour-consent");
  });

  test("the office manager comes in with the code that the demo shows, and invites somebody, whose e-mail is caught", async () => {
    const { page } = someone;
    await page.goto(`${dev.provider}/admin`);
    await enterPassword(page, olivia);
    await page.locator("input[name=code]").fill(await shownCode(page));
    await page.locator("form:has([name=code]) button[type=submit]:not([name=decision])").first().click();
    await page.getByRole("heading", { name: "People" }).waitFor();
    const text = await page.locator("main").innerText();
    for (const name of ["Alice Liddell", "Clara Winter", "Katarzyna Wójcik"]) assert.ok(text.includes(name), text);
    await looked(page, "first-hour-admin");

    await page.getByRole("link", { name: "Invite somebody" }).click();
    await page.getByLabel("User name").fill("nora");
    await page.getByLabel("Full name").fill("Nora Novak");
    await page.getByLabel("E-mail address").fill("nora@example.com");
    await page.getByLabel("storekeeper").check();
    await page.getByRole("button", { name: "Invite somebody" }).click();
    await page.getByText("nora@example.com").first().waitFor();
    await page.goto(`${dev.demo}/e-mails`);
    for (let tries = 0; (await page.locator(".mail").count()) === 0 && tries < 40; tries++) {
      await page.waitForTimeout(250);
      await page.reload();
    }
    assert.match(await page.locator(".mail").first().innerText(), /To nora@example\.com/);
    await looked(page, "first-hour-e-mails");
    await page.locator(`.mail a[href^="${dev.provider}/"]`).first().click();
    await page.locator("input[type=password]").first().waitFor();
  });

  test("an application lets in who has its role, and says to anybody else that it is not open to them", async () => {
    const { page } = someone;
    await page.goto(`${dev.demo}/bookkeeping`);
    await looked(page, "first-hour-application");
    await page.getByRole("link", { name: "Sign in", exact: true }).click();
    await enterPassword(page, clara);
    await page.getByRole("heading", { name: "Signed in as Clara Winter" }).waitFor();
    assert.match(await page.locator("main").innerText(), /To: Bookkeeping/);
    await page.goto(`${dev.demo}/roster`);
    await page.getByRole("link", { name: "Sign in", exact: true }).click();
    await page.getByText("This application is not open to your account").waitFor();
  });
});
