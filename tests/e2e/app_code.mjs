// What an authenticator app shows.

import { execFileSync } from "node:child_process";

const STEP_SECONDS = 30;

// The code of so many steps from now. Gatepost takes the step before its own, and the one after. Near the end of a step the one
// before would be two away when it arrives: then this waits for the next.
export function appCode(key, steps) {
  const left = STEP_SECONDS - ((Date.now() / 1000) % STEP_SECONDS);
  if (steps < 0 && left < 5) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, left * 1000 + 50);
  const at = `@${Math.floor(Date.now() / 1000) + STEP_SECONDS * steps}`;
  return execFileSync("oathtool", ["--totp", "--base32", `--now=${at}`, key], { encoding: "utf8" }).trim();
}
