// Whose word counts for the editor: admin/text/terminal.hpp
#include "admin/text/terminal.hpp"

#include "common/base/error.hpp"

#include <doctest/doctest.h>
#include <map>

using namespace pi_agent;

namespace editor_test {

namespace {

using Words = std::vector<std::string>;

Variable environment(std::map<std::string, std::string> variables)
{
    return [variables = std::move(variables)](const std::string &name) {
        const auto found = variables.find(name);
        return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
    };
}

// What is chosen where the environment says nothing; none where this host has no editor at all.
std::optional<Words> usual()
{
    try {
        return choose_editor(environment({}));
    } catch (const Failure &) {
        return std::nullopt;
    }
}

std::optional<Words> chosen(std::map<std::string, std::string> variables)
{
    try {
        return choose_editor(environment(std::move(variables)));
    } catch (const Failure &) {
        return std::nullopt;
    }
}

} // namespace

TEST_CASE("root's own variables count in the order of sudoedit, divided at spaces")
{
    CHECK(chosen({{"EDITOR", "cat"}}) == Words{"cat"});
    CHECK(chosen({{"EDITOR", "cat"}, {"VISUAL", "true -x  -y"}}) == Words{"true", "-x", "-y"});
    CHECK(chosen({{"EDITOR", "cat"}, {"VISUAL", "true"}, {"SUDO_EDITOR", "/bin/false"}}) == Words{"/bin/false"});
    CHECK(chosen({{"EDITOR", " "}}) == usual());
}

TEST_CASE("a value that a caller of sudo, doas or pkexec could have chosen never counts")
{
    for (const auto *trace : {"SUDO_UID", "SUDO_USER", "SUDO_COMMAND", "PKEXEC_UID", "DOAS_USER"}) {
        CAPTURE(trace);
        CHECK(chosen({{"EDITOR", "cat"}, {"VISUAL", "cat"}, {"SUDO_EDITOR", "cat"}, {trace, ""}}) == usual());
    }
}

TEST_CASE("a program that others could have put there is refused, not passed over")
{
    CHECK_THROWS_AS(static_cast<void>(choose_editor(environment({{"EDITOR", "/tmp/editor"}}))), Failure);
    CHECK_THROWS_AS(static_cast<void>(choose_editor(environment({{"EDITOR", "./editor"}}))), Failure);
    CHECK_THROWS_AS(static_cast<void>(choose_editor(environment({{"EDITOR", "no-such-editor-here"}}))), Failure);
}

} // namespace editor_test
