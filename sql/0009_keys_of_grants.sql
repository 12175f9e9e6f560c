-- compatible_from: 1
-- The key that the refresh tokens of a grant are bound to (RFC 9449 section 5): the thumbprint of RFC 7638.

ALTER TABLE grants ADD COLUMN confirmation bytea;
