// A child with the agent's rights walks the trees: nothing that the agent arranges there meets root.
#include "admin/state/state.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/wire/answer.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <utility>

namespace pi_agent {

const std::vector<std::string> cache_places = {".cache", ".npm", ".local/share/cargo/registry", ".local/share/go/pkg/mod",
                                               ".local/share/pnpm/store"};

namespace {

constexpr int measured_depth_limit = 200; // each level costs a descriptor
constexpr unsigned entries_between_words = 4096;
constexpr std::uint64_t block = 512; // stat(2)

class Measuring {
public:
    explicit Measuring(FdRef channel) : channel_(channel) {}

    std::uint64_t measure(FdRef top)
    {
        seen_.clear();
        struct stat facts = examine(top, "measuring a directory");
        device_ = facts.st_dev;
        return static_cast<std::uint64_t>(facts.st_blocks) * block + measure_content(top, 0);
    }

private:
    std::uint64_t measure_content(FdRef directory, int depth)
    {
        if (depth == measured_depth_limit)
            return 0; // what lies deeper shows as missing from the sum: it keeps nothing else from being measured
        auto stream = DirectoryStream::reopened(directory);
        std::uint64_t size = 0;
        if (!stream) return size; // the agent took its own right to look away: what is there shows as missing from the sum
        while (const dirent *entry = stream.next())
            size += measure_entry(directory, entry->d_name, depth);
        return size;
    }

    std::uint64_t measure_entry(FdRef directory, const std::string &name, int depth)
    {
        if (++entries_ % entries_between_words == 0) send_progress(channel_);
        struct stat facts {};
        if (fstatat(directory.get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 || facts.st_dev != device_) return 0;
        if (facts.st_nlink > 1 && !S_ISDIR(facts.st_mode) && !seen_.insert(facts.st_ino).second) return 0;
        std::uint64_t size = static_cast<std::uint64_t>(facts.st_blocks) * block;
        if (!S_ISDIR(facts.st_mode)) return size;
        const UniqueFd child =
            UniqueFd::adopt(openat(directory.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
        return child ? size + measure_content(child, depth + 1) : size;
    }

    FdRef channel_;
    dev_t device_ = 0;
    std::set<ino_t> seen_;
    unsigned entries_ = 0;
};

std::vector<std::uint64_t> receive_numbers(Child &child, std::size_t count)
{
    const Packet packet = child.receive();
    Decoder decoder(packet.bytes);
    std::vector<std::uint64_t> numbers(count);
    for (auto &number : numbers)
        number = decoder.number();
    decoder.end();
    return numbers;
}

} // namespace

HomeSize measure_home(const AsRoot &root, const Account &agent, FdRef home)
{
    Child child(root, "look at the home of " + agent.name, agent, {home.get()}, [&](const AsUser & /*agent*/, FdRef channel) {
        Measuring measuring(channel);
        HomeSize size{measuring.measure(home), 0};
        for (const auto &place : cache_places)
            if (const UniqueFd directory = find_beneath(home, place, O_RDONLY | O_DIRECTORY)) size.caches += measuring.measure(directory);
        send_answer(channel, Encoder().number(size.all).number(size.caches).bytes());
    });
    const auto numbers = receive_numbers(child, 2);
    return {numbers[0], numbers[1]};
}

std::uint64_t measure_directories(const AsRoot &root, const Account &agent, const std::vector<FdRef> &directories)
{
    std::vector<int> keep;
    for (const auto directory : directories)
        keep.push_back(directory.get());
    Child child(root, "look at temporary files of " + agent.name, agent, keep, [&](const AsUser & /*agent*/, FdRef channel) {
        Measuring measuring(channel);
        std::uint64_t size = 0;
        for (const auto directory : directories)
            size += measuring.measure(directory);
        send_answer(channel, Encoder().number(size).bytes());
    });
    return receive_numbers(child, 1)[0];
}

} // namespace pi_agent
