// What check says of starts is what they do: admin/diagnose/explain.hpp
#include "admin/diagnose/explain.hpp"

#include "common/as_user/user_paths.hpp"
#include "common/decide/decision.hpp"
#include "common/host/identity.hpp"
#include "support/access.hpp"
#include "support/drawn.hpp"
#include "support/policy_text.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <set>

using namespace pi_agent;
using namespace pi_agent::test;

namespace dry_start_test {

namespace {

const std::string head = "version: 1\nagent: {binary: /usr/bin/env, accounts: shared}\n";

// Of these people only.
Database database_of(const std::vector<Account> &people)
{
    const auto members = [people](const std::string &group) {
        std::vector<std::string> names;
        const auto gid = find_group(group);
        for (const auto &one : people)
            if (gid && std::find(one.groups.begin(), one.groups.end(), gid->value()) != one.groups.end()) names.push_back(one.name);
        return names;
    };
    const auto find = [people](const std::string &name) {
        const auto one = std::find_if(people.begin(), people.end(), [&](const Account &account) { return account.name == name; });
        return one == people.end() ? std::nullopt : std::optional(*one);
    };
    return {members, find};
}

std::string told_of(const std::string &users, const std::vector<Account> &people)
{
    std::string told;
    for (const auto &one : find_refused_starts(parse(head + "users: " + users + "\n"), database_of(people)))
        told += to_string(one) + "\n";
    return told;
}

std::string possible_of(const std::string &users)
{
    std::string told;
    for (const auto &one : find_possible_refusals(parse(head + "users: " + users + "\n"), database_of({})))
        told += to_string(one) + "\n";
    return told;
}

std::string many_hosts(const std::string &begin)
{
    std::string list;
    for (int number = 0; number < 600; ++number)
        list += fmt::format("{}{}{}.example", list.empty() ? "" : ", ", begin, number);
    return "{hosts: [" + list + "]}";
}

const Account of_both = account("bob", {daemon_group, sys_group});

// --- Random policies, over these people and directories.

class Draw {
public:
    explicit Draw(unsigned seed) : random_(seed) {}
    std::size_t below(std::size_t count) { return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_); }
    bool one_in(std::size_t count) { return below(count) == 0; }
    template <typename List>
    auto one_of(const List &list)
    {
        return list[below(std::size(list))];
    }

private:
    std::mt19937 random_;
};

constexpr const char *networks[] = {"none", "full", "{hosts: []}", "{hosts: [a.example]}", "{hosts: [b.example]}"};
constexpr const char *root_keys[] = {"read_only: true", "scope: project", "mask: [keys]", "mask: [keys, '*.pem']", "protect: [ci/]"};
constexpr const char *level_keys[] = {"providers: {anthropic: {key_file: /etc/k}}",
                                      "limits: {tasks: 100}",
                                      "limits: {tasks: 200}",
                                      "projects: {mask: [keys]}",
                                      "env: {A: one}",
                                      "env: {A: two}",
                                      "config: .one",
                                      "config: .two",
                                      "settings: {theme: light}",
                                      "settings: {theme: dark}"};

std::string roots_of(Draw &draw, const std::string &place)
{
    std::string list;
    for (auto count = draw.below(2) + 1; count > 0; --count) {
        const std::string root = draw.one_of(std::vector<std::string>{place + "/a", place + "/a/below", place + "/b", "~/p"});
        std::string rules;
        if (draw.one_in(3)) rules += std::string(", network: ") + draw.one_of(networks);
        if (draw.one_in(3)) rules += std::string(", ") + draw.one_of(root_keys);
        list += (list.empty() ? "" : ", ") + (rules.empty() ? root : "{path: " + root + rules + "}");
    }
    return "roots: [" + list + "]";
}

std::string entry_of(Draw &draw, const std::string &name, const std::string &place)
{
    std::string text = "  '" + name + "': {" + roots_of(draw, place);
    if (draw.one_in(40))
        text += ", network: " + many_hosts(name.substr(1));
    else if (draw.one_in(2))
        text += std::string(", network: ") + draw.one_of(networks);
    if (draw.one_in(2)) text += std::string(", ") + draw.one_of(level_keys);
    return text + "}\n";
}

std::string policy_text(Draw &draw, const std::string &place)
{
    std::string text = head;
    if (draw.one_in(3)) text += std::string("network: ") + draw.one_of(networks) + "\n";
    if (draw.one_in(4)) text += "providers: {anthropic: {key_file: /etc/k}}\n";
    text += "users:\n";
    for (const char *group : {"%daemon", "%sys", "%games"})
        if (!draw.one_in(4)) text += entry_of(draw, group, place);
    if (draw.one_in(2)) text += entry_of(draw, "alice", place);
    return text;
}

// In the words of a start, as the wrapper decides it on what it opens; "" for one that would be. Empty for who has no entry.
std::optional<std::string> refusal_of_start(const Policy &policy, const Account &user, std::size_t root)
{
    try {
        const auto access = find_access_rules(policy, user, "p.yaml");
        const auto *all = std::get_if<AccessRules>(&access);
        if (all == nullptr || root >= all->roots.size()) return std::nullopt;
        const Policy own = policy_for(policy, *all);
        StartPlaces places;
        for (const auto &found : resolve_roots(*all, user)) {
            const auto &granted = all->roots[places.roots.size()];
            places.roots.push_back({found->path, granted.by_group, granted.spec.where, granted.spec.rules, mount_id(found->fd)});
        }
        places.cwd = places.roots[root].path;
        places.mount = places.roots[root].mount;
        const auto decided = decide_start(user, *all, own, places, {}, {});
        const auto *refused = std::get_if<Refused>(&decided);
        return refused == nullptr ? "" : refused->text;
    } catch (const Failure &failure) {
        return failure.what();
    }
}

struct Disagreements {
    int policies = 0, starts = 0, refused = 0, missed_in_parallel = 0;
    std::string first;
    int count = 0;
};

// What check once decided for itself: without the roots of groups, without two roots in one place, and without lists that grow too long.
bool parallel_check_refuses(const Policy &policy, const Account &user, std::size_t root)
{
    const auto entries = find_entries(policy, user);
    const bool has_own_rules = entries.own != nullptr && (entries.own->rules || !entries.own->env.empty() ||
                                                          std::any_of(entries.own->roots.begin(), entries.own->roots.end(),
                                                                      [](const RootSpec &spec) { return spec.rules != nullptr; }));
    const auto saying = std::count_if(entries.groups.begin(), entries.groups.end(),
                                      [](const CallersEntries::OfGroup &group) { return group.entry->rules || !group.entry->env.empty(); });
    if (saying + (has_own_rules ? 1 : 0) < 2) return false;
    try {
        const auto rules = std::get<AccessRules>(find_access_rules(policy, user, "p.yaml"));
        static_cast<void>(policy_in(policy_for(policy, rules), rules.roots.at(root).spec));
        return false;
    } catch (const PolicyError &) {
        return true;
    }
}

void compare(const Policy &policy, const std::string &text, const Account &user, Disagreements &seen)
{
    const auto told = find_refused_starts(policy, database_of({user}));
    for (std::size_t root = 0;; ++root) {
        const auto refusal = refusal_of_start(policy, user, root);
        if (!refusal) return;
        const auto access = [&] {
            try {
                return std::get<AccessRules>(find_access_rules(policy, user, "p.yaml")).roots.at(root).spec.text;
            } catch (const PolicyError &) { // which refuses all of them
                return std::string();
            }
        }();
        const bool is_told = std::any_of(told.begin(), told.end(), [&](const Diagnostic &one) {
            const std::string everywhere = ", so " + user.name + " cannot start pi";
            const std::string here = everywhere + " in " + access;
            if (!one.problem.ends_with(everywhere) && !one.problem.ends_with(here)) return false;
            return contains(*refusal, one.problem.substr(0, one.problem.find(everywhere)));
        });
        ++seen.starts;
        seen.missed_in_parallel += !refusal->empty() && !parallel_check_refuses(policy, user, root) ? 1 : 0;
        seen.refused += refusal->empty() ? 0 : 1;
        if (is_told == refusal->empty()) {
            ++seen.count;
            if (seen.first.empty()) seen.first = text + user.name + " in " + access + ": " + (refusal->empty() ? "starts" : *refusal);
        }
        if (access.empty()) return;
    }
}

} // namespace

