/* SPDX-License-Identifier: MIT */
/*
 * Finding things in the cgroup tree, for the functions of cgroup.h. Layer: host.
 */
#pragma once

/*
 * A directory descriptor of cgroup PATH, which is as in /proc/PID/cgroup: -EINVAL if it is not below ROOT
 * ("..", or not absolute).
 */
int cgroup_open_directory(const char *root, const char *path);
