// Copies of files of certificates on their way from the child that reads them.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace pi_agent {

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

} // namespace pi_agent
