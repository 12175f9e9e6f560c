package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

func setting(name, usual string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return usual
}

func random() string {
	bytes := make([]byte, 16)
	rand.Read(bytes)
	return hex.EncodeToString(bytes)
}

func main() {
	port := setting("PORT", "3000")
	provider, err := oidc.NewProvider(context.Background(), setting("ISSUER", "http://localhost:8080"))
	if err != nil {
		log.Fatal(err)
	}
	config := oauth2.Config{
		ClientID:     "web-go",
		ClientSecret: os.Getenv("CLIENT_SECRET"),
		RedirectURL:  "http://localhost:" + port + "/callback",
		Endpoint:     provider.Endpoint(),
		Scopes:       []string{oidc.ScopeOpenID, "profile"},
	}
	verifier := provider.Verifier(&oidc.Config{ClientID: config.ClientID})

	http.HandleFunc("/login", func(w http.ResponseWriter, r *http.Request) {
		state, nonce, pkce := random(), random(), oauth2.GenerateVerifier()
		for name, value := range map[string]string{"state": state, "nonce": nonce, "pkce": pkce} {
			http.SetCookie(w, &http.Cookie{Name: name, Value: value, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: 600})
		}
		http.Redirect(w, r, config.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(pkce)), http.StatusFound)
	})

	http.HandleFunc("/callback", func(w http.ResponseWriter, r *http.Request) {
		kept := map[string]string{}
		for _, name := range []string{"state", "nonce", "pkce"} {
			if cookie, err := r.Cookie(name); err == nil {
				kept[name] = cookie.Value
			}
			http.SetCookie(w, &http.Cookie{Name: name, MaxAge: -1}) // each counts once
		}
		if kept["state"] == "" || kept["nonce"] == "" || kept["pkce"] == "" || r.URL.Query().Get("state") != kept["state"] {
			http.Error(w, "The sign-in began elsewhere. Try again.", http.StatusBadRequest)
			return
		}
		token, err := config.Exchange(r.Context(), r.URL.Query().Get("code"), oauth2.VerifierOption(kept["pkce"]))
		if err != nil {
			log.Print(err) // says error and error_description
			http.Error(w, "The sign-in failed. Try again.", http.StatusBadRequest)
			return
		}
		raw, _ := token.Extra("id_token").(string)
		idToken, err := verifier.Verify(r.Context(), raw)
		if err != nil || idToken.Nonce != kept["nonce"] {
			http.Error(w, "The ID token is not the one asked for.", http.StatusBadRequest)
			return
		}
		info, err := provider.UserInfo(r.Context(), oauth2.StaticTokenSource(token))
		if err != nil || info.Subject != idToken.Subject {
			log.Print(err)
			http.Error(w, "UserInfo does not answer for this person.", http.StatusBadGateway)
			return
		}
		var user struct{ Name string }
		info.Claims(&user)
		http.SetCookie(w, &http.Cookie{Name: "id_token", Value: raw, HttpOnly: true, SameSite: http.SameSiteLaxMode})
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintf(w, "Signed in as %s", user.Name)
	})

	http.HandleFunc("/logout", func(w http.ResponseWriter, r *http.Request) {
		var found struct {
			End string `json:"end_session_endpoint"`
		}
		provider.Claims(&found)
		query := url.Values{"client_id": {config.ClientID}, "post_logout_redirect_uri": {"http://localhost:" + port + "/"}}
		if cookie, err := r.Cookie("id_token"); err == nil {
			query.Set("id_token_hint", cookie.Value) // else people are asked whether they want to
		}
		http.SetCookie(w, &http.Cookie{Name: "id_token", MaxAge: -1})
		http.Redirect(w, r, found.End+"?"+query.Encode(), http.StatusFound)
	})

	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "Not signed in")
	})

	log.Fatal(http.ListenAndServe("localhost:"+port, nil))
}
