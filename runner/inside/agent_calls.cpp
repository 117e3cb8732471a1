// Installs the agent's filters of system calls, writes a session's own, and answers what a filter asks about (seccomp_unotify(2)).
// (seccomp_unotify(2)).
#include "runner/inside/agent_process.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include <climits>
#include <cstring>
#include <thread>

namespace pi_agent {

namespace {

#include "runner/filter/call_filters.inc"

constexpr unsigned wait_killable = 1U << 5U; // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, newer than some headers

void install(const char *defence, std::span<const sock_filter> filter, const char *what)
{
    if (!defence_is_on(defence)) return;
    give_up_new_privileges();
    load_call_filter(filter, what);
}

// --- A session's own filter is written by hand, because libseccomp would take milliseconds of each start, and nothing but numbers of calls
// and one argument of two calls are compared.

struct CallNumber {
    std::string_view name;
    std::uint32_t number;
};

#include "runner/filter/call_numbers.inc"

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;
#endif
static_assert(architecture != 0, "name this architecture as the kernel does");

constexpr std::uint32_t first_x32_call = 0x40000000; // no other machine has numbers as high
constexpr std::uint32_t no_call = 0xffffffff;        // what a debugger puts there so that the kernel makes none
constexpr std::uint32_t whole_question = 0xffffffff; // personality(2): which it is

const CallNumber *find_number(std::string_view name)
{
    const auto *const found =
        std::find_if(std::begin(call_numbers), std::end(call_numbers), [&](const CallNumber &call) { return call.name == name; });
    return found == std::end(call_numbers) ? nullptr : found;
}

constexpr std::uint32_t end_process = SECCOMP_RET_KILL_PROCESS;
constexpr std::uint32_t let_through = SECCOMP_RET_ALLOW;

constexpr std::uint32_t fail_with(std::uint32_t error)
{
    return SECCOMP_RET_ERRNO | error;
}

// What the kernel looks at of an argument that it takes as an int.
constexpr std::size_t first_argument = offsetof(seccomp_data, args) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);

class CallProgram {
public:
    CallProgram()
    {
        load(offsetof(seccomp_data, arch));
        test(BPF_JEQ, architecture, 1, 0);
        end_with(end_process);
        load(offsetof(seccomp_data, nr));
        test(BPF_JGE, first_x32_call, 0, 2);
        test(BPF_JEQ, no_call, 1, 0);
        end_with(end_process);
    }

    void refuse(std::uint32_t number)
    {
        test(BPF_JEQ, number, 0, 1);
        end_with(fail_with(EPERM));
    }

    // A call whose first argument is none of `values` ends with `error`.
    void require_first_argument(std::uint32_t number, const std::vector<std::uint32_t> &values, std::uint32_t error)
    {
        const auto count = static_cast<std::uint8_t>(values.size());
        test(BPF_JEQ, number, 0, static_cast<std::uint8_t>(count + 3)); // past what follows here
        load(first_argument);
        for (std::uint8_t index = 0; index < count; ++index)
            test(BPF_JEQ, values[index], static_cast<std::uint8_t>(count - index), 0); // to the last line here
        end_with(fail_with(error));
        end_with(let_through);
    }

    [[nodiscard]] std::vector<sock_filter> take()
    {
        end_with(let_through);
        return std::move(code_);
    }

private:
    void load(std::size_t offset) { code_.push_back({BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)}); }
    void end_with(std::uint32_t action) { code_.push_back({BPF_RET | BPF_K, 0, 0, action}); }
    // The distances count from the next line.
    void test(unsigned how, std::uint32_t value, std::uint8_t if_true, std::uint8_t if_false)
    {
        code_.push_back({static_cast<std::uint16_t>(BPF_JMP | how | BPF_K), if_true, if_false, value});
    }

    std::vector<sock_filter> code_;
};

