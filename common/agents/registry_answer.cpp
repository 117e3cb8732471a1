// Reads the JSON of a registry, and believes only where a package is and what its check sum is.
#include "common/agents/registry_answer.hpp"

#include "common/agents/agent_request.hpp"
#include "common/agents/npm_settings.hpp"
#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

using Answer = nlohmann::json;
constexpr int deepest_answer = 64;
constexpr std::size_t sha512_bytes = 64;

[[noreturn]] void refuse_answer(const std::string &package, const std::string &problem)
{
    throw Failure(ExitStatus::unavailable, "the registry's answer about " + package + " " + problem);
}

Answer parse_answer(std::string_view json, const std::string &package)
{
    if (nests_deeper(json, deepest_answer)) refuse_answer(package, "nests too deep");
    auto answer = Answer::parse(json, nullptr, false);
    if (!answer.is_object()) refuse_answer(package, "is not a JSON object; is this an npm registry?");
    return answer;
}

// Empty where there is no such text.
std::string text_at(const Answer &object, const char *name)
{
    if (!object.is_object()) return "";
    const auto found = object.find(name);
    return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

const Answer &object_at(const Answer &object, const char *name)
{
    static const Answer nothing = Answer::object();
    if (!object.is_object()) return nothing;
    const auto found = object.find(name);
    return found == object.end() || !found->is_object() ? nothing : *found;
}

std::optional<std::uint32_t> base64_value(char byte)
{
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto found = alphabet.find(byte);
    return found == std::string_view::npos ? std::nullopt : std::optional(static_cast<std::uint32_t>(found));
}

} // namespace

std::optional<std::string> read_integrity(std::string_view text) noexcept
{
    constexpr std::string_view kind = "sha512-";
    for (auto word : split(text, ' ')) {
        if (!word.starts_with(kind)) continue;
        word = word.substr(kind.size(), word.find('?') - kind.size()); // options follow, which npm has none of
        if (!word.ends_with("==")) return std::nullopt;
        word.remove_suffix(2);
        std::string bytes;
        std::uint32_t bits = 0;
        int count = 0;
        for (const char byte : word) {
            const auto value = base64_value(byte);
            if (!value) return std::nullopt;
            bits = (bits << 6U) | *value;
            count += 6;
            if (count < 8) continue;
            count -= 8;
            bytes += static_cast<char>((bits >> static_cast<unsigned>(count)) & 0xffU);
        }
        return bytes.size() == sha512_bytes ? std::optional(bytes) : std::nullopt;
    }
    return std::nullopt;
}

PackageAnswer read_registry_answer(std::string_view json, const std::string &package, const std::string &version)
{
    const auto answer = parse_answer(json, package);
    const auto exact = is_package_version(version) ? version : text_at(object_at(answer, "dist-tags"), version.c_str());
    if (!is_package_version(exact)) refuse_answer(package, "has no version that is called " + escape_for_display(version));
    const auto &found = object_at(object_at(answer, "versions"), exact.c_str());
    if (found.empty()) refuse_answer(package, "does not have the version " + exact);
    const auto &dist = object_at(found, "dist");
    PackageAnswer of_package{exact, text_at(dist, "tarball"), text_at(dist, "integrity")};
    if (!is_registry_url(of_package.tarball)) refuse_answer(package, "names no http or https URL of its archive");
    if (!read_integrity(of_package.integrity)) refuse_answer(package, "has no sha512 for its archive");
    return of_package;
}

PackageProgram read_package_program(std::string_view json, const std::string &package, const std::string &command)
{
    const auto answer = parse_answer(json, package);
    const auto bin = answer.find("bin"); // a text where there is one program, called as the package
    const bool is_one = bin != answer.end() && bin->is_string();
    PackageProgram found{text_at(answer, "version"), is_one ? bin->get<std::string>() : text_at(object_at(answer, "bin"), command.c_str())};
    if (found.program.starts_with("./")) found.program.erase(0, 2);
    if (!is_package_version(found.version)) refuse_answer(package, "has no version in its package.json");
    if (!is_path_in_package(found.program)) refuse_answer(package, "has no program that is called " + command);
    return found;
}

} // namespace pi_agent
