// A Python environment with the libraries of requirements.txt.

import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./gatepost.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const environment = join(here, ".venv");
export const python = join(environment, "bin/python");

// Made once, and anew when other versions are asked for.
export async function preparePython() {
  const requirements = join(here, "requirements.txt");
  const made = join(environment, "made-from.txt");
  const wanted = await readFile(requirements, "utf8");
  if (existsSync(made) && (await readFile(made, "utf8")) === wanted) return;
  run("python3", ["-m", "venv", "--clear", environment]);
  run(join(environment, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "-r", requirements]);
  await writeFile(made, wanted);
}
