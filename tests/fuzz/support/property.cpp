// The entry that libFuzzer calls, and how a broken property ends it.
#include "support/property.hpp"

#include "common/base/text.hpp"

#include <cstdio>
#include <cstdlib>

namespace pi_agent::fuzz {

void require(bool holds, std::string_view what)
{
    if (holds) return;
    std::fprintf(stderr, "\nproperty broken: %.*s\n", static_cast<int>(what.size()), what.data());
    std::abort();
}

void require_harmless(std::string_view text)
{
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find_first_of("\n\\", start), text.size());
        const std::string_view piece = text.substr(start, end - start);
        if (escape_for_display(piece) != piece) require(false, "not harmless: " + escape_for_display(text));
        start = end + 1;
    }
}

std::vector<std::string> parts_of(std::string_view input, std::size_t count, char mark)
{
    std::vector<std::string> parts;
    while (parts.size() + 1 < count) {
        const std::size_t end = std::min(input.find(mark), input.size());
        parts.emplace_back(input.substr(0, end));
        input.remove_prefix(std::min(end + 1, input.size()));
    }
    parts.emplace_back(input);
    return parts;
}

} // namespace pi_agent::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    pi_agent::fuzz::try_input({reinterpret_cast<const char *>(data), size});
    return 0;
}
