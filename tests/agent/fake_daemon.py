# SPDX-License-Identifier: MIT
"""A daemon of a few lines, for testing the agent: speaks memguard-protocol(7) on a socket of its own."""
import os
import select
import socket
import tempfile
import time


def encode(verb, **keys):
    lines = [f"VERB={verb}"] + [f"{key}={value}" for key, value in keys.items()]
    return "".join(line + "\n" for line in lines).encode()


def decode(datagram):
    assert datagram.endswith(b"\n"), datagram
    message = {}
    for line in datagram.decode().splitlines():
        key, _, value = line.partition("=")
        assert key and value and key not in message, datagram
        message[key] = int(value) if value.isdigit() else value
    return message


class Gone(Exception):
    """The agent has closed its connection."""


class Peer:
    """One connected agent."""

    def __init__(self, connection):
        self.connection = connection
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        self.pid = int.from_bytes(credentials[:4], "little")
        self.next_id = 1
        self.unasked = []

    def receive(self, timeout=10):
        self.connection.settimeout(timeout)
        try:
            datagram = self.connection.recv(65536)
        except ConnectionResetError:
            raise Gone() from None
        if not datagram:
            raise Gone()
        return decode(datagram)

    def send(self, verb, **keys):
        try:
            self.connection.send(encode(verb, **keys))
        except (BrokenPipeError, ConnectionResetError):
            raise Gone() from None

    def request(self, verb, timeout=20, **keys):
        """Sends a request and returns its reply; what comes unasked meanwhile is kept."""
        number, self.next_id = self.next_id, self.next_id + 1
        self.send(verb, ID=number, **keys)
        while True:
            message = self.receive(timeout)
            if message.get("ID") == number:
                return message
            self.unasked.append(message)


class Daemon:
    """Listens in a directory of its own; .path is what MEMGUARD_SOCKET is set to."""

    def __init__(self, backlog=128):
        self.directory = tempfile.mkdtemp(prefix="memguard-test-")
        os.chmod(self.directory, 0o755)
        self.path = os.path.join(self.directory, "agent.sock")
        self.backlog = backlog
        self.listener = None
        self.listen()

    def listen(self):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listener.listen(self.backlog)

    def accept(self, timeout=10):
        """The next agent, with its hello; None when none comes in time."""
        deadline = time.monotonic() + timeout
        while True:
            ready, _, _ = select.select([self.listener], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                return None
            connection, _ = self.listener.accept()
            peer = Peer(connection)
            try:
                peer.hello = peer.receive()
            except (Gone, TimeoutError):
                continue
            assert peer.hello["VERB"] == "hello", peer.hello
            return peer

    def close(self):
        self.listener.close()
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass

    def remove(self):
        self.close()
        os.rmdir(self.directory)


def rss_anon(pid):
    """RssAnon of a process in bytes, as the kernel has it."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        fields = statm.read().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGESIZE")
