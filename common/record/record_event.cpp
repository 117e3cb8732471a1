// The table of the record: what each event is called, and which fields it has; and how an entry reaches the journal.
#include "common/record/record_event.hpp"

#include "common/base/build_settings.hpp"
#include "common/base/text.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <syslog.h>

namespace pi_agent {

namespace {

constexpr std::size_t value_limit = 8192; // bytes of a value: an entry is one datagram

// The journal finds events by these. They never change; an event with another meaning gets another one.
struct EventName {
    const char *message_id;
    const char *name;
    int priority;
};
constexpr EventName denied_name{"7bf4d9228dc9412783564f72533c539c", "denied", LOG_WARNING};
constexpr EventName started_name{"66c98c44df044d42bb1c1db95e628542", "started", LOG_INFO};
constexpr EventName ended_name{"1473189816fb46f78756d779503e642b", "ended", LOG_INFO};
constexpr EventName passed_name{"17fc8ec4217144418246ed895f08a192", "preflight", LOG_INFO};
constexpr EventName failed_name{passed_name.message_id, passed_name.name, LOG_ERR};
constexpr EventName connection_name{"e13f445bcda001cb4f6ba8951f7ee7de", "connection-denied", LOG_NOTICE};
constexpr EventName problem_name{"6b13904c28cc477ab38d0614f010c115", "problem", LOG_ERR};

class Entry {
public:
    void add(const char *name, const std::string &value)
    {
        if (value.empty()) return;
        fields_.push_back({name, escape_for_display(value.substr(0, value_limit))});
    }
    void add(const char *name, const std::optional<std::uint64_t> &value)
    {
        if (value) fields_.push_back({name, std::to_string(*value)});
    }

    void begin(const EventName &event, const std::string &message)
    {
        // Its parts are harmless already, and escaping is not idempotent.
        fields_.push_back({"MESSAGE", message});
        add("MESSAGE_ID", event.message_id);
        add("PRIORITY", std::to_string(event.priority));
        add("PI_AGENT_EVENT", event.name);
    }

