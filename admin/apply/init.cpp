// Looking for people and for where they keep their projects, and writing that down with comments.
#include "admin/apply/apply.hpp"

#include "admin/diagnose/faults.hpp"
#include "admin/host/accounts.hpp"
#include "admin/host/root_files.hpp"
#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/policy_load.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <pwd.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace pi_agent {

namespace {

constexpr const char *login_defaults = "/etc/login.defs";

unsigned login_default(const std::string &name, unsigned otherwise)
{
    std::ifstream file(login_defaults);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        unsigned value = 0;
        if (words >> word >> value && word == name) return value;
    }
    return otherwise;
}

std::vector<Finding> look_at_roots(const std::vector<std::string> &roots, const Account &user, const Observer &observer)
{
    std::vector<RootSpec> specs;
    for (const auto &root : roots)
        specs.push_back({root, {}, true});
    return observer.resolve_roots(specs, user);
}

// Those of the usual places that a session could have as a root, found as the user. Who may not look takes none.
std::vector<std::string> usable_places(const Account &user, const Observer &observer)
{
    const std::vector<std::string> places = {"~/projects", "~/src", "~/work", "~/code", "~/dev", "~/git", "~/repos", "~/workspace"};
    const auto findings = look_at_roots(places, user, observer);
    std::vector<std::string> found;
    for (std::size_t index = 0; index < findings.size(); ++index)
        if (findings[index].kind == Finding::Kind::usable) found.push_back(places[index]);
    return found;
}

Candidate named_candidate(const std::string &name, const std::vector<std::string> &roots, const Observer &observer)
{
    const auto user = find_account(name);
    if (!user) throw Failure(ExitStatus::usage, "this host has no user " + escape_for_display(name));
    if (user->uid == Uid(0)) throw Failure(ExitStatus::usage, "root cannot run the agent; name an ordinary account");
    if (!is_account_name(name)) throw Failure(ExitStatus::usage, "a policy cannot name the user " + escape_for_display(name));
    if (roots.empty()) return {name, usable_places(*user, observer)};
    for (const auto &finding : look_at_roots(roots, *user, observer))
        if (finding.kind == Finding::Kind::unusable)
            throw Failure(ExitStatus::usage, "a root of " + user->name + " cannot be used: " + finding.text);
    return {name, roots};
}

std::vector<Candidate> find_candidates(const InitOrder &order, const Observer &observer)
{
    std::vector<Candidate> candidates;
    for (const auto &name : order.users)
        candidates.push_back(named_candidate(name, order.roots, observer));
    if (!order.users.empty()) return candidates;
    if (!order.roots.empty()) throw Failure(ExitStatus::usage, "--root needs --user NAME: whose root is it?");
    for (const auto &person : find_people())
        candidates.push_back({person.name, usable_places(person, observer)});
    return candidates;
}

// Text in single quotes means itself in YAML; what is no line of text is no directory's name that anybody types.
std::string quoted(const std::string &text)
{
    if (escape_for_display(text) != text)
        throw Failure(ExitStatus::usage, "a policy cannot name the directory " + escape_for_display(text));
    if (is_made_of(text, "/~_-.") && (text[0] == '/' || text.compare(0, 2, "~/") == 0)) return text;
    std::string inside;
    for (const char byte : text)
        inside += byte == '\'' ? std::string("''") : std::string(1, byte);
    return "'" + inside + "'";
}

std::string entry_of(const Candidate &candidate)
{
    std::string roots;
    for (const auto &root : candidate.roots)
        roots += (roots.empty() ? "" : ", ") + quoted(root);
    if (candidate.roots.empty()) return fmt::format("  # {}:\n  #   roots: [~/projects]\n", candidate.name);
    const std::string agent = "pi-agent-" + candidate.name; // as the policy would call it; by the number where it is no plain name
    const std::string other = creatable_name(agent);
    const std::string run_as = agent == other || !is_plain_name(agent) ? "" : fmt::format("    run_as: {}\n", other);
    return fmt::format("  {}:\n    roots: [{}]\n{}", candidate.name, roots, run_as);
}

