/* SPDX-License-Identifier: MIT */
/*
 * The D-Bus interface between memguardd and its clients: names only. Layer: host. Dictionaries carry the very
 * names that `memguardctl --json` promises; a number nobody knows is left out, and the client shows null or "-".
 *
 * org.memguard1.Manager at /org/memguard1, reading for everyone, acting for root (and the daemon's own
 * user), and on the system bus, but for SetLogLevel(), for whomever polkit allows it:
 *
 *   GetHost() -> a{sv}                 version, hostname, units, trimming, observing, no_agent, self_anon_bytes, self_cpu_permyriad,
 *                                      self_cpu_usec, self_allocated_bytes, self_resident_bytes, psi, hierarchy, paused, source, uptime_usec, config_files (as),
 *                                      history_bytes, agents, late_replies, trims, trimmed_bytes
 *   ListUnits(as names) -> aa{sv}      the promised names of section 8; nested dictionaries as a{sv}, lists of them as aa{sv};
 *                                      and for metrics: agents_lost, results (a{sv}), held_usec (a{sv}), pause_sum_usec, pauses (aa{sv});
 *                                      empty names: all; an unknown name: error NoSuchUnit
 *   ListProcesses(s unit) -> aa{sv}    unit pid command rss_anon_bytes swap_bytes live_bytes retained_bytes freeable_bytes agent
 *                                      ("loaded", or why not, in a word), agent_reason (in a sentence), agent_version, mode, thread, allocators (aa{sv}), stats_age_usec, stats_cost_usec, suspended
 *   GetHistory(s unit, t since_usec) -> a{sv}  unit interval_usec history_bytes trims_forgotten, samples (aa{sv}: at_usec step_usec anon_bytes
 *                                      live_bytes retained_bytes trim_above_bytes) and trims (aa{sv}: at_usec result reason before_bytes after_bytes
 *                                      gain_bytes expected_bytes duration_usec pause_usec), the oldest first; realtime
 *   Explain(s unit) -> a{sv}           unit action reason text would_trim expected_bytes predicted_pause_usec, conditions (aa{sv}:
 *                                      name state quantity have want), settings (aa{sv}: key value file line)
 *   Advise(s unit) -> aa{sv}           the most useful first, at least one: kind confidence text gain_bytes (0: not a matter of bytes) value
 *                                      (of the setting proposed: CPUs, bytes or microseconds); error NotNow before the first tick
 *   TrimUnit(s unit, b dry_run) -> a{sv}   waits for the round: unit result before_bytes after_bytes gain_bytes expected_bytes
 *                                      duration_usec pause_usec processes asked refused reason
 *   Reload() -> as                     warnings; error ConfigInvalid carries the problems, one a line
 *   Pause(s unit), Resume(s unit)      "" is all; error NotSaved: done, but it may not outlast a restart
 *   SetLogLevel(s level), GetLogLevel() -> s
 */
#pragma once

#define MG_BUS_NAME      "org.memguard1"
#define MG_BUS_PATH      "/org/memguard1"
#define MG_BUS_INTERFACE "org.memguard1.Manager"

/* An object for each unit, below the object manager MG_BUS_PATH. */
#define MG_BUS_UNIT_PATH      MG_BUS_PATH "/unit"
#define MG_BUS_UNIT_INTERFACE "org.memguard1.Unit"

/* What polkit is asked for. */
#define MG_BUS_ACTION_TRIM   "org.memguard1.trim"
#define MG_BUS_ACTION_PAUSE  "org.memguard1.pause"
#define MG_BUS_ACTION_RESUME "org.memguard1.resume"
#define MG_BUS_ACTION_RELOAD "org.memguard1.reload"

#define MG_BUS_ERROR_NO_SUCH_UNIT   "org.memguard1.Error.NoSuchUnit"
#define MG_BUS_ERROR_CONFIG_INVALID "org.memguard1.Error.ConfigInvalid"
#define MG_BUS_ERROR_NOT_NOW        "org.memguard1.Error.NotNow"
#define MG_BUS_ERROR_NOT_SAVED      "org.memguard1.Error.NotSaved"

#define MG_RUNTIME_DIRECTORY "/run/memguard"
#define MG_BUS_SOCKET        "bus" /* in the runtime directory */
#define MG_AGENT_SOCKET      "agent.sock"
#define MG_PRESSURE_SOCKET   "pressure.sock"
