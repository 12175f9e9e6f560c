const users = new oidc.UserManager({
  authority: "http://localhost:8080",
  client_id: "shop",
  redirect_uri: `${location.origin}/`,
  post_logout_redirect_uri: `${location.origin}/`,
  scope: "openid profile offline_access orders.read",
  loadUserInfo: true, // the name is there; the ID token says who it is
});

if (new URLSearchParams(location.search).has("state")) {
  await users.signinCallback(); // redeems the code, with PKCE
  history.replaceState(null, "", "/");
}

const user = await users.getUser();
document.querySelector("#who").textContent = user ? `Signed in as ${user.profile.name}` : "Not signed in";

function show(id, act) {
  const button = document.querySelector(id);
  button.hidden = false;
  button.onclick = act;
}

if (user) {
  show("#sign-out", () => users.signoutRedirect());
  // Call your API with `Authorization: Bearer ${user.access_token}`.
} else {
  show("#sign-in", () => users.signinRedirect());
}
