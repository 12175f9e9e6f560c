"""Authlib against Gatepost. Reads what to do from standard input, one JSON object a line, and answers each with one.

The pages are not the library's business: the caller walks them and brings back where they ended.
"""

import base64
import hashlib
import json
import os
import sys
import time
import uuid
from urllib.parse import parse_qs, urlencode, urlsplit

# Plain HTTP is for this machine alone, which the library wants to be told.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Auth, OAuth2Session
from authlib.jose import JsonWebKey, jwt
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken, HybridIDToken, ImplicitIDToken
from authlib.oidc.discovery import OpenIDProviderMetadata, get_well_known_url
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey


class ByKey(PrivateKeyJWT):
    def sign(self, auth, token_endpoint):
        # The library would have an assertion live for an hour; and it writes the jti into the claims it is given, where
        # it would find it again the next time.
        self.claims = {"exp": int(time.time()) + 300}
        return super().sign(auth, token_endpoint)


def with_bound_token(token, uri, headers, body, placement):
    headers["Authorization"] = f"DPoP {token}"
    return uri, headers, body


class BoundAuth(OAuth2Auth):
    """Brings a bound token along. By itself the library knows the scheme Bearer alone."""

    SIGN_METHODS = {**OAuth2Auth.SIGN_METHODS, "dpop": with_bound_token}


class ProvingSession(OAuth2Session):
    """Sends a proof of a key (RFC 9449) with every request, and again with the nonce that it is given.

    The library makes no proofs. It takes a class for the token, and each of its requests comes through `request`.
    """

    token_auth_class = BoundAuth

    def hold(self, key, alg):
        self.key, self.alg, self.nonce, self.traffic = key, alg, None, []

    def request(self, method, url, auth=None, **further):
        answer = self.request_once(method, url, auth, **further)
        if "use_dpop_nonce" in answer.text + answer.headers.get("WWW-Authenticate", ""):
            answer = self.request_once(method, url, auth, **further)
        return answer

    def request_once(self, method, url, auth, headers=None, **further):
        # Where nobody says how to authenticate, the library brings the token along.
        proof = self.proof(method, url, self.token["access_token"] if auth is None else None)
        answer = super().request(method, url, auth=auth, headers={**(headers or {}), "DPoP": proof}, **further)
        self.nonce = answer.headers.get("DPoP-Nonce", self.nonce)
        seen = {"status": answer.status_code, "text": answer.text, "nonce": answer.headers.get("DPoP-Nonce")}
        challenge = answer.headers.get("WWW-Authenticate")
        self.traffic.append({"path": urlsplit(url).path, "proof": proof, "challenge": challenge, **seen})
        return answer

    def proof(self, method, url, token):
        header = {"typ": "dpop+jwt", "alg": self.alg, "jwk": self.key.as_dict(private=False)}
        claims = {"jti": str(uuid.uuid4()), "htm": method.upper(), "htu": url.split("?")[0], "iat": int(time.time())}
        if self.nonce:
            claims["nonce"] = self.nonce
        if token:
            digest = hashlib.sha256(token.encode()).digest()
            claims["ath"] = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return joserfc_jwt.encode(header, claims, self.key, algorithms=[self.alg])


class Client:
    def discover(self, issuer, client_id, client_secret=None, redirect_uri=None, scope=None, session=OAuth2Session):
        found = requests.get(get_well_known_url(issuer, external=True), timeout=30)
        found.raise_for_status()
        self.metadata = OpenIDProviderMetadata(found.json())
        self.issuer, self.client_id = issuer, client_id
        self.session = session(
            client_id,
            client_secret,
            scope=scope,
            redirect_uri=redirect_uri,
            token_endpoint_auth_method="client_secret_basic" if client_secret else "none",
            code_challenge_method="S256",
        )
        return {"issuer": self.metadata["issuer"]}

    def discover_and_hold(self, alg, **further):
        """The same, with a key of its own for the tokens."""
        answer = self.discover(session=ProvingSession, **further)
        key = ECKey.generate_key("P-256") if alg == "ES256" else OKPKey.generate_key("Ed25519")
        self.session.hold(key, alg)
        return {**answer, "thumbprint": key.thumbprint()}

    def forget_nonce(self):
        self.session.nonce = None
        return {}

    def push(self, with_proof, **further):
        """Pushes what the library would have the browser carry (RFC 9126), which it does not do by itself."""
        form = parse_qs(urlsplit(self.authorization_url(**further)["url"]).query)
        auth = self.session.client_auth(self.session.token_endpoint_auth_method)
        address = self.metadata["pushed_authorization_request_endpoint"]
        post = self.session.post if with_proof else requests.post
        answer = post(address, data=form, auth=auth, timeout=30)
        answer.raise_for_status()
        query = urlencode({"client_id": self.client_id, "request_uri": answer.json()["request_uri"]})
        return {"url": f"{self.metadata['authorization_endpoint']}?{query}", "state": form["state"][0]}

    def traffic(self):
        return {"requests": self.session.traffic}

    def userinfo_as_bearer(self):
        headers = {"Authorization": f"Bearer {self.session.token['access_token']}"}
        answer = requests.get(self.metadata["userinfo_endpoint"], headers=headers, timeout=30)
        return {"status": answer.status_code, "challenge": answer.headers.get("WWW-Authenticate")}

    def sign_for_oneself(self, key, kind, kid, alg, audience=None):
        self.session.client_secret = {"rsa": RSAKey, "ec": ECKey, "ed25519": OKPKey}[kind].import_key(key)
        self.session.token_endpoint_auth_method = self.session.revocation_endpoint_auth_method = "private_key_jwt"
        audience = audience or self.metadata["token_endpoint"]
        self.session.register_client_auth_method(ByKey(audience, headers={"kid": kid}, alg=alg))
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
