// One person, one browser, many tabs: pages that were open when somebody signed in, signed out or became somebody else.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { alice, bob, decide, enterPassword, isLoginPage, visitor } from "./browser.mjs";
import { answer, authorization, redeemed } from "./relying_party.mjs";
import { browser, dev, letSomebodyIn, setScene, someone } from "./scene.mjs";

const consentHeading = { name: /asks for access/ };
const accountHeading = { name: "Your account" };

describe("one browser with many tabs", { timeout: 300_000 }, () => {
  setScene();
  letSomebodyIn();

  // A new tab at an authorization request of its own; consent is asked each time, so that order does not matter.
  async function tab(parameters = {}) {
    const page = await someone.context.newPage();
    const request = authorization(dev, { prompt: "consent", ...parameters });
    await page.goto(request.url);
    return { page, request };
  }

  async function accountTab() {
    const page = await someone.context.newPage();
    await page.goto(`${dev.provider}/account`);
    return page;
  }

  async function subject({ page, request }) {
    await decide(page, "allow");
    const { parameters } = await answer(page, dev);
    return (await redeemed(dev, request, parameters)).sub;
  }

  test("signing in in one tab serves all that wait, each with its own request", async () => {
    const tabs = [await tab(), await tab(), await tab()];
    const account = await accountTab();
    for (const { page } of tabs) assert.ok(await isLoginPage(page));
    await enterPassword(tabs[1].page, alice);
    await tabs[1].page.getByRole("heading", consentHeading).waitFor();
    // Loaded again, a tab goes on; sent as it stood, it does, too.
    await tabs[0].page.reload();
    await tabs[0].page.getByRole("heading", consentHeading).waitFor();
    await enterPassword(tabs[2].page, alice);
    await tabs[2].page.getByRole("heading", consentHeading).waitFor();
    await account.reload();
    await account.getByRole("heading", accountHeading).waitFor();
    const subjects = [];
    for (const one of tabs) subjects.push(await subject(one));
    assert.equal(new Set(subjects).size, 1);
    assert.equal(await account.getByText("Signed in on").count(), 1);
  });

  test("somebody else's name in the second tab signs nobody in, and stays in its field", async () => {
    const [first, second] = [await tab(), await tab()];
    await enterPassword(first.page, alice);
    await first.page.getByRole("heading", consentHeading).waitFor();
    await enterPassword(second.page, bob);
    await second.page.getByRole("alert").waitFor();
    assert.equal(await second.page.locator("input[name=username]").inputValue(), bob.username);
    await enterPassword(second.page, bob);
    await second.page.getByRole("heading", consentHeading).waitFor();
    assert.match(await second.page.locator("main").innerText(), /Bob/);
  });

  test("whoever signs in last is whom the open pages are about", async () => {
    const first = await tab();
    await enterPassword(first.page, alice);
    await first.page.getByRole("heading", consentHeading).waitFor();
    const second = await tab({ prompt: "login consent" });
    await enterPassword(second.page, bob);
    await second.page.getByRole("heading", consentHeading).waitFor();
    await decide(first.page, "allow");
    await first.page.getByText("changed while this page was open").waitFor();
    const text = await first.page.locator("main").innerText();
    assert.ok(text.includes("Bob") && !text.includes("Alice"), text);
    assert.equal(await subject(first), await subject(second));
  });

  test("signing out in one tab leads the others to the sign-in, and from there on", async () => {
    const consent = await tab();
    await enterPassword(consent.page, alice);
    await consent.page.getByRole("heading", consentHeading).waitFor();
    const chooser = await tab({ prompt: "select_account" });
    await chooser.page.getByRole("heading", { name: "Choose an account" }).waitFor();
    const account = await accountTab();
    const leaving = await someone.context.newPage();
    await leaving.goto(`${dev.provider}/logout`);
    await decide(leaving, "sign_out");
    await leaving.getByRole("heading", { name: /signed out/i }).waitFor();
    await decide(consent.page, "allow");
    await decide(chooser.page, "continue");
    await account.reload();
    for (const page of [consent.page, chooser.page, account]) assert.ok(await isLoginPage(page), page.url());
    await enterPassword(consent.page, bob);
    await consent.page.getByRole("heading", consentHeading).waitFor();
    await decide(consent.page, "deny");
    assert.equal((await answer(consent.page, dev)).parameters.get("error"), "access_denied");
    await account.reload();
    await account.getByRole("heading", accountHeading).waitFor();
  });

  test("the way back never signs in again nor goes round in circles", async () => {
    const { page, request } = await tab();
    await enterPassword(page, alice);
    await page.getByRole("heading", consentHeading).waitFor();
    await decide(page, "allow");
    await answer(page, dev);
    await page.goBack();
    await page.getByRole("heading", consentHeading).waitFor();
    await page.goBack();
    // The page of the sign-in, or what the browser kept of it: loaded anew it asks for nothing that is known.
    await page.reload();
    await page.getByRole("heading", consentHeading).waitFor();
    await subject({ page, request });
  });

  test("a new password keeps this browser, ends the other, and old pages are drawn again", async () => {
    const other = await visitor(browser);
    await other.page.goto(`${dev.provider}/account`);
    await enterPassword(other.page, alice);
    await other.page.getByRole("heading", accountHeading).waitFor();
    const account = await accountTab();
    await enterPassword(account, alice);
    await account.getByRole("heading", accountHeading).waitFor();
    const stale = await accountTab();
    const changed = { ...alice, password: "a much longer looking-glass" };
    await change(account, alice.password, changed.password);
    await account.getByText("Your password is changed").waitFor();
    await decide(stale, "end_others");
    await stale.getByText("changed while this page was open").waitFor();
    await other.page.reload();
    assert.ok(await isLoginPage(other.page));
    await enterPassword(other.page, alice);
    await other.page.getByRole("alert").waitFor();
    await enterPassword(other.page, changed);
    await other.page.getByRole("heading", accountHeading).waitFor();
    // And the one ends the other from afar.
    await account.reload();
    await account.getByRole("button", { name: "Sign out there" }).click();
    await account.getByRole("status").waitFor();
    await other.page.reload();
    assert.ok(await isLoginPage(other.page));
    await change(account, changed.password, alice.password);
    await account.getByText("Your password is changed").waitFor();
    await other.context.close();
  });

  async function change(page, present, next) {
    await page.locator("#password").click();
    await page.getByLabel("Present password").fill(present);
    await page.getByLabel("New password", { exact: true }).fill(next);
    await page.getByLabel("New password once more").fill(next);
    await decide(page, "change_password");
  }
});
