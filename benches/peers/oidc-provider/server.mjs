// node-oidc-provider with the clients and the person of `benches/load`, to be measured beside Gatepost:
//
//     node server.mjs SETTINGS [PORT]                      in memory, one process
//     DATABASE_URL=postgres://... node server.mjs SETTINGS [PORT]   on Postgres, a worker for each core
//
// It writes SETTINGS, the file that `--against` reads, as soon as it answers. Ending the first process ends all.

import { hash, verify } from '@node-rs/argon2';
import cluster from 'node:cluster';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { availableParallelism } from 'node:os';
import Provider from 'oidc-provider';
import pg from 'pg';

const [settingsFile, port = '9100'] = process.argv.slice(2);
const databaseUrl = process.env.DATABASE_URL;
const issuer = `http://localhost:${port}`;
const redirectUri = 'https://app.example/cb';
const secret = 'a-client-secret-of-some-length-0123456789';
const person = { username: 'alice', password: 'correct horse battery staple' };
const claims = { sub: 'alice', name: 'Alice Smith', email: 'alice@example.com', email_verified: true };
// Gatepost's own parameters; Argon2id is the default.
const argon2 = { memoryCost: 19456, timeCost: 2, parallelism: 1 };

const service = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] };
const web = { grant_types: ['authorization_code'], response_types: ['code'], redirect_uris: [redirectUri] };
const offline = { ...web, grant_types: ['authorization_code', 'refresh_token'] };
// Without `refresh_oauth`: it refuses the tool's nonce in a request without `openid`.
const parts = {
  reference: ['orders.read', service],
  rs256: ['orders.read', service],
  es256: ['orders.read', service],
  eddsa: ['orders.read', service],
  code: ['openid profile email', web],
  refresh: ['openid profile offline_access', offline],
};
const jwtAlg = { rs256: 'RS256', es256: 'ES256', eddsa: 'EdDSA' };

/** One table for all, as in the adapters that the documentation links to; `pg`, with prepared statements. */
class PostgresAdapter {
  static table = `CREATE TABLE oidc_models (
      id text NOT NULL, type text NOT NULL, payload jsonb NOT NULL, grant_id text, user_code text, uid text,
      expires_at timestamptz, consumed_at timestamptz, PRIMARY KEY (id, type));
    CREATE INDEX ON oidc_models (grant_id); CREATE INDEX ON oidc_models (uid);
    CREATE INDEX ON oidc_models (user_code); CREATE INDEX ON oidc_models (expires_at)`;
  static pool = databaseUrl && new pg.Pool({ connectionString: databaseUrl, max: 10 });

  constructor(type) {
    this.type = type;
  }

  run(name, text, ...values) {
    return PostgresAdapter.pool.query({ name, text, values });
  }

  async #row(column, value) {
    const { rows: [row] } = await this.run(`find-${column}`, `SELECT payload, consumed_at FROM oidc_models
      WHERE ${column} = $1 AND type = $2 AND (expires_at IS NULL OR expires_at > now())`, value, this.type);
    return row && { ...row.payload, ...(row.consumed_at && { consumed: row.consumed_at.getTime() / 1000 }) };
  }

  find(id) { return this.#row('id', id); }
  findByUid(uid) { return this.#row('uid', uid); }
  findByUserCode(code) { return this.#row('user_code', code); }

  upsert(id, payload, expiresIn) {
    const expiresAt = expiresIn ? new Date(Date.now() + expiresIn * 1000) : null;
    return this.run('upsert', `INSERT INTO oidc_models (id, type, payload, grant_id, user_code, uid, expires_at)
      VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id, type) DO UPDATE SET payload = EXCLUDED.payload,
      grant_id = EXCLUDED.grant_id, user_code = EXCLUDED.user_code, uid = EXCLUDED.uid,
      expires_at = EXCLUDED.expires_at`, id, this.type, payload, payload.grantId, payload.userCode, payload.uid, expiresAt);
  }

  consume(id) {
    return this.run('consume', 'UPDATE oidc_models SET consumed_at = now() WHERE id = $1 AND type = $2', id, this.type);
  }

  destroy(id) {
    return this.run('destroy', 'DELETE FROM oidc_models WHERE id = $1 AND type = $2', id, this.type);
  }

  revokeByGrantId(grantId) {
    return this.run('revoke', 'DELETE FROM oidc_models WHERE grant_id = $1', grantId);
  }
}

function newKeys() {
  const key = (kid, type, options) => ({ kid, use: 'sig', ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }) });
  return [key('rs256', 'rsa', { modulusLength: 2048 }), key('es256', 'ec', { namedCurve: 'P-256' }), key('eddsa', 'ed25519')];
}

