// The tasks of an office manager, by clicks alone and without scripts: each ends on a page that says what was done. They play one
// after the other in one company, so that each finds what those before it left.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { appCode } from "./app_code.mjs";
import { enterPassword, looked, screenshot, visitor } from "./browser.mjs";
import { startForeignProvider } from "./foreign_provider.mjs";
import { registerAndSettle, runSql } from "./gatepost.mjs";
import { browser, dev, directory, setScene, shownCode } from "./scene.mjs";

const olivia = { username: "olivia", password: "white-rabbit" };
const clara = { username: "clara", password: "dormouse-in-the-pot" };
const dinah = { username: "dinah", password: "flamingo-and-hedgehog" };
const emil = { username: "emil", password: "mock-turtle-soup" };
const own = "a password of their own";

// What an hour of the log comes to once it is folded, of the day before; and a night of sign-ins and failures.
const uses = `
  INSERT INTO user_uses SELECT sub, extract(epoch FROM clock_timestamp())::int / 86400 - 1 FROM users WHERE username = 'emil';
  INSERT INTO client_user_uses SELECT sub, 'roster', day FROM user_uses`;
const night = `
  INSERT INTO folds SELECT extract(epoch FROM clock_timestamp())::int / 3600 - n FROM generate_series(4, 10) n ON CONFLICT DO NOTHING;
  INSERT INTO hourly_counts SELECT extract(epoch FROM clock_timestamp())::int / 3600 - n, '', kind, count
  FROM generate_series(4, 10) n, (VALUES ('signed_in', 20), ('failed', 3)) counts (kind, count);
  INSERT INTO audit_events
  SELECT a.day, clock_timestamp() - interval '5 hours', 'night', n, '', '', event, NULL, sub, NULL, '192.0.2.7', 'ab12cd3400000001', '{}'
  FROM (SELECT day FROM audit_events LIMIT 1) a, (VALUES (1, 'signed_in', 'clara'), (2, 'sign_in_failed', 'hugo')) e (n, event, username)
  JOIN users USING (username)`;

// Who is at a browser of their own: the office manager for all tasks, everybody else for one.
const opened = [];
let manager;

async function somebody(options = {}) {
  const one = await visitor(browser, { javaScriptEnabled: false, ...options });
  opened.push(one);
  return one.page;
}

// A task, by its number in the list of them.
function task(number, what, does) {
  test(`${number} ${what}`, () => does(manager.page));
}

// ---- What the office manager does ----

async function listed(page, { words = "", state = "" } = {}) {
  await page.getByRole("link", { name: "People", exact: true }).click();
  await page.getByLabel("Search people").fill(words);
  await page.getByLabel("State").selectOption(state);
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("heading", { name: "People" }).waitFor();
  return rows(page);
}

// The names in the list that the page shows.
async function rows(page) {
  const names = await page.locator("table.people tbody th").allInnerTexts();
  return names.map((name) => name.trim());
}

async function happened(page, what) {
  await page.getByLabel("What happened").selectOption(what);
  await page.getByRole("button", { name: "Search" }).click();
  await page.waitForURL(/event=/);
}

async function open(page, name) {
  await listed(page, { words: name });
  await page.locator("table.people").getByRole("link", { name }).click();
  await page.getByRole("heading", { name, exact: true }).waitFor();
}

async function says(page, sentence) {
  await page.locator(".notice.done", { hasText: sentence }).waitFor();
}

// What does not come back is asked for first.
async function askedAndDone(page, label, sentence) {
  await page.getByRole("link", { name: label }).click();
  await page.getByRole("link", { name: "Cancel" }).waitFor();
  await page.getByRole("button", { name: label }).click();
  await says(page, sentence);
}

async function invite(page, { username, name, address, role }) {
  await page.getByRole("link", { name: "People", exact: true }).click();
  await page.getByRole("link", { name: "Invite somebody" }).click();
  await page.getByLabel("User name").fill(username);
  await page.getByLabel("Full name").fill(name);
  await page.getByLabel("E-mail address").fill(address);
  if (role) await page.getByLabel(role).check();
  await page.getByRole("button", { name: "Invite somebody" }).click();
  await says(page, `${name} is invited. An e-mail with a link is on its way to ${address}.`);
}

// ---- What the others do ----

// The link of the latest e-mail to that address, once there are so many.
async function mailed(page, address, count = 1) {
  const letters = page.locator(".mail", { hasText: `To ${address}` });
  await page.goto(`${dev.demo}/e-mails`);
  for (let tries = 0; (await letters.count()) < count && tries < 80; tries++) {
    await page.waitForTimeout(250);
    await page.reload();
  }
  assert.equal(await letters.count(), count, address);
  return letters.first().locator(`a[href^="${dev.provider}/"]`).first().getAttribute("href");
}

