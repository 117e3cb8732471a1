// The wrapper's own options.
#include "wrapper/options.hpp"

#include "wrapper/refusal.hpp"

namespace pi_agent {

const char *const wrapper_help = R"(pi runs the coding agent in this directory, as an account of its own, in the sandbox of the
administrator's policy. Every argument goes to the agent, except these, which come first:

  --pi-agent-help         print this and stop; `pi --help` is the agent's own help
  --pi-agent-explain      print what would be started and why; start nothing
  --pi-agent-debug        print on standard error what pi decides and what the session gets
  --pi-agent-canary       try what the sandbox must refuse, in the agent's place, and print the results
  --pi-agent-shell        start bash in the agent's place, with the arguments that follow
  --pi-agent-sessions     copy the sessions of your own agent in this directory to the agent's home
  --pi-agent-network=MODE let this session reach less: loopback, or none
  --pi-agent-allow HOST   let this session reach a host more, of those that the policy lets you add
  --pi-agent-read-only    let this session read the project and change nothing in it
  --pi-agent-scope=SCOPE  let this session see less: project, which is the repository alone
  --pi-agent-tmpdir PATH  use this directory inside the project's root as TMPDIR; it is made if it is missing

The policy is /etc/pi-agent/policy.yaml. A message ends with a code, which `pi-agentctl explain CODE`
explains. man pi has more, and the table of exit statuses.
)";

namespace {

const std::string prefix = "--pi-agent-";
const std::string tmpdir_option = "--pi-agent-tmpdir"; // PATH, or =PATH
const std::string allow_option = "--pi-agent-allow";   // HOST, or =HOST
constexpr const char *needs_directory = "--pi-agent-tmpdir needs a directory, as in --pi-agent-tmpdir=build/tmp";
constexpr const char *needs_host = "--pi-agent-allow needs a host, as in --pi-agent-allow=github.com:22";

[[noreturn]] void refuse(const std::string &option)
{
    throw Failure(FailureKind::command_line, "unknown option " + escape_for_display(option) + "; see: pi --pi-agent-help");
}

// A value that looks like one of these options was meant as one: a start that was to be read-only must not write.
std::string require_value(std::string value, const char *needed)
{
    if (value.empty() || value.starts_with(prefix))
        throw Failure(FailureKind::command_line,
                      std::string(needed) + (value.empty() ? "" : ", and " + escape_for_display(value) + " is an option of pi's own") +
                          "; see: pi --pi-agent-help");
    return value;
}

// An option with a value that only takes something away; false for another option.
bool take_narrowing(const std::string &argument, Narrowing &narrowing)
{
    if (argument == "--pi-agent-read-only")
        narrowing.read_only = true;
    else if (argument == "--pi-agent-scope=project")
        narrowing.project_only = true;
    else if (argument == "--pi-agent-network=none")
        narrowing.network = LeftNetwork::none;
    else if (argument == "--pi-agent-network=loopback")
        narrowing.network = std::max(narrowing.network, LeftNetwork::loopback); // the narrower one of two
    else if (argument.starts_with("--pi-agent-network") || argument.starts_with("--pi-agent-scope"))
        throw EarlyRefusal(
            Failure(FailureKind::start_asks, "denied: " + escape_for_display(argument) +
                                                 " asks for more than the policy gives, or for nothing that pi knows; say "
                                                 "--pi-agent-network=loopback, --pi-agent-network=none or --pi-agent-scope=project"));
    else
        return false;
    return true;
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
        else if (argument == node_option)
            options.on_node = true;
        else if (argument == "--pi-agent-shell")
            options.program = Program::shell;
        else if (argument == "--pi-agent-canary")
            options.program = Program::canary;
        else if (argument == tmpdir_option)
            options.tmpdir = require_value(++index < argc ? argv[index] : "", needs_directory);
        else if (argument.rfind(tmpdir_option + "=", 0) == 0)
            options.tmpdir = require_value(argument.substr(tmpdir_option.size() + 1), needs_directory);
        else if (argument == allow_option)
            options.allow.push_back(require_value(++index < argc ? argv[index] : "", needs_host));
        else if (argument.starts_with(allow_option + "="))
            options.allow.push_back(require_value(argument.substr(allow_option.size() + 1), needs_host));
        else if (!take_narrowing(argument, options.narrowing))
            refuse(argument);
    }
    for (; index < argc; ++index)
        options.agent_arguments.emplace_back(argv[index]);
    if (!options.allow.empty() && options.narrowing.network != LeftNetwork::policys)
        throw Failure(
            FailureKind::command_line,
            "--pi-agent-allow adds a host, and --pi-agent-network takes all hosts away; say one of them; see: pi --pi-agent-help");
    return options;
}

} // namespace pi_agent
