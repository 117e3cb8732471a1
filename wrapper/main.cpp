// pi: the wrapper that a user types. Unprivileged; refuses early, hands the request to the root-only runner, ends as the agent ends.
#include "common/base/build_settings.hpp"

#include "common/host/identity.hpp"
#include "common/seams/seams.hpp"
#include "wrapper/aftermath.hpp"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

// A closed standard descriptor would be taken by the next file that is opened.
void open_missing_stdio()
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) return;
}

void put_variables_into(Request &request, const std::string &config_directory)
{
    std::set<std::string> kept_out;
    for (char **entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string assignment = *entry;
        const std::size_t equals = assignment.find('=');
        if (equals == std::string::npos) continue;
        const std::string name = assignment.substr(0, equals);
        if (is_passed_variable(name)) request.presentation.push_back(assignment);
        const std::string value = assignment.substr(equals + 1);
        const bool is_other_place = has_word(agent_directory_names, name) && value != config_directory;
        if (!value.empty() && (is_other_place || !providers_of_key(name).empty())) kept_out.insert(name);
    }
    if (request.program == Program::agent) request.kept_out.assign(kept_out.begin(), kept_out.end());
}

// A prompt is nobody else's business, and every user of the host can read the arguments of every process.
void hide_arguments(int argc, char **argv)
{
    for (int index = 1; index < argc; ++index)
        std::memset(argv[index], 0, std::strlen(argv[index]));
}

Request complete_request(Request request, const std::optional<UserTerminal> &terminal, const std::string &config_directory)
{
    const mode_t mask = umask(0);
    umask(mask);
    request.umask = mask;
    rlimit open_files{};
    if (getrlimit(RLIMIT_NOFILE, &open_files) == 0) request.open_files = open_files.rlim_cur;
    put_variables_into(request, config_directory);
    if (terminal) {
        request.on_terminal = terminal->on_terminal();
        request.window = terminal->size();
    }
    return request;
}

AgentEnded run(const Request &asked)
{
    const UniqueFd cwd = open_cwd();
    const EarlyLook look = refuse_early(cwd, asked.narrowing, asked.allow);
    if (asked.debug) say("pi: " + look.decision + "\n");
    if (asked.program == Program::agent && asks_for_self_update(asked.arguments))
        throw Failure(FailureKind::self_update,
                      "the agent is installed for the whole host, so a session cannot update it; ask the administrator for a newer "
                      "version. Your own packages you can update: pi update --extensions");
    // Inside of a job the session is where it should be; and a canary is for this very host.
    const bool is_placed = look.job && asked.program != Program::canary && !has_ancestor(looks_like_job);
    const auto client = [&](std::string &session) {
        std::optional<UserTerminal> terminal = UserTerminal::find();
        Request request = complete_request(asked, terminal, look.read_as_user.front());
        return run_client(ClientInput{std::move(request),
                                      cwd,
                                      {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
                                      std::move(terminal),
                                      look.clipboard,
                                      is_placed ? look.job : std::nullopt},
                          session);
    };
    if (!is_placed) return run_watched(look, asked.program, client);
    std::string session; // the node looks at what it leaves
    return client(session);
}

// A policy can be wrong in several places, each with a line of its own; the last line says where to read on.
int report(const Failure &failure)
{
    std::string said = failure.what();
    if (const std::string pointer = pointer_to(failure.kind(), failure.status()); !pointer.empty()) said += "\n" + pointer;
    for (const auto line : split(said, '\n'))
        say("pi: " + std::string(line) + "\n");
    return static_cast<int>(failure.status());
}

} // namespace

int main(int argc, char **argv)
{
    open_missing_stdio();
    Program program = Program::agent;
    try {
        const WrapperOptions options = parse_options(argc, argv);
        program = options.request.program;
        if (defence_is_on("hidden-arguments")) hide_arguments(argc, argv);
        if (options.help) return std::fputs(wrapper_help, stdout) < 0 ? static_cast<int>(ExitStatus::system_failure) : 0;
        if (options.explain) {
            execl(build::ctl_path, "pi", "explain", static_cast<char *>(nullptr));
            throw_errno(std::string("running ") + build::ctl_path);
        }
        if (options.on_node) return serve_node();
        end_as(run(options.request));
    } catch (const EarlyRefusal &refusal) {
        record_refusal(refusal, program);
        return report(refusal);
    } catch (const Failure &failure) {
        return report(failure);
    } catch (const std::exception &failure) {
        return report(Failure(ExitStatus::internal, std::string("internal error: ") + failure.what()));
    }
}
