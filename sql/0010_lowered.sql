-- compatible_from: 1
-- What this database made of a fixed text in small letters when the names of its users were last compared by it. Null: never.

ALTER TABLE installation ADD COLUMN lowered text;
