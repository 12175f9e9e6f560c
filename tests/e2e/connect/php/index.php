<?php
session_start(["cookie_httponly" => true, "cookie_samesite" => "Lax", "cookie_secure" => isset($_SERVER["HTTPS"])]);

$issuer = getenv("ISSUER") ?: "http://localhost:8080";
$home = "http://" . $_SERVER["HTTP_HOST"] . "/";
$path = parse_url($_SERVER["REQUEST_URI"], PHP_URL_PATH);

function base64url(string $bytes): string
{
    return rtrim(strtr(base64_encode($bytes), "+/", "-_"), "=");
}

/** What an endpoint answers: to a form if there is one, else to a GET. */
function ask(string $url, array $headers = [], ?array $form = null): array
{
    $request = curl_init($url);
    curl_setopt_array($request, [CURLOPT_RETURNTRANSFER => true, CURLOPT_HTTPHEADER => $headers, CURLOPT_TIMEOUT => 10]);
    if ($form !== null) {
        curl_setopt($request, CURLOPT_POSTFIELDS, http_build_query($form));
    }
    $answer = curl_exec($request);
    $status = curl_getinfo($request, CURLINFO_RESPONSE_CODE);
    if ($status !== 200) {
        throw new RuntimeException("$url: $status $answer"); // says error and error_description
    }
    return json_decode($answer, true, 16, JSON_THROW_ON_ERROR);
}

function go(string $url, array $query = []): never
{
    header("Location: $url" . ($query ? "?" . http_build_query($query) : ""));
    exit();
}

try {
    $provider = ask("$issuer/.well-known/openid-configuration");
    if ($path === "/login") {
        $_SESSION = ["state" => base64url(random_bytes(32)), "verifier" => base64url(random_bytes(32))];
        go($provider["authorization_endpoint"], [
            "client_id" => "web-php",
            "response_type" => "code",
            "redirect_uri" => "{$home}callback",
            "scope" => "openid profile email",
            "state" => $_SESSION["state"],
            "code_challenge" => base64url(hash("sha256", $_SESSION["verifier"], true)),
            "code_challenge_method" => "S256",
        ]);
    }
    if ($path === "/callback") {
        $begun = $_SESSION;
        $_SESSION = []; // each state counts once
        if (!isset($begun["state"], $_GET["state"], $_GET["code"]) || !hash_equals($begun["state"], $_GET["state"])) {
            throw new RuntimeException("no sign-in was begun here");
        }
        $credentials = base64_encode("web-php:" . getenv("CLIENT_SECRET"));
        $tokens = ask($provider["token_endpoint"], ["Authorization: Basic $credentials"], [
            "grant_type" => "authorization_code",
            "code" => $_GET["code"],
            "redirect_uri" => "{$home}callback",
            "code_verifier" => $begun["verifier"],
        ]);
        session_regenerate_id(true); // whoever signs in gets a new name for the session
        $_SESSION["user"] = ask($provider["userinfo_endpoint"], ["Authorization: Bearer " . $tokens["access_token"]]);
        $_SESSION["id_token"] = $tokens["id_token"];
        go($home);
    }
    if ($path === "/logout") {
        $hint = $_SESSION["id_token"] ?? "";
        session_destroy();
        go($provider["end_session_endpoint"], ["id_token_hint" => $hint, "post_logout_redirect_uri" => $home]);
    }
} catch (Exception $error) {
    error_log($error->getMessage());
    http_response_code(400);
    exit("The sign-in failed. Try again.");
}

header("Content-Type: text/plain; charset=utf-8");
echo isset($_SESSION["user"]) ? "Signed in as " . $_SESSION["user"]["name"] : "Not signed in: go to /login";
