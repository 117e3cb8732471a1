// Answers the agent's calls that its filter asks about (seccomp_unotify(2)).
#include "runner/inside/agent_process.hpp"

#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <climits>
#include <cstring>
#include <thread>

namespace pi_agent {

namespace {

// --- Questions about calls.

constexpr int fchmodat2_number = 452; // newer than some headers; the same for all architectures
constexpr int ioprio_of_process = 1;  // IOPRIO_WHO_PROCESS: linux/ioprio.h is newer than some headers

constexpr const char *access_list = "system.posix_acl_access";

enum class About { mode, group, list, tuning };

// A call that waits, and which of its arguments says what; -1: none.
struct AskedCall {
    int number;
    About about;
    int value;      // the mode, the owner, or the process
    int descriptor; // of the object; with a path, of the directory that it begins in
    int path = -1;
    int flags = -1; // or fixed ones
    int fixed_flags = 0;
};
constexpr AskedCall asked_calls[] = {
#ifdef SYS_chmod
    {SYS_chmod, About::mode, 1, -1, 0},
    {SYS_chown, About::group, 1, -1, 0},
    {SYS_lchown, About::group, 1, -1, 0, -1, AT_SYMLINK_NOFOLLOW},
#endif
    {SYS_fchmod, About::mode, 1, 0},
    {SYS_fchmodat, About::mode, 2, 0, 1},
    {fchmodat2_number, About::mode, 2, 0, 1, 3},
    {SYS_fchown, About::group, 1, 0},
    {SYS_fchownat, About::group, 2, 0, 1, 4},
    {SYS_prlimit64, About::tuning, 0, -1},
    {SYS_sched_setaffinity, About::tuning, 0, -1},
    {SYS_sched_setscheduler, About::tuning, 0, -1},
    {SYS_sched_setparam, About::tuning, 0, -1},
    {SYS_sched_setattr, About::tuning, 0, -1},
    {SYS_setpriority, About::tuning, 1, -1},
    {SYS_ioprio_set, About::tuning, 1, -1},
    {SYS_fsetxattr, About::list, -1, 0},
    {SYS_setxattr, About::list, -1, -1, 0},
    {SYS_lsetxattr, About::list, -1, -1, 0, -1, AT_SYMLINK_NOFOLLOW},
};

// One call that waits. Its thread may be killed, and another thread may get its number: then what was opened by that number is not used.
class Question {
public:
    Question(FdRef questions, const seccomp_notif &told) noexcept
        : questions_(questions), told_(told), call_(std::find_if(std::begin(asked_calls), std::end(asked_calls),
                                                                 [&](const AskedCall &one) { return one.number == told.data.nr; }))
    {
    }

    // The object of the call, opened for its place alone. Throws SystemFailure with the error that the caller will see.
    [[nodiscard]] UniqueFd open_object() const
    {
        if (call_ == std::end(asked_calls)) throw SystemFailure(ENOSYS, "an unknown question");
        const auto &of = told_.data.args;
        if (call_->path < 0) return open_descriptor(of[call_->descriptor]);
        const int from = call_->descriptor < 0 ? AT_FDCWD : static_cast<int>(of[call_->descriptor]);
        return open_path(from, of[call_->path], call_->flags < 0 ? call_->fixed_flags : static_cast<int>(of[call_->flags]));
    }

    [[nodiscard]] bool is_about(About what) const noexcept { return call_ != std::end(asked_calls) && call_->about == what; }
    [[nodiscard]] unsigned mode() const noexcept { return static_cast<unsigned>(told_.data.args[call_->value] & 07777U); }
    // The owner that a chown(2) sets; none where it keeps the present one.
    [[nodiscard]] uid_t owner() const noexcept { return static_cast<uid_t>(told_.data.args[call_->value]); }

    // Whether the call tunes no process but those of this session. Where numbers are the session's own, that is each but this launcher,
    // which has the agent's account, too. Elsewhere it is a thread of the caller's own process. The caller waits, so its own number can be
    // nobody else's. Another thread's number may pass to a neighbour between this look and the call: an agent would have to use up all
    // numbers in that moment, and could slow that process down or change its limits.
    [[nodiscard]] bool stays_in_session(bool has_own_numbers) const
    {
        const auto &of = told_.data.args;
        if (call_->value == 1 && static_cast<int>(of[0]) != (call_->number == SYS_setpriority ? int{PRIO_PROCESS} : ioprio_of_process))
            return false; // a group of processes, or all of the account
        const auto target = static_cast<pid_t>(of[call_->value]);
        if (target == 0 || target == static_cast<pid_t>(told_.pid)) return true;
        if (has_own_numbers) return target != getpid() && look_for_thread(getpid(), target) == ENOENT; // another error says nothing
        return look_for_thread(static_cast<pid_t>(told_.pid), target) == 0 &&
               ioctl(questions_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &told_.id) == 0;
    }

