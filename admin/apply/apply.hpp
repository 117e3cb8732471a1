// The commands that change the host: apply, rollback, remove, prune, init, edit, set; and what they print before a change.
#pragma once

#include "admin/diagnose/explain.hpp"

namespace pi_agent {

// --- pi-agentctl apply: makes the host follow the policy.
struct ApplyOptions {
    bool dry_run = false;    // only say what would change
    bool try_sandbox = true; // with a session of the canary
};

// Root only. Prints each change on `out`; a second run has nothing to do. Plans all changes first, and tries the sandbox in a session of a
// user who can start pi already (admin/diagnose/faults.hpp): throws before the first change if a start could not work. If anything was
// changed, or nobody could start pi before, it tries the sandbox again at the end. What fails after the first change goes back by itself;
// after a kill, the next apply finishes it or goes back (admin/host/host_things.hpp). Ends the sessions that the policy does not allow
// any more, first and whatever else is wrong, and keeps the policy for a rollback. `before`: the files that the same command has just
// replaced, which come back if it fails; sessions then end last.
void run_apply(const ApplyOptions &options, std::ostream &out, std::ostream &warnings, std::optional<PolicyFiles> before = {});

// --- pi-agentctl rollback: the policy that was applied before becomes the installed one again, and is applied.

// If the installed policy is not the one that was last applied, the last applied one comes back; otherwise the one that was applied before
// it. So a second rollback takes the first one back. Shows the difference, asks unless `yes`, and checks before it writes anything. If it
// fails, the files that it replaced come back. Throws NothingToDo if there is no earlier policy.
void run_rollback(bool yes, const ApplyOptions &options, std::ostream &out, std::ostream &warnings);

// --- pi-agentctl remove: undoes what apply did to this host.
struct RemoveOrder {
    bool accounts = false;    // also the agents' accounts; only with `state`, whose files would be left to whoever gets their numbers
    bool state = false;       // also what is kept for each user
    bool keep_hidden = false; // the agent's program stays closed, so that nobody runs it without a sandbox
    bool yes = false;         // do not ask
    bool dry_run = false;
};

// Removes the sudo rule first, so that nobody can start what it removes next. Then the agent's program, and what was hidden beside it, get
// their owners and modes back. The policy stays. Throws Failure(limit) while a session lives.
void run_remove(const RemoveOrder &order, std::ostream &out);

// --- pi-agentctl user prune: removes homes and accounts of agents whose people left the policy or this host.
struct PruneOrder {
    bool yes = false;                   // do not ask
    bool dry_run = false;               // only list
    bool json = false;                  // the list for programs; only with dry_run
    std::vector<std::string> gone = {}; // users who left this host by the administrator's word, where its services cannot tell
};

// Lists, asks, and removes what is the same then (admin/state/state.hpp): each home by a child with its owner's rights. Throws
// Failure(limit) if something changed meanwhile.
void run_prune(const PruneOrder &order, std::ostream &out);

// --- pi-agentctl init: a first policy, from the users and directories of this host.
struct InitOrder {
    std::vector<std::string> users;      // --user; none: everybody on this host who could be one
    std::vector<std::string> roots;      // --root, for these users
    std::optional<std::string> network;  // --network, as it is typed
    std::optional<std::string> key;      // --key: a provider, or "none"
    std::optional<std::string> env_file; // --env-file
    std::optional<std::string> output;   // "-": standard output; none: the policy of this host
    bool yes = false;                    // --yes: ask nothing
    std::optional<std::string> via = {}; // --via: the address of a proxy, or "none"
};

// The proxy by which the host reaches the Internet.
struct HostProxy {
    std::string url;   // "http://HOST:PORT"
    std::string login; // "NAME:PASSWORD", or nothing; never in a message, argument or log
    std::string where; // who names it, for people
};
// From "http://NAME:PASSWORD@HOST:PORT/", or parts of it; none for a text that names another thing than a proxy that the gate can ask.
std::optional<HostProxy> proxy_of_text(const std::string &text, const std::string &where);
// In root's environment, /etc/environment or apt's settings.
std::optional<HostProxy> find_host_proxy(const std::function<std::optional<std::string>(const std::string &name)> &own);
// Where init keeps its login, root 0600.
std::string login_file_of_proxy();

// Where init keeps a key that everybody uses, root 0600; the policy names the file and never holds the key. As a variable, which sessions
// have; and of a provider whose key stays outside of them.
std::string key_file();
std::string key_file_of(const std::string &provider);

constexpr const char *suggested_network = "hosts"; // of the providers, as an answer

// What a first policy says besides its users; an empty value leaves the default, in a comment.
struct PolicyAnswers {
    std::optional<std::string> network;       // hosts, full, loopback, none, names of hosts, or addresses
    std::optional<std::string> env_file;      // an absolute path
    std::optional<std::string> provider = {}; // whose key stays outside, in key_file_of()
    std::vector<std::string> hosts = {};      // what `hosts` means here; empty: those of all providers
    std::optional<HostProxy> proxy = {};      // by which sessions reach them
};

// One user of the new policy; without roots, only a comment names it.
struct Candidate {
    std::string name;
    std::vector<std::string> roots; // as the policy writes them
};

// The text of a policy that gives these users these roots. Throws Failure(usage) when no user has one, or an answer is not valid.
std::string init_text(const std::vector<Candidate> &candidates, const PolicyAnswers &answers = {});

// Whether this account is a person's: an ordinary number (login.defs(5)), a login shell, and a home of its own.
bool is_persons(const Account &account, const std::string &shell, unsigned first_uid, unsigned last_uid);

// The people of this host, by that rule.
std::vector<Account> find_people();

// Writes a policy that passes the check if the agent is installed. Never writes over a file that exists: Failure(usage). For the policy of
// this host, at a terminal and without `yes`, it asks what the order leaves open: who, where, which network, which key. It writes nothing
// before the last answer. At the end it prints what check finds, and what to type next.
void run_init(const InitOrder &order, std::ostream &out, std::ostream &notes);

// --- pi-agentctl edit: changes the policy as visudo changes sudo's rules, so that no mistake is ever in force.

// One editor at a time (Failure(limit)). `name` is the policy's file to change (policy_file_named), by default the main one; it need not
// exist. The editor works on a copy beside the file. The copy replaces the file only when the whole policy passes the check with it; nobody
// can keep a copy that does not. It does not write a file that is unchanged, or that somebody else has changed meanwhile. Throws
// Failure(configuration) if the draft is given up because of its mistakes. At the end it offers to apply.
void run_edit(const std::optional<std::string> &name, std::ostream &out, std::ostream &warnings);

// --- pi-agentctl user, set and show KEY: change one thing in the policy, and read one.
struct ChangeOrder {
    bool yes = false;     // do not ask
    bool dry_run = false; // only show the lines that would change
};

// Each writes one file, under the lock of whoever edits, in one step, and only if the whole policy then passes the check
// (Failure(configuration) with the mistakes). It changes no file that was written by hand (Failure(configuration) with the place). At its
// end it says what `apply` would do.

// A new entry, as a file of users.d.
void run_user_add(const std::string &name, const std::vector<std::string> &roots, const ChangeOrder &order, std::ostream &out,
                  std::ostream &warnings);
// Removes that file, after a question. Throws NothingToDo without an entry.
void run_user_remove(const std::string &name, const ChangeOrder &order, std::ostream &out, std::ostream &warnings);
// In policy.d/set.yaml, or a user's in users.d/NAME.yaml.
void run_set(const std::string &key, const std::string &value, const ChangeOrder &order, std::ostream &out, std::ostream &warnings);
// More hosts for network.hosts, or for one user's: a line or a word in the list, wherever it stands.
void run_allow(const std::vector<std::string> &hosts, const std::optional<std::string> &user, const ChangeOrder &order, std::ostream &out,
               std::ostream &warnings);
// As the files say it. Throws NothingToDo where they do not, with the default.
void run_get(const std::string &key, bool json, std::ostream &out);

// What `apply` would do with these files, or what would stop it.
void tell_apply(const Observer &observer, const PolicyFiles &files, std::ostream &out, std::ostream &warnings);

// --- pi-agentctl apply --show-rule: the rule that apply would install, for those who keep their sudo rules elsewhere.

// Prints it if visudo finds nothing wrong. Without visudo, a note on `notes` says so. Throws Failure(internal) if visudo refuses the rule.
void run_sudoers(std::ostream &out, std::ostream &notes);

// --- pi-agentctl show --schema: the policy's keys as a JSON Schema (draft 07), for editors and other programs that look at policies.

// Made from the table of common/policy/policy_sections.hpp. It refuses nothing that pi-agent accepts; what it cannot say is in
// docs/reference/policy-files.md.
void run_schema(std::ostream &out);

// --- Makes the host follow a policy, from the plan to the last probe: for apply, rollback and edit.

// The policy to apply.
struct WantedPolicy {
    PolicyFiles files;                 // installed already, or installed here
    std::optional<PolicyFiles> before; // what the same command replaces, or has replaced, with them; no files: it could not be read
    UniqueFd editing;                  // the lock of edit, if the files are installed here; given away when they are
};

// `observer` is root; `lock` is the lock of apply. Plans every change first, and throws before the first one if a start could not work
// under this policy. What fails later goes back. `wrapper.enable: false` stops everything, and depends on nothing else. Returns how many
// changes it has made, or would make.
int apply_policy(const Observer &observer, UniqueFd lock, WantedPolicy wanted, const ApplyOptions &options, std::ostream &out,
                 std::ostream &warnings);

// --- YAML as pi-agentctl writes it: a line for each key at the top. And a value found in a tree, or put there.

// {"limits", "memory"}; empty is the whole document.
using KeyPath = std::vector<std::string>;

// The tree of a text. Throws PolicyError for one that is not YAML.
YamlNode parse_or_throw(const std::string &file, const std::string &text);

// The value at `path`; nullptr without one.
const YamlNode *find_node(const YamlNode &root, const KeyPath &path);

// Gives `path` this value; mappings on the way are made. Throws Failure(configuration) where another kind of value is on the way.
void put_node(YamlNode &root, const KeyPath &path, const YamlNode &value);

// A text as a scalar in one line, in quotes wherever a reader could take it for anything else. Throws Failure(usage) for a text with
// control characters.
std::string yaml_word(const std::string &text);

// A value in one line: [a, 'b c'], {key: value}.
std::string yaml_line(const YamlNode &node);

// A mapping with a line for each key.
std::string yaml_lines(const YamlNode &mapping);

// A key of the policy as somebody types it: limits.memory, users.alice.roots. And the value for it.
struct KeyName {
    KeyPath path;                   // {"users", "Alice.Smith", "roots"}
    const PolicyKey *key = nullptr; // its entry in the table; of a path within a document, the document's
    std::string doubt;              // "; did you mean 'roots'?" if a misspelt key may have become a part of a name
};

// A name between dots may have dots itself: the first division counts that makes a key. Throws Failure(usage) for anything else.
KeyName parse_key_name(const std::string &text);

// `value` as a file of the policy has it. Where the key takes a text, these are its bytes, and quotes come as they are needed; elsewhere it
// is YAML in one line. Throws Failure(usage) for more than a line.
std::string value_for(const KeyName &name, const std::string &value);

// --- A policy as it would be: the installed files with one of them exchanged, and what is wrong with that.

std::optional<std::string> find_text(const PolicyFiles &files, const std::string &file);

// The other files as they are, and the draft instead of its own file. Diagnostics name the file, not the draft.
PolicyFiles with_draft(PolicyFiles files, const std::string &file, const std::string &draft);

// What is wrong with the policy, as check prints it; empty if nothing is.
std::string mistakes_in(const PolicyFiles &files, const Observer &observer);

// --- Found on this host (init.cpp).

// The account of a user that a policy can name. Throws Failure(usage).
Account account_of_user(const std::string &name);
// If `roots` is empty, the usual places that this user has. Throws Failure(usage) for a root that cannot be one.
Candidate find_candidate(const Account &user, const std::vector<std::string> &roots, const Observer &observer);
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
    // What is written for root alone.
    [[nodiscard]] std::vector<ProviderKey> secrets() const
    {
        std::vector<ProviderKey> all;
        if (key) all.push_back(*key);
        if (policy.proxy && !policy.proxy->login.empty()) all.push_back({login_file_of_proxy(), policy.proxy->login + "\n"});
        return all;
    }
};

constexpr const char *no_key = "none";
// Why a key is not written there.
std::string existing_key_file(const std::string &file);

// The words of an answer, separated by commas or spaces.
std::vector<std::string> words_of_answer(const std::string &answer);
// Whether it is a network of hosts, and not one of addresses or a word.
bool names_hosts(const std::optional<std::string> &network);
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
// nothing is asked. Throws NothingToDo at the end of input. Nothing is written before it returns.
InitAnswers ask_for_policy(const InitOrder &order, const Observer &observer, bool has_key_file, std::ostream &questions);
// The same without questions. A key comes from standard input: a line without an echo at a terminal, else the first line.
InitAnswers answers_of(const InitOrder &order, const Observer &observer);

} // namespace pi_agent
