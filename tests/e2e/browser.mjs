// Debian's own Chromium, and the steps that every scenario is made of.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import { chromium } from "playwright-core";

const screenshots = fileURLToPath(new URL("screenshots", import.meta.url));

// Quiet: no request but those of the pages.
const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const alice = { username: "alice", password: "looking-glass" };
export const bob = { username: "bob", password: "caterpillar" };

// A missing browser fails here, and with it every scenario. `more` are arguments of its own, `env` its environment.
export async function launch(more = [], env = process.env) {
  return chromium.launch({ executablePath: chromiumPath(), headless: true, args: [...args, ...more], env });
}

function chromiumPath() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  if (existsSync("/usr/bin/chromium")) return "/usr/bin/chromium";
  return execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim();
}

// A visitor with an empty cookie jar, who speaks English. Errors in the console and refused loads are collected: a
// page that its own policy breaks is a finding.
export async function visitor(browser, options = {}) {
  return watched(await browser.newContext({ locale: "en-GB", ...options }));
}

// A visitor whose browser lets frames of other sites see their cookies, which Chromium by itself no longer does. The
// choice lies in a profile of its own; closing the context ends that browser.
export async function visitorWithThirdPartyCookies(profile, options = {}) {
  await mkdir(join(profile, "Default"), { recursive: true });
  const choice = { profile: { block_third_party_cookies: false, cookie_controls_mode: 0 } };
  await writeFile(join(profile, "Default/Preferences"), JSON.stringify(choice));
  return visitorWithProfile(profile, [], options);
}

// A visitor whose browser keeps its profile when it ends, which it does with its context; `more` are arguments of its own.
export async function visitorWithProfile(profile, more = [], options = {}) {
  const browser = { executablePath: chromiumPath(), headless: true, args: [...args, ...more] };
  return watched(await chromium.launchPersistentContext(profile, { ...browser, locale: "en-GB", ...options }));
}

async function watched(context) {
  context.setDefaultTimeout(15_000);
  const complaints = [];
  context.on("console", (message) => {
    const expected = /status of (400|401|403|404|429)/;
    // Chromium may come to fetch a page's icon only when another site's page is there, whose policy refuses it.
    const icon = /^Loading the image '(https?:[/][/][^/']+)[/]static[/]icon/.exec(message.text());
    const late = icon !== null && !message.page()?.url().startsWith(`${icon[1]}/`);
    if (message.type() === "error" && !expected.test(message.text()) && !late) complaints.push(message.text());
  });
  context.on("weberror", (error) => complaints.push(String(error.error())));
  const page = await context.newPage();
  return { context, page, complaints };
}

export async function beginSignIn(page, demo) {
  await page.goto(demo);
  await page.getByRole("link", { name: "Sign in", exact: true }).click();
}

// In any language.
export async function enterPassword(page, { username, password }) {
  await page.locator("input[name=username]").fill(username);
  await page.locator("input[name=password]").fill(password);
  await page.locator("form:has([name=password]) button[type=submit]:not([name=decision])").click();
}

export async function decide(page, decision) {
  await page.locator(`button[name=decision][value=${decision}]`).click();
}

export async function signIn(page, demo, person = alice) {
  await beginSignIn(page, demo);
  await enterPassword(page, person);
  await decide(page, "allow");
  await page.getByRole("heading", { name: /^Signed in as / }).waitFor();
}

// The claims table of the demo's page, as an object.
export async function claims(page) {
  const rows = page.locator("#claims tbody tr");
  const pairs = await rows.evaluateAll((all) => all.map((row) => [row.cells[0].innerText, row.cells[1].innerText]));
  return Object.fromEntries(pairs);
}

export async function decodedToken(page, id) {
  const parts = await page.locator(`#${id} pre`).allInnerTexts();
  return parts.map((part) => JSON.parse(part));
}

export async function isLoginPage(page) {
  // What was pressed may have brought the page and not yet all that stands on it.
  await page.waitForLoadState("domcontentloaded");
  return (await page.locator("input[name=password]").count()) === 1;
}

export async function screenshot(page, name) {
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
}

// Nothing that axe calls serious, nothing wider than the screen.
export async function looked(page, name) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  assert.deepEqual(serious.map(({ id, nodes }) => `${name}: ${id} ${nodes[0].html}`), []);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${name} is ${overflow} px too wide`);
  await screenshot(page, name);
}
