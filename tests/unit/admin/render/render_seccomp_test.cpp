// The exported profile judges as the two local filters together do: admin/render/render.hpp
#include "admin/render/render.hpp"

#include "runner/filter/call_rules.hpp"
#include "support/forked.hpp"
#include "support/temporary_directory.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/netlink.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sched.h>
#include <seccomp.h>
#include <set>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace render_seccomp_test {

namespace {

using Arguments = std::vector<std::uint64_t>;

bool holds(const ArgumentTest &test, const Arguments &arguments)
{
    return ((arguments[test.index] & test.mask) == test.value) == test.equal;
}

// As the kernel does with the filters of runner/filter/seccomp_filter.cpp: both must let it through.
bool passes_both_filters(const std::string &name, const Arguments &arguments)
{
    bool passes = std::any_of(std::begin(allowed_calls), std::end(allowed_calls), [&](const char *allowed) { return name == allowed; });
    for (const auto &allowance : allowances_of(for_agents))
        passes = passes || (name == allowance.name && holds(allowance.test, arguments));
    for (const auto &denial : denials_of({DenialPart::always, DenialPart::unknown, DenialPart::set_gid, DenialPart::tuning})) {
        const bool is_denied = name == denial.name && std::all_of(denial.tests.begin(), denial.tests.end(),
                                                                  [&](const ArgumentTest &test) { return holds(test, arguments); });
        passes = passes && !is_denied;
    }
    return passes;
}

bool passes_conditions(const std::map<std::string, std::vector<PassingCondition>> &calls, const std::string &name,
                       const Arguments &arguments)
{
    const auto found = calls.find(name);
    return found != calls.end() && std::any_of(found->second.begin(), found->second.end(), [&](const PassingCondition &condition) {
               return std::all_of(condition.begin(), condition.end(), [&](const auto &wanted) {
                   return (arguments[wanted.first] & wanted.second.mask) == wanted.second.value;
               });
           });
}

// As an engine does with the text.
void install_profile()
{
    const auto profile = nlohmann::json::parse(render_seccomp());
    const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(
        seccomp_init(SCMP_ACT_ERRNO(profile.at("defaultErrnoRet").get<unsigned>())), seccomp_release);
    for (const auto &entry : profile.at("syscalls")) {
        const bool allows = entry.at("action") == "SCMP_ACT_ALLOW";
        std::vector<scmp_arg_cmp> comparisons;
        for (const auto &argument : entry.value("args", nlohmann::json::array())) {
            const bool masked = argument.at("op") == "SCMP_CMP_MASKED_EQ";
            comparisons.push_back({argument.at("index").get<unsigned>(), masked ? SCMP_CMP_MASKED_EQ : SCMP_CMP_EQ,
                                   argument.at("value").get<std::uint64_t>(), argument.value("valueTwo", std::uint64_t{0})});
        }
        for (const std::string name : entry.at("names")) {
            const int number = seccomp_syscall_resolve_name(name.c_str());
            if (number < 0) continue; // engines pass over what this architecture lacks
            if (seccomp_rule_add_array(filter.get(), allows ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(entry.value("errnoRet", 0U)), number,
                                       static_cast<unsigned>(comparisons.size()), comparisons.data()) != 0)
                throw std::runtime_error("no rule for " + name);
        }
    }
    if (seccomp_load(filter.get()) != 0) throw std::runtime_error("the profile cannot be installed");
}

// The errno of `call` under the profile: "0" where it succeeds.
std::string under_profile(const std::function<long()> &call)
{
    return in_child([&] {
        install_profile();
        errno = 0;
        return std::to_string(call() < 0 ? errno : 0);
    });
}

const std::string denied = std::to_string(EPERM);
const std::string unknown = std::to_string(ENOSYS);

} // namespace

TEST_CASE("conditions let a call pass where both filters do, whatever its arguments")
{
    const auto calls = passing_calls();
    std::set<std::string> names(std::begin(allowed_calls), std::end(allowed_calls));
    for (const auto &denial : denials_of({DenialPart::always, DenialPart::unknown, DenialPart::set_gid}))
        names.insert(denial.name);
    for (const auto &allowance : allowances_of(for_agents))
        names.insert(allowance.name);
    names.insert("no_such_call");
    std::mt19937_64 random(20); // NOLINT(cert-msc51-cpp): the same at each run
    const std::vector<std::uint64_t> telling = {0,
                                                1,
                                                2,
                                                3,
                                                4,
                                                5,
                                                16,
                                                TIOCSTI,
                                                TIOCLINUX,
                                                TIOCSTI ^ 1U,
                                                S_ISUID,
                                                S_ISGID,
                                                0755,
                                                04755,
                                                O_CREAT,
                                                O_TMPFILE,
                                                O_RDONLY,
                                                CLONE_NEWUSER,
                                                CLONE_VM,
                                                0xffffffff,
                                                ~0ULL,
                                                1ULL << 32U,
                                                (1ULL << 32U) | TIOCSTI};
    std::size_t passed = 0;
    std::size_t refused = 0;
    for (const auto &name : names)
        for (int round = 0; round < 400; ++round) {
            Arguments arguments;
            for (int index = 0; index < 6; ++index)
                arguments.push_back(round % 8 == 0 ? random() : telling[random() % telling.size()]);
            const bool wanted = passes_both_filters(name, arguments);
            REQUIRE_MESSAGE(passes_conditions(calls, name, arguments) == wanted, name);
            ++(wanted ? passed : refused);
        }
    CHECK(passed > 1000);
    CHECK(refused > 1000);
}

