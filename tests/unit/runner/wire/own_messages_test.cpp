// A question about a user's own sessions and its answer, whole and broken: runner/wire/answer.hpp
#include "runner/wire/answer.hpp"

#include "support/failure.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace pi_agent;
using namespace pi_agent::test;

namespace own_messages_test {

namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
const std::string one_id = "0123456789abcdef0123456789abcdef";
const std::string other_id = "fedcba9876543210fedcba9876543210";

std::vector<OwnQuestion> questions()
{
    return {{OwnSubject::sessions},
            {OwnSubject::state},
            {OwnSubject::stop, {one_id}},
            {OwnSubject::stop, std::vector<std::string>(stop_limit, other_id)}};
}

// A question as somebody may write it who does not keep to the form.
std::string bytes_of(std::uint64_t about, const std::vector<std::string> &sessions)
{
    return Encoder().number(OwnQuestion::type).number(about).texts(sessions).bytes();
}

OwnAnswer full_answer()
{
    SessionView view;
    view.id = one_id;
    view.uid = 4'294'967'294U;
    view.user = "alice";
    view.directory = "/srv/a";
    view.started_usec = 7;
    view.usage = {3, std::nullopt, most};
    OwnAnswer answer;
    answer.sessions = {view, SessionView{}};
    answer.states = {SizeOfState{"alice", "pi-agent-alice", "/var/lib", 2, {HomeSize{9, 4}}, 1, "none"}};
    answer.left = {other_id};
    return answer;
}

} // namespace

TEST_CASE("each question comes back as it was")
{
    for (const auto &question : questions()) {
        const std::string bytes = encode(question);
        CHECK(bytes.size() <= question_limit);
        const OwnQuestion read = decode_question(bytes);
        CHECK(read.about == question.about);
        CHECK(read.sessions == question.sessions);
    }
}

TEST_CASE("a question that is cut off or goes on breaks the protocol")
{
    for (const auto &question : questions()) {
        const std::string bytes = encode(question);
        for (std::size_t length = 0; length < bytes.size(); ++length)
            REQUIRE_THROWS_AS(decode_question(std::string_view(bytes).substr(0, length)), ProtocolError);
        CHECK_THROWS_AS(decode_question(bytes + std::string(1, '\0')), ProtocolError);
        CHECK_THROWS_AS(decode_question(bytes + bytes), ProtocolError);
    }
}

TEST_CASE("a question begins like nothing else that a caller sends")
{
    const std::string bytes = encode(OwnQuestion{OwnSubject::sessions});
    CHECK(failure_of([&] { return decode_request(bytes); }).status == 77);
    CHECK_THROWS_AS(decode_wrapper_message(bytes), ProtocolError);
    CHECK_THROWS_AS(decode_question(encode_request(Request{})), ProtocolError);
    CHECK_THROWS_AS(decode_question(Encoder().number(OwnQuestion::type - 1).number(0).number(0).bytes()), ProtocolError);
}

TEST_CASE("a question about what root does not answer is refused")
{
    CHECK_NOTHROW(decode_question(bytes_of(0, {})));
    for (const auto &bytes : {bytes_of(3, {}), bytes_of(most, {}), bytes_of(0, {one_id}), bytes_of(1, {one_id}), bytes_of(2, {}),
                              bytes_of(2, std::vector<std::string>(stop_limit + 1, one_id))})
        CHECK_THROWS_AS(decode_question(bytes), ProtocolError);
}

TEST_CASE("what is to be stopped is named by whole ids")
{
    CHECK_NOTHROW(decode_question(bytes_of(2, {one_id, other_id})));
    for (const std::string &word : {std::string(), std::string("0"), one_id.substr(1), one_id + "0", std::string("../") + one_id.substr(3),
                                    std::string("0123456789ABCDEF0123456789abcdef"), std::string("\x1b[2J"), std::string(3000, 'a')})
        CHECK_THROWS_AS(decode_question(bytes_of(2, {one_id, word})), ProtocolError);
}

TEST_CASE("a question is small, whatever it counts")
{
    CHECK(has(failure_of([] { return decode_question(bytes_of(2, {std::string(question_limit, 'x')})); }).text, "larger than 4096"));
    for (const std::uint64_t count : {std::uint64_t{65}, most}) // nothing is made room for before it is there
        CHECK_THROWS_AS(decode_question(Encoder().number(OwnQuestion::type).number(2).number(count).bytes()), ProtocolError);
}

TEST_CASE("an answer comes back as it was, and so does a refusal")
{
    const OwnReply reply = decode_reply(encode(OwnReply(full_answer())));
    const auto *answer = std::get_if<OwnAnswer>(&reply);
    REQUIRE(answer != nullptr);
    CHECK(encode(*answer) == encode(full_answer()));
    CHECK(answer->sessions[0].usage.processes == 3);
    CHECK_FALSE(answer->sessions[0].usage.memory);
    CHECK(answer->sessions[0].usage.cpu_usec == most);
    CHECK(answer->states[0].home[0].caches == 4);
    const OwnReply refusal = decode_reply(encode(OwnReply(FailureReport{ExitStatus::limit, "limit: four", FailureKind::session_limit})));
    REQUIRE(std::holds_alternative<FailureReport>(refusal));
    CHECK(std::get<FailureReport>(refusal).text == "limit: four");
}

TEST_CASE("an answer that is cut off, goes on or counts what it does not hold breaks the protocol")
{
    const std::string bytes = encode(full_answer());
    for (std::size_t length = 0; length < bytes.size(); ++length)
        REQUIRE_THROWS_AS(decode_reply(std::string_view(bytes).substr(0, length)), ProtocolError);
    CHECK_THROWS_AS(decode_reply(bytes + "x"), ProtocolError);
    CHECK_THROWS_AS(decode_reply(Encoder().number(OwnAnswer::type).number(most).bytes()), ProtocolError);
    CHECK_THROWS_AS(decode_fields<SessionUsage>(Encoder().number(2).number(0).number(0).bytes()), ProtocolError);
}

} // namespace own_messages_test
