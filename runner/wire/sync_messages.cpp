// The messages of the config sync as bytes.
#include "runner/wire/sync_messages.hpp"

#include "common/base/text.hpp"

namespace pi_agent {

HostFacts facts_of(const struct stat &facts) noexcept
{
    return HostFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_mtim), nanoseconds_of(facts.st_ctim),
                     facts.st_mode & 0777U};
}

std::string encode(const SyncMessage &message)
{
    return encode_fields(message);
}

SyncMessage decode_sync_message(std::string_view bytes)
{
    return decode_fields<SyncMessage>(bytes);
}

namespace {

struct Wanted {
    std::vector<std::uint64_t> numbers;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.numbers, wanted_limit, "the writer of the config wants too much at once");
    }
};

} // namespace

std::string encode_wanted(const std::vector<std::uint64_t> &numbers)
{
    return encode_fields(Wanted{numbers});
}

std::vector<std::uint64_t> decode_wanted(std::string_view bytes)
{
    return decode_fields<Wanted>(bytes).numbers;
}

bool is_plain_relative(std::string_view path) noexcept
{
    return path.size() <= 4096 && path.find('\0') == std::string_view::npos && !has_odd_component(path);
}

} // namespace pi_agent
