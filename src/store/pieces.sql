-- Moves a grant on to its next generation where the presented token is the current one, and
-- everything stands but the session. The table of the update cannot be named in the joins, so
-- `{grounds}` is written out. `{stands}` needs user and client, so both are joined.
{move on}
UPDATE {grants} g
SET generation = CASE WHEN :reuse::bool THEN g.generation ELSE g.generation + 1 END,
    moved_at = CASE WHEN NOT :reuse::bool THEN clock_timestamp() END,
    used_at = CASE WHEN :reuse::bool THEN clock_timestamp() END,
    attempt = :attempt::bytea,
    confirmation = coalesce(g.confirmation, :bind_to::bytea)
FROM installation i, clients c CROSS JOIN users u
LEFT JOIN consents k ON k.sub = u.sub AND k.client_id = c.client_id
WHERE g.day = :day::int4 AND g.id = :id::bytea AND g.client_id = :client_id::text
  AND c.client_id = g.client_id AND u.sub = g.sub AND {stands}
  AND g.generation = :presented::int4 AND g.attempt <> :attempt::bytea
  AND g.revoked_at IS NULL AND g.scopes <@ :scopes::text[]
  AND g.tenant = ANY (:tenants::text[]) AND g.expires_at > :expires_after::timestamptz
  AND coalesce(g.used_at, g.moved_at, g.redeemed_at) > :used_after::timestamptz
  AND (:acrs::text[] IS NULL OR g.acr = ANY (:acrs::text[]))
  AND (g.confirmation IS NULL OR g.confirmation = :confirmation::bytea)

-- Answers the grant that was moved, with the hash of what is told of it.
{moved}
{granted}, {person}, sha256((:event_hashes::bytea[])[1] || hashed(g.sub) || hashed(g.sid)
    || :event_ending::bytea) AS audited

-- Tells of the grant that was `moved`, and answers it.
{tell of moved}
told AS (INSERT INTO {audit_events} SELECT {event begins}, moved.audited,
    (:event_names::text[])[1], :event_client_id::text, sub, sid, {event ends} FROM moved)
SELECT * FROM moved

-- Whether the grant `g` may be refreshed as far as its session goes: it has `offline_access`,
-- or its session goes on.
{session goes on}
(g.offline OR EXISTS (SELECT FROM sessions s
    WHERE s.day = g.session_day AND s.sid = g.sid AND (s.sub = g.sub) IS TRUE
      AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()))

-- What a code was given on, as values, and the rows that it stands on.
{grounds of code}
(SELECT :sub::text AS sub, :client_id::text AS client_id, :sid::text AS sid,
    :issued_at::timestamptz AS issued_at, :installation_epoch::int8 AS installation_epoch,
    :client_epoch::int8 AS client_epoch, :user_epoch::int8 AS user_epoch,
    :consent_epoch::int8 AS consent_epoch) AS g {grounds}
LEFT JOIN {sessions} s
  ON s.day = :session_day::int4 AND s.sid = :sid::text AND (s.sub = :sub::text) IS TRUE

-- Whether all of that stands.
{code stands}
({stands} AND (g.sid IS NULL OR (s.sid IS NOT NULL AND s.ended_at IS NULL)))

-- Enters the grant of a code; whether it is revoked is the last value.
{enter grant}
INSERT INTO {grants} AS g
    (day, id, attempt, client_id, sub, scopes, resources, session_day, sid, tenant, auth_time, amr,
     acr, issued_at, expires_at, offline, claims, identity_provider, token_claims,
     installation_epoch, client_epoch, user_epoch, consent_epoch, confirmation, revoked_at)
SELECT :day::int4, :id::bytea, :attempt::bytea, :client_id::text, :sub::text, :scopes::text[],
    :resources::text[], :session_day::int4, :sid::text, :tenant::text, :auth_time::timestamptz,
    :amr::text[], :acr::text, :issued_at::timestamptz, :expires_at::timestamptz, :offline::bool,
    :claims::jsonb, :identity_provider::text, :token_claims::jsonb, :installation_epoch::int8,
    :client_epoch::int8, :user_epoch::int8, :consent_epoch::int8, :confirmation::bytea

