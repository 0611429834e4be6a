# SPDX-License-Identifier: MIT
"""A peer of the agent protocol that behaves as its second argument says: peer.py SOCKET BEHAVIOUR [ARGUMENT].

It prints what happened to it, one word a line, flushed: "hello" when it has said hello, "trim" and "stats" for each request,
"closed" when the daemon ended the connection. It stays alive until it is told to end, as a hung service would.
"""
import mmap
import signal
import socket
import sys
import threading
import time

HELLO = ("VERB=hello\nPROTOCOL=1\nHEAPS=1\nVERSION=0.1.0\nMODE=preload\nTHREAD=follow\nCAN=stats,trim\nBASE_BYTES=0\n"
         "HEAP0_SERVES_MALLOC=1\nHEAP0_ALLOCATOR=glibc\nHEAP0_VERSION=2.36\nHEAP0_CAN=stats,trim\n")

# Each is a datagram that must cost its sender the connection, whether it comes first or after a hello.
GARBAGE = {
    "random": bytes((i * 73 + 41) % 256 for i in range(600)),
    "no-verb": b"PROTOCOL=1\nHEAPS=0\n",
    "verb-not-first": b"PROTOCOL=1\nVERB=hello\nHEAPS=0\nMODE=preload\n",
    "no-last-newline": b"VERB=pong\nID=1",
    "no-equals": b"VERB=pong\nID\n",
    "nul": b"VERB=pong\nID=1\nREASON=a\0b\n",
    "not-utf8": b"VERB=suspend\nREASON=\xff\xfe\n",
    "twice": b"VERB=pong\nID=1\nID=2\n",
    "overflow": b"VERB=pong\nID=18446744073709551616\n",
    "negative": b"VERB=pong\nID=-1\n",
    "hex": b"VERB=pong\nID=0x10\n",
    "empty-number": b"VERB=pong\nID=\n",
    "carriage-return": b"VERB=pong\r\nID=1\r\n",
    "too-many-heaps": b"VERB=hello\nPROTOCOL=1\nHEAPS=5\nMODE=preload\n",
    "missing-key": b"VERB=stats-reply\nID=1\n",
    "too-long": b"VERB=suspend\nREASON=" + b"a" * 5000 + b"\n",
    "empty-line": b"VERB=pong\n\nID=1\n",
    "escape": b"VERB=suspend\nREASON=\x1b[31mred\n",
}


def say(word):
    print(word, flush=True)


def connect(path):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for _ in range(200):
        try:
            peer.connect(path)
            return peer
        except (BlockingIOError, FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.05)
    raise SystemExit("cannot connect")


def requests(peer):
    """Each request as a dictionary, until the daemon closes."""
    while True:
        try:
            datagram = peer.recv(4096)
        except ConnectionResetError:
            datagram = b""
        if not datagram:
            say("closed")
            return
        yield dict(line.split("=", 1) for line in datagram.decode().splitlines())


def send(peer, text):
    try:
        peer.send(text.encode() if isinstance(text, str) else text)
        return True
    except OSError:
        return False


def stats_reply(request, live, system, freeable, cost_usec=10, cost_bytes=None):
    cost = f"STATS_COST_USEC={cost_usec}\n" + (f"STATS_COST_BYTES={cost_bytes}\n" if cost_bytes else "")
    return (f"VERB=stats-reply\nID={request['ID']}\nHEAPS=1\nRESULT=done\n{cost}HEAP0_LIVE_BYTES={live}\n"
            f"HEAP0_SYSTEM_BYTES={system}\nHEAP0_FREEABLE_BYTES={freeable}\nHEAP0_FREE_CHUNKS=1\nHEAP0_ARENAS=1\n"
            "HEAP0_SERVES_MALLOC=1\nHEAP0_ALLOCATOR=glibc\n")


def serve(peer, live, system, freeable, on_trim, stats=stats_reply):
    send(peer, HELLO)
    say("hello")
    for request in requests(peer):
        verb = request["VERB"]
        say(verb)
        if verb == "stats":
            send(peer, stats(request, live, system, freeable))
        elif verb == "ping":
            send(peer, f"VERB=pong\nID={request['ID']}\n")
        elif verb == "trim":
            on_trim(peer, request)


def hold_memory(mib):
    block = mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, mib << 20, 4096):
        block[at] = 1
    return block


def never_answer(peer, request):
    pass


def claim_success(peer, request):
    send(peer, f"VERB=trim-reply\nID={request['ID']}\nRESULT=done\nBEFORE_BYTES={1 << 40}\nAFTER_BYTES=0\nDURATION_USEC=1\n"
               "PAUSE_USEC=1\nCPU_USEC=1\nMINOR_FAULTS=0\n")


def answer_late(peer, request):
    time.sleep(4)
    claim_success(peer, request)


def behave_hang(peer, argument):
    """Trustworthy until it is asked to trim; then silence."""
    block = hold_memory(128)
    serve(peer, 1 << 20, 128 << 20, 120 << 20, never_answer)
    return block


