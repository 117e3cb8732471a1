// Links of the config that stay links, and what is brought in once: runner/root/errand/errand.hpp
#include "runner/wire/user_files.hpp"
#include "support/config_sync.hpp"

using namespace pi_agent;
using namespace pi_agent::test;

namespace config_sync_links_test {

namespace {

struct WithLinks : Both {
    void link(const std::string &name, const std::string &target) const { give(place.link("config/" + name, target), user_account()); }
    [[nodiscard]] std::string says(const std::string &name) const
    {
        const std::string path = path_inside(name);
        return fs::is_symlink(fs::symlink_status(path)) ? fs::read_symlink(path).string() : "no link";
    }
    void remove(const std::string &name) const { fs::remove_all(config + "/" + name); }
    void remove_inside(const std::string &name) const { fs::remove_all(path_inside(name)); }
};

} // namespace

TEST_CASE("a link that stays in the config is one inside, whatever it leads to" * doctest::skip(not_root()))
{
    const WithLinks both;
    for (const std::string name : {"skills", "skills/s", "skills/s/lib", "skills/t"})
        both.make(name);
    both.write("skills/s/lib/x", "x");
    both.link("skills/s/file", "lib/x");
    both.link("skills/s/directory", "lib/");
    both.link("skills/s/chain", "directory/x");
    both.link("skills/s/lib/up", "../..");
    both.link("skills/t/across", "../s/lib/up/s/file");
    both.link("skills/t/absolute", both.config + "/skills/s/chain");
    CHECK(both.sync().empty());
    CHECK(both.says("skills/s/file") == "lib/x");
    CHECK(both.says("skills/s/directory") == "lib/");
    CHECK(both.says("skills/s/chain") == "directory/x");
    CHECK(both.says("skills/s/lib/up") == "../..");
    CHECK(both.says("skills/t/across") == "../s/lib/up/s/file");
    CHECK(both.says("skills/t/absolute") == "../s/lib/x");
    for (const std::string name : {"skills/s/file", "skills/s/chain", "skills/t/across", "skills/t/absolute"})
        CHECK_MESSAGE(both.inside(name) == "x", name);
    const auto log = fs::file_size(both.meta + "/manifest");
    CHECK(both.sync().empty());
    CHECK(fs::file_size(both.meta + "/manifest") > 0);
    ::usleep(80'000);
    CHECK(both.sync().empty());
    const auto settled = fs::file_size(both.meta + "/manifest");
    CHECK(both.sync().empty());
    CHECK(fs::file_size(both.meta + "/manifest") == settled);
    CHECK(settled >= log);
    CHECK(fs::is_empty(both.staging));
}

TEST_CASE("a link that leaves the config, or what lies elsewhere, is followed" * doctest::skip(not_root()))
{
    const WithLinks both;
    both.make("prompts");
    both.make("tmp");
    both.make("sessions");
    both.make("npm");
    for (const std::string name : {"tmp/x", "sessions/x", "npm/x"})
        both.write(name, name);
    both.place.write("user/words", "words");
    give(both.user_home + "/words", user_account());
    both.link("prompts/out", "../../user/words");
    both.link("prompts/out-and-back", "../../config/models.json");
    both.write("models.json", "{}");
    both.link("prompts/never", "../tmp/x");
    both.link("prompts/agents", "../sessions/x");
    both.link("prompts/once", "../npm/x");
    both.link("npm/mirrored", "../models.json");
    CHECK(both.sync().empty());
    for (const std::string name : {"out", "out-and-back", "never", "agents", "once"})
        CHECK_MESSAGE(both.says("prompts/" + name) == "no link", name);
    CHECK(both.inside("prompts/out") == "words");
    CHECK(both.inside("prompts/out-and-back") == "{}");
    CHECK(both.inside("prompts/never") == "tmp/x");
    CHECK(both.inside("prompts/agents") == "sessions/x");
    CHECK(both.inside("prompts/once") == "npm/x");
    CHECK(both.says("npm/mirrored") == "../models.json");
}

TEST_CASE("in what a followed link leads to, links that stay there stay links" * doctest::skip(not_root()))
{
    const WithLinks both;
    both.place.make("user/skill");
    both.place.make("user/skill/lib");
    both.place.write("user/skill/lib/x", "x");
    both.place.write("user/beside", "beside");
    both.place.link("user/skill/x", "lib/x");
    both.place.link("user/skill/absolute", both.user_home + "/skill/lib/x");
    both.place.link("user/skill/by-config", both.config + "/linked/lib/x");
    both.place.link("user/skill/out", "../beside");
    for (const std::string name :
         {"skill", "skill/lib", "skill/lib/x", "beside", "skill/x", "skill/absolute", "skill/by-config", "skill/out"})
        give(both.user_home + "/" + name, user_account());
    both.link("linked", both.user_home + "/skill");
    both.link("again", "linked/lib"); // through what is followed
    CHECK(both.sync().empty());
    CHECK(both.says("linked") == "no link");
    CHECK(both.says("linked/x") == "lib/x");
    CHECK(both.says("linked/absolute") == "lib/x");
    CHECK(both.says("linked/by-config") == "lib/x");
    CHECK(both.inside("linked/by-config") == "x");
    CHECK(both.says("linked/out") == "no link");
    CHECK(both.inside("linked/out") == "beside");
    CHECK(both.says("again") == "no link");
    CHECK(both.inside("again/x") == "x");
}

TEST_CASE("a link follows the user's from start to start, and what the agent put there" * doctest::skip(not_root()))
{
    const WithLinks both;
    both.make("d");
    both.write("d/a", "a");
    both.write("d/b", "b");
    both.link("l", "d/a");
    CHECK(both.sync().empty());
    CHECK(both.inside("l") == "a");

    both.remove("l");
    both.link("l", "d/b");
    CHECK(both.sync().empty());
    CHECK(both.says("l") == "d/b");

    both.remove_inside("l"); // by the agent, who leads it out
    fs::create_symlink(both.outside + "/canary", both.path_inside("l"));
    CHECK(both.sync().empty());
    CHECK(both.says("l") == "d/b");

    both.remove("l"); // a file, a link, a directory, a link, nothing
    both.write("l", "file");
    CHECK(both.sync().empty());
    CHECK(both.says("l") == "no link");
    CHECK(both.inside("l") == "file");
    both.remove("l");
    both.link("l", "d");
    CHECK(both.sync().empty());
    CHECK(both.inside("l/a") == "a");
    both.remove("l");
    both.make("l");
    both.write("l/c", "c");
    CHECK(both.sync().empty());
    CHECK(both.says("l") == "no link");
    CHECK(both.inside("l/c") == "c");
    CHECK(both.inside("d/a") == "a");
    CHECK_FALSE(fs::exists(both.path_inside("d/c"))); // it did not go where the link had led
    both.write_inside("l/own", "agent's");
    both.remove("l");
    both.link("l", "d");
    CHECK(both.sync().size() == 1); // what the agent had in there is kept
    CHECK(both.says("l") == "d");
    both.remove("l");
    CHECK(both.sync().empty());
    CHECK_FALSE(fs::exists(fs::symlink_status(both.path_inside("l"))));
    CHECK(both.inside("d/b") == "b");
    CHECK(both.outside_is_unchanged());
}

TEST_CASE("what an earlier version had copied through a link becomes the link" * doctest::skip(not_root()))
{
    const WithLinks both;
    both.make("d");
    both.write("d/a", "a");
    both.make("l");
    both.write("l/a", "a");
    CHECK(both.sync().empty());
    both.remove("l");
    both.link("l", "d");
    CHECK(both.sync().empty());
    CHECK(both.says("l") == "d");
    CHECK(both.inside("l/a") == "a");
}

TEST_CASE("what is brought in once follows the user until the agent changes something in it" * doctest::skip(not_root()))
{
    const WithLinks both;
    for (const std::string name : {"npm", "npm/node_modules", "npm/node_modules/p", "npm/node_modules/.bin", "git", "git/r"})
        both.make(name);
    both.write("npm/package.json", "1");
    both.write("npm/node_modules/p/i.js", "1", 0755);
    both.link("npm/node_modules/.bin/p", "../p/i.js");
    both.write("git/r/a", "1");
    CHECK(both.sync().empty());
    CHECK(both.inside("npm/node_modules/.bin/p") == "1");
    CHECK(both.says("npm/node_modules/.bin/p") == "../p/i.js");

    both.write("npm/node_modules/p/i.js", "2", 0755);
    both.write("npm/node_modules/p/new", "2");
    both.remove("npm/package.json");
    CHECK(both.sync().empty());
    CHECK(both.inside("npm/node_modules/p/i.js") == "2");
    CHECK(both.inside("npm/node_modules/p/new") == "2");
    CHECK_FALSE(fs::exists(both.path_inside("npm/package.json")));

    both.write_inside("npm/node_modules/p/own", "agent's"); // beside the user's: that changes nothing of it
    both.write("npm/node_modules/p/new", "3");
    CHECK(both.sync().empty());
    CHECK(both.inside("npm/node_modules/p/new") == "3");

    both.remove_inside("npm/node_modules/p/i.js");
    CHECK(both.sync().empty()); // the user has nothing new
    both.write("npm/node_modules/p/new", "4");
    both.write("npm/node_modules/p/more", "4");
    both.write("git/r/a", "4");
    const auto told = both.sync();
    REQUIRE(told.size() == 1);
    CHECK(told[0].starts_with(std::string(answer_told_once) + "config: ~/.pi/agent/npm of the agent's home is the agent's own by now"));
    CHECK_FALSE(fs::exists(both.path_inside("npm/node_modules/p/i.js")));
    CHECK(both.inside("npm/node_modules/p/new") == "3");
    CHECK_FALSE(fs::exists(both.path_inside("npm/node_modules/p/more")));
    CHECK(both.inside("git/r/a") == "4"); // another one
    both.remove("npm");
    CHECK(both.sync().empty());
    CHECK(both.inside("npm/node_modules/p/new") == "3");
    both.remove("git");
    CHECK(both.sync().empty());
    CHECK_FALSE(fs::exists(both.path_inside("git")));
}

TEST_CASE("what the agent removed as a whole, or never had, is the user's again" * doctest::skip(not_root()))
{
    const WithLinks both;
    for (const std::string name : {"npm", "npm/p"})
        both.make(name);
    both.write("npm/p/i.js", "1");
    CHECK(both.sync().empty());
    both.write_inside("npm/p/i.js", "agent's");
    CHECK(both.sync().empty());
    CHECK(both.inside("npm/p/i.js") == "agent's");
    both.remove_inside("npm");
    CHECK(both.sync().empty());
    CHECK(both.inside("npm/p/i.js") == "1");
}

TEST_CASE("what the agent had before its user did is the agent's" * doctest::skip(not_root()))
{
    const WithLinks both;
    CHECK(both.sync().empty());
    give(both.place.make("home/.pi/agent/npm"), agent_account());
    both.write_inside("npm/package.json", "agent's");
    both.make("npm");
    both.write("npm/package.json", "1");
    both.write("npm/other", "1");
    CHECK(both.sync().size() == 1);
    CHECK(both.inside("npm/package.json") == "agent's");
    CHECK_FALSE(fs::exists(both.path_inside("npm/other")));
}

TEST_CASE("sessions come when they are asked for, one by one, and stay as the agent goes on with them" * doctest::skip(not_root()))
{
    const WithLinks both;
    for (const std::string name : {"sessions", "sessions/--a-b--", "sessions/--c--"})
        both.make(name);
    both.write("sessions/--a-b--/1.jsonl", "1");
    both.write("sessions/--a-b--/2.jsonl", "2");
    both.write("sessions/--c--/3.jsonl", "3");
    SyncPlan plan;
    plan_sessions(plan, "/a/b", false);
    CHECK(plan.reading.sessions_outside == "sessions/--a-b--");
    CHECK(plan.reading.classes.rules().empty());
    Policy policy;
    policy.config_classes.set("sessions/--a-b--", FileClass::once);
    CHECK(both.sync_with(policy).empty());
    CHECK(both.inside("sessions/--a-b--/1.jsonl") == "1");
    CHECK_FALSE(fs::exists(both.path_inside("sessions/--c--")));
    both.write_inside("sessions/--a-b--/1.jsonl", "1 and more");
    both.remove_inside("sessions/--a-b--/2.jsonl");
    both.write("sessions/--a-b--/4.jsonl", "4");
    both.write("sessions/--a-b--/1.jsonl", "1, outside");
    CHECK(both.sync_with(policy).empty());
    CHECK(both.inside("sessions/--a-b--/1.jsonl") == "1 and more");
    CHECK_FALSE(fs::exists(both.path_inside("sessions/--a-b--/2.jsonl")));
    CHECK(both.inside("sessions/--a-b--/4.jsonl") == "4");
    CHECK(both.sync().empty()); // without being asked
    both.remove("sessions");
    CHECK(both.sync_with(policy).empty());
    CHECK(both.inside("sessions/--a-b--/4.jsonl") == "4");
}

TEST_CASE("a policy that keeps sessions outside says so, and one that copies them needs no asking")
{
    SyncPlan plan;
    plan.reading.classes.set("sessions", FileClass::never);
    CHECK(failure_of([&] { plan_sessions(plan, "/a", true); }).status == 77);
    plan_sessions(plan, "/a", false);
    CHECK(plan.reading.sessions_outside.empty());
    plan.reading.classes.set("sessions", FileClass::once);
    plan_sessions(plan, "/a", true);
    CHECK(plan.reading.classes.rules().size() == 1);
    plan = {};
    plan_sessions(plan, "/a/b:c\\d e", true);
    CHECK(plan.reading.classes.of("sessions/--a-b-c-d e--/x") == FileClass::once);
    CHECK(plan.writing.classes.of("sessions/--a-b-c-d e--/x") == FileClass::once);
    CHECK(plan.reading.classes.of("sessions/--a--/x") == FileClass::agent);
}

} // namespace config_sync_links_test
