// What a user can reach, and what their starts would come to.
#include "admin/diagnose/faults.hpp"

#include "runner/as_user/project.hpp"
#include "runner/root/view/root_tree.hpp"

#include <fmt/format.h>

#include <sstream>

namespace pi_agent {

namespace {

constexpr std::size_t links_out_entries = 20'000;
constexpr std::size_t links_out_bytes = 20'000;

// One question, asked with the rights of the user.
using Question = std::function<Finding()>;

Writing writing_to(FdRef directory)
{
    struct stat facts {};
    if (::fstat(directory.get(), &facts) != 0 || ::faccessat(directory.get(), ".", W_OK, AT_EACCESS) != 0) return Writing::none;
    return facts.st_uid == ::geteuid() ? Writing::as_owner : Writing::as_others_let;
}

// Where the directory is: a start is refused on some file systems, and where another one is mounted inside a root.
Finding found_at(FdRef directory, std::string path)
{
    struct statx facts {};
    const bool is_told = ::statx(directory.get(), "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &facts) == 0;
    const auto mounts = list_mounts();
    const auto *mount = mount_that_holds(mounts, directory);
    std::string problem, mapping_problem;
    if (mount != nullptr) {
        problem = problem_of_file_system(path, mount->type).value_or("");
        // Of the file systems that kernels do not map, projects in containers are on this one. A start asks the kernel.
        if (mount->type == "overlay") mapping_problem = problem_of_mapping(path, name_mount(mounts, directory));
    }
    Finding finding{Finding::Kind::usable, std::move(path), is_told ? facts.stx_mnt_id : 0, std::move(problem), std::move(mapping_problem)};
    finding.writing = writing_to(directory);
    return finding;
}

Finding find_root(const RootSpec &root, const Account &user)
{
    const auto result = resolve_root(root, user);
    if (const auto *problem = std::get_if<RootProblem>(&result)) {
        Finding unusable{Finding::Kind::unusable, problem->text};
        unusable.is_gone = problem->is_gone;
        return unusable;
    }
    const auto &resolved = std::get<ResolvedRoot>(result);
    auto finding = found_at(resolved.fd, resolved.path);
    auto danger = danger_of_root(resolved.fd, resolved.path, user);
    finding.danger = std::move(danger.problem);
    finding.remedy = std::move(danger.remedy);
    return finding;
}

Finding find_directory(const std::string &path)
{
    try {
        const auto directory = open_working_directory(path);
        return found_at(directory, path_of_working_directory(directory));
    } catch (const Failure &failure) {
        return {Finding::Kind::unusable, failure.what()};
    }
}

std::vector<Finding> ask(const Observer &observer, const Account &user, const std::vector<Question> &questions)
{
    std::vector<Finding> findings;
    if (!observer.can_look_for(user)) return {questions.size(), {Finding::Kind::unknown, "only root or " + user.name + " can verify this"}};
    if (observer.root()) {
        try {
            Child child(*observer.root(), "look for " + user.name, user, {}, [&questions](const AsUser &, FdRef channel) {
                for (const auto &question : questions)
                    send_answer(channel, encode(question()));
            });
            while (findings.size() < questions.size())
                findings.push_back(decode_fields<Finding>(child.receive().bytes));
            return findings;
        } catch (const Failure &failure) { // a file system that does not answer is a finding too
            return {questions.size(), {Finding::Kind::unusable, failure.what()}};
        }
    }
    for (const auto &question : questions)
        findings.push_back(question());
    return findings;
}

// --- Asks for each user of a policy what their starts would come to.

constexpr std::size_t most_pairs = 5000; // of groups: each takes a moment
constexpr std::size_t most_told = 20;    // of what could be: more is not read

// The entries of some users, who start alike.
struct SameEntries {
    CallersEntries entries;
    std::vector<std::string> users; // the first few, of whom some may be unknown to the host
    std::size_t count = 0;
};
constexpr std::size_t most_tried = 5;

bool says_something(const UserEntry &entry)
{
    return entry.rules || !entry.env.empty() ||
           std::ranges::any_of(entry.roots, [](const RootSpec &root) { return root.rules != nullptr; });
}

bool says_who(const UserEntry &entry)
{
    return says_something(entry) || entry.config || entry.run_as || entry.ssh_key || entry.signing_key;
}

// By their entries, in the order of the policy. Users with an entry of their own that says nothing for sessions, and no such group, are
// left out, because there may be a hundred thousand of them; but not where a provider's key stays outside: what network such users have,
// the reader of the policy leaves to their starts where groups say it.
std::vector<SameEntries> users_by_entries(const Policy &policy, const MembersOf &members_of)
{
    std::map<std::string, const UserEntry *> own;
    std::map<std::string, std::vector<CallersEntries::OfGroup>> groups;
    for (const auto &entry : policy.users)
        if (!entry.is_group) own.emplace(entry.name, &entry);
    for (const auto &entry : policy.users) {
        const auto group = entry.is_group ? find_group(entry.name) : std::nullopt;
        if (!group) continue;
        for (const auto &member : members_of(entry.name))
            if (!own.contains(member) || entry.rules || !entry.env.empty()) groups[member].push_back({&entry, *group});
    }
    for (const auto &[name, entry] : own)
        if (says_something(*entry) || !policy.providers.empty()) groups[name];
    std::map<std::vector<const UserEntry *>, SameEntries> found;
    for (auto &[user, of_groups] : groups) {
        const auto entry = own.find(user);
        std::vector<const UserEntry *> key = {entry == own.end() ? nullptr : entry->second};
        for (const auto &group : of_groups)
            key.push_back(group.entry);
        auto &same = found[key];
        same.entries = {key.front(), std::move(of_groups)};
        if (++same.count <= most_tried) same.users.push_back(user);
    }
    return mapped(found, [](auto &keyed) { return std::move(keyed.second); });
}

class Search {
public:
    explicit Search(const Policy &policy) : of_all_(policy) { of_all_.users.clear(); }

    // Of users of this host.
    void look_at(const Policy &policy, const SameEntries &same, const FindUser &find_user)
    {
        for (const auto &name : same.users) {
            const auto user = is_account_name(name) && !is_agent_account(policy, name) ? find_user(name) : std::nullopt;
            if (!user) continue;
            const std::string others = same.count > 1 ? fmt::format(" (and {} more with the same entries)", same.count - 1) : "";
            tell(*user, same.entries, escape_for_display(name) + others, found_);
            return;
        }
    }

    // Of an account that could be. A message of one group does not come again for two.
    void look_at_members(const CallersEntries &entries)
    {
        std::string name = "a member of";
        for (const auto &[entry, group] : entries.groups)
            name += (entry == entries.groups.front().entry ? " %" : " and %") + entry->name;
        std::vector<Diagnostic> could_be;
        tell({name, Uid(65534), Gid(65534), "/home/member", {}}, entries, name, could_be);
        for (auto &one : could_be)
            if (told_.insert(to_string(one.where) + one.key).second && told_.size() <= most_told) found_.push_back(std::move(one));
    }

    std::vector<Diagnostic> found() { return std::move(found_); }

private:
    void tell(const Account &user, const CallersEntries &entries, const std::string &who, std::vector<Diagnostic> &found)
    {
        const auto add = [&](const std::vector<Diagnostic> &why, const std::string &root) {
            for (auto one : why) {
                one.problem += ", so " + who + " cannot start pi" + (root.empty() ? "" : " in " + escape_for_display(root));
                found.push_back(std::move(one));
            }
        };
        try {
            const auto access = rules_by(of_all_, user, entries, policy_path);
            if (const auto *rules = std::get_if<AccessRules>(&access))
                for (const auto &refused : refused_starts(of_all_, user, *rules))
                    add(refused.why, refused.root);
        } catch (const PolicyError &error) {
            add(error.diagnostics(), "");
        }
    }

    Policy of_all_;
    std::vector<Diagnostic> found_;
    std::set<std::string> told_;
};

// Each group alone, then two at once.
void look_at_groups(const Policy &policy, const std::vector<SameEntries> &known, Search &search)
{
    std::set<std::set<const UserEntry *>> seen;
    for (const auto &same : known) {
        std::set<const UserEntry *> groups;
        for (const auto &group : same.entries.groups)
            groups.insert(group.entry);
        if (same.entries.own == nullptr) seen.insert(std::move(groups));
    }
    std::vector<CallersEntries::OfGroup> groups;
    for (const auto &entry : policy.users)
        if (const auto group = entry.is_group ? find_group(entry.name) : std::nullopt) groups.push_back({&entry, *group});
    for (const auto &group : groups)
        if (!seen.contains({group.entry})) search.look_at_members({nullptr, {group}});
    std::size_t pairs = 0;
    for (std::size_t one = 0; one < groups.size(); ++one)
        for (std::size_t other = one + 1; other < groups.size(); ++other) {
            const bool can_differ = says_who(*groups[one].entry) || says_who(*groups[other].entry);
            if (!can_differ || seen.contains({groups[one].entry, groups[other].entry})) continue;
            if (++pairs > most_pairs) return;
            search.look_at_members({nullptr, {groups[one], groups[other]}});
        }
}

} // namespace

Observer Observer::self()
{
    Observer observer;
    if (::geteuid() == 0) observer.root_ = AsRoot::claim();
    return observer;
}

bool Observer::can_look_for(const Account &user) const noexcept
{
    return user.uid != Uid(0) && (root_.has_value() || user.uid == Uid(::geteuid()));
}

std::vector<Finding> Observer::resolve_roots(const std::vector<RootSpec> &roots, const Account &user) const
{
    return ask(*this, user, mapped(roots, [&](const auto &root) { return Question([&root, &user] { return find_root(root, user); }); }));
}

std::vector<Finding> Observer::resolve_roots(const AccessRules &rules, const Account &user) const
{
    return resolve_roots(mapped(rules.roots, [&](const auto &root) { return root.spec; }), user);
}

Finding Observer::resolve_directory(const std::string &path, const Account &user) const
{
    return ask(*this, user, {[&path] { return find_directory(path); }}).front();
}

AgentPlaces Observer::agent_places(const Policy &policy, const AccessRules &rules, const Account &user) const
{
    if (!root_) return find_agent_places(policy, rules, user);
    AgentPlaces places = places_of_state(policy, rules);
    Child child(*root_, "look for " + user.name, user, {}, [&](const AsUser & /*user*/, FdRef channel) {
        for (const auto &root : find_roots(rules, user))
            send_answer(channel, Encoder().text(root.path).number(root.device).number(root.inode).bytes());
        send_answer(channel, Encoder().text("").bytes());
    });
    for (;;) {
        const Packet packet = child.receive();
        Decoder answer(packet.bytes);
        std::string path = answer.text();
        if (path.empty()) return places;
        places.places.push_back({std::move(path), answer.number(), answer.number()});
        answer.end();
    }
}

std::vector<Finding> Observer::agents_on_way(const Policy &policy, const AccessRules &rules, const Account &user,
                                             const std::vector<std::string> &paths) const
{
    const UserPaths followed(agent_places(policy, rules, user));
    const auto questions = mapped(paths, [&](const auto &path) {
        return Question([&] {
            const AgentPlace *place = followed.entered_by(path);
            return Finding{Finding::Kind::usable, place == nullptr ? "" : place->path};
        });
    });
    return ask(*this, user, questions);
}

std::vector<std::string> Observer::links_out(const Policy &policy, const AccessRules &rules, const Account &user) const
{
    const UserPaths followed(agent_places(policy, rules, user));
    const Finding found =
        ask(*this, user, {[&] {
            std::size_t left = links_out_entries;
            std::string text;
            for (const auto &link : find_links_out(followed, paths_read_as_user(policy, rules, user), [&] { return left-- > 0; }))
                if (text.size() + link.size() < links_out_bytes) text += link + "\n";
            return Finding{Finding::Kind::usable, text};
        }}).front();
    if (found.kind != Finding::Kind::usable) return {};
    const auto links = split(found.text, '\n');
    return {links.begin(), links.end()};
}

OpenedHome Observer::find_home_directories(const ToolchainsPolicy &toolchains, const Account &user, const AccessRules &rules) const
{
    if (!root_) return pi_agent::find_home_directories(user, toolchains, rules);
    Child child(*root_, "look for " + user.name, user, {}, [&](const AsUser & /*user*/, FdRef channel) {
        send_home(channel, pi_agent::find_home_directories(user, toolchains, rules));
    });
    return receive_home([&] { return child.receive(); });
}

std::optional<AccessRules> rules_of_user(const Policy &policy, const Account &user)
{
    try {
        auto access = find_access_rules(policy, user, policy_path);
        auto *rules = std::get_if<AccessRules>(&access);
        return rules == nullptr ? std::nullopt : std::optional(std::move(*rules));
    } catch (const PolicyError &) {
        return std::nullopt;
    }
}

DryStart dry_start(const Account &user, const AccessRules &rules, Policy callers, const std::vector<Finding> &roots,
                   const Finding &directory)
{
    std::vector<std::optional<RootProblem>> problems;
    std::vector<bool> there;
    std::vector<const Finding *> found;
    StartPlaces places{{}, directory.text, directory.mount};
    for (std::size_t index = 0; index < roots.size(); ++index) {
        const auto &spec = rules.roots[index].spec;
        const Finding &finding = roots[index];
        there.push_back(finding.kind != Finding::Kind::unusable);
        problems.push_back(there.back() ? std::nullopt : std::optional(RootProblem{spec.where, finding.text, finding.is_gone}));
        if (!there.back()) continue;
        found.push_back(&finding);
        places.roots.push_back({finding.text, rules.roots[index].by_group, spec.where, spec.rules, finding.mount});
    }
    require_roots(rules, problems);
    const auto ownership = callers.projects.ownership;
    // What sessions see by the policy's text. A start looks at the host, too, and so knows more of the agent's own program.
    HostView view{callers.view, {tree_of_program(callers.agent.binary)}, {}};
    for (const auto &shown : callers.view_paths)
        view.trees.insert(shown.path);
    const IsShown is_in_view = [&view](const std::string &path) {
        struct stat facts {};
        return is_shown(view, path) && ::stat(path.c_str(), &facts) == 0;
    };
    auto decision = decide_start(user, with_roots_there(rules, there), std::move(callers), places, {}, is_in_view);
    if (const auto *refused = std::get_if<Refused>(&decision)) throw Failure(FailureKind::outside_roots, refused->text);
    auto &start = std::get<Start>(decision);
    require_harmless_grant(user, places.roots[start.root].path, places.roots[start.root].by_group);
    const Finding &holder = *found[start.root];
    if (!holder.file_system_problem.empty()) throw Failure(FailureKind::user_root, holder.file_system_problem);
    if (ownership == ProjectOwnership::idmap && !holder.mapping_problem.empty())
        throw Failure(FailureKind::user_root, holder.mapping_problem);
    return {places.roots[start.root], std::move(start.policy)};
}

std::vector<RefusedStart> refused_starts(const Policy &of_all, const Account &user, const AccessRules &rules)
{
    std::vector<RefusedStart> refused;
    const Policy callers = policy_for(of_all, rules);
    std::vector<Finding> roots;
    // Where the policy says that a root is.
    for (const auto &root : rules.roots)
        roots.push_back({Finding::Kind::usable, without_trailing_slashes(expand_root(root.spec.text, user))});
    for (std::size_t index = 0; index < roots.size(); ++index) {
        const RootSpec &root = rules.roots[index].spec;
        try {
            static_cast<void>(dry_start(user, rules, callers, roots, roots[index]));
        } catch (const PolicyError &error) {
            refused.push_back({root.text, error.diagnostics()});
        } catch (const Failure &failure) {
            refused.push_back({root.text, {{root.where, rules.entry + ".roots", failure.what(), ""}}});
        }
    }
    return refused;
}

std::vector<Diagnostic> find_refused_starts(const Policy &policy, const Database &database)
{
    Search search(policy);
    for (const auto &same : users_by_entries(policy, database.members_of))
        search.look_at(policy, same, database.find_user);
    return search.found();
}

std::vector<Diagnostic> find_possible_refusals(const Policy &policy, const Database &database)
{
    Search search(policy);
    look_at_groups(policy, users_by_entries(policy, database.members_of), search);
    return search.found();
}

} // namespace pi_agent
