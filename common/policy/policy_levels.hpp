// How the levels of a policy become one: what an inner level says replaces what the level around it says.
#pragma once

#include "common/policy/policy.hpp"

namespace pi_agent {

// Nothing, where `rules` is empty.
const Rules &rules_of(const RulesPtr &rules) noexcept;

// The key with which these rules say the value of `key`: "users.alice.network"; the key itself where they do not.
std::string place_of_key(const Rules &rules, const char *key);

// "settings" of "settings.json": the key that says this document.
std::string key_of_document(const std::string &file);

// Whether these rules say a value with this key ("limits.memory"), or the document of that name.
bool says(const Rules &rules, const std::string &key);

// --- From the outside in: each value of `inner` replaces the one of `outer`. Only documents are merged, as at a start: an object of both
// has the keys of both, and everything else is the inner one's.
void lay_over(Rules &outer, const Rules &inner);

// The policy with these rules laid over its own. Reports home directories that are then listed twice for one place.
void lay_over(Policy &policy, const Rules &inner, Problems &problems);

// --- Side by side: the rules of several groups of one user.

// Adds `other` to `rules`. Lists have the items of both. What both set differently has no right answer: returns its keys.
std::vector<std::string> join(Rules &rules, const Rules &other);

// Whether both say the same, wherever they say it. The order of a list counts, as it does for `path`.
bool say_the_same(const RulesPtr &one, const RulesPtr &other);

// Whether `own`, laid over both, says one of these keys itself. Of a document: all in it that differs, so that the order of the two, which
// are what they were before they were joined, changes nothing.
bool settles(const Rules &own, const std::string &key, const Documents &one, const Documents &other);

} // namespace pi_agent
