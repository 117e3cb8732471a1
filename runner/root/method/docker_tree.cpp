// Listing the top of a session's tree.
#include "runner/root/method/docker_tree.hpp"

#include "common/base/error.hpp"
#include "common/host/beneath.hpp"
#include "common/policy/policy_paths.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace pi_agent {

namespace {

// proc and dev are docker's, home and root a tmpfs, the others in the plan's binds.
constexpr std::array<std::string_view, 7> filled = {"proc", "sys", "dev", "run", "tmp", "home", "root"};

// "usr/lib" of a link "lib" of a merged /usr; empty for any other link.
std::string program_tree_of(FdRef top, const std::string &name)
{
    std::array<char, PATH_MAX> text{};
    const ssize_t length = readlinkat(top.get(), name.c_str(), text.data(), text.size());
    std::string target(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    if (!target.empty() && target.front() == '/') target.erase(0, 1);
    const UniqueFd tree = target.compare(0, 4, "usr/") == 0 ? find_beneath(top, target, O_PATH | O_DIRECTORY) : UniqueFd();
    return tree ? target : "";
}

// In what is bound read-only docker can make no mount point. In what is the host's own there is one, or docker says that there is none.
void make_place(FdRef top, const std::string &path)
{
    UniqueFd current = duplicate(top);
    std::size_t start = 0;
    while (current && start < path.size()) {
        const std::size_t slash = std::min(path.find('/', start), path.size());
        const std::string name = path.substr(start, slash - start);
        const bool is_new = mkdirat(current.get(), name.c_str(), 0755) == 0;
        if (!is_new && errno != EEXIST && errno != EROFS) throw_errno("creating a mount point");
        current = find_beneath(current, name, O_RDONLY | O_DIRECTORY);
        if (is_new && (!current || fchmod(current.get(), 0755) != 0)) throw_errno("creating a mount point");
        start = slash + 1;
    }
}

// docker makes a mount read-only by setting all of its flags anew, and takes nosuid and nodev away: what is read-only already is left
// alone.
bool must_be_made_read_only(const std::string &source)
{
    struct statvfs facts {};
    if (statvfs(source.c_str(), &facts) != 0) throw_errno("looking at the session's tree");
    return (facts.f_flag & ST_RDONLY) == 0;
}

void make_file(FdRef top, const std::string &path)
{
    const UniqueFd file =
        UniqueFd::adopt(openat(top.get(), path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0444));
    if (!file && errno != EEXIST && errno != EROFS) throw_errno("creating a place for " + path);
    if (file && fchmod(file.get(), 0444) != 0) throw_errno("creating a place for " + path);
    struct stat facts {};
    if (fstatat(top.get(), path.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(facts.st_mode))
        throw Failure(ExitStatus::unavailable, "docker mounts a file at /" + path +
                                                   ", and with view: host there is no plain file on this host; make it one, or use view: "
                                                   "minimal");
}

} // namespace

std::vector<Bind> show_tree(const SandboxPlan &plan)
{
    const UniqueFd top = UniqueFd::adopt(open(plan.root_directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!top) throw_errno("opening the session's tree");
    std::vector<Bind> shown;
    const auto show = [&](const std::string &source, const std::string &target) {
        shown.push_back({plan.root_directory + source, target, must_be_made_read_only(plan.root_directory + source)});
    };
    for (const auto &name : names_in(top)) {
        struct stat facts {};
        if (std::find(filled.begin(), filled.end(), name) != filled.end()) continue;
        if (fstatat(top.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) throw_errno("looking at the session's tree");
        if (S_ISLNK(facts.st_mode)) {
            const std::string tree = program_tree_of(top, name);
            if (!tree.empty()) show("/" + tree, "/" + name);
        } else if (S_ISDIR(facts.st_mode)) {
            show("/" + name, "/" + name);
        }
    }
    for (const Bind &bind : plan.binds)
        if (std::any_of(shown.begin(), shown.end(), [&](const Bind &one) { return is_within(bind.target, one.target); }))
            make_place(top, bind.target.substr(1));
    for (const auto &file : plan.late_files) {
        make_file(top, file.substr(1));
        show(file, file);
    }
    return shown;
}

} // namespace pi_agent
