// Rules for the text of paths in a policy. A child with the user's rights later checks what they are on the host.
#pragma once

#include "common/base/text.hpp"

#include <array>

namespace pi_agent {

// What packages keep for their programs outside of /usr, where these look for it: lists of packages, formats of TeX, dictionaries,
// catalogs, gems, fonts. Every session sees them read-only, where the host has them and only root can change them.
inline constexpr std::array<std::string_view, 11> package_data = {
    "/var/cache/fontconfig", "/var/lib/aspell", "/var/lib/dictionaries-common", "/var/lib/dpkg",  "/var/lib/gems",    "/var/lib/ghc",
    "/var/lib/ghostscript",  "/var/lib/ispell", "/var/lib/sgml-base",           "/var/lib/texmf", "/var/lib/xml-core"};

// A project root: absolute, or starting with "~/".
std::optional<TextProblem> problem_of_root(const std::string &path);

// A root that is shown at its own path: its bytes reach unit properties, so it has their alphabet (design rule 2).
std::optional<TextProblem> problem_of_root_in_unit(const std::string &path);

// A canonical path that cannot be a project: system directories, kernel file systems, and the agents' state, which an agent may reach only
// through its home.
std::optional<TextProblem> problem_of_place(const std::string &path);

// Where the agents' homes are: its text reaches unit properties, and no session sees anything else there.
std::optional<TextProblem> problem_of_state_dir(const std::string &path);

// A canonical path that sessions see, beside the agents' state: neither holds the other.
std::optional<TextProblem> problem_beside_state(const std::string &path, const std::string &state_dir);

// A config directory: absolute, or relative to the home. Opened only with the user's rights, so any printable name is fine.
std::optional<TextProblem> problem_of_config_directory(const std::string &path);

// A path inside the config directory, relative to it.
std::optional<TextProblem> problem_of_config_path(const std::string &path);

// Whether `projects.mask` covers a path below the top of a project. A pattern without '/' is compared with each name, any other with the
// path (fnmatch(3)). Only a '/' in the pattern matches a '/'.
bool is_masked_by(const std::string &pattern, const std::string &path);

// A path inside a project, or a pattern of such paths, relative to it.
std::optional<TextProblem> problem_of_project_path(const std::string &path);

// The same, with a '/' at its end for a directory.
std::optional<TextProblem> problem_of_protected_path(const std::string &path);

// A user's file of variables: absolute, or relative to the home.
std::optional<TextProblem> problem_of_host_file(const std::string &path);

// A file that belongs to root: absolute.
std::optional<TextProblem> problem_of_managed_file(const std::string &path);

// A path of the host to show to the agent, as written or resolved: absolute.
std::optional<TextProblem> problem_of_view_path(const std::string &path);

// The same for an entry of PATH.
std::optional<TextProblem> problem_of_program_directory(const std::string &path);

// A device node or a directory of them, below /dev; or nvidia_devices, for all devices of that driver.
constexpr const char *nvidia_devices = "nvidia";
std::optional<TextProblem> problem_of_device(const std::string &path);

// The agent's program.
std::optional<TextProblem> problem_of_binary(const std::string &path);

// The program that asks Slurm for a job.
std::optional<TextProblem> problem_of_srun(const std::string &path);

// What a job asks Slurm for: the name of a partition, account or quality of service, or an expression of features.
std::optional<TextProblem> problem_of_job_word(const std::string &text);

} // namespace pi_agent
