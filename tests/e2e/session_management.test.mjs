// A client watches the sign-in through the check-session frame (OpenID Connect Session Management 1.0), on its own site
// and from another: two ports of localhost are one site, 127.0.0.1 and localhost are two.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import { alice, bob, enterPassword, launch, signIn, visitor, visitorWithThirdPartyCookies } from "./browser.mjs";
import { newProject, removeProject, startDev } from "./gatepost.mjs";
import { answer, authorization } from "./relying_party.mjs";

describe("the check-session frame", { timeout: 120_000 }, () => {
  let dev, directory, someone;

  before(async () => {
    directory = await newProject();
    dev = await startDev(directory);
    // The demo's own policy lets its pages frame nothing; here they stand for a client that does.
    someone = await visitorWithThirdPartyCookies(join(directory, "profile"), { bypassCSP: true });
    await signIn(someone.page, dev.demo);
  });

  after(async () => {
    assert.deepEqual(someone?.complaints, []);
    await someone?.context.close();
    await dev?.stop();
    await removeProject(directory);
  });

  // A page of that origin that frames ours, once or more.
  async function framing(origin, ...names) {
    return framingIn(someone.context, origin, ...names);
  }

  async function framingIn(context, origin, ...names) {
    const page = await context.newPage();
    await page.goto(origin);
    await page.evaluate(
      async ([provider, all]) => {
        for (const name of all) {
          const frame = Object.assign(document.createElement("iframe"), { name, src: `${provider}/connect/checksession` });
          const loaded = new Promise((done) => frame.addEventListener("load", done));
          document.body.append(frame);
          await loaded;
        }
      },
      [dev.provider, names],
    );
    return page;
  }

  // Asks the frame `op` beside or below; what it says, or "silence" after so many milliseconds.
  function ask(asking, message, patience = 10_000) {
    return asking.evaluate(
      ([said, provider, patience]) =>
        new Promise((done) => {
          addEventListener("message", (event) => event.origin === provider && done(event.data), { once: true });
          setTimeout(done, patience, "silence");
          window.top.frames.op.postMessage(said, provider);
        }),
      [message, dev.provider, patience],
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
    const page = await framing(dev.demo, "op");
    const state = await sessionState();
    assert.equal(await ask(page, `demo ${state}`), "unchanged");
    assert.equal(await ask(page, `other ${state}`), "changed");
    assert.equal(await ask(page, `demo ${state}x`), "changed");
    for (const nothing of ["", "demo", "demo ", `demo ${state} `, `demo${state}`, "demo x.y", 5, null, { a: 1 }]) {
      assert.equal(await ask(page, nothing), "error", JSON.stringify(nothing));
    }
  });

  test("the hash is right for texts of every length and script", async () => {
    const page = await framing(dev.demo, "op");
    for (const length of [1, 2, 3, 20, 21, 22, 23, 24, 85, 200]) {
      const salt = "s".repeat(length);
      assert.equal(await ask(page, `demo ${await expected("demo", dev.demo, salt)}`), "unchanged", `${length}`);
    }
    const foreign = "müller söhne 日本 😀";
    assert.equal(await ask(page, `${foreign} ${await expected(foreign, dev.demo, "salt")}`), "unchanged");
  });

  test("a client on another site is told the same, for its own origin alone", async () => {
    const elsewhere = dev.demo.replace("localhost", "127.0.0.1");
    const page = await framing(elsewhere, "op");
    assert.equal(await ask(page, `demo ${await expected("demo", elsewhere, "salt")}`), "unchanged");
    assert.equal(await ask(page, `demo ${await sessionState()}`), "changed");
  });

  test("where the browser keeps cookies from frames of other sites the answer is error, never changed", async () => {
    const browser = await launch();
    const { context, page } = await visitor(browser, { bypassCSP: true });
    await signIn(page, dev.demo, bob);
    const framed = await framingIn(context, dev.demo.replace("localhost", "127.0.0.1"), "op");
    assert.equal(await ask(framed, `demo ${await expected("demo", dev.demo, "salt")}`), "error");
    await browser.close();
  });

  test("a page that only found the frame, and did not make it, is not answered", async () => {
    const page = await framing(dev.demo.replace("localhost", "127.0.0.1"), "op", "guest");
    assert.equal(await ask(page.frame("guest"), `demo ${await sessionState()}`, 1_500), "silence");
  });

  // From here on the sign-in changes.

  test("changed after signing in anew and after signing out; error without a cookie to compare", async () => {
    const page = await framing(dev.demo, "op");
    const before = await sessionState();
    const person = someone.page;
    await person.goto(authorization(dev, { prompt: "login" }).url);
    await enterPassword(person, alice);
    const state = (await answer(person, dev)).parameters.get("session_state");
    assert.equal(await ask(page, `demo ${before}`), "changed");
    assert.equal(await ask(page, `demo ${state}`), "unchanged");

    await person.goto(`${dev.provider}/logout`);
    await person.locator("button[value=sign_out]").click();
    assert.equal(await ask(page, `demo ${state}`), "changed");

    await someone.context.clearCookies();
    assert.equal(await ask(page, `demo ${state}`), "error");
  });
});
