// The temporary directories of a session as they are made: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "support/accounts.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <fcntl.h>
#include <set>
#include <sys/statvfs.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace scratch_test {

namespace {

std::string facts(const std::string &path, const Account &agent)
{
    struct stat found {};
    if (::lstat(path.c_str(), &found) != 0) return "none ";
    const char *owner = found.st_uid == agent.uid.value() && found.st_gid == agent.gid.value() ? "agent "
                        : found.st_uid == 0                                                    ? "root "
                                                                                               : "? ";
    std::string mode;
    for (unsigned shift : {9U, 6U, 3U, 0U})
        mode += std::to_string((found.st_mode >> shift) & 7U);
    return owner + mode + " ";
}

// In a /run of its own: what make_scratch makes, seen in the session's directory.
std::string made(ScratchKind kind, const std::function<std::string(const SessionDirectory &session, const std::string &id)> &look)
{
    return in_private_run([&]() -> std::string {
        const AsRoot root = AsRoot::claim();
        const Account agent = agent_account();
        ::umask(0);
        std::filesystem::create_directory("/run/state");
        ::chmod("/run/state", 0755);
        const std::string id = make_session_id();
        const SessionDirectory session = SessionDirectory::create(root, id, Uid(1000));
        const UniqueFd top = make_scratch(root, session, kind, "/run/state", id, agent);
        std::string all = facts(session.path() + "/scratch", agent);
        for (const std::string name : {"tmp", "var-tmp"})
            all += facts(session.path() + "/scratch/" + name, agent);
        return all + look(session, id);
    });
}

const std::string as_they_should_be = "root 0700 agent 0700 agent 0700 ";

} // namespace

TEST_CASE("on disk they are the agent's in a directory of root's, which the session's directory names" * doctest::skip(not_root()))
{
    const std::string said = made(ScratchKind::disk, [](const SessionDirectory &session, const std::string &id) {
        const std::string path = "/run/state/sessions/" + id;
        const Account agent = agent_account();
        return facts("/run/state/sessions", agent) + facts(path, agent) +
               (read_session_link(session.fd(), scratch_link) == path ? "named" : "not named");
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == as_they_should_be + "root 0700 root 0700 named");
}

TEST_CASE("in memory they are the same, of bounded size, programs can be run there, and nothing is on disk" * doctest::skip(not_root()))
{
    const std::string said = made(ScratchKind::tmpfs, [](const SessionDirectory &session, const std::string & /*id*/) -> std::string {
        struct statvfs found {};
        struct statvfs all {};
        if (::statvfs((session.path() + "/scratch").c_str(), &found) != 0 || ::statvfs("/run", &all) != 0) return "statvfs failed";
        std::string text = (found.f_flag & ST_NOEXEC) == 0 ? "exec " : "noexec ";
        text += (found.f_flag & ST_NOSUID) != 0 && (found.f_flag & ST_NODEV) != 0 ? "nosuid nodev " : "suid or dev ";
        // /run has the kernel's default, half of memory.
        const double share = static_cast<double>(found.f_blocks) / static_cast<double>(all.f_blocks);
        text += share > 0.39 && share < 0.41 ? "a fifth " : std::to_string(share) + " ";
        return text + (std::filesystem::exists("/run/state/sessions") ? "on disk" : "");
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == as_they_should_be + "exec nosuid nodev a fifth ");
}

TEST_CASE("what is there already is never used, and a full disk is told in words" * doctest::skip(not_root()))
{
    const std::string said = in_private_run([]() -> std::string {
        const AsRoot root = AsRoot::claim();
        std::filesystem::create_directories("/run/state/sessions");
        std::string text;
        const auto attempt = [&] {
            const std::string id = make_session_id();
            const SessionDirectory session = SessionDirectory::create(root, id, Uid(1000));
            if (text.empty()) std::filesystem::create_directory("/run/state/sessions/" + id);
            const Caught caught =
                failure_of([&] { return make_scratch(root, session, ScratchKind::disk, "/run/state", id, agent_account()); });
            text += std::to_string(caught.status) + (has(caught.text, "File exists") ? " exists " : "");
            text += has(caught.text, "the disk is full: ") && has(caught.text, "/run/state/sessions") && has(caught.text, "free some space")
                        ? " full "
                        : "";
        };
        attempt();
        if (::mount("none", "/run/state/sessions", "tmpfs", 0, "mode=0700,size=64k,nr_inodes=2") != 0) return "mounting failed";
        attempt(); // no room for a directory
        if (::mount("none", "/run/state/sessions", "tmpfs", 0, "mode=0700,size=4k,nr_inodes=100") != 0) return "mounting failed";
        std::ofstream("/run/state/sessions/all") << std::string(4096, 'x');
        attempt(); // directories, but no file
        return text;
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == "71 exists 71 full 71 full ");
}

TEST_CASE("that little is left is told, and that much is left is not" * doctest::skip(not_root()))
{
    const std::string said = in_private_run([]() -> std::string {
        std::string text;
        for (const char *size : {"mode=0755,size=8m", "mode=0755,size=32m"}) {
            std::filesystem::create_directory("/run/small");
            if (::mount("none", "/run/small", "tmpfs", 0, size) != 0) return "mounting failed";
            const UniqueFd top = UniqueFd::adopt(::open("/run/small", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
            text += nearly_full(top, "/x").value_or("enough").substr(0, 59) + "\n";
            ::umount2("/run/small", MNT_DETACH);
            std::filesystem::remove("/run/small");
        }
        return text;
    });
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == "nearly full: the file system of /x has 8192 KiB left, so th\nenough\n");
}

} // namespace scratch_test
