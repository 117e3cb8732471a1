// Telling the two sudos apart by their own words.
#include "admin/host/sudo_kind.hpp"

#include "admin/programs/program.hpp"
#include "common/base/build_settings.hpp"

#include <algorithm>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *rs_file = "/etc/sudoers-rs"; // instead of the usual one, where it exists
constexpr const char *usual_file = "/etc/sudoers";

} // namespace

SudoKind sudo_kind_of(const std::string &version)
{
    return version.rfind("sudo-rs ", 0) == 0 ? SudoKind::rs : SudoKind::original;
}

SudoKind installed_sudo_kind()
{
    if (::access(build::sudo_path, X_OK) != 0) return SudoKind::original;
    return sudo_kind_of(run_program({build::sudo_path, "--version"}).output);
}

std::string visudo_of(SudoKind kind)
{
    // Debian and Ubuntu call it so; where sudo-rs is the only one, it has the usual name.
    return kind == SudoKind::rs && has_program("visudo-rs") ? "visudo-rs" : "visudo";
}

std::string main_sudoers_of(SudoKind kind)
{
    return kind == SudoKind::rs && ::access(rs_file, F_OK) == 0 ? rs_file : usual_file;
}

bool does_sudo_read(SudoKind kind, const std::string &path, const std::string &checked, const std::vector<std::string> &users)
{
    if (kind == SudoKind::original) return checked.find(path + ":") != std::string::npos;
    return users.empty() || std::any_of(users.begin(), users.end(), [](const std::string &user) {
               const auto allowed = run_program({build::sudo_path, "-n", "-l", "-U", user});
               return allowed.status == 0 && allowed.output.find(build::runner_path) != std::string::npos;
           });
}

} // namespace pi_agent
