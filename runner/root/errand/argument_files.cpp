// Has a child, as the caller, copy the files that the caller names on the command line.
#include "runner/root/errand/argument_files.hpp"

#include "common/base/error.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/wire/answer.hpp"

namespace pi_agent {

namespace {

constexpr int copying_patience_seconds = 20;

DetachedMount make_place_for_copies(const AsRoot &root, const Account &user)
{
    // The bytes, and a page for each file: a user who takes the child over can fill no more.
    const std::string size = defence_is_on("copies-limit") ? std::to_string(copies_size_limit + copies_count_limit * 4096) : "1g";
    return new_filesystem(root, "tmpfs",
                          {{"source", "pi-agent-named"},
                           {"mode", "0755"},
                           {"uid", std::to_string(user.uid.value())},
                           {"gid", std::to_string(user.gid.value())},
                           {"size", size},
                           {"nr_inodes", std::to_string(copies_count_limit + 2)}},
                          false, Execution::allowed);
}

} // namespace

NamedCopies copy_for_session(const AsRoot &root, const Account &user, const std::vector<ArgumentFile> &files, const ShownPlaces &shown,
                             const AgentPlaces &agents, const SessionWatch &watch)
{
    if (files.empty()) return {};
    if (files.size() > named_files_limit)
        throw Failure(FailureKind::named_file, "the arguments name more than " + std::to_string(named_files_limit) +
                                                   " files; name fewer files, or their directory in the prompt");
    DetachedMount copies = make_place_for_copies(root, user);
    HandedFiles handed;
    {
        Child child(root, "reader of the files that you name", user, {copies.fd.get()}, [&](const AsUser & /*user*/, FdRef channel) {
            fault_point("reading-named");
            send_long_answer(channel, encode(copy_named_files(UserPaths(agents), files, shown, copies.fd)));
        });
        handed = decode_fields<HandedFiles>(child.receive_long(copying_patience_seconds, [&] { watch.check(); }));
    } // the child has ended: nobody else can write there
    if (handed.states.size() != files.size()) throw ProtocolError("other files were copied than were asked for");
    if (handed.states.find(static_cast<char>(Handed::copied)) == std::string::npos) return {std::move(handed), std::nullopt};
    make_read_only(root, copies);
    return {std::move(handed), std::move(copies)};
}

} // namespace pi_agent
