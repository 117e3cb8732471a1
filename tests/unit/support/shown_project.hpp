// A directory as the shown project of a session.
#pragma once

#include "runner/as_user/protected_paths.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>

namespace pi_agent::test {

struct ShownProject {
    TemporaryDirectory directory;
    UniqueFd top = UniqueFd::adopt(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    GuardedTree tree{top, directory.path()};
};

} // namespace pi_agent::test
