-- compatible_from: 1
-- People by their e-mail address, compared as user names are; and the links by which people make accounts themselves.

CREATE INDEX CONCURRENTLY users_by_email ON users (tenant, (left(lower(normalize(claims->>'email', NFKC)), 254)) COLLATE "C") WHERE claims ? 'email';

-- The address that was not verified here before this identity said so; empty: none. Null: nothing was written since this
-- column is there, and what it said last counts.
ALTER TABLE linked_identities ADD COLUMN verified_email text;

CREATE TABLE sign_up_links (
    id bytea PRIMARY KEY CHECK (octet_length(id) = 16), -- the link holds it, with a MAC
    tenant text NOT NULL DEFAULT '',
    roles text[] NOT NULL DEFAULT '{}', -- what the users that it makes get
    domain text, -- of the addresses that it takes; none: of any
    uses int4 NOT NULL CHECK (uses > 0),
    used int4 NOT NULL DEFAULT 0 CHECK (used BETWEEN 0 AND uses),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz NOT NULL,
    ended_at timestamptz -- by an operator, before that
);
