-- compatible_from: 1
-- The key of the browser that a session is bound to, as its thumbprint (RFC 7638); since when; and when a request that could not
-- show it was last told of.

ALTER TABLE sessions
    ADD COLUMN bound_to bytea,
    ADD COLUMN bound_at timestamptz,
    ADD COLUMN refused_at timestamptz; -- to the hour
