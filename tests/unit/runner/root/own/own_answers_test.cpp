// What root answers a user about their own sessions, and how it knows a question: runner/root/own/questions.hpp, questions.hpp
#include "runner/root/own/questions.hpp"

#include "runner/as_user/project.hpp"
#include "runner/root/door/admission.hpp"
#include "runner/root/session/session_directory.hpp"
#include "support/failure.hpp"
#include "support/private_run.hpp"
#include "support/skipped.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>

using namespace pi_agent;
using namespace pi_agent::test;

namespace own_answers_test {

namespace {

const std::string one_id = "0123456789abcdef0123456789abcdef";
const std::string other_id = "0123456789abcdef0123456789abcdee";

Deadline soon()
{
    return in_seconds(5);
}

void check_apart(const std::string &said, const std::string &wanted)
{
    if (said == no_private_run) return skipped("this place makes no mount namespaces");
    CHECK(said == wanted);
}

} // namespace

TEST_CASE("only whole ids of the user's own sessions are found")
{
    CHECK(is_asked_for(one_id, {one_id}));
    CHECK(is_asked_for(one_id, {other_id, one_id, one_id}));
    CHECK_FALSE(is_asked_for(one_id, {other_id}));
    CHECK_FALSE(is_asked_for(one_id, {}));
    for (const std::string &beginning : {std::string(), one_id.substr(0, 8), one_id.substr(0, 31)})
        CHECK_FALSE(is_asked_for(one_id, {beginning}));
}

TEST_CASE("a question is known by its first bytes, which stay where they are")
{
    const std::string question = encode(OwnQuestion{OwnSubject::sessions});
    const auto holds = [](const std::string &bytes, const std::vector<int> &fds = {}) {
        const auto [own, theirs] = make_channel();
        if (!bytes.empty()) send_packet(own, bytes, fds, soon());
        const bool found = holds_question(theirs);
        CHECK(holds_question(theirs) == found);
        if (!bytes.empty()) CHECK(receive_packet(theirs, soon())->bytes == bytes);
        return found;
    };
    CHECK(holds(question));
    CHECK(holds(question, {STDIN_FILENO}));
    CHECK(holds(question.substr(0, 8)));
    CHECK_FALSE(holds(question.substr(0, 7)));
    CHECK_FALSE(holds(question.substr(1)));
    CHECK_FALSE(holds(encode_request(Request{})));
    CHECK_FALSE(holds(""));
    auto [own, theirs] = make_channel();
    own.reset();
    CHECK_FALSE(holds_question(theirs));
}

TEST_CASE("a question is one small packet without a descriptor")
{
    const std::string question = encode(OwnQuestion{OwnSubject::state});
    const auto said = [](const std::string &bytes, const std::vector<int> &fds) {
        const auto [own, theirs] = make_channel();
        send_packet(own, bytes, fds, soon());
        const FdRef receiver = theirs;
        return failure_of([&] { return receive_question(receiver); });
    };
    CHECK(said(question, {}).status == 0);
    CHECK(has(said(question, {STDIN_FILENO}).text, "a question with a descriptor"));
    CHECK(has(said(question + std::string(question_limit, 'x'), {}).text, "larger than 4096"));
    CHECK(has(said(question.substr(0, 12), {}).text, "ends too early"));
    auto [own, theirs] = make_channel();
    own.reset();
    const FdRef closed = theirs;
    CHECK(has(failure_of([&] { return receive_question(closed); }).text, "closed before a question came"));
}

TEST_CASE("a user's sessions are seen by number, others' and those that are over are not" * doctest::skip(not_root()))
{
    check_apart(in_private_run([] {
                    const AsRoot root = AsRoot::claim();
                    const auto own = SessionDirectory::create(root, make_session_id(), Uid(1000));
                    const auto others = SessionDirectory::create(root, make_session_id(), Uid(1001));
                    const auto over = SessionDirectory::create(root, make_session_id(), Uid(1000));
                    over.unlock();
                    const auto seen = look_at_sessions(root, Uid(1000));
                    const bool is_right =
                        seen.size() == 1 && own.path().ends_with(seen[0].id) && seen[0].uid == 1000 && !seen[0].started_usec;
                    return std::string(is_right ? "own" : "wrong") + ", all " + std::to_string(look_at_sessions(root, {}).size());
                }),
                "own, all 2");
}

TEST_CASE("before the first session nobody has any" * doctest::skip(not_root()))
{
    check_apart(in_private_run([] { return std::to_string(look_at_sessions(AsRoot::claim(), Uid(1000)).size()); }), "0");
}

TEST_CASE("four questions of one user are answered at once, whoever else asks" * doctest::skip(not_root()))
{
    check_apart(in_private_run([] {
                    const AsRoot root = AsRoot::claim();
                    std::vector<UniqueFd> held;
                    for (int count = 0; count < 4; ++count)
                        held.push_back(take_question_slot(root, Uid(1000)));
                    const Caught fifth = failure_of([&] { return take_question_slot(root, Uid(1000)); });
                    const bool bobs = take_question_slot(root, Uid(1001)).is_open();
                    const bool start = take_start_slot(root, Uid(1000)).is_open(); // a question takes none of a start's
                    held.pop_back();
                    const bool again = take_question_slot(root, Uid(1000)).is_open();
                    return std::to_string(fifth.status) + (has(fifth.text, "limit: 4 questions") ? " told" : fifth.text) +
                           (bobs && start && again ? ", others and later ones are answered" : ", too few");
                }),
                "75 told, others and later ones are answered");
}

} // namespace own_answers_test
