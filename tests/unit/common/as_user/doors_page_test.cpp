// docs/reference/doors.md is what doors.toml says.
#include "common/as_user/doors.hpp"

#include "common/base/text.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

using namespace pi_agent;

namespace doors_page_test {

namespace {

const std::string page = std::string(PI_AGENT_EXAMPLES) + "/../docs/reference/doors.md";
const std::string mark = "<!-- What follows is written by tests/unit/common/as_user/doors_page_test.cpp. -->\n";

std::string codes(std::string_view list)
{
    std::string text;
    for (const auto one : split(list, ' ')) {
        const std::string ticks = one.find('`') == std::string_view::npos ? "`" : "``";
        text += (text.empty() ? "" : " ") + ticks + std::string(one) + ticks;
    }
    return text;
}

std::string told(const Door &door)
{
    if (door.what.empty()) return "as git's";
    const std::string beside = door.beside.empty() ? "" : "beside " + codes(door.beside);
    return door.words.empty() ? (beside.empty() ? "always" : beside) : "with " + codes(door.words);
}

std::string reference()
{
    std::string text = "\n| files | taken by | told | in a session | documented in |\n| --- | --- | --- | --- | --- |\n";
    for (const auto &door : door_table)
        text += "| " + codes(door.paths) + " | " + std::string(door.by) + " | " + told(door) + " | " +
                (door.protect == DoorGuard::none ? "" : "read-only") + " | " + std::string(door.source) + " |\n";
    return text;
}

} // namespace

// To write it anew: PI_AGENT_WRITE_POLICY_PAGE=1
TEST_CASE("the page of files that run code later is what the table says")
{
    std::ifstream file(page);
    REQUIRE(file);
    std::ostringstream text;
    text << file.rdbuf();
    const auto begin = text.str().find(mark);
    REQUIRE(begin != std::string::npos);
    const auto whole = text.str().substr(0, begin) + mark + reference();
    if (std::getenv("PI_AGENT_WRITE_POLICY_PAGE") != nullptr) // NOLINT(concurrency-mt-unsafe)
        std::ofstream(page) << whole;
    else
        CHECK_MESSAGE(text.str() == whole, "docs/reference/doors.md is not what doors.toml of common/as_user says; "
                                           "PI_AGENT_WRITE_POLICY_PAGE=1 writes it");
}

} // namespace doors_page_test
