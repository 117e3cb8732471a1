// Which version used a home last.
#include "runner/root/session/state_directory.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/replacement.hpp"

namespace pi_agent {

namespace {

constexpr const char *stamp_name = "version"; // in meta
constexpr std::size_t stamp_limit = 256;
constexpr const char *copy_name = ".pi-agent-version";

std::optional<std::string> stamp_text(const StateDirectory &state)
{
    if (defence_is_on("root-stamp")) return read_meta_file(state, stamp_name, stamp_limit);
    const UniqueFd copy = find_beneath(state.home, std::string(".local/state/") + copy_name, O_RDONLY);
    return copy ? std::optional(read_whole(copy, stamp_limit, copy_name)) : std::nullopt;
}

// Opens or makes .local/state; none where the agent has something else instead of one of these directories.
UniqueFd make_state_home(FdRef home)
{
    UniqueFd current = open_beneath(home, "", O_RDONLY | O_DIRECTORY);
    for (const char *name : {".local", "state"}) {
        if (mkdirat(current.get(), name, 0700) != 0 && errno != EEXIST)
            throw_errno(std::string("creating ") + name + " in the agent's home");
        current = find_own_directory_beneath(current, name);
        if (!current) break;
    }
    return current;
}

bool holds(FdRef directory, const char *name, const std::string &text)
{
    const UniqueFd file = find_beneath(directory, name, O_RDONLY | O_NONBLOCK);
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
    return static_cast<std::size_t>(facts.st_size) == text.size() && read_whole(file, stamp_limit, name) == text;
}

} // namespace

std::optional<Version> read_stamp(const StateDirectory &state)
{
    std::optional<std::string> text = stamp_text(state);
    if (!text) return std::nullopt;
    if (!text->empty() && text->back() == '\n') text->pop_back();
    if (const auto version = parse_version(*text)) return version;
    const std::string path = split_last(state.home_path).first + "/meta/" + stamp_name;
    throw Failure(FailureKind::agent_home, path + " must hold the version of pi-agent that last used the agent's home, but it holds \"" +
                                               escape_for_display(*text) +
                                               "\"; ask the administrator to write that version into it (e.g. 0.1.0), or to remove it: "
                                               "then the home counts as new and no migration hook runs");
}

void write_stamp(const StateDirectory &state, const Version &version)
{
    write_meta_file(state, stamp_name, to_string(version) + "\n");
}

void copy_version(const AsUser & /*agent*/, FdRef home, FdRef staging, const Version &version)
{
    const std::string text = to_string(version) + "\n";
    const UniqueFd directory = make_state_home(home);
    if (!directory || holds(directory, copy_name, text)) return;
    Replacement file(staging, 0600);
    write_whole(file.fd(), text, copy_name);
    file.commit(directory, copy_name);
}

} // namespace pi_agent
