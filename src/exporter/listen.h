/* SPDX-License-Identifier: MIT */
/* The socket to serve: the service manager's, or one of our own. Layer: exporter. */
#pragma once

/*
 * The one listening stream socket that the service manager has handed over. -ENOENT: none; -EINVAL: several, or of another kind.
 */
int listen_inherited(int *ret_fd);

/* ADDRESS:PORT: "127.0.0.1:10047", "[::1]:10047", "*:10047" for all. -EINVAL when it is no such thing. */
int listen_on(const char *address, int *ret_fd);
