// Answers of children that are the caller, and the messages of the config sync, as bytes.
#include "runner/wire/user_files.hpp"

#include "runner/wire/answer.hpp"

namespace pi_agent {

HostFacts facts_of(const struct stat &facts) noexcept
{
    return HostFacts{facts.st_ino, static_cast<std::uint64_t>(facts.st_size), nanoseconds_of(facts.st_mtim), nanoseconds_of(facts.st_ctim),
                     facts.st_mode & 0777U};
}

bool is_plain_relative(std::string_view path) noexcept
{
    return path.size() <= 4096 && path.find('\0') == std::string_view::npos && !has_odd_component(path);
}

bool is_kept_link(std::string_view path, std::string_view target)
{
    if (target.empty() || target.size() > 4096 || target.front() == '/' || target.find('\0') != std::string_view::npos) return false;
    return !leads_above(target, std::count(path.begin(), path.end(), '/') - 2);
}

// Answers of a child that is the caller: about files in the home, and what it opened.

std::string certificate_path_inside(std::size_t number)
{
    return "/run/pi-agent/ca/" + std::to_string(number) + ".pem";
}

bool CertificateFiles::is_sound() const
{
    std::size_t size = 0;
    std::set<std::string> paths;
    for (const auto &content : contents) {
        size += content.size();
        paths.insert(certificate_path_inside(paths.size() + 1));
    }
    return size <= certificates_limit &&
           std::all_of(renamed.begin(), renamed.end(), [&](const auto &one) { return paths.contains(one.second); });
}

bool FoundIdentity::is_small() const
{
    std::size_t size = 0;
    for (const auto &[name, value] : identity.settings)
        size += name.size() + value.value_or("").size();
    for (const auto &directory : identity.safe_directories)
        size += directory.size();
    return size <= git_settings_size && std::all_of(identity.files.begin(), identity.files.end(),
                                                    [](const auto &file) { return file.second.size() <= git_file_copy_limit; });
}

std::string notice_of_key(const char *what, const std::string &path, const std::string &problem)
{
    return std::string(what) + ": the agent's git cannot use the key " + escape_for_display(path) + ": " + escape_for_display(problem);
}

std::string encode_assignments(const std::vector<EnvAssignment> &assignments)
{
    std::vector<std::string> texts;
    for (const auto &[name, value, where] : assignments)
        texts.insert(texts.end(), {name, value, where});
    return Encoder().texts(texts).bytes();
}

std::vector<EnvAssignment> decode_assignments(std::string_view bytes)
{
    Decoder decoder(bytes);
    const std::vector<std::string> texts = decoder.texts(3 * variables_limit);
    decoder.end();
    if (texts.size() % 3 != 0) throw ProtocolError("a variable of a file is not complete");
    std::vector<EnvAssignment> all;
    for (std::size_t index = 0; index < texts.size(); index += 3)
        all.push_back({texts[index], texts[index + 1], texts[index + 2]});
    return all;
}

bool HostVariables::are_the_users() const
{
    return std::none_of(assignments.begin(), assignments.end(), [](const EnvAssignment &one) {
        return problem_of_host_env_name(one.name) || one.value.find('\0') != std::string::npos;
    });
}

namespace {

constexpr std::size_t told_limit = 4096; // of a path and a problem each
constexpr std::size_t elsewhere_limit = 2;
constexpr std::size_t directories_limit = 400;

} // namespace

void send_place(FdRef channel, FdRef directory, const PlaceFacts &facts)
{
    send_answer(channel, encode(facts), {directory.get()});
}

void send_roots_there(FdRef channel, const std::vector<bool> &there)
{
    Encoder encoder;
    for (const bool one : there)
        encoder.number(one ? 1 : 0);
    send_answer(channel, encoder.bytes());
}

std::vector<bool> decode_roots_there(const Packet &packet, std::size_t count)
{
    Decoder decoder(packet.bytes);
    std::vector<bool> there;
    while (there.size() < count)
        there.push_back(decoder.number() == 1);
    decoder.end();
    return there;
}

OpenedPlace decode_place(Packet packet)
{
    if (packet.fds.size() != 1) throw ProtocolError("the receiver sent the wrong number of descriptors");
    return {std::move(packet.fds.front()), decode_fields<PlaceFacts>(packet.bytes)};
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
