// Places in the agent's home and project that others mount on: made, named, and removed again.
#include "runner/as_agent/places.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/seams/seams.hpp"

#include <cstdio>
#include <cstdlib>

namespace pi_agent {

namespace {

// Whether the agent's home holds anything there besides what every home is given (runner/as_agent/replacement.hpp).
bool holds_own(FdRef directory, FdRef defaults, const std::string &place)
{
    const UniqueFd given = find_beneath(defaults, place, O_RDONLY | O_DIRECTORY);
    std::vector<std::string> names = given ? names_in(given) : std::vector<std::string>();
    std::sort(names.begin(), names.end());
    return find_name(directory, [&](const std::string &name) { return !std::binary_search(names.begin(), names.end(), name); });
}

bool leads_to(FdRef directory, const std::string &name, const std::string &target)
{
    return read_link(directory, name) == target;
}

constexpr int open_levels = 32; // each costs two descriptors and a buffer of the C library's

// ".." is never used to come back from the depth: another process may have moved the directory meanwhile.
class Emptying {
public:
    explicit Emptying(FdRef top) : top_(top) {}

    void run()
    {
        // Somebody who needs no rights may have opened it for us.
        if (defence_is_on("removal-rights")) fchmod(top_.get(), 0700); // best_effort: what is missing shows below
        do {
            left_ = removed_ = 0;
            problem_.clear();
            pass(top_, 0);
        } while (left_ > 0 && removed_ > 0);
        if (left_ > 0)
            throw Failure(ExitStatus::system_failure, problem_.empty() ? "a directory was moved while it was removed" : problem_);
    }

private:
    void pass(FdRef directory, int depth)
    {
        auto stream = DirectoryStream::reopened(directory);
        if (!stream) return keep(false, "listing a directory that is removed");
        while (const dirent *entry = stream.next())
            remove(directory, entry->d_name, entry->d_type, depth);
    }

    // Tries to open a directory first. Whatever takes the name meanwhile is not entered.
    void remove(FdRef directory, const std::string &name, unsigned char type, int depth)
    {
        if (type != DT_REG) {
            if (const UniqueFd child = try_take_directory(directory, name)) {
                if (depth >= open_levels && defence_is_on("removal-depth")) return move_up(directory, name);
                pass(child, depth + 1);
            }
            if (unlinkat(directory.get(), name.c_str(), AT_REMOVEDIR) == 0) return static_cast<void>(++removed_);
            if (errno != ENOTDIR) return keep(errno == ENOENT, "removing " + escape_for_display(name));
        }
        if (unlinkat(directory.get(), name.c_str(), 0) == 0) return static_cast<void>(++removed_);
        keep(errno == ENOENT, "removing " + escape_for_display(name));
    }

    void move_up(FdRef directory, const std::string &name)
    {
        if (renameat2(directory.get(), name.c_str(), top_.get(), ("removed-" + random_hex(8)).c_str(), RENAME_NOREPLACE) != 0)
            return keep(errno == ENOENT, "moving " + escape_for_display(name));
        ++left_;
        ++removed_; // from where it was: the next pass continues
    }

    // Reports the first problem: a directory that is not empty because of it comes later.
    void keep(bool is_gone, const std::string &action)
    {
        if (is_gone) return;
        if (problem_.empty()) problem_ = SystemFailure(errno, action).what();
        ++left_;
    }

    FdRef top_;
    std::uint64_t left_ = 0;
    std::uint64_t removed_ = 0;
    std::string problem_;
};

} // namespace

EtcFile read_etc_file(const std::string &name)
{
    const std::string path = "/etc/" + name;
    const UniqueFd file = UniqueFd::adopt(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {EtcFileState::missing};
    if (facts.st_size < 0 || static_cast<std::size_t>(facts.st_size) > host_file_limit) return {EtcFileState::too_large};
    const std::unique_ptr<char, decltype(&std::free)> canonical(realpath(path.c_str(), nullptr), &std::free);
    return {EtcFileState::read, canonical ? canonical.get() : path, read_whole(file, host_file_limit, path)};
}

std::vector<std::string> make_mount_points(FdRef agent_home, FdRef defaults, const std::vector<std::string> &places, std::size_t looked_at)
{
    std::vector<std::string> filled;
    for (std::size_t index = 0; index < places.size(); ++index) {
        const UniqueFd made = ensure_directory_beneath(agent_home, places[index]);
        if (index < looked_at && holds_own(made, defaults, places[index])) filled.push_back(places[index]);
    }
    return filled;
}

std::string link_alias(const AsUser & /*agent*/, FdRef home, const std::string &alias, const std::string &target)
{
    const std::string shown = std::string("~/") + alias_directory + "/" + alias;
    if (mkdirat(home.get(), alias_directory, 0700) != 0 && errno != EEXIST) throw_errno(std::string("making ~/") + alias_directory);
    const UniqueFd directory = find_beneath(home, alias_directory, O_RDONLY | O_DIRECTORY);
    if (!directory) return std::string("~/") + alias_directory + " of the agent's home is not a directory that the agent may enter";
    if (leads_to(directory, alias, target)) return {};
    // Removes the empty directory that an earlier session with `paths: alias` left.
    if (unlinkat(directory.get(), alias.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT && errno != ENOTDIR)
        return shown + " of the agent's home is a directory of its own";
    if (symlinkat(target.c_str(), directory.get(), alias.c_str()) != 0) {
        if (errno == EEXIST) return shown + " of the agent's home is something else";
        throw_errno("making the link " + shown);
    }
    return {};
}

void make_alias_directory(const AsUser & /*agent*/, FdRef home, const std::string &alias)
{
    ensure_directory_beneath(home, std::string(alias_directory) + "/" + alias);
}

void remove_content_beneath(FdRef directory)
{
    Emptying(directory).run();
}

void remove_beneath(FdRef parent, const std::string &name)
{
    if (unlinkat(parent.get(), name.c_str(), 0) == 0 || errno == ENOENT) return;
    if (errno != EISDIR && errno != EPERM) throw_errno("removing " + escape_for_display(name));
    {
        const UniqueFd directory = try_take_directory(parent, name);
        if (!directory) throw_errno("removing " + escape_for_display(name));
        Emptying(directory).run();
    }
    if (unlinkat(parent.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) throw_errno("removing " + escape_for_display(name));
}

} // namespace pi_agent
