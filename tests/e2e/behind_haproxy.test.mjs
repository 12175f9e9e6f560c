// The shipped HAProxy configuration, its first half, with a real HAProxy and TLS, in front of Gatepost on TCP.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { binary, environment, newDatabase, newProject, removeProject, root, run, startDev } from "./gatepost.mjs";
import { ask as askAt, certified, freePorts, send as sendTo, takesGoodSuitesAlone } from "./nginx.mjs";

// Not on everybody's path.
const program = existsSync("/usr/sbin/haproxy") ? "/usr/sbin/haproxy" : "haproxy";

describe("behind the shipped HAProxy configuration", { timeout: 180_000 }, () => {
  let directory, dev, settings, gatepost, haproxy, port, behind, certificate;

  before(async () => {
    directory = await newProject();
    dev = await startDev(directory);
    [port, behind] = await freePorts(2);
    certificate = await certified(directory, "localhost");
    await startGatepost();
    await startProxy();
    for (let tries = 0; (await ask("GET", "/healthz").catch(() => ({}))).status !== 200; tries += 1) {
      assert.ok(tries < 100, "nothing answers");
      await pause(100);
    }
  });

  after(async () => {
    for (const child of [haproxy, gatepost]) {
      if (child && child.exitCode === null) {
        child.kill("SIGTERM");
        await once(child, "exit");
      }
    }
    await dev?.stop();
    await removeProject(directory);
  });

  async function startGatepost() {
    settings = join(directory, "settings");
    const secret = join(directory, "master-secret");
    await writeFile(secret, run(binary, ["secret"]), { mode: 0o600 });
    const lines = [
      `GATEPOST_BASE_URL=https://localhost:${port}`,
      `GATEPOST_DATABASE_URL=${await newDatabase(directory, "behind_haproxy")}`,
      `GATEPOST_SECRET_FILE=${secret}`,
      `GATEPOST_LISTEN=127.0.0.1:${behind}`,
      "GATEPOST_TRUSTED_PROXIES=127.0.0.1/32",
      "GATEPOST_ADMIN_LISTEN=",
    ];
    await writeFile(settings, lines.join("\n"), { mode: 0o600 });
    const options = { cwd: directory, env: environment() };
    run(binary, ["migrate", "--env-file", settings], options);
    gatepost = spawn(binary, ["serve", "--env-file", settings], { ...options, stdio: "ignore" });
  }

  async function startProxy() {
    const pem = join(directory, "both.pem");
    await writeFile(pem, (await readFile(certificate.chain, "utf8")) + (await readFile(certificate.key, "utf8")));
    const shipped = await readFile(join(root, "deploy/haproxy.cfg"), "utf8");
    const [before] = shipped.split("# GATEPOST_DATABASE_URL");
    const changes = [
      [/bind :443 ssl crt \S+/, `bind 127.0.0.1:${port} ssl crt ${pem}`],
      [/server login1 \S+/, `server login1 127.0.0.1:${behind}`],
      [/ +server login2 .*\n/, ""],
    ];
    const text = changes.reduce((text, [from, to]) => {
      assert.match(text, from);
      return text.replace(from, to);
    }, before);
    const file = join(directory, "haproxy.cfg");
    await writeFile(file, text);
    haproxy = spawn(program, ["-q", "-db", "-f", file], { stdio: "inherit" });
  }

  const ask = (...request) => askAt({ port, name: "localhost", ca: certificate.ca }, ...request);
  const send = (bytes) => sendTo(port, bytes);

  test("gatepost doctor finds nothing wrong with it", () => {
    const { findings } = JSON.parse(run(binary, ["doctor", "--json", "--env-file", settings, "--ca-file", certificate.caFile]));
    const proxy = findings.filter(({ text }) => text.startsWith("proxy: "));
    assert.deepEqual(proxy.map(({ verdict }) => verdict), ["ok", "ok", "ok", "ok"], JSON.stringify(findings));
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

  test("a proof with bytes above ASCII is refused, any other header field with them does no harm", async () => {
    for (const [field, status] of [["DPoP", 400], ["User-Agent", 401], ["X-Anything", 401]]) {
      const head = "GET /connect/userinfo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
      const answer = await send(Buffer.from(`${head}${field}: caf\u00e9\r\n\r\n`, "latin1"));
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), field);
    }
  });

  test("of TLS 1.2 it takes ECDHE with AES-GCM, and nothing else", () => takesGoodSuitesAlone(port));
});
