// The manifests of deploy/ and of docs/connect: what Kubernetes would take, by its own schemas, and which settings they give.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { root, run } from "./gatepost.mjs";
import { preparePython, python } from "./python.mjs";

const validated = `
import sys, yaml, kubernetes_validate
manifests = list(yaml.safe_load_all(sys.stdin))
for manifest in manifests:
    kubernetes_validate.validate(manifest, "1.34", strict=True)
print(" ".join(manifest["kind"] for manifest in manifests))`;

const kinds = (manifests) => run(python, ["-c", validated], { input: manifests }).trim();

describe("the manifests", { timeout: 120_000 }, () => {
  before(preparePython);

  test("Kubernetes takes what Gatepost runs by there, and no member that it does not know", async () => {
    const manifests = await readFile(join(root, "deploy/kubernetes.yaml"), "utf8");
    assert.equal(kinds(manifests), "Deployment ConfigMap Service PodDisruptionBudget");
    assert.throws(() => kinds(manifests.replace("replicas:", "replica:")), /replica/);
    assert.doesNotMatch(manifests, /^ *#? *GATEPOST_SECRET:|postgres:\/\//m);
  });

  test("Kubernetes takes what people may do there who sign in by Gatepost", async () => {
    const page = await readFile(join(root, "docs/connect/kubernetes.md"), "utf8");
    const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text]) => text);
    assert.equal(kinds(blocks.find((text) => text.includes("ClusterRoleBinding"))), "ClusterRoleBinding");
  });

  test("every setting in a manifest is one that there is", async () => {
    const known = await readFile(join(root, "docs/reference/settings.md"), "utf8");
    for (const file of ["kubernetes.yaml", "compose.yaml", "demo.yaml"]) {
      const settings = (await readFile(join(root, "deploy", file), "utf8")).match(/GATEPOST_\w+/g);
      assert.ok(settings.length > 2, file);
      for (const setting of settings) assert.ok(known.includes(`| \`${setting}\` |`), `${file}: ${setting}`);
    }
  });

  test("the demo in containers starts one thing after the other, for this machine alone", async () => {
    const program = "import json, sys, yaml; print(json.dumps(yaml.safe_load(sys.stdin)))";
    const demo = await readFile(join(root, "deploy/demo.yaml"), "utf8");
    const { services, configs } = JSON.parse(run(python, ["-c", program], { input: demo }));
    assert.deepEqual(services.gatepost.ports, ["127.0.0.1:8080:8080"]);
    const order = ["gatepost", "register", "migrate"].map((name) => Object.keys(services[name].depends_on));
    assert.deepEqual(order, [["register"], ["migrate"], ["secret", "postgres"]]);
    JSON.parse(await readFile(join(root, "deploy", configs.demo.file), "utf8"));
  });
});
