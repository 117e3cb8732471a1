// The parts of pi-agentctl init: what it finds, what it asks, and what it writes.
#pragma once

#include "admin/apply/apply.hpp"

namespace pi_agent {

// --- Found on this host (init.cpp).

// The account of a user that a policy can name. Throws Failure(usage).
Account account_of_user(const std::string &name);
// If `roots` is empty, the usual places that this user has. Throws Failure(usage) for a root that cannot be one.
Candidate find_candidate(const Account &user, const std::vector<std::string> &roots, const Observer &observer);
std::vector<Candidate> find_candidates(const InitOrder &order, const Observer &observer);
// Throws Failure(usage) for a directory that a session of `user` cannot have as a root.
void require_usable(const std::vector<std::string> &roots, const Account &user, const Observer &observer);

// --- Asked at the terminal (init_questions.cpp).

// A key of a model's provider, for everybody, as the file that holds it.
struct ProviderKey {
    std::string file;
    std::string text; // never in a message, argument or log
};

struct InitAnswers {
    std::vector<Candidate> candidates;
    std::vector<Candidate> new_roots; // directories that do not exist yet, to be created by their users
    PolicyAnswers policy;
    std::optional<ProviderKey> key; // to be written
};

constexpr const char *no_key = "none";
// Why a key is not written there.
std::string existing_key_file(const std::string &file);

// The words of an answer, separated by commas or spaces.
std::vector<std::string> words_of_answer(const std::string &answer);
// The provider whose key stays outside of sessions, of a provider or a variable: where the policy names hosts, and a gate can hold such
// keys.
std::optional<std::string> provider_outside(const std::string &key, const std::optional<std::string> &network);
// Where the key of a provider is kept, or of a variable.
std::string file_of_key(const std::string &key, const std::optional<std::string> &network);
// The hosts of the providers whose keys a file of variables has. Empty for a file without one, or that cannot be read. Throws
// Failure(usage) for a provider whose host is not known, where the network is the suggested one: nothing would lead there.
std::vector<std::string> hosts_of_keys(const std::string &file, const std::optional<std::string> &network);
// The variable that holds the key of a provider ("anthropic", or the variable's own name). Throws Failure(usage) for others.
std::string variable_of_key(const std::string &provider);
// Throws Failure(usage) for a value that cannot be written as one line of a file of variables.
void require_plain_key(const std::string &value);

// Asks what `order` leaves open. `has_key_file`: key_file() exists, and is used unless an answer says otherwise; of a provider's own file
// nothing is asked. Throws Nothing at the end of input. Nothing is written before it returns.
InitAnswers ask_for_policy(const InitOrder &order, const Observer &observer, bool has_key_file, std::ostream &questions);
// The same without questions. A key comes from standard input: a line without an echo at a terminal, else the first line.
InitAnswers answers_of(const InitOrder &order, const Observer &observer);

} // namespace pi_agent
