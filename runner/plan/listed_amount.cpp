// Counting what is listed.
#include "runner/plan/listed_amount.hpp"

#include <algorithm>

namespace pi_agent {

bool ListedAmount::take_entry(const std::string &path)
{
    ++parts_[path.substr(0, path.find('/'))];
    return ++entries_ <= entry_limit;
}

bool ListedAmount::take_bytes(std::uint64_t count)
{
    if (count > total_limit - bytes_) return false;
    bytes_ += count;
    return true;
}

std::string ListedAmount::largest_part() const
{
    const auto most =
        std::max_element(parts_.begin(), parts_.end(), [](const auto &one, const auto &other) { return one.second < other.second; });
    return most == parts_.end() ? "" : most->first;
}

} // namespace pi_agent