function configuration(keys) {
  const orders = 'https://orders.example';
  return {
    ...(databaseUrl && { adapter: PostgresAdapter }),
    clients: Object.entries(parts).map(([client_id, [, registered]]) => ({ client_id, client_secret: secret, ...registered })),
    jwks: { keys },
    cookies: { keys: ['the same in all workers'] },
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    scopes: ['openid', 'profile', 'email', 'offline_access', 'orders.read'],
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: (ctx, client) => (jwtAlg[client.clientId] ? orders : undefined),
        getResourceServerInfo: (ctx, resource, client) => (
          { scope: 'orders.read', accessTokenFormat: 'jwt', jwt: { sign: { alg: jwtAlg[client.clientId] } } }),
      },
    },
    enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA'] },
    // What `offline_access` does by default where consent is asked for anew each time.
    issueRefreshToken: (ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: (ctx) => !ctx.oidc.client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: true,
    findAccount: (ctx, accountId) => ({ accountId, claims: () => ({ ...claims, sub: accountId }) }),
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
  };
}

/** The sign-in page, and what it sends. Whoever signs in has consented to what the client asks for. */
async function interaction(provider, passwordHash, request, response) {
  const { params } = await provider.interactionDetails(request, response);
  if (request.method === 'POST') {
    const form = new URLSearchParams(Buffer.concat(await request.toArray()).toString());
    const matches = await verify(passwordHash, form.get('password') ?? '', argon2);
    if (matches && form.get('username') === person.username) {
      const grant = new provider.Grant({ accountId: claims.sub, clientId: params.client_id });
      grant.addOIDCScope(params.scope);
      const result = { login: { accountId: claims.sub }, consent: { grantId: await grant.save() } };
      return provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
    }
  }
  const page = `<form method="post" action="${request.url}"><input name="username">`
    + '<input type="password" name="password"><button>Sign in</button></form>';
  response.writeHead(200, { 'content-type': 'text/html', 'content-length': page.length }).end(page);
}

async function serve(keys) {
  const provider = new Provider(issuer, configuration(keys));
  provider.on('server_error', (ctx, error) => console.error(error));
  const [answer, passwordHash] = [provider.callback(), await hash(person.password, argon2)];
  const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
    if (!request.url.startsWith('/interaction/')) return answer(request, response);
    return interaction(provider, passwordHash, request, response).catch((error) => {
      console.error(error);
      response.writeHead(500).end();
    });
  });
  return new Promise((ready) => { server.listen(Number(port), '127.0.0.1', ready); });
}

function writeSettings() {
  const client = ([client_id, [scope]]) => [client_id, { client_id, client_secret: secret, scope }];
  const clients = Object.fromEntries(Object.entries(parts).map(client));
  const name = `node-oidc-provider, ${databaseUrl ? 'Postgres' : 'memory'}`;
  writeFileSync(settingsFile, JSON.stringify(
    { name, issuer, redirect_uri: redirectUri, ...person, clients, pid: process.pid, database_url: databaseUrl ?? null }));
}

if (cluster.isWorker) {
  await serve(JSON.parse(process.env.KEYS));
} else if (databaseUrl) {
  await PostgresAdapter.pool.query(`DROP TABLE IF EXISTS oidc_models; ${PostgresAdapter.table}`);
  await PostgresAdapter.pool.end();
  const KEYS = JSON.stringify(newKeys());
  const workers = Array.from({ length: availableParallelism() }, () => cluster.fork({ KEYS }));
  await Promise.all(workers.map((worker) => new Promise((ready) => { worker.once('listening', ready); })));
  cluster.on('exit', (worker, code) => { console.error(`a worker ended: ${code}`); process.exit(1); });
  writeSettings();
} else {
  await serve(newKeys());
  writeSettings();
}
