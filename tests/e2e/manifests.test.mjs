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

const asJson = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
const parsed = (yaml) => JSON.parse(run(python, ["-c", asJson], { input: yaml }));
const shipped = (file) => readFile(join(root, "deploy", file), "utf8");

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
    for (const file of ["kubernetes.yaml", "helm/values.yaml", "compose.yaml", "demo.yaml"]) {
      const settings = (await readFile(join(root, "deploy", file), "utf8")).match(/GATEPOST_\w+/g);
      assert.ok(settings.length > 2, file);
      for (const setting of settings) assert.ok(known.includes(`| \`${setting}\` |`), `${file}: ${setting}`);
    }
  });

  test("the demo in containers starts one thing after the other, for this machine alone", async () => {
    const [{ services, configs }] = parsed(await shipped("demo.yaml"));
    assert.deepEqual(services.gatepost.ports, ["127.0.0.1:8080:8080"]);
    const order = ["gatepost", "register", "migrate"].map((name) => Object.keys(services[name].depends_on));
    assert.deepEqual(order, [["register"], ["migrate"], ["secret", "postgres"]]);
    JSON.parse(await readFile(join(root, "deploy", configs.demo.file), "utf8"));
  });

  // Helm itself reads the chart in `make manifests`. Here its three forms of an expression are enough.
  test("the chart makes what the manifest has, and an annotation by which new settings make new pods", async () => {
    const values = parsed(await shipped("helm/values.yaml"))[0];
    const made = (await shipped("helm/templates/gatepost.yaml")).replace(
      /\{\{ (toJson )?\.(Release\.Name|Values\.\w+)( \| sha256sum)? \}\}/g,
      (_, asText, name, isSummed) => {
        if (isSummed) return "summed";
        const value = name === "Release.Name" ? "gatepost" : values[name.slice("Values.".length)];
        return asText ? JSON.stringify(value) : value;
      },
    );
    assert.ok(values.image.endsWith(`:${parsed(await shipped("helm/Chart.yaml"))[0].version}`));
    assert.doesNotMatch(made, /\{\{/);
    const manifests = parsed(made);
    assert.deepEqual(manifests[0].spec.template.metadata.annotations, { settings: "summed" });
    delete manifests[0].spec.template.metadata.annotations;
    assert.deepEqual(manifests, parsed(await shipped("kubernetes.yaml")));
    // Else the service's name makes variables that are no settings.
    assert.equal(manifests[0].spec.template.spec.enableServiceLinks, false);
  });

  test("alerts and board ask for metrics and labels that there are", async () => {
    const reference = await readFile(join(root, "docs/reference/metrics.md"), "utf8");
    const known = new Map();
    for (const [, name, labels] of reference.matchAll(/^\| `(\w+)(?:\{([\w,]+)\})?` \|/gm)) {
      known.set(name, (labels ?? "").split(",").filter(Boolean));
    }
    const alerts = parsed(await shipped("prometheus.yaml"))[0].groups.flatMap(({ rules }) => rules);
    const { panels } = JSON.parse(await shipped("grafana.json"));
    const queries = [...alerts.map(({ expr }) => expr), ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))];
    assert.ok(alerts.length > 10 && panels.length > 10);
    for (const query of queries) {
      const named = [...query.matchAll(/(gatepost_\w+|process_\w+)(?:\{(\w+)[=~]+"[^"]*"\})?/g)];
      assert.ok(named.length > 0, query);
      const labels = new Set(["instance", "job", "le"]);
      for (const [, name] of named) {
        const metric = name.replace(/_bucket$/, "");
        assert.ok(known.has(metric), `${metric}: ${query}`);
        for (const label of known.get(metric)) labels.add(label);
      }
      const asked = [...named.map(([, , label]) => label), ...[...query.matchAll(/by \(([^)]*)\)/g)].flatMap(([, by]) => by.split(", "))];
      for (const label of asked.filter(Boolean)) assert.ok(labels.has(label), `${label}: ${query}`);
    }
    // What the page holds worth an alarm at once has one.
    for (const metric of ["gatepost_ready", "gatepost_degraded", "gatepost_registry_age_seconds", "gatepost_clock_skew_seconds"]) {
      assert.ok(alerts.some(({ expr }) => expr.includes(metric)), metric);
    }
  });
});
