// Parses a user's JSON with bounds, and merges managed values over it.
#include "runner/json_merge.hpp"

#include "common/error.hpp"

#include <algorithm>

namespace pi_agent {

namespace {

constexpr int depth_limit = 128; // dumping and comparing recurse

std::string place_in(const std::string &text, std::size_t byte)
{
    const std::size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    const std::size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
    const std::size_t column = newline == std::string::npos ? end + 1 : end - newline;
    return std::to_string(line) + ":" + std::to_string(column);
}

} // namespace

nlohmann::json parse_json_object(const std::string &text, const std::string &name)
{
    const auto refuse_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json &) {
        if (depth > depth_limit)
            throw Failure(ExitStatus::configuration, name + ": nested deeper than " + std::to_string(depth_limit) + " levels");
        return true;
    };
    nlohmann::json document;
    try {
        document = nlohmann::json::parse(text, refuse_depth);
    } catch (const nlohmann::json::parse_error &error) {
        throw Failure(ExitStatus::configuration,
                      name + ":" + place_in(text, error.byte) + ": this is not valid JSON; correct it there, nothing was changed");
    } catch (const nlohmann::json::out_of_range &) {
        // The library names no place for this one.
        throw Failure(ExitStatus::configuration, name + ": it holds a number that is too large; correct it, nothing was changed");
    }
    if (!document.is_object()) throw Failure(ExitStatus::configuration, name + ":1:1: the top level must be an object, {…}");
    return document;
}

nlohmann::json merge_managed(nlohmann::json host, const nlohmann::json &managed)
{
    if (!host.is_object() || !managed.is_object()) return managed;
    for (const auto &[key, value] : managed.items()) {
        const auto found = host.find(key);
        host[key] = found == host.end() ? value : merge_managed(*found, value);
    }
    return host;
}

} // namespace pi_agent
