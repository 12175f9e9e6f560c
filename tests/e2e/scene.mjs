// Where most scenarios play: one `gatepost-dev` and one browser for a file, and somebody with a page of their own for each
// test. The names are those of the scene at hand; they are set once its hooks have run.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach } from "node:test";
import { launch, visitor } from "./browser.mjs";
import { newProject, removeProject, startDev } from "./gatepost.mjs";

export let directory, browser, dev, someone;

// Hooks of a `describe`. `prepare` runs once everything stands, `clear` when it ends.
export function setScene({ prepare, clear } = {}) {
  before(async () => {
    directory = await newProject();
    browser = await launch();
    dev = await startDev(directory);
    await prepare?.();
  });

  after(async () => {
    await browser?.close();
    const code = await dev?.stop();
    await clear?.();
    await removeProject(directory);
    assert.equal(code, 0, dev?.output);
  });
}

// The same installation again, with other arguments and settings.
export async function startAnew(extra, settings) {
  await dev.stop();
  dev = await startDev(directory, extra, settings);
}

// Further hooks: a visitor for each test, whose browser found nothing to complain of.
export function letSomebodyIn() {
  beforeEach(async () => {
    someone = await visitor(browser);
  });

  afterEach(async () => {
    await someone?.context.close();
    assert.deepEqual(someone?.complaints, []);
  });
}

// The code of the office manager's app, which the demo application shows, with time enough left to type it.
export async function shownCode(page) {
  for (;;) {
    const text = await (await page.context().request.get(dev.demo)).text();
    const [, code, seconds] = text.match(/<code>(\d{6})<\/code> for (\d+) more seconds/);
    if (Number(seconds) > 5) return code;
    await page.waitForTimeout(1_000);
  }
}
