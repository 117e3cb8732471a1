// The request: what is taken is exactly what the wrapper would send of it, byte for byte, and within its bounds.
#include "common/base/request.hpp"
#include "runner/plan/host_view.hpp"
#include "support/property.hpp"

#include <climits>
#include <fuzzer/FuzzedDataProvider.h>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

void require_request(const Request &request)
{
    for (const auto &argument : request.arguments)
        require(argument.find('\0') == std::string::npos, "an argument with a NUL byte");
    for (const auto &assignment : request.presentation)
        require(is_passed_variable(assignment.substr(0, assignment.find('='))) && assignment.find('=') != std::string::npos &&
                    assignment.find('\0') == std::string::npos,
                "a variable that is never passed on");
    require(request.umask <= 0777 && request.program <= Program::canary && request.tmpdir.size() < PATH_MAX, "beyond a bound");
    require(request.tmpdir.find('\0') == std::string::npos, "a path with a NUL byte");
    for (const auto &host : request.allow)
        require(!host.empty() && host.size() <= 300 && host.find('\0') == std::string::npos, "a host to add that cannot be one");
    require(request.ports.size() <= ports_limit, "too many ports");
    for (const auto port : request.ports)
        require(port > 0 && port <= UINT16_MAX, "a port that is none");
    for (const auto &name : request.kept_out)
        require(!name.empty() && name.find('\n') == std::string::npos && name.find('=') == std::string::npos,
                "a kept variable that is none");
}

// What the runner looks for in arguments: paths that are none but what they say, each in its own argument.
void require_named_files(std::vector<std::string> arguments)
{
    const auto files = find_named_files(arguments, "/home/alice/projects/demo", "/home/alice");
    std::size_t next = 0;
    for (const auto &file : files) {
        require(file.argument >= next && file.argument < arguments.size() && file.begin < arguments[file.argument].size(),
                "no argument's file");
        require(file.path.size() > 1 && file.path.front() == '/' && file.path.back() != '/', "a file without a name");
        require(file.path.find("//") == std::string::npos && (file.path + "/").find("/../") == std::string::npos,
                "a path that is not plain");
        next = file.argument + 1;
        rename_argument(arguments, file, place_of_copy(next, file));
    }
}

bool is_taken(std::string_view bytes)
{
    const auto request = unless_refused([&] { return decode_request(bytes); });
    if (!request) return false;
    require_request(*request);
    require_named_files(request->arguments);
    require(encode_request(*request) == bytes, "taken, and not what a wrapper sends");
    return true;
}

Request make_request(FuzzedDataProvider &choices)
{
    constexpr std::array names = {"TERM", "LANG", "LC_ALL", "SSH_TTY", "NO_COLOR", "LC_", "PATH", "GIT_DIR", "LD_PRELOAD"};
    Request request;
    for (auto count = choices.ConsumeIntegralInRange(0, 8); count > 0; --count)
        request.arguments.push_back(choices.ConsumeRandomLengthString(64));
    for (auto count = choices.ConsumeIntegralInRange(0, 4); count > 0; --count)
        request.presentation.push_back(choices.PickValueInArray(names) + std::string("=") + choices.ConsumeRandomLengthString(16));
    request.umask = choices.ConsumeIntegral<std::uint16_t>();
    request.open_files = choices.ConsumeIntegral<std::uint64_t>();
    for (bool &one : request.on_terminal)
        one = choices.ConsumeBool();
    request.window = {choices.ConsumeIntegral<std::uint16_t>(), choices.ConsumeIntegral<std::uint16_t>(), 7, 9};
    request.program = choices.PickValueInArray({Program::agent, Program::shell, Program::canary});
    request.tmpdir = choices.ConsumeRandomLengthString(64);
    request.debug = choices.ConsumeBool();
    request.sessions = choices.ConsumeBool();
    request.narrowing = {choices.PickValueInArray({LeftNetwork::all, LeftNetwork::loopback, LeftNetwork::none}), choices.ConsumeBool(),
                         choices.ConsumeBool()};
    for (auto count = choices.ConsumeIntegralInRange(0, 3); count > 0; --count)
        request.allow.push_back(choices.ConsumeRandomLengthString(32));
    for (auto count = choices.ConsumeIntegralInRange(0, 3); count > 0; --count)
        request.ports.push_back(choices.ConsumeIntegral<std::uint32_t>());
    for (auto count = choices.ConsumeIntegralInRange(0, 3); count > 0; --count)
        request.kept_out.push_back(choices.ConsumeRandomLengthString(8));
    return request;
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    is_taken(input);
    FuzzedDataProvider choices(reinterpret_cast<const std::uint8_t *>(input.data()), input.size());
    std::string bytes = encode_request(make_request(choices));
    is_taken(bytes);
    const auto changed = choices.ConsumeIntegralInRange<std::size_t>(0, bytes.size() - 1);
    bytes[changed] = static_cast<char>(choices.ConsumeIntegral<std::uint8_t>());
    is_taken(bytes);
    is_taken(std::string_view(bytes).substr(0, changed));
}
