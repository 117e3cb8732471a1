// A registry's answer about a package, and the check sums that npm calls integrity.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// The bytes of a sha512, of "sha512-" and its base64; of several, divided by spaces, the first of that kind. Empty without one.
std::optional<std::string> read_integrity(std::string_view text) noexcept;

// One version of a package.
struct PackageAnswer {
    std::string version;
    std::string tarball; // http or https
    std::string integrity;
};

inline constexpr std::size_t registry_answer_limit = std::size_t{64} << 20U;

// `version` is exact, or a tag. Throws Failure(unavailable) for any other text, and for an answer that does not know this version;
// `package` is for messages.
PackageAnswer read_registry_answer(std::string_view json, const std::string &package, const std::string &version);

// The content of a package.json: its version, and the program that it has by that name ("bin"). Throws as above.
struct PackageProgram {
    std::string version;
    std::string program; // in the package
};
PackageProgram read_package_program(std::string_view json, const std::string &package, const std::string &command);

} // namespace pi_agent
