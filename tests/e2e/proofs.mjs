// Proofs of a key by hand (RFC 9449), for what no library would send.

import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

// Answers a function: claims of a proof => the proof, by a key of its own.
export function newProver() {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const { kty, crv, x, y } = publicKey.export({ format: "jwk" });
  return (claims) => {
    const all = { jti: randomUUID(), iat: Math.floor(Date.now() / 1000), ...claims };
    const input = `${encoded({ typ: "dpop+jwt", alg: "ES256", jwk: { kty, crv, x, y } })}.${encoded(all)}`;
    const signature = sign("sha256", Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" });
    return `${input}.${signature.toString("base64url")}`;
  };
}

// The two parts of a JWT that can be read.
export const headerOf = (jwt) => JSON.parse(Buffer.from(jwt.split(".")[0], "base64url"));
export const claimsOf = (jwt) => JSON.parse(Buffer.from(jwt.split(".")[1], "base64url"));

export function thumbprint({ kty, crv, x, y }) {
  const members = y === undefined ? { crv, kty, x } : { crv, kty, x, y };
  return createHash("sha256").update(JSON.stringify(members)).digest("base64url");
}
