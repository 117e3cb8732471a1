// Which device nodes of the host a session gets, as the policy names them.
#include "runner/root/view/devices.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/decide/decision.hpp"
#include "common/host/account.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>

namespace pi_agent {

namespace {

constexpr const char *devices_top = "/dev";
constexpr std::size_t nodes_limit = 200; // each is a mount and a rule of the unit
constexpr mode_t all_may = S_IROTH | S_IWOTH;
constexpr mode_t group_may = S_IRGRP | S_IWGRP;

// Of the groups that open the host, these open only devices. A session's view and control group keep those devices from it, except the
// nodes that the policy names.
constexpr std::string_view groups_of_devices = "audio cdrom dialout kvm plugdev render vboxusers video";

bool may_be_sessions(Gid group)
{
    return !is_privileged_group(group) || has_word(groups_of_devices, group_name(group).value_or(""));
}

class NodeSearch {
public:
    NodeSearch() : top_(open_trusted(devices_top, O_RDONLY | O_DIRECTORY, "host's devices")) {}

    void add(const PolicyPath &entry)
    {
        const std::size_t before = found_.nodes.size();
        const std::size_t told = found_.notices.size();
        if (entry.path == nvidia_devices) {
            for (const auto &name : sorted_names(top_))
                if (name.starts_with(nvidia_devices)) look_at(name, entry, true);
        } else {
            look_at(entry.path.substr(std::string(devices_top).size() + 1), entry, false);
        }
        if (found_.nodes.size() == before && found_.notices.size() == told)
            found_.notices.push_back("no device for the agent: " + entry.path + " (devices, " + to_string(entry.where) +
                                     "): this host has none now");
    }

    ShownDevices finish() { return std::move(found_); }

private:
    static std::vector<std::string> sorted_names(FdRef directory)
    {
        std::vector<std::string> names = names_in(directory);
        std::sort(names.begin(), names.end());
        return names;
    }

    // A directory stands for the nodes in it; `is_one_of_many`: anything else there is passed over.
    void look_at(const std::string &below, const PolicyPath &entry, bool is_one_of_many)
    {
        const UniqueFd found = look_beneath(top_, below, O_PATH | O_NOFOLLOW);
        if (!found) {
            if (errno == ENOENT || is_one_of_many) return;
            throw_errno("opening the device " + join_path(devices_top, below));
        }
        const struct stat facts = examine(found, "examining the device " + join_path(devices_top, below));
        if (S_ISDIR(facts.st_mode)) {
            const UniqueFd directory = open_beneath(top_, below, O_RDONLY | O_DIRECTORY);
            for (const auto &name : sorted_names(directory))
                if (const UniqueFd node = look_beneath(directory, name, O_PATH | O_NOFOLLOW))
                    take(join_path(below, name), examine(node, "examining a device"), entry, true);
            return;
        }
        take(below, facts, entry, is_one_of_many);
    }

    void take(const std::string &below, const struct stat &facts, const PolicyPath &entry, bool is_one_of_many)
    {
        const std::string path = join_path(devices_top, below);
        const bool is_character = S_ISCHR(facts.st_mode);
        if ((!is_character && defence_is_on("character-devices")) || problem_of_device(path)) {
            if (is_one_of_many) return;
            throw Failure(
                FailureKind::named_place,
                escape_for_display(path) + " (devices, " + to_string(entry.where) +
                    ") is not a character device; a session sees neither disks nor links: ask the administrator to name the node itself");
        }
        if (found_.nodes.size() == nodes_limit)
            throw Failure(FailureKind::named_place, "devices (" + to_string(entry.where) + ") are more than " +
                                                        std::to_string(nodes_limit) + " nodes; ask the administrator to name fewer");
        found_.nodes.push_back(path);
        if ((facts.st_mode & all_may) == all_may) return;
        const Gid group(facts.st_gid);
        if ((facts.st_mode & group_may) == group_may && may_be_sessions(group)) {
            if (std::find(found_.groups.begin(), found_.groups.end(), group) == found_.groups.end()) found_.groups.push_back(group);
            return;
        }
        found_.notices.push_back(
            "the agent cannot open " + escape_for_display(path) + " (devices, " + to_string(entry.where) +
            "): neither all users nor a group that opens nothing else of the host may read and write it; a rule of udev can "
            "say so");
    }

    UniqueFd top_;
    ShownDevices found_;
};

} // namespace

ShownDevices find_devices(const AsRoot & /*root*/, const std::vector<PolicyPath> &devices)
{
    if (devices.empty()) return {};
    NodeSearch search;
    for (const auto &entry : devices)
        search.add(entry);
    return search.finish();
}

} // namespace pi_agent
