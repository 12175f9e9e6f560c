import time
from os import environ

import requests

ISSUER = environ.get("ISSUER", "http://localhost:8080")
API = environ.get("API", "http://localhost:3001/orders")
kept = {"token": None, "until": 0.0}


def access_token():
    """One token for many calls: a new one half a minute before the old one ends."""
    if time.time() > kept["until"]:
        answer = requests.post(
            f"{ISSUER}/connect/token",
            auth=("nightly", environ["CLIENT_SECRET"]),
            data={"grant_type": "client_credentials", "scope": "orders.read"},
            timeout=10,
        )
        if not answer.ok:
            raise SystemExit(f"no token: {answer.text}, request {answer.headers['X-Request-Id']}")
        token = answer.json()
        kept.update(token=token["access_token"], until=time.time() + token["expires_in"] - 30)
    return kept["token"]


answer = requests.get(API, headers={"Authorization": f"Bearer {access_token()}"}, timeout=10)
print(answer.status_code, answer.text)
