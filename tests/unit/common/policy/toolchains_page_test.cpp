// docs/concepts/toolchain-directories.md is what home_directories.toml says.
#include "common/base/text.hpp"

#include <cstdlib>
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>

using namespace pi_agent;

namespace toolchains_page_test {

namespace {

const std::string page = std::string(PI_AGENT_EXAMPLES) + "/../docs/concepts/toolchain-directories.md";
const std::string mark = "<!-- What follows is written by tests/unit/common/policy/toolchains_page_test.cpp. -->\n";

// The tables, with members as toolchains.cpp of common/policy has them.
enum class HomeKind { program, own_path, environment, cache };
struct Shown {
    std::string_view language;
    HomeKind as;
    std::string_view paths;
};
constexpr Shown shown[] = {
#include "common/shown.inc"
};
struct Masked {
    std::string_view directory;
    std::string_view names;
};
constexpr Masked masked[] = {
#include "common/masked.inc"
};

std::string kind(HomeKind as)
{
    switch (as) {
    case HomeKind::program:
        return "programs";
    case HomeKind::own_path:
        return "at their own path";
    case HomeKind::environment:
        return "environments";
    case HomeKind::cache:
        return "caches";
    }
    return "";
}

std::string codes_of(std::string_view names, const std::string &before)
{
    std::string text;
    for (const auto name : split(names, ' '))
        text.append(text.empty() ? "`" : " `").append(before).append(name).append("`");
    return text;
}

std::string written()
{
    std::string text = "\n## Directories by language\n\n| for | kind | directories |\n| --- | --- | --- |\n";
    std::string_view before;
    for (const auto &group : shown) {
        const std::string language = group.language == before ? " " : " " + std::string(group.language) + " ";
        text.append("|").append(language).append("| ").append(kind(group.as)).append(" | ").append(codes_of(group.paths, "~/")) += " |\n";
        before = group.language;
    }
    text += "\n## Names that are hidden\n\nThese names hold credentials. A session does not find them, even if they appear while it "
            "runs.\n\n| in | hidden names |\n| --- | --- |\n";
    for (const auto &one : masked)
        text.append("| `~/").append(one.directory).append("` | ").append(codes_of(one.names, "")) += " |\n";
    return text;
}

} // namespace

// To write it anew: PI_AGENT_WRITE_POLICY_PAGE=1
TEST_CASE("the page of toolchains' directories is what the table says")
{
    std::ifstream stream(page);
    std::stringstream text;
    text << stream.rdbuf();
    const std::string found = text.str();
    const std::size_t at = found.find(mark);
    REQUIRE(at != std::string::npos);
    const std::string whole = found.substr(0, at + mark.size()) + written();
    if (std::getenv("PI_AGENT_WRITE_POLICY_PAGE") != nullptr) // NOLINT(concurrency-mt-unsafe)
        std::ofstream(page) << whole;
    else
        CHECK_MESSAGE(found == whole, "docs/concepts/toolchain-directories.md is not what home_directories.toml of common/policy says; "
                                      "PI_AGENT_WRITE_POLICY_PAGE=1 writes it");
}

} // namespace toolchains_page_test
