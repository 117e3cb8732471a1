// Opening the claimed working directory and the granted roots, in the caller's place.
#include "runner/as_user/project.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/decide/decision.hpp"
#include "common/decide/root_path.hpp"
#include "common/host/path_walk.hpp"
#include "common/seams/defence.hpp"
#include "runner/as_user/repository.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/opened_project.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pi_agent {

namespace {

PlaceFacts place_facts(FdRef fd)
{
    struct statx facts {};
    if (statx(fd.get(), "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID, &facts) != 0)
        throw_errno("examining the working directory");
    if ((facts.stx_mask & STATX_MNT_ID) == 0)
        throw Failure(ExitStatus::unavailable, "this kernel does not tell mount ids (Linux 5.8 does)");
    const std::uint64_t device = (static_cast<std::uint64_t>(facts.stx_dev_major) << 32U) | facts.stx_dev_minor;
    return PlaceFacts{device, facts.stx_ino, facts.stx_mnt_id};
}

UniqueFd open_directory_without_links(const std::string &path)
{
    open_how how{};
    how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return UniqueFd::adopt(static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

UniqueFd reopen_cwd(FdRef claimed)
{
    const std::string path = path_of_directory(claimed);
    UniqueFd actual = open_directory_without_links(path);
    if (!actual)
        throw Failure(ExitStatus::denied, "denied: the working directory " + escape_for_display(path) + " cannot be opened by its path (" +
                                              SystemFailure(errno, "open").what() + "); was it deleted or renamed? cd to it again");
    if (place_facts(claimed) != place_facts(actual) && defence_is_on("cwd-identity"))
        throw Failure(ExitStatus::denied, "denied: the working directory is not the one that " + escape_for_display(path) +
                                              " names on this host; cd to it again in an ordinary shell");
    struct stat searched {};
    if (fstatat(actual.get(), ".", &searched, 0) != 0 && defence_is_on("cwd-searchable"))
        throw Failure(ExitStatus::denied, "denied: you may not enter " + escape_for_display(path));
    return actual;
}

} // namespace

// First the working directory, then each root in order, then what git says of the directory.
void open_as_caller(const Account &caller, const AccessRules &rules, FdRef claimed_cwd, FdRef channel)
{
    const UniqueFd cwd = reopen_cwd(claimed_cwd);
    send_place(channel, cwd, place_facts(cwd));
    for (const auto &granted : rules.roots) {
        auto resolved = resolve_root(granted.spec, caller);
        if (const auto *problem = std::get_if<RootProblem>(&resolved))
            throw PolicyError({unusable_root(rules, problem->where, problem->text)});
        const ResolvedRoot &root = std::get<ResolvedRoot>(resolved);
        struct stat facts {};
        if (fstat(root.fd.get(), &facts) != 0) throw_errno("examining a root");
        send_place(channel, root.fd, {facts.st_dev, facts.st_ino, place_facts(root.fd).mount});
    }
    send_repository(channel, find_repository(cwd));
}

} // namespace pi_agent
