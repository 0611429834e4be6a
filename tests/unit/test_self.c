/* SPDX-License-Identifier: MIT */
/* The daemon's own cost, and what it tells the service manager. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "daemon/notify.h"
#include "daemon/self.h"

static void test_cpu_share(void **state) {
        struct self_cpu cpu = {};
        uint64_t now = MG_USEC_PER_HOUR, used = 0;

        assert_true(self_cpu_share(&cpu) == MG_UNKNOWN);
        self_cpu_add(&cpu, now, used);
        assert_true(self_cpu_share(&cpu) == MG_UNKNOWN);

        /* 0.5 % for three minutes, looked at each second. */
        for (int i = 0; i < 180; i++) {
                now += MG_USEC_PER_SEC;
                used += 5000;
                self_cpu_add(&cpu, now, used);
        }
        assert_int_equal(self_cpu_share(&cpu), 50);

        /* Idle for half a minute: half of the last minute; then for all of it. */
        for (int i = 0; i < 6; i++)
                self_cpu_add(&cpu, now += 5 * MG_USEC_PER_SEC, used);
        assert_int_equal(self_cpu_share(&cpu), 25);
        for (int i = 0; i < 6; i++)
                self_cpu_add(&cpu, now += 5 * MG_USEC_PER_SEC, used);
        assert_int_equal(self_cpu_share(&cpu), 0);

        /* A clock that stands still, a counter that falls. */
        self_cpu_add(&cpu, now, used + 1000);
        assert_int_equal(self_cpu_share(&cpu), 0);
        self_cpu_add(&cpu, now += MG_USEC_PER_MIN, used - 100);
        assert_int_equal(self_cpu_share(&cpu), 0);
}

static void test_figures(void **state) {
        struct self_heap before, after;
        struct self *self;
        int64_t net;
        char *block;

        assert_int_equal(self_new(&self), 0);
        assert_true(self_rss_anon(self) > 0);
        assert_true(self_rss_anon(self) != MG_UNKNOWN);
        assert_true(strncmp(self->allocator, "jemalloc ", strlen("jemalloc ")) == 0);
        self_free(self);

        net = self_net_allocated();
        self_heap(&before);
        block = malloc(8 * MG_MIB);
        assert_non_null(block);
        memset(block, 1, 8 * MG_MIB);
        self_heap(&after);
        if (net == 0) {
                free(block);
                print_message("the allocator in use does not count\n");
                skip();
        }
        assert_true(after.allocated_bytes >= before.allocated_bytes + 8 * MG_MIB);
        assert_true(after.resident_bytes >= after.active_bytes);
        assert_true(self_net_allocated() - net >= (int64_t) (8 * MG_MIB));
        free(block);
        assert_true(self_net_allocated() - net < (int64_t) MG_MIB);
}

static void test_status_text(void **state) {
        static const struct {
                struct notify_status status;
                const char *text;
        } cases[] = {
                { { 3, 1, 1, 1, 1288490188, false },
                  "3 units: trimming 1, observing 1, no agent 1; 1.1G given back" },
                { { 1, 0, 0, 1, 0, true },
                  "Paused: 1 unit: trimming 0, observing 0, no agent 1; 0B given back" },
                { { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, MG_UNKNOWN, true }, NULL },
        };

        for (size_t i = 0; i < MG_ELEMENTS(cases); i++) {
                char buffer[160];
                struct mg_text text;
                text_init(&text, buffer, sizeof(buffer));
                notify_format_status(&cases[i].status, &text);
                assert_false(text.overflow);
                if (cases[i].text)
                        assert_string_equal(buffer, cases[i].text);
        }
}

static int notify_fd;

static void expect_notification(const char *want) {
        char buffer[512];
        ssize_t n = recv(notify_fd, buffer, sizeof(buffer) - 1, MSG_DONTWAIT);

        if (!want) {
                assert_int_equal(n, -1);
                return;
        }
        assert_true(n > 0);
        buffer[n] = '\0';
        assert_true(strncmp(buffer, want, strlen(want)) == 0);
}

static void test_notifications(void **state) {
        char directory[] = "/tmp/memguard-notify-XXXXXX";
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct notify_status status = { .units = 2 };

        unsetenv("NOTIFY_SOCKET");
        notify_ready();
        notify_status(&status);

        assert_non_null(mkdtemp(directory));
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", directory);
        notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(notify_fd, (struct sockaddr *) &address, sizeof(address)), 0);
        setenv("NOTIFY_SOCKET", address.sun_path, 1);
        notify_ready();
        expect_notification("READY=1");
        notify_reloading();
        expect_notification("RELOADING=1\nMONOTONIC_USEC=");
        notify_stopping();
        expect_notification("STOPPING=1");
        notify_status(&status);
        expect_notification("STATUS=2 units: ");
        notify_status(&status); /* nothing new */
        expect_notification(NULL);
        status.units = 3;
        notify_status(&status);
        expect_notification("STATUS=3 units: ");
        close(notify_fd);
        unlink(address.sun_path);
        assert_int_equal(rmdir(directory), 0);
        notify_ready(); /* nobody listens any more */
        unsetenv("NOTIFY_SOCKET");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cpu_share),
                cmocka_unit_test(test_figures),
                cmocka_unit_test(test_status_text),
                cmocka_unit_test(test_notifications),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
