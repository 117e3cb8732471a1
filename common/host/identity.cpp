// The one home of the set*id calls: claiming root, and giving it up for good.
#include "common/host/identity.hpp"

#include "common/base/error.hpp"
#include "common/host/namespaces.hpp"
#include "common/seams/seams.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace pi_agent {

AsRoot AsRoot::claim()
{
    uid_t real = 1, effective = 1, saved = 1;
    if (getresuid(&real, &effective, &saved) != 0) throw_errno("reading the process's ids");
    if (real != 0 || effective != 0 || saved != 0) throw Failure(FailureKind::by_hand, "only root can run this program; users run pi");
    // Groups are whatever started us chose: sudo's target, or none, for a unit of systemd's.
    if (setgroups(0, nullptr) == 0 && setresgid(0, 0, 0) == 0) return AsRoot();
    if (errno != EPERM) throw_errno("taking root's own group");
    if (const auto problem = problem_of_user_namespace()) throw Failure(FailureKind::namespaces, "denied: " + *problem);
    throw Failure(FailureKind::namespaces, "denied: this process cannot take root's own group, as in a user namespace; users run pi");
}

namespace {

void check_ids(const Account &account)
{
    uid_t real_uid = 0, effective_uid = 0, saved_uid = 0;
    gid_t real_gid = 0, effective_gid = 0, saved_gid = 0;
    if (getresuid(&real_uid, &effective_uid, &saved_uid) != 0 || getresgid(&real_gid, &effective_gid, &saved_gid) != 0)
        throw_errno("reading the process's ids");
    const uid_t uid = account.uid.value();
    const gid_t gid = account.gid.value();
    if (real_uid != uid || effective_uid != uid || saved_uid != uid || real_gid != gid || effective_gid != gid || saved_gid != gid)
        throw Failure(ExitStatus::internal, "the process did not become uid " + std::to_string(uid));
}

void check_groups(std::vector<gid_t> expected)
{
    const int count = getgroups(0, nullptr);
    if (count < 0) throw_errno("reading the process's groups");
    std::vector<gid_t> actual(static_cast<std::size_t>(count));
    if (getgroups(count, actual.data()) != count) throw_errno("reading the process's groups");
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    std::sort(actual.begin(), actual.end());
    actual.erase(std::unique(actual.begin(), actual.end()), actual.end());
    if (actual != expected) throw Failure(ExitStatus::internal, "the process did not take the account's groups");
}

} // namespace

AsUser become_user([[maybe_unused]] AsRoot root, const Account &account)
{
    const uid_t uid = account.uid.value();
    const gid_t gid = account.gid.value();
    if (uid == 0 || uid == static_cast<uid_t>(-1) || gid == static_cast<gid_t>(-1))
        throw Failure(ExitStatus::internal, "refusing to become uid " + std::to_string(uid));
    if (!defence_is_on("become-user")) return AsUser(account.uid);
    // Groups first: after the uid is gone they can no longer be changed (CVE-2026-35535 was this order, unchecked).
    if (setgroups(account.groups.size(), account.groups.data()) != 0) throw_errno("setgroups for " + account.name);
    if (setresgid(gid, gid, gid) != 0) throw_errno("setresgid for " + account.name);
    if (setresuid(uid, uid, uid) != 0) throw_errno("setresuid for " + account.name);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) throw_errno("setting no_new_privs");
    if (prctl(PR_SET_DUMPABLE, defence_is_on("children-not-dumpable") ? 0 : 1, 0, 0, 0) != 0) throw_errno("clearing dumpable");
    check_ids(account);
    if (defence_is_on("groups-check")) check_groups(account.groups);
    // Try to regain: success means the drop was not real, and nothing after this line may run.
    if (setuid(0) == 0 || seteuid(0) == 0 || setresuid(0, 0, 0) == 0) std::abort();
    if (gid != 0 && (setgid(0) == 0 || setegid(0) == 0)) std::abort();
    check_ids(account);
    return AsUser(account.uid);
}

void act_on_files_as(const AsRoot & /*root*/, const Account &account)
{
    constexpr int capability_words = 2; // of version 3 (capget(2))
    setfsgid(account.gid.value());
    setfsuid(account.uid.value()); // takes what concerns files out of the effective capabilities (capabilities(7))
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, capability_words> data{};
    if (syscall(SYS_capget, &header, data.data()) != 0) throw_errno("reading this thread's capabilities");
    for (auto &word : data)
        word.effective = word.permitted;
    if (syscall(SYS_capset, &header, data.data()) != 0) throw_errno("keeping this thread's capabilities");
    const uid_t no_id = ~uid_t{0};
    if (static_cast<uid_t>(setfsuid(no_id)) != account.uid.value() || static_cast<gid_t>(setfsgid(no_id)) != account.gid.value())
        throw Failure(ExitStatus::internal, "file systems do not take this thread for " + account.name);
}

} // namespace pi_agent
