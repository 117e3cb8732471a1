// The reader sends each file's path and descriptor to the writer, over a channel that root holds no end of.
#include "admin/state/state.hpp"

#include "admin/text/terminal.hpp"
#include "common/host/beneath.hpp"
#include "runner/as_agent/writer.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/wire/user_files.hpp"

#include <filesystem>
#include <sys/sendfile.h>

namespace pi_agent {

namespace {

constexpr int depth_limit = 16;                      // the agent makes two
constexpr std::size_t export_file_limit = 200'000;   // files of one export
constexpr std::uint64_t export_limit = 256ULL << 20; // bytes of one file
constexpr int transfer_patience_seconds = 60;

// --- the agent's side ---

class Sending {
public:
    explicit Sending(FdRef transfer) : transfer_(transfer) {}

    // Returns how many entries it skipped: links, anything else that is not a file, and what is too large.
    std::uint64_t send_all(FdRef top)
    {
        send_directory(top, "", 0);
        send_packet(transfer_, "/", {}, in_seconds(transfer_patience_seconds)); // no name: the end
        return skipped_;
    }

private:
    void send_directory(FdRef directory, const std::string &above, int depth)
    {
        for (const auto &name : names_in(directory)) {
            const std::string path = above.empty() ? name : above + "/" + name;
            if (const auto child = find_beneath(directory, name, O_RDONLY | O_DIRECTORY)) {
                if (depth < depth_limit)
                    send_directory(child, path, depth + 1);
                else
                    ++skipped_;
            } else {
                send_file(directory, name, path);
            }
        }
    }

