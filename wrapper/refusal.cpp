// What pi decides before it asks: its own options, its look at the policy, and which variables of the shell go along.
#include "common/host/identity.hpp"
#include "wrapper/session_client.hpp"

#include "common/base/files.hpp"
#include "common/decide/explained.hpp"
#include "common/policy/policy_load.hpp"
#include "common/record/record_event.hpp"

#include <cstdlib>
#include <filesystem>

namespace pi_agent {

// --- The wrapper's own options.

const char *const wrapper_help = R"(pi runs the coding agent in this directory, as an account of its own, in the
sandbox of the administrator's policy. Every argument goes to the agent, except
these, which come first:

  --pi-agent-help         print this and stop; `pi --help` is the agent's own help
  --pi-agent-explain      print what would be started and why; start nothing
  --pi-agent-debug        print on standard error what pi decides and what the session gets
  --pi-agent-canary       try what the sandbox must refuse, in the agent's place, and print the results
  --pi-agent-shell        start bash in the agent's place, with the arguments that follow
  --pi-agent-sessions     copy the sessions of your own agent in this directory to the agent's home
  --pi-agent-network=MODE let this session reach less: loopback, or none
  --pi-agent-allow HOST   let this session reach a host more, of those that the policy lets you add
  --pi-agent-port PORT    let your own programs, such as a browser, reach a port of this session
  --pi-agent-read-only    let this session read the project and change nothing in it
  --pi-agent-scope=SCOPE  let this session see less: project, which is the repository alone
  --pi-agent-tmpdir PATH  use this directory inside the project's root as TMPDIR; it is made if it is missing

The policy is /etc/pi-agent/policy.yaml. A message ends with a code, which
`pi-agentctl explain CODE` explains. man pi has more, and the table of exit
statuses.
)";

