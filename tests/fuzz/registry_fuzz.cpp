// What a registry answers, what its packages say, npm's configuration, and the lines of the program that fetches.
#include "common/agents/fetch_order.hpp"
#include "support/property.hpp"

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

bool is_on_one_line(const std::string &text)
{
    return text.find_first_of("\n\r\t\0", 0, 4) == std::string::npos;
}

void try_answer(std::string_view text)
{
    for (const char *version : {"1.2.3", "latest"})
        if (const auto answer = unless_refused([&] { return read_registry_answer(text, "package", version); })) {
            require(is_package_version(answer->version), "a version that is not one");
            require(is_registry_url(answer->tarball) && is_on_one_line(answer->tarball), "an archive that lies at no harmless URL");
            const auto digest = read_integrity(answer->integrity);
            require(digest && digest->size() == 64, "a check sum that is no sha512");
        }
    if (const auto program = unless_refused([&] { return read_package_program(text, "package", "pi"); })) {
        require(is_package_version(program->version), "a version that is not one");
        require(is_path_in_package(program->program) && program->program[0] != '/', "a program outside of its package");
    }
}

void try_settings(std::string_view text)
{
    const auto settings = read_npmrc(text, [](const std::string &) { return std::nullopt; });
    const auto written = write_npmrc(settings);
    const auto again = read_npmrc(written, [](const std::string &) { return std::nullopt; });
    for (const auto &[key, value] : again) {
        require(is_npm_setting_of_fetch(key), "npm gets a setting that is none of a fetch");
        require(settings.contains(key) && settings.at(key) == value, "npm gets another value");
    }
    token_of_registry(settings, "https://registry.example/npm/");
}

void try_line(std::string_view text)
{
    const auto line = read_fetch_line(text);
    if (!line) return;
    if (line->kind == FetchLine::Kind::done)
        require(is_package_version(line->version) && is_path_in_package(line->program), "a tree that root could be led out of");
    const auto written = write_fetch_line(*line);
    require(written.find('\n') == written.size() - 1, "an answer of two lines");
}

void try_versions(std::string_view text)
{
    unless_refused([&] { return read_agent_request(text); });
    const auto space = text.find(' ');
    if (space == text.npos) return;
    const auto one = text.substr(0, space);
    const auto other = text.substr(space + 1);
    require(!is_older_version(one, one), "a version that is older than itself");
    require(!(is_older_version(one, other) && is_older_version(other, one)), "two versions, each older than the other");
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    try_answer(input);
    try_settings(input);
    try_line(input);
    try_versions(input);
}
