// Reads the keys that a policy keeps out of sessions.
#include "runner/root/errand/provider_keys.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/host/remedy.hpp"
#include "common/host/trusted_file.hpp"
#include "common/policy/provider_table.hpp"
#include "common/seams/seams.hpp"
#include "runner/root/errand/errand.hpp"
#include "runner/wire/gate_messages.hpp"

#include <algorithm>
#include <sys/stat.h>

namespace pi_agent {

namespace {

[[noreturn]] void refuse(const ProviderRule &rule, const std::string &problem)
{
    throw Failure(FailureKind::named_place, escape_for_display(rule.key_file.path) + " (" + to_string(rule.key_file.where) +
                                                "), the key of " + rule.name + ", " + problem);
}

bool is_of_keys(char byte)
{
    return byte > ' ' && byte <= '~';
}

} // namespace

std::string read_provider_key(const ProviderRule &rule)
{
    const UniqueFd fd = open_trusted(rule.key_file.path, O_RDONLY | O_NONBLOCK | O_NOCTTY,
                                     "key of " + rule.name + " (" + to_string(rule.key_file.where) + ")");
    const struct stat facts = examine(fd, "examining " + rule.key_file.path);
    if (!S_ISREG(facts.st_mode)) refuse(rule, "is not a regular file");
    if ((facts.st_mode & 077U) != 0 && defence_is_on("key-file-mode"))
        refuse(rule, "is readable for others than root; " +
                         command_on("chmod 600", rule.key_file.path, "move it to a file of its own in /etc/pi-agent with mode 0600"));
    std::string key = read_whole(fd, gate_key_bytes, rule.key_file.path);
    if (key.ends_with('\n')) key.pop_back();
    if (key.ends_with('\r')) key.pop_back();
    if (key.empty()) refuse(rule, "is empty; write the key into it, on one line");
    if (!std::all_of(key.begin(), key.end(), is_of_keys)) refuse(rule, "has more than a key; write the key alone into it, on one line");
    return key;
}

std::vector<std::string> ask_placeholders(const AsRoot &root, const std::vector<ProviderRule> &rules)
{
    if (rules.empty()) return {};
    Child child(root, "reader of the providers' keys", [&] {
        fault_point("reading-keys");
        std::vector<std::string> placeholders;
        for (const auto &rule : rules) {
            const Provider *known = find_provider(rule.name);
            if (known == nullptr) refuse(rule, "belongs to no provider that a gate knows");
            placeholders.push_back(form_of_key(*known, read_provider_key(rule)).placeholder);
        }
        return Encoder().texts(placeholders).bytes();
    });
    return decode_texts(child.receive_long(child_patience_seconds), gate_provider_limit);
}

} // namespace pi_agent
