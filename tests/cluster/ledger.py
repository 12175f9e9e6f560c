"""The load and its ledger: people and services use Gatepost, write down what was acknowledged, and ask for it afterwards."""

import base64
import hashlib
import http.client
import json
import random
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from urllib.parse import parse_qs, urlencode, urlsplit

CALLBACK = "https://app.example/cb"
CLIENT, SECRET, USER, PASSWORD = "app", "the-application's-own-secret", "alice", "correct horse battery staple"
VERIFIER = "a-code-verifier-of-more-than-43-characters-0123456789"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
BASIC = "Basic " + base64.b64encode(urlencode({"": CLIENT})[1:].encode() + b":" + urlencode({"": SECRET})[1:].encode()).decode()
DOCUMENT = {
    "resource_scopes": [{"name": "orders", "display_name": "Orders", "resources": ["https://orders.example"]}],
    "resources": [{"name": "https://orders.example"}],
    "clients": [{
        "client_id": CLIENT, "client_name": "Application", "redirect_uris": [CALLBACK], "secrets": [{"value": SECRET}],
        "response_types": ["code"], "grant_types": ["authorization_code", "refresh_token", "client_credentials"],
        "scope": "openid orders offline_access", "access_token_type": "reference"}],
    "users": [{"username": USER, "password": PASSWORD, "claims": {}}],
}
# Longer than any answer may take: what takes longer is counted as that long.
PATIENCE = 15
# Between two requests of one of the load's threads, and before what failed is sent again.
PAUSE, AGAIN = 0.02, 0.5


class Failed(Exception):
    """503, another error of the server's, or no answer: the outcome is unknown."""


class Refused(Exception):
    """The server said no, or something else, to what was acknowledged before."""


class Browser:
    """Cookies, redirects and forms; each request is told to `ledger` with its kind, status and duration."""

    def __init__(self, ledger):
        self.ledger, self.cookies = ledger, {}

    def send(self, kind, method, path, form=None, headers=None):
        headers = {"Host": self.ledger.host, "Connection": "close", **(headers or {})}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if form is not None:
            headers |= {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{self.ledger.host}"}
        begun, status = time.monotonic(), 0
        connection = http.client.HTTPConnection(self.ledger.address, self.ledger.port, timeout=PATIENCE)
        try:
            connection.request(method, path, form and urlencode(form), headers)
            answer = connection.getresponse()
            body, status = answer.read().decode(), answer.status
        except (OSError, http.client.HTTPException) as error:
            raise Failed(repr(error)) from error
        finally:
            connection.close()
            self.ledger.note(kind, begun, status)
        if status >= 500:
            raise Failed(status)
        for cookie in answer.headers.get_all("Set-Cookie", []):
            name, value = cookie.split(";")[0].split("=", 1)
            self.cookies[name] = value
            if not value or "max-age=0" in cookie.lower():
                del self.cookies[name]
        return status, answer.headers.get("Location", ""), body

    def follow(self, kind, method, path, form=None):
        """Goes on until there is a page, or the way leads to the application."""
        status, location, body = self.send(kind, method, path, form)
        while status in (302, 303) and not location.startswith(CALLBACK):
            parts = urlsplit(location)
            status, location, body = self.send(kind, "GET", parts.path + ("?" + parts.query if parts.query else ""))
        return status, location, body

    def authorize(self, kind, **more):
        """What comes back to the application, and the page where one was shown."""
        asked = {"client_id": CLIENT, "redirect_uri": CALLBACK, "response_type": "code", "code_challenge": CHALLENGE,
                 "scope": "openid orders offline_access", "code_challenge_method": "S256", "state": "s", **more}
        _, location, page = self.follow(kind, "GET", "/connect/authorize?" + urlencode(asked))
        return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}, page

    def sign_in(self):
        _, page = self.authorize("write")
        form = re.search(r'<form[^>]*action="([^"]*)"', page), re.search(r'name="form_token"[^>]*value="([^"]*)"', page)
        if None in form:
            raise Refused(f"no sign-in page: {page[:200]}")
        action, token = (unescape(found[1]) for found in form)
        posted = {"form_token": token, "username": USER, "password": PASSWORD}
        _, location, _ = self.follow("write", "POST", action, posted)
        if "code=" not in location:
            raise Refused(f"no code after the sign-in: {location}")

    def token(self, kind, endpoint="token", **form):
        status, _, body = self.send(kind, "POST", f"/connect/{endpoint}", form, {"Authorization": BASIC})
        return status, json.loads(body or "{}")

    def code(self):
        answer, _ = self.authorize("read", prompt="none")
        if "code" not in answer:
            raise Failed(answer) if answer.get("error") == "temporarily_unavailable" else Refused(answer)
        return answer["code"]

    def tokens(self, **form):
        status, tokens = self.token("write", **form)
        if status != 200:
            raise Refused(f"{form['grant_type']}: {status} {tokens}")
        return tokens

    def is_active(self, token):
        status, answer = self.token("read", "introspect", token=token)
        if status != 200:
            raise Refused(f"introspection: {status} {answer}")
        return answer["active"]

    def is_signed_in(self):
        try:
            return bool(self.code())
        except Refused as refused:
            if "login_required" in str(refused):
                return False
            raise

    def until_acknowledged(self, kind, *request):
        """What ends something is sent again until it is acknowledged, as any client does."""
        while True:
            try:
                return self.send(kind, *request)
            except Failed:
                if self.ledger.is_over:
                    raise
                time.sleep(AGAIN)


