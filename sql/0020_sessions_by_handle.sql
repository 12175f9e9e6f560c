-- compatible_from: 1
-- Postgres plans over a new partition before it has counted its rows. Two indexes that begin with the day were one as good as the
-- other to it then, and it read all sessions of the day to find one.

CREATE UNIQUE INDEX CONCURRENTLY sessions_by_handle ON sessions (handle_hash, day);

ALTER TABLE sessions DROP CONSTRAINT sessions_day_handle_hash_key;
