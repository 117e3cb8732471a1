// What check tells of roots that exist: others can exchange them, they lie on another host, or they overlap.
#include "admin/diagnose/host_checks.hpp"

#include "common/base/text.hpp"
#include "common/host/identity.hpp"
#include "runner/root/session/state_directory.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace pi_agent {

namespace {

bool is_open_to_all(const StepToRoot &step)
{
    return (step.mode & S_IWOTH) != 0;
}

// In a directory with the sticky bit, only owners exchange what is theirs.
bool keeps_entries(const StepToRoot &step)
{
    return (step.mode & S_ISVTX) != 0;
}

std::string shown(const StepToRoot &step)
{
    return fmt::format("{} (owner {}, mode {:04o})", escape_for_display(step.path), escape_for_display(name_or_number(Uid(step.owner))),
                       step.mode & 07777U);
}

RootDanger on_another_host(FdRef directory, const std::string &path)
{
    struct statfs facts {};
    if (::fstatfs(directory.get(), &facts) != 0) return {};
    const std::string name = network_file_system(static_cast<unsigned long>(facts.f_type));
    if (name.empty()) return {};
    return {escape_for_display(path) + " lies on another host (" + name +
                "): a start there is refused unless the kernel can map its owners, and it usually cannot",
            "'sudo pi-agentctl doctor' tries it; a directory on a local disk works (docs/platforms/file-systems.md)"};
}

Diagnostic overlap_of(const FoundRoot &inner, const FoundRoot &outer)
{
    const std::string place = escape_for_display(inner.path);
    const std::string other = escape_for_display(outer.path) + " (" + outer.key + ", " + to_string(outer.where) + ")";
    const std::string relation = inner.path == outer.path ? place + " is also " + other : place + " lies in " + other;
    if (inner.user == outer.user)
        return {inner.where, inner.key, relation + ": a session there has the inner root alone, and one beside it reaches both",
                "keep one of them, unless that is what you mean"};
    return {inner.where, inner.key,
            relation + ", a root of " + outer.user + ": what the agent of one leaves there, the agent of the other reads and runs",
            "give each their own, or name a group for what they share"};
}

} // namespace

RootDanger danger_of_way(const std::vector<StepToRoot> &way, const Account &user)
{
    const std::string remedy = "let only root and " + user.name + " write there, or choose another place";
    const auto is_strange = [&](const StepToRoot &step) { return step.owner != 0 && Uid(step.owner) != user.uid; };
    const auto owner_of = [](const StepToRoot &step) { return escape_for_display(name_or_number(Uid(step.owner))); };
    for (std::size_t index = 0; index < way.size(); ++index) {
        const StepToRoot &step = way[index];
        const bool is_root = index + 1 == way.size();
        if (is_root && is_open_to_all(step))
            return {"everybody can write to " + shown(step) + ": the agent reads and obeys what they leave there", remedy};
        if (!is_root && is_open_to_all(step) && !keeps_entries(step))
            return {"everybody can write to " + shown(step) + ", and so put another directory in the root's place", remedy};
        // The owner of a directory can write to it, whatever its mode is. A root's own owner is who it is for.
        if (!is_root && is_strange(step))
            return {owner_of(step) + " can write to " + shown(step) + ", and so put another directory in the root's place", remedy};
        if (is_root && is_strange(step) && index > 0 && is_open_to_all(way[index - 1]))
            return {owner_of(step) + " can put another directory in the root's place: everybody can write to " + shown(way[index - 1]),
                    remedy};
    }
    return {};
}

RootDanger danger_of_root(FdRef directory, const std::string &path, const Account &user)
{
    if (auto elsewhere = on_another_host(directory, path); !elsewhere.problem.empty()) return elsewhere;
    std::vector<StepToRoot> way;
    for (std::string step = path;; step = parent_of(step)) {
        struct stat facts {};
        if (::lstat(step.c_str(), &facts) != 0) return {};
        way.push_back({step, facts.st_uid, facts.st_mode});
        if (step == "/") break;
    }
    std::reverse(way.begin(), way.end());
    return danger_of_way(way, user);
}

std::vector<Diagnostic> find_overlaps(std::vector<FoundRoot> roots)
{
    // With "/" before every other byte, what is in a directory follows it at once.
    const auto before = [](const FoundRoot &one, const FoundRoot &other) {
        return std::lexicographical_compare(
            one.path.begin(), one.path.end(), other.path.begin(), other.path.end(), [](char left, char right) {
                const auto rank = [](char byte) { return byte == '/' ? 0 : static_cast<unsigned char>(byte); };
                return rank(left) < rank(right);
            });
    };
    std::stable_sort(roots.begin(), roots.end(), before);
    Problems found; // at most as many as anybody reads
    std::vector<const FoundRoot *> above;
    for (const auto &root : roots) {
        while (!above.empty() && !is_within(root.path, above.back()->path))
            above.pop_back();
        if (!above.empty()) {
            const auto overlap = overlap_of(root, *above.back());
            found.add(overlap.where, overlap.key, overlap.problem, overlap.remedy);
        }
        above.push_back(&root);
    }
    return found.all();
}

} // namespace pi_agent