-- Whether what the row `g` was given still stands, as the database alone can tell:
-- `grounds_stand` and `consent_has_lapsed` of `liveness` say the same of what was read. A grant
-- has these columns, and so has a device; a code brings them as values.
{stands}
{may act} AND u.epoch = g.user_epoch AND c.enabled AND c.epoch = g.client_epoch
AND i.epoch = g.installation_epoch AND coalesce(k.epoch, 0) = g.consent_epoch
AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp()
     OR g.issued_at >= k.expires_at
     OR (c.metadata ->> 'require_consent')::bool IS NOT TRUE)
AND CASE WHEN jsonb_typeof(c.metadata -> 'allowed_roles') = 'array'
    THEN jsonb_path_exists(u.claims, '$.role[*] ? (@ == $allowed_roles[*])', c.metadata)
    ELSE true END

-- The rows that `{stands}` compares with `g`.
{grounds}
CROSS JOIN installation i LEFT JOIN users u ON u.sub = g.sub
LEFT JOIN clients c ON c.client_id = g.client_id
LEFT JOIN consents k ON k.sub = g.sub AND k.client_id = g.client_id

-- Whether the grant `g` is at the generation that was presented, and all of `standing` stands.
{is current}
g.revoked_at IS NULL AND standing.stands AND g.generation = :presented::int4

{user}
u.sub, u.username, u.tenant, u.password_hash, u.enabled, u.valid_until, {has ended},
u.claims, u.epoch, u.factors, u.strongest_acr

-- What a token of a user stands on.
{standing}
r.jti IS NOT NULL AS revoked, c.enabled AS client_enabled,
i.epoch AS installation_epoch, c.epoch AS client_epoch, k.epoch AS consent_epoch,
g.offline, g.revoked_at, g.expires_at, g.installation_epoch AS of_installation,
g.client_epoch AS of_client, g.user_epoch AS of_user, g.consent_epoch AS of_consent,
k.expires_at AS consent_expires_at, {person}

{standing of user}
installation i
LEFT JOIN {revoked_tokens} r ON r.day = :expires_on::int4 AND r.jti = :jti::bytea
LEFT JOIN clients c ON c.client_id = :client_id::text
LEFT JOIN consents k ON k.sub = :sub::text AND k.client_id = :client_id::text
LEFT JOIN {grants} g
  ON g.day = :grant_day::int4 AND g.id = :grant_id::bytea
     AND g.client_id = :client_id::text AND g.sub = :sub::text
LEFT JOIN users u ON u.sub = :sub::text

-- The same of a client's own token.
{standing of client}
c.enabled AS client_enabled, i.epoch AS installation_epoch, c.epoch AS client_epoch
FROM installation i
LEFT JOIN {revoked_tokens} r ON r.day = :expires_on::int4 AND r.jti = :jti::bytea
LEFT JOIN clients c ON c.client_id = :client_id::text

-- What tokens tell of the user `u`, and what ends them.
{person}
u.sub, u.username, u.tenant, {may act} AS enabled, u.valid_until, u.claims, u.epoch

{session}
s.day, s.sid, s.sub AS session_sub, s.auth_time, s.amr, s.acr,
s.tenant AS session_tenant, s.identity_provider, s.upstream_issuer,
s.installation_epoch, s.user_epoch, s.source, s.user_agent, s.created_at, s.used_at,
s.expires_at, s.ended_at, s.bound_to, s.bound_at, s.refused_at

{grant}
g.day, g.id, g.client_id, g.sub, g.revoked_at, {granted}

