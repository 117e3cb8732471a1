// Policies with something changed at random are read or refused, and nothing else: a sanitized build finds what would crash.
#include "support/drawn.hpp"
#include "support/policy_text.hpp"

#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

using namespace pi_agent;
using namespace pi_agent::test;

namespace policy_mutations_test {

namespace {

std::vector<std::string> read_examples()
{
    std::vector<std::string> examples;
    for (const auto &file : std::filesystem::directory_iterator(PI_AGENT_EXAMPLES)) {
        std::ostringstream text;
        text << std::ifstream(file.path()).rdbuf();
        examples.push_back(text.str());
    }
    std::sort(examples.begin(), examples.end()); // the same for the same seed
    return examples;
}

class Mutator {
public:
    explicit Mutator(unsigned seed) : random_(seed) {}

    std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }

    // One to four changes, each of a byte, a word or a stretch.
    std::string change(std::string text)
    {
        for (auto changes = below(4) + 1; changes > 0; --changes)
            change_once(text);
        return text;
    }

private:
    void change_once(std::string &text)
    {
        static constexpr std::array<std::string_view, 30> pieces = {"'",
                                                                    "\"",
                                                                    "[",
                                                                    "]",
                                                                    "{",
                                                                    "}",
                                                                    ":",
                                                                    ": ",
                                                                    ",",
                                                                    "- ",
                                                                    "#",
                                                                    "&a",
                                                                    "*a",
                                                                    "!!str",
                                                                    "|",
                                                                    "\n",
                                                                    "\t",
                                                                    "    ",
                                                                    "null",
                                                                    "~",
                                                                    "\r",
                                                                    "\xc3\x28",
                                                                    "\xf0\x9d\x84\x9e",
                                                                    "%",
                                                                    "010",
                                                                    "1e9999",
                                                                    "<<: {a: b}",
                                                                    "---\n",
                                                                    "\\",
                                                                    "? "};
        const auto at = below(text.size() + 1);
        const auto length = std::min<std::size_t>(below(40), text.size() - at);
        switch (below(6)) {
        case 0:
            text.insert(at, pieces[below(pieces.size())]);
            break;
        case 1:
            text.erase(at, length);
            break;
        case 2: // moved or repeated
            text.insert(below(text.size() + 1), text.substr(at, length));
            break;
        case 3:
            if (at < text.size()) text[at] = static_cast<char>(below(256));
            break;
        case 4:
            text.replace(at, length, pieces[below(pieces.size())]);
            break;
        default:
            for (std::size_t index = at; index < at + length; ++index)
                if (text[index] == ' ') text[index] = '\n';
        }
    }

    std::mt19937 random_;
};

} // namespace

TEST_CASE("no change of a policy makes the parser do anything but read or refuse it")
{
    const int count = 10000;
    const auto seed = seed_of_run();
    std::cout << "policies changed at random with PI_AGENT_SEED=" << seed << '\n';
    const auto examples = read_examples();
    Mutator mutator(seed);
    int refused = 0;
    for (int number = 0; number < count; ++number) {
        const auto text = mutator.change(examples[mutator.below(examples.size())]);
        try {
            static_cast<void>(parse_policy({{"p.yaml", text}}));
        } catch (const PolicyError &error) {
            ++refused;
            for (const auto &diagnostic : error.diagnostics())
                CHECK_MESSAGE((diagnostic.where.file == "p.yaml" && !diagnostic.problem.empty()), (to_string(diagnostic) + "\n" + text));
        } catch (const std::exception &other) {
            FAIL_CHECK("seed " << seed << ", number " << number << ": " << other.what() << "\n" << text);
        }
    }
    CHECK(refused > count / 4); // it does change something
    CHECK(refused < count);
}

} // namespace policy_mutations_test
