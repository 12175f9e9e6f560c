// A client watches the sign-in through the check-session frame (OpenID Connect Session Management 1.0), on its own site
// and from another: two ports of localhost are one site, 127.0.0.1 and localhost are two.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { alice, enterPassword, launch, signIn, visitor } from "./browser.mjs";
import { newProject, removeProject, startDev } from "./gatepost.mjs";
import { answer, authorization } from "./relying_party.mjs";

describe("the check-session frame", { timeout: 120_000 }, () => {
  let dev, browser, directory, someone;

  before(async () => {
    directory = await newProject();
    browser = await launch();
    dev = await startDev(directory);
    someone = await visitor(browser);
    await signIn(someone.page, dev.demo);
  });

  after(async () => {
    assert.deepEqual(someone?.complaints, []);
    await browser?.close();
    await dev?.stop();
    await removeProject(directory);
  });

  // A page of the client at that origin with the frame in it; asks the frame what it says to a message.
  async function watcher(origin, framedBy = (url) => `<iframe name="op" src="${url}"></iframe>`) {
    const page = await someone.context.newPage();
    await page.route(`${origin}/watch`, (route) =>
      route.fulfill({ contentType: "text/html", body: framedBy(`${dev.provider}/connect/checksession`) }),
    );
    await page.goto(`${origin}/watch`);
    await page.frameLocator("iframe[name=op]").locator("script").waitFor({ state: "attached" });
    return (message) =>
      page.evaluate(
        ([said, provider]) =>
          new Promise((done) => {
            addEventListener("message", (event) => event.origin === provider && done(event.data), { once: true });
            setTimeout(done, 2_000, "silence");
            frames.op.postMessage(said, provider);
          }),
        [message, dev.provider],
      );
  }

  async function sessionState() {
    const page = await someone.context.newPage();
    await page.goto(authorization(dev, { prompt: "none" }).url);
    const { parameters } = await answer(page, dev);
    await page.close();
    return parameters.get("session_state");
  }

  async function browserState() {
    const cookies = await someone.context.cookies(dev.provider);
    return cookies.find((cookie) => cookie.name.startsWith("gatepost-state-")).value;
  }

  // As the provider computes it.
  async function expected(clientId, origin, salt) {
    const parts = [clientId, origin, await browserState(), salt];
    return `${createHash("sha256").update(parts.join(" ")).digest("hex")}.${salt}`;
  }

  test("unchanged while nothing changes, error for what is no question", async () => {
    const ask = await watcher(dev.demo);
    const state = await sessionState();
    assert.equal(await ask(`demo ${state}`), "unchanged");
    assert.equal(await ask(`other ${state}`), "changed");
    assert.equal(await ask(`demo ${state}x`), "changed");
    for (const nothing of ["", "demo", "demo ", `demo ${state} `, `demo${state}`, "demo x.y", 5, null, { a: 1 }]) {
      assert.equal(await ask(nothing), "error", JSON.stringify(nothing));
    }
  });

  test("the hash is right for texts of every length and script", async () => {
    const ask = await watcher(dev.demo);
    for (const length of [1, 2, 3, 20, 21, 22, 23, 24, 85, 200]) {
      const salt = "s".repeat(length);
      assert.equal(await ask(`demo ${await expected("demo", dev.demo, salt)}`), "unchanged", `${length}`);
    }
    const foreign = "müller söhne 日本 😀";
    assert.equal(await ask(`${foreign} ${await expected(foreign, dev.demo, "salt")}`), "unchanged");
  });

  test("a client on another site is told the same, for its own origin alone", async () => {
    const elsewhere = dev.demo.replace("localhost", "127.0.0.1");
    const ask = await watcher(elsewhere);
    assert.equal(await ask(`demo ${await expected("demo", elsewhere, "salt")}`), "unchanged");
    assert.equal(await ask(`demo ${await sessionState()}`), "changed");
  });

  test("a page that only found the frame, and did not make it, is not answered", async () => {
    const outer = dev.demo.replace("localhost", "127.0.0.1");
    const page = await someone.context.newPage();
    const html = (body) => ({ contentType: "text/html", body });
    await page.route(`${outer}/watch`, (route) =>
      route.fulfill(html(`<iframe name="op" src="${dev.provider}/connect/checksession"></iframe>
        <iframe name="guest" src="${dev.demo}/guest"></iframe>`)),
    );
    await page.route(`${dev.demo}/guest`, (route) => route.fulfill(html("<p>guest</p>")));
    await page.goto(`${outer}/watch`);
    await page.frameLocator("iframe[name=op]").locator("script").waitFor({ state: "attached" });
    const guest = page.frame("guest");
    const heard = await guest.evaluate(
      ([said, provider]) =>
        new Promise((done) => {
          addEventListener("message", (event) => event.origin === provider && done(event.data), { once: true });
          setTimeout(done, 1_000, "silence");
          parent.frames.op.postMessage(said, provider);
        }),
      [`demo ${await sessionState()}`, dev.provider],
    );
    assert.equal(heard, "silence");
  });

  // From here on the sign-in changes.

  test("changed after signing in anew and after signing out; error without a cookie to compare", async () => {
    const ask = await watcher(dev.demo);
    const before = await sessionState();
    const { page } = someone;
    await page.goto(authorization(dev, { prompt: "login" }).url);
    await enterPassword(page, alice);
    const state = (await answer(page, dev)).parameters.get("session_state");
    assert.equal(await ask(`demo ${before}`), "changed");
    assert.equal(await ask(`demo ${state}`), "unchanged");

    await page.goto(`${dev.provider}/logout`);
    await page.locator("button[value=sign_out]").click();
    assert.equal(await ask(`demo ${state}`), "changed");

    await someone.context.clearCookies();
    assert.equal(await ask(`demo ${state}`), "error");
  });
});