-- The same without what a statement knows that found it alive by its name.
{granted}
g.scopes, g.resources, g.claims AS grant_claims,
g.token_claims, g.sid, g.tenant AS grant_tenant, g.identity_provider, g.auth_time, g.amr,
g.acr, g.installation_epoch, g.client_epoch, g.user_epoch, g.consent_epoch, g.generation,
g.issued_at, coalesce(g.used_at, g.moved_at, g.redeemed_at) AS last_used_at,
g.expires_at, g.confirmation

{consent}
k.scopes AS consented_scopes, k.claims AS consented_claims,
k.granted_at AS consented_at, k.expires_at AS consent_expires_at,
k.epoch AS consent_epoch

-- The columns of the event that is the alternative `a.n`.
{event}
{event begins}, (:event_hashes::bytea[])[a.n], (:event_names::text[])[a.n],
:event_client_id::text, :event_sub::text, :event_sid::text, {event ends}

-- The same, of the user `a.sub` and the session `a.sid` that the statement found.
{event of its user}
{event begins}, sha256((:event_hashes::bytea[])[a.n] || hashed(a.sub) || hashed(a.sid)
    || :event_ending::bytea), (:event_names::text[])[a.n],
:event_client_id::text, a.sub, a.sid, {event ends}

{event begins}
:event_day::int4, :event_at::timestamptz, :event_chain::text, :event_seq::int8,
:event_previous::bytea

{event ends}
:event_source::text, :event_request_id::text, :event_detail::text::json

-- Takes the names that `keys` has (tenant, name, is_alone), so that of two statements at once
-- that give somebody an address, or call somebody by it, the second finds that it was taken.
-- Neither sees what the other is about to do, nor what it committed a moment ago. So each
-- writes a row for the name, among the used assertions: of an issuer that no client can be, as
-- it ends with a space. The second waits for it, and then sees that it is not the row, or the
-- absence of one, that there was when it began. (Two that begin on different days of UTC write
-- two rows.)
{names taken}
hashed_keys AS (SELECT DISTINCT sha256(convert_to(
    k.tenant || ' ' || lower(normalize(k.name, NFKC)), 'UTF8')) AS hash FROM keys k),
taken_keys AS (INSERT INTO used_assertions AS t (day, issuer, jti_hash)
SELECT floor(extract(epoch FROM clock_timestamp()) / 86400)::int4, 'name ', k.hash
FROM hashed_keys k ORDER BY k.hash
ON CONFLICT (day, issuer, jti_hash) DO UPDATE SET taken_at = clock_timestamp()
WHERE t.taken_at = (SELECT s.taken_at FROM used_assertions s
    WHERE s.day = t.day AND s.issuer = t.issuer AND s.jti_hash = t.jti_hash)
RETURNING t.jti_hash)

-- Whether all of them were taken, and none that must be alone is the address of another user
-- than `:sub` who may sign in, and that counts.
{names are free}
(SELECT count(*) FROM taken_keys) = (SELECT count(*) FROM hashed_keys)
AND NOT EXISTS (SELECT FROM keys k JOIN users h ON h.tenant = k.tenant
    AND h.claims ? 'email' AND left(lower(normalize(h.claims ->> 'email', NFKC)), 254)
        = left(lower(normalize(k.name, NFKC)), 254) COLLATE "C"
    WHERE k.is_alone AND h.sub <> :sub::text AND h.enabled AND {in time}
      AND {address counts})

-- The user of a link by which somebody disowns a sign-in, whether they are as it was made on,
-- and a mark of that. An account that was linked since, five minutes before the link was made
-- included, is another state, too. The mark is used with the link, so that every other link
-- that was made on the same is over with it.
{disowned}
SELECT u.epoch = :epoch::int8 AND u.factors = :factors::int8
    AND sha256(convert_to(coalesce(u.claims ->> 'email', ''), 'UTF8'))
        = :address_hash::bytea
    AND u.claims -> 'email_verified' = 'true'
    AND NOT EXISTS (SELECT FROM linked_identities l WHERE l.sub = u.sub
        AND l.linked_at > :expires_at::timestamptz - interval '24 hours 5 minutes')
    AS stands, m.hash
