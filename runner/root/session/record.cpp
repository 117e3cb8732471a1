// The record of a start, and the session's own locked file that stands for the `ended` that is not recorded yet.
#include "runner/root/session/session_directory.hpp"

#include "common/host/beneath.hpp"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/file.h>
#include <sys/xattr.h>

namespace pi_agent {

namespace {

constexpr const char *parent_path = "/var/log";
constexpr const char *state_path = "/var/lib/pi-agent"; // also where the homes are elsewhere

// A file of JSON lines, and beside it the one before, which was full.
struct LinesFile {
    std::string directory; // its path
    std::string stem;      // of its name
    mode_t mode;
    off_t full_size; // bytes
    [[nodiscard]] std::string name() const { return stem + ".jsonl"; }
    [[nodiscard]] std::string path() const { return directory + "/" + name(); }
    [[nodiscard]] std::string kept_prefix() const { return stem + ".full-"; } // followed by the number of its inode
};

// Anybody else who may write there could have written the past, too.
void require_roots_alone(const struct stat &status, const std::string &path)
{
    const bool roots = status.st_uid == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    if (!roots && defence_is_on("record-trust"))
        throw Failure(FailureKind::untrusted, path + " does not belong to root, or others can write to it");
}

UniqueFd open_record_directory()
{
    const UniqueFd parent = open_trusted(parent_path, O_RDONLY | O_DIRECTORY, "directory of logs");
    if (mkdirat(parent.get(), "pi-agent", 0700) != 0 && errno != EEXIST) throw_errno(std::string("creating ") + record_directory);
    UniqueFd directory = open_or_throw(std::string("opening ") + record_directory, parent, "pi-agent", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    require_roots_alone(examine(directory, std::string("examining ") + record_directory), record_directory);
    return directory;
}

// An access control list in the kernel's format (linux/posix_acl_xattr.h): root may do all, and one user look.
struct ReaderList {
    posix_acl_xattr_header header;
    posix_acl_xattr_entry entries[5];
};

ReaderList readers(Uid user, bool alone)
{
    constexpr std::uint32_t nobody = UINT32_MAX; // of entries that name no account
    constexpr std::uint16_t all = ACL_READ | ACL_WRITE | ACL_EXECUTE;
    const std::uint16_t users = alone ? ACL_READ | ACL_EXECUTE : all;
    const std::uint16_t others = alone ? 0 : all;
    return {{POSIX_ACL_XATTR_VERSION},
            {{ACL_USER_OBJ, all, nobody},
             {ACL_USER, users, user.value()},
             {ACL_GROUP_OBJ, 0, nobody},
             {ACL_MASK, users, nobody},
             {ACL_OTHER, others, nobody}}};
}

// Its files inherit the list. Empty before the first `apply`.
UniqueFd open_own_directory(const std::string &path, Uid user)
{
    const UniqueFd state = if_there([] { return open_trusted(state_path, O_RDONLY | O_DIRECTORY, "state directory"); });
    if (!state) return {};
    const bool alone = defence_is_on("own-record");
    const auto [parent, name] = split_last(path);
    const UniqueFd records = ensure_state_directory(state, "records", 0711, 0, 0, parent);
    UniqueFd own = ensure_state_directory(records, name.c_str(), alone ? 0750 : 0777, 0, 0, path);
    const ReaderList wanted = readers(user, alone);
    ReaderList found{};
    const auto size = fgetxattr(own.get(), "system.posix_acl_access", &found, sizeof found);
    if (size < 0 && errno != ENODATA && errno != ERANGE) throw_errno("examining " + path);
    if (size == sizeof found && std::memcmp(&found, &wanted, sizeof found) == 0) return own;
    const auto set = [&](const char *list) {
        if (fsetxattr(own.get(), list, &wanted, sizeof wanted, 0) != 0) throw_errno("letting its user look into " + path);
    };
    set("system.posix_acl_default"); // first: where no list can be set (a confined process, a file system without), nothing is removed
    for (const auto &left : names_in(own)) // of somebody who had this name before; two first starts of a user may both remove it
        if (unlinkat(own.get(), left.c_str(), 0) != 0) require_gone("removing " + path + "/" + left);
    set("system.posix_acl_access"); // says that both are there
    return own;
}

// Opened for each event, so that the administrator can move the file away at any time.
UniqueFd open_file(FdRef directory, const LinesFile &lines)
{
    return open_or_throw("opening " + lines.path(), directory, lines.name(),
                         O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, lines.mode);
}

struct stat examine_file(FdRef file, const std::string &path)
{
    const struct stat facts = examine(file, "examining " + path);
    if (!S_ISREG(facts.st_mode)) throw Failure(ExitStatus::configuration, path + " is not a regular file");
    require_roots_alone(facts, path);
    return facts;
}

// The full file moves away, and the one that was moved before it is removed. This takes no lock, as below: of the processes that find it
// full, one moves it, and the others find its name taken. No other file can have its number meanwhile. A process may come so late that the
// next file is full, too. It then moves that file early: old entries go sooner, and none is lost on its way.
void make_room(FdRef directory, const LinesFile &lines, ino_t number)
{
    const std::string kept = lines.kept_prefix() + std::to_string(number);
    if (renameat2(directory.get(), lines.name().c_str(), directory.get(), kept.c_str(), RENAME_NOREPLACE) != 0) {
        // EINVAL: a file system without such a rename. The file then keeps growing.
        if (errno != EEXIST && errno != ENOENT && errno != EINVAL) throw_errno("moving the full " + lines.path());
        return;
    }
    for (const auto &name : names_in(directory))
        if (name.starts_with(lines.kept_prefix()) && name != kept && unlinkat(directory.get(), name.c_str(), 0) != 0 && errno != ENOENT)
            throw_errno("removing an old " + lines.path());
}

std::string to_line(const std::vector<JournalField> &fields)
{
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    nlohmann::ordered_json line;
    line["__REALTIME_TIMESTAMP"] = std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
    for (const auto &field : fields)
        line[field.name] = field.value;
    return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

// A death in the middle of a write left half a line: the next entry must not continue it.
bool ends_within_a_line(FdRef file, off_t size)
{
    char last = '\n';
    return size > 0 && pread(file.get(), &last, 1, size - 1) == 1 && last != '\n';
}

// Throws Failure unless the whole event is in the file afterwards. Takes no lock: a holder can be stopped, by a terminal's ^Z or a frozen
// control group, and then nobody could record anything. One write to the end of a file stays whole, whoever else writes (write(2),
// O_APPEND).
void append(FdRef directory, const LinesFile &lines, const std::vector<JournalField> &fields)
{
    UniqueFd file = open_file(directory, lines);
    if (!defence_is_on("record-without-lock") && flock(file.get(), LOCK_EX | LOCK_NB) != 0)
        throw SystemFailure(EWOULDBLOCK, "locking " + lines.path());
    struct stat facts = examine_file(file, lines.path());
    if (facts.st_size >= lines.full_size && defence_is_on("record-bound")) {
        make_room(directory, lines, facts.st_ino);
        file = open_file(directory, lines);
        facts = examine_file(file, lines.path());
    }
    const std::string line = (ends_within_a_line(file, facts.st_size) ? "\n" : "") + to_line(fields);
    const ssize_t written = write(file.get(), line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) return;
    const int reason = written < 0 ? errno : ENOSPC;
    // The beginning of a line stays, and the next entry begins a new line: cutting it off could remove what somebody else has written
    // since.
    throw SystemFailure(reason, "writing to " + lines.path());
}

// best_effort. Connections have a file of their own: however many an agent is denied, they push no start out, and none of their failures
// becomes an entry. A file system that takes no copy takes none of the next either, so a process says it once.
void copy_for_user(const RecordSubject &subject, const RecordEvent &event, const std::vector<JournalField> &fields)
{
    if (!subject.uid || subject.user.empty() || std::holds_alternative<ProblemEvent>(event)) return;
    const auto copy = [&] {
        const auto path = own_record_directory(Account{subject.user, *subject.uid, Gid(0), "", {}});
        const auto *stem = std::holds_alternative<ConnectionDeniedEvent>(event) ? denials_stem : record_stem;
        const LinesFile lines{path, stem, mode_t{defence_is_on("own-record") ? 0640U : 0644U}, 2 << 20};
        if (const UniqueFd directory = open_own_directory(path, *subject.uid)) append(directory, lines, fields);
    };
    try {
        copy();
    } catch (const std::exception &failure) {
        static bool is_told = false;
        if (!std::holds_alternative<ConnectionDeniedEvent>(event) && !std::exchange(is_told, true))
            record_problem(subject.session, "its user's own copy of the record: ", failure.what());
    }
}

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

void record_event(const RecordSubject &subject, const RecordEvent &event, const std::string &identifier, int patience_milliseconds)
{
    const std::vector<JournalField> fields = record_fields(subject, event, identifier);
    try {
        if (!send_to_journal(fields, patience_milliseconds))
            append(open_record_directory(), {record_directory, record_stem, 0600, 16 << 20}, fields);
    } catch (const Failure &failure) {
        if (!defence_is_on("record-required")) return;
        throw Failure(FailureKind::record, std::string("the session cannot be recorded: the journal accepts no entry (does "
                                                       "systemd-journald run?), and the file in its place cannot be written: ") +
                                               failure.what() + "; ask the administrator to repair one of them");
    }
    copy_for_user(subject, event, fields);
}

void record_problem(std::string_view id, std::string_view text, std::string_view more) noexcept
{
    try {
        RecordSubject subject;
        subject.session = id;
        record_event(subject, ProblemEvent{std::string(text).append(more)});
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): nobody else can be informed
    }
}

void make_undo_directory(const Account &user)
{
    const UniqueFd state = open_trusted(state_path, O_RDONLY | O_DIRECTORY, "state directory");
    const UniqueFd all = ensure_state_directory(state, "undo", 0711, 0, 0, undo_path);
    ensure_state_directory(all, short_name(user).c_str(), 0700, user.uid.value(), 0, std::string(undo_path) + "/" + short_name(user));
}

std::string own_record_directory(const Account &user)
{
    return std::string(own_records_path) + "/" + short_name(user);
}

// A session's own file, locked by its runner, stands for the `ended` that is not recorded yet. The kernel releases the lock when the runner
// dies, in whatever way: the process that gets it then, and finds the file still there, records the end.

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
