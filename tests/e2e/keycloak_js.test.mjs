// keycloak-js (npm) with `oidcProvider`, in a browser, for a page of another origin than the provider: what move/keycloak.md
// says of it. It sends each token request with credentials, so the browser itself decides whether it may read the answer.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { alice, decide, enterPassword } from "./browser.mjs";
import { registerAndSettle } from "./gatepost.mjs";
import { dev, directory, letSomebodyIn, setScene, someone } from "./scene.mjs";

const library = await readFile(new URL("node_modules/keycloak-js/lib/keycloak.js", import.meta.url));
const page = '<!doctype html><title>Shop</title><link rel="icon" href="data:,"><h1>Shop</h1>';

describe("a page with keycloak-js", { timeout: 200_000 }, () => {
  let origin, server;

  setScene({ prepare, clear: () => server?.close() });
  letSomebodyIn();

  async function prepare() {
    server = createServer((request, response) => {
      const isScript = request.url === "/keycloak.js";
      response.setHeader("Content-Type", `text/${isScript ? "javascript" : "html"}; charset=utf-8`);
      response.end(isScript ? library : page);
    });
    // The same site as the provider, so that the browser has cookies to send.
    server.listen(0, "localhost");
    await once(server, "listening");
    origin = `http://localhost:${server.address().port}`;
    await registerAndSettle(directory, {
      clients: [
        {
          client_id: "shop",
          client_name: "Shop",
          token_endpoint_auth_method: "none",
          redirect_uris: [`${origin}/`],
          post_logout_redirect_uris: [`${origin}/`],
          allowed_cors_origins: [origin],
          grant_types: ["authorization_code"],
          response_types: ["code"],
          scope: "openid profile",
        },
      ],
    });
  }

  // Begins the library anew in the page, as each load of it does.
  function begin() {
    return someone.page.evaluate(async (provider) => {
      const { default: Keycloak } = await import("/keycloak.js");
      globalThis.keycloak = new Keycloak({ oidcProvider: provider, clientId: "shop" });
      const options = { onLoad: "login-required", pkceMethod: "S256", scope: "openid profile", checkLoginIframe: false };
      const isIn = await keycloak.init({ ...options, redirectUri: `${location.origin}/` });
      return { isIn, claims: keycloak.idTokenParsed };
    }, dev.provider);
  }

  test("signs somebody in", async () => {
    const tokenRequests = [];
    someone.page.on("request", (request) => {
      if (request.url().endsWith("/connect/token") && request.method() === "POST") tokenRequests.push(request);
    });
    await someone.page.goto(`${origin}/`);
    await begin().catch((error) => assert.match(String(error), /navigation|context was destroyed/i));
    await enterPassword(someone.page, alice);
    await decide(someone.page, "allow");
    await someone.page.waitForURL(`${origin}/**`);
    const { isIn, claims } = await begin();
    assert.equal(isIn, true);
    assert.equal(claims.iss, dev.provider);
    assert.equal(tokenRequests.length, 1);
    const { cookie } = await tokenRequests[0].allHeaders();
    assert.match(cookie, /gatepost/, "it sends the cookies that the browser has");
  });
});
