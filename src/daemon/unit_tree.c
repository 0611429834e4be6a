/* SPDX-License-Identifier: MIT */
/* How many units each tree has; see unit_tree.h. Layer: daemon. */
#include "daemon/unit_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/journal.h"
#include "daemon/manager.h"
#include "host/unit_name.h"

/* Root makes them, a user or a container each: there are few. */
static struct unit_tree *find_tree(const struct manager *manager, const char *path, size_t length) {
        struct unit_tree *tree = manager->trees;

        while (tree && (strncmp(tree->path, path, length) != 0 || tree->path[length] != '\0'))
                tree = tree->next;
        return tree;
}

static struct unit_tree *add_tree(struct manager *manager, const char *path, size_t length) {
        struct unit_tree *tree = calloc(1, sizeof(*tree) + length + 1);

        if (!tree)
                return NULL;
        memcpy(tree->path, path, length);
        tree->next = manager->trees;
        manager->trees = tree;
        return tree;
}

int unit_tree_join(struct manager *manager, const char *path, struct unit_tree **ret_tree) {
        size_t length = path ? unit_name_tree_length(path) : 0;
        struct unit_tree *tree;

        if (length == 0) {
                *ret_tree = NULL;
                return 0;
        }
        tree = find_tree(manager, path, length) ?: add_tree(manager, path, length);
        if (!tree)
                return -ENOMEM;
        if (tree->n_units >= UNITS_PER_TREE) {
                if (!tree->told)
                        journal_log(LOG_WARNING, NULL,
                                    "%s has more than %u units: those beyond are not looked after",
                                    tree->path, UNITS_PER_TREE);
                tree->told = true;
                return -EUSERS;
        }
        tree->n_units++;
        *ret_tree = tree;
        return 0;
}

void unit_tree_leave(struct manager *manager, struct unit_tree *tree) {
        struct unit_tree **at = &manager->trees;

        if (!tree || --tree->n_units > 0)
                return;
        while (*at != tree)
                at = &(*at)->next;
        *at = tree->next;
        free(tree);
}