async function comes(page, address, count = 1) {
  await page.goto(await mailed(page, address, count));
  await page.locator("input[name=new_password]").fill(own);
  await page.locator("input[name=new_password_again]").fill(own);
  await page.locator("form:has([name=new_password]) button[type=submit]").first().click();
  await page.locator("input[name=password]").waitFor();
}

// The answer to a password is a page like the one before it: only its arrival tells them apart.
async function triesPassword(page, who) {
  const arrived = page.waitForEvent("domcontentloaded");
  await enterPassword(page, who);
  await arrived;
}

async function signIn(page, who) {
  await page.goto(`${dev.provider}/account`);
  await triesPassword(page, who);
}

async function guessTenTimes(page, who) {
  await page.goto(`${dev.provider}/account`);
  for (let guesses = 0; guesses < 10; guesses++) {
    await triesPassword(page, { ...who, password: `guess ${guesses}` });
    await page.getByText("is not correct").waitFor();
  }
  await triesPassword(page, who);
  await page.getByText("too many failed attempts").waitFor();
}

async function isIn(page) {
  await page.goto(`${dev.provider}/account`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await page.locator("input[name=password]").count(), 0);
}

async function isOut(page) {
  await page.goto(`${dev.provider}/account`);
  await page.locator("input[name=password]").waitFor();
}

async function opens(page, application, who) {
  await page.goto(`${dev.demo}/${application}`);
  await page.getByRole("link", { name: "Sign in", exact: true }).click();
  if (who) await enterPassword(page, who);
}

async function addApp(page) {
  await page.goto(`${dev.provider}/account`);
  await page.getByRole("button", { name: "Add an app that shows codes" }).click();
  const key = (await page.locator("code.key").innerText()).replaceAll(/\s/g, "");
  await page.locator("input[name=code]").fill(appCode(key, 0));
  await page.getByRole("button", { name: "Add app" }).click();
  await page.getByRole("button", { name: "I have kept them" }).click();
}

