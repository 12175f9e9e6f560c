-- compatible_from: 1
-- Those that were revoked before, where there is room for their day: where nobody has served for so long that there is none,
-- every token of a day has expired.

WITH batch AS (
    SELECT day, jti FROM revoked_lasting_tokens WHERE jti > decode($1, 'hex') ORDER BY jti LIMIT 1000
), kept AS (
    INSERT INTO revoked_tokens (day, jti)
    SELECT b.day, b.jti FROM batch b
    WHERE b.day - floor(extract(epoch FROM clock_timestamp()) / 86400) BETWEEN 0 AND 1
      AND EXISTS (SELECT FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
                  WHERE h.inhparent = 'revoked_tokens'::regclass
                    AND b.day BETWEEN split_part(c.relname, '_', 3)::int4 AND split_part(c.relname, '_', 4)::int4 - 1)
    ON CONFLICT DO NOTHING
)
SELECT (SELECT encode(jti, 'hex') FROM batch ORDER BY jti DESC LIMIT 1) AS last;
