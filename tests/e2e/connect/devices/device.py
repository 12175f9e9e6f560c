import time
from os import environ

import requests

ISSUER = environ.get("ISSUER", "http://localhost:8080")


def post(path, form):
    return requests.post(f"{ISSUER}/connect/{path}", data={"client_id": "television"} | form, timeout=10).json()


shown = post("deviceauthorization", {"scope": "openid profile offline_access"})
print(f"Open {shown['verification_uri']} and type {shown['user_code']}", flush=True)
print(f"or show this as a QR code: {shown['verification_uri_complete']}", flush=True)

form = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": shown["device_code"]}
pause = shown["interval"]
while True:
    time.sleep(pause)
    try:
        token = post("token", form)
    except requests.RequestException:  # the network is away: RFC 8628 section 3.5
        token = {"error": "temporarily_unavailable"}
    if "access_token" in token:
        break
    if token["error"] in ("slow_down", "temporarily_unavailable"):
        pause += 5
    elif token["error"] != "authorization_pending":
        raise SystemExit(token["error"])  # access_denied, expired_token

bearer = {"Authorization": f"Bearer {token['access_token']}"}
user = requests.get(f"{ISSUER}/connect/userinfo", headers=bearer, timeout=10).json()
print(f"Hello {user['name']}")