TEST_CASE("check says of random policies what the starts of all their users then do, in their words")
{
    const TemporaryDirectory place;
    std::vector<Account> people = {account("alice", {daemon_group, sys_group}), account("bob", {daemon_group}),
                                   account("carol", {sys_group, 60}), account("dave", {daemon_group, sys_group, 60})};
    for (const char *directory : {"a", "a/below", "b"})
        static_cast<void>(place.make(directory));
    for (auto &one : people) {
        one.home = place.make("home-" + one.name);
        static_cast<void>(place.make("home-" + one.name + "/p"));
    }
    const auto seed = seed_of_run();
    std::cout << "policies drawn with PI_AGENT_SEED=" << seed << '\n';
    Draw draw(seed);
    Disagreements seen;
    const int count = drawn_of(2000);
    while (seen.policies < count) {
        const auto text = policy_text(draw, place.path());
        if (!problems_of(text).empty()) continue; // one function reads it for both
        ++seen.policies;
        const auto policy = parse(text);
        for (const auto &one : people)
            compare(policy, text, one, seen);
    }
    CHECK_MESSAGE(seen.count == 0, "seed " << seed << ": " << seen.count << " of " << seen.starts << " starts: " << seen.first);
    CHECK(seen.starts > 2 * count);
    CHECK(seen.refused > count / 4);
    CHECK(seen.refused < seen.starts - count / 4);
    CHECK(seen.missed_in_parallel > count / 20); // what made this test fail before one function decided for both
    std::cout << seen.starts << " starts, " << seen.refused << " refused, of which a check beside the start misses "
              << seen.missed_in_parallel << '\n';
}

