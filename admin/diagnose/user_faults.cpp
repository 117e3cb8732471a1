// Asking a user's login shell.
#include "admin/diagnose/faults.hpp"

#include "admin/programs/program.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/plan/environment.hpp"

#include <algorithm>
#include <set>
#include <sstream>

namespace pi_agent {

namespace {

constexpr int shell_patience_seconds = 10;
constexpr std::size_t said_limit = 500; // bytes of what it says instead
constexpr const char *found_mark = "pi-agent-found:";
constexpr const char *home_mark = "pi-agent-home:";

// First in sh: where npm, nvm, mise, volta, bun and pnpm put programs of a user's own; a pattern that fits nothing names no file. Then in
// the user's login shell, where that takes -l, -i and -c; else in sh again.
std::string script(const std::string &command)
{
    return "for d in .local/bin bin .npm-global/bin .local/share/npm-global/bin node_modules/.bin .bun/bin .volta/bin .local/share/pnpm "
           ".nvm/versions/node/v[0-9]*/bin .local/share/mise/installs/*/*/bin; do for f in \"$HOME\"/$d/" +
           command + "; do if [ -x \"$f\" ]; then printf '" + home_mark + "%s\\n' \"$f\"; fi; done; done; " + "find='printf \"\\n" +
           found_mark + "%s\\n\" \"$(command -v " + command +
           ")\"'; case ${SHELL##*/} in sh|bash|dash|ksh|mksh|zsh) exec \"$SHELL\" -l -i -c \"$find\";; *) exec sh -l -i -c \"$find\";; "
           "esac";
}

} // namespace

std::vector<std::string> names_of_wrapper(const std::string &command, const std::string &wrapper)
{
    std::vector<std::string> names = {wrapper};
    for (const auto &directory : system_path()) {
        const auto name = directory + "/" + command;
        try {
            if (resolve_trusted(name, "command").canonical == wrapper) names.push_back(name);
        } catch (const Failure &) { // NOLINT(bugprone-empty-catch): there is none, or others than root can change it
        }
    }
    return names;
}

Faults judge_shell(const std::string &output, const std::string &user, const std::string &command, const std::vector<std::string> &wrapper)
{
    Faults faults;
    std::set<std::string> named;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        for (const std::string mark : {found_mark, home_mark}) {
            if (line.compare(0, mark.size(), mark) != 0) continue;
            const std::string found = line.substr(mark.size());
            if (std::find(wrapper.begin(), wrapper.end(), found) != wrapper.end() || !named.insert(found).second) continue;
            if (found.empty())
                faults.push_back({"no-pi", "the login shell of " + user + " finds no " + command,
                                  "put the directory of " + wrapper.front() + " on its PATH"});
            else if (found[0] == '/')
                faults.push_back({"other-pi",
                                  user + (mark == found_mark ? "'s shell starts " : " has ") + escape_for_display(found) +
                                      ", which is not the wrapper: what it runs is not confined",
                                  "remove it, or ask " + user + " to (npm uninstall -g, or rm)"});
            else
                faults.push_back(
                    {"other-pi", "the login shell of " + user + " has an alias or a function " + command + ": " + escape_for_display(found),
                     "ask " + user + " to remove it"});
        }
    }
    return faults;
}

Faults find_user_faults(const AsRoot &root, const Account &user, const std::string &command, const std::vector<std::string> &wrapper)
{
    try {
        const auto result = run_as_user(root, user, {"sh", "-c", script(command)}, shell_patience_seconds, NewPrivileges::refused);
        if (result.output.find(found_mark) == std::string::npos)
            return {{"shell",
                     "the login shell of " + user.name + " does not come to the question (status " + std::to_string(result.status) +
                         "): " + one_line(result.output.substr(0, said_limit)),
                     "look at its start files"}};
        return judge_shell(result.output, user.name, command, wrapper);
    } catch (const Failure &failure) { // the user's own shell kept it
        return {{"shell", "the login shell of " + user.name + " does not answer: " + failure.what(), "look at its start files"}};
    }
}

} // namespace pi_agent
