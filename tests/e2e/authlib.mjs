// Authlib (PyPI) in a Python process of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { python } from "./python.mjs";

const here = dirname(fileURLToPath(import.meta.url));

// Answers a function that has the library do something: (name, arguments) => its answer. `more` is for its environment.
export function startAuthlib(more = {}) {
  const options = { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...more } };
  const library = spawn(python, ["-W", "ignore", join(here, "authlib_client.py")], options);
  const lines = createInterface({ input: library.stdout })[Symbol.asyncIterator]();
  const ask = async (name, wish = {}) => {
    library.stdin.write(`${JSON.stringify({ do: name, ...wish })}\n`);
    const { value, done } = await lines.next();
    assert.ok(!done, "the Python process has ended");
    const answer = JSON.parse(value);
    assert.equal(answer.exception, undefined);
    return answer;
  };
  ask.end = async () => {
    library.stdin.end();
    if (library.exitCode === null) await once(library, "exit");
  };
  return ask;
}
