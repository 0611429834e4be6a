/* SPDX-License-Identifier: MIT */
/*
 * memguardctl simulate: a trace under the real policy and a configuration of one's choice, so that thresholds can be tried on
 * what happened yesterday. Needs no daemon. Layer: ctl.
 */
#pragma once

/*
 * ARGV: the verb and the TRACE ("-": standard input), whose lines ctl/trace.h describes; ctl_options.config_file is the
 * configuration (NULL: the system's). Prints each change of mind, each trim and each verdict, then a row a unit; as JSON an
 * object with "events" and "units". Returns an enum ctl_exit.
 */
int verb_simulate(int argc, char **argv);
