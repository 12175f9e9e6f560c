-- compatible_from: 1
-- People by the beginning of their user name: the unique constraint compares by the language of the database.

CREATE INDEX CONCURRENTLY users_by_username ON users (tenant, username_key COLLATE "C");
