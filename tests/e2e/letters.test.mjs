// Forgotten passwords in a real browser, by letters that a real Postfix takes: over STARTTLS under a CA of its own, from a
// user with a password.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { alice, beginSignIn, bob, decide, enterPassword, launch, looked, visitor } from "./browser.mjs";
import { newProject, operate, removeProject, startDev } from "./gatepost.mjs";
import { startPostfix } from "./postfix.mjs";

const domain = "wonderland.example";
let browser, dev, directory, postfix, settings;
let letters = 0;

// What a new password may be.
const passwords = Array.from({ length: 9 }, (_, number) => `down the rabbit hole ${number}`);

describe("letters", { timeout: 300_000 }, () => {
  before(async () => {
    directory = await newProject();
    browser = await launch();
    postfix = await startPostfix(domain);
    settings = { ...postfix.settings, GATEPOST_BRAND_HELP_URL: `mailto:help@${domain}` };
    dev = await startDev(directory, [], { ...settings, GATEPOST_NEW_BROWSER_MAIL: "off" });
    await operate(directory, ["user", "set", "alice", `email=alice@${domain}`, "email_verified=true"]);
    await operate(directory, ["user", "set", "bob", `email=bob@${domain}`, "email_verified=true"]);
  });

  after(async () => {
    await browser?.close();
    const code = await dev?.stop();
    await postfix?.stop();
    await removeProject(directory);
    assert.equal(code, 0, dev?.output);
  });

  const nextLetter = () => postfix.letter((letters += 1));

  // On a small telephone, in the dark, without scripts: each page can be read.
  const small = { viewport: { width: 320, height: 640 }, colorScheme: "dark" };

  async function forgotten(page, name, shot) {
    await beginSignIn(page, dev.demo);
    await page.locator("a[href*='/login/forgotten']").click();
    await page.locator("input[name=name]").waitFor();
    if (shot) await looked(page, `forgotten-${shot}`);
    await page.locator("input[name=name]").fill(name);
    await page.locator("button.primary").click();
    await page.locator("input[name=name]").waitFor({ state: "detached" });
    if (shot) await looked(page, `letter-sent-${shot}`);
  }

  // A reader of letters that loads nothing, narrow and wide. The letter brings no script; axe, which looks at it, is one.
  async function asSomebodySeesIt(letter, shot) {
    assert.ok(!letter.html.includes("<script"), letter.html);
    const context = await browser.newContext({ offline: true });
    const page = await context.newPage();
    const asked = [];
    page.on("request", (request) => request.url().startsWith("data:text/html") || asked.push(request.url()));
    await page.goto(`data:text/html;charset=utf-8;base64,${Buffer.from(letter.html).toString("base64")}`);
    for (const width of [320, 1280]) {
      await page.setViewportSize({ width, height: 640 });
      await looked(page, `letter-${shot}-${width}`);
    }
    const button = page.getByRole("link");
    assert.equal(await button.first().getAttribute("href"), letter.link);
    assert.ok(!(await page.locator("body").innerText()).includes("gpm_"));
    assert.deepEqual(asked, []);
    await context.close();
  }

  async function choose(page, password) {
    await page.locator("input[name=new_password]").fill(password);
    await page.locator("input[name=new_password_again]").fill(password);
    await page.locator("button.primary").click();
  }

  for (const [locale, subject] of [["en-GB", /^Choose a new password at /], ["de-DE", /^Ein neues Passwort für /], ["ja-JP", /新しいパスワード$/]]) {
    test(`a letter lets somebody choose a password, and go on where they came from (${locale})`, async () => {
      const { page, context, complaints } = await visitor(browser, { locale, ...small });
      const shot = locale.slice(0, 2);
      await forgotten(page, shot === "de" ? `alice@${domain}` : "alice", shot);
      const letter = await nextLetter();
      assert.equal(letter.to, `<alice@${domain}>`);
      assert.match(letter.subject, subject);
      assert.match(letter.text, new RegExp(`help@${domain}`));
      await asSomebodySeesIt(letter, shot);
      // TLS, and a user (RFC 3848).
      assert.match(letter.head, /with ESMTPSA /);
      await page.goto(letter.link);
      await page.locator("input[name=new_password]").waitFor();
      assert.ok(!page.url().includes(letter.link.match(/gpm_[\w-]+/)[0]), page.url());
      await looked(page, `mail-link-${shot}`);
      const password = passwords.pop();
      await choose(page, password);
      await page.locator("input[name=username]").waitFor();
      assert.equal(await page.locator("input[name=username]").inputValue(), "alice");
      await page.getByRole("status").waitFor();
      await looked(page, `after-mail-link-${shot}`);
      await enterPassword(page, { username: "alice", password });
      await page.getByRole("heading", { name: /^Signed in as |asks for access|Zugriff|アクセス/ }).waitFor();
      assert.match((await nextLetter()).subject, /Gatepost|changed|geändert|変更/);
      // The link is over.
      await page.goto(letter.link);
      await page.getByText("GP1810", { exact: true }).waitFor();
      await looked(page, `link-over-${shot}`);
      await context.close();
      assert.deepEqual(complaints, []);
    });
  }

  test("without scripts all of it goes, too", async () => {
    const { page, context, complaints } = await visitor(browser, { javaScriptEnabled: false });
    await forgotten(page, "bob");
    await page.goto((await nextLetter()).link);
    const password = passwords.pop();
    await choose(page, password);
    await enterPassword(page, { username: "bob", password });
    await decide(page, "allow");
    await page.getByRole("heading", { name: /^Signed in as / }).waitFor();
    assert.match((await nextLetter()).subject, /changed/);
    await context.close();
    assert.deepEqual(complaints, []);
  });

  test("a passkey is asked for before the password is chosen", async () => {
    const { page, context, complaints } = await visitor(browser, small);
    await operate(directory, ["user", "password", "bob"], `${bob.password}\n`);
    const session = await context.newCDPSession(page);
    await session.send("WebAuthn.enable", { enableUI: false });
    await page.addInitScript(() => (PublicKeyCredential.isConditionalMediationAvailable = async () => false));
    const options = {
      protocol: "ctap2", ctap2Version: "ctap2_1", transport: "internal", hasResidentKey: true, hasUserVerification: true,
      isUserVerified: true, automaticPresenceSimulation: true,
    };
    await session.send("WebAuthn.addVirtualAuthenticator", { options });
    await page.goto(`${dev.provider}/account`);
    await enterPassword(page, bob);
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByRole("button", { name: "I have kept them" }).click();
    await page.getByRole("heading", { name: "Your account" }).waitFor();
    assert.match((await nextLetter()).text, /second factor was added/);
    await looked(page, "account-with-address");
    await context.clearCookies();
    await forgotten(page, "bob");
    await page.goto((await nextLetter()).link);
    await page.getByRole("button", { name: "Use a passkey" }).waitFor();
    assert.equal(await page.locator("input[name=new_password]").count(), 0);
    await looked(page, "mail-link-factor");
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.locator("input[name=new_password]").waitFor();
    await choose(page, passwords.pop());
    await page.locator("input[name=username]").waitFor();
    assert.match((await nextLetter()).text, /password of your account was set/);
    await operate(directory, ["user", "factors", "bob", "--remove-all"]);
    await context.close();
    assert.deepEqual(complaints, []);
  });

  test("somebody takes another address", async () => {
    const { page, context, complaints } = await visitor(browser, small);
    await operate(directory, ["user", "password", "alice"], `${alice.password}\n`);
    await page.goto(`${dev.provider}/account`);
    await enterPassword(page, alice);
    await page.locator("details:has(input[name=new_address]) > summary").click();
    await page.locator("input[name=new_address]").fill(`liddell@${domain}`);
    await decide(page, "change_address");
    await page.getByRole("status").waitFor();
    const letter = await nextLetter();
    assert.equal(letter.to, `<liddell@${domain}>`);
    const stranger = await visitor(browser, small);
    await stranger.page.goto(letter.link);
    await stranger.page.getByText("Sign in first").waitFor();
    await looked(stranger.page, "new-address-stranger");
    await stranger.context.close();
    await page.goto(letter.link);
    await page.getByText(`liddell@${domain}`).waitFor();
    await looked(page, "new-address");
    await page.locator("button.primary").click();
    await page.getByText("Your e-mail address was changed.").waitFor();
    assert.equal((await nextLetter()).to, `<alice@${domain}>`);
    await context.close();
    assert.deepEqual(complaints, []);
  });

  test("a sign-in in a new browser is told, and whoever says that it was not theirs ends it", async () => {
    await dev.stop();
    dev = await startDev(directory, [], settings);
    await operate(directory, ["user", "set", "alice", `email=alice@${domain}`, "email_verified=true"]);
    await operate(directory, ["user", "password", "alice"], `${alice.password}\n`);
    const enter = async (locale, password) => {
      const { page, context } = await visitor(browser, { locale });
      await page.goto(`${dev.provider}/account`);
      await enterPassword(page, { username: "alice", password });
      await page.locator("#factors").waitFor();
      await context.close();
    };
    const signIn = async (locale, password) => {
      await enter(locale, password);
      return nextLetter();
    };
    // Another port has another database, where she was never: of her first sign-in she is not told.
    await enter("en-GB", alice.password);
    const password = passwords.pop();
    for (const [locale, subject] of [["de-DE", /^Neue Anmeldung an Ihrem Konto bei /], ["en-GB", /^New sign-in to your account at /]]) {
      const letter = await signIn(locale, alice.password);
      assert.match(letter.subject, subject);
      assert.match(letter.text, /127\.0\.0\.0\/24/);
      const shot = `new-browser-${locale.slice(0, 2)}`;
      await asSomebodySeesIt(letter, shot);
      const { page, context, complaints } = await visitor(browser, { locale, ...small });
      await page.goto(letter.link);
      await page.getByRole("button", { name: /^(That was not me|Das war ich nicht)$/ }).waitFor();
      await looked(page, shot);
      if (locale === "en-GB") {
        await page.locator("button.primary").click();
        await page.locator("input[name=new_password]").waitFor();
        await choose(page, password);
        await page.locator("input[name=username]").waitFor();
        assert.match((await nextLetter()).text, /password of your account was set/);
      }
      await context.close();
      assert.deepEqual(complaints, []);
    }
    const letter = await signIn("en-GB", password);
    await operate(directory, ["user", "password", "alice"], `${passwords.pop()}\n`);
    const { page, context, complaints } = await visitor(browser, small);
    await page.goto(letter.link);
    await page.getByText("it is disabled to be safe").waitFor();
    await looked(page, "new-browser-too-late");
    await page.locator("button.primary").click();
    await page.getByText("Your account is disabled").first().waitFor();
    await looked(page, "new-browser-disabled");
    await context.close();
    assert.deepEqual(complaints, []);
  });
});
