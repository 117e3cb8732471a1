// Node and npm from the registry's own archives, by their check sums; then npm, for the agent.
#include "fetch/fetch.hpp"

#include "common/base/error.hpp"
#include "common/base/files.hpp"
#include "common/base/text.hpp"
#include "common/seams/seams.hpp"
#include "fetch/download.hpp"
#include "fetch/programs.hpp"

#include <chrono>

namespace pi_agent {

namespace {

constexpr std::size_t archive_limit = std::size_t{512} << 20U;
constexpr std::size_t package_json_limit = std::size_t{1} << 20U;
constexpr auto between_sizes = std::chrono::milliseconds(200);
constexpr const char *system_certificates = "/etc/ssl/certs/ca-certificates.crt";
constexpr const char *installed_npm = "/usr/bin/npm";
const std::string fetch_place = fetch_directory;
const std::string tree = fetch_place + "/" + fetched_tree;
const std::string certificate_place = fetch_place + "/certificates.pem";

void make_directory(const std::string &path)
{
    if (::mkdir(path.c_str(), 0755) != 0) throw_errno("cannot create " + path);
}

void write_file(const std::string &path, const std::string &text)
{
    write_whole(open_or_throw("cannot create " + path, FdRef(AT_FDCWD), path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600), text, path);
}

std::vector<std::string> variables_of_npm(const FetchOrder &order)
{
    std::vector<std::string> variables = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "HOME=" + fetch_place + "/home", "NO_COLOR=1",
                                          "TMPDIR=/tmp"};
    // Node has certificates of its own; the host's administrator has added to the host's.
    const std::string certificates = !order.certificates.empty() ? certificate_place : system_certificates;
    if (::access(certificates.c_str(), R_OK) == 0) variables.push_back("NODE_EXTRA_CA_CERTS=" + certificates);
    return variables;
}

// npm knows its own registry; where none is installed nobody here does.
std::string registry_of_npm(const FetchOrder &order)
{
    if (!order.registry.empty()) return order.registry;
    std::string url;
    if (::access(installed_npm, X_OK) == 0)
        url = one_line(
            run_fetch_program({installed_npm, "config", "get", "registry"}, variables_of_npm(order), fetch_place + "/home").output);
    if (is_registry_url(url) && is_safe_on_the_way(url)) return registry_directory(url);
    throw Failure(ExitStatus::configuration, "no package registry is configured on this host; name it with --registry URL, or write "
                                             "registry=URL into /etc/npmrc");
}

void unpack(const std::string &archive, const std::string &directory)
{
    make_directory(directory);
    const auto outcome =
        run_fetch_program({"/usr/bin/tar", "--extract", "--file=" + archive, "--directory=" + directory, "--strip-components=1",
                           "--no-same-owner", "--no-same-permissions", "--no-acls", "--no-selinux", "--no-xattrs"},
                          {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, fetch_place);
    if (outcome.status != 0) throw Failure(ExitStatus::unavailable, "cannot unpack " + archive + ": " + one_line(outcome.output));
}

// One of the two packages that npm itself needs.
void fetch_pinned(const FetchOrder &order, Downloader &downloader, const PinnedPackage &pinned, const std::string &directory,
                  const TellFetch &tell)
{
    const auto what = pinned.package + " " + pinned.version;
    FetchLine line;
    line.text = "fetching " + what;
    tell(line);
    const auto digest = read_integrity(pinned.integrity);
    if (!digest) throw Failure(ExitStatus::internal, "the check sum of " + what + " in pi-agent's own data is not one");
    const auto answer =
        read_registry_answer(downloader.get_text(order.registry + pinned.package, registry_answer_limit), pinned.package, pinned.version);
    const auto archive = directory + ".tgz";
    auto last = std::chrono::steady_clock::now() - between_sizes;
    downloader.get_file(answer.tarball, archive, archive_limit, *digest, [&](std::uint64_t got, std::uint64_t all) {
        const auto now = std::chrono::steady_clock::now();
        if (now - last < between_sizes) return;
        last = now;
        FetchLine size;
        size.kind = FetchLine::Kind::size;
        size.got = got;
        size.all = all;
        tell(size);
    });
    fault_point("agent-downloaded");
    unpack(archive, directory);
    if (::unlink(archive.c_str()) != 0) throw_errno("cannot remove " + archive);
}

void run_npm(const FetchOrder &order, const TellFetch &tell)
{
    FetchLine line;
    line.text = "fetching " + order.package + " " + order.version + " and what it needs, with npm";
    tell(line);
    const bool is_locked = !order.lock.empty();
    write_file(tree + "/package.json", is_locked ? order.manifest : "{\"private\": true}\n");
    if (is_locked) write_file(tree + "/package-lock.json", order.lock);
    std::vector<std::string> command = {tree + "/node/bin/node", fetch_place + "/boot/npm/bin/npm-cli.js", is_locked ? "ci" : "install"};
    if (!is_locked) command.push_back(order.package + "@" + order.version);
    for (const char *option : {"--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress",
                               "--save-exact", "--omit-lockfile-registry-resolved", "--loglevel=error", "--logs-max=0"})
        command.emplace_back(option);
    command.push_back("--registry=" + order.registry);
    command.push_back("--cache=" + fetch_place + "/cache");
    const auto outcome = run_fetch_program(command, variables_of_npm(order), tree);
    if (outcome.status != 0)
        throw Failure(ExitStatus::unavailable, "npm could not fetch " + order.package + " " + order.version + " (status " +
                                                   std::to_string(outcome.status) + "): " + one_line(outcome.output));
    fault_point("agent-npm-done");
}

} // namespace

FetchLine fetch_agent(const FetchOrder &given, const TellFetch &tell)
{
    for (const char *directory : {"/boot", "/home", "/cache", "/tree"})
        make_directory(fetch_place + directory);
    auto order = given;
    if (!order.certificates.empty()) write_file(certificate_place, order.certificates);
    order.registry = registry_of_npm(order);
    auto settings = order.settings;
    settings["registry"] = order.registry;
    write_file(fetch_place + "/home/.npmrc", write_npmrc(settings));
    {
        Downloader downloader(order, order.certificates.empty() ? "" : certificate_place);
        fetch_pinned(order, downloader, order.node, tree + "/node", tell);
        fetch_pinned(order, downloader, order.npm, fetch_place + "/boot/npm", tell);
    }
    run_npm(order, tell);
    const auto package = order.platform_package.empty() ? order.package : order.platform_package;
    const auto manifest = tree + "/node_modules/" + package + "/package.json";
    const auto text =
        read_whole(open_or_throw("reading " + manifest, manifest, O_RDONLY | O_NOFOLLOW | O_NONBLOCK), package_json_limit, manifest);
    const auto found = read_package_program(text, package, order.command);
    FetchLine done;
    done.kind = FetchLine::Kind::done;
    done.version = found.version;
    done.program = "node_modules/" + package + "/" + found.program;
    return done;
}

} // namespace pi_agent