FROM (SELECT sha256(:address_hash::bytea || int8send(:factors::int8)
    || int8send(:epoch::int8) || convert_to(:sub::text, 'UTF8')) AS hash) AS m, users u
WHERE u.sub = :sub::text AND {may act} AND clock_timestamp() < :expires_at::timestamptz
  AND (SELECT i.epoch FROM installation i) = :installation_epoch::int8
  AND NOT EXISTS (SELECT FROM used_assertions a,
          floor(extract(epoch FROM now()) / 86400) AS today
      WHERE a.day IN (today::int4, today::int4 + 1)
        AND a.issuer = 'not me ' AND a.jti_hash = m.hash)

-- Whether the address of the user `h` counts for signing in and for letters: it is verified,
-- and not by the word of a provider alone whose registration does not say `trust_email`. Trust
-- is in an issuer (or, without one, in its `userinfo_endpoint`): names change hands.
{address counts}
h.claims -> 'email_verified' = 'true' AND NOT EXISTS (
SELECT FROM linked_identities l
WHERE l.sub = h.sub AND h.claims ->> 'email' = coalesce(l.verified_email,
    CASE WHEN l.claims -> 'email_verified' = 'true' THEN l.claims ->> 'email' END)
  AND NOT EXISTS (SELECT FROM catalogue_entries e
      WHERE e.kind = 'identity_provider'
        AND l.issuer = coalesce(e.document ->> 'issuer',
                                e.document ->> 'userinfo_endpoint')
        AND e.document -> 'trust_email' = 'true'))

-- Whether no logout token is being taken about whoever signs in. None can be until this
-- statement is committed: `upstream_sessions::END` takes the same locks alone.
{no logout is taken}
(SELECT bool_and(pg_try_advisory_xact_lock_shared(
    hashtextextended(:upstream_issuer::text || encode(key, 'hex'), 0)))
FROM unnest(:logouts::bytea[]) AS key)

-- Spends the way of a round trip once, and not where a logout token came since they left.
{unless left}
WHERE NOT EXISTS (
    SELECT FROM used_assertions u
    WHERE u.day IN (:left_on::int4, :left_on::int4 + 1) AND u.issuer = :upstream_issuer::text
      AND u.jti_hash = ANY (:logouts::bytea[]) AND u.taken_at > :left_at::timestamptz)
ON CONFLICT (day, issuer, jti_hash) DO NOTHING
RETURNING day

-- The session that somebody changes their own account in, while it lives.
{own session}
own AS (SELECT s.sid FROM sessions s
WHERE s.day = :day::int4 AND s.sid = :sid::text AND (s.sub = :sub::text) IS TRUE
  AND s.ended_at IS NULL AND s.expires_at > clock_timestamp())

-- Whether the row `u` is the person on whom an administrator acts, as it was read.
{acted on}
u.sub = :sub::text AND u.xmin::text = :version::text AND {may be changed}

-- Whether the user `u` is in the reach of an administrator, not themselves, and without a role
-- that administrators may not give: `Administration::may_change` says the same of what was
-- read.
{may be changed}
(u.tenant = ANY(:reach::text[]) AND u.sub <> :admin::text
AND coalesce({given roles} @> (u.claims -> 'role'), true))

-- What administrators may give: `Administration::roles_to_give` says the same of what was read.
{given roles}
(to_jsonb(:given_roles::text[]) || (SELECT coalesce(jsonb_agg(r.name), '[]')
    FROM roles r WHERE r.document @> '{"given_by_administrators": true}'
      AND r.name <> :admin_role::text
      AND NOT starts_with(r.name, :admin_role::text || ':')))

-- Whether people sign in to the client `c`; others get tokens for themselves alone.
{opened by people}
(c.metadata ->> 'grant_types' ~ 'authorization_code|implicit|password|device_code')
IS NOT FALSE

