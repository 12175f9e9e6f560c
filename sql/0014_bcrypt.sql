-- compatible_from: 1
-- Hashes of bcrypt by their beginning, which says what a check of one costs.

CREATE INDEX CONCURRENTLY users_by_bcrypt ON users (left(password_hash, 7)) WHERE password_hash LIKE '$2%';
