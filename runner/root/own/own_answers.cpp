// Looks, in a process that has few rights and little time, and ends what its user asks to end.
#include "runner/root/own/own_answers.hpp"

#include "common/seams/seams.hpp"
#include "runner/root/confined/root_confinement.hpp"
#include "runner/root/confined/session_end.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/root/own/journal_reader.hpp"
#include "runner/root/own/record_reader.hpp"
#include "runner/root/own/session_views.hpp"
#include "runner/root/own/state_sizes.hpp"

#include <algorithm>
#include <optional>

namespace pi_agent {

namespace {

constexpr int look_patience_seconds = 30;
constexpr const char *stop_reason = "its user ended it (pi-agentctl stop)";

// Nothing in the question says whose sessions it is about.
std::optional<Uid> whose(const Account &caller)
{
    return defence_is_on("own-sessions") ? std::optional(caller.uid) : std::nullopt;
}

OwnAnswer look(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question)
{
    OwnAnswer answer;
    if (question.about == OwnSubject::state) {
        answer.states = measure_states(root, policy.agent.state_dir, whose(caller) ? std::optional(caller.name) : std::nullopt);
        return answer;
    }
    // Of a history first those that live: what ends in between has its end in the record.
    answer.sessions = look_at_sessions(root, whose(caller));
    if (question.about == OwnSubject::sessions) return answer;
    RecordRead record = read_own_record(root, caller, question.since > 0 ? std::optional(question.since) : std::nullopt,
                                        question.about == OwnSubject::history ? RecordPart::starts : RecordPart::connections);
    answer.entries = std::move(record.entries);
    answer.is_cut = record.is_cut;
    return answer;
}

// What its user's own wrapper wrote is read here, and file systems that their agent filled are waited for: so a child looks, which has
// given up what it does not need, and which is killed when its time is over.
OwnAnswer look_confined(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question)
{
    Child looking(root, "look at your sessions", [&] {
        bound_memory_of_reader();
        confine_root(root);
        // --- confined root from here ---
        return encode(look(root, caller, policy, question));
    });
    return std::get<OwnAnswer>(decode_reply(looking.receive_long(look_patience_seconds)));
}

OwnAnswer stop(const AsRoot &root, const Account &caller, const OwnQuestion &question)
{
    OwnAnswer answer;
    answer.sessions = look_at_sessions(root, whose(caller));
    std::vector<std::string> own;
    for (const auto &session : answer.sessions)
        own.push_back(session.id);
    const auto found = find_own(own, question.sessions);
    std::vector<EndOrder> orders;
    for (const auto &id : found)
        orders.push_back({id, stop_reason});
    if (!orders.empty()) answer.left = end_sessions(root, orders);
    const auto has = [](const std::vector<std::string> &ids, const std::string &id) {
        return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    std::erase_if(answer.sessions, [&](const SessionView &session) { return !has(found, session.id) || has(answer.left, session.id); });
    return answer;
}

} // namespace

std::vector<std::string> find_own(const std::vector<std::string> &own, const std::vector<std::string> &asked)
{
    const auto is_meant = [](const std::string &id, const std::string &word) {
        return defence_is_on("whole-id") ? id == word : id.starts_with(word);
    };
    std::vector<std::string> found;
    for (const auto &id : own)
        if (std::any_of(asked.begin(), asked.end(), [&](const std::string &word) { return is_meant(id, word); })) found.push_back(id);
    return found;
}

OwnAnswer answer_own(const AsRoot &root, const Account &caller, const Policy &policy, const OwnQuestion &question)
{
    return question.about == OwnSubject::stop ? stop(root, caller, question) : look_confined(root, caller, policy, question);
}

} // namespace pi_agent
