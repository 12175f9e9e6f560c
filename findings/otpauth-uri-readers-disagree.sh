#!/usr/bin/env bash
# Guess: two libraries that read otpauth:// addresses (what an app scans) find the same issuer and the
# same account in them, and both take any address that has a parameter more than they need.
# So it is: where the colon between the two is percent-encoded, which the description of the format
# allows, otpauth splits there and pyotp finds no issuer and the account `Corp:ada`. A `+` in the issuer
# is a plus for otpauth and a blank for pyotp. A `counter`, which only HOTP needs, is a TypeError of
# Python's in pyotp and left out by otpauth.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund otpauth@9.5.2
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check pyotp==2.12.1

cat > addresses <<'ADDRESSES'
otpauth://totp/Corp%3Aada?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP
otpauth://totp/ada?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Corp+Inc
otpauth://totp/Corp:ada?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&counter=0
ADDRESSES
cat > read.mjs <<'PROGRAM'
import { readFileSync } from 'node:fs';
import { URI } from 'otpauth';

for (const address of readFileSync('addresses', 'utf8').trim().split('\n')) {
  const { issuer, label } = URI.parse(address);
  console.log(`${issuer} | ${label}`);
}
PROGRAM
cat > read.py <<'PROGRAM'
import pyotp

for address in open("addresses").read().split():
    try:
        found = pyotp.parse_uri(address)
        print(found.issuer, "|", found.name)
    except TypeError as error:
        print("TypeError:", error)
PROGRAM
by_otpauth=$(node read.mjs)
by_pyotp=$(python/bin/python read.py)
printf 'otpauth 9.5.2:\n%s\npyotp 2.12.1:\n%s\n' "$by_otpauth" "$by_pyotp"
[ "$by_otpauth" = 'Corp | ada
Corp+Inc | ada
Corp | ada' ]
[ "$by_pyotp" = "None | Corp:ada
Corp Inc | ada
TypeError: TOTP.__init__() got an unexpected keyword argument 'initial_count'" ]