    [[nodiscard]] std::vector<JournalField> take() { return std::move(fields_); }

private:
    std::vector<JournalField> fields_;
};

std::string shown(const std::string &foreign)
{
    return escape_for_display(foreign.substr(0, value_limit));
}

std::string words_of(const EndedEvent &event)
{
    std::string text;
    if (event.how) text = (event.how->by_signal ? "signal " : "exit code ") + std::to_string(event.how->value);
    if (!event.reason.empty()) text += (text.empty() ? "" : ", ") + shown(event.reason);
    return text;
}

std::string in_agents_place(const std::string &program)
{
    if (program == "shell") return ", a shell in the agent's place";
    return program == "canary" ? ", a canary in the agent's place" : "";
}

void add_event(Entry &entry, const RecordSubject &subject, const DeniedEvent &event)
{
    const std::string who = shown(subject.user.empty() ? "somebody" : subject.user);
    const std::string what = event.status == ExitStatus::denied ? "refused " + who : "no session for " + who + " (a failure, not a denial)";
    entry.begin(denied_name, what + in_agents_place(subject.program) + ": " + shown(event.reason));
    entry.add("PI_AGENT_STATUS", static_cast<std::uint64_t>(event.status));
    entry.add("PI_AGENT_CODE", std::string(facts_of(event.kind, event.status).code));
    entry.add("PI_AGENT_REASON", event.reason);
}

void add_event(Entry &entry, const RecordSubject &subject, const StartedEvent &event)
{
    entry.begin(started_name, "session " + subject.session + " started: user " + shown(subject.user) + ", agent account " +
                                  shown(subject.account) + ", project " + shown(subject.project) +
                                  (subject.directory.empty() ? "" : ", in " + shown(subject.directory)) + in_agents_place(subject.program));
    if (event.commits_unsigned) entry.add("PI_AGENT_SIGNING", "off");
    entry.add("PI_AGENT_ADDED_HOSTS", event.added_hosts);
}

void add_event(Entry &entry, const RecordSubject &subject, const EndedEvent &event)
{
    entry.begin(ended_name, "session " + subject.session + " ended: " + words_of(event));
    if (event.how)
        entry.add(event.how->by_signal ? "PI_AGENT_EXIT_SIGNAL" : "PI_AGENT_EXIT_CODE", static_cast<std::uint64_t>(event.how->value));
    entry.add("PI_AGENT_REASON", event.reason);
    entry.add("PI_AGENT_DURATION_USEC", event.duration_usec);
    entry.add("PI_AGENT_MEMORY_PEAK", event.memory_peak);
    entry.add("PI_AGENT_CPU_USEC", event.cpu_usec);
}

void add_event(Entry &entry, const RecordSubject &subject, const PreflightEvent &event)
{
    const bool passed = event.problem.empty();
    const std::string whose = subject.user.empty() ? "" : " by the word of " + shown(subject.user) + "'s processes";
    entry.begin(passed ? passed_name : failed_name, "preflight of sandbox.method " + shown(subject.method) +
                                                        (passed ? " passed" : " failed") + whose +
                                                        (passed ? "" : ": " + shown(event.problem)));
    entry.add("PI_AGENT_RESULT", passed ? "passed" : "failed");
    entry.add("PI_AGENT_DURATION_USEC", std::optional(event.duration_usec));
    entry.add("PI_AGENT_REASON", event.problem);
}

void add_event(Entry &entry, const RecordSubject &subject, const ConnectionDeniedEvent &event)
{
    const std::string what = event.host.empty() ? "more connections" : shown(host_and_port(event.host, event.port));
    entry.begin(connection_name, "session " + subject.session + ": denied " + what +
                                     (event.count > 1 ? " (" + std::to_string(event.count) + " times)" : "") + ": " + shown(event.reason));
    entry.add("PI_AGENT_HOST", event.host);
    if (event.port != 0) entry.add("PI_AGENT_PORT", std::uint64_t{event.port});
    entry.add("PI_AGENT_CODE", event.code);
    entry.add("PI_AGENT_REASON", event.reason);
    entry.add("PI_AGENT_KEY", event.key);
    entry.add("PI_AGENT_WHERE", event.where);
    entry.add("PI_AGENT_COUNT", std::optional(event.count));
}

void add_event(Entry &entry, const RecordSubject &subject, const ProblemEvent &event)
{
    const std::string where = subject.session.empty() ? "" : "session " + subject.session + ": ";
    entry.begin(problem_name, where + shown(event.text));
    entry.add("PI_AGENT_REASON", event.text);
}

} // namespace

std::vector<JournalField> record_fields(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier)
{
    Entry entry;
    std::visit([&](const auto &known) { add_event(entry, subject, known); }, event);
    entry.add("SYSLOG_IDENTIFIER", identifier);
    entry.add("PI_AGENT_VERSION", build::version);
    entry.add("PI_AGENT_SESSION", subject.session);
    entry.add("PI_AGENT_USER", subject.user);
    if (subject.uid) entry.add("PI_AGENT_UID", std::uint64_t{subject.uid->value()});
    entry.add("PI_AGENT_ACCOUNT", subject.account);
    entry.add("PI_AGENT_PROJECT", subject.project);
    entry.add("PI_AGENT_DIRECTORY", subject.directory);
    entry.add("PI_AGENT_REPOSITORY", subject.repository);
    entry.add("SANDBOX_SELECT", subject.method);
    entry.add("PI_AGENT_UNIT", subject.unit);
    entry.add("PI_AGENT_PROGRAM", subject.program);
    return entry.take();
}

const char *message_id_of(const std::string &event)
{
    for (const auto &known : {denied_name, started_name, ended_name, passed_name, connection_name, problem_name})
        if (event == known.name) return known.message_id;
    throw Failure(ExitStatus::internal, "there is no event of that name");
}

// A newline in a value would begin another field, so such a value goes with its length.
std::string encode_journal_entry(const std::vector<JournalField> &fields)
{
    return joined(fields, "", [](const JournalField &one) {
        return one.name + (one.value.find('\n') == std::string::npos ? "=" + one.value : "\n" + Encoder().text(one.value).bytes()) + "\n";
    });
}

// Sends one datagram an entry (systemd.io, native journal protocol). It does not use sd_journal_sendv(3): without a journal that reports
// success, and if the journal hangs it waits for ever. Its library would also cost every start of `pi` more than the rest of the wrapper
// does. A journal with much to do has a full queue for a while (unix(7): of net.unix.max_dgram_qlen entries).
bool send_to_journal(const std::vector<JournalField> &fields, int patience_milliseconds) noexcept
{
    constexpr std::string_view socket_path = "/run/systemd/journal/socket";
    try {
        const std::string entry = encode_journal_entry(fields);
        const UniqueFd socket = UniqueFd::adopt(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
        const timeval patience{patience_milliseconds / 1000, static_cast<suseconds_t>(patience_milliseconds % 1000) * 1000};
        if (!socket || setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0) return false;
        const auto *to = reinterpret_cast<const sockaddr *>(&address);
        return sendto(socket.get(), entry.data(), entry.size(), MSG_NOSIGNAL, to, sizeof address) >= 0;
    } catch (const std::exception &) { // no memory for it
        return false;
    }
}

} // namespace pi_agent
