// Lays siege to an nginx: slow heads, slow bodies, slow readers and idle connections, each opened anew when it is closed.
// A process of its own, so that it does not slow the good traffic it is measured by. Arguments: the port, then how many of
// each. Prints a line of JSON when all stand, and another at the end, which comes with the end of standard input.

import { createConnection } from "node:net";
import { connect } from "node:tls";

const [port, heads, bodies, readers, silent, kept] = process.argv.slice(2).map(Number);
const kinds = {};
let over = false;

// One of many: `source` is the address it comes from, `begin` what it does with its socket.
function kind(name, wanted, sources, secure, begin) {
  const counts = { wanted, opened: 0, open: 0, refused: 0, closed: 0 };
  kinds[name] = { counts, open: (number) => open(name, counts, sources[number % sources.length], secure, begin) };
}

function open(name, counts, source, secure, begin) {
  const options = { host: "127.0.0.1", port, localAddress: source, rejectUnauthorized: false, ALPNProtocols: [name === "readers" ? "h2" : "http/1.1"] };
  const socket = secure ? connect(options) : createConnection(options);
  const state = { up: false, refused: false };
  let timer;
  socket.once(secure ? "secureConnect" : "connect", () => {
    state.up = true;
    counts.opened += 1;
    counts.open += 1;
    const again = begin(socket);
    if (again) timer = setInterval(() => socket.writable && socket.write(again), 1_000);
  });
  socket.on("data", (bytes) => {
    if (!state.refused && bytes.toString("latin1").startsWith("HTTP/1.1 429")) {
      state.refused = true;
      counts.refused += 1;
      socket.destroy();
    }
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    clearInterval(timer);
    if (state.up) counts.open -= 1;
    counts.closed += 1;
    if (!over && !state.refused) setTimeout(() => open(name, counts, source, secure, begin), 200).unref();
  });
}

function frame(type, flags, stream, payload) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.set([type, flags], 3);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

// HTTP/2, with a window of one byte that is never opened (RFC 9113 §6.9.2): an answer that stands still.
function closedWindow(path) {
  const named = (index, text) => Buffer.concat([Buffer.from([index, text.length]), Buffer.from(text)]);
  const fields = Buffer.concat([Buffer.from([0x82, 0x87]), named(0x04, path), named(0x01, "localhost")]);
  return Buffer.concat([
    Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    frame(4, 0, 0, Buffer.from([0, 4, 0, 0, 0, 1])),
    frame(1, 5, 1, fields),
  ]);
}

const form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5000\r\n";
kind("heads", heads, ["127.0.0.10"], true, (socket) => {
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
  return "a";
});
for (const [name, wanted, source] of [["bodies", bodies, "127.0.0.11"], ["more bodies", bodies / 2, "127.0.0.12"]]) {
  kind(name, wanted, [source], true, (socket) => {
    socket.write(`POST /connect/introspect HTTP/1.1\r\nHost: localhost\r\n${form}\r\na`);
    return "a";
  });
}
kind("readers", readers, ["127.0.0.13", "127.0.0.14"], true, (socket) => {
  socket.write(closedWindow("/.well-known/openid-configuration"));
});
kind("silent", silent, ["127.0.0.15", "127.0.0.16"], false, () => undefined);
kind("kept", kept, ["127.0.0.17"], true, (socket) => {
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
});

const told = () => console.log(JSON.stringify(Object.fromEntries(Object.entries(kinds).map(([name, { counts }]) => [name, counts]))));
const standing = () => Object.values(kinds).every(({ counts }) => counts.opened >= counts.wanted);

// A hundred at a time: the queue of new connections is everybody's.
const waiting = Object.values(kinds).flatMap(({ counts, open }) => Array.from({ length: counts.wanted }, (_, number) => () => open(number)));
const coming = setInterval(() => {
  waiting.splice(0, 100).forEach((open) => open());
  if (standing()) {
    clearInterval(coming);
    told();
  }
}, 40);

process.stdin.resume().on("end", () => {
  over = true;
  told();
  process.exit(0);
});