    // The mode that setxattr(2) writes down as a list of owner, group and others; empty where the call does something else.
    [[nodiscard]] std::optional<unsigned> mode_of_list() const
    {
        try {
            if (told_.data.args[4] != 0 || read_text(told_.data.args[1]) != access_list) return std::nullopt;
            const UniqueFd memory = open_of_caller("mem", O_RDONLY);
            PlainList list{};
            const ssize_t length = pread(memory.get(), &list, sizeof list, static_cast<off_t>(told_.data.args[2]));
            return length == sizeof list ? mode_of(list) : std::nullopt;
        } catch (const Failure &) { // the kernel says the same, in its own words
            return std::nullopt;
        }
    }

private:
    // An errno; 0 where the process has that thread.
    static int look_for_thread(pid_t process, pid_t thread)
    {
        const std::string place = "/proc/" + std::to_string(process) + "/task/" + std::to_string(thread);
        return access(place.c_str(), F_OK) == 0 ? 0 : errno;
    }

    [[nodiscard]] std::string place(const std::string &name) const { return "/proc/" + std::to_string(told_.pid) + "/" + name; }

    // Call it after something was opened by the caller's number.
    void require_caller() const
    {
        if (ioctl(questions_.get(), SECCOMP_IOCTL_NOTIF_ID_VALID, &told_.id) != 0) throw_errno("looking for the caller");
    }

    [[nodiscard]] UniqueFd open_of_caller(const std::string &name, int flags) const
    {
        UniqueFd fd = open_or_throw("opening what a caller has", place(name), flags | O_CLOEXEC);
        require_caller();
        return fd;
    }

    [[nodiscard]] UniqueFd open_descriptor(std::uint64_t number) const
    {
        try {
            return open_of_caller("fd/" + std::to_string(static_cast<int>(number)), O_PATH);
        } catch (const SystemFailure &failure) {
            throw SystemFailure(failure.error_number() == ENOENT ? EBADF : failure.error_number(), "opening a descriptor");
        }
    }

    [[nodiscard]] std::string read_text(std::uint64_t address) const
    {
        const UniqueFd memory = open_of_caller("mem", O_RDONLY);
        std::array<char, PATH_MAX> text{};
        const ssize_t length =
            pread(memory.get(), text.data(), text.size(), static_cast<off_t>(address)); // shorter where a page is missing
        if (length <= 0) throw SystemFailure(EFAULT, "reading a path");
        const auto read = static_cast<std::size_t>(length);
        const void *end = std::memchr(text.data(), '\0', read);
        if (end == nullptr) throw SystemFailure(read < text.size() ? EFAULT : ENAMETOOLONG, "reading a path");
        return text.data();
    }

