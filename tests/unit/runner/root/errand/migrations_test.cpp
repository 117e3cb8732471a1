// Which hooks run, how, and what the stamp says afterwards: runner/root/errand/errand.hpp
#include "runner/root/errand/errand.hpp"

#include "runner/root/session/session_directory.hpp"
#include "support/writing.hpp"

#include <sys/file.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace migrations_test {

using Names = std::vector<std::string>;

namespace {

// A home with a stamp, and hooks below /srv: every directory above them is to be root's.
struct Moving : Agent {
    Moving()
    {
        state.meta = open_path(place.make("meta"), O_RDONLY | O_DIRECTORY);
        state.home = open_path(home, O_RDONLY | O_DIRECTORY);
        state.home_path = home;
        set_mode(hooks.path(), 0755);
    }
    void hook(const std::string &name, const std::string &script) const { hooks.write(name, script); }
    Caught move(
        const Version &to, int patience_seconds = 20, const std::function<void()> &at_times = [] {})
    {
        const AsRoot root = AsRoot::claim();
        auto [wrapper, other] = make_channel();
        const SessionWatch watch{wrapper, FdRef(-1)};
        told.clear();
        return failure_of([&] {
            migrate_home(root, agent_account(), state,
                         {watch,
                          [&](const std::string &text) {
                              told.push_back(text);
                              stamp_when_told = content_of(place / "meta/version");
                          },
                          [&](const std::string &) { at_times(); }},
                         MigrationPlan{hooks.path(), to, patience_seconds});
            return 0;
        });
    }
    [[nodiscard]] std::string stamp() const { return content_of(place / "meta/version"); }

    TemporaryDirectory hooks{"/srv"};
    StateDirectory state;
    Names told;
    std::string stamp_when_told;
};

} // namespace

TEST_CASE("hooks later than the old version, up to the new one, in the order of their numbers, then of their names")
{
    const Names names = {"0.1.0-a.sh", "0.10.0-x.sh", "0.2.0-b.sh", "0.2.0-a.sh", "0.9.1-x.sh", "1.0.0-x.sh", "2.0.0-x.sh"};
    CHECK(select_migrations(names, {0, 1, 0}, {1, 0, 0}) == Names{"0.2.0-a.sh", "0.2.0-b.sh", "0.9.1-x.sh", "0.10.0-x.sh", "1.0.0-x.sh"});
    CHECK(select_migrations(names, {0, 9, 1}, {0, 10, 0}) == Names{"0.10.0-x.sh"});
    CHECK(select_migrations(names, {0, 2, 0}, {0, 9, 0}).empty());
    CHECK(select_migrations(names, {2, 0, 0}, {0, 1, 0}).empty()); // downwards
    CHECK(select_migrations({}, {0, 1, 0}, {9, 0, 0}).empty());
}

TEST_CASE("a hook whose name begins with no version is an error: nobody knows when it is to run")
{
    for (const std::string name : {"move.sh", "1.0-move.sh", "v1.0.0-move.sh", "1.0.0.sh", "1.0.0_move.sh", "-.sh"}) {
        CAPTURE(name);
        const Caught caught = failure_of([&] { return select_migrations({name}, {0, 1, 0}, {0, 2, 0}); });
        CHECK(caught.status == 78);
        CHECK(has(caught.text, name + " is not named VERSION-name.sh"));
    }
}

TEST_CASE("a new home is stamped in silence, and runs no hook" * doctest::skip(not_root()))
{
    Moving agent;
    agent.hook("0.1.0-x.sh", "echo ran >ran");
    CHECK(text_of(agent.move({0, 1, 0})) == "0 ");
    CHECK(agent.told.empty());
    CHECK(agent.stamp() == "0.1.0\n");
    CHECK_FALSE(fs::exists(agent.home + "/ran"));
}

TEST_CASE("hooks run in order as the agent, in its home, with four variables, and are told of before the stamp changes" *
          doctest::skip(not_root()))
{
    Moving agent;
    write_stamp(agent.state, {0, 1, 0});
    agent.hook("0.2.0-first.sh",
               "pwd >out; id -u >>out; env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD= | sort >>out; "
               "readlink /proc/self/fd/0 >>out; umask >>out; grep SigIgn /proc/self/status >>out; echo lost; echo lost >&2");
    agent.hook("0.10.0-second.sh", "echo second >>out; test -e out");
    agent.hook("0.11.0-not-yet.sh", "echo wrong >>out");
    CHECK(text_of(agent.move({0, 10, 0})) == "0 ");
    CHECK(agent.told == Names{"the agent's home was last used by pi-agent 0.1.0, this is 0.10.0: it is brought up to date"});
    CHECK(agent.stamp_when_told == "0.1.0\n");
    CHECK(agent.stamp() == "0.10.0\n");
    CHECK(content_of(agent.home + "/out") ==
          agent.home + "\n" + std::to_string(agent_account().uid.value()) + "\nHOME=" + agent.home +
              "\nPATH=/usr/local/bin:/usr/bin:/bin\nPI_AGENT_NEW_VERSION=0.10.0\nPI_AGENT_OLD_VERSION=0.1.0\n"
              "/dev/null\n0077\nSigIgn:\t0000000000000000\nsecond\n");
    CHECK(text_of(agent.move({0, 10, 0})) == "0 "); // and never again
    CHECK(agent.told.empty());
}

