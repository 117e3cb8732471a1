// Adds up what a directory takes on disk.
#include "runner/as_agent/measuring.hpp"

#include "common/base/files.hpp"
#include "runner/wire/answer.hpp"

#include <set>

namespace pi_agent {

namespace {

constexpr int tree_depth_limit = 200; // each level costs a descriptor
constexpr unsigned entries_between_signs = 4096;
constexpr std::uint64_t bytes_of_block = 512; // stat(2)

// In a child with the owner's rights, so that nothing that the owner arranges there meets root.
class TreeSize {
public:
    explicit TreeSize(FdRef channel) : channel_(channel) {}

    std::uint64_t measure(FdRef top)
    {
        struct stat facts = examine(top, "measuring a directory");
        device_ = facts.st_dev;
        return static_cast<std::uint64_t>(facts.st_blocks) * bytes_of_block + add_content(top, 0);
    }

private:
    std::uint64_t add_content(FdRef directory, int depth)
    {
        if (depth == tree_depth_limit)
            return 0; // what is deeper than that is missing from the sum, and keeps nothing else from being measured
        auto stream = DirectoryStream::reopened(directory);
        std::uint64_t size = 0;
        if (!stream) return size; // the agent took away its own right to look: what is there is missing from the sum
        while (const dirent *entry = stream.next())
            size += add_entry(directory, entry->d_name, depth);
        return size;
    }

    std::uint64_t add_entry(FdRef directory, const std::string &name, int depth)
    {
        if (++entries_ % entries_between_signs == 0) send_progress(channel_);
        struct stat facts {};
        if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || facts.st_dev != device_) return 0;
        if (facts.st_nlink > 1 && !S_ISDIR(facts.st_mode) && !seen_.insert(facts.st_ino).second) return 0;
        std::uint64_t size = static_cast<std::uint64_t>(facts.st_blocks) * bytes_of_block;
        if (!S_ISDIR(facts.st_mode)) return size;
        const UniqueFd child = open_at(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK);
        return child ? size + add_content(child, depth + 1) : size;
    }

    FdRef channel_;
    dev_t device_ = 0;
    std::set<ino_t> seen_;
    unsigned entries_ = 0;
};

} // namespace

std::uint64_t measure_tree(const AsUser & /*owner*/, FdRef channel, FdRef top)
{
    return TreeSize(channel).measure(top);
}

} // namespace pi_agent
