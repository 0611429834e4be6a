#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""protocol_client.py SOCKET: an agent from memguard-protocol(7) alone; serves until the daemon closes."""
import gc
import os
import socket
import sys


def encode(verb, **keys):
    return ''.join(f'{key}={value}\n' for key, value in {'VERB': verb, **keys}.items()).encode()


def anonymous_bytes():
    with open('/proc/self/statm', encoding='ascii') as statm:
        resident, shared = statm.read().split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf('SC_PAGESIZE')


def answer(request):
    verb, number = request['VERB'], request.get('ID')
    if verb == 'ping':
        return encode('pong', ID=number)
    if verb == 'stats':
        live = sum(map(sys.getsizeof, gc.get_objects()))
        return encode('stats-reply', ID=number, RESULT='done', HEAPS=1, HEAP0_ALLOCATOR='python', HEAP0_LIVE_BYTES=live)
    if verb == 'trim':
        before = anonymous_bytes()
        gc.collect()
        return encode('trim-reply', ID=number, RESULT='done', BEFORE_BYTES=before, AFTER_BYTES=anonymous_bytes())
    return encode('unsupported', ID=number) if number else encode('unsupported')


with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as daemon:
    daemon.connect(sys.argv[1])
    daemon.send(encode('hello', PROTOCOL=1, MODE='linked', HEAPS=1, HEAP0_ALLOCATOR='python', HEAP0_CAN='stats,trim'))
    while datagram := daemon.recv(4096):
        message = dict(line.split('=', 1) for line in datagram.decode().split('\n')[:-1])
        if message['VERB'] != 'unsupported':
            daemon.send(answer(message))
