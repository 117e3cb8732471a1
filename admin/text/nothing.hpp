// What a command says that was given nothing to act on: neither done nor failed.
#pragma once

#include <stdexcept>
#include <string>

namespace pi_agent {

constexpr int nothing_status = 1; // as of grep(1): nothing of that kind is there

class Nothing : public std::runtime_error {
public:
    explicit Nothing(const std::string &text) : std::runtime_error(text) {}
};

} // namespace pi_agent
