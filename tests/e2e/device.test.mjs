// A device and its person: openid-client is the device, a real Chromium is the person's.

import assert from "node:assert/strict";
import { webcrypto } from "node:crypto";
import { afterEach, beforeEach, describe, test } from "node:test";
import { alice, decide, enterPassword, looked, visitor } from "./browser.mjs";
import { browser, dev, setScene } from "./scene.mjs";

// Node 18, Debian 12's, has them, but not as globals.
globalThis.crypto ??= webcrypto;
globalThis.CryptoKey ??= webcrypto.CryptoKey;
const library = await import("openid-client");

const telephone = { viewport: { width: 360, height: 740 } };

describe("a device", { timeout: 300_000 }, () => {
  let configuration, someone;

  setScene({
    prepare: async () => {
      const options = { execute: [library.allowInsecureRequests] };
      configuration = await library.discovery(new URL(dev.provider), "demo-device", undefined, library.None(), options);
    },
  });

  beforeEach(() => {
    someone = undefined;
  });

  afterEach(async () => {
    assert.deepEqual(someone?.complaints, []);
    await someone?.context.close();
  });

  // Begins to wait as the library does, in the background.
  async function wait(scope) {
    const shown = await library.initiateDeviceAuthorization(configuration, { scope });
    const tokens = library.pollDeviceAuthorizationGrant(configuration, shown);
    tokens.catch(() => {});
    return { shown, tokens };
  }

  test("is let in by a person who types its code on a telephone", async () => {
    someone = await visitor(browser, telephone);
    const { page } = someone;
    const { shown, tokens } = await wait("openid profile offline_access");
    await page.goto(shown.verification_uri);
    await looked(page, "device-code");
    await page.getByLabel("Code").fill("bcdf ghjk");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("No device is waiting with this code").waitFor();
    await looked(page, "device-code-wrong");
    await page.getByLabel("Code").fill(shown.user_code.toLowerCase().replace("-", " "));
    await page.getByRole("button", { name: "Continue" }).click();
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: "Demo device asks for access on a device" }).waitFor();
    assert.ok(await page.getByText(shown.user_code).isVisible());
    assert.ok(await page.getByText("If somebody sent you the code").isVisible());
    await looked(page, "device-decision");
    await decide(page, "allow");
    await page.getByRole("heading", { name: "Your device is connected" }).waitFor();
    await looked(page, "device-connected");
    const { access_token, refresh_token } = await tokens;
    assert.ok(refresh_token);
    const info = await library.fetchUserInfo(configuration, access_token, library.skipSubjectCheck);
    assert.equal(info.name, "Alice Liddell");
  });

  test("is turned away by a person who followed its link, in German, and going back changes nothing", async () => {
    someone = await visitor(browser, { locale: "de-DE", colorScheme: "dark" });
    const { page } = someone;
    const { shown, tokens } = await wait("openid orders.read");
    await page.goto(shown.verification_uri_complete);
    await page.getByRole("heading", { name: "Gerät verbinden" }).waitFor();
    assert.equal(await page.getByLabel("Code").inputValue(), shown.user_code);
    await looked(page, "device-link-german");
    await page.getByRole("button", { name: "Weiter" }).click();
    await page.getByLabel("Benutzername").fill(alice.username);
    await page.getByLabel("Passwort", { exact: true }).fill(alice.password);
    await page.getByRole("button", { name: "Anmelden" }).click();
    await page.getByRole("heading", { name: "Demo device bittet auf einem Gerät um Zugriff" }).waitFor();
    await looked(page, "device-decision-german");
    await decide(page, "deny");
    await page.getByRole("heading", { name: "Ihr Gerät wurde nicht verbunden" }).waitFor();
    await looked(page, "device-denied-german");
    await assert.rejects(tokens, { error: "access_denied" });
    // Once more with the same code: it is used up.
    await page.goto(shown.verification_uri_complete);
    await page.getByRole("button", { name: "Weiter" }).click();
    await page.getByRole("alert").getByText("wartet kein Gerät").waitFor();
  });
});
