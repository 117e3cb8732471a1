// What a child that is the caller answers about files in the caller's home.
#pragma once

#include "common/policy/env_file.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

// --- Copies of files of certificates on their way from the child that reads them.

constexpr std::size_t certificates_limit = 512UL * 1024; // bytes of one session, which lie in the memory that all sessions share

// What is to be shown, and what the user should know.
struct CertificateFiles {
    std::vector<std::string> contents;          // of N.pem, from 1
    std::map<std::string, std::string> renamed; // variable -> its path inside
    std::vector<std::string> notices;

    [[nodiscard]] std::string encode() const;
    static CertificateFiles decode(std::string_view bytes); // throws ProtocolError for paths that are none of these
};

// Where the session shows the file of that number.
std::string certificate_path_inside(std::size_t number);

// --- A file of the host's /etc on its way from the child that reads it.

enum class EtcFileState { missing, read, too_large };

struct EtcFile {
    EtcFileState state;
    std::string target = {};  // where its links lead, canonical
    std::string content = {}; // of one that was read

    [[nodiscard]] std::string encode() const;
    static EtcFile decode(std::string_view bytes); // throws ProtocolError
};

// --- Who commits, on its way from the child that asks git.

// Who commits; each only where the user has set it, the empty text included. Any bytes but NUL.
struct GitIdentity {
    std::optional<std::string> name;
    std::optional<std::string> email;
    std::vector<std::string> safe_directories = {}; // git's safe.directory, as the user trusts repositories of others
};

// What was found, or why nothing could be: `problem` is for people, and empty where all is well.
struct FoundIdentity {
    GitIdentity identity;
    std::string problem;
    std::vector<std::string> notices = {}; // of single files that were left out; git_notice_limit at most

    [[nodiscard]] std::string encode() const;
    static FoundIdentity decode(std::string_view bytes); // throws ProtocolError
};

constexpr std::size_t git_notice_limit = 10;

// --- The copy of a user's ssh key on its way from the child that reads it.

constexpr std::size_t ssh_key_limit = 16UL * 1024;       // bytes
constexpr std::size_t known_hosts_limit = 1024UL * 1024; // of the user's and the system's each

struct SshFiles {
    std::string key; // empty: none could be had
    std::string known_hosts;
    std::vector<std::string> notices;

    [[nodiscard]] std::string encode() const;
    static SshFiles decode(std::string_view bytes); // throws ProtocolError
};

// None, and why.
SshFiles without_ssh_key(const std::string &path, const std::string &problem);

// --- What the user's own files of variables say, on its way from the child that reads them.

// A name that is not the user's to set is left out, and `notices` say so, each with file, line and reason.
struct HostVariables {
    std::vector<EnvAssignment> assignments;
    std::vector<std::string> notices;

    [[nodiscard]] std::string encode() const;
    static HostVariables decode(std::string_view bytes); // throws ProtocolError for a variable that is not theirs to set
};

std::string encode_assignments(const std::vector<EnvAssignment> &assignments);
// Throws ProtocolError.
std::vector<EnvAssignment> decode_assignments(std::string_view bytes);

} // namespace pi_agent
