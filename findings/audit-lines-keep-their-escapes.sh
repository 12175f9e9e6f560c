#!/usr/bin/env bash
# Guess: who reads audit lines by a library gets the values that were written: both formats have escapes, for a quote, a
# backslash and `]` in structured data of syslog (RFC 5424, section 6.3.3), for `|`, `=` and a backslash in CEF.
# So it is: glossy alone gives the user `CORP\ada`. syslog-rfc5424-parser and nsyslog-parser give it with two backslashes, so
# that it is nobody's name, and with a `\"` nsyslog-parser finds no structured data at all. Of CEF, neither reader undoes an
# escape; where an event's name has a `\|`, pycef loses the name and the severity, and nsyslog-parser cuts a value at `\=`.
# Whose audit lines go through such readers writes JSON, or keeps those characters out of names and values.
# Versions: syslog-rfc5424-parser 0.3.2, pycef 1.11, Python 3.11; glossy 0.1.7, nsyslog-parser 0.10.1, Node 20. Seen: the
# list at the end of this script.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund glossy@0.1.7 nsyslog-parser@0.10.1
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check syslog-rfc5424-parser==0.3.2 pycef==1.11

cat > lines <<'LINES'
<86>1 2026-11-30T20:22:13.003Z login op 12 LOGIN [audit@32473 user="ada"] text
<86>1 2026-11-30T20:22:13.003Z login op 12 LOGIN [audit@32473 user="CORP\\ada"] text
<86>1 2026-11-30T20:22:13.003Z login op 12 LOGIN [audit@32473 user="Ada \"Countess\" King"] text
CEF:0|Example|op|1.0|100|login: ok|5|suser=ada request=https://app.example/?a
CEF:0|Example|op|1.0|100|login \| ok|5|suser=CORP\\ada request=https://app.example/?a\=b
LINES
cat > program.py <<'PROGRAM'
import pycef
from syslog_rfc5424_parser import SyslogMessage

*syslog, plain, escaped = open("lines").read().splitlines()
for line in syslog:
    print("syslog-rfc5424-parser:", SyslogMessage.parse(line).as_dict()["sd"]["audit@32473"]["user"])
for line in plain, escaped:
    event = pycef.parse(line)
    print("pycef:", [event.get(key) for key in ("Name", "Severity", "suser", "request")])
PROGRAM
cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs';
import glossy from 'glossy';
import parse from 'nsyslog-parser';

const lines = readFileSync('lines', 'utf8').trim().split('\n');
for (const line of lines.slice(0, 3)) {
  console.log('glossy:', glossy.Parse.parse(line).structuredData['audit@32473'].user);
  console.log('nsyslog-parser:', parse(line).structuredData[0]?.user ?? '-');
}
for (const line of lines.slice(3)) {
  const { cef, fields } = parse(line);
  console.log('nsyslog-parser:', JSON.stringify([cef.name, cef.severity, fields.suser, fields.request]));
}
PROGRAM
(python/bin/python program.py; node program.mjs) | tee seen

diff seen - <<'EXPECTED'
syslog-rfc5424-parser: ada
syslog-rfc5424-parser: CORP\\ada
syslog-rfc5424-parser: Ada \"Countess\" King
pycef: ['login: ok', '5', 'ada', 'https://app.example/?a']
pycef: ['', None, None, 'https://app.example/?a\\=b']
glossy: ada
nsyslog-parser: ada
glossy: CORP\ada
nsyslog-parser: CORP\\ada
glossy: Ada "Countess" King
nsyslog-parser: -
nsyslog-parser: ["login: ok","5","ada","https://app.example/?a"]
nsyslog-parser: ["login \\| ok","5","CORP\\\\ada","https://app.example/?a\\"]
EXPECTED
