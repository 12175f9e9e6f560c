#!/usr/bin/env bash
# Guess: the Python client of Kubernetes refreshes the ID token of a kubeconfig that kubectl takes: `oidc` with a public
# client, that is, without `client-secret`, and with a refresh token.
# So it is: it raises a ConfigException for the missing secret once the ID token has expired. With `client-secret: ""` it
# goes on, and proves the public client by Basic with an empty password.
# Versions: kubernetes 37.0.2, requests-oauthlib 2.0.0. Seen:
# without: ConfigException: Invalid kube-config file. Expected key client-secret in kube-config
# empty: Basic kubernetes:
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2 requests-oauthlib==2.0.0

cat > program.py <<'PROGRAM'
import base64, http.server, json, threading
from kubernetes import client, config

seen = []

class Server(http.server.BaseHTTPRequestHandler):
    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({"token_endpoint": issuer + "/token"})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        scheme, proof = self.headers["Authorization"].split()
        seen.append(f"{scheme} {base64.b64decode(proof).decode()}")
        self.answer({"id_token": "new", "refresh_token": "next", "access_token": "access", "token_type": "Bearer"})

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
issuer = f"http://127.0.0.1:{server.server_address[1]}"

def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

expired = f"{part({'alg': 'RS256'})}.{part({'exp': 1})}.AAAA"
for name, secret in [("without", {}), ("empty", {"client-secret": ""})]:
    provider = {"name": "oidc", "config": {
        "client-id": "kubernetes", "idp-issuer-url": issuer, "id-token": expired, "refresh-token": "first", **secret}}
    try:
        config.load_kube_config_from_dict({
            "current-context": "it", "contexts": [{"name": "it", "context": {"cluster": "it", "user": "ada"}}],
            "clusters": [{"name": "it", "cluster": {"server": "http://127.0.0.1:1"}}],
            "users": [{"name": "ada", "user": {"auth-provider": provider}}]}, persist_config=False,
            client_configuration=client.Configuration())
        print(f"{name}: {seen[-1]}")
    except Exception as error:
        print(f"{name}: {type(error).__name__}: {error}")
PROGRAM
OAUTHLIB_INSECURE_TRANSPORT=1 python/bin/python program.py 2>/dev/null | tee seen

grep -q '^without: ConfigException: .*client-secret' seen
grep -qx 'empty: Basic kubernetes:' seen
