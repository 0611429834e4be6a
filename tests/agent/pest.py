# SPDX-License-Identifier: MIT
"""A daemon that asks more than any daemon should."""
import threading
import time

from fake_daemon import Daemon, Gone


class Pest:
    """Serves every agent that comes, in a thread each: statistics, trims, and now and then a closed connection."""

    def __init__(self):
        self.daemon = Daemon()
        self.connected = 0
        self.replies = 0
        self.faults = []
        self.is_over = False
        threading.Thread(target=self.accept_all, daemon=True).start()

    def accept_all(self):
        while not self.is_over:
            try:
                peer = self.daemon.accept(0.2)
            except (OSError, ValueError):
                return
            if peer:
                self.connected += 1
                threading.Thread(target=self.pester, args=(peer, self.connected), daemon=True).start()

    def pester(self, peer, number):
        try:
            for i in range(2000):
                for verb, keys in (("stats", {"FORCE": 1}), ("trim", {"ARENA_TOPS": 1}), ("ping", {})):
                    reply = peer.request(verb, **keys)
                    if reply["VERB"] not in ("stats-reply", "trim-reply", "pong"):
                        self.faults.append(reply)
                    self.replies += 1
                if self.is_over or (number % 2 == 1 and i == 20):
                    break
                time.sleep(0.02)
        except (Gone, TimeoutError, OSError):
            pass
        peer.connection.close()

    def end(self):
        self.is_over = True
        self.daemon.remove()
