// The set-up of the README, run as it stands there: from the built programs to the first sign-in, in a real browser through
// nginx over TLS, and on to the code that the application redeems. What is changed is what differs between machines:
// directories, ports, and the address of Postgres. Where no systemd runs, systemctl.py does what the units say.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { enterPassword, launch, visitor } from "./browser.mjs";
import { binary, environment, newProject, pidIn, removeProject, root, run, runs } from "./gatepost.mjs";
import { preparePython, python } from "./python.mjs";
import { ask as askAt, certified, freePorts, mainConfiguration, nginxProgram, shippedConfiguration } from "./nginx.mjs";

const host = "login.example.com";
const issuer = `https://${host}`;
const callback = "https://shop.example.com/callback";
const rolePassword = "oneRoleOfPostgres";
const alice = { username: "alice", password: "through-the-looking-glass" };
// Of RFC 7636 appendix B, as `gatepost client test` says.
const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

// What a block of commands is told when it asks.
const answers = [
  [/createuser --pwprompt/, `${rolePassword}\n${rolePassword}\n`],
  [/read -rsp/, `${rolePassword}\n`],
  [/gatepost user add/, `${alice.password}\n`],
];

// The fenced blocks of a page's section, in their order: { language, text }.
async function blocks(page, heading) {
  const text = await readFile(join(root, page), "utf8");
  const [section] = text.split(`\n## ${heading}\n`)[1].split("\n## ");
  return [...section.matchAll(/^( *)```(\w+)\n([\s\S]*?)^\1```$/gm)].map(([, indent, language, text]) => ({
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  }));
}

