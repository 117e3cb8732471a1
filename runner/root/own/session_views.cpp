// Looks at the sessions that live.
#include "runner/root/own/session_views.hpp"

#include "common/base/text.hpp"
#include "common/host/account.hpp"
#include "runner/root/method/own_scope.hpp"
#include "runner/root/session/record.hpp"
#include "runner/root/session/session_directory.hpp"

#include <algorithm>
#include <chrono>

namespace pi_agent {

namespace {

std::uint64_t now_since_1970()
{
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

SessionView look_at(FdRef session, const LiveSession &live)
{
    SessionView view;
    view.id = live.id;
    view.uid = live.user.value();
    view.user = escape_for_display(name_or_number(live.user));
    const auto record = read_open_record(session);
    if (!record) return view;
    view.account = escape_for_display(record->subject.account);
    view.project = escape_for_display(record->subject.project);
    view.directory = escape_for_display(record->subject.directory);
    view.method = record->subject.method;
    view.unit = record->subject.unit;
    view.program = record->subject.program;
    view.started_usec = now_since_1970() - record->running_usec;
    if (const auto runner = session_runner(session)) view.usage = usage_of_session(live.id, *runner);
    return view;
}

} // namespace

std::vector<SessionView> look_at_sessions(const AsRoot &root, const std::optional<Uid> &user)
{
    const auto living = live_sessions(root);
    std::vector<SessionView> views;
    if (living.empty()) return views;
    const UniqueFd sessions = open_sessions();
    for (const auto &live : living) {
        if (user && live.user != *user) continue;
        if (const UniqueFd session = try_open_session(sessions, live.id)) views.push_back(look_at(session, live)); // else it has just ended
    }
    std::sort(views.begin(), views.end(), [](const SessionView &one, const SessionView &other) {
        if (one.started_usec && other.started_usec) return *one.started_usec < *other.started_usec;
        return one.started_usec.has_value() && !other.started_usec.has_value();
    });
    return views;
}

} // namespace pi_agent
