// Starts `gatepost-dev` as a newcomer does, in an empty directory and on free ports, and ends it again.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const binary =
  process.env.GATEPOST_BINARY ?? join(resolve(root, process.env.CARGO_TARGET_DIR ?? "target"), "debug/gatepost");
const devBinary = `${binary}-dev`;

const startPatience = 90_000;

// Whatever holds a test file up, it ends.
const wholePatience = 600_000;
setTimeout(() => {
  console.error("the browser tests hang");
  process.exit(1);
}, wholePatience).unref();

// Settings of the person who runs the tests must not decide them.
export function environment() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("GATEPOST_")));
}

export async function newProject() {
  const directory = await mkdtemp(join(tmpdir(), "gatepost-e2e-"));
  // For root, Postgres runs as another user, who must be able to pass through.
  await chmod(directory, 0o711);
  return directory;
}

// Answers { demo, provider, output, stop, kill, directory }. `settings` are the provider's, by their variables' names.
export async function startDev(directory, extra = [], settings = {}, ports = ["--listen", "0", "--demo-listen", "0"]) {
  if (!existsSync(devBinary)) throw new Error(`${devBinary} is missing: cargo build`);
  const child = spawn(devBinary, [...ports, ...extra], {
    cwd: directory,
    env: { ...environment(), ...settings },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  const running = { directory, output: "", child };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text) => (running.output += text));
  }
  await announced(running, exited);
  running.demo = running.output.match(/Open (http:\S+) and sign in/)[1];
  running.provider = running.output.match(/Provider +(http:\S+)/)[1];
  running.stop = async () => {
    child.kill("SIGINT");
    const [code] = await exited;
    return code;
  };
  running.kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return running;
}

async function announced(running, exited) {
  const deadline = Date.now() + startPatience;
  while (!running.output.includes("Ctrl-C ends everything")) {
    const ended = await Promise.race([exited, new Promise((done) => setTimeout(done, 50))]);
    if (ended) throw new Error(`gatepost-dev ended with ${ended[0]}:\n${running.output}`);
    if (Date.now() > deadline) {
      running.child.kill("SIGINT");
      throw new Error(`gatepost-dev did not get ready:\n${running.output}`);
    }
  }
}

export async function removeProject(directory) {
  await rm(directory, { recursive: true, force: true });
}

// Registers what a document says, as the operator of the running server would.
export async function register(directory, document) {
  await operate(directory, ["apply", "-"], JSON.stringify(document));
}

// Runs a command as the operator of the running server would.
export async function operate(directory, args, input = "") {
  return run(binary, args, { cwd: directory, env: await servingEnvironment(directory), input });
}

// Runs statements in the database of the running server, as its role.
export async function runSql(directory, sql) {
  const { GATEPOST_DATABASE_URL: address } = await servingEnvironment(directory);
  return run("psql", ["-q", "-v", "ON_ERROR_STOP=1", "-d", address], { input: sql });
}

async function servingEnvironment(directory) {
  const pid = await pidIn(join(directory, ".gatepost/serve.pid"));
  const settings = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0").filter(Boolean);
  return Object.fromEntries(settings.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

// The same, and waits until that is in force: a second after the commit, or what a busy machine makes of it. That a
// client is known says nothing of what came with it.
export async function registerAndSettle(directory, document) {
  await register(directory, document);
  await pause(3_000);
}

// Runs a command to its end; answers what it printed.
export function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: "utf8", env: environment(), ...options });
  if (error || status !== 0) throw new Error(`${command} ${args.join(" ")}: ${error ?? ""}\n${stdout ?? ""}${stderr ?? ""}`);
  return stdout;
}

// The process number in the first line of a file.
export async function pidIn(pidFile) {
  const text = await readFile(pidFile, "utf8");
  return Number(text.split("\n")[0]);
}

// Whether a process runs. One that has ended but was not yet asked about by its parent does not.
export function runs(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !stat.slice(stat.lastIndexOf(")")).startsWith(") Z");
  } catch {
    return false;
  }
}

// The address of a new empty database in the private Postgres that `gatepost-dev` runs.
export async function newDatabase(directory, name) {
  const pid = await pidIn(join(directory, ".gatepost/serve.pid"));
  const settings = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0");
  const present = settings.find((line) => line.startsWith("GATEPOST_DATABASE_URL=")).slice("GATEPOST_DATABASE_URL=".length);
  run("psql", ["-q", "-d", present, "-c", `CREATE DATABASE ${name}`]);
  const address = present.replace(/dbname='?\w+'?/, `dbname=${name}`);
  if (address === present) throw new Error("the address names no database");
  return address;
}
