// The names that are made of an id.
#include "runner/wire/session_names.hpp"

namespace pi_agent {

bool is_session_id(const std::string &text) noexcept
{
    return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string scope_name(const std::string &id)
{
    return "pi-agent-run-" + id + ".scope";
}

std::optional<std::string> session_of_scope(const std::string &unit)
{
    const std::size_t name_start = unit.rfind('-') + 1; // npos + 1 is 0
    std::string id = unit.substr(name_start, unit.find('.', name_start) - name_start);
    return is_session_id(id) && unit == scope_name(id) ? std::optional(std::move(id)) : std::nullopt;
}

std::string cleanup_name(const std::string &id)
{
    return "pi-agent-cleanup-" + id + ".service";
}

std::string service_name(const std::string &id)
{
    return "pi-agent-" + id + ".service";
}

} // namespace pi_agent
