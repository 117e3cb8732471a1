// Files of variables: what is read is a variable that a program can be given, and written out with quotes it is read again as it was.
#include "common/base/text.hpp"
#include "common/policy/policy_sections.hpp"
#include "support/property.hpp"

#include <algorithm>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

bool is_in_order(const std::string &where, std::ptrdiff_t &last, std::ptrdiff_t lines)
{
    const std::ptrdiff_t line = std::stol(where.substr(where.rfind(':') + 1));
    const bool is = where.starts_with("name:") && line >= last && line <= lines;
    last = line;
    return is;
}

void require_variable(const EnvAssignment &assignment)
{
    require(is_variable_name(assignment.name), "a name that is none");
    std::string_view rest = assignment.value;
    while (!rest.empty()) {
        const CodePoint character = decode_utf8(rest);
        require(character.length > 0, "a value that is not UTF-8");
        require(character.value >= 0x20 || character.value == '\t' || character.value == '\n', "a control character");
        rest.remove_prefix(character.length);
    }
    require(assignment.name.size() + assignment.value.size() + 2 <= 128UL * 1024, "longer than execve(2) takes");
}

std::string written(const std::vector<EnvAssignment> &assignments)
{
    std::string text;
    for (const auto &assignment : assignments) {
        text += assignment.name + "=\"";
        for (const char byte : assignment.value) {
            if (std::string_view("\"\\`$").find(byte) != std::string_view::npos) text += '\\';
            text += byte;
        }
        text += "\"\n";
    }
    return text;
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    const auto read = [](const std::string &text) { return unless_refused([&] { return parse_env_file(text, "name"); }); };
    require_linear(input, read);
    const auto assignments = read(std::string(input));
    if (!assignments) return;
    std::ptrdiff_t last = 1;
    for (const auto &assignment : *assignments) {
        require_variable(assignment);
        require(is_in_order(assignment.where, last, 1 + std::count(input.begin(), input.end(), '\n')), "a place that is not there");
    }
    const auto again = read(written(*assignments));
    require(again && again->size() == assignments->size(), "what was read cannot be written and read again");
    for (std::size_t index = 0; index < again->size(); ++index)
        require((*again)[index].name == (*assignments)[index].name && (*again)[index].value == (*assignments)[index].value,
                "what was read is not what was written");
}
