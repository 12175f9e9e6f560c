#!/usr/bin/env bash
# Guess: a reader of LDIF that decodes `cn::` right gives a photo that can be written out again, and takes
# an attribute with an empty value, which RFC 2849 allows.
# So it is: ldif for Node makes text of every value, in which the bytes of a photo that are no UTF-8 are
# lost, and the empty value ends in a TypeError, for the whole file.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

npm init --yes >/dev/null
npm install --silent --no-audit --no-fund ldif@0.5.1

cat > program.mjs <<'PROGRAM'
import ldif from 'ldif';

const read = (line) => {
  const text = `dn: uid=alice,dc=example,dc=com\nuid: alice\n${line}\n`;
  return ldif.parse(text).entries[0].toObject({}).attributes;
};
const photo = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);
const { cn } = read(`cn:: ${Buffer.from('Älice').toString('base64')}`);
const { jpegPhoto } = read(`jpegPhoto:: ${photo.toString('base64')}`);
console.log('ldif 0.5.1:', cn, Buffer.from(jpegPhoto), 'of', photo);
let told = 'taken';
try {
  read('description:');
} catch (error) {
  told = `${error.name}: ${error.message}`;
}
console.log('ldif 0.5.1: an empty value ->', told);
const isLost = typeof jpegPhoto === 'string' && !Buffer.from(jpegPhoto).equals(photo);
process.exit(cn === 'Älice' && isLost && told.startsWith('TypeError') ? 0 : 1);
PROGRAM
node program.mjs
