#!/usr/bin/env bash
# Guess: the parameters that libpq documents for a database URL mean the same to other drivers, or are
# left out by them.
# So it is: asyncpg sends `connect_timeout` to the server as a setting, which Postgres refuses, having
# none of that name. postgres.js refuses `target_session_attrs=any`, libpq's own default. node-postgres
# leaves both out. (Something that speaks just enough of the protocol stands in for the server.)
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund pg@8.23.1 postgres@3.4.9

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check asyncpg==0.32.0 psycopg[binary]==3.3.9

cat > program.py <<'PROGRAM'
import asyncio, socket, struct, subprocess, sys, threading
import asyncpg, psycopg

seen = []
server = socket.create_server(("127.0.0.1", 0))


def serve():
    while True:
        connection, _ = server.accept()
        with connection:
            length = struct.unpack("!I", connection.recv(4))[0]
            words = connection.recv(length - 4)[4:].rstrip(b"\0").decode().split("\0")
            seen.append(dict(zip(words[::2], words[1::2])))
            fields = b"SFATAL\0C28000\0Mno entry\0\0"
            connection.sendall(b"E" + struct.pack("!I", len(fields) + 4) + fields)


def by_node(module, program):
    script = f"import sql from '{module}';" + program
    ran = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, timeout=30
    )
    return ran.stdout.strip()


def told(connect):
    try:
        return connect()
    except Exception as error:
        return str(error).strip().splitlines()[-1]


threading.Thread(target=serve, daemon=True).start()
host = f"127.0.0.1:{server.getsockname()[1]}"
url = f"postgresql://web:secret@{host}/web?sslmode=disable&connect_timeout=3"
any_url = url + "&target_session_attrs=any"
fails = "catch (error) { console.log(error.message) } process.exit()"
drivers = {
    "psycopg 3.3.9": lambda: psycopg.connect(any_url),
    "asyncpg 0.32.0": lambda: asyncio.run(asyncpg.connect(any_url)),
    "pg 8.23.1": lambda: by_node(
        "pg", f"try {{ await new sql.Client('{any_url}').connect() }} {fails}"
    ),
    "postgres 3.4.9": lambda: by_node(
        "postgres", f"try {{ await sql('{any_url}')`select 1` }} {fails}"
    ),
}
expected = {"psycopg 3.3.9": False, "asyncpg 0.32.0": True, "pg 8.23.1": False}
for name, connect in drivers.items():
    seen.clear()
    answer = told(connect)
    sent = "connect_timeout" in seen[-1] if seen else None
    print(f"{name}: sends connect_timeout: {sent}; {answer}")
    if sent is not expected.get(name):
        sys.exit(1)
if "target_session_attrs any is not supported" not in answer:
    sys.exit(1)
PROGRAM
python/bin/python program.py