-- Whether people of the tenant `t`, or without one where its name is empty, may use the client
-- `c`: several tenants of a client leave room for people without one.
{lets tenant in}
CASE WHEN jsonb_typeof(c.metadata -> 'tenants') IS DISTINCT FROM 'array' THEN true
WHEN t.name = '' THEN jsonb_array_length(c.metadata -> 'tenants') <> 1
ELSE c.metadata -> 'tenants' ? t.name END

-- The name of the user `u`, as people are sorted by it: the index `users_by_name` has this.
{name key}
left(lower(normalize(coalesce(u.claims->>'name', u.username, u.sub), NFKC)), 254)
COLLATE "C"

-- Of a user `u` who is looked at for a list of people; it is cut where there may be more.
{looked at}
u.sub, {in state} AS is_asked_for, count(*) OVER () >= :most::int8 AS is_cut

-- Each of the roles that were asked for, in each of the tenants.
{roles asked for}
unnest(:tenants::text[]) AS t (name) CROSS JOIN unnest(:roles::text[]) AS r (name)

-- Who has one of those roles.
{members of role}
SELECT m.sub FROM role_members m WHERE m.tenant = t.name AND m.role = r.name

-- Whether the user `u` is in the state that was asked for, if any was.
{in state}
CASE :state::text WHEN 'disabled' THEN NOT {may act} WHEN 'enabled' THEN {may act}
WHEN 'invited' THEN {may act} AND u.password_hash IS NULL AND u.factors = 0
    AND NOT EXISTS (SELECT FROM linked_identities o WHERE o.sub = u.sub)
WHEN 'no-second-factor' THEN {may act} AND u.password_hash IS NOT NULL
    AND u.strongest_acr = '1'
WHEN 'not-signed-in' THEN {may act}
    AND {last use} < clock_timestamp() - interval '90 days'
ELSE true END

-- A text that locale providers and languages make different small letters of.
{lowered}
lower(normalize('ΣΑΣ İSMAİL ẞ Ì', NFKC))

-- Has the clients called of all sessions of the user `:sub`.
{user called}
called AS (UPDATE session_clients SET due_at = clock_timestamp()
WHERE sub = :sub::text AND due_at IS NULL AND tries = 0)

-- Has the clients called of the sessions that the statement `ended`.
{called}
called AS (UPDATE session_clients c SET due_at = clock_timestamp() FROM ended
WHERE c.day = ended.day AND c.sid = ended.sid AND c.due_at IS NULL AND c.tries = 0)

-- Whether the end of the user `u` has come, which nobody need have seen yet.
{has ended}
coalesce(u.valid_until <= clock_timestamp(), false) AS has_ended

-- Whether the user `u` is enabled, and in time.
{may act}
(u.enabled AND {in time})

-- Whether the end has not come of the one user whom the names around it can mean.
{in time}
(valid_until > clock_timestamp()) IS NOT FALSE

-- When the user `u` was there last, as far as anybody knows: made, enabled, signed in or with a
-- refresh token. Nothing is known of days before the log was folded, nor before the first fold.
{last use}
greatest(u.created_at, u.enabled_at,
    to_timestamp((SELECT o.day + 1 FROM user_uses o WHERE o.sub = u.sub) * 86400.0),
    (SELECT max(s.used_at) FROM sessions s WHERE s.sub = u.sub),
    coalesce((SELECT least(to_timestamp(min(f.hour) * 3600.0), max(m.applied_at))
     FROM folds f, schema_migrations m WHERE m.name = '0013_folds.sql'), now()))

-- Secrets of clients or of resources, each with its owner.
{secrets}
SELECT * FROM unnest(:owners::text[], :ids::bytea[], :digests::bytea[], :descriptions::text[],
                     :expiries::timestamptz[])

-- A secret takes the place of the one of its name.
{secret put}
DO UPDATE SET sealed_digest = excluded.sealed_digest, description = excluded.description,
              expires_at = excluded.expires_at
