// Asks docker's daemon over its socket.
#include "runner/root/method/sandbox.hpp"

#include "common/host/beneath.hpp"

#include <exception>
#include <sys/socket.h>
#include <sys/un.h>

namespace pi_agent {

namespace {

constexpr std::size_t answer_limit = std::size_t{1} << 20U; // bytes
constexpr const char *strange_answer = "its answer is not one of docker";
constexpr const char *remedy = "; look at it (systemctl status docker), or choose another method";

[[noreturn]] void refuse(const std::string &reason)
{
    throw Failure(FailureKind::sandbox_method,
                  std::string("sandbox.method docker needs docker's daemon at ") + docker_socket + ", and " + reason + remedy);
}

[[noreturn]] void refuse_errno(const std::string &what)
{
    refuse(SystemFailure(errno, what).what());
}

UniqueFd connect_to_daemon()
{
    sockaddr_un address{AF_UNIX, {}};
    std::string_view(docker_socket).copy(address.sun_path, sizeof address.sun_path - 1);
    UniqueFd daemon = UniqueFd::adopt(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!daemon) throw_errno("making a socket");
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
    if (connect(daemon.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) refuse_errno("connecting to it failed");
    ucred who{};
    socklen_t length = sizeof who;
    if (getsockopt(daemon.get(), SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) throw_errno("asking who answers for docker");
    if (who.uid != 0 && defence_is_on("docker:socket-of-root"))
        refuse("the program that listens there is not root's (uid " + std::to_string(who.uid) + ")");
    return daemon;
}

std::string ask(const std::string &what, Deadline deadline)
{
    const UniqueFd daemon = connect_to_daemon();
    const std::string question = what + " HTTP/1.0\r\nHost: docker\r\n\r\n";
    if (send(daemon.get(), question.data(), question.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(question.size()))
        refuse_errno("asking it failed");
    std::string text;
    std::array<char, 16384> part{};
    for (;;) {
        if (!wait_for_input(daemon, deadline)) refuse("it did not answer in time");
        const ssize_t length = recv(daemon.get(), part.data(), part.size(), 0);
        if (length == 0) return text;
        if (length < 0 && errno != EINTR && errno != EAGAIN) refuse_errno("reading its answer failed");
        if (length > 0) text.append(part.data(), static_cast<std::size_t>(length));
        if (text.size() > answer_limit) refuse("its answer is too long");
    }
}

int status_of(const std::string &text)
{
    int status = 0;
    const std::size_t space = text.find(' ');
    if (const char *end = text.data() + text.size(); text.compare(0, 7, "HTTP/1.") != 0 || space == std::string::npos ||
                                                     std::from_chars(text.data() + space + 1, end, status).ec != std::errc())
        refuse(text.empty() ? "it closed the connection without an answer" : strange_answer);
    return status;
}

} // namespace

gid_t require_docker_socket(const AsRoot & /*root*/)
{
    const UniqueFd directory = open_trusted("/run", O_PATH | O_DIRECTORY, "directory");
    struct stat facts {};
    if (fstatat(directory.get(), "docker.sock", &facts, AT_SYMLINK_NOFOLLOW) != 0) refuse_errno("looking for it failed");
    const bool groups = (facts.st_mode & S_IWGRP) != 0 && facts.st_gid != 0;
    const bool is_roots = S_ISSOCK(facts.st_mode) && facts.st_uid == 0 && (facts.st_mode & S_IWOTH) == 0 &&
                          (!groups || group_name(Gid(facts.st_gid)) == "docker");
    if (!is_roots && defence_is_on("docker:socket-of-root"))
        throw Failure(ExitStatus::configuration,
                      std::string(docker_socket) +
                          " must be a socket that only root and the group docker can write to, because whoever writes to it is root on "
                          "this host; make it root:docker with mode 0660, or choose another method");
    return groups ? facts.st_gid : 0;
}

DockerAnswer parse_docker_answer(const std::string &text, bool is_list)
{
    DockerAnswer answer{status_of(text), {}};
    const std::size_t body = text.find("\r\n\r\n");
    if (body == std::string::npos) refuse(strange_answer);
    answer.body = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(body) + 4, text.end(), nullptr, false);
    if (!(is_list && answer.status == 200 ? answer.body.is_array() : answer.body.is_object())) refuse(strange_answer);
    const auto reason = answer.body.find("message");
    const bool has_reason = reason != answer.body.end() && reason->is_string();
    if (answer.status != 200 && answer.status != 404)
        refuse("it answers " + std::to_string(answer.status) + (has_reason ? ": " + escape_for_display(reason->get<std::string>()) : ""));
    return answer;
}

std::vector<std::string> parse_ended_containers(const std::string &text)
{
    const DockerAnswer answer = parse_docker_answer(text, true);
    if (answer.status != 200) refuse("it lists no containers");
    std::vector<std::string> found;
    try {
        for (const auto &container : answer.body) {
            const auto names = container.at("Names").get<std::vector<std::string>>();
            const auto state = container.at("State").get<std::string>();
            if (state == "created" || state == "exited" || state == "dead") found.insert(found.end(), names.begin(), names.end());
        }
    } catch (const nlohmann::json::exception &) { // one is missing, or something else
        refuse(strange_answer);
    }
    return found;
}

std::vector<std::string> ended_containers(const AsRoot & /*root*/, Deadline deadline)
{
    // {"name":["^/pi-agent-"],"status":["created","exited","dead"]}
    return parse_ended_containers(ask("GET /containers/json?all=true&filters=%7B%22name%22%3A%5B%22%5E%2Fpi-agent-%22%5D%2C%22status%22%3A"
                                      "%5B%22created%22%2C%22exited%22%2C%22dead%22%5D%7D",
                                      deadline));
}

void remove_ended_container(const AsRoot & /*root*/, const std::string &name, Deadline deadline)
{
    const int status = status_of(ask("DELETE /containers/" + name + "?v=true", deadline));
    if (status != 204 && status != 404 && status != 409) refuse("it answers " + std::to_string(status) + " when told to remove " + name);
}

DockerAnswer ask_docker(const AsRoot & /*root*/, const std::string &path, Deadline deadline)
{
    return parse_docker_answer(ask("GET " + path, deadline));
}

void remove_container(const AsRoot &root, const std::string &name, Deadline deadline) noexcept
{
    try {
        require_docker_socket(root);
        ask("DELETE /containers/" + name + "?force=true&v=true", deadline);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): best_effort: said in the header
    }
}

} // namespace pi_agent
