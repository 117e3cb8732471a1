// The config sync start after start: what is left alone, restored, kept and deleted: runner/root/errand/errand.hpp
#include "support/config_sync.hpp"

#include <algorithm>
#include <map>
#include <sys/inotify.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace config_sync_repeat_test {

namespace {

// Inode and times of everything below `top`.
std::map<std::string, std::string> facts_below(const std::string &top)
{
    std::map<std::string, std::string> all;
    for (const auto &entry : fs::recursive_directory_iterator(top)) {
        struct stat facts {};
        REQUIRE(::lstat(entry.path().c_str(), &facts) == 0);
        all[entry.path()] =
            std::to_string(facts.st_ino) + " " + std::to_string(facts.st_ctim.tv_sec) + "." + std::to_string(facts.st_ctim.tv_nsec);
    }
    return all;
}

// Times of change that are older than this tell whether a file was written since.
void let_settle()
{
    ::usleep(80'000);
}

// Counts how often a file is opened; O_PATH is no open.
class Opens {
public:
    explicit Opens(const std::string &path) : fd_(UniqueFd::adopt(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)))
    {
        REQUIRE(::inotify_add_watch(fd_.get(), path.c_str(), IN_OPEN) >= 0);
    }
    [[nodiscard]] bool any() const
    {
        alignas(inotify_event) std::array<char, 4096> buffer{};
        bool found = false;
        while (::read(fd_.get(), buffer.data(), buffer.size()) > 0)
            found = true;
        return found;
    }

private:
    UniqueFd fd_;
};

std::vector<std::string> kept_beside(const std::string &path)
{
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(fs::path(path).parent_path()))
        if (has(entry.path(), path + ".kept-")) found.push_back(entry.path());
    return found;
}

} // namespace

TEST_CASE("what has not changed is not written, then not even opened, and the log does not grow" * doctest::skip(not_root()))
{
    const Both both;
    both.write("settings.json", R"({"a": 1})");
    both.write("auth.json", R"({"p": {"type": "api_key", "key": "k"}})");
    both.write("AGENTS.md", "be careful");
    both.make("skills");
    both.write("skills/SKILL.md", "how to");
    const Opens opens(both.config + "/AGENTS.md");
    CHECK(both.sync().empty());
    CHECK(opens.any());
    const auto before = facts_below(both.home);
    let_settle();
    CHECK(both.sync().empty());
    CHECK(opens.any()); // compared: the first sync was too soon after the file was written
    const auto log = fs::file_size(both.meta + "/manifest");
    for (int start = 0; start < 3; ++start)
        CHECK(both.sync().empty());
    CHECK_FALSE(opens.any());
    CHECK(fs::file_size(both.meta + "/manifest") == log);
    CHECK(facts_below(both.home) == before);
    CHECK(fs::is_empty(both.staging));
}

TEST_CASE("what the agent changed in a mirrored file is restored, even with size and time set back" * doctest::skip(not_root()))
{
    const Both both;
    both.write("AGENTS.md", "be careful");
    CHECK(both.sync().empty());
    for (const bool settled : {false, true}) {
        if (settled) {
            let_settle();
            CHECK(both.sync().empty());
            CHECK(both.sync().empty());
        }
        struct stat facts {};
        REQUIRE(::stat(both.path_inside("AGENTS.md").c_str(), &facts) == 0);
        both.write_inside("AGENTS.md", "be CAREFUL");
        const std::array<timespec, 2> times{facts.st_atim, facts.st_mtim};
        REQUIRE(::utimensat(AT_FDCWD, both.path_inside("AGENTS.md").c_str(), times.data(), 0) == 0);
        CHECK(both.sync().empty());
        CHECK(both.inside("AGENTS.md") == "be careful");
    }
    fs::remove(both.path_inside("AGENTS.md"));
    CHECK(both.sync().empty());
    CHECK(both.inside("AGENTS.md") == "be careful");
}

TEST_CASE("a file and a directory change places, and what the agent has there is kept aside and named" * doctest::skip(not_root()))
{
    const Both both;
    both.write("a", "file");
    both.make("b");
    both.write("b/inner", "file");
    CHECK(both.sync().empty());
    both.write_inside("b/own", "the agent's");
    fs::remove(both.path_inside("a"));
    fs::create_directories(both.path_inside("a/deep"));
    both.write_inside("a/deep/own", "the agent's");
    for (const std::string name : {"a", "a/deep"})
        give(both.path_inside(name), agent_account());
    fs::remove_all(both.config + "/b");
    both.write("b", "now a file");
    const auto notices = both.sync();
    CHECK(both.inside("a") == "file");
    CHECK(both.inside("b") == "now a file");
    for (const std::string name : {"a", "b"}) {
        const auto kept = kept_beside(both.path_inside(name));
        REQUIRE(kept.size() == 1);
        CHECK(kept[0].size() == both.path_inside(name).size() + 14); // ".kept-" and eight digits
        CHECK(content_of(kept[0] + (name == "a" ? "/deep/own" : "/own")) == "the agent's");
        CHECK(std::count_if(notices.begin(), notices.end(), [&](const auto &text) { return has(text, fs::path(kept[0]).filename()); }) ==
              1);
    }
    CHECK_FALSE(fs::exists(kept_beside(both.path_inside("b"))[0] + "/inner")); // it was synced, and the host has it no longer
    CHECK(notices.size() == 2);
    CHECK(both.sync().empty()); // told once
}

