-- compatible_from: 1
-- What administrators find people by: their names in order, their roles, and the words of their names.

CREATE INDEX CONCURRENTLY users_by_name ON users (tenant, (left(lower(normalize(coalesce(claims->>'name', username, sub), NFKC)), 254)) COLLATE "C", sub);

-- Registered roles: what they are called, and whether administrators give them. Not entries of the catalogue, where the
-- build before refuses kinds that it does not know.
CREATE TABLE roles (
    name text PRIMARY KEY,
    document jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Who has which role. users.claims says so; this is what lists and counts read. A role that is too long for the key is
-- not here.
CREATE TABLE role_members (
    tenant text NOT NULL,
    role text COLLATE "C" NOT NULL,
    sub text NOT NULL,
    since timestamptz, -- none: from before this table
    PRIMARY KEY (tenant, role, sub)
);
CREATE INDEX role_members_by_sub ON role_members (sub);

-- The words of names, user names and addresses: people are found by the beginnings of them.
CREATE TABLE user_words (
    tenant text NOT NULL,
    word text COLLATE "C" NOT NULL,
    sub text NOT NULL,
    PRIMARY KEY (tenant, word, sub)
);
CREATE INDEX user_words_by_sub ON user_words (sub);

-- The roles of a user: the claim is a text or a list of texts.
CREATE FUNCTION roles_of(claims jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN array(SELECT DISTINCT found.role
                 FROM (SELECT item #>> '{}' AS role
                       FROM jsonb_path_query(claims, '$.role[*] ? (@.type() == "string")') AS item) AS found
                 WHERE found.role ~ '\S' AND octet_length(found.role) <= 1000);
END
$$;

-- The words of a text in small letters. What stands between two words is told by its characters, and not by the language
-- of the database: words stay the same after a restore elsewhere.
CREATE FUNCTION words_of(typed text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN array(SELECT DISTINCT left(word, 60)
                 FROM regexp_split_to_table(lower(normalize(left(typed, 1000), NFKC)),
                                            '[\u0001-/:-@[-`{-\u00bf\u2000-\u206f\u3000-\u3004\u3008-\u3020]+') AS word
                 WHERE word <> '');
END
$$;

CREATE FUNCTION words_of_user(claims jsonb, username text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN words_of(concat_ws(' ', left(claims->>'name', 300), left(username, 300), left(claims->>'email', 300)));
END
$$;

-- Keeps both tables. Rows that stay are not touched: a role keeps its moment.
CREATE FUNCTION follow_user() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    roles text[];
    words text[];
BEGIN
    -- A backup of the rows alone is restored with an empty search_path.
    IF to_regclass('role_members') IS NULL THEN
        PERFORM set_config('search_path', quote_ident(TG_TABLE_SCHEMA), true);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        roles := roles_of(NEW.claims);
        words := words_of_user(NEW.claims, NEW.username);
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM role_members m
        WHERE m.sub = OLD.sub AND (TG_OP = 'DELETE' OR m.tenant <> NEW.tenant OR m.role <> ALL (roles));
        DELETE FROM user_words w
        WHERE w.sub = OLD.sub AND (TG_OP = 'DELETE' OR w.tenant <> NEW.tenant OR w.word <> ALL (words));
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO role_members (tenant, role, sub, since)
        SELECT NEW.tenant, role, NEW.sub, clock_timestamp() FROM unnest(roles) AS role
        ON CONFLICT DO NOTHING;
        INSERT INTO user_words (tenant, word, sub)
        SELECT NEW.tenant, word, NEW.sub FROM unnest(words) AS word
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER followed AFTER INSERT OR DELETE OR UPDATE OF tenant, username, claims ON users
    FOR EACH ROW EXECUTE FUNCTION follow_user();
