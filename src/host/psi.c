/* SPDX-License-Identifier: MIT */
/* See psi.h. Layer: host. */
#include "host/psi.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/macros.h"
#include "base/text.h"

/* The kernel reads 32 bytes at most, the NUL among them. */
#define TRIGGER_TEXT_MAX 32

#define PERCENT_PERMYRIAD 100

static const char *line_of(const char *text, const char *name) {
        size_t length = strlen(name);

        while (text && strncmp(text, name, length) != 0) {
                text = strchr(text, '\n');
                text = text ? text + 1 : NULL;
        }
        return text ? text + length : NULL;
}

/* "12.34" */
static uint64_t parse_percent(const char *text) {
        uint64_t value = 0;
        int digits = 0;

        for (; *text >= '0' && *text <= '9'; text++, digits++) {
                value = value * 10 + (uint64_t) (*text - '0');
                if (value > PERCENT_PERMYRIAD)
                        return MG_UNKNOWN;
        }
        if (digits == 0 || text[0] != '.' || text[1] < '0' || text[1] > '9' || text[2] < '0' ||
            text[2] > '9')
                return MG_UNKNOWN;
        value = value * PERCENT_PERMYRIAD + (uint64_t) (text[1] - '0') * 10 +
                (uint64_t) (text[2] - '0');
        return value <= PERCENT_PERMYRIAD * 100 ? value : MG_UNKNOWN;
}

uint64_t psi_full_avg10_parse(const char *text) {
        const char *line = line_of(text, "full avg10=");

        return line ? parse_percent(line) : MG_UNKNOWN;
}

int psi_arm(int dir_fd, const char *name, uint32_t permyriad, int *ret_fd) {
        MG_CLEANUP(file_closep) int fd = -EBADF;
        char trigger[TRIGGER_TEXT_MAX];
        struct mg_text text;
        uint64_t stall_usec = MG_PSI_WINDOW_USEC / 10000 * permyriad;

        text_init(&text, trigger, sizeof(trigger));
        text_put(&text, "some ");
        text_put_u64(&text, stall_usec);
        text_put_char(&text, ' ');
        text_put_u64(&text, MG_PSI_WINDOW_USEC);
        fd = openat(dir_fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return -errno;
        /* With the NUL: the kernel puts its own over the last byte. */
        if (write(fd, trigger, text.length + 1) < 0)
                return -errno;
        *ret_fd = MG_TAKE_FD(fd);
        return 0;
}
