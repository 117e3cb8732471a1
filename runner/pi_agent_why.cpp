// pi-agent-why: says what keeps this session from a host or a path. The agent runs it, in its sandbox. Ends with 1 where something does.
#include "runner/inside/canary.hpp"

#include <cstdio>
#include <exception>

using namespace pi_agent; // NOLINT(google-build-using-namespace): this file is the program

namespace {

constexpr const char *usage = "usage: pi-agent-why HOST[:PORT]... | PATH...\n"
                              "Says whether this session may reach the host, or read and write the path, and what decides it.\n";
constexpr int misused = 2; // as shells and their own commands say it

} // namespace

int main(int argc, char **argv)
{
    try {
        const std::string_view first = argc > 1 ? argv[1] : "";
        const bool is_help = first == "-h" || first == "--help";
        if (first.empty() || is_help) return std::fputs(usage, is_help ? stdout : stderr), is_help ? 0 : misused;
        bool all = true;
        for (int index = 1; index < argc; ++index) {
            const WhyAnswer answer = why(argv[index], "/");
            all = answer.is_free && all;
            std::fputs(answer.text.c_str(), stdout);
        }
        return std::fflush(stdout) == 0 && all ? 0 : 1;
    } catch (const std::exception &failure) {
        std::fprintf(stderr, "pi-agent-why: %s\n", failure.what());
        const auto *known = dynamic_cast<const Failure *>(&failure);
        return static_cast<int>(known == nullptr ? ExitStatus::internal : known->status());
    }
}
