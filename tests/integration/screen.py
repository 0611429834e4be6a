# SPDX-License-Identifier: MIT
"""A program on a terminal of its own: a pty, and as much of a VT100 as tells what a reader would see."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

from harness import Failure, WAIT, check

SEQUENCE = re.compile(rb"\x1b\[(\??)([0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, arguments, columns=80, rows=24, term="xterm", tells_size=True):
        self.tells_size = tells_size  # a serial line does not
        self.raw, self.pending = b"", b""
        self.code = None
        self.master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for fd in (0, 1, 2):
                os.dup2(slave, fd)
            os.closerange(3, 100)
            environment = {**os.environ, "TERM": term, "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
            environment.pop("COLUMNS", None)
            environment.pop("LINES", None)
            os.execve(arguments[0], arguments, environment)
        os.close(slave)

    # What the terminal is to the program

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        if self.tells_size:
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, keys):
        os.write(self.master, keys.encode())

    def kill(self, number):
        os.kill(self.pid, number)

    def is_restored(self):
        """Whether its modes are those of before."""
        return termios.tcgetattr(self.master) == self.before

    # What a reader sees

    def read(self, timeout=0.1):
        while select.select([self.master], [], [], timeout)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:  # EIO: nobody has the other end open
                return
            if not data:
                return
            self.raw += data
            self.show(data)
            timeout = 0

    def show(self, data):
        data, self.pending = self.pending + data, b""
        at = 0
        while at < len(data):
            if data[at] != 0x1b:
                end = data.find(b"\x1b", at)
                end = len(data) if end < 0 else end
                self.put(data[at:end].decode(errors="replace"))
                at = end
                continue
            match = SEQUENCE.match(data, at)
            if not match:
                self.pending = data[at:]  # the rest is still to come
                return
            self.control(match)
            at = match.end()

    def put(self, text):
        for c in text:
            if c == "\r":
                self.column = 0
            elif c == "\n":
                self.scroll()
            elif self.row < self.rows and self.column < self.columns:
                self.lines[self.row][self.column] = c
                self.column += 1

    def scroll(self):
        self.row += 1
        if self.row >= self.rows:
            self.row = self.rows - 1
            self.lines = self.lines[1:] + [[" "] * self.columns]

    def control(self, match):
        private, numbers, final = match.group(1), match.group(2), match.group(3)
        if private or final == b"m":
            return
        numbers = [int(number or 1) for number in numbers.split(b";")]
        if final == b"H":
            self.row = numbers[0] - 1
            self.column = numbers[1] - 1 if len(numbers) > 1 else 0
        elif final == b"K":
            self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
        elif final == b"J":
            for row in range(self.row, self.rows):
                self.lines[row] = [" "] * self.columns
        else:
            raise Failure(f"a sequence that a VT100 need not know: {match.group()!r}")

    def text(self):
        return ["".join(line).rstrip() for line in self.lines]

    def wait_for(self, what, probe):
        deadline = time.monotonic() + WAIT
        while True:
            self.read()
            found = probe(self.text())
            if found:
                return found
            if time.monotonic() > deadline:
                raise Failure(f"waited for {what}; the screen:\n" + "\n".join(self.text()))

    def wait_text(self, *words):
        return self.wait_for(f"{words}", lambda lines: all(any(word in line for line in lines) for word in words))

    # The end

    def wait(self):
        """Its exit code, negative for a signal."""
        deadline = time.monotonic() + WAIT
        while self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
                break
            if time.monotonic() > deadline:
                raise Failure("it does not end; the screen:\n" + "\n".join(self.text()))
            self.read(0.05)
        self.read(0)
        return self.code

    def wait_stopped(self):
        pid, status = os.waitpid(self.pid, os.WUNTRACED)
        check(os.WIFSTOPPED(status), f"not stopped but ended: {status}")

    def hang_up(self):
        os.close(self.master)
        self.master = -1

    def close(self):
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.master >= 0:
            os.close(self.master)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
