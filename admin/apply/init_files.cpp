// Writing the first policy and its file of keys, never over one that exists, and saying what comes next.
#include "admin/apply/first_policy.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/text/terminal.hpp"
#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "runner/root/errand/errand.hpp"

#include <filesystem>
#include <fmt/format.h>

namespace pi_agent {

namespace {

constexpr mode_t key_mode = 0600;

std::string existing_policy(const std::string &path)
{
    return escape_for_display(path) + " exists already and is not overwritten; to change it: sudo pi-agentctl edit";
}

std::string without_last_line_feed(std::string text)
{
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

// As root, only where nobody else could lead it elsewhere.
UniqueFd open_holder(const std::string &directory, bool is_policys)
{
    if (::geteuid() != 0) {
        auto holder = open_or_throw("cannot open " + escape_for_display(directory), directory, O_RDONLY | O_DIRECTORY);
        return holder;
    }
    if (is_policys) make_policy_directory(directory);
    return open_trusted(directory, O_RDONLY | O_DIRECTORY, "directory of the policy");
}

void write_policy(const std::string &path, const std::string &text)
{
    const auto [directory, name] = split_last(std::filesystem::absolute(path).string());
    const auto holder = open_holder(directory.empty() ? "/" : directory, path == policy_path);
    const auto file = open_at(holder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
    const std::string shown = escape_for_display(path);
    if (!file && errno == EEXIST) throw Failure(ExitStatus::usage, existing_policy(path));
    if (!file && errno == EACCES) throw Failure(ExitStatus::denied, "only root can write " + shown + "; try sudo, or --output -");
    if (!file) throw_errno("cannot create " + shown);
    try {
        if (::fchmod(file.get(), 0644) != 0) throw_errno("cannot set the mode of " + shown); // pi reads it as its user, whatever the umask
        write_whole(file, text, shown);
        if (::fsync(file.get()) != 0) throw_errno("cannot write " + shown + " to disk");
    } catch (const Failure &) {
        ::unlinkat(holder.get(), name.c_str(), 0); // best_effort: half a policy would only be in the way
        throw;
    }
}

bool key_file_exists(const std::string &file)
{
    return if_there([&] { return std::optional(open_trusted(file, O_PATH, "file of keys")); }).has_value();
}

// Only root can read it, from the first moment on.
void write_key(const ProviderKey &key)
{
    const auto [directory, name] = split_last(key.file);
    const auto holder = open_holder(directory, true);
    if (has_name(holder, name, "examining " + key.file)) throw Failure(ExitStatus::usage, existing_key_file(key.file));
    replace_root_file(holder, name, key.text, key_mode, key.file);
}

void forget_key(const ProviderKey &key) noexcept
{
    try {
        const auto [directory, name] = split_last(key.file);
        remove_root_file(open_holder(directory, true), name, key.file);
    } catch (const std::exception &) { // NOLINT(bugprone-empty-catch): best_effort, what failed before is said
    }
}

// Each as its user: root follows no path in a home.
void create_roots(const Observer &observer, const std::vector<Candidate> &candidates, std::ostream &out)
{
    for (const auto &candidate : candidates) {
        const auto user = account_of_user(candidate.name);
        for (const auto &directory : candidate.roots) {
            const std::string path = user.home + directory.substr(1); // "~/projects"
            ask<Done>(*observer.root(), {"create a directory of " + user.name, user}, [&](const AsUser & /*user*/) {
                if (::mkdir(path.c_str(), 0755) != 0) throw_errno(user.name + " cannot create " + escape_for_display(path));
                return Done{};
            });
            out << "created " << escape_for_display(path) << ", which belongs to " << escape_for_display(user.name) << '\n';
        }
        require_usable(candidate.roots, user, observer);
    }
}

// What `check` finds, indented below its name, and the commands that follow.
void show_next(const std::vector<Candidate> &candidates, const Policy &policy, std::ostream &out)
{
    const auto report = check_policy(std::nullopt);
    out << "\npi-agentctl check says:\n";
    out << show_problems(report.errors, "  error: ", read_again) << show_problems(report.warnings, "  warning: ", read_again);
    if (report.errors.empty()) out << prefix_lines("  ", without_last_line_feed(to_text(report)));
    out << "\nNext:\n";
    if (::access(policy.agent.binary.c_str(), F_OK) != 0)
        out << "  sudo pi-agentctl install-agent   # fetch the agent, which is not included\n";
    out << "  sudo pi-agentctl apply           # create the agents' accounts, install the sudo rule, try the sandbox\n";
    for (const auto &candidate : candidates) {
        if (candidate.roots.empty()) continue;
        out << fmt::format("Then {} types 'pi' in a directory below {}.\n", escape_for_display(candidate.name),
                           escape_for_display(candidate.roots.front()));
        break;
    }
}

// Judges as check does, before the policy is written.
void note_mistakes(const Policy &policy, const Observer &observer, std::ostream &notes)
{
    Problems problems;
    check_host(policy, observer, Means::installed, problems);
    if (!problems.empty()) notes << "pi-agentctl: fix before 'pi-agentctl apply':\n" << PolicyError(problems.all()).what() << '\n';
}

bool can_ask(const InitOrder &order)
{
    return !order.yes && !order.output && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
}

void require_free_place(const std::string &path)
{
    if (path_exists(path)) throw Failure(ExitStatus::usage, existing_policy(path));
}

// Reports what stands in the way of every answer before the first question.
void require_writable(const InitOrder &order)
{
    if (order.key && order.env_file)
        throw Failure(ExitStatus::usage, "--key writes a file of keys and --env-file names one; give one of them");
    const bool writes_key = order.key && *order.key != no_key;
    if (order.output) {
        if (writes_key)
            throw Failure(ExitStatus::usage, "--key writes " + file_of_key(*order.key, order.network) +
                                                 ", for the policy of this host alone; with --output give --env-file FILE");
        return;
    }
    require_own_policy("init");
    require_free_place(policy_path);
    if (::geteuid() != 0)
        throw Failure(ExitStatus::denied, std::string("only root can write ") + policy_path + "; try sudo, or --output -");
    if (!writes_key) return;
    const auto file = file_of_key(*order.key, order.network);
    if (key_file_exists(file)) throw Failure(ExitStatus::usage, existing_key_file(file));
}

} // namespace

std::string existing_key_file(const std::string &file)
{
    return file + " exists already and is not overwritten; " +
           (file == key_file() ? "add the key there as root, and name the file with --env-file"
                               : "write the key there as root, and name the file in the policy: providers");
}

void run_init(const InitOrder &order, std::ostream &out, std::ostream &notes)
{
    require_writable(order);
    const auto observer = Observer::self();
    const bool asks = can_ask(order);
    const auto answers = asks ? ask_for_policy(order, observer, key_file_exists(key_file()), notes) : answers_of(order, observer);
    const auto text = init_text(answers.candidates, answers.policy);
    const auto policy = parse_policy({{policy_path, text}});
    if (order.output == "-") {
        note_mistakes(policy, observer, notes);
        out << text;
        return;
    }
    if (!answers.new_roots.empty()) create_roots(observer, answers.new_roots, out);
    if (answers.key) write_key(*answers.key);
    if (!asks) note_mistakes(policy, observer, notes);
    const auto path = order.output.value_or(policy_path);
    try {
        write_policy(path, text);
    } catch (const Failure &) {
        if (answers.key) forget_key(*answers.key);
        throw;
    }
    if (answers.key) out << "wrote " << answers.key->file << ", which only root can read\n";
    out << "wrote " << escape_for_display(path) << (asks ? "\n" : "; look at it, then run 'pi-agentctl apply'\n");
    if (asks) show_next(answers.candidates, policy, out);
}

} // namespace pi_agent