describe("the set-up of the README", { timeout: 300_000 }, () => {
  let machine, database, nginx, browser, certificate, ports;
  const printed = [];

  before(async () => {
    machine = await newProject();
    const [tls, plain, admin] = await freePorts(3);
    ports = { tls, plain, admin };
    await mkdir(join(machine, "run"));
    await mkdir(join(machine, "root"));
    await startPostgres();
    await preparedFiles();
    await startNginx();
    await commandsOfTheMachine();
  });

  after(async () => {
    await browser?.close();
    const systemd = await pidIn(join(machine, "run/systemd.pid")).catch(() => undefined);
    if (systemd && runs(systemd)) process.kill(systemd, "SIGTERM");
    for (let tries = 0; systemd && runs(systemd) && tries < 200; tries += 1) await pause(100);
    for (const [child, end] of [[nginx, () => nginx.kill("SIGQUIT")], [database?.child, () => database.child.stdin.end()]]) {
      if (child && child.exitCode === null) {
        end();
        await once(child, "exit");
      }
    }
    await removeProject(machine);
  });

  // A path of this machine's, as it stands in commands and files.
  const relocated = (text) =>
    text.replaceAll(/(?<![\w.])\/(usr\/(?:local\/)?(?:bin|share\/(?:man|doc))|etc\/(gatepost|systemd|nginx|ssl)|run\/gatepost)(?=[/\s;])/g, `${machine}/$1`);

  // A cluster that nobody has used, and which asks the new role for its password.
  async function startPostgres() {
    const { TEST_DATABASE_URL: _, ...env } = environment();
    const child = spawn(join(root, "tests/with-postgres"), ["sh", "-c", "echo $TEST_DATABASE_URL; exec cat"], {
      env, stdio: ["pipe", "pipe", "inherit"],
    });
    database = { child };
    const [address] = await once(createInterface({ input: child.stdout }), "line");
    database.port = new URL(address).port;
    const rules = ["host all postgres 127.0.0.1/32 trust", "host gatepost gatepost 127.0.0.1/32 scram-sha-256"];
    const rows = rules.map((rule, number) => `(${number}, '${rule}')`).join(", ");
    run("psql", ["-q", "-d", address, "-c",
      `DO $$ BEGIN EXECUTE format('COPY (SELECT rule FROM (VALUES ${rows.replaceAll("'", "''")}) AS rules(n, rule) ORDER BY n) TO %L',
       current_setting('hba_file')); PERFORM pg_reload_conf(); END $$`]);
  }

  // What the operator finds in the directory of the sources, with the lines changed that the README says to change.
  async function preparedFiles() {
    await mkdir(join(machine, "target/release"), { recursive: true });
    for (const program of ["gatepostd", "gatepost"]) {
      await cp(join(dirname(binary), program), join(machine, "target/release", program));
    }
    await mkdir(join(machine, "deploy"));
    for (const unit of ["gatepost.socket", "gatepost.service"]) {
      await writeFile(join(machine, "deploy", unit), relocated(await readFile(join(root, "deploy", unit), "utf8")));
    }
    const certificates = join(machine, "etc/ssl", host);
    for (const directory of ["usr/local/bin", "etc/systemd/system", "etc/nginx/conf.d"]) {
      await mkdir(join(machine, directory), { recursive: true });
    }
    await mkdir(certificates, { recursive: true });
    certificate = await certified(certificates, host);
    await writeFile(join(machine, "deploy/nginx.conf"), relocated(await shippedConfiguration(ports.tls, ports.plain, [])));
  }

  // As a distribution starts it: with an empty conf.d, and workers of another user, in the group that the socket is for.
  async function startNginx() {
    const file = join(machine, "etc/nginx/nginx.conf");
    await writeFile(file, mainConfiguration(machine, "www-data", `include ${machine}/etc/nginx/conf.d/*.conf;`));
    nginx = spawn(nginxProgram, ["-p", machine, "-c", file], { stdio: "inherit" });
    for (let tries = 0; !(await stat(join(machine, "nginx.pid")).catch(() => undefined))?.size; tries += 1) {
      assert.ok(tries < 100, "nginx does not start");
      await pause(50);
    }
  }

  // sudo, nginx and systemctl of a machine that is not the one the tests run on.
  async function commandsOfTheMachine() {
    const commands = {
      // The settings lie where commands look for them, and nothing else of this machine sees them there.
      sudo: `case $1 in
-u) [ "$2" = postgres ] || exit 1; export PGUSER=postgres PGHOST=127.0.0.1 PGPORT=${database.port}; shift 2;;
gatepost) set -- ${join(root, "tests/with-installation")} ${machine}/etc/gatepost "$@";;
esac
exec "$@"`,
      nginx: `exec ${nginxProgram} -p ${machine} -c ${machine}/etc/nginx/nginx.conf "$@"`,
      systemctl: `exec python3 ${join(root, "tests/e2e/systemctl.py")} "$@"`,
      // What the package does is tried where packages are. Here the same is done from source, with the programs that are built.
      apt: relocated(await fromSource()),
    };
    await mkdir(join(machine, "commands"));
    for (const [name, text] of Object.entries(commands)) {
      await writeFile(join(machine, "commands", name), `#!/bin/sh\n${text}\n`);
      await chmod(join(machine, "commands", name), 0o755);
    }
    const curl = [`cacert = ${certificate.caFile}`, `connect-to = ${host}:443:127.0.0.1:${ports.tls}`, "silent", "show-error",
      // nginx takes up what it was given a moment after the reload.
      "retry = 4", "retry-connrefused"];
    await writeFile(join(machine, "root/.curlrc"), curl.join("\n"));
  }

  async function fromSource() {
    const [{ text }] = await blocks("docs/operate/set-up.md", "From source");
    const shipped = text.replace(/^cargo build .*\n/gm, "").replace("/usr/local/share/doc", "/usr/share/doc");
    assert.ok(text.length - shipped.length > 40, text);
    return `set -eu\n${shipped}`;
  }

  // Postgres' address, and a port of our own for what else listens.
  const onThisMachine = (commands) =>
    relocated(commands)
      .replace("@localhost/gatepost", `@localhost:${database.port}/gatepost`)
      .replace(/^GATEPOST_BASE_URL=.*$/m, `$&\nGATEPOST_ADMIN_LISTEN=127.0.0.1:${ports.admin}`);

  // Runs a block as somebody types it, without a terminal; a command that fails is written down with its exit code.
  function typed(commands) {
    const env = {
      MACHINE: machine, HOME: join(machine, "root"), LANG: "C.UTF-8",
      PATH: `${machine}/commands:${machine}/usr/local/bin:${process.env.PATH}`,
    };
    const input = answers.find(([asks]) => asks.test(commands))?.[1] ?? "";
    const script = `set -uo pipefail\ntrap 'echo "failed with $?: $BASH_COMMAND"' ERR\n${onThisMachine(commands)}`;
    return run("setsid", ["--wait", "bash", "-c", script], { cwd: machine, env, input, timeout: 60_000 });
  }

  test("every command does what it says", async () => {
    const all = await blocks("README.md", "A first real set-up");
    assert.deepEqual(all.map(({ language }) => language), ["sh", "sh", "bash", "json", "sh", "sh", "sh"]);
    for (const { language, text } of all) {
      if (language === "json") {
        await writeFile(join(machine, "registration.json"), text);
        continue;
      }
      // What another shell does not know stands in a block that says so.
      if (language === "sh") assert.doesNotMatch(text, /\bread -\w*[sp]|\[\[|<<<|<\(/);
      const output = typed(text);
      printed.push(output);
      const failed = output.split("\n").filter((line) => line.startsWith("failed with"));
      const expected = text.includes("gatepost plan") ? [/^failed with 3: sudo gatepost plan - /] : [];
      assert.equal(failed.length, expected.length, `${text}\n${output}`);
      expected.forEach((pattern, number) => assert.match(failed[number], pattern));
    }
    assert.match(await readFile(join(machine, "usr/local/share/man/man1/gatepost.1"), "utf8"), /^\.TH GATEPOST 1 /);
    const metadata = printed.find((output) => output.includes("authorization_endpoint"));
    assert.equal(JSON.parse(metadata.slice(metadata.indexOf("{"))).issuer, issuer);
  });

  test("what is secret lies where root alone may read it, and the service has it as a credential", async () => {
    for (const [file, mode] of [["etc/gatepost", 0o700], ["etc/gatepost/secret", 0o600], ["etc/gatepost/database-url", 0o600], ["etc/gatepost/env", 0o600]]) {
      assert.equal((await stat(join(machine, file))).mode & 0o777, mode, file);
    }
    const socket = await stat(join(machine, "run/gatepost/http.sock"));
    assert.equal(socket.mode & 0o777, 0o660);
    const systemd = await pidIn(join(machine, "run/systemd.pid"));
    const service = (await readFile(`/proc/${systemd}/task/${systemd}/children`, "utf8")).trim();
    const environment = await readFile(`/proc/${service}/environ`, "utf8");
    const command = await readFile(`/proc/${service}/cmdline`, "utf8");
    assert.match(environment, /CREDENTIALS_DIRECTORY=/);
    assert.doesNotMatch(environment + command, new RegExp(`GATEPOST_SECRET_FILE|DATABASE_URL|${rolePassword}`));
    if (process.getuid() === 0) assert.notEqual((await stat(`/proc/${service}`)).uid, 0);
    const ready = await fetch(`http://127.0.0.1:${ports.admin}/readyz`);
    assert.equal((await ready.text()).trim(), "ready");
  });

  test("systemd knows every line of the installed units", () => {
    const units = ["gatepost.service", "gatepost.socket"].map((unit) => join(machine, "etc/systemd/system", unit));
    const told = run("sh", ["-c", `systemd-analyze verify --man=no ${units.join(" ")} 2>&1 || true`]);
    assert.deepEqual(told.split("\n").filter((line) => line.includes("gatepost")), []);
  });

  test("alice signs in through nginx over TLS, and the shop redeems its code", async () => {
    const address = printed.at(-1).match(/Try: (https:\S+)/)[1];
    const secret = printed.join("\n").match(/gps_[\w-]+/)[0];
    browser = await launch([`--host-resolver-rules=MAP ${host}:443 127.0.0.1:${ports.tls}`], await trusting());
    const { page, context, complaints } = await visitor(browser);
    let answered;
    await page.route("https://shop.example.com/**", (route) => {
      answered = new URL(route.request().url());
      return route.fulfill({ body: "welcome" });
    });
    await page.goto(address);
    assert.equal(new URL(page.url()).origin, issuer);
    await enterPassword(page, alice);
    await page.waitForURL(`${callback}?**`);
    const parameters = answered.searchParams;
    assert.equal(parameters.get("state"), "try");
    assert.equal(parameters.get("iss"), issuer);
    const tokens = await redeemed(parameters.get("code"), secret);
    const claims = JSON.parse(Buffer.from(tokens.id_token.split(".")[1], "base64url"));
    assert.deepEqual([claims.iss, claims.aud, claims.nonce], [issuer, "web", "try"]);
    const userinfo = await ask("GET", "/connect/userinfo", { authorization: `Bearer ${tokens.access_token}` });
    assert.equal(userinfo.status, 200, userinfo.text);
    assert.equal(JSON.parse(userinfo.text).sub, claims.sub);
    await context.close();
    assert.deepEqual(complaints, []);
  });

  test("what it counts is read by Prometheus' own client library", async () => {
    await preparePython();
    const metrics = await (await fetch(`http://127.0.0.1:${ports.admin}/metrics`)).text();
    const program = `
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = text_string_to_metric_families(sys.stdin.read())
print(json.dumps([[f.name, f.type, f.documentation, [[s.name, s.labels, s.value] for s in f.samples]] for f in families]))`;
    const families = JSON.parse(run(python, ["-c", program], { input: metrics }));
    const lines = metrics.split("\n").filter((line) => line && !line.startsWith("#"));
    assert.equal(families.flatMap(([, , , samples]) => samples).length, lines.length, "each line is a sample of its family");
    for (const [name, type, help, samples] of families) {
      assert.ok(["counter", "gauge", "histogram"].includes(type) && help, `${name} is ${type}: ${help}`);
      assert.ok(samples.every(([sample]) => sample.startsWith(name)), name);
    }
    const tokens = families.find(([name]) => name === "gatepost_token_responses");
    assert.deepEqual(tokens[3], [["gatepost_token_responses_total", { grant_type: "authorization_code" }, 1]]);
    const latency = families.find(([name]) => name === "gatepost_http_request_duration_seconds");
    assert.equal(latency[1], "histogram");
    assert.ok(latency[3].some(([name, labels]) => name.endsWith("_bucket") && labels.endpoint === "token" && labels.le === "+Inf"));
  });

  const ask = (...request) => askAt({ port: ports.tls, name: host, ca: certificate.ca }, ...request);

  // The environment of a browser whose user trusts the CA, and no other of ours.
  async function trusting() {
    const store = join(machine, "root/.pki/nssdb");
    await mkdir(store, { recursive: true });
    run("certutil", ["-d", `sql:${store}`, "-N", "--empty-password"]);
    run("certutil", ["-d", `sql:${store}`, "-A", "-t", "C,,", "-n", "tests", "-i", certificate.caFile]);
    return { ...environment(), HOME: join(machine, "root") };
  }

  async function redeemed(code, secret) {
    const form = new URLSearchParams({ grant_type: "authorization_code", code, redirect_uri: callback, code_verifier: verifier });
    const headers = { "content-type": "application/x-www-form-urlencoded", authorization: `Basic ${btoa(`web:${secret}`)}` };
    const answer = await ask("POST", "/connect/token", headers, String(form));
    assert.equal(answer.status, 200, answer.text);
    assert.match(answer.headers["strict-transport-security"], /max-age=31536000/);
    return JSON.parse(answer.text);
  }
});
