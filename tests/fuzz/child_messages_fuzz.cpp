// What children with a user's or the agent's rights send to root and to each other: only the form in which it is sent, and no path that
// leaves its tree.
#include "common/base/text.hpp"
#include "runner/as_agent/sync_messages.hpp"
#include "runner/as_user/protected_paths.hpp"
#include "runner/inside/canary.hpp"
#include "support/property.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

void require_beneath(const std::vector<std::string> &paths)
{
    for (const auto &path : paths) {
        require(!path.empty() && path.front() != '/' && path.find('\0') == std::string::npos, "a path that is not relative");
        const std::vector<std::string> names = path_components(path);
        require(std::find(names.begin(), names.end(), "..") == names.end(), "a path that leaves its tree");
    }
}

void try_sync(std::string_view bytes)
{
    const auto message = unless_refused([&] { return decode_fields<SyncMessage>(bytes); });
    if (!message) return;
    require(encode(*message) == bytes, "a message of the sync was taken, and is not what is sent");
    for (const auto &entry : message->entries)
        require(is_plain_relative(entry.path) && entry.path.find('\0') == std::string::npos, "a listed path that leaves the home");
}

void try_all(std::string_view bytes)
{
    try_sync(bytes);
    const auto wanted = unless_refused([&] { return decode_fields<WantedNumbers>(bytes); });
    if (wanted) require(wanted->numbers.size() <= wanted_limit && encode(*wanted) == bytes, "more was wanted than is sent");
    const auto paths = unless_refused([&] { return decode_paths(bytes); });
    if (paths) require_beneath(*paths);
    if (paths) require(Encoder().texts(*paths).bytes() == bytes, "paths that nobody sends");
    const auto guarded = unless_refused([&] { return decode_guarded_paths(bytes); });
    if (!guarded) return;
    for (const auto *some : {&guarded->read_only, &guarded->placeholders, &guarded->kept, &guarded->masked})
        require_beneath(*some);
}

void try_access(const std::string &line)
{
    const auto answers = unless_refused([&] { return decode_path_access(line); });
    if (!answers) return;
    const auto again = decode_path_access(encode(*answers));
    require(encode(again) == encode(*answers), "an answer about paths is another one when it is sent again");
}

} // namespace

// The bytes as they are; and as fields: a byte below 128 is a number, another the length of the text that follows.
void pi_agent::fuzz::try_input(std::string_view input)
{
    try_access(std::string(input));
    try_all(input);
    Encoder encoder;
    while (!input.empty()) {
        const auto byte = static_cast<unsigned char>(input.front());
        input.remove_prefix(1);
        if (byte < 128) {
            encoder.number(byte);
            continue;
        }
        encoder.text(input.substr(0, byte - 128U));
        input.remove_prefix(std::min<std::size_t>(byte - 128U, input.size()));
    }
    try_all(encoder.bytes());
}
