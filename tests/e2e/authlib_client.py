"""Authlib against Gatepost. Reads what to do from standard input, one JSON object a line, and answers each with one.

The pages are not the library's business: the caller walks them and brings back where they ended.
"""

import json
import os
import sys

# Plain HTTP is for this machine alone, which the library wants to be told.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import OpenIDProviderMetadata, get_well_known_url


class Client:
    def discover(self, issuer, client_id, client_secret=None, redirect_uri=None, scope=None):
        found = requests.get(get_well_known_url(issuer, external=True), timeout=30)
        found.raise_for_status()
        self.metadata = OpenIDProviderMetadata(found.json())
        self.issuer, self.client_id = issuer, client_id
        self.session = OAuth2Session(
            client_id,
            client_secret,
            scope=scope,
            redirect_uri=redirect_uri,
            token_endpoint_auth_method="client_secret_basic" if client_secret else "none",
            code_challenge_method="S256",
        )
        return {"issuer": self.metadata["issuer"]}

    def validate_metadata(self):
        # Authlib insists on https everywhere, which only a deployment has.
        https = json.loads(json.dumps(self.metadata).replace("http://", "https://"))
        OpenIDProviderMetadata(https).validate()
        return {}

    def authorization_url(self):
        self.verifier, self.nonce = generate_token(48), generate_token()
        url, state = self.session.create_authorization_url(
            self.metadata["authorization_endpoint"], code_verifier=self.verifier, nonce=self.nonce
        )
        return {"url": url, "state": state}

    def fetch_token(self, answer, state):
        token = self.session.fetch_token(
            self.metadata["token_endpoint"], authorization_response=answer, state=state, code_verifier=self.verifier
        )
        keys = JsonWebKey.import_key_set(requests.get(self.metadata["jwks_uri"], timeout=30).json())
        claims = jwt.decode(
            token["id_token"],
            keys,
            claims_cls=CodeIDToken,
            claims_options={"iss": {"values": [self.issuer]}, "aud": {"values": [self.client_id]}},
            claims_params={"nonce": self.nonce, "access_token": token["access_token"], "client_id": self.client_id},
        )
        claims.validate()
        return {"token": dict(token), "claims": dict(claims)}

    def client_credentials(self):
        return {"token": dict(self.session.fetch_token(self.metadata["token_endpoint"], grant_type="client_credentials"))}

    def password(self, username, password):
        token = self.session.fetch_token(self.metadata["token_endpoint"], username=username, password=password)
        return {"token": dict(token)}

    def device_authorization(self):
        form = {"client_id": self.client_id, "scope": self.session.scope}
        answer = requests.post(self.metadata["device_authorization_endpoint"], data=form, timeout=30)
        answer.raise_for_status()
        return {"waiting": answer.json()}

    def device_token(self, device_code, **_):
        token = self.session.fetch_token(
            self.metadata["token_endpoint"],
            grant_type="urn:ietf:params:oauth:grant-type:device_code",
            device_code=device_code,
        )
        return {"token": dict(token)}

    def refresh(self, refresh_token):
        token = self.session.refresh_token(self.metadata["token_endpoint"], refresh_token=refresh_token)
        return {"token": dict(token)}

    def revoke(self, token, token_type_hint=None):
        answer = self.session.revoke_token(self.metadata["revocation_endpoint"], token, token_type_hint)
        return {"status": answer.status_code}

    def introspect(self, token, token_type_hint=None):
        answer = self.session.introspect_token(self.metadata["introspection_endpoint"], token, token_type_hint)
        return {"status": answer.status_code, "claims": answer.json()}

    def userinfo(self):
        answer = self.session.get(self.metadata["userinfo_endpoint"])
        answer.raise_for_status()
        return {"claims": answer.json()}


def main():
    client = Client()
    for line in sys.stdin:
        wish = json.loads(line)
        try:
            answer = getattr(client, wish.pop("do"))(**wish)
        except OAuthError as error:
            answer = {"error": error.error, "description": error.description}
        except Exception as error:
            answer = {"exception": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