TEST_CASE("of all requests of terminals only the two that type are refused")
{
    const auto calls = passing_calls();
    for (std::uint64_t request = 0; request < 0x10000; ++request)
        for (const std::uint64_t upper : {std::uint64_t{0}, std::uint64_t{0xffffffff} << 32U})
            REQUIRE(passes_conditions(calls, "ioctl", {0, request | upper, 0, 0, 0, 0}) == (request != TIOCSTI && request != TIOCLINUX));
}

TEST_CASE("of all commands for descriptors only those that lease are refused")
{
    const auto calls = passing_calls();
    for (std::uint64_t command = 0; command < 0x1000; ++command)
        for (const std::uint64_t upper : {std::uint64_t{0}, std::uint64_t{0xffffffff} << 32U})
            REQUIRE(passes_conditions(calls, "fcntl", {0, command | upper, 0, 0, 0, 0}) == (command != F_SETLEASE && command != 1040));
}

TEST_CASE("under the exported profile programs work")
{
    const TemporaryDirectory directory;
    const std::string file = directory.write("file", "x");
    const char *path = file.c_str();
    CHECK(under_profile([] {
              const pid_t child = ::fork();
              if (child == 0) ::_exit(0);
              return static_cast<long>(::waitpid(child, nullptr, 0));
          }) == "0");
    CHECK(under_profile([&] { return ::syscall(SYS_openat, AT_FDCWD, path, O_RDONLY, 06777); }) == "0");
    CHECK(under_profile([&] { return ::syscall(SYS_openat, AT_FDCWD, (directory / "a").c_str(), O_CREAT | O_WRONLY, 0755); }) == "0");
    CHECK(under_profile([&] { return ::syscall(SYS_chmod, path, 0755); }) == "0");
    CHECK(under_profile([] { return static_cast<long>(::socket(AF_UNIX, SOCK_STREAM, 0)); }) == "0");
    CHECK(under_profile([] { return static_cast<long>(::socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)); }) == "0");
    CHECK(under_profile([&] { return ::syscall(SYS_mkdir, (directory / "d").c_str(), 02755); }) == "0"); // the kernel drops the bit
    CHECK(under_profile([] { return ::syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, nullptr); }) == "0");
    CHECK(under_profile([&] { return static_cast<long>(::ioctl(::open(path, O_RDONLY), TCGETS, nullptr)); }) == std::to_string(ENOTTY));
}

TEST_CASE("under the exported profile the calls of the local filter end as they do there")
{
    const TemporaryDirectory directory;
    const std::string file = directory.write("file", "x");
    const char *path = file.c_str();
    const std::string made = directory / "new";
    const std::vector<std::pair<std::string, std::function<long()>>> calls = {
        {"chmod", [&] { return ::syscall(SYS_chmod, path, 04755); }},
        {"chmod of a directory", [&] { return ::syscall(SYS_chmod, directory.path().c_str(), 02755); }},
        {"openat", [&] { return ::syscall(SYS_openat, AT_FDCWD, made.c_str(), O_CREAT | O_WRONLY, 04755); }},
        {"O_TMPFILE", [&] { return ::syscall(SYS_openat, AT_FDCWD, directory.path().c_str(), O_TMPFILE | O_WRONLY, 02755); }},
        {"TIOCSTI", [] { return ::syscall(SYS_ioctl, 0, TIOCSTI, "x"); }},
        {"TIOCSTI with upper bits", [] { return ::syscall(SYS_ioctl, 0, TIOCSTI | (1ULL << 40U), "x"); }},
        {"netlink", [] { return static_cast<long>(::socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT)); }},
        {"io_uring_setup", [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
        {"keyctl", [] { return ::syscall(SYS_keyctl, 0, 0, 0); }},
        {"unshare", [] { return ::syscall(SYS_unshare, CLONE_NEWUSER); }},
        {"clone", [] { return ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr); }},
        {"prlimit64", [] { return ::syscall(SYS_prlimit64, ::getppid(), RLIMIT_NOFILE, 1L, nullptr); }},
        {"personality", [] { return ::syscall(SYS_personality, 0x0008); }},
        {"no such call", [] { return ::syscall(4000); }},
    };
    for (const auto &entry : calls) // clang 14 captures no structured binding
        CHECK_MESSAGE(under_profile(entry.second) == denied, entry.first);
    CHECK(under_profile([] { return ::syscall(SYS_clone3, nullptr, 0); }) == unknown);
    CHECK(under_profile([] { return ::syscall(SYS_openat2, 0, nullptr, nullptr, 0); }) == unknown);
}

TEST_CASE("the profile has the form of the OCI runtime specification")
{
    const auto profile = nlohmann::json::parse(render_seccomp());
    CHECK(profile.at("defaultAction") == "SCMP_ACT_ERRNO");
    CHECK(profile.at("architectures").size() == 1);
    const auto &always = profile.at("syscalls").at(0).at("names");
    CHECK(std::find(always.begin(), always.end(), "read") != always.end());
    for (const auto *name : {"chmod", "ioctl", "clone", "socket", "ptrace", "mount", "clone3"}) // never whatever the arguments are
        CHECK_MESSAGE(std::find(always.begin(), always.end(), name) == always.end(), name);
}

} // namespace render_seccomp_test
