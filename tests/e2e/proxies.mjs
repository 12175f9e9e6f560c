// Gatepost behind each proxy that the project has a configuration for: the shipped file, or the block of its page, with
// nothing changed but names, ports and certificates.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { binary, environment, newDatabase, root, run } from "./gatepost.mjs";
import { ask, certified, freePorts, mainConfiguration, nginxProgram, shippedConfiguration } from "./nginx.mjs";

// Not on everybody's path.
const haproxyProgram = existsSync("/usr/sbin/haproxy") ? "/usr/sbin/haproxy" : "haproxy";

// Each takes { directory, port, plainPort, upstreams, certificate }; answers its process. `upstreams` is where Gatepost
// listens: two addresses of two machines for HAProxy, one for the others. nginx takes further `changes` of its file.
export const startProxy = { nginx: startNginx, HAProxy: startHaproxy, Caddy: startCaddy };

async function startNginx({ directory, port, plainPort, upstreams: [upstream], certificate, changes = [] }) {
  const file = join(directory, "nginx.conf");
  const shipped = await shippedConfiguration(port, plainPort, [
    ...changes,
    [/server_name login\.example\.com;/g, `server_name ${certificate.name};`],
    [/\/etc\/ssl\/login\.example\.com\/fullchain\.pem/g, certificate.chain],
    [/\/etc\/ssl\/login\.example\.com\/key\.pem/g, certificate.key],
    [/unix:\/run\/gatepost\/http\.sock/g, upstream],
  ]);
  await writeFile(file, mainConfiguration(directory, "root", shipped));
  run(nginxProgram, ["-t", "-q", "-p", directory, "-c", file]);
  return spawn(nginxProgram, ["-p", directory, "-c", file], { stdio: "inherit" });
}

// The first half of the file, which stands before Gatepost.
async function startHaproxy({ directory, port, upstreams, certificate }) {
  const pem = join(directory, "both.pem");
  await writeFile(pem, (await readFile(certificate.chain, "utf8")) + (await readFile(certificate.key, "utf8")));
  const [shipped] = (await readFile(join(root, "deploy/haproxy.cfg"), "utf8")).split("# GATEPOST_DATABASE_URL");
  const file = join(directory, "haproxy.cfg");
  await writeFile(file, changed(shipped, [
    [/bind :443 ssl crt \S+/, `bind 127.0.0.1:${port} ssl crt ${pem}`],
    [/server login1 \S+/g, `server login1 ${upstreams[0]}`],
    [/server login2 \S+/g, `server login2 ${upstreams[1]}`],
  ]));
  return spawn(haproxyProgram, ["-q", "-db", "-f", file], { stdio: "inherit" });
}

async function startCaddy({ directory, port, plainPort, upstreams: [upstream], certificate }) {
  const page = await readFile(join(root, "docs/operate/proxies/caddy.md"), "utf8");
  const [, shipped] = page.match(/```text\n(.*?)```/s);
  // With a certificate of the operator's, Caddy asks nobody for one.
  const everywhere = `{\n admin off\n auto_https disable_certs\n skip_install_trust\n http_port ${plainPort}\n https_port ${port}\n`;
  const site = changed(shipped, [
    [/^\{\n/, everywhere],
    [/^login\.example\.com \{/m, `${certificate.name} {\n bind 127.0.0.1`],
    [/\btls \{/, `tls ${certificate.chain} ${certificate.key} {`],
    [/unix\/\/run\/gatepost\/http\.sock/, upstream.replace(/^unix:/, "unix/")],
  ]);
  const file = join(directory, "Caddyfile");
  await writeFile(file, site);
  const places = { HOME: directory, XDG_DATA_HOME: directory, XDG_CONFIG_HOME: directory };
  return spawn("caddy", ["run", "--config", file, "--adapter", "caddyfile"], { env: { ...environment(), ...places }, stdio: "ignore" });
}

// Each change is [pattern, text], and must meet something.
function changed(text, changes) {
  return changes.reduce((text, [from, to]) => {
    assert.match(text, from);
    return text.replace(from, to);
  }, text);
}

// A settings file, a migrated database of its own and a registered `document`; answers the file. `more` are further lines.
export async function prepareGatepost(directory, { issuer, database, more = [], document }) {
  const settings = join(directory, "settings");
  const secret = join(directory, "master-secret");
  await writeFile(secret, run(binary, ["secret"]), { mode: 0o600 });
  const lines = [
    `GATEPOST_BASE_URL=${issuer}`,
    `GATEPOST_DATABASE_URL=${await newDatabase(directory, database)}`,
    `GATEPOST_SECRET_FILE=${secret}`,
    "GATEPOST_ADMIN_LISTEN=",
    ...more,
  ];
  await writeFile(settings, lines.join("\n"), { mode: 0o600 });
  const options = { cwd: directory, env: environment() };
  run(binary, ["migrate", "--env-file", settings], options);
  if (document) run(binary, ["apply", "-", "--env-file", settings], { ...options, input: JSON.stringify(document) });
  return settings;
}

// Gatepost behind the proxy of that name, as `name`, with further lines of settings. Answers { issuer, at, port, upstreams,
// certificate, settings, database, gateposts, log, stopProxy, useCertificate, stop }: `at` is for `ask`, `useCertificate`
// starts the proxy again with another certificate, `log.text` is what all Gateposts logged.
export async function startBehind(proxy, directory, document, { name = "localhost", lines = [] } = {}) {
  const [port, plainPort, ...tcpPorts] = await freePorts(4);
  const issuer = `https://${name}:${port}`;
  const certificate = await certified(directory, name);
  const twoMachines = tcpPorts.map((port) => `127.0.0.1:${port}`);
  const upstreams = proxy === "HAProxy" ? twoMachines : [`unix:${join(directory, "http.sock")}`];
  const more = [`GATEPOST_LISTEN=${upstreams[0]}`, "GATEPOST_TRUSTED_PROXIES=127.0.0.1/32", "GATEPOST_ADMIN_API=on", ...lines];
  const database = `behind_${proxy.toLowerCase()}`;
  const settings = await prepareGatepost(directory, { issuer, database, more, document });
  const options = { cwd: directory, env: environment(), stdio: ["ignore", "ignore", "pipe"] };
  const gateposts = upstreams.map((listen) => spawn(binary, ["serve", "--env-file", settings, "--listen", listen], options));
  const log = { text: "" };
  for (const { stderr } of gateposts) stderr.setEncoding("utf8").on("data", (text) => (log.text += text));
  const at = { port, name, ca: certificate.ca };
  let standing;

  const stopProxy = async () => {
    if (standing) await end(standing);
  };

  async function useCertificate(certificate) {
    await stopProxy();
    standing = await startProxy[proxy]({ directory, port, plainPort, upstreams, certificate });
    await untilHealthy(() => ask({ ...at, ca: certificate.ca }, "GET", "/healthz"));
  }

  const stop = async () => {
    await stopProxy();
    await Promise.all(gateposts.map((gatepost) => end(gatepost)));
  };
  try {
    if (proxy === "HAProxy") for (const listen of twoMachines) await untilHealthy(() => fetch(`http://${listen}/healthz`));
    await useCertificate(certificate);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    issuer, at, port, upstreams, certificate, settings, database, gateposts, log, stopProxy, useCertificate, stop,
  };
}

async function untilHealthy(asking) {
  for (let tries = 0; (await asking().catch(() => ({}))).status !== 200; tries += 1) {
    assert.ok(tries < 200, "nothing answers");
    await pause(100);
  }
}

export async function end(child, signal = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}
