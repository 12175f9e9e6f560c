// Debian's own Postfix, with a user, STARTTLS and a CA of its own, that keeps every letter.

import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { run } from "./gatepost.mjs";
import { freePorts } from "./nginx.mjs";

// Postfix begins as root.
const asRoot = (command, args, options) =>
  process.getuid() === 0 ? run(command, args, options) : run("sudo", ["-n", command, ...args], options);

const password = "canary-of-the-postbox";

// Answers { settings, letter, stop }: the settings of a Gatepost that sends by it, and the letter of a number, from 1.
export async function startPostfix(domain) {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-postfix-"));
  await chmod(folder, 0o755);
  const [port] = await freePorts(1);
  for (const part of ["queue", "data", "mail", "sasl"]) await mkdir(join(folder, part));
  makeKeys(folder);
  await writeFile(join(folder, "main.cf"), mainConfiguration(folder, domain));
  await writeFile(join(folder, "master.cf"), masterConfiguration(port));
  const sasl = ["pwcheck_method: auxprop", "auxprop_plugin: sasldb", "mech_list: PLAIN LOGIN", `sasldb_path: ${folder}/sasl/sasldb2`];
  await writeFile(join(folder, "sasl/smtpd.conf"), `${sasl.join("\n")}\n`);
  run("/usr/sbin/saslpasswd2", ["-c", "-p", "-f", join(folder, "sasl/sasldb2"), "-u", "localhost", "postbox"], { input: password });
  await writeFile(join(folder, "password"), password, { mode: 0o600 });
  asRoot("chown", ["-R", "postfix", ...["data", "mail", "sasl"].map((part) => join(folder, part))]);
  asRoot("chown", ["root", join(folder, "queue")]);
  asRoot("/usr/sbin/postfix", ["-c", folder, "start"]);
  const letters = [];
  return {
    settings: {
      GATEPOST_SMTP_URL: `smtp://postbox%40localhost@localhost:${port}`,
      GATEPOST_SMTP_PASSWORD_FILE: join(folder, "password"),
      GATEPOST_MAIL_FROM: `login@${domain}`,
      GATEPOST_CA_FILE: join(folder, "ca.pem"),
    },
    async letter(number) {
      const deadline = Date.now() + 20_000;
      while (letters.length < number) {
        assert.ok(Date.now() < deadline, `letter ${number} does not come:\n${await log(folder)}`);
        await pause(50);
        for (const name of await arrived(folder)) {
          if (letters.some((letter) => letter.name === name)) continue;
          letters.push({ name, ...read(await readFile(join(folder, "mail/inbox/new", name), "utf8")) });
        }
      }
      return letters[number - 1];
    },
    async stop() {
      asRoot("/usr/sbin/postfix", ["-c", folder, "stop"]);
      asRoot("rm", ["-rf", folder]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const log = (folder) => readFile(join(folder, "log"), "utf8").catch(() => "");

async function arrived(folder) {
  const names = await readdir(join(folder, "mail/inbox/new")).catch(() => []);
  return names.sort();
}

// Subject, text and document of a letter, its recipient, and the first link.
function read(raw) {
  const { head, field, body } = entity(raw.replaceAll("\r\n", "\n"));
  const boundary = field("Content-Type").match(/^multipart\/alternative; boundary="(\w+)"$/)[1];
  const [, plain, document, end] = `\n${body}`.split(`\n--${boundary}`);
  assert.match(end, /^--\n/);
  const text = content(plain.slice(1));
  return { to: field("To"), subject: unwrapped(field("Subject")), text, html: content(document.slice(1)), link: text.match(/^http\S+/m)?.[0], head };
}

// A letter, or a part of one.
function entity(text) {
  const [head, body] = text.split(/\n\n(.*)/s);
  const field = (name) => head.replaceAll("\n ", " ").match(new RegExp(`^${name}: (.*)$`, "m"))[1];
  return { head, field, body };
}

function content(part) {
  const { field, body } = entity(part);
  return field("Content-Transfer-Encoding") === "base64" ? Buffer.from(body, "base64").toString() : body;
}

// A field without encoded words, or of encoded words alone.
function unwrapped(field) {
  if (!field.startsWith("=?")) return field;
  const words = field.split(" ").map((word) => Buffer.from(word.slice("=?utf-8?B?".length, -2), "base64").toString());
  return words.join("");
}

function makeKeys(folder) {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const made = (args) => run("openssl", ["req", "-x509", ...key, ...args], { cwd: folder });
  made(["-subj", "/CN=Postbox CA", "-keyout", "ca.key", "-out", "ca.pem"]);
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=CA:FALSE"];
  made([...names, "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "own.key", "-out", "own.pem"]);
}

function mainConfiguration(folder, domain) {
  return `
compatibility_level = 3.6
queue_directory = ${folder}/queue
data_directory = ${folder}/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
maillog_file = ${folder}/log
maillog_file_prefixes = ${folder}
myhostname = localhost
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks =
mydestination =
alias_maps =
virtual_mailbox_domains = ${domain}
virtual_mailbox_base = ${folder}/mail
virtual_mailbox_maps = static:inbox/
virtual_minimum_uid = 1
virtual_uid_maps = static:${run("id", ["-u", "postfix"]).trim()}
virtual_gid_maps = static:${run("id", ["-g", "postfix"]).trim()}
smtpd_tls_cert_file = ${folder}/own.pem
smtpd_tls_key_file = ${folder}/own.key
smtpd_tls_security_level = encrypt
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = cyrus
smtpd_sasl_path = smtpd
cyrus_sasl_config_path = ${folder}/sasl
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = permit_sasl_authenticated, reject
`;
}

function masterConfiguration(port) {
  const unix = ["cleanup unix n - n - 0 cleanup", "qmgr unix n - n 300 1 qmgr", "tlsmgr unix - - n 1000? 1 tlsmgr"];
  const limits = { bounce: 0, verify: 1, anvil: 1 };
  for (const name of ["rewrite", "bounce", "defer", "trace", "verify", "proxymap", "smtp", "error", "retry", "discard", "virtual", "anvil"]) {
    const program = { rewrite: "trivial-rewrite", defer: "bounce", trace: "bounce", retry: "error" }[name] ?? name;
    unix.push(`${name} unix - ${name === "virtual" ? "n" : "-"} n - ${limits[program] ?? "-"} ${program}`);
  }
  unix.push("postlog unix-dgram n - n - 1 postlogd");
  return `127.0.0.1:${port} inet n - n - - smtpd\n${unix.join("\n")}\n`;
}
