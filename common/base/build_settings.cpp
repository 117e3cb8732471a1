// The only file that sees what the build was configured with.
#include "common/base/build_settings.hpp"

#include "build_config.hpp"

namespace pi_agent {

const char *const policy_path = PI_AGENT_POLICY_PATH;

namespace build {

const char *const version = PI_AGENT_VERSION_TEXT;
const char *const command_name = PI_AGENT_COMMAND_NAME;
const char *const wrapper_path = PI_AGENT_WRAPPER_PATH;
const char *const ctl_path = PI_AGENT_CTL_PATH;
const char *const runner_path = PI_AGENT_RUNNER_PATH;
const char *const exec_path = PI_AGENT_EXEC_PATH;
const char *const cleanup_path = PI_AGENT_CLEANUP_PATH;
const char *const gate_path = PI_AGENT_GATE_PATH;
const char *const canary_path = PI_AGENT_CANARY_PATH;
const char *const fetch_path = PI_AGENT_FETCH_PATH;
const char *const engine_door_path = PI_AGENT_ENGINE_DOOR_PATH;
const char *const shim_directory = PI_AGENT_SHIM_DIR;
const char *const bash_env_path = PI_AGENT_BASH_ENV_PATH;
const char *const defaults_path = PI_AGENT_DEFAULTS_PATH;
const char *const migrations_path = PI_AGENT_MIGRATIONS_PATH;
const char *const agents_path = PI_AGENT_AGENTS_PATH;
const char *const sudo_path = PI_AGENT_SUDO_PATH;
const char *const shell_path = PI_AGENT_SHELL_PATH;
const char *const bwrap_path = PI_AGENT_BWRAP_PATH;
const char *const setpriv_path = PI_AGENT_SETPRIV_PATH;
const char *const docker_path = PI_AGENT_DOCKER_PATH;
const char *const podman_path = PI_AGENT_PODMAN_PATH;
const char *const crun_path = PI_AGENT_CRUN_PATH;
const char *const conmon_path = PI_AGENT_CONMON_PATH;
const char *const system_path = PI_AGENT_SYSTEM_PATH;
const bool is_system_managed = PI_AGENT_SYSTEM_MANAGED;

} // namespace build

} // namespace pi_agent
