// A session's own file, locked by its runner, stands for the `ended` that is not recorded yet. The kernel releases the lock when the runner
// dies, in whatever way: the process that gets it then, and finds the file still there, records the end.
#include "runner/root/session/record.hpp"

#include "common/base/files.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/session/state_directory.hpp"

#include <array>
#include <chrono>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace pi_agent {

namespace {

constexpr const char *record_name = "record";
constexpr const char *unfinished_name = "record.new";
constexpr const char *unheard = "its runner did not record how: it was killed, or nothing took the entry";
constexpr std::size_t note_limit = 64UL * 1024;
constexpr auto usage_patience = std::chrono::milliseconds(250);

// The same clock for all processes of this boot, and it goes on while the host sleeps.
std::uint64_t now_usec()
{
    timespec now{};
    if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) throw_errno("reading the clock");
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

// The texts of a note, in order.
constexpr std::array noted = {&RecordSubject::session, &RecordSubject::user,      &RecordSubject::account,
                              &RecordSubject::project, &RecordSubject::method,    &RecordSubject::unit,
                              &RecordSubject::program, &RecordSubject::directory, &RecordSubject::repository};
constexpr std::size_t noted_before = 7; // from an older version, which may have begun a session

std::string encode(const RecordSubject &subject, std::uint64_t started_usec)
{
    Encoder encoder;
    encoder.number(started_usec).number(subject.uid ? subject.uid->value() : 0);
    for (const auto text : noted)
        encoder.text(subject.*text);
    return encoder.bytes();
}

std::pair<RecordSubject, std::uint64_t> read_note(FdRef note)
{
    const std::string bytes = read_whole(note, note_limit, "the note of the session's end");
    Decoder decoder(bytes);
    std::pair<RecordSubject, std::uint64_t> known;
    known.second = decoder.number();
    known.first.uid = Uid(static_cast<uid_t>(decoder.number()));
    for (std::size_t index = 0; index < noted.size() && !(index == noted_before && decoder.is_at_end()); ++index)
        known.first.*noted[index] = decoder.text();
    decoder.end();
    return known;
}

// Gets its name only once it is complete and locked.
UniqueFd make_file(FdRef session, const std::string &content)
{
    const std::string action = "making the note of the session's end";
    UniqueFd file = open_or_throw(action, session, unfinished_name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) throw_errno("locking the note of the session's end");
    if (write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
        renameat(session.get(), unfinished_name, session.get(), record_name) != 0)
        throw_errno(action);
    return file;
}

// None when the note is gone.
UniqueFd open_note(FdRef session, int flags)
{
    return open_if_there("opening the note of the session's end", session, record_name, flags | O_NOFOLLOW);
}

bool is_recorded(FdRef file)
{
    const struct stat status = examine(file, "examining the note of the session's end");
    return status.st_nlink == 0 || status.st_size == 0;
}

// Empties a note that cannot be removed: otherwise whoever cleans up would record a second end.
void forget(FdRef session, FdRef note)
{
    if (unlinkat(session.get(), record_name, 0) != 0) static_cast<void>(ftruncate(note.get(), 0) == 0); // best_effort
}

} // namespace

void SessionRecord::runs_in(SandboxMethod method)
{
    subject_.method = to_string(method);
    if (has_unit(method)) subject_.unit = service_name(subject_.session);
}

void SessionRecord::adds(const std::vector<std::string> &hosts)
{
    for (const auto &host : hosts)
        added_hosts_ += (added_hosts_.empty() ? "" : " ") + host;
}

void SessionRecord::take_usage(const UnitUsage &usage)
{
    usage_ = usage;
    usage_counts_until_ = Clock::now() + usage_patience;
}

void SessionRecord::denied_connection(const ConnectionDeniedEvent &event) const noexcept
{
    constexpr int busy_journal_milliseconds = 20;
    try {
        record_event(subject_, event, "pi-agent-runner", busy_journal_milliseconds);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): best_effort: the session's end is recorded with more patience
    }
}

void SessionRecord::started(const SessionDirectory &session, const Account &agent, const std::string &project, Program program)
{
    subject_.account = agent.name;
    subject_.project = project;
    runs(program);
    started_usec_ = now_usec();
    // Opened again: a copy of the session's own descriptor would keep the session's lock.
    directory_ = open_or_throw("opening the session directory", session.fd(), ".", O_PATH | O_DIRECTORY);
    open_end_ = make_file(directory_, encode(subject_, started_usec_));
    try {
        record_event(subject_, StartedEvent{commits_unsigned_, added_hosts_});
    } catch (const Failure &) { // then the session does not start, and this counts as a refusal
        forget(directory_, open_end_);
        open_end_.reset();
        throw;
    }
    started_ = true;
    fault_point("start-recorded");
}

void SessionRecord::end(EndedEvent event)
{
    if (!open_end_) return; // recorded, or left to another process
    const UniqueFd ours = std::move(open_end_);
    event.duration_usec = now_usec() - started_usec_;
    event.memory_peak = usage_.memory_peak;
    event.cpu_usec = usage_.cpu_usec;
    fault_point("end-unrecorded");
    record_event(subject_, event); // where that fails, the note stays for whoever cleans up, who may have more luck
    forget(directory_, ours);
    flock(ours.get(), LOCK_UN); // also for a child that still has a copy of it
}

void SessionRecord::failed(ExitStatus status, const std::string &reason, FailureKind kind)
{
    const std::string why = asked_.empty() ? reason : asked_;
    if (recorded_failure_ == reason) return;
    if (!started_)
        record_event(subject_, DeniedEvent{status, why, kind});
    else if (open_end_)
        end({std::nullopt, why, {}, {}, {}});
    else
        record_event(subject_, ProblemEvent{reason});
    recorded_failure_ = reason;
}

std::optional<OpenRecord> read_open_record(FdRef session)
{
    const UniqueFd note = open_note(session, O_RDONLY);
    if (!note || is_recorded(note)) return std::nullopt;
    auto [subject, started_usec] = read_note(note);
    return OpenRecord{std::move(subject), now_usec() - started_usec};
}

bool has_open_end(FdRef session)
{
    struct stat status {};
    if (fstatat(session.get(), record_name, &status, AT_SYMLINK_NOFOLLOW) == 0) return status.st_size > 0;
    require_gone("looking for the note of the session's end");
    return false;
}

bool record_end_of_killed(const AsRoot & /*root*/, const std::string &session_id, Deadline deadline)
{
    const UniqueFd session = try_open_session(open_sessions(), session_id);
    if (!session) return true;
    const UniqueFd note = open_note(session, O_RDWR);
    if (!note) return true; // nothing had started, or all is recorded
    if (!lock_until(note, deadline, "the note of the session's end")) return false;
    if (is_recorded(note)) return true;
    const auto [subject, started_usec] = read_note(note);
    record_event(subject, EndedEvent{std::nullopt, unheard, now_usec() - started_usec, {}, {}});
    forget(session, note);
    return true;
}

} // namespace pi_agent