TEST_CASE("a root with equal rules in two groups is one root, and with different ones check says so")
{
    const auto told = [](const std::string &one, const std::string &other) {
        return told_of("{'%daemon': {roots: [{path: /srv/a, " + one + "}]}, '%sys': {roots: [{path: /srv/a, " + other + "}]}}", {of_both});
    };
    for (const std::string rules : {"network: none", "network: {hosts: [a.example, b.example], may_grant: [c.example]}, mask: [keys]",
                                    "network: [10.0.0.0/8, 127.0.0.0/8]", "read_only: true, scope: project, protect: [ci/]"})
        CHECK_MESSAGE(told(rules, rules) == "", rules);
    for (const std::string rules : {"network: full", "network: none, mask: [keys]", "network: {hosts: []}", "mask: []"})
        CHECK_MESSAGE(contains(told("network: none", rules), "the policy grants /srv/a twice, with different rules"), rules);
    CHECK(contains(told("mask: [a]", "mask: [b]"), ", so bob cannot start pi in /srv/a"));
}

TEST_CASE("rules of a group's root are held against what another group of a member says")
{
    const auto told = told_of("{'%daemon': {roots: [/srv/a], network: {hosts: []}, providers: {anthropic: {key_file: /etc/k}}}, "
                              "'%sys': {roots: [{path: /srv/b, network: full}]}}",
                              {of_both, account("carol", {sys_group})});
    CHECK(contains(told, "users.%daemon.providers: its key stays outside"));
    CHECK(contains(told, ", so bob cannot start pi in /srv/b"));
    CHECK_FALSE(contains(told, "carol"));
}

TEST_CASE("lists of groups that are together longer than one may be are told with what helps")
{
    const auto told = told_of("{'%daemon': {roots: [/srv/a], network: " + many_hosts("a") +
                                  "}, '%sys': {roots: [/srv/b], network: " + many_hosts("b") + "}}",
                              {of_both});
    CHECK(
        contains(told, "the lists of the groups here have 1200 rules together, and a session has 1000 at most, so bob cannot start pi in"));
    CHECK(contains(told, "give one list to these users in entries of their own"));
    CHECK_FALSE(contains(told, "--pi-agent-allow"));
}

TEST_CASE("what accounts could be is told apart from what they are, once for two groups")
{
    const std::string users = "{'%daemon': {roots: [/srv/a], network: none}, '%sys': {roots: [/srv/b], network: full}}";
    CHECK(told_of(users, {account("carol", {sys_group})}) == "");
    const auto possible = possible_of(users);
    CHECK(contains(possible, "users.%sys.network: another group of a member of %daemon and %sys sets another value"));
    CHECK(contains(possible, ", so a member of %daemon and %sys cannot start pi; "));
    CHECK(std::count(possible.begin(), possible.end(), '\n') == 1);
    CHECK(find_possible_refusals(parse(head + "users: " + users + "\n"), database_of({of_both})).empty()); // who is, is told
    CHECK(possible_of("{'%daemon': {roots: [/srv/a], network: none}, '%sys': {roots: [/srv/b], network: none}}") == "");
}

TEST_CASE("of thousands of members with the same entries a few are looked up, and one is told with their number")
{
    const auto policy = parse(head + "users: {'%daemon': {roots: [/srv/a], network: none}, '%sys': {roots: [/srv/b], network: full}}\n");
    int lookups = 0;
    Database database;
    database.members_of = [](const std::string &) {
        std::vector<std::string> names;
        for (int number = 0; number < 6000; ++number)
            names.push_back("user" + std::to_string(number));
        return names;
    };
    database.find_user = [&](const std::string &name) {
        return ++lookups == 1 ? std::nullopt : std::optional(account(name)); // the first is in the group alone
    };
    const auto told = find_refused_starts(policy, database);
    REQUIRE(told.size() == 1);
    CHECK(contains(told[0].problem, ", so user1 (and 5999 more with the same entries) cannot start pi"));
    CHECK(lookups == 2);
}

TEST_CASE("a start in a root that others can exchange while sessions see the directories around it is refused" *
          doctest::skip(geteuid() != 0))
{
    const auto policy = parse(head + "users: {'%daemon': {roots: [/opt/pi-agent-dry/p, /opt/pi-agent-none/p]}}\n");
    std::filesystem::create_directories("/opt/pi-agent-dry/p");
    REQUIRE(::chown("/opt/pi-agent-dry", 1000, 1000) == 0);
    const auto told = find_refused_starts(policy, database_of({account("bob", {daemon_group})}));
    std::filesystem::remove_all("/opt/pi-agent-dry");
    REQUIRE(told.size() == 1);
    CHECK(contains(told[0].problem, "which others could replace while a session runs"));
    CHECK(contains(told[0].problem, ", so bob cannot start pi in /opt/pi-agent-dry/p"));
}

} // namespace dry_start_test
