// Signing out by way of a client: the demo application on the provider's own site (back channel), and a second client on
// another site, which is told by a frame. Two ports of localhost are one site, 127.0.0.1 and localhost are two.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { join } from "node:path";
import { alice, decide, enterPassword, isLoginPage, signIn, visitorWithThirdPartyCookies } from "./browser.mjs";
import { newProject, register, removeProject, startDev } from "./gatepost.mjs";
import { authorization } from "./relying_party.mjs";

const secret = "a-secret-of-the-second-client";

// A client on 127.0.0.1: signs in by a cookie of its own, and signs out whoever's browser loads its frame.
async function startSecondClient() {
  const frames = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://127.0.0.1");
    const headers = { "Content-Type": "text/html", "Cache-Control": "no-store" };
    if (url.pathname === "/callback") headers["Set-Cookie"] = "second=signed-in; Path=/; Secure; SameSite=None";
    if (url.pathname === "/out") {
      frames.push({ parameters: url.searchParams, cookie: request.headers.cookie, of: request.headers["sec-fetch-dest"] });
      headers["Set-Cookie"] = "second=; Max-Age=0; Path=/; Secure; SameSite=None";
    }
    response.writeHead(200, headers).end(`<!DOCTYPE html><title>${url.pathname}</title><p>second ${url.pathname}</p>`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { frames, origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

describe("signing out", { timeout: 120_000 }, () => {
  let dev, directory, second, someone;

  before(async () => {
    directory = await newProject();
    dev = await startDev(directory);
    second = await startSecondClient();
    const client = {
      client_id: "second",
      client_name: "Second client",
      redirect_uris: [`${second.origin}/callback`],
      post_logout_redirect_uris: [`${second.origin}/done?x=%20y`],
      frontchannel_logout_uri: `${second.origin}/out`,
      frontchannel_logout_session_required: true,
      response_types: ["code"],
      scope: "openid profile",
      secrets: [{ value: secret }],
    };
    await register(directory, { clients: [client] });
    someone = await visitorWithThirdPartyCookies(join(directory, "profile"));
  });

  after(async () => {
    assert.deepEqual(someone?.complaints, []);
    await someone?.context.close();
    second?.close();
    await dev?.stop();
    await removeProject(directory);
  });

  // Signs in to the second client; answers its ID token.
  async function signInToSecond() {
    const { page } = someone;
    const redirectUri = `${second.origin}/callback`;
    const asked = authorization(dev, { client_id: "second", redirect_uri: redirectUri });
    await page.goto(asked.url);
    await page.waitForURL((url) => url.href.startsWith(redirectUri));
    const response = await fetch(`${dev.provider}/connect/token`, {
      method: "POST",
      headers: { Authorization: `Basic ${btoa(`second:${secret}`)}` },
      body: new URLSearchParams({
        grant_type: "authorization_code",
        code: new URL(page.url()).searchParams.get("code"),
        redirect_uri: redirectUri,
        code_verifier: asked.verifier,
      }),
    });
    return (await response.json()).id_token;
  }

  function endSession(parameters) {
    return `${dev.provider}/connect/endsession?${new URLSearchParams(parameters)}`;
  }

  async function demoIsSignedIn() {
    const page = await someone.context.newPage();
    await page.goto(dev.demo);
    const signedIn = (await page.getByRole("heading", { name: /^Signed in as / }).count()) === 1;
    await page.close();
    return signedIn;
  }

  async function secondCookie() {
    return (await someone.context.cookies()).find((cookie) => cookie.name === "second")?.value;
  }

  test("the second client's wish ends it for both, by frame and by back channel, and leads back", async () => {
    const { page } = someone;
    await signIn(page, dev.demo);
    const idToken = await signInToSecond();
    assert.equal(await secondCookie(), "signed-in");
    const state = "quotes \"'` <b>&%#{}[]|^ é 😀";
    await page.goto(endSession({ id_token_hint: idToken, post_logout_redirect_uri: `${second.origin}/done?x=%20y`, state }));
    // The page with the frame goes on by itself; no script is needed for that.
    await page.getByRole("link", { name: "Back to Second client" }).waitFor();
    await page.waitForURL((url) => url.href.startsWith(`${second.origin}/done`));
    const { searchParams } = new URL(page.url());
    assert.deepEqual([...searchParams], [["x", " y"], ["state", state]]);

    const { sid } = JSON.parse(Buffer.from(idToken.split(".")[1], "base64url"));
    assert.equal(second.frames.length, 1);
    const [{ parameters, cookie, of }] = second.frames;
    assert.deepEqual([...parameters], [["iss", dev.provider], ["sid", sid]]);
    assert.equal(of, "iframe");
    assert.equal(cookie, "second=signed-in");
    assert.equal(await secondCookie(), undefined);
    // Over the back channel, so a moment later.
    for (let tries = 0; (await demoIsSignedIn()) && tries < 50; tries++) await page.waitForTimeout(200);
    assert.equal(await demoIsSignedIn(), false);
  });

  test("the demo signs out at the provider and is where it began", async () => {
    const { page } = someone;
    await signInKnown();
    await page.getByRole("button", { name: "Sign out at the provider" }).click();
    await page.waitForURL(`${dev.demo}/`);
    await page.getByRole("link", { name: "Sign in", exact: true }).click();
    assert.ok(await isLoginPage(page));
  });

  test("a link from anywhere signs nobody out without a question, and the answer may be no", async () => {
    const { page } = someone;
    await signInKnown();
    await page.goto(`${second.origin}/elsewhere`);
    const link = endSession({ client_id: "second", post_logout_redirect_uri: `${second.origin}/done?x=%20y` });
    await page.evaluate((address) => location.assign(address), link);
    await page.getByText("Second client would like to sign you out.").waitFor();
    await decide(page, "stay");
    assert.equal(await demoIsSignedIn(), true);

    // A form post from another site brings no cookie along; it is asked about all the same.
    await page.goto(`${second.origin}/elsewhere`);
    await page.evaluate((address) => {
      const form = Object.assign(document.createElement("form"), { method: "post", action: address.split("?")[0] });
      for (const [name, value] of new URL(address).searchParams) {
        form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
      }
      document.body.append(form);
      form.submit();
    }, link);
    await page.getByRole("heading", { name: "Sign out?" }).waitFor();
    await decide(page, "sign_out");
    await page.waitForURL(`${second.origin}/done?x=%20y`);
    await page.goto(`${dev.demo}/sign-in`);
    assert.ok(await isLoginPage(page));
    // It had no part in that session.
    assert.equal(second.frames.length, 1);
  });

  // Alice's consent was remembered by the first scenario.
  async function signInKnown() {
    const { page } = someone;
    await page.goto(`${dev.demo}/sign-in`);
    await enterPassword(page, alice);
    await page.getByRole("heading", { name: /^Signed in as / }).waitFor();
  }
});
