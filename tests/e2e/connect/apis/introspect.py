import sys
from os import environ

import requests

ISSUER = environ.get("ISSUER", "http://localhost:8080")


def judged(token):
    """What the token says, or None: it ended, or is for another API."""
    answer = requests.post(
        f"{ISSUER}/connect/introspect",
        data={"token": token, "client_id": "https://api.example.com", "client_secret": environ["API_SECRET"]},
        timeout=5,
    )
    answer.raise_for_status()  # 401: the API's own secret is wrong
    claims = answer.json()
    return claims if claims["active"] and "orders.read" in claims["scope"].split() else None


claims = judged(sys.stdin.read().strip())
print(f"let {claims['client_id']} in" if claims else "401")
