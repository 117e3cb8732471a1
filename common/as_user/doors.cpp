// The rows of doors.toml.
#include "common/as_user/doors.hpp"

namespace pi_agent {

std::span<const Door> door_table()
{
    static constexpr Door table[] = {
#include "common/doors.inc"
    };
    return table;
}

} // namespace pi_agent
