-- compatible_from: 1
-- A build of before keeps here what clients have revoked of their own tokens that live longer than other access tokens, though it
-- be for hours. This one looks here for tokens of more than a day alone: those of a day lie among the others, too.

CREATE FUNCTION keep_among_others() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO revoked_tokens (day, jti) VALUES (NEW.day, NEW.jti) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE TRIGGER kept_among_others AFTER INSERT ON revoked_lasting_tokens
    FOR EACH ROW WHEN (NEW.day <= floor(extract(epoch FROM clock_timestamp()) / 86400) + 1)
    EXECUTE FUNCTION keep_among_others();
