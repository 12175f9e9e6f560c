// Sessions that are bound to the device (DBSC): a real Chromium with keys in software, behind the shipped files of nginx and
// HAProxy. What people see of it, which is nothing, and what a thief of their cookies can do.

import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile } from "node:fs/promises";
import { createServer } from "node:https";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { decide, enterPassword, isLoginPage, launch, visitor, visitorWithProfile } from "./browser.mjs";
import { startForeignProvider } from "./foreign_provider.mjs";
import { binary, environment, newProject, removeProject, run, runSql, startDev } from "./gatepost.mjs";
import { certified, freePorts } from "./nginx.mjs";
import { startBehind } from "./proxies.mjs";

// Two registrable domains, as a browser holds a navigation only where its own site or a rule says so. `apps` is a sibling of
// the provider, with which it shares the browser's signatures.
const names = { provider: "login.office.test", sibling: "apps.office.test", shop: "shop.test" };
const boundCookie = /^__Host-gatepost-bound-/;
const accountHeading = { name: "Your account" };
const settings = [
  "GATEPOST_BOUND_SESSIONS=on", "GATEPOST_REMEMBER_SESSION_LIFETIME=2592000", "GATEPOST_OUTBOUND_ALLOW=127.0.0.0/8",
];

let directory, dev, shop, certificate, spoilt;

before(async () => {
  directory = await newProject();
  dev = await startDev(directory);
  await mkdir(join(directory, "shop"));
  certificate = await certified(join(directory, "shop"), names.shop);
  const [port] = await freePorts(1);
  shop = createServer({ cert: await readFile(certificate.chain), key: await readFile(certificate.key) }, serveShop);
  shop.listen(port, "127.0.0.1");
  await once(shop, "listening");
  shop.origin = `https://${names.shop}:${port}`;
  shop.sibling = `https://${names.sibling}:${port}`;
});

after(async () => {
  shop?.close();
  shop?.closeAllConnections();
  await dev?.stop();
  await removeProject(directory);
});

// The application, which has a link for each way to sign in; and, under the sibling's name, one that has the browser sign
// for a key at each visit, and then does not want it.
function serveShop(request, response) {
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  const { pathname, searchParams } = new URL(request.url, "https://shop");
  if (pathname === "/key") response.setHeader("Secure-Session-Registration", '(ES256);path="/unwanted";challenge="c"');
  if (pathname === "/unwanted") spoilt += 1;
  response.statusCode = pathname === "/unwanted" ? 400 : 200;
  const link = (name, more) => `<a href="${searchParams.get("of")}/connect/authorize?${authorization(more)}">${name}</a>`;
  const links = [
    link("Sign in"), link("Silently", { prompt: "none" }), link("Ask", { prompt: "consent" }),
    link("Vault", { client_id: "vault" }),
  ];
  response.end(`<!doctype html><title>Shop</title><link rel="icon" href="data:,"><h1>Shop</h1>${links.join(" ")}`);
}

function authorization(more) {
  return new URLSearchParams({
    client_id: "shop", redirect_uri: `${shop.origin}/callback`, response_type: "code", scope: "openid profile", state: "kept",
    code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", code_challenge_method: "S256", ...more,
  });
}

const client = (client_id, more) => ({
  client_id, client_name: client_id, redirect_uris: [`${shop.origin}/callback`], scope: "openid profile",
  secrets: [{ value: `a-secret-of-the-${client_id}-only` }], ...more,
});

// What Chromium wants to know of a certificate that it shall take.
async function keyDigest({ chain }) {
  const { publicKey } = new X509Certificate(await readFile(chain));
  return createHash("sha256").update(publicKey.export({ type: "spki", format: "der" })).digest("base64");
}

async function until(condition, what) {
  for (let tries = 0; !(await condition()); tries += 1) {
    assert.ok(tries < 150, what);
    await pause(100);
  }
}

