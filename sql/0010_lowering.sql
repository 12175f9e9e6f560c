-- compatible_from: 1
-- What this database made of a fixed text in small letters when the keys of user names were made. No row: never compared.
-- Not a column of installation, which every statement reads: whoever rehearses levels would wait for those who wait for it.

CREATE TABLE lowering (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    lowered text NOT NULL
);
