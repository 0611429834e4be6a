/* SPDX-License-Identifier: MIT */
/* Small files read whole: sizes around the buffer's, kernel files, and what is no such file. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/macros.h"

static char directory[] = "/tmp/memguard-test-file-XXXXXX";
static int directory_fd = -EBADF;

static int make_directory(void **state) {
        if (!mkdtemp(directory))
                return -1;
        directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return directory_fd < 0 ? -1 : 0;
}

static int remove_directory(void **state) {
        static const char *const names[] = { "file", "link", "dangling" };

        for (size_t i = 0; i < MG_ELEMENTS(names); i++)
                unlinkat(directory_fd, names[i], 0);
        file_closep(&directory_fd);
        return rmdir(directory);
}

static void write_file(const char *bytes, size_t length) {
        int fd = openat(directory_fd, "file", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, bytes, length), length);
        close(fd);
}

/* Both readers on a file of LENGTH bytes, with a buffer of SIZE that is guarded behind. */
static void check_size(size_t length, size_t size) {
        static const char bytes[] = "0123456789abcdef";
        char buffer[32];
        ssize_t expected = length < size ? (ssize_t) length : -EFBIG;

        write_file(bytes, length);
        for (int by_pread = 0; by_pread < 2; by_pread++) {
                memset(buffer, '#', sizeof(buffer));
                int fd = openat(directory_fd, "file", O_RDONLY | O_CLOEXEC);
                ssize_t n = by_pread ? file_pread(fd, buffer, size)
                                     : file_read_at(directory_fd, "file", buffer, size);
                close(fd);
                assert_int_equal(n, expected);
                if (n >= 0) {
                        assert_memory_equal(buffer, bytes, length);
                        assert_int_equal(buffer[length], '\0');
                }
                for (size_t i = size; i < sizeof(buffer); i++)
                        assert_int_equal(buffer[i], '#');
        }
}

static void test_sizes(void **state) {
        for (size_t length = 0; length <= 16; length++)
                for (size_t size = 0; size <= 20; size++)
                        check_size(length, size);
}

static void test_bytes_are_taken_as_they_are(void **state) {
        static const char bytes[] = "a\0b\r\n\xff";
        char buffer[16];

        write_file(bytes, sizeof(bytes) - 1);
        assert_int_equal(
                        file_read_at(directory_fd, "file", buffer, sizeof(buffer)),
                        sizeof(bytes) - 1);
        assert_memory_equal(buffer, bytes, sizeof(bytes));
}

static void test_kernel_files(void **state) {
        char buffer[4096], again[4096], tiny[4];

        ssize_t n = file_read_at(AT_FDCWD, "/proc/self/statm", buffer, sizeof(buffer));
        assert_true(n > 0);
        assert_int_equal(n, strlen(buffer));
        assert_int_equal(buffer[n - 1], '\n');
        assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/statm", tiny, sizeof(tiny)), -EFBIG);

        /* One descriptor serves for ever: each pread starts at 0. */
        int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        assert_true(file_pread(fd, buffer, sizeof(buffer)) > 0);
        assert_true(file_pread(fd, again, sizeof(again)) > 0);
        assert_int_equal(file_pread(fd, tiny, sizeof(tiny)), -EFBIG);
        close(fd);
        assert_int_equal(strcspn(buffer, " "), strcspn(again, " "));
}

