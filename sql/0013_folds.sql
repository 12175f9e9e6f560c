-- compatible_from: 1
-- What each hour of the audit log comes to, for lists and pictures: nothing of it costs a sign-in anything.

-- The hours that were folded. An hour is told by its number since 1970, as a day is.
CREATE TABLE folds (
    hour int4 PRIMARY KEY
);

-- The last day on which each person signed in, or got a token by a password or a refresh token.
CREATE TABLE user_uses (
    sub text PRIMARY KEY REFERENCES users ON DELETE CASCADE,
    day int4 NOT NULL
);

-- The last day on which each person got tokens for each client.
CREATE TABLE client_user_uses (
    sub text NOT NULL REFERENCES users ON DELETE CASCADE,
    client_id text NOT NULL REFERENCES clients ON DELETE CASCADE,
    day int4 NOT NULL,
    PRIMARY KEY (sub, client_id)
);
CREATE INDEX client_user_uses_of_a_client ON client_user_uses (client_id);

-- How many sign-ins and failed attempts there were. The tenant is the person's when the hour was folded; it is empty for
-- people without one, and for nobody known.
CREATE TABLE hourly_counts (
    hour int4 NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL, -- signed_in, failed, more_failed or turned_away
    n int8 NOT NULL,
    PRIMARY KEY (hour, tenant, kind)
);
