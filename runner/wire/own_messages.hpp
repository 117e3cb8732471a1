// What a user asks about their own sessions, and what root answers (runner/root/own/questions.hpp): one question, one answer, each bounded.
#pragma once

#include "common/base/request.hpp"

#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "runner/wire/answer.hpp"

namespace pi_agent {

// --- The question: one packet, which is in the socket before sudo starts. It names no user: root knows who asks.

enum class OwnSubject : std::uint64_t { sessions, state, stop };

constexpr std::size_t question_limit = 4096; // bytes
constexpr std::size_t stop_limit = 64;       // sessions in one question

struct OwnQuestion {
    OwnSubject about{};
    std::vector<std::string> sessions = {}; // stop: whole ids
    // No request of a start begins like this (common/base/channel.cpp).
    static constexpr std::uint64_t type = 0x70692d61736b0002; // "pi-ask", version 2

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.about, OwnSubject::stop, "a question is about something unknown");
        archive.bounded(self.sessions, stop_limit);
        archive.require([&] { return self.sessions.empty() == (self.about != OwnSubject::stop); },
                        "a question names sessions exactly when it is to stop them");
        archive.require([&] { return are_whole_ids(self.sessions); }, "a question names something that is not the id of a session");
    }

private:
    // The beginning of an id may fit another session by the time that root looks, so root is told whole ones alone.
    static bool are_whole_ids(const std::vector<std::string> &sessions)
    {
        return std::all_of(sessions.begin(), sessions.end(), is_session_id) || !defence_is_on("whole-id");
    }
};

// Throws ProtocolError for anything that is not exactly one question.
inline OwnQuestion decode_question(std::string_view bytes)
{
    if (bytes.size() > question_limit)
        throw ProtocolError("a question larger than " + std::to_string(question_limit) + " bytes was refused");
    return std::get<OwnQuestion>(decode_one_of<std::variant<OwnQuestion>>(bytes, "the first message is not a question"));
}

// --- The answer: one record. Its texts are harmless, as in the record (common/record/record_event.hpp).

constexpr const char *too_many_answers = "an answer is longer than any that root sends";

// What a session uses at this moment, from the kernel (runner/root/method/session_units.hpp).
struct SessionUsage {
    std::optional<std::uint64_t> processes = {}; // in its sandbox
    std::optional<std::uint64_t> memory = {};    // bytes, of them all; needs the memory controller
    std::optional<std::uint64_t> cpu_usec = {};  // since its start; needs control groups of version 2

    static void fields(auto &archive, auto &self) { archive(self.processes, self.memory, self.cpu_usec); }
};

struct SessionView {
    std::string id;
    std::uint32_t uid = 0;
    std::string user;                                // "uid 1000" where the user database has none of that number
    std::string account, project, directory, method; // each empty until the agent starts, as are the others
    std::string unit, program;                       // unit: with method systemd
    std::optional<std::uint64_t> started_usec = {};  // since 1970
    SessionUsage usage = {};

    static void fields(auto &archive, auto &self)
    {
        archive(self.id);
        archive.bounded(self.uid, UINT32_MAX, "an answer carries an impossible uid");
        archive(self.user, self.account, self.project, self.directory, self.method, self.unit, self.program);
        archive(self.started_usec, self.usage);
    }
};
constexpr std::size_t view_limit = 4096; // sessions in one answer

// How much disk is kept for a user.
struct HomeSize {
    std::uint64_t all = 0;    // bytes on disk
    std::uint64_t caches = 0; // of these, in cache_places

    static void fields(auto &archive, auto &self) { archive(self.all, self.caches); }
};

struct SizeOfState {
    std::string user, account, path;
    std::uint64_t sessions = 0;
    std::vector<HomeSize> home = {}; // none where it cannot be measured
    std::uint64_t scratch = 0;
    std::string problem = {};

    static void fields(auto &archive, auto &self)
    {
        archive(self.user, self.account, self.path, self.sessions);
        archive.bounded(self.home, 1, too_many_answers);
        archive(self.scratch, self.problem);
    }
};

struct OwnAnswer {
    std::vector<SessionView> sessions = {}; // those that live; of stop: those that were ended
    std::vector<SizeOfState> states = {};   // state
    std::vector<std::string> left = {};     // stop: those that do not end
    static constexpr std::uint64_t type = 20;

    static void fields(auto &archive, auto &self)
    {
        archive.bounded(self.sessions, view_limit, too_many_answers);
        archive.bounded(self.states, view_limit, too_many_answers);
        archive.bounded(self.left, stop_limit);
    }
};

// What comes back: an answer, or the reason for its absence.
using OwnReply = std::variant<FailureReport, OwnAnswer>;
inline OwnReply decode_reply(std::string_view bytes)
{
    return decode_one_of<OwnReply>(bytes, "the runner sent an unknown answer");
}

} // namespace pi_agent