describe("an office manager", { timeout: 600_000 }, () => {
  setScene();

  before(async () => {
    const page = await somebody();
    manager = opened[0];
    await page.goto(`${dev.provider}/admin`);
    await enterPassword(page, olivia);
    await page.locator("input[name=code]").fill(await shownCode(page));
    await page.locator("form:has([name=code]) button[type=submit]:not([name=decision])").first().click();
    await page.getByRole("heading", { name: "People" }).waitFor();
  });

  after(async () => {
    for (const { context, complaints } of opened) {
      await context.close();
      assert.deepEqual(complaints, []);
    }
  });

  task(1, "invites one person", async (page) => {
    await invite(page, { username: "nora", name: "Nora Novak", address: "nora@example.com", role: "storekeeper" });
    await screenshot(page, "office-invited");
    await page.getByRole("link", { name: "Invite another" }).click();
    await page.getByRole("heading", { name: "Invite somebody" }).waitFor();
  });

  task(2, "invites five by pasted lines, one with a mistake", async (page) => {
    await page.getByRole("link", { name: "People", exact: true }).click();
    await page.getByRole("link", { name: "Invite somebody" }).click();
    await page.getByRole("link", { name: "Invite several" }).click();
    const lines = [
      "name;address;user name;roles",
      "Pia Pohl;pia@example.com",
      "Quentin Quist;quentin@example.com;quentin;planner|storekeeper",
      "Rosa Ruiz;rosa.example.com;rosa;bookkeeper",
      "\"Sam \"\"Sunny\"\" Sato\";sam@example.com;sam",
      "Tove Tamm;tove@example.com;tove;planner",
    ];
    await page.getByLabel("One person a line").fill(lines.join("\n"));
    await page.getByRole("button", { name: "Invite several" }).click();
    await page.getByRole("alert").getByText("Nobody was invited yet").waitFor();
    const mistakes = await page.getByRole("alert").locator("li").allInnerTexts();
    assert.deepEqual(mistakes, ["Line 4: Enter an e-mail address, such as name@example.com."]);
    await screenshot(page, "office-several-mistake");
    const typed = await page.getByLabel("One person a line").inputValue();
    await page.getByLabel("One person a line").fill(typed.replace("rosa.example.com", "rosa@example.com"));
    await page.getByRole("button", { name: "Invite several" }).click();
    await says(page, "People invited: 5.");
    assert.deepEqual(await rows(page), ["Pia Pohl", "Quentin Quist", "Rosa Ruiz", "Sam \"Sunny\" Sato", "Tove Tamm"]);
    await screenshot(page, "office-several");
  });

  task(3, "sends the invitation again to somebody who has not come", async (page) => {
    const names = await listed(page, { state: "invited" });
    assert.ok(names.includes("Nora Novak") && !names.includes("Clara Winter"), names.join());
    await page.getByRole("link", { name: "Nora Novak" }).click();
    await page.getByRole("button", { name: "Invite again" }).click();
    await says(page, "An e-mail with a link is on its way to nora@example.com.");
    const nora = await somebody();
    await comes(nora, "nora@example.com", 2);
    await triesPassword(nora, { username: "nora", password: own });
    await isIn(nora);
    assert.ok(!(await listed(page, { state: "invited" })).includes("Nora Novak"));
  });

  task(4, "finds somebody by the family name", async (page) => {
    assert.deepEqual(await listed(page, { words: "brandt" }), ["Dinah Brandt"]);
  });

  task(5, "finds who has no second factor", async (page) => {
    const names = await listed(page, { state: "no-second-factor" });
    for (const name of ["Clara Winter", "Dinah Brandt"]) assert.ok(names.includes(name), names.join());
    assert.ok(!names.includes("Olivia Oduya"), names.join());
  });

  task(6, "removes the factors of a lost telephone, and she adds new ones", async (page) => {
    const person = await somebody();
    await signIn(person, dinah);
    await addApp(person);
    await open(page, "Dinah Brandt");
    await askedAndDone(page, "Remove all second factors", "All second factors of Dinah Brandt are removed.");
    await isOut(person);
    await signIn(person, dinah);
    await addApp(person);
    await isIn(person);
    await open(page, "Dinah Brandt");
    await page.getByText("App that shows codes").waitFor();
  });

  task(7, "writes a new address that is also the user name", async (page) => {
    await open(page, "Pia Pohl");
    await page.getByLabel("E-mail address").fill("pia.pohl@example.com");
    await page.getByRole("button", { name: "Save" }).click();
    await says(page, "The change is made.");
    assert.equal(await page.locator("p.lead").first().innerText(), "pia.pohl@example.com");
  });

  task(8, "writes a new family name", async (page) => {
    await open(page, "Dinah Brandt");
    await page.getByLabel("Full name").fill("Dinah Berg");
    await page.getByRole("button", { name: "Save" }).click();
    await says(page, "The change is made.");
    await page.getByRole("heading", { name: "Dinah Berg", exact: true }).waitFor();
    assert.deepEqual(await listed(page, { words: "berg" }), ["Dinah Berg"]);
  });

  task(9, "ends the access of somebody who leaves", async (page) => {
    const person = await somebody();
    await opens(person, "roster", emil);
    await person.getByRole("heading", { name: "Signed in as Emil Sørensen" }).waitFor();
    await open(page, "Emil Sørensen");
    await askedAndDone(page, "Disable", "Emil Sørensen is disabled, and signed out everywhere.");
    await screenshot(page, "office-disabled");
    await isOut(person);
    await enterPassword(person, emil);
    await person.getByText("is not correct").waitFor();
    assert.ok((await listed(page, { state: "disabled" })).includes("Emil Sørensen"));
  });

  task(10, "lets them come back", async (page) => {
    await open(page, "Emil Sørensen");
    await page.getByRole("button", { name: "Enable" }).click();
    await says(page, "Emil Sørensen can sign in again.");
    const person = await somebody();
    await signIn(person, emil);
    await isIn(person);
  });

  task(11, "sees who may open the bookkeeping", async (page) => {
    await page.getByRole("link", { name: "Applications" }).click();
    await page.getByRole("link", { name: "Bookkeeping" }).click();
    await page.getByRole("heading", { name: "Who may open it" }).waitFor();
    assert.deepEqual(await rows(page), ["Clara Winter", "Inês Carvalho", "Rosa Ruiz"]);
    await screenshot(page, "office-who-may-open-it");
  });

  task(12, "gives it to one more, with what the role opens", async (page) => {
    await page.getByRole("link", { name: "Roles" }).click();
    await page.getByRole("link", { name: "bookkeeper" }).click();
    await page.locator(".opened").getByRole("link", { name: "Bookkeeping" }).waitFor();
    await page.getByText("open their page among the people").waitFor();
    await open(page, "Emil Sørensen");
    await page.getByLabel("bookkeeper").check();
    await page.getByRole("button", { name: "Save" }).click();
    await says(page, "The change is made.");
    await page.locator(".opened").getByRole("link", { name: "Bookkeeping" }).waitFor();
    await screenshot(page, "office-role-given");
    const person = await somebody();
    await opens(person, "bookkeeping", emil);
    await person.getByRole("heading", { name: "Signed in as Emil Sørensen" }).waitFor();
  });

  task(13, "takes a role from three", async (page) => {
    await page.getByRole("link", { name: "Roles" }).click();
    await page.getByRole("link", { name: "storekeeper" }).click();
    for (const name of ["Farid Haddad", "Greta Lindqvist", "Hugo Marchetti"]) await page.getByLabel(name).check();
    await page.getByRole("button", { name: "Take it from those ticked" }).click();
    await says(page, "The role was taken from");
    assert.deepEqual(await rows(page), ["Dinah Berg", "Nora Novak", "Quentin Quist"]);
    await screenshot(page, "office-role-taken");
  });

  task(14, "sees what somebody may open, and when they last did", async (page) => {
    await runSql(directory, uses);
    await open(page, "Emil Sørensen");
    const opened = await page.locator(".opened li").allInnerTexts();
    assert.match(opened.join(), /^Bookkeeping,Duty roster Last used on \d{1,2} [A-Z][a-z]{2} \d{4},Stock$/);
    await page.locator("dt", { hasText: "Last sign-in" }).locator("+ dd time").waitFor();
    await screenshot(page, "office-what-they-open");
  });

  task(15, "unlocks somebody who guessed ten times", async (page) => {
    const person = await somebody();
    await guessTenTimes(person, clara);
    assert.deepEqual(await listed(page, { state: "locked" }), ["Clara Winter"]);
    await page.getByRole("link", { name: "Clara Winter" }).click();
    await page.locator(".notice.warning", { hasText: "Cannot sign in until" }).waitFor();
    await screenshot(page, "office-locked-out");
    await page.getByRole("button", { name: "Let them try now" }).click();
    await says(page, "Clara Winter can try again now.");
    await signIn(person, clara);
    await isIn(person);
  });

  task(16, "invites a guest for one application alone", async (page) => {
    await invite(page, { username: "guest", name: "Gerd Gast", address: "gerd@example.com", role: "bookkeeper" });
    const guest = await somebody();
    await comes(guest, "gerd@example.com");
    await opens(guest, "bookkeeping", { username: "guest", password: own });
    await guest.getByRole("heading", { name: "Signed in as Gerd Gast" }).waitFor();
    await opens(guest, "roster");
    await guest.getByText("This application is not open to your account").waitFor();
  });

  task(17, "reads last night's sign-ins and failures in the picture and in the list", async (page) => {
    await runSql(directory, night);
    const [year, month, date] = new Date(Date.now() - 5 * 3_600_000).toISOString().slice(0, 10).split("-");
    const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
    const day = `${Number(date)} ${months[month - 1]} ${year}`;
    await page.getByRole("link", { name: "Audit log" }).click();
    await page.getByRole("img", { name: "Sign-ins and failed attempts of the last seven days" }).waitFor();
    await page.getByText("As a table").click();
    await page.getByRole("row", { name: /20 3 0 0$/ }).first().waitFor();
    await screenshot(page, "office-night");
    await page.getByRole("link", { name: day }).click();
    await happened(page, "Sign-ins");
    assert.match(await page.locator("main").innerText(), /Clara Winter signed in/);
    await happened(page, "Failed attempts");
    await page.getByText("A sign-in failed: Hugo Marchetti").waitFor();
  });

  task(18, "sees who removed whose factors, and when", async (page) => {
    await page.getByRole("link", { name: "Audit log" }).click();
    await happened(page, "Passwords and second factors");
    const removed = page.locator(".log > li", { hasText: "Olivia Oduya removed all second factors of Dinah Berg" });
    await removed.locator("time").waitFor();
    await removed.getByRole("link", { name: "Dinah Berg" }).click();
    await page.getByRole("heading", { name: "Dinah Berg" }).waitFor();
  });

  task(19, "finds what somebody reads out from an error page", async (page) => {
    const elsewhere = await startForeignProvider(dev.provider, ["partner"]);
    await registerAndSettle(directory, { identity_providers: [elsewhere.registration("partner", { provision: false })] });
    // From elsewhere: those who guess wrong here use up what the log tells one by one of one network.
    const person = await somebody({ extraHTTPHeaders: { "X-Forwarded-For": "198.51.100.19" } });
    await person.goto(`${dev.provider}/account`);
    await person.getByRole("button", { name: "Foreign" }).click();
    await person.getByLabel("Name there").fill("carol");
    await person.getByRole("button", { name: "Sign in there" }).click();
    const reference = await person.locator("dt", { hasText: "Reference" }).locator("+ dd").innerText();
    await elsewhere.close();
    await page.getByRole("link", { name: "Audit log" }).click();
    await page.getByLabel("Reference from an error page").fill(reference.toUpperCase());
    const found = page.locator(".log > li", { hasText: "A sign-in with another service failed" });
    // A failure is told by the log a moment after the page.
    for (let tries = 0; (await found.count()) === 0 && tries < 20; tries++) {
      await page.getByRole("button", { name: "Search" }).click();
      await page.waitForTimeout(500);
    }
    assert.equal(await found.count(), 1);
    await found.getByText("Details").click();
    await found.getByRole("link", { name: /^GP\d+$/ }).click();
    await page.getByRole("heading", { name: "Why does an application refuse?" }).waitFor();
    await screenshot(page, "office-read-out");
  });

  task(20, "signs somebody out everywhere after a laptop was stolen", async (page) => {
    const [here, stolen] = [await somebody(), await somebody()];
    for (const one of [here, stolen]) {
      await signIn(one, clara);
      await isIn(one);
    }
    await open(page, "Clara Winter");
    await askedAndDone(page, "Sign out everywhere", "Clara Winter is signed out everywhere.");
    await isOut(here);
    await isOut(stolen);
  });

  test("somebody guesses ten times more", async () => guessTenTimes(await somebody(), emil));

  for (const [name, options] of [
    ["small", { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
    ["wide", { viewport: { width: 1280, height: 900 } }],
  ]) {
    test(`the pages of these tasks can be read (${name})`, async () => {
      const { context, page, complaints } = await visitor(browser, options);
      await context.addCookies(await manager.context.cookies());
      await page.goto(`${dev.provider}/admin/invite-several`);
      await looked(page, `office-several-${name}`);
      await page.getByLabel("One person a line").fill("Una Ulm\n,una@example,una,boss");
      await page.getByRole("button", { name: "Invite several" }).click();
      await page.getByRole("alert").waitFor();
      await looked(page, `office-several-problem-${name}`);
      await listed(page, { state: "locked" });
      await looked(page, `office-locked-${name}`);
      for (const locale of ["de", "fr", "es", "it", "nl", "pl", "pt", "ja", "zh-Hans"]) {
        await page.goto(`${dev.provider}/admin/invite-several?ui_locales=${locale}`);
        await looked(page, `office-several-${name}-${locale}`);
      }
      await context.close();
      assert.deepEqual(complaints, []);
    });

    test(`what is seldom seen can be read, too (${name})`, async () => {
      const { context, page, complaints } = await visitor(browser, options);
      await context.addCookies(await manager.context.cookies());
      const another = await context.newPage();
      await page.goto(`${dev.provider}/admin/people?q=emil`);
      await page.locator("table.people tbody a").click();
      await page.getByRole("heading", { name: /^Emil/ }).waitFor();
      const person = page.url();
      for (const locale of ["en", "de", "pl", "ja"]) {
        const at = async (address, what) => {
          await page.goto(`${address}?ui_locales=${locale}`);
          await looked(page, `office-${what}-${name}-${locale}`);
        };
        await at(person, "lock-notice");
        await at(`${dev.provider}/admin/roles`, "roles");
        await at(`${dev.provider}/admin/roles/planner`, "role");
        await at(`${dev.provider}/admin/invite-several`, "several");
        await page.locator("textarea").fill(`Una von Uhlenhorst-Ulm zu ${locale},${locale}.${name}@example.com,,planner|storekeeper`);
        await page.locator("main form button").click();
        await page.locator(".notice.done").waitFor();
        await looked(page, `office-several-done-${name}-${locale}`);
        for (const [one, text] of [[page, "typed"], [another, `stored ${name} ${locale}`]]) {
          await one.goto(`${person}?ui_locales=${locale}`);
          await one.locator("input[name=name]").fill(`Emil Sørensen, ${text}`);
        }
        for (const one of [another, page]) await one.locator("button[value=save]").click();
        await page.getByRole("alert").waitFor();
        await looked(page, `office-stored-now-${name}-${locale}`);
      }
      await context.close();
      assert.deepEqual(complaints, []);
    });
  }
});
