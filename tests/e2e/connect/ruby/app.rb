require "omniauth_openid_connect"
require "securerandom"
require "sinatra/base"
require "uri"

ISSUER = URI(ENV.fetch("ISSUER", "http://localhost:8080"))
HOME = "http://localhost:#{ENV.fetch("PORT", "3000")}/"
SWD.url_builder = URI::HTTP if ISSUER.scheme == "http" # discovery without TLS, for this machine alone

class Shop < Sinatra::Base
  use Rack::Session::Cookie, secret: ENV.fetch("SESSION_KEY", SecureRandom.hex(64)), same_site: :lax, httponly: true
  use OmniAuth::Builder do
    provider :openid_connect,
             name: :gatepost, issuer: ISSUER.to_s, discovery: true, pkce: true, scope: %i[openid profile email],
             client_options: {
               scheme: ISSUER.scheme, host: ISSUER.host, port: ISSUER.port,
               identifier: "web-ruby", secret: ENV.fetch("CLIENT_SECRET"), redirect_uri: "#{HOME}auth/gatepost/callback",
             }
  end

  get "/" do
    content_type :text
    session[:name] ? "Signed in as #{session[:name]}" : "Not signed in: go to /login"
  end

  get "/login" do # a sign-in is begun by POST, so that no other site can begin one
    token = Rack::Protection::AuthenticityToken.token(session)
    field = %(<input type="hidden" name="authenticity_token" value="#{token}">)
    %(<form method="post" action="/auth/gatepost">#{field}<button>Sign in</button></form>)
  end

  get "/auth/gatepost/callback" do
    auth = request.env["omniauth.auth"] # state, nonce, PKCE and the ID token are checked
    session.clear
    session[:name] = auth.info.name
    session[:id_token] = auth.credentials.id_token
    redirect HOME
  end

  get "/auth/failure" do
    warn request.env["omniauth.error"]&.message || params["message"] # says error and error_description
    halt 400, "The sign-in failed. Try again."
  end

  get "/logout" do
    query = URI.encode_www_form(id_token_hint: session.delete(:id_token), post_logout_redirect_uri: HOME)
    session.clear
    redirect "#{ISSUER}/connect/endsession?#{query}"
  end
end

Shop.run!(host: "localhost", port: ENV.fetch("PORT", "3000"), server: "webrick")
