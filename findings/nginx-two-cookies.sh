#!/usr/bin/env bash
# Guess: where nginx asks a program by `auth_request`, `auth_request_set` with
# `$upstream_http_set_cookie` hands all cookies that the program sets to the browser.
# So it is: nginx 1.22 hands on the first one alone, without a word in its log. A program that splits
# its session over two cookies loses half of it. (Debian's nginx-light; `apt install nginx-light`.)
set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$folder"' EXIT
cd "$folder"

cat > program.py <<'PROGRAM'
from http.server import BaseHTTPRequestHandler, HTTPServer


class Program(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Set-Cookie", "session_0=one; Path=/")
        self.send_header("Set-Cookie", "session_1=two; Path=/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Program)
print(server.server_port, flush=True)
server.serve_forever()
PROGRAM
python3 program.py > port &
until [ -s port ]; do sleep 0.1; done

cat > nginx.conf <<CONFIGURATION
daemon off;
pid $folder/pid;
error_log $folder/log;
events {}
http {
  access_log off;
  client_body_temp_path $folder;
  proxy_temp_path $folder;
  server {
    listen unix:$folder/socket;
    location = /asked { internal; proxy_pass http://127.0.0.1:$(cat port); }
    location / {
      auth_request /asked;
      auth_request_set \$cookie \$upstream_http_set_cookie;
      add_header Set-Cookie \$cookie;
      proxy_pass http://127.0.0.1:$(cat port)/;
      proxy_hide_header Set-Cookie;
    }
  }
}
CONFIGURATION
nginx -v
nginx -c "$folder/nginx.conf" -e "$folder/log" &
until [ -S socket ]; do sleep 0.1; done
cookies=$(curl -s -i --unix-socket socket http://localhost/ | grep -i '^set-cookie')
echo "$cookies"
[ "$(echo "$cookies" | wc -l)" = 1 ] && echo "$cookies" | grep -q 'session_0=one' && ! echo "$cookies" | grep -q session_1
