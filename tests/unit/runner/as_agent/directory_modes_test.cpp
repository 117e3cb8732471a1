// Asking the process that changes modes of directories, as the launcher does and as it does not: runner/as_agent/home.hpp
#include "runner/as_agent/home.hpp"

#include "runner/root/errand/errand.hpp"
#include "runner/wire/answer.hpp"
#include "support/accounts.hpp"
#include "support/descriptors.hpp"
#include "support/failure.hpp"
#include "support/forked.hpp"

#include <fcntl.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace directory_modes_test {

namespace {

struct Changer {
    TemporaryDirectory place;
    AsRoot root = AsRoot::claim();
    Account agent = agent_account();
    std::string directory = make_private(place, "directory", agent);
    Child child{root, "changer of modes", agent, {}, [](const AsUser &self, FdRef channel) { serve_directory_modes(self, channel); }};

    // The errno; -1 without an answer.
    [[nodiscard]] int ask(const std::string &path, unsigned mode, int flags = O_PATH | O_NOFOLLOW) const
    {
        const UniqueFd object = open_path(path, flags);
        return answer_to(encode(ModeRequest{mode}), {object.get()});
    }
    [[nodiscard]] int answer_to(const std::string &bytes, const std::vector<int> &descriptors) const
    {
        try {
            send_packet(child.channel(), bytes, descriptors, in_seconds(5));
            const auto answer = receive_packet(child.channel(), in_seconds(5));
            return answer ? decode_fields<ModeAnswer>(answer->bytes).error : -1;
        } catch (const Failure &) {
            return -1;
        }
    }
};

} // namespace

TEST_CASE("a directory of the agent's gets the mode, however it was opened" * doctest::skip(not_root()))
{
    const Changer changer;
    CHECK(changer.ask(changer.directory, 02755) == 0);
    CHECK(mode_of(changer.directory) == 02755);
    CHECK(changer.ask(changer.directory, 03700, O_RDONLY | O_DIRECTORY) == 0);
    CHECK(mode_of(changer.directory) == 03700);
}

TEST_CASE("what is no directory, and what is not the agent's, keeps its mode" * doctest::skip(not_root()))
{
    const Changer changer;
    const std::string file = changer.place.write("directory/file", "x");
    give(file, changer.agent);
    CHECK(changer.ask(file, 02755) == EPERM);
    CHECK(changer.ask(file, 02755, O_RDWR) == EPERM);
    CHECK((mode_of(file) & 07000U) == 0);
    CHECK(changer.ask("/dev/null", 02755, O_RDWR) == EPERM);
    const std::string others = changer.place.make("others");
    const mode_t before = mode_of(others);
    CHECK(changer.ask(others, 02755) == EPERM);
    CHECK(mode_of(others) == before);
    CHECK(changer.ask("/", 02755) != 0); // read-only where the tests run
}

TEST_CASE("who asks for anything else gets no answer but the end" * doctest::skip(not_root()))
{
    const auto answer = [](const std::string &bytes, std::size_t descriptors) {
        const Changer changer;
        const UniqueFd object = open_path(changer.directory, O_PATH);
        const int said = changer.answer_to(bytes, std::vector<int>(descriptors, object.get()));
        CHECK(mode_of(changer.directory) == 0700);
        return said;
    };
    CHECK(answer(encode(ModeRequest{02755}), 0) == -1);
    CHECK(answer(encode(ModeRequest{02755}), 2) == -1);
    CHECK(answer(Encoder().number(04755).bytes(), 1) == -1);
    CHECK(answer(Encoder().number(~std::uint64_t{0}).bytes(), 1) == -1);
    CHECK(answer("x", 1) == -1);
    CHECK(answer(encode(ModeRequest{02755}) + "x", 1) == -1);
}

TEST_CASE("the groups are the agent's, and the user's but for the primary one")
{
    const Account agent{"pi-agent", Uid(900), Gid(901), "/", {901, 5}};
    const Account user{"alice", Uid(1000), Gid(1001), "/", {1001, 5, 50}};
    const Account both = agent_with_groups_of(agent, user);
    CHECK(both.uid == agent.uid);
    CHECK(both.gid == agent.gid);
    CHECK((both.groups == std::vector<gid_t>{901, 5, 50}));
}

} // namespace directory_modes_test
