// Where there is no systemd: a control group for one program that root starts for a user.
#pragma once

#include "common/seams/seams.hpp"
#include "runner/root/kernel/control_group.hpp"

#include <csignal>
#include <cstdlib>

namespace pi_agent {

// Made and removed by who starts the program. Nothing is made where the hierarchy of version 2 cannot be written.
class ProgramGroup {
public:
    explicit ProgramGroup(const AsRoot & /*root*/)
    {
        if (!defence_is_on("program-group") || !make_own_groups()) return;
        for (const auto &name : groups_in(own_groups)) { // those whose maker was killed
            if (!name.starts_with(prefix)) continue;
            const auto maker = static_cast<pid_t>(std::strtol(name.c_str() + prefix.size(), nullptr, 10));
            if (maker == getpid() || (kill(maker, 0) != 0 && errno == ESRCH)) end(std::string(own_groups) + "/" + name);
        }
        path_ = std::string(own_groups) + "/" + std::string(prefix) + std::to_string(getpid());
        const bool is_made = mkdir(path_.c_str(), 0755) == 0 || errno == EEXIST;
        if (!is_made || access(entrance().c_str(), W_OK) != 0) path_.clear();
    }
    ProgramGroup(const ProgramGroup &) = delete;
    ProgramGroup &operator=(const ProgramGroup &) = delete;
    ~ProgramGroup()
    {
        if (!path_.empty()) end(path_);
    }

    // Its `cgroup.procs`, for the program to enter it by; empty where the group could not be made.
    [[nodiscard]] std::string entrance() const { return path_.empty() ? "" : path_ + "/cgroup.procs"; }

private:
    // Ends what is left in it. best_effort: the next such group ends what does not end in a second.
    static void end(const std::string &path) noexcept
    {
        try {
            empty_group({path, true}, in_seconds(1));
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): best_effort
        }
        rmdir(path.c_str());
    }

    static constexpr std::string_view prefix = "program-"; // and the number of the process that made it
    std::string path_;
};

} // namespace pi_agent
