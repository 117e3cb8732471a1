// Climbing in /proc from each process to its parent.
#include "common/host/ancestors.hpp"

#include "common/base/text.hpp"

#include <array>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int most_ancestors = 1000;

struct Status {
    std::string name;
    pid_t parent = 0;
    bool is_roots = false;
};

// proc_pid_status(5). Empty for a process that has ended.
std::optional<Status> read_status(FdRef process)
{
    const UniqueFd file = UniqueFd::adopt(openat(process.get(), "status", O_RDONLY | O_CLOEXEC));
    std::array<char, 4096> buffer{};
    const ssize_t length = file ? read(file.get(), buffer.data(), buffer.size()) : -1;
    if (length <= 0) return std::nullopt;
    Status status;
    for (const auto line : split(std::string_view(buffer.data(), static_cast<std::size_t>(length)), '\n')) {
        const auto value_of = [&](std::string_view key) { return line.starts_with(key) ? line.substr(key.size()) : std::string_view(); };
        if (const auto name = value_of("Name:\t"); !name.empty()) status.name = name;
        if (const auto parent = value_of("PPid:\t"); !parent.empty()) status.parent = to_number<pid_t>(parent).value_or(0);
        if (const auto ids = value_of("Uid:\t"); !ids.empty()) status.is_roots = ids == "0\t0\t0\t0"; // real, effective, saved, files
    }
    return status;
}

UniqueFd open_directory_of(const std::string &process)
{
    return UniqueFd::adopt(open(("/proc/" + process).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

} // namespace

bool has_ancestor(const std::function<bool(const Ancestor &)> &is_it)
{
    UniqueFd child = open_directory_of("self");
    for (int count = 0; child && count < most_ancestors; ++count) {
        const auto before = read_status(child);
        if (!before || before->parent <= 1) return false;
        UniqueFd parent = open_directory_of(std::to_string(before->parent));
        // Still its parent now that the directory is open: so the number meant that one all the time.
        const auto after = read_status(child);
        if (!parent || !after || after->parent != before->parent) return false;
        const auto status = read_status(parent);
        if (!status) return false;
        if (is_it({parent, status->name, status->is_roots, before->parent})) return true;
        child = std::move(parent);
    }
    return false;
}

bool looks_like_job(const Ancestor &ancestor)
{
    return ancestor.is_roots && ancestor.name.starts_with(job_process);
}

} // namespace pi_agent
