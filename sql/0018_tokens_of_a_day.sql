-- compatible_from: 1
-- A build of before keeps here what clients have revoked of their own tokens that live longer than other access tokens, though it
-- be for hours. This one looks here for tokens of more than a day alone: those of a day lie among the others, too.

CREATE INDEX CONCURRENTLY revoked_lasting_tokens_by_day ON revoked_lasting_tokens (day);

CREATE FUNCTION keep_among_others() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO revoked_tokens (day, jti) VALUES (NEW.day, NEW.jti) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER kept_among_others AFTER INSERT ON revoked_lasting_tokens
    FOR EACH ROW WHEN (NEW.day <= floor(extract(epoch FROM clock_timestamp()) / 86400) + 1)
    EXECUTE FUNCTION keep_among_others();

-- Those of today and tomorrow, by the index: whoever revokes such a token waits for this.
SET LOCAL enable_seqscan = off;
DO $$
DECLARE
    today int4 := floor(extract(epoch FROM clock_timestamp()) / 86400);
BEGIN
    INSERT INTO revoked_tokens (day, jti) SELECT day, jti FROM revoked_lasting_tokens WHERE day BETWEEN today AND today + 1
    ON CONFLICT DO NOTHING;
EXCEPTION WHEN check_violation THEN
    NULL; -- No room for those days: nobody has served for a while, and every token of a day has expired.
END
$$;
