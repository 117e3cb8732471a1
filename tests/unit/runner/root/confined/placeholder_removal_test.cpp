// Removing what a session recorded, as its user, and no more: runner/root/confined/session_end.hpp
#include "runner/root/confined/session_end.hpp"

#include "runner/as_user/protected_paths.hpp"
#include "runner/root/mount/mounts.hpp"
#include "runner/root/session/session_directory.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"
#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace placeholder_removal_test {

namespace {

// A user's directory with placeholders, and a session that recorded them and one that never was. `meanwhile` is what happens before the
// removal; returns which of the placeholders are left.
std::string left_after(const std::function<void(const AsRoot &root, const SessionDirectory &session, const std::string &place)> &meanwhile)
{
    return in_private_run([&]() -> std::string {
        const TemporaryDirectory directory;
        set_mode(directory.path(), 0755);
        const std::string place = directory.make("git");
        give(place, user_account());
        const AsRoot root = AsRoot::claim();
        const std::string id = make_session_id();
        const auto session = SessionDirectory::create(root, id, user_account().uid);
        const UniqueFd top = open_path(place, O_PATH | O_DIRECTORY);
        const std::vector<std::pair<const char *, Standin>> all = {{"commondir", Standin::commondir},
                                                                   {"info", Standin::directory},
                                                                   {"info/attributes", Standin::comment},
                                                                   {"never-made", Standin::comment}};
        for (std::size_t index = 0; index < all.size(); ++index) {
            session.make_link(std::string(placeholders_directory) + "/" + std::to_string(index), place + "/" + all[index].first);
            if (index == 3) break;
            make_placeholder(top, all[index].first, all[index].second);
            give(place + "/" + all[index].first, user_account());
        }
        meanwhile(root, session, place);
        PlaceholderRemoval(root, id, session.fd()).finish(in_seconds(5));
        std::string left;
        for (const auto &[path, standin] : all)
            left += std::filesystem::exists(place + "/" + path) ? std::string(path) + " " : "";
        remove_session(root, id);
        detach_at(root, place + "/info/attributes");
        return left;
    });
}

void expect_left(const std::string &left, const std::string &expected)
{
    if (left == no_private_run) return skipped(left);
    CHECK(left == expected);
}

} // namespace

TEST_CASE("what a session recorded is removed, what is in it first" * doctest::skip(not_root()))
{
    expect_left(left_after([](const AsRoot &, const SessionDirectory &, const std::string &) {}), "");
}

TEST_CASE("what another session has mounted stays" * doctest::skip(not_root()))
{
    expect_left(left_after([](const AsRoot &root, const SessionDirectory &session, const std::string &place) {
                    const UniqueFd source = open_path(place + "/commondir", O_PATH);
                    attach(root, clone_mount(root, source, Submounts::leave_out, {}), session.make_file("elsewhere"));
                    const UniqueFd target = open_path(place + "/info/attributes", O_PATH);
                    attach(root, clone_mount(root, target, Submounts::leave_out, {}), target);
                }),
                "info info/attributes ");
}

TEST_CASE("only the user's rights remove anything" * doctest::skip(not_root()))
{
    expect_left(
        left_after([](const AsRoot &, const SessionDirectory &, const std::string &place) { REQUIRE(::chown(place.c_str(), 0, 0) == 0); }),
        "commondir info ");
}

} // namespace placeholder_removal_test
