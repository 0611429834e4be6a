/* SPDX-License-Identifier: MIT */
/* check-config and cat-config. Layer: ctl. */
#include "ctl/check_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "host/config.h"
#include "host/config_files.h"

static void free_charp(char **string) {
        free(*string);
}

static void print_problems(const struct mg_problems *problems) {
        char buffer[MG_PROBLEM_MAX];

        for (size_t i = 0; i < problems->n_items; i++)
                fprintf(stderr, "%s%s\n",
                        problems->items[i].severity == MG_SEVERITY_WARNING ? "warning: " : "",
                        problem_format(&problems->items[i], buffer));
        /* The text of one may have been lost where its count was not. */
        if (problems->n_errors > 0 && problems->n_items == 0)
                fprintf(stderr, "memguardctl: out of memory\n");
}

static int out_of_memory(void) {
        fprintf(stderr, "memguardctl: out of memory\n");
        return CTL_FAILED;
}

/* FILE or --config=FILE, NULL for the system's. */
static int choose_file(int argc, char **argv, const char **ret_file) {
        *ret_file = argc > 1 ? argv[1] : ctl_options.config_file;
        if (argc < 2 || !ctl_options.config_file)
                return CTL_OK;
        fprintf(stderr, "memguardctl: %s takes one file: %s or --config=%s\n", argv[0], argv[1],
                ctl_options.config_file);
        return CTL_USAGE;
}

int verb_check_config(int argc, char **argv) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_freep) struct mg_config *config = NULL;
        const char *const *files;
        const char *file;

        int exit_code = choose_file(argc, argv, &file);
        if (exit_code != CTL_OK)
                return exit_code;
        int r = config_load(file, NULL, &config, &problems);
        print_problems(&problems);
        if (r == -ENOMEM)
                return out_of_memory();
        if (r < 0)
                return CTL_FAILED;
        size_t n = config_files(config, &files);
        if (n == 0)
                printf("%s is not there, and no drop-ins: the defaults hold\n", config_main_file());
        for (size_t i = 0; i < n; i++)
                printf("%s: ok\n", files[i]);
        return CTL_OK;
}

static int print_file(const char *path, bool first) {
        MG_CLEANUP(free_charp) char *text = NULL;
        size_t length;

        int r = config_file_read(path, &text, &length);
        if (r < 0) {
                fprintf(stderr, "%s: cannot be read: %s\n", path, config_file_error(r));
                return r;
        }
        printf("%s# %s\n", first ? "" : "\n", path);
        fwrite(text, 1, length, stdout);
        if (length > 0 && text[length - 1] != '\n')
                putchar('\n');
        return 0;
}

int verb_cat_config(int argc, char **argv) {
        MG_CLEANUP(problems_done) struct mg_problems problems = {};
        MG_CLEANUP(config_files_done) struct mg_config_files files = {};
        const char *file;

        int exit_code = choose_file(argc, argv, &file);
        if (exit_code != CTL_OK)
                return exit_code;
        if (config_files_find(file, NULL, &files, &problems) < 0)
                return out_of_memory();
        print_problems(&problems);
        if (problems.n_errors > 0)
                exit_code = CTL_FAILED;
        pager_open();
        if (files.n_paths == 0)
                printf("# %s is not there, and no drop-ins: the defaults hold\n",
                       config_main_file());
        for (size_t i = 0; i < files.n_paths; i++)
                if (print_file(files.paths[i], i == 0) < 0)
                        exit_code = CTL_FAILED;
        return exit_code;
}
