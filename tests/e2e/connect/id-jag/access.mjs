import { CrossAppAccessProvider, discoverAndRequestJwtAuthGrant } from "@modelcontextprotocol/client";

const { ISSUER, CHAT_ISSUER, WIKI_SECRET, CHAT_SECRET } = process.env;

// An `authProvider` for StreamableHTTPClientTransport. `idToken` answers the person's ID token, and refreshes it where it is over.
export function accessFor(idToken) {
  return new CrossAppAccessProvider({
    clientId: "f53f", // what the server there calls this client
    clientSecret: CHAT_SECRET,
    expectedIssuer: CHAT_ISSUER ?? "https://auth.chat.example",
    assertion: async ({ authorizationServerUrl, resourceUrl, scope, fetchFn }) => {
      const granted = await discoverAndRequestJwtAuthGrant({
        idpUrl: ISSUER ?? "https://login.example.com", // where people sign in
        clientId: "wiki",
        clientSecret: WIKI_SECRET,
        audience: authorizationServerUrl,
        resource: resourceUrl,
        idToken: await idToken(),
        scope,
        fetchFn,
      });
      return granted.jwtAuthGrant;
    },
  });
}
