/* SPDX-License-Identifier: MIT */
/*
 * A program with an allocator of its own, as small as one can be: it never gives anything back, and it counts who calls.
 * The agent's thread must not be among them. Prints that, and whether what it handed out is intact.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARENA_BYTES (UINT64_C(1) << 30)
#define CANARY      UINT64_C(0x5ca1ab1e0ddba11)

struct header {
        size_t bytes;
        uint64_t canary;
};

static _Atomic(char *) arena;
static _Atomic(size_t) used;
static atomic_int strangers, damaged;

static void count_stranger(void) {
        char name[16] = "";

        syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
        if (strcmp(name, "memguard") == 0)
                atomic_fetch_add(&strangers, 1);
}

static char *get_arena(void) {
        char *known = atomic_load(&arena);

        if (known)
                return known;
        char *map =
                        mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED)
                abort();
        if (!atomic_compare_exchange_strong(&arena, &known, map)) {
                munmap(map, ARENA_BYTES);
                return known;
        }
        return map;
}

static struct header *header_of(void *block) {
        uintptr_t address = (uintptr_t) block;

        /* The compiler holds that nothing lies before what malloc() returns. */
        __asm__("" : "+r"(address));
        return (struct header *) address - 1;
}

#pragma GCC visibility push(default)

void *malloc(size_t bytes) {
        size_t whole = (bytes + sizeof(struct header) + 15) & ~(size_t) 15;

        count_stranger();
        size_t at = atomic_fetch_add(&used, whole);
        if (bytes > ARENA_BYTES || at + whole > ARENA_BYTES) {
                errno = ENOMEM;
                return NULL;
        }
        struct header *header = (struct header *) (get_arena() + at);
        *header = (struct header){ bytes, CANARY };
        return header + 1;
}

void free(void *block) {
        count_stranger();
        if (block && header_of(block)->canary != CANARY)
                atomic_fetch_add(&damaged, 1);
}

void *calloc(size_t count, size_t bytes) {
        return bytes > 0 && count > SIZE_MAX / bytes ? NULL : malloc(count * bytes);
}

void *realloc(void *block, size_t bytes) {
        void *grown = malloc(bytes);

        if (grown && block) {
                size_t old = header_of(block)->bytes;
                memcpy(grown, block, old < bytes ? old : bytes);
                free(block);
        }
        return grown;
}

#pragma GCC visibility pop

static void *allocate(void *argument) {
        for (int i = 0; i < 2000; i++) {
                char *block = malloc(1000);
                memset(block, i, 1000);
                free(realloc(block, 2000));
        }
        usleep(700000);
        return NULL;
}

int main(void) {
        pthread_t thread[4];

        for (int i = 0; i < 4; i++)
                if (pthread_create(&thread[i], NULL, allocate, NULL) != 0)
                        return 1;
        for (int i = 0; i < 4; i++)
                pthread_join(thread[i], NULL);
        printf("strangers %d, damaged %d\n", atomic_load(&strangers), atomic_load(&damaged));
        return 19;
}
