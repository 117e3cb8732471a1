// Where events go: runner/root/session/record.hpp
#include "runner/root/session/record.hpp"

#include "support/failure.hpp"
#include "support/fake_journal.hpp"
#include "support/skipped.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace record_test {

namespace {

const RecordSubject somebody{"ID", "alice", Uid(1000), "pi-agent", "/srv/a\nb", "systemd", "pi-agent-ID.service", "agent"};
constexpr const char *directory = "/var/log/pi-agent";

void check_logs(const std::string &wanted, const std::function<std::string()> &task)
{
    const std::string said = in_private_logs(task);
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == wanted);
}

std::vector<std::string> lines()
{
    std::vector<std::string> found;
    std::ifstream file(record_file_path);
    for (std::string line; std::getline(file, line);)
        found.push_back(line);
    return found;
}

// "recorded", or the status and the words of the refusal that matter.
std::string attempt(const std::string &words)
{
    const Caught caught = failure_of([] {
        record_event(somebody, StartedEvent{});
        return 0;
    });
    if (caught.status == 0) return "recorded";
    return std::to_string(caught.status) +
           (has(caught.text, "the session cannot be recorded") && has(caught.text, words) ? ", named" : caught.text);
}

std::string mode_of(const std::string &path)
{
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return "none";
    return std::to_string(status.st_uid) + " " + std::to_string((status.st_mode & 0700U) >> 6U) + std::to_string(status.st_mode & 077U);
}

} // namespace

TEST_CASE("where there is a journal, it alone gets the entry" * doctest::skip(not_root()))
{
    check_logs("MESSAGE=session ID started, no file", []() -> std::string {
        FakeJournal journal;
        record_event(somebody, StartedEvent{});
        return journal.entry().substr(0, 26) + (std::filesystem::exists(directory) ? ", a file" : ", no file");
    });
}

TEST_CASE("where there is none, each event is a line of JSON in a file that only root reads" * doctest::skip(not_root()))
{
    check_logs("0 70 0 60 same same 2", []() -> std::string {
        record_event(somebody, StartedEvent{});
        record_event(somebody, EndedEvent{AgentEnded{false, 0}, "", {}, {}, {}});
        std::string text = mode_of(directory) + " " + mode_of(record_file_path);
        const auto found = lines();
        const std::vector<RecordEvent> events = {StartedEvent{}, EndedEvent{AgentEnded{false, 0}, "", {}, {}, {}}};
        for (std::size_t index = 0; index < std::min(found.size(), events.size()); ++index) {
            auto line = nlohmann::json::parse(found[index]);
            const bool timed = line.erase("__REALTIME_TIMESTAMP") == 1;
            nlohmann::json wanted;
            for (const auto &field : record_fields(somebody, events[index], "pi-agent-runner"))
                wanted[field.name] = field.value;
            text += timed && line == wanted ? " same" : " other";
        }
        return text + " " + std::to_string(found.size());
    });
}

TEST_CASE("half a line, left by a death in the middle, is not gone on with" * doctest::skip(not_root()))
{
    check_logs("{\"half, whole", []() -> std::string {
        std::filesystem::create_directory(directory);
        std::ofstream(record_file_path) << "{\"half";
        record_event(somebody, StartedEvent{});
        const auto found = lines();
        return found.at(0) + (found.size() == 2 && nlohmann::json::accept(found[1]) ? ", whole" : ", broken");
    });
}

TEST_CASE("a full file makes room for a new one, the one before it goes, and both that are left are read" * doctest::skip(not_root()))
{
    check_logs("2 files, 1 new, first second new", []() -> std::string {
        std::filesystem::create_directory(directory);
        for (const char *text : {"oldest", "first"}) {
            std::ofstream(record_file_path) << text << "\n";
            std::filesystem::resize_file(record_file_path, 16 << 20);
            record_event(somebody, StartedEvent{});
            if (std::string(text) == "oldest") std::filesystem::remove(record_file_path);
        }
        std::filesystem::rename(record_file_path, std::string(directory) + "/away");
        std::ofstream(record_file_path) << "second\n";
        record_event(somebody, StartedEvent{});
        std::size_t files = 0;
        for (const auto &entry : std::filesystem::directory_iterator(directory))
            files += entry.path().filename() != "away" ? 1 : 0;
        std::string text = std::to_string(files) + " files, " + std::to_string(lines().size() - 1) + " new,";
        read_record_file([&](const std::string &line) {
            if (line.starts_with("first"))
                text += " first";
            else if (line.starts_with("second"))
                text += " second";
            else if (nlohmann::json::accept(line))
                text += " new";
            else if (line.starts_with("oldest"))
                text += " oldest";
        });
        return text;
    });
}

TEST_CASE("what others could have made or written is not written to" * doctest::skip(not_root()))
{
    const std::map<std::string, std::function<void()>> traps = {
        {"can write", [] { std::filesystem::create_directory(directory), ::chmod(directory, 0777); }},
        {"does not belong to root", [] { std::filesystem::create_directory(directory), ::chown(directory, 65534, 65534); }},
        {"opening /var/log/pi-agent", [] { std::filesystem::create_directory_symlink("/run", directory); }},
        {"opening /var/log/pi-agent/record.jsonl",
         [] { std::filesystem::create_directory(directory), std::filesystem::create_symlink("/run/elsewhere", record_file_path); }},
        {"is not a regular file", [] { std::filesystem::create_directory(directory), ::mkfifo(record_file_path, 0600); }},
        {"cannot be trusted", [] { ::chmod("/var/log", 0777); }},
    };
    for (const auto &trap : traps)
        check_logs("71, named", [&trap] {
            trap.second();
            return attempt(trap.first) + (std::filesystem::exists("/run/elsewhere") ? ", followed" : "");
        });
}

TEST_CASE("a full disk is a refusal, and half a line does not go on in the next" * doctest::skip(not_root()))
{
    check_logs("recorded 71, named, one half recorded, one half", []() -> std::string {
        std::filesystem::create_directory(directory);
        if (::mount("none", directory, "tmpfs", 0, "mode=0700,size=8k") != 0) return no_private_run;
        std::string text = attempt("") + " ";
        const std::string filler = std::string(directory) + "/filler";
        std::ofstream(filler) << std::string(4096, 'x') << std::flush;
        while (attempt("") == "recorded") {
        } // until the last page is full
        text += attempt("No space left");
        const auto halves = [] {
            const auto all = lines();
            const auto count = std::count_if(all.begin(), all.end(), [](const auto &line) { return !nlohmann::json::accept(line); });
            return count == 1 ? ", one half" : ", " + std::to_string(count) + " halves";
        };
        text += halves() + " ";
        std::filesystem::remove(filler);
        text += attempt("");
        return text + halves();
    });
}

TEST_CASE("a problem is recorded, and where that cannot be it ends nothing" * doctest::skip(not_root()))
{
    check_logs("MESSAGE=session ID: bad\\x0a", []() -> std::string {
        std::filesystem::create_directory_symlink("/run", directory);
        record_problem("ID", "nobody hears it");
        FakeJournal journal;
        record_problem("ID", "bad\n");
        return journal.entry().substr(0, 27);
    });
}

} // namespace record_test
