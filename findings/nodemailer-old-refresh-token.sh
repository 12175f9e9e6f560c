#!/usr/bin/env bash
# Guess: a mailer that refreshes its access token sends the refresh token that it got last: where the server
# gives a new one, the old one may be used no more (RFC 6749, section 6).
# So it is: nodemailer sends the refresh token of its settings each time, and leaves the new one in the answer.
# A server that rotates takes the second refresh for a stolen token's.
# Versions: nodemailer 10.6.1, Node 20. Seen: sent: first first, taken up: no
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund nodemailer@10.6.1

cat > program.cjs <<'PROGRAM'
const http = require('node:http');
const nodemailer = require('nodemailer');

const sent = [];
const server = http.createServer(async (request, response) => {
  let body = '';
  for await (const part of request) body += part;
  sent.push(new URLSearchParams(body).get('refresh_token'));
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify({
    access_token: `access-${sent.length}`, token_type: 'Bearer', expires_in: 3600, refresh_token: `next-${sent.length}`,
  }));
});
server.listen(0, '127.0.0.1', () => {
  const transport = nodemailer.createTransport({
    host: '127.0.0.1', port: 1,
    auth: {
      type: 'OAuth2', user: 'shop@mail.example', clientId: 'shop', clientSecret: 'secret', refreshToken: 'first',
      accessUrl: `http://127.0.0.1:${server.address().port}/token`,
    },
  });
  const { oauth2 } = transport.transporter.auth;
  oauth2.generateToken((error) => {
    if (error) throw error;
    oauth2.generateToken(() => {
      const taken = oauth2.options.refreshToken === 'first' ? 'no' : 'yes';
      console.log(`sent: ${sent.join(' ')}, taken up: ${taken}`);
      server.close();
    });
  });
});
PROGRAM
node program.cjs | tee seen
[ "$(cat seen)" = "sent: first first, taken up: no" ]
