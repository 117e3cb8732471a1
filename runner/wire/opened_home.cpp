// The fields of opened directories of a home.
#include "runner/wire/opened_home.hpp"

#include "runner/wire/answer.hpp"

#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t directories_limit = 200;

} // namespace

void send_home(FdRef channel, const OpenedHome &home)
{
    send_answer(channel, Encoder().text(home.path).number(home.directories.size()).bytes());
    for (const auto &one : home.directories) {
        std::vector<int> fds;
        if (one.problem.empty()) fds.push_back(one.directory.get());
        send_answer(channel, Encoder().text(one.path).number(one.is_cache ? 1 : 0).text(one.problem).bytes(), fds);
    }
}

OpenedHome receive_home(const std::function<Packet()> &next)
{
    OpenedHome home;
    const Packet first = next();
    Decoder decoder(first.bytes);
    home.path = decoder.text();
    const std::uint64_t count = decoder.number();
    decoder.end();
    if (count > directories_limit) throw ProtocolError("the receiver found too many directories of the home");
    while (home.directories.size() < count) {
        Packet packet = next();
        Decoder fields(packet.bytes);
        HomeDirectory directory{fields.text(), fields.number() == 1, UniqueFd(), fields.text()};
        fields.end();
        if (packet.fds.size() != (directory.problem.empty() ? 1U : 0U))
            throw ProtocolError("the receiver sent the wrong number of descriptors");
        if (directory.problem.empty()) directory.directory = std::move(packet.fds.front());
        home.directories.push_back(std::move(directory));
    }
    return home;
}

} // namespace pi_agent
