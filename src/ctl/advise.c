/* SPDX-License-Identifier: MIT */
/* memguardctl advise UNIT: what an operator could change, what it should bring and how sure that is. Layer: ctl. */
#include <stdio.h>

#include "base/macros.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/output.h"

/* Advice is read, not compared: sentences, not a table. */
static void print_piece(const json_t *piece) {
        printf("%s (confidence %s", member_text(piece, "kind"), member_text(piece, "confidence"));
        if (member_integer(piece, "gain_bytes", 0) > 0)
                printf(", about %s", member_size(piece, "gain_bytes"));
        printf("):\n    %s\n", member_text(piece, "text"));
}

int verb_advise(int argc, char **argv) {
        json_t *advice MG_CLEANUP(json_decrefp) = NULL;
        size_t i;
        json_t *piece;

        int exit_code = client_call(&advice, "Advise", "s", argv[1]);
        if (exit_code != CTL_OK)
                return exit_code;
        if (ctl_options.json != JSON_OFF)
                return json_print(advice);
        pager_open();
        json_array_foreach(advice, i, piece) print_piece(piece);
        return CTL_OK;
}
