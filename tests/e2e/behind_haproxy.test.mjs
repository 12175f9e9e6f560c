// The shipped HAProxy configuration, its first half, with a real HAProxy and TLS, in front of two Gateposts on TCP.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { binary, newProject, removeProject, run, startDev } from "./gatepost.mjs";
import { send as sendTo } from "./nginx.mjs";
import { startBehind } from "./proxies.mjs";

describe("behind the shipped HAProxy configuration", { timeout: 180_000 }, () => {
  let directory, dev, behind;

  before(async () => {
    directory = await newProject();
    dev = await startDev(directory);
    behind = await startBehind("HAProxy", directory, undefined, { lines: ["GATEPOST_BOUND_SESSIONS=on"] });
  });

  after(async () => {
    await behind?.stop();
    await dev?.stop();
    await removeProject(directory);
  });

  const send = (bytes) => sendTo(behind.port, bytes);

  test("gatepost doctor finds nothing wrong with it", () => {
    const { findings } = JSON.parse(run(binary, ["doctor", "--json", "--env-file", behind.settings, "--ca-file", behind.certificate.caFile]));
    const proxy = findings.filter(({ text }) => text.startsWith("proxy: "));
    assert.deepEqual(proxy.map(({ verdict }) => verdict), ["ok", "ok", "ok", "ok", "ok"], JSON.stringify(findings));
    assert.match(proxy[4].text, /bound sessions are refreshed$/);
    assert.match(proxy[0].text, /a body in chunks is answered 411$/);
    assert.match(proxy[3].text, /proofs of possession arrive, two lines as two/);
    // The certificates of these tests last for two days: made in this very second they still do.
    const tls = findings.filter(({ text }) => text.startsWith("TLS: ")).map(({ text }) => text);
    assert.equal(tls.length, 1, tls.join());
    assert.match(tls[0], /^TLS: the certificate ends in [12] days: renew it$/);
  });

  test("a body in chunks is answered with what to send instead, by HAProxy", async () => {
    const head = "POST /connect/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    const answer = await send(`${head}Transfer-Encoding: chunked\r\n\r\n1d\r\ngrant_type=client_credentials\r\n0\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 411 /);
    assert.match(answer, /"error":"invalid_request".*Content-Length/);
    assert.doesNotMatch(answer, /x-content-type-options/i, "Gatepost was not asked");
  });

  test("a body that is too long, or slow, does not reach Gatepost", async () => {
    const head = "POST /connect/token HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ";
    const long = await send(`${head}2000000\r\n\r\n${"a".repeat(20_000)}`);
    const slow = await sendTo(behind.port, `${head}2000\r\n\r\ngrant_type=`, 30_000);
    for (const [answer, status] of [[long, 413], [slow, 408]]) {
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.doesNotMatch(answer, /x-content-type-options/i, "Gatepost was not asked");
    }
  });

  test("a proof with bytes above ASCII is refused, any other header field with them does no harm", async () => {
    for (const [field, status] of [["DPoP", 400], ["User-Agent", 401], ["X-Anything", 401]]) {
      const head = "GET /connect/userinfo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
      const answer = await send(Buffer.from(`${head}${field}: caf\u00e9\r\n\r\n`, "latin1"));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), field);
    }
  });
});
