#!/usr/bin/env bash
# Guess: where the server answers a refresh with 503 once, the next request of the program tries it again with the same
# refresh token.
# So it is: requests-auth and httpx-auth take any refusal for the end of the refresh token, and forget it. In the same
# moment they ask for the password grant again; where they have signed somebody in by a browser, it opens once more.
# Versions: requests-auth 8.0.0, httpx-auth 0.23.1. Seen, of two requests: requests-auth: password, refresh_token, password;
# httpx-auth: password, refresh_token, password
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check requests-auth==8.0.0 httpx-auth==0.23.1 httpx==0.28.1

cat > program.py <<'PROGRAM'
import http.server, json, threading, urllib.parse
import httpx, httpx_auth, requests, requests_auth

asked = []

class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        asked.append(form["grant_type"][0])
        fails = len(asked) == 2
        answer = {"error": "temporarily_unavailable"} if fails else {
            "access_token": "access", "token_type": "Bearer", "expires_in": 1, "refresh_token": "refresh"}
        body = json.dumps(answer).encode()
        self.send_response(503 if fails else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_address[1]}/token"

def tried(name, library, request):
    asked.clear()
    auth = library.OAuth2ResourceOwnerPasswordCredentials(url, username="ada", password="secret")
    for _ in range(2):
        request(auth)
    print(f"{name}: {', '.join(asked)}")

tried("requests-auth", requests_auth, lambda auth: requests.Request("GET", url, auth=auth).prepare())
tried("httpx-auth", httpx_auth, lambda auth: next(auth.sync_auth_flow(httpx.Request("GET", url))))
PROGRAM
python/bin/python program.py | tee seen

diff seen - <<'EXPECTED'
requests-auth: password, refresh_token, password
httpx-auth: password, refresh_token, password
EXPECTED
