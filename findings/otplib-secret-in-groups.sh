#!/usr/bin/env bash
# Guess: a library for one-time codes either takes a secret as apps and pages show it, in groups of
# four, or refuses it.
# So it is: otplib 12 takes it, counts the blanks as something, and makes other codes without a word:
# a server that keeps what somebody pasted locks them out. otpauth takes it, too, and makes the right
# code; in an otpauth:// address it refuses the blanks.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund otplib@12.0.1 otpauth@9.5.2

cat > program.mjs <<'PROGRAM'
import { Secret, TOTP, URI } from 'otpauth';
import otplib from 'otplib';

const plain = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
const grouped = plain.replace(/.{4}(?=.)/g, '$& ');
const authenticator = otplib.authenticator.clone({ epoch: 59_000 });
const byOtplib = [plain, grouped].map((secret) => authenticator.generate(secret));
console.log('otplib 12.0.1:', byOtplib);
const byOtpauth = [plain, grouped].map((secret) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: 59_000 }),
);
console.log('otpauth 9.5.2:', byOtpauth);
let refusal;
try {
  URI.parse(`otpauth://totp/ada?secret=${grouped}`);
} catch (error) {
  refusal = error.message;
}
console.log('otpauth 9.5.2:', refusal);
const asThen =
  byOtplib[0] !== byOtplib[1] &&
  byOtplib[0] === byOtpauth[0] &&
  byOtpauth[0] === byOtpauth[1] &&
  refusal === "Missing or invalid 'secret' parameter";
process.exit(asThen ? 0 : 1);
PROGRAM
node program.mjs
