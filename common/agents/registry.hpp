// A package registry: npm's configuration, as far as fetching depends on it, and the registry's answers.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pi_agent {

// npm's configuration, as far as fetching from the registry that it names depends on it.

using NpmSettings = std::map<std::string, std::string>;

// The value of a variable of the environment; none when it is not set.
using NpmVariable = std::function<std::optional<std::string>(const std::string &name)>;

// The keys and values of an npmrc file: the last line of a key counts. ${NAME} is replaced where the variable is set. Lists and sections,
// which npm has no use for here, are passed over.
NpmSettings read_npmrc(std::string_view text, const NpmVariable &variable);

// Whether npm's settings for a fetch may have this key: registry, @SCOPE:registry, what belongs to one registry's URL, proxies.
bool is_npm_setting_of_fetch(std::string_view key) noexcept;

// As lines of an npmrc file, each value quoted; only keys of a fetch.
std::string write_npmrc(const NpmSettings &settings);

// An http or https URL of harmless characters, without a name and password in it.
bool is_registry_url(std::string_view url) noexcept;
// Whether others on the way cannot read or change what such a URL fetches: by https, or from this host itself.
bool is_safe_on_the_way(std::string_view url) noexcept;
// For messages: a name and password or a query, in something that was meant as a URL, becomes "***".
std::string without_secrets(std::string_view url);
// With a slash at its end.
std::string registry_directory(const std::string &url);

// The token that npm sends to this registry: of the key //HOST/PATH/:_authToken that fits best. Empty without one.
std::string token_of_registry(const NpmSettings &settings, std::string_view registry);

// A registry's answer about a package, and the check sums that npm calls integrity.

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
