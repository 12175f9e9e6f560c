"""Authlib against Gatepost. Reads what to do from standard input, one JSON object a line, and answers each with one.

The pages are not the library's business: the caller walks them and brings back where they ended.
"""

import json
import os
import sys
import time
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

# Plain HTTP is for this machine alone, which the library wants to be told.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken, HybridIDToken, ImplicitIDToken
from authlib.oidc.discovery import OpenIDProviderMetadata, get_well_known_url
from joserfc.jwk import ECKey, OKPKey, RSAKey


class ByKey(PrivateKeyJWT):
    def sign(self, auth, token_endpoint):
        # The library would have an assertion live for an hour; and it writes the jti into the claims it is given, where
        # it would find it again the next time.
        self.claims = {"exp": int(time.time()) + 300}
        return super().sign(auth, token_endpoint)


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

    def sign_for_oneself(self, key, kind, kid, alg):
        self.session.client_secret = {"rsa": RSAKey, "ec": ECKey, "ed25519": OKPKey}[kind].import_key(key)
        self.session.token_endpoint_auth_method = self.session.revocation_endpoint_auth_method = "private_key_jwt"
        self.session.register_client_auth_method(ByKey(self.metadata["token_endpoint"], headers={"kid": kid}, alg=alg))
        return {}

    def validate_metadata(self):
        # Authlib insists on https everywhere, which only a deployment has.
        https = json.loads(json.dumps(self.metadata).replace("http://", "https://"))
        OpenIDProviderMetadata(https).validate()
        return {}

    def authorization_url(self, response_type="code", **further):
        self.verifier, self.nonce, self.response_type = generate_token(48), generate_token(), response_type
        if "code " in response_type:
            # The library makes the challenge for the plain code flow alone.
            further |= {"code_challenge": create_s256_code_challenge(self.verifier), "code_challenge_method": "S256"}
        url, state = self.session.create_authorization_url(
            self.metadata["authorization_endpoint"],
            code_verifier=self.verifier,
            nonce=self.nonce,
            response_type=response_type,
            **further,
        )
        return {"url": url, "state": state}

    def push(self, url):
        """Hands a request over before the browser comes. The library has no function for that: its request, its authentication."""
        address = urlsplit(url)
        answer = self.session.post(
            self.metadata["pushed_authorization_request_endpoint"],
            data=parse_qsl(address.query),
            auth=self.session.client_auth(self.session.token_endpoint_auth_method),
            withhold_token=True,
        )
        pushed = answer.json()
        if answer.status_code != 201:
            raise OAuthError(pushed["error"], pushed.get("error_description"))
        query = urlencode({"client_id": self.client_id, "request_uri": pushed["request_uri"]})
        return {"url": address._replace(query=query).geturl()}

    def fetch_token(self, answer, state):
        token = self.session.fetch_token(
            self.metadata["token_endpoint"], authorization_response=answer, state=state, code_verifier=self.verifier
        )
        return {"token": dict(token), "claims": self.validated(token, CodeIDToken)}

    def from_browser(self, answer, state):
        """Takes what an implicit or hybrid response brought, and redeems the code where there is one."""
        came = {name: values[0] for name, values in parse_qs(urlsplit(answer).fragment).items()}
        code = came.get("code")
        # The library reads no fragment without an access token.
        token = self.session.token_from_fragment(answer, state) if "access_token" in came else came
        if came["state"] != state:
            raise ValueError("another state")
        claims = self.validated(token, HybridIDToken if code else ImplicitIDToken, code=code)
        redeemed = code and self.fetch_token(f"{urlsplit(answer)._replace(fragment='').geturl()}?code={code}&state={state}", state)
        return {"token": dict(token), "claims": claims, "redeemed": redeemed}

    def validated(self, token, claims_class, **further):
        """The claims of an ID token, by the rules of its flow: which hashes it needs depends on what came with it."""
        keys = JsonWebKey.import_key_set(requests.get(self.metadata["jwks_uri"], timeout=30).json())
        claims = jwt.decode(
            token["id_token"],
            keys,
            claims_cls=claims_class,
            claims_options={"iss": {"values": [self.issuer]}, "aud": {"values": [self.client_id]}},
            claims_params={
                "nonce": self.nonce,
                "access_token": token.get("access_token"),
                "client_id": self.client_id,
                "response_type": self.response_type,
                **further,
            },
        )
        claims.validate()
        return dict(claims)

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
