-- compatible_from: 1
-- The last day on which each client was used. Not a column of clients: what is registered is read all the time.

CREATE TABLE client_uses (
    client_id text PRIMARY KEY,
    day int4 NOT NULL
);
