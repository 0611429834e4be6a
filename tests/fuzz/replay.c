/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target over each file of the directories named as arguments, so that plain
 * `meson test` keeps every input that once mattered. Each file also in all its truncations, and
 * with one bit of each byte flipped: not a fuzzer, but the same on every machine. Inputs are
 * heap blocks of exactly their size, so that ASan and valgrind see a byte read too far.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/macros.h"
#include "fuzz.h"

#define INPUT_MAX_BYTES (64 * 1024)

/* Beyond this many bytes only every so manieth position is tried: a test takes under a second. */
#define POSITIONS_MAX 1024

static void run_one(const char *bytes, size_t size, size_t flip_at) {
        char *copy = malloc(size > 0 ? size : 1);

        if (!copy)
                abort();
        memcpy(copy, bytes, size);
        if (flip_at < size)
                copy[flip_at] ^= (char) (1 << (flip_at % 8));
        LLVMFuzzerTestOneInput((const uint8_t *) (size > 0 ? copy : copy + 1), size);
        free(copy);
}

static int replay_file(int dir_fd, const char *name) {
        static char bytes[INPUT_MAX_BYTES + 1];

        ssize_t length = file_read_at(dir_fd, name, bytes, sizeof(bytes));
        if (length < 0) {
                fprintf(stderr, "%s: %s\n", name, strerror((int) -length));
                return -1;
        }
        size_t size = (size_t) length, step = 1 + size / POSITIONS_MAX;
        run_one(bytes, size, size);
        for (size_t at = 0; at < size; at += step) {
                run_one(bytes, at, at);
                run_one(bytes, size, at);
        }
        return 0;
}

static int replay_directory(const char *path) {
        int files = 0;
        DIR *directory = opendir(path);

        if (!directory) {
                fprintf(stderr, "%s: %s\n", path, strerror(errno));
                return -1;
        }
        for (struct dirent *entry; (entry = readdir(directory));) {
                if (entry->d_name[0] == '.')
                        continue;
                if (replay_file(dirfd(directory), entry->d_name) < 0) {
                        closedir(directory);
                        return -1;
                }
                files++;
        }
        closedir(directory);
        return files;
}

int main(int argc, char **argv) {
        for (int i = 1; i < argc; i++) {
                int files = replay_directory(argv[i]);
                if (files <= 0) {
                        fprintf(stderr, "%s: nothing was replayed\n", argv[i]);
                        return EXIT_FAILURE;
                }
                printf("%s: %d inputs\n", argv[i], files);
        }
        return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
