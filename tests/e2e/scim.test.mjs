// Other people's SCIM programs against Gatepost: scim2-tester (PyPI), and UnboundID's client (Maven).

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { newProject, registerAndSettle, removeProject, root, run, startDev } from "./gatepost.mjs";
import { preparePython, python } from "./python.mjs";

const secret = "a-secret-of-the-program-for-people";
const registration = {
  resources: [{ name: "urn:gatepost:scim" }],
  resource_scopes: ["scim.read", "scim.write", "scim.password"].map((name) => ({ name, resources: ["urn:gatepost:scim"] })),
  clients: [
    {
      client_id: "hr",
      grant_types: ["client_credentials"],
      response_types: [],
      scope: "scim.read scim.write scim.password",
      secrets: [{ value: secret }],
    },
  ],
};

describe("SCIM", { timeout: 500_000 }, () => {
  let directory, dev, base, token;

  before(async () => {
    await preparePython();
    directory = await newProject();
    dev = await startDev(directory, [], { GATEPOST_SCIM: "on" });
    await registerAndSettle(directory, registration);
    base = new URL("scim/v2", dev.provider.endsWith("/") ? dev.provider : `${dev.provider}/`).href;
    const answer = await fetch(`${dev.provider}/connect/token`, {
      method: "POST",
      headers: { Authorization: `Basic ${Buffer.from(`hr:${secret}`).toString("base64")}` },
      body: new URLSearchParams({ grant_type: "client_credentials", scope: "scim.read scim.write scim.password" }),
    });
    ({ access_token: token } = await answer.json());
  });

  after(async () => {
    await dev?.stop();
    await removeProject(directory);
  });

  test("scim2-tester finds no error", () => {
    const output = run(python, [join(root, "tests/e2e/scim/tester.py"), base, token]);
    const [, checked] = output.match(/^checked (\d+)\n$/) ?? [];
    assert.ok(Number(checked) > 70, output);
  });

  test("a client in Java adds, finds, changes, deactivates and removes somebody", () => {
    const folder = join(root, "tests/e2e/scim/java");
    const target = `-Dtarget=${join(directory, "java")}`;
    const output = run("mvn", ["-q", "compile", "exec:java", target, `-Dexec.args=${base} ${token}`], { cwd: folder });
    assert.match(output, /done/);
  });
});