// As root only where nobody else could lead it elsewhere.
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
    if (!file && errno == EEXIST)
        throw Failure(ExitStatus::usage, shown + " exists, and init does not overwrite it; change it with 'sudo pi-agentctl edit'");
    if (!file && errno == EACCES) throw Failure(FailureKind::root_only, "only root can write " + shown + "; use sudo, or --output -");
    if (!file) throw_errno("cannot create " + shown);
    if (::fchmod(file.get(), 0644) != 0) throw_errno("cannot set the mode of " + shown); // pi reads it as its user, whatever the umask
    write_whole(file, text, shown);
    if (::fsync(file.get()) != 0) throw_errno("cannot write " + shown + " to disk");
}

} // namespace

std::vector<Account> find_people()
{
    const unsigned first = login_default("UID_MIN", 1000);
    const unsigned last = login_default("UID_MAX", 60000);
    std::vector<std::pair<std::string, std::string>> entries; // names and shells: looking one up ends the enumeration's own answer
    ::setpwent();                                             // NOLINT(concurrency-mt-unsafe): this program has one thread
    while (const auto *entry = ::getpwent())                  // NOLINT(concurrency-mt-unsafe)
        entries.emplace_back(entry->pw_name, entry->pw_shell);
    ::endpwent(); // NOLINT(concurrency-mt-unsafe)
    std::vector<Account> people;
    for (const auto &[name, shell] : entries) {
        auto account = find_account(name);
        if (account && is_persons(*account, shell, first, last)) people.push_back(std::move(*account));
    }
    return people;
}

bool is_persons(const Account &account, const std::string &shell, unsigned first_uid, unsigned last_uid)
{
    const auto uid = account.uid.value();
    const auto name = shell.substr(shell.rfind('/') + 1);
    const bool can_log_in = name != "nologin" && name != "false" && name != "sync";
    return uid >= first_uid && uid <= last_uid && can_log_in && account.home.size() > 1 && account.home.front() == '/' &&
           is_account_name(account.name);
}

std::string init_text(const std::vector<Candidate> &candidates)
{
    const auto ready = std::count_if(candidates.begin(), candidates.end(), [](const Candidate &one) { return !one.roots.empty(); });
    if (ready == 0)
        throw Failure(ExitStatus::usage, "no user of this host has a directory such as ~/projects, ~/src or ~/work; name the user and the "
                                         "directory: pi-agentctl init --user NAME --root DIRECTORY");
    std::string text =
        fmt::format("# Who may run the agent, and where. After a change: pi-agentctl check, then pi-agentctl apply.\n"
                    "# 'pi-agentctl explain --user NAME' says what a user gets.\n"
                    "version: 1\n"
                    "agent:\n"
                    "  # An account of its own for each user's agent: the agents cannot reach each other.\n"
                    "  accounts: per-user\n"
                    "users:\n"
                    "  # roots: the agent can be started in these, at any depth, and can write to them. ~ is the user's home.\n");
    for (const auto &candidate : candidates)
        text += entry_of(candidate);
    text += "# network: none            # full | loopback | none | a list of addresses; full unless it is said\n"
            "# limits: {memory: 8G, runtime: 12h}\n"
            "# projects: {scope: project}  # a session sees one repository; without it all of the root\n";
    return text;
}

void run_init(const InitOrder &order, std::ostream &out, std::ostream &notes)
{
    if (!order.output) require_own_policy("init");
    const auto observer = Observer::self();
    const auto text = init_text(find_candidates(order, observer));
    Problems problems;
    check_host(parse_policy({{policy_path, text}}), observer, Means::installed, problems); // as check judges, before it is written
    if (!problems.empty()) notes << "pi-agentctl: correct this before 'pi-agentctl apply':\n" << PolicyError(problems.all()).what() << '\n';
    const auto path = order.output.value_or(policy_path);
    if (path == "-") {
        out << text;
        return;
    }
    write_policy(path, text);
    out << "wrote " << escape_for_display(path) << "; look at it, then run 'pi-agentctl apply'\n";
}

} // namespace pi_agent
