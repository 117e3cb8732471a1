// A first policy: what it is made of, and its files, which are never written over.
#include "admin/apply/apply.hpp"
#include "admin/diagnose/faults.hpp"
#include "admin/programs/program.hpp"
#include "admin/text/terminal.hpp"
#include "runner/root/errand/errand.hpp"

#include <fmt/format.h>
#include <pwd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace pi_agent {

namespace {

unsigned login_default(const std::string &name, unsigned otherwise)
{
    std::ifstream file("/etc/login.defs");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string word;
        if (unsigned value = 0; words >> word >> value && word == name) return value;
    }
    return otherwise;
}

std::vector<Finding> look_at_roots(const std::vector<std::string> &roots, const Account &user, const Observer &observer)
{
    return observer.resolve_roots(mapped(roots, [&](const auto &root) { return RootSpec{root, {}, true}; }), user);
}

// A name with control characters is refused: nobody types one.
std::string quoted(const std::string &text)
{
    if (escape_for_display(text) != text)
        throw Failure(ExitStatus::usage, "a policy cannot name the directory " + escape_for_display(text));
    return yaml_word(text);
}

// Another name for an account that could not be made with the usual one. Where that would be another agent's, too, both have the number.
std::string run_as_of(const Candidate &candidate, const std::vector<Candidate> &candidates)
{
    const std::string agent = "pi-agent-" + candidate.name; // as the policy would call it; by the number where it is not a plain name
    const std::string other = creatable_name(agent);
    if (agent == other || !is_plain_name(agent)) return "";
    const bool is_anothers = std::ranges::any_of(
        candidates, [&](const Candidate &one) { return one.name != candidate.name && creatable_name("pi-agent-" + one.name) == other; });
    return is_anothers ? "" : other;
}

std::string entry_of(const Candidate &candidate, const std::string &run_as)
{
    const auto roots = joined(candidate.roots, ", ", [](const auto &root) { return quoted(root); });
    if (candidate.roots.empty()) return fmt::format("  # {}:\n  #   roots: [~/projects]\n", candidate.name);
    return fmt::format("  {}:\n    roots: [{}]\n{}", yaml_word(candidate.name), roots,
                       run_as.empty() ? "" : fmt::format("    run_as: {}\n", run_as));
}

// Of the providers that pi knows best, with what their logins ask. Not what a login opens in the user's browser.
constexpr std::array providers_hosts = {"api.anthropic.com", "platform.claude.com", "api.openai.com",
                                        "auth.openai.com",   "chatgpt.com",         "generativelanguage.googleapis.com",
                                        "openrouter.ai"};

std::string lines_of_hosts(const std::vector<std::string> &hosts)
{
    std::string text = "# More hosts are, for example: github.com, \"github.com:22\", \"*.example.org\", example.org. Each with its port, "
                       "unless it is 443.\nnetwork:\n";
    if (hosts.empty()) return text + "  hosts: []\n";
    text += "  hosts:\n";
    for (const auto &host : hosts)
        text += "    - " + yaml_word(host) + "\n";
    return text;
}

// Not "10.20.0.5:443", which is a host.
bool is_address_or_range(const std::string &word)
{
    const auto parsed = parse_host_rule(word);
    const auto *rule = std::get_if<HostRule>(&parsed);
    return std::holds_alternative<IpRange>(parse_ip_range(word)) || (rule != nullptr && is_address(*rule) && rule->host == word);
}

// A word without a dot and a port is rather a mistake.
void require_host(const std::string &word)
{
    const auto parsed = parse_host_rule(word);
    const auto *problem = std::get_if<TextProblem>(&parsed);
    if (problem == nullptr && (word == "localhost" || word.find_first_of(".:") != std::string::npos)) return;
    throw Failure(ExitStatus::usage,
                  escape_for_display(word) + (problem == nullptr ? " is not a network" : " " + problem->text) +
                      "; answer hosts, full, loopback, none, names of hosts such as github.com, or addresses such as 10.20.0.0/16");
}

std::string line_of_network(const std::vector<std::string> &words)
{
    if (words.empty()) throw Failure(ExitStatus::usage, "name a network: hosts, full, loopback, none, names of hosts, or addresses");
    if (!std::ranges::all_of(words, is_address_or_range)) {
        std::ranges::for_each(words, require_host);
        return lines_of_hosts(words);
    }
    std::string list;
    for (const auto &address : words)
        list += (list.empty() ? "\"" : ", \"") + address + "\"";
    return "network: [" + list + "]\n";
}

// As the policy writes it. Throws Failure(usage) for an answer that is not a network.
std::string network_of(const PolicyAnswers &answers)
{
    const auto answer = answers.network.value_or(suggested_network);
    if (has_word("full loopback none", answer)) return "network: " + answer + "\n";
    if (answer == suggested_network) {
        if (answers.provider) return lines_of_hosts({});
        return lines_of_hosts(answers.hosts.empty() ? std::vector<std::string>(providers_hosts.begin(), providers_hosts.end())
                                                    : answers.hosts);
    }
    auto text = line_of_network(words_of_answer(answer));
    const auto reading = read_policy_as_far_as_possible({{"the answer", "version: 1\nusers: {}\n" + text}});
    for (const auto &problem : reading.problems)
        if (problem.key.starts_with("network")) throw Failure(ExitStatus::usage, "network: " + problem.problem);
    return text;
}