namespace {

constexpr std::string_view prefix = "--pi-agent-";
constexpr std::string_view see_help = "; see: pi --pi-agent-help";

// Those that narrow a session take away only, and of two the narrower one counts.
struct Option {
    std::string_view name;
    const char *needed; // with a value: the next argument, or behind "="; none: without one
    void (*take)(WrapperOptions &options, const std::string &value);
};
constexpr Option own_options[] = {
    {"--pi-agent-help", nullptr, [](WrapperOptions &options, const std::string &) { options.help = true; }},
    {"--pi-agent-explain", nullptr, [](WrapperOptions &options, const std::string &) { options.explain = true; }},
    {"--pi-agent-debug", nullptr, [](WrapperOptions &options, const std::string &) { options.request.debug = true; }},
    {"--pi-agent-sessions", nullptr, [](WrapperOptions &options, const std::string &) { options.request.sessions = true; }},
    {node_option, nullptr, [](WrapperOptions &options, const std::string &) { options.on_node = true; }},
    {"--pi-agent-shell", nullptr, [](WrapperOptions &options, const std::string &) { options.request.program = Program::shell; }},
    {"--pi-agent-canary", nullptr, [](WrapperOptions &options, const std::string &) { options.request.program = Program::canary; }},
    {"--pi-agent-read-only", nullptr, [](WrapperOptions &options, const std::string &) { options.request.narrowing.read_only = true; }},
    {"--pi-agent-scope=project", nullptr,
     [](WrapperOptions &options, const std::string &) { options.request.narrowing.project_only = true; }},
    {"--pi-agent-network=none", nullptr,
     [](WrapperOptions &options, const std::string &) { options.request.narrowing.network = LeftNetwork::none; }},
    {"--pi-agent-network=loopback", nullptr,
     [](WrapperOptions &options, const std::string &) {
         options.request.narrowing.network = std::max(options.request.narrowing.network, LeftNetwork::loopback);
     }},
    {"--pi-agent-tmpdir", "--pi-agent-tmpdir needs a directory, as in --pi-agent-tmpdir=build/tmp",
     [](WrapperOptions &options, const std::string &value) { options.request.tmpdir = value; }},
    {"--pi-agent-allow", "--pi-agent-allow needs a host, as in --pi-agent-allow=github.com:22",
     [](WrapperOptions &options, const std::string &value) { options.request.allow.push_back(value); }},
    {"--pi-agent-port", "--pi-agent-port needs a port, as in --pi-agent-port=3000",
     [](WrapperOptions &options, const std::string &value) {
         options.ports.push_back(parse_asked_port(value));
         options.request.ports.push_back(options.ports.back().inside);
         if (options.ports.size() > ports_limit)
             throw Failure(FailureKind::command_line, "--pi-agent-port: a session has " + std::to_string(ports_limit) + " ports at most");
     }},
};

// What an option of one of few values can say, and what the policy's key of that name can say besides.
struct Values {
    std::string_view option, wider;
    const char *say;
};
constexpr Values values_of_options[] = {
    {"--pi-agent-network", "full hosts", "--pi-agent-network=loopback or --pi-agent-network=none"},
    {"--pi-agent-scope", "root", "--pi-agent-scope=project"},
};

[[noreturn]] void refuse(std::string_view option)
{
    const std::string shown = escape_for_display(option);
    for (const auto &values : values_of_options) {
        if (option.substr(0, option.find('=')) != values.option) continue;
        const std::string_view value = option.substr(std::min(option.size(), values.option.size() + 1));
        if (!value.empty() && has_word(values.wider, value))
            throw EarlyRefusal(
                Failure(FailureKind::start_asks, "denied: " + shown + " asks for more than the policy gives; say " + values.say));
        throw Failure(FailureKind::command_line, shown + (value.empty() ? " lacks its value" : " has a value that pi does not know") +
                                                     "; say " + values.say + std::string(see_help));
    }
    throw Failure(FailureKind::command_line, "unknown option " + shown + std::string(see_help));
}

// A value that looks like one of these options was meant as one: a start that was to be read-only must not write.
void require_value(const std::string &value, const char *needed)
{
    if (value.empty() || value.starts_with(prefix))
        throw Failure(FailureKind::command_line,
                      std::string(needed) + (value.empty() ? "" : ", and " + escape_for_display(value) + " is an option of pi's own") +
                          std::string(see_help));
}

// What an option of the start leaves is loopback, or nothing (common/decide/decision.cpp).
const char *reached_in(const NetworkPolicy &network)
{
    if (network.mode == NetworkMode::none) return "no connection out of the session, so no model provider";
    if (network.mode == NetworkMode::loopback || is_of_start(network)) return "only services of this host, so no model provider elsewhere";
    if (network.mode == NetworkMode::hosts) return "only the hosts that it names";
    return "only the addresses of its list, which may lack those of the model provider or of the name server";
}

Account find_caller()
{
    if (getuid() == 0 || geteuid() != getuid())
        throw Failure(FailureKind::root_caller, "denied: root cannot run the agent; run pi as an ordinary user");
    std::optional<Account> caller = find_account(Uid(getuid()));
    if (!caller)
        throw Failure(FailureKind::caller,
                      "denied: uid " + std::to_string(getuid()) + " is not in the user database of this host; ask the administrator");
    return *caller;
}

std::optional<JobCommand> job_of(const Policy &policy)
{
    if (!has_jobs(policy)) return std::nullopt;
    return JobCommand{srun_of(policy), srun_arguments(policy, {build::wrapper_path, node_option})};
}

EarlyLook look_early(FdRef cwd, const AskedOfStart &asked)
{
    require_sudo_can_work();
    const Account caller = find_caller();
    Policy policy = load_policy_to_start(policy_path, caller.name);
    if (!policy.wrapper.enable)
        throw Failure(FailureKind::switched_off, "denied: the administrator has switched the agent off (" +
                                                     to_string(policy.wrapper.where) +
                                                     ", wrapper.enable: false); ask them when it is back");
    auto found = find_access_rules(policy, caller, policy_path);
    if (const auto *refused = std::get_if<NotAuthorised>(&found)) throw Failure(FailureKind::not_authorised, refused->text);
    const AccessRules &all = std::get<AccessRules>(found);
    policy = policy_for(std::move(policy), all);
    StartPlaces places{{}, path_of_working_directory(cwd), mount_id(cwd)};
    AgentPlaces agents = places_of_state(policy, all);
    std::vector<bool> there;
    for (const auto &root : resolve_roots(all, caller)) {
        const GrantedRoot &granted = all.roots[there.size()];
        there.push_back(root.has_value());
        if (!root) continue;
        places.roots.push_back({root->path, granted.by_group, granted.spec.where, granted.spec.rules, mount_id(root->fd)});
        const struct stat facts = examine(root->fd, "examining a root");
        agents.places.push_back({root->path, facts.st_dev, facts.st_ino});
    }
    const AccessRules rules = with_roots_there(all, there);
    auto decision = decide_start(caller, rules, std::move(policy), places, asked, {});
    if (const auto *refused = std::get_if<Refused>(&decision)) throw Failure(FailureKind::outside_roots, refused->text);
    policy = std::move(std::get<Start>(decision).policy);
    const std::string &root = places.roots[std::get<Start>(decision).root].path;
    const std::string &path = places.cwd;
    return {"allowed: " + escape_for_display(path) + " is in the root " + root + " (" + rules.entry + ", " + to_string(rules.where) + ")",
            path,
            root,
            caller.home,
            policy.projects,
            policy.network,
            policy.wrapper.clipboard,
            std::move(agents),
            paths_read_as_user(policy, rules, caller),
            job_of(policy)};
}

// Every refusal of its own, from wherever, is the kind that is recorded.
template <typename Look>
auto refusing(const Look &look)
{
    try {
        return look();
    } catch (const Failure &failure) {
        throw EarlyRefusal(failure);
    }
}

// --- Which variables of the user's shell a request carries, and what TERM stands for.

constexpr std::size_t description_limit = 32768; // of ncurses (term(5))

// Compiled, in one of the two formats (term(5)). No other content leaves the user's files.
bool is_description(std::string_view content)
{
    return content.size() > 12 && (content.starts_with("\x1a\x01") || content.starts_with("\x1e\x02"));
}

bool is_written_out(std::string_view value)
{
    return value.starts_with("hex:") || value.starts_with("b64:");
}

std::string to_hexadecimal(std::string_view bytes)
{
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string text;
    for (const char byte : bytes)
        for (const unsigned shift : {4U, 0U})
            text += digits[(static_cast<unsigned char>(byte) >> shift) & 0xfU];
    return text;
}

// As ncurses takes it instead of a directory (terminfo(5)); empty without a description. What an agent put there does not lead out of
// where agents write.
std::string read_description(const UserPaths &paths, const std::string &directory, const std::string &terminal)
{
    try {
        const UserPlacePtr place = paths.follow(directory + "/" + terminal[0] + "/" + terminal);
        if (!S_ISREG(place->facts.st_mode)) return "";
        const UniqueFd file =
            open_at(FdRef(AT_FDCWD), "/proc/self/fd/" + std::to_string(place->fd.get()), O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (!file) return "";
        const std::string content = read_whole(file, description_limit, "a description of the terminal");
        return is_description(content) ? "hex:" + to_hexadecimal(content) : "";
    } catch (const Failure &) { // best_effort: without it the terminal may be unknown inside
        return "";
    }
}

std::string value_of(const char *name)
{
    const char *value = std::getenv(name);
    return value == nullptr ? "" : value;
}

// The user's own description of TERM, in the order in which ncurses looks; empty without one. The host's own are in every session.
std::string own_description(const EarlyLook &look)
{
    const std::string terminal = value_of("TERM");
    if (terminal.empty() || terminal[0] == '.' || terminal.find('/') != std::string::npos) return "";
    const UserPaths paths(look.agents);
    const std::string named = value_of("TERMINFO");
    const std::string directories = (is_written_out(named) ? "" : named) + ":" + look.home + "/.terminfo:" + value_of("TERMINFO_DIRS");
    for (const auto directory : split(directories, ':'))
        if (directory.starts_with('/'))
            if (auto description = read_description(paths, std::string(directory), terminal); !description.empty()) return description;
    return "";
}

// `value` is PATH. A directory there may be a link to what a session shows, as fnm and nix make them. The runner judges names alone, so
// each directory comes with its own name behind it.
std::string with_link_targets(const UserPaths &paths, std::string_view value)
{
    std::string text;
    for (const auto directory : split(value, ':')) {
        text.append(text.empty() ? "" : ":").append(directory);
        if (!directory.starts_with('/')) continue;
        try {
            const std::string target = paths.follow(std::string(directory))->path;
            if (target != directory && target.find(':') == std::string::npos) text.append(":").append(target);
        } catch (const Failure &) { // best_effort: nothing exists there, or an agent made a link that leads out of where agents write
        }
    }
    return text;
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
        const std::string_view argument = argv[index];
        if (!argument.starts_with(prefix)) break;
        const std::string_view name = argument.substr(0, argument.find('='));
        const auto *const option = std::find_if(std::begin(own_options), std::end(own_options),
                                                [&](const Option &one) { return one.name == (one.needed == nullptr ? argument : name); });
        if (option == std::end(own_options)) refuse(argument);
        std::string value;
        if (option->needed != nullptr && name != argument) value = argument.substr(name.size() + 1);
        if (option->needed != nullptr && name == argument && ++index < argc) value = argv[index];
        if (option->needed != nullptr) require_value(value, option->needed);
        option->take(options, value);
    }
    for (; index < argc; ++index)
        options.request.arguments.emplace_back(argv[index]);
    if (!options.request.allow.empty() && options.request.narrowing.network != LeftNetwork::all)
        throw Failure(FailureKind::command_line,
                      "--pi-agent-allow adds a host, and --pi-agent-network takes all hosts away; say one of them" + std::string(see_help));
    return options;
}

// The ways in which a network is closed, by the policy or by an option of the start.

std::string closed_network_notice(const NetworkPolicy &network, const AgentEnded &ended)
{
    const bool has_failed = ended.by_signal ? ended.value == SIGINT : ended.value != 0; // who waits in vain gives up with Ctrl-C
    if (network.mode == NetworkMode::full || !has_failed) return "";
    const char *remedy = is_of_start(network) ? "start without that option" : "ask the administrator to change that key";
    return "if the agent could not connect: " + name_of(network) + " allows " + reached_in(network) + "; " + remedy;
}

// The wrapper's own look at the policy.

UniqueFd open_cwd()
{
    return refusing([] { return open_working_directory("."); });
}

EarlyLook refuse_early(FdRef cwd, const AskedOfStart &asked)
{
    return refusing([&] { return look_early(cwd, asked); });
}

void record_refusal(const EarlyRefusal &refusal, Program program) noexcept
{
    constexpr int patience_milliseconds = 500;
    if (problem_of_user_namespace()) return; // its numbers are other users' on the host
    try {
        RecordSubject subject;
        subject.uid = Uid(getuid());
        if (const auto account = find_account(*subject.uid)) subject.user = account->name;
        subject.program = to_string(program);
        std::error_code unknown;
        subject.directory = std::filesystem::current_path(unknown).string();
        send_to_journal(record_fields(subject, DeniedEvent{refusal.status(), refusal.what(), refusal.kind()}, "pi"), patience_milliseconds);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): the user is told in any case
    }
}

void put_variables_into(Request &request, const EarlyLook &look)
{
    std::set<std::string> kept_out;
    const UserPaths paths(look.agents);
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string assignment = *entry;
        const std::size_t equals = assignment.find('=');
        if (equals == std::string::npos) continue;
        const std::string name = assignment.substr(0, equals);
        const bool is_path_of_terminals = name == "TERMINFO" && !is_written_out(std::string_view(assignment).substr(equals + 1));
        const std::string value = assignment.substr(equals + 1);
        if (is_passed_variable(name) && !is_path_of_terminals)
            request.presentation.push_back(name == "PATH" ? "PATH=" + with_link_targets(paths, value) : assignment);
        const bool is_other_place = has_word(agent_directory_names, name) && value != look.read_as_user.front(); // its configuration
        if (!value.empty() && (is_other_place || !providers_of_key(name).empty())) kept_out.insert(name);
    }
    if (const std::string description = own_description(look); !description.empty())
        request.presentation.push_back("TERMINFO=" + description);
    if (request.program == Program::agent) request.kept_out.assign(kept_out.begin(), kept_out.end());
}

} // namespace pi_agent
