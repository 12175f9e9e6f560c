-- compatible_from: 1
-- Those whose end is still to come, or to be seen by the leader.

CREATE INDEX CONCURRENTLY users_by_end ON users (valid_until) WHERE valid_until IS NOT NULL AND expired_at IS NULL;
