// A bounded read of a regular file.
#include "admin/text/draft.hpp"

#include "common/base/escape.hpp"
#include "common/base/fd.hpp"
#include "common/policy/yaml/yaml_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

std::string read_draft(const std::string &path)
{
    const auto fd = UniqueFd::adopt(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)); // NOLINT(cppcoreguidelines-pro-type-vararg)
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) throw_errno("cannot open " + escape_for_display(path));
    if (!S_ISREG(status.st_mode)) throw Failure(ExitStatus::configuration, escape_for_display(path) + " is not a regular file");
    std::string text(yaml_size_limit + 1, '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const auto count = ::read(fd.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot read " + escape_for_display(path));
        if (count == 0) break;
        size += static_cast<std::size_t>(count);
    }
    text.resize(size);
    return text;
}

} // namespace pi_agent
