// Arguments and environment in the form that execve(2) and posix_spawn(3) want.
#pragma once

#include <string>
#include <vector>

namespace pi_agent {

// Borrowed from `texts`, which must live and stay as it is; ends with a null pointer. Made before a fork: it allocates.
inline std::vector<char *> exec_pointers(const std::vector<std::string> &texts)
{
    std::vector<char *> list;
    list.reserve(texts.size() + 1);
    for (const auto &text : texts)
        list.push_back(const_cast<char *>(text.c_str())); // NOLINT(cppcoreguidelines-pro-type-const-cast): execve(2) does not write
    list.push_back(nullptr);
    return list;
}

} // namespace pi_agent
