-- compatible_from: 1
-- What SCIM clients call a user (RFC 7643 section 3.1), and the users of a tenant in order.

CREATE INDEX CONCURRENTLY users_by_tenant ON users (tenant, sub);

ALTER TABLE users ADD COLUMN external_id text;
