#!/usr/bin/env bash
# Guess: a SCIM client writes the value of a filter by its JSON library, as RFC 7644, section 3.4.2.2, has it ("compValue"
# is a JSON string), and the server reads it back: `CORP\ada` goes as "CORP\\ada", and `José` as "Jos\u00e9", as Python's
# json.dumps writes it.
# So it is: scim2-parse-filter, scimmy and scim2-filter-parser leave both as they were written, so that they look for other
# people and find none; Go's filter-parser, which elimity-com/scim uses, keeps the first one, too, and refuses the second.
# scim2-models reads both right. A client that finds nobody by such a name makes them anew.
# Versions: scim2-parse-filter 0.2.10, scimmy 1.3.5, Node 20; scim2-filter-parser 0.7.0, scim2-models 0.12.3, Python 3.11;
# scim2/filter-parser 2.3.1, Go 1.26. Seen: the list at the end of this script.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund scim2-parse-filter@0.2.10 scimmy@1.3.5
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check scim2-filter-parser==0.7.0 scim2-models==0.12.3

python/bin/python -c '
import json
print(json.dumps([["userName eq " + json.dumps(name), name] for name in ["CORP\\ada", "José"]]))' > filters.json

cat > program.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs';
import { filter as matcher, parse } from 'scim2-parse-filter';
import SCIMMY from 'scimmy';

for (const [filter, name] of JSON.parse(readFileSync('filters.json', 'utf8'))) {
  const found = matcher(parse(filter))({ userName: name });
  console.log(`scim2-parse-filter, ${filter}: ${found ? 'found' : 'not found'}`);
  const some = new SCIMMY.Types.Filter(filter).match([{ userName: name }]).length;
  console.log(`scimmy, ${filter}: ${some ? 'found' : 'not found'}`);
}
PROGRAM
cat > program.py <<'PROGRAM'
import json

from scim2_filter_parser.queries.sql import SQLQuery
from scim2_models import User
from scim2_models.path.filter import ScimFilter

for filter, name in json.load(open("filters.json")):
    query = SQLQuery(filter, "users", {("userName", None, None): "user_name"})
    found = name in query.params_dict.values()
    print(f"scim2-filter-parser, {filter}: {'found' if found else 'not found'}")
    found = ScimFilter[User](filter).match(User(user_name=name))
    print(f"scim2-models, {filter}: {'found' if found else 'not found'}")
PROGRAM
cat > go.mod <<'PROGRAM'
module finding

go 1.25

require github.com/scim2/filter-parser/v2 v2.3.1
PROGRAM
cat > main.go <<'PROGRAM'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/scim2/filter-parser/v2"
)

func main() {
	text, _ := os.ReadFile("filters.json")
	var pairs [][2]string
	json.Unmarshal(text, &pairs)
	for _, pair := range pairs {
		parsed, err := filter.ParseFilter([]byte(pair[0]))
		told := "not found"
		if err != nil {
			told = "refused"
		} else if parsed.(*filter.AttributeExpression).CompareValue == pair[1] {
			told = "found"
		}
		fmt.Printf("filter-parser, %s: %s\n", pair[0], told)
	}
}
PROGRAM
export GOPATH=$folder/go GOFLAGS=-mod=mod
go mod tidy 2>/dev/null
(node program.mjs; python/bin/python program.py; go run .) | tee seen

diff seen - <<'EXPECTED'
scim2-parse-filter, userName eq "CORP\\ada": not found
scimmy, userName eq "CORP\\ada": not found
scim2-parse-filter, userName eq "Jos\u00e9": not found
scimmy, userName eq "Jos\u00e9": not found
scim2-filter-parser, userName eq "CORP\\ada": not found
scim2-models, userName eq "CORP\\ada": found
scim2-filter-parser, userName eq "Jos\u00e9": not found
scim2-models, userName eq "Jos\u00e9": found
filter-parser, userName eq "CORP\\ada": not found
filter-parser, userName eq "Jos\u00e9": refused
EXPECTED
