// A real nginx with the shipped configuration, certificates for it, and what TLS it takes.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { Agent, request as httpsRequest } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { root, run } from "./gatepost.mjs";

// Not on everybody's path.
export const nginxProgram = existsSync("/usr/sbin/nginx") ? "/usr/sbin/nginx" : "nginx";

// All of them are open at once, so that no two are the same.
export async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

// The shipped file, listening on this machine's `port` and, without TLS, `plainPort`; and with further `changes`, each
// [pattern, text], every one of which must meet something.
export async function shippedConfiguration(port, plainPort, changes) {
  const shipped = await readFile(join(root, "deploy/nginx.conf"), "utf8");
  const ports = [
    [/listen 80;\n\s*listen \[::\]:80;/g, `listen 127.0.0.1:${plainPort};`],
    [/access_log \S+ gatepost;/, "access_log off;"],
    [/listen 443 ssl http2;\n\s*listen \[::\]:443 ssl http2;/g, `listen 127.0.0.1:${port} ssl http2;`],
  ];
  return [...ports, ...changes].reduce((text, [from, to]) => {
    assert.match(text, from);
    return text.replace(from, to);
  }, shipped);
}

// What a distribution brings: the outermost file, with `servers` inside its `http` block.
export function mainConfiguration(directory, user, servers) {
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  return [
    "daemon off;",
    "worker_processes auto;",
    // Only root's nginx can have workers of another user.
    process.getuid() === 0 ? `user ${user};` : "",
    `pid ${join(directory, "nginx.pid")};`,
    // As deploy/nginx.conf says.
    "worker_rlimit_nofile 16384;",
    "events { worker_connections 16384; }",
    "http {",
    `error_log ${join(directory, "nginx-error.log")};`,
    "access_log off;",
    ...places.map((place) => `${place}_temp_path ${join(directory, place)};`),
    servers,
    "}",
  ].join("\n");
}

// A certificate for a name, signed by a CA of its own: `ca` in PEM, and where the files are.
export async function certified(directory, name) {
  const at = (file) => join(directory, file);
  const openssl = (...args) => run("openssl", args, { stdio: "pipe" });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const authority = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"];
  openssl("req", "-x509", ...key, "-days", "2", "-subj", "/CN=A CA of the tests", "-config", "/dev/null", ...authority,
    "-keyout", at("ca-key.pem"), "-out", at("ca.pem"));
  openssl("req", ...key, "-subj", `/CN=${name}`, "-config", "/dev/null", "-addext", `subjectAltName=DNS:${name}`,
    "-keyout", at("key.pem"), "-out", at("request.pem"));
  openssl("x509", "-req", "-in", at("request.pem"), "-copy_extensions", "copy", "-days", "2", "-CA", at("ca.pem"),
    "-CAkey", at("ca-key.pem"), "-CAcreateserial", "-out", at("fullchain.pem"));
  return { ca: await readFile(at("ca.pem"), "utf8"), caFile: at("ca.pem"), chain: at("fullchain.pem"), key: at("key.pem") };
}

// One request over a connection of its own to the port `at.port` of this machine, for the host `at.name`, whose
// certificate `at.ca` must have signed.
export function ask(at, method, path, headers = {}, body = undefined) {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ ca: at.ca, maxHeaderSize: 65_536 });
    const options = { method, agent, host: "127.0.0.1", port: at.port, path, servername: at.name, headers: { host: at.name, ...headers } };
    const asked = httpsRequest(options, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part) => (text += part));
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

// Sends bytes as they are; answers what came back until the connection ended.
export function send(port, bytes) {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => socket.write(bytes));
    socket.setEncoding("latin1").on("data", (part) => (text += part));
    socket.on("error", () => resolve(text));
    socket.on("close", () => resolve(text));
    setTimeout(() => socket.destroy(), 3_000).unref();
  });
}

// Of TLS 1.2, where the certificate has an elliptic key.
export async function takesGoodSuitesAlone(port) {
  const taken = (ciphers) =>
    new Promise((resolve) => {
      const options = { host: "127.0.0.1", port, rejectUnauthorized: false, maxVersion: "TLSv1.2", ciphers };
      const socket = connect(options, () => resolve(socket.end().getCipher().name));
      socket.on("error", () => resolve("none"));
    });
  for (const suite of ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"]) {
    assert.equal(await taken(suite), suite);
  }
  for (const suite of ["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA"]) {
    assert.equal(await taken(suite), "none", suite);
  }
}
