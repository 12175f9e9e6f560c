// The audit log at /admin, by clicks: last night in the picture and in the list, who removed whose factors, and what
// somebody reads out from an error page.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { appCode } from "./app_code.mjs";
import { enterPassword, launch, looked, visitor } from "./browser.mjs";
import { newProject, registerAndSettle, removeProject, runSql, startDev } from "./gatepost.mjs";

const key = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP";
const manager = { username: "olga", password: "the keys of the whole office" };
const highest = 2_900;
let browser, dev, directory;

// A night of 120 events, and a week of counts with six hours that were not counted.
const night = `
  INSERT INTO audit_events
  SELECT a.day, clock_timestamp() - n * interval '20 minutes', 'night', n, '', '',
    (ARRAY['signed_in', 'code_redeemed', 'sign_in_failed', 'factor_removed', 'user_changed', 'external_sign_in_failed'])[n % 6 + 1],
    CASE n % 6 WHEN 1 THEN 'ledger' END, CASE n % 6 WHEN 5 THEN NULL ELSE 'sub|bea' END, NULL, '192.0.2.7',
    'ab12cd34' || lpad(to_hex(n), 8, '0'),
    CASE n % 6 WHEN 3 THEN '{"by":"admin","admin":"sub|olga","factor":"all"}' WHEN 5 THEN '{"reason":"GP1211"}' ELSE '{}' END::json
  FROM (SELECT day FROM audit_events LIMIT 1) a, generate_series(1, 120) n;
  INSERT INTO folds SELECT floor(extract(epoch FROM clock_timestamp()) / 3600)::int4 - n FROM generate_series(7, 170) n;
  INSERT INTO hourly_counts
  SELECT hour, '', kind, CASE kind WHEN 'signed_in' THEN 20 + hour % 24 * 7 WHEN 'failed' THEN hour % 5 ELSE hour % 5 * 900 END
  FROM folds, unnest(ARRAY['signed_in', 'failed', 'turned_away']) kind;`;

describe("the audit log", { timeout: 300_000 }, () => {
  before(async () => {
    directory = await newProject();
    browser = await launch();
    dev = await startDev(directory, [], { GATEPOST_ADMIN_ROLE: "office" });
    const users = [
      { ...manager, sub: "sub|olga", totp: key, claims: { name: "Olga Office", role: "office" } },
      { username: "bea", sub: "sub|bea", claims: { name: "Bea Brandt" } },
    ];
    const clients = [{ client_id: "ledger", client_name: "Ledger", redirect_uris: ["https://ledger.example/"] }];
    await registerAndSettle(directory, { users, clients });
    await runSql(directory, night);
  });

  after(async () => {
    await browser?.close();
    const code = await dev?.stop();
    await removeProject(directory);
    assert.equal(code, 0, dev?.output);
  });

  async function enter(options, steps) {
    const visit = await visitor(browser, options);
    await visit.page.goto(`${dev.provider}/admin/people`);
    await enterPassword(visit.page, manager);
    await visit.page.locator("input[name=code]").fill(appCode(key, steps));
    await visit.page.keyboard.press("Enter");
    await visit.page.locator("nav ul.tabs").waitFor();
    return visit;
  }

  test("an office manager reads, chooses by words and finds a reference, without scripts", async () => {
    const { page, context, complaints } = await enter({ javaScriptEnabled: false, viewport: { width: 1280, height: 800 } }, -1);
    await page.getByRole("link", { name: "Audit log" }).click();
    const search = page.getByRole("button", { name: "Search" });
    const events = page.locator(".log > li");

    // Last night: the picture, the same in numbers, and the list.
    await page.getByRole("img", { name: "Sign-ins and failed attempts of the last seven days" }).waitFor();
    await page.getByText("As a table").click();
    assert.ok((await page.getByRole("row").count()) > 100);
    await page.getByText("As a table").click();
    assert.equal(await events.count(), 50);
    const { height } = await page.locator("html").boundingBox();
    assert.ok(height <= highest, `50 events take ${height} px`);
    await page.locator(".days a").nth(-2).click();
    await page.waitForURL((url) => /^\d{4}-\d\d-\d\d$/.test(url.searchParams.get("day")));
    await page.getByLabel("What happened").selectOption("Failed attempts");
    await search.click();
    await page.getByText("A sign-in failed: Bea Brandt").first().waitFor();

    // Who removed whose factors, and when.
    await page.getByRole("link", { name: "Audit log" }).click();
    await page.getByLabel("What happened").selectOption("Changes by administrators");
    await search.click();
    const removed = events.filter({ hasText: "Olga Office removed all second factors of Bea Brandt" }).first();
    await removed.locator("time").waitFor();
    await removed.getByRole("link", { name: "Bea Brandt" }).click();
    await page.getByRole("heading", { name: "Bea Brandt" }).waitFor();

    // What somebody reads out.
    await page.getByRole("link", { name: "Audit log" }).click();
    await page.getByLabel("Reference from an error page").fill("AB12 cd34 0000 0005");
    await search.click();
    await page.getByText("A sign-in with another service failed").waitFor();
    assert.equal(await events.count(), 1);
    await events.getByText("Details").click();
    await events.getByRole("link", { name: "GP1211" }).click();
    await page.getByRole("heading").first().waitFor();
    await context.close();
    assert.deepEqual(complaints, []);
  });

  for (const [name, steps, options] of [
    ["wide", 0, { viewport: { width: 1280, height: 800 } }],
    ["small-dark", 1, { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
  ]) {
    test(`the page can be read (${name})`, async () => {
      const { page, context, complaints } = await enter(options, steps);
      await page.goto(`${dev.provider}/admin/audit`);
      await page.locator(".log summary").first().click();
      await looked(page, `admin-audit-${name}`);
      await context.close();
      assert.deepEqual(complaints, []);
    });
  }
});
