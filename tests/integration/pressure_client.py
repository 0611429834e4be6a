# SPDX-License-Identifier: MIT
"""A program that follows systemd's memory-pressure protocol: pressure_client.py BEHAVIOUR [ARGUMENT].

Where and with what is in MEMORY_PRESSURE_WATCH and MEMORY_PRESSURE_WRITE, as everywhere. It prints a line for each time its poll()
returns: "told N" with the bytes there were, "hangup" when the connection has ended. So what wakes it without end is seen at once.
A signal makes it go on where its behaviour waits for one.
"""
import base64
import os
import select
import signal
import socket
import sys


def say(text):
    os.write(1, f"{text}\n".encode())  # a crowd writes to one file: a line at a time


def connect():
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(os.environ["MEMORY_PRESSURE_WATCH"])
    return connection


def token():
    return base64.b64decode(os.environ.get("MEMORY_PRESSURE_WRITE", ""))


def wait_for_signal():
    say("waits")
    signal.sigwait({signal.SIGUSR1})


def follow(connection):
    while True:
        select.select([connection], [], [])
        data = connection.recv(4096)
        if not data:
            say("hangup")
            sys.exit(1)
        say(f"told {len(data)}")


def plain(connection):
    connection.sendall(token())


def by_bytes(connection):
    """As if the network were in between."""
    for byte in token():
        connection.sendall(bytes([byte]))


def in_halves(connection):
    half = len(token()) // 2
    connection.sendall(token()[:half])
    wait_for_signal()
    connection.sendall(token()[half:])


def deaf(connection):
    plain(connection)
    wait_for_signal()


def half_closed(connection):
    plain(connection)
    connection.shutdown(socket.SHUT_WR)


def silent(connection):
    pass


def garbage(connection):
    connection.sendall(bytes((i * 73 + 41) % 256 for i in range(1 << 16)))


def crowd(count):
    """A process each, as many as there are prefork workers of a large service."""
    for _ in range(count):
        if os.fork() == 0:
            connection = connect()
            plain(connection)
            say("ready")
            follow(connection)
    signal.pause()


def greedy(count):
    connections = [connect() for _ in range(count)]
    for connection in connections:
        try:
            plain(connection)
        except (BrokenPipeError, ConnectionResetError):
            pass
    say("ready")
    poll = select.poll()
    ended = 0
    for connection in connections:
        poll.register(connection, select.POLLRDHUP)
    while True:
        for fd, _ in poll.poll():
            poll.unregister(fd)
            ended += 1
            say(f"ended {ended}")


def main():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    behaviour = sys.argv[1]
    if behaviour in ("crowd", "greedy"):
        globals()[behaviour](int(sys.argv[2]))
    connection = connect()
    {"plain": plain, "by-bytes": by_bytes, "in-halves": in_halves, "deaf": deaf, "silent": silent, "garbage": garbage,
     "half-closed": half_closed}[behaviour](connection)
    say("ready")
    follow(connection)


main()
