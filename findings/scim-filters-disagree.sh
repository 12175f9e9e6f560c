#!/usr/bin/env bash
# Guess: two libraries for SCIM's filters find the same people.
# So it is: scim2-parse-filter compares times as text, so that a time with another offset finds the
# wrong people, where scimmy compares them as times; `ne` finds people without the attribute in
# scimmy alone; and scimmy cannot read a text with quotes in it.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund scim2-parse-filter@0.2.10 scimmy@1.3.5

cat > program.mjs <<'PROGRAM'
import { filter, parse } from 'scim2-parse-filter';
import scimmy from 'scimmy';

const user = { userName: 'a "b" c', meta: { lastModified: '2024-01-01T00:00:00Z' } };
const tried = (judge) => {
  try {
    return judge();
  } catch (error) {
    return error.message;
  }
};
for (const [text, byFirst, byScimmy] of [
  ['userName sw "a"', true, true],
  // 04:00 by the clock of the user.
  ['meta.lastModified gt "2023-12-31T23:00:00-05:00"', true, false],
  ['nickName ne "Al"', false, true],
  ['userName eq "a \\"b\\" c"', true, /^Unexpected token/],
]) {
  const first = tried(() => filter(parse(text))(user));
  const second = tried(() => new scimmy.Types.Filter(text).match([user]).length === 1);
  console.log(`${text}: scim2-parse-filter 0.2.10: ${first}; scimmy 1.3.5: ${second}`);
  const asThen = byScimmy instanceof RegExp ? byScimmy.test(second) : second === byScimmy;
  if (first !== byFirst || !asThen) process.exit(1);
}
PROGRAM
node program.mjs
