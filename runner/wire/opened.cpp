// What a child that is the caller opened: project and home.
#include "runner/wire/opened.hpp"

#include "runner/wire/answer.hpp"

#include <utility>

namespace pi_agent {

namespace {

constexpr std::size_t told_limit = 4096; // of a path and a problem each
constexpr std::size_t elsewhere_limit = 2;
constexpr std::size_t directories_limit = 200;

} // namespace

void send_place(FdRef channel, FdRef directory, const PlaceFacts &facts)
{
    send_answer(channel, Encoder().number(facts.device).number(facts.inode).number(facts.mount).bytes(), {directory.get()});
}

OpenedPlace decode_place(Packet packet)
{
    if (packet.fds.size() != 1) throw ProtocolError("the receiver sent the wrong number of descriptors");
    Decoder decoder(packet.bytes);
    OpenedPlace place{std::move(packet.fds.front()), {decoder.number(), decoder.number(), decoder.number()}};
    decoder.end();
    return place;
}

void send_repository(FdRef channel, const std::optional<Repository> &repository)
{
    Encoder encoder;
    std::vector<int> fds;
    encoder.number(repository ? 1 : 0).number(repository ? repository->elsewhere.size() : 0);
    encoder.number(repository ? repository->mount : 0);
    if (repository) {
        fds.push_back(repository->top.get());
        for (const auto &place : repository->elsewhere) {
            encoder.number(place.directory ? 1 : 0)
                .number(place.mount)
                .text(place.told.substr(0, told_limit))
                .text(place.problem.substr(0, told_limit));
            if (place.directory) fds.push_back(place.directory.get());
        }
    }
    send_answer(channel, encoder.bytes(), fds);
}

std::optional<Repository> decode_repository(Packet packet)
{
    Decoder decoder(packet.bytes);
    std::size_t next = 0;
    const auto take = [&](bool there) {
        if (!there) return UniqueFd();
        if (next >= packet.fds.size()) throw ProtocolError("the receiver sent the wrong number of descriptors");
        return std::move(packet.fds[next++]);
    };
    const bool found = decoder.number() == 1;
    const std::uint64_t count = decoder.number();
    if (count > elsewhere_limit) throw ProtocolError("the receiver found too many git directories");
    const std::uint64_t mount = decoder.number();
    if (!found) return std::nullopt;
    Repository repository{take(true), mount, {}};
    for (std::uint64_t index = 0; index < count; ++index) {
        GitDirectory place{};
        place.directory = take(decoder.number() == 1);
        place.mount = decoder.number();
        place.told = decoder.text();
        place.problem = decoder.text();
        repository.elsewhere.push_back(std::move(place));
    }
    return repository;
}

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
