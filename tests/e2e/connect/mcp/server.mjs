import { createServer } from "node:http";
import { createRemoteJWKSet, jwtVerify } from "jose";

const issuer = process.env.ISSUER ?? "http://localhost:8080";
const resource = process.env.RESOURCE ?? "http://localhost:3002/mcp"; // where clients find this server
const metadataAt = new URL("/.well-known/oauth-protected-resource" + new URL(resource).pathname.replace(/^\/$/, ""), resource); // RFC 9728 §3.1
const { jwks_uri } = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const keys = createRemoteJWKSet(new URL(jwks_uri));

function send(response, status, body, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
}

createServer(async (request, response) => {
  if (request.url === metadataAt.pathname) {
    const metadata = { resource, authorization_servers: [issuer], scopes_supported: ["tools.call"] };
    return send(response, 200, metadata); // RFC 9728
  }
  const [, token] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "") ?? [];
  let scopes;
  try {
    const { payload } = await jwtVerify(token ?? "", keys, { issuer, audience: resource, typ: "at+jwt" });
    scopes = [payload.scope].flat().join(" ").split(" "); // an array, by GATEPOST_SCOPE_CLAIM
  } catch {
    const error = token ? 'error="invalid_token", ' : ""; // only of a token that was sent (RFC 6750 §3.1)
    const challenge = `Bearer ${error}resource_metadata="${metadataAt}", scope="tools.call"`;
    return send(response, 401, {}, { "WWW-Authenticate": challenge });
  }
  if (!scopes.includes("tools.call")) {
    const challenge = `Bearer error="insufficient_scope", scope="tools.call", resource_metadata="${metadataAt}"`;
    return send(response, 403, { error: "insufficient_scope" }, { "WWW-Authenticate": challenge });
  }
  // Here your MCP library takes over.
  send(response, 200, { jsonrpc: "2.0", id: 1, result: { tools: [] } });
}).listen(process.env.PORT ?? new URL(resource).port, "localhost"); // PORT: behind a proxy
