-- compatible_from: 1
-- Until when people are here, and since when they are back; which make of passkey somebody has.

ALTER TABLE users
    ADD COLUMN valid_until timestamptz, -- none: without an end
    ADD COLUMN expired_at timestamptz, -- when the leader saw that it had passed: once for each date
    ADD COLUMN end_told_at timestamptz, -- when they were told that it comes: once for each date
    ADD COLUMN enabled_at timestamptz; -- none: not since this column is there

ALTER TABLE authenticators ADD COLUMN aaguid bytea; -- of a passkey, as its browser said; none: from before this column

ALTER TABLE sign_up_links ADD COLUMN accounts_for int8; -- seconds until the accounts that it makes end; none: without an end

-- Whoever writes `valid_until` or `enabled`, also an older program or an operator by hand: another date is told anew, and what
-- somebody had who had run out stays over, by an epoch of its own.
CREATE FUNCTION keep_ends() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.enabled AND NOT OLD.enabled THEN
        NEW.enabled_at := clock_timestamp();
    END IF;
    IF NEW.valid_until IS DISTINCT FROM OLD.valid_until THEN
        NEW.expired_at := NULL;
        NEW.end_told_at := NULL;
        IF OLD.valid_until <= clock_timestamp() THEN
            NEW.epoch := new_epoch();
        END IF;
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER ends_kept BEFORE UPDATE OF enabled, valid_until ON users
    FOR EACH ROW EXECUTE FUNCTION keep_ends();

-- The clients of the sessions that end by it are called. Behind the statement, which may have them called itself.
CREATE FUNCTION call_clients() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE session_clients SET due_at = clock_timestamp() WHERE sub = NEW.sub AND due_at IS NULL AND tries = 0;
    RETURN NULL;
END
$$;
CREATE TRIGGER clients_called AFTER UPDATE OF valid_until ON users
    FOR EACH ROW WHEN (OLD.valid_until IS DISTINCT FROM NEW.valid_until AND OLD.epoch <> NEW.epoch)
    EXECUTE FUNCTION call_clients();
