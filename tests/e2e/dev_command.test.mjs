// `gatepost-dev` as a program: what it says, what it keeps, what it leaves behind.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { binary, newProject, pidIn, removeProject, runs, startDev } from "./gatepost.mjs";

describe("gatepost-dev", { timeout: 300_000 }, () => {
  let directory, dev;

  beforeEach(async () => {
    directory = await newProject();
  });

  afterEach(async () => {
    await dev?.stop?.();
    dev = undefined;
    await removeProject(directory);
  });

  test("prints what to open and ends without leaving anything running", async () => {
    dev = await startDev(directory);
    for (const expected of ["alice / looking-glass", "demo-service", "/.well-known/openid-configuration", "client_id=demo-device"]) {
      assert.ok(dev.output.includes(expected), dev.output);
    }
    const discovery = await (await fetch(`${dev.provider}/.well-known/openid-configuration`)).json();
    assert.equal(discovery.issuer, dev.provider);
    assert.equal((await stat(join(directory, ".gatepost/secret"))).mode & 0o777, 0o600);

    const postgres = await pidIn(join(directory, ".gatepost/postgres/postmaster.pid"));
    const serve = await pidIn(join(directory, ".gatepost/serve.pid"));
    assert.ok(runs(postgres) && runs(serve));
    assert.equal(await dev.stop(), 0, dev.output);
    assert.ok(!runs(postgres), "Postgres goes on running");
    assert.ok(!runs(serve), "the server goes on running");
    dev = undefined;
  });

  test("starts again after it was killed, and sweeps up what was left", async () => {
    const first = await startDev(directory);
    const serve = await pidIn(join(directory, ".gatepost/serve.pid"));
    const postgres = await pidIn(join(directory, ".gatepost/postgres/postmaster.pid"));
    await first.kill();
    assert.ok(runs(serve) && runs(postgres), "nothing was left: this tests nothing");

    dev = await startDev(directory);
    assert.ok(!runs(postgres) && !runs(serve), dev.output);
    assert.equal((await fetch(`${dev.provider}/.well-known/openid-configuration`)).status, 200);
  });

  test("prints a command that works as it stands, and leaves the settings for it", async () => {
    dev = await startDev(directory);
    const [, command, file] = dev.output.match(/Other commands +(\S+gatepost user list --env-file (\S+))\n/);
    const list = spawnSync("sh", ["-c", command], { cwd: directory, encoding: "utf8" });
    assert.equal(list.status, 0, list.stderr);
    assert.match(list.stdout, /^alice /m);
    assert.equal((await stat(join(directory, file))).mode & 0o777, 0o600);
  });

  test("names its users where one signs in, and no client of it is weak", async () => {
    dev = await startDev(directory);
    const page = await (await fetch(dev.demo)).text();
    assert.ok(["alice", "looking-glass", "bob", "caterpillar"].every((word) => page.includes(`<code>${word}</code>`)), page);
    assert.doesNotMatch(dev.output, /weak/);
    for (const client of ["demo", "demo-service", "demo-audit", "demo-device"]) {
      const { status, stdout } = spawnSync(binary, ["client", "test", client, "--env-file", ".gatepost/env"], { cwd: directory, encoding: "utf8" });
      assert.equal(status, 0, stdout);
      assert.doesNotMatch(stdout, /^(weak|fails)/m);
    }
  });

  test("a second one in the same directory is refused", async () => {
    dev = await startDev(directory);
    await assert.rejects(startDev(directory), /another `gatepost-dev` is running/);
  });

  test("a busy port is named, with the flag that changes it", async () => {
    const squatter = createServer().listen(0, "127.0.0.1");
    await once(squatter, "listening");
    try {
      const { port } = squatter.address();
      const refusal = new RegExp(`${port} is in use.*--demo-listen`, "s");
      await assert.rejects(startDev(directory, ["--demo-listen", String(port)]), refusal);
      assert.ok(!existsSync(join(directory, ".gatepost/postgres")), "something was started for nothing");
    } finally {
      squatter.close();
    }
  });

  test("where no port was named, one that is taken is passed over", async () => {
    // Both are taken once these listen, which is a moment after they were told to.
    const squatters = [8080, 8081].map((port) => createServer().listen(port, "127.0.0.1"));
    await Promise.all(squatters.map((squatter) => once(squatter, "listening")));
    try {
      dev = await startDev(directory, [], {}, []);
      assert.match(dev.provider, /:8(09|1\d|2[0-7])0$/, dev.output);
      assert.match(dev.demo, /:8(09|1\d|2[0-7])1$/, dev.output);
      assert.equal((await fetch(`${dev.provider}/.well-known/openid-configuration`)).status, 200);
    } finally {
      squatters.forEach((squatter) => squatter.close());
    }
  });

  test("make run looks at the ports before it builds", async () => {
    const squatter = createServer().listen(0, "127.0.0.1");
    await once(squatter, "listening");
    const built = join(directory, "built");
    // In cargo's place: says what it was asked for.
    await writeFile(join(directory, "cargo"), `#!/bin/sh\necho "$@" >> ${built}\n`, { mode: 0o755 });
    const env = { ...process.env, PATH: `${directory}:${process.env.PATH}` };
    const run = (...variables) => {
      const child = spawn("make", ["run", ...variables], { cwd: fileURLToPath(new URL("../..", import.meta.url)), env });
      let said = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
      return once(child, "exit").then(([code]) => ({ code, said }));
    };
    try {
      const { port } = squatter.address();
      for (const variable of ["LISTEN", "DEMO_LISTEN"]) {
        const { code, said } = await run(`${variable}=${port}`);
        assert.ok(code !== 0 && said.includes(`127.0.0.1:${port} is in use by another program`), said);
      }
      assert.ok(!existsSync(built), "it built");
      const { code, said } = await run("LISTEN=[::1]:1", "DEMO_LISTEN=2");
      assert.equal(code, 0, said);
      assert.equal(await readFile(built, "utf8"), "build --bins\nrun --bin gatepost-dev -- --listen [::1]:1 --demo-listen 2\n");
    } finally {
      squatter.close();
    }
  });

  test("what is installed is said with its reason", async () => {
    // A machine that has nothing but what the script itself runs, and on which nobody may install.
    for (const name of ["bash", "id", "env"]) await symlink(`/usr/bin/${name}`, join(directory, name));
    const need = fileURLToPath(new URL("../need", import.meta.url));
    const { status, stderr } = spawnSync(need, ["shells"], { env: { PATH: directory }, encoding: "utf8" });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /Missing: shells, to try the completion scripts in them\./);
    assert.match(stderr, /zsh fish/);
  });

  test("client_credentials of the demo service are good at the token endpoint", async () => {
    dev = await startDev(directory);
    const [, secret] = dev.output.match(/demo-service \/ (\S+)/);
    const answer = await fetch(`${dev.provider}/connect/token`, {
      method: "POST",
      headers: { Authorization: `Basic ${btoa(`demo-service:${secret}`)}` },
      body: new URLSearchParams({ grant_type: "client_credentials" }),
    });
    assert.equal(answer.status, 200);
    assert.equal((await answer.json()).scope.split(" ").sort().join(" "), "orders.read orders.write");
  });

  test("the private Postgres listens on no TCP port", async () => {
    dev = await startDev(directory);
    const postgres = await pidIn(join(directory, ".gatepost/postgres/postmaster.pid"));
    const sockets = spawnSync("sh", ["-c", `ls -l /proc/${postgres}/fd | grep -o 'socket:\\[[0-9]*\\]'`], { encoding: "utf8" });
    const inodes = sockets.stdout.match(/\d+/g) ?? [];
    assert.ok(inodes.length > 0);
    const tcp = spawnSync("sh", ["-c", "cat /proc/net/tcp /proc/net/tcp6"], { encoding: "utf8" }).stdout;
    const listening = tcp.split("\n").map((line) => line.trim().split(/\s+/)).filter((fields) => fields[3] === "0A");
    assert.ok(listening.every((fields) => !inodes.includes(fields[9])));
  });
});
