/* SPDX-License-Identifier: MIT */
/*
 * The verbs of memguardctl that need no daemon: what is wrong with the configuration, and what it is made of. Layer: ctl.
 * ARGV[0] is the verb, ARGV[1], if any, the FILE to look at instead of the system's. Both return an enum ctl_exit.
 */
#pragma once

/* Every problem on standard error, one a line; 1 when there is an error, warnings alone are 0. */
int verb_check_config(int argc, char **argv);

/* The files on standard output, lowest precedence first, each below "# /its/path". */
int verb_cat_config(int argc, char **argv);
