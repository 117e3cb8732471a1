// Each row of doors.toml is told when a session makes or changes such a file, and ordinary files are not: wrapper/doors.cpp
#include "common/as_user/doors.hpp"

#include "common/base/text.hpp"
#include "support/temporary_directory.hpp"
#include "wrapper/aftermath.hpp"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

using namespace pi_agent;
using namespace pi_agent::test;

namespace doors_test {

namespace {

// A tree that a session was shown, searched before and after.
class Searched {
public:
    Searched() : plan_(plan_look(tree_.path(), tree_.path(), "/home/nobody", "/usr/bin", ProjectScope::root)) {}

    void write(const std::string &name, const std::string &text) const
    {
        std::filesystem::create_directories(std::filesystem::path(tree_ / name).parent_path());
        tree_.write(name, text);
    }
    void begin()
    {
        const timespec pause{0, 20'000'000}; // the clock of the file system ticks more slowly
        nanosleep(&pause, nullptr);
        clock_gettime(CLOCK_REALTIME, &plan_.start);
        before_ = look(true);
    }
    // "path: what +" for what appeared, "path: what *" for what changed.
    [[nodiscard]] std::set<std::string> findings() const
    {
        std::set<std::string> lines;
        for (const auto &finding : compare(before_, look(false), plan_.start))
            lines.insert(finding.path.substr(tree_.path().size() + 1) + ": " + finding.what + (finding.appeared ? " +" : " *"));
        return lines;
    }

private:
    [[nodiscard]] Snapshot look(bool is_first) const
    {
        Budget budget(100'000, in_seconds(60), [] { return false; });
        return look_at_doors(plan_, budget, is_first);
    }
    TemporaryDirectory tree_;
    LookPlan plan_;
    Snapshot before_;
};

// A file that a pattern of the table names, in a directory of its own.
struct Sample {
    std::string path, beside, text, what;
};

std::vector<Sample> samples()
{
    std::vector<Sample> list;
    for (const auto &door : door_table) {
        for (const auto path : split(door.paths, ' ')) {
            if (door.what.empty()) continue; // the search of git directories tells it
            const std::string directory = "d" + std::to_string(list.size()) + "/";
            std::string name(path);
            while (name.find('*') != std::string::npos)
                name.replace(name.find('*'), 1, "x");
            const std::string word(door.words.substr(0, door.words.find(' ')));
            const std::string beside = door.beside.empty() ? "" : directory + std::string(door.beside);
            list.push_back({directory + name, beside, word + "\n", std::string(door.what)});
        }
    }
    return list;
}

std::map<std::string, std::string> ordinary_files()
{
    std::ifstream file(std::string(PI_AGENT_EXAMPLES) + "/../tests/unit/data/ordinary_files.json");
    return nlohmann::json::parse(file).get<std::map<std::string, std::string>>();
}

} // namespace

TEST_CASE("each file of the table is told when it appears and when it changes")
{
    Searched project;
    const std::vector<Sample> list = samples();
    CHECK(list.size() >= 44);
    for (const auto &sample : list)
        if (!sample.beside.empty()) project.write(sample.beside, "x");
    project.begin();
    for (const auto &sample : list)
        project.write(sample.path, sample.text);
    const std::set<std::string> made = project.findings();
    project.begin();
    for (const auto &sample : list)
        project.write(sample.path, sample.text + "more\n");
    const std::set<std::string> changed = project.findings();
    for (const auto &sample : list) {
        CHECK_MESSAGE(made.contains(sample.path + ": " + sample.what + " +"), sample.path);
        CHECK_MESSAGE(changed.contains(sample.path + ": " + sample.what + " *"), sample.path);
    }
}

TEST_CASE("no ordinary file is told when it appears or changes")
{
    Searched project;
    const auto files = ordinary_files();
    CHECK(files.size() >= 50);
    project.write("hooks/pre-commit", "x"); // of nothing that is a Subversion repository
    project.begin();
    for (const auto &[name, text] : files)
        project.write(name, text);
    project.write("hooks/pre-commit", "y");
    CHECK(project.findings().empty());
    project.begin();
    for (const auto &[name, text] : files)
        project.write(name, text + text);
    CHECK(project.findings().empty());
}

TEST_CASE("a row says who takes code from its files, where that is documented, and has at most one star in a component")
{
    for (const auto &door : door_table) {
        CHECK_MESSAGE(!door.by.empty(), door.paths);
        CHECK_MESSAGE(!door.source.empty(), door.paths);
        CHECK_MESSAGE(door.source.find("://") == std::string_view::npos, door.paths);
        CHECK_MESSAGE((!door.what.empty() || door.protect != DoorGuard::none), door.paths);
        for (const auto path : split(door.paths, ' '))
            for (const auto &component : path_components(std::string(path)))
                CHECK_MESSAGE(std::count(component.begin(), component.end(), '*') <= 1, path);
    }
}

} // namespace doors_test
