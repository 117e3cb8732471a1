// What of agents can be fetched: npm's configuration, a registry's answers, and the order and the answers of the fetching program.
#include "common/agents/fetch_order.hpp"

#include "common/base/error.hpp"
#include "common/base/text.hpp"

#include <nlohmann/json.hpp>

namespace pi_agent {

namespace {

constexpr std::string_view token_suffix = ":_authToken";

std::string_view without_quotes(std::string_view text)
{
    const bool quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.front() == text.back();
    return quoted ? text.substr(1, text.size() - 2) : text;
}

std::string expanded(std::string_view text, const NpmVariable &variable)
{
    std::string value;
    while (!text.empty()) {
        const auto begin = text.find("${");
        const auto end = begin == std::string_view::npos ? begin : text.find('}', begin);
        value += text.substr(0, begin);
        if (end == std::string_view::npos) return value + std::string(begin == std::string_view::npos ? "" : text.substr(begin));
        const auto known = variable(std::string(text.substr(begin + 2, end - begin - 2)));
        value += known ? *known : std::string(text.substr(begin, end - begin + 1));
        text.remove_prefix(end + 1);
    }
    return value;
}

// Without "https:", as npm writes what belongs to it.
std::string_view place_of_url(std::string_view url)
{
    const auto slashes = url.find("//");
    return slashes == std::string_view::npos ? url : url.substr(slashes);
}

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

constexpr std::size_t longest_version = 64;
constexpr std::string_view version_digits = "0123456789";

bool starts_with_letter(std::string_view text)
{
    return !text.empty() && is_made_of(text.substr(0, 1), "") && version_digits.find(text[0]) == std::string_view::npos;
}

// The parts between dots, none of them empty.
bool is_dotted(std::string_view text)
{
    if (text.empty() || text.back() == '.' || !is_made_of(text, ".-")) return false;
    const auto parts = split(text, '.');
    return std::none_of(parts.begin(), parts.end(), [](std::string_view part) { return part.empty(); });
}

struct VersionParts {
    Version numbers{};
    std::string_view prerelease;
};

std::optional<VersionParts> parts_of_version(std::string_view text)
{
    if (text.size() > longest_version) return std::nullopt;
    VersionParts parts;
    if (const auto plus = text.find('+'); plus != std::string_view::npos) {
        if (!is_dotted(text.substr(plus + 1))) return std::nullopt;
        text = text.substr(0, plus);
    }
    if (const auto dash = text.find('-'); dash != std::string_view::npos) {
        parts.prerelease = text.substr(dash + 1);
        if (!is_dotted(parts.prerelease)) return std::nullopt;
        text = text.substr(0, dash);
    }
    const auto numbers = parse_version(text);
    if (!numbers) return std::nullopt;
    parts.numbers = *numbers;
    return parts;
}

// Numbers come before words, and are compared as numbers: by their length first, for they may be long.
bool is_lower_part(std::string_view one, std::string_view other)
{
    const bool first = one.find_first_not_of(version_digits) == std::string_view::npos;
    const bool second = other.find_first_not_of(version_digits) == std::string_view::npos;
    if (first != second) return first;
    return first && one.size() != other.size() ? one.size() < other.size() : one < other;
}

// A name that registries give to versions: a letter, then letters, digits, dots, dashes and underscores.
bool is_version_tag(std::string_view text) noexcept
{
    return text.size() <= longest_version && starts_with_letter(text) && is_made_of(text, "._-");
}

constexpr std::size_t longest_fetch_text = 2000;

// One line, without tabs.
std::string flat_text(const std::string &text)
{
    std::string flat = text.substr(0, longest_fetch_text);
    for (char &byte : flat)
        if (byte == '\n' || byte == '\t' || byte == '\r') byte = ' ';
    return flat;
}

} // namespace

// --- Reads npmrc, which is an ini file, and the JSON of a registry.

NpmSettings read_npmrc(std::string_view text, const NpmVariable &variable)
{
    NpmSettings settings;
    for (const auto whole : split(text, '\n')) {
        const auto line = trimmed(whole);
        if (line.empty() || line[0] == ';' || line[0] == '#' || line[0] == '[') continue;
        const auto equals = line.find('=');
        const auto key = trimmed(line.substr(0, equals));
        if (key.empty() || key.ends_with("[]")) continue;
        const auto value = equals == std::string_view::npos ? std::string_view("true") : without_quotes(trimmed(line.substr(equals + 1)));
        settings[std::string(key)] = expanded(value, variable);
    }
    return settings;
}

bool is_npm_setting_of_fetch(std::string_view key) noexcept
{
    if (key.starts_with("@")) return key.ends_with(":registry");
    return key.starts_with("//") || has_word("registry proxy https-proxy noproxy", key);
}

std::string write_npmrc(const NpmSettings &settings)
{
    std::string text;
    for (const auto &[key, value] : settings) {
        const bool is_line = (key + value).find_first_of("\"\r\n") == std::string::npos && key.find('=') == std::string::npos;
        if (is_line && is_npm_setting_of_fetch(key)) text.append(key).append("=\"").append(value).append("\"\n");
    }
    return text;
}

bool is_registry_url(std::string_view url) noexcept
{
    for (const std::string_view scheme : {"https://", "http://"}) {
        if (!url.starts_with(scheme)) continue;
        const auto rest = url.substr(scheme.size());
        const auto host = rest.substr(0, rest.find('/'));
        return url.size() <= 1024 && !host.empty() && host[0] != '-' && is_made_of(host, ".:-[]_") && is_made_of(rest, "/._~:-[]%@+");
    }
    return false;
}

bool is_safe_on_the_way(std::string_view url) noexcept
{
    if (url.starts_with("https://")) return true;
    const auto rest = url.substr(std::min(url.size(), url.find("//") + 2));
    const auto place = rest.substr(0, rest.find('/'));
    const auto host = place.starts_with('[') ? place.substr(0, place.find(']') + 1) : place.substr(0, place.find(':'));
    const bool is_number = is_made_of(host, ".") && host.find_first_not_of("0123456789.") == std::string_view::npos;
    return url.starts_with("http://") && (host == "localhost" || host == "[::1]" || (is_number && host.starts_with("127.")));
}

std::string without_secrets(std::string_view url)
{
    std::string shown(url.substr(0, url.find_first_of("?#")));
    if (shown.size() < url.size()) shown += "?***";
    const auto slashes = shown.find("//");
    const std::size_t begin = slashes == std::string::npos ? 0 : slashes + 2;
    const std::size_t end = shown.rfind('@'); // a password may hold a slash
    return end == std::string::npos || end < begin ? shown : shown.replace(begin, end - begin, "***");
}

std::string registry_directory(const std::string &url)
{
    return url.ends_with('/') ? url : url + '/';
}

std::string token_of_registry(const NpmSettings &settings, std::string_view registry)
{
    const auto directory = registry_directory(std::string(registry));
    const auto place = place_of_url(directory);
    std::size_t best = 0;
    std::string token;
    for (const auto &[key, value] : settings) {
        if (!key.starts_with("//") || !key.ends_with(token_suffix)) continue;
        const auto of = registry_directory(key.substr(0, key.size() - token_suffix.size()));
        if (!place.starts_with(of) || of.size() < best) continue;
        best = of.size();
        token = value;
    }
    return token;
}

// Reads the JSON of a registry, and believes only where a package is and what its check sum is.

std::optional<std::string> read_integrity(std::string_view text) noexcept
{
    constexpr std::string_view kind = "sha512-";
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (auto word : split(text, ' ')) {
        if (!word.starts_with(kind)) continue;
        word = word.substr(kind.size(), word.find('?') - kind.size()); // options follow, which npm has none of
        if (!word.ends_with("==")) return std::nullopt;
        word.remove_suffix(2);
        std::string bytes;
        std::uint32_t bits = 0;
        int count = 0;
        for (const char byte : word) {
            const auto value = alphabet.find(byte);
            if (value == std::string_view::npos) return std::nullopt;
            bits = (bits << 6U) | static_cast<std::uint32_t>(value);
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

// --- AGENT@VERSION, the order as JSON, and the answers as lines.

AgentRequest read_agent_request(std::string_view text)
{
    AgentRequest request{"pi", ""};
    if (text.empty()) return request;
    const auto at = text.find('@');
    request.agent = text.substr(0, at);
    if (at != std::string_view::npos) request.version = text.substr(at + 1);
    if (!starts_with_letter(request.agent) || !is_made_of(request.agent, "-") || request.agent.size() > 32)
        throw Failure(ExitStatus::usage, escape_for_display(text) + " names no agent; say AGENT or AGENT@VERSION, for example pi");
    if (at != std::string_view::npos && !is_package_version(request.version) && !is_version_tag(request.version))
        throw Failure(ExitStatus::usage, quote(request.version) + " is not a version of " + request.agent +
                                             "; say one in full, for example 1.2.3, or a tag such as latest");
    return request;
}

bool is_package_version(std::string_view text) noexcept
{
    return parts_of_version(text).has_value();
}

bool is_older_version(std::string_view one, std::string_view other) noexcept
{
    const auto first = parts_of_version(one);
    const auto second = parts_of_version(other);
    if (!first || !second) return false;
    if (first->numbers != second->numbers) return first->numbers < second->numbers;
    if (first->prerelease.empty() || second->prerelease.empty()) return !first->prerelease.empty() && second->prerelease.empty();
    const auto before = split(first->prerelease, '.');
    const auto after = split(second->prerelease, '.');
    return std::lexicographical_compare(before.begin(), before.end(), after.begin(), after.end(), is_lower_part);
}

bool is_path_in_package(std::string_view text) noexcept
{
    return text.size() <= 256 && is_made_of(text, "/._@+-") && !has_odd_component(text) && !text.empty() && text[0] != '-';
}

// The order as JSON, and the answers as lines.

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(PinnedPackage, package, version, integrity)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FetchOrder, registry, settings, certificates, node, npm, package, command, platform_package, version,
                                   manifest, lock)

std::string write_fetch_order(const FetchOrder &order)
{
    return nlohmann::json(order).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

FetchOrder read_fetch_order(std::string_view json)
{
    try {
        return nlohmann::json::parse(json);
    } catch (const nlohmann::json::exception &failure) {
        throw Failure(ExitStatus::internal, std::string("this is not an order of pi-agentctl: ") + failure.what());
    }
}

std::string write_fetch_line(const FetchLine &line)
{
    switch (line.kind) {
    case FetchLine::Kind::step:
        return "step\t" + flat_text(line.text) + "\n";
    case FetchLine::Kind::size:
        return "size\t" + std::to_string(line.got) + "\t" + std::to_string(line.all) + "\n";
    case FetchLine::Kind::failure:
        return "failure\t" + flat_text(line.text) + "\n";
    case FetchLine::Kind::done:
        return "done\t" + flat_text(line.version) + "\t" + flat_text(line.program) + "\n";
    }
    return "";
}

std::optional<FetchLine> read_fetch_line(std::string_view line)
{
    const auto fields = split(line, '\t');
    if (fields.size() < 2 || line.size() > 2 * longest_fetch_text) return std::nullopt;
    using Kind = FetchLine::Kind;
    const auto kind = fields[0];
    if (fields.size() == 2 && (kind == "step" || kind == "failure"))
        return FetchLine{.kind = kind == "step" ? Kind::step : Kind::failure, .text = std::string(fields[1])};
    if (fields.size() != 3) return std::nullopt;
    const auto got = to_number<std::uint64_t>(fields[1]);
    const auto all = to_number<std::uint64_t>(fields[2]);
    if (kind == "size" && got && all) return FetchLine{.kind = Kind::size, .got = *got, .all = *all};
    if (kind != "done" || !is_package_version(fields[1]) || !is_path_in_package(fields[2])) return std::nullopt;
    return FetchLine{.kind = Kind::done, .version = std::string(fields[1]), .program = std::string(fields[2])};
}

} // namespace pi_agent
