// Second factors in a real browser: codes that oathtool makes of what zbarimg reads, and passkeys of Chromium's own virtual
// authenticator.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, test } from "node:test";
import { appCode } from "./app_code.mjs";
import { alice, beginSignIn, decide, decodedToken, enterPassword, looked, screenshot, visitor } from "./browser.mjs";
import { operate, runSql } from "./gatepost.mjs";
import { browser, dev, directory, letSomebodyIn, setScene, someone } from "./scene.mjs";

// The app on a phone: it reads the picture, and shows codes.
async function phone(page) {
  const picture = join(tmpdir(), `gatepost-qr-${process.pid}.png`);
  await page.locator("svg.qr-code").screenshot({ path: picture });
  const said = execFileSync("zbarimg", ["--quiet", "--raw", picture], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  await rm(picture);
  const url = new URL(said);
  assert.equal(url.protocol, "otpauth:");
  const secret = url.searchParams.get("secret");
  const typed = (await page.locator("code.key").innerText()).replaceAll(" ", "");
  assert.equal(secret, typed);
  // A code counts once: each call shows that of the next step.
  let steps = -1;
  return () => appCode(secret, steps++);
}

async function withPassword(page) {
  await beginSignIn(page, dev.demo);
  await enterPassword(page, alice);
}

async function signedIn(page) {
  const heading = page.getByRole("heading", { name: /^Signed in as |asks for access/ });
  await heading.waitFor();
  if (/asks for access/.test(await heading.innerText())) await decide(page, "allow");
  await page.getByRole("heading", { name: /^Signed in as / }).waitFor();
  const [, claims] = await decodedToken(page, "id_token");
  return { acr: claims.acr, amr: claims.amr };
}

async function typeCode(page, code) {
  await page.locator("input[name=code]").fill(code);
  await page.getByRole("button", { name: /^(Confirm|Add app)$/ }).click();
}

// What Chromium has instead of a finger: `options` as in WebAuthn.addVirtualAuthenticator.
async function authenticator(context, page, options = {}, autofill = false) {
  // It would answer the page's own question at once.
  if (!autofill) await page.addInitScript(() => (PublicKeyCredential.isConditionalMediationAvailable = async () => false));
  const session = await context.newCDPSession(page);
  await session.send("WebAuthn.enable", { enableUI: false });
  const usual = {
    protocol: "ctap2", ctap2Version: "ctap2_1", transport: "internal", hasResidentKey: true, hasUserVerification: true,
    isUserVerified: true, automaticPresenceSimulation: true,
  };
  const { authenticatorId } = await session.send("WebAuthn.addVirtualAuthenticator", { options: { ...usual, ...options } });
  return {
    send: (method, more = {}) => session.send(`WebAuthn.${method}`, { authenticatorId, ...more }),
    credentials: async () => (await session.send("WebAuthn.getCredentials", { authenticatorId })).credentials,
  };
}

async function addPasskey(page, name) {
  await page.goto(`${dev.provider}/account`);
  await page.getByRole("button", { name: "Add a passkey" }).click();
  if (name) await page.getByLabel("Name of this passkey").fill(name);
  await page.getByRole("button", { name: "Add a passkey" }).click();
}

async function keepCodes(page) {
  await page.getByRole("heading", { name: "Keep your recovery codes" }).waitFor();
  const codes = await page.locator("ul.codes code").allInnerTexts();
  assert.equal(codes.length, 10);
  await page.getByRole("button", { name: "I have kept them" }).click();
  return codes;
}

describe("second factors", { timeout: 300_000 }, () => {
  setScene();
  letSomebodyIn();

  beforeEach(() => operate(directory, ["user", "factors", "alice", "--remove-all"]));

  test("an app is added from its picture, asked for at every sign-in, lost, and replaced by a recovery code", async () => {
    const { page } = someone;
    await withPassword(page);
    assert.deepEqual(await signedIn(page), { acr: "1", amr: ["pwd"] });
    await page.goto(`${dev.provider}/account`);
    await looked(page, "account-without-factors");
    await page.getByRole("button", { name: "Add an app that shows codes" }).click();
    await looked(page, "new-app");
    const code = await phone(page);
    await typeCode(page, "000000");
    await page.getByRole("alert").waitFor();
    await typeCode(page, code());
    await looked(page, "recovery-codes");
    const codes = await keepCodes(page);
    await page.getByText("App that shows codes").first().waitFor();
    await looked(page, "account-with-an-app");
    // Who has an app is not offered to add one: a new one replaces it, as on a new phone.
    assert.equal(await page.getByRole("button", { name: "Add an app that shows codes" }).count(), 0);
    await page.getByRole("button", { name: "Replace the app that shows codes" }).waitFor();

    const other = await visitor(browser);
    await withPassword(other.page);
    await looked(other.page, "second-factor");
    await typeCode(other.page, code());
    assert.deepEqual(await signedIn(other.page), { acr: "2", amr: ["pwd", "otp", "mfa"] });
    await other.context.close();

    // The phone is lost: a recovery code signs in, and what was lost is removed.
    const third = await visitor(browser);
    await withPassword(third.page);
    await typeCode(third.page, codes[0]);
    assert.deepEqual(await signedIn(third.page), { acr: "2", amr: ["pwd", "otp", "mfa"] });
    await third.page.goto(`${dev.provider}/account`);
    await third.page.getByRole("button", { name: "Remove", exact: true }).click();
    await third.page.getByText("The second factor is removed").waitFor();
    await third.context.close();
    await page.context().clearCookies();
    await withPassword(page);
    assert.equal((await signedIn(page)).acr, "1");
  });

  test("whoever is invited by a link for a passkey makes one, and signs in without a password", async () => {
    const name = `invited-${process.pid}`;
    await operate(directory, ["user", "add", name, "--no-password"]);
    const invite = async () => (await operate(directory, ["user", "invite", name, "--passkey"])).trim();
    const scriptless = await visitor(browser, { javaScriptEnabled: false });
    await scriptless.page.goto(await invite());
    await scriptless.page.getByText("Passkeys need JavaScript").waitFor();
    assert.equal(await scriptless.page.getByText("cannot use passkeys").isVisible(), false);
    await screenshot(scriptless.page, "passkey-link-without-script");
    await scriptless.context.close();
    for (const [look, options] of [
      ["passkey-link-without-passkeys", {}],
      ["passkey-link-without-passkeys-320-dark", { viewport: { width: 320, height: 640 }, colorScheme: "dark", locale: "pl-PL" }],
    ]) {
      const keyless = await visitor(browser, options);
      await keyless.page.addInitScript(() => delete globalThis.PublicKeyCredential);
      await keyless.page.goto(await invite());
      await keyless.page.locator("[data-without-passkey]").waitFor();
      assert.deepEqual(await keyless.page.locator("main p:visible").count(), 2, "whom it is for, and what is missing");
      assert.equal(await keyless.page.locator("form:visible").count(), 0);
      await looked(keyless.page, look);
      await keyless.context.close();
    }
    for (const [look, options] of [
      ["passkey-link-320-dark", { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
      ["passkey-link-german", { locale: "de-DE" }],
    ]) {
      const other = await visitor(browser, options);
      await other.page.goto(await invite());
      await looked(other.page, look);
      await other.context.close();
    }

    const { page, context } = await visitor(browser);
    const device = await authenticator(context, page);
    await page.goto(await invite());
    for (const text of ["Passkeys need JavaScript", "cannot use passkeys"]) {
      assert.equal(await page.getByText(text).isVisible(), false, text);
    }
    await page.getByLabel("Name of this passkey").fill("Laptop");
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByText("Your passkey is set up. Sign in with it.").waitFor();
    assert.equal((await device.credentials()).length, 1);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByRole("heading", { name: "Your applications" }).waitFor();
    await page.goto(`${dev.provider}/account`);
    await page.getByText("Laptop").waitFor();
    await looked(page, "account-with-a-passkey-alone");
    await page.getByRole("button", { name: "Remove", exact: true }).click();
    await page.getByText("your last passkey was not removed").waitFor();
    await context.close();
  });

  test("pages about factors stand on a phone, in the dark, in German and Japanese, and without script", async () => {
    for (const [name, options] of [
      ["phone", { viewport: { width: 375, height: 740 } }],
      ["320-dark", { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
      ["german", { locale: "de-DE" }],
      ["japanese-320", { locale: "ja-JP", viewport: { width: 320, height: 640 } }],
    ]) {
      const { page, context, complaints } = await visitor(browser, options);
      await page.goto(`${dev.provider}/account`);
      await enterPassword(page, alice);
      await page.locator("button[value=add_app]").click();
      await looked(page, `new-app-${name}`);
      await context.close();
      assert.deepEqual(complaints, []);
    }
    const { page, context } = await visitor(browser, { javaScriptEnabled: false });
    await page.goto(`${dev.provider}/login`).catch(() => {});
    await page.goto(`${dev.provider}/account`);
    assert.equal(await page.getByRole("button", { name: "Use a passkey" }).isVisible(), false);
    await enterPassword(page, alice);
    assert.equal(await page.getByRole("button", { name: "Add a passkey" }).isVisible(), false);
    await page.locator("button[value=add_app]").click();
    const code = await phone(page);
    await typeCode(page, code());
    await keepCodes(page);
    await screenshot(page, "account-with-an-app-without-script");
    await context.close();
  });

  test("a passkey signs in by itself, and after the password", async () => {
    const { page, context } = someone;
    const keys = await authenticator(context, page);
    await withPassword(page);
    await signedIn(page);
    await addPasskey(page, "My laptop");
    const codes = await keepCodes(page);
    await page.getByText("My laptop").waitFor();
    await looked(page, "account-with-a-passkey");
    assert.equal((await keys.credentials()).length, 1);
    await context.clearCookies();

    await beginSignIn(page, dev.demo);
    await page.getByRole("button", { name: "Use a passkey" }).waitFor();
    await looked(page, "login-with-passkeys");
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.deepEqual(await signedIn(page), { acr: "phr", amr: ["hwk", "user", "mfa"] });
    await context.clearCookies();

    await withPassword(page);
    await page.getByRole("heading", { name: "Confirm that it is you" }).waitFor();
    await looked(page, "second-factor-passkey");
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.deepEqual(await signedIn(page), { acr: "phr", amr: ["pwd", "hwk", "user", "mfa"] });

    // A recovery code signs in and changes no factor; the page leads to a sign-in with the passkey.
    await context.clearCookies();
    await withPassword(page);
    await typeCode(page, codes[0]);
    assert.equal((await signedIn(page)).acr, "2");
    await page.goto(`${dev.provider}/account`);
    await page.getByText("only a sign-in with it can change your second factors").waitFor();
    assert.equal(await page.getByRole("button", { name: "Remove", exact: true }).count(), 0);
    await looked(page, "account-that-needs-its-passkey");
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.waitForURL(/\/login\?/);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByText("You have signed in again").waitFor();
    await page.getByRole("button", { name: "Remove", exact: true }).waitFor();

    // A counter that was set back: somebody has a copy.
    await context.clearCookies();
    const [credential] = await keys.credentials();
    await keys.send("removeCredential", { credentialId: credential.credentialId });
    await keys.send("addCredential", { credential: { ...credential, signCount: 0 } });
    await beginSignIn(page, dev.demo);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /was not accepted/);
    await keys.send("removeCredential", { credentialId: credential.credentialId });
    await keys.send("addCredential", { credential: { ...credential, signCount: 1000 } });
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.equal((await signedIn(page)).acr, "phr");
  });

  test("the browser is told which passkeys there are, by their owner's page alone and once, and of one that is nobody's", async () => {
    const { page, context } = someone;
    const keys = await authenticator(context, page);
    const told = [];
    await page.exposeFunction("tell", (name, what) => told.push([name, what]));
    await page.addInitScript(() => {
      for (const name of ["signalUnknownCredential", "signalAllAcceptedCredentials", "signalCurrentUserDetails"]) {
        const own = PublicKeyCredential[name];
        PublicKeyCredential[name] = async (what) => {
          await window.tell(name, what);
          return own?.call(PublicKeyCredential, what);
        };
      }
    });
    const until = async (number) => {
      for (let tries = 0; tries < 100 && told.length < number; tries += 1) await page.waitForTimeout(100);
      assert.equal(told.length, number, JSON.stringify(told));
      return told.splice(0);
    };
    await withPassword(page);
    await signedIn(page);
    await page.goto(`${dev.provider}/account`);
    await page.getByRole("button", { name: "Add a passkey" }).waitFor();
    await page.waitForTimeout(500);
    assert.deepEqual(told.splice(0).flatMap(([, what]) => what.allAcceptedCredentialIds), [], "there is none");
    await addPasskey(page, "My laptop");
    await keepCodes(page);
    await page.getByText("My laptop").waitFor();
    // Each page of hers that was shown before told that there is none.
    const withOne = () => told.filter(([, what]) => what.allAcceptedCredentialIds.length > 0);
    for (let tries = 0; tries < 100 && withOne().length < 2; tries += 1) await page.waitForTimeout(100);
    const [[all, accepted], [details]] = withOne();
    assert.equal(withOne().length, 2, JSON.stringify(told));
    told.splice(0);
    assert.deepEqual([all, details], ["signalAllAcceptedCredentials", "signalCurrentUserDetails"]);
    assert.equal(accepted.rpId, new URL(dev.provider).hostname);
    assert.equal(accepted.displayName, "Alice Liddell");
    const [credential] = await keys.credentials();
    const id = Buffer.from(credential.credentialId, "base64").toString("base64url");
    assert.deepEqual(accepted.allAcceptedCredentialIds, [id]);
    assert.equal(Buffer.from(credential.userHandle, "base64").toString("base64url"), accepted.userId);

    // From the back/forward cache it is not said again: the list may not be true any more.
    await page.evaluate(() => window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
    assert.equal(await page.locator("[data-signals]").count(), 0);
    await page.goto(dev.demo);
    await runSql(directory, "DELETE FROM authenticators WHERE kind = 'passkey'");
    await page.goBack();
    await page.getByRole("heading", { name: "Your account" }).waitFor();
    await page.waitForTimeout(500);
    assert.deepEqual(told.splice(0).flatMap(([, what]) => what.allAcceptedCredentialIds), [], "an old list");

    // Nobody has it now. The authenticator may have been told to forget it.
    if ((await keys.credentials()).length === 0) await keys.send("addCredential", { credential });
    await context.clearCookies();
    await beginSignIn(page, dev.demo);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByRole("alert").waitFor();
    assert.deepEqual(await until(1), [["signalUnknownCredential", { rpId: new URL(dev.provider).hostname, credentialId: id }]]);
  });

  test("an old sign-in is asked for anew, which says why, and goes on with the passkey", async () => {
    const { page, context } = someone;
    await authenticator(context, page);
    await page.goto(`${dev.provider}/account`);
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Your account" }).waitFor();
    await runSql(directory, "UPDATE sessions SET auth_time = auth_time - interval '301 seconds'");
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByText("So that nobody else can do this in your name, please sign in again first.").waitFor();
    await looked(page, "sign-in-again");
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Add a passkey" }).waitFor();
    await looked(page, "passkey-after-signing-in-again");
    await page.getByRole("button", { name: "Add a passkey" }).click();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as a text file" }).click();
    assert.equal((await saved).suggestedFilename(), "recovery-codes.txt");
    await keepCodes(page);
    await page.getByText("Passkey", { exact: true }).waitFor();
  });

  test("the browser offers a passkey where the user name is typed", async () => {
    const { page, context } = someone;
    await authenticator(context, page, {}, true);
    await withPassword(page);
    await signedIn(page);
    await addPasskey(page);
    await keepCodes(page);
    await context.clearCookies();
    await beginSignIn(page, dev.demo);
    assert.deepEqual(await signedIn(page), { acr: "phr", amr: ["hwk", "user", "mfa"] });
  });

  test("a browser that has passkeys, and nothing that came after them, makes one, by a link too, and signs in", async () => {
    const { page, context } = someone;
    // As Safari before 18.4 and Chrome before 129.
    await page.addInitScript(() => {
      for (const name of ["parseCreationOptionsFromJSON", "parseRequestOptionsFromJSON", "getClientCapabilities"]) {
        delete PublicKeyCredential[name];
      }
      delete PublicKeyCredential.prototype.toJSON;
    });
    const keys = await authenticator(context, page);
    await withPassword(page);
    await signedIn(page);
    await addPasskey(page, "Old tablet");
    await keepCodes(page);
    assert.equal(await page.evaluate(() => "parseRequestOptionsFromJSON" in PublicKeyCredential), false);
    await context.clearCookies();
    await withPassword(page);
    await page.getByRole("heading", { name: "Confirm that it is you" }).waitFor();
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.deepEqual(await signedIn(page), { acr: "phr", amr: ["pwd", "hwk", "user", "mfa"] });
    await context.clearCookies();
    await beginSignIn(page, dev.demo);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.deepEqual(await signedIn(page), { acr: "phr", amr: ["hwk", "user", "mfa"] });
    // It knows whose it is, and makes no second one.
    await addPasskey(page, "Again");
    await page.waitForTimeout(500);
    assert.equal((await keys.credentials()).length, 1);

    await context.clearCookies();
    const name = `tablet-${process.pid}`;
    await operate(directory, ["user", "add", name, "--no-password"]);
    await page.goto((await operate(directory, ["user", "invite", name, "--passkey"])).trim());
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByText("Your passkey is set up. Sign in with it.").waitFor();
    assert.equal((await keys.credentials()).length, 2);
  });

  test("who says no to the browser's question is offered passkeys again where the user name is typed", async () => {
    const { page, context } = someone;
    await authenticator(context, page, {}, true);
    // The first offer waits until it is withdrawn, and the question is answered with no.
    await page.addInitScript(() => {
      const get = navigator.credentials.get.bind(navigator.credentials);
      globalThis.asked = [];
      navigator.credentials.get = (options) => {
        asked.push(options.mediation ?? "question");
        if (!options.mediation) return Promise.reject(new DOMException("no", "NotAllowedError"));
        if (asked.length > 1) return get(options);
        return new Promise((_, refuse) => options.signal.addEventListener("abort", () => refuse(options.signal.reason)));
      };
    });
    await withPassword(page);
    await signedIn(page);
    await addPasskey(page);
    await keepCodes(page);
    await context.clearCookies();
    await beginSignIn(page, dev.demo);
    await page.waitForFunction(() => asked.length === 1);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.deepEqual(await signedIn(page), { acr: "phr", amr: ["hwk", "user", "mfa"] });
  });

  test("each of the three algorithms signs in", async () => {
    for (const alg of [-8, -7, -257]) {
      await operate(directory, ["user", "factors", "alice", "--remove-all"]);
      const { page, context } = await visitor(browser);
      await authenticator(context, page);
      // As a browser whose authenticator knows this one alone.
      await page.addInitScript((only) => {
        const create = navigator.credentials.create.bind(navigator.credentials);
        navigator.credentials.create = ({ publicKey, signal }) =>
          create({ publicKey: { ...publicKey, pubKeyCredParams: publicKey.pubKeyCredParams.filter(({ alg }) => alg === only) }, signal });
      }, alg);
      await withPassword(page);
      await signedIn(page);
      await addPasskey(page, `Key ${alg}`);
      await keepCodes(page);
      await context.clearCookies();
      await beginSignIn(page, dev.demo);
      await page.getByRole("button", { name: "Use a passkey" }).click();
      assert.equal((await signedIn(page)).acr, "phr", `${alg}`);
      await context.close();
    }
  });

  test("a passkey that a password manager puts in the browser's place signs in", async () => {
    const { page, context } = someone;
    await authenticator(context, page);
    // As their extensions do: an object that says to be a credential, on which the browser's own methods fail.
    await page.addInitScript(() => {
      for (const method of ["create", "get"]) {
        const own = navigator.credentials[method].bind(navigator.credentials);
        navigator.credentials[method] = async (options) => {
          const { id, rawId, type, response } = await own(options);
          const names = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
          const copy = Object.fromEntries(names.filter((name) => name in response).map((name) => [name, response[name]]));
          const properties = Object.getOwnPropertyDescriptors({ id, rawId, type, response: copy });
          return Object.create(PublicKeyCredential.prototype, properties);
        };
      }
    });
    await withPassword(page);
    await signedIn(page);
    await addPasskey(page, "Vault");
    await keepCodes(page);
    await context.clearCookies();
    await beginSignIn(page, dev.demo);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.equal((await signedIn(page)).acr, "phr");
  });

  test("a device that checks nobody is refused, and one that is not known", async () => {
    const { page, context } = someone;
    const keys = await authenticator(context, page, { isUserVerified: false });
    await withPassword(page);
    await signedIn(page);
    await addPasskey(page, "Nobody");
    await page.waitForTimeout(500);
    assert.equal((await keys.credentials()).length, 0, "the browser refuses");
    await keys.send("setUserVerified", { isUserVerified: true });
    await addPasskey(page, "Somebody");
    await keepCodes(page);
    // Removed here, kept there.
    await operate(directory, ["user", "factors", "alice", "--remove-all"]);
    await context.clearCookies();
    await beginSignIn(page, dev.demo);
    await page.getByRole("button", { name: "Use a passkey" }).click();
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /was not accepted/);
  });

  test("two tabs sign in with one passkey, each for its own request", async () => {
    const { page, context } = someone;
    const keys = await authenticator(context, page);
    await withPassword(page);
    await signedIn(page);
    await addPasskey(page, "Two tabs");
    await keepCodes(page);
    await context.clearCookies();
    const second = await context.newPage();
    // Each tab of Chromium has virtual authenticators of its own.
    const keysOfSecond = await authenticator(context, second);
    const [credential] = await keys.credentials();
    await keysOfSecond.send("addCredential", { credential: { ...credential, signCount: 1_000 } });
    await beginSignIn(page, dev.demo);
    await beginSignIn(second, dev.demo);
    await page.bringToFront();
    await page.getByRole("button", { name: "Use a passkey" }).click();
    assert.equal((await signedIn(page)).acr, "phr");
    // The page was drawn for a browser without a session: its question counts no more, and it goes on as it would loaded
    // again.
    await second.bringToFront();
    await second.getByRole("button", { name: "Use a passkey" }).click();
    assert.equal((await signedIn(second)).acr, "phr");
    await second.close();
  });

  // The last of this file: it changes a password.
  test("who lost phone and codes comes back by a link of the operator's", async () => {
    const { page } = someone;
    await withPassword(page);
    await signedIn(page);
    await page.goto(`${dev.provider}/account`);
    await page.getByRole("button", { name: "Add an app that shows codes" }).click();
    const lost = await phone(page);
    await typeCode(page, lost());
    await keepCodes(page);
    const link = (await operate(directory, ["user", "reset", "alice", "--enrol"])).trim();
    const other = await visitor(browser);
    await other.page.goto(link);
    await looked(other.page, "link-with-an-app");
    assert.equal(await other.page.evaluate(() => document.activeElement.id), "new-password");
    const code = await phone(other.page);
    const password = "through another looking-glass";
    await other.page.getByLabel("New password", { exact: true }).fill(password);
    await other.page.getByLabel("New password once more").fill(password);
    await other.page.getByLabel("Code that the app shows now").fill(code());
    await other.page.getByRole("button", { name: "Set password" }).click();
    assert.equal((await other.page.locator("ul.codes code").allInnerTexts()).length, 10);
    await looked(other.page, "recovery-codes-by-link");
    const saved = other.page.waitForEvent("download");
    await other.page.getByRole("button", { name: "Save as a text file" }).click();
    assert.equal((await saved).suggestedFilename(), "recovery-codes.txt");
    await other.page.getByRole("link", { name: "I have kept them" }).click();
    await other.page.getByText("Your password is set. Sign in with it.").waitFor();
    // The text stands above the form, which may still be on its way.
    await other.page.waitForLoadState();
    const ways = await other.page.getByRole("button").allInnerTexts();
    assert.deepEqual(ways, ["Sign in", "Use a passkey", "Cancel"]);
    await enterPassword(other.page, { ...alice, password });
    await typeCode(other.page, code());
    await other.page.getByRole("heading", { name: "Your applications" }).waitFor();
    await other.context.close();
  });
});