TEST_CASE("a directory that the host deletes goes, and what the agent has in it stays" * doctest::skip(not_root()))
{
    const Both both;
    for (const std::string name : {"skills", "skills/one", "skills/two"})
        both.make(name);
    both.write("skills/one/SKILL.md", "1");
    both.write("skills/two/SKILL.md", "2");
    CHECK(both.sync().empty());
    both.write_inside("skills/two/notes", "the agent's");
    fs::remove_all(both.config + "/skills");
    CHECK(both.sync().empty());
    CHECK_FALSE(fs::exists(both.path_inside("skills/one")));
    CHECK_FALSE(fs::exists(both.path_inside("skills/two/SKILL.md")));
    CHECK(both.inside("skills/two/notes") == "the agent's");
    CHECK(both.sync().empty());
    CHECK(both.inside("skills/two/notes") == "the agent's");
}

TEST_CASE("a class that changes takes effect at the next start" * doctest::skip(not_root()))
{
    const Both both;
    both.make("x");
    both.write("x/f", "host's");
    Policy policy;
    const auto with = [&](FileClass file_class) {
        policy.config_classes.set("x", file_class);
        CHECK(both.sync_with(policy).empty());
        return fs::exists(both.path_inside("x/f")) ? both.inside("x/f") : "none";
    };
    CHECK(with(FileClass::mirror) == "host's");
    both.write_inside("x/f", "agent's");
    CHECK(with(FileClass::seed) == "agent's");
    CHECK(with(FileClass::mirror) == "host's");
    both.write_inside("x/f", "agent's");
    CHECK(with(FileClass::agent) == "agent's");
    both.write("x/f", "host's next");
    CHECK(with(FileClass::agent) == "agent's");
    CHECK(with(FileClass::seed) == "agent's"); // there was one inside
    both.write("x/f", "host's third");
    CHECK(with(FileClass::seed) == "host's third");
    CHECK(with(FileClass::never) == "none");
    CHECK(with(FileClass::never) == "none");
    CHECK(with(FileClass::seed) == "host's third");
    fs::remove(both.config + "/x/f");
    CHECK(with(FileClass::seed) == "none");
    both.write("x/f", "again");
    CHECK(with(FileClass::seed) == "again");
    both.write_inside("x/f", "agent's");
    fs::remove(both.config + "/x/f");
    CHECK(with(FileClass::seed) == "agent's");
}

TEST_CASE("names of any bytes and lengths arrive, change and go" * doctest::skip(not_root()))
{
    const Both both;
    const std::vector<std::string> names = {"line\nbreak", std::string(255, 'n'), "\xff\xfe", " ", "-rf", "$(x)", "\x1b[31m", "ü"};
    both.make(std::string(255, 'd'));
    for (const auto &top : {std::string(), std::string(255, 'd') + "/"}) {
        for (const auto &name : names)
            both.write(top + name, name);
        CHECK(both.sync().empty());
        for (const auto &name : names)
            CHECK_MESSAGE(both.inside(top + name) == name, name);
        for (const auto &name : names)
            both.write(top + name, "changed");
        CHECK(both.sync().empty());
        for (const auto &name : names)
            CHECK_MESSAGE(both.inside(top + name) == "changed", name);
    }
    for (const auto &name : names)
        fs::remove(both.config + "/" + name);
    fs::remove_all(both.config + "/" + std::string(255, 'd'));
    CHECK(both.sync().empty());
    for (const auto &name : names)
        CHECK_FALSE_MESSAGE(fs::exists(both.path_inside(name)), name);
    CHECK_FALSE(fs::exists(both.path_inside(std::string(255, 'd'))));
    // A directory of the agent's in the place of the longest name: the name it is kept under must fit too.
    both.make(std::string(255, 'd'));
    both.write_inside(std::string(255, 'n'), "agent's");
    both.make(std::string(255, 'n'));
    const auto notices = both.sync();
    REQUIRE(notices.size() == 1);
    CHECK(has(notices[0], std::string(200, 'n') + ".kept-"));
}

TEST_CASE("the user's other skills are mirrored into the agent's home" * doctest::skip(not_root()))
{
    const Both both;
    for (const std::string name : {"user/.agents", "user/.agents/skills", "user/.agents/skills/one"})
        give(both.place.make(name), user_account());
    const std::string skill = both.home + "/.agents/skills/one/SKILL.md";
    give(both.place.write("user/.agents/skills/one/SKILL.md", "how to"), user_account());
    CHECK(both.sync().empty());
    CHECK(content_of(skill) == "how to");
    std::ofstream(skill) << "changed inside";
    CHECK(both.sync().empty());
    CHECK(content_of(skill) == "how to");
    fs::remove_all(both.user_home + "/.agents");
    CHECK(both.sync().empty());
    CHECK_FALSE(fs::exists(both.home + "/.agents/skills/one"));
}

TEST_CASE("what the host can no longer be asked about stays, and goes when it is known to be gone" * doctest::skip(not_root()))
{
    const Both both;
    both.make("skills");
    both.write("skills/SKILL.md", "how to");
    both.write("closed", "x");
    CHECK(both.sync().empty());
    set_mode(both.config + "/skills", 0000);
    set_mode(both.config + "/closed", 0000);
    CHECK(both.sync().size() == 2);
    CHECK(both.inside("skills/SKILL.md") == "how to");
    CHECK(both.inside("closed") == "x");
    set_mode(both.config + "/skills", 0700);
    fs::remove_all(both.config + "/skills");
    fs::remove(both.config + "/closed");
    CHECK(both.sync().empty());
    CHECK_FALSE(fs::exists(both.path_inside("skills")));
    CHECK_FALSE(fs::exists(both.path_inside("closed")));
}

} // namespace config_sync_repeat_test
