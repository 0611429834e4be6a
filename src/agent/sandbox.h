/* SPDX-License-Identifier: MIT */
/*
 * A seccomp filter that was there before the program began: SystemCallFilter= of a unit, a container's profile. A forbidden
 * call may kill the program, and nothing tells beforehand which ones are. Layer: agent.
 */
#pragma once

#include <stdbool.h>

/*
 * Whether every kind of call that the agent makes is survived: tried in a short-lived child, which no wait() of the
 * program's sees. The child is made by clone(2), as threads are: to be asked once the program has made one, or is about to.
 */
bool sandbox_admits_agent(void);
