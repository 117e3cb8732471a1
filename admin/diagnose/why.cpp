// Asking a session, and saying why it answers so.
#include "admin/diagnose/why.hpp"

#include "admin/diagnose/explain.hpp"
#include "admin/diagnose/why_rule.hpp"
#include "admin/programs/user_program.hpp"
#include "admin/text/table.hpp"
#include "common/base/build_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/policy/policy_load.hpp"

#include <cerrno>
#include <climits>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr int patience_seconds = 120;
constexpr std::size_t paths_limit = 1000; // they are arguments

std::string normal_path(const std::string &path, const std::string &directory)
{
    std::string normal = (std::filesystem::path(directory) / path).lexically_normal();
    if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
    if (normal.find('\n') != std::string::npos) throw Failure(ExitStatus::usage, "a path with a line break cannot be asked about");
    return normal;
}

std::vector<PathAccess> read_answers(const std::string &output, std::size_t count)
{
    std::string said;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("{\"paths\":", 0) != 0) {
            said += "\n  " + escape_for_display(line);
            continue;
        }
        auto answers = decode_path_access(line);
        if (answers.size() == count) return answers;
    }
    throw Failure(ExitStatus::unavailable, "no session answered; it said:" + (said.empty() ? " nothing" : said));
}

std::vector<PathAccess> ask(const Observer &observer, const Account &user, const std::string &directory,
                            const std::vector<std::string> &paths)
{
    std::vector<std::string> command = {"env", "--chdir=" + directory,      build::wrapper_path, "--pi-agent-shell",
                                        "-c",  "exec \"$0\" --look \"$@\"", build::canary_path};
    command.insert(command.end(), paths.begin(), paths.end());
    const auto result = observer.root() ? run_as_user(*observer.root(), user, command, patience_seconds, NewPrivileges::allowed)
                                        : run_program_apart(command, patience_seconds);
    return read_answers(result.output, paths.size());
}

// By who asks: a user sees less than the agent may be shown, and nothing is concluded from that.
OnHost look_on_host(const std::string &path)
{
    struct stat facts {};
    if (lstat(path.c_str(), &facts) != 0) return errno == ENOENT || errno == ENOTDIR ? OnHost::nothing : OnHost::unknown;
    return S_ISDIR(facts.st_mode) ? OnHost::directory : OnHost::other;
}

std::string verdict(const PathAccess &access)
{
    if (!access.exists) return "is not there";
    if (!access.leads_to.empty()) return "leads to what is not there";
    std::string may;
    for (const auto &[is_so, word] : {std::pair{access.read, "read"}, {access.write, "write"}, {access.execute, "execute or enter"}})
        if (is_so) may += (may.empty() ? "may " : ", ") + std::string(word);
    return may.empty() ? "may not be read, written or executed" : may;
}

} // namespace

void run_why(const WhyOptions &options, std::ostream &out)
{
    const auto observer = Observer::self();
    const auto user = account_to_explain(options.user, observer);
    if (!observer.can_look_for(user)) throw Failure(ExitStatus::denied, "only root can ask for another user; try it with sudo");
    if (options.user && !options.directory) throw Failure(ExitStatus::usage, "say in which of the user's directories: --cwd DIRECTORY");
    if (options.paths.size() > paths_limit) throw Failure(ExitStatus::usage, fmt::format("at most {} paths at once", paths_limit));
    const auto policy = load_policy(policy_path);
    const auto explanation = explain(policy, policy_path, observer, user, options.directory.value_or("."));
    if (const auto *refused = std::get_if<NotAuthorised>(&explanation.access)) throw Failure(ExitStatus::denied, refused->text);
    const auto &directory = *explanation.directory;
    if (!directory.allowed.value_or(true)) throw Failure(ExitStatus::denied, escape_for_display(directory.path) + ": " + directory.text);
    // Where the session begins, by its own names (projects.paths: alias).
    const std::string inside =
        shown_root(policy, explanation) + directory.path.substr(std::min(directory.text.size(), directory.path.size()));
    std::vector<std::string> paths;
    for (const auto &path : options.paths)
        paths.push_back(normal_path(path, inside));
    const auto answers = ask(observer, user, directory.path, paths);
    auto json = nlohmann::json::array();
    for (std::size_t index = 0; index < paths.size(); ++index) {
        const auto &access = answers[index];
        const auto reason =
            reason_for(paths[index], access, look_on_host(access.leads_to.empty() ? paths[index] : access.leads_to), policy, explanation);
        const std::string where = reason.where.line > 0 ? to_string(reason.where) : "";
        if (options.json) {
            json.push_back({{"path", paths[index]},
                            {"exists", access.exists},
                            {"read", access.read},
                            {"write", access.write},
                            {"execute", access.execute},
                            {"mount", access.mount},
                            {"rule", reason.rule},
                            {"key", reason.key},
                            {"where", where}});
            continue;
        }
        out << fmt::format("{}: {}\n  rule:      {}{}\n  to change: {}\n", escape_for_display(paths[index]), verdict(access), reason.rule,
                           where.empty() ? "" : " (" + where + ")", reason.key.empty() ? "no key of the policy does" : reason.key);
    }
    if (options.json) print_json({{"user", user.name}, {"directory", directory.path}, {"paths", json}}, out);
}

} // namespace pi_agent
