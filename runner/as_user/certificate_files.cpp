// Reading certificates as the user, and writing them into the session's /run.
#include "runner/as_user/certificate_files.hpp"

#include "common/base/error.hpp"
#include "common/base/escape.hpp"
#include "common/policy/policy_paths.hpp"
#include "common/seams/defence.hpp"
#include "common/seams/fault_point.hpp"
#include "runner/as_user/host_file.hpp"
#include "runner/root/errand/child.hpp"
#include "runner/wire/answer.hpp"
#include "runner/wire/whole_file.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <sys/stat.h>

namespace pi_agent {

namespace {

// npm reads its own in any case of letters.
constexpr std::array<std::string_view, 17> file_names = {"AWS_CA_BUNDLE",
                                                         "BUNDLE_SSL_CA_CERT",
                                                         "CARGO_HTTP_CAINFO",
                                                         "CURL_CA_BUNDLE",
                                                         "DENO_CERT",
                                                         "GIT_PROXY_SSL_CAINFO",
                                                         "GIT_SSL_CAINFO",
                                                         "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
                                                         "HTTPLIB2_CA_CERTS",
                                                         "NIX_SSL_CERT_FILE",
                                                         "NODE_EXTRA_CA_CERTS",
                                                         "NPM_CONFIG_CAFILE",
                                                         "npm_config_cafile",
                                                         "PIP_CERT",
                                                         "REQUESTS_CA_BUNDLE",
                                                         "SSL_CERT_FILE",
                                                         "YARN_HTTPS_CA_FILE_PATH"};
constexpr std::array<std::string_view, 2> directory_names = {"GIT_SSL_CAPATH", "SSL_CERT_DIR"}; // the latter a list with colons
constexpr const char *directory_inside = "run/pi-agent/ca";
constexpr std::size_t variables_limit = 100;

template <std::size_t size>
bool holds(const std::array<std::string_view, size> &names, std::string_view name) noexcept
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string path_inside(std::size_t number)
{
    return std::string("/") + directory_inside + "/" + std::to_string(number) + ".pem";
}

bool is_shown(const std::string &path, const ShownPlaces &shown)
{
    return is_shown(shown.view, path) || is_within(path, shown.project) || is_within(path, shown.home);
}

// Not a defence: it keeps people's mistakes from the agent.
void require_certificates(const std::string &content)
{
    if (!defence_is_on("certificates-only")) return;
    if (content.find("PRIVATE KEY-----") != std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds a private key; name a file that holds certificates alone");
    if (content.find("CERTIFICATE-----") == std::string::npos)
        throw Failure(ExitStatus::configuration, "it holds no certificate in PEM format (-----BEGIN CERTIFICATE-----)");
}

// Where a path leads to; none where the user may not look, and the view shows it: the agent's home.
std::optional<UserPlacePtr> find_place(const UserPaths &paths, const std::string &path, const ShownPlaces &shown)
{
    try {
        return paths.follow(path);
    } catch (const SystemFailure &failure) {
        if (failure.error_number() == EACCES && is_shown(path, shown)) return std::nullopt;
        throw SystemFailure(failure.error_number(), "looking for it");
    } catch (const NotFollowed &failure) { // of an agents' place
        if (!failure.leads_out() && is_shown(path, shown)) return std::nullopt;
        throw;
    }
}

// The content, or none where the view shows the file under this name. Throws Failure where it can do neither.
std::optional<std::string> read_certificates(const UserPaths &paths, const std::string &path, const ShownPlaces &shown, std::size_t limit)
{
    if (path.front() != '/') throw Failure(ExitStatus::configuration, "it is no absolute path");
    const std::optional<UserPlacePtr> place = find_place(paths, path, shown);
    if (!place || (is_shown(path, shown) && is_shown((*place)->path, shown))) return std::nullopt;
    if (S_ISDIR((*place)->facts.st_mode))
        throw Failure(ExitStatus::configuration, "it is a directory, and only files are copied for the agent");
    const HostFile file = open_host_file(paths, path);
    if (!file.fd) throw Failure(ExitStatus::configuration, file.problem);
    if (file.facts.size > limit)
        throw Failure(ExitStatus::configuration,
                      "it, or all such files together, are larger than " + std::to_string(certificates_limit / 1024) + " KiB");
    std::string content = read_whole(file.fd, limit, "it");
    require_certificates(content);
    return content;
}

void tell(CertificateFiles &files, const CertificateVariable &variable, const std::string &path, const std::string &problem)
{
    files.notices.push_back(variable.name + " (" + escape_for_display(variable.from) + "): " + escape_for_display(path) +
                            " is not shown to the agent: " + problem);
}

void look_at_directories(CertificateFiles &files, const CertificateVariable &variable, const ShownPlaces &shown)
{
    std::size_t start = 0;
    while (start <= variable.path.size()) {
        const std::size_t end = std::min(variable.path.find(':', start), variable.path.size());
        const std::string path = variable.path.substr(start, end - start);
        if (!path.empty() && !is_shown(path, shown))
            return tell(files, variable, path,
                        "directories are not copied; put the certificates into one file, and name it in SSL_CERT_FILE");
        start = end + 1;
    }
}

std::string encode(const CertificateFiles &files)
{
    std::vector<std::string> renamed;
    for (const auto &[name, path] : files.renamed)
        renamed.insert(renamed.end(), {name, path});
    return Encoder().texts(files.contents).texts(renamed).texts(files.notices).bytes();
}

// The child is its user's: what it says is held against what it was asked.
CertificateFiles decode(std::string_view bytes, const std::vector<CertificateVariable> &variables)
{
    Decoder decoder(bytes);
    CertificateFiles files;
    files.contents = decoder.texts(variables_limit);
    const std::vector<std::string> renamed = decoder.texts(2 * variables_limit);
    files.notices = decoder.texts(variables_limit);
    decoder.end();
    std::size_t size = 0;
    for (const auto &content : files.contents)
        size += content.size();
    if (size > certificates_limit || renamed.size() % 2 != 0) throw ProtocolError("certificates of the user's are not what was asked for");
    for (std::size_t index = 0; index < renamed.size(); index += 2) {
        const auto is_it = [&](const CertificateVariable &variable) { return variable.name == renamed[index]; };
        bool is_path = false;
        for (std::size_t number = 1; number <= files.contents.size(); ++number)
            is_path = is_path || renamed[index + 1] == path_inside(number);
        if (!is_path || std::none_of(variables.begin(), variables.end(), is_it))
            throw ProtocolError("certificates of the user's are not what was asked for");
        files.renamed[renamed[index]] = renamed[index + 1];
    }
    return files;
}

} // namespace

bool names_certificates(const std::string &name)
{
    return holds(file_names, name);
}

std::vector<CertificateVariable> find_certificate_variables(const EnvironmentInput &environment)
{
    std::vector<CertificateVariable> found;
    for (const auto &[name, variable] : layer_environment(environment))
        if (!variable.value.empty() && (holds(file_names, name) || holds(directory_names, name)))
            found.push_back({name, variable.value, variable.from});
    return found;
}

CertificateFiles read_certificate_files(const UserPaths &paths, const std::vector<CertificateVariable> &variables, const ShownPlaces &shown)
{
    CertificateFiles files;
    std::map<std::string, std::string> known; // the same file is often named by several
    std::size_t left = certificates_limit;
    for (const auto &variable : variables) {
        if (holds(directory_names, variable.name)) {
            look_at_directories(files, variable, shown);
            continue;
        }
        try {
            if (known.find(variable.path) == known.end()) {
                auto content = read_certificates(paths, variable.path, shown, left);
                if (!content) continue;
                left -= content->size();
                files.contents.push_back(std::move(*content));
                known[variable.path] = path_inside(files.contents.size());
            }
            files.renamed[variable.name] = known[variable.path];
        } catch (const Failure &failure) {
            tell(files, variable, variable.path, failure.what());
        }
    }
    return files;
}

CertificateFiles ask_certificate_files(const AsRoot &root, const Account &user, const std::vector<CertificateVariable> &variables,
                                       const ShownPlaces &shown, const AgentPlaces &agents)
{
    if (variables.empty()) return {};
    try {
        Child child(root, "reader of certificates", user, {}, [&](const AsUser &, FdRef channel) {
            fault_point("reading-certs");
            send_long_answer(channel, encode(read_certificate_files(UserPaths(agents), variables, shown)));
        });
        return decode(child.receive_long(child_patience_seconds), variables);
    } catch (const Failure &failure) { // no reason to refuse a session
        return {{}, {}, {std::string("files of certificates that variables name are not shown to the agent: ") + failure.what()}};
    }
}

void show_certificate_files(const SessionDirectory &session, const CertificateFiles &files)
{
    if (files.contents.empty()) return;
    session.make_directory(directory_inside);
    for (std::size_t number = 1; number <= files.contents.size(); ++number)
        write_whole(session.make_file(path_inside(number).substr(1)), files.contents[number - 1], path_inside(number));
}

} // namespace pi_agent
