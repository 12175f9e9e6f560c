-- compatible_from: 1
-- What must survive. Ids are bytea, instants timestamptz, documents jsonb. Every table that grows with traffic is
-- range-partitioned by the UTC day (days since 1970) of its rows' absolute expiry; partitions are made by
-- store/partitions.rs, never here, and there is no default partition.

-- What is issued carries the epochs of the rows it stands on, and is dead once one of them has another. Drawn, never counted:
-- a count would tell how many there are, and repeat itself after a restore or a failover. The last 60 bits of a UUID are random.
CREATE FUNCTION new_epoch() RETURNS int8
    RETURN ('x' || right(replace(gen_random_uuid()::text, '-', ''), 15))::bit(60)::int8;

CREATE TABLE installation (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id bytea NOT NULL CHECK (octet_length(id) = 16),
    issuer text NOT NULL,
    registry_version bigint NOT NULL DEFAULT 1,
    epoch int8 NOT NULL DEFAULT new_epoch(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Whoever holds this row's lock makes and removes partitions.
CREATE TABLE leader (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row)
);
INSERT INTO leader DEFAULT VALUES;

CREATE TABLE signing_keys (
    kid text PRIMARY KEY,
    algorithm text NOT NULL,
    wrapped_private bytea, -- erased at retirement
    public_jwk jsonb NOT NULL,
    announced_at timestamptz NOT NULL,
    activates_at timestamptz NOT NULL,
    retires_at timestamptz NOT NULL,
    unpublished_at timestamptz NOT NULL,
    forgotten_at timestamptz NOT NULL,
    CHECK (announced_at <= activates_at AND activates_at < retires_at
           AND retires_at <= unpublished_at AND unpublished_at <= forgotten_at)
);

CREATE TABLE clients (
    client_id text PRIMARY KEY,
    metadata jsonb NOT NULL,
    enabled boolean NOT NULL,
    origins text[] NOT NULL, -- of its redirect URIs and allowed_cors_origins, as browsers write them
    epoch int8 NOT NULL DEFAULT new_epoch(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE client_secrets (
    client_id text NOT NULL REFERENCES clients ON DELETE CASCADE,
    id bytea NOT NULL,
    sealed_digest bytea NOT NULL,
    description text NOT NULL DEFAULT '',
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (client_id, id)
);

-- Everything registered that is neither a client nor a user.
CREATE TABLE catalogue_entries (
    kind text NOT NULL CHECK (kind IN ('identity_scope', 'resource_scope', 'resource', 'tenant', 'identity_provider',
                                       'assertion_issuer', 'extension_grant')),
    name text NOT NULL,
    document jsonb NOT NULL,
    sealed_secret bytea, -- an upstream client secret
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kind, name)
);
CREATE UNIQUE INDEX catalogue_scope_names ON catalogue_entries (name) WHERE kind IN ('identity_scope', 'resource_scope');

CREATE TABLE resource_secrets (
    resource text NOT NULL,
    id bytea NOT NULL,
    sealed_digest bytea NOT NULL,
    description text NOT NULL DEFAULT '',
    expires_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (resource, id)
);

CREATE TABLE users (
    sub text PRIMARY KEY,
    tenant text NOT NULL DEFAULT '', -- empty: without a tenant
    username text, -- none for people whom only an identity provider knows
    username_key text, -- lower(normalize(username, NFKC))
    password_hash text,
    -- Of a hash of PBKDF2, which came from elsewhere, all but salt and key: what a check of it costs.
    pbkdf2 text GENERATED ALWAYS AS (CASE WHEN password_hash LIKE '$pbkdf2%'
        THEN split_part(password_hash, '$', 2) || '$' || split_part(password_hash, '$', 3) END) STORED,
    enabled boolean NOT NULL DEFAULT true,
    claims jsonb NOT NULL DEFAULT '{}',
    epoch int8 NOT NULL DEFAULT new_epoch(),
    factors int8 NOT NULL DEFAULT 0, -- raised by each factor that is added or removed
    strongest_acr text NOT NULL DEFAULT '1' CHECK (strongest_acr IN ('1', '2', 'phr')), -- what the factors there are reach
    user_handle bytea UNIQUE, -- what passkeys call them: 32 random bytes, drawn with the first
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant, username_key),
    CHECK ((username IS NULL) = (username_key IS NULL))
);

CREATE INDEX users_by_pbkdf2 ON users (pbkdf2) WHERE pbkdf2 IS NOT NULL;

-- Who somebody is elsewhere: by issuer and subject there, which never change hands as names and addresses do.
CREATE TABLE linked_identities (
    issuer text NOT NULL,
    upstream_subject text NOT NULL,
    sub text NOT NULL REFERENCES users ON DELETE CASCADE,
    provider text, -- the identity provider that stands for it, where one does
    claims jsonb NOT NULL DEFAULT '{}', -- the user's that came from there, as they came last
    linked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (issuer, upstream_subject)
);
CREATE INDEX linked_identities_by_user ON linked_identities (sub);

-- What people prove who they are with, besides their password.
CREATE TABLE authenticators (
    sub text NOT NULL REFERENCES users ON DELETE CASCADE,
    kind text NOT NULL CHECK (kind IN ('totp', 'passkey', 'recovery_code')),
    id bytea NOT NULL, -- a passkey's credential id; empty for the one app that shows codes
    name text,
    secret bytea, -- sealed: of the app, or SHA-256 of a recovery code
    public_key bytea,
    sign_count int8,
    last_step int8, -- the step of the last code that was taken: each counts once
    backup_eligible boolean,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    used_at timestamptz,
    PRIMARY KEY (sub, kind, id)
);
CREATE UNIQUE INDEX passkeys ON authenticators (id) WHERE kind = 'passkey';

-- A subject that was removed is never given to somebody else.
CREATE TABLE removed_subjects (
    sub text PRIMARY KEY,
    removed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE consents (
    sub text NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id text NOT NULL REFERENCES clients ON DELETE CASCADE,
    scopes text[] NOT NULL,
    claims text[] NOT NULL,
    granted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    epoch int8 NOT NULL DEFAULT 0, -- as if there were no row, until it is withdrawn or lapses
    PRIMARY KEY (sub, client_id)
);
CREATE INDEX consents_of_a_client ON consents (client_id);

CREATE TABLE sessions (
    day int4 NOT NULL,
    handle_hash bytea NOT NULL,
    sid text NOT NULL,
    sub text NOT NULL,
    auth_time timestamptz NOT NULL,
    amr text[] NOT NULL,
    acr text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    identity_provider text NOT NULL,
    upstream_issuer text, -- whom the provider's name stood for then
    upstream_subject text, -- who they are there
    upstream_sid text, -- what that provider calls its own session
    upstream_id_token bytea, -- sealed; only where signing out here signs out there
    installation_epoch int8 NOT NULL,
    user_epoch int8 NOT NULL,
    source inet, -- where it began, and what the browser called itself there
    user_agent text,
    created_at timestamptz NOT NULL,
    used_at timestamptz NOT NULL, -- to the hour
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    PRIMARY KEY (day, sid),
    UNIQUE (day, handle_hash)
) PARTITION BY RANGE (day);
-- For the account page: a person's own sessions, among those of a day or two.
CREATE INDEX sessions_by_sub ON sessions (sub);
-- For a provider that says that somebody signed out there.
CREATE INDEX sessions_by_upstream_sid ON sessions (upstream_sid, identity_provider) WHERE upstream_sid IS NOT NULL;
CREATE INDEX sessions_by_upstream_subject ON sessions (upstream_subject, identity_provider) WHERE upstream_subject IS NOT NULL;

-- Clients with a logout URI that got something in a session; once it has ended, the queue of back-channel calls.
CREATE TABLE session_clients (
    day int4 NOT NULL, -- the session's
    sid text NOT NULL,
    client_id text NOT NULL,
    sub text NOT NULL, -- the session's
    first_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at timestamptz, -- the next call; null while the session lives, and when nothing is left to do
    tries int4 NOT NULL DEFAULT 0,
    notified_at timestamptz,
    PRIMARY KEY (day, sid, client_id)
) PARTITION BY RANGE (day);
CREATE INDEX session_clients_by_sub ON session_clients (sub);
CREATE INDEX session_clients_by_due_at ON session_clients (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE grants (
    day int4 NOT NULL,
    id bytea NOT NULL,
    attempt bytea NOT NULL, -- names the redemption that made the row
    client_id text NOT NULL,
    sub text NOT NULL,
    scopes text[] NOT NULL,
    resources text[] NOT NULL,
    claims jsonb NOT NULL,
    token_claims jsonb NOT NULL DEFAULT '{}', -- of an extension grant, for every access token of this one
    session_day int4,
    sid text,
    tenant text NOT NULL DEFAULT '',
    identity_provider text,
    auth_time timestamptz NOT NULL,
    amr text[] NOT NULL,
    acr text NOT NULL,
    offline boolean NOT NULL,
    generation int4 NOT NULL DEFAULT 0,
    installation_epoch int8 NOT NULL,
    client_epoch int8 NOT NULL,
    user_epoch int8 NOT NULL,
    consent_epoch int8 NOT NULL,
    issued_at timestamptz NOT NULL,
    redeemed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    moved_at timestamptz, -- the refresh token's last move to a next generation; none once a use has moved nothing
    used_at timestamptz, -- that use
    expires_at timestamptz NOT NULL,
    revoked_at timestamptz,
    PRIMARY KEY (day, id),
    CHECK ((session_day IS NULL) = (sid IS NULL))
) PARTITION BY RANGE (day);
-- For the account page. Only what outlives its session: other grants pay nothing, and a refresh changes nothing indexed.
CREATE INDEX grants_offline_by_sub ON grants (sub) WHERE offline;

-- Devices that wait for their users. Both codes are HMACs under keys that are not in the database.
CREATE TABLE device_authorizations (
    device_code_hash bytea PRIMARY KEY,
    user_code_hash bytea NOT NULL UNIQUE,
    client_id text NOT NULL,
    scopes text[] NOT NULL,
    resources text[] NOT NULL,
    acr_values text,
    poll_interval int4 NOT NULL, -- seconds
    polled_at timestamptz,
    polled_early boolean NOT NULL DEFAULT false,
    expires_at timestamptz NOT NULL,
    decided_at timestamptz,
    allowed boolean,
    sub text,
    granted_scopes text[],
    tenant text,
    identity_provider text,
    auth_time timestamptz,
    amr text[],
    acr text,
    installation_epoch int8,
    client_epoch int8,
    user_epoch int8,
    consent_epoch int8,
    redeemed_by bytea, -- names the redemption
    CHECK ((decided_at IS NULL) = (allowed IS NULL) AND (decided_at IS NULL) = (sub IS NULL))
);
CREATE INDEX device_authorizations_waiting ON device_authorizations (client_id, expires_at) WHERE decided_at IS NULL;
CREATE INDEX device_authorizations_by_expiry ON device_authorizations (expires_at);

CREATE TABLE revoked_tokens (
    day int4 NOT NULL,
    jti bytea NOT NULL,
    revoked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (day, jti)
) PARTITION BY RANGE (day);

CREATE TABLE used_assertions (
    day int4 NOT NULL,
    issuer text NOT NULL, -- a client_id, or who else signed it
    jti_hash bytea NOT NULL, -- or a hash of whom a logout token was about, or of the cookie of a way upstream that was gone
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (day, issuer, jti_hash)
) PARTITION BY RANGE (day);

-- Each row's hash covers every other column; `previous` is the hash of the row before it in its chain. No chain outlives the
-- day it began, so all of its rows lie under one day here and go together.
CREATE TABLE audit_events (
    day int4 NOT NULL,
    at timestamptz NOT NULL,
    chain text NOT NULL, -- the day it began, the process, and a number
    seq int8 NOT NULL,
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    event text NOT NULL,
    client_id text,
    sub text,
    sid text,
    source text,
    request_id text,
    detail json NOT NULL, -- not jsonb: kept to the letter, as it was hashed
    PRIMARY KEY (day, chain, seq)
) PARTITION BY RANGE (day);
-- A text as the hash of a row covers it, for a statement that hashes what it finds.
CREATE FUNCTION hashed(part text) RETURNS bytea
    RETURN coalesce('\x01'::bytea || int8send(octet_length(part)) || convert_to(part, 'UTF8'), '\x00'::bytea);
CREATE INDEX audit_events_by_at ON audit_events USING brin (at);

-- Failures within a window, by a keyed hash of who and where.
CREATE TABLE sign_in_failures (
    bucket bytea PRIMARY KEY,
    failures int4 NOT NULL,
    last_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX sign_in_failures_by_expiry ON sign_in_failures (expires_at);