/* The kernel hands maps over in pieces of a page: all of them are wanted. */
static void test_a_file_that_comes_in_pieces(void **state) {
        static char buffer[1024 * 1024];
        const size_t page = 4096, pages = 512;

        /* Neighbours of different protection are not merged: each page has a line of its own. */
        char *map = mmap(NULL, pages * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(map != MAP_FAILED);
        for (size_t i = 0; i < pages; i += 2)
                assert_int_equal(mprotect(map + i * page, page, PROT_NONE), 0);
        ssize_t n = file_read_at(AT_FDCWD, "/proc/self/maps", buffer, sizeof(buffer));
        munmap(map, pages * page);
        assert_true(n > (ssize_t) (4 * page));
        assert_int_equal(buffer[n - 1], '\n');
        assert_non_null(strstr(buffer, "[stack]"));
}

static void test_what_cannot_be_read(void **state) {
        char buffer[64];
        int pair[2], closed;

        assert_int_equal(symlinkat("nowhere", directory_fd, "dangling"), 0);
        assert_int_equal(symlinkat("link", directory_fd, "link"), 0);
        const struct {
                int dir_fd;
                const char *path;
                int error;
        } cases[] = {
                { directory_fd, "missing", -ENOENT },     { directory_fd, "", -ENOENT },
                { directory_fd, "dangling", -ENOENT },    { directory_fd, "link", -ELOOP },
                { directory_fd, "file/below", -ENOTDIR }, { directory_fd, ".", -EISDIR },
                { AT_FDCWD, directory, -EISDIR },         { -EBADF, "file", -EBADF },
                { AT_FDCWD, "/proc/self/mem", -EIO },
        };
        write_file("x", 1);
        for (size_t i = 0; i < MG_ELEMENTS(cases); i++)
                assert_int_equal(
                                file_read_at(cases[i].dir_fd, cases[i].path, buffer,
                                             sizeof(buffer)),
                                cases[i].error);

        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        assert_int_equal(file_pread(pair[0], buffer, sizeof(buffer)), -ESPIPE);
        close(pair[1]);
        closed = pair[0];
        close(closed);
        assert_int_equal(file_pread(closed, buffer, sizeof(buffer)), -EBADF);
        assert_int_equal(file_pread(-EBADF, buffer, sizeof(buffer)), -EBADF);
}

/* A process that is gone answers ESRCH on descriptors opened while it lived. */
static void test_a_vanished_process(void **state) {
        char buffer[4096], path[64];

        pid_t child = fork();
        if (child == 0) {
                pause();
                _exit(0);
        }
        assert_true(child > 0);
        snprintf(path, sizeof(path), "/proc/%d/statm", (int) child);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(file_pread(fd, buffer, sizeof(buffer)) > 0);
        kill(child, SIGKILL);
        assert_int_equal(TEMP_FAILURE_RETRY(waitpid(child, NULL, 0)), child);
        assert_int_equal(file_pread(fd, buffer, sizeof(buffer)), -ESRCH);
        assert_int_equal(file_read_at(AT_FDCWD, path, buffer, sizeof(buffer)), -ENOENT);
        close(fd);
}

static void test_no_descriptor_is_left_open(void **state) {
        char buffer[64];

        int before = dup(directory_fd);
        close(before);
        write_file("0123456789", 10);
        file_read_at(directory_fd, "file", buffer, sizeof(buffer));
        file_read_at(directory_fd, "file", buffer, 4);
        file_read_at(directory_fd, ".", buffer, sizeof(buffer));
        file_read_at(directory_fd, "missing", buffer, sizeof(buffer));
        int after = dup(directory_fd);
        close(after);
        assert_int_equal(before, after);
}

static void test_closep(void **state) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), copy = fd, unset = -EBADF;

        errno = ENOTNAM;
        file_closep(&fd);
        assert_int_equal(fd, -EBADF);
        assert_int_equal(fcntl(copy, F_GETFD), -1);
        assert_int_equal(errno, EBADF);

        errno = ENOTNAM;
        file_closep(&copy); /* closed already: no harm, and errno is the caller's */
        assert_int_equal(copy, -EBADF);
        file_closep(&unset);
        assert_int_equal(unset, -EBADF);
        assert_int_equal(errno, ENOTNAM);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sizes),
                cmocka_unit_test(test_bytes_are_taken_as_they_are),
                cmocka_unit_test(test_kernel_files),
                cmocka_unit_test(test_a_file_that_comes_in_pieces),
                cmocka_unit_test(test_what_cannot_be_read),
                cmocka_unit_test(test_a_vanished_process),
                cmocka_unit_test(test_no_descriptor_is_left_open),
                cmocka_unit_test(test_closep),
        };
        return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
