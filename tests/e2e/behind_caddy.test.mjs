// The configuration of Caddy's page, with a real Caddy and TLS, in front of Gatepost on its Unix socket.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { binary, newProject, removeProject, run, startDev } from "./gatepost.mjs";
import { send as sendTo } from "./nginx.mjs";
import { startBehind } from "./proxies.mjs";

describe("behind the configuration of Caddy's page", { timeout: 180_000 }, () => {
  let directory, dev, behind;

  before(async () => {
    directory = await newProject();
    dev = await startDev(directory);
    behind = await startBehind("Caddy", directory, undefined, { lines: ["GATEPOST_BOUND_SESSIONS=on"] });
  });

  after(async () => {
    await behind?.stop();
    await dev?.stop();
    await removeProject(directory);
  });

  const send = (bytes) => sendTo(behind.port, bytes);

  test("gatepost doctor finds nothing wrong with it", () => {
    const { caFile } = behind.certificate;
    const { findings } = JSON.parse(run(binary, ["doctor", "--json", "--env-file", behind.settings, "--ca-file", caFile]));
    const proxy = findings.filter(({ text }) => text.startsWith("proxy: "));
    assert.deepEqual(proxy.map(({ verdict }) => verdict), ["ok", "ok", "ok", "ok", "ok"], JSON.stringify(findings));
    assert.match(proxy[4].text, /bound sessions are refreshed$/);
    // The certificates of these tests last for two days.
    const tls = findings.filter(({ text }) => text.startsWith("TLS: ")).map(({ text }) => text);
    assert.equal(tls.length, 1, tls.join());
    assert.match(tls[0], /^TLS: the certificate ends in [12] days: renew it$/);
  });

  test("a body in chunks is answered with what to send instead", async () => {
    const head = "POST /connect/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    const answer = await send(`${head}Transfer-Encoding: chunked\r\n\r\n1d\r\ngrant_type=client_credentials\r\n0\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 411 /);
    assert.match(answer, /"error":"invalid_request".*Content-Length/);
  });

  test("whoever falls silent in the middle of a body is let go", async () => {
    const began = Date.now();
    await sendTo(behind.port, "POST /connect/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\ngrant_type=", 30_000);
    const took = Date.now() - began;
    assert.ok(took > 5_000 && took < 20_000, `${took} ms`);
  });

  test("bytes above ASCII keep nobody out, and a proof with them is refused", async () => {
    const line = "GET /.well-known/openid-configuration HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    for (const name of ["Cookie", "Accept-Language", "User-Agent", "X-Anything", "Origin"]) {
      const answer = await send(Buffer.from(`${line}${name}: caf\u00e9=\u00ff\u0080; b=1\r\n\r\n`, "latin1"));
      assert.match(answer, /^HTTP\/1\.1 200 /, name);
    }
    const form = "grant_type=client_credentials&client_id=nobody";
    const head = `POST /connect/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${form.length}\r\n`;
    const type = "Content-Type: application/x-www-form-urlencoded\r\n";
    const answer = await send(Buffer.from(`${head}${type}DPoP: caf\u00e9\r\n\r\n${form}`, "latin1"));
    assert.match(answer, /^HTTP\/1\.1 40[01] .*"error":"invalid_/s);
  });
});
