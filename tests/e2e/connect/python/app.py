from os import environ, urandom
from urllib.parse import urlencode

from authlib.integrations.flask_client import OAuth
from flask import Flask, redirect, session, url_for
from markupsafe import escape

ISSUER = environ.get("ISSUER", "http://localhost:8080")

app = Flask(__name__)
app.secret_key = environ.get("SESSION_KEY") or urandom(32)
provider = OAuth(app).register(
    "gatepost",
    server_metadata_url=f"{ISSUER}/.well-known/openid-configuration",
    client_id="web-python",
    client_secret=environ["CLIENT_SECRET"],
    client_kwargs={"scope": "openid profile email", "code_challenge_method": "S256"},
)


@app.get("/")
def home():
    user = session.get("user")
    return f"Signed in as {escape(user['name'])}" if user else "Not signed in: go to /login"


@app.get("/login")
def login():
    return provider.authorize_redirect(url_for("callback", _external=True))


@app.get("/callback")
def callback():
    token = provider.authorize_access_token()  # redeems the code and checks the ID token
    session["user"] = {"name": provider.userinfo(token=token)["name"]}
    session["id_token"] = token["id_token"]
    return redirect(url_for("home"))


@app.get("/logout")
def logout():
    hint = session.pop("id_token", None)
    session.clear()
    query = {"id_token_hint": hint, "post_logout_redirect_uri": url_for("home", _external=True)}
    return redirect(provider.load_server_metadata()["end_session_endpoint"] + "?" + urlencode(query))
