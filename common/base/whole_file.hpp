// Reads and writes whole files through descriptors, with bounds.
#pragma once

#include "common/base/fd.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace pi_agent {

// From the beginning, wherever the descriptor stands. Throws Failure(configuration) when it holds more than `limit` bytes; `name` is for
// messages.
std::string read_whole(FdRef fd, std::size_t limit, const std::string &name);

// At the descriptor's position. Throws SystemFailure.
void write_whole(FdRef fd, std::string_view bytes, const std::string &name);

// Compares two regular files from their beginnings; `step` is called every 8 MiB.
bool have_same_bytes(FdRef one, FdRef other, const std::function<void()> &step);

} // namespace pi_agent