TEST_CASE("an older version says so, runs nothing and changes the stamp" * doctest::skip(not_root()))
{
    Moving agent;
    write_stamp(agent.state, {0, 3, 0});
    agent.hook("0.2.0-x.sh", "echo ran >ran");
    CHECK(text_of(agent.move({0, 2, 0})) == "0 ");
    CHECK(agent.told == Names{"the agent's home was last used by pi-agent 0.3.0, this is the older 0.2.0: nothing in it is changed back"});
    CHECK(agent.stamp() == "0.2.0\n");
    CHECK_FALSE(fs::exists(agent.home + "/ran"));
}

TEST_CASE("a hook that fails ends it with its name, status and last words, the stamp stays, and all run again" * doctest::skip(not_root()))
{
    Moving agent;
    write_stamp(agent.state, {0, 1, 0});
    agent.hook("0.2.0-a.sh", "echo a >>ran");
    agent.hook("0.2.0-b.sh", "echo 'no \033[2Jroom' >&2; exit 3");
    agent.hook("0.2.0-c.sh", "echo c >>ran");
    const Caught caught = agent.move({0, 2, 0});
    CHECK(caught.status == 71);
    CHECK(has(caught.text, "the migration hook " + agent.hooks.path() +
                               "/0.2.0-b.sh, which brings the agent's home from 0.1.0 to 0.2.0, "
                               "ended with status 3 (\"no \\x1b[2Jroom\")"));
    CHECK(agent.stamp() == "0.1.0\n");
    agent.hook("0.2.0-b.sh", "kill -9 $$");
    CHECK(has(agent.move({0, 2, 0}).text, "was ended by signal 9"));
    agent.hook("0.2.0-b.sh", "true");
    CHECK(text_of(agent.move({0, 2, 0})) == "0 ");
    CHECK(agent.told.size() == 1);
    CHECK(content_of(agent.home + "/ran") == "a\na\na\nc\n");
}

TEST_CASE("a hook that takes too long is killed with all that it started, and so is what a hook leaves behind" * doctest::skip(not_root()))
{
    Moving agent;
    write_stamp(agent.state, {0, 1, 0});
    // The lock is held as long as one of them lives.
    const std::string left = "exec 9>held; flock 9; setsid sh -c 'trap \"\" TERM HUP; : >alive; while :; do sleep 1; done' & "
                             "while ! test -e alive; do sleep 0.01; done; yes & ";
    const auto nobody_lives = [&] {
        const UniqueFd held = open_path(agent.home + "/held");
        return fs::remove(agent.home + "/alive") && ::flock(held.get(), LOCK_EX | LOCK_NB) == 0;
    };
    agent.hook("0.2.0-x.sh", left + "while :; do sleep 1; done");
    CHECK(has(agent.move({0, 2, 0}, 1).text, "did not end within 1 seconds"));
    CHECK(nobody_lives());
    CHECK(agent.stamp() == "0.1.0\n");
    agent.hook("0.2.0-x.sh", left + "true");
    CHECK(text_of(agent.move({0, 2, 0})) == "0 ");
    CHECK(nobody_lives());
    CHECK(agent.stamp() == "0.2.0\n");
    agent.hook("0.3.0-x.sh", left + "while :; do sleep 1; done");
    const Caught interrupted = agent.move({0, 3, 0}, 20, [&] {
        if (fs::exists(agent.home + "/alive")) throw Failure(ExitStatus::denied, "interrupted");
    });
    CHECK(interrupted.text == "interrupted");
    CHECK(nobody_lives());
    CHECK(agent.stamp() == "0.2.0\n");
}

TEST_CASE("a hook that others than root can change is not run" * doctest::skip(not_root()))
{
    Moving agent;
    write_stamp(agent.state, {0, 1, 0});
    agent.hook("0.2.0-x.sh", "echo ran >ran");
    set_mode(agent.hooks / "0.2.0-x.sh", 0666);
    CHECK(has(agent.move({0, 2, 0}).text, "writable by others than root"));
    set_mode(agent.hooks / "0.2.0-x.sh", 0644);
    give(agent.hooks / "0.2.0-x.sh", agent_account());
    CHECK(has(agent.move({0, 2, 0}).text, "not to root"));
    CHECK_FALSE(fs::exists(agent.home + "/ran"));
    CHECK(agent.stamp() == "0.1.0\n");
}

TEST_CASE("a host without hooks stamps" * doctest::skip(not_root()))
{
    Moving agent;
    write_stamp(agent.state, {0, 1, 0});
    fs::remove_all(agent.hooks.path());
    CHECK(text_of(agent.move({0, 2, 0})) == "0 ");
    CHECK(agent.stamp() == "0.2.0\n");
}

} // namespace migrations_test