for (const proxy of ["nginx", "HAProxy"]) {
  describe(`sessions bound to the device, behind ${proxy}`, { timeout: 180_000 }, () => {
    const alice = { username: "alice", password: "through-the-looking-glass" };
    let behind, foreign, anywhere, without, someone;

    before(async () => {
      const document = {
        clients: [client("shop"), client("vault", { require_bound_session: true })],
        users: [{ ...alice, claims: { name: "Alice Liddell" } }],
      };
      behind = await startBehind(proxy, directory, document, { name: names.provider, lines: settings });
      foreign = await startForeignProvider(behind.issuer, ["foreign"]);
      const elsewhere = JSON.stringify({ identity_providers: [foreign.registration("foreign")] });
      run(binary, ["apply", "-", "--env-file", behind.settings], { cwd: directory, env: environment(), input: elsewhere });
      const digests = [await keyDigest(behind.certificate), await keyDigest(certificate)];
      anywhere = [`--ignore-certificate-errors-spki-list=${digests}`, "--host-resolver-rules=MAP *.test 127.0.0.1"];
      without = await launch(anywhere);
      someone = await open("someone");
    });

    after(async () => {
      await someone?.context.close();
      await without?.close();
      await foreign?.close();
      await behind?.stop();
    });

    // A browser that binds, with the profile of that name.
    function open(profile) {
      const features = "--enable-features=DeviceBoundSessions,EnableBoundSessionCredentialsSoftwareKeysForManualTesting";
      return visitorWithProfile(join(directory, `${proxy}-${profile}`), [...anywhere, features]);
    }

    // To the provider by a link of the application.
    async function follow(page, link = "Sign in") {
      await page.goto(`${shop.origin}/?of=${encodeURIComponent(behind.issuer)}`);
      await page.getByRole("link", { name: link, exact: true }).click();
    }

    const isBack = (page) =>
      page.waitForURL(({ href, searchParams }) => href.startsWith(`${shop.origin}/callback?`) && searchParams.has("code"));

    async function signIn(page) {
      await enterPassword(page, alice);
      await isBack(page);
    }

    // Nobody is asked anything on the way.
    async function passThrough(page, link) {
      await follow(page, link);
      await isBack(page);
    }

    async function showsAccount(page) {
      await page.goto(`${behind.issuer}/account`);
      await page.getByRole("heading", accountHeading).waitFor();
    }

    const isBound = async ({ context }) => (await context.cookies(behind.issuer)).some(({ name }) => boundCookie.test(name));
    const untilBound = (one) => until(() => isBound(one), `nothing is bound: ${behind.log.text.slice(-3_000)}`);
    // As when its ten minutes are over.
    const outlive = ({ context }) => context.clearCookies({ name: boundCookie });
    // The log comes by a pipe, a moment behind the answer.
    const counted = (path, status) => behind.log.text.split(` path=/session/${path} status=${status} `).length - 1;
    const sql = (statements) => runSql(directory, `\\c ${behind.database}\n${statements}`);

    test("a sign-in from another domain binds the session, and the end of the bound cookie asks no question", async () => {
      await follow(someone.page);
      await signIn(someone.page);
      await untilBound(someone);
      for (const times of [1, 2]) {
        await outlive(someone);
        await passThrough(someone.page);
        assert.ok(await isBound(someone));
        await until(() => counted("refresh", 200) === times, `not ${times} refreshes`);
      }
      assert.deepEqual([counted("bind", 200), counted("refresh", 403)], [1, 1]);
    });

    test("the cookies alone, in another profile, open nothing, and the owner notices nothing", async () => {
      const stolen = await someone.context.cookies(behind.issuer);
      await sql("UPDATE sessions SET bound_at = bound_at - interval '31 s'");
      const thief = await visitor(without);
      await thief.context.addCookies(stolen);
      // While the bound cookie lasts the browser has all that it takes.
      await showsAccount(thief.page);
      await outlive(thief);
      await thief.page.reload();
      assert.ok(await isLoginPage(thief.page));
      await thief.page.getByText("could not show that it is the one that signed in").waitFor();
      await follow(thief.page, "Silently");
      await thief.page.waitForURL(/error=login_required/);
      await thief.context.clearCookies();
      await thief.context.addCookies(stolen.filter(({ name }) => boundCookie.test(name)));
      await thief.page.goto(`${behind.issuer}/account`);
      assert.ok(await isLoginPage(thief.page));
      await until(() => behind.log.text.includes('reason="GP1480"'), "the log does not say why");
      await thief.context.close();
      await showsAccount(someone.page);
    });

    test("a client that demands binding takes this session, and another one only with a fresh sign-in", async () => {
      await outlive(someone);
      await passThrough(someone.page, "Vault");
      const other = await visitor(without);
      await follow(other.page);
      await signIn(other.page);
      // As ever, in a browser that does not bind.
      await passThrough(other.page);
      assert.equal(await isBound(other), false);
      await passThrough(other.page, "Vault");
      await sql("UPDATE sessions SET auth_time = auth_time - interval '91 s', created_at = created_at - interval '91 s'");
      await follow(other.page, "Vault");
      assert.ok(await isLoginPage(other.page));
      await signIn(other.page);
      await passThrough(other.page);
      await other.context.close();
    });

    test("a consent page and a form with a password, left open until the bound cookie has run out, go on", async () => {
      const { page } = someone;
      await follow(page, "Ask");
      await page.getByRole("heading", { name: /asks for access/ }).waitFor();
      await outlive(someone);
      await decide(page, "allow");
      await isBack(page);
      await showsAccount(page);
      await page.locator("#password").click();
      const changed = "a much longer looking-glass";
      await page.getByLabel("Present password").fill(alice.password);
      await page.getByLabel("New password", { exact: true }).fill(changed);
      await page.getByLabel("New password once more").fill(changed);
      await outlive(someone);
      await decide(page, "change_password");
      await page.getByText("Your password is changed").waitFor();
      alice.password = changed;
      await outlive(someone);
      await passThrough(page);
    });

    test("tabs that come at once make one refresh", async () => {
      const tabs = await Promise.all([1, 2, 3].map(() => someone.context.newPage()));
      await outlive(someone);
      const before = counted("refresh", 200);
      await Promise.all(tabs.map((page) => showsAccount(page)));
      await showsAccount(someone.page);
      await until(() => counted("refresh", 200) > before, "no refresh");
      assert.equal(counted("refresh", 200), before + 1);
      for (const tab of tabs) await tab.close();
    });

    test("servers that are replaced meanwhile are not noticed", async () => {
      const ended = () => behind.log.text.split("server process ends").length;
      const before = ended();
      for (const gatepost of behind.gateposts) gatepost.kill("SIGHUP");
      await outlive(someone);
      await passThrough(someone.page);
      await until(() => ended() === before + behind.gateposts.length, "the old processes stay");
      await outlive(someone);
      await passThrough(someone.page);
    });

    test("while the database is away a session stays bound", async () => {
      const others = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${behind.database}'`;
      await runSql(directory, `ALTER DATABASE ${behind.database} ALLOW_CONNECTIONS false; ${others}`);
      try {
        await outlive(someone);
        const answer = await someone.page.goto(`${behind.issuer}/account`);
        assert.equal(answer.status(), 503);
        assert.ok(await isBound(someone));
      } finally {
        await runSql(directory, `ALTER DATABASE ${behind.database} ALLOW_CONNECTIONS true`);
      }
      await until(async () => (await someone.page.goto(`${behind.issuer}/account`)).status() === 200, "it does not come back");
      await someone.page.getByRole("heading", accountHeading).waitFor();
    });

    test("a network that was gone during a refresh asks no question when it is back", async () => {
      await behind.stopProxy();
      await outlive(someone);
      await assert.rejects(someone.page.goto(`${behind.issuer}/account`), /ERR_CONNECTION_REFUSED/);
      await behind.useCertificate(behind.certificate);
      await showsAccount(someone.page);
    });

    test("signing out ends the binding: the browser refreshes nothing any more", async () => {
      const { page, context } = someone;
      await page.goto(`${behind.issuer}/logout`);
      await decide(page, "sign_out");
      await page.getByRole("heading", { name: /signed out/i }).waitFor();
      const refreshed = /path=\/session\/refresh /g;
      const before = behind.log.text.match(refreshed).length;
      assert.deepEqual((await context.cookies(behind.issuer)).filter(({ name }) => /bound|session/.test(name)), []);
      await follow(page);
      assert.ok(await isLoginPage(page));
      await page.goto(`${behind.issuer}/account`);
      assert.ok(await isLoginPage(page));
      await until(() => behind.log.text.includes(" path=/account status=303 "), "the log stands still");
      assert.equal(behind.log.text.match(refreshed).length, before);
    });

    test("a browser that was restarted signs in anew, or goes on where it is remembered", async () => {
      let one = await open("restarted");
      await follow(one.page);
      await signIn(one.page);
      await untilBound(one);
      await one.context.close();
      const before = counted("bind", 200);
      one = await open("restarted");
      await follow(one.page);
      assert.ok(await isLoginPage(one.page));
      // What the session before left is gone before anybody signs in.
      await until(async () => !(await isBound(one)), "the old bound cookie stays");
      await one.page.locator("input[name=remember]").check();
      await signIn(one.page);
      await untilBound(one);
      await until(() => counted("bind", 200) === before + 1, "not one registration");
      await one.context.close();
      one = await open("restarted");
      await outlive(one);
      await passThrough(one.page);
      assert.ok(await isBound(one));
      await one.context.close();
    });

    // After that callback a browser registers without any `SameSite=Lax` cookie.
    test("a sign-in at a provider elsewhere binds the session, too", async () => {
      const one = await open("elsewhere");
      await follow(one.page);
      await one.page.getByRole("button", { name: /^Sign in with Foreign/ }).click();
      await one.page.getByLabel("Name there").fill("carol");
      await one.page.getByRole("button", { name: "Sign in there" }).click();
      await isBack(one.page);
      await untilBound(one);
      await outlive(one);
      await passThrough(one.page);
      assert.ok(await isBound(one));
      await one.context.close();
    });

    test("a browser whose signatures are used up signs in anew, and is as today", async () => {
      const one = await open("used-up");
      await follow(one.page);
      await signIn(one.page);
      await untilBound(one);
      await sql("UPDATE sessions SET bound_at = bound_at - interval '31 s'");
      spoilt = 0;
      for (let visits = 1; visits <= spoilt + 2; visits += 1) {
        await one.page.goto(`${shop.sibling}/key`);
        await pause(700);
      }
      assert.ok(spoilt >= 3 && spoilt <= 6, `${spoilt} signatures`);
      await outlive(one);
      await follow(one.page);
      await one.page.getByText("could not show that it is the one that signed in").waitFor();
      // By the header field that Chromium sends then.
      assert.match(await sql("SELECT detail FROM audit_events WHERE event = 'bound_session_refused'"), /quota_exceeded/);
      await signIn(one.page);
      await passThrough(one.page);
      await showsAccount(one.page);
      assert.equal(await isBound(one), false);
      await one.context.close();
    });
  });
}
