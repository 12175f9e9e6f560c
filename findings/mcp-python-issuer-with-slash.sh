#!/usr/bin/env bash
# Guess: a server with the Python SDK of MCP names its authorization server as it is told to, `https://login.example.com`:
# the SDK keeps addresses without a path as they are (`url_preserve_empty_path`), as issuers are compared byte for byte.
# So it is: that holds for a plain text alone. An AnyHttpUrl, the type of the setting, has got a slash before the SDK sees
# it, and the SDK's own client then refuses the issuer in the metadata of the authorization server.
# Versions: mcp 2.3.0, Python 3.11. Seen: str https://login.example.com, AnyHttpUrl https://login.example.com/
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check mcp==2.3.0

cat > program.py <<'PROGRAM'
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl

for issuer in "https://login.example.com", AnyHttpUrl("https://login.example.com"):
    settings = AuthSettings(
        issuer_url=issuer, resource_server_url="https://mcp.example.com/mcp", validate_token_resource=True)
    print(type(issuer).__name__, settings.issuer_url)
PROGRAM
python/bin/python program.py | tee seen

diff seen - <<'EXPECTED'
str https://login.example.com
AnyHttpUrl https://login.example.com/
EXPECTED
