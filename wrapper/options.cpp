// The wrapper's own options.
#include "wrapper/options.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <set>

namespace pi_agent {

const char *const wrapper_help = R"(pi runs the coding agent in this directory, as a user of its own, in a sandbox that the
administrator's policy describes (/etc/pi-agent/policy.yaml). Every argument goes to the agent, except these, which come first:

  --pi-agent-help         print this and stop; `pi --help` is the agent's own help
  --pi-agent-explain      print what would be launched and why, launch nothing
  --pi-agent-debug        tell on standard error what the wrapper does and what the session gets
  --pi-agent-canary       start a program in the agent's place that tries what the sandbox is to refuse, and says what it found
  --pi-agent-shell        start bash in the agent's place, with the arguments that follow: what it sees, the agent sees
  --pi-agent-sessions     copy the sessions that your own agent had in this directory to the agent's home, for -c and --resume
  --pi-agent-tmpdir PATH  let TMPDIR be this directory inside the project's root; it is made if need be, and never removed

Exit status: the agent's own. pi-agent itself ends with 64 (a bad option, or a file that cannot be handed over), 69 (the sandbox cannot work here), 70 (a bug),
71 (the operating system failed), 75 (limit or lock), 77 (denied) or 78 (invalid configuration), and says why on standard error.
)";

namespace {

const std::string prefix = "--pi-agent-";
const std::string tmpdir_option = "--pi-agent-tmpdir"; // PATH, or =PATH

[[noreturn]] void refuse(const std::string &option)
{
    throw Failure(FailureKind::command_line, "unknown option " + escape_for_display(option) + "; see: pi --pi-agent-help");
}

std::string require_directory(std::string path)
{
    if (path.empty())
        throw Failure(FailureKind::command_line,
                      "--pi-agent-tmpdir needs a directory, as in --pi-agent-tmpdir=build/tmp; see: pi --pi-agent-help");
    return path;
}

} // namespace

bool asks_for_self_update(const std::vector<std::string> &agent_arguments)
{
    if (agent_arguments.empty() || agent_arguments.front() != "update") return false;
    bool other_target = false;
    for (auto argument = agent_arguments.begin() + 1; argument != agent_arguments.end(); ++argument) {
        if (*argument == "self" || *argument == "pi" || *argument == "--self" || *argument == "--all") return true;
        static const std::set<std::string> without_target = {"--force", "-a", "--approve", "-na", "--no-approve"};
        other_target = other_target || !without_target.contains(*argument);
    }
    return !other_target;
}

WrapperOptions parse_options(int argc, const char *const *argv)
{
    WrapperOptions options;
    int index = 1;
    for (; index < argc; ++index) {
        const std::string argument = argv[index];
        if (argument.compare(0, prefix.size(), prefix) != 0) break;
        if (argument == "--pi-agent-help")
            options.help = true;
        else if (argument == "--pi-agent-explain")
            options.explain = true;
        else if (argument == "--pi-agent-debug")
            options.debug = true;
        else if (argument == "--pi-agent-sessions")
            options.sessions = true;
        else if (argument == "--pi-agent-shell")
            options.program = Program::shell;
        else if (argument == "--pi-agent-canary")
            options.program = Program::canary;
        else if (argument == tmpdir_option)
            options.tmpdir = require_directory(++index < argc ? argv[index] : "");
        else if (argument.rfind(tmpdir_option + "=", 0) == 0)
            options.tmpdir = require_directory(argument.substr(tmpdir_option.size() + 1));
        else
            refuse(argument);
    }
    for (; index < argc; ++index)
        options.agent_arguments.emplace_back(argv[index]);
    return options;
}

} // namespace pi_agent
