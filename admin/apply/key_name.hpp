// A key of the policy as somebody types it: limits.memory, users.alice.roots. And the value for it.
#pragma once

#include "admin/host/yaml_line.hpp"
#include "common/policy/policy_keys.hpp"

#include <string>

namespace pi_agent {

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

} // namespace pi_agent
