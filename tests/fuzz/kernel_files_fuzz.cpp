// Lines of the kernel's in which users have a say by names: mounts and control groups are found as they are, or refused.
#include "common/host/identity.hpp"
#include "runner/root/kernel/host_facts.hpp"
#include "support/property.hpp"

#include <sstream>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

// As the kernel does it (fs/proc_namespace.c).
std::string mangled(std::string_view name)
{
    std::string text;
    for (const char byte : name) {
        if (std::string_view(" \t\n\\").find(byte) == std::string_view::npos) {
            text += byte;
            continue;
        }
        constexpr std::string_view digits = "01234567";
        const auto value = static_cast<unsigned char>(byte);
        ((text += '\\') += digits[value >> 6U]) += digits[(value >> 3U) & 7U];
        text += digits[value & 7U];
    }
    return text;
}

void try_names(const std::string &point, const std::string &source)
{
    const std::string line =
        "36 35 98:0 /" + mangled(point) + " /" + mangled(point) + " rw,noatime master:1 - ext3 " + mangled(source) + " rw,errors=continue";
    const MountEntry entry = parse_mount(line);
    require(entry.id == 36 && entry.parent == 35 && entry.type == "ext3", "another mount");
    require(entry.point == "/" + point && entry.source == source, "a mount at another place");
    const auto below = topmost_mounts_below({entry, {37, 36, "/" + point + "/x", "tmpfs", "none", ""}}, "/" + point);
    require(below.size() == 1 && below[0] == "x", "another mount lies below");
}

void try_line(const std::string &line)
{
    try {
        parse_mount(line);
    } catch (const Failure &failure) {
        require_harmless(failure.what());
    }
}

// Whatever other groups are called, ours is found where it is.
void try_groups(const std::string &text)
{
    const std::string own = "pi-agent-run-0.scope";
    const std::string sibling = "pi-agent-0.service";
    std::istringstream all(text);
    const auto group = find_sibling_group(all, own, sibling);
    if (!group) return;
    require(group->path.starts_with("/sys/fs/cgroup/") && group->path.ends_with("/" + sibling), "a group elsewhere");
    require(text.find("/" + own) != std::string::npos, "a group of a process that is in none of ours");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const std::vector<std::string> names = parts_of(input, 2, '\0'); // which no name can hold
    if (names[1].find('\0') == std::string::npos) try_names(names[0], names[1].empty() ? "none" : names[1]);
    const std::string text(input);
    try_line(text);
    try_groups(text);
    require_linear(input, try_line);
}