def behave_late(peer, argument):
    block = hold_memory(128)
    serve(peer, 1 << 20, 128 << 20, 120 << 20, answer_late)
    return block


def behave_liar(peer, argument):
    """Says that it holds a terabyte for nothing, and that trimming it was a great success. It has 64 MiB, all in use."""
    block = hold_memory(64)
    serve(peer, 0, 1 << 40, 1 << 40, claim_success)
    return block


def behave_version(peer, argument):
    """An honest agent of another version."""
    send(peer, HELLO.replace("VERSION=0.1.0", f"VERSION={argument}", 1))
    say("hello")
    for request in requests(peer):
        if request["VERB"] == "ping":
            send(peer, f"VERB=pong\nID={request['ID']}\n")


def behave_patient(peer, argument):
    """Has 128 MiB to give back, and does when it is asked to. SIGUSR1: "busy" stops burning CPU, "checkpoint" says that now is a good moment."""
    block = hold_memory(128)
    idle = threading.Event()

    def on_signal(number, frame):
        if argument == "checkpoint":
            send(peer, "VERB=checkpoint\nTAG=sweep\n")
        idle.set()

    def burn():
        while not idle.is_set():
            sum(range(20000))

    def give_back(connection, request):
        block.madvise(mmap.MADV_DONTNEED)
        claim_success(connection, request)

    signal.signal(signal.SIGUSR1, on_signal)
    if argument == "busy":
        threading.Thread(target=burn, daemon=True).start()
    serve(peer, 1 << 20, 128 << 20, 120 << 20, give_back)


def behave_costly(peer, argument):
    """Takes some time for statistics while it is small; SIGUSR1: it is large, and has not a word to say about why."""
    blocks = []
    signal.signal(signal.SIGUSR1, lambda number, frame: blocks.append(hold_memory(256)))

    def take_time(*what):
        time.sleep(0.03)
        return stats_reply(*what, cost_usec=20000, cost_bytes=8 << 20)

    serve(peer, 1 << 20, 2 << 20, 0, never_answer, stats=take_time)


def behave_overrun(peer, argument):
    """Gives back what it has, and takes two seconds to do so."""
    block = hold_memory(128)

    def give_back_slowly(connection, request):
        block.madvise(mmap.MADV_DONTNEED)
        time.sleep(2)
        send(connection, f"VERB=trim-reply\nID={request['ID']}\nRESULT=done\nBEFORE_BYTES={128 << 20}\nAFTER_BYTES=0\n"
                         "DURATION_USEC=2000000\nPAUSE_USEC=2000000\nCPU_USEC=1\nMINOR_FAULTS=0\n")

    serve(peer, 1 << 20, 128 << 20, 120 << 20, give_back_slowly)


def behave_mute(peer, argument):
    """Connects and never says a word."""
    for _ in requests(peer):
        pass


def behave_garbage(peer, argument):
    if argument.endswith("+hello"):
        send(peer, HELLO)
    send(peer, GARBAGE[argument.split("+")[0]])
    for _ in requests(peer):
        pass


def behave_quotes(peer, argument):
    """Two heaps alike, whose names are made to break out of a label."""
    send(peer, HELLO.replace("HEAPS=1", "HEAPS=2") +
         'HEAP1_ALLOCATOR=glibc\nHEAP1_VERSION=1"} 1 # EOF \\\nHEAP1_CAN=stats\nHEAP1_SERVES_MALLOC=0\nHEAP1_ARENAS=3\n')
    say("hello")
    for _ in requests(peer):
        pass


def behave_unknown_verb(peer, argument):
    send(peer, HELLO)
    send(peer, "VERB=dance\nID=77\nTEMPO=120\n")
    for request in requests(peer):
        say(f"{request['VERB']} {request.get('ID', '')}".strip())


def behave_flood(peer, argument):
    """As many well-formed messages as the daemon takes, as fast as it takes them."""
    peer.settimeout(0.5)
    send(peer, HELLO)
    message = b"VERB=checkpoint\nTAG=flood\n"
    sent = 0
    while sent < 2_000_000:
        try:
            peer.send(message)
            sent += 1
        except TimeoutError:
            continue
        except OSError:
            break
    say("closed" if sent < 2_000_000 else "never-closed")


def behave_slow_reader(peer, argument):
    """Never reads. What the daemon wants to send must not pile up without bound, nor make it wait."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    block = hold_memory(64)
    send(peer, HELLO)
    say("hello")
    time.sleep(10**6)
    return block


def behave_many_connections(peer, argument):
    """One process that opens far more connections than any agent would."""
    kept = [peer]
    for _ in range(int(argument) - 1):
        try:
            kept.append(connect(sys.argv[1]))
            send(kept[-1], HELLO)
        except (OSError, SystemExit):
            break
    say(f"opened {len(kept)}")
    time.sleep(10**6)


def main():
    behaviour = globals()["behave_" + sys.argv[2].replace("-", "_")]
    peer = connect(sys.argv[1])
    say("connected")
    block = behaviour(peer, sys.argv[3] if len(sys.argv) > 3 else "")
    time.sleep(10**6)
    return block


if __name__ == "__main__":
    main()
