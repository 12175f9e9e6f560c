"""What the README asks of systemctl, where no systemd runs: starts the installed gatepost.socket and gatepost.service by
what their lines say, as the user, with the environment and the credentials that systemd would give, and reloads nginx.
The sandbox is left to systemd-analyze. $MACHINE is the directory that stands for the machine's root."""

import os
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

MACHINE = Path(os.environ["MACHINE"])
UNITS = MACHINE / "etc/systemd/system"
RUN = MACHINE / "run"
# One of those that DynamicUser= gives out.
DYNAMIC_USER = 62789
START_PATIENCE = 30


def unit(name):
    """The lines of a unit: a list for each key, over all its sections."""
    settings = {}
    for line in (UNITS / name).read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            settings.setdefault(key, []).append(value)
    return settings


def listening(settings):
    path = settings["ListenStream"][0]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(path)
    os.chmod(path, int(settings["SocketMode"][0], 8))
    if os.getuid() == 0:
        shutil.chown(path, settings["SocketUser"][0], settings["SocketGroup"][0])
    door.listen(int(settings["Backlog"][0]))
    return door


def owned(path, mode):
    path.chmod(mode)
    if os.getuid() == 0:
        os.chown(path, DYNAMIC_USER, DYNAMIC_USER)


def credentials(settings):
    directory = RUN / "credentials/gatepost.service"
    directory.mkdir(parents=True)
    for line in settings["LoadCredential"]:
        name, _, source = line.partition(":")
        shutil.copyfile(source, directory / name)
        owned(directory / name, 0o400)
    owned(directory, 0o500)
    return directory


def environment(settings, notify):
    found = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG": "C.UTF-8"}
    for file in settings["EnvironmentFile"]:
        lines = Path(file).read_text().splitlines()
        found.update(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    found["CREDENTIALS_DIRECTORY"] = str(credentials(settings))
    found["NOTIFY_SOCKET"] = notify
    found["WATCHDOG_USEC"] = str(int(settings["WatchdogSec"][0]) * 1_000_000)
    for names in settings["UnsetEnvironment"]:
        for name in names.split():
            found.pop(name, None)
    return found


def start(settings, door, notify):
    assert settings["StandardInput"] == ["socket"] and settings["DynamicUser"] == ["yes"]
    files = min(int(settings["LimitNOFILE"][0]), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    groups = settings["SupplementaryGroups"]
    user = {"user": DYNAMIC_USER, "group": DYNAMIC_USER, "extra_groups": groups} if os.getuid() == 0 else {}
    with open(RUN / "journal", "wb") as journal:
        return subprocess.Popen(
            shlex.split(settings["ExecStart"][0]),
            stdin=door, stdout=journal, stderr=journal, cwd="/", env=environment(settings, notify),
            umask=int(settings["UMask"][0], 8), start_new_session=True, **user,
        )  # fmt: skip


def run_service(told):
    """Holds socket and service until SIGTERM; writes "ready", or what went wrong, to `told`."""
    settings = unit("gatepost.service")
    assert settings["Type"] == ["notify"]
    notify = str(RUN / "notify")
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(notify)
    os.chmod(notify, 0o666)
    inbox.settimeout(START_PATIENCE)
    service = start(settings, listening(unit("gatepost.socket")), notify)
    signal.signal(signal.SIGTERM, lambda *_: service.terminate())
    signal.signal(signal.SIGCHLD, lambda *_: service.poll() is None or inbox.close())
    try:
        while "READY=1" not in inbox.recv(4096).decode().split("\n"):
            pass
        told.write("ready")
    except OSError as error:
        told.write(f"gatepost.service does not start: {error}\n{(RUN / 'journal').read_text()}")
        service.terminate()
    told.close()
    sys.exit(service.wait())


def enable_now():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.close(reader)
        (RUN / "systemd.pid").write_text(str(os.getpid()))
        nowhere = os.open("/dev/null", os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        run_service(os.fdopen(writer, "w"))
    os.close(writer)
    told = os.fdopen(reader).read()
    if told != "ready":
        sys.exit(told or "gatepost.service does not start")


match sys.argv[1:]:
    case ["daemon-reload"]:
        pass
    case ["enable", "--now", "gatepost.socket", "gatepost.service"]:
        enable_now()
    case ["reload", "nginx"]:
        os.kill(int((MACHINE / "nginx.pid").read_text()), signal.SIGHUP)
    case unknown:
        sys.exit(f"systemctl: nobody here knows how to {unknown}")
