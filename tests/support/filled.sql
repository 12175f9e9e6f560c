-- A database that has been served from for a while: 1,000 users beside those who were there, 3,000
-- and more consents, 1,000 of them for each client that asks for consent, 20,000 grants, 100
-- sessions of everybody who was there before, and 1,000 others. It needs at least one client that
-- asks for consent, and partitions for tomorrow.
CREATE TEMPORARY TABLE asking AS
SELECT client_id, epoch, row_number() OVER (ORDER BY client_id) - 1 AS place, count(*) OVER () AS clients
FROM clients WHERE metadata @> '{"require_consent": true}';

CREATE TEMPORARY TABLE here_before AS
SELECT sub, epoch, row_number() OVER (ORDER BY sub) - 1 AS place, count(*) OVER () AS people FROM users;

CREATE TEMPORARY TABLE today AS SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4 AS day;

INSERT INTO users (sub, username, username_key, password_hash, claims)
SELECT 'filled-' || n, 'filled-' || n, 'filled-' || n, CASE WHEN n % 2 = 0 THEN 'x' END,
       jsonb_build_object('name', 'Filled ' || n, 'email', 'filled-' || n || '@example.com')
FROM generate_series(1, 1000) AS n;

INSERT INTO linked_identities (issuer, upstream_subject, sub, provider)
SELECT 'https://upstream.example', 'there-' || sub, sub, 'upstream' FROM users;

INSERT INTO authenticators (sub, kind, id, secret, public_key, sign_count, last_step)
SELECT u.sub, kind, sha256(convert_to(kind || u.sub, 'UTF8')), 'x', 'x', 0, 0
FROM users u, unnest('{totp,passkey,recovery_code}'::text[]) AS kind;

INSERT INTO consents (sub, client_id, scopes, claims)
SELECT u.sub, a.client_id, '{openid,profile,email,offline_access,orders.read}', '{}' FROM users u, asking a
ON CONFLICT DO NOTHING;

INSERT INTO sessions (day, handle_hash, sid, sub, auth_time, amr, acr, identity_provider, upstream_issuer, upstream_subject,
                      upstream_sid, installation_epoch, user_epoch, created_at, used_at, expires_at)
SELECT t.day + s.n % 2, sha256(convert_to(s.sid, 'UTF8')), s.sid, s.sub, now(), '{pwd}', '1', 'upstream',
       'https://upstream.example', 'there-' || s.sub, 'there-' || s.sid,
       i.epoch, s.epoch, now(), now() - n * interval '1 second', now() + interval '8 hours'
FROM today t, installation i, (
    SELECT n, sub || '-session-' || n AS sid, sub, epoch FROM here_before, generate_series(1, 100) AS n
  UNION ALL
    SELECT row_number() OVER (), sub || '-session', sub, epoch FROM users WHERE sub LIKE 'filled-%'
) AS s;

INSERT INTO session_clients (day, sid, client_id, sub)
SELECT s.day, s.sid, a.client_id, s.sub FROM sessions s, asking a;

INSERT INTO grants (day, id, attempt, client_id, sub, scopes, resources, claims, session_day, sid, auth_time, amr, acr, offline,
                    installation_epoch, client_epoch, user_epoch, consent_epoch, issued_at, expires_at)
SELECT t.day + 1 + n % 14, substr(sha256(int4send(n)), 1, 16), 'x', a.client_id, u.sub, '{openid,profile}', '{}', '{"userinfo": [], "id_token": []}',
       s.day, s.sid, now(), '{pwd}', '1', n % 4 = 0, i.epoch, a.epoch, u.epoch, 0, now(), now() + interval '1 day' * (1 + n % 14)
FROM today t, installation i, generate_series(1, 20000) AS n
JOIN asking a ON a.place = n % a.clients
JOIN (SELECT *, row_number() OVER (ORDER BY sub) - 1 AS place, count(*) OVER () AS people FROM users) u ON u.place = n % u.people
LEFT JOIN LATERAL (SELECT day, sid FROM sessions WHERE sessions.sub = u.sub AND n % 4 <> 0 LIMIT 1) s ON true;

INSERT INTO revoked_tokens (day, jti) SELECT t.day + n % 2, sha256(int4send(n)) FROM today t, generate_series(1, 2000) AS n;

INSERT INTO used_assertions (day, issuer, jti_hash)
SELECT t.day + n % 2, 'https://upstream.example', sha256(int4send(n)) FROM today t, generate_series(1, 2000) AS n;

INSERT INTO sign_in_failures (bucket, failures, last_at, expires_at)
SELECT sha256(int4send(n)), 1, now(), now() + interval '1 hour' FROM generate_series(1, 2000) AS n;

INSERT INTO device_authorizations (device_code_hash, user_code_hash, client_id, scopes, resources, poll_interval, expires_at)
SELECT sha256(int4send(n)), sha256(int4send(-n)), 'device-' || n % 500, '{openid}', '{}', 5, now() + interval '1 hour'
FROM generate_series(1, 2000) AS n;

INSERT INTO audit_events (day, at, chain, seq, previous, hash, event, client_id, sub, detail)
SELECT t.day + 1, now(), 'filled/' || n % 20, n, 'x', 'x', 'refreshed', a.client_id, 'filled-' || n % 1000, '{}'
FROM today t, generate_series(1, 5000) AS n JOIN asking a ON a.place = n % a.clients;

INSERT INTO sign_up_links (id, uses, expires_at)
SELECT CASE WHEN n = 0 THEN '0123456789abcdef' ELSE substring(sha256(int4send(n)), 1, 16) END, 5, now() + interval '1 day'
FROM generate_series(0, 100) AS n;

DROP TABLE asking, here_before, today;
-- Of this schema alone: tables of others may have an index made concurrently, which waits for us.
DO $$
DECLARE own regclass;
BEGIN
    FOR own IN SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') LOOP
        EXECUTE 'ANALYZE ' || own;
    END LOOP;
END $$;
