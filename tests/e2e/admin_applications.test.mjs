// Applications, refusals and the audit log at /admin: an office manager's questions in a real browser, without scripts, on a
// small screen, in the dark, and by keyboard.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { appCode } from "./app_code.mjs";
import { alice, enterPassword, launch, looked, signIn, visitor } from "./browser.mjs";
import { newProject, registerAndSettle, removeProject, startDev } from "./gatepost.mjs";

const key = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const manager = { username: "olga", password: "the keys of the whole office" };
let browser, dev, directory;

describe("applications at /admin", { timeout: 300_000 }, () => {
  before(async () => {
    directory = await newProject();
    browser = await launch();
    dev = await startDev(directory, [], { GATEPOST_ADMIN_ROLE: "office" });
    const user = { ...manager, totp: key, claims: { name: "Olga Office", role: "office" } };
    const wiki = {
      client_id: "wiki", client_name: "Wiki of a <b>rather</b> long name that does not fit on one line of a telephone",
      redirect_uris: ["https://wiki.example/a/rather/long/address/that/has/no/place/to/break/callback"], scope: "openid profile",
      token_endpoint_auth_method: "none", allowed_roles: ["office", "people-who-write-what-others-read-in-the-evening"],
    };
    await registerAndSettle(directory, { users: [user], clients: [wiki] });
    const someone = await visitor(browser);
    await signIn(someone.page, dev.demo, alice);
    await someone.context.close();
  });

  after(async () => {
    await browser?.close();
    const code = await dev?.stop();
    await removeProject(directory);
    assert.equal(code, 0, dev?.output);
  });

  async function administer(page, steps) {
    await page.goto(`${dev.provider}/admin/applications`);
    await enterPassword(page, manager);
    await page.locator("input[name=code]").fill(appCode(key, steps));
    await page.keyboard.press("Enter");
    await page.locator("nav ul.tabs").waitFor();
  }

  for (const [locale, steps, options] of [
    ["en-GB", -1, { viewport: { width: 320, height: 640 }, colorScheme: "dark", javaScriptEnabled: false }],
    ["de-DE", 0, { viewport: { width: 320, height: 640 }, colorScheme: "light" }],
    ["ja-JP", 1, { viewport: { width: 1280, height: 800 }, colorScheme: "dark" }],
  ]) {
    test(`an office manager finds applications, reasons and events (${locale})`, async () => {
      const { page, context, complaints } = await visitor(browser, { locale, ...options });
      // axe is a script: without scripts the pages are looked at for their width alone.
      const has = options.javaScriptEnabled !== false;
      const look = async (name) => {
        if (has) await looked(page, `${name}-${locale.slice(0, 2)}`);
        else await fits(page, name);
      };
      await administer(page, steps);
      await page.goto(`${dev.provider}/admin/applications`);
      await look("admin-applications");
      await page.locator("ul.items a", { hasText: "Wiki" }).click();
      assert.match(await page.locator("main").innerText(), /<b>rather<\/b>[^]*people-who-write/);
      await look("admin-application");

      await page.goto(`${dev.provider}/admin/explain`);
      await look("admin-explain");
      const address = `${dev.provider}/connect/authorize?client_id=wiki&response_type=code&scope=openid&redirect_uri=https://wiki.example/`;
      await page.locator("input[name=what]").fill(address);
      await page.keyboard.press("Enter");
      await page.getByText(/GP1105/).first().waitFor();
      assert.equal(await page.locator("input[name=what]").inputValue(), "");
      await look("admin-explained");

      await page.goto(`${dev.provider}/admin/audit?person=alice`);
      await page.locator("ul.items > li").first().waitFor();
      await look("admin-audit");
      await page.locator("details > summary").last().click();
      await look("admin-audit-details");
      await page.locator("select[name=event]").selectOption("applications");
      await page.locator("form[role=search] button").click();
      await page.waitForURL(/event=applications/);
      const events = await page.locator(".log strong").allTextContents();
      assert.ok(events.length > 0 && events.every((event) => /^(code|consent|client)_/.test(event)), String(events));
      await page.locator(".week summary").click();
      await look("admin-audit-table");

      assert.deepEqual(complaints, []);
      await context.close();
    });
  }
});

// Without scripts nothing can be asked of the page: a picture of all of it is as wide as its contents.
async function fits(page, name) {
  const box = await page.locator("html").boundingBox();
  for (const part of await page.locator("main *:visible").all()) {
    const { x, width } = (await part.boundingBox()) ?? { x: 0, width: 0 };
    assert.ok(x + width <= box.width + 1, `${name} is ${x + width} px wide`);
  }
}
