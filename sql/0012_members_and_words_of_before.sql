-- compatible_from: 1
-- Roles and words of the people who were there before: a thousand at a time, until nobody is left.

WITH batch AS (
    SELECT sub, tenant, username, claims FROM users WHERE sub > $1 ORDER BY sub LIMIT 1000 FOR SHARE
), members AS (
    INSERT INTO role_members (tenant, role, sub)
    SELECT b.tenant, role, b.sub FROM batch b, unnest(roles_of(b.claims)) AS role
    ON CONFLICT DO NOTHING
), words AS (
    INSERT INTO user_words (tenant, word, sub)
    SELECT b.tenant, word, b.sub FROM batch b, unnest(words_of_user(b.claims, b.username)) AS word
    ON CONFLICT DO NOTHING
)
SELECT max(sub) AS last FROM batch;
