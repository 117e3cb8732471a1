// The user database as a whole: read once for commands that ask about thousands, the members of groups, and numbers that nobody has.
#include "admin/host/host_things.hpp"
#include "common/host/beneath.hpp"

#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>

#include <sstream>

namespace pi_agent {

namespace {

constexpr std::size_t services_limit = 64U << 10U;
constexpr std::size_t entry_limit = 64U << 20U; // a group of a hundred thousand members
constexpr std::size_t subordinate_limit = 16U << 20U;
constexpr std::array<std::string_view, 2> own_services = {"files", "systemd"}; // whose answer "not found" is the whole truth

using TableClock = std::chrono::steady_clock;
constexpr std::chrono::seconds table_age(1); // services may learn of an account without a change of a file

std::string services_text()
{
    return if_there([] { return read_trusted_file(services_path, services_limit, "list of services for names"); });
}

// Whether an enumeration has every account: directory services answer for one name, and list nobody.
bool lists_everybody(const std::string &services)
{
    return std::ranges::all_of(std::array{"passwd", "group", "initgroups"},
                               [&](const char *database) { return services_of(database, services).empty(); });
}

// Changes with each change of the files.
std::string stamp_of_files()
{
    std::string stamp;
    for (const char *path : {"/etc/passwd", "/etc/group", services_path}) {
        struct stat facts {};
        if (::stat(path, &facts) == 0)
            stamp += fmt::format("{} {} {}.{} ", facts.st_ino, facts.st_size, facts.st_ctim.tv_sec, facts.st_ctim.tv_nsec);
    }
    return stamp;
}

// Calls `take` with each entry that `next`, getpwent_r(3) or getgrent_r(3), gives. False where the list ended for another reason than its
// end.
template <typename Entry>
bool visit_each(int (*next)(Entry *, char *, std::size_t, Entry **), const std::function<void(const Entry &)> &take)
{
    std::vector<char> room(std::size_t{1} << 16U);
    for (;;) {
        Entry entry{};
        Entry *found = nullptr;
        const int problem = next(&entry, room.data(), room.size(), &found);
        if (problem == ERANGE && room.size() < entry_limit)
            room.resize(room.size() * 2);
        else if (problem != 0 || found == nullptr)
            return problem == 0 || problem == ENOENT;
        else
            take(entry);
    }
}

// The first entry of a name or number counts, as for those who ask for one. Empty where each question must reach the database.
std::optional<AccountTable> read_table()
{
    if (!lists_everybody(services_text())) return std::nullopt;
    AccountTable table;
    std::unordered_map<std::string, std::vector<gid_t>> groups; // by member
    ::setgrent();                                               // NOLINT(concurrency-mt-unsafe): this program has one thread
    bool is_whole = visit_each<group>(::getgrent_r, [&](const group &entry) {
        table.groups.emplace(entry.gr_name, Gid(entry.gr_gid));
        table.group_names.emplace(entry.gr_gid, entry.gr_name);
        for (char **member = entry.gr_mem; *member != nullptr; ++member)
            groups[*member].push_back(entry.gr_gid);
    });
    ::endgrent(); // NOLINT(concurrency-mt-unsafe)
    ::setpwent(); // NOLINT(concurrency-mt-unsafe)
    const bool has_users = visit_each<passwd>(::getpwent_r, [&](const passwd &entry) {
        is_whole = is_whole && entry.pw_dir != nullptr && entry.pw_dir[0] == '/'; // find_account says what is wrong
        if (!is_whole) return;
        Account account{entry.pw_name, Uid(entry.pw_uid), Gid(entry.pw_gid), entry.pw_dir, {entry.pw_gid}};
        if (const auto more = groups.find(account.name); more != groups.end())
            for (const gid_t gid : more->second)
                if (std::ranges::find(account.groups, gid) == account.groups.end()) account.groups.push_back(gid);
        table.names.emplace(entry.pw_uid, account.name);
        table.accounts.emplace(account.name, std::move(account));
    });
    ::endpwent(); // NOLINT(concurrency-mt-unsafe)
    return is_whole && has_users && table.names.contains(0) ? std::optional(std::move(table)) : std::nullopt;
}

// As long as the files are the same, and for a second.
const AccountTable *current_table()
{
    static std::optional<AccountTable> table;
    static std::string stamp;
    static TableClock::time_point read_at;
    const auto now = TableClock::now();
    if (auto current = stamp_of_files(); current != stamp || now - read_at > table_age) {
        try {
            table = read_table();
        } catch (const Failure &) { // the list of services cannot be trusted
            table.reset();
        }
        stamp = std::move(current);
        read_at = now;
    }
    return table ? &*table : nullptr;
}

// First and last of each range that users may give out in namespaces of their own (subuid(5)).
using NumberRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

NumberRanges subordinate_numbers(const std::string &text)
{
    NumberRanges ranges;
    for (const auto line : split(text, '\n')) {
        const auto fields = split(line, ':');
        if (fields.size() != 3) continue;
        const auto first = to_number<std::uint64_t>(fields[1]);
        const auto count = to_number<std::uint64_t>(fields[2]);
        if (first && count && *count > 0) ranges.emplace_back(*first, *first + std::min(*count, std::uint64_t{UINT32_MAX}) - 1);
    }
    return ranges;
}

} // namespace

void remember_accounts()
{
    answer_from_table(current_table);
}

std::vector<std::string> services_of(std::string_view database, const std::string &nsswitch)
{
    std::vector<std::string> services;
    std::istringstream lines(nsswitch);
    for (std::string line; std::getline(lines, line);) {
        line.resize(std::min(line.size(), line.find('#')));
        const std::size_t colon = line.find(':');
        std::istringstream before(line.substr(0, colon));
        std::string name;
        if (colon == std::string::npos || !(before >> name) || name != database) continue;
        std::istringstream words(line.substr(colon + 1));
        bool is_action = false; // in brackets, such as [NOTFOUND=return]
        for (std::string word; words >> word;) {
            is_action = is_action || word.front() == '[';
            if (!is_action && std::ranges::find(own_services, word) == own_services.end()) services.push_back(word);
            if (word.back() == ']') is_action = false;
        }
    }
    return services;
}

std::vector<std::string> services_of_users()
{
    return services_of("passwd", services_text());
}

std::vector<std::string> group_members(const std::string &group_name)
{
    std::set<std::string> names;
    const auto *group = ::getgrnam(group_name.c_str()); // NOLINT(concurrency-mt-unsafe): this program has one thread
    if (group == nullptr) return {};
    const auto gid = group->gr_gid;
    for (char **member = group->gr_mem; *member != nullptr; ++member)
        names.insert(*member);
    ::setpwent();                            // NOLINT(concurrency-mt-unsafe)
    while (const auto *entry = ::getpwent()) // NOLINT(concurrency-mt-unsafe)
        if (entry->pw_gid == gid) names.insert(entry->pw_name);
    ::endpwent(); // NOLINT(concurrency-mt-unsafe)
    return {names.begin(), names.end()};
}

std::vector<MadeAccount> made_agent_accounts()
{
    std::vector<std::pair<std::string, std::string>> found; // name and purpose
    ::setpwent();                                           // NOLINT(concurrency-mt-unsafe): this program has one thread
    while (const auto *entry = ::getpwent()) {              // NOLINT(concurrency-mt-unsafe)
        const std::string shell = entry->pw_shell;
        const std::string purpose = entry->pw_gecos;
        const bool ours =
            entry->pw_dir == std::string_view(default_state_dir) && purpose.starts_with(made_for_several) && entry->pw_uid != 0;
        if (ours && shell.substr(shell.rfind('/') + 1) == "nologin") found.emplace_back(entry->pw_name, purpose);
    }
    ::endpwent(); // NOLINT(concurrency-mt-unsafe)
    std::vector<MadeAccount> made;
    for (const auto &[name, purpose] : found)
        if (auto account = find_account(name))
            made.push_back({std::move(*account), purpose.starts_with(made_for_one) ? purpose.substr(made_for_one.size()) : ""});
    return made;
}

std::vector<uid_t> free_numbers(std::size_t count)
{
    if (!services_of("subid", services_text()).empty())
        throw Failure(ExitStatus::configuration, "a directory service gives users subordinate numbers (subid in /etc/nsswitch.conf), so "
                                                 "nobody can tell which numbers are free for agents; make their accounts yourself, or say "
                                                 "agent: {accounts: shared}");
    NumberRanges taken;
    for (const char *file : {"/etc/subuid", "/etc/subgid"})
        for (const auto &range :
             subordinate_numbers(if_there([&] { return read_trusted_file(file, subordinate_limit, "list of subordinate numbers"); })))
            taken.push_back(range);
    const auto is_users = [&](uid_t number) { // who may become whoever has it, in a user namespace (subuid(5))
        return std::ranges::any_of(taken, [&](const auto &range) { return number >= range.first && number <= range.second; });
    };
    std::vector<uid_t> numbers;
    for (uid_t number = numbers_of_many.first; number <= numbers_of_many.last && numbers.size() < count; ++number)
        if (!is_users(number) && !find_account(Uid(number)) && !group_name(Gid(number))) numbers.push_back(number);
    if (numbers.size() == count) return numbers;
    throw Failure(ExitStatus::configuration,
                  fmt::format("the agents need {} accounts more, and of the numbers {} to {} only {} are free: name fewer users, or say "
                              "agent: {{accounts: shared}}",
                              count, numbers_of_many.first, numbers_of_many.last, numbers.size()));
}

} // namespace pi_agent