    [[nodiscard]] UniqueFd open_path(int directory, std::uint64_t address, int flags) const
    {
        if ((flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0) throw SystemFailure(EINVAL, "a flag is unknown");
        const std::string path = seen_by(static_cast<pid_t>(told_.pid), read_text(address));
        const int follow = O_PATH | O_CLOEXEC | ((flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0);
        if (path[0] == '/') {
            UniqueFd object = open_or_throw("opening a path", path, follow);
            require_caller(); // seen_by() may have put the number into it
            return object;
        }
        if (path.empty() && (flags & AT_EMPTY_PATH) == 0) throw SystemFailure(ENOENT, "there is no path");
        UniqueFd from = directory == AT_FDCWD ? open_of_caller("cwd", O_PATH) : open_descriptor(static_cast<std::uint64_t>(directory));
        return path.empty() ? std::move(from) : open_or_throw("opening a path", from, path, follow);
    }

    FdRef questions_;
    const seccomp_notif &told_;
    const AskedCall *call_;
};

int ask_outside(FdRef changer, FdRef object, unsigned mode)
{
    send_packet(changer, encode(ModeRequest{mode}), {object.get()}, Deadline::max());
    const std::optional<Packet> answer = receive_packet(changer, Deadline::max());
    return answer ? decode_fields<ModeAnswer>(answer->bytes).error : EPERM;
}

// Whether the call would change nothing: the group is the one that shows as unknown, and this account is and stays the owner.
bool changes_nothing(const Question &question)
{
    try {
        const struct stat facts = examine(question.open_object(), "looking at a group");
        const uid_t wanted = question.owner();
        return facts.st_gid == unknown_group && facts.st_uid == getuid() && (wanted == facts.st_uid || wanted == ~uid_t{0});
    } catch (const Failure &) { // the kernel says the same, in its own words
        return false;
    }
}

// Does the same as chmod(2), for a set-gid directory without a longer list; empty where the kernel gives the same result.
std::optional<int> answer_to_list(const Question &question, unsigned mode, FdRef changer)
{
    try {
        const UniqueFd object = question.open_object();
        const struct stat facts = examine(object, "looking at a directory");
        const std::string name = "/proc/self/fd/" + std::to_string(object.get());
        const bool is_plain = getxattr(name.c_str(), access_list, nullptr, 0) < 0 && errno == ENODATA;
        if (!S_ISDIR(facts.st_mode) || (facts.st_mode & (S_ISUID | S_ISGID)) != S_ISGID || !is_plain) return std::nullopt;
        return ask_outside(changer, object, (facts.st_mode & (S_ISGID | S_ISVTX)) | mode);
    } catch (const Failure &) { // the kernel says the same, in its own words
        return std::nullopt;
    }
}

int answer_to_mode(const Question &question, FdRef changer)
{
    try {
        return ask_outside(changer, question.open_object(), question.mode());
    } catch (const SystemFailure &failure) {
        // EACCES: /proc hides a caller that nobody may look into. EPIPE: the process that changes modes is gone.
        const int error = failure.error_number();
        return error == EPIPE || error == ECONNRESET ? EPERM : error;
    } catch (const std::exception &) { // from the process that changes modes
        return EPERM;
    }
}

// The errno, 0 when it was done. Empty where the call goes on, because the kernel's answer is right: it gives nobody the bit, and tunes
// nobody else.
std::optional<int> answer_to(const Question &question, FdRef changer, bool has_own_numbers)
{
    if (question.is_about(About::tuning)) return question.stays_in_session(has_own_numbers) ? std::nullopt : std::optional(EPERM);
    if (question.is_about(About::group)) return changes_nothing(question) ? std::optional(0) : std::nullopt;
    if (!question.is_about(About::list)) return answer_to_mode(question, changer);
    const std::optional<unsigned> mode = question.mode_of_list();
    return mode ? answer_to_list(question, *mode, changer) : std::nullopt;
}

// As long as this kernel's structures: the kernel writes its own length.
template <typename Told>
class Space {
public:
    explicit Space(std::size_t size) : words_((std::max(size, sizeof(Told)) + 7) / 8) {}
    Told &cleared() noexcept
    {
        std::fill(words_.begin(), words_.end(), 0);
        return *reinterpret_cast<Told *>(words_.data()); // NOLINT(cppcoreguidelines-pro-type-reinterpret-cast): the kernel's interface
    }

private:
    std::vector<std::uint64_t> words_;
};

// Ends, and closes the descriptor, when the kernel can report no more questions: then these calls end with ENOSYS.
void serve(FdRef questions, FdRef changer, bool has_own_numbers)
{
    seccomp_notif_sizes sizes{};
    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return;
    Space<seccomp_notif> asked(sizes.seccomp_notif);
    Space<seccomp_notif_resp> said(sizes.seccomp_notif_resp);
    for (;;) {
        const seccomp_notif &told = asked.cleared();
        if (ioctl(questions.get(), SECCOMP_IOCTL_NOTIF_RECV, &told) != 0) {
            if (errno == EINTR || errno == ENOENT) continue; // its caller is gone again
            return;
        }
        const Question question(questions, told);
        seccomp_notif_resp &answer = said.cleared();
        answer.id = told.id;
        if (const std::optional<int> error = answer_to(question, changer, has_own_numbers))
            answer.error = -*error;
        else
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        if (ioctl(questions.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0 && errno != ENOENT && errno != EINTR) return;
    }
}

} // namespace

std::string seen_by(pid_t thread, const std::string &path)
{
    const std::string own = "/proc/" + std::to_string(thread) + "/";
    for (const auto &[name, place] :
         {std::pair<std::string, std::string>{"/proc/self/", own}, {"/proc/thread-self/", own}, {"/dev/fd/", own + "fd/"}})
        if (path.compare(0, name.size(), name) == 0) return place + path.substr(name.size());
    return path;
}

void answer_agent_calls(UniqueFd questions, UniqueFd changer, bool has_own_numbers)
{
    std::thread([questions = std::move(questions), changer = std::move(changer), has_own_numbers]() mutable {
        try {
            serve(questions, changer, has_own_numbers);
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): what it held is closed, and these calls end with ENOSYS
        }
        questions.reset();
    }).detach();
}

} // namespace pi_agent