// --- Writing the first policy and its file of keys, never over one that exists, and saying what comes next.

constexpr mode_t key_mode = 0600;

std::string existing_policy(const std::string &path)
{
    return escape_for_display(path) + " exists already and is not overwritten; to change it: sudo pi-agentctl edit";
}

// As root, only where nobody else could lead it elsewhere.
UniqueFd open_holder(const std::string &directory, bool holds_policy)
{
    if (::geteuid() != 0) return open_or_throw("cannot open " + escape_for_display(directory), directory, O_RDONLY | O_DIRECTORY);
    if (holds_policy) make_policy_directory(directory);
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
void write_secret(const ProviderKey &secret)
{
    const auto [directory, name] = split_last(secret.file);
    const auto holder = open_holder(directory, true);
    if (has_name(holder, name, "examining " + secret.file)) throw Failure(ExitStatus::usage, existing_key_file(secret.file));
    replace_root_file(holder, name, secret.text, key_mode, secret.file);
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
    if (report.errors.empty()) out << prefix_lines("  ", without_line_end(to_text(report)));
    out << "\nNext:\n";
    if (::access(policy.agent.binary.c_str(), F_OK) != 0)
        out << "  sudo pi-agentctl agent install   # fetch the agent, which is not included\n";
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
    HostCheck check{policy, observer, Means::installed};
    check_host(check);
    if (const auto &problems = check.problems; !problems.empty())
        notes << "pi-agentctl: fix before 'pi-agentctl apply':\n" << PolicyError(problems.all()).what() << '\n';
}

// Reports what stands in the way of every answer before the first question.
void require_writable(const InitOrder &order)
{
    if (order.key && order.env_file)
        throw Failure(ExitStatus::usage, "--key writes a file of keys and --env-file names one; give one of them");
    const bool writes_key = order.key && *order.key != no_key;
    if (const auto proxy = order.via ? proxy_of_text(*order.via, "--via") : std::nullopt; order.output) {
        if (proxy && !proxy->login.empty())
            throw Failure(ExitStatus::usage, "--via has a login, which only the policy of this host can have in a file beside it; leave it "
                                             "out, and name the file in the draft: via_login_file");
        if (writes_key)
            throw Failure(ExitStatus::usage, "--key writes " + file_of_key(*order.key, order.network) +
                                                 ", for the policy of this host alone; with --output give --env-file FILE");
        return;
    }
    require_own_policy("init");
    if (path_exists(policy_path)) throw Failure(ExitStatus::usage, existing_policy(policy_path));
    if (::geteuid() != 0)
        throw Failure(ExitStatus::denied, std::string("only root can write ") + policy_path + "; try sudo, or --output -");
    if (!writes_key) return;
    const auto file = file_of_key(*order.key, order.network);
    if (key_file_exists(file)) throw Failure(ExitStatus::usage, existing_key_file(file));
}

} // namespace

bool names_hosts(const std::optional<std::string> &network)
{
    const auto answer = network.value_or(suggested_network);
    return !has_word("full loopback none", answer) && !std::ranges::all_of(words_of_answer(answer), is_address_or_range);
}

std::string key_file()
{
    return parent_of(policy_path) + "/keys.env";
}

std::string key_file_of(const std::string &provider)
{
    return parent_of(policy_path) + "/" + provider + ".key";
}

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
        if (auto account = find_account(name); account && is_persons(*account, shell, first, last)) people.push_back(std::move(*account));
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

void require_usable(const std::vector<std::string> &roots, const Account &user, const Observer &observer)
{
    for (const auto &finding : look_at_roots(roots, user, observer))
        if (finding.kind == Finding::Kind::unusable)
            throw Failure(ExitStatus::usage, "a root of " + user.name + " cannot be one: " + finding.text);
}

Account account_of_user(const std::string &name)
{
    auto user = find_account(name);
    if (!user) throw Failure(ExitStatus::usage, "this host has no user " + escape_for_display(name));
    if (user->uid == Uid(0)) throw Failure(ExitStatus::usage, "root cannot run the agent; name an ordinary account");
    if (!is_account_name(name)) throw Failure(ExitStatus::usage, "a policy cannot name the user " + escape_for_display(name));
    return std::move(*user);
}

Candidate find_candidate(const Account &user, const std::vector<std::string> &roots, const Observer &observer)
{
    // The usual places that a session could have as a root, found with the user's rights; none if this process may not look.
    if (roots.empty()) {
        std::vector<std::string> places = {"~/projects", "~/src", "~/work", "~/code", "~/dev", "~/git", "~/repos", "~/workspace"};
        const auto findings = look_at_roots(places, user, observer);
        auto finding = findings.begin();
        std::erase_if(places, [&](const std::string & /*place*/) { return (finding++)->kind != Finding::Kind::usable; });
        return {user.name, places};
    }
    require_usable(roots, user, observer);
    return {user.name, roots};
}

