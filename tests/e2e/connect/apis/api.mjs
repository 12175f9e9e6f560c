import { createServer } from "node:http";
import { createRemoteJWKSet, jwtVerify } from "jose";

const issuer = process.env.ISSUER ?? "http://localhost:8080";
const metadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
const keys = createRemoteJWKSet(new URL(metadata.jwks_uri)); // fetched again when a new key signs

async function scopesOf(request) {
  const [, token] = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "") ?? [];
  if (!token) throw Object.assign(new Error("no token"), { challenge: "Bearer" });
  const { payload } = await jwtVerify(token, keys, { issuer, audience: "https://api.example.com", typ: "at+jwt" });
  return [payload.scope].flat().join(" ").split(" "); // an array, by GATEPOST_SCOPE_CLAIM
}

createServer(async (request, response) => {
  try {
    const scopes = await scopesOf(request);
    if (!scopes.includes("orders.read")) {
      const challenge = 'Bearer error="insufficient_scope", scope="orders.read"';
      return response.writeHead(403, { "WWW-Authenticate": challenge }).end();
    }
    response.setHeader("Content-Type", "application/json").end('{"orders":["a teapot"]}');
  } catch (error) {
    const challenge = error.challenge ?? 'Bearer error="invalid_token"';
    response.writeHead(401, { "WWW-Authenticate": challenge }).end();
  }
}).listen(process.env.PORT ?? 3001, "localhost");
