// Where events go: runner/root/session/session_directory.hpp
#include "runner/root/session/session_directory.hpp"

#include "support/failure.hpp"
#include "support/fake_journal.hpp"
#include "support/skipped.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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

TEST_CASE("a full file makes room for a new one, and the one before it goes" * doctest::skip(not_root()))
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
        std::set<std::string> files; // record.full-NUMBER, then record.jsonl
        for (const auto &entry : std::filesystem::directory_iterator(directory))
            if (entry.path().filename() != "away") files.insert(entry.path());
        std::string text = std::to_string(files.size()) + " files, " + std::to_string(lines().size() - 1) + " new,";
        for (const auto &name : files) {
            std::ifstream file(name);
            for (std::string line; std::getline(file, line);)
                if (!line.starts_with('\0')) text += nlohmann::json::accept(line) ? " new" : " " + line.substr(0, line.find('\0'));
        }
        return text;
    });
}

TEST_CASE("a user has a copy of what is about them, denials apart, which that user alone may look at" * doctest::skip(not_root()))
{
    check_logs("denials.jsonl 1 record.jsonl 2, own 50, of another 1", []() -> std::string {
        FakeJournal journal;
        const std::string state = std::filesystem::path(own_records_path).parent_path();
        record_event(somebody, StartedEvent{}); // before the first apply
        std::string text = std::filesystem::exists(state) ? "made " : "";
        std::filesystem::create_directory(state);
        record_event(somebody, StartedEvent{});
        record_event(somebody, EndedEvent{AgentEnded{false, 0}, "", {}, {}, {}});
        record_event(somebody, ConnectionDeniedEvent{"host", 443, "code", "reason", "", ""});
        record_event(somebody, ProblemEvent{"of root's alone"});
        record_event(RecordSubject{}, DeniedEvent{ExitStatus::denied, "whose is not known"});
        const std::string own = own_record_directory(Account{"alice", Uid(1000), Gid(1000), "", {}});
        const auto count = [&](const std::string &name) {
            std::ifstream file(own + "/" + name);
            return std::count(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>(), '\n');
        };
        std::set<std::string> names;
        for (const auto &entry : std::filesystem::directory_iterator(own))
            names.insert(entry.path().filename());
        for (const auto &name : names)
            text += name + " " + std::to_string(count(name)) + (name == *names.rbegin() ? ", own " : " ");
        struct stat facts {};
        if (::lstat(own.c_str(), &facts) != 0 || facts.st_uid != 0) return text + "not root's";
        text += std::to_string((facts.st_mode & 077U) / 8 % 8) + std::to_string(facts.st_mode & 7U);
        RecordSubject other = somebody;
        other.uid = Uid(1001);
        record_event(other, StartedEvent{});
        return text + ", of another " + std::to_string(count("record.jsonl"));
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
