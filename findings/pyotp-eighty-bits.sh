#!/usr/bin/env bash
# Guess: a library for one-time codes takes the secret of the example in the description of the key
# address format (JBSWY3DPEHPK3PXP, ten bytes), as many apps and older servers have them.
# So it is: pyotp 2.12.1 asks for 112 bits and raises a ValueError for it, also where it only
# makes the code of somebody who has had that secret for years; 2.9.0 takes it.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

cat > program.py <<'PROGRAM'
import pyotp

try:
    print(pyotp.TOTP("JBSWY3DPEHPK3PXP").at(59))
except ValueError as error:
    print("ValueError:", error)
PROGRAM
for version in 2.9.0 2.12.1; do
    python3 -m venv "$version"
    "$version/bin/pip" install --quiet --disable-pip-version-check "pyotp==$version"
    "$version/bin/python" program.py >"$version.said"
    echo "pyotp $version: $(cat "$version.said")"
done
grep -qxE '[0-9]{6}' 2.9.0.said
grep -qx 'ValueError: Secrets must be at least 112 bits after decoding' 2.12.1.said