std::vector<std::uint32_t> numbers_of_families(unsigned families)
{
    constexpr std::uint32_t numbers[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK}; // in the order of address_families
    static_assert(std::size(numbers) == std::size(address_families));
    std::vector<std::uint32_t> chosen;
    for (std::size_t index = 0; index < std::size(numbers); ++index)
        if ((families & (1U << index)) != 0) chosen.push_back(numbers[index]);
    return chosen;
}

// --- Questions about calls.

constexpr int fchmodat2_number = 452; // newer than some headers; the same for all architectures

constexpr const char *access_list = "system.posix_acl_access";

enum class About { mode, group, list };

// A call that waits, and which of its arguments says what; -1: none.
struct AskedCall {
    int number;
    About about;
    int value;      // the mode, or the owner
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

// The errno, 0 when it was done. Empty where the call goes on, because the kernel's answer is right and gives nobody the bit.
std::optional<int> answer_to(const Question &question, FdRef changer)
{
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
void serve(FdRef questions, FdRef changer)
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
        if (const std::optional<int> error = answer_to(question, changer))
            answer.error = -*error;
        else
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        if (ioctl(questions.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer) != 0 && errno != ENOENT && errno != EINTR) return;
    }
}

} // namespace

void install_call_filter()
{
    install("call-filter", call_program, "installing the list of calls");
}

void refuse_tracing()
{
    install("seccomp-filter", no_tracing_program, "refusing what debuggers do");
}

void refuse_attributes()
{
    install("attribute-filter", no_attributes_program, "refusing what changes attributes of files");
}

UniqueFd install_agent_call_filter(SetGidCalls set_gid)
{
    if (!defence_is_on("seccomp-filter")) return {};
    give_up_new_privileges();
    const bool others_too = defence_is_on("limits-of-others");
    if (set_gid == SetGidCalls::asked && others_too) {
        // Once the question is read, a signal interrupts no chmod(2), as outside (Linux 5.19).
        const sock_fprog program = program_of(asking_call_program);
        UniqueFd questions = UniqueFd::adopt(
            static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | wait_killable, &program)));
        if (questions) return questions;
        if (errno != EBUSY && errno != EINVAL) throw_errno("seccomp: installing the filter that asks");
    }
    if (others_too)
        load_call_filter(agent_call_program, "installing the filter");
    else
        load_call_filter(agent_call_program_without_tuning, "installing the filter");
    return {};
}

bool install_session_call_filter(const std::vector<sock_filter> &program) noexcept
{
    if (program.empty()) return true;
    const sock_fprog lines = program_of(program);
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &lines) == 0;
}

std::vector<sock_filter> session_call_program(const SessionCalls &calls)
{
    if (calls.refused.empty() && !calls.keeps_personality && !calls.families) return {};
    CallProgram program;
    for (const auto &name : calls.refused)
        if (const auto *call = find_number(name)) program.refuse(call->number);
    if (const auto *call = find_number("personality"); call != nullptr && calls.keeps_personality)
        program.require_first_argument(call->number, {PER_LINUX, whole_question}, EPERM);
    if (const auto *call = find_number("socket"); call != nullptr && calls.families)
        program.require_first_argument(call->number, numbers_of_families(*calls.families), EAFNOSUPPORT);
    return program.take();
}

std::string seen_by(pid_t thread, const std::string &path)
{
    const std::string own = "/proc/" + std::to_string(thread) + "/";
    for (const auto &[name, place] :
         {std::pair<std::string, std::string>{"/proc/self/", own}, {"/proc/thread-self/", own}, {"/dev/fd/", own + "fd/"}})
        if (path.compare(0, name.size(), name) == 0) return place + path.substr(name.size());
    return path;
}

void answer_set_gid_calls(UniqueFd questions, UniqueFd changer)
{
    std::thread([questions = std::move(questions), changer = std::move(changer)]() mutable {
        try {
            serve(questions, changer);
        } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): what it held is closed, and these calls end with ENOSYS
        }
        questions.reset();
    }).detach();
}

} // namespace pi_agent
