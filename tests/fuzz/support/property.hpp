// What fuzzers assert with: what does not hold ends the program with a sentence, and libFuzzer keeps the input.
#pragma once

#include "common/base/error.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent::fuzz {

// One target's: everything that it asserts about one input. Throws nothing.
void try_input(std::string_view input);

// Ends the program unless it holds.
void require(bool holds, std::string_view what);

// For people, as everything that is printed or recorded: UTF-8 without what moves a cursor or reorders text; lines may end.
void require_harmless(std::string_view text);

// What `act` gives; none where it refuses as the product does. Every other exception ends the program, and a refusal for a bug of ours,
// too.
template <typename Act>
auto unless_refused(const Act &act) -> std::optional<decltype(act())>
{
    try {
        return act();
    } catch (const Failure &failure) {
        require_harmless(failure.what());
        require(failure.status() != ExitStatus::internal, failure.what());
        return std::nullopt;
    }
}

// Of one input in 256 (always the same ones) a text of 128 KiB is made by repeating it, and `read` must be done with that soon: what takes
// the square of its length is not. In the time of this process, so that a busy host does not count.
template <typename Read>
void require_linear(std::string_view input, const Read &read)
{
    constexpr std::size_t long_enough = 128UL * 1024;
    constexpr double patience_seconds = 4;
    if (input.empty() || input.size() > long_enough || std::hash<std::string_view>{}(input) % 256 != 0) return;
    std::string text;
    while (text.size() < long_enough)
        text += input;
    const std::clock_t start = std::clock();
    read(text);
    require(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < patience_seconds,
            "the input, repeated to 128 KiB, takes too long");
}

// The parts of an input between single bytes `mark`; `count` of them, the missing ones empty, the last with the rest.
std::vector<std::string> parts_of(std::string_view input, std::size_t count, char mark);

} // namespace pi_agent::fuzz
