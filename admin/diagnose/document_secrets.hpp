// What of a policy's documents had better not be written down where many can read it.
#pragma once

#include <set>
#include <string>

namespace pi_agent {

// The path of the first text of a document (JSON text of an object) that looks like a secret: by its key, as the value of an option, or as
// what a header authorises with; empty where there is none. `path` names the document. A text that only names one of the `variables`, or
// says none, is no secret.
std::string secret_in_document(const std::string &document, const std::string &path, const std::set<std::string> &variables);

} // namespace pi_agent
