// Settings of the build (meson options): the version and paths. meson makes their only source, so a build for other paths compiles that
// alone.
#pragma once

namespace pi_agent::build {

// The policy's main file, fixed when the product is built (meson option), never taken from argv or environment.
extern const char *const policy_path;

extern const char *const version;      // MAJOR.MINOR.PATCH
extern const char *const command_name; // file name of the wrapper

// The product's own programs and files.
extern const char *const wrapper_path;
extern const char *const ctl_path;
extern const char *const runner_path;
extern const char *const exec_path;
extern const char *const cleanup_path;
extern const char *const gate_path;
extern const char *const canary_path;
extern const char *const fetch_path;
extern const char *const engine_door_path;
extern const char *const shim_directory;
extern const char *const bash_env_path; // what bash reads where PIP_USER is 1
extern const char *const npmrc_path;
extern const char *const defaults_path;
extern const char *const migrations_path;
extern const char *const agents_path; // what is known of each agent that can be fetched

// The host's programs.
extern const char *const sudo_path;
extern const char *const shell_path;
extern const char *const bwrap_path;
extern const char *const setpriv_path; // becomes the agent inside bubblewrap
extern const char *const docker_path;
extern const char *const podman_path;
extern const char *const crun_path;   // makes podman's containers
extern const char *const conmon_path; // watches them
extern const char *const system_path; // directories, separated by colons

extern const bool is_system_managed; // the system's configuration has the policy and the sudo rule

} // namespace pi_agent::build

namespace pi_agent {

using build::policy_path;

} // namespace pi_agent