class Ledger:
    """What was acknowledged at one address, and how each request went."""

    def __init__(self, address, port, issuer):
        self.address, self.port, self.host = address, port, urlsplit(issuer).netloc
        self.is_over, self.lock = False, threading.Lock()
        self.requests, self.wrong = [], []
        self.alive, self.ended, self.spent = {}, [], []
        self.signed_in, self.signed_out = [], []
        self.threads = []

    def note(self, kind, begun, status):
        with self.lock:
            self.requests.append((begun, time.monotonic() - begun, kind, status))

    def start(self):
        lives = [self.use_grants] * 3 + [self.sign_in_and_out] * 2 + [self.look, self.serve_itself]
        self.threads = [threading.Thread(target=self.live, args=[life], daemon=True) for life in lives]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.is_over = True
        for thread in self.threads:
            thread.join(2 * PATIENCE)

    def live(self, life):
        browser = Browser(self)
        while not self.is_over:
            try:
                life(browser)
            except Failed:
                time.sleep(AGAIN)
            except Refused as refused:
                # Told from what is asked for afterwards: an old primary may know nothing of it for as long as it lives.
                self.wrong.append(str(refused))
                browser = Browser(self)
            except Exception as error:
                # An answer that nobody foresaw, or a defect of this program: in silence the load would only grow less.
                self.wrong.append(repr(error))
            time.sleep(PAUSE)

    def use_grants(self, browser):
        if not browser.cookies:
            browser.sign_in()
            self.signed_in.append(dict(browser.cookies))
        code = browser.code()
        tokens = browser.tokens(grant_type="authorization_code", code=code, redirect_uri=CALLBACK, code_verifier=VERIFIER)
        self.spent.append(code)
        refresh = tokens["refresh_token"]
        self.alive[refresh] = "refresh token"
        for _ in range(random.randint(0, 2)):
            # Whether the old one is still good is unknown until the answer is there.
            del self.alive[refresh]
            tokens = browser.tokens(grant_type="refresh_token", refresh_token=refresh)
            refresh = tokens["refresh_token"]
            self.alive[refresh] = "refreshed token"
        kind = random.choice(["refresh_token", "access_token", None])
        if kind == "refresh_token":
            del self.alive[refresh]
        if kind:
            form = {"token": tokens[kind]}
            browser.until_acknowledged("write", "POST", "/connect/revocation", form, {"Authorization": BASIC})
            self.ended.append(tokens[kind])
        else:
            self.alive[tokens["access_token"]] = "access token"

    def sign_in_and_out(self, browser):
        browser.cookies.clear()
        browser.sign_in()
        cookies = dict(browser.cookies)
        if random.random() < 0.3:
            return self.signed_in.append(cookies)
        code = browser.code()
        tokens = browser.tokens(grant_type="authorization_code", code=code, redirect_uri=CALLBACK, code_verifier=VERIFIER)
        path = "/connect/endsession?" + urlencode({"id_token_hint": tokens["id_token"]})
        status, *_ = browser.until_acknowledged("write", "GET", path)
        if status >= 400:
            raise Refused(f"sign-out: {status}")
        self.signed_out.append(cookies)

    def look(self, browser):
        """Asks, meanwhile, for what was acknowledged last."""
        for tokens, wanted in ((self.ended[-20:], False), (list(self.alive)[-20:], True)):
            if tokens:
                token = random.choice(tokens)
                if browser.is_active(token) != wanted and (not wanted or token in self.alive):
                    raise Refused(f"active is not {wanted} for a {self.alive.get(token, 'revoked token')}")

    def serve_itself(self, browser):
        for path in ("openid-configuration", "openid-configuration/jwks"):
            browser.send("published", "GET", "/.well-known/" + path)
        browser.token("service", grant_type="client_credentials", scope="orders")

    def ask(self):
        """What of all that was acknowledged is not so."""
        browser = Browser(self)
        asked = [(kind, lambda token=token: browser.is_active(token)) for token, kind in self.alive.items()]
        asked += [("revocation", lambda token=token: not browser.is_active(token)) for token in self.ended]
        for sessions, kind, wanted in ((self.signed_in, "sign-in", True), (self.signed_out, "sign-out", False)):
            for cookies in sessions:
                asked.append((kind, lambda cookies=cookies, wanted=wanted: self.known(cookies) == wanted))
        # At last: a code that is redeemed again ends what it gave.
        at_last = [("redemption", lambda code=code: self.is_spent(browser, code)) for code in self.spent]
        lost = []
        for questions in (asked, at_last):
            with ThreadPoolExecutor(8) as pool:
                answers = pool.map(lambda question: self.answered(question[1]), questions)
                lost += [kind for (kind, _), is_so in zip(questions, answers) if not is_so]
        return len(asked) + len(at_last), lost

    def known(self, cookies):
        browser = Browser(self)
        browser.cookies = dict(cookies)
        return browser.is_signed_in()

    @staticmethod
    def is_spent(browser, code):
        form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
        status, answer = browser.token("write", **form)
        return (status, answer.get("error")) == (400, "invalid_grant")

    @staticmethod
    def answered(is_so):
        """The cluster is whole again, but may be busy."""
        for _ in range(20):
            try:
                return is_so()
            except Failed:
                time.sleep(AGAIN)
        return False
