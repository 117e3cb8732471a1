// Reading files of /etc.
#include "runner/as_agent/host_files.hpp"

#include "common/base/fd.hpp"
#include "common/base/whole_file.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>

namespace pi_agent {

EtcFile read_etc_file(const std::string &name)
{
    const std::string path = "/etc/" + name;
    const UniqueFd file = UniqueFd::adopt(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {EtcFileState::missing};
    if (facts.st_size < 0 || static_cast<std::size_t>(facts.st_size) > host_file_limit) return {EtcFileState::too_large};
    const std::unique_ptr<char, decltype(&std::free)> canonical(realpath(path.c_str(), nullptr), &std::free);
    return {EtcFileState::read, canonical ? canonical.get() : path, read_whole(file, host_file_limit, path)};
}

} // namespace pi_agent
