-- compatible_from: 1
-- What an administrator did to others: their sub stands in the detail. Few events have one.

CREATE INDEX CONCURRENTLY audit_events_by_admin ON audit_events ((detail ->> 'admin'), at) WHERE detail ->> 'admin' IS NOT NULL;
