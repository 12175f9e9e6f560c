// Every page as it is drawn, without JavaScript: nothing that axe calls serious, nothing wider than the screen, and a
// picture of each to look at, in `screenshots/`. Once in English as it comes, once in German under somebody's brand.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import axe from "axe-core";
import { alice, beginSignIn, bob, decide, enterPassword, screenshot, visitor } from "./browser.mjs";
import { authorization } from "./relying_party.mjs";
import { browser, dev, directory, setScene, startAnew } from "./scene.mjs";

const looks = [];
for (const colorScheme of ["light", "dark"]) {
  for (const width of [360, 1280]) looks.push({ colorScheme, width });
}

// Unreadable as they are: the one on white, the other on black.
const yellow = "#ffe600";
const navy = "#00004d";
const logoColor = [200, 30, 90];
const logo = `<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40"><rect width="120" height="40" fill="rgb(${logoColor})"/></svg>`;

describe("every page", { timeout: 400_000 }, () => {
  setScene();

  test("in English", (walk) =>
    walked(walk, "en-GB", async (page, step) => {
      await step("demo-welcome", () => page.goto(dev.demo));
      await step("demo-choices", () => page.getByText("Other ways to sign in").click());
      await step("login", () => beginSignIn(page, dev.demo));
      await step("login-error", () => enterPassword(page, { ...alice, password: "wrong" }));
      await step("consent", async () => {
        await beginSignIn(page, dev.demo);
        await enterPassword(page, alice);
        await page.locator("button[name=decision][value=allow]").waitFor();
      });
      await step("demo-denied", async () => {
        await decide(page, "deny");
        await page.getByRole("heading", { name: /access_denied/ }).waitFor();
      });
      await step("demo-signed-in", async () => {
        await beginSignIn(page, dev.demo);
        await decide(page, "allow");
        await page.getByRole("heading", { name: /^Signed in as / }).waitFor();
      });
      await sharedSteps(page, step, alice);
    }));

  test("in German, with a brand of its own", async (walk) => {
    await brand({ color: yellow });
    await walked(walk, "de-DE", async (page, step) => {
      await step("login-german", () => page.goto(authorization(dev).url));
      await step("login-error-german", () => enterPassword(page, { ...bob, password: "wrong" }));
      await step("consent-german", async () => {
        await page.goto(`${dev.demo}/sign-in`);
        await enterPassword(page, bob);
        await page.locator("button[name=decision][value=allow]").waitFor();
      });
      await decide(page, "allow");
      await page.getByRole("heading", { name: /^Signed in as / }).waitFor();
      await sharedSteps(page, step, bob, "-german");
    });
    await branded(yellow);
  });

  test("with a colour that is too dark for the dark", async () => {
    await brand({ color: navy });
    await branded(navy);
  });

  test("fits a telephone in every language", async () => {
    const { page, context } = await visitor(browser, { javaScriptEnabled: false });
    await page.setViewportSize({ width: 320, height: 800 });
    const supported = await (await fetch(`${dev.provider}/.well-known/openid-configuration`)).json();
    assert.equal(supported.ui_locales_supported.length, 10);
    for (const language of supported.ui_locales_supported) {
      for (const address of [authorization(dev, { ui_locales: language }).url, `${dev.provider}/logout?ui_locales=${language}`]) {
        await page.goto(address);
        assert.equal(await page.locator("html").getAttribute("lang"), language);
        assert.ok((await overflow(page)) <= 0, `${address} is wider than a telephone`);
      }
    }
    await context.close();
  });

  test("breaks no Japanese word on the account page of a telephone", async () => {
    const { page, context } = await visitor(browser, { javaScriptEnabled: false });
    await page.goto(`${dev.provider}/account?ui_locales=ja`);
    await enterPassword(page, alice);
    await page.locator(".items time").first().waitFor();
    for (const width of [320, 360, 400]) {
      await page.setViewportSize({ width, height: 800 });
      const labels = await page.locator(".items p:has(time)").evaluateAll((lines) => lines.map((line) => {
        const words = document.createRange();
        words.selectNodeContents(line.firstChild);
        return [line.firstChild.textContent, words.getClientRects().length];
      }));
      assert.ok(labels.some(([words]) => words === "ログイン日時："), JSON.stringify(labels));
      assert.ok(labels.every(([, lines]) => lines === 1), `${width}: ${JSON.stringify(labels)}`);
      assert.ok((await overflow(page)) <= 0, `${width}`);
    }
    await context.close();
  });

  test("stands in two columns where there is room, security first, and two lines for a sign-in", async () => {
    const { page, context } = await visitor(browser, { javaScriptEnabled: false });
    await page.goto(`${dev.provider}/account`);
    await enterPassword(page, bob);
    const heading = (name) => page.getByRole("heading", { name }).boundingBox();
    for (const [width, beside] of [[1280, true], [900, false], [360, false]]) {
      await page.setViewportSize({ width, height: 900 });
      const [security, signIns] = [await heading("Second factors"), await heading("Where you are signed in")];
      assert.equal(signIns.x > security.x + 300, beside, `${width}`);
      assert.ok(signIns.y >= security.y, `${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    const signIn = page.locator(".sign-ins li").first();
    assert.ok((await signIn.locator("summary").boundingBox()).height < 60);
    await signIn.getByText("With a password").waitFor({ state: "hidden" });
    await signIn.locator("summary").click();
    await signIn.getByText("With a password").waitFor();
    assert.match(await page.locator("time").first().textContent(), /^\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d UTC$/);
    await context.close();
  });

  test("shows the times of the account page as the reader's own clock does, with its zone", async () => {
    for (const [locale, timeZone, shape] of [
      ["de-DE", "Asia/Tokyo", /^\d{1,2}\. \S+ \d{4}, \d\d:\d\d GMT\+9$/],
      ["en-GB", "Europe/London", /^\d{1,2} [A-Z][a-z]+ \d{4}, \d\d:\d\d (GMT|BST)$/],
    ]) {
      const { page, context, complaints } = await visitor(browser, { locale, timezoneId: timeZone });
      await page.goto(`${dev.provider}/account`);
      await enterPassword(page, alice);
      const shown = page.locator(".items time").first();
      const utc = await shown.getAttribute("datetime");
      const parts = { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };
      const format = new Intl.DateTimeFormat(locale, { ...parts, timeZoneName: "short", timeZone });
      // The script runs once the page has been read, which may be after the element is there.
      await page.waitForFunction(() => !document.querySelector(".items time").textContent.endsWith("UTC"));
      assert.equal(await shown.textContent(), format.format(new Date(utc)));
      assert.match(await shown.textContent(), shape);
      const told = await page.locator(".items li").first().textContent();
      assert.match(told, /Chrome · Linux|Chromium · Linux/);
      assert.deepEqual(complaints, []);
      await context.close();
    }
  });

  // The pages that look the same to everybody who is signed in.
  async function sharedSteps(page, step, person, suffix = "") {
    await step(`account${suffix}`, async () => {
      // In another browser as well, so that there is a sign-in to end.
      const other = await visitor(browser);
      await other.page.goto(`${dev.provider}/account`);
      await enterPassword(other.page, person);
      await other.page.getByRole("heading", { name: "Your account" }).waitFor();
      await other.context.close();
      await page.goto(`${dev.provider}/account`);
      for (const decision of ["end_session", "end_others", "withdraw"]) {
        assert.equal(await page.locator(`button[value=${decision}]`).count(), 1, decision);
      }
    });
    await step(`account-error${suffix}`, async () => {
      await page.locator("#password").click();
      await page.locator("input[name=present_password]").fill("wrong");
      await page.locator("input[name=new_password]").fill("a long enough passphrase");
      await page.locator("input[name=new_password_again]").fill("a long enough passphrase");
      await decide(page, "change_password");
      await page.getByRole("alert").waitFor();
    });
    await step(`account-name${suffix}`, async () => {
      await page.locator("summary:has(+ form [name=new_name])").click();
      await page.locator("input[name=new_name]").fill(" ");
      await decide(page, "change_name");
      await page.getByRole("alert").waitFor();
    });
    await step(`chooser${suffix}`, () => page.goto(authorization(dev, { prompt: "select_account" }).url));
    await step(`closed${suffix}`, async () => {
      await page.goto(authorization(dev, { client_id: "demo-audit" }).url);
      assert.deepEqual(await page.locator("button[name=decision]").evaluateAll((all) => all.map(({ value }) => value)), ["another", "cancel"]);
    });
    await step(`form-post${suffix}`, async () => {
      await page.goto(authorization(dev, { response_mode: "form_post" }).url);
      await page.locator("form[action$='/callback'] button").waitFor();
    });
    await step(`error${suffix}`, () => page.goto(`${dev.provider}/login?r=broken`));
    await step(`error-for-developers${suffix}`, () => page.goto(authorization(dev, { redirect_uri: "https://x.example/" }).url));
    await step(`not-found${suffix}`, () => page.goto(`${dev.provider}/nothing-here`));
    await step(`home${suffix}`, () => page.goto(`${dev.provider}/`));
    await step(`logout${suffix}`, () => page.goto(`${dev.provider}/logout`));
    await step(`signed-out${suffix}`, async () => {
      await decide(page, "sign_out");
      await page.locator("button[name=decision]").waitFor({ state: "detached" });
    });
  }

  // One walk: each page stands on the steps before it.
  async function walked(walk, locale, steps) {
    const { page, context, complaints } = await visitor(browser, { locale });
    const devtools = await context.newCDPSession(page);
    const scripts = (on) => devtools.send("Emulation.setScriptExecutionDisabled", { value: !on });
    await steps(page, (name, reach) =>
      walk.test(name, async () => {
        await scripts(false);
        await reach();
        // The page is there, and its scripts are not; axe is one, too.
        await scripts(true);
        await looked(page, name, locale.slice(0, 2));
      }),
    );
    await context.close();
    assert.deepEqual(complaints, []);
  }

  async function looked(page, name, language) {
    // The demo application speaks English.
    if (page.url().startsWith(dev.provider)) assert.equal(await page.locator("html").getAttribute("lang"), language);
    for (const { colorScheme, width } of looks) {
      // No transitions: a colour on its way is nobody's choice.
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.setViewportSize({ width, height: 800 });
      // The form_post page shows itself only after a second.
      await page.getByRole("heading", { level: 1 }).waitFor();
      await screenshot(page, `${name}-${colorScheme}-${width}`);
      assert.deepEqual(await findings(page), [], `${name}, ${colorScheme}, ${width} px`);
      assert.ok((await overflow(page)) <= 0, `${name} is wider than ${width} px`);
    }
  }

  async function findings(page) {
    // Pages that run no scripts of their own still run what is handed to the browser from outside.
    await page.evaluate(axe.source);
    const result = await page.evaluate(() => window.axe.run(document));
    assert.ok(result.passes.length > 5, "axe looked at nothing");
    return result.violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
  }

  function overflow(page) {
    return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }

  // Starts the same provider anew under a brand.
  async function brand({ color }) {
    const port = ["--listen", new URL(dev.provider).port];
    await writeFile(join(directory, "logo.svg"), logo);
    await startAnew(port, {
      GATEPOST_BRAND_NAME: "Acme & Söhne",
      GATEPOST_BRAND_LOGO: join(directory, "logo.svg"),
      GATEPOST_BRAND_COLOR: color,
      GATEPOST_REMEMBER_SESSION_LIFETIME: "2592000",
      GATEPOST_BRAND_PRIVACY_URL: "https://acme.example/privacy",
      GATEPOST_BRAND_TERMS_URL: "https://acme.example/terms",
    });
  }

  // What the settings say is what stands on the screen, and can be read.
  async function branded(color) {
    const { page, context, complaints } = await visitor(browser, { javaScriptEnabled: false });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.goto(authorization(dev).url);
      assert.match(await page.title(), / – Acme & Söhne$/);
      const links = await page.locator("footer a").evaluateAll((all) => all.map(({ href }) => href));
      assert.deepEqual(links, ["https://acme.example/privacy", "https://acme.example/terms"]);
      const image = page.getByRole("img", { name: "Acme & Söhne" });
      assert.equal(await image.evaluate(({ complete, naturalWidth }) => complete && naturalWidth), 120);
      assert.ok((await share(await image.screenshot(), logoColor)) > 0.6, "the logo is not on the screen");
      const button = page.locator("button.primary");
      assert.ok((await share(await button.screenshot(), channels(color))) > 0.5, `the button is not ${color}, ${colorScheme}`);
      for (const readable of [button, page.locator("button[value=cancel]"), page.locator("main a").first()]) {
        const [ink, ground] = await readable.evaluate(colors);
        assert.ok(contrast(ink, ground) >= 4.5, `${ink} on ${ground} under ${color}, ${colorScheme}`);
      }
      await screenshot(page, `brand-${color.slice(1)}-${colorScheme}`);
    }
    await context.close();
    assert.deepEqual(complaints, []);
  }

  // Which part of a picture has a colour, give or take what smoothing does.
  async function share(png, color) {
    const { page, context } = await visitor(browser);
    const part = await page.evaluate(
      async ({ base64, color }) => {
        const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
        const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
        canvas.drawImage(bitmap, 0, 0);
        const { data } = canvas.getImageData(0, 0, bitmap.width, bitmap.height);
        let same = 0;
        for (let at = 0; at < data.length; at += 4) {
          if (color.every((channel, index) => Math.abs(data[at + index] - channel) <= 3)) same += 1;
        }
        return same / (data.length / 4);
      },
      { base64: png.toString("base64"), color },
    );
    await context.close();
    return part;
  }
});

// Runs in the page: the colour of an element's text, and of the nearest ground under it.
function colors(element) {
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  let ground = element;
  while (rgb(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
  return [rgb(getComputedStyle(element).color), rgb(getComputedStyle(ground).backgroundColor)];
}

function channels(color) {
  return [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16));
}

// WCAG 2.2.
function contrast(one, other) {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

function luminance(color) {
  const [red, green, blue] = color.slice(0, 3).map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}
