-- compatible_from: 1
-- The last day on which each client used a flow that OAuth 2.1 has no more.

CREATE TABLE flow_uses (
    client_id text NOT NULL,
    flow text NOT NULL,
    day int4 NOT NULL,
    PRIMARY KEY (client_id, flow)
);

-- Revoked tokens of clients that live longer than all others, until they would have expired. Not a part of
-- revoked_tokens: its partitions would become as wide as these tokens live long.
CREATE TABLE revoked_lasting_tokens (
    jti bytea PRIMARY KEY,
    day int4 NOT NULL
);
