// Which variables of the user's shell a request carries, and what TERM stands for.
#include "common/base/files.hpp"
#include "wrapper/session_client.hpp"

#include <cstdlib>

namespace pi_agent {

namespace {

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
