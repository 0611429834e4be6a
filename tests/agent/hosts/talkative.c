/* SPDX-License-Identifier: MIT */
/* A program whose allocator has jemalloc's interface and far too much to say: a version longer than any message. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static char version[8000];

#pragma GCC visibility push(default)
int mallctl(const char *name, void *old, size_t *old_size, void *value, size_t value_size);
int mallctlnametomib(const char *name, size_t *mib, size_t *length);
int mallctlbymib(
                const size_t *mib,
                size_t length,
                void *old,
                size_t *old_size,
                void *value,
                size_t value_size);
#pragma GCC visibility pop

int mallctl(const char *name, void *old, size_t *old_size, void *value, size_t value_size) {
        static const char *const text = version;
        static bool is_on;

        if (strcmp(name, "version") == 0 || strcmp(name, "config.malloc_conf") == 0) {
                memcpy(old, &text, sizeof(text));
                return 0;
        }
        if (strcmp(name, "background_thread") != 0)
                return ENOENT;
        if (value)
                memcpy(&is_on, value, sizeof(is_on));
        if (old)
                memcpy(old, &is_on, sizeof(is_on));
        return 0;
}

int mallctlnametomib(const char *name, size_t *mib, size_t *length) {
        return ENOENT;
}

int mallctlbymib(
                const size_t *mib,
                size_t length,
                void *old,
                size_t *old_size,
                void *value,
                size_t value_size) {
        return EINVAL;
}

static void *wait_on(void *argument) {
        while (pause() < 0)
                ;
        return NULL;
}

int main(void) {
        pthread_t thread;

        memset(version, 'v', sizeof(version) - 1);
        if (pthread_create(&thread, NULL, wait_on, NULL) != 0)
                return 1;
        wait_on(NULL);
        return 0;
}