    void send_file(FdRef directory, const std::string &name, const std::string &path)
    {
        const auto file = find_beneath(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        struct stat facts {};
        const bool fits = file && fstat(file.get(), &facts) == 0 && S_ISREG(facts.st_mode) &&
                          static_cast<std::uint64_t>(facts.st_size) <= export_limit && path.size() < packet_limit / 2;
        if (!fits) return static_cast<void>(++skipped_);
        if (++sent_ > export_file_limit) throw Failure(ExitStatus::limit, "the agent has more session files than an export takes");
        send_packet(transfer_, path, {file.get()}, in_seconds(transfer_patience_seconds));
    }

    FdRef transfer_;
    std::size_t sent_ = 0;
    std::uint64_t skipped_ = 0;
};

// --- the user's side ---

// Anything can come from the agent's account. It takes only a path of names, each of one component, none of which leads up.
bool is_path_of_names(const std::string &path)
{
    return !has_odd_component(path) && path.find('\0') == std::string::npos;
}

// In the child that is the user whose sessions are copied.
std::string name_of_this_user()
{
    const int reason = errno; // asking for the account changes it, and throw_errno() says it afterwards
    const auto account = find_account(Uid(::geteuid()));
    errno = reason;
    return account ? escape_for_display(account->name) : "the user";
}

// No link is followed on the way: in a root the user's agent may have made it, and what is written here comes from the agent, too.
UniqueFd open_without_links(FdRef from, const std::string &name, int flags, const std::string &path)
{
    auto found = find_beneath(from, name, flags | O_DIRECTORY);
    const bool is_other = !found && (errno == ELOOP || errno == EXDEV || errno == ENOTDIR);
    if (is_other)
        throw Failure(ExitStatus::usage,
                      escape_for_display(path) +
                          " is not a directory, or is behind a symlink, which the agent may have made; name a directory by its real path");
    if (!found) throw_errno(name_of_this_user() + " cannot open " + escape_for_display(path));
    return found;
}

UniqueFd make_export_directory(const std::string &path)
{
    const std::string shown = escape_for_display(path);
    const auto top = open_or_throw("opening /", "/", O_PATH | O_DIRECTORY);
    const auto [above, name] = split_last(path.substr(1));
    const auto parent = open_without_links(top, above, O_PATH, path);
    if (mkdirat(parent.get(), name.c_str(), 0700) != 0 && errno != EEXIST) throw_errno(name_of_this_user() + " cannot create " + shown);
    auto directory = open_without_links(parent, name, O_RDONLY, path);
    if (!names_in(directory).empty()) throw Failure(ExitStatus::usage, shown + " is not empty; name a new directory");
    return directory;
}

std::uint64_t copy_file(FdRef from, FdRef directory, const std::string &name, FdRef channel)
{
    const auto to = open_or_throw("creating " + escape_for_display(name), directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    constexpr std::size_t piece = std::size_t{8} << 20U;
    for (std::uint64_t size = 0;;) {
        const auto count = sendfile(to.get(), from.get(), nullptr, piece);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("writing " + escape_for_display(name));
        if (count == 0) return size;
        size += static_cast<std::uint64_t>(count);
        if (size > export_limit)
            throw Failure(ExitStatus::system_failure, escape_for_display(name) + " grew while it was copied; run the command again");
        send_progress(channel);
    }
}

// Says that it is alive while the reader looks for the next one.
Packet receive_file(FdRef transfer, FdRef channel)
{
    for (int second = 0; second < transfer_patience_seconds && !wait_for_input(transfer, in_seconds(1)); ++second)
        send_progress(channel);
    auto packet = receive_packet(transfer, in_seconds(1));
    if (!packet)
        throw Failure(ExitStatus::system_failure, "the process that reads the agent's sessions ended early; run the command again");
    return std::move(*packet);
}

void receive_all(FdRef transfer, const std::string &path, FdRef channel)
{
    const auto top = make_export_directory(path);
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    for (;;) {
        const Packet packet = receive_file(transfer, channel);
        if (packet.bytes == "/") break;
        if (packet.fds.size() != 1 || !is_path_of_names(packet.bytes)) throw ProtocolError("the reader sent something else than a file");
        const auto [above, name] = split_last(packet.bytes);
        bytes += copy_file(packet.fds.front(), ensure_directory_beneath(top, above), name, channel);
        ++files;
    }
    send_answer(channel, Encoder().number(files).number(bytes).bytes());
}

struct Exported {
    std::uint64_t files, bytes, skipped;
};

Exported transfer_files(const AsRoot &root, const UserState &state, const Account &user, FdRef sessions, const std::string &path)
{
    auto [sending, receiving] = make_channel();
    Child reader(root, "reader of the agent's sessions", state.agent, {sessions.get(), sending.get()},
                 [&, to = FdRef(sending)](const AsUser & /*agent*/, FdRef channel) {
                     const auto skipped = Sending(to).send_all(sessions);
                     send_answer(channel, Encoder().number(skipped).bytes());
                 });
    sending.reset();
    Child writer(root, "writer of the export", user, {receiving.get()},
                 [&, from = FdRef(receiving)](const AsUser & /*user*/, FdRef channel) { receive_all(from, path, channel); });
    receiving.reset();
    const auto written = writer.receive();
    Decoder decoder(written.bytes);
    Exported exported{decoder.number(), decoder.number(), 0};
    const auto read = reader.receive();
    exported.skipped = Decoder(read.bytes).number();
    return exported;
}

// Opened by a child with the agent's rights: a link there leads nowhere that the agent may not go.
UniqueFd open_sessions_of_agent(const AsRoot &root, const UserState &state)
{
    const std::string place = std::string(agent_directory) + "/sessions";
    Child child(root, "look at the home of " + state.agent.name, state.agent, {state.home.get()},
                [&](const AsUser & /*agent*/, FdRef channel) {
                    const auto found = find_beneath(state.home, place, O_RDONLY | O_DIRECTORY);
                    send_answer(channel, found ? "y" : "n", found ? std::vector<int>{found.get()} : std::vector<int>{});
                });
    auto answer = child.receive();
    if (answer.fds.size() != 1) throw Nothing("the agent of " + escape_for_display(state.user) + " has no sessions to export");
    return std::move(answer.fds.front());
}

} // namespace

void run_state_export(const std::string &user, const std::string &directory, std::ostream &out)
{
    const auto root = claim_root("state export", "reads as the agent's account and writes as the user, so only root can run it");
    const auto state = find_state(root, load_policy(policy_path).agent.state_dir, user);
    const auto account = find_account(user);
    if (!account || account->uid == Uid(0))
        throw Failure(ExitStatus::configuration,
                      escape_for_display(user) + " is not a user of this host any more, so nobody can own the copy");
    const std::string path = without_trailing_slashes(std::filesystem::absolute(directory).lexically_normal().string());
    if (path == "/") throw Failure(ExitStatus::usage, "the export needs an empty directory of its own; name a new one");
    const auto sessions = open_sessions_of_agent(root, state);
    const auto exported = transfer_files(root, state, *account, sessions, path);
    out << exported.files << " files, " << to_size(exported.bytes) << ", copied to " << escape_for_display(path) << ", of "
        << escape_for_display(user) << '\n';
    if (exported.skipped > 0)
        out << exported.skipped << " entries left out: links, other things than files, or larger than " << to_size(export_limit) << '\n';
}

} // namespace pi_agent
