// Parts of check that look at the host: what is unsafe about roots that a start would use, and whether the method can work here.
#pragma once

#include "admin/diagnose/faults.hpp"
#include "admin/diagnose/user_view.hpp"
#include "common/base/error.hpp"
#include "common/base/fd.hpp"
#include "common/base/problems.hpp"
#include "common/host/account.hpp"
#include "common/policy/policy.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace pi_agent {

// Reports why `task` fails. False if it does.
template <typename Task>
bool report_failure(const Position &where, const std::string &key, const char *remedy, Problems &problems, const Task &task)
{
    try {
        task();
        return true;
    } catch (const Failure &failure) {
        problems.add(where, key, failure.what(), remedy);
        return false;
    }
}

// The remedy for an element of a list.
constexpr const char *correct_list = "correct it, or take it out of the list";

// --- Roots that others than root and the user can exchange, or that lie on another host.

// A directory on the way to a root, from "/" to the root itself.
struct StepToRoot {
    std::string path;
    uid_t owner = 0;
    mode_t mode = 0;
};

struct RootDanger {
    std::string problem, remedy; // empty: none
};

// Who besides root and `user` can put another directory in the root's place, or anything into the root. Pure, except for the
// names of accounts. Groups do not count: whoever lets a group write somewhere means its members.
RootDanger danger_of_way(const std::vector<StepToRoot> &way, const Account &user);

// The same of a root that is open, for the process that has become `user`; and whether it lies on another host. A path that changes while
// this looks has no danger that could be told.
RootDanger danger_of_root(FdRef directory, const std::string &path, const Account &user);

// A root of the policy that was found on this host.
struct FoundRoot {
    std::string path; // canonical
    std::string user, key;
    Position where;
};

// One warning for each root that is another one too, or is in one: the nearest that holds it. Pure.
std::vector<Diagnostic> find_overlaps(std::vector<FoundRoot> roots);

// --- Rules by name.

// "*.github.io" and similar, which would let a session reach whatever anybody puts there, by the host's list of public suffixes; and
// ports that a session has for its gate.
void check_host_rules(const Policy &policy, Problems &problems);

// Not mistakes, but hardly what was meant: a name without its own '*', rules that add nothing, what no session reaches.
std::vector<Diagnostic> find_odd_host_rules(const Policy &policy);

// The same of projects.mask, projects.protect and config.classes: wildcards that match less than they seem to, or stand for nothing.
std::vector<Diagnostic> find_odd_patterns(const Policy &policy);

// The files with the keys of providers, as a start reads them.
void check_key_files(const Policy &policy, const Observer &observer, Problems &problems, Unverified &unverified);

// --- What each start looks at first for its method, without a start.

void check_method(const Policy &policy, const Observer &observer, Means means, Problems &problems, Unverified &unverified);

} // namespace pi_agent
