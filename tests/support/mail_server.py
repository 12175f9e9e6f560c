"""Mail servers for tests: each keeps what it takes, and fails as it is told to.

Each line of the input, `begin FOLDER PORT [CERTIFICATE KEY]` with tabs in between, begins one in a process of its own, and gets
that process's id once it listens; `end ID` ends it, and gets how. What went wrong is the answer otherwise. They are forked, since
reading Python's libraries takes longer than all that a test sends. All end with this process, when its input ends.

The file FOLDER/mode says how it is, at each connection anew: `ok`, or one of the faults below. With a certificate it offers
STARTTLS, and takes letters only after it, from USER with PASSWORD; `tls` begins with TLS. Each letter is a file FOLDER/N.eml
beside FOLDER/N.json, which has its envelope, and FOLDER/N.read.json. FOLDER/talk has every line that came in the clear.
"""

import asyncio
import email
import email.policy
import json
import os
import signal
import socket
import ssl
import sys
import threading

from aiosmtpd.smtp import SMTP, AuthResult

USER, PASSWORD = b"postbox", b"canary-of-the-mail-server"
folder = context = None


def mode():
    with open(os.path.join(folder, "mode")) as file:
        return file.read().strip()


def note(line):
    with open(os.path.join(folder, "talk"), "ab") as talk:
        talk.write(line)


class Keeper:
    count = 0

    async def handle_DATA(self, server, session, envelope):
        answer = mode()
        if answer == "later":
            return "451 Come back later"
        if answer == "never":
            return "554 Not that one"
        if answer == "drop":
            server.transport.abort()
            return "250 Never read"
        Keeper.count += 1
        name = os.path.join(folder, "%d" % Keeper.count)
        with open(name + ".json", "w") as file:
            json.dump({"from": envelope.mail_from, "to": envelope.rcpt_tos, "tls": session.ssl is not None}, file)
        with open(name + ".read.json", "w") as file:
            json.dump(as_read(envelope.content), file)
        # Whoever sees the letter sees all of it.
        with open(name + ".part", "wb") as file:
            file.write(envelope.content)
        os.rename(name + ".part", name + ".eml")
        return "250 Kept as %d" % Keeper.count


def as_read(content):
    """A letter as Python's own library reads it."""
    letter = email.message_from_bytes(content, policy=email.policy.default)
    parts = list(letter.iter_parts()) if letter.is_multipart() else [letter]
    return {
        "type": letter.get_content_type(),
        "boundary": letter.get_boundary(),
        "defects": [str(defect) for part in [letter, *parts] for defect in part.defects],
        "headers": {name: str(value) for name, value in letter.items()},
        "sender": letter["From"].addresses[0].display_name,
        "parts": [
            {"type": part.get_content_type(), "encoding": part["Content-Transfer-Encoding"], "text": part.get_content()}
            for part in parts
        ],
    }


class Noted(SMTP):
    def data_received(self, data):
        if self.session is None or self.session.ssl is None:
            note(data)
        super().data_received(data)


def authenticate(server, session, envelope, mechanism, data):
    is_right = data.login == USER and data.password == PASSWORD
    return AuthResult(success=is_right)


class Faulty(asyncio.Protocol):
    """A server that does one thing wrong."""

    def __init__(self, fault):
        self.fault = fault

    def connection_made(self, transport):
        self.transport = transport
        if self.fault == "hang":
            return
        if self.fault in ("crawl", "flood"):
            asyncio.ensure_future(self.go_on())
            return
        transport.write(b"220 faulty\r\n")

    async def go_on(self):
        self.transport.write(b"220")
        while not self.transport.is_closing():
            if mode() == "ok":
                self.transport.abort()
            elif self.fault == "crawl":
                self.transport.write(b"-")
                await asyncio.sleep(0.5)
            else:
                self.transport.write(b"-" * 1024 + b"\r\n220")
                await asyncio.sleep(0.01)

    def data_received(self, data):
        note(data)
        if data.upper().startswith(b"EHLO"):
            offers = b"" if self.fault == "no-starttls" else b"250-STARTTLS\r\n"
            self.transport.write(b"250-faulty\r\n" + offers + b"250 AUTH PLAIN\r\n")
        elif data.upper().startswith(b"STARTTLS"):
            # What is behind the answer came in the clear (RFC 3207 section 6).
            self.transport.write(b"220 Go ahead\r\n250-faulty\r\n250 AUTH PLAIN\r\n235 Welcome\r\n250 OK\r\n250 OK\r\n354 Go\r\n250 OK\r\n")
        else:
            self.transport.write(b"250 OK\r\n")


def protocol():
    now = mode()
    if now in ("hang", "crawl", "flood", "no-starttls", "injected"):
        return Faulty(now)
    if context is None or now == "tls":
        return Noted(Keeper(), hostname="mail.test", auth_required=False)
    return Noted(
        Keeper(), hostname="mail.test", tls_context=context, require_starttls=True, auth_required=True, auth_require_tls=True,
        authenticator=authenticate,
    )


async def serve(listening, begins_with_tls):
    await asyncio.get_running_loop().create_server(protocol, sock=listening, ssl=context if begins_with_tls else None)
    await asyncio.Event().wait()


# Nothing is written to it. Each mail server reads from it, and ends when this process has ended, which alone could write.
parent, held_by_parent = os.pipe()
for line in sys.stdin:
    command, *words = line.rstrip("\n").split("\t")
    if command == "end":
        os.kill(int(words[0]), signal.SIGKILL)
        print(os.waitpid(int(words[0]), 0), flush=True)
        continue
    folder, port, *certificate = words
    begins_with_tls = mode() == "tls"
    try:
        listening = socket.create_server(("127.0.0.1", int(port)))
        server = os.fork()
    except OSError as problem:
        print(problem, flush=True)
        continue
    if server > 0:
        listening.close()
        print(server, flush=True)
        continue
    os.close(held_by_parent)
    threading.Thread(target=lambda: (os.read(parent, 1), os._exit(0)), daemon=True).start()
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
    asyncio.run(serve(listening, begins_with_tls))
