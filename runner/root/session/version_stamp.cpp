// Which version used a home last.
#include "runner/root/session/state_directory.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/as_agent/replacement.hpp"

namespace pi_agent {

namespace {

constexpr const char *stamp_name = "version"; // in meta
constexpr std::size_t stamp_limit = 256;

std::optional<std::string> stamp_text(const StateDirectory &state)
{
    if (defence_is_on("root-stamp")) return read_meta_file(state, stamp_name, stamp_limit);
    const UniqueFd copy = find_beneath(state.home, std::string(".local/state/") + version_copy, O_RDONLY);
    return copy ? std::optional(read_whole(copy, stamp_limit, version_copy)) : std::nullopt;
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

} // namespace pi_agent
