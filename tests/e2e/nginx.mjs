// A real nginx with the shipped configuration, certificates for it, and what TLS it takes.

import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { Agent, request as httpsRequest } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { connect, getCiphers } from "node:tls";
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

// A certificate for a name and with a key of that kind, signed by a CA of its own: `ca` in PEM, and where the files are.
export async function certified(directory, name, kind = "ECDSA") {
  const at = (file) => join(directory, file);
  const openssl = (...args) => run("openssl", args, { stdio: "pipe" });
  const kinds = { ECDSA: ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"], RSA: ["rsa:2048"] };
  const key = ["-newkey", ...kinds[kind], "-nodes"];
  const authority = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"];
  openssl("req", "-x509", ...key, "-days", "2", "-subj", "/CN=A CA of the tests", "-config", "/dev/null", ...authority,
    "-keyout", at("ca-key.pem"), "-out", at("ca.pem"));
  openssl("req", ...key, "-subj", `/CN=${name}`, "-config", "/dev/null", "-addext", `subjectAltName=DNS:${name}`,
    "-keyout", at("key.pem"), "-out", at("request.pem"));
  openssl("x509", "-req", "-in", at("request.pem"), "-copy_extensions", "copy", "-days", "2", "-CA", at("ca.pem"),
    "-CAkey", at("ca-key.pem"), "-CAcreateserial", "-out", at("fullchain.pem"));
  return { name, ca: await readFile(at("ca.pem"), "utf8"), caFile: at("ca.pem"), chain: at("fullchain.pem"), key: at("key.pem") };
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
export function send(port, bytes, patience = 3_000) {
  return new Promise((resolve) => {
    let text = "";
    const socket = connect({ host: "127.0.0.1", port, servername: "localhost", rejectUnauthorized: false }, () => socket.write(bytes));
    socket.setEncoding("latin1").on("data", (part) => (text += part));
    socket.on("error", () => resolve(text));
    socket.on("close", () => resolve(text));
    setTimeout(() => socket.destroy(), patience).unref();
  });
}

// `fetch` for the port `at.port`, as `ask` goes there: the CA of the tests is on no list of a library's.
export function fetchFrom(at) {
  return async (address, options) => {
    const request = new Request(address, options);
    const { pathname, search } = new URL(request.url);
    const body = options?.body && (await request.text());
    const sent = { ...Object.fromEntries(request.headers), host: `${at.name}:${at.port}` };
    const answer = await ask(at, request.method, pathname + search, sent, body);
    const headers = new Headers();
    for (const [name, value] of Object.entries(answer.headers)) [value].flat().forEach((one) => headers.append(name, one));
    return new Response(answer.text || null, { status: answer.status, headers });
  };
}

// The suites of TLS 1.2 that RFC 9325 section 4.2 recommends, and so FAPI 2.0 allows (section 5.2.1).
const good = ["AES128-GCM-SHA256", "AES256-GCM-SHA384"];

// Offers the server each suite of TLS 1.2 by itself, and the versions before. `key` is of the certificate: ECDSA or RSA.
export async function takesGoodSuitesAlone(port, key = "ECDSA") {
  // At this level OpenSSL offers all that it knows.
  const offering = (ciphers, maxVersion) => handshake(port, { ciphers: `${ciphers}:@SECLEVEL=0`, minVersion: "TLSv1", maxVersion });
  const suites = getCiphers().filter((name) => !name.startsWith("tls_")).map((name) => name.toUpperCase());
  assert.ok(suites.includes(`ECDHE-${key}-CHACHA20-POLY1305`), "the library of these tests offers what must be refused");
  const taken = [];
  for (const suite of suites) {
    if ((await offering(suite, "TLSv1.2")).suite === suite) taken.push(suite);
  }
  assert.deepEqual(taken.sort(), good.map((suite) => `ECDHE-${key}-${suite}`));
  for (const version of ["TLSv1", "TLSv1.1"]) assert.equal((await offering("ALL", version)).version, "none", version);
  assert.equal((await offering("ALL", "TLSv1.2")).version, "TLSv1.2");
  assert.equal((await offering("ALL", "TLSv1.3")).version, "TLSv1.3");
}

// What client and server come to, or "none".
export function handshake(port, options) {
  return new Promise((resolve) => {
    const refused = () => resolve({ version: "none", suite: "none" });
    let socket;
    try {
      socket = connect({ host: "127.0.0.1", port, servername: "localhost", rejectUnauthorized: false, ...options }, () => {
        resolve({ version: socket.getProtocol(), suite: socket.getCipher().name });
        socket.destroy();
      });
    } catch {
      // Suites that need more than a name are not offered at all.
      return refused();
    }
    socket.on("error", refused);
  });
}
