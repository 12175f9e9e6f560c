-- compatible_from: 1
-- Postgres plans statements over a new partition before it has counted its rows. Two indexes began with the day, and Postgres took
-- both for equally good: it looked for a session by its sid in the index by handle, and read all sessions of that day. Of equally
-- good indexes it takes the newest: so whoever comes with a handle gets this one, not the primary key.

CREATE UNIQUE INDEX CONCURRENTLY sessions_by_handle ON sessions (handle_hash, day);

ALTER TABLE sessions DROP CONSTRAINT sessions_day_handle_hash_key;