std::vector<std::string> words_of_answer(const std::string &answer)
{
    std::string blanks = answer;
    std::ranges::replace(blanks, ',', ' ');
    std::istringstream words(blanks);
    return {std::istream_iterator<std::string>(words), {}};
}

std::string init_text(const std::vector<Candidate> &candidates, const PolicyAnswers &answers)
{
    if (const auto ready = std::ranges::count_if(candidates, [](const Candidate &one) { return !one.roots.empty(); }); ready == 0)
        throw Failure(ExitStatus::usage,
                      "no user of this host has a directory to start the agent in (looked for ~/projects, ~/src, ~/work and similar); "
                      "name one: pi-agentctl init --user NAME --root DIRECTORY");
    std::string text =
        fmt::format("# Who may run the agent, and where. To change it: sudo pi-agentctl edit. To put it in force: sudo pi-agentctl apply.\n"
                    "# 'pi-agentctl explain --user NAME' says what a user gets; 'man pi-agent-policy' describes every key.\n"
                    "version: 1\n"
                    "agent:\n"
                    "  # Each user's agent runs as an account of its own, so the agents cannot reach each other.\n"
                    "  accounts: per-user\n"
                    "users:\n"
                    "  # roots: the agent can be started in these, at any depth, and can write to them. ~ is the user's home.\n");
    for (const auto &candidate : candidates)
        text += entry_of(candidate, run_as_of(candidate, candidates));
    text +=
        "# What sessions reach: {hosts: [...]} and no others ('pi-agentctl denials' lists what was refused), full (everything that this\n"
        "# host reaches), loopback (services of this host), none, or a list of addresses.\n" +
        network_of(answers);
    if (answers.proxy)
        text += fmt::format(
            "  # The proxy of this host ({}). What sessions reach without it: direct: [\"*.internal.example.com\"]\n  via: {}\n{}",
            escape_for_display(answers.proxy->where), answers.proxy->url,
            answers.proxy->login.empty() ? "" : "  via_login_file: " + login_file_of_proxy() + "\n");
    if (answers.provider)
        text += fmt::format(
            "# The key of everybody's model. Only root can read the file, and no session has the key: a process outside puts it into\n"
            "# requests to the provider.\nproviders:\n  {}: {{key_file: {}}}\n",
            *answers.provider, key_file_of(*answers.provider));
    else if (answers.env_file)
        text += "# The keys of model providers. Only root can read the file. Every agent gets its variables and can read them.\n"
                "env_files: [" +
                quoted(*answers.env_file) + "]\n";
    else
        text += "# Users log in themselves, or keep their keys in ~/.pi/agent/env. For a key that everybody uses and no session has,\n"
                "# take its provider's host out of hosts, and write:\n# providers: {anthropic: {key_file: " +
                key_file_of("anthropic") + "}}\n";
    return text + "# What one session may take: for example\n"
                  "# limits: {memory: 8G, runtime: 12h}\n"
                  "# A session sees one repository, and not the whole directory above:\n"
                  "# projects: {scope: project}\n";
}

std::string existing_key_file(const std::string &file)
{
    return file + " exists already and is not overwritten; " +
           (file == login_file_of_proxy() ? "name the file in the policy: via_login_file"
            : file == key_file()          ? "add the key there as root, and name the file with --env-file"
                                          : "write the key there as root, and name the file in the policy: providers");
}

void run_init(const InitOrder &order, std::ostream &out, std::ostream &notes)
{
    require_writable(order);
    const auto observer = Observer::self();
    const bool asks = !order.yes && !order.output && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
    const auto answers = asks ? ask_for_policy(order, observer, key_file_exists(key_file()), notes) : answers_of(order, observer);
    const auto text = init_text(answers.candidates, answers.policy);
    const auto policy = parse_policy({{policy_path, text}});
    if (order.output == "-") {
        note_mistakes(policy, observer, notes);
        out << text;
        return;
    }
    if (!answers.new_roots.empty()) create_roots(observer, answers.new_roots, out);
    const auto secrets = answers.secrets();
    for (const auto &secret : secrets)
        if (path_exists(secret.file)) throw Failure(ExitStatus::usage, existing_key_file(secret.file));
    for (const auto &secret : secrets)
        write_secret(secret);
    if (!asks) note_mistakes(policy, observer, notes);
    if (!has_systemd())
        notes << "pi-agentctl: no systemd runs here, and sessions need it; where none ever will, say sandbox: {method: bwrap} and network: "
                 "full or none in the policy (docs/platforms/bwrap.md)\n";
    const auto path = order.output.value_or(policy_path);
    try {
        write_policy(path, text);
    } catch (const Failure &) {
        std::ranges::for_each(secrets, forget_key);
        throw;
    }
    for (const auto &secret : secrets)
        out << "wrote " << secret.file << ", which only root can read\n";
    out << "wrote " << escape_for_display(path) << (asks ? "\n" : "; look at it, then run 'pi-agentctl apply'\n");
    if (asks) show_next(answers.candidates, policy, out);
}

} // namespace pi_agent
