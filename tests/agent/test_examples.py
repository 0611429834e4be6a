# SPDX-License-Identifier: MIT
"""The examples of libmemguard(3), compiled from the page: run alone, with a daemon, and under the preload object."""
import os
import subprocess
import sys
import threading
import time

from fake_daemon import Daemon, Gone

PRELOAD = os.environ["MEMGUARD_TEST_PRELOAD"]


class Conversation(threading.Thread):
    """What one example and the daemon have to say to each other; a thread made anew connects again."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.daemon = daemon
        self.hello = None
        self.is_over = False
        self.messages = []
        self.replies = []

    def run(self):
        while not self.is_over:
            peer = self.daemon.accept(0.2)
            if peer:
                self.hello = peer.hello
                self.talk(peer)

    def talk(self, peer):
        try:
            while True:
                self.replies.append(peer.request("stats", FORCE=1))
                self.replies.append(peer.request("trim", SHRINK=1, ARENA_TOPS=1))
                time.sleep(0.1)
        except (Gone, TimeoutError, OSError):
            self.messages += peer.unasked


def run(program, **extra):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MEMGUARD_")}
    result = subprocess.run([program], env={**environment, **extra}, capture_output=True, text=True,
                            timeout=30, check=False)
    assert result.returncode == 0, (program, extra, result)
    assert result.stdout.splitlines()[-1] == "served", (program, extra, result)
    return result.stderr


def converse(program, **extra):
    daemon = Daemon()
    conversation = Conversation(daemon)
    conversation.start()
    complaint = run(program, MEMGUARD_SOCKET=daemon.path, MEMGUARD_DELAY="0", **extra)
    conversation.is_over = True
    conversation.join(15)
    daemon.remove()
    return conversation, complaint


def check_server(program):
    assert run(program, MEMGUARD_SOCKET="/nonexistent/socket") == ""
    assert run(program, MEMGUARD_DISABLE="1") == ""
    conversation, _ = converse(program)
    assert conversation.hello["MODE"] == "linked", conversation.hello
    assert "out of reach" in conversation.hello["HEAP0_NOTICE"], conversation.hello
    assert "arena-tops" not in conversation.hello["CAN"], conversation.hello
    conversation, complaint = converse(program, LD_PRELOAD=PRELOAD)
    assert conversation.hello["MODE"] == "preload" and complaint == "", conversation.hello
    assert "arena-tops" in conversation.hello["CAN"], conversation.hello


def check_loop(program):
    conversation, complaint = converse(program)
    assert complaint == "", complaint
    assert conversation.hello["MODE"] == "event-loop", conversation.hello
    assert any(reply.get("RESULT") == "done" for reply in conversation.replies), conversation.replies
    assert "already" in run(program, MEMGUARD_DISABLE="1")
    # Single-threaded and following: the preloaded agent has no thread, so the program's loop drives it.
    conversation, complaint = converse(program, LD_PRELOAD=PRELOAD)
    assert conversation.hello["MODE"] == "event-loop" and complaint == "", conversation.hello
    conversation, complaint = converse(program, LD_PRELOAD=PRELOAD, MEMGUARD_THREAD="always")
    assert conversation.hello["MODE"] == "preload" and "already" in complaint, (conversation.hello, complaint)


def check_cache(program):
    run(program, MEMGUARD_SOCKET="/nonexistent/socket")
    for extra in {}, {"LD_PRELOAD": PRELOAD}:
        conversation, _ = converse(program, **extra)
        assert "shrink" in conversation.hello["CAN"], conversation.hello
        stats = [reply for reply in conversation.replies if reply["VERB"] == "stats-reply"]
        trims = [reply for reply in conversation.replies if reply["VERB"] == "trim-reply"]
        assert max(reply.get("CACHE_BYTES", 0) for reply in stats) >= 1_000_000, stats
        assert max(reply.get("CACHES", 0) for reply in stats) == 1, stats
        assert [message["VERB"] for message in conversation.messages] == ["suspend", "resume"], conversation.messages
        assert sum(reply.get("SHRUNK_BYTES", 0) for reply in trims) >= 1_000_000, trims


CHECKS = {"threaded-server": check_server, "event-loop": check_loop, "cache": check_cache}


def main():
    for program in sys.argv[1:]:
        CHECKS[os.path.basename(program).removeprefix("example-")](program)
        print(f"ok   {program}", flush=True)


main()
