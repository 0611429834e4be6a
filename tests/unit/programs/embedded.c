/* SPDX-License-Identifier: MIT */
/* A program with a prefixed jemalloc in it, as far as its symbols go. */
#include <stddef.h>

int _rjem_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size);

int _rjem_mallctl(const char *name, void *old, size_t *old_size, void *new, size_t new_size) {
        return name && old && old_size && new ? (int) new_size : 0;
}

int main(void) {
        return _rjem_mallctl(NULL, NULL, NULL, NULL, 0);
}
