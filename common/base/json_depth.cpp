// Counting brackets outside of strings.
#include "common/base/json_depth.hpp"

namespace pi_agent {

bool nests_deeper(std::string_view json, int levels) noexcept
{
    int depth = 0;
    for (std::size_t at = 0; at < json.size(); ++at) {
        const char byte = json[at];
        if (byte == '"') {
            for (++at; at < json.size() && json[at] != '"'; ++at)
                if (json[at] == '\\') ++at;
        } else if (byte == '{' || byte == '[') {
            if (++depth > levels) return true;
        } else if (byte == '}' || byte == ']') {
            --depth;
        }
    }
    return false;
}

} // namespace pi_agent
