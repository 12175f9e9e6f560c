#!/usr/bin/env bash
# Guess: a library that makes SQL of SCIM's filters keeps their rules: `and` binds more than `or` (RFC 7644, section
# 3.4.2.2), and `sw` finds what begins with the text, letter by letter.
# So it is: scim2-filter-parser, which django-scim2 uses, reads `a or b and c` as `(a or b) and c`, and does not find
# people that it should. It takes `_` and `%` of the text over into LIKE as they are, so that `sw "svc_"` finds `svcx` too.
# A client writes the brackets itself, and looks at what it gets.
# Versions: scim2-filter-parser 0.7.0, SQLite of Python 3.11. Seen:
# userName eq "bob" or userName eq "ada" and active eq true: ada
# userName eq "bob" or (userName eq "ada" and active eq true): ada, bob
# userName sw "svc_": svc_ci, svcx
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check scim2-filter-parser==0.7.0

cat > program.py <<'PROGRAM'
import re
import sqlite3

from scim2_filter_parser.queries.sql import SQLQuery

columns = {("userName", None, None): "user_name", ("active", None, None): "active"}
database = sqlite3.connect(":memory:")
database.execute("CREATE TABLE users (user_name, active)")
people = [("ada", "TRUE"), ("bob", "FALSE"), ("svc_ci", "TRUE"), ("svcx", "TRUE")]
database.executemany("INSERT INTO users VALUES (?, ?)", people)
for filter in [
    'userName eq "bob" or userName eq "ada" and active eq true',
    'userName eq "bob" or (userName eq "ada" and active eq true)',
    'userName sw "svc_"',
]:
    query = SQLQuery(filter, "users", columns)
    where = re.sub(r"{(\w+)}", r":\1", query.where_sql)
    found = database.execute(f"SELECT user_name FROM users WHERE {where} ORDER BY user_name", query.params_dict)
    print(f"{filter}: {', '.join(name for name, in found)}")
PROGRAM
python/bin/python program.py | tee seen

diff seen - <<'EXPECTED'
userName eq "bob" or userName eq "ada" and active eq true: ada
userName eq "bob" or (userName eq "ada" and active eq true): ada, bob
userName sw "svc_": svc_ci, svcx
EXPECTED
