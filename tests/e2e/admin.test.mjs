// An office manager's week at /admin, in a real browser: without scripts, on a small telephone in the dark, and by keyboard.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { alice, bob, decide, enterPassword, launch, looked, screenshot, visitor } from "./browser.mjs";
import { newProject, operate, removeProject, startDev } from "./gatepost.mjs";

let browser, dev, directory;

function codeOf(key) {
  return execFileSync("oathtool", ["--totp", "--base32", key], { encoding: "utf8" }).trim();
}

const small = { viewport: { width: 320, height: 640 }, colorScheme: "dark" };

describe("administrators", { timeout: 300_000 }, () => {
  before(async () => {
    directory = await newProject();
    browser = await launch();
    dev = await startDev(directory, [], {
      GATEPOST_ADMIN_ROLE: "office",
      GATEPOST_ADMIN_ROLES: "viewer,sales",
      // Without e-mails, links are shown to whoever invites.
      GATEPOST_SMTP_URL: "",
    });
    await operate(directory, ["user", "role", "alice", "--add", "office"]);
  });

  after(async () => {
    await browser?.close();
    const ended = await dev?.stop();
    await removeProject(directory);
    assert.equal(ended, 0, dev?.output);
  });

  // The first sign-in adds the app that the page asks for.
  async function enter(page) {
    await operate(directory, ["user", "factors", "alice", "--remove-all"]);
    await page.goto(`${dev.provider}/admin`);
    await page.getByText("to look after people and applications").waitFor();
    await enterPassword(page, alice);
    const key = (await page.locator("code.key").innerText()).replaceAll(" ", "");
    await page.locator("input[name=code]").fill(codeOf(key));
    await page.getByRole("button", { name: "Add app" }).click();
    await page.getByRole("button", { name: "I have kept them" }).click();
    await page.getByRole("heading", { name: "People" }).waitFor();
  }

  async function find(page, typed) {
    await page.getByRole("link", { name: "People", exact: true }).click();
    await page.getByRole("searchbox").fill(typed);
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("searchbox").waitFor();
  }

  async function done(page, decision) {
    await decide(page, decision);
    await page.locator(".notice.done").waitFor();
  }

  // What does not come back is asked first, on a page of its own.
  async function askedAndDone(page, label, decision) {
    await page.getByRole("link", { name: label }).click();
    await page.getByRole("link", { name: "Cancel" }).waitFor();
    await done(page, decision);
  }

  test("the week goes by without scripts, on a small telephone", async () => {
    const { page, context, complaints } = await visitor(browser, { ...small, javaScriptEnabled: false });
    await enter(page);
    await screenshot(page, "admin-people-without-script");

    // Somebody starts.
    await page.getByRole("link", { name: "Invite somebody" }).click();
    await page.getByLabel("User name").fill("dora");
    await page.getByLabel("Full name").fill("Dora Duck");
    await page.getByLabel("E-mail address").fill("dora@example.com");
    await page.getByLabel("sales").check();
    await page.getByRole("button", { name: "Invite somebody" }).click();
    await page.getByText("Give this link to Dora Duck").waitFor();
    const link = await page.locator("code.link-shown").innerText();
    await screenshot(page, "admin-invited-without-script");
    const newcomer = await visitor(browser, { javaScriptEnabled: false });
    await newcomer.page.goto(link);
    await newcomer.page.locator("input[name=new_password]").fill("a password of her own");
    await newcomer.page.locator("input[name=new_password_again]").fill("a password of her own");
    await newcomer.page.locator("button.primary").click();
    await enterPassword(newcomer.page, { username: "dora", password: "a password of her own" });
    await newcomer.page.getByRole("heading", { name: "Your applications" }).waitFor();

    // "I cannot sign in."
    await find(page, "bo");
    await page.getByRole("link", { name: /Bob/ }).click();
    await page.getByText("Wrong passwords in the last hour").waitFor();
    await decide(page, "reset");
    await page.locator("code.link-shown").waitFor();

    // Another duty, and a laptop that was stolen.
    await find(page, "dora@");
    await page.getByRole("link", { name: "Dora Duck" }).click();
    await page.getByLabel("viewer").check();
    await page.getByLabel("Full name").fill("Dora Drake");
    await done(page, "save");
    await page.getByRole("heading", { name: "Dora Drake" }).waitFor();
    assert.equal(await page.getByLabel("viewer").isChecked(), true);
    await page.getByRole("button", { name: "Sign out there" }).click();
    await page.getByText("The change is made.").waitFor();
    await newcomer.page.reload();
    await newcomer.page.locator("input[name=password]").waitFor();
    await newcomer.context.close();

    // Somebody leaves, and comes back.
    await askedAndDone(page, "Disable", "disable");
    await screenshot(page, "admin-person-without-script");
    await done(page, "enable");
    await askedAndDone(page, "Sign out everywhere", "end_all");
    await context.close();
    assert.deepEqual([...complaints, ...newcomer.complaints], []);
  });

  for (const [name, options] of [["small", small], ["wide", { viewport: { width: 1200, height: 900 } }]]) {
    test(`every page can be read (${name})`, async () => {
      const { page, context, complaints } = await visitor(browser, options);
      await enter(page);
      await looked(page, `admin-people-${name}`);
      await find(page, "nobody at all");
      await page.getByText("Nobody was found.").waitFor();
      await looked(page, `admin-nobody-${name}`);
      await find(page, "bob");
      await page.getByRole("link", { name: /Bob/ }).click();
      await page.getByRole("link", { name: "Disable" }).waitFor();
      await looked(page, `admin-person-${name}`);
      await page.getByRole("link", { name: "Disable" }).click();
      await page.getByRole("link", { name: "Cancel" }).waitFor();
      await looked(page, `admin-asking-${name}`);
      await page.getByRole("link", { name: "Cancel" }).click();
      await decide(page, "reset");
      await page.locator("code.link-shown").waitFor();
      await looked(page, `admin-link-${name}`);
      await page.getByLabel("E-mail address").fill("nonsense@nonsense");
      await page.locator("form:has([name=address])").evaluate((form) => (form.noValidate = true));
      await page.getByLabel("E-mail address").fill("nonsense");
      await decide(page, "save");
      await page.getByRole("alert").waitFor();
      await looked(page, `admin-person-problem-${name}`);
      await find(page, "alice");
      await page.locator("main").getByRole("link", { name: /Alice/ }).click();
      await page.getByText("You cannot change this person").waitFor();
      await looked(page, `admin-not-yours-${name}`);
      await page.goto(`${dev.provider}/admin/roles`);
      await looked(page, `admin-roles-${name}`);
      await page.getByRole("link", { name: "sales" }).click();
      await page.locator("summary").click();
      await looked(page, `admin-role-${name}`);
      await page.goto(`${dev.provider}/admin/applications/bookkeeping`);
      await page.getByRole("heading", { name: "Who may open it" }).waitFor();
      await looked(page, `admin-application-${name}`);
      await page.goto(`${dev.provider}/admin/invite`);
      await looked(page, `admin-invite-${name}`);
      await page.getByLabel("User name").fill("bob");
      await page.getByRole("button", { name: "Invite somebody" }).click();
      await page.getByRole("alert").waitFor();
      await looked(page, `admin-invite-problem-${name}`);
      for (const locale of ["de", "ja", "pl"]) {
        await page.goto(`${dev.provider}/admin/people?q=bob&ui_locales=${locale}`);
        await looked(page, `admin-people-${name}-${locale}`);
        await page.locator("table.people a").click();
        await page.locator("a.danger[href*=disable]").waitFor();
        assert.equal(await page.locator("html").getAttribute("lang"), locale);
        await looked(page, `admin-person-${name}-${locale}`);
      }
      await context.close();
      assert.deepEqual(complaints, []);
    });
  }

  test("sixty-six people can be looked through", async () => {
    const users = Array.from({ length: 60 }, (_, number) => ({
      username: `person-${number}`,
      claims: { name: `Person ${number} of the Northern Branch`, email: `person-${number}@example.com`, role: ["viewer", "sales"] },
    }));
    await operate(directory, ["apply", "-", "--yes"], JSON.stringify({ users }));
    const { page, context, complaints } = await visitor(browser, { viewport: { width: 1280, height: 900 } });
    await enter(page);
    let people = 0;
    for (;;) {
      const height = await page.evaluate(() => document.documentElement.scrollHeight);
      assert.ok(height <= 1600, `${height} px`);
      people += await page.locator("table.people tbody tr").count();
      const next = page.getByRole("link", { name: "Next page" });
      if ((await next.count()) === 0) break;
      await next.click();
      await page.getByRole("link", { name: "Previous page" }).waitFor();
    }
    assert.ok(people >= 66, `${people} people`);
    await find(page, "northern 59");
    await page.getByRole("link", { name: "Person 59 of the Northern Branch" }).waitFor();
    assert.equal(await page.locator("table.people tbody tr").count(), 1);
    await context.close();
    assert.deepEqual(complaints, []);
  });

  test("the keyboard is enough", async () => {
    const { page, context, complaints } = await visitor(browser);
    await enter(page);
    const reach = async (what) => {
      for (let presses = 0; presses < 60; presses++) {
        await page.keyboard.press("Tab");
        if (await what.evaluate((element) => element === document.activeElement)) return;
      }
      assert.fail("the keyboard does not reach it");
    };
    await reach(page.getByRole("searchbox"));
    await page.keyboard.type("bob");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=bob/);
    await reach(page.getByRole("link", { name: /Bob/ }));
    await page.keyboard.press("Enter");
    await reach(page.getByRole("link", { name: "Disable" }));
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: /^Disable Bob/ }).waitFor();
    await reach(page.getByRole("button", { name: "Disable" }));
    await page.keyboard.press("Space");
    await page.locator(".notice.done").waitFor();
    await reach(page.getByRole("button", { name: "Enable" }));
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Disable" }).waitFor();
    await context.close();
    assert.deepEqual(complaints, []);
  });

  test("whoever has no such role finds nothing", async () => {
    const { page, context } = await visitor(browser, small);
    await page.goto(`${dev.provider}/account`);
    await enterPassword(page, bob);
    await page.getByRole("heading", { name: "Your account" }).waitFor();
    await page.goto(`${dev.provider}/admin`);
    await page.getByText("GP1007", { exact: true }).waitFor();
    await looked(page, "admin-nothing");
    await context.close();
  });
});
