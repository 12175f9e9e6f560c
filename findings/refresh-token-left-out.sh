#!/usr/bin/env bash
# Guess: a client keeps its refresh token where the answer to a refresh has none: RFC 6749, section 6, lets a server
# leave it out, and the old one goes on.
# So it is: requests-auth, httpx-auth, requests_oauth2client and simple-oauth2 have no refresh token afterwards, and the
# next one cannot be asked for. Authlib and requests-oauthlib keep it.
# Versions: requests-auth 8.0.0, httpx-auth 0.23.1, requests_oauth2client 1.8.0, Authlib 1.9.10, requests-oauthlib 2.0.0,
# simple-oauth2 5.1.0. Seen: requests-auth None, httpx-auth None, requests_oauth2client None, Authlib first,
# requests-oauthlib first, simple-oauth2 undefined
set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund simple-oauth2@5.1.0
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check requests-auth==8.0.0 httpx-auth==0.23.1 \
    requests_oauth2client==1.8.0 Authlib==1.9.10 requests-oauthlib==2.0.0 httpx==0.28.1

cat > server.py <<'PROGRAM'
import http.server, json

class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        form = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = {"access_token": "access", "token_type": "Bearer", "expires_in": 1}
        if "grant_type=refresh_token" not in form:
            answer["refresh_token"] = "first"
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_address[1], flush=True)
server.serve_forever()
PROGRAM
python3 server.py > port &
while [ ! -s port ]; do sleep 0.1; done
export TOKEN_URL="http://127.0.0.1:$(cat port)/token" OAUTHLIB_INSECURE_TRANSPORT=1

cat > program.py <<'PROGRAM'
import os
import httpx, httpx_auth, requests, requests_auth
from authlib.integrations.requests_client import OAuth2Session as Authlib
from requests_oauth2client import BearerToken, OAuth2AccessTokenAuth, OAuth2Client
from requests_oauthlib import OAuth2Session

url = os.environ["TOKEN_URL"]

def kept(library, request):
    auth = library.OAuth2ResourceOwnerPasswordCredentials(url, username="ada", password="secret")
    for _ in range(2):
        request(auth)
    cache = getattr(library, "OAuth2").token_cache
    return [refresh for _, _, refresh in cache.tokens.values()][0]

print("requests-auth", kept(requests_auth, lambda auth: requests.Request("GET", url, auth=auth).prepare()))
print("httpx-auth", kept(httpx_auth, lambda auth: next(auth.sync_auth_flow(httpx.Request("GET", url)))))

token = BearerToken("access", refresh_token="first", expires_in=1)
auth = OAuth2AccessTokenAuth(OAuth2Client(url, client_id="shop", client_secret="secret", testing=True), token)
auth.renew_token()
print("requests_oauth2client", auth.token.refresh_token)

session = Authlib("shop", "secret", token={"access_token": "access", "refresh_token": "first"})
print("Authlib", session.refresh_token(url).get("refresh_token"))

session = OAuth2Session("shop", token={"access_token": "access", "refresh_token": "first"})
print("requests-oauthlib", session.refresh_token(url).get("refresh_token"))
PROGRAM
cat > program.cjs <<'PROGRAM'
const { AuthorizationCode } = require('simple-oauth2');
const url = new URL(process.env.TOKEN_URL);
const client = new AuthorizationCode({ client: { id: 'shop', secret: 'secret' }, auth: { tokenHost: url.origin, tokenPath: url.pathname } });
client.createToken({ access_token: 'access', refresh_token: 'first' }).refresh()
  .then(({ token }) => console.log('simple-oauth2', token.refresh_token));
PROGRAM
{ python/bin/python program.py; node program.cjs; } | tee seen

diff seen - <<'EXPECTED'
requests-auth None
httpx-auth None
requests_oauth2client None
Authlib first
requests-oauthlib first
simple-oauth2 undefined
EXPECTED
