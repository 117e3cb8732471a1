// pi: the wrapper that a user types. Unprivileged; refuses early, hands the request to the root-only runner, ends as the agent ends.
#include "common/base/build_settings.hpp"
#include "common/base/terminal_text.hpp"

#include "common/host/identity.hpp"
#include "common/seams/seams.hpp"
#include "wrapper/aftermath.hpp"
#include "wrapper/output_files.hpp"

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

// A prompt is nobody else's business, and every user of the host can read the arguments of every process.
void hide_arguments(int argc, char **argv)
{
    for (int index = 1; index < argc; ++index)
        std::memset(argv[index], 0, std::strlen(argv[index]));
}

Request complete_request(Request request, const std::optional<UserTerminal> &terminal, const EarlyLook &look)
{
    const mode_t mask = umask(0);
    umask(mask);
    request.umask = mask;
    rlimit open_files{};
    if (getrlimit(RLIMIT_NOFILE, &open_files) == 0) request.open_files = open_files.rlim_cur;
    put_variables_into(request, look);
    if (terminal) {
        request.on_terminal = terminal->on_terminal();
        request.window = terminal->size();
    }
    return request;
}

AgentEnded run(const Request &asked, const std::vector<AskedPort> &ports)
{
    const UniqueFd cwd = open_cwd();
    const EarlyLook look = refuse_early(cwd, asked_by(asked));
    if (asked.debug) tell(look.decision);
    if (asked.program == Program::agent && asks_for_self_update(asked.arguments))
        throw Failure(FailureKind::self_update,
                      "the agent is installed for the whole host, so a session cannot update it; ask the administrator for a newer "
                      "version. Your own packages you can update: pi update --extensions");
    // Inside of a job the session is where it should be; and a canary is for this very host.
    const bool is_placed = look.job && asked.program != Program::canary && !has_ancestor(looks_like_job);
    if (is_placed && !ports.empty())
        throw Failure(FailureKind::start_asks,
                      "denied: this session runs on a node of the cluster, and --pi-agent-port leads to sessions of "
                      "this host alone; leave the option out");
    const auto client = [&](SessionId &session) {
        std::optional<UserTerminal> terminal = UserTerminal::find();
        Request request = complete_request(asked, terminal, look);
        std::optional<OutputFiles> files; // whole when this returns, before the look at what the session left
        if (!is_placed) files.emplace();  // on a node they are pipes anyway
        return run_client(ClientInput{std::move(request), cwd,
                                      files ? files->stdio() : std::array{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}, std::move(terminal),
                                      look.clipboard, SessionPorts(ports), is_placed ? look.job : std::nullopt},
                          session);
    };
    if (!is_placed) return run_watched(look, asked.program, client);
    SessionId session; // the node looks at what it leaves
    return client(session);
}

// A policy can be wrong in several places, each with a line of its own; the last line says where to read on.
int report(const Failure &failure)
{
    std::string said = failure.what();
    if (const std::string pointer = pointer_to(failure.kind(), failure.status()); !pointer.empty()) said += "\n" + pointer;
    for (const auto line : split(said, '\n'))
        tell(std::string(line), true);
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
        if (options.help) {
            const auto terminal = text_terminal(STDOUT_FILENO);
            const auto text = terminal ? fitted(wrapper_help, *terminal) : wrapper_help;
            return std::fputs(text.c_str(), stdout) < 0 ? static_cast<int>(ExitStatus::system_failure) : 0;
        }
        if (options.explain) {
            execl(build::ctl_path, "pi", "explain", static_cast<char *>(nullptr));
            throw_errno(std::string("running ") + build::ctl_path);
        }
        if (options.on_node) return serve_node();
        end_as(run(options.request, options.ports));
    } catch (const EarlyRefusal &refusal) {
        record_refusal(refusal, program);
        return report(refusal);
    } catch (const Failure &failure) {
        return report(failure);
    } catch (const std::exception &failure) {
        return report(Failure(ExitStatus::internal, std::string("internal error: ") + failure.what()));
    }
}
