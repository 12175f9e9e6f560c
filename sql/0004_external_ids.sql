-- compatible_from: 1
-- Several users may have one: it is the SCIM client's own.

CREATE INDEX CONCURRENTLY users_by_external_id ON users (tenant, external_id) WHERE external_id IS NOT NULL;
